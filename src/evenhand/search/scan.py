"""Scan of all groups that one or two features define (method: worst groups).

Every half, value and named group and every intersection of two of them is tested.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from pyarrow import compute
from scipy import special, stats

from evenhand._validate import Floats, Ints, bad_input, check_choice, check_count, check_rows
from evenhand.calibration import PITs, as_pits, covered
from evenhand.columns import Groups, as_table, check_groups
from evenhand.draws import RandomState, generator
from evenhand.search.directions import (
    AS_FORECAST,
    HIGHER,
    LOWER,
    NARROW,
    TOO_SMALL,
    WIDE,
    Direction,
)
from evenhand.search.masks import Masks, make_masks
from evenhand.search.pairs import ALL_ROWS, BINS, Found, Rows, scan_pairs
from evenhand.tables import row_blocks

LEVEL = 0.05
"""Significance level: groups with a larger adjusted p-value have no direction."""

MIN_SIZE = 150
"""Smallest number of rows of a group that is tested, by default."""

BLOCK_ROWS = 4096
"""Number of rows whose coverage is computed at once, so that temporaries need little memory."""

DIRECTIONS: tuple[Direction, ...] = (LOWER, HIGHER, WIDE, NARROW, AS_FORECAST)
"""Directions by code: a low (0) or high (1) mean PIT, a low (2) or high (3) spread of PITs."""


def scan_groups(
    pit: ArrayLike | PITs,
    X: Any,
    min_size: int = MIN_SIZE,
    *,
    groups: Any = None,
    residual: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    correction: str = "holm",
    random_state: RandomState = None,
) -> pd.DataFrame:
    """Test the groups that one or two features define, least calibrated first.

    Groups are the halves of each number or date feature (above, and at or below the median), each
    value of a category, text, boolean or few-valued feature (at most 10 distinct numbers), the rows
    where a feature is missing, the named groups, and every intersection of two of these that come
    from different features.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns are draws.
    X : table, or array-like of shape (n, p)
        Features that define groups. The columns of an array are named `x0`, `x1`, ...
    min_size : int, default 150
        Smallest number of rows of a group, at least 2. A named group with fewer rows is listed as
        "too few rows"; other small groups are not listed.
    groups : DataFrame, Series, dict of name to values, or list of column names, optional
        Named groups of rows: booleans are masks, other values are labels, names are columns of X,
        as in `evenhand.audit`. A named group that a feature defines, too, is listed once, under the
        name of the feature's group. Groups and features must be known before the outcome: every
        forecaster is miscalibrated in a group that the outcome defines, and this function does not
        see the outcomes.
    residual : array-like of shape (n,), optional
        Outcome minus mean of the forecast, in units of the outcome.
    sample_weight : array-like of shape (n,), optional
        Weights of the people in `error`, `bias` and `coverage_80`; a `PITs` contains its own. Tests
        count each person once; rows of weight 0 are left out.
    correction : {"holm", "by"}, default "holm"
        Correction for multiple testing. "holm" (Holm) controls the probability of any false
        positive among all groups, "by" (Benjamini and Yekutieli) the expected share of false
        positives among the groups found. Both are valid however the groups overlap.
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

        error : W1 calibration error of the group, 0 to 1/2, from a histogram of 64 bins; see Notes.

        direction : "outcomes lower than forecast", "outcomes higher than forecast", "intervals too
        narrow" or "intervals too wide"; "as forecast" if `p_adjusted` is 0.05 or more, that is, the
        group does not differ significantly from calibrated forecasts.

        bias : mean residual, in units of the outcome; NaN without `residual`.

        coverage_80 : share of PITs in the central 80% interval.

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
    check_choice("correction", correction, ("holm", "by"))
    pits = as_pits(pit, sample_weight=sample_weight)
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
    _check_size(min_size, pits.n_samples)
    masks = make_masks(table, named)
    sizes = masks.sizes()
    rows = Rows(pits.matrix, _quantities_of(pits, residuals, random_state), pits.weights)
    # an intersection is no larger than either side, so small masks need no pairs
    large = masks.keep(sizes >= min_size)
    found = scan_pairs(large, rows, min_size)
    frame = _frame_of(found, large, pits.n_draws, residuals is not None, correction)
    small = np.flatnonzero((sizes < min_size) & (masks.feature >= masks.n_unnamed))
    if small.size:
        frame = pd.concat(
            [frame, _too_small([masks.names[g] for g in small], sizes[small])], ignore_index=True
        )
    frame.attrs |= masks.attrs
    return frame


def _check_size(min_size: int, n: int) -> None:
    if n < check_count("min_size", min_size, least=2):
        remedy = "reduce it or scan more rows together"
        raise bad_input("min_size", f"be at most the number of rows, {n}", min_size, remedy)


