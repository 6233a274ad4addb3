"""Rows of tables that commands read: outcomes, people, times, and audits of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._format import and_more
from evenhand._validate import (
    DiscreteOutcomeWarning,
    Floats,
    InputError,
    about,
    bad_input,
    check_column,
    check_outcomes,
)
from evenhand.cli.options import listed_names
from evenhand.cli.output import inform

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import typer

    from evenhand._validate import Mask
    from evenhand.audits import Audit, Condition, Note
    from evenhand.distributions import OutcomeKind
    from evenhand.forecast_columns import ForecastColumns
    from evenhand.scale import ModelSubject
    from evenhand.tables import Group, Groups, Parts


# --- table columns named by options, and the labels of people


def people_of(
    data: pd.DataFrame, id_column: str | None, person: str | None, target: str, source: str
) -> list[str] | None:
    """Return labels of people, from --person or else from --id, whose values must be unique."""
    from evenhand import tables
    from evenhand._ids import id_text

    column = id_column if person is None else person
    if column is None:
        return None
    # one row per person would be one row per outcome
    if column == target:
        raise InputError(
            f"{source}: column {column!r} is the target and does not identify people; name another"
            " column"
        )
    labels = tables.id_column(data, column, source=source)
    # bounds assume independent rows, but two rows of one person are dependent
    if person is None:
        tables.refuse_repeated(labels, column, source=source)
    # the text that draws are hashed from: 1 and "1" are the same person
    return [id_text(label) for label in labels]


def with_outcomes(
    data: pd.DataFrame, target: str, drop_missing: bool, source: str
) -> tuple[pd.DataFrame, Floats, str, list[Note]]:
    """Return rows and outcomes, the name of the rows in messages, and a note if some are left out.

    Messages then count the rows that are returned; their index has the numbers of the table.
    """
    from evenhand import audits, tables

    notes = []
    missing = tables.column_of(data, target, source).isna().to_numpy()
    if drop_missing and missing.any() and not missing.all():
        notes = [audits.Note(audits.NoteKind.NO_OUTCOME, numbers=(int(missing.sum()), len(data)))]
        inform(f"warning: {source}: {notes[0]}")
        data, source = data[~missing], f"{source} without rows that lack {target!r}"
    option = "" if drop_missing else "--drop-missing"
    y = tables.number_column(data, target, source=source, option=option)
    return data, y, source, notes


def chosen_columns(
    option: str, listed: str | None, parts: dict[str, str], present: Sequence[str], source: str
) -> list[str]:
    """Return the columns that an option lists, without duplicates.

    They must be present, and must not be among `parts`: columns with another role, by their role.
    """
    names = [
        check_column(name, present, source) for name in dict.fromkeys(listed_names(option, listed))
    ]
    for name in names:
        if name in parts:
            # in groups selected by outcome even the true distribution is miscalibrated
            reason = (
                "groups defined by the outcome are miscalibrated under any model"
                if parts[name] in ("target", "event")
                else "it only identifies people"
            )
            raise InputError(
                f"{option} contains {name!r}, the --{parts[name]} column: {reason}; leave it out"
            )
    return names


def column_subject(options: typer.Context) -> ForecastColumns:
    """Return the columns of another model's forecasts that options name; they may be none.

    Raises InputError if options contradict each other.
    """
    from evenhand.forecast_columns import ForecastColumns

    given = options.params
    # an option without effect is refused, because its user expects an effect
    if given["sort_quantiles"] and given["quantiles"] is None:
        raise InputError(
            "--sort-quantiles has no effect without --quantiles; leave it out, or name the columns"
        )
    names = [field.name for field in fields(ForecastColumns)]
    return ForecastColumns(**{name: given[name] for name in names})


def refuse_without_forecasts(
    subject: ForecastColumns, what: str, remedy: str = "name columns of the table"
) -> None:
    """Refuse a table without columns of forecasts.

    Parameters
    ----------
    subject : ForecastColumns
        The named columns.
    what : str
        Beginning of the message, such as "t.csv: no forecasts to audit".
    remedy : str, default "name columns of the table"
        Remedy, which the options for columns are appended to.
    """
    from evenhand.forecast_columns import FORMS

    if not subject.named:
        raise InputError(f"{what}; {remedy}: {FORMS}")


# --- options of the command for times until an event, which may be cut off (outcomes: 5)

CUT_OFF = "1 where the event was observed, 0 where the time is cut off"


@dataclass(frozen=True)
class TimeColumns:
    """The options `--event`, `--horizon` and `--entered`.

    Parameters
    ----------
    event : str or None
        Column with 1 where the event was observed, 0 where the time is cut off; None for outcomes
        that are no times.
    horizon : float or None
        Time up to which outcomes are followed, units of the target.
    entered : str or None
        Column with the dates at which people entered.
    """

    event: str | None = None
    horizon: float | None = None
    entered: str | None = None

    @classmethod
    def of(cls, options: typer.Context, *, is_certified: bool = False) -> TimeColumns:
        """Check the options of a command that reads outcomes, before a table is read.

        A certificate is impossible without a horizon.
        """
        names = ("event", "horizon", "entered", "survival")
        event, horizon, entered, survival = (options.params.get(name) for name in names)
        if horizon is not None and not (math.isfinite(horizon) and horizon > 0):
            raise bad_input("--horizon", "be a time above 0", f"{horizon:g}")
        given = {"--survival": survival, "--horizon": horizon, "--entered": entered}
        if event is None:
            for option, value in given.items():
                if value is not None:
                    raise InputError(
                        f"{option} is for times until an event, which may be cut off; add --event,"
                        f" the column with {CUT_OFF}"
                    )
        if entered is not None and horizon is None:
            raise InputError(
                "--entered has no effect without --horizon: it selects the people who entered at"
                " least a horizon before the end of follow-up; add --horizon"
            )
        if is_certified and event is not None and horizon is None:
            raise InputError(
                "--event needs --horizon here: without a time up to which people are followed, a"
                " time that is cut off may have any error up to the largest, and nothing can be"
                " certified; add --horizon"
            )
        return cls(event, horizon, entered)

    @property
    def outcome(self) -> dict[str, str]:
        """The column that is part of the outcome, with its role."""
        return {} if self.event is None else {self.event: "event"}

    @property
    def roles(self) -> dict[str, str]:
        """The named columns with their roles."""
        return self.outcome | ({} if self.entered is None else {self.entered: "entered"})

    def read(self, data: pd.DataFrame, y: Floats, target: str, source: str) -> dict[str, Any]:
        """Return arguments of `audit`, `randomize` and `fit` for these times; none without events.

        Parameters
        ----------
        data : DataFrame of n rows
            The table.
        y : ndarray of shape (n,)
            The column `target`, finite.
        target, source : str
            Column of the times, and file name, for messages.
        """
        from evenhand import tables
        from evenhand.calibration import Outcomes

        if self.event is None:
            return {}
        if self.event == target:
            raise InputError(
                f"--event {target!r} is the --target column, which contains the times; name the"
                f" column with {CUT_OFF}"
            )
        tables.refuse_row(
            y < 0, data[target], f"{source}: column {target!r}", "be at least 0", "it is a time"
        )
        happened = self._events(data, source)
        found: dict[str, Any] = {"event": happened}
        if self.horizon is not None:
            found["horizon"] = self.horizon
        if self.entered is not None:
            found["entered"] = self._entries(data, source)
        with about(source):
            Outcomes(y, **found)
        return found

    def _events(self, data: pd.DataFrame, source: str) -> Mask:
        from evenhand import tables

        column = str(self.event)
        values = tables.number_column(data, column, source=source)
        place = f"{source}: column {column!r}"
        wrong = (values != 0) & (values != 1)
        tables.refuse_row(wrong, data[column], place, "be 0 or 1", f"write {CUT_OFF}")
        return np.asarray(values == 1)

    def _entries(self, data: pd.DataFrame, source: str) -> Any:
        """Return dates, or numbers in units of the target."""
        import pandas as pd

        from evenhand import tables

        column = str(self.entered)
        values = tables.column_of(data, column, source)
        place = f"{source}: column {column!r}"
        if values.dtype.kind != "M":
            found = tables.parse_dates(values)
            if found is None:
                return tables.number_column(data, column, source=source)
            dates, wrong = found
            tables.refuse_row(wrong, values, place, "be a date", tables.ISO_DATES)
            values = pd.Series(dates, index=values.index)
        tables.refuse_row(values.isna().to_numpy(), values, place, "be a date", "fill it")
        # dates with a time zone have an object dtype in arrays
        return values.dt.tz_localize(None).to_numpy()


def refuse_missing_times(data: pd.DataFrame, target: str, source: str) -> None:
    """Refuse missing times, with the reason why their rows must not be dropped."""
    from evenhand import tables

    values = tables.column_of(data, target, source)
    remedy = (
        "where no event was observed, give the time at which the person was last seen: without"
        " these people, times would seem shorter than they are"
    )
    place = f"{source}: column {target!r}"
    tables.refuse_row(values.isna().to_numpy(), values, place, "be a time", remedy)


def check_kind_of_times(kind: OutcomeKind, source: str) -> None:
    """Refuse forecasts that are not of times."""
    from evenhand.distributions import OutcomeKind
    from evenhand.forecast_columns import TIMES

    if kind in (OutcomeKind.BINARY, OutcomeKind.COUNT):
        raise InputError(
            f"{source}: --event is for times until an event, but the forecasts are of the kind"
            f" {str(kind)!r}; name {TIMES}, or leave --event out"
        )


# --- audits requested by the command, of a table in memory or in parts

MOST_KEYS = 5
"""Largest number of pairs of context and key listed in a provenance."""


@dataclass(frozen=True)
class Request:
    """Options of `evenhand audit`.

    Parameters
    ----------
    subject : ModelSubject or ForecastColumns
        The forecaster, or the columns of the table that contain forecasts.
    rows : Path
        The table.
    target : str
        Column with the outcomes.
    name : str
        Name of the forecaster in reports.
    groups, features : str or None
        Comma-separated columns.
    id_column, person : str or None
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

    subject: ModelSubject | ForecastColumns
    rows: Path
    target: str
    name: str
    groups: str | None = None
    features: str | None = None
    id_column: str | None = None
    person: str | None = None
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
        return [name for name in (self.id_column, self.person) if name]

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
        listed = {self.person: "person", self.id_column: "id", self.weight: "weight"}
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
    from evenhand import tables

    source = request.rows.name
    data, remarks = tables.read_typed(
        request.rows, schema=request.subject.schema, text=request.texts
    )
    for remark in remarks:
        inform(f"warning: {source}: {remark}")
    if request.times.event is not None:
        refuse_missing_times(data, request.target, source)
    data, y, source, notes = with_outcomes(data, request.target, request.drop_missing, source)
    times = request.times.read(data, y, request.target, source)
    kind = request.subject.outcome_kind_in(data, source)
    if times:
        check_kind_of_times(kind, source)
    else:
        request.subject.check_outcomes(y, data, target=request.target, source=source)
        place = f"{source}: column {request.target!r}"
        if request.is_randomized:
            from evenhand import selection

            selection.refuse_events(y, place)
        check_outcomes(y, name=place, kind=kind, remedy=request.subject.remedy_for(y))
    people = people_of(data, request.id_column, request.person, request.target, source)
    named, searched = request.columns(list(data.columns))
    known = tables.group_columns(data, named, source=source)
    groups = tables.Groups(known.pairs(), _memberships(request, data, source))
    weights = None
    if request.weight is not None:
        weights = tables.number_column(data, request.weight, source=source)
    features = data[searched] if searched else None
    return Rows(data, source, notes, y, people, groups, features, weights, times)


