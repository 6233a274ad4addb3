"""Comparison of two models on the same rows, or of two audits."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import asdict
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evenhand._files import written
from evenhand._format import Summarized, and_more, number_in_full, one_line
from evenhand._validate import Floats, InputError, Mask, bad_input
from evenhand.audits.forecasts import RowCells
from evenhand.audits.result import Audit, write_tables
from evenhand.audits.rows import STANDARD, Search
from evenhand.audits.run import AuditedRows, audited
from evenhand.audits.scores import weighted_mean
from evenhand.calibration import Cells, n_effective, own_parts, ramps_at
from evenhand.draws import RandomState, generator
from evenhand.outcomes import Outcomes
from evenhand.report import Measure, NoteKind, comparison_html, comparison_text, notes_of
from evenhand.results import AuditRows, plain
from evenhand.tables import EVERYONE

Row = Mapping[str, Any]

# --- recorded audits

Source = Audit | str | os.PathLike[str]
"""An audit, or the path of its JSON."""

SUPERSEDED = ("log score", "average error")
"""Measures that are left out where another measure qualifies them: the density of rounded outcomes
compares nothing, and the error of the tested PITs of times that are cut off understates the size.
"""


@dataclass(frozen=True)
class Recorded:
    """Rows of an audit, and the name of its file without its ending; "" without a file."""

    rows: AuditRows
    stem: str = ""

    @classmethod
    def of(cls, source: Source) -> Recorded:
        """Read an audit."""
        if isinstance(source, Audit):
            return cls(source.rows)
        if not isinstance(source, str | os.PathLike):
            remedy = "pass X= and y= to compare models, or y= to compare forecasts"
            rule, given = "be an audit or the path of its JSON", type(source).__name__
            raise bad_input("without y, before and after", rule, given, remedy)
        path = Path(source)
        return cls(Audit.read(path).rows, path.stem)

    @property
    def outcome_in_words(self) -> str | None:
        """Kind of outcome, with the horizon of times; None if only PITs are known."""
        if self.rows.censoring is None:
            kind = self.rows.outcome_kind
            return None if kind is None else f"a {kind} outcome"
        horizon = self.rows.censoring.horizon
        return "times" + (
            "" if horizon is None else f" up to the horizon {number_in_full(horizon)}"
        )

    @cached_property
    def groups(self) -> dict[str, Row]:
        """Named groups and groups by features, by name; possible leaks are left out.

        Of 0/1 outcomes they have the scores of probabilities, where these are known. Errors are
        sizes: where times are cut off, those of Kaplan-Meier estimates.
        """
        scores = {one.group: asdict(one) for one in self.rows.probability_scores}
        tested = [one for one in self.rows.scan if one.p_adjusted is not None]
        found: dict[str, Row] = {}
        for one in (*self.rows.groups, *tested):
            if not one.possible_leak:
                size = dict(zip(("error", "error_low", "error_high"), one.size, strict=True))
                known = {**asdict(one), **size}
                found.setdefault(one.group, known | scores.get(one.group, {}))
        return found

    @cached_property
    def measures(self) -> dict[str, tuple[str | None, float]]:
        """Units and values of scores, and of certified bounds for every group, by their names."""
        found = {one.measure: (one.unit, one.value) for one in self.rows.scores}
        for name in SUPERSEDED:
            if any(other.startswith(f"{name}, ") for other in found):
                found.pop(name, None)
        for one in self.rows.worst_groups:
            measure = Measure("certified error", one.mass)
            # the group of all people is everyone
            if one.mass < 1:
                found[str(measure)] = measure.unit(""), one.certified
        return {name: (unit, number(value)) for name, (unit, value) in found.items()}


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


def paired_change(
    first: Profile, second: Profile, mask: Mask, n_intervals: int, confidence: float
) -> Change:
    """Return the change of a statistic in a group, with its Bonferroni interval.

    Parameters
    ----------
    first, second : Profile
        The same rows in both audits, in one order.
    mask : ndarray of bool, shape (n,)
        The group.
    n_intervals : int
        Number of intervals that contain the truth together, over all groups.
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
    rows = np.flatnonzero(mask)
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


