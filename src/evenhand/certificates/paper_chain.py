"""Bound for every group that follows from the paper's own results (method: proof)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenhand._validate import Floats
from evenhand.certificates.certificate import WORST


def chained_bound(mpaic_curve: Callable[[Floats], Floats], mass: float) -> float:
    """Return the bound for the W1 error of every group of a size, 0 to 1/2.

    Parameters
    ----------
    mpaic_curve : callable
        Simultaneous upper bounds for `P(|h[X, R](Y) - R| >= error)` at all thresholds.
    mass : float
        Smallest share of people in the group.
    """
    # a person with a pathwise error above the target has |h - R| >= e with probability at least
    # (target - e) / (1 - e); by Markov such people are at most a share delta (1 - e) / (target - e)
    # of all people, and at most that share over mass of a group
    threshold = np.linspace(0.0, WORST, 201)
    delta = mpaic_curve(threshold)
    e = threshold[:, None]
    target = threshold[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        outside = np.where(target > e, delta[:, None] * (1 - e) / (target - e), np.inf)
    bounds = np.where(outside < mass, target + outside / mass, WORST)
    return min(float(bounds.min()), WORST)
