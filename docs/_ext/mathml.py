"""Formulas as MathML, which browsers draw themselves.

The pages need no script and no network for them.
"""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


BARE_FRACTION = re.compile(r"frac\s*\d\d")
"""The converter takes two digits without braces for one number."""

TIGHT_FUNCTION = re.compile(r"(<mo>&ApplyFunction;</mo>)(?=\s*<m(?!o>))")
"""A function whose argument follows without a bracket, such as a logarithm: browsers leave no
room there."""


def converted(node: nodes.Element, *, is_block: bool) -> str:
    """Return a formula as MathML.

    One that cannot be converted is a warning, and shown as it was written.
    """
    source = node.astext()
    try:
        if BARE_FRACTION.search(source):
            raise MathError(r"digits of a fraction need braces, \frac{1}{2}")
        formula = str(latex2mathml.tex2mathml(source, as_block=is_block))
        return TIGHT_FUNCTION.sub(r'\1<mspace width="0.17em"></mspace>', formula)
    except MathError as error:
        logger.warning("a formula cannot be converted: %s: %s", error, source, location=node)
        return f"<code>{html.escape(source)}</code>"


def visit_inline(translator: Any, node: nodes.Element) -> None:
    """Write a formula within a line."""
    translator.body.append(converted(node, is_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.Element) -> None:
    """Write a formula on lines of its own."""
    translator.body.append(f'<div class="formula">{converted(node, is_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
