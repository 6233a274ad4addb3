"""Comparison of two audits of the same rows."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from evenhand._files import write_text
from evenhand._format import Summarized, and_more, number_in_full, one_line
from evenhand._kinds import POSSIBLE_LEAK
from evenhand._validate import Floats, InputError, Mask, bad_input, check_fraction, short
from evenhand.audits.csv_tables import write_tables
from evenhand.audits.result import Audit
from evenhand.audits.row_record import EDGES, RowRecord, intersections
from evenhand.calibration import n_effective, own_parts
from evenhand.distributions import OutcomeKind
from evenhand.report import Measure, Quantity, comparison_html, comparison_text, difference_in_words
from evenhand.tables import EVERYONE

# --- layout of recorded audits

TYPES: Mapping[str, tuple[Any, str]] = {
    "object": (dict, "an object"),
    "array": (list, "a list"),
    "string": (str, "a text"),
    "integer": (int, "a number"),
    "number": (int | float, "a number"),
    "boolean": (bool, "true or false"),
    "null": (type(None), "null"),
}
"""Types of JSON Schema as types of Python and in words."""


def layout_fault(values: Any) -> str | None:
    """Return what in parsed JSON is not the layout of an audit; None if nothing is.

    Examples
    --------
    >>> layout_fault([])
    'no object'
    >>> layout_fault({"schema": "evenhand.plan/1"})
    "schema 'evenhand.plan/1'"
    """
    if not isinstance(values, dict):
        return "no object"
    if values.get("schema") != SCHEMA:
        return f"schema {values.get('schema')!r}"
    schema = audit_schema()
    # the values of rows are checked where they are read
    return _fault(values | {"rows": None}, schema, "", schema["$defs"])


def _fault(value: Any, schema: Mapping[str, Any], place: str, known: Any) -> str | None:
    """Return the first value that does not fit the part of the schema for its place."""
    if "$ref" in schema:
        return _fault(value, known[schema["$ref"].rpartition("/")[2]], place, known)
    if "oneOf" in schema:
        each = [_fault(value, one, place, known) for one in schema["oneOf"]]
        return None if None in each else each[-1]
    if value not in schema.get("enum", [value]):
        return f"{place} that is none of {', '.join(map(str, schema['enum']))}: {short(value)}"
    kinds = np.atleast_1d(schema.get("type", [])).tolist()
    if kinds and not any(_has_type(value, kind) for kind in kinds):
        return f"{place} that is not {TYPES[kinds[0]][1]}: {short(value)}"
    inside: list[tuple[str, Any, Mapping[str, Any]]] = []
    if isinstance(value, list):
        inside = [(f"{place}, row {i}", one, schema["items"]) for i, one in enumerate(value)]
    elif isinstance(value, dict):
        for key in schema.get("required", ()):
            if key not in value:
                return f"no {place}: {key!r}" if place else f"no {key}"
        inside = [
            (f"{place}: {key!r}" if place else key, value[key], one)
            for key, one in schema.get("properties", {}).items()
            if key in value
        ]
    faults = (_fault(one, part, where, known) for where, one, part in inside)
    return next((fault for fault in faults if fault is not None), None)


def _has_type(value: Any, kind: str) -> bool:
    # a flag is an int of Python, and is no number of JSON, in which 1.0 is an integer
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[kind][0]) and isinstance(value, bool) == (kind == "boolean")


# --- recorded audits

Source = Audit | str | os.PathLike[str]
"""An audit, or the path of its JSON."""

UNPAIRED = (
    "{}: no values of single rows are recorded, so changes have no paired intervals. They are"
    " recorded in audits of at most 20,000 rows whose outcomes are known; make the audit again with"
    " this version."
)
UNPAIRED_TIMES = (
    "{}: some times may be cut off, so errors are Kaplan-Meier estimates, whose changes have no"
    " paired intervals."
)


@dataclass(frozen=True)
class Recorded:
    """Audit as plain values.

    Parameters
    ----------
    values : dict
        `Audit.to_dict()`, or what was read from its JSON.
    label : str
        Name of the file, or of the audit, in messages.
    stem : str
        Name of the file without its ending; "" for an audit of this process.
    """

    values: Mapping[str, Any]
    label: str
    stem: str = ""

    @classmethod
    def of(cls, source: Source) -> Recorded:
        """Read an audit."""
        if isinstance(source, Audit):
            return cls(source.to_dict(), source.name)
        path = Path(source)
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            remedy = "write the audit with evenhand audit --out FILE.json"
            rule, given = "be the JSON of an audit", "a file that is not JSON"
            raise bad_input(f"{path}", rule, given, remedy) from error
        fault = layout_fault(values)
        if fault is not None:
            rule = "be the JSON of an audit"
            raise bad_input(f"{path}", rule, fault, "write it with evenhand audit --out FILE.json")
        return cls(values, path.name, path.stem)

    @property
    def rows_in_words(self) -> str:
        """Number of rows and name of the table."""
        name = ((self.values.get("provenance") or {}).get("data") or {}).get("name")
        rows = f"{self.values['n_samples']:,} rows"
        return rows if name is None else f"{rows} of {name}"

    @property
    def kind(self) -> OutcomeKind | None:
        """Kind of outcome; None if only PITs are known."""
        name = self.values["outcome_kind"]
        return None if name is None else OutcomeKind(name)

    @cached_property
    def record(self) -> RowRecord | None:
        """Values of each row; None if the audit has none."""
        state = self.values.get("rows")
        if state is None:
            return None
        try:
            found = RowRecord.from_state(state)
            if found.n_samples != self.values["n_samples"]:
                raise ValueError("the record is of other rows")
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise InputError(
                f"{self.label}: the row record of an audit is damaged; make the audit again"
            ) from error
        return found

    @property
    def censoring(self) -> Mapping[str, Any] | None:
        """Numbers of events and of people cut off; None unless outcomes are times."""
        found: Mapping[str, Any] | None = self.values.get("censoring")
        return found

    @property
    def times_in_words(self) -> str:
        """Number of events, and the horizon."""
        if self.censoring is None:
            return "no times that may be cut off"
        horizon = self.censoring["horizon"]
        upto = "" if horizon is None else f" up to the horizon {number_in_full(horizon)}"
        return f"{self.censoring['n_events']:,} events{upto}"

    @property
    def has_pairs(self) -> bool:
        """Whether errors and scores are means over recorded values of rows."""
        return self.record is not None and self.censoring is None

    @property
    def why_unpaired(self) -> str:
        """Why an audit without values of each row has none."""
        return (UNPAIRED if self.censoring is None else UNPAIRED_TIMES).format(self.label)

    @property
    def named(self) -> list[Mapping[str, Any]]:
        """Rows of the table of named groups."""
        return [self._sized(row) for row in self.values["groups"]]

    def _sized(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a group whose error is its size: where times are cut off, by Kaplan-Meier."""
        return row if self.censoring is None else {**row, "error": row.get("km_error")}

    @cached_property
    def groups(self) -> dict[str, Mapping[str, Any]]:
        """Rows of both tables of groups by name; possible leaks are left out.

        Of 0/1 outcomes they have the scores of probabilities, where these are known.
        """
        scores = {row["group"]: row for row in self.values["probability_scores"]}
        found: dict[str, Mapping[str, Any]] = {}
        for row in self.named:
            if not row.get("possible_leak"):
                found[row["group"]] = {**row, **scores.get(row["group"], {})}
        for row in self.values["scan"]:
            is_tested = row.get("p_adjusted") is not None and row["direction"] != POSSIBLE_LEAK
            if is_tested and row["group"] not in found:
                found[row["group"]] = self._sized(row)
        return found

    @cached_property
    def scores(self) -> dict[Measure, float]:
        """Scores by measure."""
        step = self.values.get("rounding_step")
        known = [Measure("log score"), Measure("CRPS"), Measure("mean std")]
        # where times are cut off, the error of the tested PITs understates the size
        known += [Measure("error" if self.censoring is None else "Kaplan-Meier error")]
        known += [Measure("log loss"), Measure("Brier score")]
        known += [] if step is None else [Measure("cell log score", step)]
        known += [Measure("interval width", level) for level in (0.8, 0.9)]
        known += [Measure("coverage", level) for level in (0.8, 0.9)]
        known += [Measure("whole coverage", level) for level in (0.8, 0.9)]
        by_name = {str(measure): measure for measure in known}
        return {
            by_name[row["measure"]]: number(row["value"])
            for row in self.values["scores"]
            if row["measure"] in by_name
        }

    @property
    def every_group(self) -> dict[float, Mapping[str, Any]]:
        """Certified bounds by group size."""
        rows = (self.values.get("certificate") or {}).get("every_group") or []
        return {row["mass"]: row for row in rows}

    @property
    def sizes(self) -> list[str]:
        """Names and numbers of rows of the named groups."""
        return [f"{row['group']} ({row['n']})" for row in self.named]


