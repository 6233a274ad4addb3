"""Comparison of two audits of the same rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand._files import write_text
from evenhand._format import Summarized, and_more, one_line
from evenhand._validate import InputError, check_fraction
from evenhand.audits.group_changes import SCORE_COLUMNS, Pairs, group_changes, score_changes
from evenhand.audits.plain_values import plain_records, write_tables
from evenhand.audits.recorded import Recorded, Source, number
from evenhand.columns import EVERYONE
from evenhand.distributions import OutcomeKind
from evenhand.report import (
    Measure,
    Quantity,
    comparison_html,
    comparison_text,
    difference_in_words,
)

SCHEMA = "evenhand.comparison/3"
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
        facts = {key: self.n_groups(key) for key in ("better", "worse")}
        return one_line(self, names=self.names, measures=len(self.table), **facts)

    def n_groups(self, outcome: str, *, important: bool = False) -> int:
        """Return the number of groups with an outcome, without "everyone"."""
        some = self.groups[1:]
        chosen = some["outcome"] == outcome
        return int((chosen & (some["important"] | (not important))).sum())

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
            "schema": SCHEMA,
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
    tolerance = other.tolerance
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
        provenance={"before": _provenance(one), "after": _provenance(other)},
    )


def _provenance(side: Recorded) -> Mapping[str, Any]:
    return side.values.get("provenance") or {}


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
    other = {row["mass"]: row for row in second.worst_groups}
    both = [(row, other[row["mass"]]) for row in first.worst_groups if row["mass"] in other]
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
