"""Calibration errors of PITs, overall and per person, histogram and coverage (method: objects)."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, bdtrik

from evenhand._validate import Floats, Ints, bad_input, check_fraction
from evenhand.calibration.cells import Cells, Pit, as_cells, divided
from evenhand.draws import BLOCK_ROWS
from evenhand.results import CurvePoint, rows_from
from evenhand.tables import row_blocks

# --- W1 distances to the uniform distribution, in closed form


def quantile_distance(values: Floats, ends: Floats) -> Floats:
    """Return the integral of `|q(t) - t|` for step functions `q`, (..., k) -> (...).

    If the values are sorted PITs and the ends, shape (k + 1,), are the steps of their CDF, `q` is
    their quantile function and the integral is the W1 distance to the uniform distribution.
    """
    right = ends[1:] - values
    left = ends[:-1] - values
    # s |s| / 2 is the antiderivative of |s|; computed in place, which takes a third of the time
    size = np.abs(right)
    right *= size
    left *= np.abs(left, out=size)
    right -= left
    return right.sum(axis=-1) / 2


def middle_distances(low: Floats, high: Floats) -> Floats:
    """Return the mean of `|c - 1/2|` over each cell.

    Examples
    --------
    >>> middle_distances(np.array([0.9, 0.0]), np.array([0.9, 1.0]))
    array([0.4 , 0.25])
    """
    left, right = low - 0.5, high - 0.5
    is_across = (left < 0) & (right > 0)
    width = np.where(is_across, right - left, 1.0)
    # over a cell across 1/2 it is the mean of two triangles
    return np.where(is_across, (left**2 + right**2) / (2 * width), np.abs(left + right) / 2)


def row_distances(block: Floats) -> Floats:
    """Return the W1 distance of each row to the uniform distribution, shape (n, m) -> (n,)."""
    # the PITs of most forecasters increase with the draw, and draws are usually sorted
    is_rising = (block[:, 1:] >= block[:, :-1]).all()
    rising = block if is_rising else np.sort(block, axis=-1)
    return quantile_distance(rising, np.linspace(0.0, 1.0, block.shape[1] + 1))


def mean_sizes(start: Floats, stop: Floats) -> Floats:
    """Return the mean absolute value on the line from each start to its stop."""
    # with s = |a| + |b| and t = |a + b| it is (s + t^2 / s) / 4 whether the line crosses 0 or not;
    # 1e-300 only prevents 0 / 0
    size = np.abs(start) + np.abs(stop)
    size += (start + stop) ** 2 / (size + 1e-300)
    return size / 4


def line_distance(deviations: NDArray[Any]) -> Floats:
    """Return the integral over [0, 1] of the absolute value of a piecewise linear function.

    Its values at the edges `0, 1/bins, ...`, shape (bins, ...), are whole numbers in floating
    point; its value at 1 is 0.

    Examples
    --------
    >>> float(line_distance(np.array([0.0, 1.0]))), float(line_distance(np.array([-1.0, 1.0])))
    (0.5, 0.5)
    """
    size = np.abs(deviations)
    # as `mean_sizes`, in place; 1e-300 would be 0 in float32
    s = size[:-1] + size[1:]
    s += 1e-30
    t = deviations[:-1] + deviations[1:]
    t *= t
    t /= s
    # sum of s + t^2 / s over all lines; the term of the last line, which ends at 0, is 2 |a|
    area = 2 * size.sum(axis=0) - size[0] + size[-1] + t.sum(axis=0)
    return np.asarray(area, dtype=np.float64) / (4 * len(deviations))


def binned_error(counts: NDArray[np.int64]) -> float:
    """Return the W1 calibration error of PITs from their counts in equal bins.

    The result is the error of the distribution that is exact at the edges of the bins and uniform
    within each bin. By the triangle inequality the positions of PITs within their bins change the
    error by at most the distance between the two distributions. This distance is at most the sum,
    over bins, of the share in the bin times the distance of a distribution on the bin to the
    uniform distribution on it. The latter distance is convex in the distribution, so it is largest
    for an atom at an end of the bin, where it is half of the bin's width: with the bins of
    `PITCounts.pit` the result is within 1/12800 of the exact error.

    Parameters
    ----------
    counts : ndarray of int64
        Number of PITs in equal bins of [0, 1]; at least one.

    Returns
    -------
    float
        Between 0 and 1/2.

    Examples
    --------
    >>> from evenhand.calibration import count_pits
    >>> abs(binned_error(count_pits([0.5]).pit) - 0.25) <= 1 / 12800
    True
    """
    if not counts.any():
        raise bad_input("counts", "contain at least one person", "none")
    bins = counts.size
    total = int(counts.sum())
    # at each edge: bins times the count at or below it minus its expectation, which are whole
    # numbers, exact up to 2^53
    below = np.append(0, np.cumsum(counts[:-1]))
    deviations = bins * below - total * np.arange(bins)
    return min(float(line_distance(deviations.astype(np.float64))) / (bins * total), 0.5)


# --- exact sums of ramps: CDFs of randomized PITs, averaged over the positions in their cells
#
# The randomized PIT of an outcome with an atom is uniform on its cell `[low, high]`. Its CDF is the
# ramp `clip((c - low) / (high - low), 0, 1)`, or a step if the cell is a point (outcomes: 4.3).

NARROWEST = 1e-14
"""Width up to which a cell is replaced by its middle: PITs move by a quarter of it on average."""

NARROW = 1e-6
"""Width up to which a cell is replaced by its middle in sums at few levels, whose rounding errors
are then below 1e-9."""


def ramp_distance(low: Floats, high: Floats, weights: Floats | float) -> Floats:
    """Return W1 between weighted sums of ramps and the uniform CDF, along the last axis.

    Weights add up to 1 along the last axis. The sum is piecewise linear between the ends of the
    cells, and jumps where a cell is a point. Its slopes and values are accumulated over the sorted
    ends, in `O(k log k)`.
    """
    knots, jump, slope = _knots(low, high, weights)
    length = np.diff(knots, axis=-1, prepend=0.0)
    rise = jump.copy()
    rise[..., 1:] += slope[..., :-1] * length[..., 1:]
    # CDF minus `c` at the start of each piece, behind a jump, and at its stop, before one
    gaps = np.zeros((*knots.shape[:-1], knots.shape[-1] + 1))
    np.cumsum(rise, axis=-1, out=gaps[..., 1:])
    gaps[..., 1:] -= knots
    stop = gaps[..., 1:] - jump
    # beyond the last end the CDF is 1
    area = np.einsum("...i,...i->...", mean_sizes(gaps[..., :-1], stop), length)
    return area + (1 - knots[..., -1]) ** 2 / 2


def _knots(low: Floats, high: Floats, weights: Floats | float) -> tuple[Floats, Floats, Floats]:
    """Return the sorted ends of ramps, with the jump of their sum at each, and the slope behind."""
    width = high - low
    is_ramp = width > NARROWEST
    middle = low + width / 2
    ends = np.concatenate([np.where(is_ramp, end, middle) for end in (low, high)], axis=-1)
    order = np.argsort(ends, axis=-1)

    def by_end(at_low: Floats, at_high: Floats) -> Floats:
        return np.take_along_axis(np.concatenate((at_low, at_high), axis=-1), order, axis=-1)

    slopes = divided(weights * is_ramp, width)
    # slopes of narrow cells are up to 1e14 times those of wide ones, whose sums would lose their
    # digits. Adding and subtracting the quantum rounds to multiples of a power of 2 that have at
    # most 52 bits in any sum: they are added and removed without rounding. The rests are too small
    # for their rounding to matter
    quantum = math.ldexp(1.5, math.frexp(float(slopes.sum(axis=-1).max()))[1] + 1)
    multiples = (slopes + quantum) - quantum
    slope = np.cumsum(by_end(multiples, -multiples), axis=-1)
    slopes -= multiples
    slope += np.cumsum(by_end(slopes, -slopes), axis=-1)
    jump = by_end(np.where(is_ramp, 0.0, weights), np.zeros(low.shape))
    return np.take_along_axis(ends, order, axis=-1), jump, slope


def ramps_at(levels: Floats, low: Floats, high: Floats, *, is_below: bool = False) -> Floats:
    """Return the sum of each row's ramps at increasing levels, to within 1e-9, (n, m) -> (n, k).

    A point counts where it is at or below a level, or with `is_below` only where it is below.

    Examples
    --------
    >>> cells = np.array([[0.0, 0.5]]), np.array([[0.5, 0.5]])
    >>> ramps_at(np.array([0.25, 0.5]), *cells), ramps_at(np.array([0.5]), *cells, is_below=True)
    (array([[0.5, 2. ]]), array([[1.]]))
    """
    n, m = low.shape
    bins = levels.size + 1
    side: Literal["left", "right"] = "right" if is_below else "left"
    row = np.arange(n)[:, None] * bins

    def first_beyond(ends: Floats) -> Ints:
        return (np.searchsorted(levels, ends, side=side) + row).ravel()

    def summed(changes: Floats | None, places: Ints) -> Floats:
        sums = np.bincount(places, None if changes is None else changes.ravel(), n * bins)
        return np.asarray(sums.reshape(n, bins)[:, :-1], dtype=np.float64)

    # one array twice: there are no ramps
    if low is high:
        return np.cumsum(summed(None, first_beyond(low)), axis=-1)
    width = high - low
    is_ramp = width > NARROW
    slope = divided(is_ramp, width)
    middle = low + width / 2
    low, high = (np.where(is_ramp, end, middle) for end in (low, high))
    starts = first_beyond(low)
    stops = first_beyond(high)
    # a ramp is slope * (c - low) between its ends, and 1 beyond them
    slopes = summed(slope, starts) - summed(slope, stops)
    constants = summed(1 + slope * low, stops) - summed(slope * low, starts)
    sums = np.cumsum(slopes, axis=-1) * levels + np.cumsum(constants, axis=-1)
    return np.clip(sums, 0.0, m)


# --- calibration errors, overall and per person

BLOCK_PITS = 1 << 20
"""Number of PITs processed at once, so that temporaries need little memory."""

BLOCK_CELLS = 1 << 14
"""Number of cells of PITs processed at once."""


def calibration_error(pit: Pit, sample_weight: ArrayLike | None = None) -> float:
    """Return the exact Wasserstein-1 distance between the distribution of PITs and uniform.

    This is the expected calibration error (ECE) over all probability levels,
    `integral_0^1 |P(PIT <= c) - c| dc`: 0 is perfect, 1/2 the largest possible error. PITs of
    outcomes with atoms are averaged over their cells, exactly.

    Parameters
    ----------
    pit : Cells, array-like of shape (n,) or (n, m), or tuple (low, high) of two such arrays
        PITs between 0 and 1, or the ends of their cells: rows are people, columns are draws.
    sample_weight : array-like of shape (n,), optional
        Weights of the people.

    Returns
    -------
    float
        Between 0 and 1/2.

    References
    ----------
    Zhao, Ma & Ermon, ICML 2020, section 2 and the proposition that W1 equals ECE.

    Examples
    --------
    >>> calibration_error([0.5])
    0.25

    An event forecast with probability 0.5 that happens in one of two rows:

    >>> calibration_error(([0.0, 0.5], [0.5, 1.0]))
    0.0
    """
    cells = as_cells(pit, sample_weight=sample_weight)
    if not cells.are_points:
        low, high = (end.ravel() for end in (cells.low, cells.high))
        shares = 1 / low.size if cells.weights is None else _weights_of_draws(cells)
        return float(ramp_distance(low, high, shares))
    # in blocks: every temporary of a million people by 64 draws takes half a gigabyte
    values, weights, count = cells.drawn.ravel(), cells.weights, cells.drawn.size
    order = None if weights is None else np.argsort(values, kind="stable")
    values = np.sort(values) if order is None else values[order]
    total = done = 0.0
    for block in row_blocks(count, BLOCK_PITS):
        ends = np.arange(block.start, block.stop + 1) / count
        if weights is not None and order is not None:
            upto = np.cumsum(weights[order[block] // cells.n_draws])
            ends = np.concatenate(([done], done + upto / count))
            done = ends[-1]
        total += float(quantile_distance(values[block], ends))
    return total


def pathwise_errors(pit: Pit) -> Floats:
    """Return each person's W1 distance between PITs over draws and uniform, shape (n,), 0 to 1/2.

    The distance is exact. With one column (a deterministic forecaster) it is
    `u^2/2 + (1-u)^2/2`, which is at least 1/4, for a continuous outcome. For outcomes with atoms
    it is the distance of the PITs over draws and positions in the cells (outcomes: 2).

    Examples
    --------
    >>> pathwise_errors([[0.25, 0.75], [0.5, 0.5]])
    array([0.125, 0.25 ])

    The error of an event forecast is half its distance from the outcome:

    >>> low, high = [[0.0], [0.8]], [[0.8], [1.0]]  # probability 0.2; the second event happened
    >>> pathwise_errors((low, high))
    array([0.1, 0.4])
    """
    cells = as_cells(pit)
    if cells.are_points:
        return np.concatenate([row_distances(low) for low, _ in cells.row_blocks(BLOCK_ROWS)])
    # sums of ramps have many temporaries
    blocks = cells.row_blocks(max(1, BLOCK_CELLS // cells.n_draws))
    return np.concatenate([ramp_distance(*block, 1 / cells.n_draws) for block in blocks])


def cell_error(pit: Pit, sample_weight: ArrayLike | None = None) -> float:
    """Return the least calibration error of any positions of the PITs in their cells, or less.

    The result is `integral_0^1 dist(c, [A(c), B(c)]) dc` with `A(c) = P(high <= c)` and
    `B(c) = P(low <= c)`: at most `calibration_error`, and equal to it for continuous outcomes
    (outcomes: 2). It is the error of sets that are made of whole cells: 0 for calibrated forecasts,
    but also for many wrong ones, such as biased probabilities of an event.

    Parameters
    ----------
    pit, sample_weight
        As for `calibration_error`.

    Returns
    -------
    float
        Between 0 and 1/2.

    Examples
    --------
    An event with probability 0.5 by the forecast that always happens:

    >>> cells = [0.5, 0.5], [1.0, 1.0]
    >>> cell_error(cells), calibration_error(cells)
    (0.125, 0.25)
    """
    cells = as_cells(pit, sample_weight=sample_weight)
    weights = None if cells.weights is None else _weights_of_draws(cells)
    above = cell_excess(cells.high.ravel(), weights)
    # the mirror image of B(c) - c below 0: P(1 - low < c') - c' above 0
    return float(above + cell_excess(1 - cells.low.ravel(), weights))


def _weights_of_draws(cells: Cells) -> Floats:
    """Return the share of each draw in the total weight, shape (n m,)."""
    return np.repeat(cells.shares / cells.n_draws, cells.n_draws)


def cell_excess(ends: Floats, weights: Floats | None = None, margin: float = 0.0) -> Floats:
    """Return `integral_0^1 (P(ends <= c) - margin - c)_+ dc` of each row, (..., k) -> (...).

    Weights, of one row, add up to 1. If the rows are `1 - low` with the lower ends of PITs over
    draws, whose upper ends are 1, it is the error of these cells: only a lower end above the draw
    is wrong (outcomes: 2).
    """
    if weights is None:
        left, share = np.sort(ends, axis=-1), np.arange(1, ends.shape[-1] + 1) / ends.shape[-1]
    else:
        order = np.argsort(ends)
        left, share = ends[order], np.cumsum(weights[order])
    share = share - margin
    right = np.append(left[..., 1:], np.ones((*ends.shape[:-1], 1)), axis=-1)
    # the antiderivative of (s - c)_+ is -(s - c)_+^2 / 2
    squares = np.maximum(share - left, 0.0) ** 2 - np.maximum(share - right, 0.0) ** 2
    return squares.sum(axis=-1) / 2


def n_effective(weights: Floats) -> float:
    """Return Kish's effective sample size: rows of equal weight whose mean varies as much."""
    return float(weights.sum() ** 2 / (weights**2).sum())


