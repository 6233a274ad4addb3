"""Table of the groups of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from evenhand._validate import Floats, Ints
from evenhand.calibration import GroupSums
from evenhand.search.directions import (
    AS_FORECAST,
    HIGHER,
    LOWER,
    NARROW,
    TOO_SMALL,
    WIDE,
    Direction,
)
from evenhand.search.masks import Masks
from evenhand.search.pairs import ALL_ROWS

LEVEL = 0.05
"""Default significance level of scans."""

DIRECTIONS: tuple[Direction, ...] = (LOWER, HIGHER, WIDE, NARROW, AS_FORECAST)
"""Directions by code: a low (0) or high (1) mean PIT, a low (2) or high (3) spread of PITs."""


def scan_table(
    groups: tuple[Masks, Ints, Ints],
    sums: GroupSums,
    adjusted: Floats,
    intervals: Mapping[str, tuple[Floats, Floats]],
    few: Mapping[str, int],
    level: float = LEVEL,
    slopes: Mapping[str, Floats] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return the table of the groups with their tests and intervals, sorted.

    Parameters
    ----------
    groups : tuple of Masks and two ndarrays of int, shape (g,)
        Single groups, and the numbers of the two masks of each listed group.
    sums : GroupSums
        Sums over each group.
    adjusted : ndarray of shape (g,)
        Adjusted p-values.
    intervals : dict of str to tuple of two ndarrays of shape (g,)
        Ends of the interval of each measure.
    few : dict of str to int
        Number of rows of named groups with too few rows for a test.
    level : float, default 0.05
        Significance level: groups with a larger adjusted p-value have no direction.
    slopes : dict of str to ndarray of shape (g,)
        Further columns.
    """
    p_value = sums.tests.p_value
    direction = _direction_codes(sums, adjusted, level)
    # sort by p-value, then by error: the second sort is stable and keeps the order of the first
    order = np.argsort(-sums.error)
    order = order[np.argsort(adjusted[order], kind="stable")]
    masks = groups[0]
    first = groups[1][order]
    second = groups[2][order]
    banded = {
        key: _banded(key, values, intervals[key], order) for key, values in sums.estimates.items()
    }
    texts = pa.array(DIRECTIONS, pa.large_string()).take(pa.array(direction[order]))
    columns = {
        "group": _names(masks, first, second),
        "n": sums.n[order].astype(np.int64),
        **banded.pop("error"),
        "direction": _text(texts),
    }
    for one in banded.values():
        columns |= one
    columns |= {name: values[order] for name, values in (sums.rates | dict(slopes)).items()}
    tests = {"p_value": p_value[order], "p_adjusted": adjusted[order]}
    frame = pd.DataFrame(columns | tests | {"features": _features(masks, first, second)})
    if few:
        frame = pd.concat([frame, _too_small(few, frame)], ignore_index=True)
    frame.attrs |= masks.attrs
    return frame


def directions(sums: GroupSums, adjusted: Floats, level: float) -> list[Direction]:
    """Return the direction of each group; "as forecast" unless its adjusted p-value is small."""
    return [DIRECTIONS[code] for code in _direction_codes(sums, adjusted, level)]


def _direction_codes(sums: GroupSums, adjusted: Floats, level: float) -> Ints:
    z_level, z_spread, _ = sums.tests
    by_spread = np.abs(z_spread) > np.abs(z_level)
    z = np.where(by_spread, z_spread, z_level)
    return np.where(adjusted < level, 2 * by_spread + (z > 0), len(DIRECTIONS) - 1)


def _banded(
    key: str, estimate: Floats, interval: tuple[Floats, Floats], order: Ints
) -> dict[str, Any]:
    """Return the columns of a measure and its interval."""
    low, high = interval
    return {key: estimate[order], f"{key}_low": low[order], f"{key}_high": high[order]}


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


def _too_small(few: Mapping[str, int], frame: pd.DataFrame) -> pd.DataFrame:
    """Return table rows for named groups that have too few rows for a test."""
    numbers = {name: np.nan for name in frame.columns if frame[name].dtype == np.float64}
    features = pd.Series([(name,) for name in few], dtype=object)
    known = {"group": list(few), "n": list(few.values()), "direction": TOO_SMALL}
    return pd.DataFrame(known | numbers | {"features": features})[list(frame.columns)]
