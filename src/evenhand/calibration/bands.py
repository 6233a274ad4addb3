"""Confidence bands for the distribution of values, and means of their worst share (method: proof).

Values are independent and identically distributed, between 0 and a known top. The mean of their
worst `mass`, the conditional value at risk, is `(1 / mass) * integral_0^top min(mass, P(V > t))
dt`; an upper band for `P(V > t)` that holds at all `t` at once therefore bounds it for every mass
at once.
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
"""A smaller risk is shared equally between ranks, up to `STIRLING_N` values; of more it rises.

At a million values the probability of a band is known to about 1e-9, at twenty million to 4e-9.
"""

STIRLING_N = 2_000_000
"""Above so many values `n! e^n / n^n` comes from Stirling's series: its parts are too large."""

LEVEL_SLACK = 1e-3
"""Share of the risk of a band, on the log scale, that may be left unspent."""

MOST_STEPS = 30
"""Steps after which the search for the level of a band ends; three or four are usual."""


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalBand:
    """An upper band for `P(V > t)`, a step function.

    Parameters
    ----------
    starts : ndarray of shape (k,)
        Where the steps begin, increasing from 0.
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
        """Upper bound for the mean of the worst `mass`, all masses at once."""
        widths = np.diff(self.starts, append=self.top)
        return min(float((widths * np.minimum(mass, self.upper)).sum() / mass), self.top)


def cvar(values: Floats, mass: float) -> float:
    """Mean of the largest `mass` of the values, the one at the edge counted in part.

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
    """Upper band with equal local levels: all ranks leave it with the same probability.

    For the `i`-th largest value `v`, `P(V > v)` is at most a Beta(i, n - i + 1) variable, whatever
    the distribution of the values. Each rank gets the same quantile of its Beta distribution,
    chosen so that the whole band holds with `confidence`.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Independent values between 0 and `top`, in any order.
    top : float
        Largest possible value.
    confidence : float
        Probability that the band holds everywhere.
    counts : ndarray of int64, shape (n,), optional
        How often each value occurs; by default once.
    """
    rising, upto = _rising(values, counts)
    n = int(upto[-1])
    ranks, bounds = _local_levels(n, confidence)
    # the i-th largest is the first value with n - i + 1 at or below it
    at_ranks = rising[np.searchsorted(upto[1:], n - ranks + 1)]
    # below the value of a rank nothing better than the next rank's bound is known
    starts = np.append(at_ranks, 0.0)
    upper = np.append(bounds, 1.0)
    return SurvivalBand(starts[::-1], upper[::-1], top)


def dkw_band(
    values: Floats, top: float, confidence: float, counts: Counts | None = None
) -> SurvivalBand:
    """Upper band of constant width (Dvoretzky, Kiefer and Wolfowitz; Massart 1990): the baseline.

    Parameters are those of `local_levels_band`.
    """
    rising, upto = _rising(values, counts)
    n = int(upto[-1])
    margin = np.sqrt(np.log(1 / (1 - confidence)) / (2 * n))
    upper = 1 - upto / n + margin
    return SurvivalBand(np.concatenate(([0.0], rising)), np.minimum(upper, 1.0), top)


def _rising(values: Floats, counts: Counts | None) -> tuple[Floats, Counts]:
    """Values in rising order, shape (k,), and 0 with the counts at or below each, (k + 1,)."""
    if counts is None:
        return np.sort(values), np.arange(values.size + 1)
    order = np.argsort(values, kind="stable")
    order = order[counts[order] > 0]
    return values[order], np.append(0, np.cumsum(counts[order]))


