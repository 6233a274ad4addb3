"""What people see of an audit, made from its tables."""

from __future__ import annotations

from evenhand.report.html import audit_html
from evenhand.report.measures import Measure
from evenhand.report.notes import Note, NoteKind, notes_of
from evenhand.report.page import bullets, figure, heading, paragraph, section, table
from evenhand.report.page import page as html_page
from evenhand.report.sentences import units_of
from evenhand.report.text import audit_text, comparison_text, difference_in_words

__all__ = [
    "Measure",
    "Note",
    "NoteKind",
    "audit_html",
    "audit_text",
    "bullets",
    "comparison_text",
    "difference_in_words",
    "figure",
    "heading",
    "html_page",
    "notes_of",
    "paragraph",
    "section",
    "table",
    "units_of",
]
