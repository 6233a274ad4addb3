"""Searches for miscalibrated groups: scan, learned group, oracle group and null distribution."""

from __future__ import annotations

from evenhand.search.leaks import LEAK_COLUMNS as LEAK_COLUMNS
from evenhand.search.leaks import find_leaks as find_leaks
from evenhand.search.learned_group import FoundGroup, GroupSearch, find_group
from evenhand.search.learned_group import n_learnable as n_learnable
from evenhand.search.miscoverage import MISCOVERAGE_COLUMNS as MISCOVERAGE_COLUMNS
from evenhand.search.miscoverage import conditional_miscoverage

# parts for audits, reports and tests; `__all__` is the documented reference
from evenhand.search.scan import FEW_ROWS as FEW_ROWS
from evenhand.search.scan import MIN_SIZE as MIN_SIZE
from evenhand.search.scan import Scanned as Scanned
from evenhand.search.scan import group_test_rows, scan_groups
from evenhand.search.scan import scan_rows as scan_rows
from evenhand.search.scan import shift_of as shift_of
from evenhand.search.worst_groups import NullCurve, WorstGroupCurve, null_curve, worst_group_curve

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
