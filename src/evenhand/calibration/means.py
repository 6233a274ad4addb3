"""Intervals of weighted means and of their changes, and bounds for groups known by probability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import ndtri, stdtrit

from evenhand._validate import Floats, Mask
from evenhand.calibration.errors import n_effective
from evenhand.results import Interval


def over_draws(values: Floats) -> Floats:
    """Return the mean of each person's values over draws, (n, m) -> (n,); (n,) as they are."""
    return np.asarray(values.mean(axis=-1) if values.ndim == 2 else values, dtype=np.float64)


# --- intervals of weighted means

Z95 = 1.959964
"""Normal quantile of 95% confidence intervals."""


def weighted_mean_band(values: Floats, weight: Floats | None, z: float = Z95) -> Interval:
    """Return a weighted mean with a normal interval from the variance between people."""
    if np.isinf(values).any():
        return Interval(float(np.average(values, weights=weight)))
    mean, variance, n = weighted_mean(values, weight)
    # one row has no variance estimate: the interval is unknown, not of width 0
    half = z * float(np.sqrt(variance)) if n >= 2 else np.nan
    return Interval(mean, mean - half, mean + half)


def weighted_share_band(values: Floats, weight: Floats | None) -> Interval:
    """Return a weighted mean of shares with Wilson's 95% confidence interval."""
    mean, variance, n = weighted_mean(values, weight)
    variance = variance if n >= 2 else 0.0
    # rounding errors in sums of weights may leave the mean slightly outside [0, 1]
    mean = min(max(mean, 0.0), 1.0)
    # shares over several draws vary less than single trials: n becomes the number of single trials
    # whose mean would have this variance
    n = mean * (1 - mean) / variance if variance > 0 else n
    centre = (mean + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * np.sqrt(mean * (1 - mean) / n + (Z95 / (2 * n)) ** 2)
    return Interval(mean, max(float(centre - half), 0.0), min(float(centre + half), 1.0))


def weighted_mean(values: Floats, weight: Floats | None) -> tuple[float, float, float]:
    """Return a weighted mean, its variance and the effective number of rows."""
    weight = np.ones(values.size) if weight is None else weight
    mean = float(np.average(values, weights=weight))
    share = weight / weight.sum()
    # a weighted mean is a ratio of two sums; this is the variance of the linearized ratio
    return mean, float((share**2 * (values - mean) ** 2).sum()), n_effective(weight)


# --- simultaneous intervals for paired changes of group statistics
# Each statistic is the distance of a mean to a target: `T = mean_k |E profile_k - target_k|`. The
# profile of an error is the share of PITs at or below each edge, its target the edge itself, so
# that `T` is the W1 distance to the uniform distribution; the profile of a coverage is one number,
# covered or not, and its target the level; that of a bias is the residual, and its target 0.

CERTAIN = 3.0
"""Standard errors beyond which the sign of a mean minus its target is taken as known."""

LEAST_ROWS = 50
"""Effective rows below which a change has no interval: it is asymptotic."""


@dataclass(frozen=True)
class Profile:
    """Values of each row whose means are compared with a target.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        Profile of each row.
    target : ndarray of shape (k,) or None
        Target of the means; None for the mean itself, of profiles of one number.
    is_share : bool
        Whether the values are shares of one event, between 0 and 1.
    """

    values: Floats
    target: Floats | None = None
    is_share: bool = False


def paired_change(
    first: Profile, second: Profile, weight: Floats, mask: Mask, n_intervals: int, confidence: float
) -> Interval:
    """Return the change of a statistic in a group, with its Bonferroni interval.

    Rows have one order in both audits. `n_intervals` intervals, over all groups, contain the truth
    together with the confidence.

    Where a mean differs clearly from its target, the statistic is linear in the means, and its
    change is a mean of differences between rows: its interval is that of a paired t-test. The sign
    of a mean near its target is not known: the interval uses the least favourable one, and is wider
    by the largest bias that the statistic can have there, the mean absolute error of the mean. All
    of this is asymptotic in the rows of a group. Shares get pseudo-rows with changes of 1 and -1,
    as in the intervals of Bonett and Price (2012): a share that changes in no row has an interval.
    """
    tail = (1 - confidence) / (2 * n_intervals)
    weight = weight[mask]
    share, n = weight / weight.sum(), n_effective(weight)
    before, influences, bias = _side(first, mask, share)
    after, others, other_bias = _side(second, mask, share)
    change = after - before
    # reciprocals of equal shares may be a rounding error below their number
    if n < LEAST_ROWS - 1e-6:
        return Interval(change, np.nan, np.nan)
    # the least favourable signs of means near their targets
    variance = max(float(((v - u) ** 2).sum()) for u in influences for v in others)
    t = -float(stdtrit(n - 1, tail))
    if first.is_share:
        variance = (variance * n**2 + t**2 / 2) / (n + t**2 / 2) ** 2
    half = t * float(np.sqrt(variance))
    low, high = change - half - other_bias, change + half + bias
    if first.is_share:
        low, high = max(low, -1.0), min(high, 1.0)
    return Interval(change, low, high)


def _side(
    profile: Profile, mask: Mask, share: Floats
) -> tuple[float, tuple[Floats, Floats], float]:
    """Return the statistic of a group, its influence functions and the bound of its bias.

    `share` are the shares of its rows in their weight.
    """
    values = profile.values[mask]
    k = values.shape[-1]
    off = mean = share @ values
    centred = share[:, None] * (values - mean) / k
    error = k * np.sqrt((centred**2).sum(axis=0))
    sign, is_certain = np.ones(k), np.ones(k, dtype=np.bool_)
    if profile.target is not None:
        off = mean - profile.target
        sign, is_certain = np.where(off < 0, -1.0, 1.0), np.abs(off) >= CERTAIN * error
    certain, uncertain = centred @ (sign * is_certain), centred @ (sign * ~is_certain)
    bias = float((error * ~is_certain).mean() * np.sqrt(2 / np.pi))
    return float((sign * off).mean()), (certain + uncertain, certain - uncertain), bias


# --- bounds for the mean of a group whose members are known by probability

BIN_ROWS = 100
"""Smallest number of rows with similar probabilities that are compared with each other."""

MOST_BINS = 20
"""Largest number of bins of similar probabilities."""


def mean_bounds(
    values: Floats, shares: Floats, weights: Floats, confidence: float = 0.95
) -> tuple[float, float]:
    """Return bounds for the mean of a group, whatever the relation of membership and values.

    People with a probability of membership `p`, an entry of `shares`, have an unknown part `p` who
    are members. Their mean value is largest if these are the people with the largest values. The
    bounds compare people within bins of similar probabilities, so they are slightly wider than the
    sharpest bounds given the probabilities. They assume that the probabilities, not all 0, are
    correct on average in each bin, and hold asymptotically (Kallus, Mao and Zhou, Management
    Science, 2022).
    """
    low = -_upper_bound(-values, shares, weights, confidence)
    return low, _upper_bound(values, shares, weights, confidence)


def _upper_bound(values: Floats, shares: Floats, weights: Floats, confidence: float) -> float:
    """Return the upper end of a confidence interval for the largest possible mean."""
    total = float(weights @ shares)
    best = np.empty(values.size)
    for rows in _bins(shares):
        # people with values above the cut have the total weight of the members
        size = float(weights[rows] @ shares[rows] / weights[rows].sum())
        falling = -values[rows], min(size, 1.0)
        cut = -np.quantile(*falling, weights=weights[rows], method="inverted_cdf")
        # the largest sum of members' values is size * cut + sum of the excesses over the cut
        best[rows] = shares[rows] * cut + np.maximum(values[rows] - cut, 0.0)
    bound = float(weights @ best) / total
    # the derivative in the cut is 0 at the optimum, so its sampling error has no effect
    influence = weights * (best - shares * bound) / total
    return bound - float(ndtri((1 - confidence) / 2) * np.sqrt(influence @ influence))


def _bins(shares: Floats) -> Iterable[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """Yield the rows of each bin of similar probabilities; equal ones are in one bin."""
    order = np.argsort(shares, kind="stable")
    count = min(MOST_BINS, max(shares.size // BIN_ROWS, 1))
    rising = shares[order]
    cuts = rising[np.rint(np.linspace(0, shares.size, count + 1)[1:-1]).astype(np.intp)]
    ends = np.unique([0, *np.searchsorted(rising, cuts), shares.size])
    for start, stop in pairwise(ends):
        yield order[start:stop]
