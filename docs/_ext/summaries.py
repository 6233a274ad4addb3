"""Title and description of each page for search engines and previews of links.

The description is the first paragraph of the page. There is no address among them, as the pages
have none of their own.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

MOST = 200
"""Most characters of a description: search engines cut longer ones."""


def summary(text: str, most: int = MOST) -> str:
    """Return the first sentences of a text, as many as fit, or its beginning."""
    line = " ".join(text.split())
    ends = [match.end() for match in re.finditer(r"[.!?](?= |$)", line) if match.end() <= most]
    if ends:
        return line[: ends[-1]]
    return line if len(line) <= most else line[: most - 1].rsplit(" ", 1)[0] + "…"


def first_paragraph(doctree: nodes.document) -> str:
    """Return the first paragraph of a page that is no part of a note, a list or a table."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section | nodes.document | addnodes.desc_content):
            text = paragraph.astext()
            if text.strip():
                return text
    return ""


def add_summary(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Add the tags to the head of a page; pages without a text, such as the index, get none."""
    described = summary(first_paragraph(doctree)) if doctree is not None else ""
    if not described:
        return
    title = re.sub("<[^>]*>", "", context.get("title", app.config.project))
    tags = [("name", "description", described)]
    tags += [
        ("property", f"og:{key}", text)
        for key, text in (
            ("type", "website" if page == app.config.root_doc else "article"),
            ("site_name", app.config.project),
            ("title", title),
            ("description", described),
        )
    ]
    lines = [
        f'<meta {kind}="{name}" content="{escape(text, quote=True)}">' for kind, name, text in tags
    ]
    context["metatags"] = "\n".join([context.get("metatags", ""), *lines])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the tags."""
    app.connect("html-page-context", add_summary)
    return {"parallel_read_safe": True}
