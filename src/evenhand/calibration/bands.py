"""Confidence bands for distribution functions, bounds for the CVaR, and intervals (method: proof).

Values are independent and identically distributed, between 0 and a known top. The mean of their
worst `mass`, the conditional value at risk (CVaR), is `(1 / mass) * integral_0^top min(mass,
P(V > t)) dt`. An upper band for `P(V > t)` that holds at all `t` simultaneously therefore bounds
the CVaR for every mass simultaneously.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.fft import irfft, rfft
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, gammaln, ndtri, stdtrit, xlogy

from evenhand._format import OneLine
from evenhand._validate import Floats, Mask, Pair
from evenhand.calibration.errors import n_effective, quantile_distance
from evenhand.draws import RandomState, generator
from evenhand.results import Interval

Ranks = NDArray[np.intp]
Counts = NDArray[np.int64]

# limited by rounding errors of the band's probability, about 1e-9 at a million values and
# 4e-9 at twenty million, and therefore grows in proportion to the number of values above
# `STIRLING_N`
LEAST_RISK = 1e-6
"""Smallest risk of a band with equal local levels; below it all ranks share the risk equally."""

# the difference of logarithms of its factors loses too many digits
STIRLING_N = 2_000_000
"""Number of values above which `n! e^n / n^n` comes from Stirling's series."""

LEVEL_SLACK = 1e-3
"""Tolerance of the search for the level of a band: unspent share of the risk, on the log scale."""

MOST_STEPS = 30
"""Maximum number of steps of the search for the level of a band; three or four are usual."""


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalBand(OneLine):
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
        arrivals = _poisson(np.arange(first, int(rate + 9 * np.sqrt(rate)) + 25), rate)
        low += first
        probabilities = convolved(probabilities, arrivals)
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


ONLY_DIRECT = 64
"""Least number of values of a distribution that is convolved by a Fourier transform."""


def convolved(one: Floats, other: Floats) -> Floats:
    """Return the distribution of the sum of two independent counts, shape (n,)."""
    is_short = min(one.size, other.size) < ONLY_DIRECT
    return np.convolve(one, other) if is_short else by_transform(one, other)


def by_transform(one: Floats, other: Floats) -> Floats:
    """Return the same along the last axis, by a Fourier transform."""
    n = one.shape[-1] + other.shape[-1] - 1
    size = 1 << (n - 1).bit_length()
    mass = irfft(rfft(one, size) * rfft(other, size), size)[..., :n]
    # absolute errors of the transform are about 1e-15
    return np.maximum(mass, 0.0)


def _poisson(counts: NDArray[np.intp], rate: float) -> Floats:
    """Return Poisson probabilities of counts; faster than SciPy, which checks its arguments."""
    return np.exp(xlogy(counts, rate) - rate - gammaln(counts + 1.0))


# --- bands for the CDF of a PIT from both ends (method: sharp certificate)


@dataclass(frozen=True, eq=False, repr=False)
class CDFBand(OneLine):
    """Upper confidence band for `P(U <= u)` on [0, 1], a right-continuous step function.

    Parameters
    ----------
    starts : ndarray of shape (k,)
        Left ends of the steps, strictly increasing from 0.
    upper : ndarray of shape (k,)
        Bound for `P(U <= u)` on each step, increasing to 1.
    """

    starts: Floats
    upper: Floats

    def at(self, u: Floats) -> Floats:
        """Return the band at points between 0 and 1."""
        return self.upper[np.searchsorted(self.starts, u, side="right") - 1]

    @classmethod
    def of(cls, values: Floats, confidence: float, counts: Counts | None = None) -> Self:
        """Make the band with equal local levels from independent values between 0 and 1.

        `counts` are the numbers of occurrences of each value.
        """
        rising, upto = rising_values(values, counts)
        ranks, bounds = local_levels(int(upto[-1]), confidence)
        # P(U < w) of the i-th smallest value w has the bound of the i-th rank
        return cls.of_ranks(rising[np.searchsorted(upto[1:], ranks)], bounds)

    @classmethod
    def of_ranks(cls, values: Floats, bounds: Floats) -> Self:
        """Make the band from increasing values `w` with bounds of `P(U < w)`.

        Between two values `P(U <= u)` is at most the bound of the next one: the band is read just
        below it. Its value at an atom therefore contains the atom.
        """
        starts = np.append(0.0, values)
        upper = np.append(bounds, 1.0)
        # of equal values only the last one begins a step
        is_last = np.append(starts[1:] > starts[:-1], True)
        return cls(starts[is_last], upper[is_last])


