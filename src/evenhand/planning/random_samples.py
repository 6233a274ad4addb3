"""Certificates of random rows of a calibrated base: the bound that most samples reach."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from evenhand._validate import Floats
from evenhand.calibration import local_levels
from evenhand.certificates import WORST, Bound, certify_calibrated
from evenhand.links import Link

PROBABILITY = 0.9
"""Probability, over random rows of a calibrated base, that a plan is met."""

SAMPLES = 1000
"""Number of simulated samples; the probability is then met to within 0.02."""

NODES = 300
"""Number of PITs at which a link is evaluated; it is interpolated between them."""


@lru_cache(maxsize=256)
def reached_error(n: int, link: Link, bound: Bound, mass: float, confidence: float) -> float:
    """Return the group error that `n` random rows certify with a probability of `PROBABILITY`.

    The bound of evenly spread PITs, plus a simulated quantile of the difference that random PITs
    make. For the difference, a group has the lowest or the highest PITs (sharp bound), or those
    farthest from 1/2 (pathwise bound): its bound is linear in the link at order statistics. Strong
    links have a smaller difference, so that more samples reach the error than planned.
    """
    even_error = certify_calibrated(n, link, confidence=confidence, bound=bound).group_error(mass)
    is_sharp = bound == "sharp"
    even, weights, tails = _tails(n, is_sharp, mass, confidence)
    nodes = np.geomspace(min(even[0], tails.min()), 1.0, NODES)
    # nodes are distances of PITs from an end, for the pathwise bound from the nearer one, twice
    values = -link.mean_pit(nodes) if is_sharp else link.pathwise_error(1 - nodes / 2)
    # sums, as products of matrices depend on the number of threads
    drawn, planned = ((np.interp(u, nodes, values) * weights).sum(axis=-1) for u in (tails, even))
    excess = np.quantile(drawn.max(axis=0), PROBABILITY) - planned
    return float(min(even_error + max(excess, 0.0), WORST))


@lru_cache(maxsize=4)
def _tails(n: int, is_sharp: bool, mass: float, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Return evenly spread PITs, their weights in a bound, and random PITs in their place.

    Shapes (k,), (k,) and (tails, SAMPLES, k); the sharp bound has two tails.
    """
    ranks, levels = local_levels(n, (1 + confidence) / 2 if is_sharp else confidence)
    weights = np.diff(np.minimum(np.append(levels, 1.0) / mass, 1.0))
    # the first rank has no weight with so few rows that nothing is certified
    is_used = (weights > 0) | (ranks == 1)
    ranks, weights = ranks[is_used], weights[is_used]
    # order statistics of uniform variables are ratios of sums of exponential ones
    drawn = np.union1d(ranks, n + 1 - ranks)
    steps = np.diff(drawn, prepend=0, append=n + 1)
    sums = np.random.default_rng(0).standard_gamma(steps, (SAMPLES, steps.size)).cumsum(axis=1)
    rising = sums[:, :-1] / sums[:, -1:]
    tails = [rising[:, np.searchsorted(drawn, ranks)]]
    if is_sharp:
        tails.append(1 - rising[:, np.searchsorted(drawn, n + 1 - ranks)])
    even = (ranks - 0.5) / n if is_sharp else ((ranks + 1) // 2 * 2 - 1) / n
    return even, weights, np.array(tails)
