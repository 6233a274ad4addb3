"""Sums over groups of 0/1 outcomes and their probabilities, and exact tests and bounds from them.

Given the forecasts, the outcomes are independent events. Tails of their number are at most binomial
(Hoeffding, Annals of Mathematical Statistics 27, 1956, theorem 4), and tails of weighted sums at
most those of Hoeffding (JASA 58, 1963, theorem 3): in groups of any size, however rare the events.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import special

from evenhand._validate import Floats
from evenhand.calibration.intervals import Interval, binomial_intervals

EVENT_NAMES = (
    "probability",
    "excess",
    "excess squares",
    "variance",
    "tilt",
    "tilt variance",
)
"""Values of each row with a probability `P` of its event `Y`: `P`, `Y - P` and its
square, the variance `P (1 - P)`, the spread of the PIT averaged over its cell, its variance."""

MOST_TILT = 0.25
"""Largest absolute spread of one person: the mean of `|u - 1/2|` over a cell lies in [0, 1/2]."""


def event_values(events: tuple[Floats, Floats]) -> Floats:
    """Return the values named in `EVENT_NAMES`, shape (6, n), of events and their probabilities.

    With `g(c)` the mean of `|u - 1/2|` over `u` in [0, c], the spread `|u - 1/2| - 1/4` averaged
    over the cell [0, 1 - P] or [1 - P, 1] is `(g(P) - g(1 - P)) (Y - P)`: its mean is 0 if the
    probability is right.

    Examples
    --------
    >>> event_values((np.array([1.0]), np.array([0.5])))[:, 0]
    array([0.5 , 0.5 , 0.25, 0.25, 0.  , 0.  ])
    """
    happened, p = events
    excess = happened - p
    variance = p * (1 - p)
    weight = _mean_distance(p) - _mean_distance(1 - p)
    tilt = weight * excess
    return np.stack([p, excess, excess**2, variance, tilt, weight**2 * variance])


def _mean_distance(c: Floats) -> Floats:
    """Return the mean of `|u - 1/2|` over `u` in [0, c]."""
    over = np.maximum(c, 0.5)
    beyond = (0.125 + (over - 0.5) ** 2 / 2) / over
    return np.asarray(np.where(c <= 0.5, 0.5 - c / 2, beyond))


def level_tails(n: Floats, sums: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Return bounds of the probabilities of as few, and of as many, events under true forecasts.

    Each is the smaller of a binomial tail and of a bound from the variance of the sum, which is far
    below the binomial one where the probabilities differ much. Both hold for every number of
    events, so the smaller is a valid one-sided p-value.

    Parameters
    ----------
    n : ndarray of shape (g,)
        Number of rows of each group.
    sums : mapping of str to ndarray of shape (g,)
        Sums named in `EVENT_NAMES`.
    """
    expected = np.clip(sums["probability"], 0.0, n)
    count = np.clip(np.rint(sums["excess"] + sums["probability"]), 0.0, n)
    excess = count - expected
    few = np.minimum(
        most_events(n - count, n, n - expected), most_tail(-excess / n, sums["variance"] / n, n)
    )
    many = np.minimum(
        most_events(count, n, expected), most_tail(excess / n, sums["variance"] / n, n)
    )
    return few, many


def most_events(count: Floats, n: Floats, expected: Floats) -> Floats:
    """Return an upper bound of the probability of at least `count` of `n` independent events.

    It is the binomial tail if the count exceeds the expected number by at least 1, whatever the
    probabilities of the single events (Hoeffding 1956). One event or more has at most the expected
    number as its probability. Otherwise the bound is 1.

    Examples
    --------
    >>> most_events(np.array([1.0, 3.0]), np.array([4.0, 4.0]), np.array([0.5, 2.0]))
    array([0.5   , 0.3125])
    """
    far = (count >= expected + 1) & (count >= 1)
    share = np.clip(expected / n, 0.0, 1.0)
    binomial = special.betainc(np.maximum(count, 1.0), n - count + 1, share)
    bound = np.where(far, binomial, 1.0)
    return np.asarray(np.where(count == 1, np.minimum(expected, 1.0), bound))


def most_tail(excess: Floats, variance: Floats, n: Floats) -> Floats:
    """Return Hoeffding's bound for a mean of `n` centred variables of at most 1 to be this large.

    Parameters
    ----------
    excess, variance, n : ndarray of shape (g,)
        Mean of the variables, mean of their variances and their number.
    """
    # differences of sums leave rounding errors, which are no deviation
    t = np.where(excess > 1e-12, excess, 0.0)
    return np.asarray(np.exp(-n * two_point_entropy(t, np.maximum(variance, 0.0))))


def two_point_entropy(t: Floats, variance: Floats) -> Floats:
    """Return the entropy of the two-point variable that exceeds its mean by `t` most likely.

    Its values exceed their mean by 1 or fall below it by `variance`: no variable with that variance
    that exceeds its mean by at most 1 has heavier tails in Hoeffding's bound.
    """
    p = np.minimum((t + variance) / (1 + variance), 1.0)
    q = variance / (1 + variance)
    return np.asarray(special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q))


def sum_tails(total: Floats, variance: Floats, most: float, n: Floats) -> tuple[Floats, Floats]:
    """Return bounds of the probabilities of as low and of as high a sum of centred variables.

    Parameters
    ----------
    total, variance : ndarray of shape (g,)
        Sums of the variables of each group and of their variances.
    most : float
        Largest absolute value of one variable.
    n : ndarray of shape (g,)
        Number of variables.
    """
    mean, squares = total / (most * n), variance / (most**2 * n)
    return most_tail(-mean, squares, n), most_tail(mean, squares, n)


def two_sided(tails: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return p-values of both tails together, and the signed normal quantiles that have them."""
    few, many = tails
    p_value = np.minimum(2 * np.minimum(few, many), 1.0)
    sign = np.where(many < few, 1.0, -1.0)
    return p_value, np.asarray(sign * np.sqrt(2) * special.erfcinv(p_value))


def rate_intervals(count: Floats, n: Floats, tail: float) -> Interval:
    """Return intervals for the mean probability of `n` independent events of which `count` occur.

    They are those of Clopper and Pearson, whose tails bound those of events with different
    probabilities (`most_events`); a single event, or a single person without one, has the
    probability `tail` where the expected number is `tail`.

    Examples
    --------
    >>> low, high = rate_intervals(np.array([0.0, 1.0]), np.array([10.0, 10.0]), 0.025)
    >>> low.round(4), high.round(3)
    (array([0.    , 0.0025]), array([0.308, 0.445]))
    """
    # binomial tails of two events or more within 1 of their mean exceed 1/4
    tail = min(tail, 0.25)
    low, high = binomial_intervals(count, count, n, tail)
    low = np.where(count == 1, np.minimum(low, tail / n), low)
    return low, np.where(n - count == 1, np.maximum(high, 1 - tail / n), high)
