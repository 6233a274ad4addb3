"""Held-out rows of an audit and its options: one row per person, with weights and named groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
import pandas as pd
from msgspec import structs

from evenhand._validate import (
    MILD_ATOM,
    Floats,
    Ints,
    bad_input,
    check_count,
    check_fraction,
    largest_atom,
    place_of,
)
from evenhand.audits.forecasts import RowCells
from evenhand.calibration import calibration_error, cell_error
from evenhand.distributions import OutcomeKind
from evenhand.draws import one_row_each
from evenhand.outcomes import Outcomes
from evenhand.report import NoteKind, note
from evenhand.results import Leak, Note
from evenhand.search import MIN_SIZE, find_leaks
from evenhand.tables import (
    ORDERED,
    Groups,
    TableEncoder,
    are_probabilities,
    as_table,
    check_groups,
    column_kind,
    copies_in_words,
    refuse_other_index,
    take_rows,
)

# --- options, checked before any work


TOLERANCE = 0.02
"""Default tolerance: an error of 2 points."""


@dataclass(frozen=True)
class Search:
    """Options of tests and searches of an audit, checked when they are made.

    Parameters
    ----------
    masses : sequence of float
        Group sizes of the oracle worst group and of the certificate, as shares of the rows.
    learned_masses : sequence of float
        Group sizes of the learned worst group; none are learned if it is empty.
    min_size : int, default 150
        Minimum number of rows in a scanned group.
    tolerance : float, optional
        Error that does not matter, 0 to 1: a significant group whose estimated error is beyond it
        is a problem. By default 0.02, which is 2 points; for 0/1 outcomes, whose errors are
        differences of event rate and probability, at most a fifth of the mean probability of the
        event, or of its absence. For counts, amounts and times of which nearly all have one value,
        such as 0, at most about a tenth of the probability of others.
    confidence : float, default 0.95
        Confidence level of the certificate, and of all tests and intervals of groups together.
    n_simulations : int, default 20
        Number of simulated calibrated forecasters behind `null_mean` and its range.

    Raises
    ------
    InputError
        If an option is out of range.

    Examples
    --------
    >>> Search(masses=[0.2], tolerance=0.05).masses
    [0.2]
    """

    masses: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    learned_masses: Sequence[float] = (0.1, 0.2, 0.5)
    min_size: int = MIN_SIZE
    tolerance: float | None = None
    confidence: float = 0.95
    n_simulations: int = 20

    def __post_init__(self) -> None:
        # before any work, so that a search can later fail only for lack of rows
        checked: dict[str, Any] = {
            "min_size": check_count("min_size", self.min_size, least=2),
            "confidence": check_fraction("confidence", self.confidence),
            "n_simulations": check_count("n_simulations", self.n_simulations, least=2),
        }
        for name in ("masses", "learned_masses"):
            checked[name] = [
                check_fraction(f"{name}[{i}]", share, high_open=False)
                for i, share in enumerate(np.atleast_1d(getattr(self, name)))
            ]
        if self.tolerance is not None:
            checked["tolerance"] = check_fraction(
                "tolerance", self.tolerance, low_open=False, high_open=False
            )
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def tolerance_for(self, probability: float | None, variance: float) -> float:
        """Return the tolerance: as given, or 2 points; of rates at most a fifth of the rate.

        `probability` is the mean probability of 0/1 outcomes, whose tolerance depends on the
        forecasts alone (verdict: 3); None for others, whose mean positions have this variance. Of
        an event of probability p that is `p (1 - p) / 4`, and the W1 error half of that in rates.

        Examples
        --------
        >>> Search().tolerance_for(None, 1 / 12), Search().tolerance_for(0.05, 0.012)
        (0.02, 0.01)
        """
        if self.tolerance is not None:
            return self.tolerance
        if probability is None:
            return min(TOLERANCE, 0.4 * variance)
        return min(TOLERANCE, min(probability, 1 - probability) / 5)


STANDARD = Search()
"""Default options of an audit."""


def check_about(about: Mapping[str, str] | None) -> dict[str, str]:
    """Return the description of an audit, without blanks around its texts."""
    if about is None:
        return {}
    if not isinstance(about, Mapping):
        rule, remedy = "be a mapping of texts", 'pass a dict such as {"unit": "mg per week"}'
        raise bad_input("about", rule, type(about).__name__, remedy)
    for key, value in about.items():
        for place, text in (("each key of about", key), (f"about[{key!r}]", value)):
            if not isinstance(text, str) or not text.strip():
                rule, remedy = "be a text that is not empty", "give a text or leave it out"
                raise bad_input(place, rule, repr(text), remedy)
    return {key.strip(): value.strip() for key, value in about.items()}


# --- held-out rows


@dataclass(frozen=True)
class HeldOut:
    """The rows of an audit: rows of positive weight, one per person.

    Parameters
    ----------
    options : Search
        Options of tests and searches.
    kept : ndarray of int, shape (k,)
        Row numbers in the given table.
    outcomes : Outcomes of k rows
        Outcomes, with weights if the rows are no plain sample.
    features : table or None
        Features in which groups are searched.
    groups : Groups
        Named groups.
    notes : list of Note
        Notes in the order in which the parts of the audit add them: on rows, groups and searches
        that were left out or changed.
    leaks : tuple of Leak
        Groups and features that the outcome may define, which all searches leave out.
    """

    options: Search
    kept: Ints
    outcomes: Outcomes
    features: Any
    groups: Groups
    notes: list[Note]
    leaks: tuple[Leak, ...] = ()

    @classmethod
    def of(
        cls,
        options: Search,
        outcomes: Outcomes,
        X: Any,
        features: Any,
        groups: Any,
        random: np.random.Generator,
    ) -> Self:
        """Select the rows that all parts of the audit use: rows of positive weight, one per person.

        Where there is no table, groups must have the index of the outcomes, if both have one.
        """
        n = outcomes.n_samples
        searched = _searched(*((X, n, "X") if features is None else (features, n, "features")))
        refuse_other_index("features", features, outcomes.given if X is None else X)
        tables = (X, searched, outcomes.given)
        first = next((table for table in tables if table is not None), None)
        masks = check_groups(groups, n, first, allow_probable=True)
        # rows are chosen before any other draw, so that PITs do not depend on the searches
        kept, notes = _kept(outcomes, random)
        if kept.size < n:
            outcomes, left = outcomes.take(kept), masks.take(kept)
            notes += [
                note(NoteKind.EMPTY_GROUP, (name,))
                for name in masks.names
                if name not in left.names
            ]
            searched, masks = take_rows(searched, kept), left
        notes += _readings(masks, searched)
        known = outcomes.without_weights() if outcomes.are_plain else outcomes
        return cls(options, kept, known, searched, masks, notes)

    def without_leaks(self, subject: RowCells) -> HeldOut:
        """Search the scored rows for groups and features that the outcome may define."""
        rows = subject.scored
        assert subject.outcomes is not None
        # a rank correlation near 1 is equally visible in a random sample of the rows
        features = take_rows(self.features, rows)
        groups = self.groups.take(rows)
        if subject.times is not None:
            of_times = _leaks_of_times(subject.times.take(rows), subject.medians, groups, features)
            return replace(self, leaks=of_times)
        y = subject.outcomes.value[rows]
        leaks = find_leaks(y, subject.medians, groups, features)
        if tuple(groups.probable()):
            # a probability made from the outcome is found as a feature would be
            shares = pd.DataFrame({group.name: share for group, share in groups.probable()})
            made = find_leaks(y, subject.medians, Groups(), shares)
            leaks += tuple(structs.replace(one, kind="group", column=None) for one in made)
        return replace(self, leaks=leaks)

    def add_note(self, *args: Any, **options: Any) -> None:
        """Add a note; the arguments are those of `note`."""
        self.notes.append(note(*args, **options))

    def take(self, rows: Ints) -> HeldOut:
        """Return some rows, without weights."""
        return replace(
            self,
            kept=self.kept[rows],
            outcomes=self.outcomes.take(rows).without_weights(),
            features=take_rows(self.features, rows),
            groups=self.groups.take(rows),
        )

    @cached_property
    def searched(self) -> Any:
        """Features that groups are searched in; None if there are none."""
        return self._features(is_leak=False) if self.leaked("feature") else self.features

    @cached_property
    def learnable(self) -> tuple[Any, list[str]]:
        """The same without columns that identify people, and their names.

        These are text columns with a different value in every row.
        """
        features = self.searched
        if features is None:
            return features, []
        named = [
            name
            for name, values in features.items()
            if column_kind(values) not in ORDERED and values.nunique() == len(features)
        ]
        if not named or len(named) == features.shape[1]:
            return features, []
        return features.drop(columns=named), named

    @property
    def judged(self) -> Groups:
        """Named groups that are scanned: those of known members."""
        return self.groups.known().without(self.leaked("group"))

    @property
    def leaking(self) -> tuple[Any, Groups]:
        """Features and named groups that the outcome may define."""
        return self._features(is_leak=True), self.groups.known().without(self.judged)

    def leaked(self, kind: str) -> set[str]:
        """Return the names of groups or features that the outcome may define."""
        return {one.name for one in self.leaks if one.kind == kind}

    def _features(self, *, is_leak: bool) -> Any:
        leaked, table = self.leaked("feature"), self.features
        some = table.loc[:, [(str(name) in leaked) == is_leak for name in table.columns]]
        return some if is_leak or some.shape[1] else None


def _leaks_of_times(
    times: Outcomes, medians: Floats, groups: Groups, features: Any
) -> tuple[Leak, ...]:
    """Find what the event, also one after the horizon, or the time of an event may define.

    The time of a person who is cut off is not searched for: it may follow from the date of entry,
    which is known before.
    """
    # a column of the event may count those after the horizon, or not
    events = [times.happened] if times.horizon is None else [times.happened, times.event]
    found = [
        find_leaks(np.asarray(event, np.float64), medians, groups, features) for event in events
    ]
    rows = np.flatnonzero(times.happened)
    of_events, some = take_rows(features, rows), groups.take(rows)
    found.append(find_leaks(times.y[rows], medians[rows], some, of_events))
    first: dict[tuple[str, str], Leak] = {}
    for one in chain.from_iterable(found):
        first.setdefault((one.kind, one.name), one)
    return tuple(first.values())


def _readings(groups: Groups, features: Any) -> list[Note]:
    """Report how columns of values from 0 to 1 were read: as probabilities, or in two halves."""
    names = tuple(group.name for group, _ in groups.probable())
    notes = [note(NoteKind.PROBABLE_GROUPS, names)] if names else []
    halved = {group.column or "" for group, _ in groups.pairs() if group.operator == "<="}
    halved &= set() if features is None else set(features.columns)
    like = tuple(str(name) for name in sorted(halved) if are_probabilities(features[name]))
    return notes + ([note(NoteKind.HALVED_FRACTIONS, like)] if like else [])


def _kept(outcomes: Outcomes, random: np.random.Generator) -> tuple[Ints, list[Note]]:
    """Return the numbers of the rows to audit, and notes on rows left out."""
    n, person = outcomes.n_samples, outcomes.person
    # a certificate counts people: rows of weight 0 must not count
    kept = np.arange(n) if outcomes.weight is None else np.flatnonzero(outcomes.weight)
    notes = [note(NoteKind.ZERO_WEIGHTS, numbers=(n - kept.size,))] if kept.size < n else []
    if person is None:
        return kept, notes
    # rows of one person are not exchangeable with rows of others (method: proof)
    people = kept[one_row_each(person[kept], kept.size, random)]
    return people, [*notes, note(NoteKind.ONE_ROW_EACH, numbers=(people.size, kept.size))]


def _searched(features: Any, n: int, name: str) -> Any:
    """Return features as a table with one row per outcome."""
    if features is None:
        return None
    table = as_table(features, n, name=name, per="outcome")
    TableEncoder().fit(table)  # its error names the column and row that a learner could not read
    return table


def copies_among(X: Any, subject: RowCells) -> str | None:
    """Return a warning if scored rows are copies, by their columns and deterministic forecasts."""
    is_table = hasattr(X, "columns") or np.ndim(X) == 2
    table = as_table(take_rows(X, subject.scored)) if is_table else pd.DataFrame()
    if not subject.cells.is_randomized:
        table = table.assign(**{"": subject.medians})
    assert subject.outcomes is not None
    return copies_in_words(table, subject.outcomes.value[subject.scored])


# --- notes on outcomes


def grid_share_of(rows: RowCells, held: HeldOut) -> float | None:
    """Return the share of the average error that rounding may explain; add notes on atoms.

    The least error `I` of any positions in the rounding cells remains whatever the exact outcomes
    were; the rest of the error `d`, a share `(d - I) / d` of it, may be due to rounding
    (outcomes: 2). The share is None where PITs are not spread over rounding cells.
    """
    cells, rounding, outcomes = rows.cells, rows.rounding, rows.outcomes
    # cells of times that are cut off are no rounding, and atoms at a horizon or at the end of
    # follow-up neither
    is_plain = rows.kind is OutcomeKind.CONTINUOUS and rows.times is None
    if outcomes is None or not is_plain:
        return None
    value, atom = largest_atom(outcomes.value)
    if atom <= MILD_ATOM or atom * outcomes.n_samples < 1.5:
        return None
    if np.isin(outcomes.value, (0.0, 1.0)).all():
        held.add_note(NoteKind.EVENT_AS_CONTINUOUS)
    if cells.are_points:
        held.add_note(NoteKind.TIED_OUTCOMES, numbers=(value, atom))
        return None
    least, average_error = cell_error(cells), calibration_error(cells)
    share = max((average_error - least) / average_error, 0.0) if average_error > 0 else 0.0
    step = np.nan if rounding.step is None else rounding.step
    held.add_note(NoteKind.ROUNDING_CELLS, numbers=(value, atom, step, share))
    return share


MOST_SKEWED = 3.0
"""Sample skewness of residuals up to which intervals of their mean miss about as stated."""


def note_outcomes(rows: RowCells, held: HeldOut) -> None:
    """Add notes on times that are cut off, unknown forecasts and outcomes that do not fit."""
    if rows.times is not None:
        n_lost = int(rows.times.is_lost.sum())
        if rows.times.happened.all():
            held.add_note(NoteKind.NO_TIME_CUT_OFF)
        elif n_lost:
            held.add_note(NoteKind.CUT_OFF_TIMES, numbers=(n_lost, rows.times.n_samples))
    if excluded := max((int(np.isinf(one).sum()) for one in rows.scores.values()), default=0):
        held.add_note(NoteKind.EXCLUDED_OUTCOMES, numbers=(excluded,))
    if not rows.keys:
        held.add_note(NoteKind.NO_OWN_FORECAST)
    elif rows.binary is not None:
        happened, probability = rows.binary
        impossible = np.flatnonzero(np.abs(happened - probability) == 1)
        for first in impossible[:1]:
            row = int(held.kept[first])
            numbers = (row, float(probability[first]), int(impossible.size))
            # rows of a file count from 1, those of an array from 0
            place = place_of("y", (row,))
            held.add_note(NoteKind.IMPOSSIBLE_OUTCOMES, numbers=numbers, reason=place)
    # intervals of mean residuals of 0/1 outcomes hold in groups of any size
    if rows.residual is not None and rows.binary is None:
        with np.errstate(all="ignore"):  # of constant or of huge residuals it is unknown
            scaled = (rows.residual - rows.residual.mean()) / rows.residual.std()
            skewness = float((scaled**3).mean())
        if abs(skewness) > MOST_SKEWED:
            held.add_note(NoteKind.SKEWED_RESIDUALS, numbers=(skewness,))