def _memberships(request: Request, data: pd.DataFrame, source: str) -> list[tuple[Group, Floats]]:
    """Return each group whose members are known by probability, with its column."""
    import pandas as pd

    from evenhand import tables

    option = "--group-probabilities"
    parts = {request.target: "target"}
    names = chosen_columns(option, request.group_probabilities, parts, list(data.columns), source)
    found = []
    for name in names:
        shares = tables.number_column(data, name, source=source)
        if not tables.are_probabilities(pd.Series(shares)):
            place = f"{source}: column {name!r} of {option}"
            rule = "contain probabilities from 0 to 1, some strictly between"
            got = f"values from {shares.min():g} to {shares.max():g}"
            raise bad_input(place, rule, got, "name columns of labels in --groups")
        found.append((tables.Group.given(name), shares))
    return found


def audit_in_memory(request: Request) -> Audit:
    """Audit a table that is read into memory."""
    from evenhand import audits
    from evenhand.calibration import Outcomes

    rows = read_rows(request)
    subject, X = request.subject.of(rows.data, rows.source)
    with about(rows.source), warnings.catch_warnings():
        # `read_rows` has warned of discrete outcomes, with the name of the column
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        found = audits.audit(
            subject,
            X,
            Outcomes(
                rows.y,
                weight=rows.weights,
                largest_weight=request.largest_weight,
                person=None if request.person is None else rows.people,
                **rows.times,
            ),
            groups=rows.groups,
            features=rows.searched,
            target_name=request.target,
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
            person=request.person,
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
    from evenhand.forecast_columns import ForecastColumns
    from evenhand.scale import has_sources

    if not isinstance(request.subject, ForecastColumns) or not has_sources(present):
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
