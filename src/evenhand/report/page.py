"""Rendering of documents as HTML pages that open offline."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from evenhand.figures import inline_svg, printable
from evenhand.report.audit import audit_document
from evenhand.report.document import Document
from evenhand.report.frames import digits, frame_of, stairs
from evenhand.report.judging import findings_of
from evenhand.report.names import short
from evenhand.report.notes import Note
from evenhand.report.records import Values

if TYPE_CHECKING:
    from jinja2 import Environment


def audit_html(audit: Values, notes: Sequence[Note] = ()) -> str:
    """Return an audit as one HTML page that opens offline.

    Parameters
    ----------
    audit : dict
        `Audit.to_dict()`, or an audit read from JSON; see docs/audit-schema.rst. Values that are
        None and empty lists are omitted or shown as "-".
    notes : sequence of Note
        `Audit.notes`, which explain missing parts; JSON contains only their sentences.

    Returns
    -------
    str
        Page with tables and SVG charts. Its script sorts tables and shows values, and its content
        security policy blocks everything else. The page is readable without the script. Text from
        data is escaped.

    Examples
    --------
    >>> empty = dict.fromkeys(["scores", "groups", "scan", "learned", "worst_groups", "notes"], [])
    >>> head = {"name": "a <b> model", "n_samples": 100, "n_draws": 1, "is_randomized": False}
    >>> page = audit_html(head | empty | {"rounding_step": None, "certificate": None})
    >>> "<h1>Audit of a &lt;b&gt; model</h1>" in page
    True
    """
    return document_html(audit_document(findings_of(audit, notes)), is_live=True)


def document_html(document: Document, *, is_live: bool = False) -> str:
    """Return a document as a page; a live page sorts and filters tables and shows values."""
    script = _own_file("page.js") if is_live else ""
    # the policy contains the hash of our script, so that no other inline script runs
    seal = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    style = _own_file("page.css")
    template = _environment().get_template("page.html.j2")
    return template.render(document=document, script=script, seal=seal, style=style)


@cache
def _own_file(name: str) -> str:
    """Return the text of a file that goes into every page."""
    loader = _environment().loader
    assert loader is not None
    return loader.get_source(_environment(), name)[0]


@cache
def _environment() -> Environment:
    # imported here: `import evenhand` and text summaries do not wait for jinja2
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # autoescape covers all text; only our own files and drawings are marked as safe, in templates
    environment = Environment(
        loader=PackageLoader("evenhand.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "kind": lambda part: type(part).__name__,
        "short": short,
        "order": _order,
        "frame": frame_of,
        "stairs": stairs,
        # the name makes the ids of a figure unique in the page
        "drawn": lambda figure: inline_svg(figure.draw, figure.alt, figure.name),
    }
    environment.filters.update(filters)
    return environment


def _printed(value: Any) -> Any:
    """Format coordinates, and escape control characters of texts except our own markup."""
    if isinstance(value, float):
        return digits(value)
    return value if hasattr(value, "__html__") else printable(value)


def _order(order: float | None) -> str:
    """Format the value by which a column is sorted."""
    # six digits nearly always sort as the full value, in half the bytes
    return "" if order is None or not math.isfinite(order) else f"{order:.6g}"