# --- what is paired: values of each row of both audits

EDGES = np.arange(1, 40) / 40
"""Levels at which the error compares shares of PITs; the ends of 80% and 90% intervals are among
them."""

LEVELS = {"coverage_80": 0.8, "coverage_90": 0.9}
MEASURES = ("error", *LEVELS, "bias")
"""Measures of a group that are compared."""

OF_EVENTS = ("error", "bias")
"""The same for 0/1 outcomes; the bias is event rate minus mean probability."""

BY_SCORE = "error by score"
"""Profile of the error of everyone of 0/1 outcomes."""

SCORES = ("log score", "cell log score", "CRPS", "log loss", "Brier score", "interval width")
"""Scores of each row whose means are compared; of the widths that of 80% intervals."""

Profiles = Mapping[str, Profile]
"""Profiles by measure."""


def profiles_of(rows: RowCells) -> Profiles:
    """Return the values of each row whose means each measure compares."""
    if rows.binary is not None:
        return event_profiles(*rows.binary, rows.cells.weights)
    assert rows.residual is not None
    return pit_profiles(rows.cells, rows.residual)


def pit_profiles(cells: Cells, residual: Floats) -> Profiles:
    """Return the profiles of outcomes with PITs; residuals are outcomes minus mean forecasts."""
    weight = np.ones(cells.n_samples) if cells.weights is None else cells.weights
    below = ramps_at(EDGES, cells.low, cells.high) / cells.n_draws
    found = {
        "error": Profile(below, EDGES, weight),
        "bias": Profile(residual[:, None], None, weight),
    }
    for measure, level in LEVELS.items():
        low, high = np.searchsorted(EDGES, np.array([1 - level, 1 + level]) / 2 - 1e-9)
        covered = below[:, high] - below[:, low]
        found[measure] = Profile(covered[:, None], None, weight, is_share=True)
    return found


def event_profiles(happened: Floats, probability: Floats, weights: Floats | None) -> Profiles:
    """Return the profiles of 0/1 outcomes.

    That of everyone has the residuals by tenth of the probability, times their number: the mean
    distance of its columns' means from 0 is the mean over people of the distance of event rate and
    mean probability in their tenth (verdict: 2).
    """
    weight = np.ones(happened.size) if weights is None else weights
    residual = happened - probability
    parts, k = own_parts(probability, weights)
    by_part = np.zeros((residual.size, k))
    by_part[np.arange(residual.size), parts] = k * residual
    return {
        "error": Profile(residual[:, None], np.zeros(1), weight),
        "bias": Profile(residual[:, None], None, weight),
        BY_SCORE: Profile(by_part, np.zeros(k), weight),
    }


Changes = Mapping[tuple[str, str], Change]
"""Changes by name of the group and measure."""


def changes_of(
    first: Profiles,
    second: Profiles,
    members: Iterable[tuple[str, Mask]],
    n_groups: int,
    confidence: float,
) -> Changes:
    """Return the changes of all measures in groups, given by their names and rows."""
    is_event = BY_SCORE in first
    found = {}
    for name, mask in members:
        for measure in OF_EVENTS if is_event else MEASURES:
            key = BY_SCORE if is_event and (name, measure) == (EVERYONE, "error") else measure
            sides = first[key], second[key]
            found[name, measure] = paired_change(*sides, mask, n_groups, confidence)
    return found


