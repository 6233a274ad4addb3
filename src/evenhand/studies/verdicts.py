"""Claims and their verdicts over repetitions, which are splits or roll-outs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from evenhand._validate import Floats, Mask

CONFIDENCE = 0.95
Verdict = Literal["holds", "does not hold", "undecided"]


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim about a mean over repetitions.

    Parameters
    ----------
    claim, measured : str
        The claim, and the quantity by which it is judged.
    values : ndarray
        The quantity, one value per repetition; booleans for a share.
    limit : float
        The mean lies above it if the claim holds, or below it.
    is_above : bool
        Whether the claim holds above the limit.
    is_headline : bool
        Whether the study's summary names it whatever the verdict.
    """

    claim: str
    measured: str
    values: Floats | Mask
    limit: float = 0.0
    is_above: bool = True
    is_headline: bool = False


def judge(claims: Iterable[Claim]) -> pd.DataFrame:
    """Claims as a table, each with its mean, its interval and its verdict."""
    columns = ["claim", "measured", "value", "low", "high", "verdict"]
    return pd.DataFrame([_row(each) for each in claims], columns=columns)


def _row(claim: Claim) -> tuple[object, ...]:
    mean, low, high = interval(claim.values)
    # the distances of both ends from the limit, positive on the side of the claim
    near, far = low - claim.limit, high - claim.limit
    if not claim.is_above:
        near, far = -far, -near
    verdict: Verdict = "undecided"
    if near > 0:
        verdict = "holds"
    elif far < 0:
        verdict = "does not hold"
    return claim.claim, claim.measured, mean, low, high, verdict


def interval(values: Floats | Mask) -> tuple[float, float, float]:
    """Mean and ends of its 95% interval, NaN for a single value.

    Student's t for numbers, Clopper and Pearson's for answers yes or no.
    """
    mean = float(np.mean(values))
    n = len(values)
    # one repetition gives no interval, and no verdict
    if n < 2:
        return mean, np.nan, np.nan
    # a t interval of shares leaves [0, 1], and has width 0 if all answers agree
    if values.dtype == np.bool_:
        exact = stats.binomtest(round(mean * n), n).proportion_ci(CONFIDENCE)
        return mean, float(exact.low), float(exact.high)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def tally(found: pd.DataFrame) -> str:
    """Write how many claims hold."""
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
