"""Selection of the least randomization with a certified group error."""

from __future__ import annotations

from evenhand.selection.choice import CERTIFY_SHARE as CERTIFY_SHARE
from evenhand.selection.choice import randomize
from evenhand.selection.chosen_link import wider_intervals as wider_intervals

# parts for tests and the command; `__all__` is the documented reference
from evenhand.selection.estimators import refuse_events as refuse_events
from evenhand.selection.result import (
    GroupSearches,
    NotWorthItWarning,
    PlainInterval,
    Selection,
    SpreadGroup,
)
from evenhand.selection.rows import split_rows as split_rows

__all__ = [
    "GroupSearches",
    "NotWorthItWarning",
    "PlainInterval",
    "Selection",
    "SpreadGroup",
    "randomize",
]
