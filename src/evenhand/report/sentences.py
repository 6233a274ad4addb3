"""Sentences in parts, the directions of errors in words, and units of the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.search import AS_FORECAST, HIGHER, LOWER, MIXED, NARROW, WIDE, Direction

Values = Mapping[str, Any]
"""An audit as plain values, or a row of one of its tables."""

ADJUSTED_LEVEL = 0.05
"""Adjusted p-value below which a group is reported as off."""

LEAST_REPORTED = 0.0005
"""Least bound that is reported: a smaller one would read as 0.0 points."""

WORDS: dict[Direction, tuple[str, str]] = {
    LOWER: ("outcomes", "lower than forecast"),
    HIGHER: ("outcomes", "higher than forecast"),
    NARROW: ("intervals", "too narrow"),
    WIDE: ("intervals", "too wide"),
}
"""Subject and predicate of the directions that make a sentence."""

LONGEST_TARGET = 60
"""Most characters of the name of an outcome in a sentence."""


def units_of(target: str | None) -> str:
    """Return the unit of an outcome, by its name where that is known."""
    # a column name may hold line ends, and a sentence is one line
    name = "y" if target is None else " ".join(target.split())
    return f"units of {name if len(name) <= LONGEST_TARGET else name[: LONGEST_TARGET - 1] + '…'}"


def unit_of(audit: Values) -> str:
    """Return the unit of the outcome that was audited."""
    return units_of(audit.get("target"))


def direction_in_words(direction: Direction | None, *, verb: str = "") -> str:
    """Return a direction in words, with a verb between subject and predicate if one is given."""
    if direction in WORDS:
        return " ".join(part for part in (WORDS[direction][0], verb, WORDS[direction][1]) if part)
    # in a clause the group is off, so "as forecast" of its mean leaves no one direction
    if direction in {None, MIXED, AS_FORECAST}:
        return "stated chances are off in no one direction" if verb else "in no one direction"
    return str(direction)


@dataclass(frozen=True)
class Sentence:
    """A sentence in three parts: the name of a group in it stands out on a page."""

    before: str
    name: str = ""
    rest: str = ""
    is_warning: bool = False

    def __str__(self) -> str:
        return self.before + self.name + self.rest
