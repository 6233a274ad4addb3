"""Sums over all intersections of two groups, by matrix products (method: worst groups)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import Cells, line_distance, ramps_at
from evenhand.tables import Group, Groups, feature_groups, row_blocks

# --- indicator matrix of groups


@dataclass(frozen=True)
class Masks:
    """Groups of rows: mask `g` is column `column[g]` or its complement.

    Parameters
    ----------
    columns : ndarray of bool, shape (n, k)
        Indicators. Column 0 contains all rows, so that a sum over one mask is a sum over a pair.
        Two halves share one column.
    groups : tuple of Group
        Group of each mask.
    feature, column : ndarray of int, shape (g,)
        Feature and column of each mask; masks are in the order of their columns.
    complement : ndarray of bool, shape (g,)
        Whether the mask is the complement of its column.
    labels : list of str
        Names of the features; each named group is a feature, and named groups come last.
    n_unnamed : int
        Number of features that are not named groups.
    left_out : dict of str to str
        Features without a mask, with the reason in words.
    same_rows : dict of Group to Group
        Named groups without a mask, with the group whose mask contains the same rows.
    """

    columns: Mask
    groups: tuple[Group, ...]
    feature: Ints
    column: Ints
    complement: Mask
    labels: list[str]
    n_unnamed: int
    left_out: dict[str, str]
    same_rows: dict[Group, Group]

    @property
    def names(self) -> list[str]:
        """Names of the masks, such as `age <= 50`."""
        return [group.name for group in self.groups]

    @property
    def attrs(self) -> dict[str, dict[str, str]]:
        """Attributes of the table of `scan_groups`, in words: `left_out` and `same_rows`."""
        return {
            "left_out": dict(self.left_out),
            "same_rows": {given.name: same.name for given, same in self.same_rows.items()},
        }

    def rows(self, mask: int) -> Mask:
        """Return the rows of a mask, shape (n,)."""
        found: Mask = self.columns[:, self.column[mask]] ^ self.complement[mask]
        return found

    def sizes(self) -> Ints:
        """Return the number of rows of each mask."""
        counts = np.array([np.count_nonzero(column) for column in self.columns.T])[self.column]
        return np.where(self.complement, self.columns.shape[0] - counts, counts)

    def keep(self, wanted: Mask) -> Masks:
        """Return some of the masks, with the columns that they need."""
        needed = np.unique(np.concatenate(([0], self.column[wanted])))
        has_all = needed.size == self.columns.shape[1]  # avoids a copy of the matrix
        return replace(
            self,
            columns=self.columns if has_all else self.columns[:, needed],
            groups=tuple(self.groups[g] for g in np.flatnonzero(wanted)),
            feature=self.feature[wanted],
            column=np.searchsorted(needed, self.column[wanted]),
            complement=self.complement[wanted],
        )


def make_masks(table: pd.DataFrame, groups: Groups) -> Masks:
    """Split every feature into groups, and add the named groups.

    There is no mask for text columns with too many values, for constant features, and for features
    that split the rows into the same two halves as another feature. A named group gets no second
    mask if a feature or another name defines the same rows, or if it contains all rows.
    """
    left_out = dict[str, str]()
    splits = dict[bytes, str]()
    labels = list[str]()
    columns: list[Mask] = [np.ones(len(table), dtype=np.bool_)]
    made: list[tuple[Group, int, int, bool]] = []  # group, feature, column, complement
    for j, (name, found) in enumerate(feature_groups(table)):
        labels.append(name)
        if isinstance(found, Groups):
            found = _redundant(found, name, splits) or found
        if isinstance(found, str):
            left_out[name] = found
            continue
        pairs = list(found.pairs())
        if len(pairs) == 2:  # the second half is the complement of the first: one column for both
            made.append((pairs.pop(0)[0], j, len(columns), True))
        for group, mask in pairs:
            made.append((group, j, len(columns), False))
            columns.append(mask)
    known = ((group, columns[c] ^ flipped) for group, _, c, flipped in made)
    named, same_rows = _distinct(groups, columns[0], known)
    for j, (group, mask) in enumerate(named, start=len(labels)):
        made.append((group, j, len(columns), False))
        columns.append(mask)
    return Masks(
        columns=np.column_stack(columns),
        groups=tuple(group for group, *_ in made),
        feature=np.array([feature for _, feature, _, _ in made], dtype=np.intp),
        column=np.array([column for _, _, column, _ in made], dtype=np.intp),
        complement=np.array([complement for *_, complement in made], dtype=np.bool_),
        labels=[*labels, *(group.name for group, _ in named)],
        n_unnamed=len(labels),
        left_out=left_out,
        same_rows=same_rows,
    )


def _redundant(groups: Groups, name: str, splits: dict[bytes, str]) -> str | None:
    """Return the reason if the groups of a feature are redundant, else record its split.

    `splits` maps each split of the rows in two to the first feature that makes it.
    """
    if len(groups) < 2:
        return "constant"
    if len(groups) > 2:
        return None
    half = list(groups.values())[-1]
    # a half and its complement are the same split: use the half without the first row as the key
    twin = splits.setdefault(np.packbits(half ^ half[0]).tobytes(), name)
    return None if twin == name else f"it splits the rows as {twin!r} does"


def _distinct(
    groups: Groups, everyone: Mask, known: Iterator[tuple[Group, Mask]]
) -> tuple[list[tuple[Group, Mask]], dict[Group, Group]]:
    """Return the groups with distinct rows, and for each other group one with the same rows.

    A repeated test would only reduce power.
    """
    kept = list[tuple[Group, Mask]]()
    same_rows = dict[Group, Group]()
    if not groups:
        return kept, same_rows
    seen = {np.packbits(mask).tobytes(): group for group, mask in known}
    all_rows = np.packbits(everyone).tobytes()
    for group, mask in groups.pairs():
        rows = np.packbits(mask).tobytes()
        if rows in seen:
            same_rows[group] = seen[rows]
        elif rows != all_rows:
            kept.append((group, mask))
            seen[rows] = group
    return kept, same_rows


# --- sums over all intersections of two groups

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


def scan_pairs(masks: Masks, pits: Cells | None, quantities: Floats, min_size: int) -> Found:
    """Sum over all single masks and large pairs of masks of different features, tile by tile.

    Parameters
    ----------
    masks : Masks
        Single groups.
    pits : Cells of n rows, or None
        PITs over draws, with positive weights if any; None if no area is needed.
    quantities : ndarray of shape (q, n)
        Values that are summed over groups: ones first and, with weights, the weights last.
    min_size : int
        Smallest number of rows of a pair.
    """
    found = [
        part
        for left, right in _column_tiles(masks.columns.shape[1])
        for part in _scan_tile(masks, pits, quantities, min_size, left, right)
    ]
    if not found:
        none = np.empty(0, dtype=np.intp)
        return Found(none, none, np.empty((quantities.shape[0], 0)), np.empty(0))
    return Found(
        np.concatenate([part.first for part in found]),
        np.concatenate([part.second for part in found]),
        np.concatenate([part.sums for part in found], axis=-1),
        np.concatenate([part.area for part in found]),
    )


def _scan_tile(
    masks: Masks, pits: Cells | None, quantities: Floats, min_size: int, left: Ints, right: Ints
) -> list[Found]:
    """Return the groups whose first column is in `left` and whose second column is in `right`.

    Column 0 contains all rows, so the pair (0, j) is the single mask j.
    """
    mask_of = np.full((masks.columns.shape[1], 2), NO_MASK)
    mask_of[masks.column, masks.complement.astype(np.intp)] = np.arange(masks.column.size)
    mask_of[0, 0] = ALL_ROWS
    sums = _pair_sums(masks.columns, left, right, quantities)
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
    if pits is not None:
        areas = _areas(masks.columns, pits, sums, (left, right), (a, b), large)
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
    pits: Cells,
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
    is_whole = pits.weights is None and pits.are_points
    is_exact = is_whole and BINS * pits.drawn.size < 2**23
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
    pits: Cells, columns: Mask, left: Ints, right: Ints, pairs: tuple[Ints, Ints]
) -> Floats:
    """Count the PITs at or below the edges `0, 1/B, ..., (B-1)/B` in some pairs of columns.

    `pairs` are positions in `left` and `right`. Counts have shape (B, pairs); with weights they are
    sums of weights. PITs of outcomes with atoms count by the part of their cell below an edge.
    """
    if pits.n_draws == 1 and pits.are_points:
        below = _one_draw_below(pits.drawn[:, 0], pits.weights, columns, left, right)
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


def _many_draws_below(pits: Cells, columns: Mask, left: Ints, right: Ints) -> Floats:
    """Count several PITs per row, by the row's number of draws at or below each edge."""
    n, m = pits.drawn.shape
    # few enough rows for sums below 2^24, which are exact in float32, unless one row exceeds it
    size = int(np.clip(2 * BLOCK_NUMBERS // left.size, 16, min(BLOCK_ROWS, max(2**24 // m - 1, 1))))
    is_exact = pits.weights is None and pits.are_points and size * m < 2**24
    dtype: type[np.floating[Any]] = np.float32 if is_exact else np.float64
    below = np.zeros((left.size, BINS))
    for part in row_blocks(n, size):
        draws = _draws_below(pits.take(part)).astype(dtype, copy=False)
        rows = columns[part].T.astype(dtype)
        both = rows[left]
        both *= rows[right]
        below += both @ (draws if pits.weights is None else draws * pits.weights[part, None])
    return below.T


def _draws_below(pits: Cells) -> NDArray[Any]:
    """Return each row's number of draws at or below each edge, shape (k, B)."""
    if not pits.are_points:
        return ramps_at(np.arange(BINS) / BINS, pits.low, pits.high)
    bins = np.ceil(pits.drawn * BINS).astype(np.intp)
    k = bins.shape[0]
    # offset the bins by row, so that one count gives the histograms of all rows
    bins += np.arange(k)[:, None] * (BINS + 1)
    counts = np.bincount(bins.ravel(), minlength=k * (BINS + 1)).reshape(k, BINS + 1)
    return np.cumsum(counts[:, :BINS], axis=-1)
