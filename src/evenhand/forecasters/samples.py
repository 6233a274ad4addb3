"""Distributions of samples: of residuals, as quantiles, and of PITs, as maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from evenhand._validate import Floats, Ints, Mask, Pair
from evenhand.calibration import Cells, Reading, calibration_error, divided, mean_sizes, n_effective
from evenhand.distributions import Quantiles, count_below, entries

T = TypeVar("T")

# a knot costs about 1 / (2n) nats, so knots closer than that would cost more than they gain
LEAST_STEP = 1.5
"""Smallest ratio of the ranks of neighboring knots in a tail."""

# the estimate has a relative standard error of 0.35; more values would reach too far into the
# distribution
N_EXCESSES = 8
"""Number of extreme values that determine the mean length of an exponential tail."""

CLEAR = 2.0
"""Number of paired standard errors by which a candidate must be better."""

STUB = 0.1
"""Share of the probability of a tail between its first knot and the last value of the sample."""


def residual_distribution(residuals: Floats, weight: Floats) -> Quantiles:
    """Return the distribution of residuals: quantiles with exponential tails.

    There are `2 n^(2/5)` quantiles at equal steps of probability, and in each tail the values of
    rank 1, 2, 4, ... from the end. All are at plotting positions i / (n + 1), so that a new
    residual is outside of an interval as often as stated. Beyond the extreme residuals, each tail
    is exponential with the mean excess of the eight extreme residuals.
    """
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


def clearly_best(
    candidates: Sequence[T], losses: Callable[[T], Floats], weight: Floats, clear: float = CLEAR
) -> T:
    """Return the last candidate that was clearly better than the one chosen before it.

    Its losses, shape (n,), must be smaller by `clear` paired standard errors.
    """
    best, *others = candidates
    own = losses(best)
    for candidate in others:
        smaller = losses(candidate)
        gain = weight * (own - smaller)
        if gain.sum() > clear * np.sqrt((gain**2).sum()):
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
    return (np.cumsum(mass) - mass / 2 + 0.5) / (n + 1)


def plotting_positions(sample: Floats, weight: Floats) -> Pair:
    """Return sorted distinct values and their plotting positions i / (n + 1), averaged over ties.

    A new value is below the i-th with probability i / (n + 1), so quantiles at these positions are
    exceeded as often as stated.
    """
    place, which = np.unique(sample, return_inverse=True)
    mass = np.asarray(np.bincount(which, weights=weight), dtype=float)
    return place, positions(mass, n_effective(weight))


def tail_knots(share: Floats, n: float, outermost: float) -> tuple[Ints, Ints]:
    """Return the indices of plotting positions that serve as additional knots of both tails.

    These are the positions of ranks 1, 2, 4, ... of `n` effective rows from either end, up to the
    outermost knot at equal steps of probability, `outermost` or 1 less it. Without them the extreme
    quantiles are extrapolated from an interval that reaches far into the distribution, and are too
    close to the center where tails are heavy.
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
    return at[share[at] * LEAST_STEP <= outermost * (1 + 1e-9)]


def mean_excess(ordered: Floats, weight: Floats) -> float:
    """Return the mean distance of the lowest values of a sample from the next value above them.

    For an exponential tail this is the maximum likelihood estimate of its mean length.
    """
    # at most a quarter of a small sample is its tail
    n = n_effective(weight)
    n_tail = min(N_EXCESSES, max(1.0, n / 4))
    rank = positions(weight, n) * (n + 1)
    n_lowest = min(int(np.searchsorted(rank, n_tail + 0.5)), ordered.size - 1)
    if n_lowest < 1:
        return 0.0
    lowest = slice(0, n_lowest)
    return np.average(ordered[n_lowest] - ordered[lowest], weights=weight[lowest])


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
    return np.interp(levels, (share - 0.5 * weight[order]) / share[-1], values[order])


LEAST_GAIN = 0.05
"""Smallest gain in nats, of all rows together, for another step of an EM algorithm."""

# --- PITs of held-out outcomes as cells (outcomes: 2, 5)

# Maps are estimated from the likelihood of the cells, and errors average over the positions within
# them. Only tests use one position per row. Rows of which the position is unknown are lost: their
# outcome is only known to be beyond a time, and their cells reach to 1. Errors are then those of
# the Kaplan-Meier estimate, as an average over the positions would dilute them.

