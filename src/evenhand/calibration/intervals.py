"""Confidence intervals for probabilities and for the calibration error (method: proof)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv

from evenhand._validate import Floats
from evenhand.calibration.bands import rising_values
from evenhand.calibration.errors import quantile_distance

Interval = tuple[Floats, Floats]
"""Lower and upper ends, each of shape (g,)."""


class Estimate(NamedTuple):
    """An estimate with the ends of its confidence interval."""

    value: float
    low: float
    high: float


def share_interval(hits: float, n: float, confidence: float) -> tuple[float, float]:
    """Two-sided Clopper-Pearson interval for a probability from `hits` of `n` trials.

    Examples
    --------
    >>> low, high = share_interval(0, 10, 0.95)
    >>> low, round(high, 3)
    (0.0, 0.308)
    """
    tail = (1 - confidence) / 2
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits > 0 else 0.0
    return low, share_bound(hits, n, 1 - tail)


def share_bound(hits: float, n: float, confidence: float) -> float:
    """Upper Clopper-Pearson bound for a probability from `hits` of `n` trials.

    Examples
    --------
    >>> round(share_bound(0, 10, 0.95), 3)
    0.259
    """
    return float(betaincinv(hits + 1, n - hits, confidence)) if hits < n else 1.0


def binomial_intervals(low_hits: Floats, high_hits: Floats, n: Floats, tail: float) -> Interval:
    """Return Clopper-Pearson intervals, from counts of hits for the lower and the upper end.

    Parameters
    ----------
    low_hits, high_hits, n : ndarray of shape (g,)
        Numbers of hits and of trials, which need not be whole.
    tail : float
        Probability that either end fails.
    """
    # functions of no hit, and of no other trial, are not defined
    low = np.where(low_hits > 0, betaincinv(low_hits, n - low_hits + 1, tail), 0.0)
    high = np.where(high_hits < n, betainccinv(high_hits + 1, n - high_hits, tail), 1.0)
    return low, high


def error_interval(
    pit: Floats,
    confidence: float,
    upper: Floats | None = None,
    counts: NDArray[np.int64] | None = None,
) -> tuple[float, float]:
    """Return an interval for the W1 calibration error from independent PITs of people.

    The true CDF lies in a two-sided DKW band with the given confidence; the interval extends from
    the smallest to the largest distance to uniform of any CDF in the band. With `upper` each PIT is
    only known to lie between `pit` and `upper`: the CDF of the upper ends is a lower limit of the
    true CDF, and that of the lower ends an upper limit, whatever the PITs are.

    Parameters
    ----------
    pit : ndarray of shape (k,)
        PITs, or lower ends of them.
    confidence : float
        Probability that the interval covers the error.
    upper : ndarray of shape (k,), optional
        Upper ends of the PITs.
    counts : ndarray of int64, shape (k,), optional
        Number of people with each PIT; 1 by default.

    Examples
    --------
    >>> low, high = error_interval((np.arange(1000) + 0.5) / 1000, 0.95)
    >>> low, round(high, 2)
    (0.0, 0.04)

    Counts in bins: those of a bin with a share `p` of the PITs move either end by at most `p` times
    the bin's width.

    >>> edges = np.linspace(0, 1, 101)
    >>> low, high = error_interval(edges[:-1], 0.95, edges[1:], np.full(100, 10))
    >>> low, round(high, 2)
    (0.0, 0.05)
    """
    lowest = highest = rising_values(pit, counts)
    inner, n = lowest[0], int(lowest[1][-1])
    if upper is not None:
        highest = rising_values(upper, counts)
        inner = np.sort(np.concatenate((inner, highest[0])))
    least, most = (
        np.append(0, upto[np.searchsorted(values, inner, side="right")]) / n
        for values, upto in (highest, lowest)
    )
    margin = np.sqrt(np.log(2 / (1 - confidence)) / (2 * n))
    lower = np.maximum(least - margin, 0.0)
    upper = np.minimum(most + margin, 1.0)
    ends = np.concatenate(([0.0], inner, [1.0]))
    left, right = ends[:-1], ends[1:]

    def squares(x: Floats) -> Floats:
        return np.maximum(x, 0.0) ** 2

    # on a step the band is [lower, upper]. The smallest distance is that from the diagonal to the
    # band: integrals of (lower - c)_+ and (c - upper)_+, whose antiderivatives are squares
    nearest = squares(lower - left) - squares(lower - right)
    nearest += squares(right - upper) - squares(left - upper)
    # the largest distance is that to the far side of the band: the distance to the middle of the
    # band plus half of its width
    farthest = ((upper - lower) * (right - left)).sum() / 2
    farthest += quantile_distance((lower + upper) / 2, ends)
    return float(nearest.sum()) / 2, min(float(farthest), 0.5)
