"""Searches for miscalibrated groups: scan, learned group, oracle group and null distribution."""

from evenhand.search.leaks import find_leaks
from evenhand.search.learned_group import FoundGroup, GroupSearch, find_group, n_learnable
from evenhand.search.miscoverage import conditional_miscoverage

# parts for audits, reports and tests; `__all__` is the documented reference
from evenhand.search.scan import (
    FEW_ROWS,
    MIN_SIZE,
    POWER,
    Scanned,
    detectable_error,
    group_test_rows,
    scan_groups,
    scan_rows,
    shift_of,
)
from evenhand.search.worst_groups import (
    NullCurve,
    Simulate,
    WorstGroupCurve,
    n_simulated,
    null_curve,
    worst_group_curve,
)

__all__ = [
    "FoundGroup",
    "GroupSearch",
    "NullCurve",
    "WorstGroupCurve",
    "conditional_miscoverage",
    "find_group",
    "group_test_rows",
    "null_curve",
    "scan_groups",
    "worst_group_curve",
]
