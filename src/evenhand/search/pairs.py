"""Sums over all intersections of two groups, by matrix products (method: worst groups)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import PITs, line_distance, ramps_at
from evenhand.search.masks import Masks
from evenhand.tables import row_blocks

BINS = 64
"""Number of bins of PITs. A power of two: `u * BINS` is exact and no PIT crosses an edge."""

BLOCK_ROWS = 4096
"""Number of rows multiplied at once: as floats, 0/1 columns take eight times their memory."""

ALL_ROWS, NO_MASK = -1, -2
"""Codes used in place of the number of a mask."""

BLOCK_NUMBERS = 4_000_000
"""Number of values in one working array, some 32 MB."""

Sign = tuple[int, int]
SIGNS: tuple[Sign, ...] = ((0, 0), (0, 1), (1, 0), (1, 1))
"""For each of two columns: the column itself (0) or its complement (1)."""


@dataclass(frozen=True)
class Rows:
    """Quantities of each row that are summed over groups.

    Parameters
    ----------
    pits : PITs of n rows, or None
        PITs over draws, with positive weights if any; None if no area is needed.
    quantities : ndarray of shape (q, n)
        Values that are summed over groups: ones first and, with weights, the weights last.
    """

    pits: PITs | None
    quantities: Floats


@dataclass(frozen=True)
class Found:
    """Groups of one or two masks that are large enough.

    Parameters
    ----------
    first, second : ndarray of int, shape (g,)
        Numbers of the two masks; the first is -1, all rows, for groups of one mask.
    sums : ndarray of shape (q, g)
        Sums of the quantities.
    area : ndarray of shape (g,)
        Binned W1 error times 64 times the sum of weights times the number of draws; NaN without
        PITs.
    """

    first: Ints
    second: Ints
    sums: Floats
    area: Floats

    def take(self, wanted: Mask) -> Found:
        """Return some of the groups."""
        some = (self.first[wanted], self.second[wanted], self.sums[:, wanted], self.area[wanted])
        return Found(*some)


def scan_pairs(masks: Masks, rows: Rows, min_size: int) -> Found:
    """Sum over all single masks and large pairs of masks of different features, tile by tile."""
    found = [
        part
        for left, right in _column_tiles(masks.columns.shape[1])
        for part in _scan_tile(masks, rows, min_size, left, right)
    ]
    if not found:
        none = np.empty(0, dtype=np.intp)
        return Found(none, none, np.empty((rows.quantities.shape[0], 0)), np.empty(0))
    return Found(
        np.concatenate([part.first for part in found]),
        np.concatenate([part.second for part in found]),
        np.concatenate([part.sums for part in found], axis=-1),
        np.concatenate([part.area for part in found]),
    )


def _scan_tile(masks: Masks, rows: Rows, min_size: int, left: Ints, right: Ints) -> list[Found]:
    """Return the groups whose first column is in `left` and whose second column is in `right`.

    Column 0 contains all rows, so the pair (0, j) is the single mask j.
    """
    mask_of = np.full((masks.columns.shape[1], 2), NO_MASK)
    mask_of[masks.column, masks.complement.astype(np.intp)] = np.arange(masks.column.size)
    mask_of[0, 0] = ALL_ROWS
    sums = _pair_sums(masks.columns, left, right, rows.quantities)
    a, b = _column_pairs(masks, left, right)
    first = {sign: mask_of[left[a], sign[0]] for sign in SIGNS}
    second = {sign: mask_of[right[b], sign[1]] for sign in SIGNS}
    # single masks were chosen before: named ones may be smaller
    large = {
        sign: (first[sign] != NO_MASK)
        & (second[sign] != NO_MASK)
        & ((first[sign] == ALL_ROWS) | (_over_signs(sums[:1], a, b, sign)[0] >= min_size))
        for sign in SIGNS
    }
    # histograms are the slowest part: compute them only for pairs with a group that is large enough
    needed = np.flatnonzero(np.any(list(large.values()), axis=0))
    if not needed.size:
        return []
    a = a[needed]
    b = b[needed]
    large = {sign: usable[needed] for sign, usable in large.items()}
    areas = {sign: np.full(a.size, np.nan) for sign in SIGNS}
    if rows.pits is not None:
        areas = _areas(masks.columns, rows.pits, sums, (left, right), (a, b), large)
    found = (
        Found(
            first[sign][needed], second[sign][needed], _over_signs(sums, a, b, sign), areas[sign]
        ).take(usable)
        for sign, usable in large.items()
    )
    return list(found)


def _column_pairs(masks: Masks, left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return the positions in `left` and `right` of pairs of columns of different features."""
    feature = np.full(masks.columns.shape[1], ALL_ROWS)
    feature[masks.column] = masks.feature
    wanted = (feature[left][:, None] != feature[right]) & (left[:, None] < right)
    wanted[0] &= right <= left[-1]  # each single mask belongs to one tile only
    a, b = np.nonzero(wanted)
    return a, b


