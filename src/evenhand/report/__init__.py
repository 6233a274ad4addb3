"""Reports: findings of an audit, made once, as a page of HTML and as text."""

from __future__ import annotations

from evenhand.report.charts import nice_ticks
from evenhand.report.comparison import difference_in_words
from evenhand.report.comparison_page import comparison_html, comparison_text
from evenhand.report.document import Bullets, Document, Figure, Paragraph, Section
from evenhand.report.findings import Findings, GroupFinding
from evenhand.report.judging import findings_of
from evenhand.report.measures import Measure, units_of
from evenhand.report.measures import Quantity as Quantity
from evenhand.report.measures import log_score_name as log_score_name
from evenhand.report.notes import Note, NoteKind, notes_of
from evenhand.report.page import audit_html, document_html
from evenhand.report.page_data import MemberList as MemberList
from evenhand.report.page_data import MemberLists as MemberLists
from evenhand.report.records import without_nan as without_nan
from evenhand.report.text import audit_text
from evenhand.report.tolerance import Tolerance
from evenhand.report.verdict import Verdict, verdict_of

__all__ = [
    "Bullets",
    "Document",
    "Figure",
    "Findings",
    "GroupFinding",
    "Measure",
    "Note",
    "NoteKind",
    "Paragraph",
    "Section",
    "Tolerance",
    "Verdict",
    "audit_html",
    "audit_text",
    "comparison_html",
    "comparison_text",
    "difference_in_words",
    "document_html",
    "findings_of",
    "nice_ticks",
    "notes_of",
    "units_of",
    "verdict_of",
]