@dataclass(frozen=True, eq=False, repr=False)
class CDFBands(OneLine):
    """Upper bands for the CDFs of a PIT `U` and of `1 - U`, which hold jointly.

    Parameters
    ----------
    upper : CDFBand
        Upper band for `P(U <= u)`.
    mirrored : CDFBand
        Upper band for `P(1 - U <= u)`: `P(U < u)` is at least `1 - mirrored.at(1 - u)`.
    """

    upper: CDFBand
    mirrored: CDFBand

    @classmethod
    def of(cls, low: Floats, high: Floats, confidence: float, counts: Counts | None = None) -> Self:
        """Make the bands from independent PITs of which only limits may be known.

        Both limits are the PITs themselves if these are known. Each band has half of the risk.
        """
        # rounded down: 1 - 1e-20 rounds up to 1, as if the PIT were 0, which no link changes
        rest = 1 - high
        rest = np.where(1 - rest < high, np.nextafter(rest, 0.0), rest)
        each = (1 + confidence) / 2
        return cls(CDFBand.of(low, each, counts), CDFBand.of(rest, each, counts))

    @classmethod
    def of_uniform(cls, n: int, confidence: float) -> Self:
        """Make the bands of `n` PITs at the middle of equal cells, `(i - 1/2) / n`."""
        ranks, bounds = local_levels(n, (1 + confidence) / 2)
        band = CDFBand.of_ranks((ranks - 0.5) / n, bounds)
        return cls(band, band)

    def distance_band(self) -> SurvivalBand:
        """Return an upper band for `P(|U - 1/2| > t)`: the sum of both bands."""
        # P(U < 1/2 - t) is the limit of P(U <= u) from below
        tails = [
            (0.5 - band.starts[:0:-1], np.append(1.0, band.upper[-2::-1]))
            for band in (self.upper, self.mirrored)
        ]
        starts = np.unique(np.concatenate([[0.0], *(distance for distance, _ in tails)]))
        starts = starts[starts >= 0]
        below, above = (
            bound[np.searchsorted(distance, starts, side="right")] for distance, bound in tails
        )
        return SurvivalBand(starts, np.minimum(below + above, 1.0), 0.5)

    def nearness_band(self) -> CDFBand:
        """Return an upper band for `P(|U - 1/2| <= t)`, with `t` from 0 to 1/2."""
        ends = np.append(self.upper.starts, self.mirrored.starts) - 0.5
        starts = np.unique(np.append(0.0, ends[ends > 0]))
        both = self.upper.at(0.5 + starts) + self.mirrored.at(0.5 + starts)
        return CDFBand(starts, np.clip(both - 1, 0.0, 1.0))


# --- bound for the CVaR by betting


def betting_cvar(
    values: Floats, mass: float, top: float, confidence: float, random_state: RandomState = None
) -> float:
    """Upper bound for the mean of the worst `mass`, for a single mass, by betting.

    To test the hypothesis that the mean of the worst `mass` is at least `tau`, a bettor stakes
    capital on `(V - q)_+` being below `mass * (tau - q)`, where `q` and the stakes depend on
    earlier rows only. Under the hypothesis no stake has a positive expected gain, whatever `q`
    (Rockafellar & Uryasev 2000). If the capital ever reaches `1 / (1 - confidence)`, `tau` is
    therefore rejected (Ville's inequality). The bound is the smallest rejected `tau`.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Independent values between 0 and `top`.
    mass : float
        Share of people, 0 < mass <= 1.
    top : float
        Largest possible value.
    confidence : float
        Probability that the bound holds.
    random_state : int, generator or None
        Seed for the order of the rows, which must not depend on the values.

    Examples
    --------
    >>> values = np.random.default_rng(0).uniform(size=1000)  # the true mean is 1/2
    >>> 0.5 < betting_cvar(values, 1.0, 1.0, 0.95, random_state=0) < 0.55
    True
    """
    order = generator(random_state).permutation(values)
    pivots, stakes = pivots_and_stakes(order, mass, top, confidence)
    excess = np.maximum(order - pivots, 0.0)
    goal = -np.log1p(-confidence)

    def is_kept(tau: Floats) -> Mask:
        gains = np.log1p(-stakes * (excess - mass * (tau - pivots)))
        return np.cumsum(gains).max() < goal

    # stakes do not depend on tau, so the capital increases with tau and bisection finds the
    # smallest rejected tau
    most = np.array(top)
    return top if is_kept(most) else float(last_within(is_kept, np.zeros(()), most, 40))


