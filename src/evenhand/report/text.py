"""Rendering of documents as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from evenhand._escape import visible
from evenhand._table import Table, line_width, wrapped
from evenhand.report.audit import audit_document
from evenhand.report.charts import Chart
from evenhand.report.document import Bullets, Document, Heading, Pair, Paragraph, Part, StatusBox
from evenhand.report.findings import findings_of
from evenhand.report.notes import Note
from evenhand.report.records import Values


def audit_text(audit: Values, notes: Sequence[Note] = ()) -> str:
    """Return an audit, given as `Audit.to_dict()` and `Audit.notes`, as text."""
    return document_text(audit_document(findings_of(audit, notes)))


def document_text(document: Document) -> str:
    """Return a document as text, without cards and sections that only pages show."""
    parts = [wrapped(f"{document.title}: {', '.join(document.facts)}")]
    if document.opening is not None:
        parts += _texts(document.opening.parts)
    for section in document.sections:
        if section.in_text:
            parts += _titled(section.title, _texts(section.parts))
    return "\n\n".join(parts)


def _titled(title: str, texts: Iterable[str]) -> Iterator[str]:
    """Yield texts with a title in capitals above the first."""
    for i, text in enumerate(texts):
        yield text if i else f"{wrapped(title.upper())}\n{text}"


def _texts(parts: Iterable[Part]) -> list[str]:
    texts: list[str] = []
    heading = ""
    for part in chain.from_iterable(map(_in_order, parts)):
        text = heading + _text(part)
        # a heading is printed above the part that follows it
        heading = f"{text}\n" if isinstance(part, Heading) else ""
        texts += [text] if text and not heading else []
    return texts


def _in_order(part: Part) -> Sequence[Part]:
    """Return the parts of a pair: remarks are printed before the numbers of their figure."""
    if not isinstance(part, Pair):
        return [part]
    return [*part.right, *part.left] if part.is_remark else [*part.left, *part.right]


def _text(part: Part) -> str:
    """Return a part as text; figures and facts are omitted."""
    match part:
        case Paragraph() if part.kind == "code":
            # lines of a command end with a backslash, and must not be broken elsewhere
            return "\n".join(map(visible, part.text.split("\n")))
        case Paragraph() | Heading() | StatusBox():
            return wrapped(_in_words(part))
        case Bullets():
            width = line_width() - 2
            items = (wrapped(str(item), width).replace("\n", "\n  ") for item in part.items)
            return "\n".join(f"- {item}" for item in items)
        case Chart() if part.numbers is not None:
            return _text(part.numbers)
        # tables of thousands of groups stay readable; the page and JSON contain more
        case Table():
            n, most = len(part.rows), part.printed
            rest = f"\n{most} of {n:,} rows are printed." if n > most else ""
            return part.text(most=most) + rest
        case _:
            return ""


def _in_words(part: Paragraph | Heading | StatusBox) -> str:
    match part:
        case StatusBox():
            return " ".join([part.title.upper(), *part.sentences])
        case Heading():
            return f"{part.text}:"
        case _:
            # hints are about what only a page has
            return "" if part.kind == "hint" else part.text
