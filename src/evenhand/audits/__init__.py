"""Calibration audits: sharpness, coverage, group errors, worst groups and a certificate."""

from __future__ import annotations

from evenhand.audits.comparison import Comparison, compare
from evenhand.audits.comparison import paired as paired
from evenhand.audits.counted import CountPlan as CountPlan
from evenhand.audits.counted import RowCounts as RowCounts
from evenhand.audits.counted import count_rows as count_rows
from evenhand.audits.forecasts import BLOCK_ROWS as BLOCK_ROWS
from evenhand.audits.forecasts import PIT_DRAWS as PIT_DRAWS
from evenhand.audits.forecasts import censored_log_score as censored_log_score
from evenhand.audits.forecasts import event_probability as event_probability
from evenhand.audits.forecasts import forecast_of as forecast_of
from evenhand.audits.gate import judged as judged
from evenhand.audits.gate import parse_condition
from evenhand.audits.gate import value_of as value_of
from evenhand.audits.gate import with_conditions as with_conditions
from evenhand.audits.result import Audit, with_sources
from evenhand.audits.result import renumbered as renumbered
from evenhand.audits.rows import STANDARD as STANDARD
from evenhand.audits.rows import Search
from evenhand.audits.rows import check_about as check_about
from evenhand.audits.run import AuditedRows as AuditedRows
from evenhand.audits.run import audit, audit_pit, certify
from evenhand.audits.run import audited as audited
from evenhand.audits.verdict import POWER as POWER
from evenhand.audits.verdict import detectable_error as detectable_error
from evenhand.report import Measure, NoteKind, note, notes_of
from evenhand.results import Condition, Family, Note
from evenhand.results import schema as audit_schema

__all__ = [
    "Audit",
    "Comparison",
    "Condition",
    "Family",
    "Measure",
    "Note",
    "NoteKind",
    "Search",
    "audit",
    "audit_pit",
    "audit_schema",
    "certify",
    "compare",
    "note",
    "notes_of",
    "parse_condition",
    "with_sources",
]
