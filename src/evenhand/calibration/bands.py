"""Bounds that hold at any sample size.

For laws, shares and the mean of the worst share (method: proof).

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
from scipy.signal import fftconvolve
from scipy.special import betaincinv, gammaln, xlogy
from scipy.stats import beta

from evenhand._format import one_line
from evenhand._validate import Floats
from evenhand.draws import RandomState, generator

Ranks = NDArray[np.intp]
Counts = NDArray[np.int64]

DIRECT_RANKS = 100
"""Ranks from the top that each have a bound of their own; farther down they stand a quarter of a
deviation apart."""

LEAST_RISK = 1e-6
"""Smaller risks than this are shared equally: at a million rows the probability of a band is known to about 1e-9, at
twenty million to 4e-9. Of more rows than `MANY` it rises with them."""

LEVEL_SLACK = 1e-3
"""Share of the risk of a band that may be left unspent."""

MOST_STEPS = 30
"""Steps after which the search for the level of a band is given up; three or four do."""

SHORT = 250
"""Laws of fewer counts than this are convolved term by term, longer ones by Fourier transforms."""

LONG = 5000
"""Arrivals at a rate above this, of two million values, are reckoned from nine deviations below
it, not from none."""

MANY = 2_000_000
"""Above so many values `n! e^n / n^n` comes from Stirling's series: the logarithms of its parts
are too large."""

BLOCK_GROWTH = 1.05
"""Bets are set anew whenever the rows seen have grown by this factor."""


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
    """Mean of the largest `mass` of the values, the one at the edge counted in part."""
    falling = np.sort(values)[::-1]
    share = mass * falling.size
    whole = int(share)
    edge = (share - whole) * falling[whole] if whole < falling.size else 0.0
    return float((falling[:whole].sum() + edge) / share)


def local_levels_band(
    values: Floats, top: float, confidence: float, counts: Counts | None = None
) -> SurvivalBand:
    """Band with equal local levels.

    The `i`-th largest value gets a quantile of its Beta(i, n - i + 1) law.

    `P(V > V_(i))` has at most that law, whatever the law of the values. The level of all quantiles
    is set so that the whole band holds with `confidence`. With `counts` each value, in any order,
    stands for so many equal ones.
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
    """Band of constant width, Dvoretzky-Kiefer-Wolfowitz with Massart's constant: the baseline.

    With `counts` each value, in any order, stands for so many equal ones.
    """
    rising, upto = _rising(values, counts)
    n = int(upto[-1])
    margin = np.sqrt(np.log(1 / (1 - confidence)) / (2 * n))
    upper = 1 - upto / n + margin
    return SurvivalBand(np.concatenate(([0.0], rising)), np.minimum(upper, 1.0), top)


def _rising(values: Floats, counts: Counts | None) -> tuple[Floats, Counts]:
    """Values in rising order, shape (k,), and how many lie at or below each, with a 0 before them, shape (k + 1,)."""
    if counts is None:
        return np.sort(values), np.arange(values.size + 1)
    order = np.argsort(values, kind="stable")
    order = order[counts[order] > 0]
    return values[order], np.append(0, np.cumsum(counts[order]))


@lru_cache(maxsize=64)
def _local_levels(n: int, confidence: float) -> tuple[Ranks, Floats]:
    """Ranks and their bounds, for a band over `n` values."""
    ranks = _ranks(n)

    def bounds_at(log_level: float) -> Floats:
        return np.asarray(betaincinv(ranks, n - ranks + 1, -np.expm1(log_level)), dtype=np.float64)

    # one rank alone takes all of the risk; Bonferroni's equal shares are always enough
    most = float(np.log1p(-confidence))
    least = float(most - np.log(ranks.size))
    if ranks.size == 1 or 1 - confidence < LEAST_RISK * max(1.0, n / MANY):
        return ranks, bounds_at(least)
    # leaving the band is nearly Poisson, at a rate about in proportion to the level: straight on a
    # log scale
    goal = np.log(-np.log(confidence))
    slope = 0.85
    last = (np.nan, np.nan)
    log_level = min(goal - np.log(2 * np.log(np.log(max(n, 16))) * np.log(max(n, 16))), most)
    for _ in range(MOST_STEPS):
        bounds = bounds_at(log_level)
        gap = float(np.log(-np.log(_probability_within(ranks, bounds, n))) - goal)
        if -LEVEL_SLACK <= gap <= 0:  # on the safe side only
            return ranks, bounds
        if last[0] != log_level and np.isfinite(last[0]):
            slope = max((gap - last[1]) / (log_level - last[0]), 0.1)
        last = log_level, gap
        log_level = float(np.clip(log_level - (gap + LEVEL_SLACK / 2) / slope, least, most))
    return ranks, bounds_at(least)


