"""Held-out check of recalibration: whether maps helped, by group, on rows not used for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from evenhand._format import band, count, number, points
from evenhand._table import Cells, Column, Table, numeric, wrapped
from evenhand._validate import Floats, Mask
from evenhand.columns import EVERYONE
from evenhand.forecasters.adapters import effective_size
from evenhand.forecasters.membership import Members, map_pits

Verdict = Literal["helps", "no evidence", "may not help", "harms"]
"""Verdict of a check. Without evidence, it is "may not help" for a group with a correction of its
own, and "no evidence" for other groups."""

N_FOLDS = 5
"""Number of folds of the check."""

CONFIDENCE = 0.95
"""Confidence with which the intervals of all groups contain the expected gains."""

CHECK_COLUMNS = (
    "group",
    "n",
    "map",
    "error_before",
    "error_after",
    "gain",
    "low",
    "high",
    "verdict",
)
"""Columns of the table of a check."""


def check_maps(
    pit: Floats,
    weight: Floats,
    members: Members,
    corrected: Mapping[str, str],
    random: np.random.Generator,
) -> pd.DataFrame:
    """Compare errors and log scores with and without maps, on rows that the maps have not seen.

    Groups that get a correction are selected again without each fold.

    Parameters
    ----------
    pit : ndarray of shape (n,)
        Held-out PITs of the model.
    weight : ndarray of shape (n,)
        Weights of the rows.
    members : Members
        Membership of the rows.
    corrected : mapping of str to str
        The map of each group of the fitted model, "own" or "pooled".
    random : Generator
        Assigns the rows to folds.

    Returns
    -------
    DataFrame
        One row for everyone and one per group, see `RecalibratedRegressor`.
    """
    after = np.empty_like(pit)
    gain = np.empty_like(pit)
    order = random.permutation(pit.size)
    for fold in range(min(N_FOLDS, pit.size)):
        held_out = np.sort(order[fold::N_FOLDS])
        learn = np.sort(np.delete(order, np.s_[fold::N_FOLDS]))
        maps = members.take(learn).learn(pit[learn], weight[learn])
        knots = members.take(held_out).knots(maps)
        after[held_out], gain[held_out] = map_pits(pit[held_out], *knots)
    everyone = (EVERYONE, np.ones(pit.size, dtype=bool))
    n_intervals = 1 + len(members.names)
    rows = [
        _row(name, mask, corrected.get(name, "pooled"), weight, (pit, after, gain), n_intervals)
        for name, mask in (everyone, *members.groups())
    ]
    return check_table(rows)


def check_table(rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """Return the table of a check from its rows."""
    table = pd.DataFrame(list(rows), columns=list(CHECK_COLUMNS))
    numbers = ("error_before", "error_after", "gain", "low", "high")
    return table.astype({"n": np.int64} | dict.fromkeys(numbers, np.float64))


def check_text(table: pd.DataFrame) -> str:
    """Return the table of a check as text, with the verdicts in words."""
    cells: Cells[Any] = {
        Column("group"): lambda row: row.group,
        numeric("rows"): lambda row: f"{row.n:,}",
        numeric("error before"): lambda row: points(row.error_before),
        numeric("after"): lambda row: points(row.error_after),
        numeric("gain (nats)"): lambda row: number(row.gain),
        Column("95% interval"): lambda row: band(number, row.low, row.high),
        Column("verdict"): verdict_text,
    }
    shown = Table.of("Check of the repair", table.itertuples(index=False), cells).text()
    note = (
        "Rows that were not used for the maps (cross-fitted). Errors are in percentage points."
        " Gain: mean log score after recalibration minus before. The intervals hold for all groups"
        " simultaneously. They do not account for groups that were chosen by their outcomes in"
        " these same rows."
    )
    return f"{shown}\n\n{wrapped(note)}"


def verdict_text(row: Any) -> str:
    """Return a verdict in words."""
    words: dict[Verdict, str] = {
        "helps": "helps",
        "harms": "makes forecasts worse",
        "no evidence": "no evidence that it helps",
        "may not help": f"a repair that may not help: {count(row.n, 'person', 'people')}",
    }
    return words[row.verdict]


def _row(
    name: str,
    mask: Mask,
    kind: str,
    weight: Floats,
    found: tuple[Floats, Floats, Floats],
    n_intervals: int,
) -> list[Any]:
    """Return the cells of one group, in the order of `CHECK_COLUMNS`."""
    used = mask & (weight > 0)
    before, after, gain = (values[used] for values in found)
    own = weight[used]
    low, mean, high = _mean_interval(gain, own, 1 - (1 - CONFIDENCE) / n_intervals)
    errors = [_error(before, own), _error(after, own)]
    return [name, int(used.sum()), kind, *errors, mean, low, high, _verdict(low, high, kind)]


def _verdict(low: float, high: float, kind: str) -> Verdict:
    if low > 0:
        return "helps"
    if high < 0:
        return "harms"
    return "may not help" if kind == "own" else "no evidence"


def _mean_interval(values: Floats, weight: Floats, confidence: float) -> tuple[float, float, float]:
    """Return a weighted mean with its t interval; NaN without rows or spread."""
    if values.size < 2:
        return np.nan, float(values.mean()) if values.size else np.nan, np.nan
    share = weight / weight.sum()
    mean = float(share @ values)
    freedom = max(effective_size(weight) - 1, 1.0)
    # n / (n - 1), as the mean is estimated from the same rows
    variance = (share**2) @ (values - mean) ** 2 * (freedom + 1) / freedom
    width = float(stats.t.isf((1 - confidence) / 2, freedom) * np.sqrt(variance))
    return mean - width, mean, mean + width


def _error(pit: Floats, weight: Floats) -> float:
    """Return the W1 distance of weighted PITs from uniform."""
    if pit.size == 0:
        return np.nan
    order = np.argsort(pit)
    edges = np.concatenate(([0.0], np.cumsum(weight[order]) / weight.sum()))
    # the integral of |q - u| over the ranks of a PIT is a difference of (q - u) |q - u| / 2
    high = edges[1:] - pit[order]
    low = edges[:-1] - pit[order]
    return float((high * np.abs(high) - low * np.abs(low)).sum() / 2)
