"""Kinds of outcomes, as forecasts describe them (outcomes: 2 to 4)."""

from __future__ import annotations

from enum import StrEnum


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


NO_BINARY_RANDOMIZATION = (
    "forecasts of 0/1 outcomes are not randomized: the calibration error of each person depends on"
    " the mean probability over draws only, so that draws have a cost and no benefit; audit and"
    " recalibrate them by group instead, or, if the event is a cut of an amount or a time, forecast"
    " the amount or the time"
)
"""Reason for which forecasts of 0/1 outcomes are not randomized (outcomes: 3), and the advice."""
