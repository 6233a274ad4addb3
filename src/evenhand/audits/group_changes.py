"""Changes of the groups of two audits of the same rows, with paired simultaneous intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from evenhand._validate import Floats, Mask
from evenhand.audits.paired import Change, Profile, paired_changes, paired_mean
from evenhand.audits.recorded import Recorded, number
from evenhand.audits.row_record import EDGES, RowRecord, intersections
from evenhand.calibration import own_parts
from evenhand.columns import EVERYONE

LEVELS = {"coverage_80": 0.8, "coverage_90": 0.9}
MEASURES = ("error", *LEVELS, "bias")
"""Measures of a group that are compared."""

OF_EVENTS = ("error", "bias")
"""The same for 0/1 outcomes; the bias is event rate minus mean probability."""

SCORES_OF_EVENTS = ("predicted", "slope", "log_loss")
"""Values of 0/1 outcomes that are listed before and after."""

Outcome = Literal["better", "worse", "not significant", "unknown"]
SCORE_COLUMNS = ("measure", "before", "after", "change", "low", "high")


@dataclass(frozen=True)
class Pairs:
    """Row records of both audits in one order, and the groups that both list."""

    first: RowRecord
    second: RowRecord
    masks: dict[str, Mask]
    different: tuple[str, ...]

    @classmethod
    def of(cls, first: Recorded, second: Recorded, names: Sequence[str]) -> Pairs:
        """Line the rows of two audits up."""
        assert first.record is not None
        assert second.record is not None
        other = second.record.aligned(first.record)
        one = intersections(names, first.record.masks)
        two = intersections(names, other.masks)
        shared = [name for name in names if name in one and name in two]
        # columns of one name may be cut elsewhere, for example after another preparation
        same = [name for name in shared if np.array_equal(one[name], two[name])]
        masks = {EVERYONE: np.ones(first.record.n_samples, dtype=np.bool_)}
        masks |= {name: one[name] for name in same}
        return cls(first.record, other, masks, tuple(set(shared) - set(same)))


def group_changes(
    pairs: Pairs | None,
    rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    confidence: float,
    tolerance: float,
    *,
    is_binary: bool,
) -> pd.DataFrame:
    """Return the table of changes of the groups, in the order of `rows`.

    Parameters
    ----------
    pairs : Pairs or None
        Values of each row; None if they are not known, and then there are no intervals.
    rows : sequence of pairs of rows
        Rows of the groups in the tables of both audits.
    confidence : float
        Confidence of the intervals of all groups jointly, for each measure.
    tolerance : float
        Change of the error beyond which a group is important.
    is_binary : bool
        Whether outcomes are 0/1.
    """
    names = [row["group"] for row, _ in rows]
    measures = OF_EVENTS if is_binary else MEASURES
    known: dict[tuple[str, str], Change] = {}
    if pairs is not None:
        for measure in measures:
            known |= _changes(pairs, names, measure, confidence, is_binary=is_binary)
    records = []
    for before, after in rows:
        name = before["group"]
        record: dict[str, Any] = {"group": name, "n": before["n"]}
        for measure in measures:
            values = number(before.get(measure)), number(after.get(measure))
            # the audit's error of all people is corrected for chance, that of the rows is not
            is_same = not (is_binary and measure == "error" and name == EVERYONE)
            record |= _columns(measure, values, known.get((name, measure)), is_same=is_same)
        if is_binary:
            record["rate"] = number(before.get("rate"))
            for column in SCORES_OF_EVENTS:
                record[f"{column}_before"] = number(before.get(column))
                record[f"{column}_after"] = number(after.get(column))
        outcome = judged(record)
        is_beyond = abs(record["error_change"]) > tolerance
        important = outcome in ("better", "worse") and is_beyond
        records.append(record | {"outcome": outcome, "important": important})
    return pd.DataFrame(records)


def _columns(
    measure: str, values: tuple[float, float], change: Change | None, *, is_same: bool
) -> dict[str, float]:
    """Return the columns of a measure of a group.

    `is_same` is whether the values are those of the statistic whose change has the interval.
    """
    before, after = values
    low = high = np.nan
    if change is not None:
        # tables have all digits of PITs, records only their cells
        before = change.first if np.isnan(before) else before
        after = change.second if np.isnan(after) else after
        shift = (after - before) - change.value if is_same else 0.0
        low = np.minimum(change.low + shift, after - before)
        high = np.maximum(change.high + shift, after - before)
    return {
        f"{measure}_before": before,
        f"{measure}_after": after,
        f"{measure}_change": after - before,
        f"{measure}_change_low": low,
        f"{measure}_change_high": high,
    }


def judged(record: Mapping[str, Any]) -> Outcome:
    """Return whether the error of a group got better or worse: its interval excludes 0."""
    low, high = record["error_change_low"], record["error_change_high"]
    if not np.isfinite(low):
        return "unknown"
    if low > 0:
        return "worse"
    return "better" if high < 0 else "not significant"


def _changes(
    pairs: Pairs, names: Sequence[str], measure: str, confidence: float, *, is_binary: bool
) -> dict[tuple[str, str], Change]:
    """Return the change of a measure of each group with known rows."""
    listed = [name for name in names if name in pairs.masks]
    masks = [pairs.masks[name] for name in listed]
    one, other = (_profile(record, measure, is_binary) for record in (pairs.first, pairs.second))
    found = paired_changes(one, other, masks, len(masks), confidence)
    changes = {(name, measure): one for name, one in zip(listed, found, strict=True)}
    if is_binary and measure == "error" and EVERYONE in listed:
        one, other = profile_by_score(pairs.first), profile_by_score(pairs.second)
        everyone = [pairs.masks[EVERYONE]]
        (change,) = paired_changes(one, other, everyone, len(masks), confidence)
        changes[EVERYONE, measure] = change
    return changes


def _weight(record: RowRecord) -> Floats:
    return np.ones(record.n_samples) if record.weight is None else record.weight


def _profile(record: RowRecord, measure: str, is_binary: bool) -> Profile:
    """Return the values of each row that a measure is the mean of."""
    weight = _weight(record)
    if measure == "bias" or is_binary:
        target = None if measure == "bias" else np.zeros(1)
        return Profile(record.residual[:, None], target, weight)
    if measure == "error":
        return Profile(record.below, np.arange(1, EDGES) / EDGES, weight)
    # the ends of the intervals are edges of cells
    tail = round(EDGES * (1 - LEVELS[measure]) / 2)
    covered = record.below[:, EDGES - tail - 1] - record.below[:, tail - 1]
    return Profile(covered[:, None], None, weight, is_share=True)


def profile_by_score(record: RowRecord) -> Profile:
    """Return the residuals of 0/1 outcomes by tenth of the probability, times their number.

    The mean distance of the column means from 0 is the mean over people of the distance of event
    rate and mean probability in their tenth (verdict: 2).
    """
    residual = record.residual
    probability = np.where(residual > 0, 1 - residual, -residual)
    parts, k = own_parts(probability, record.weight)
    values = np.zeros((residual.size, k))
    values[np.arange(residual.size), parts] = k * residual
    return Profile(values, np.zeros(k), _weight(record))


def score_changes(pairs: Pairs, confidence: float) -> pd.DataFrame:
    """Return the changes of mean scores of all rows with pointwise paired intervals."""
    weight = _weight(pairs.first)
    rows = []
    for name, values in pairs.first.scores.items():
        # the density of rounded outcomes compares nothing
        is_density = name == "log score" and any(
            other != name and other.startswith(name) for other in pairs.first.scores
        )
        if name in pairs.second.scores and not is_density:
            one = paired_mean(values, pairs.second.scores[name], weight, confidence)
            rows.append((name, one.first, one.second, one.value, one.low, one.high))
    return pd.DataFrame(rows, columns=list(SCORE_COLUMNS))