def last_within(
    is_within: Callable[[Floats], Mask], least: Floats, most: Floats, n_halvings: int
) -> Floats:
    """Return upper ends of where a condition holds, between ends where it does and does not."""
    for _ in range(n_halvings):
        middle = (least + most) / 2
        inside = is_within(middle)
        least, most = np.where(inside, middle, least), np.where(inside, most, middle)
    return most


def pivots_and_stakes(order: Floats, mass: float, top: float, confidence: float) -> Pair:
    """Return the pivot and stake of each row, shape (n,), computed from the rows before it."""
    n = order.size
    # the stake with the largest expected growth of capital over n rows if the excess were normal
    unit = np.sqrt(-2 * np.log1p(-confidence) / n)
    pivots = np.empty(n)
    stakes = np.empty(n)
    start = 0
    while start < n:
        # pivots and stakes are updated whenever the number of rows seen has grown by 5%
        stop = min(n, max(start + 1, int(start * 1.05)))
        # two pseudo-rows at the ends of the range give the first bets a spread
        seen = np.concatenate(([0.0, top], order[:start]))
        pivot = 0.0 if mass == 1 else float(np.quantile(seen, 1 - mass))
        spread = float(np.maximum(seen - pivot, 0.0).std())
        # the capital stays positive for every tau in [0, top]
        most = 0.9 / (top - pivot + mass * pivot)
        pivots[start:stop] = pivot
        stakes[start:stop] = min(unit / spread, most) if spread > 0 else most
        start = stop
    return pivots, stakes


# --- confidence intervals of probabilities and of the calibration error (method: proof)


def share_interval(hits: float, n: float, confidence: float) -> tuple[float, float]:
    """Two-sided Clopper-Pearson interval for a probability from `hits` of `n` trials.

    Examples
    --------
    >>> low, high = share_interval(0, 10, 0.95)
    >>> low, round(high, 3)
    (0.0, 0.308)
    """
    low, high = binomial_intervals(hits, hits, n, (1 - confidence) / 2)
    return float(low), float(high)


def share_bound(hits: float, n: float, confidence: float) -> float:
    """Upper Clopper-Pearson bound for a probability from `hits` of `n` trials.

    Examples
    --------
    >>> round(share_bound(0, 10, 0.95), 3)
    0.259
    """
    return float(betaincinv(hits + 1, n - hits, confidence)) if hits < n else 1.0


def binomial_intervals(
    low_hits: Floats | float, high_hits: Floats | float, n: Floats | float, tail: float
) -> Pair:
    """Return Clopper-Pearson intervals, from counts of hits for the lower and the upper end.

    Counts need not be whole. Either end fails with probability `tail`.
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

LEAST_VARIED = 20
"""Fewest rows, of those that differ from most others in a frequent value, with a variance."""


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
    together with the confidence. All of them are asymptotic in the rows of a group.
    """
    tail = (1 - confidence) / (2 * n_intervals)
    weight = weight[mask]
    change_of = _change_of_mean if first.values.shape[1] == 1 else _change_of_means
    change, low, high = change_of(first, second, mask, weight / weight.sum(), tail)
    # reciprocals of equal shares may be a rounding error below their number
    if n_effective(weight) < LEAST_ROWS - 1e-6:
        low = high = np.nan
    return Interval(float(change), float(low), float(high))


