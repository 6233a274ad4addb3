"""Oracle worst groups, and the null distribution of searches (method: worst groups).

Oracle worst groups are chosen after seeing the outcomes. The error of a group is the integral of
`|F - c|`, where `F` is the mean of its rows' step CDFs; it is convex in `F`. For a weight `s(c)`
the best `k` rows are those with the largest integral of `s` times their own CDF. If `s` is the
slope of the error at the `F` of a group, the error of the best rows is at least that of the group.
The search repeats this ascent step from many weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import OneLine
from evenhand._validate import Floats, Ints, Mask, check_count, check_masses
from evenhand.calibration import (
    Cells,
    as_cells,
    calibration_error,
    pathwise_errors,
    quantile_distance,
    row_distances,
)
from evenhand.draws import RandomState, fresh, generator, jittered, nodes, sampled_rows
from evenhand.links import Entropic, Link, check_link
from evenhand.tables import row_blocks

# --- distribution functions of rows
# Points have step functions. A PIT that is uniform between the ends `L` and `U` of its cell has the
# distribution function `clip((c - L) / (U - L), 0, 1)`, a ramp (outcomes: 4.3). Sums of ramps over
# the draws of a row, and integrals of these sums, are polynomials between the edges of equal cells
# of [0, 1].

LEAST_WIDTH = 1e-6
"""Width below which sums over cells lose their digits: narrower cells are widened to it."""

BLOCK_PITS = 1 << 17
"""Number of PITs, or of values computed from them, that are processed at once."""


def mean_cdfs(pits: Cells, n_cells: int, dtype: type[np.floating[Any]] = np.float64) -> Floats:
    """Return the mean of each row's CDF over each of the equal cells, shape (n, n_cells).

    Examples
    --------
    >>> mean_cdfs(as_cells([0.25]), 2), mean_cdfs(as_cells(([0.0], [0.5])), 4)
    (array([[0.5, 1. ]]), array([[0.25, 0.75, 1.  , 1.  ]]))
    """
    n = pits.n_samples
    means = np.empty((n, n_cells), dtype=dtype)
    for rows in row_blocks(n, max(BLOCK_PITS // max(pits.n_draws, n_cells), 1)):
        if pits.are_points:
            means[rows] = _mean_steps(pits.drawn[rows] * n_cells, n_cells)
        else:
            means[rows] = _mean_ramps(pits.low[rows], pits.high[rows], n_cells)
    return means


def _mean_steps(positions: Floats, n_cells: int) -> Floats:
    """Return the mean of each row's step CDF over each cell; positions are in units of cells."""
    n, m = positions.shape
    cells = positions.astype(int)
    rest = (positions - cells).ravel()
    # the CDF steps up at the PIT: the mean over the PIT's cell increases by the part of the cell
    # above the PIT, and by 1 from the next cell on. A PIT of 1 belongs to an extra last cell
    flat = (cells + (n_cells + 2) * np.arange(n)[:, None]).ravel()
    counts = np.bincount(flat, 1 - rest, n * (n_cells + 2)) + np.bincount(
        flat + 1, rest, n * (n_cells + 2)
    )
    return np.cumsum(counts.reshape(n, -1)[:, :n_cells], axis=-1) / m


def _mean_ramps(low: Floats, high: Floats, n_cells: int) -> Floats:
    """Return the mean of each row's CDF, a mean of ramps, over each cell."""
    squares, products, constants = _moments(low, high, n_cells)
    edges = np.arange(n_cells + 1)
    integrals = (edges**2 * squares - 2 * edges * products + constants) / (2 * low.shape[1])
    return np.clip(np.diff(integrals, axis=-1), 0.0, 1.0)


