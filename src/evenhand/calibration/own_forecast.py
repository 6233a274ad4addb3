"""Calibration given the forecast itself: groups by its level and spread, tests and sizes.

Errors of opposite sign cancel in pooled PITs and in pooled rates. By convexity of W1 the error of
all people is at most the mean error `D` of people with the same forecast, and for every function
`c(f)` of the forecast with values from -1 to 1, `|E c(f) (u - 1/2)|` and `|E c(f) (|u - 1/2| -
1/4)|` are at most `D`; for 0/1 outcomes `|E c(p) (Y - p)| <= E |r(p) - p|` (verdict: 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration.bands import last_within
from evenhand.calibration.errors import n_effective
from evenhand.calibration.events import (
    event_p_value,
    mid_ranks,
    rank_parts,
    rate_intervals,
    trend_weights,
    two_point_entropy,
)
from evenhand.calibration.group_sums import (
    least_root,
    least_variances,
    weighted_p_value,
)

MOST_PARTS = 10
"""Largest number of groups by one value of the forecast."""

LEAST_ROWS = 150
"""Fewest rows, or effective rows, per group by the forecast."""

CHANCE = 0.313
"""Mean W1 error of the empirical distribution of n uniform PITs, times `sqrt(n)`."""


@dataclass(frozen=True)
class GivenForecast:
    """Mean error of people with the same forecast, and tests that it is 0.

    Parameters
    ----------
    error : float
        Estimate, 0 to 1/2, or to 1 for 0/1 outcomes, where it is the mean over people of the
        absolute difference of event rate and probability.
    low, high : float
        Interval; `low` is 0 unless the tests reject. No upper end is known but for 0/1 outcomes,
        where it is that of the mean within the groups by the forecast, and of the mean itself if
        the true rate crosses the diagonal at most twice as the probability rises.
    measured, chance : float
        Mean error of the groups by the forecast, and its mean if the forecasts are right.
    n_bins : int
        Number of groups by one value of the forecast.
    is_complete : bool
        For 0/1 outcomes, whether the groups are tenths, or one per distinct probability.
    tests : dict of str to float
        P-value of each test; that of all together is their number times the least.
    """

    error: float
    low: float
    high: float | None
    measured: float
    chance: float
    n_bins: int
    is_complete: bool
    tests: Mapping[str, float] = field(default_factory=dict)

    @property
    def p_value(self) -> float:
        """P-value of all tests together (Bonferroni)."""
        return min(1.0, len(self.tests) * min(self.tests.values()))


def n_parts(n: float) -> int:
    """Return the number of groups by the forecast for a number of rows, or of effective rows."""
    return int(np.clip(n // LEAST_ROWS, 1, MOST_PARTS))


def own_parts(values: Floats, weights: Floats | None = None) -> tuple[Ints, int]:
    """Return the group of each row by a value of its forecast, from 0, and the number of groups.

    Groups have equal numbers of rows, but equal values are in one group: some may have no row.

    Examples
    --------
    >>> parts, n = own_parts(np.repeat([0.1, 0.2, 0.6], [500, 300, 200]))
    >>> n, np.unique(parts).tolist()
    (6, [1, 3, 5])
    """
    k = n_parts(values.size if weights is None else n_effective(weights))
    return rank_parts(mid_ranks(values, weights), k), k


def rate_error(
    probability: Floats, event: Floats, share: float, weights: Floats | None = None
) -> GivenForecast:
    """Return the mean difference of event rate and probability by score (verdict: 2).

    Parameters
    ----------
    probability, event : ndarray of shape (n,)
        Probabilities of 0/1 outcomes, and the outcomes.
    share : float
        Error probability of the interval; the lower end is positive only if the tests reject at it.
    weights : ndarray of shape (n,), optional
        Sampling weights; tests and interval are then asymptotic.

    Notes
    -----
    The measured size is `T = sum_b |sum_b (y - p)| / n` over the groups by score. Its upper end
    adds the margin of one mean, as for the true signs of `r(p) - p` the mean of `s (y - p)` is one
    linear statistic, which is at most `T` if the signs are constant within groups, and at most the
    largest such mean over signs that change at most twice otherwise.

    Examples
    --------
    >>> p = np.repeat([0.2, 0.8], 500)
    >>> found = rate_error(p, (np.arange(1000) % 10 < np.repeat([3, 7], 500)).astype(float), 0.05)
    >>> round(found.measured, 3), found.p_value < 1e-6, found.low < 0.1 < found.high
    (0.1, True, True)
    """
    w = np.ones(event.size) if weights is None else weights / weights.mean()
    n, size = event.size, n_effective(w)
    rank, k = mid_ranks(probability, None if weights is None else w), n_parts(size)
    parts = rank_parts(rank, k)
    n_bins = np.unique(parts).size
    excess, variance = event - probability, probability * (1 - probability)
    measured = float(np.abs(np.bincount(parts, w * excess)).sum()) / n
    spread = np.sqrt(np.bincount(parts, w**2 * variance)).sum()
    chance = float(np.sqrt(2 / np.pi) * spread) / n
    bend = np.where(np.abs(rank - 0.5) < 0.25, -1.0, 1.0)
    patterns = np.ones(n), np.where(rank < 0.5, -1.0, 1.0), bend
    trend = trend_weights(probability, w)
    slope = trend / max(int(np.abs(trend).max()), 1)
    if weights is None:
        # where the sign is negative, the absence of the event is the event (verdict: 1)
        flipped = (np.where(bend > 0, one, 1 - one) for one in (event, probability))
        tests = {
            "level": event_p_value(event, probability),
            "trend": event_p_value(event, probability, trend),
            "bend": event_p_value(*flipped),
        }
        high = max(measured, largest_signed_mean(event, probability)) + margin_of_mean(
            event, share / 2
        )
        z = -float(special.ndtri(share / 8))
        lows = [_least_rate(event, probability, sign, share / 8) for sign in patterns]
        x = abs(float((slope * excess).mean()))
        lows.append(float(least_root(x, float((slope**2 * variance).mean()), n, z, 1.0)))
    else:
        known = least_variances(event, probability, w)
        tests = {
            name: weighted_p_value(w * c * excess, size, float((c**2 * known).sum()))[0]
            for name, c in (("level", 1.0), ("trend", trend), ("bend", bend))
        }
        if (np.abs(excess) == 1).any():
            tests["level"] = 0.0
        t, z = (-float(special.stdtrit(size - 1, share / tails)) for tails in (2, 8))
        high = measured + float(t * np.sqrt((w**2 * excess**2).sum())) / n
        lows = []
        for c in (*patterns, slope):
            values = w * c * excess
            squares = max(float((values**2).sum()), float((c**2 * known).sum()))
            lows.append((abs(float(values.sum())) - z * squares**0.5) / n)
    low = max(0.0, *lows) if len(tests) * min(tests.values()) < share else 0.0
    estimate = max(max(measured**2 - chance**2, 0.0) ** 0.5, abs(float((w * excess).mean())), low)
    is_complete = k == MOST_PARTS or n_bins == np.unique(probability).size
    high = min(high, 1.0)
    return GivenForecast(estimate, low, high, measured, chance, n_bins, is_complete, tests)


def given_forecast(
    u: Floats,
    keys: Mapping[str, Floats],
    measured: float,
    share: float,
    weights: Floats | None = None,
    pooled: float = 0.0,
) -> GivenForecast:
    """Return the mean W1 error given level and spread of the forecast, with the tests of everyone.

    Parameters
    ----------
    u : ndarray of shape (n,)
        One PIT per person.
    keys : dict of str to ndarray of shape (n,)
        Values of the forecasts by name, such as their means.
    measured : float
        Mean error of the groups by one of these values, the largest.
    share : float
        Error probability of the lower end, which is positive only if the tests reject at it.
    weights : ndarray of shape (n,), optional
        Sampling weights.
    pooled : float
        W1 error of all PITs together, which is at most the error given the forecast.

    Examples
    --------
    >>> m = np.arange(100)
    >>> u = (m * 7 % 50 + 0.5) / 50 * 0.8 + np.where(m < 50, 0, 0.2)
    >>> tests = given_forecast(u, {"mean": m}, 0.1, 0.05).tests
    >>> [round(p_value, 5) for p_value in tests.values()]
    [1.0, 0.00934, 0.00121, 0.82883]
    """
    n = u.size
    w = np.ones(n) if weights is None else weights / weights.mean()
    size = n_effective(w)
    trends = {f"trend of {name}": 2 * mid_ranks(key, weights) - 1 for name, key in keys.items()}
    n_tests = 2 + 2 * len(trends)
    tail = share / (2 * n_tests)
    z, t = -float(special.ndtri(tail)), -float(special.stdtrit(size - 1, tail))
    tests: dict[str, float] = {}
    sizes, roots = [], [0.0]
    values = {"level": (u - 0.5, 1 / 12, 1.0), "spread": (np.abs(u - 0.5) - 0.25, 1 / 48, 0.5)}
    for name, c in {"": np.ones(n), **trends}.items():
        squares = float((w * c**2).mean())
        for kind, (value, variance, slope) in values.items():
            label = kind if not name else name if kind == "level" else f"{name}, spread"
            part = w * c * value
            sizes.append(abs(float(part.sum())) / n)
            if weights is None:
                total = float(part.sum()) / (n * squares * variance) ** 0.5
                tests[label] = float(special.erfc(abs(total) / np.sqrt(2)))
                roots.append(float(least_root(sizes[-1], squares * variance, n, z, slope)))
            else:
                tests[label] = weighted_p_value(part, size)[0]
                roots.append(sizes[-1] - t * float((part**2).sum()) ** 0.5 / n)
    k = n_parts(size)
    chance = CHANCE * (k / size) ** 0.5
    # what is left of both sizes beyond chance, and the statistic that rejects: with few rows there
    # are no groups by the forecast that could show it
    squares = max(measured**2 - chance**2, pooled**2 - CHANCE**2 / size, 0.0)
    low, estimate = 0.0, squares**0.5
    if n_tests * min(tests.values()) < share:
        low = max(roots)
        estimate = max(estimate, low, min(zip(tests.values(), sizes, strict=True))[1])
    return GivenForecast(estimate, low, None, measured, chance, k, False, tests)


def largest_signed_mean(event: Floats, probability: Floats) -> float:
    """Return the largest mean of `s(p) (y - p)` over signs that change at most twice along p."""
    order = np.argsort(probability, kind="stable")
    rising = probability[order]
    sums = np.append(0.0, np.cumsum((event - probability)[order]))
    # signs change between distinct probabilities only
    sums = sums[np.r_[True, rising[1:] != rising[:-1], True]]
    best = 0.0
    for sign in (1.0, -1.0):
        value = sign * sums
        for change in (-sign, sign):
            value = np.maximum.accumulate(value - change * sums) + change * sums
        best = max(best, float(value[-1]))
    return best / event.size


def margin_of_mean(event: Floats, tail: float) -> float:
    """Return by how much the mean of signed residuals falls below its expectation at most.

    It solves `n K(m; v) = log(1 / (0.6 tail))` with the entropy of Hoeffding (JASA 58, 1963,
    theorem 3), and `v = q (1 - q)` at the end of the interval of the rate nearest to 1/2, each end
    of which fails with probability `tail / 5`.
    """
    count, n = np.array([event.sum()]), np.array([float(event.size)])
    low, high = (float(end[0]) for end in rate_intervals(count, n, tail / 5))
    v = 0.25 if low < 0.5 < high else max(low * (1 - low), high * (1 - high))
    limit = np.log(1 / (0.6 * tail)) / event.size

    def is_within(margin: Floats) -> Mask:
        return np.asarray(two_point_entropy(margin, np.array(v)) <= limit)

    return float(last_within(is_within, np.zeros(()), np.ones(()), 50))


def _least_rate(event: Floats, probability: Floats, sign: Floats, tail: float) -> float:
    """Return a lower end of the mean difference from one pattern of signs, by Clopper-Pearson."""
    y, p = (np.where(sign > 0, values, 1 - values) for values in (event, probability))
    low, high = rate_intervals(np.array([y.sum()]), np.array([float(y.size)]), tail)
    mean = float(p.mean())
    return max(float(low[0]) - mean, mean - float(high[0]), 0.0)
