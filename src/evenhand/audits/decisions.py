"""Decisions of an audit: which groups are off, and which by more than the tolerance.

They are made once, when an audit is assembled; reports and figures read them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.audits.scores import LEVELS
from evenhand.calibration import coverage_name, holm
from evenhand.report import Tolerance

Bools = NDArray[np.bool_]


def decide_groups(
    groups: pd.DataFrame, scan: pd.DataFrame, tolerance: Tolerance, confidence: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Add the columns `off` and `beyond_tolerance` to the tables of named and scanned groups.

    A group is off if its p-value, adjusted for all named and scanned groups, is below one minus the
    confidence. All people, the first row of `groups`, are one group and not one of many: they are
    off if the confidence interval of their error excludes 0. Groups that are too small and possible
    leaks are never off. A group is beyond the tolerance if it is off and its estimated error or
    coverage exceeds the tolerance.
    """
    is_judged = ~(_numbers(groups, "too_small") > 0) & ~(_numbers(groups, "possible_leak") > 0)
    is_off = is_judged & (_numbers(groups, "p_adjusted") < 1 - confidence)
    is_off[:1] = _numbers(groups, "error_low")[:1] > 0
    named = _decided(groups, is_off, tolerance)
    scanned = _decided(scan, _numbers(scan, "p_adjusted") < 1 - confidence, tolerance)
    # the same rows have one decision under both names, also if they are too small
    columns = ["off", "beyond_tolerance"]
    decided = named.dropna(subset="scanned_as").drop_duplicates("scanned_as")
    known = decided.set_index("scanned_as")[columns]
    is_named = scanned["group"].isin(known.index).to_numpy()
    scanned.loc[is_named, columns] = known.loc[scanned["group"][is_named]].to_numpy()
    return named, scanned


def decide_learned(learned: pd.DataFrame, tolerance: Tolerance, confidence: float) -> pd.DataFrame:
    """Add the same columns to learned groups, whose p-values are adjusted for their number.

    Rules of groups that are not off would describe noise: they are removed.
    """
    p_adjusted = holm(_numbers(learned, "p_value"))
    is_off = p_adjusted < 1 - confidence
    found = _decided(learned, is_off, tolerance).assign(p_adjusted=p_adjusted)
    if "description" not in found:
        return found
    kept = [rule if off else None for rule, off in zip(found["description"], is_off, strict=True)]
    return found.assign(
        # as objects: pandas would convert None to NaN
        description=pd.Series(kept, index=found.index, dtype=object),
        description_share=found["description_share"].where(is_off),
    )


def _decided(table: pd.DataFrame, is_off: Bools, tolerance: Tolerance) -> pd.DataFrame:
    coverage = {level: _numbers(table, coverage_name(level)) for level in LEVELS}
    # where times are cut off, the error of the tested PITs understates the size (outcomes: 5)
    size, tested = _numbers(table, "km_error"), _numbers(table, "error")
    error = np.where(np.isnan(size), tested, size)
    is_beyond = is_off & tolerance.is_exceeded(error, coverage)
    return table.assign(off=is_off, beyond_tolerance=is_beyond)


def _numbers(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Return a column; NaN if the table lacks it."""
    if column not in table:
        return np.full(len(table), np.nan)
    return table[column].to_numpy(dtype=np.float64, na_value=np.nan)