def _moments(low: Floats, high: Floats, n_cells: int) -> list[NDArray[Any]]:
    """Return the sums over draws of `L^k / w` less `U^k / w`, over ends below each edge.

    Powers k are 0, 1 and 2. The integral of a ramp is `((c - L)_+^2 - (c - U)_+^2) / (2 w)`. Ends
    and widths `w` are in units of cells.
    """
    n = low.shape[0]
    middle = (low + high) * (n_cells / 2)
    half = np.maximum((high - low) * (n_cells / 2), LEAST_WIDTH * n_cells / 2)
    slope = 1 / (2 * half)
    first = (n_cells + 1) * np.arange(n)[:, None]
    sums = [np.zeros((n, n_cells + 1)) for _ in range(3)]
    for end, sign in ((middle - half, slope), (middle + half, -slope)):
        # an end lies below all edges from the next one on; the first edge is 0
        place = (np.clip(np.floor(end) + 1, 0, n_cells) + first).astype(int).ravel()
        weight = sign
        for total in sums:
            total += np.bincount(place, weight.ravel(), n * (n_cells + 1)).reshape(n, n_cells + 1)
            weight = weight * end
    return [np.cumsum(total, axis=-1) for total in sums]


# --- cells of [0, 1]

EVEN_CELLS = 64
"""Number of cells of equal width, used if PITs have too many distinct values for exact cells."""

MOST_DISTINCT = 400
"""Largest number of distinct values, including 0 and 1, for cells between distinct values."""

# beyond this the CDFs would need more memory than the PITs
MOST_EXACT_NUMBERS = 1 << 24
"""Largest number of PITs, and of CDF values between distinct PITs, for an exact search."""


