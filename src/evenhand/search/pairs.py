"""Sums over all intersections of two group masks, by matrix products (method: worst groups)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import line_distance
from evenhand.search.masks import Masks
from evenhand.tables import row_blocks

BINS = 64
"""Bins of PITs. As 64 is a power of two, `u * BINS` is exact and no PIT crosses an edge."""

BLOCK_ROWS = 4096
"""Rows multiplied at once: as floats, 0/1 columns take eight times their memory."""

ALL_ROWS, NO_MASK = -1, -2
"""In place of the number of a mask."""

BLOCK_NUMBERS = 4_000_000
"""Numbers of one working array, some 32 MB."""

Sign = tuple[int, int]
SIGNS: tuple[Sign, ...] = ((0, 0), (0, 1), (1, 0), (1, 1))
"""Of two columns, each as it is (0) or its complement (1)."""


@dataclass(frozen=True)
class Rows:
    """Rows of the data.

    Parameters
    ----------
    pit : ndarray of shape (n, m)
        PITs over draws.
    quantities : ndarray of shape (q, n)
        Numbers that are summed over groups: ones first and, with weights, the weights last.
    weights : ndarray of shape (n,) or None
        Positive, with mean 1.
    """

    pit: Floats
    quantities: Floats
    weights: Floats | None


@dataclass(frozen=True)
class Found:
    """Groups of one or two masks that are large enough.

    Parameters
    ----------
    first, second : ndarray of int, shape (g,)
        Numbers of the two masks; the first of a group of one mask is -1, all rows.
    sums : ndarray of shape (q, g)
        Sums of the quantities.
    area : ndarray of shape (g,)
        Binned W1 error times 64 times the sum of weights times draws.
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
    """Sum over all single masks and pairs of masks of different features, tile by tile."""
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
    """Return the groups whose first column is in `left` and second in `right`.

    Column 0 holds all rows, so the pair (0, j) is the single mask j.
    """
    mask_of = np.full((masks.columns.shape[1], 2), NO_MASK)
    mask_of[masks.column, masks.complement.astype(np.intp)] = np.arange(masks.column.size)
    mask_of[0, 0] = ALL_ROWS
    sums = _pair_sums(masks.columns, left, right, rows.quantities)
    a, b = _column_pairs(masks, left, right)
    first = {sign: mask_of[left[a], sign[0]] for sign in SIGNS}
    second = {sign: mask_of[right[b], sign[1]] for sign in SIGNS}
    large = {
        sign: (first[sign] != NO_MASK)
        & (second[sign] != NO_MASK)
        & (_over_signs(sums[:1], a, b, sign)[0] >= min_size)
        for sign in SIGNS
    }
    # histograms cost most: only pairs with a group that is large enough get one
    needed = np.flatnonzero(np.any(list(large.values()), axis=0))
    if not needed.size:
        return []
    a = a[needed]
    b = b[needed]
    large = {sign: usable[needed] for sign, usable in large.items()}
    areas = _areas(masks.columns, rows, sums, (left, right), (a, b), large)
    found = (
        Found(
            first[sign][needed], second[sign][needed], _over_signs(sums, a, b, sign), areas[sign]
        ).take(usable)
        for sign, usable in large.items()
    )
    return list(found)


