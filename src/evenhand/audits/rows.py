"""The rows of an audit, and the searches over them that too few rows may refuse without stopping it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand import search as searches
from evenhand._format import stated
from evenhand._ids import check_cluster
from evenhand._validate import (
    Floats,
    InputError,
    check_count,
    check_finite,
    check_fraction,
    check_weights,
)
from evenhand.audits import tables as _tables
from evenhand.audits.forecasts import Subject
from evenhand.certificates import PITCertificate, certify_pit
from evenhand.columns import Groups, TableEncoder, as_table, check_groups
from evenhand.draws import one_row_each
from evenhand.search import LEAK_COLUMNS, GroupSearch, find_leaks
from evenhand.tables import take_rows

NO_CERTIFICATE = "no certificate"
"""How the note begins that says why there is none."""

POSSIBLE_LEAK = "possible leak"
"""Direction, in a scan, of a group that the outcome may define."""

MOST_NAMED = 8
"""Features that are named in a note."""


@dataclass(frozen=True)
class Search:
    """How groups are searched for: the options of `audit` of the same names."""

    masses: Sequence[float]
    learned_masses: Sequence[float]
    min_size: int
    confidence: float
    n_simulations: int


def check_search(
    masses: ArrayLike,
    learned_masses: ArrayLike,
    min_size: int,
    confidence: float,
    n_simulations: int,
) -> Search:
    """Refuse a mistaken option before any work, so that what a search refuses later is too few rows."""
    return Search(
        masses=_shares("masses", masses),
        learned_masses=_shares("learned_masses", learned_masses) if np.size(learned_masses) else [],
        min_size=check_count("min_size", min_size, least=2),
        confidence=check_fraction("confidence", confidence),
        n_simulations=check_count("n_simulations", n_simulations, least=2),
    )


def _shares(name: str, values: ArrayLike) -> list[float]:
    shares = check_finite(name, np.atleast_1d(np.asarray(values)))
    return [
        check_fraction(f"{name}[{i}]", share, high_open=False) for i, share in enumerate(shares)
    ]


@dataclass(frozen=True)
class HeldOut:
    """The rows of an audit: one per person, with features, weights and named groups.

    `leaks` names the groups and features that the outcome may define: see `find_leaks`. Nothing is
    searched in them.
    """

    kept: NDArray[np.intp]
    X: Any
    features: Any
    weight: Floats
    is_weighted: bool
    groups: Groups
    one_row_each: bool
    notes: list[str]
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
        table = as_table(self.features, self.weight.size)
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
    searched = _searched(X, n, "X") if features is None else _searched(features, n, "features")
    weight = check_weights(sample_weight, n)
    masks = check_groups(
        groups, n, next((table for table in (X, searched) if table is not None), y)
    )
    kept, notes = _kept(weight, cluster, random)
    if kept.size < n:
        left = masks.take(kept)
        notes += [f"no row of group {name!r} is left" for name in masks if name not in left]
        X, searched = (None if table is None else take_rows(table, kept) for table in (X, searched))
        weight = check_weights(weight[kept], kept.size)
        masks = left
    is_weighted = bool((weight != weight[0]).any())
    if is_weighted:
        parts = "learned groups, worst groups in hindsight and the tests of scanned groups"
        notes.append(f"{parts} count each row once, whatever its weight")
    return HeldOut(kept, X, searched, weight, is_weighted, masks, cluster is not None, notes)


def without_leaks(held: HeldOut, subject: Subject) -> HeldOut:
    """Look for groups and features that the outcome may define, on the rows that are scored."""
    rows = subject.scored
    quantile = subject.few.ppf(0.5)
    median = quantile.mean(axis=-1) if quantile.ndim == 2 else quantile
    features = None if held.features is None else take_rows(held.features, rows)
    return replace(
        held, leaks=find_leaks(subject.outcomes[rows], median, held.groups.take(rows), features)
    )


def _kept(
    weight: Floats, cluster: Any, random: np.random.Generator
) -> tuple[NDArray[np.intp], list[str]]:
    """Row numbers, and notes on the others."""
    kept = np.flatnonzero(weight > 0)
    notes = (
        [f"rows of weight 0 are left out: {weight.size - kept.size:,}"]
        if kept.size < weight.size
        else []
    )
    if cluster is None:
        return kept, notes
    people = kept[one_row_each(check_cluster(cluster, weight.size)[kept], kept.size, random)]
    return people, [*notes, one_row_note(people.size, kept.size)]


def one_row_note(n_people: int, n_rows: int) -> str:
    """Say that people have several rows, and what the sizes of groups then are."""
    return (
        f"one row of each of {n_people:,} people is audited, of {n_rows:,} rows; group sizes are"
        " shares of people, not of rows"
    )


def _searched(features: Any, n: int, name: str) -> Any:
    """Features as a table with a row per outcome."""
    if features is None:
        return None
    table = as_table(features, n, name=name, per="outcome")
    TableEncoder().fit(table)  # refuses what a learner could not read, by column and row
    return table


def certificate(
    pit: Floats,
    r: Floats | None,
    held: HeldOut,
    confidence: float,
    random: np.random.Generator,
) -> PITCertificate | None:
    if held.is_weighted:
        held.notes.append(f"{NO_CERTIFICATE}: rows with weights are not a sample of the people")
        return None
    try:
        proof = certify_pit(pit, r, confidence=confidence, groups=held.groups, random_state=random)
    except InputError as error:  # draws that people share, or that do not cover [0, 1]
        held.notes.append(f"{NO_CERTIFICATE}: {error}")
        return None
    return replace(proof, one_row_each=held.one_row_each)


def scan_groups(
    pit: Floats, residual: Floats | None, held: HeldOut, search: Search, random: np.random.Generator
) -> pd.DataFrame:
    empty = pd.DataFrame(columns=list(_tables.SCAN_COLUMNS))
    n = pit.shape[0]
    if held.features is None:
        return empty
    if n < search.min_size:
        held.notes.append(f"{search.min_size} rows are needed to scan for groups, got {n}")
        return empty

    def scanned(features: Any, groups: Groups) -> pd.DataFrame:
        weight = held.weight if held.is_weighted else None
        return searches.scan_groups(
            pit,
            features,
            search.min_size,
            groups=groups,
            residual=residual,
            sample_weight=weight,
            random_state=random,
        )

    found = empty if held.searched is None else scanned(held.searched, held.judged)
    left_out = found.attrs.get("left_out", {})
    held.notes.extend(
        f"column {column!r} was not scanned: {why}" for column, why in left_out.items()
    )
    if held.searched is None:
        held.notes.append("the outcome may define every feature: nothing was scanned")
    elif not (found["n"] >= search.min_size).any():
        held.notes.append(f"no group has at least {search.min_size} rows: nothing was scanned")
    if held.leaks.empty:
        return found
    leaks = scanned(*held.leaking)
    same_rows = leaks.attrs["same_rows"] | found.attrs.get("same_rows", {})
    both = with_leaks(found, _as_leaks(leaks))
    both.attrs["same_rows"] = same_rows
    return both


def with_leaks(found: pd.DataFrame, leaks: pd.DataFrame) -> pd.DataFrame:
    """Put groups that the outcome may define below those that were scanned."""
    some = [table for table in (found, leaks) if len(table)]
    return pd.concat(some, ignore_index=True) if some else found


def _as_leaks(found: pd.DataFrame) -> pd.DataFrame:
    """Keep the numbers of single groups, without tests: these would be no findings."""
    single = found[found["features"].map(len) == 1]
    return single.assign(direction=POSSIBLE_LEAK, p_value=np.nan, p_adjusted=np.nan)


def unlearned(mass: float) -> str:
    """How the note begins that says why no group of a mass was learned."""
    return f"no group of {stated(mass)} was learned"


def learn_groups(
    pit: Floats, residual: Floats | None, held: HeldOut, search: Search, random: np.random.Generator
) -> pd.DataFrame:
    found: list[searches.FoundGroup] = []
    learner = GroupSearch(pit, _without_names(held), random_state=random)
    for mass in search.learned_masses if held.searched is not None else ():
        try:
            found.append(learner.find(mass, confidence=search.confidence, residual=residual))
        except InputError as error:
            # the remedies are for those who call the search itself
            held.notes.append(f"{unlearned(mass)}: {str(error).partition('; ')[0]}")
    return _tables.learned_table(found)


def _without_names(held: HeldOut) -> Any:
    """Features without text that differs in every row: a learner finds people by it, not groups."""
    features = held.searched
    if not hasattr(features, "columns"):
        return features
    named = [
        name
        for name in features.columns
        if not pd.api.types.is_numeric_dtype(features[name])
        and not pd.api.types.is_datetime64_any_dtype(features[name])
        and features[name].nunique() == len(features)
    ]
    if not named or len(named) == features.shape[1]:
        return features
    held.notes.extend(f"column {name!r} names each row and was not learned from" for name in named)
    return features.drop(columns=named)


def note_features(held: HeldOut) -> None:
    """Say which features groups were looked for in.

    In another model's table they are whatever else is there.
    """
    names = [str(name) for name in getattr(held.searched, "columns", ())]
    names = names or [f"x{i}" for i in range(held.searched.shape[1])]
    listed = ", ".join(names[:MOST_NAMED]) + (
        f" and {len(names) - MOST_NAMED} more" * (len(names) > MOST_NAMED)
    )
    held.notes.append(
        f"groups were looked for in {len(names)} feature{'s' * (len(names) > 1)}: {listed}"
    )
