"""Audits requested by the command, of a table in memory or in parts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand._format import and_more
from evenhand._validate import (
    DiscreteOutcomeWarning,
    Floats,
    InputError,
    about,
    bad_input,
    check_outcomes,
)
from evenhand.cli.messages import inform
from evenhand.cli.tables import chosen_columns, people_of, with_outcomes
from evenhand.cli.times import TimeColumns, check_kind_of_times, refuse_missing_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from evenhand.audits import Audit, Condition, Note
    from evenhand.columns import Group, Groups
    from evenhand.scale import ColumnSubject, ModelSubject
    from evenhand.tables import Parts

MOST_KEYS = 5
"""Largest number of pairs of context and key listed in a provenance."""


@dataclass(frozen=True)
class Request:
    """Options of `evenhand audit`.

    Parameters
    ----------
    subject : ModelSubject or ColumnSubject
        The forecaster, or the columns of the table that contain forecasts.
    rows : Path
        The table.
    target : str
        Column with the outcomes.
    name : str
        Name of the forecaster in reports.
    groups, features : str or None
        Comma-separated columns.
    id_column, cluster : str or None
        Columns with ids of people.
    conditions : sequence of Condition
        Conditions of the gate; their levels are added to an audit in parts.
    confidence, seed, tolerance, largest_weight
        As in `evenhand.audit`.
    weight : str or None
        Column with sampling weights.
    group_probabilities : str or None
        Comma-separated columns with probabilities of membership in a group.
    about : dict of str to str
        Description of the audit for readers.
    times : TimeColumns
        Columns of times that may be cut off.
    drop_missing : bool
        Whether to leave out rows without an outcome.
    is_randomized : bool
        Whether the forecasts are to be randomized, which is refused for 0/1 outcomes.
    """

    subject: ModelSubject | ColumnSubject
    rows: Path
    target: str
    name: str
    groups: str | None = None
    features: str | None = None
    id_column: str | None = None
    cluster: str | None = None
    conditions: Sequence[Condition] = ()
    confidence: float = 0.95
    seed: int | None = None
    tolerance: float | None = None
    weight: str | None = None
    largest_weight: float | None = None
    group_probabilities: str | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    times: TimeColumns = field(default_factory=TimeColumns)
    drop_missing: bool = False
    is_randomized: bool = False

    @property
    def texts(self) -> list[str]:
        """Columns to read as text; ids such as 007 would lose their zeros as numbers."""
        return [name for name in (self.id_column, self.cluster) if name]

    @property
    def options(self) -> dict[str, Any]:
        """Options shared by `audit` and `audit_parts`."""
        return {
            "tolerance": self.tolerance,
            "confidence": self.confidence,
            "random_state": self.seed,
            "name": self.name,
            "about": self.about,
        }

    def columns(self, present: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the columns that define groups, and those in which groups are searched."""
        from evenhand.scale import searched_columns

        source = self.rows.name
        # any column except the outcome may define groups
        outcome = {self.target: "target"} | self.times.outcome
        named = chosen_columns("--groups", self.groups, outcome, present, source)
        listed = {self.cluster: "cluster", self.id_column: "id", self.weight: "weight"}
        parts = {name: part for name, part in listed.items() if name is not None} | outcome
        apart = {*parts, *self.times.roles}
        searched = searched_columns(self.subject, present, self.target, apart, source)
        if self.features is not None:
            searched = chosen_columns("--features", self.features, parts, present, source)
        return named, searched


@dataclass(frozen=True)
class Rows:
    """Rows of a requested audit, read into memory.

    Parameters
    ----------
    data : DataFrame of n rows
        The table, without rows that are left out; its index numbers the rows of the whole table.
    source : str
        Name of the table in messages.
    notes : list of Note
        Notes on rows that are left out.
    y : ndarray of shape (n,)
        Outcomes.
    people : list of str or None
        Labels of people; None without a column of ids.
    groups : Groups
        Named groups.
    searched : DataFrame or None
        Columns in which groups are searched, if any.
    weights : ndarray of shape (n,) or None
        Sampling weights; None without a column of weights.
    times : dict of str to object
        Arguments `event`, `horizon` and `entered` of `audit`; none for outcomes that are no times.
    """

    data: pd.DataFrame
    source: str
    notes: list[Note]
    y: Floats
    people: list[str] | None
    groups: Groups
    searched: pd.DataFrame | None
    weights: Floats | None
    times: dict[str, Any]


def read_rows(request: Request) -> Rows:
    """Read the table of an audit, and check its outcomes, its people and the chosen columns."""
    from evenhand import columns, tables

    source = request.rows.name
    data, remarks = columns.read_typed(
        request.rows, schema=request.subject.schema, text=request.texts
    )
    for remark in remarks:
        inform(f"warning: {source}: {remark}")
    if request.times.event is not None:
        refuse_missing_times(data, request.target, source)
    data, y, source, notes = with_outcomes(data, request.target, request.drop_missing, source)
    times = request.times.read(data, y, request.target, source)
    kind = request.subject.outcome_kind_of(data, source)
    if times:
        check_kind_of_times(kind, source)
    else:
        request.subject.check_outcomes(y, data, target=request.target, source=source)
        place = f"{source}: column {request.target!r}"
        if request.is_randomized:
            from evenhand import selection

            selection.refuse_events(y, place)
        check_outcomes(y, name=place, kind=kind, remedy=request.subject.remedy_for(y))
    people = people_of(data, request.id_column, request.cluster, request.target, source)
    named, searched = request.columns(list(data.columns))
    known = columns.group_columns(data, named, source=source)
    groups = columns.Groups(known.pairs(), _memberships(request, data, source))
    weights = None
    if request.weight is not None:
        weights = tables.number_column(data, request.weight, source=source)
    features = data[searched] if searched else None
    return Rows(data, source, notes, y, people, groups, features, weights, times)