def number(value: Any) -> float:
    """Return a number; NaN if it is not known."""
    return math.nan if value is None else float(value)


# --- simultaneous intervals for paired changes of group statistics
# Each statistic is the distance of a mean to a target: `T = mean_k |E profile_k - target_k|`. The
# profile of an error is the share of PITs at or below each edge, its target the edge itself, so
# that `T` is the W1 distance to the uniform distribution; the profile of a coverage is one number,
# covered or not, and its target the level; that of a bias is the residual, and its target 0.

CERTAIN = 3.0
"""Standard errors beyond which the sign of a mean minus its target is taken as known."""

LEAST_ROWS = 50
"""Effective rows below which a change has no interval: it is asymptotic."""


@dataclass(frozen=True)
class Profile:
    """Values of each row whose means are compared with a target.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        Profile of each row.
    target : ndarray of shape (k,) or None
        Target of the means; None for the mean itself, of profiles of one number.
    weight : ndarray of shape (n,)
        Weights of the rows.
    is_share : bool
        Whether the values are shares of one event, between 0 and 1.
    """

    values: Floats
    target: Floats | None
    weight: Floats
    is_share: bool = False


@dataclass(frozen=True)
class Change:
    """Change of a statistic between two audits of the same rows, with its interval."""

    first: float
    second: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """Second minus first."""
        return self.second - self.first