# --- histogram of PITs with a simultaneous band for calibrated forecasts

HISTOGRAM_CONFIDENCE = 0.95
"""Probability that the band contains all bins of calibrated forecasts."""

HISTOGRAM_BINS = 20
"""Number of bins from 500 rows on."""


def pit_histogram(
    pit: Pit, sample_weight: ArrayLike | None = None, n_bins: int | None = None
) -> pd.DataFrame:
    """Return the share of PITs in each bin and the band of all shares under calibration.

    Parameters
    ----------
    pit : Cells, array-like of shape (n,) or (n, m), or tuple (low, high) of two such arrays
        PITs between 0 and 1, or the ends of their cells: rows are people, columns are draws.
    sample_weight : array-like of shape (n,), optional
        Weights of the people; a `Cells` has its own.
    n_bins : int, optional
        Number of equal bins of [0, 1]: by default 20, or 10 for fewer than 500 rows.

    Returns
    -------
    DataFrame
        One row per bin: its `start` and `end`, the `share` of the PITs in it, and the ends `low`
        and `high` of the band. A PIT with a cell counts in each bin by the share of the cell that
        lies in the bin. The band contains the shares of all bins with 95% probability (Bonferroni):
        exactly for one draw per person, approximately for several draws or for weights. For
        outcomes with atoms it is the band of randomized PITs; the shares are averages over these
        and vary less.

    Raises
    ------
    InputError
        If a PIT is not between 0 and 1, or the weights do not match.

    Examples
    --------
    >>> pit_histogram((np.arange(100) + 0.5) / 100, n_bins=4).round(9)
       start   end  share   low  high
    0   0.00  0.25   0.25  0.15  0.36
    1   0.25  0.50   0.25  0.15  0.36
    2   0.50  0.75   0.25  0.15  0.36
    3   0.75  1.00   0.25  0.15  0.36
    """
    cells = as_cells(pit, sample_weight=sample_weight)
    if n_bins is None:
        # each bin needs enough rows
        n_bins = HISTOGRAM_BINS if cells.n_samples >= 500 else HISTOGRAM_BINS // 2
    return histogram_table(bin_sums(cells, n_bins, cells.shares), cells.n_draws)