LEAST_WIDTH = 1e-9
"""Width below which a cell is treated as a point, as sums of its density would lose digits."""

LEAST_RISK = 1e-12
"""Share of rows at risk below which there is none but for rounding errors."""


def pit_cells(low: Floats, high: Floats, lost: Mask) -> Cells:
    """Return PITs as cells with fixed positions, so that fits to the same rows agree."""
    ties = np.random.default_rng(0).uniform(size=low.size)
    # a cell of a row that is lost is never a point, which would be a known outcome
    low = np.where(lost, np.minimum(low, 1 - 2 * LEAST_WIDTH), low)
    reading = np.where(lost, Reading.UNKNOWN, Reading.AVERAGED)
    return Cells(low, np.maximum(low, high), ties=ties, reading=reading)


def ends_of(pit: Cells) -> tuple[Floats, Floats, Mask]:
    """Return the ends of cells, shape (n,), and which of them are not points."""
    low, high = pit.low.ravel(), pit.high.ravel()
    return low, high, high - low > LEAST_WIDTH


def mapped(pit: Cells, edges: Floats, values: Floats, which: Ints) -> tuple[Cells, Floats]:
    """Apply one of several increasing, piecewise linear maps to the ends of each row's cell.

    The knots `edges`, the same for all maps or those of each, increase from 0 to 1; `values` of
    shape (n_maps, k) are the maps there, and `which` has the number of each row's map. Each row
    keeps its position in the mapped cell. Also returns the gain in log score of each row: the
    logarithm of the map's slope at a point, at a knot above it, and of its mean slope over a cell.
    """
    low, high, log_slope = CellsInGrid(pit, which, edges).under(values)
    if pit.are_points:
        return Cells(low), log_slope
    ties = np.clip(divided(pit.drawn - pit.low, pit.high - pit.low).ravel(), 0.0, 1.0)
    return Cells(low, np.maximum(low, high), ties=ties, reading=pit.reading), log_slope


def error_of(pit: Cells, weight: Floats) -> float:
    """Return the W1 distance of weighted PITs from uniform.

    With rows that are lost, it is the distance of their Kaplan-Meier estimate.
    """
    if not pit.unknown.any():
        return calibration_error((pit.low, pit.high), weight)
    at, left, right = distribution_of(pit, weight)
    # the difference to uniform is linear between neighboring ends of cells
    return float(np.diff(at) @ mean_sizes(right[:-1] - at[:-1], left[1:] - at[1:]))


