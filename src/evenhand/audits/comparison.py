"""Comparison of two models on the same rows, or of two audits."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from evenhand._files import written
from evenhand._format import and_more, number_in_full, one_line
from evenhand._validate import AnyPath, Floats, InputError, Mask, bad_input
from evenhand.audits.forecasts import RowCells
from evenhand.audits.result import Audit, Result
from evenhand.audits.rows import STANDARD, Search
from evenhand.audits.run import AuditedRows, audited
from evenhand.calibration import (
    COVERED,
    MEASURES,
    Profile,
    coverage_name,
    covered,
    own_parts,
    paired_change,
    ramps_at,
    weighted_mean_band,
)
from evenhand.draws import RandomState, generator
from evenhand.outcomes import Outcomes
from evenhand.report import Measure, NoteKind, comparison_html, comparison_text, notes_of
from evenhand.results import (
    ROUNDING,
    AuditRows,
    Change,
    ComparedGroup,
    ComparisonRows,
    Finding,
    Interval,
    frame,
    with_ends,
)
from evenhand.tables import EVERYONE

# --- what is paired: values of each row of both audits

EDGES = np.arange(1, 40) / 40
"""Levels at which the error compares shares of PITs."""

OF_EVENTS = ("error", "bias")
"""Measures of 0/1 outcomes, of `MEASURES`; the bias is event rate minus mean probability."""

BY_SCORE = "error by score"
"""Profile of the error of everyone of 0/1 outcomes."""

Profiles = Mapping[str, Profile]
"""Profiles by measure."""


def profiles_of(rows: RowCells) -> Profiles:
    """Return the values of each row whose means each measure compares."""
    cells = rows.cells
    if rows.binary is not None:
        return event_profiles(*rows.binary, cells.weights)
    assert rows.residual is not None
    below = ramps_at(EDGES, cells.low, cells.high) / cells.n_draws
    found = {"error": Profile(below, EDGES), "bias": Profile(rows.residual[:, None])}
    return found | {
        coverage_name(level): Profile(covered(cells, level)[:, None], is_share=True)
        for level in COVERED
    }


def event_profiles(happened: Floats, probability: Floats, weights: Floats | None) -> Profiles:
    """Return the profiles of 0/1 outcomes.

    That of everyone has the residuals by tenth of the probability, times their number: the mean
    distance of its columns' means from 0 is the mean over people of the distance of event rate and
    mean probability in their tenth (verdict: 2).
    """
    residual = happened - probability
    parts, k = own_parts(probability, weights)
    by_part = np.zeros((residual.size, k))
    by_part[np.arange(residual.size), parts] = k * residual
    return {
        "error": Profile(residual[:, None], np.zeros(1)),
        "bias": Profile(residual[:, None]),
        BY_SCORE: Profile(by_part, np.zeros(k)),
    }


Changes = Mapping[tuple[str, str], Interval]
"""Changes by name of the group and measure."""


def changes_of(
    first: Profiles,
    second: Profiles,
    weight: Floats,
    members: Iterable[tuple[str, Mask]],
    n_groups: int,
    confidence: float,
) -> Changes:
    """Return the changes of all measures in groups, given by their names and rows."""
    found = {}
    for name, mask in members:
        # the error by score is that of everyone alone
        for measure in (one for one in first if one != BY_SCORE or name == EVERYONE):
            found[name, measure] = paired_change(
                first[measure], second[measure], weight, mask, n_groups, confidence
            )
    # tables correct this error for chance: its value is another one there
    if by_score := found.get((EVERYONE, BY_SCORE)):
        found[EVERYONE, "error"] = by_score._replace(value=None)
    return found


def rows_of_groups(side: AuditedRows, names: set[str]) -> Iterator[tuple[str, Mask]]:
    """Yield names and rows of groups with known members, everyone first."""
    yield EVERYONE, np.ones(side.rows.cells.n_samples, dtype=np.bool_)
    named = side.held.judged
    yield from ((name, mask) for name, mask in named.items() if name in names)
    scanned = side.tested.scanned
    for name, _, mask in scanned.least(len(scanned.sums)):
        if name in names and name not in named:
            yield name, mask


def score_changes(
    first: RowCells, second: RowCells, known: Collection[str], confidence: float
) -> dict[str, Interval]:
    """Return the changes of known mean scores of all rows with pointwise paired intervals."""
    weight = first.weights_of(first.scored)
    z, found = -float(special.ndtri((1 - confidence) / 2)), {}
    for measure, values in first.scores.items():
        # of the measures of spread, only the width of 80% intervals
        is_shown = measure.what not in ("mean std", "interval width") or measure.level == 0.8
        # measures without a finite mean or with a better reading are not among the known ones
        if str(measure) in known and is_shown:
            found[str(measure)] = weighted_mean_band(second.scores[measure] - values, weight, z)
    return found


# --- rows of groups and scores

SIDES = [name for side in ("before", "after", "change") for name in with_ends(side)]
"""Columns of a measure."""

OF_PROBABILITIES = ("rate", "predicted", "slope", "log_loss")
"""Values of 0/1 outcomes that are listed before and after."""

OUTCOMES = {
    (True, True): "problem in both",
    (True, False): "problem before",
    (False, True): "problem after",
    (False, False): "no problem",
}
"""Outcomes of an unpaired comparison, by whether a group is a problem before and after."""

# the density of rounded outcomes compares nothing, and the error of the tested PITs of times that
# are cut off understates the size
SUPERSEDED = ("log score", "average error")
"""Measures that are left out where another measure qualifies them."""

Estimates = dict[str, Interval]
"""Measures of a group with their intervals, by name."""


def groups_of(rows: AuditRows) -> dict[str, tuple[Finding, Estimates]]:
    """Return named groups and groups by features, by name; possible leaks are left out.

    Errors are sizes: where times are cut off, those of Kaplan-Meier estimates.
    """
    scores = {one.group: one for one in rows.probability_scores}
    tested = (one for one in rows.scan if one.p_adjusted is not None)
    found: dict[str, tuple[Finding, Estimates]] = {}
    for one in (*rows.groups, *tested):
        estimates = {
            name: one.interval(name) for name in (OF_EVENTS if rows.is_event else MEASURES)
        }
        estimates["error"] = one.size
        if rows.is_event:
            # groups by features have no scores of their own
            listed = scores.get(one.group, one)
            estimates |= {name: Interval(getattr(listed, name, None)) for name in OF_PROBABILITIES}
        if not one.possible_leak:
            found.setdefault(one.group, (one, estimates))
    return found


def known_scores(rows: AuditRows) -> dict[str, tuple[str | None, Interval]]:
    """Return units and values of known scores, and of certified bounds for every group."""
    found = {one.measure: (one.unit, Interval(one.value, one.low, one.high)) for one in rows.scores}
    for name in SUPERSEDED:
        if any(other.startswith(f"{name}, ") for other in found):
            found.pop(name, None)
    for one in rows.worst_groups:
        # the group of all people is everyone
        if one.mass < 1:
            bound = Measure("certified error", one.mass)
            found[str(bound)] = bound.unit(""), Interval(one.certified)
    return {name: score for name, score in found.items() if score[1].value is not None}


def change_of(
    measure: str, before: Interval, after: Interval, paired: Interval, unit: str | None = None
) -> Change:
    """Return a measure before and after, and its change with the paired interval of the rows."""
    first, second, value, low, high = np.array([before.value, after.value, *paired], np.float64)
    # tables have errors over all levels of PITs, so they differ slightly from those of the rows
    shift = np.nan_to_num(second - first - value)
    change = second - first
    ends = np.minimum(low + shift, change), np.maximum(high + shift, change)
    columns = dict(zip(SIDES, (*before, *after, change, *ends), strict=True))
    return Change.of({"measure": measure, "unit": unit} | columns)


def compared_group(
    before: tuple[Finding, Estimates],
    after: tuple[Finding, Estimates],
    changes: Changes | None,
    tolerance: float,
) -> ComparedGroup:
    """Return a group in two audits; `changes` is None if these are not paired."""
    (one, estimates), (other, others) = before, after
    paired = changes or {}
    found = tuple(
        change_of(measure, estimate, others[measure], paired.get((one.group, measure), Interval()))
        for measure, estimate in estimates.items()
    )
    outcome, is_important = OUTCOMES[one.problem, other.problem], one.problem != other.problem
    if changes is not None:
        change, low, high = np.array(found[0].interval("change"), np.float64)
        outcome = "better" if high < -ROUNDING else "worse" if low > ROUNDING else "not significant"
        outcome = "unknown" if np.isnan(low) else outcome
        is_important = outcome in ("better", "worse") and bool(abs(change) > tolerance)
    return ComparedGroup(
        group=one.group,
        n=one.n,
        n_after=other.n,
        outcome=outcome,
        important=is_important,
        changes=found,
        same_as=one.same_as,
    )


# --- comparison

UNPAIRED = "Paired intervals: compare(model_a, model_b, X, y), or evenhand compare TABLE."
UNPAIRED_TIMES = (
    "Some times may be cut off, so errors are Kaplan-Meier estimates, whose changes have no"
    " paired intervals."
)

LEFT_OUT = (NoteKind.NO_OUTCOME, NoteKind.ZERO_WEIGHTS, NoteKind.ONE_ROW_EACH)
"""Notes of an audit on rows that are not compared."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Comparison of two models on the same rows, or of two audits: typed rows and their views.

    Everything in `ComparisonRows` is an attribute here, too: `names` of what is compared,
    `tolerance` and `confidence` of the second audit, `is_paired` (whether changes have paired
    intervals), `n_samples` of the first audit, `notes` on what was not compared, `about` of the
    second audit, and `provenance` of both. `groups` and `scores` are tables.

    Parameters
    ----------
    made : ComparisonRows
        The rows.
    audits : tuple of Audit
        The audits of both models, before and after; empty if audits were compared.
    """

    made: ComparisonRows
    audits: tuple[Audit, ...] = ()

    def __repr__(self) -> str:
        facts: dict[str, int] = {}
        if self.made.is_paired:
            outcomes = [one.outcome for one in self.made.groups[1:]]
            facts = {key: outcomes.count(key) for key in ("better", "worse")}
        return one_line(self, names=self.made.names, groups=len(self.made.groups), **facts)

    @property
    def groups(self) -> pd.DataFrame:
        """One row per group that both audits list, everyone first, with columns of each measure.

        `group`, `n`, `n_after` and, for each of `error`, `coverage_80`, `coverage_90` and `bias`,
        the columns `_before` and `_after` with their own intervals from `_before_low` to
        `_before_high` and from `_after_low` to `_after_high`, and `_change` (after minus before)
        with its paired interval from `_change_low` to `_change_high`. The intervals of a measure
        contain the truth jointly for all groups, with the confidence of the comparison; groups of
        under 50 rows have none. For 0/1 outcomes there is no coverage, the bias is event rate minus
        mean probability, the error its size (of everyone the mean by score), and there are the
        event `rate`, the mean `predicted` probability, the calibration `slope` and the `log_loss`.
        `outcome` is "better" or "worse" if the interval of the change of the error excludes 0, else
        "not significant" or "unknown"; such a change is `important` if it exceeds the tolerance.
        Unpaired, it is "problem in both", "problem before", "problem after" or "no problem", by the
        verdicts of both audits, and `important` if these differ.
        """
        rows = []
        for one in self.made.groups:
            row: dict[str, Any] = {"group": one.group, "n": one.n, "n_after": one.n_after}
            for each in one.changes:
                row |= {f"{each.measure}_{side}": getattr(each, side) for side in SIDES}
            rows.append(row | {"outcome": one.outcome, "important": one.important})
        return pd.DataFrame(rows).dropna(axis="columns", how="all")

    @property
    def scores(self) -> pd.DataFrame:
        """Mean scores and certified bounds, of which scores have paired intervals, each by itself.

        `measure`, `unit` and columns as those of a measure of `groups`.
        """
        return frame(self.made.scores, Change)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Tables that `to_csv` writes, by name."""
        return {"groups": self.groups, "scores": self.scores}

    @property
    def is_worse(self) -> bool:
        """Whether a group or everyone got significantly worse by more than the tolerance."""
        return any(one.outcome == "worse" and one.important for one in self.made.groups)

    def summary(self, *, full: bool = False) -> str:
        """Return the comparison as text.

        Parameters
        ----------
        full : bool, default False
            Whether to return all groups and scores; otherwise at most 16 lines.
        """
        return comparison_text(self.made, full=full)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the comparison as one self-contained HTML page; write it to `path` if given."""
        return written(comparison_html(self.made), path)


def read_audit(source: Audit | AnyPath) -> tuple[AuditRows, str]:
    """Return the rows of an audit or of its JSON, and the name of that file without its ending."""
    if isinstance(source, Audit):
        return source.made, ""
    if not isinstance(source, str | os.PathLike):
        remedy = "pass X= and y= to compare models, or y= to compare forecasts"
        rule, given = "be an audit or the path of its JSON", type(source).__name__
        raise bad_input("without y, before and after", rule, given, remedy)
    path = Path(source)
    return Audit.read(path).made, path.stem


def compare(
    before: Any,
    after: Any,
    X: Any = None,
    y: ArrayLike | Outcomes | None = None,
    *,
    names: tuple[str, str] | None = None,
    search: Search = STANDARD,
    random_state: RandomState = None,
    **options: Any,
) -> Comparison:
    """Compare two models on the same rows, or two audits: which groups got better or worse.

    With outcomes `y`, both models are audited on the same rows, and changes have paired intervals.
    Without them, `before` and `after` are two audits, or their files, of the same rows or of
    others: the groups that both list are compared by estimates with their own intervals.

    Parameters
    ----------
    before, after : forecaster, Forecast, Audit or path
        With `y`, two models or forecasts, as `audit` takes them; else two audits, or the paths of
        their JSON.
    X, y : optional
        Rows and outcomes, as in `audit`.
    names : tuple of str, optional
        Names of what is compared. By default those of the types or of the audits, or of their
        files; equal ones become "model (first)" and "model (second)".
    search : Search, optional
        Options of tests and searches of both audits. Its `confidence` is that of the intervals of
        changes, too: for groups jointly by measure, for scores each by itself.
    random_state : int, generator or None
        Seed of both audits, which use the same positions and draws.
    **options
        Other options of `audit`, of both audits: `groups`, `features`, `about` and so on.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If forecasts describe outcomes of different kinds, a file is no audit, or `audit` refuses
        the rows.

    Notes
    -----
    A paired change is the mean of differences between the rows of both audits. Times that may be
    cut off have no paired intervals. Groups by the forecast have other rows in each audit and are
    not compared.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Forecast
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> narrow, right = (Forecast.from_normal(np.zeros(500), np.full(500, s)) for s in (0.5, 1.0))
    >>> changes = compare(narrow, right, y=y, random_state=0)
    >>> changes.groups["outcome"].tolist()
    ['better']
    >>> compare(*changes.audits).groups["outcome"].tolist()  # two audits, not paired
    ['problem before']
    """
    if y is None:
        if X is not None or options:
            raise InputError("y is missing: models are compared on rows with outcomes; pass y=")
        (one, stem), (other, name) = read_audit(before), read_audit(after)
        return Comparison(_compared(one, other, names or _names(one, other, stem, name)))
    # one seed, so that both audits keep the same rows and draw the same positions
    is_seed = isinstance(random_state, Integral)
    seed = random_state if is_seed else int(generator(random_state).integers(2**63))
    asked = options | {"search": search, "random_state": seed}
    first, second = (
        audited(model, X, y, **(asked | {"name": name}))
        for model, name in zip((before, after), names or (None, None), strict=True)
    )
    return paired(first, second)


def paired(first: AuditedRows, second: AuditedRows) -> Comparison:
    """Compare two audits of the same rows, which were made with one seed, row by row."""
    one, other = first.audit.made, second.audit.made
    made = _compared(one, other, _names(one, other), (first, second))
    return Comparison(made, (first.audit, second.audit))


def _compared(
    one: AuditRows,
    other: AuditRows,
    names: tuple[str, str],
    sides: tuple[AuditedRows, AuditedRows] | None = None,
) -> ComparisonRows:
    """Compare two audits by their estimates, and row by row if these are known."""
    kinds = [_outcome_in_words(rows) for rows in (one, other)]
    if kinds[0] != kinds[1] and None not in kinds:
        raise InputError(
            f"{names[0]} audits forecasts of {kinds[0]}, {names[1]} of {kinds[1]}, so they cannot"
            " be compared; audit forecasts of one kind, of times up to one horizon"
        )
    before, after = groups_of(one), groups_of(other)
    scores, others = known_scores(one), known_scores(other)
    shared = [name for name in before if name in after]
    notes = [UNPAIRED if sides is None else UNPAIRED_TIMES]
    changes, of_scores = None, dict[str, Interval]()
    if sides is not None and one.censoring is None:
        first, second = sides
        # of groups known by probability no rows are members
        listed = set(shared) - {group.name for group, _ in first.held.groups.probable()}
        profiles = profiles_of(first.rows), profiles_of(second.rows)
        members = rows_of_groups(first, listed)
        changes = changes_of(*profiles, first.rows.weight, members, len(listed), other.confidence)
        known = scores.keys() & others.keys()
        of_scores = score_changes(first.rows, second.rows, known, other.confidence)
        notes = []
    if sides is not None:
        notes += map(str, notes_of(other.notes, *LEFT_OUT))
    for own, against, name in ((before, after, names[0]), (after, before, names[1])):
        if alone := [group for group in own if group not in against]:
            notes.append(f"Groups only in {name} are not compared: {and_more(alone, 3)}.")
    return ComparisonRows(
        names=names,
        groups=tuple(
            compared_group(before[name], after[name], changes, other.tolerance) for name in shared
        ),
        scores=tuple(
            change_of(name, value, others[name][1], of_scores.get(name, Interval()), unit)
            for name, (unit, value) in scores.items()
            if name in others
        ),
        tolerance=other.tolerance,
        confidence=other.confidence,
        is_paired=changes is not None,
        n_samples=one.n_samples,
        notes=tuple(notes),
        about=other.about,
        provenance={"before": one.provenance, "after": other.provenance},
    )


def _outcome_in_words(rows: AuditRows) -> str | None:
    """Return the kind of outcome, with the horizon of times; None if only PITs are known."""
    if rows.censoring is None:
        return None if rows.outcome_kind is None else f"a {rows.outcome_kind} outcome"
    horizon = rows.censoring.horizon
    return "times" if horizon is None else f"times up to the horizon {number_in_full(horizon)}"


def _names(
    one: AuditRows, other: AuditRows, stem: str = "", other_stem: str = ""
) -> tuple[str, str]:
    """Return different names of two audits, which may have files."""
    if one.name != other.name:
        return one.name, other.name
    if "" != stem != other_stem != "":
        return stem, other_stem
    return f"{one.name} (first)", f"{other.name} (second)"
