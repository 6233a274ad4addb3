"""Selection of the least randomization with a certified group error, and plans of guarantees."""

from __future__ import annotations

# parts for tests and the command; `__all__` is the documented reference
from evenhand.selection.choice import CERTIFY_SHARE as CERTIFY_SHARE
from evenhand.selection.choice import randomize
from evenhand.selection.choice import refuse_events as refuse_events
from evenhand.selection.choice import split_rows as split_rows
from evenhand.selection.plans import Plan, PlannedCertificate, PlannedError, plan
from evenhand.selection.result import NotWorthItWarning, Selection
from evenhand.selection.target import GOALS as GOALS
from evenhand.selection.target import Target

__all__ = [
    "NotWorthItWarning",
    "Plan",
    "PlannedCertificate",
    "PlannedError",
    "Selection",
    "Target",
    "plan",
    "randomize",
]
