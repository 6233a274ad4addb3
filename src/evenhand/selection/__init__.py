"""Selection of the least randomization with a certified group error, and plans of guarantees."""

# parts for tests and the command; `__all__` is the documented reference
from evenhand.selection.choice import randomize, refuse_events
from evenhand.selection.plans import Plan, PlannedCertificate, PlannedError, plan
from evenhand.selection.result import NotWorthItWarning, Selection
from evenhand.selection.target import GOALS, Target

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