def distribution_of(pit: Cells, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the distribution of weighted PITs, averaged over the positions: a mean of ramps.

    With rows that are lost, it is the Kaplan-Meier estimate, which assumes that being lost is
    independent of the outcome's PIT. Beyond the last row it continues linearly to 1. Returns the
    ends of cells, from 0 to 1, and the probabilities below and up to each; between ends it is
    linear.
    """
    share = weight / weight.sum()
    low, high, wide = ends_of(pit)
    at = np.unique(np.concatenate(([0.0, 1.0], low, high[wide])))
    begin = np.searchsorted(at, low)
    known = wide & ~pit.unknown
    end = np.searchsorted(at, high[known])
    density = share[known] / (high - low)[known]
    change = np.bincount(begin[known], density, at.size) - np.bincount(end, density, at.size)
    jump = np.bincount(begin[~wide], share[~wide], at.size)
    ramps = np.concatenate(([0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(at))))
    right = ramps + np.cumsum(jump)
    if not pit.unknown.any():
        return at, right - jump, right
    lost = np.bincount(begin[pit.unknown], share[pit.unknown], at.size)
    return at, *_kaplan_meier(right - jump, right, np.cumsum(lost))


def _kaplan_meier(left: Floats, right: Floats, lost: Floats) -> Pair:
    """Return the Kaplan-Meier estimate of a distribution of which some rows are lost.

    `left` and `right` are the shares of all rows that are known to be below, and up to, each point,
    linear between points, and `lost` those that are lost at or before it. Returns the probabilities
    below and up to each point.
    """
    lost_before = np.concatenate(([0.0], lost[:-1]))
    before, after = 1 - left - lost_before, 1 - right - lost_before
    # where no row was at risk, probabilities of survival do not change
    remain = _ratios(after, before)
    # between points the known rows reduce the rows at risk and the survival in proportion
    inside = _ratios(before[1:], (1 - right - lost)[:-1])
    survival = np.cumprod(np.stack((np.concatenate(([1.0], inside)), remain), axis=-1).ravel())
    found_left, found_right = 1 - survival.reshape(-1, 2).T
    if 1 - right[-2] - lost[-2] <= LEAST_RISK:
        found_left[-1] = 1.0
    found_right[-1] = 1.0
    return found_left, found_right


def _ratios(after: Floats, before: Floats) -> Floats:
    at_risk = before > LEAST_RISK
    ratio = np.maximum(after, 0.0) / np.where(at_risk, before, 1.0)
    # of rows that have all ended, a rounding error is left
    return np.where(at_risk, np.where(after > LEAST_RISK, ratio, 0.0), 1.0)


class CellsInGrid:
    """Cells of PITs in the grids of piecewise linear maps.

    `which` has the number of each row's map. The knots `edges`, shape (k + 1,) or of each map,
    go from 0 to 1. Values of the maps there have the shape (n_maps, k + 1).
    """

    def __init__(self, pit: Cells, which: Ints, edges: Floats) -> None:
        last = edges.shape[-1] - 2
        start, stop, self.is_wide = ends_of(pit)
        self.first = np.clip(count_below(edges, start, row=which) - 1, 0, last)
        self.last = np.clip(count_below(edges, stop, left=True, row=which) - 1, self.first, last)
        self.beyond = (
            start - entries(edges, self.first, which),
            stop - entries(edges, self.last, which),
        )
        self.width, self.which, self.edges = stop - start, which, edges

    def under(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Return both ends under the maps, and the gain in log score of each row, each (n,).

        The gain is the logarithm of the map's slope at a point, at a knot above it, and of its mean
        slope over a cell.
        """
        which, slopes = self.which, np.diff(values) / np.diff(self.edges)
        low, high = (
            np.minimum(values[which, at] + beyond * slopes[which, at], values[which, at + 1])
            for at, beyond in zip((self.first, self.last), self.beyond, strict=True)
        )
        slope = slopes[which, self.first]
        has_mass = self.is_wide & (high > low)
        slope[has_mass] = (high - low)[has_mass] / self.width[has_mass]
        return low, high, np.log(slope)

    def expected_counts(self, values: Floats, weight: Floats) -> Floats:
        """Return the expected weight of PITs in each cell of one grid, shape (n_maps, k).

        This is the first half of a step of the EM algorithm: within its cell, a PIT has the density
        of the map so far.
        """
        k = self.edges.size - 1
        which, first, last = self.which, self.first, self.last
        shape = values.shape[0], k
        low, high, _ = self.under(values)
        several = self.is_wide & (last > first)
        scale = np.where(several, weight, 0.0) / np.where(several, high - low, 1.0)
        in_first = np.where(several, scale * (values[which, first + 1] - low), weight)
        in_last = scale * (high - values[which, last])
        # cells of the grid between the first and the last are covered as a whole
        inner = _sums(which * (k + 1) + first + 1, scale, (shape[0], k + 1))
        inner -= _sums(which * (k + 1) + last, scale, (shape[0], k + 1))
        found = np.cumsum(inner, axis=-1)[:, :k] * np.diff(values)
        found += _sums(which * k + first, in_first, shape)
        return np.maximum(found + _sums(which * k + last, in_last, shape), 0.0)


def _sums(at: Ints, weight: Floats, shape: tuple[int, int]) -> Floats:
    """Return sums of weights by place in a flat array of this shape."""
    sums = np.bincount(at, weights=weight, minlength=shape[0] * shape[1])
    return np.asarray(sums, dtype=float).reshape(shape)


def converged(step: Callable[[Any], T], gain: Callable[[T], float], start: Any, most: int) -> T:
    """Repeat a step of an EM algorithm, at most so often, until it gains less than `LEAST_GAIN`.

    Gains are in nats, of all rows together.
    """
    found = step(start)
    last = gain(found) if most > 1 else 0.0
    for _ in range(most - 1):
        found = step(found)
        before, last = last, gain(found)
        if last < before + LEAST_GAIN:
            break
    return found


# --- the map of one group of rows

# a map of 50 rows has 10 knots, each with a standard error of at most 0.07
FEWEST_ROWS = 50
"""Fewest rows of a disjoint group for a map that is not shrunk towards that of all rows."""

MOST_EM = 100
"""Largest number of steps of the EM algorithm for outcomes with atoms."""

# where most rows are lost, a few would determine the density of much probability
SPARSE = 2.0
"""Largest ratio of the probability of an interval of the upper tail to its observed rows."""

FEWEST_PASSED = 10
FEW_LEFT = 3
"""Fewest rows that are lost beyond the last observed row for a knot there, and how many of them are
at or beyond the knot."""

LEAST_PIT = 1e-12
"""PITs closer than this to 0, to 1 or to each other count as tied, as floats are rounded."""


def learn_map(pit: Cells, weight: Floats) -> Pair:
    """Return the knots of a map: the isotonic distribution of PITs, with more knots in both tails.

    Values are at equal steps of probability, and at ranks 1, 2, 4, ... from either end. On a
    calibrated base the map costs about n_knots / (2 n) nats.
    """
    if not pit.are_points:
        return _learn_map_of_cells(pit, weight, *_first_knots(pit, weight))
    place, share = plotting_positions(np.clip(pit.low.ravel(), LEAST_PIT, 1 - LEAST_PIT), weight)
    n = n_effective(weight)
    n_steps = n_cells(n)
    values = np.arange(1, n_steps) / n_steps
    levels = np.interp(values, closed(share), closed(place))
    lower, upper = tail_knots(share, n, values[0])
    levels, values = _joined(
        np.concatenate((place[lower], levels, place[upper])),
        np.concatenate((share[lower], values, share[upper])),
    )
    return closed(levels), closed(values)


def _first_knots(pit: Cells, weight: Floats) -> Pair:
    """Return the knots of the distribution of cells, the first step of the EM algorithm.

    With rows that are lost, each interval has about the same number of rows that are not: the map
    has no more detail where most rows are lost. Its values are those of the Kaplan-Meier estimate.
    In the upper tail, intervals need as many rows as without rows that are lost, within `SPARSE`.
    Beyond the last observed row, one knot separates what rows that are lost have passed.
    """
    n = n_effective(weight)
    at, left, right = distribution_of(pit, weight)
    if not pit.unknown.any():
        # one more row with a uniform PIT, as for plotting positions i / (n + 1)
        share = (n * (left + right) / 2 + at) / (n + 1)
        values = _even_and_tail_values(n)
        return _joined(np.interp(values, share, at), values)
    seen, low = ~pit.unknown, pit.low.ravel()
    if not seen.any():
        return np.empty(0), np.empty(0)
    n = n_effective(weight[seen])
    place, share_seen = plotting_positions(pit.drawn[seen, 0], weight[seen])
    share = (n * (left + right) / 2 + at) / (n + 1)
    wanted = _even_and_tail_values(n)
    levels = np.interp(wanted, closed(share_seen), closed(place))
    values = np.interp(levels, at, share)
    is_inner = wanted <= 1 - (1 - 1e-9) / n_cells(n)
    is_dense = np.diff(values, prepend=0.0) <= SPARSE * np.diff(wanted, prepend=0.0)
    levels = levels[is_inner | is_dense]
    passed = low[pit.unknown & (low > place[-1])]
    if passed.size >= FEWEST_PASSED:
        levels = np.append(levels, np.partition(passed, -FEW_LEFT)[-FEW_LEFT])
    return _joined(levels, np.interp(levels, at, share))


def _even_and_tail_values(n: float) -> Floats:
    """Return values at equal steps of probability, and at ranks 1, 2, 4, ... from either end."""
    n_steps = n_cells(n)
    tail = 2.0 ** np.arange(max(0, np.log2((n + 1) / n_steps / LEAST_STEP))) / (n + 1)
    return np.concatenate((tail, np.arange(1, n_steps) / n_steps, 1 - tail[::-1]))


def _learn_map_of_cells(pit: Cells, weight: Floats, levels: Floats, values: Floats) -> Pair:
    """Return the knots of the map with the largest likelihood of cells, `M(high) - M(low)`.

    Its self-consistency is calibration on average: if a PIT has the density of the map within its
    cell, the mean over rows is the map itself, so that randomized PITs of the recalibrated
    forecasts are uniform. Of points and rows that are lost, this is the Kaplan-Meier estimate
    (Efron 1967). The distribution of PITs before recalibration is the first step of the EM
    algorithm, and the prior: half a row for each interval between knots, on average.
    """
    n = n_effective(weight)
    inside = (levels > LEAST_PIT) & (levels < 1 - LEAST_PIT)
    levels, values = closed(levels[inside]), closed(values[inside])
    prior = np.diff(values)
    one_map = np.zeros(pit.n_samples, dtype=int)
    cells = CellsInGrid(pit, one_map, levels)
    weight = weight * (n / weight.sum())
    pseudo = prior.size / 2
    prior = pseudo * prior
    if pit.unknown.any():
        observed = np.histogram(pit.drawn[~pit.unknown], levels)[0]
        prior = np.where(observed > 0, prior, np.maximum(prior, 0.5))
        pseudo = float(prior.sum())

    def step(values: Floats) -> Floats:
        counts = cells.expected_counts(values[None], weight)[0]
        found = (counts + prior) / (counts.sum() + pseudo)
        return closed(np.cumsum(found)[:-1])

    def gain(values: Floats) -> float:
        return float(weight @ cells.under(values[None])[2])

    return levels, converged(step, gain, values, MOST_EM)


def closed(knots: Floats) -> Floats:
    """Return inner knots with the ends 0 and 1."""
    return np.concatenate(([0.0], knots, [1.0]))


def _joined(levels: Floats, values: Floats) -> Pair:
    """Merge knots at nearly the same level into their mean, so that the map has no jumps."""
    which = np.cumsum(np.diff(levels, prepend=-np.inf) > LEAST_PIT) - 1
    count = np.bincount(which)
    return np.bincount(which, weights=levels) / count, np.bincount(which, weights=values) / count


def shrunk(own: Pair, pooled: Pair, n: float) -> Pair:
    """Shrink the map of a group of n rows towards that of all rows by its standard error.

    `D^2` is the mean squared distance of the maps, over the PITs that the pooled map makes uniform.
    Its mean is `1 / (6 n)` in a group without differences, the squared standard error of a
    distribution function. The share of the own map is `(1 - 1 / (6 n D^2))^2`, and 0 below: by
    simulation, the square halves the cost where nothing differs, and keeps the gains.
    """
    levels = np.union1d(pooled[0], own[0])
    whole, part = np.interp(levels, *pooled), np.interp(levels, *own)
    # the difference is linear between the knots
    start, stop = (part - whole)[:-1], (part - whole)[1:]
    distance = float(np.diff(whole) @ (start**2 + start * stop + stop**2)) / 3
    share = max(0.0, 1 - 1 / (6 * n * distance)) ** 2 if distance > 0 else 0.0
    if share == 0:
        return pooled
    levels, values = _joined(levels[1:-1], ((1 - share) * whole + share * part)[1:-1])
    return closed(levels), closed(values)


def refined(levels: Floats, values: Floats, n_knots: int) -> Pair:
    """Return the same map with knots added on its longest segment, up to `n_knots`."""
    # so that the maps of several groups fit into one array
    missing = n_knots - levels.size
    at = np.argmax(np.diff(levels))
    share = np.arange(1, missing + 1) / (missing + 1)
    added = (knots[at] + share * (knots[at + 1] - knots[at]) for knots in (levels, values))
    more_levels, more_values = added
    return np.insert(levels, at + 1, more_levels), np.insert(values, at + 1, more_values)


# --- several maps

IDENTITY: Floats = np.array([0.0, 1.0])
"""Levels and values of the map that changes nothing."""


def stacked(maps: Sequence[Pair]) -> Pair:
    """Return the knots of several maps as arrays of shape (n_maps, n_knots)."""
    n_knots = max(levels.size for levels, _ in maps)
    levels, values = zip(*(refined(*one, n_knots) for one in maps), strict=True)
    return np.stack(levels), np.stack(values)
