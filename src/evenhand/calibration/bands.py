"""Confidence bands for distribution functions, and bounds for the CVaR (method: proof).

Values are independent and identically distributed, between 0 and a known top. The mean of their
worst `mass`, the conditional value at risk (CVaR), is `(1 / mass) * integral_0^top min(mass,
P(V > t)) dt`. An upper band for `P(V > t)` that holds at all `t` simultaneously therefore bounds
the CVaR for every mass simultaneously.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln, xlogy

from evenhand._format import one_line
from evenhand._validate import Floats

Ranks = NDArray[np.intp]
Counts = NDArray[np.int64]

LEAST_RISK = 1e-6
"""Smallest risk of a band with equal local levels; below it all ranks share the risk equally.

It is limited by rounding errors of the band's probability, about 1e-9 at a million values and 4e-9
at twenty million, and therefore grows in proportion to the number of values above `STIRLING_N`.
"""

STIRLING_N = 2_000_000
"""Above this number of values `n! e^n / n^n` comes from Stirling's series: the difference of
logarithms of its factors loses too many digits."""

LEVEL_SLACK = 1e-3
"""Tolerance of the search for the level of a band: unspent share of the risk, on the log scale."""

MOST_STEPS = 30
"""Maximum number of steps of the search for the level of a band; three or four are usual."""


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalBand:
    """Upper confidence band for `P(V > t)`, a step function of `t`.

    Parameters
    ----------
    starts : ndarray of shape (k,)
        Left ends of the steps, increasing from 0.
    upper : ndarray of shape (k,)
        Bound for `P(V > t)` on each step, decreasing.
    top : float
        Largest possible value.
    """

    starts: Floats
    upper: Floats
    top: float

    def __repr__(self) -> str:
        return one_line(self, steps=self.starts.size, top=self.top)

    def cvar(self, mass: float) -> float:
        """Upper bound for the mean of the worst `mass`; simultaneous for all masses."""
        widths = np.diff(self.starts, append=self.top)
        return min(float((widths * np.minimum(mass, self.upper)).sum() / mass), self.top)


def cvar(values: Floats, mass: float) -> float:
    """Return the mean of the largest `mass` of the values; the value at the edge counts in part.

    Examples
    --------
    >>> cvar(np.array([0.1, 0.4, 0.2, 0.3]), 0.5)
    0.35
    """
    falling = np.sort(values)[::-1]
    share = mass * falling.size
    whole = int(share)
    edge = (share - whole) * falling[whole] if whole < falling.size else 0.0
    return float((falling[:whole].sum() + edge) / share)


def local_levels_band(
    values: Floats, top: float, confidence: float, counts: Counts | None = None
) -> SurvivalBand:
    """Upper band with equal local levels: all ranks leave the band with the same probability.

    For the `i`-th largest value `v`, `P(V > v)` is stochastically at most Beta(i, n - i + 1)
    distributed, whatever the distribution of the values. The bounds of all ranks are quantiles of
    these Beta distributions at one level, chosen so that the whole band holds with `confidence`.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Independent values between 0 and `top`, in any order.
    top : float
        Largest possible value.
    confidence : float
        Probability that the band holds everywhere.
    counts : ndarray of int64, shape (n,), optional
        Number of occurrences of each value; 1 by default.
    """
    rising, upto = rising_values(values, counts)
    n = int(upto[-1])
    ranks, bounds = local_levels(n, confidence)
    # the i-th largest value is the first one with n - i + 1 values at or below it
    at_ranks = rising[np.searchsorted(upto[1:], n - ranks + 1)]
    # between the values of two ranks only the bound of the smaller value is known to hold
    starts = np.append(at_ranks, 0.0)
    upper = np.append(bounds, 1.0)
    return SurvivalBand(starts[::-1], upper[::-1], top)


def rising_values(values: Floats, counts: Counts | None) -> tuple[Floats, Counts]:
    """Return the sorted values, shape (k,), and their cumulative counts from 0, shape (k + 1,)."""
    if counts is None:
        return np.sort(values), np.arange(values.size + 1)
    order = np.argsort(values, kind="stable")
    order = order[counts[order] > 0]
    return values[order], np.append(0, np.cumsum(counts[order]))


@lru_cache(maxsize=64)
def local_levels(n: int, confidence: float) -> tuple[Ranks, Floats]:
    """Return ranks from the top and their bounds, for a band over `n` values."""
    ranks = _ranks(n)

    def bounds_at(log_level: float) -> Floats:
        return np.asarray(betaincinv(ranks, n - ranks + 1, -np.expm1(log_level)), dtype=np.float64)

    # the level lies between that of a single rank and Bonferroni's equal shares
    most = float(np.log1p(-confidence))
    least = float(most - np.log(ranks.size))
    if ranks.size == 1 or 1 - confidence < LEAST_RISK * max(1.0, n / STIRLING_N):
        return ranks, bounds_at(least)
    # the number of ranks that leave the band is nearly Poisson with a rate about proportional to
    # the level, so the search is nearly linear on a log scale
    goal = np.log(-np.log(confidence))
    slope = 0.85
    last = (np.nan, np.nan)
    log_level = min(goal - np.log(2 * np.log(np.log(max(n, 16))) * np.log(max(n, 16))), most)
    for _ in range(MOST_STEPS):
        bounds = bounds_at(log_level)
        gap = float(np.log(-np.log(probability_within(ranks, bounds, n))) - goal)
        if -LEVEL_SLACK <= gap <= 0:  # never less than the given confidence
            return ranks, bounds
        if last[0] != log_level and np.isfinite(last[0]):
            slope = max((gap - last[1]) / (log_level - last[0]), 0.1)
        last = log_level, gap
        log_level = float(np.clip(log_level - (gap + LEVEL_SLACK / 2) / slope, least, most))
    return ranks, bounds_at(least)


def _ranks(n: int) -> Ranks:
    """Return the ranks from the top at which the band steps: about 4,000 for 20 million values."""
    ranks = []
    rank = 0
    while rank < n:
        # all of the first 100 ranks; further ones are a quarter of a standard deviation apart
        rank += 1 if rank < 100 else max(1, int(np.sqrt(rank) / 4), rank // 400)
        ranks.append(min(rank, n))
    return np.array(ranks, dtype=np.intp)


def probability_within(ranks: Ranks, bounds: Floats, n: int) -> float:
    """Return the probability that, for all ranks `i`, the `i`-th smallest value is in its bound.

    The values are `n` independent uniform ones. Equivalently, at least `i` values lie at or below
    each bound. The count of values is a Poisson process conditional on `n` arrivals in total
    (Moscovich & Nadler, Statistics & Probability Letters 2017); its distribution is propagated
    from bound to bound.
    """
    probabilities = np.ones(1)
    low = 0
    time = 0.0
    for rank, bound in zip(ranks, bounds, strict=True):
        rate = n * (bound - time)
        # outcomes beyond nine standard deviations have probability below 1e-18; at small rates
        # all outcomes are computed
        first = int(rate - 9 * np.sqrt(rate)) if rate > 5000 else 0
        steps = np.arange(first, int(rate + 9 * np.sqrt(rate)) + 25)
        arrivals = _poisson(steps, rate)
        low += first
        # a Fourier transform is faster only if both arrays are long
        if min(probabilities.size, steps.size) < 250:
            probabilities = np.convolve(probabilities, arrivals)
        else:
            from scipy.signal import fftconvolve  # takes a tenth of a second to import

            probabilities = fftconvolve(probabilities, arrivals).clip(0)
        # drop counts below the rank, which leave the band, and counts far above their expectation,
        # whose total probability is below 1e-15
        high = min(n, int(n * bound + 9 * np.sqrt(n * bound * (1 - bound))) + 30)
        probabilities = probabilities[max(int(rank) - low, 0) : high - low + 1]
        low = max(int(rank), low)
        time = float(bound)
    left = n - low - np.arange(probabilities.size)
    whole = float((probabilities * _poisson(left, n * (1 - time))).sum())
    # condition on n arrivals: divide by their probability n^n e^-n / n!
    if n > STIRLING_N:
        return whole * float(np.sqrt(2 * np.pi * n) * np.exp(1 / (12 * n)))  # off by 1 / (360 n^3)
    return whole / float(_poisson(np.array([n]), n)[0])


def _poisson(counts: NDArray[np.intp], rate: float) -> Floats:
    """Return Poisson probabilities of counts; faster than SciPy, which checks its arguments."""
    return np.asarray(np.exp(xlogy(counts, rate) - rate - gammaln(counts + 1.0)))