def bin_sums(cells: Cells, n_bins: int, weights: Floats) -> Floats:
    """Return sums over people for `histogram_table`, shape (2, n_bins); weights have shape (n,)."""
    share, variance = np.zeros((2, n_bins))
    inner = np.arange(1, n_bins) / n_bins

    def in_bins(low: Floats, high: Floats) -> Floats:
        # a point at the edge of two bins lies in the upper one
        below = ramps_at(inner, low, high, is_below=True)
        return np.diff(below, axis=-1, prepend=0.0, append=cells.n_draws) / cells.n_draws

    for rows in row_blocks(cells.n_samples, 2 * BLOCK_ROWS):
        # the band is that of drawn PITs, and shares are averages over the cells (outcomes: 4.3)
        own = cells.drawn[rows]
        part = drawn = in_bins(own, own)
        if not cells.are_points:
            part = in_bins(cells.low[rows], cells.high[rows])
        share += weights[rows] @ part
        variance += weights[rows] ** 2 @ (drawn - 1 / n_bins) ** 2
    return np.stack((share, variance))


def histogram_table(sums: Floats, n_draws: int) -> pd.DataFrame:
    """Return the histogram with the band of the shares of all bins under calibration.

    The `sums`, shape (2, n_bins), are the share of the PITs in each bin, and the sum over people of
    the squared deviation of their share in each bin from an even one, times their squared share in
    the whole.
    """
    share, variance = sums
    n_bins = variance.size
    even = 1 / n_bins
    # the mean variance over bins does not depend on how the bins are filled: for one draw per
    # person it is the true variance, so the band is exact; for several draws the outer bins vary
    # more, and a bin that varies more than the mean keeps its own variance
    pooled = np.full(n_bins, variance.mean())
    if n_draws > 1:
        pooled = np.maximum(variance, pooled)
    # number of single trials with this variance; at least 1, as even shares have no variance
    n = np.maximum(np.round(even * (1 - even) / np.maximum(pooled, 1e-12)), 1)
    outside = (1 - HISTOGRAM_CONFIDENCE) / (2 * n_bins)
    ends = np.arange(n_bins + 1) / n_bins
    return pd.DataFrame(
        {
            "start": ends[:-1],
            "end": ends[1:],
            "share": share,
            "low": binomial_quantile(outside, n, even) / n,
            "high": binomial_quantile(1 - outside, n, even) / n,
        }
    )