@lru_cache(maxsize=64)
def _local_levels(n: int, confidence: float) -> tuple[Ranks, Floats]:
    """Ranks from the top and their bounds, for a band over `n` values."""
    ranks = _ranks(n)

    def bounds_at(log_level: float) -> Floats:
        return np.asarray(betaincinv(ranks, n - ranks + 1, -np.expm1(log_level)), dtype=np.float64)

    # a single rank takes all of the risk; Bonferroni's equal shares are always enough
    most = float(np.log1p(-confidence))
    least = float(most - np.log(ranks.size))
    if ranks.size == 1 or 1 - confidence < LEAST_RISK * max(1.0, n / STIRLING_N):
        return ranks, bounds_at(least)
    # the number of ranks that leave the band is nearly Poisson, at a rate about in proportion to
    # the level: the search is nearly linear on a log scale
    goal = np.log(-np.log(confidence))
    slope = 0.85
    last = (np.nan, np.nan)
    log_level = min(goal - np.log(2 * np.log(np.log(max(n, 16))) * np.log(max(n, 16))), most)
    for _ in range(MOST_STEPS):
        bounds = bounds_at(log_level)
        gap = float(np.log(-np.log(_probability_within(ranks, bounds, n))) - goal)
        if -LEVEL_SLACK <= gap <= 0:  # never less than the stated confidence
            return ranks, bounds
        if last[0] != log_level and np.isfinite(last[0]):
            slope = max((gap - last[1]) / (log_level - last[0]), 0.1)
        last = log_level, gap
        log_level = float(np.clip(log_level - (gap + LEVEL_SLACK / 2) / slope, least, most))
    return ranks, bounds_at(least)


def _ranks(n: int) -> Ranks:
    """Ranks from the top that have a bound of their own, about 4,000 of twenty million values."""
    ranks = []
    rank = 0
    while rank < n:
        # each rank near the top has a bound; further ones are a quarter of a deviation apart
        rank += 1 if rank < 100 else max(1, int(np.sqrt(rank) / 4), rank // 400)
        ranks.append(min(rank, n))
    return np.array(ranks, dtype=np.intp)


def _probability_within(ranks: Ranks, bounds: Floats, n: int) -> float:
    """Probability that the `i`-th smallest of `n` uniform values is within its bound, all ranks.

    Equivalent: at each bound at least `i` values have come. The count is a Poisson process given
    that `n` come in all (Moscovich & Nadler, Statistics & Probability Letters 2017); its
    distribution is carried from bound to bound.
    """
    chances = np.ones(1)
    low = 0
    time = 0.0
    for rank, bound in zip(ranks, bounds, strict=True):
        rate = n * (bound - time)
        # beyond nine deviations there is less than 1e-18; of few arrivals all are computed
        first = int(rate - 9 * np.sqrt(rate)) if rate > 5000 else 0
        steps = np.arange(first, int(rate + 9 * np.sqrt(rate)) + 25)
        arrivals = _poisson(steps, rate)
        low += first
        # a Fourier transform pays off only where both are long
        if min(chances.size, steps.size) < 250:
            chances = np.convolve(chances, arrivals)
        else:
            from scipy.signal import fftconvolve  # takes a tenth of a second to import

            chances = fftconvolve(chances, arrivals).clip(0)
        # too few by now: the band is left. Far more than expected: such paths hold less than 1e-15
        high = min(n, int(n * bound + 9 * np.sqrt(n * bound * (1 - bound))) + 30)
        chances = chances[max(int(rank) - low, 0) : high - low + 1]
        low = max(int(rank), low)
        time = float(bound)
    left = n - low - np.arange(chances.size)
    whole = float((chances * _poisson(left, n * (1 - time))).sum())
    # given n arrivals: divided by the probability of n, n^n e^-n / n!
    if n > STIRLING_N:
        return whole * float(np.sqrt(2 * np.pi * n) * np.exp(1 / (12 * n)))  # off by 1 / (360 n^3)
    return whole / float(_poisson(np.array([n]), n)[0])


def _poisson(counts: NDArray[np.intp], rate: float) -> Floats:
    """Poisson probabilities of counts, without SciPy's checks, which take longer than this."""
    return np.asarray(np.exp(xlogy(counts, rate) - rate - gammaln(counts + 1.0)))
