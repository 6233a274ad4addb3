"""Oracle worst group: rows chosen after seeing the outcomes (method: worst groups).

The error of a group is the integral of `|F - c|`, where `F` is the mean of its rows' step CDFs; it
is convex in `F`. For a weight `s(c)` the best `k` rows are those with the largest integral of `s`
times their own CDF. If `s` is the slope of the error at the `F` of a group, the error of the best
rows is at least that of the group. The search repeats this ascent step from many weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import one_line
from evenhand._validate import Floats, Ints, Mask, check_count, check_masses
from evenhand.calibration import Cells, as_cells, quantile_distance
from evenhand.draws import RandomState, generator
from evenhand.search.cells import BLOCK_PITS, EVEN_CELLS, LevelCells, group_errors

SEARCH_ROWS = 1024
"""Largest number of rows from which patterns are learned; larger samples are subsampled."""

MOST_SWAP_NUMBERS = 100_000
"""Largest number of values to compute for all exchanges of one row; beyond it none are tried."""

MOST_SORTED_PITS = 1 << 22
"""Number of PITs sorted at once."""

NO_GAIN = {np.dtype(np.float64): 1e-14, np.dtype(np.float32): 1e-5}
"""Differences of errors below this are rounding errors."""


@dataclass(frozen=True, eq=False, repr=False)
class WorstGroupCurve:
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

    def __repr__(self) -> str:
        return one_line(
            self,
            masses=self.masses.size,
            errors=(float(self.errors.min()), float(self.errors.max())),
        )


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
    found = _find(pits, sizes, n_starts, random)
    errors, groups = _decide(pits, sizes, found)
    return errors[which], groups[which]


def group_sizes(masses: Floats, n_samples: int) -> Ints:
    """Return the number of rows in a group of each size, `ceil(mass * n_samples)`."""
    # a rounding error in the product must not add a row: 0.07 * 100 is above 7
    return np.clip(np.ceil(masses * n_samples - 1e-9), 1, n_samples).astype(np.intp)


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


def _find(pits: Cells, sizes: Ints, n_starts: int, random: np.random.Generator) -> Mask:
    """Return the worst group of each size that the search in cells finds."""
    n = pits.n_samples
    if n <= SEARCH_ROWS:
        return _search(LevelCells.of(pits), sizes, n_starts, random, keep=1)[0]
    subset = pits.take(np.sort(random.choice(n, SEARCH_ROWS, replace=False)))
    # patterns depend on shares of rows, so sizes are scaled to the subset
    few = np.maximum(np.round(sizes * (SEARCH_ROWS / n)), 1).astype(np.intp)
    part = LevelCells.of(subset)
    _, means, owner = _search(part, few, n_starts, random, keep=3)
    patterns = part.slopes(means)
    cells = LevelCells.of(pits)
    if cells.edges.size != part.edges.size or (cells.edges != part.edges).any():
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
    groups, means, errors, owner = _ascend_from(
        cells, _starts(cells, n_starts, random), sizes, count=4
    )
    # the slope at the worst group of one size is often a good start for another size
    shared = cells.slopes(means[_worst_of_each(cells, means, errors, owner, 1)])
    again = _ascend_from(cells, shared, sizes, count=2)
    groups = np.concatenate((groups, again[0]))
    means = np.concatenate((means, again[1]))
    errors = np.concatenate((errors, again[2]))
    owner = np.concatenate((owner, again[3]))
    # exchanges improve final groups only; patterns for other rows do not need them
    polished = _worst_of_each(cells, means, errors, owner, 3 if keep == 1 else 0)
    for i in polished:
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
    return np.asarray(order[place < count])


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
        leaves, enters = np.unravel_index(int(np.argmax(errors)), errors.shape)
        if errors[leaves, enters] <= error + NO_GAIN[cells.cdfs.dtype]:
            break
        group = group.copy()
        group[[inside[leaves], outside[enters]]] = False, True
        mean = means[leaves, enters]
        error = float(errors[leaves, enters])
    return group, mean, error


def _decide(pits: Cells, sizes: Ints, found: Mask) -> tuple[Floats, Mask]:
    """Return the worst of three groups of each size by exact errors: found, lowest, highest PITs.

    The search compares errors in cells, which are slightly too small. With the two groups of the
    paper as candidates the result is never below the published one.
    """
    n = pits.n_samples
    ranks = np.empty(n, dtype=np.intp)
    # a row's mean PIT, averaged over the position in its cell: a drawn position would be selected
    # by the group (outcomes: 4.3)
    means = (pits.low.mean(axis=-1) + pits.high.mean(axis=-1)) / 2
    ranks[np.argsort(means, kind="stable")] = np.arange(n)
    groups = list(found)
    owner = list(range(sizes.size))
    for i, k in enumerate(sizes):
        ends = [end for end in (ranks < k, ranks >= n - k) if (end != found[i]).any()]
        groups += ends
        owner += [i] * len(ends)
    errors = _exact_errors(pits, groups, owner)
    best = [
        max(np.flatnonzero(np.equal(owner, i)), key=errors.__getitem__) for i in range(sizes.size)
    ]
    return errors[best], np.array([groups[i] for i in best])


def _exact_errors(pits: Cells, groups: list[Mask], owner: list[int]) -> Floats:
    """Return the exact W1 error of each group; all groups share one sort of the PITs."""
    if not pits.are_points:
        return _exact_cell_errors(pits, groups, owner)
    matrix = pits.drawn
    counts = [int(group.sum()) * matrix.shape[1] for group in groups]
    errors = np.zeros(len(groups))
    done = [0] * len(groups)
    for values, rows in _sorted_parts(matrix):
        for i, group in enumerate(groups):
            inside = group[rows]
            size = int(np.count_nonzero(inside))
            first = done[i] / counts[i]
            last = (done[i] + size) / counts[i]
            # if quantiles and levels do not cross, the area is a difference of two integrals
            if values[0] >= last or values[-1] <= first:
                errors[i] += abs(float(values @ inside) / counts[i] - (last**2 - first**2) / 2)
            else:
                ends = np.arange(done[i], done[i] + size + 1) / counts[i]
                errors[i] += quantile_distance(values[inside], ends)
            done[i] += size
    return errors


def _exact_cell_errors(pits: Cells, groups: list[Mask], owner: list[int]) -> Floats:
    """Return the exact W1 error of each group of cells, or a smaller one if it is not the worst.

    Exact errors need all ends of the cells, so only groups are compared whose errors in 64 equal
    cells are within a cell's width of the largest of their owner.
    """
    cells = LevelCells.of(pits)
    sizes = np.array([np.count_nonzero(group) for group in groups])
    errors = cells.errors(cells.means(np.array(groups), sizes))
    worst = np.zeros(max(owner) + 1)
    np.maximum.at(worst, owner, errors)
    close = np.flatnonzero(errors >= worst[owner] - 1 / EVEN_CELLS)
    errors[close] = list(group_errors(pits.low, pits.high, [groups[i] for i in close]))
    return errors


def _sorted_parts(matrix: Floats) -> Iterator[tuple[Floats, Ints]]:
    """Yield all PITs in increasing order with their rows, in parts.

    Ranges of values are sorted one at a time to save memory.
    """
    flat = matrix.ravel()
    n_ranges = -(-flat.size // MOST_SORTED_PITS)
    cuts = np.quantile(
        flat[:: max(flat.size // MOST_SORTED_PITS, 1)], np.arange(1, n_ranges) / n_ranges
    )
    for low, high in pairwise([-np.inf, *cuts, np.inf]):
        places = np.flatnonzero((flat > low) & (flat <= high))
        places = places[np.argsort(flat[places])]
        for start in range(0, places.size, BLOCK_PITS):
            part = places[start : start + BLOCK_PITS]
            yield flat[part], part // matrix.shape[1]
