"""Search for the largest alpha of a family of links whose bound meets a target."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import expit

from evenhand._validate import Floats
from evenhand.links import Link

LEAST_ALPHA = 0.005
"""Least alpha that is searched: at it a calibrated base pays 3.6 nats."""

SEARCH_SLACK = 2e-3
"""How far below the largest alpha the search may end, on the logit scale."""

MOST_STEPS = 50
"""Steps of the search; three or four are usual, and bisection alone needs no more."""

KNOTS = 30
"""Half of the distances at which a link's error is computed while an alpha is searched."""

CALIBRATED_SLOPE = 1.35
CALIBRATED_PLACE = -2.1
"""Where the search begins; where it ends does not depend on them.

Around a calibrated forecaster the bound's logit, of its share of the bound without randomization,
rises 1.1 to 1.7 times as fast as that of alpha, and alpha's is -3.2 to -1.5 where the bound is half
of it (300 to 100,000 people, masses 0.1 to 1, all links).
"""


def search_alpha(bound_at: Callable[[float], float], target: float, most: float) -> float:
    """Alpha whose bound lies just below a target, the least that is searched if none does.

    Parameters
    ----------
    bound_at : function of alpha
        The bound, which rises with alpha.
    target : float
        What it must not exceed.
    most : float
        The bound without randomization, above the target.
    """

    # on the logit scale of both, bound and alpha lie nearly on a line: secant steps
    def logit(bound: float) -> float:
        return float(np.log(bound / max(most - bound, 1e-9)))

    low = float(np.log(LEAST_ALPHA / (1 - LEAST_ALPHA)))
    high = 12.0
    slope = CALIBRATED_SLOPE
    goal = logit(target)
    place = float(np.clip(goal / slope + CALIBRATED_PLACE, low, high))
    last = (np.nan, np.nan)
    for _ in range(MOST_STEPS):
        alpha = float(expit(place))
        gap = logit(bound_at(alpha)) - goal
        if np.isfinite(last[1]) and place != last[0]:
            slope = max((gap - last[1]) / (place - last[0]), 0.01)
        if -SEARCH_SLACK <= gap / slope <= 0:
            return alpha
        low, high = (place, high) if gap < 0 else (low, place)
        last = (place, gap)
        place = place - gap / slope - SEARCH_SLACK / 2
        if not low < place < high:
            place = (low + high) / 2
        if high - low < SEARCH_SLACK:
            break
    return max(float(expit(low)), LEAST_ALPHA)


def approximate_errors(link: Link, distances: Floats) -> Floats:
    """Interpolate pathwise errors at distances from 1/2, to about 0.002, on average to 0.0001.

    Parameters
    ----------
    link : Link
        The link.
    distances : ndarray of shape (n,)
        `|U - 1/2|`, 0 to 1/2.
    """
    left = 1 - (0.5 + distances)
    # the end itself, where the logarithm has none, is computed apart
    errors = np.full(distances.shape, float(link.pathwise_error(1.0)))
    is_inside = left > 0
    # errors are smooth in the logarithm of what is left to the end
    place = np.log(left[is_inside])
    knots = np.unique(place)
    if knots.size < 3:
        return link.pathwise_error(0.5 + distances)
    if knots.size > 2 * KNOTS:
        # knots lie evenly in it, and evenly in rank
        ranks = np.linspace(0, knots.size - 1, KNOTS).astype(np.intp)
        knots = np.union1d(np.linspace(knots[0], knots[-1], KNOTS), knots[ranks])
    # a person's error is that of the mirrored PIT, which has the digits near the end
    at_knots = link.pathwise_error(np.minimum(np.exp(knots), 0.5))
    errors[is_inside] = PchipInterpolator(knots, at_knots)(place)
    return errors


def enough_rows(is_enough: Callable[[int], bool], n: int, most: int) -> int | None:
    """Least number of rows above `n` that is enough, to 5%; None if `most` is not."""
    few = n
    enough = min(4 * n, most)
    while not is_enough(enough):
        if enough == most:
            return None
        few = enough
        enough = min(4 * enough, most)
    while enough - few > max(1, few // 20):
        middle = (few + enough) // 2
        few, enough = (few, middle) if is_enough(middle) else (middle, enough)
    return enough
