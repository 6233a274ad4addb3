"""Kinds of outcomes, and directions in which a group is miscalibrated (outcomes: 2 to 4)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal


class OutcomeKind(StrEnum):
    """Kind of outcome that a forecast describes, read off its distributions.

    Examples
    --------
    >>> OutcomeKind("count"), str(OutcomeKind.BINARY)
    (<OutcomeKind.COUNT: 'count'>, 'binary')
    """

    CONTINUOUS = "continuous"
    COUNT = "count"
    """Values on a lattice, each with a probability: counts, ordinal scores."""

    HURDLE = "hurdle"
    """An atom at one end of the range, and a continuous part: money with zeros."""

    BINARY = "binary"
    """An event that happens (1) or not (0)."""


Direction = Literal[
    "outcomes lower than forecast",
    "outcomes higher than forecast",
    "intervals too narrow",
    "intervals too wide",
    "mixed",
    "as forecast",
    "too few rows",
    "possible leak",
]
"""Values of the column `direction` in tables of groups, and of `FoundGroup.direction`."""

LOWER: Final = "outcomes lower than forecast"
HIGHER: Final = "outcomes higher than forecast"
NARROW: Final = "intervals too narrow"
WIDE: Final = "intervals too wide"

MIXED: Final = "mixed"
"""Neither level nor spread accounts for most of the error."""

AS_FORECAST: Final = "as forecast"
"""The test of the group finds no significant deviation."""

TOO_SMALL: Final = "too few rows"
"""A named group with fewer rows than a test needs."""

POSSIBLE_LEAK: Final = "possible leak"
"""A group that the outcome may define, in which any forecaster is miscalibrated: not tested."""