@dataclass(frozen=True)
class LevelCells:
    """Cells of [0, 1] and the mean of each row's CDF over each cell.

    The CDF of a row is a mean of steps, or of ramps for PITs of outcomes with atoms. If the edges
    are the distinct PITs, CDFs are constant within cells and errors are exact. With wider cells
    the error is that of the mean in a cell in which the CDF crosses the diagonal.

    Parameters
    ----------
    edges : ndarray of shape (cells + 1,)
        Edges of the cells, increasing from 0 to 1.
    cdfs : ndarray of shape (n, cells)
        Means of the CDFs over the cells.
    """

    edges: Floats
    cdfs: NDArray[Any]

    @classmethod
    def of(cls, pits: Cells) -> LevelCells:
        """Make the cells of the PITs of n rows."""
        matrix = pits.drawn
        n, m = matrix.shape
        is_small = n * max(m, MOST_DISTINCT) <= MOST_EXACT_NUMBERS
        # usually the first rows alone contain too many values, which saves a sort of all PITs
        is_exact = is_small and pits.are_points
        if is_exact and np.unique(matrix.ravel()[: 2 * MOST_DISTINCT]).size <= MOST_DISTINCT:
            values = np.unique(np.concatenate(([0.0], matrix.ravel(), [1.0])))
            if values.size <= MOST_DISTINCT:
                return cls(
                    values,
                    _mean_steps(np.searchsorted(values, matrix).astype(float), values.size - 1),
                )
        # products over many rows are faster in float32; the final groups are scored exactly
        cdfs = mean_cdfs(pits, EVEN_CELLS, np.float64 if n <= 600 else np.float32)
        return cls(np.linspace(0.0, 1.0, EVEN_CELLS + 1), cdfs)

    def errors(self, means: Floats) -> Floats:
        """Return the integral of `|F - c|` for groups with mean CDFs of shape (..., cells)."""
        return quantile_distance(means, self.edges)

    def slack(self, means: Floats) -> Floats:
        """Return bounds for the distances of `errors` from the exact errors.

        Within a cell a CDF lies between its means over the neighbouring cells. Where it cannot
        cross the diagonal, the error of the cell is exact.
        """
        ends = np.zeros((len(means), 1)), np.ones((len(means), 1))
        around = np.concatenate((ends[0], means, ends[1]), axis=-1)
        below, above = around[:, :-2], around[:, 2:]
        crosses = (below < self.edges[1:]) & (above > self.edges[:-1])
        return (crosses * (above - below)) @ np.diff(self.edges) / 2 + NO_GAIN[self.cdfs.dtype]

    def slopes(self, means: Floats) -> Floats:
        """Return the derivative of `errors` with respect to the mean CDF in each cell.

        This is the integral of the sign of `F - c` over the cell.
        """
        low = self.edges[:-1]
        high = self.edges[1:]
        return np.clip(2 * means - low - high, low - high, high - low)

    def best_rows(self, patterns: Floats, sizes: Ints) -> Mask:
        """Return, for each pattern, the `sizes` rows with the largest scores `cdfs @ pattern`."""
        n = self.cdfs.shape[0]
        groups = np.zeros((sizes.size, n), dtype=bool)
        for part in row_blocks(sizes.size, max(16 * BLOCK_PITS // n, 1)):
            scores = patterns[part].astype(self.cdfs.dtype) @ self.cdfs.T
            for i, row in enumerate(scores, part.start):
                first = n - sizes[i]
                # a partition finds the smallest selected score in linear time; ties need a second
                # partition
                groups[i] = row >= np.partition(row, first)[first]
                if np.count_nonzero(groups[i]) > sizes[i]:
                    groups[i] = False
                    groups[i, np.argpartition(row, first)[first:]] = True
        return groups

    def means(self, groups: Mask, sizes: Ints | int) -> Floats:
        """Return the mean CDF of each group; a group has `sizes` rows."""
        totals = np.zeros((groups.shape[0], self.cdfs.shape[1]))
        # float32 sums over blocks are added in float64, so that rounding errors do not accumulate
        for part in row_blocks(groups.shape[1], BLOCK_PITS // 8):
            totals += groups[:, part].astype(self.cdfs.dtype) @ self.cdfs[part]
        return totals / np.reshape(sizes, (-1, 1))


# --- search

SEARCH_ROWS = 1024
"""Largest number of rows from which patterns are learned; larger samples are subsampled."""

MOST_SWAP_NUMBERS = 100_000
"""Largest number of values to compute for all exchanges of one row; beyond it none are tried."""

NO_GAIN = {np.dtype(np.float64): 1e-14, np.dtype(np.float32): 1e-5}
"""Differences of errors below this are rounding errors."""


@dataclass(frozen=True, eq=False, repr=False)
class WorstGroupCurve(OneLine):
    """Worst group of each size, chosen after seeing the outcomes.

    Parameters
    ----------
    masses : ndarray of shape (k,)
        Group sizes as shares of the rows.
    errors : ndarray of shape (k,)
        W1 calibration error of each group, 0 to 1/2.
    rows : tuple of ndarray
        Row numbers of each group.
    """

    masses: Floats
    errors: Floats
    rows: tuple[Ints, ...]


def worst_group_curve(
    pit: ArrayLike | Cells,
    masses: ArrayLike,
    *,
    n_starts: int = 64,
    random_state: RandomState = None,
) -> WorstGroupCurve:
    """Find the worst group of each size among all subsets of the rows, given the outcomes.

    The search starts from many patterns of probability levels at which the group has too many or
    too few PITs. The groups of the paper, the rows with the lowest and with the highest mean PIT,
    are always candidates; the exact error over all draws decides. The error is a lower bound for
    that of the worst subset of the sample, and nearly always equal to it on small problems. For a
    deterministic forecaster it is no evidence of harm: even the true distribution has an error of
    about `(1 - mass) / 2`.

    Parameters
    ----------
    pit : Cells or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns are draws. Each row counts once.
    masses : float or array-like of shape (k,)
        Group sizes as shares of the rows, 0 < mass <= 1; a group has `ceil(mass * n)` rows.
    n_starts : int, default 64
        Number of starting patterns, at least 1, in addition to the two constant ones: patterns with
        one or two changes of sign, and random patterns.
    random_state : int, generator or None
        Seed for the random patterns and, beyond 1024 rows, for the subset from which patterns are
        learned.

    Returns
    -------
    WorstGroupCurve

    Raises
    ------
    InputError
        If a PIT or a mass is out of range or not a number.

    References
    ----------
    Zhao, Ma & Ermon, ICML 2020, section 5 (adversarial groups), which uses the two constant
    patterns only.

    Examples
    --------
    >>> pit = [[0.1, 0.6], [0.4, 0.9], [0.2, 0.8], [0.0, 0.3]]
    >>> curve = worst_group_curve(pit, masses=[0.25, 1.0])
    >>> curve.errors, curve.rows[0]
    (array([0.35    , 0.090625]), array([3]))

    PITs that are all 1/2 are miscalibrated although their mean is right:

    >>> pit = [0.125, 0.5, 0.375, 0.5, 0.625, 0.5, 0.875, 0.5]
    >>> curve = worst_group_curve(pit, masses=0.5)
    >>> curve.errors, curve.rows[0]
    (array([0.25]), array([1, 3, 5, 7]))
    """
    pits = as_cells(pit)
    shares = check_masses(masses)
    check_count("n_starts", n_starts)
    errors, groups = worst_groups(pits, shares, generator(random_state), n_starts)
    return WorstGroupCurve(shares, errors, tuple(np.flatnonzero(group) for group in groups))


def worst_groups(
    pits: Cells, masses: Floats, random: np.random.Generator, n_starts: int = 64
) -> tuple[Floats, Mask]:
    """Return the error and the rows of the worst group of each size."""
    sizes, which = np.unique(group_sizes(masses, pits.n_samples), return_inverse=True)
    cells = LevelCells.of(pits)
    errors, groups = _decide(pits, cells, sizes, _find(pits, cells, sizes, n_starts, random))
    return errors[which], groups[which]


def group_sizes(masses: Floats | float, n_samples: int) -> Any:
    """Return the number of rows in a group of each size, `ceil(mass * n_samples)`."""
    # a rounding error in the product must not add a row: 0.07 * 100 is above 7
    return np.clip(np.ceil(masses * n_samples - 1e-9), 1, n_samples).astype(int)


def _starts(cells: LevelCells, n_starts: int, random: np.random.Generator) -> Floats:
    """Return the starting patterns: constant, one or two changes of sign, random."""
    n_cells = cells.edges.size - 1
    cell = np.arange(n_cells)
    # constant patterns find errors in level, those with one or two changes of sign errors in
    # spread; random patterns reach groups of any other shape
    cuts = np.arange(1, 6) / 6 * n_cells
    signs = [cell < cut for cut in cuts]
    signs += [(cell >= low) & (cell < high) for low, high in combinations(cuts, 2)]
    changing = np.repeat(np.array(signs), 2, axis=0)
    changing[1::2] ^= True
    random_signs = random.integers(0, 2, size=(max(n_starts - changing.shape[0], 0), n_cells)) > 0
    chosen = np.concatenate((changing, random_signs))[:n_starts]
    width = np.diff(cells.edges)
    return np.concatenate(([width, -width], np.where(chosen, 1.0, -1.0) * width))


def _find(
    pits: Cells, cells: LevelCells, sizes: Ints, n_starts: int, random: np.random.Generator
) -> Mask:
    """Return the worst group of each size that the search in cells finds."""
    n = pits.n_samples
    if n <= SEARCH_ROWS:
        return _search(cells, sizes, n_starts, random, keep=1)[0]
    subset = pits.take(sampled_rows(n, SEARCH_ROWS, random))
    # patterns depend on shares of rows, so sizes are scaled to the subset
    few = np.maximum(np.round(sizes * (SEARCH_ROWS / n)), 1).astype(int)
    part = LevelCells.of(subset)
    _, means, owner = _search(part, few, n_starts, random, keep=3)
    patterns = part.slopes(means)
    if not np.array_equal(cells.edges, part.edges):
        # the subset lacks some of the distinct values, so its cells are wider: convert patterns to
        # weights per unit of c and evaluate these at the middles of the cells of all rows
        middle = (cells.edges[1:] + cells.edges[:-1]) / 2
        nearest = np.clip(np.searchsorted(part.edges, middle) - 1, 0, part.edges.size - 2)
        patterns = (patterns / np.diff(part.edges))[:, nearest] * np.diff(cells.edges)
    groups, means, errors = _ascend(cells, patterns, sizes[owner], most_steps=3)
    return groups[_worst_of_each(cells, means, errors, owner, 1)]


def _search(
    cells: LevelCells, sizes: Ints, n_starts: int, random: np.random.Generator, keep: int
) -> tuple[Mask, Floats, Ints]:
    """Return the `keep` worst groups of each size, their mean CDFs and positions of sizes."""
    first = _ascend_from(cells, _starts(cells, n_starts, random), sizes, count=4)
    # the slope at the worst group of one size is often a good start for another size
    shared = cells.slopes(first[1][_worst_of_each(cells, *first[1:], 1)])
    again = _ascend_from(cells, shared, sizes, count=2)
    found: list[Any] = [np.concatenate(both) for both in zip(first, again, strict=True)]
    groups, means, errors, owner = found
    # exchanges improve final groups only; patterns for other rows do not need them
    for i in _worst_of_each(cells, means, errors, owner, 3 if keep == 1 else 0):
        groups[i], means[i], errors[i] = _exchanged(cells, groups[i], means[i], errors[i])
    best = _worst_of_each(cells, means, errors, owner, keep)
    return groups[best], means[best], owner[best]


def _ascend_from(
    cells: LevelCells, patterns: Floats, sizes: Ints, count: int
) -> tuple[Mask, Floats, Floats, Ints]:
    """Ascend, for each size, from the `count` patterns whose groups have the largest errors."""
    means = _screened(cells, patterns, sizes).reshape(-1, cells.cdfs.shape[1])
    owner = np.tile(np.arange(sizes.size), patterns.shape[0])
    best = _worst_of_each(cells, means, cells.errors(means), owner, count)
    return *_ascend(cells, cells.slopes(means[best]), sizes[owner[best]]), owner[best]


def _screened(cells: LevelCells, patterns: Floats, sizes: Ints) -> Floats:
    """Return the mean CDF of each pattern's best rows, shape (patterns, sizes, cells)."""
    # one sort of the scores gives the best rows for every size
    scores = patterns.astype(cells.cdfs.dtype) @ cells.cdfs.T
    ranks = np.empty(scores.shape, dtype=np.int32)
    np.put_along_axis(
        ranks,
        np.argsort(-scores, axis=-1),
        np.arange(scores.shape[1], dtype=np.int32)[None],
        axis=-1,
    )
    return np.stack([cells.means(ranks < k, int(k)) for k in sizes], axis=1)


def _worst_of_each(
    cells: LevelCells, means: Floats, errors: Floats, owner: Ints, count: int
) -> Ints:
    """Return positions of the `count` largest errors of each owner, one per set of similar groups.

    Two groups are similar if their CDFs lie on the same side of the diagonal at eight levels: the
    ascent from most such groups ends at the same group. With few cells it does not, and only groups
    with the same mean CDF are similar.
    """
    n_cells = cells.edges.size - 1
    if n_cells < 32:
        alike = np.unique(np.column_stack((owner, means.round(12))), axis=0, return_inverse=True)[
            1
        ].ravel()
    else:
        levels = np.arange(1, 16, 2) * n_cells // 16
        alike = 256 * owner + (means[:, levels] > cells.edges[levels]) @ (1 << np.arange(8))
    # the worst of each similar set, then the worst sets of each owner
    order = np.lexsort((-errors, alike))
    order = order[np.unique(alike[order], return_index=True)[1]]
    order = order[np.lexsort((-errors[order], owner[order]))]
    place = np.arange(order.size) - np.searchsorted(owner[order], owner[order])
    return order[place < count]


def _ascend(
    cells: LevelCells, patterns: Floats, sizes: Ints, most_steps: int = 50
) -> tuple[Mask, Floats, Floats]:
    """Take the best rows of each pattern, then those of their slopes, until no error increases.

    The error is convex in the CDF, so no step decreases it, and the number of groups is finite.
    """
    groups = cells.best_rows(patterns, sizes)
    means = cells.means(groups, sizes)
    errors = cells.errors(means)
    # groups whose error no longer increases are left out of later steps
    active = np.arange(sizes.size)
    for _ in range(most_steps - 1):
        moved = cells.best_rows(cells.slopes(means[active]), sizes[active])
        new_means = cells.means(moved, sizes[active])
        new_errors = cells.errors(new_means)
        gains = new_errors > errors[active] + NO_GAIN[cells.cdfs.dtype]
        active = active[gains]
        if active.size == 0:
            break
        groups[active] = moved[gains]
        means[active] = new_means[gains]
        errors[active] = new_errors[gains]
    return groups, means, errors


def _exchanged(
    cells: LevelCells, group: Mask, mean: Floats, error: float
) -> tuple[Mask, Floats, float]:
    """Exchange one row for another as long as the error increases, if there are few pairs."""
    k = int(group.sum())
    (n, n_cells) = cells.cdfs.shape
    while 0 < k * (n - k) * n_cells <= MOST_SWAP_NUMBERS:
        inside = np.flatnonzero(group)
        outside = np.flatnonzero(~group)
        means = mean + (cells.cdfs[outside] - cells.cdfs[inside, None]) / k
        errors = cells.errors(means)
        leaves, enters = np.unravel_index(np.argmax(errors), errors.shape)
        if errors[leaves, enters] <= error + NO_GAIN[cells.cdfs.dtype]:
            break
        group = group.copy()
        group[[inside[leaves], outside[enters]]] = False, True
        mean = means[leaves, enters]
        error = float(errors[leaves, enters])
    return group, mean, error


def _decide(pits: Cells, cells: LevelCells, sizes: Ints, found: Mask) -> tuple[Floats, Mask]:
    """Return the worst of three groups of each size by exact errors: found, lowest, highest PITs.

    With the two groups of the paper as candidates the result is never below the published one.
    """
    n = pits.n_samples
    ranks = np.empty(n, dtype=int)
    # a row's mean PIT, averaged over the position in its cell: a drawn position would be selected
    # by the group (outcomes: 4.3)
    means = (pits.low.mean(axis=-1) + pits.high.mean(axis=-1)) / 2
    ranks[np.argsort(means, kind="stable")] = np.arange(n)
    candidates, owner = list(found), list(range(sizes.size))
    for i, k in enumerate(sizes):
        ends = [end for end in (ranks < k, ranks >= n - k) if (end != found[i]).any()]
        candidates += ends
        owner += [i] * len(ends)
    groups, of_size = np.array(candidates), np.array(owner)
    # usually errors in cells already decide
    approximate = cells.means(groups, sizes[of_size])
    errors, slack = cells.errors(approximate), cells.slack(approximate)
    least = np.zeros(sizes.size)
    np.maximum.at(least, of_size, errors - slack)
    close = errors + slack >= least[of_size]
    groups, of_size = groups[close], of_size[close]
    # without weights: each row counts once
    plain = pits.without_weights()
    exact = [calibration_error(plain.take(group)) for group in groups]
    best = [max(np.flatnonzero(of_size == i), key=exact.__getitem__) for i in range(sizes.size)]
    return np.array(exact)[best], groups[best]


# --- null distribution

Simulate = Callable[[np.random.Generator], Cells]
"""Function that simulates outcomes from forecasts and returns their PITs."""

MOST_ROWS = 5000
MOST_PITS = 1 << 17
"""Largest number of rows, and of PITs, that are simulated: 2048 rows of 64 draws."""


def n_simulated(n_samples: int, n_draws: int) -> int:
    """Return how many of the rows are simulated."""
    return min(n_samples, MOST_ROWS, max(MOST_PITS // n_draws, 1))


MATCHING_ROWS = 400
"""Number of rows from which the mean pathwise error of a link with given draws is computed."""

LEAST_ALPHA = 0.002
"""Smallest alpha of a matching link; its mean pathwise error is about 0.002, too."""


@dataclass(frozen=True, eq=False, repr=False)
class NullCurve(OneLine):
    """Errors that the search for the worst group finds in calibrated forecasts.

    Parameters
    ----------
    masses : ndarray of shape (k,)
        Group sizes as shares of the rows.
    mean : ndarray of shape (k,)
        Mean error over simulations, 0 to 1/2.
    low, high : ndarray of shape (k,)
        5% and 95% quantiles: 90% of searches in calibrated forecasts find errors between them. With
        fewer than 19 simulations they are the smallest and largest simulated error, and the share
        between them is below 90%.
    """

    masses: Floats
    mean: Floats
    low: Floats
    high: Floats


def null_curve(
    pit: ArrayLike | Cells,
    masses: ArrayLike,
    *,
    link: Link | None = None,
    simulate: Simulate | None = None,
    n_simulations: int = 50,
    random_state: RandomState = None,
) -> NullCurve:
    """Simulate the errors of the worst groups of calibrated forecasts of the same kind.

    A search always finds some error. An error is evidence against forecasts only if it exceeds the
    errors found in calibrated forecasts with the same number of rows and draws and the same
    randomization.

    Parameters
    ----------
    pit : Cells or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns are draws, one jittered draw in each of `m`
        cells.
    masses : float or array-like of shape (k,)
        Group sizes as shares of the rows, 0 < mass <= 1.
    link : Link, optional
        The randomization. By default an `Entropic` link with the mean pathwise error of `pit`. If
        forecasts are miscalibrated, their pathwise errors exceed those of their randomization, and
        the default gives the higher null of a less randomized forecaster. With a single column the
        PITs of calibrated forecasts are uniform, whatever the link.
    simulate : callable, optional
        Function of a generator that draws an outcome from each forecast, or from those of a sample
        of the rows, and returns the PITs of these outcomes. It is needed for the null distribution
        of outcomes with atoms, whose cells depend on the forecasts. Without it, calibrated PITs
        without cells are simulated, in which a search finds larger errors.
    n_simulations : int, default 50
        Number of simulated data sets, at least 2.
    random_state : int, generator or None
        Seed.

    Returns
    -------
    NullCurve

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    At most 5000 rows and 131,072 PITs (2048 rows of 64 draws) are simulated. For more rows, errors
    of the group of all rows are scaled by `1 / sqrt(rows)`; other errors are those of the simulated
    rows. Their mean is then slightly too high (by at most 0.002 at 2048
    rows instead of 11,000) and their range is wider, so comparisons with them are conservative.

    Examples
    --------
    For the group of all 400 rows, the expected error is the mean absolute area under a Brownian
    bridge, 0.3133, divided by 20: about 0.016.

    >>> import numpy as np
    >>> pit = np.random.default_rng(0).uniform(size=400)
    >>> mean = null_curve(pit, 1.0, n_simulations=500, random_state=0).mean[0]
    >>> bool(abs(mean - 0.3133 / 20) < 0.001)
    True
    """
    pits = as_cells(pit)
    shares = check_masses(masses)
    check_count("n_simulations", n_simulations, least=2)
    if link is not None:
        check_link(link)
    random = generator(random_state)
    m = pits.n_draws
    n = n_simulated(pits.n_samples, m)
    # the PIT at a single draw of a calibrated forecast is uniform, whatever the link
    if link is None and m > 1 and simulate is None:
        link = _matching_link(pits)
    found: list[Floats] = []
    for _ in range(n_simulations):
        calibrated = _calibrated(n, m, link, random) if simulate is None else simulate(random)
        n = calibrated.n_samples
        found.append(worst_groups(calibrated, shares, random)[0])
    errors = np.array(found)
    # errors of a fixed group decrease as 1 / sqrt(rows), and the group of all rows is fixed
    errors[:, shares == 1] *= np.sqrt(n / pits.n_samples)
    # with Weibull positions the error of a further simulation lies below the p-quantile with
    # probability about p, whatever the number of simulations
    low, high = np.quantile(errors, [0.05, 0.95], axis=0, method="weibull")
    return NullCurve(shares, errors.mean(axis=0), low, high)


def _calibrated(n: int, m: int, link: Link | None, random: np.random.Generator) -> Cells:
    """Return PITs of calibrated forecasts, shape (n, m): randomized by a link, or deterministic."""
    base = fresh((n, 1), random)
    return Cells(base if link is None else link.ppf(base, jittered(n, m, random)))


def _matching_link(pits: Cells) -> Link:
    """Return the entropic link under which calibrated PITs have the same mean pathwise error.

    Both errors are computed with the same number of draws.
    """
    from scipy import optimize

    wanted = pathwise_errors(pits).mean()
    base = nodes(MATCHING_ROWS).T
    # with the same draws at each alpha the error is a smooth function of alpha
    r = jittered(MATCHING_ROWS, pits.n_draws, 0)

    def excess(alpha: float) -> float:
        return row_distances(Entropic(alpha).ppf(base, r)).mean() - wanted

    if excess(1.0) <= 0:
        return Entropic(1.0)
    if excess(LEAST_ALPHA) >= 0:
        return Entropic(LEAST_ALPHA)
    return Entropic(optimize.brentq(excess, LEAST_ALPHA, 1.0, xtol=1e-4))
