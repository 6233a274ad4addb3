"""Links over a calibrated base: width, coverage, and the bound with the lower price."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, log

from scipy.optimize import brentq

from evenhand.calibration import cvar, interval_width
from evenhand.certificates import LEAST_ALPHA, Bound, choose_bound
from evenhand.draws import nodes
from evenhand.forecast import Forecast
from evenhand.links import Link
from evenhand.planning.target import MaxGroupError, MaxPrice, MaxWider, Target

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
