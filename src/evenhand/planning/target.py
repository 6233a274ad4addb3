"""Targets of a selection: what must be certified, or what may be paid for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand._validate import InputError, bad_input, check_fraction
from evenhand.links import Link, make_link

DEFAULT_ERROR = 0.3
"""Largest group error if neither an error nor a limit of the cost is given."""

MOST_WIDER = 2.0
"""Largest admissible limit of the width: three times the width without a draw."""


@dataclass(frozen=True)
class MaxGroupError:
    """Largest group error to certify, above 0 and below 1/2: the least randomization is chosen."""

    most: float
    name = "max_group_error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", check_fraction(self.name, self.most))
        if self.most >= 0.5:
            rule = "be below 0.5, the largest possible error"
            raise bad_input(self.name, rule, self.most, "use 0.3 to begin with")


@dataclass(frozen=True)
class MaxWider:
    """Largest relative increase of the mean width of 80% prediction intervals, above 0."""

    most: float
    name = "max_wider"

    def __post_init__(self) -> None:
        most = _number(self.most)
        if not 0 < most <= MOST_WIDER:
            rule = f"be above 0 and at most {MOST_WIDER:g}"
            raise bad_input(self.name, rule, repr(self.most), "use 0.1 for intervals 10% wider")
        object.__setattr__(self, "most", most)


@dataclass(frozen=True)
class MaxPrice:
    """Largest loss of log score on the certifying people, in nats, above 0."""

    most: float
    name = "max_price"

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", check_price(self.name, self.most))


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


def check_price(name: str, value: float) -> float:
    """Return a limit of the loss of log score as a float, if it is a number above 0."""
    most = _number(value)
    if not 0 < most < math.inf:
        raise bad_input(name, "be a number above 0", repr(value), "use 0.3 nats")
    return most


def _number(value: object) -> float:
    # True is a number in Python, but never a limit
    if isinstance(value, bool | np.bool_):
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
