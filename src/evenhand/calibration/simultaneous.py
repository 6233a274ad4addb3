"""Simultaneous confidence intervals for many groups (method: proof).

All intervals of a measure cover their true values at once with the stated confidence: each group
gets an equal share of the error probability (Bonferroni), however the groups overlap.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from evenhand._validate import Floats
from evenhand.calibration.event_sums import rate_intervals, two_point_entropy
from evenhand.calibration.group_sums import GroupRows, GroupSums, coverage_name
from evenhand.calibration.intervals import Interval, binomial_intervals

MOST_SHARE = 0.05
"""Largest share of one row in the variance of a weighted mean that has an interval."""


def simultaneous_intervals(
    sums: GroupSums, n_groups: int, level: float, *, is_tested: bool = True
) -> dict[str, Interval]:
    """Return the intervals of "error", "bias" and, by level, "coverage_80" and so on.

    Parameters
    ----------
    sums : GroupSums
        Groups, some of a family of `n_groups`.
    n_groups : int
        Number of groups whose intervals of a measure cover their true values at once.
    level : float
        Probability that they do not.
    is_tested : bool, default True
        Whether the lower end of the error is positive only where the test of the group is
        significant among all groups of the family.
    """
    tail = level / (2 * max(n_groups, 1))
    low, high = error_intervals(sums, tail)
    if is_tested:
        # tests are of one draw per person, and intervals of all
        low = np.where(sums.tests.p_value * n_groups < level, low, 0.0)
    intervals = {"error": (low, high), "bias": bias_intervals(sums, tail)}
    for share in sums.order.covered:
        intervals[coverage_name(share)] = coverage_intervals(sums, share, tail)
    return intervals


def coverage_intervals(sums: GroupSums, level: float, tail: float) -> Interval:
    """Return intervals for the coverage of a level; either end fails with probability `tail`.

    One draw per person: Clopper-Pearson. Several draws, or averages over the cells of outcomes with
    atoms: the covered shares of persons lie in [0, 1], and by Bentkus (Annals of Probability 32,
    2004) `P(S <= s) <= e P(B <= ceil(s))` for their sum `S` and a binomial `B` of the same mean;
    the interval is that of Clopper and Pearson at `tail / e`, from the sum rounded outwards. With
    weights it is that of Clopper and Pearson for the effective number of trials (Korn and Graubard
    1998), which is asymptotic.
    """
    n = sums.n
    hits = sums[f"covered {level}"]
    if sums.order.is_weighted:
        share = sums.coverage(level)
        n = _effective_trials(sums, level, share)
        return binomial_intervals(share * n, share * n, n, tail)
    if sums.order.counts_hits:
        hits = np.rint(hits)
        return binomial_intervals(hits, hits, n, tail)
    # sums of shares have rounding errors
    low = np.floor(hits + 1e-9)
    high = np.minimum(np.ceil(hits - 1e-9), n)
    return binomial_intervals(low, high, n, tail / math.e)


def _effective_trials(sums: GroupSums, level: float, share: Floats) -> Floats:
    """Return the number of trials of equal weight whose mean has the estimated variance."""
    # squares of shares v in [0, 1] are at most v: sum w^2 (v - p)^2 <= sum w^2 (v (1 - 2p) + p^2)
    squares = sums[f"w2 covered {level}"] * (1 - 2 * share) + share**2 * sums["w2"]
    variance = np.maximum(squares, 0.0) / sums.weight**2
    trials = np.divide(
        share * (1 - share), variance, out=sums.n_effective.copy(), where=variance > 1e-300
    )
    # one heavy row determines the share, and would make it look certain
    return np.minimum(trials, sums.n_effective)


def bias_intervals(sums: GroupSums, tail: float) -> Interval:
    """Return intervals for the mean residual; NaN if it is unknown.

    They are the farther ends of t-intervals and of Hall's intervals for skewed values (Journal of
    the Royal Statistical Society B 54, 1992), which are asymptotic: means of skewed residuals leave
    t-intervals much more often than stated, on one side. With weights the variance is that of the
    linearized ratio, and nothing is known where one row has more than 5% of it (verdict: 4).
    Intervals of 0/1 outcomes are `_event_bias`, which hold in groups of any size; with weights they
    are extended to `_weighted_rates`.
    """
    if not sums.order.has_residual:
        unknown = np.full(len(sums), np.nan)
        return unknown, unknown
    if sums.order.has_events and not sums.order.is_weighted:
        mean = sums["excess"] / sums.n
        deviations = np.maximum(sums["excess squares"] / sums.n - mean**2, 0.0)
        count = np.clip(np.rint(sums["excess"] + sums["probability"]), 0.0, sums.n)
        return _event_bias(sums.n, count, sums.bias, deviations, tail)
    if sums.order.is_weighted:
        n, squares, skewness = _weighted_moments(sums)
    else:
        mean = sums["residual"] / sums.n
        n, squares = sums.n, np.maximum(sums["squares"] - sums.n * mean**2, 0.0)
        skewness = _skewness(sums, mean, squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        # one row has no variance estimate: the interval is unknown, not of width 0
        scale = np.where(n >= 2, n / (n - 1), np.nan)
        error = np.sqrt(squares * scale) / sums.weight
        t = np.asarray(-special.stdtrit(np.maximum(n - 1, 1), tail), dtype=np.float64)
    low = sums.bias - np.maximum(t, _unskewed(t, skewness)) * error
    high = sums.bias + np.maximum(t, -_unskewed(-t, skewness)) * error
    if not sums.order.has_events:
        return low, high
    least, most = _weighted_rates(sums, tail)
    return np.minimum(low, least), np.maximum(high, most)


def _weighted_moments(sums: GroupSums) -> tuple[Floats, Floats, Floats]:
    """Return effective rows, and squares and skewness of weighted residuals about their mean.

    The squares are NaN where one row has most of the variance.
    """
    rows = sums.rows
    assert isinstance(rows, GroupRows)
    assert rows.weights is not None
    assert rows.residual is not None
    squares, skewness = np.empty((2, len(sums)))
    for i, mean in enumerate(sums.bias):
        some = rows.members(i)
        values = rows.weights[some] * (rows.residual[some] - mean)
        total = float((values**2).sum())
        is_known = float(values.max() ** 2) <= MOST_SHARE * total
        is_known &= float(values.min() ** 2) <= MOST_SHARE * total
        squares[i] = total if is_known else np.nan
        skewness[i] = np.clip((values**3).sum() / total**1.5, -1.0, 1.0) if total > 0 else 0.0
    return sums.n_effective, squares, skewness


def _event_bias(
    n: Floats, count: Floats, bias: Floats, deviations: Floats, tail: float
) -> Interval:
    """Return intervals for the mean of `P(Y = 1) - P` of the rows of each group, of 0/1 outcomes.

    The number of events, given the rows, has at most binomial tails: intervals of Clopper and
    Pearson for the mean probability of the event, minus the mean probability, fail with probability
    at most `tail` at either end, in groups of any size. The rows of a group differ from the people
    that they were drawn from by the variation of the errors `P(Y = 1) - P`: where `Y - P` varies
    more than binomial outcomes do, the ends are moved away in proportion to the standard deviation.

    Parameters
    ----------
    n, count : ndarray of shape (g,)
        Numbers of rows and of events.
    bias, deviations : ndarray of shape (g,)
        Mean and variance of `Y - P`.
    tail : float
        Probability that either end fails.
    """
    low, high = rate_intervals(count, n, tail)
    rate = count / n
    # that of one event, if none or all happened
    variance = np.maximum(rate * (1 - rate), (n - 1) / n**2)
    ratio = np.divide(deviations, variance, out=np.ones_like(n), where=n > 1)
    factor = np.sqrt(np.maximum(ratio, 1.0))
    return bias + factor * (low - rate), bias + factor * (high - rate)


def _weighted_rates(sums: GroupSums, tail: float) -> Interval:
    """Return intervals for the weighted rate of an event minus the mean forecast.

    The residuals of people without the event hardly vary: if nobody in a group has it, their
    variance does not limit the rate. The number of trials is the effective number of rows, which is
    asymptotic.
    """
    forecast = sums["probability"] / sums.weight
    rate = np.clip(forecast + sums["excess"] / sums.weight, 0.0, 1.0)
    trials = sums.n_effective
    low, high = binomial_intervals(rate * trials, rate * trials, trials, tail)
    return low - forecast, high - forecast


def _skewness(sums: GroupSums, mean: Floats, squares: Floats) -> Floats:
    """Return the estimated skewness of the mean residual of each group."""
    cubes = sums["cubes"] - 3 * mean * sums["squares"] + 2 * sums.n * mean**3
    # equal residuals have no skewness; their sum of squares may be a rounding error
    varies = squares > 1e-12 * sums["squares"]
    cubed = np.where(varies, squares, 1.0) ** 1.5
    return np.where(varies, np.clip(cubes / cubed, -1.0, 1.0), 0.0)


def _unskewed(t: Floats, skewness: Floats) -> Floats:
    """Return the value that Hall's transformation of a skewed t-statistic maps to `t`.

    With the skewness `k` of the mean, `T + k T^2 / 3 + k^2 T^3 / 27 + k / 6` is nearly normal; it
    is the cube of `1 + k T / 3`, apart from constants, and increases with `T`.
    """
    k = np.where(np.abs(skewness) < 1e-9, 1e-9, skewness)
    return np.asarray(3 / k * (np.cbrt(1 + k * (t - k / 6)) - 1))


def error_intervals(sums: GroupSums, tail: float) -> Interval:
    """Return intervals for the calibration error; either end fails with probability `tail`.

    That of 0/1 outcomes is the distance of event rate and mean probability, whose interval is that
    of the bias.
    """
    if not sums.order.has_events:
        return _least_error(sums, tail), _most_error(sums, tail)
    low, high = bias_intervals(sums, tail)
    least = np.maximum(np.maximum(low, -high), 0.0)
    return np.where(np.isnan(least), 0.0, least), np.maximum(np.abs(low), np.abs(high))


def _least_error(sums: GroupSums, tail: float) -> Floats:
    """Return lower ends from the level and the spread of one draw per person.

    `u` and `|u - 1/2|` are 1-Lipschitz functions, so their means differ from those of a uniform
    variable by at most the error `d`. Their squared deviations from 1/2 and 1/4 are Lipschitz with
    constants 1 and 1/2, so their variances are at most `1/12 + d` and `1/48 + d/2`. The lower end
    is the smallest `d` that a normal test of each does not reject, at a quarter of the error
    probability for each direction of each. It is positive only if the test of the group rejects.
    """
    z = -special.ndtri(tail / 4)
    prefix = "w " if sums.order.is_weighted else ""

    def least(moment: str, variance: float, slope: float) -> Floats:
        x = np.abs(sums[prefix + moment]) / sums.weight
        return least_root(x, variance, sums.n_effective, z, slope)

    low = np.maximum(least("level", 1 / 12, 1.0), least("spread", 1 / 48, 0.5))
    # one draw per person, at one position in its cell, may deviate more than their averages
    return np.minimum(low, sums.error)


def least_root(
    x: Floats | float, variance: Floats | float, n: Floats | float, z: float, slope: float
) -> Floats:
    """Return the least mean `d` that a normal test of the mean `x` of `n` values does not reject.

    The variance of a value is at most `variance + slope d`: `d` is the smaller root of
    `(x - d)^2 = z^2 (variance + slope d) / n`, or 0.

    Examples
    --------
    >>> round(float(least_root(0.0344, 0.2, 20_000, 2.5, 1.0)), 6)
    0.025996
    """
    c = z**2 / np.asarray(n)
    half = c * slope / 2
    root = x + half - np.sqrt(2 * half * x + half**2 + c * variance)
    return np.asarray(np.where(np.square(x) > c * variance, np.maximum(root, 0.0), 0.0))


def _most_error(sums: GroupSums, tail: float) -> Floats:
    """Return upper ends, in groups of any size, from a bound for means of bounded variables.

    The error `d` of a group is a mean `E T(u) - integral T` for one 1-Lipschitz function `T` that
    the distribution of PITs determines. The estimate is the largest such mean over all `T`, so it
    is at least that of this `T`: if the estimate is `t` below `d`, so is a mean of independent
    variables with range at most 1 and variance at most `v(d)`. The probability of that is at most
    `exp(-2 n t^2)` and at most `exp(-n K)` with the relative entropy `K` of `two_point_entropy`
    (Hoeffding, JASA 58, 1963, theorems 2 and 3). The upper end is the largest `d` that is not
    excluded. The choice between both bounds does not depend on the outcomes. With several draws
    the variables are means over draws of `T(u)`, and with atoms also over the cell: both have the
    same mean, no larger range and no larger variance, and both bounds remain.
    """
    n = sums.n_effective
    limit = -np.log(tail) / n
    by_range = np.sqrt(limit / 2)
    # the mean estimate under uniform PITs (method: worst groups)
    usual = np.minimum(0.313 / np.sqrt(n), 0.5)
    is_narrower = _largest_error(usual, limit) < usual + by_range
    estimate = np.minimum(sums.error + sums.slack, 0.5)
    by_variance = _largest_error(estimate, limit)
    return np.asarray(np.minimum(np.where(is_narrower, by_variance, estimate + by_range), 0.5))


def _largest_error(estimate: Floats, limit: Floats) -> Floats:
    """Return the largest error whose distance from the estimate has an entropy within the limit."""
    least = estimate
    most = np.full(estimate.shape, 0.5)
    # the entropy increases with the error: 30 halvings leave less than 1e-9
    for _ in range(30):
        middle = (least + most) / 2
        is_within = two_point_entropy(middle - estimate, most_variance(middle)) <= limit
        least = np.where(is_within, middle, least)
        most = np.where(is_within, most, middle)
    return most


def most_variance(error: Floats) -> Floats:
    """Return the largest variance of 1-Lipschitz functions of PITs with a calibration error.

    It is at most the mean of `(u - 1/2)^2`, which is largest if the outermost PITs are moved to 0
    and 1: those farther than `1/2 - sqrt(d)` from 1/2, at a cost of `d`.

    Examples
    --------
    >>> float(most_variance(np.array(0.25)))
    0.25
    """
    return np.asarray(1 / 12 + error - 2 / 3 * error**1.5)[()].clip(max=0.25)
