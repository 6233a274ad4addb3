"""Checks of the columns of served rows. Every message names the first wrong row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats, InputError, Mask, as_floats, bad_input
from evenhand.columns import as_table

Ends = tuple[Floats, Floats]


def check_column(
    name: str,
    values: Any,
    n: int,
    *,
    low: float,
    high: float,
    is_open: bool = False,
    known: Mask | None = None,
) -> Floats | None:
    """Return one float per row within a range; None for None.

    Parameters
    ----------
    name : str
        Name of the column.
    values : array-like of shape (n,) or None
        Numbers; missing values become NaN.
    n : int
        Number of rows.
    low, high : float
        Range of the values that are not missing.
    is_open : bool, default False
        Whether the ends of the range are excluded.
    known : ndarray of bool, shape (n,), optional
        Rows whose value must not be missing; values of other rows become NaN.
    """
    if values is None:
        return None
    floats = _as_column(name, values)
    if floats.shape != (n,):
        raise bad_input(name, f"have one value per time ({n})", f"shape {floats.shape}")
    if known is not None:
        floats = np.where(known, floats, np.nan)
        _refuse_missing(name, floats, known)
    inside = (floats > low) & (floats < high) if is_open else (floats >= low) & (floats <= high)
    wrong = np.flatnonzero(~inside & ~np.isnan(floats))
    if wrong.size:
        row = int(wrong[0])
        rule = f"lie {'strictly ' * is_open}between {low:g} and {high:g}"
        raise bad_input(f"{name}[{row}]", rule, f"{floats[row]:g}")
    return floats


def check_cells(name: str, cells: Any, known: Mask) -> Ends:
    """Return both ends of the PIT cells, NaN where the outcome is missing."""
    try:
        low, high = cells
    except (TypeError, ValueError):
        got = type(cells).__name__
        raise bad_input(name, "be a tuple of the lower and the upper ends", got) from None
    ends = [
        check_column(f"{name}[{i}]", end, known.size, low=0, high=1, known=known)
        for i, end in enumerate((low, high))
    ]
    first, second = ends
    assert first is not None
    assert second is not None
    crossed = np.flatnonzero(first > second)
    if crossed.size:
        row = int(crossed[0])
        got = f"{first[row]:g} and {second[row]:g} in row {row}"
        raise bad_input(name, "have lower ends at or below the upper ends", got)
    return first, second


def check_promised(promised: Any, n: int) -> Mask | None:
    """Return which rows the promise covers as booleans; None for None."""
    if promised is None:
        return None
    mask = np.asarray(promised)
    if mask.dtype != np.bool_ or mask.shape != (n,):
        got = f"{mask.dtype} of shape {mask.shape}"
        raise bad_input("promised", f"be {n} booleans", got)
    return mask


def check_table(columns: Any, n: int) -> Any:
    """Return the columns that define groups as a DataFrame; None for None."""
    if columns is None:
        return None
    table = pd.DataFrame(columns) if isinstance(columns, dict) else columns
    return as_table(table, n, name="columns", per="forecast")


def _as_column(name: str, values: Any) -> Floats:
    # None in a list of numbers makes objects, whose None numpy reads as NaN
    if isinstance(values, pd.Series):
        values = pd.to_numeric(values).to_numpy(dtype=np.float64, na_value=np.nan)
    return as_floats(name, values)


def _refuse_missing(name: str, floats: Floats, known: Mask) -> None:
    lacks = np.flatnonzero(known & np.isnan(floats))
    if lacks.size:
        row = int(lacks[0])
        raise InputError(
            f"{name}[{row}] is missing, but the outcome of this row is known; set known to False"
        )