def paired_changes(
    first: Profile, second: Profile, masks: Sequence[Mask], n_intervals: int, confidence: float
) -> list[Change]:
    """Return the change of a statistic in each group, with Bonferroni intervals.

    Parameters
    ----------
    first, second : Profile
        The same rows in both audits, in one order.
    masks : sequence of ndarray of bool, shape (n,)
        Groups.
    n_intervals : int
        Number of intervals that contain the truth together, over all groups and statistics.
    confidence : float
        Confidence with which they do.

    Notes
    -----
    Where a mean differs clearly from its target, the statistic is linear in the means, and its
    change is a mean of differences between rows: its interval is that of a paired t-test. The sign
    of a mean near its target is not known: the interval uses the least favourable one, and is wider
    by the largest bias that the statistic can have there, the mean absolute error of the mean. All
    of this is asymptotic in the rows of a group. Shares get pseudo-rows with changes of 1 and -1,
    as in the intervals of Bonett and Price (2012): a share that changes in no row has an interval.
    """
    tail = (1 - confidence) / (2 * n_intervals)
    return [_change(first, second, np.flatnonzero(mask), tail) for mask in masks]


def paired_mean(first: Floats, second: Floats, weight: Floats, confidence: float) -> Change:
    """Return the change of a weighted mean with its pointwise paired interval."""
    share = weight / weight.sum()
    change = second - first
    mean = float(share @ change)
    error = np.sqrt(float((share**2) @ (change - mean) ** 2))
    half = -float(special.ndtri((1 - confidence) / 2)) * error
    return Change(float(share @ first), float(share @ second), mean - half, mean + half)


