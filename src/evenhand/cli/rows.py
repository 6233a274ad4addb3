"""Rows of tables that commands read: outcomes, people, times, and audits of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand._format import and_more
from evenhand._kinds import OutcomeKind
from evenhand._validate import (
    MIN_DISTINCT,
    DiscreteOutcomeWarning,
    Floats,
    InputError,
    about,
    bad_input,
    check_column,
    check_outcomes,
)
from evenhand.cli.checks import listed_names
from evenhand.cli.options import GroupColumns, Large, Rows, Times
from evenhand.cli.output import inform
from evenhand.cli.rooms import (
    audits,
    draws,
    forecast_columns,
    outcomes,
    report,
    scale,
    selection,
    store,
    tables,
)
from evenhand.draws import id_text

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.outcomes import Outcomes
    from evenhand.results import Note


# --- table columns named by options, and the labels of people


def typed_table(table: Path, schema: tables.Schema, *ids: str | None) -> pd.DataFrame:
    """Read a table, and warn of columns that look like numbers and are none.

    Columns of ids are read as text: as numbers, ids such as 007 would lose their zeros.
    """
    data, remarks = tables.read_typed(table, schema=schema, text=ids)
    for remark in remarks:
        inform(f"warning: {table.name}: {remark}")
    return data


def people_of(
    data: pd.DataFrame, id_column: str | None, person: str | None, target: str, source: str
) -> list[str] | None:
    """Return labels of people, from --person or else from --id, whose values must be unique."""
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
    notes = []
    missing = tables.column_of(data, target, source).isna().to_numpy()
    if drop_missing and missing.any() and not missing.all():
        notes = [report.note(report.NoteKind.NO_OUTCOME, numbers=(int(missing.sum()), len(data)))]
        inform(f"warning: {source}: {notes[0]}")
        data, source = data[~missing], f"{source} without rows that lack {target!r}"
    option = "" if drop_missing else "--drop-missing"
    return data, tables.number_column(data, target, source=source, option=option), source, notes


def chosen_columns(
    option: str, listed: str | None, parts: Mapping[Any, str], present: Sequence[str], source: str
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


def columns_like_ids(X: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield columns that probably identify rows, with the reason.

    They have another text in every row, or the whole numbers of a sequence in any order.
    """
    for name, values in X.items():
        is_text, is_number = tables.is_text(values), tables.column_kind(values) == "number"
        # in tables of a few rows features have such values, too
        if len(X) < MIN_DISTINCT or not (is_text or is_number) or values.nunique() < len(X):
            continue
        if is_text:
            yield str(name), "has a different text in every row"
        elif (values % 1 == 0).all() and values.max() - values.min() < 2 * len(X):
            yield str(name), "numbers the rows"


# --- the forecasts of `--forecast`: a model folder, or columns of the table


@dataclass(frozen=True)
class Given:
    """Forecasts that the option `--forecast` names: of the model in a folder, or in columns."""

    subject: scale.Subject
    folder: Path | None = None

    @classmethod
    def of(cls, text: str) -> Given:
        """Read the option `--forecast`."""
        folder = Path(text)
        if "=" in text and not folder.exists():
            return cls(forecast_columns.ForecastColumns.parse(text))
        if not folder.exists():
            raise InputError(
                f"--forecast {text}: there is no such model folder; write columns of the table as"
                f" {forecast_columns.EXAMPLE}"
            )
        # imported here, as models need scikit-learn and columns of a table do not
        return cls(scale.as_subject(store.load(folder)), folder)

    @property
    def forecaster(self) -> Any:
        """The forecasts as a model that can be stored."""
        return getattr(self.subject, "forecaster", self.subject)

    @property
    def model(self) -> Any:
        """The forecasts as a model that no function fits."""
        from sklearn.frozen import FrozenEstimator

        if self.folder is None:
            return self.forecaster
        if getattr(self.forecaster, "alpha", None) is not None:
            raise InputError(f"{self.folder} is randomized; give the forecasts before the draw")
        return FrozenEstimator(self.forecaster)

    def name(self, table: Path) -> str:
        """Return the name of the forecasts in reports."""
        return table.name if self.folder is None else self.folder.name

    def with_times(self, times: Times) -> tuple[Given, Times]:
        """Return forecasts and outcomes that are times with the same event and horizon."""
        columns = self.subject.inner or forecast_columns.ForecastColumns()
        named = {}
        for name in ("event", "horizon"):
            part, value = getattr(columns, name), getattr(times, name)
            if None not in (part, value) and part != value:
                if self.folder is not None:
                    raise InputError(f"{self.folder} was made with {name}={part}, not {value}")
                raise InputError(f"give {name}= in --forecast or --{name}, not both")
            named[name] = part if value is None else value
        times = replace(times, **named)
        if times.event is None and columns.survival is not None:
            raise InputError(
                "survival= of --forecast is for times that may be cut off; add event=, the column"
                " with 1 where the event was observed, 0 where the time is cut off"
            )
        if self.folder is None:
            return replace(self, subject=replace(columns, **named)), times
        return self, times


