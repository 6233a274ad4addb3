"""Search for the largest alpha of a family of links whose bound meets a target."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from evenhand.certificates.link_evidence import LinkEvidence
from evenhand.links import Link

LEAST_ALPHA = 0.005
"""Smallest alpha of the search. There a calibrated base pays a price of 3.6 nats."""

SEARCH_SLACK = 2e-3
"""Tolerance of the search below the largest admissible alpha, on the logit scale."""

MOST_STEPS = 50
"""Maximum number of search steps. Three or four are usual; bisection alone needs fewer than 50."""

CALIBRATED_SLOPE = 1.35
CALIBRATED_PLACE = -2.1
"""Slope and location of the first guess; the result of the search does not depend on them.

Divide the bound by the bound without randomization. Around a calibrated forecaster the logit of
this ratio rises 1.1 to 1.7 times as fast as the logit of alpha, and the logit of alpha is -3.2 to
-1.5 where the ratio is one half (300 to 100,000 people, masses 0.1 to 1, all links).
"""


def largest_alpha(
    evidence: LinkEvidence, link: Link, max_group_error: float, mass: float
) -> float | None:
    """Return the largest alpha of a link's family that meets a target; None if none does.

    Parameters
    ----------
    evidence : LinkEvidence
        Bands for the PITs of the base.
    link : Link
        A member of the family.
    max_group_error : float
        Largest admissible W1 error of a group.
    mass : float
        Smallest share of people in a group.
    """
    family = type(link)

    def bound_at(alpha: float) -> float:
        return evidence.group_error(family(alpha), mass)

    most = bound_at(1.0)
    if most <= max_group_error:
        return 1.0
    alpha = search_alpha(evidence.searched(family, mass), max_group_error, most)
    step = SEARCH_SLACK
    # the search may have used approximate errors: the bound itself decides
    while bound_at(alpha) > max_group_error:
        if alpha <= LEAST_ALPHA:
            return None
        alpha = max(alpha * (1 - step), LEAST_ALPHA)
        step = min(2 * step, 0.5)
    return alpha


def search_alpha(bound_at: Callable[[float], float], target: float, most: float) -> float:
    """Return the alpha whose bound lies just below a target, or the smallest alpha if none does.

    Parameters
    ----------
    bound_at : callable
        Bound as a function of alpha; increasing.
    target : float
        Largest admissible bound.
    most : float
        Bound without randomization, above the target.
    """

    # the logit of the bound is nearly linear in the logit of alpha: secant steps converge fast
    def logit(bound: float) -> float:
        return float(np.log(bound / max(most - bound, 1e-9)))

    least = float(np.log(LEAST_ALPHA / (1 - LEAST_ALPHA)))
    # the smallest alpha lies inside, so that one evaluation there ends a search in vain
    low = least - SEARCH_SLACK / 2
    high = 12.0
    slope = CALIBRATED_SLOPE
    goal = logit(target)
    place = float(np.clip(goal / slope + CALIBRATED_PLACE, least, high))
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
        place = max(place - gap / slope - SEARCH_SLACK / 2, least)
        if not low < place < high:
            place = (low + high) / 2
        if high - low < SEARCH_SLACK:
            break
    return max(float(expit(low)), LEAST_ALPHA)


def enough_rows(is_enough: Callable[[int], bool], n: int, most: int) -> int | None:
    """Return the smallest sufficient number of rows above `n`, to 5%; None if `most` is too few."""
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
