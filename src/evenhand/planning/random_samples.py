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
    nodes, even, tails = _tails(n, is_sharp, mass, confidence)
    # nodes are distances of PITs from an end, for the pathwise bound from the nearer one, twice
    value = -link.mean_pit(nodes) if is_sharp else link.pathwise_error(1 - nodes / 2)
    drawn = np.max(tails @ value, axis=0)
    excess = float(np.quantile(drawn, PROBABILITY) - even @ value)
    return min(even_error + max(excess, 0.0), WORST)


@lru_cache(maxsize=16)
def _tails(n: int, is_sharp: bool, mass: float, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Return nodes, and weights of a link's values there, of evenly spread and of random PITs.

    Shapes (q,), (q,) and (tails, SAMPLES, q); the sharp bound has two tails.
    """
    ranks, levels = local_levels(n, (1 + confidence) / 2 if is_sharp else confidence)
    weights = np.diff(np.minimum(np.append(levels, 1.0) / mass, 1.0))
    ranks, weights = ranks[weights > 0], weights[weights > 0]
    if ranks.size == 0:  # with so few rows, the bound is that of a group of unknown PITs
        return np.ones(1), np.zeros(1), np.zeros((1, SAMPLES, 1))
    # order statistics of uniform variables are ratios of sums of exponential ones
    used = np.union1d(ranks, n + 1 - ranks)
    steps = np.diff(used, prepend=0, append=n + 1)
    sums = np.random.default_rng(0).standard_gamma(steps, (SAMPLES, steps.size)).cumsum(axis=1)
    rising = sums[:, :-1] / sums[:, -1:]
    drawn = [rising[:, np.searchsorted(used, ranks)]]
    if is_sharp:
        drawn.append(1 - rising[:, np.searchsorted(used, n + 1 - ranks)])
    even = (ranks - 0.5) / n if is_sharp else ((ranks + 1) // 2 * 2 - 1) / n
    nodes = np.geomspace(min(np.min(drawn), even[0]), 1.0, NODES)
    tails = np.array([_at_nodes(u, nodes, weights) for u in drawn])
    return nodes, _at_nodes(even[None], nodes, weights)[0], tails


def _at_nodes(u: Floats, nodes: Floats, weights: Floats) -> Floats:
    """Return weights of values at nodes, equal to those of values interpolated at each row of u."""
    at = np.clip(np.searchsorted(nodes, u) - 1, 0, nodes.size - 2)
    share = (u - nodes[at]) / (nodes[at + 1] - nodes[at])
    place = at + nodes.size * np.arange(len(u))[:, None]
    size = len(u) * nodes.size
    low = np.bincount(place.ravel(), ((1 - share) * weights).ravel(), size)
    high = np.bincount(place.ravel() + 1, (share * weights).ravel(), size)
    return np.asarray((low + high).reshape(len(u), nodes.size))