def _change_of_mean(
    first: Profile, second: Profile, mask: Mask, share: Floats, tail: float
) -> tuple[float, float, float]:
    """Return the change of a mean, or of its distance from a target, and the ends of its interval.

    The change of a mean is a mean of differences between rows: its interval is that of a paired
    t-test. That of a distance is `min(|s|, |d|)` with the sign of `s d`, where `s` and `d` are the
    sum and the difference of both means, less their targets. It is monotone in both, so that its
    extremes are at the ends of their intervals, which share the error probability.
    """
    target = 0.0 if first.target is None else first.target[0]
    off, other = (profile.values[mask, 0] - target for profile in (first, second))
    if first.target is None:
        return share @ (other - off), *_mean_ends(other - off, share, tail, is_share=first.is_share)
    s = 2 * _mean_ends((off + other) / 2, share, tail / 2, is_share=True)
    d = _mean_ends(other - off, share, tail / 2)
    change = np.outer(np.sign(s), np.sign(d)) * np.minimum.outer(np.abs(s), np.abs(d))
    return abs(share @ other) - abs(share @ off), change.min(), change.max()


def _mean_ends(values: Floats, share: Floats, tail: float, *, is_share: bool = False) -> Floats:
    """Return the ends of the t-interval of a mean.

    Changes of a share, between -1 and 1, get pseudo-rows with changes of 1 and -1, as in the
    intervals of Bonett and Price (2012): a share that changes in no row has an interval. Others
    have none if few rows change.
    """
    if not is_share and _has_few(values != 0):
        return np.full(2, np.nan)
    mean, variance, n = weighted_mean(values, share)
    t = -float(stdtrit(n - 1, tail))
    if is_share:
        variance = (variance * n**2 + t**2 / 2) / (n + t**2 / 2) ** 2
    ends = mean + np.array([-t, t]) * np.sqrt(variance)
    return np.clip(ends, -1.0, 1.0) if is_share else ends


def _change_of_means(
    first: Profile, second: Profile, mask: Mask, share: Floats, tail: float
) -> tuple[float, float, float]:
    """Return the change of a mean distance of several means, and the ends of its interval.

    Where a mean differs clearly from its target, the statistic is linear in the means, and its
    change is a mean of differences between rows. The sign of a mean near its target is not known:
    the interval uses the least favourable one, and is wider by the largest bias that the statistic
    can have there, the mean absolute error of the mean.
    """
    before, influences, bias = _side(first, mask, share)
    after, others, other_bias = _side(second, mask, share)
    # the least favourable signs of means near their targets
    variance = max(float(((v - u) ** 2).sum()) for u in influences for v in others)
    half = -float(stdtrit(n_effective(share) - 1, tail)) * float(np.sqrt(variance))
    change = after - before
    # between equal profiles influence functions differ by the change alone
    if _has_few(np.abs(others[0] - influences[0] + share * change) > 1e-9 * share):
        half = np.nan
    return change, change - half - other_bias, change + half + bias


def _has_few(differs: Mask) -> bool:
    """Return whether so few rows differ, though some do, that their variance is not known."""
    return 0 < differs.sum() < LEAST_VARIED


def _side(profile: Profile, mask: Mask, share: Floats) -> tuple[float, Pair, float]:
    """Return the statistic of a group, its influence functions and the bound of its bias.

    `share` are the shares of its rows in their weight.
    """
    assert profile.target is not None
    values = profile.values[mask]
    k = values.shape[-1]
    mean = share @ values
    centred = share[:, None] * (values - mean) / k
    error = k * np.sqrt((centred**2).sum(axis=0))
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


def _bins(shares: Floats) -> Iterable[Ranks]:
    """Yield the rows of each bin of similar probabilities; equal ones are in one bin."""
    order = np.argsort(shares, kind="stable")
    count = min(MOST_BINS, max(shares.size // BIN_ROWS, 1))
    rising = shares[order]
    cuts = rising[np.rint(np.linspace(0, shares.size, count + 1)[1:-1]).astype(np.intp)]
    ends = np.unique([0, *np.searchsorted(rising, cuts), shares.size])
    for start, stop in pairwise(ends):
        yield order[start:stop]
