"""Scan of all groups defined by one or two features (method: worst groups).

Every half, value and named group and every intersection of two of them is tested. Sums over all
intersections are matrix products.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evenhand._kinds import AS_FORECAST, HIGHER, LOWER, NARROW, TOO_SMALL, WIDE, Direction
from evenhand._validate import (
    Floats,
    Ints,
    Mask,
    bad_input,
    check_count,
    check_fraction,
    check_rows,
)
from evenhand.calibration import (
    Cells,
    GroupRows,
    GroupSums,
    as_cells,
    binomial_quantile,
    holm,
    line_distance,
    ramps_at,
    simultaneous_intervals,
)
from evenhand.draws import RandomState
from evenhand.tables import Group, Groups, as_table, check_groups, feature_groups, row_blocks

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

    def rows(self, first: int, second: int) -> Mask:
        """Return the rows of two masks, or of the second one if the first is `ALL_ROWS`; (n,)."""
        found: Mask = self.columns[:, self.column[second]] ^ self.complement[second]
        return found if first == ALL_ROWS else found & self.rows(ALL_ROWS, first)

    def sizes(self) -> Ints:
        """Return the number of rows of each mask."""
        counts: Ints = self.columns.sum(axis=0)[self.column]
        return np.where(self.complement, len(self.columns) - counts, counts)

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

    Each set of rows has one mask, since a repeated test would only reduce power: there is none for
    a group or a named group whose rows another one before it has, for text columns with too many
    values, for constant features, and for a named group of all rows.
    """
    left_out = dict[str, str]()
    labels = list[str]()
    columns: list[Mask] = [np.ones(len(table), dtype=np.bool_)]
    made: list[tuple[Group, int, int, bool]] = []  # group, feature, column, complement
    first = dict[bytes, Group]()
    for j, (name, found) in enumerate(feature_groups(table)):
        labels.append(name)
        if isinstance(found, str):
            left_out[name] = found
            continue
        listed = [(group, mask, _first(group, mask, first)) for group, mask in found.pairs()]
        pairs = [(group, mask) for group, mask, same in listed if same is group]
        if len(found) < 2 or not pairs:
            twin = f"it splits the rows as {listed[0][2].column!r} does" if len(found) > 1 else ""
            left_out[name] = twin or "constant"
            continue
        if len(pairs) == len(found) == 2:  # a half is the complement of the other: one column
            made.append((pairs.pop(0)[0], j, len(columns), True))
        for group, mask in pairs:
            made.append((group, j, len(columns), False))
            columns.append(mask)
    same_rows, n_unnamed = dict[Group, Group](), len(labels)
    for group, mask in groups.pairs():
        if mask.all():
            continue
        same = _first(group, mask, first)
        if same is not group:
            same_rows[group] = same
        else:
            made.append((group, len(labels), len(columns), False))
            columns.append(mask)
            labels.append(group.name)
    numbers = np.array([rest for _, *rest in made], dtype=np.intp).reshape(-1, 3)
    return Masks(
        columns=np.column_stack(columns),
        groups=tuple(group for group, *_ in made),
        feature=numbers[:, 0],
        column=numbers[:, 1],
        complement=numbers[:, 2] > 0,
        labels=labels,
        n_unnamed=n_unnamed,
        left_out=left_out,
        same_rows=same_rows,
    )


def _first(group: Group, mask: Mask, first: dict[bytes, Group]) -> Group:
    """Return the first group with these rows: this one, if they are new."""
    return first.setdefault(hashlib.sha256(np.packbits(mask).data).digest(), group)


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


class Found(NamedTuple):
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


