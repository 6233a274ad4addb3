"""Targets of a selection: what must be certified, or what may be paid for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from evenhand._validate import InputError, bad_input, check_fraction
from evenhand.calibration import cvar, interval_width
from evenhand.certificates import LEAST_ALPHA, Bound, choose_bound
from evenhand.draws import nodes
from evenhand.forecast import Forecast
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


# --- links over a calibrated base: width, coverage, and the bound with the lower price

LEVEL = 0.8
"""Nominal level of the prediction intervals whose width and coverage are given."""

DRAWS = 1024
"""Draws over which widths and coverages are averaged."""

PEOPLE = 2000
"""People with evenly spread PITs, over whom coverage is computed."""

TOLERANCE = 1e-4
"""Relative tolerance of the alpha whose cost reaches a limit."""


@lru_cache(maxsize=256)
def right_wider(link: Link) -> float:
    """Return the relative increase of the width of 80% intervals over a calibrated, normal base."""
    right = Forecast.from_normal([0.0], [1.0])
    served = right.randomized(link.alpha, link, nodes(DRAWS))
    widths = [float(interval_width(forecast, LEVEL).mean()) for forecast in (served, right)]
    return widths[0] / widths[1] - 1


def right_coverage(link: Link, mass: float) -> tuple[float, float]:
    """Return the range of the coverage of 80% intervals in a group over a calibrated base.

    Parameters
    ----------
    link : Link
        The link.
    mass : float
        Smallest share of people in a group, 0 < mass <= 1.

    Returns
    -------
    low, high : float
        Both between 0 and 1.
    """
    u = nodes(PEOPLE).T
    r = nodes(DRAWS)
    inside = (u >= link.cdf((1 - LEVEL) / 2, r)) & (u <= link.cdf((1 + LEVEL) / 2, r))
    hits = inside.mean(axis=-1)
    # the people with the smallest and with the largest shares of hits
    return 1 - cvar(1 - hits, mass), cvar(hits, mass)


def least_alpha(cost: Callable[[float], float], most: float) -> float:
    """Return the smallest alpha, from `LEAST_ALPHA` on, whose cost is at most `most`.

    Parameters
    ----------
    cost : callable
        Cost as a function of alpha: continuous, 0 at 1, in general decreasing.
    most : float
        Limit of the cost, above 0.
    """
    if cost(LEAST_ALPHA) <= most:
        return LEAST_ALPHA
    root = brentq(lambda place: cost(exp(place)) - most, log(LEAST_ALPHA), 0.0, xtol=TOLERANCE)
    alpha = min(exp(root), 1.0)
    # the root lies on either side of the limit
    while cost(alpha) > most:
        alpha = min(alpha * (1 + TOLERANCE), 1.0)
    return alpha


@lru_cache(maxsize=16)
def affordable(goal: MaxWider | MaxPrice, family: Link) -> Link:
    """Return the link of a family with the smallest error at a limited price (calibrated base)."""
    kind = type(family)
    if isinstance(goal, MaxWider):
        return kind(least_alpha(lambda alpha: right_wider(kind(alpha)), goal.most))
    return kind(least_alpha(lambda alpha: kind(alpha).price, goal.most))


def bound_of(target: Target, family: Link, n: int) -> Bound:
    """Return the bound with the lower price, or error, for a target over a calibrated base.

    The bounds use different bands: the smaller of two 95% bounds is valid with 90% only. A rule
    that depends on the number of rows and the target only keeps the confidence (method.md, 11).

    Parameters
    ----------
    target : Target
        The requested guarantee.
    family : Link
        A link of the family.
    n : int
        Number of certifying rows.
    """
    goal = target.goal
    mass = target.group_mass
    confidence = target.confidence
    if isinstance(goal, MaxGroupError):
        most = goal.most
        return choose_bound(n, family, mass=mass, confidence=confidence, max_group_error=most)
    return choose_bound(n, affordable(goal, family), mass=mass, confidence=confidence)
