"""Pages of the documentation as notebooks: the text as Markdown, the examples as cells of code.

The directive links the notebook of the page on which it stands.
"""

from __future__ import annotations

import doctest
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = "_downloads"
HIDDEN = "  # doctest: +ELLIPSIS"
"""Option of a test, of no use to a reader."""


def code_of(text: str) -> str:
    """Return the code of an interactive session, without prompts and outputs."""
    examples = doctest.DocTestParser().get_examples(text)
    return "".join(example.source.replace(HIDDEN, "") for example in examples).rstrip()


def markdown(node: nodes.Node) -> str:
    """Return inline text as Markdown."""
    if isinstance(node, nodes.Text):
        return node.astext().replace("\n", " ")
    inner = "".join(markdown(child) for child in node.children)
    if isinstance(node, nodes.literal):
        return f"`{inner}`"
    if isinstance(node, nodes.emphasis):
        return f"*{inner}*"
    return inner


def cells(section: nodes.Element, level: int = 1) -> Iterator[tuple[str, str]]:
    """Return the kind and the source of each cell of a section, in order."""
    for node in section.children:
        if isinstance(node, nodes.section):
            yield from cells(node, level + 1)
        elif isinstance(node, nodes.title):
            yield "markdown", f"{'#' * level} {markdown(node)}"
        elif isinstance(node, nodes.doctest_block):
            yield "code", code_of(node.astext())
        elif isinstance(node, nodes.literal_block):
            yield "markdown", f"```{node.get('language', '')}\n{node.astext()}\n```"
        elif isinstance(node, nodes.bullet_list):
            yield "markdown", "\n".join(f"- {markdown(item)}" for item in node.children)
        elif isinstance(node, nodes.definition_list):
            lines = (": ".join(markdown(part) for part in item) for item in node.children)
            yield "markdown", "\n".join(f"- {line}" for line in lines)
        elif isinstance(node, nodes.paragraph):
            yield "markdown", markdown(node)


def notebook(document: nodes.document) -> dict[str, Any]:
    """Return a page as a notebook; texts that follow each other are one cell."""
    made: list[dict[str, Any]] = []
    # the section of the page's title, which contains all others
    page = next(document.findall(nodes.section))
    for kind, source in cells(page):
        if made and kind == made[-1]["cell_type"] == "markdown":
            made[-1]["source"] += f"\n\n{source}"
            continue
        cell = {"cell_type": kind, "metadata": {}, "source": source}
        made.append(cell | ({"outputs": [], "execution_count": None} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}


class PageNotebook(SphinxDirective):
    """A link to the page as a notebook."""

    def run(self) -> list[nodes.Node]:
        page = self.env.current_document.docname
        self.env.metadata.setdefault(page, {})["notebook"] = True
        link = f'<a href="{FOLDER}/{page}.ipynb" download>Download this page as a notebook</a>'
        return [nodes.raw("", f'<p class="notebook">{link}</p>', format="html")]


def write(app: Sphinx, document: nodes.document, page: str) -> None:
    """Write the notebook of a page that links one."""
    if "notebook" in app.env.metadata.get(page, {}):
        path = Path(app.outdir) / FOLDER / f"{page}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(notebook(document), indent=1) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("page-notebook", PageNotebook)
    app.connect("doctree-resolved", write)
    return {"parallel_read_safe": True}
