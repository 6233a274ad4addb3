"""Named groups of rows that the columns of a table make: values, halves, missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._checks import Floats, bad_input
from evenhand.tables import column_of

__all__ = ["cut_name", "group_columns", "label"]

MAX_VALUES = 10  # most distinct values with which a number or date column gives one group per value
MAX_GROUPS = 100  # the same for text, where more are most likely ids
EXACT_WHOLE = 2**53  # whole numbers from here on may coincide as floats
MAX_PLAIN = 1e15  # whole numbers below this are written without an exponent


def group_columns(table: pd.DataFrame, names: Iterable[str], *, source: str) -> dict[str, NDArray[np.bool_]]:
    """Return the named groups that some columns make, for an audit; `source` is the file name for messages.

    Text, booleans, categories, and numbers or dates with at most 10 distinct values give one group per value,
    `sex = 2`. Other numbers and dates give two halves at the median, `age <= 50` and `age > 50`; if nothing lies above
    the median, at the value below it; the cut is rounded, but so that it still parts the rows as its name says. Dates
    and whole numbers of 2^53 and more are cut at one of their values. Missing values are a group of their own,
    `age missing`. The groups of one column share no row, leave none out and are never empty. Raises InputError if
    there is no such column, or a text column has more than 100 distinct values.

    Examples
    --------
    >>> groups = group_columns(pd.DataFrame({"sex": [2, 1, None]}), ["sex"], source="loans.csv")
    >>> {name: rows.tolist() for name, rows in groups.items()}
    {'sex = 1': [False, True, False], 'sex = 2': [True, False, False], 'sex missing': [False, False, True]}
    """
    groups: dict[str, NDArray[np.bool_]] = {}
    for name in names:
        values = column_of(table, name, source)
        missing = values.isna().to_numpy(dtype=bool)
        if values.dtype == object:
            values = values.map(label, na_action="ignore")
        ordered = values.dtype.kind in "iufM"
        if ordered and values.nunique() > MAX_VALUES:
            groups.update(_halves(values, missing, name))
        else:
            groups.update(_one_per_value(values, name, f"{source}: column {name!r}", ordered=ordered))
        if missing.any():
            groups[f"{name} missing"] = missing
    return groups


def _halves(values: pd.Series[Any], missing: NDArray[np.bool_], name: str) -> dict[str, NDArray[np.bool_]]:
    present = values[~missing]
    if values.dtype.kind == "M":
        moments = present.dt.tz_localize(None).to_numpy()
        cut = _middle(np.sort(moments))
        is_low, shown = moments <= cut, str(np.datetime_as_string(cut, unit="auto"))
    else:
        numbers = _numbers(present)
        rising = np.sort(numbers)
        cut = _median(rising) if rising.dtype.kind == "f" else _middle(rising)
        is_low = numbers <= cut
        at = int(np.searchsorted(rising, cut, side="right"))
        shown = cut_name(cut, rising[at - 1], rising[at])
    # Filled in by index: a missing value is in neither half, whatever it compares to.
    low, high = np.zeros_like(missing), np.zeros_like(missing)
    low[~missing], high[~missing] = is_low, ~is_low
    return {f"{name} <= {shown}": low, f"{name} > {shown}": high}


def _numbers(present: pd.Series[Any]) -> NDArray[Any]:
    """Return numbers as floats, or as whole numbers if floats could not tell them apart."""
    numbers: NDArray[Any] = present.to_numpy(dtype=np.float64)
    if present.dtype.kind in "iu" and np.abs(numbers).max() >= EXACT_WHOLE:
        return present.to_numpy(dtype=np.int64 if present.dtype.kind == "i" else np.uint64)
    return numbers


def _middle(rising: NDArray[Any]) -> Any:
    """Return the middle value, or the last one that has something above it."""
    cut = rising[(rising.size - 1) // 2]
    return cut if cut < rising[-1] else rising[rising < rising[-1]][-1]


def _median(rising: Floats) -> Any:
    """Return the median of the finite values, or the last value that has something above it."""
    finite = rising[np.isfinite(rising)]
    with np.errstate(over="ignore"):
        cut = np.median(finite)
    return cut if np.isfinite(cut) and cut < rising[-1] else _middle(rising)


def cut_name(cut: Any, last: Any, first: Any) -> str:
    """Write a cut with as few digits, six or more, as still part `last`, the largest low value, from `first` above it.

    Whole numbers below 10^15 are written without an exponent.

    Examples
    --------
    >>> cut_name(20200610.5, 20200610.0, 20200611.0), cut_name(0.123456789, 0.1, 0.2)
    ('20200610', '0.123457')
    """
    if isinstance(cut, np.integer):
        return str(int(cut))
    number = float(cut)
    for digits in range(6, 18):  # 17 digits hold every float
        shown = f"{number:.{digits}g}"
        if last <= float(shown) < first:
            break
    rounded = float(shown)
    return str(int(rounded)) if rounded.is_integer() and abs(rounded) < MAX_PLAIN else shown


def _one_per_value(values: pd.Series[Any], name: str, place: str, *, ordered: bool) -> dict[str, NDArray[np.bool_]]:
    codes, distinct = pd.factorize(values, sort=ordered)  # missing values have the code -1
    labels = [label(value) for value in distinct]
    if len(set(labels)) > MAX_GROUPS:
        raise bad_input(place, f"have at most {MAX_GROUPS} distinct values", len(set(labels)), "join the rare values")
    label_of = np.array([*labels, None], dtype=object)[codes]
    kept = labels if ordered else sorted(labels)
    return {f"{name} = {shown}": np.asarray(label_of == shown, dtype=np.bool_) for shown in kept}


def label(value: Any) -> str:
    """Return a value as groups are named: 2.0 as `2`, a midnight as its date.

    Examples
    --------
    >>> label(2.0), label(pd.Timestamp("2020-01-31"))
    ('2', '2020-01-31')
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, pd.Timestamp):
        return value.date().isoformat() if value == value.normalize() else str(value)
    return str(value)