def _change(first: Profile, second: Profile, rows: NDArray[np.intp], tail: float) -> Change:
    one = _side(first, rows)
    other = _side(second, rows)
    n = min(one.n_effective, other.n_effective)
    # reciprocals of equal shares may be a rounding error below their number
    if n < LEAST_ROWS - 1e-6:
        return Change(one.distance, other.distance, np.nan, np.nan)
    # the least favourable signs of means near their targets
    variance = max(float(((v - u) ** 2).sum()) for u in one.influences for v in other.influences)
    t = -float(special.stdtrit(n - 1, tail))
    if first.is_share:
        variance = (variance * n**2 + t**2 / 2) / (n + t**2 / 2) ** 2
    half = t * float(np.sqrt(variance))
    change = other.distance - one.distance
    low, high = change - half - other.bias, change + half + one.bias
    if first.is_share:
        low, high = max(low, -1.0), min(high, 1.0)
    return Change(one.distance, other.distance, low, high)


@dataclass(frozen=True)
class _Side:
    """Statistic of a group, its influence functions and the bound of its bias."""

    distance: float
    influences: tuple[Floats, ...]
    bias: float
    n_effective: float


def _side(profile: Profile, rows: NDArray[np.intp]) -> _Side:
    values = profile.values[rows]
    weight = profile.weight[rows]
    share = weight / weight.sum()
    k = values.shape[-1]
    mean = share @ values
    centred = share[:, None] * (values - mean) / k
    rows_of_weight = n_effective(weight)
    if profile.target is None:
        return _Side(float(mean[0]), (centred[:, 0],), 0.0, rows_of_weight)
    off = mean - profile.target
    error = k * np.sqrt((centred**2).sum(axis=0))
    is_certain = np.abs(off) >= CERTAIN * error
    sign = np.where(off < 0, -1.0, 1.0)
    certain = centred @ np.where(is_certain, sign, 0.0)
    uncertain = centred @ np.where(is_certain, 0.0, sign)
    influences = (certain + uncertain, certain - uncertain)
    bias = float(np.where(is_certain, 0.0, error).mean() * np.sqrt(2 / np.pi))
    return _Side(float(np.abs(off).mean()), influences, bias, rows_of_weight)


# --- changes of groups

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


# --- comparison

