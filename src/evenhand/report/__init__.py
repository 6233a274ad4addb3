"""Reports: findings of an audit, made once, as a page of HTML and as text."""

from __future__ import annotations

from evenhand.report.about import ABOUT_KEYS as ABOUT_KEYS
from evenhand.report.audit import audit_document as audit_document
from evenhand.report.brief import audit_brief
from evenhand.report.charts import Chart as Chart
from evenhand.report.charts import Points as Points
from evenhand.report.charts import nice_ticks
from evenhand.report.comparison import difference_in_words
from evenhand.report.comparison_page import comparison_html, comparison_text
from evenhand.report.document import Bullets, Document, Figure, Paragraph, Section
from evenhand.report.document import Pair as Pair
from evenhand.report.document import StatusBox as StatusBox
from evenhand.report.findings import Findings, GroupFinding
from evenhand.report.judging import findings_of
from evenhand.report.measures import Measure, units_of
from evenhand.report.measures import Quantity as Quantity
from evenhand.report.measures import log_score_name as log_score_name
from evenhand.report.next_steps import NextStep, next_steps
from evenhand.report.notes import Note, NoteKind, notes_of
from evenhand.report.page import audit_html, document_html
from evenhand.report.records import without_ids as without_ids
from evenhand.report.records import without_nan as without_nan
from evenhand.report.status import Detectable, JudgedCondition, Status, Verdict, status_of
from evenhand.report.status import detectable_error as detectable_error
from evenhand.report.text import audit_text
from evenhand.report.verdict import MainFindings, main_findings
from evenhand.report.watch_page import watch_document as watch_document
from evenhand.report.watch_page import watch_html, watch_text
from evenhand.report.watch_sentences import late_sentence as late_sentence

__all__ = [
    "Bullets",
    "Detectable",
    "Document",
    "Figure",
    "Findings",
    "GroupFinding",
    "JudgedCondition",
    "MainFindings",
    "Measure",
    "NextStep",
    "Note",
    "NoteKind",
    "Paragraph",
    "Section",
    "Status",
    "Verdict",
    "audit_brief",
    "audit_html",
    "audit_text",
    "comparison_html",
    "comparison_text",
    "difference_in_words",
    "document_html",
    "findings_of",
    "main_findings",
    "next_steps",
    "nice_ticks",
    "notes_of",
    "status_of",
    "units_of",
    "watch_html",
    "watch_text",
]
