"""Figures as inline SVG, in one style whatever the user's settings."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from evenhand.figures.style import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def inline_svg(draw: Callable[[], Axes], alt: str, prefix: str) -> str:
    """Return a figure as SVG for a page, in matplotlib's default style.

    Parameters
    ----------
    draw : callable
        Makes the figure and returns its axes.
    alt : str
        Text alternative for screen readers.
    prefix : str
        Prefix of the ids in the SVG, which must be unique in a page.

    Examples
    --------
    >>> from evenhand.figures import plot_worst_group
    >>> curve = [{"mass": 1.0, "error": 0.0}]
    >>> svg = inline_svg(lambda: plot_worst_group(curve), "a curve", "first")
    >>> svg.startswith("<svg"), 'aria-label="a curve"' in svg
    (True, True)
    """
    out = io.BytesIO()
    with _own_style():
        _figure_of(draw).savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    root = ElementTree.fromstring(out.getvalue())
    _make_inline(root, prefix)
    root.attrib |= {
        "role": "img",
        "aria-label": printable(alt),
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
    }
    return ElementTree.tostring(root, encoding="unicode")


def _make_inline(root: ElementTree.Element, prefix: str) -> None:
    """Remove namespaces, the style sheet and the fixed size, and make ids unique in a page."""
    for element in list(root.iter()):
        for child in list(element):
            if child.tag.endswith(("}metadata", "}style")):
                element.remove(child)
    # the view box stays, so the page can scale the figure
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for key in list(element.attrib):
            value = element.attrib.pop(key)
            name = key.rpartition("}")[2]
            if name == "id":
                value = f"{prefix}-{value}"
            elif name == "href":
                value = f"#{prefix}-{value[1:]}"
            element.set(name, value.replace("url(#", f"url(#{prefix}-"))


@contextmanager
def _own_style() -> Iterator[None]:
    from matplotlib import style

    # text is kept as text, and ids are the same in every run, so that pages can be compared
    settings: Any = [
        "default",
        {"svg.fonttype": "none", "svg.hashsalt": "evenhand", "font.size": 10.0},
    ]
    with warnings.catch_warnings(), style.context(settings, after_reset=True):
        # the reader's browser has the glyphs that matplotlib's own font lacks
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def _figure_of(draw: Callable[[], Axes]) -> Figure:
    figure = draw().get_figure(root=True)
    assert figure is not None
    return figure