def _ranks(n: int) -> Ranks:
    ranks = []
    rank = 0
    while rank < n:
        rank += 1 if rank < DIRECT_RANKS else max(1, int(np.sqrt(rank) / 4), rank // 400)
        ranks.append(min(rank, n))
    return np.array(ranks, dtype=np.intp)


def _probability_within(ranks: Ranks, bounds: Floats, n: int) -> float:
    """Probability that for each rank `i` the `i`-th smallest of `n` uniform values is at most its bound.

    Equivalent: at each bound at least `i` values have come. The count is a Poisson process given
    that `n` come in all (Moscovich & Nadler, Statistics & Probability Letters 2017); its law is
    carried from bound to bound.
    """
    law = np.ones(1)
    low = 0
    time = 0.0
    for rank, bound in zip(ranks, bounds, strict=True):
        rate = n * (bound - time)
        first = (
            int(rate - 9 * np.sqrt(rate)) if rate > LONG else 0
        )  # fewer arrivals hold less than 1e-18
        steps = np.arange(first, int(rate + 9 * np.sqrt(rate)) + 25)
        arrivals = _poisson(steps, rate)
        low += first
        is_short = min(law.size, steps.size) < SHORT
        law = np.convolve(law, arrivals) if is_short else fftconvolve(law, arrivals).clip(0)
        # too few by now: the band is left. Far more than expected: such paths hold less than 1e-15
        high = min(n, int(n * bound + 9 * np.sqrt(n * bound * (1 - bound))) + 30)
        law = law[max(int(rank) - low, 0) : high - low + 1]
        low = max(int(rank), low)
        time = float(bound)
    left = n - low - np.arange(law.size)
    whole = float((law * _poisson(left, n * (1 - time))).sum())
    if n > MANY:
        return whole * float(np.sqrt(2 * np.pi * n) * np.exp(1 / (12 * n)))  # off by 1 / (360 n^3)
    return whole / float(_poisson(np.array([n]), n)[0])


def _poisson(counts: NDArray[np.intp], rate: float) -> Floats:
    """Poisson probabilities of counts, without the checks of SciPy's law, which take longer than this."""
    return np.asarray(np.exp(xlogy(counts, rate) - rate - gammaln(counts + 1.0)))


def betting_cvar(
    values: Floats, mass: float, top: float, confidence: float, random_state: RandomState = None
) -> float:
    """Upper bound for the mean of the worst `mass`, for this one mass, by betting against larger ones.

    A bettor stakes on `(V - q)_+` staying under `mass * (tau - q)`, where `q` and the stakes depend
    on rows already seen. If the mean of the worst `mass` were `tau` or more, no stakes could be
    expected to gain, whatever `q` (Rockafellar & Uryasev 2000); so where the capital ever reaches
    `1 / (1 - confidence)`, `tau` is refuted (Ville).
    """
    order = generator(random_state).permutation(values)
    pivots, stakes = _bets(order, mass, top, confidence)
    excess = np.maximum(order - pivots, 0.0)
    goal = -np.log1p(-confidence)

    def is_refuted(tau: float) -> bool:
        gains = np.log1p(-stakes * (excess - mass * (tau - pivots)))
        return bool(np.cumsum(gains).max() >= goal)

    # stakes do not depend on tau, so the capital rises with it and one bisection finds the least
    # tau refuted
    low = 0.0
    high = top
    if not is_refuted(high):
        return top
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if is_refuted(middle) else (middle, high)
    return high


def _bets(order: Floats, mass: float, top: float, confidence: float) -> tuple[Floats, Floats]:
    """Pivot and stake of each row, shape (n,), from the rows before it."""
    n = order.size
    # the stake at which capital is expected to grow most by row n, were the excess normal
    unit = np.sqrt(-2 * np.log1p(-confidence) / n)
    pivots = np.empty(n)
    stakes = np.empty(n)
    start = 0
    while start < n:
        stop = min(n, max(start + 1, int(start * BLOCK_GROWTH)))
        # two rows at the ends stand in for what is not known at the start
        seen = np.concatenate(([0.0, top], order[:start]))
        pivot = 0.0 if mass == 1 else float(np.quantile(seen, 1 - mass))
        spread = float(np.maximum(seen - pivot, 0.0).std())
        # the capital stays positive for every tau in [0, top]
        most = 0.9 / (top - pivot + mass * pivot)
        pivots[start:stop] = pivot
        stakes[start:stop] = min(unit / spread, most) if spread > 0 else most
        start = stop
    return pivots, stakes


def share_interval(hits: int, n: int, confidence: float) -> tuple[float, float]:
    """Two-sided Clopper-Pearson interval for a probability from `hits` of `n` trials."""
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, hits, n - hits + 1)) if hits > 0 else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0
    return low, high