def scan_pairs(masks: Masks, pits: Cells | None, quantities: Floats, min_size: int) -> Found:
    """Sum over all single masks and large pairs of masks of different features, tile by tile.

    The `quantities`, shape (q, n), are ones first and, with weights, the weights last. Without PITs
    there are no areas. Pairs have at least `min_size` rows.
    """
    none = np.empty(0, dtype=np.intp)
    found = [Found(none, none, np.empty((quantities.shape[0], 0)), np.empty(0))]
    for left, right in _column_tiles(masks.columns.shape[1]):
        found += _scan_tile(masks, pits, quantities, min_size, left, right)
    return Found(*(np.concatenate(each, axis=-1) for each in zip(*found, strict=True)))


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
    signs = np.array(SIGNS).T[..., None]
    first, second = mask_of[left[a], signs[0]], mask_of[right[b], signs[1]]
    over = np.stack([_over_signs(sums, a, b, sign) for sign in SIGNS], axis=1)
    of_column = sums[0, 0]
    of_side = np.stack((of_column, of_column[0] - of_column))
    # a pair as large as one of its masks has the rows of that mask, which are tested once
    is_new = over[0] < np.minimum(of_side[signs[0], a], of_side[signs[1], b])
    is_pair = (first >= 0) & (over[0] >= min_size) & is_new
    # single masks were chosen before: named ones may be smaller
    large = (second != NO_MASK) & (is_pair | (first == ALL_ROWS))
    # histograms are the slowest part: compute them only for pairs with a group that is large enough
    needed = np.flatnonzero(large.any(axis=0))
    if not needed.size:
        return []
    areas = np.full(large.shape, np.nan)
    if pits is not None:
        some = a[needed], b[needed]
        areas[:, needed] = _areas(masks.columns, pits, sums, (left, right), some, large[:, needed])
    return [Found(first[large], second[large], over[:, large], areas[large])]


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
    first, second = (sums[:, 0].take(column, axis=-1) for column in (a, b))
    return _signed(sums[:, :1, 0], first, second, sums[:, a, b], sign)


def _signed(whole: Floats, first: Floats, second: Floats, both: Floats, sign: Sign) -> Floats:
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
    wanted: Mask,
) -> Floats:
    """Return integrals of absolute deviations by sign and pair of columns; NaN if not wanted."""
    (left, right), (a, b) = sides, pairs
    areas = np.full(wanted.shape, np.nan)
    k = right.size
    # single columns first, then pairs
    places = np.append(np.zeros(k, dtype=np.intp), a), np.append(np.arange(k), b)
    # whole numbers up to 2^24 are exact in float32, and so are sums of two such deviations
    is_exact = pits.weights is None and pits.are_points and BINS * pits.drawn.size < 2**23
    dtype: type[np.floating[Any]] = np.float32 if is_exact else np.float64
    total = pits.n_draws * sums[0 if pits.weights is None else -1][places].astype(dtype)
    below = _counts_below(pits, columns, left, right, places).astype(dtype, copy=False)
    singles = _deviations(below[:, :k], total[:k])
    # histograms of 1024 pairs of columns fit into the cache
    for part in row_blocks(a.size, 1024):
        both = _deviations(below[:, k:][:, part], total[k:][part])
        first = singles.take(a[part], axis=-1)
        second = singles.take(b[part], axis=-1)
        for area, sign, usable in zip(areas, SIGNS, wanted, strict=True):
            if usable[part].any():
                area[part] = line_distance(_signed(singles[:, :1], first, second, both, sign))
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
        a, b = _sides(columns[part].astype(np.float64), left, right)
        for total, quantity in zip(sums, quantities[:, part], strict=True):
            total += (a.T * quantity) @ b
    return sums


