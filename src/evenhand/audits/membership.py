"""Bounds for groups whose members are known by probability, without an assumption on membership."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import special

from evenhand._validate import Floats
from evenhand.audits.scores import LEVELS
from evenhand.calibration import PITs, coverage_name, covered
from evenhand.columns import Groups

MEMBERSHIP_COLUMNS = (
    "group",
    "members",
    *(f"{coverage_name(level)}_{end}" for level in LEVELS for end in ("least", "most")),
    "bias_least",
    "bias_most",
)

BIN_ROWS = 100
"""Smallest number of rows with similar probabilities that are compared with each other."""

MOST_BINS = 20
"""Largest number of bins of similar probabilities."""


def membership_table(
    pits: PITs, residual: Floats | None, groups: Groups, confidence: float
) -> pd.DataFrame:
    """Return bounds for the coverage and the bias of each group known by probability.

    The bounds allow for any relation between membership and outcome: see `mean_bounds`. There are
    none where times are cut off, whose coverage is not known.

    Returns
    -------
    DataFrame
        One row per group: `group`, the expected number of `members`, and for each measure the ends
        `least` and `most` of an interval that contains the value of the group with the stated
        confidence, separately for each measure.
    """
    weights = np.ones(pits.n_samples) if pits.weights is None else pits.weights
    rows = []
    for group, shares in groups.probable() if pits.censored is None else ():
        row: dict[str, str | float] = {"group": group.name, "members": float(shares.sum())}
        values = {coverage_name(level): covered(pits, level) for level in LEVELS}
        if residual is not None:
            values["bias"] = residual
        for key, one in values.items():
            low, high = mean_bounds(one, shares, weights, confidence)
            is_share = key != "bias"
            row[f"{key}_least"] = max(low, 0.0) if is_share else low
            row[f"{key}_most"] = min(high, 1.0) if is_share else high
        rows.append(row)
    return pd.DataFrame(rows, columns=list(MEMBERSHIP_COLUMNS))


def mean_bounds(
    values: Floats, shares: Floats, weights: Floats, confidence: float = 0.95
) -> tuple[float, float]:
    """Return bounds for the mean of a group, whatever the relation of membership and values.

    People with a probability of membership `p` have an unknown part `p` who are members. Their mean
    value is largest if these are the people with the largest values. The bounds compare people
    within bins of similar probabilities, so they are slightly wider than the sharpest bounds given
    the probabilities. They assume that the probabilities are correct on average in each bin.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Value of each person, such as the share of draws whose interval covers the outcome.
    shares : ndarray of shape (n,)
        Probabilities of membership, not all 0.
    weights : ndarray of shape (n,)
        Weights of the rows.
    confidence : float, default 0.95
        Confidence that both bounds hold, asymptotically.

    References
    ----------
    Kallus, Mao & Zhou, Assessing algorithmic fairness with unobserved protected class using data
    combination, Management Science, 2022.

    Examples
    --------
    >>> values = np.repeat([0.0, 1.0], 500)
    >>> low, high = mean_bounds(values, np.full(1000, 0.8), np.ones(1000))
    >>> 0.33 < low < 3 / 8 and 5 / 8 < high < 0.67  # at least 0.3 of 0.8 have 0, at most 0.5
    True
    """
    low = -_upper_bound(-values, shares, weights, confidence)
    return low, _upper_bound(values, shares, weights, confidence)


def _upper_bound(values: Floats, shares: Floats, weights: Floats, confidence: float) -> float:
    """Return the upper end of a confidence interval for the largest possible mean."""
    total = float(weights @ shares)
    best = np.empty(values.size)
    for rows in _bins(shares):
        size = float(weights[rows] @ shares[rows])
        cut = _cut(values[rows], weights[rows], size)
        # the largest sum of members' values is size * cut + sum of the excesses over the cut
        best[rows] = shares[rows] * cut + np.maximum(values[rows] - cut, 0.0)
    bound = float(weights @ best) / total
    # the derivative in the cut is 0 at the optimum, so its sampling error has no effect
    influence = weights * (best - shares * bound) / total
    return bound - float(special.ndtri((1 - confidence) / 2) * np.sqrt(influence @ influence))


def _bins(shares: Floats) -> Iterable[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """Yield the rows of each bin of similar probabilities; equal ones are in one bin."""
    order = np.argsort(shares, kind="stable")
    count = min(MOST_BINS, max(shares.size // BIN_ROWS, 1))
    rising = shares[order]
    cuts = rising[np.rint(np.linspace(0, shares.size, count + 1)[1:-1]).astype(np.intp)]
    ends = np.unique([0, *np.searchsorted(rising, cuts), shares.size])
    for start, stop in pairwise(ends):
        yield order[start:stop]


def _cut(values: Floats, weights: Floats, size: float) -> float:
    """Return the value above which people have a total weight of `size`."""
    falling = np.argsort(-values, kind="stable")
    at = int(np.searchsorted(np.cumsum(weights[falling]), size))
    return float(values[falling[min(at, values.size - 1)]])
