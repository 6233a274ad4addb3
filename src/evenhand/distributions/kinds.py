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