def binomial_quantile(level: float, n: Floats | int, p: float) -> Floats:
    """Return the smallest count whose binomial CDF is at least `level`, without `scipy.stats`."""
    trials = np.asarray(n, dtype=np.int_)
    # of events that are impossible there is no inverse
    count = np.ceil(np.nan_to_num(bdtrik(level, n, p)))
    # the inverse may be rounded up beyond the count where the CDF reaches the level
    one_less = np.maximum(count - 1, 0)
    return np.where(bdtr(one_less, trials, p) >= level, one_less, count)


# --- calibration curve with a simultaneous band

CURVE_LEVELS = np.arange(1, 20) / 20
"""Probability levels of the calibration curve."""


def calibration_curve(cells: Cells) -> tuple[CurvePoint, ...]:
    """Return the share of outcomes at or below the quantile of each level, with a 95% band.

    The band of Dvoretzky, Kiefer and Wolfowitz (Massart 1990) is simultaneous for all levels. It is
    valid for one PIT per person; it is approximate for several PITs, whose mean varies less, for
    weighted rows, and for outcomes with atoms, whose share is the mean over positions in the cells.
    """
    share = cells.shares
    observed = share @ ramps_at(CURVE_LEVELS, cells.low, cells.high) / cells.n_draws
    return curve_points(observed, n_effective(share))