def _memberships(request: Request, data: pd.DataFrame, source: str) -> list[tuple[Group, Floats]]:
    """Return each group whose members are known by probability, with its column."""
    import pandas as pd

    from evenhand import columns, tables

    option = "--group-probabilities"
    parts = {request.target: "target"}
    names = chosen_columns(option, request.group_probabilities, parts, list(data.columns), source)
    found = []
    for name in names:
        shares = tables.number_column(data, name, source=source)
        if not columns.are_probabilities(pd.Series(shares)):
            place = f"{source}: column {name!r} of {option}"
            rule = "contain probabilities from 0 to 1, some strictly between"
            got = f"values from {shares.min():g} to {shares.max():g}"
            raise bad_input(place, rule, got, "name columns of labels in --groups")
        found.append((columns.Group.given(name), shares))
    return found


def audit_in_memory(request: Request) -> Audit:
    """Audit a table that is read into memory."""
    from evenhand import audits

    rows = read_rows(request)
    subject, X = request.subject.of(rows.data, rows.source)
    with about(rows.source), warnings.catch_warnings():
        # `read_rows` has warned of discrete outcomes, with the name of the column
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        found = audits.audit(
            subject,
            X,
            rows.y,
            groups=rows.groups,
            cluster=None if request.cluster is None else rows.people,
            features=rows.searched,
            sample_weight=rows.weights,
            largest_weight=request.largest_weight,
            target_name=request.target,
            **rows.times,
            **request.options,
        )
    found = found if rows.people is None else audits.with_people(found, rows.people)
    found = replace(found, notes=(*rows.notes, *found.notes))
    found = audits.with_rows(found, rows.data.index.to_numpy())
    return _with_keys(found, request, rows.data.columns, [rows.data])


def audit_in_parts(
    request: Request,
    scheduler: str | None,
    workers: int | None,
    *,
    sample_size: int | None,
    skip_bad: bool,
) -> Audit:
    """Audit a table that is read in blocks, in this process or on a cluster."""
    from evenhand import audits, scale, tables

    in_memory = {
        "--event": request.times.event,
        "--group-probabilities": request.group_probabilities,
        "--weight": request.weight,
        "--drop-missing": request.drop_missing or None,
    }
    for option in (option for option, given in in_memory.items() if given is not None):
        raise InputError(
            f"{option} needs a table in memory, but this one is read in parts; audit a single file,"
            " such as a random sample of the rows"
        )
    parts = tables.open_parts(request.rows, skip_bad=skip_bad)
    named, searched = request.columns(parts.columns)
    # the default is that of the function that draws the sample
    size: dict[str, Any] = {} if sample_size is None else {"sample_size": sample_size}
    with scale.dask_client(scheduler, workers) as client:
        found = scale.audit_parts(
            request.subject,
            parts,
            request.target,
            groups=named,
            features=searched,
            id_column=request.id_column,
            cluster=request.cluster,
            # blocks are counted one by one, so the levels must be known before the first
            levels=sorted({c.arguments[0] for c in request.conditions if c.quantity == "coverage"}),
            client=client,
            skip_bad=skip_bad,
            verbose=True,
            **request.options,
            **size,
        )
    for note in audits.notes_of(found.notes, audits.NoteKind.PART_LEFT_OUT):
        inform(f"warning: {note}")
    blocks = (block for i in range(len(parts)) for block in _readable_blocks(parts, i))
    return _with_keys(found, request, parts.columns, blocks)


def _with_keys(
    found: Audit, request: Request, present: Iterable[str], tables: Iterable[pd.DataFrame]
) -> Audit:
    """Record contexts and keys in the provenance, for forecasts written by evenhand."""
    from evenhand.draws import FINGERPRINT
    from evenhand.scale import ColumnSubject, has_sources

    if not isinstance(request.subject, ColumnSubject) or not has_sources(present):
        return found
    pairs = {
        pair
        for table in tables
        for pair in zip(*table[["context", "key"]].fillna("").to_numpy().T, strict=True)
    }
    # columns of the same names with other content were not written by evenhand
    if not all(FINGERPRINT.fullmatch(str(key)) for _, key in pairs):
        return found
    listed = [f"context {str(context)!r} with key {key}" for context, key in sorted(pairs, key=str)]
    draws = f"keyed hashes of ids, one per row: {and_more(listed, MOST_KEYS)}"
    return replace(found, provenance=found.provenance | {"draws": draws})


def _readable_blocks(parts: Parts, i: int) -> Iterator[pd.DataFrame]:
    try:
        for _, block in parts.blocks(i, ["context", "key"]):
            yield block
    except InputError:  # a skipped part, which was already reported
        return
