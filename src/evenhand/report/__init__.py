"""What people see of an audit, made from its tables."""

from __future__ import annotations

from evenhand.report.findings import says_no_scan
from evenhand.report.html import audit_html
from evenhand.report.sentences import units_of
from evenhand.report.text import audit_text, comparison_text, difference_in_words

__all__ = [
    "audit_html",
    "audit_text",
    "comparison_text",
    "difference_in_words",
    "says_no_scan",
    "units_of",
]