def _over_signs(sums: Floats, a: Ints, b: Ints, sign: Sign) -> Floats:
    """Return sums over the groups of a sign, from sums over pairs of columns, (q, left, right)."""
    return np.asarray(
        _signed(
            sums[:, :1, 0],
            sums[:, 0].take(a, axis=-1),
            sums[:, 0].take(b, axis=-1),
            sums[:, a, b],
            sign,
        )
    )


def _signed(whole: Any, first: Any, second: Any, both: Any, sign: Sign) -> Any:
    """Return the sum over two columns or their complements, by inclusion and exclusion."""
    if sign == (1, 1):
        return whole - first - second + both
    if sign == (1, 0):
        return second - both
    return first - both if sign == (0, 1) else both


def _areas(
    columns: Mask,
    pits: PITs,
    sums: Floats,
    sides: tuple[Ints, Ints],
    pairs: tuple[Ints, Ints],
    wanted: Mapping[Sign, Mask],
) -> dict[Sign, Floats]:
    """Return integrals of absolute deviations per pair of columns; NaN where not wanted."""
    left, right = sides
    a, b = pairs
    k = right.size
    # single columns first, then pairs
    places = np.append(np.zeros(k, dtype=np.intp), a), np.append(np.arange(k), b)
    # whole numbers up to 2^24 are exact in float32, and so are sums of two such deviations
    is_whole = pits.weights is None and pits.cells is None
    is_exact = is_whole and BINS * pits.matrix.size < 2**23
    dtype: type[np.floating[Any]] = np.float32 if is_exact else np.float64
    total = pits.n_draws * sums[0 if pits.weights is None else -1][places].astype(dtype)
    below = _counts_below(pits, columns, left, right, places).astype(dtype, copy=False)
    singles = _deviations(below[:, :k], total[:k])
    areas = {sign: np.full(a.size, np.nan) for sign in wanted}
    # histograms of 1024 pairs of columns fit into the cache
    for part in row_blocks(a.size, 1024):
        both = _deviations(below[:, k:][:, part], total[k:][part])
        first = singles.take(a[part], axis=-1)
        second = singles.take(b[part], axis=-1)
        for sign, usable in wanted.items():
            if usable[part].any():
                signed = _signed(singles[:, :1], first, second, both, sign)
                areas[sign][part] = line_distance(signed)
    return areas


def _deviations(below: NDArray[Any], total: NDArray[Any]) -> NDArray[Any]:
    """Return the number of bins times (count at or below each edge minus its expectation)."""
    deviations: NDArray[Any] = below * np.array(BINS, dtype=below.dtype)
    deviations -= np.arange(BINS, dtype=below.dtype)[:, None] * total
    return deviations


