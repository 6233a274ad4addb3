"""Held-out check of recalibration: whether maps helped, by group, on rows not used for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from evenhand._format import band, count, number, points
from evenhand._table import Cells, Column, Table, line_width, lines_within, numeric, wrapped
from evenhand._validate import Floats, Mask
from evenhand.calibration import n_effective, rate_error
from evenhand.censoring import CensoredTimes
from evenhand.columns import EVERYONE
from evenhand.distributions import OutcomeKind
from evenhand.forecasters.held_out import HeldOut, Maps
from evenhand.forecasters.maps import Members

Verdict = Literal["helps", "no evidence", "may not help", "harms"]
"""Verdict of a check. Without evidence, it is "may not help" for a group with a correction of its
own, and "no evidence" for other groups."""

N_FOLDS = 5
"""Number of folds of the check."""

CONFIDENCE = 0.95
"""Confidence with which the intervals of all groups contain the expected gains."""

FEWEST_EVENTS = 10
"""Fewest observed events of a group for an interval, where times may be cut off."""

SHOWN = 4
"""Number of groups that a short text of a check lists."""

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


SHORT_LINE = 88
"""Characters of a line of a short text."""

NOTE = (
    "Rows that were not used for the maps (cross-fitted). Errors are in percentage points."
    " Gain: mean log score after recalibration minus before. The intervals hold for all groups"
    " simultaneously. They do not account for groups that were chosen by their outcomes in"
    " these same rows."
)
"""How the numbers of a check are computed, and what its intervals leave out."""

NOTE_OF_TIMES = (
    " Times that are cut off (censored): errors are Kaplan-Meier estimates, and gains are those in"
    " the probability of what is known of each person. Both assume that, within a group, being cut"
    " off is independent of the time of the event given its forecast. Groups with fewer than"
    f" {FEWEST_EVENTS} observed events have no interval."
)
"""What the numbers of a check assume about times that are cut off."""


def check_maps(
    held_out: HeldOut,
    weight: Floats,
    members: Members,
    corrected: Mapping[str, str],
    random: np.random.Generator,
    times: CensoredTimes | None = None,
) -> pd.DataFrame:
    """Compare errors and log scores with and without maps, on rows that the maps have not seen.

    Groups that get a correction are selected again without each fold.

    Parameters
    ----------
    held_out : HeldOut of n rows
        Held-out forecasts of the model with their outcomes.
    weight : ndarray of shape (n,)
        Weights of the rows.
    members : Members
        Membership of the rows.
    corrected : mapping of str to str
        The map of each group of the fitted model, "own" or "pooled".
    random : Generator
        Assigns the rows to folds.
    times : CensoredTimes of n people, optional
        Outcomes that are times which may be cut off; None for other outcomes.

    Returns
    -------
    DataFrame
        One row for everyone and one per group, see `RecalibratedRegressor`.
    """
    n = held_out.size
    gain = np.empty(n)
    parts = []
    order = random.permutation(n)
    for fold in range(min(N_FOLDS, n)):
        test = np.sort(order[fold::N_FOLDS])
        learn = np.sort(np.delete(order, np.s_[fold::N_FOLDS]))
        maps = Maps.learn(held_out.take(learn), weight[learn], members.take(learn))
        mapped, gain[test] = maps.applied(held_out.take(test), members.take(test))
        parts.append((test, mapped))
    found = held_out, HeldOut.joined(parts), gain
    everyone = (EVERYONE, np.ones(n, dtype=bool))
    n_intervals = 1 + len(members.names)
    rows = []
    for name, mask in (everyone, *members.groups()):
        is_few = times is not None and times.happened[mask & (weight > 0)].sum() < FEWEST_EVENTS
        kind = corrected.get(name, "pooled")
        rows.append(_row(name, mask, kind, weight, found, n_intervals, is_few=is_few))
    return check_table(rows)


def check_table(rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """Return the table of a check from its rows."""
    table = pd.DataFrame(list(rows), columns=list(CHECK_COLUMNS))
    numbers = ("error_before", "error_after", "gain", "low", "high")
    return table.astype({"n": np.int64} | dict.fromkeys(numbers, np.float64))


def check_text(table: pd.DataFrame, *, full: bool = True, n_lost: int | None = None) -> str:
    """Return a check as text, with the verdicts in words.

    Unless `full`, everyone and the `SHOWN` most notable groups are listed, and others are counted.
    With `n_lost` rows whose times are cut off, the text names what is assumed about them.
    """
    note = NOTE + (NOTE_OF_TIMES if n_lost else "")
    if full or len(table) <= 2 + SHOWN:
        return f"{_listed(table)}\n\n{wrapped(note)}"
    listed = _notable(table)
    counted = _counted(table.drop(index=listed.index))
    with lines_within(min(line_width(), SHORT_LINE)):
        return f"{_listed(listed)}\n{wrapped(counted)}\n\n{wrapped(note)}"


def _listed(table: pd.DataFrame) -> str:
    cells: Cells[Any] = {
        Column("group"): lambda row: row.group,
        numeric("rows"): lambda row: f"{row.n:,}",
        numeric("error before"): lambda row: points(row.error_before),
        numeric("after"): lambda row: points(row.error_after),
        numeric("gain (nats)"): lambda row: number(row.gain),
        Column("95% interval"): lambda row: band(number, row.low, row.high),
        Column("verdict"): verdict_text,
    }
    return Table.of("Check of the repair", table.itertuples(index=False), cells).text()


def _notable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of everyone, then of groups made worse, then by falling error before."""
    groups = table.iloc[1:]
    is_worse = groups["verdict"] == "harms"
    order = np.lexsort((-groups["error_before"], ~is_worse))[:SHOWN]
    return pd.concat([table.iloc[:1], groups.iloc[order]])