def members_of(side: AuditedRows, names: set[str]) -> Iterator[tuple[str, Mask]]:
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
) -> pd.DataFrame:
    """Return the changes of known mean scores of all rows with pointwise paired intervals."""
    weights = first.cells.weights
    weight = np.ones(first.scored.size) if weights is None else weights[first.scored]
    z, rows = -float(special.ndtri((1 - confidence) / 2)), []
    for measure, values in first.scores.items():
        is_shown = measure.what != "interval width" or measure.level == 0.8
        # measures without a finite mean or with a better reading are not among the known ones
        if str(measure) in known and measure.what in SCORES and is_shown:
            others = second.scores[measure]
            before, after = (float(np.average(one, weights=weight)) for one in (values, others))
            mean, variance, _ = weighted_mean(others - values, weight)
            half = z * variance**0.5
            rows.append((str(measure), before, after, after - before, mean - half, mean + half))
    return pd.DataFrame(rows, columns=list(SCORE_COLUMNS))


# --- tables of groups

OF_PROBABILITIES = ("predicted", "slope", "log_loss")
"""Values of 0/1 outcomes that are listed before and after."""

SCORE_COLUMNS = ("measure", "before", "after", "change", "low", "high")


def paired_row(before: Row, after: Row, changes: Changes, tolerance: float) -> dict[str, Any]:
    """Return the row of a group in the table of a paired comparison."""
    name, is_binary = before["group"], before["rate"] is not None
    row: dict[str, Any] = {"group": name, "n": before["n"]}
    for measure in OF_EVENTS if is_binary else MEASURES:
        first, second = number(before.get(measure)), number(after.get(measure))
        low = high = np.nan
        if (change := changes.get((name, measure))) is not None:
            # tables have errors over all levels of PITs; the error of all people of 0/1 outcomes is
            # corrected for chance, that of the rows is not
            is_same = not (is_binary and measure == "error" and name == EVERYONE)
            shift = (second - first) - change.value if is_same else 0.0
            low = np.minimum(change.low + shift, second - first)
            high = np.maximum(change.high + shift, second - first)
        values = {"before": first, "after": second, "change": second - first}
        values |= {"change_low": low, "change_high": high}
        row |= {f"{measure}_{column}": value for column, value in values.items()}
    if is_binary:
        row["rate"] = number(before.get("rate"))
        row |= _both(before, after, OF_PROBABILITIES)
    low, high = row["error_change_low"], row["error_change_high"]
    outcome = "better" if high < 0 else "worse" if low > 0 else "not significant"
    outcome = outcome if np.isfinite(low) else "unknown"
    is_beyond = abs(row["error_change"]) > tolerance
    return row | {"outcome": outcome, "important": outcome in CHANGED and is_beyond}


CHANGED = ("better", "worse")


OUTCOMES = {
    (True, True): "problem in both",
    (True, False): "problem before",
    (False, True): "problem after",
    (False, False): "no problem",
}
"""Outcomes of an unpaired comparison, by whether a group is a problem before and after."""


def unpaired_row(before: Row, after: Row) -> dict[str, Any]:
    """Return the row of a group in the table of two audits: estimates with their own intervals."""
    is_binary = before["rate"] is not None
    row: dict[str, Any] = {"group": before["group"], "n": before["n"], "n_after": after["n"]}
    sides = (("before", before), ("after", after))
    for measure in OF_EVENTS if is_binary else MEASURES:
        for when, side in sides:
            for end in ("", "_low", "_high"):
                row[f"{measure}_{when}{end}"] = number(side.get(f"{measure}{end}"))
        row[f"{measure}_change"] = row[f"{measure}_after"] - row[f"{measure}_before"]
    if is_binary:
        row |= _both(before, after, ("rate", *OF_PROBABILITIES))
    problems = bool(before.get("problem")), bool(after.get("problem"))
    return row | {"outcome": OUTCOMES[problems], "important": problems[0] != problems[1]}


def _both(before: Row, after: Row, names: tuple[str, ...]) -> dict[str, float]:
    """Return columns with values of both audits."""
    sides = {"before": before, "after": after}
    return {f"{name}_{at}": number(side.get(name)) for name in names for at, side in sides.items()}


# --- comparison

COMPARISON_SCHEMA = "evenhand.comparison/1"

