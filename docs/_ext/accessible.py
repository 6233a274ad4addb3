"""Pages that can be read on narrow screens, by keyboard and by screen readers."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx_gallery.directives import imgsgnode


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