def curve_points(observed: Floats, n: float) -> tuple[CurvePoint, ...]:
    """Return the calibration curve of `n` rows from the share of PITs at or below each level."""
    # from P(sup |F_n - F| > t) <= 2 exp(-2 n t^2)
    margin = float(np.sqrt(np.log(2 / (1 - HISTOGRAM_CONFIDENCE)) / (2 * n)))
    low = np.maximum(observed - margin, 0.0)
    high = np.minimum(observed + margin, 1.0)
    columns = {"level": CURVE_LEVELS, "observed": observed, "low": low, "high": high}
    return rows_from(CurvePoint, columns)


# --- coverage of central intervals


def covered(pit: Pit, level: float = 0.9) -> Floats:
    """Return the share of each person's draws whose central interval covers the outcome, (n,).

    For an outcome with an atom a draw counts by the share of its PIT's cell that lies in
    `[(1 - level) / 2, (1 + level) / 2]`, so that the mean is `level` under calibrated forecasts of
    any kind. Intervals that consist of whole outcomes cover more (`covered_whole`).

    Parameters
    ----------
    pit : Cells, array-like of shape (n,) or (n, m), or tuple (low, high) of two such arrays
        PITs between 0 and 1, or the ends of their cells: rows are people, columns are draws.
    level : float, default 0.9
        Nominal level of the central interval.

    Examples
    --------
    >>> covered([[0.5, 0.97], [0.2, 0.3]], level=0.9)
    array([0.5, 1. ])
    >>> covered(([0.0, 0.8], [0.8, 1.0]), level=0.5)  # of [0.25, 0.75], cells of 0.8 and 0.2
    array([0.625, 0.   ])
    """
    check_fraction("level", level)
    # in blocks of rows, so that temporaries need little memory
    blocks = as_cells(pit).row_blocks(BLOCK_ROWS)
    return np.concatenate([share_inside(*block, level).mean(axis=-1) for block in blocks])