UNPAIRED = "Paired intervals: compare(model_a, model_b, X, y), or evenhand compare TABLE."
UNPAIRED_TIMES = (
    "Some times may be cut off, so errors are Kaplan-Meier estimates, whose changes have no"
    " paired intervals."
)

LEFT_OUT = (NoteKind.NO_OUTCOME, NoteKind.ZERO_WEIGHTS, NoteKind.ONE_ROW_EACH)
"""Notes of an audit on rows that are not compared."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Summarized):
    """Comparison of two models on the same rows, or of two audits.

    Parameters
    ----------
    names : tuple of str
        Names of what is compared.
    groups : DataFrame
        One row per group that both audits list, "everyone" first: `group`, `n` and, for each of
        `error`, `coverage_80`, `coverage_90` and `bias`, the columns `_before`, `_after`, `_change`
        (after minus before) and its paired interval from `_change_low` to `_change_high`. The
        intervals of a measure contain the truth jointly for all groups, with the confidence of the
        comparison; NaN for groups of under 50 rows. For 0/1 outcomes there is no coverage, the bias
        is event rate minus mean probability, the error its size (of everyone the mean by score),
        and there are the event `rate` and, before and after, the mean `predicted` probability, the
        calibration `slope` and the `log_loss`. `outcome` is "better" or "worse" if the interval of
        the change of the error excludes 0, "not significant" or "unknown"; such a change is
        `important` if it exceeds the tolerance. Unpaired, there is `n_after`, and instead of the
        interval of a change each estimate has its own, from `_before_low` to `_before_high` and
        from `_after_low` to `_after_high`; `outcome` is "problem in both", "problem before",
        "problem after" or "no problem", by the verdicts of both audits, and `important` if these
        differ.
    scores : DataFrame
        Mean scores of all rows: `measure`, `before`, `after`, `change` and its paired interval from
        `low` to `high`, each by itself. Empty if it is not paired.
    measures : DataFrame
        Scores and certified bounds that both audits list: `measure`, `unit`, `before` and `after`.
    tolerance : float
        Change of the error up to which a group is not important; that of the second audit.
    confidence : float
        Confidence of the intervals; that of the second audit.
    is_paired : bool
        Whether changes have paired intervals.
    n_samples : int
        Number of rows of the first audit.
    notes : tuple of str
        What was not compared, and why.
    about : dict of str to str
        Description of the second audit for readers.
    provenance : dict
        Provenance of the audits `before` and `after`.
    audits : tuple of Audit
        The audits of both models, before and after; empty if audits were compared.
    """

    names: tuple[str, str]
    groups: pd.DataFrame
    scores: pd.DataFrame
    measures: pd.DataFrame
    tolerance: float
    confidence: float
    is_paired: bool
    n_samples: int
    notes: tuple[str, ...]
    about: Mapping[str, str]
    provenance: Mapping[str, Any]
    audits: tuple[Audit, ...] = ()

    def __repr__(self) -> str:
        facts = {key: int((self.groups["outcome"][1:] == key).sum()) for key in CHANGED}
        facts = facts if self.is_paired else {}
        return one_line(self, names=self.names, groups=len(self.groups), **facts)

    @property
    def is_worse(self) -> bool:
        """Whether a group or everyone got significantly worse by more than the tolerance."""
        return bool(((self.groups["outcome"] == "worse") & self.groups["important"]).any())

    def summary(self, *, full: bool = False) -> str:
        """Return the comparison as text.

        Parameters
        ----------
        full : bool, default False
            Whether to return all groups and scores; otherwise at most 16 lines.
        """
        return comparison_text(self.to_dict(), full=full)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        values: dict[str, Any] = plain(
            {
                name: value.to_dict("records") if isinstance(value, pd.DataFrame) else value
                for name, value in vars(self).items()
                if name != "audits"
            }
        )
        return {"schema": COMPARISON_SCHEMA} | values

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the comparison as JSON; write it to `path` if given."""
        return written(json.dumps(self.to_dict(), indent=2), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the comparison as one self-contained HTML page; write it to `path` if given."""
        return written(comparison_html(self.to_dict()), path)

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write each table as a csv file to a folder: `groups`, `scores` and `measures`."""
        tables = {"groups": self.groups, "scores": self.scores, "measures": self.measures}
        return write_tables(folder, tables)


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
        return _compared(Recorded.of(before), Recorded.of(after), names)
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
    one, other = (Recorded.of(side.audit) for side in (first, second))
    found = _compared(one, other, None)
    confidence = found.confidence
    left_out = map(str, notes_of(second.audit.notes, *LEFT_OUT))
    notes = (*left_out, *found.notes[1:])
    found = replace(found, notes=notes, audits=(first.audit, second.audit))
    if one.rows.censoring is not None:
        return replace(found, notes=(UNPAIRED_TIMES, *notes))
    names = set(found.groups["group"])
    # of groups known by probability no rows are members
    listed = names - {group.name for group, _ in first.held.groups.probable()}
    before, after = first.rows, second.rows
    profiles = profiles_of(before), profiles_of(after)
    changes = changes_of(*profiles, members_of(first, listed), len(listed), confidence)
    rows = [
        paired_row(one.groups[name], other.groups[name], changes, found.tolerance)
        for name in found.groups["group"]
    ]
    return replace(
        found,
        groups=pd.DataFrame(rows),
        scores=score_changes(before, after, set(found.measures["measure"]), confidence),
        is_paired=True,
    )


def _compared(one: Recorded, other: Recorded, names: tuple[str, str] | None) -> Comparison:
    """Compare two audits by their estimates."""
    names = names or _names(one, other)
    _check_kinds(one, other, names)
    rows = [
        unpaired_row(row, other.groups[name])
        for name, row in one.groups.items()
        if name in other.groups
    ]
    return Comparison(
        names,
        pd.DataFrame(rows),
        pd.DataFrame(columns=list(SCORE_COLUMNS)),
        _measures(one, other),
        tolerance=other.rows.tolerance,
        confidence=other.rows.confidence,
        is_paired=False,
        n_samples=one.rows.n_samples,
        notes=(UNPAIRED, *_left_out(one, other, names)),
        about=other.rows.about,
        provenance={
            when: side.rows.provenance for when, side in (("before", one), ("after", other))
        },
    )


def _measures(one: Recorded, other: Recorded) -> pd.DataFrame:
    """Return the measures that both audits list and that are known in both."""
    rows = [
        (name, unit, value, other.measures[name][1])
        for name, (unit, value) in one.measures.items()
        if name in other.measures and np.isfinite([value, other.measures[name][1]]).all()
    ]
    return pd.DataFrame(rows, columns=["measure", "unit", "before", "after"])


def _check_kinds(one: Recorded, other: Recorded, names: tuple[str, str]) -> None:
    """Refuse audits whose forecasts describe outcomes of different kinds."""
    first, second = one.outcome_in_words, other.outcome_in_words
    if first != second and None not in (first, second):
        raise InputError(
            f"{names[0]} audits forecasts of {first}, {names[1]} of {second}, so they cannot be"
            " compared; audit forecasts of one kind, of times up to one horizon"
        )


def _names(one: Recorded, other: Recorded) -> tuple[str, str]:
    """Return different names of two audits."""
    names = one.rows.name, other.rows.name
    if names[0] != names[1]:
        return names
    if "" != one.stem != other.stem != "":
        return one.stem, other.stem
    return f"{names[0]} (first)", f"{names[1]} (second)"


def _left_out(one: Recorded, other: Recorded, names: tuple[str, str]) -> list[str]:
    """Return notes on groups that are not compared."""
    found = []
    for side, against, name in ((one, other, names[0]), (other, one, names[1])):
        alone = [group for group in side.groups if group not in against.groups]
        if alone:
            found.append(f"Groups only in {name} are not compared: {and_more(alone, 3)}.")
    return found
