"""Targets of a selection: what must be certified, or what may be paid for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand._validate import InputError, bad_input, check_fraction
from evenhand.links import Link, make_link

DEFAULT_ERROR = 0.25
"""Largest group error if neither an error nor a limit of the cost is given."""

MOST_WIDER = 2.0
"""Largest admissible limit of the width: three times the width without a draw."""


@dataclass(frozen=True)
class _Limit:
    """A limit, which is checked."""

    most: float
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", self.checked(self.name, self.most))

    @staticmethod
    def checked(name: str, most: float) -> float:
        """Return a limit as a float if it lies in its range; messages give it this name."""
        raise NotImplementedError


@dataclass(frozen=True)
class MaxGroupError(_Limit):
    """Largest group error to certify, above 0 and below 1/2: the least randomization is chosen."""

    name = "max_group_error"

    @staticmethod
    def checked(name: str, most: float) -> float:
        error = check_fraction(name, most)
        if error >= 0.5:
            rule = "be below 0.5, the largest possible error"
            raise bad_input(name, rule, error, "use 0.25 to begin with")
        return error


@dataclass(frozen=True)
class MaxWider(_Limit):
    """Largest relative increase of the mean width of 80% prediction intervals, above 0."""

    name = "max_wider"

    @staticmethod
    def checked(name: str, most: float) -> float:
        wider = _number(most)
        if not 0 < wider <= MOST_WIDER:
            rule = f"be above 0 and at most {MOST_WIDER:g}"
            raise bad_input(name, rule, repr(most), "use 0.1 for intervals 10% wider")
        return wider


@dataclass(frozen=True)
class MaxPrice(_Limit):
    """Largest loss of log score on the certifying people, in nats, above 0."""

    name = "max_price"

    @staticmethod
    def checked(name: str, most: float) -> float:
        price = _number(most)
        if not 0 < price < math.inf:
            raise bad_input(name, "be a number above 0", repr(most), "use 0.3 nats")
        return price


Goal = MaxGroupError | MaxWider | MaxPrice
"""What a selection keeps to; exactly one is given."""

GOALS: tuple[type[Goal], ...] = (MaxGroupError, MaxWider, MaxPrice)


def goal_of(
    max_group_error: float | None, max_wider: float | None, max_price: float | None
) -> Goal:
    """Return the only goal that is given, or the default group error."""
    values = (max_group_error, max_wider, max_price)
    given = [(kind, most) for kind, most in zip(GOALS, values, strict=True) if most is not None]
    if len(given) > 1:
        names = " and ".join(f"{kind.name}={most!r}" for kind, most in given)
        raise InputError(
            f"{names} are given together; give one of max_group_error, max_wider and max_price"
        )
    kind, most = given[0] if given else (MaxGroupError, DEFAULT_ERROR)
    return kind(most)


@dataclass(frozen=True)
class Target:
    """What a selection keeps to, for groups of which size, at which confidence.

    Parameters
    ----------
    goal : MaxGroupError, MaxWider or MaxPrice
        The error to certify, or the cost at which as much as possible is certified.
    group_mass : float
        Smallest group size, as a share of the people.
    confidence : float
        Confidence level of the certificate.

    Examples
    --------
    >>> Target(MaxWider(0.1), group_mass=0.2, confidence=0.95).goal.name
    'max_wider'
    """

    goal: Goal
    group_mass: float
    confidence: float

    def __post_init__(self) -> None:
        mass = check_fraction("group_mass", self.group_mass, high_open=False)
        object.__setattr__(self, "group_mass", mass)
        object.__setattr__(self, "confidence", check_fraction("confidence", self.confidence))

    def to_dict(self) -> dict[str, float | None]:
        """Return the target as values of JSON; of the three kinds of goals two are None."""
        return {
            **{kind.name: None for kind in GOALS},
            self.goal.name: self.goal.most,
            "group_mass": self.group_mass,
            "confidence": self.confidence,
        }


def family_of(link: str) -> Link:
    """Return the link of a family that does not randomize."""
    return make_link(link, 1.0)


def _number(value: object) -> float:
    # True is a number in Python, but never a limit
    if isinstance(value, bool | np.bool_):
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