def share_bound(hits: int, n: int, confidence: float) -> float:
    """Upper Clopper-Pearson bound for a probability from `hits` of `n` trials."""
    return float(beta.ppf(confidence, hits + 1, n - hits)) if hits < n else 1.0


def error_interval(pit: Floats, confidence: float) -> tuple[float, float]:
    """Interval for the W1 calibration error from one independent PIT per row, by a two-sided DKW band.

    The true CDF lies in the band with the stated confidence; the interval holds the least and the
    largest distance to uniform that any CDF in the band can have.
    """
    rising = np.sort(pit)
    share = np.arange(rising.size + 1) / rising.size
    return _error_interval(
        np.concatenate(([0.0], rising, [1.0])), share, share, rising.size, confidence
    )


def binned_error_interval(counts: Counts, confidence: float) -> tuple[float, float]:
    """`error_interval` from counts of PITs in equal bins of [0, 1], each with its right end.

    Within a bin the share of PITs at or below a point lies between the shares at the ends of the
    bin: the band is that much higher. A bin that holds a share `p` moves either end of the interval
    by at most `p` times its width, so all bins together move it outwards by at most the width of
    one.
    """
    n = int(counts.sum())
    ends = np.linspace(0.0, 1.0, counts.size + 1)
    share = np.append(0, np.cumsum(counts)) / n
    return _error_interval(ends, share[:-1], share[1:], n, confidence)


def binned_distance(counts: Counts) -> float:
    """W1 to uniform, 0 to 1/2, of the law with these counts in equal bins of [0, 1], uniform within each."""
    bins = counts.size
    total = int(counts.sum())
    # at each edge: bins times the count at or below it, less what is expected; whole numbers, exact
    # up to 2^53
    deviations = (bins * np.append(0, np.cumsum(counts)) - total * np.arange(bins + 1)).astype(
        np.float64
    )
    left = deviations[:-1]
    right = deviations[1:]
    # under a line from a to b with s = |a| + |b| the area is (s + (a + b)^2 / s) / 4, whether it
    # crosses 0 or not
    size = np.abs(left) + np.abs(right)
    both = left + right
    area = float((size + both * (both / np.maximum(size, 1.0))).sum()) / 4
    return min(area / bins / (bins * total), 0.5)


def _error_interval(
    ends: Floats, least: Floats, most: Floats, n: int, confidence: float
) -> tuple[float, float]:
    """Interval from the least and the largest share of `n` PITs at or below any point between two ends."""
    margin = np.sqrt(np.log(2 / (1 - confidence)) / (2 * n))
    lower = np.maximum(least - margin, 0.0)
    upper = np.minimum(most + margin, 1.0)
    left = ends[:-1]
    right = ends[1:]
    # on a step the band is [lower, upper]; the least distance is that to the band, the largest that
    # to its far side
    nearest = _positive_part(lower, left, right, falling=True) + _positive_part(
        upper, left, right, falling=False
    )
    middle = (lower + upper) / 2
    farthest = (upper - lower) / 2 * (right - left) + _absolute(middle, left, right)
    return float(nearest.sum()), min(float(farthest.sum()), 0.5)


def _absolute(level: Floats, left: Floats, right: Floats) -> Floats:
    """Integral of `|level - c|` over `[left, right]`."""
    return _positive_part(level, left, right, falling=True) + _positive_part(
        level, left, right, falling=False
    )


def _positive_part(level: Floats, left: Floats, right: Floats, *, falling: bool) -> Floats:
    """Integral over `[left, right]` of `(level - c)_+` if falling, else of `(c - level)_+`."""
    cut = np.clip(level, left, right)
    if falling:
        return np.asarray(((level - left) ** 2 - (level - cut) ** 2) / 2 * (level > left))
    return np.asarray(((right - level) ** 2 - (cut - level) ** 2) / 2 * (right > level))
