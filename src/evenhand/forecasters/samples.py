"""Statistics of samples: plotting positions, distributions of residuals, quantiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from evenhand._validate import Floats, Ints
from evenhand.calibration import n_effective
from evenhand.distributions import Quantiles

T = TypeVar("T")

LEAST_STEP = 1.5
"""Smallest ratio of the ranks of neighboring knots in a tail. A knot costs about 1 / (2n) nats, so
knots closer than that would cost more than they gain."""

N_EXCESSES = 8
"""Number of extreme values that determine the mean length of an exponential tail. The estimate has
a relative standard error of 0.35; more values would reach too far into the distribution."""

CLEAR = 2.0
"""Number of paired standard errors by which a candidate must be better."""

STUB = 0.1
"""Share of the probability of a tail between its first knot and the last value of the sample."""


def residual_distribution(residuals: Floats, weight: Floats | None) -> Quantiles:
    """Return the distribution of residuals: quantiles with exponential tails.

    There are `2 n^(2/5)` quantiles at equal steps of probability, and in each tail the values of
    rank 1, 2, 4, ... from the end. All are at plotting positions i / (n + 1), so that a new
    residual is outside of an interval as often as stated. Beyond the extreme residuals, each tail
    is exponential with the mean excess of the eight extreme residuals.
    """
    weight = np.ones(residuals.size) if weight is None else weight
    residuals = residuals[weight > 0]
    weight = weight[weight > 0]
    n = n_effective(weight)
    order = np.argsort(residuals)
    ordered = residuals[order]
    n_levels = n_cells(n)
    levels = (np.arange(n_levels) + 0.5) / n_levels
    values = np.interp(levels, positions(weight[order], n), ordered)
    place, share = plotting_positions(residuals, weight)
    lower, upper = tail_knots(share, n, levels[0])
    # a tied value that is an inner knot already is not a second one
    lower = lower[place[lower] < values[0]]
    upper = upper[place[upper] > values[-1]]
    levels = np.concatenate((share[lower], levels, share[upper]))
    values = np.concatenate((place[lower], values, place[upper]))
    # with a knot slightly beyond each end, the outermost interval has the density of the tail
    reach = STUB / (1 - STUB)
    low = values[0] - reach * mean_excess(ordered, weight[order])
    high = values[-1] + reach * mean_excess(-ordered[::-1], weight[order][::-1])
    ends = (1 - STUB) * levels[0], 1 - (1 - STUB) * (1 - levels[-1])
    levels = np.concatenate((ends[:1], levels, ends[1:]))
    values = np.concatenate(([low], values, [high]))
    # sorted, as rounding errors may make interpolated quantiles decrease
    return Quantiles(levels, values[None, :], sort=True)


def clearly_best(candidates: Sequence[T], losses: Callable[[T], Floats], weight: Floats) -> T:
    """Return the last candidate that was clearly better than the one chosen before it.

    Its losses, shape (n,), must be smaller by two paired standard errors.
    """
    best, *others = candidates
    own = losses(best)
    for candidate in others:
        smaller = losses(candidate)
        gain = weight * (own - smaller)
        if gain.sum() > CLEAR * np.sqrt((gain**2).sum()):
            best, own = candidate, smaller
    return best


def n_cells(n: float) -> int:
    """Return the number of cells of an equal-probability histogram, `2 n^(2/5)`.

    This number balances bias and variance of the histogram's density.
    """
    return int(np.clip(round(2 * n**0.4), 2, 200))


def positions(weight: Floats, n: float) -> Floats:
    """Return the plotting positions i / (n + 1) of sorted values with these weights.

    With unequal weights, n is the effective number of rows.
    """
    mass = weight * (n / weight.sum())
    return np.asarray((np.cumsum(mass) - mass / 2 + 0.5) / (n + 1))


def plotting_positions(sample: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return sorted distinct values and their plotting positions i / (n + 1), averaged over ties.

    A new value is below the i-th with probability i / (n + 1), so quantiles at these positions are
    exceeded as often as stated.
    """
    place, which = np.unique(sample, return_inverse=True)
    mass = np.asarray(np.bincount(which, weights=weight), dtype=np.float64)
    return place, positions(mass, n_effective(weight))


def tail_knots(share: Floats, n: float, outermost: float) -> tuple[Ints, Ints]:
    """Return the indices of plotting positions that serve as additional knots of both tails.

    These are the positions of ranks 1, 2, 4, ... from either end, up to the outermost knot at equal
    steps of probability. Without them the extreme quantiles are extrapolated from an interval that
    reaches far into the distribution, and are too close to the center where tails are heavy.

    Parameters
    ----------
    share : ndarray of shape (n,)
        Increasing plotting positions.
    n : float
        Effective number of rows.
    outermost : float
        Smallest of the equally spaced probabilities; the largest is `1 - outermost`.
    """
    lower = _lower_knots(share, n, outermost)
    upper = share.size - 1 - _lower_knots(1 - share[::-1], n, outermost)
    return lower, upper[::-1]


def _lower_knots(share: Floats, n: float, outermost: float) -> Ints:
    n_ranks = max(0, int(np.log2(outermost * (n + 1) / LEAST_STEP)) + 1)
    # a tolerance, as plotting positions are sums with rounding errors
    wanted = 2.0 ** np.arange(n_ranks) / (n + 1) * (1 - 1e-9)
    # several ranks may belong to the same tied value
    at = np.unique(np.searchsorted(share, wanted))
    at = at[at < share.size]
    return np.asarray(at[share[at] * LEAST_STEP <= outermost * (1 + 1e-9)], dtype=np.intp)


def mean_excess(ordered: Floats, weight: Floats) -> float:
    """Return the mean distance of the lowest values of a sample from the next value above them.

    For an exponential tail this is the maximum likelihood estimate of its mean length.

    Parameters
    ----------
    ordered : ndarray of shape (n,)
        Increasing values.
    weight : ndarray of shape (n,)
        Weights of the values.
    """
    # at most a quarter of a small sample is its tail
    n = n_effective(weight)
    n_tail = min(N_EXCESSES, max(1.0, n / 4))
    rank = positions(weight, n) * (n + 1)
    n_lowest = min(int(np.searchsorted(rank, n_tail + 0.5)), ordered.size - 1)
    if n_lowest < 1:
        return 0.0
    lowest = slice(0, n_lowest)
    return float(np.average(ordered[n_lowest] - ordered[lowest], weights=weight[lowest]))


# --- smallest difference of outcomes


def smallest_gap(y: Floats) -> float:
    """Return the smallest distance of different outcomes, the step if outcomes are rounded.

    The distance is 0 if all outcomes are equal.
    """
    distinct = np.unique(y)
    return float(np.diff(distinct).min()) if distinct.size > 1 else 0.0


# --- statistics of weighted rows


def weighted_quantiles(values: Floats, weight: Floats, levels: Sequence[float]) -> Floats:
    """Return quantiles of weighted values, interpolated between the midpoints of their weights."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order])
    middles = (share - 0.5 * weight[order]) / share[-1]
    return np.asarray(np.interp(levels, middles, values[order]))
