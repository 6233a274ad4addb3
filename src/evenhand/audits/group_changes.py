"""Changes of the groups of two audits of the same rows, with paired simultaneous intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from evenhand._validate import Floats, Mask
from evenhand.audits.paired import Change, Profile, paired_changes, paired_mean
from evenhand.audits.recorded import Recorded, number
from evenhand.audits.row_record import EDGES, RowRecord, intersections
from evenhand.columns import EVERYONE
from evenhand.report import Tolerance

LEVELS = {"coverage_80": 0.8, "coverage_90": 0.9}
MEASURES = ("error", *LEVELS, "bias")
"""Measures of a group that are compared."""

FAMILY = 3
"""Measures that decide whether a group changed: error and both coverages."""

Outcome = Literal["better", "worse", "mixed", "changed", "not significant", "unknown"]
Direction = Literal["nearer", "farther", "open"]
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
    tolerance: Tolerance,
) -> pd.DataFrame:
    """Return the table of changes of the groups, in the order of `rows`.

    Parameters
    ----------
    pairs : Pairs or None
        Values of each row; None if they are not known, and then there are no intervals.
    rows : sequence of pairs of rows
        Rows of the groups in the tables of both audits.
    confidence : float
        Confidence of all intervals of errors and coverages jointly, and of those of biases jointly.
    tolerance : Tolerance
        Changes beyond which a group is important.
    """
    names = [row["group"] for row, _ in rows]
    known = {} if pairs is None else _changes(pairs, names, confidence)
    sums = {} if pairs is None else _sums(pairs, names, confidence)
    records = []
    for before, after in rows:
        name = before["group"]
        record: dict[str, Any] = {"group": name, "n": before["n"]}
        for measure in MEASURES:
            change = known.get((name, measure))
            record |= _columns(
                measure, number(before.get(measure)), number(after.get(measure)), change
            )
        directions = {level: _direction(record, level, sums.get((name, level))) for level in LEVELS}
        outcome, beyond = judged(record, directions, tolerance)
        records.append(record | {"outcome": outcome, "beyond_tolerance": beyond})
    return pd.DataFrame(records)


def _columns(measure: str, before: float, after: float, change: Change | None) -> dict[str, float]:
    """Return the columns of a measure of a group."""
    low = high = np.nan
    if change is not None:
        # tables have all digits of PITs, records only their cells
        before = change.first if np.isnan(before) else before
        after = change.second if np.isnan(after) else after
        shift = (after - before) - change.value
        low, high = change.low + shift, change.high + shift
    return {
        f"{measure}_before": before,
        f"{measure}_after": after,
        f"{measure}_change": after - before,
        f"{measure}_change_low": low,
        f"{measure}_change_high": high,
    }


def judged(
    record: Mapping[str, Any], directions: Mapping[str, Direction], tolerance: Tolerance
) -> tuple[Outcome, bool]:
    """Return whether a group got better or worse, and whether by more than the tolerance.

    It got better (worse) if the interval of the change of its error lies below (above) 0, or if a
    coverage changed significantly and is significantly nearer to (farther from) its level. It
    changed if a coverage did, and neither is certain.
    """
    limits = {"error": tolerance.error} | dict.fromkeys(LEVELS, tolerance.coverage)
    found: dict[str, Direction] = {}
    for measure in limits:
        low, high = (record[f"{measure}_change_{end}"] for end in ("low", "high"))
        if low > 0 or high < 0:
            found[measure] = directions.get(measure, "farther" if low > 0 else "nearer")
    beyond = any(abs(record[f"{measure}_change"]) > limits[measure] for measure in found)
    if not np.isfinite(record["error_change_low"]):
        return "unknown", False
    if not found:
        return "not significant", False
    better, worse = ("nearer" in found.values()), ("farther" in found.values())
    if better and worse:
        return "mixed", beyond
    if better or worse:
        return ("better" if better else "worse"), beyond
    return "changed", beyond


def _direction(record: Mapping[str, Any], measure: str, both: Change | None) -> Direction:
    """Return whether a coverage is significantly nearer to its level, or farther from it.

    With `a` and `b` the differences from the level before and after, `b` is nearer to 0 if `b - a`
    and `b + a` have opposite signs, and farther if they have the same.
    """
    low, high = (record[f"{measure}_change_{end}"] for end in ("low", "high"))
    if both is None or not (low > 0 or high < 0) or not (both.low > 0 or both.high < 0):
        return "open"
    return "farther" if (low > 0) == (both.low > 0) else "nearer"


def _changes(
    pairs: Pairs, names: Sequence[str], confidence: float
) -> dict[tuple[str, str], Change]:
    """Return the change of each measure of each group with known rows."""
    listed = [name for name in names if name in pairs.masks]
    masks = [pairs.masks[name] for name in listed]
    found: dict[tuple[str, str], Change] = {}
    for measure in MEASURES:
        n_intervals = len(masks) * (1 if measure == "bias" else FAMILY)
        sides = _profile(pairs.first, measure), _profile(pairs.second, measure)
        changes = paired_changes(*sides, masks, n_intervals, confidence)
        found |= {(name, measure): one for name, one in zip(listed, changes, strict=True)}
    return found


def _sums(pairs: Pairs, names: Sequence[str], confidence: float) -> dict[tuple[str, str], Change]:
    """Return the sum of both coverages, each minus its level, as the change of `level - first`."""
    listed = [name for name in names if name in pairs.masks]
    masks = [pairs.masks[name] for name in listed]
    found: dict[tuple[str, str], Change] = {}
    for measure, level in LEVELS.items():
        first, second = _profile(pairs.first, measure), _profile(pairs.second, measure)
        # not shares of one event: their sum may reach 2
        mirrored = replace(first, values=2 * level - first.values, is_share=False)
        # a direction is reported only if the change is significant as well: one level for both
        changes = paired_changes(mirrored, second, masks, len(masks) * FAMILY, confidence)
        found |= {(name, measure): one for name, one in zip(listed, changes, strict=True)}
    return found


def _weight(record: RowRecord) -> Floats:
    return np.ones(record.n_samples) if record.weight is None else record.weight


def _profile(record: RowRecord, measure: str) -> Profile:
    """Return the values of each row that a measure is the mean of."""
    weight = _weight(record)
    if measure == "error":
        return Profile(record.below, np.arange(1, EDGES) / EDGES, weight)
    if measure == "bias":
        return Profile(record.residual[:, None], None, weight)
    # the ends of the intervals are edges of cells
    tail = round(EDGES * (1 - LEVELS[measure]) / 2)
    covered = record.below[:, EDGES - tail - 1] - record.below[:, tail - 1]
    return Profile(covered[:, None], None, weight, is_share=True)


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
