"""Search for groups whose forecasts are off.

Scan, learned group, oracle group and their null distribution.
"""

from __future__ import annotations

from evenhand.search.learned_group import FoundGroup, find_group
from evenhand.search.null_distribution import NullCurve, null_curve
from evenhand.search.oracle_group import WorstGroupCurve, worst_group_curve
from evenhand.search.scan import scan_groups

__all__ = [
    "FoundGroup",
    "NullCurve",
    "WorstGroupCurve",
    "find_group",
    "null_curve",
    "scan_groups",
    "worst_group_curve",
]
