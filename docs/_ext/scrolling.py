"""Figures of the gallery scroll on narrow screens, where they would be too small to read."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx_gallery.directives import imgsgnode

# only a region that takes the focus can be scrolled by keyboard
OPEN = '<div class="scrolling" tabindex="0" role="region" aria-label="Figure: {alt}">'
CLOSE = "</div>"


def is_figure(node: nodes.Node) -> bool:
    """Return whether a node is a figure of the gallery, and no thumbnail."""
    if isinstance(node, nodes.image | imgsgnode):
        return "auto_examples" in node["uri"] and "/thumb/" not in node["uri"]
    return False


def let_figures_scroll(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Put each figure of a page, with its link, into a region that scrolls."""
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(is_figure)):
        parent = image.parent
        outer = parent if isinstance(parent, nodes.reference) else image
        start = OPEN.format(alt=escape(image.get("alt", ""), quote=True))
        ends = [nodes.raw("", text, format="html") for text in (start, CLOSE)]
        outer.replace_self([ends[0], outer.deepcopy(), ends[1]])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the change of pages."""
    app.connect("doctree-resolved", let_figures_scroll)
    return {"parallel_read_safe": True}
