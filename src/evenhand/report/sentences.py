"""Sentences of a report in parts, the words for directions, and what is too small to be told of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]
"""An audit as plain values, or a row of one of its tables."""

SURE = 0.05
"""Adjusted p-value under which a group is surely off."""

LEAST_TOLD = 0.0005
"""Least bound that is told of: a smaller one would read as 0.0 points."""

LOWER = "outcomes lower than forecast"
HIGHER = "outcomes higher than forecast"
NARROW = "intervals too narrow"
WIDE = "intervals too wide"


RANK_LOWER = "outcomes rank lower than forecast"
RANK_HIGHER = "outcomes rank higher than forecast"
"""Of groups whose mean errs the other way than most of their levels."""

LONGEST_TARGET = 60
"""Most characters of the name of an outcome in a sentence."""


def units_of(target: str | None) -> str:
    """Return the unit of an outcome, by its name where that is known."""
    name = "y" if target is None else " ".join(target.split())
    return f"units of {name if len(name) <= LONGEST_TARGET else name[: LONGEST_TARGET - 1] + '…'}"


def unit_of(audit: Values) -> str:
    """Return the unit of the outcome that was audited."""
    return units_of(audit.get("target"))


def clause(how: str) -> str:
    """Make a clause with a verb of a direction."""
    for subject in ("outcomes ", "intervals "):
        if how.startswith(subject) and not how.startswith((RANK_LOWER, RANK_HIGHER)):
            return f"{subject}are {how.removeprefix(subject)}"
    return f"stated chances are off {how}" if how.startswith("in no one") else how


@dataclass(frozen=True)
class Said:
    """A sentence; the name of a group in it stands apart, as a page makes it stand out."""

    before: str
    name: str = ""
    rest: str = ""
    is_warning: bool = False

    def __str__(self) -> str:
        return self.before + self.name + self.rest
