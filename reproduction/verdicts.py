"""Claims and verdicts over repetitions (splits or roll-outs)."""

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
        The claim, and the quantity that decides it.
    values : ndarray
        The quantity, one value per repetition; booleans for a share.
    limit : float
        Limit for the mean of the quantity.
    is_above : bool
        Whether the claim is that the mean lies above the limit, or below it.
    is_headline : bool
        Whether the study's summary always includes the claim.
    """

    claim: str
    measured: str
    values: Floats | Mask
    limit: float = 0.0
    is_above: bool = True
    is_headline: bool = False


def judge(claims: Iterable[Claim]) -> pd.DataFrame:
    """Return a table of claims with means, intervals and verdicts."""
    columns = ["claim", "measured", "value", "low", "high", "verdict"]
    return pd.DataFrame([_row(each) for each in claims], columns=columns)


def _row(claim: Claim) -> tuple[object, ...]:
    mean, low, high = interval(claim.values)
    # distances of both ends from the limit, positive on the side of the claim
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
    """Return the mean and the ends of its 95% interval, which are NaN for a single value.

    Student's t for numbers, Clopper-Pearson for booleans.
    """
    mean = float(np.mean(values))
    n = len(values)
    # one repetition gives no interval, and no verdict
    if n < 2:
        return mean, np.nan, np.nan
    # a t interval of a share may leave [0, 1], and has width 0 if all values agree
    if values.dtype == np.bool_:
        exact = stats.binomtest(round(mean * n), n).proportion_ci(CONFIDENCE)
        return mean, float(exact.low), float(exact.high)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def tally(found: pd.DataFrame) -> str:
    """Return the numbers of claims by verdict as text."""
    count = found["verdict"].value_counts()
    return (
        f"of {len(found)} claims {count.get('holds', 0)} hold, {count.get('does not hold', 0)} do"
        f" not hold and {count.get('undecided', 0)} are undecided"
    )


def spread_text(row: Any) -> str:
    """Return a value with the ends of its interval, if there is one, as text."""
    if row.low != row.low:
        return f"{row.value:.3f}"
    return f"{row.value:.3f}, {row.low:.3f} to {row.high:.3f}"
