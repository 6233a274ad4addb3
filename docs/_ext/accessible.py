"""Pages that can be read on narrow screens, by keyboard and by screen readers."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.text import Text
from sphinx.application import Sphinx
from sphinx_gallery.directives import imgsgnode
from sphinx_gallery.scrapers import matplotlib_scraper

NARROWEST = 576
"""Width in pixels below which figures of the gallery scroll instead of shrinking."""

LEAST_TEXT = 9
"""Size in pixels of the smallest text of a figure."""


def smallest_text(figure: Figure) -> float:
    """Return the size in pixels of the smallest text of a figure where it is shown smallest."""
    figure.draw_without_rendering()
    # the gallery saves 100 dots per inch unless the figure has more, shown as 100 with `srcset`
    width = 100 * figure.get_figwidth()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    points = min(float(text.get_fontsize()) for text in texts)
    return points / 72 * 100 * min(1.0, NARROWEST / width)


def readable_figures(block: Any, variables: dict[str, Any], settings: dict[str, Any]) -> str:
    """Save the figures of a script, each with a title, its text alternative, and text to read."""
    for figure in map(plt.figure, plt.get_fignums()):
        titles = [figure.get_suptitle(), *(ax.get_title() for ax in figure.axes)]
        if smallest_text(figure) < LEAST_TEXT or not any(title.strip() for title in titles):
            raise ValueError(f"a figure of {variables['src_file']} has no title or small text")
    return str(matplotlib_scraper(block, variables, settings))


def is_figure(node: nodes.Node) -> bool:
    """Return whether a node is a figure of the gallery, and no thumbnail."""
    if isinstance(node, nodes.image | imgsgnode):
        return "auto_examples" in node["uri"] and "/thumb/" not in node["uri"]
    return False


def let_figures_scroll(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Put each figure of a page, with its link, into a box that scrolls on narrow screens."""
    for image in list(doctree.findall(is_figure)):
        parent = image.parent
        outer = parent if isinstance(parent, nodes.reference) else image
        outer.replace_self(nodes.container("", outer.deepcopy(), classes=["scrolling"]))


def give_headings_a_level(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Add the level that headings of the contents lack, without which they are not announced."""
    for part in ("furo_navigation_tree", "body"):
        if part in context:
            leveled = 'class="caption" role="heading" aria-level="2"'
            context[part] = context[part].replace('class="caption" role="heading"', leveled)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the changes of pages, the second after the theme's own."""
    app.connect("doctree-resolved", let_figures_scroll)
    app.connect("html-page-context", give_headings_a_level, priority=900)
    return {"parallel_read_safe": True}
