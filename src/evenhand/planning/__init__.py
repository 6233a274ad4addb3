"""Planning: what a guarantee needs and what it costs, before there are any rows."""

from __future__ import annotations

from evenhand.planning.plans import GroupTest, Plan, PlannedCertificate, plan, rows_needed
from evenhand.planning.target import GOALS as GOALS

# for selections, which keep to the same targets
from evenhand.planning.target import LEVEL as LEVEL
from evenhand.planning.target import Goal as Goal
from evenhand.planning.target import MaxGroupError, MaxPrice, MaxWider, Target
from evenhand.planning.target import bound_of as bound_of
from evenhand.planning.target import family_of as family_of
from evenhand.planning.target import goal_of as goal_of
from evenhand.planning.target import least_alpha as least_alpha

__all__ = [
    "GroupTest",
    "MaxGroupError",
    "MaxPrice",
    "MaxWider",
    "Plan",
    "PlannedCertificate",
    "Target",
    "plan",
    "rows_needed",
]
