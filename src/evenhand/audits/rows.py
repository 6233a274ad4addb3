"""Held-out rows of an audit: one per person, with features, weights and named groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._ids import check_cluster
from evenhand._validate import Floats, check_weights
from evenhand.audits.forecasts import Subject
from evenhand.columns import Groups, TableEncoder, as_table, check_groups
from evenhand.draws import one_row_each
from evenhand.report import Note, NoteKind
from evenhand.search import LEAK_COLUMNS, find_leaks
from evenhand.tables import take_rows


@dataclass(frozen=True)
class HeldOut:
    """The rows of an audit: those with a weight, one per person.

    Parameters
    ----------
    kept : ndarray of int, shape (k,)
        Their numbers in the table that was given.
    X : table or None
        What the forecaster sees of them.
    features : table or None
        What groups are searched in.
    weights : ndarray of shape (k,) or None
        Weights; None where all rows weigh the same.
    groups : Groups
        Named groups.
    one_row_each : bool
        Whether they are one row of each of several people.
    notes : tuple of Note
        Which rows and groups were left out.
    leaks : DataFrame
        Groups and features that the outcome may define: see `find_leaks`. Nothing is searched in
        them.
    """

    kept: NDArray[np.intp]
    X: Any
    features: Any
    weights: Floats | None
    groups: Groups
    one_row_each: bool
    notes: tuple[Note, ...]
    leaks: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(LEAK_COLUMNS)))

    @cached_property
    def searched(self) -> Any:
        """Features that groups are searched in; None if there are none."""
        return self._features(is_leak=False) if self._leaked("feature") else self.features

    @property
    def judged(self) -> Groups:
        """Named groups that are scanned."""
        return self.groups.without(self._leaked("group"))

    @property
    def leaking(self) -> tuple[Any, Groups]:
        """Features and named groups that the outcome may define."""
        return self._features(is_leak=True), self.groups.without(self.judged)

    def _leaked(self, kind: str) -> set[str]:
        return set(self.leaks.loc[self.leaks["kind"] == kind, "name"])

    def _features(self, *, is_leak: bool) -> Any:
        table = as_table(self.features, self.kept.size)
        leaked = self._leaked("feature")
        some = table.loc[:, [(str(name) in leaked) == is_leak for name in table.columns]]
        return some if is_leak or some.shape[1] else None


def hold_out(
    n: int,
    X: Any,
    features: Any,
    groups: Any,
    sample_weight: Any,
    cluster: Any,
    random: np.random.Generator,
    *,
    y: Any = None,
) -> HeldOut:
    """Choose the rows that every part of the audit then sees: those with a weight, one per person.

    Where there is no table, groups must have the index of `y`, if both have one.
    """
    searched = _searched(*((X, n, "X") if features is None else (features, n, "features")))
    weight = check_weights(sample_weight, n)
    masks = check_groups(
        groups, n, next((table for table in (X, searched) if table is not None), y)
    )
    # before all draws of the audit, so that its PITs are of these rows whatever is searched later
    kept, notes = _kept(weight, cluster, random)
    if kept.size < n:
        left = masks.take(kept)
        notes += [Note(NoteKind.EMPTY_GROUP, (name,)) for name in masks if name not in left]
        X, searched = (None if table is None else take_rows(table, kept) for table in (X, searched))
        weight = weight[kept]
        masks = left
    # equal weights are none: the rows are then a sample, of which a certificate can be given
    weights = weight if (weight != weight[0]).any() else None
    if weights is not None:
        notes.append(Note(NoteKind.SEARCHES_UNWEIGHTED))
    return HeldOut(kept, X, searched, weights, masks, cluster is not None, tuple(notes))


def without_leaks(held: HeldOut, subject: Subject) -> HeldOut:
    """Look for groups and features that the outcome may define, on the rows that are scored."""
    rows = subject.scored
    # a range or a rank correlation near 1 is as plain in a random part of very many rows
    features = None if held.features is None else take_rows(held.features, rows)
    leaks = find_leaks(subject.outcomes[rows], subject.medians, held.groups.take(rows), features)
    return replace(held, leaks=leaks)


def _kept(
    weight: Floats, cluster: Any, random: np.random.Generator
) -> tuple[NDArray[np.intp], list[Note]]:
    """Return row numbers, and notes on the others."""
    kept = np.flatnonzero(weight > 0)
    # a row of weight 0 must not be counted as a person, by a certificate least of all
    notes = []
    if kept.size < weight.size:
        notes.append(Note(NoteKind.ZERO_WEIGHTS, numbers=(weight.size - kept.size,)))
    if cluster is None:
        return kept, notes
    # rows of one person are not exchangeable with those of others (method: proof)
    people = kept[one_row_each(check_cluster(cluster, weight.size)[kept], kept.size, random)]
    return people, [*notes, Note(NoteKind.ONE_ROW_EACH, numbers=(people.size, kept.size))]


def _searched(features: Any, n: int, name: str) -> Any:
    """Return features as a table with a row per outcome."""
    if features is None:
        return None
    table = as_table(features, n, name=name, per="outcome")
    TableEncoder().fit(table)  # refuses what a learner could not read, by column and row
    return table
