"""Selection of the least randomization with a certified group error."""

from __future__ import annotations

# parts for tests; `__all__` is the documented reference
from evenhand.selection.baseline import without_features as without_features
from evenhand.selection.bound import bound_of as bound_of
from evenhand.selection.choice import randomize
from evenhand.selection.costs import least_alpha as least_alpha
from evenhand.selection.costs import right_wider as right_wider
from evenhand.selection.result import PlainInterval, Selection
from evenhand.selection.searches import GroupSearches, SpreadGroup
from evenhand.selection.target import MaxGroupError, MaxPrice, MaxWider, Target

__all__ = [
    "GroupSearches",
    "MaxGroupError",
    "MaxPrice",
    "MaxWider",
    "PlainInterval",
    "Selection",
    "SpreadGroup",
    "Target",
    "randomize",
]
