"""Whether a claim holds over repetitions: splits or roll-outs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from evenhand._validate import Floats

CONFIDENCE = 0.95
NEGLIGIBLE = 0.02
"""An improvement by less than this counts as none: the errors that it is compared with are ten
times as large."""

Verdict = Literal["holds", "does not hold", "undecided"]

Claim = tuple[str, str, Floats | NDArray[np.bool_], float, bool]
"""What is claimed, what was measured, its values by split, the limit, and whether the mean is to
be above it."""


def judged(found: Iterable[Claim]) -> pd.DataFrame:
    """Claims as a table, each with its mean, its interval and its verdict."""
    columns = ["claim", "measured", "value", "low", "high", "verdict"]
    return pd.DataFrame([_row(*each) for each in found], columns=columns)


def _row(
    claim: str, measured: str, values: Floats | NDArray[np.bool_], limit: float, above: bool
) -> tuple[object, ...]:
    mean, low, high = interval(values)
    verdict: Verdict = "undecided"
    if (low > limit) if above else (high < limit):
        verdict = "holds"
    elif (high < limit) if above else (low > limit):
        verdict = "does not hold"
    return claim, measured, mean, low, high, verdict


def interval(values: Floats | NDArray[np.bool_]) -> tuple[float, float, float]:
    """Mean and ends of its 95% t interval (Clopper and Pearson's for answers yes or no), NaN for a single value."""
    mean = float(np.mean(values))
    n = len(values)
    if n < 2:
        return mean, np.nan, np.nan
    if values.dtype == np.bool_:
        exact = stats.binomtest(round(mean * n), n).proportion_ci(CONFIDENCE)
        return mean, float(exact.low), float(exact.high)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def tally(found: pd.DataFrame) -> str:
    """Say how many claims hold."""
    count = found["verdict"].value_counts()
    return (
        f"of {len(found)} claims {count.get('holds', 0)} hold, {count.get('does not hold', 0)} do"
        f" not, {count.get('undecided', 0)} cannot be decided"
    )


def spread_text(row: Any) -> str:
    """Write a value with the ends of its interval, if there is one."""
    if row.low != row.low:
        return f"{row.value:.3f}"
    return f"{row.value:.3f}, {row.low:.3f} to {row.high:.3f}"
