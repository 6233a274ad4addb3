"""Decisions of an audit: which groups are off, and which of these are a problem (verdict: 3).

They are made once, when an audit is assembled; reports and figures read them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.calibration import GivenForecast

SLOPES = (0.8, 1.25)
"""Calibration slopes outside of which a significant trend is a problem, whatever its size."""

ROUNDING = 1e-9
"""Rounding error of a difference of shares."""


def decide_groups(table: pd.DataFrame, tolerance: float, level: float) -> pd.DataFrame:
    """Add the columns `off` and `problem` to a table of groups.

    A group is off if its p-value, adjusted for the whole family, is below the level; groups that
    are too small and possible leaks never are. It is a problem if it is off and its estimated error
    is beyond the tolerance, or the slope of the trend that decides it far from 1.
    """
    if not len(table.columns):
        return table
    is_judged = ~(_numbers(table, "too_small") > 0) & ~(_numbers(table, "possible_leak") > 0)
    is_off = is_judged & (_numbers(table, "p_adjusted") < level)
    # where times are cut off, the error of the tested PITs understates the size (outcomes: 5)
    size, tested = _numbers(table, "km_error"), _numbers(table, "error")
    slope = _numbers(table, "slope")
    is_beyond = np.where(np.isnan(size), tested, size) > tolerance + ROUNDING
    is_beyond |= (slope < SLOPES[0]) | (slope > SLOPES[1])
    return table.assign(off=is_off, problem=is_off & is_beyond)


def decide_everyone(
    groups: pd.DataFrame, given: GivenForecast | None, tolerance: float
) -> pd.DataFrame:
    """Judge everyone, the first row, by the error given the forecast as well."""
    if given is None or not len(groups):
        return groups
    problem = groups["problem"].to_numpy(copy=True)
    problem[0] |= groups["off"].iloc[0] and given.error > tolerance + ROUNDING
    return groups.assign(problem=problem)


def same_decisions(groups: pd.DataFrame, scan: pd.DataFrame) -> pd.DataFrame:
    """Return the scan with the decisions of named groups of the same rows.

    The same rows have one decision under both names, also if they are too small.
    """
    columns = ["off", "problem"]
    named = groups.dropna(subset="scanned_as").drop_duplicates("scanned_as")
    known = named.set_index("scanned_as")[columns]
    is_named = scan["group"].isin(known.index).to_numpy()
    scan = scan.copy()
    scan.loc[is_named, columns] = known.loc[scan["group"][is_named]].to_numpy()
    return scan


def decide_learned(learned: pd.DataFrame, tolerance: float, level: float) -> pd.DataFrame:
    """Add the same columns to learned groups, whose p-values are adjusted for their number.

    Rules of groups that are not off would describe noise: they are removed.
    """
    found = decide_groups(learned, tolerance, level)
    if "description" not in found or found.empty:
        return found
    is_off = found["off"].to_numpy()
    kept = [rule if off else None for rule, off in zip(found["description"], is_off, strict=True)]
    return found.assign(
        # as objects: pandas would convert None to NaN
        description=pd.Series(kept, index=found.index, dtype=object),
        description_share=found["description_share"].where(is_off),
    )


def _numbers(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Return a column; NaN if the table lacks it."""
    if column not in table:
        return np.full(len(table), np.nan)
    return table[column].to_numpy(dtype=np.float64, na_value=np.nan)
