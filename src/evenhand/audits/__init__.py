"""One audit of everything: sharpness, groups named, scanned and learned, the oracle worst group, a certificate."""

from __future__ import annotations

from evenhand.audits._partitioned import audit_of
from evenhand.audits._tally import Tally, TallyPlan, tally
from evenhand.audits.comparison import Comparison, compare
from evenhand.audits.gate import Condition, parse_condition
from evenhand.audits.provenance import with_people
from evenhand.audits.result import Audit
from evenhand.audits.rows import check_search, one_row_note
from evenhand.audits.run import LEARNED_MASSES, MASSES, MIN_SIZE, audit, audit_pit, certify

__all__ = [
    "LEARNED_MASSES",
    "MASSES",
    "MIN_SIZE",
    "Audit",
    "Comparison",
    "Condition",
    "Tally",
    "TallyPlan",
    "audit",
    "audit_of",
    "audit_pit",
    "certify",
    "check_search",
    "compare",
    "one_row_note",
    "parse_condition",
    "tally",
    "with_people",
]