def _counted(others: pd.DataFrame) -> str:
    """Return how many of the groups that are not listed were helped."""
    n_helped = int((others["verdict"] == "helps").sum())
    n_worse = int((others["verdict"] == "harms").sum())
    n_open = len(others) - n_helped - n_worse
    return (
        f"{count(len(others), 'other group')}: forecasts got better in {n_helped:,} and worse in"
        f" {n_worse:,}; no evidence in {n_open:,}. summary(full=True) lists them."
    )


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
    found: tuple[HeldOut, HeldOut, Floats],
    n_intervals: int,
    *,
    is_few: bool,
) -> list[Any]:
    """Return the cells of one group, in the order of `CHECK_COLUMNS`.

    With few events (`is_few`) there is no interval, as with a single row.
    """
    used = mask & (weight > 0)
    before, after, gain = found
    own = weight[used]
    level = 1 - (1 - CONFIDENCE) / n_intervals
    low, mean, high = _mean_interval(gain[used], own, level)
    if is_few:
        low = high = np.nan
    is_everyone = name == EVERYONE
    errors = [_error(side.take(used), own, is_everyone=is_everyone) for side in (before, after)]
    return [name, int(used.sum()), kind, *errors, mean, low, high, _verdict(low, high, kind)]


def _error(held_out: HeldOut, weight: Floats, *, is_everyone: bool) -> float:
    """Return the error of a group in the measure of an audit; NaN if it is not known."""
    lost, events = held_out.pit.lost, held_out.events
    if weight.size == 0 or (lost is not None and lost.all()):
        return np.nan
    if events is None or held_out.kind is not OutcomeKind.BINARY:
        return held_out.cells().error(weight)
    p, happened = events.probability, events.happened.astype(np.float64)
    if not is_everyone:
        return abs(float(weight @ (happened - p))) / float(weight.sum())
    # errors of opposite sign of low and high probabilities do not cancel
    weights = None if (weight == weight[0]).all() else weight
    return rate_error(p, happened, 1 - CONFIDENCE, weights).error


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
    freedom = max(n_effective(weight) - 1, 1.0)
    # n / (n - 1), as the mean is estimated from the same rows
    variance = (share**2) @ (values - mean) ** 2 * (freedom + 1) / freedom
    width = float(stats.t.isf((1 - confidence) / 2, freedom) * np.sqrt(variance))
    return mean - width, mean, mean + width
