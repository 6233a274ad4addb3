"""Rendering of documents as HTML pages that open offline."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from evenhand._escape import printable
from evenhand.report.audit import audit_document
from evenhand.report.charts import digits, frame_of, stairs
from evenhand.report.document import Document, PageData, Paragraph, StatusBox, short
from evenhand.report.findings import Findings, findings_of
from evenhand.report.groups import shown_named, shown_scanned
from evenhand.report.records import Values

CODE = re.compile("`([^`]+)`")

if TYPE_CHECKING:
    from jinja2 import Environment


def audit_html(audit: Values) -> str:
    """Return an audit as one HTML page that opens offline; it contains nobody's id.

    Parameters
    ----------
    audit : dict
        `Audit.to_dict()`, or an audit read from JSON; see docs/audit-schema.rst. Values that are
        None and empty lists are omitted or shown as "-".

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
    findings = findings_of(audit)
    data = PageData.of(listed_values(audit, findings))
    return document_html(audit_document(findings, data))


def listed_values(audit: Values, findings: Findings) -> Values:
    """Return an audit without named and scanned groups that the page does not list."""
    listed = {
        "groups": {group.name for group in shown_named(findings)},
        "scan": {group.name for group in shown_scanned(findings)},
    }
    tables = {
        key: [row for row in audit.get(key) or () if row.get("group") in names]
        for key, names in listed.items()
    }
    return {**audit, **tables}


def document_html(document: Document) -> str:
    """Return a document as a page; its script sorts and filters tables and shows values."""
    script = _own_file("page.js")
    # the policy contains the hash of our script, so that no other inline script runs
    seal = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    style = _own_file("page.css")
    template = _environment().get_template("page.html.j2")
    icon = base64.b64encode(_own_file("icon.svg").encode()).decode()
    return template.render(document=document, script=script, seal=seal, style=style, icon=icon)


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
        "code": _with_code,
        "order": _order,
        "frame": frame_of,
        "stairs": stairs,
    }
    environment.filters.update(filters)
    environment.tests["is_status"] = lambda part: isinstance(part, StatusBox)
    environment.tests["is_lead"] = lambda part: isinstance(part, Paragraph) and part.kind == "lead"
    return environment


def _printed(value: Any) -> Any:
    """Format coordinates, and escape control characters of texts except our own markup."""
    if isinstance(value, float):
        return digits(value)
    return value if hasattr(value, "__html__") else printable(value)


def _with_code(text: object) -> Any:
    """Escape a text, and mark what stands between backticks as code."""
    from markupsafe import Markup, escape

    parts = CODE.split(printable(text))
    marked = (
        Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(parts)
    )
    return Markup("").join(marked)


def _order(order: float | None) -> str:
    """Format the value by which a column is sorted."""
    # six digits nearly always sort as the full value, in half the bytes
    return "" if order is None or not math.isfinite(order) else f"{order:.6g}"
