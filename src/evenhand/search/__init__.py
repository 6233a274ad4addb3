"""Searches for miscalibrated groups: scan, learned group, oracle group and null distribution."""

from __future__ import annotations

# parts for audits, reports and tests; `__all__` is the documented reference
from evenhand.search.directions import AS_FORECAST as AS_FORECAST
from evenhand.search.directions import HIGHER as HIGHER
from evenhand.search.directions import LOWER as LOWER
from evenhand.search.directions import MIXED as MIXED
from evenhand.search.directions import NARROW as NARROW
from evenhand.search.directions import POSSIBLE_LEAK as POSSIBLE_LEAK
from evenhand.search.directions import TOO_SMALL as TOO_SMALL
from evenhand.search.directions import WIDE as WIDE
from evenhand.search.directions import Direction as Direction
from evenhand.search.found_group import FoundGroup
from evenhand.search.group_learners import top_rows as top_rows
from evenhand.search.leaks import LEAK_COLUMNS as LEAK_COLUMNS
from evenhand.search.leaks import find_leaks as find_leaks
from evenhand.search.learned_group import GroupSearch, find_group
from evenhand.search.learned_group import n_learnable as n_learnable
from evenhand.search.mean_bound import mean_lower_bound as mean_lower_bound
from evenhand.search.miscoverage import MISCOVERAGE_COLUMNS as MISCOVERAGE_COLUMNS
from evenhand.search.miscoverage import conditional_miscoverage
from evenhand.search.null_distribution import NullCurve, null_curve
from evenhand.search.null_moments import null_moments as null_moments
from evenhand.search.oracle_group import WorstGroupCurve, worst_group_curve
from evenhand.search.patterns import PATTERN_CELLS as PATTERN_CELLS
from evenhand.search.patterns import WAVES as WAVES
from evenhand.search.patterns import direction_of as direction_of
from evenhand.search.patterns import pattern_basis as pattern_basis
from evenhand.search.patterns import pattern_of as pattern_of
from evenhand.search.patterns import pattern_values as pattern_values
from evenhand.search.patterns import starting_patterns as starting_patterns
from evenhand.search.patterns import wave_weights as wave_weights
from evenhand.search.patterns import waves as waves
from evenhand.search.power import group_test_rows
from evenhand.search.power import shift_of as shift_of
from evenhand.search.ramps import group_errors as group_errors
from evenhand.search.ramps import mean_cdfs as mean_cdfs
from evenhand.search.scan import FEW_ROWS as FEW_ROWS
from evenhand.search.scan import MIN_SIZE as MIN_SIZE
from evenhand.search.scan import Scanned as Scanned
from evenhand.search.scan import ScanRows as ScanRows
from evenhand.search.scan import scan_groups
from evenhand.search.scan import scan_rows as scan_rows
from evenhand.search.scan_table import directions as directions

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