# --- audits requested by the command, of a table in memory or in parts

MOST_KEYS = 5
"""Largest number of pairs of context and key listed in a provenance."""


@dataclass(frozen=True)
class Request:
    """A table with outcomes and forecasts that a command reads, and the options of its columns."""

    given: Given
    table: Path
    rows: Rows
    times: Times
    grouping: GroupColumns
    largest_weight: float | None = None

    @property
    def outcome(self) -> dict[str | None, str]:
        """Columns of the outcome, with their roles."""
        return {self.rows.target: "target", self.times.event: "event"}

    def columns(self, present: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the columns that define groups, and those in which groups are searched."""
        source, rows = self.table.name, self.rows
        # any column except the outcome may define groups
        named = chosen_columns("--groups", self.grouping.groups, self.outcome, present, source)
        parts = {rows.person: "person", rows.id: "id", rows.weight: "weight"} | self.outcome
        apart = {*parts, self.times.entered}
        searched = scale.searched_columns(self.given.subject, present, rows.target, apart, source)
        if self.grouping.features is not None:
            searched = chosen_columns("--features", self.grouping.features, parts, present, source)
        return named, searched


@dataclass(frozen=True)
class Read:
    """Rows that a command has read into memory.

    Parameters
    ----------
    request : Request
        What was asked for.
    data : DataFrame of n rows
        The table, without rows that are left out; its index numbers the rows of the whole table.
    source : str
        Name of the table in messages.
    notes : list of Note
        Notes on rows that are left out.
    kind : OutcomeKind
        Kind of outcome that the forecasts describe.
    outcomes : Outcomes
        Outcomes of the rows.
    people : list of str or None
        Labels of people; None without a column of ids.
    groups : Groups
        Named groups.
    searched : DataFrame or None
        Columns in which groups are searched, if any.
    """

    request: Request
    data: pd.DataFrame
    source: str
    notes: list[Note]
    kind: OutcomeKind
    outcomes: Outcomes
    people: list[str] | None
    groups: tables.Groups
    searched: pd.DataFrame | None


def read_rows(request: Request, *, is_randomized: bool = False) -> Read:
    """Read the table of a request, and check its outcomes, its people and the chosen columns.

    Outcomes 0 and 1 are refused where other forecasts than probabilities are to be randomized.
    """
    source, subject, rows = request.table.name, request.given.subject, request.rows
    data = typed_table(request.table, subject.schema, rows.id, rows.person)
    event, entered = request.times.event, request.times.entered
    notes: list[Note] = []
    if event is None:
        data, y, source, notes = with_outcomes(data, rows.target, rows.drop_missing, source)
    place = f"{source}: column {rows.target!r}"
    # a time that is missing must not be left out: `Outcomes` names the reason
    if event is not None:
        y = tables.numbers(tables.column_of(data, rows.target, source), place)
    kind = subject.outcome_kind_in(data, source)
    if event is None:
        subject.check_outcomes(y, data, target=rows.target, source=source)
        if is_randomized and kind != "binary":
            selection.refuse_events(y, place)
        check_outcomes(y, name=place, kind=kind)
    named, searched = request.columns(list(data.columns))
    known = tables.group_columns(data, named, source=source)
    # later than what takes less time to refuse
    people = people_of(data, rows.id, rows.person, rows.target, source)
    groups = tables.Groups([*known.pairs(), *_memberships(request, data, source)])
    with about(source, y=rows.target, event=event, entered=entered, weight=rows.weight):
        given = outcomes.Outcomes(
            y,
            event=numbers_in(data, event, source),
            horizon=request.times.horizon,
            entered=None if entered is None else tables.column_of(data, entered, source),
            weight=numbers_in(data, rows.weight, source),
            largest_weight=request.largest_weight,
            person=None if rows.person is None else people,
        )
    features = data[searched] if searched else None
    return Read(request, data, source, notes, kind, given, people, groups, features)


def numbers_in(data: pd.DataFrame, column: str | None, source: str) -> Floats | None:
    """Return the numbers of a column that an option names, if it does."""
    return None if column is None else tables.number_column(data, column, source=source)


def _memberships(
    request: Request, data: pd.DataFrame, source: str
) -> list[tuple[tables.Group, Floats]]:
    """Return each group whose members are known by probability, with its column."""
    import pandas as pd

    option = "--group-probabilities"
    listed = request.grouping.group_probabilities
    names = chosen_columns(option, listed, request.outcome, list(data.columns), source)
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


def audited_rows(read: Read, options: Mapping[str, Any]) -> audits.AuditedRows:
    """Audit rows that were read; `options` are those of `evenhand.audit`."""
    request = read.request
    subject, X = request.given.subject.of(read.data, read.source)
    with about(read.source, y=request.rows.target), warnings.catch_warnings():
        # `read_rows` has warned of discrete outcomes, with the name of the column
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        rows = audits.audited(
            subject,
            X,
            read.outcomes,
            groups=read.groups,
            features=read.searched,
            ids=read.people,
            target_name=request.rows.target,
            **options,
        )
    found = rows.audit.with_rows(notes=(*read.notes, *rows.audit.notes))
    found = audits.renumbered(found, read.data.index.to_numpy())
    return rows._replace(audit=_with_keys(found, request, read.data.columns, [read.data]))


def audit_in_parts(
    request: Request, options: Mapping[str, Any], levels: Sequence[float], large: Large
) -> audits.Audit:
    """Audit a table that is read in blocks, in this process or on a cluster.

    Blocks are counted one by one, so the levels must be known before the first.
    """
    in_memory = {
        **{f"--{name}": value for name, value in asdict(request.times).items()},
        "--group-probabilities": request.grouping.group_probabilities,
        "--weight": request.rows.weight,
        "--largest-weight": request.largest_weight,
        "--drop-missing": request.rows.drop_missing or None,
    }
    for option in (option for option, given in in_memory.items() if given is not None):
        raise InputError(
            f"{option} needs a table in memory, but this one is read in parts; audit a single file,"
            " such as a random sample of the rows"
        )
    skip_bad = large.skip_bad_parts
    parts = tables.open_parts(request.table, skip_bad=skip_bad)
    named, searched = request.columns(parts.columns)
    with large.client() as client:
        found = scale.audit_parts(
            request.given.subject,
            parts,
            request.rows.target,
            groups=named,
            features=searched,
            id_column=request.rows.id,
            person=request.rows.person,
            levels=levels,
            client=client,
            skip_bad=skip_bad,
            verbose=True,
            **options,
        )
    for note in report.notes_of(found.notes, report.NoteKind.PART_LEFT_OUT):
        inform(f"warning: {note}")
    return _with_keys(found, request, parts.columns, _readable_blocks(parts))


def _with_keys(
    found: audits.Audit, request: Request, present: Iterable[str], tables: Iterable[pd.DataFrame]
) -> audits.Audit:
    """Record contexts and keys in the provenance, for forecasts written by evenhand."""
    if request.given.folder is not None or not scale.has_sources(present):
        return found
    pairs = {
        pair
        for table in tables
        for pair in zip(*table[["context", "key"]].fillna("").to_numpy().T, strict=True)
    }
    # columns of the same names with other content were not written by evenhand
    if not all(draws.FINGERPRINT.fullmatch(str(key)) for _, key in pairs):
        return found
    listed = [f"context {str(context)!r} with key {key}" for context, key in sorted(pairs, key=str)]
    hashes = f"keyed hashes of ids, one per row: {and_more(listed, MOST_KEYS)}"
    return found.with_rows(provenance=found.provenance | {"draws": hashes})


def _readable_blocks(parts: tables.Parts) -> Iterator[pd.DataFrame]:
    for i in range(len(parts)):
        with suppress(InputError):  # a skipped part, which was already reported
            for _, block in parts.blocks(i, ["context", "key"]):
                yield block
