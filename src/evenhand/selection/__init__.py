"""Selection of the least randomization with a certified group error, and plans of guarantees."""

from __future__ import annotations

from evenhand.selection.choice import CERTIFY_SHARE as CERTIFY_SHARE
from evenhand.selection.choice import randomize
from evenhand.selection.chosen_link import wider_intervals as wider_intervals

# parts for tests and the command; `__all__` is the documented reference
from evenhand.selection.estimators import refuse_events as refuse_events
from evenhand.selection.plans import GroupTest, Plan, PlannedCertificate, plan
from evenhand.selection.result import (
    NotWorthItWarning,
    Selection,
    SpreadGroup,
)
from evenhand.selection.rows import split_rows as split_rows
from evenhand.selection.target import GOALS as GOALS
from evenhand.selection.target import MaxGroupError, MaxPrice, MaxWider, Target

__all__ = [
    "GroupTest",
    "MaxGroupError",
    "MaxPrice",
    "MaxWider",
    "NotWorthItWarning",
    "Plan",
    "PlannedCertificate",
    "Selection",
    "SpreadGroup",
    "Target",
    "plan",
    "randomize",
]