def _quantities_of(pits: PITs, residual: Floats | None, random_state: RandomState) -> Floats:
    """Return the quantities that are summed over groups, shape (q, n).

    These are ones, level and spread of one draw, then coverage and residual, multiplied by the
    weights if there are any, and last the weights.
    """
    n, m = pits.matrix.shape
    # PITs over draws of one person share an outcome and are dependent: a test may use only one
    draw = 0 if m == 1 else generator(random_state).integers(m, size=n)
    u = pits.matrix[np.arange(n), draw]
    inside = [covered(pits.take(rows), 0.8) for rows in row_blocks(n, BLOCK_ROWS)]
    weighted = [np.concatenate(inside)] + ([] if residual is None else [residual])
    if pits.weights is not None:
        weighted = [pits.weights * values for values in weighted] + [pits.weights]
    return np.stack([np.ones(n), u - 0.5, np.abs(u - 0.5) - 0.25, *weighted])


def _frame_of(
    found: Found, masks: Masks, n_draws: int, has_residual: bool, correction: str
) -> pd.DataFrame:
    """Return the table of the groups with their tests, sorted."""
    count, level, spread = found.sums[:3]
    weight = found.sums[-1] if found.sums.shape[0] > 4 + has_residual else count
    error = found.area / (BINS * n_draws * weight)
    # under a uniform PIT, u - 1/2 has variance 1/12 and |u - 1/2| - 1/4 has variance 1/48
    z_level = level * np.sqrt(12 / count)
    z_spread = spread * np.sqrt(48 / count)
    by_spread = np.abs(z_spread) > np.abs(z_level)
    z = np.where(by_spread, z_spread, z_level)
    # erfc(|z| / sqrt(2)) is the two-sided p-value; doubled, as z is the larger of two statistics
    p_value = np.minimum(2 * special.erfc(np.abs(z) / np.sqrt(2)), 1.0)
    # both are valid for any dependence between the tests
    is_holm = correction == "holm"
    adjusted = _holm(p_value) if is_holm else stats.false_discovery_control(p_value, method="by")
    direction = np.where(adjusted < LEVEL, 2 * by_spread + (z > 0), len(DIRECTIONS) - 1)
    # sort by p-value, then by error: the second sort is stable and keeps the order of the first
    order = np.argsort(-error)
    order = order[np.argsort(adjusted[order], kind="stable")]
    first = found.first[order]
    second = found.second[order]
    return pd.DataFrame(
        {
            "group": _names(masks, first, second),
            "n": np.rint(count[order]).astype(np.int64),
            "error": error[order],
            "direction": _text(
                pa.array(DIRECTIONS, pa.large_string()).take(pa.array(direction[order]))
            ),
            "bias": (
                (found.sums[4] / weight)[order] if has_residual else np.full(count.size, np.nan)
            ),
            "coverage_80": (found.sums[3] / weight)[order],
            "p_value": p_value[order],
            "p_adjusted": adjusted[order],
            "features": _features(masks, first, second),
        }
    )


def _holm(p: Floats) -> Floats:
    """Adjust p-values step down (Holm, 1979)."""
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return adjusted


def _names(masks: Masks, first: Ints, second: Ints) -> Any:
    """Return the name of each group, joined in Arrow.

    Joining Python strings for so many groups would take more time than their tests.
    """
    # the last entry is an empty name, for groups of one mask, whose first mask is all rows
    before = pa.array([f"{name} and " for name in masks.names] + [""], pa.large_string())
    first = np.where(first == ALL_ROWS, len(masks.names), first)
    parts = (
        before.take(pa.array(first)),
        pa.array(masks.names, pa.large_string()).take(pa.array(second)),
    )
    return _text(compute.binary_join_element_wise(*parts, pa.scalar("", pa.large_string())))


def _text(values: Any) -> Any:
    # an array, not a series: pandas would align the index of a series with that of other columns
    return values.to_pandas().array


def _features(masks: Masks, first: Ints, second: Ints) -> NDArray[np.object_]:
    """Return a tuple of feature names for each group; groups of the same features share one."""
    labels = masks.labels
    size = len(masks.labels)
    feature = np.append(masks.feature, size)  # all rows belong to no feature
    codes, pairs = pd.factorize(feature[first] * size + feature[second])
    pairs = (pairs // max(size, 1)).tolist(), (pairs % max(size, 1)).tolist()
    tuples = [
        (labels[j],) if i == size else (labels[i], labels[j]) for i, j in zip(*pairs, strict=True)
    ]
    return np.fromiter(tuples, dtype=object, count=len(tuples))[codes]


def _too_small(names: list[str], sizes: Ints) -> pd.DataFrame:
    """Return table rows for named groups that have too few rows for a test."""
    missing = np.full(sizes.size, np.nan)
    numbers = dict.fromkeys(("bias", "coverage_80", "p_value", "p_adjusted"), missing)
    return pd.DataFrame(
        {"group": names, "n": sizes.astype(np.int64), "error": missing, "direction": TOO_SMALL}
        | numbers
        | {"features": pd.Series([(name,) for name in names], dtype=object)}
    )