COMPARISON_SCHEMA = "evenhand.comparison/1"
COLUMNS = ("measure", "in_words")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Summarized):
    """Comparison of two audits of the same rows.

    Parameters
    ----------
    table : DataFrame
        One row per measure: `measure`, one column per audit, and `in_words`, the difference as a
        sentence.
    names : tuple of str
        Names of the two audits.
    measures : tuple of Measure
        Measures of the rows of `table`.
    groups : DataFrame
        One row per group that both audits list, "everyone" first: `group`, `n` and, for each of
        `error`, `coverage_80`, `coverage_90` and `bias`, the columns `_before`, `_after`, `_change`
        (after minus before) and its paired interval from `_change_low` to `_change_high`. The
        intervals of a measure contain the truth jointly for all groups, with the confidence of the
        comparison; NaN without row values, and for groups of under 50 rows. For 0/1 outcomes there
        is no coverage, the bias is event rate minus mean probability, the error its size (of
        everyone the mean by score), and there are the event `rate` and, before and after, the mean
        `predicted` probability, the calibration `slope` and the `log_loss`. `outcome` is "better"
        or "worse" if the interval of the change of the error excludes 0, "not significant" or
        "unknown"; such a change is `important` if it exceeds the tolerance.
    scores : DataFrame
        Mean scores of all rows: `measure`, `before`, `after`, `change` and its paired interval from
        `low` to `high`, each by itself. Empty without row values.
    tolerance : float
        Change of the error up to which a group is not important; that of the second audit.
    confidence : float
        Confidence of the intervals.
    is_paired : bool
        Whether both audits recorded values of each row.
    n_samples : int
        Number of rows.
    notes : tuple of str
        What was not compared, and why.
    about : dict of str to str
        Description of the second audit for readers.
    provenance : dict
        Provenance of the audits `before` and `after`.
    """

    table: pd.DataFrame
    names: tuple[str, str]
    measures: tuple[Measure, ...]
    groups: pd.DataFrame = field(default_factory=pd.DataFrame)
    scores: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(SCORE_COLUMNS)))
    tolerance: float = 0.02
    confidence: float = 0.95
    is_paired: bool = False
    n_samples: int = 0
    notes: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        facts = {key: int((self.groups["outcome"][1:] == key).sum()) for key in ("better", "worse")}
        return one_line(self, names=self.names, measures=len(self.table), **facts)

    @property
    def is_worse(self) -> bool:
        """Whether a group or everyone got significantly worse by more than the tolerance."""
        return bool(((self.groups["outcome"] == "worse") & self.groups["important"]).any())

    def summary(self) -> str:
        """Return the comparison as text."""
        return comparison_text(self.to_dict(), self.measures)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "schema": COMPARISON_SCHEMA,
            "names": list(self.names),
            "n_samples": self.n_samples,
            "is_paired": self.is_paired,
            "confidence": self.confidence,
            "tolerance": self.tolerance,
            "groups": plain_records(self.groups),
            "scores": plain_records(self.scores),
            "measures": [
                {
                    "measure": row["measure"],
                    "before": row[self.names[0]],
                    "after": row[self.names[1]],
                    "in_words": row["in_words"],
                }
                for row in plain_records(self.table)
            ],
            "notes": list(self.notes),
            "about": dict(self.about),
            "provenance": deepcopy(dict(self.provenance)),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the comparison as JSON; write it to `path` if given."""
        text = json.dumps(self.to_dict(), indent=2)
        if path is not None:
            write_text(path, text + "\n")
        return text

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the comparison as one self-contained HTML page; write it to `path` if given."""
        text = comparison_html(self.to_dict(), self.measures)
        if path is not None:
            write_text(path, text)
        return text

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write each table as a csv file to a folder: `groups`, `scores` and `measures`."""
        measures = pd.DataFrame(self.to_dict()["measures"])
        tables = {"groups": self.groups, "scores": self.scores, "measures": measures}
        return write_tables(folder, tables)


def compare(first: Source, second: Source, *, confidence: float = 0.95) -> Comparison:
    """Compare two audits of the same rows: which groups got better or worse.

    Parameters
    ----------
    first, second : Audit or path
        The audit before and the audit after a change of the model, or the JSON files of both. In
        Python usually of the deterministic base model and of the randomized forecaster.
    confidence : float, default 0.95
        Confidence of the intervals of changes: for groups jointly by measure, for scores each by
        itself.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If the audits used different rows or describe outcomes of different kinds, or a file is no
        audit.

    Notes
    -----
    Audits of the same name are named by their files, or as "model (first)" and "model (second)".

    Intervals are paired: an audit records some values of each row, and those of both audits are
    compared row by row, in whatever order the rows are. Audits without these values (of PITs alone,
    or of over 20,000 rows) are compared without intervals. Groups by the forecast have other rows
    in each audit and are not compared.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Forecast, audit
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> narrow, right = (Forecast.from_normal(np.zeros(500), np.full(500, s)) for s in (0.5, 1.0))
    >>> found = [audit(f, y=y, name=name) for f, name in ((narrow, "narrow"), (right, "right"))]
    >>> changes = compare(*found)
    >>> changes.groups["outcome"].tolist()
    ['better']
    >>> list(changes.table.columns)
    ['measure', 'narrow', 'right', 'in_words']
    """
    check_fraction("confidence", confidence)
    one, other = _labelled(Recorded.of(first), Recorded.of(second))
    is_paired = one.has_pairs and other.has_pairs
    _check_kinds(one, other)
    _check_rows(one, other)
    names = _names(one, other)
    shared = [name for name in one.groups if name in other.groups]
    pairs = Pairs.of(one, other, shared) if is_paired else None
    notes = [side.why_unpaired for side in (one, other) if not side.has_pairs]
    notes += _left_out(one, other, pairs)
    if pairs is not None:
        shared = [name for name in shared if name not in pairs.different]
    rows = [(one.groups[name], other.groups[name]) for name in shared]
    aligned = _aligned(one, other)
    tolerance = float(other.values["tolerance"])
    is_binary = other.kind is OutcomeKind.BINARY
    return Comparison(
        _table(aligned, names),
        names,
        tuple(measure for measure, _ in aligned),
        groups=group_changes(pairs, rows, confidence, tolerance, is_binary=is_binary),
        scores=(
            pd.DataFrame(columns=list(SCORE_COLUMNS))
            if pairs is None
            else score_changes(pairs, confidence)
        ),
        tolerance=tolerance,
        confidence=confidence,
        is_paired=is_paired,
        n_samples=int(one.values["n_samples"]),
        notes=tuple(notes),
        about=other.values.get("about") or {},
        provenance={
            when: side.values.get("provenance") or {}
            for when, side in (("before", one), ("after", other))
        },
    )


def _check_kinds(one: Recorded, other: Recorded) -> None:
    """Refuse audits whose forecasts describe outcomes of different kinds."""
    if one.censoring != other.censoring:
        raise InputError(
            f"{one.label} and {other.label} do not follow the same times: {one.times_in_words} in"
            f" the first, {other.times_in_words} in the second; audit both with the same event and"
            " horizon"
        )
    # the kind behind PITs alone is not known
    if None in (one.kind, other.kind) or one.kind is other.kind:
        return
    raise InputError(
        f"{one.label} audits forecasts of a {one.kind} outcome, {other.label} of a {other.kind}"
        " outcome, so their scores cannot be compared; audit forecasts of one kind"
    )


def _check_rows(one: Recorded, other: Recorded) -> None:
    """Refuse audits of different rows."""
    both = f"{one.label} audits {one.rows_in_words}, {other.label} audits {other.rows_in_words}"
    remedy = "audit both on the same rows"
    if one.values["n_samples"] != other.values["n_samples"]:
        raise InputError(f"{both}; {remedy}")
    if one.record is not None and other.record is not None:
        if one.record.key != other.record.key:
            raise InputError(f"{both}, but not the same ones: their outcomes differ; {remedy}")
    # without row values: different rows nearly always differ in groups or group sizes
    elif one.sizes != other.sizes:
        raise InputError(
            f"{both}, with different rows or groups (numbers of rows in brackets):"
            f" {', '.join(one.sizes)} in the first, {', '.join(other.sizes)} in the second;"
            f" {remedy}"
        )


def _labelled(one: Recorded, other: Recorded) -> tuple[Recorded, Recorded]:
    """Return two audits with different labels in messages."""
    if one.label != other.label:
        return one, other
    labels = _numbered(one.label)
    return replace(one, label=labels[0]), replace(other, label=labels[1])


def _numbered(name: str) -> tuple[str, str]:
    return f"{name} (first)", f"{name} (second)"


def _names(one: Recorded, other: Recorded) -> tuple[str, str]:
    """Return the names of the audits, which become columns of a table."""
    names = str(one.values["name"]), str(other.values["name"])
    if names[0] == names[1]:
        are_files = one.stem != "" != other.stem
        names = (one.stem, other.stem) if are_files else _numbered(names[0])
        # files of two folders
        if names[0] == names[1]:
            names = "before", "after"
    for name in names:
        if name in COLUMNS:
            raise InputError(
                f"an audit is named {name!r}, which is a column of the comparison; pass another"
                " name= to audit"
            )
    return names


def _left_out(one: Recorded, other: Recorded, pairs: Pairs | None) -> list[str]:
    """Return notes on groups that are not compared."""
    notes = []
    for side, against in ((one, other), (other, one)):
        alone = [name for name in side.groups if name not in against.groups]
        if alone:
            listed = and_more(alone, 3)
            notes.append(f"Groups only in {side.label} are not compared: {listed}.")
    if pairs is not None and pairs.different:
        listed = ", ".join(sorted(pairs.different))
        notes.append(f"Groups of the same name but different rows are not compared: {listed}.")
    return notes


Aligned = list[tuple[Measure, tuple[float, float]]]


def _table(aligned: Aligned, names: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "measure": str(measure),
                names[0]: a,
                names[1]: b,
                "in_words": difference_in_words(measure, a, b, names),
            }
            for measure, (a, b) in aligned
        ]
    )


def _aligned(first: Recorded, second: Recorded) -> Aligned:
    """Return each measure that both audits have, with its two values."""
    shared = [measure for measure in first.scores if measure in second.scores]
    # the density of rounded outcomes compares nothing: spikes on the grid raise it without limit
    if any(measure.what == "cell log score" for measure in shared):
        shared = [measure for measure in shared if measure.what != "log score"]
    pairs = [(measure, (first.scores[measure], second.scores[measure])) for measure in shared]
    named = {row["group"]: row for row in second.named}
    for row in first.named:
        if row["group"] != EVERYONE and row["group"] in named:
            pairs += _group_pairs(row, named[row["group"]])
    return pairs + _worst_pairs(first, second) + _coverage_pairs(first, second)


def _group_pairs(a: Mapping[str, Any], b: Mapping[str, Any]) -> Aligned:
    name = a["group"]
    pairs: Aligned = [(Measure("error", group=name), (number(a["error"]), number(b["error"])))]
    if "coverage_90" in a:
        covered = number(a["coverage_90"]), number(b.get("coverage_90"))
        pairs.append((Measure("coverage", 0.9, name), covered))
    return pairs


def _worst_pairs(first: Recorded, second: Recorded) -> Aligned:
    """Return errors of oracle worst groups and certified bounds of each size."""
    other = {row["mass"]: row for row in second.values["worst_groups"]}
    rows = first.values["worst_groups"]
    both = [(row, other[row["mass"]]) for row in rows if row["mass"] in other]
    pairs: Aligned = [
        (Measure("oracle error", a["mass"]), (number(a["error"]), number(b["error"])))
        for a, b in both
    ]
    for a, b in both:
        bounds = number(a["certified"]), number(b["certified"])
        # at mass 1 the error itself is compared; without a certificate there is no bound to compare
        if b["mass"] < 1 and np.isfinite(bounds).all():
            pairs.append((Measure("certified error", b["mass"]), bounds))
    return pairs


def _coverage_pairs(first: Recorded, second: Recorded) -> Aligned:
    """Return both bounds of the coverage in every group of each size that both audits bound."""
    a, b = first.every_group, second.every_group
    ends: tuple[tuple[Quantity, str], ...] = (
        ("least coverage", "coverage_80_low"),
        ("most coverage", "coverage_80_high"),
    )
    pairs = [
        (Measure(what, mass), (number(a[mass].get(key)), number(b[mass].get(key))))
        for mass in a
        if mass in b and mass < 1
        for what, key in ends
    ]
    # a level that was not counted has no bound
    return [(measure, bounds) for measure, bounds in pairs if np.isfinite(bounds).all()]