def _sides(rows: NDArray[Any], left: Ints, right: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the columns of both sides."""
    # if both sides are all columns, use no copies: they would cost as much as the product
    is_whole = left.size == right.size == rows.shape[1]
    return (rows, rows) if is_whole else (rows[:, left], rows[:, right])


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
    # no PIT of the last bin lies at or below an edge
    for total, chosen in zip(below, np.split(order, ends)[:BINS], strict=True):
        for part in row_blocks(chosen.size, BLOCK_ROWS):
            a, b = _sides(columns[chosen[part]].astype(dtype), left, right)
            total += (a.T if weights is None else a.T * weights[chosen[part]]) @ b
    return np.cumsum(below, axis=0, out=below)


def _many_draws_below(pits: Cells, columns: Mask, left: Ints, right: Ints) -> Floats:
    """Count several PITs per row, by the row's number of draws at or below each edge."""
    n, m = pits.drawn.shape
    # few enough rows for sums below 2^24, which are exact in float32, unless one row exceeds it
    size = int(np.clip(2 * BLOCK_NUMBERS // left.size, 16, min(BLOCK_ROWS, max(2**24 // m - 1, 1))))
    is_exact = pits.weights is None and pits.are_points and size * m < 2**24
    dtype: type[np.floating[Any]] = np.float32 if is_exact else np.float64
    below = np.zeros((left.size, BINS))
    for part in row_blocks(n, size):
        some = pits.take(part)
        draws = ramps_at(np.arange(BINS) / BINS, some.low, some.high).astype(dtype)
        rows = columns[part].T.astype(dtype)
        both = rows[left]
        both *= rows[right]
        below += both @ (draws if pits.weights is None else draws * pits.weights[part, None])
    return below.T


# --- directions

LEVEL = 0.05
"""Default significance level of scans."""

DIRECTIONS: tuple[Direction, ...] = (LOWER, HIGHER, WIDE, NARROW, AS_FORECAST)
"""Directions by code: a low (0) or high (1) mean PIT, a low (2) or high (3) spread of PITs."""


def _directions(sums: GroupSums, adjusted: Floats, level: float) -> NDArray[np.object_]:
    """Return the direction of each group, by the test with the larger statistic."""
    z_level, z_spread, _ = sums.tests
    by_spread = np.abs(z_spread) > np.abs(z_level)
    z = np.where(by_spread, z_spread, z_level)
    codes = np.where(adjusted < level, 2 * by_spread + (z > 0), len(DIRECTIONS) - 1)
    return np.array(DIRECTIONS, dtype=object)[codes]


# --- scan

MIN_SIZE = 150
"""Smallest number of rows of a group that is tested, by default."""

MOST_GROUPS = 1500
"""Largest number of groups of single features. Their pairs take about 1 GB and 10 CPU seconds."""

FEW_ROWS = 30
"""Named groups of fewer rows are not tested."""


def scan_groups(
    pit: ArrayLike | Cells,
    X: Any,
    min_size: int = MIN_SIZE,
    *,
    groups: Any = None,
    residual: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> pd.DataFrame:
    """Test the groups defined by one or two features, least calibrated first.

    Groups are the halves of each number or date feature (above, and at or below the median), each
    value of a category, text, boolean or few-valued feature (at most 10 distinct numbers), the rows
    where a feature is missing, the named groups, and every intersection of two of these that come
    from different features and both contain other rows, too.

    Parameters
    ----------
    pit : Cells or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns are draws.
    X : table, or array-like of shape (n, p)
        Features that define groups. The columns of an array are named `x0`, `x1`, ...
    min_size : int, default 150
        Smallest number of rows of a group, at least 2. Smaller groups are not listed, except named
        ones: these are tested from 30 rows on, and listed as "too few rows" below that.
    groups : DataFrame, Series, dict of name to values, or list of column names, optional
        Named groups of rows: booleans are masks, other values are labels, names are columns of X,
        as in `evenhand.audit`. A named group that a feature defines, too, is listed once, under the
        name of the feature's group. Groups and features must be known before the outcome: every
        forecaster is miscalibrated in a group that the outcome defines, and this function does not
        see the outcomes.
    residual : array-like of shape (n,), optional
        Outcome minus mean of the forecast, in units of the outcome.
    sample_weight : array-like of shape (n,), optional
        Weights of the people in estimates and intervals; a `Cells` contains its own. Tests count
        each person once; rows of weight 0 are left out.
    confidence : float, default 0.95
        Probability that, for each measure and level, the intervals of all groups contain the true
        values simultaneously.
    random_state : int, generator or None
        Seed for the choice of the draw that is tested for each person, if there are several.

    Returns
    -------
    DataFrame
        One row per group, by increasing `p_adjusted`, then decreasing `error`. `attrs["left_out"]`
        names each feature that defines no group, with the reason: it is constant, or text with more
        than 100 distinct values. `attrs["same_rows"]` names each named group that is listed under
        another name, with that name.

        group, n : name such as `bmi > 0.03 and sex = 2`, and number of rows.

        direction : "outcomes lower than forecast", "outcomes higher than forecast", "intervals too
        narrow" or "intervals too wide"; "as forecast" if `p_adjusted` is not below
        `1 - confidence`, that is, the group does not differ significantly from calibrated
        forecasts.

        error, error_low, error_high : W1 calibration error of the group, 0 to 1/2, from a histogram
        of 64 bins, with its interval; see Notes.

        bias, bias_low, bias_high : mean residual, in units of the outcome, with its interval; NaN
        without `residual`.

        coverage_80, coverage_80_low, coverage_80_high : share of PITs in the central 80% interval,
        with its confidence interval; `coverage_90` and so on for the 90% interval.

        p_value, p_adjusted : p-value for the hypothesis that the group is calibrated, without and
        with correction for the number of groups.

        features : names of the one or two features, as a tuple.

    Raises
    ------
    InputError
        If there are fewer rows than `min_size`, or an argument has the wrong shape, type or range.

    Notes
    -----
    The distribution function `F` of a group's PITs is known exactly at the edges `k/64` and
    interpolated linearly between them. Within a bin of width `h` both `F` and the line increase
    from one value to the other, so the area between them is at most `h/2` times the increase, and
    the increases add up to at most 1. Therefore `error` is within `h/2 = 1/128` of the exact error.
    For a group of `n` rows with PITs that do not cluster the difference is about `0.3 h / sqrt(n)`,
    far below that.

    Tests use one draw per person, whose PIT `u` is uniform if the forecasts are calibrated. They
    compare the level, the mean of `u`, with 1/2 (variance 1/12), and the spread, the mean of
    `|u - 1/2|`, with 1/4 (variance 1/48). Both are sums of uniform variables, whose tails beyond
    two standard errors are lighter than the normal tails that are used. `p_value` is twice the
    smaller of the two p-values.

    For 0/1 outcomes, whose cells are [0, 1 - P] and [1 - P, 1], tests do not use a position in the
    cell. The level is the number of events: its tails are at most binomial, whatever the single
    probabilities `P` (Hoeffding 1956). The spread is averaged over the cell, which makes it a
    weighted sum of `Y - P`, whose tails have a bound, too (Hoeffding 1963, theorem 3). Both tests
    hold their level in groups of any size, for rare events as well.

    Intervals are simultaneous by Bonferroni: each end of each interval fails with probability at
    most `(1 - confidence) / (2 g)` for `g` listed groups. Coverage: Clopper-Pearson for one draw
    per person; for several draws with the inequality of Bentkus (2004), about 6% wider; both are
    exact. Error: the lower end uses the two tests, as the mean of `u` and that of `|u - 1/2|`
    differ from those of a uniform variable by at most the error; it is positive only if `p_value`
    times `g` is below `1 - confidence`. The upper end adds the margin of a Dvoretzky-Kiefer-
    Wolfowitz band, and 1/128 for the bins. Bias: t-intervals, which are asymptotic, as are all
    intervals with weights. For 0/1 outcomes with residuals `Y - P` they contain the mean error of
    the probabilities of the group's rows in groups of any size (Clopper-Pearson), and half of
    their distance from 0 is a lower end of the error.

    Examples
    --------
    PITs of 32 people are evenly spaced in [0, 1/2], those of 32 others in [0, 1]. For the first
    group the area between the CDF and the diagonal is 1/4, and the mean PIT is 1/4 as well,
    `sqrt(32 * 12) / 4 = 4.9` standard errors below 1/2. The error of the second group is that of 32
    equal steps, `1 / (4 * 32)`.

    >>> even = (np.arange(32) + 0.5) / 32
    >>> X = pd.DataFrame({"sex": np.repeat(["f", "m"], 32)})
    >>> found = scan_groups(np.append(even / 2, even), X, min_size=32)
    >>> found[["group", "n", "error", "direction"]].round(2)
         group   n  error                     direction
    0  sex = f  32   0.25  outcomes lower than forecast
    1  sex = m  32   0.01                   as forecast
    """
    check_fraction("confidence", confidence)
    pits = as_cells(pit, sample_weight=sample_weight)
    n = pits.n_samples
    table = as_table(X, n)
    named = check_groups(groups, n, X)
    residuals = None if residual is None else check_rows("residual", residual, n)
    if pits.weights is not None and not pits.weights.all():
        some = pits.weights > 0
        pits = pits.take(some)
        table = table.loc[some]
        named = Groups((group, mask[some]) for group, mask in named.pairs())
        residuals = None if residuals is None else residuals[some]
    if pits.n_samples < check_count("min_size", min_size, least=2):
        rule = f"be at most the number of rows, {pits.n_samples}"
        raise bad_input("min_size", rule, min_size, "reduce it or scan more rows together")
    rows = GroupRows.of(pits, residuals, random_state, pits.events())
    scanned = scan_rows(rows, table, named, min_size)
    scanned = replace(scanned, adjusted=holm(scanned.sums.tests.p_value))
    found = pd.DataFrame(scanned.columns(len(scanned.sums), 1 - confidence, 1 - confidence, {}))
    masks = scanned.masks
    same = {given.name: same.name for given, same in masks.same_rows.items()}
    found.attrs |= {"left_out": masks.left_out, "same_rows": same}
    return found


@dataclass(frozen=True, eq=False)
class Scanned:
    """Groups of a scan.

    Parameters
    ----------
    masks : Masks
        Single groups.
    first, second : ndarray of int, shape (g,)
        Numbers of the two masks of each group; the first is -1, all rows, for single groups.
    sums : GroupSums
        Sums over each group.
    few : dict of str to int
        Number of rows of each named group that has too few for a test.
    adjusted : ndarray of shape (g,)
        Adjusted p-values; NaN for groups that are not tested.
    """

    masks: Masks
    first: Ints
    second: Ints
    sums: GroupSums
    few: dict[str, int]
    adjusted: Floats

    @property
    def singles(self) -> Scanned:
        """The groups of one mask."""
        some = np.flatnonzero(self.first == ALL_ROWS)
        first, second, sums = self.first[some], self.second[some], self.sums.take(some)
        return replace(self, first=first, second=second, sums=sums, adjusted=self.adjusted[some])

    @property
    def places(self) -> dict[str, int]:
        """Position in `sums` of the rows of each named group that is listed, by its name."""
        masks = self.masks
        singles = np.flatnonzero(self.first == ALL_ROWS).tolist()
        places = {masks.groups[self.second[i]]: i for i in singles}
        named = [masks.groups[g] for g in np.flatnonzero(masks.feature >= masks.n_unnamed)]
        masked = dict(zip(named, named, strict=True)) | masks.same_rows
        return {one.name: places[same] for one, same in masked.items() if same in places}

    @property
    def listed_as(self) -> dict[str, str]:
        """Name under which the rows of each named group are listed, by its name."""
        listed = {name: self.name(place) for name, place in self.places.items()}
        return listed | {name: name for name in self.few}

    def name(self, place: int) -> str:
        """Return the name of a group."""
        return " and ".join(one.name for one in self.parts(place))

    def parts(self, place: int) -> tuple[Group, ...]:
        """Return the group, or the two groups that it is the intersection of."""
        masks = self.first[place], self.second[place]
        return tuple(self.masks.groups[mask] for mask in masks if mask != ALL_ROWS)

    def rows(self, place: int) -> Mask:
        """Return the rows of a group, shape (n,)."""
        return self.masks.rows(int(self.first[place]), int(self.second[place]))

    def least(
        self, most: int, level: float = np.inf
    ) -> Iterator[tuple[str, tuple[Group, ...], Mask]]:
        """Yield names, parts and rows of the groups with the smallest p-values below a level."""
        order = np.argsort(self.adjusted, kind="stable")[:most]
        for i in map(int, order[self.adjusted[order] < level]):
            yield self.name(i), self.parts(i), self.rows(i)

    def columns(
        self, n_groups: int, share: float, level: float, more: Mapping[str, Floats]
    ) -> dict[str, Any]:
        """Return the columns of the table of `scan_groups`, and further ones.

        The intervals of `n_groups` groups hold at once with the error probability `share`; `level`
        is that of the adjusted p-values.
        """
        sums, masks, adjusted, few = self.sums, self.masks, self.adjusted, self.few
        # sort by p-value, then by error: the second sort is stable and keeps the order of the first
        order = np.argsort(-sums.error)
        order = order[np.argsort(adjusted[order], kind="stable")]
        numbers = simultaneous_intervals(sums, n_groups, share) | dict(more)
        numbers |= {"p_value": sums.tests.p_value, "p_adjusted": adjusted}
        unknown = np.full(len(few), np.nan)
        directions = _directions(sums, adjusted, level)[order]
        pairs = list(zip(self.first[order].tolist(), self.second[order].tolist(), strict=True))
        names = masks.names
        # the last one is for groups of one mask, whose first mask is -1, all rows
        before = [*(f"{name} and " for name in names), ""]
        labels = [masks.labels[i] for i in masks.feature]
        features = [tuple(labels[i] for i in pair if i != ALL_ROWS) for pair in pairs]
        return {
            "group": [*(before[i] + names[j] for i, j in pairs), *few],
            "n": [*sums.n[order].astype(np.int64).tolist(), *few.values()],
            "direction": [*directions, *[TOO_SMALL] * len(few)],
            **{name: np.append(values[order], unknown) for name, values in numbers.items()},
            "features": [*features, *((name,) for name in few)],
        }


def scan_rows(rows: GroupRows, table: pd.DataFrame, named: Groups, min_size: int) -> Scanned:
    """Sum over the groups that one or two features of a table define."""
    masks = make_masks(table, named)
    sizes = masks.sizes()
    is_named = masks.feature >= masks.n_unnamed
    least = min(min_size, FEW_ROWS)
    # an intersection is no larger than either side, so small masks need no pairs
    kept = masks.keep(sizes >= np.where(is_named, least, min_size))
    if len(kept.groups) > MOST_GROUPS:
        rule = f"define at most {MOST_GROUPS:,} groups, as each pair of groups is tested"
        remedy = "name fewer with --features (in Python: features)"
        place = f"the {table.shape[1]:,} columns in which groups are searched"
        raise bad_input(place, rule, f"{len(kept.groups):,}", remedy)
    # errors of 0/1 outcomes need no histograms, which are the slowest part
    cells = rows.cells
    found = scan_pairs(kept, None if rows.events else cells, rows.matrix, min_size)
    weight = found.sums[0 if cells.weights is None else -1]
    error = found.area / (BINS * cells.n_draws * weight)
    few = {masks.names[g]: int(sizes[g]) for g in np.flatnonzero(is_named & (sizes < least))}
    first, second = found.first, found.second
    sums = rows.summed(
        dict(zip(rows.values, found.sums, strict=True)),
        error,
        lambda i: kept.rows(int(first[i]), int(second[i])),
        slack=1 / (2 * BINS),
    )
    return Scanned(kept, first, second, sums, few, np.full(len(sums), np.nan))


# --- number of rows with which a test detects an error


def group_test_rows(
    error: float, *, power: float = 0.8, n_groups: int = 1, min_size: int = 2, level: float = LEVEL
) -> int:
    """Return the number of rows of a group with which `scan_groups` detects an error of the group.

    The outcomes of the group are shifted and have the right spread: forecasts are normal with
    standard deviation 1, and outcomes are normal around the predicted mean plus `shift_of(error)`.

    Parameters
    ----------
    error : float
        W1 error of the group, 0 < error < 1/2: 0.05 for 5 points. For randomized forecasts it is
        the error that remains after the randomization.
    power : float, default 0.8
        Probability that the error is detected, 1/2 <= power < 1.
    n_groups : int, default 1
        Number of groups that are tested together, scanned groups included. Holm's
        correction divides the level by this number for the first group that is detected.
    min_size : int, default 2
        Smallest group that is tested.
    level : float, default 0.05
        Level of all tests together; an audit gives named and scanned groups 0.02.

    Returns
    -------
    int
        Number of rows of the group.

    Raises
    ------
    InputError
        If an argument is out of its range.

    Notes
    -----
    The test compares the mean PIT with 1/2 in units of `1 / sqrt(12 n)`, and the spread of the PITs
    likewise; a group is detected if the larger statistic exceeds `c`, `4 Phi(-c) = level / k` for
    `k` groups. With shift `d` the PIT is `Phi(Z + d)`, its mean `1/2 + error`, and its variance `v
    = Phi(d / sqrt(2)) - 2 T(d / sqrt(2), sqrt(1/3)) - (1/2 + error)^2`, with Owen's function `T`.
    With `z` the normal quantile of the power, `n = ((c + z sqrt(12 v)) / (sqrt(12) error))^2` by
    the normal approximation. The test of the spread adds power, which is left out.

    Examples
    --------
    >>> group_test_rows(0.05), group_test_rows(0.05, power=0.9, n_groups=20)
    (316, 676)
    """
    shift = shift_of(error)
    check_fraction("power", power)
    if power < 0.5:
        raise bad_input("power", "be at least 0.5", power)
    each = check_fraction("level", level) / check_count("n_groups", n_groups)
    critical = -special.ndtri(each / 4)
    mean = 0.5 + error
    h = shift / math.sqrt(2)
    variance = mean - 2 * special.owens_t(h, math.sqrt(1 / 3)) - mean**2
    needed = (critical + special.ndtri(power) * math.sqrt(12 * variance)) / (math.sqrt(12) * error)
    return max(math.ceil(needed**2), check_count("min_size", min_size))


POWER = 0.8
"""Probability with which a detectable error is found."""


def detectable_error(
    n: float, level: float, variance: float | None = None, left: float = 1 / 12
) -> float:
    """Return the error of `n` rows that a two-sided test at a level finds with 80% probability.

    `variance` is the mean of p (1 - p) of the probabilities of 0/1 outcomes. Without it, the error
    is the W1 distance of PITs from uniform ones, of whose variance 1/12 `left` is that of their
    means in cells; beside a frequent outcome it grows by some quarter of the error.
    """
    if variance is None:
        squared = float(special.ndtri(POWER) - special.ndtri(level / 2)) ** 2 / n
        half = squared * (1 - 12 * left) / 8
        return half + math.sqrt(half**2 + squared * left)
    # the exact test of the number of events, which is higher than predicted: of rare events their
    # number is skewed and varies more than predicted, and no lower one is possible
    n = max(round(n), 1)
    rate = (1 - math.sqrt(max(1 - 4 * variance, 0.0))) / 2
    least = float(binomial_quantile(1 - level / 2, n, rate)) + 1
    if least > n:  # not even events of all rows are found
        return 1 - rate
    return float(special.betaincinv(least, n - least + 1, POWER)) - rate


def shift_of(error: float) -> float:
    """Return the shift of normal outcomes, in standard deviations, whose W1 error is `error`.

    The PIT of the outcomes `d + Z` under the standard normal distribution is stochastically larger
    than a uniform variable, so the error is `E Phi(Z + d) - 1/2 = Phi(d / sqrt(2)) - 1/2`.
    """
    check_fraction("error", error)
    if error >= 0.5:
        raise bad_input("error", "be below 0.5, the largest possible error", error)
    return math.sqrt(2) * float(special.ndtri(0.5 + error))