def _column_tiles(n_columns: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield left and right columns of tiles that together contain all pairs of columns.

    A tile is small enough for a histogram of each pair. Both sides begin with column 0; a pair is
    used if its left column has the smaller number.
    """
    start = 1
    while start < n_columns:
        stop = min(n_columns, start + max(1, BLOCK_NUMBERS // (BINS * n_columns)))
        yield np.r_[0, start:stop], np.r_[0, start:n_columns]
        start = stop


def _pair_sums(columns: Mask, left: Ints, right: Ints, quantities: Floats) -> Floats:
    """Return sums of quantities over the rows in both of two columns, shape (q, left, right).

    For 0/1 columns `A` and a quantity `q` the sums are `A^T diag(q) A`.
    """
    sums = np.zeros((quantities.shape[0], left.size, right.size))
    for part in row_blocks(columns.shape[0], BLOCK_ROWS):
        rows = columns[part].astype(np.float64)
        # if both sides are all columns, use no copies: they would cost as much as the product
        whole = left.size == right.size == rows.shape[1]
        a, b = (rows, rows) if whole else (rows[:, left], rows[:, right])
        for total, quantity in zip(sums, quantities[:, part], strict=True):
            total += (a.T * quantity) @ b
    return sums


def _counts_below(
    pits: PITs, columns: Mask, left: Ints, right: Ints, pairs: tuple[Ints, Ints]
) -> Floats:
    """Count the PITs at or below the edges `0, 1/B, ..., (B-1)/B` in some pairs of columns.

    `pairs` are positions in `left` and `right`. Counts have shape (B, pairs); with weights they are
    sums of weights. PITs of outcomes with atoms count by the part of their cell below an edge.
    """
    if pits.n_draws == 1 and pits.cells is None:
        below = _one_draw_below(pits.matrix[:, 0], pits.weights, columns, left, right)
        return below.reshape(BINS, -1).take(pairs[0] * right.size + pairs[1], axis=-1)
    return _many_draws_below(pits, columns, left[pairs[0]], right[pairs[1]])


def _one_draw_below(
    pit: Floats, weights: Floats | None, columns: Mask, left: Ints, right: Ints
) -> Floats:
    """Count one PIT per row, shape (B, left, right).

    Rows are processed in the order of their bins: each is multiplied once, not once per bin.
    """
    n = pit.size
    bins = np.ceil(pit * BINS).astype(np.uint8)
    order = np.argsort(bins, kind="stable")
    ends = np.cumsum(np.bincount(bins, minlength=BINS + 1))
    # whole numbers below 2^24 are exact in float32
    dtype: type[np.floating[Any]] = np.float32 if weights is None and n < 2**24 else np.float64
    below = np.zeros((BINS, left.size, right.size), dtype=dtype)
    whole = left.size == right.size == columns.shape[1]
    for k in range(BINS):
        if k:
            below[k] = below[k - 1]
        begin = ends[k - 1] if k else 0
        for start in range(begin, ends[k], BLOCK_ROWS):
            chosen = order[start : min(start + BLOCK_ROWS, ends[k])]
            rows = columns[chosen].astype(dtype)
            a, b = (rows, rows) if whole else (rows[:, left], rows[:, right])
            below[k] += (a.T if weights is None else a.T * weights[chosen]) @ b
    return below


def _many_draws_below(pits: PITs, columns: Mask, left: Ints, right: Ints) -> Floats:
    """Count several PITs per row, by the row's number of draws at or below each edge."""
    n, m = pits.matrix.shape
    # few enough rows for sums below 2^24, which are exact in float32, unless one row exceeds it
    size = int(np.clip(2 * BLOCK_NUMBERS // left.size, 16, min(BLOCK_ROWS, max(2**24 // m - 1, 1))))
    is_exact = pits.weights is None and pits.cells is None and size * m < 2**24
    dtype: type[np.floating[Any]] = np.float32 if is_exact else np.float64
    below = np.zeros((left.size, BINS))
    for part in row_blocks(n, size):
        draws = _draws_below(pits.take(part)).astype(dtype, copy=False)
        rows = columns[part].T.astype(dtype)
        both = rows[left]
        both *= rows[right]
        below += both @ (draws if pits.weights is None else draws * pits.weights[part, None])
    return below.T


def _draws_below(pits: PITs) -> NDArray[Any]:
    """Return each row's number of draws at or below each edge, shape (k, B)."""
    if pits.cells is not None:
        return ramps_at(np.arange(BINS) / BINS, pits.low, pits.high)
    bins = np.ceil(pits.matrix * BINS).astype(np.intp)
    k = bins.shape[0]
    # offset the bins by row, so that one count gives the histograms of all rows
    bins += np.arange(k)[:, None] * (BINS + 1)
    counts = np.bincount(bins.ravel(), minlength=k * (BINS + 1)).reshape(k, BINS + 1)
    return np.cumsum(counts[:, :BINS], axis=-1)