def _column_pairs(masks: Masks, left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return positions in `left` and `right` of pairs of columns of different features."""
    feature = np.full(masks.columns.shape[1], ALL_ROWS)
    feature[masks.column] = masks.feature
    wanted = (feature[left][:, None] != feature[right]) & (left[:, None] < right)
    wanted[0] &= right <= left[-1]  # a single mask belongs to one tile only
    a, b = np.nonzero(wanted)
    return a, b


def _over_signs(sums: Floats, a: Ints, b: Ints, sign: Sign) -> Floats:
    """Return sums over the groups of a sign, from those over pairs of columns, (q, left, right)."""
    return np.asarray(
        _signed(
            sums[:, :1, 0],
            sums[:, 0].take(a, axis=-1),
            sums[:, 0].take(b, axis=-1),
            sums[:, a, b],
            sign,
        )
    )


def _signed(everyone: Any, ours: Any, theirs: Any, both: Any, sign: Sign) -> Any:
    """Return the sum over two columns or their complements, by inclusion and exclusion."""
    if sign == (1, 1):
        return everyone - ours - theirs + both
    if sign == (1, 0):
        return theirs - both
    return ours - both if sign == (0, 1) else both


def _areas(
    columns: Mask,
    rows: Rows,
    sums: Floats,
    sides: tuple[Ints, Ints],
    pairs: tuple[Ints, Ints],
    wanted: Mapping[Sign, Mask],
) -> dict[Sign, Floats]:
    """Integrate the absolute deviations of groups by pair of columns; NaN where none is wanted."""
    left, right = sides
    a, b = pairs
    k = right.size
    # single columns first, then pairs
    places = np.append(np.zeros(k, dtype=np.intp), a), np.append(np.arange(k), b)
    # whole numbers up to 2^24 are exact in float32, and so are sums of two of these deviations
    is_exact = rows.weights is None and BINS * rows.pit.size < 2**23
    dtype: type[np.floating[Any]] = np.float32 if is_exact else np.float64
    total = rows.pit.shape[1] * sums[0 if rows.weights is None else -1][places].astype(dtype)
    below = _counts_below(rows, columns, left, right, places).astype(dtype, copy=False)
    singles = _deviations(below[:, :k], total[:k])
    areas = {sign: np.full(a.size, np.nan) for sign in wanted}
    # histograms of so many pairs of columns fit into the cache
    for part in row_blocks(a.size, 1024):
        both = _deviations(below[:, k:][:, part], total[k:][part])
        ours = singles.take(a[part], axis=-1)
        theirs = singles.take(b[part], axis=-1)
        for sign, usable in wanted.items():
            if usable[part].any():
                areas[sign][part] = line_distance(_signed(singles[:, :1], ours, theirs, both, sign))
    return areas


def _deviations(below: NDArray[Any], total: NDArray[Any]) -> NDArray[Any]:
    """Return bins times (count at or below each edge less the expected count)."""
    deviations: NDArray[Any] = below * np.array(BINS, dtype=below.dtype)
    deviations -= np.arange(BINS, dtype=below.dtype)[:, None] * total
    return deviations


def _column_tiles(n_columns: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield left and right columns whose pairs together are all pairs.

    There are few enough at a time for a histogram of each pair. Both begin with column 0; in pairs
    that are used the left column comes first.
    """
    start = 1
    while start < n_columns:
        stop = min(n_columns, start + max(1, BLOCK_NUMBERS // (BINS * n_columns)))
        yield np.r_[0, start:stop], np.r_[0, start:n_columns]
        start = stop


def _pair_sums(columns: Mask, left: Ints, right: Ints, quantities: Floats) -> Floats:
    """Return sums of quantities over the rows in both of two columns, shape (q, left, right).

    For 0/1 columns `A` and each of the quantities, shape (q, n), it is `A^T diag(q) A`.
    """
    sums = np.zeros((quantities.shape[0], left.size, right.size))
    for part in row_blocks(columns.shape[0], BLOCK_ROWS):
        rows = columns[part].astype(np.float64)
        # all columns against all: a copy of each side would cost as much as the product
        whole = left.size == right.size == rows.shape[1]
        a, b = (rows, rows) if whole else (rows[:, left], rows[:, right])
        for total, quantity in zip(sums, quantities[:, part], strict=True):
            total += (a.T * quantity) @ b
    return sums


def _counts_below(
    rows: Rows, columns: Mask, left: Ints, right: Ints, pairs: tuple[Ints, Ints]
) -> Floats:
    """Count the PITs at or below the edges `0, 1/B, ..., (B-1)/B` in some pairs of columns.

    `pairs` are positions in `left` and `right`. Counts have shape (B, pairs) and are sums of
    weights where there are weights.
    """
    if rows.pit.shape[1] == 1:
        below = _one_draw_below(rows.pit[:, 0], rows.weights, columns, left, right)
        return below.reshape(BINS, -1).take(pairs[0] * right.size + pairs[1], axis=-1)
    return _many_draws_below(rows.pit, rows.weights, columns, left[pairs[0]], right[pairs[1]])


def _one_draw_below(
    pit: Floats, weights: Floats | None, columns: Mask, left: Ints, right: Ints
) -> Floats:
    """Count one PIT of each row, shape (B, left, right).

    Rows are taken in the order of their bins, so that each is multiplied once, not once per bin.
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


def _many_draws_below(
    pit: Floats, weights: Floats | None, columns: Mask, left: Ints, right: Ints
) -> Floats:
    """Count several PITs of each row, by its number of draws at or below each edge."""
    n, m = pit.shape
    # so few rows that their sums are below 2^24, and exact in float32, if a row is that small
    size = int(np.clip(2 * BLOCK_NUMBERS // left.size, 16, min(BLOCK_ROWS, max(2**24 // m - 1, 1))))
    is_exact = weights is None and size * m < 2**24
    dtype: type[np.floating[Any]] = np.float32 if is_exact else np.float64
    below = np.zeros((left.size, BINS))
    for part in row_blocks(n, size):
        bins = np.ceil(pit[part] * BINS).astype(np.intp)
        k = bins.shape[0]
        # numbers of bins that differ by row: one count gives the histograms of all rows
        bins += np.arange(k)[:, None] * (BINS + 1)
        counts = np.bincount(bins.ravel(), minlength=k * (BINS + 1)).reshape(k, BINS + 1)
        draws = np.cumsum(counts[:, :BINS], axis=-1).astype(dtype)
        rows = columns[part].T.astype(dtype)
        both = rows[left]
        both *= rows[right]
        below += both @ (draws if weights is None else draws * weights[part, None])
    return below.T