def covered_whole(pit: Pit, level: float = 0.9) -> Floats:
    """Return the share of each person's draws whose interval contains the outcome, (n,).

    The interval is the central one between two quantiles, with its ends: it contains an outcome
    with an atom if the cell of the PIT reaches into `[(1 - level) / 2, (1 + level) / 2]`
    (outcomes: 4.1). Under calibrated forecasts the mean is at least `level`.

    Parameters
    ----------
    pit, level
        As for `covered`.

    Examples
    --------
    >>> covered_whole(([0.0, 0.8], [0.8, 1.0]), level=0.5)
    array([1., 0.])
    """
    check_fraction("level", level)
    cells = as_cells(pit)
    return touches(cells.low, cells.high, level).mean(axis=-1)


def share_inside(low: Floats, high: Floats, level: float) -> Floats:
    """Return the share of each cell inside the central interval of a level; a point is 0 or 1."""
    share = is_inside(low, level).astype(np.float64)
    # one array twice: there are no cells
    if low is not high:
        width = high - low
        overlap = np.minimum(high, (1 + level) / 2) - np.maximum(low, (1 - level) / 2)
        np.divide(np.maximum(overlap, 0.0), width, out=share, where=width > 0)
        np.minimum(share, 1.0, out=share)
    return share


def touches(low: Floats, high: Floats, level: float) -> NDArray[np.bool_]:
    """Whether the interval between quantiles contains the outcome of each cell."""
    if low is high:
        return is_inside(low, level)
    # the upper quantile is the first outcome whose CDF reaches the upper level: the outcomes up to
    # it are those whose CDF just below them is less
    is_low_enough = (low < (1 + level) / 2) | (is_inside(low, level) & (low == high))
    return (high >= (1 - level) / 2) & is_low_enough


def is_inside(matrix: Floats, level: float) -> NDArray[np.bool_]:
    """Whether the central interval of a level covers the outcome, for each PIT."""
    inside = matrix >= (1 - level) / 2
    inside &= matrix <= (1 + level) / 2
    return inside
