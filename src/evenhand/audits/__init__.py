"""One audit of everything: sharpness, groups named, scanned and learned, the oracle worst group, a certificate."""

from __future__ import annotations

from evenhand.audits._audit import LEARNED_MASSES, MASSES, MIN_SIZE, audit, audit_pit, certify
from evenhand.audits._compare import Comparison, compare
from evenhand.audits._conditions import Condition, parse_condition
from evenhand.audits._held_out import check_search, one_row_note
from evenhand.audits._partitioned import audit_of
from evenhand.audits._provenance import with_people
from evenhand.audits._result import Audit
from evenhand.audits._tally import Tally, TallyPlan, tally

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
