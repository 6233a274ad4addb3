"""Passes over the parts of a table: types of columns, survey, random sample and scores."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import InputError, about, check_column, coded
from evenhand.audits import CountPlan, RowCounts, count_rows
from evenhand.scale.engine import Advance
from evenhand.scale.people import People
from evenhand.scale.subjects import Subject, refusals, searched_columns
from evenhand.tables import (
    Evidence,
    Parts,
    Schema,
    Seen,
    UnseenValues,
    check_names,
    found_schema,
    id_column,
    number_column,
)

# --- columns that an audit of a table in parts reads, by purpose


@dataclass(frozen=True)
class AuditColumns:
    """The columns of an audit.

    Parameters
    ----------
    subject : Subject
        The forecaster, or the columns that contain forecasts.
    source : str
        File name of the table, for messages.
    target : str
        Column with the outcomes.
    used : tuple of str
        Columns that the forecasts require.
    named, searched : tuple of str
        Columns that define groups, and columns in which groups are searched.
    person : str or None
        Column with ids of people.
    """

    subject: Subject
    source: str
    target: str
    used: tuple[str, ...]
    named: tuple[str, ...]
    searched: tuple[str, ...]
    person: str | None

    @classmethod
    def of(
        cls,
        subject: Subject,
        parts: Parts,
        target: str,
        groups: Sequence[str],
        features: Sequence[str] | None,
        id_column: str | None = None,
        person: str | None = None,
    ) -> Self:
        """Check that the requested columns exist, and collect them."""
        source = parts.source
        groups = check_names(groups)
        persons = [name for name in (person, id_column) if name is not None]
        for name in (target, *groups, *(features or ()), *persons):
            check_column(name, parts.columns, source)
        used = subject.columns(parts.columns, source)
        for option, names in (("groups", groups), ("features", features or ())):
            if target in names:
                # in groups defined by y even the true distribution is miscalibrated
                # (method: errata)
                raise InputError(
                    f"{option} contains {target!r}, the target: groups defined by the outcome are"
                    " miscalibrated under any model; leave it out"
                )
        apart = {target, *persons}
        # called even if features are given: it refuses a target that is one of the forecasts
        own = searched_columns(subject, parts.columns, target, apart, source)
        searched = own if features is None else features
        named = tuple(dict.fromkeys(groups))
        # a person may have several ids: one row per person is audited
        who = next(iter(persons), None)
        return cls(subject, source, target, tuple(used), named, tuple(searched), who)

    @property
    def grouping(self) -> tuple[str, ...]:
        """Columns that define groups or in which groups are searched."""
        return tuple(dict.fromkeys((*self.named, *self.searched)))

    @property
    def columns(self) -> list[str]:
        """Columns read for scoring."""
        return list(dict.fromkeys((self.target, *self.grouping, *self.used)))

    @property
    def with_person(self) -> list[str]:
        """Columns read for scoring, and the column with ids of people."""
        # ids are text in every row: they are read only where they are used, not for scoring
        return list(dict.fromkeys((*self.columns, *filter(None, [self.person]))))


# --- surveys of tables in parts: rows, outcomes, values of group columns, and people

Ints = NDArray[np.intp]

SURVEY = 0
CHOICE = 1
SCORES = 2
"""Keys of the random streams by purpose."""


def block_generator(seed: int, purpose: int, part: int, block: int) -> np.random.Generator:
    """Return the random generator of one block, which depends on neither order nor worker."""
    # a keyed stream per block, instead of one stream that blocks consume in some order
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, part, block)))


@dataclass(frozen=True)
class Survey:
    """Summary of rows used to plan an audit; surveys of disjoint rows can be joined.

    Parameters
    ----------
    n_rows : dict of int to int
        Rows of each part.
    seen : dict of str to Seen
        Values of the group columns.
    digests : dict of int to bytes
        Hash of the outcomes of each part.
    people : People or None
        People by row, if ids are needed.
    unseen : UnseenValues
        Values that are absent from the forecaster's training table.
    """

    n_rows: dict[int, int]
    seen: dict[str, Seen]
    digests: dict[int, bytes]
    people: People | None
    unseen: UnseenValues

    @staticmethod
    def joined(surveys: Sequence[Survey]) -> Survey:
        """Add up surveys of different rows."""
        n_rows: dict[int, int] = {}
        for part, n in (item for one in surveys for item in one.n_rows.items()):
            n_rows[part] = n_rows.get(part, 0) + n
        people = [one.people for one in surveys if one.people is not None]
        return Survey(
            n_rows,
            {name: reduce(add, (one.seen[name] for one in surveys)) for name in surveys[0].seen},
            {part: digest for one in surveys for part, digest in one.digests.items()},
            People.joined(people) if people else None,
            reduce(add, (one.unseen for one in surveys)),
        )

    def chosen(self, kept: Mapping[int, Ints] | None, size: int, seed: int) -> dict[int, Ints]:
        """Choose a simple random sample of `size` rows; return its rows of each part.

        All rows are chosen if there are at most `size`. `kept` restricts the choice to some rows of
        each part.
        """
        numbers = sorted(self.n_rows)
        sizes = [self.n_rows[i] if kept is None else kept[i].size for i in numbers]
        ends = np.cumsum(sizes)
        total = sum(sizes)
        # positions among all rows, so that all sets of rows of this size are equally likely
        random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(CHOICE,)))
        picked = (
            np.arange(total)
            if size >= total
            else np.sort(random.choice(total, size, replace=False))
        )
        rows = {}
        for i, n, end in zip(numbers, sizes, ends, strict=True):
            first, last = np.searchsorted(picked, (end - n, end))
            inside = (picked[first:last] - (end - n)).astype(np.intp)
            rows[i] = inside if kept is None else kept[i][inside]
        return rows


def survey_part(
    shared: tuple[AuditColumns, int], parts: Parts, i: int, advance: Advance
) -> Survey | None:
    """Survey one part, checking its values for the audit; return None for a part without rows."""
    columns, seed = shared
    source = parts.names[i]
    found = list[Survey]()
    hashed = hashlib.sha256()
    for block, (start, table) in enumerate(parts.blocks(i, columns.with_person)):
        y = number_column(table, columns.target, source=source, start=start)
        # little-endian, so that the hash does not depend on the machine
        hashed.update(np.ascontiguousarray(y, dtype="<f8").data)
        # reading forecasts from columns checks them, so a bad part is found in the first pass
        columns.subject.of(table, source, start)
        columns.subject.check_outcomes(y, table, target=columns.target, source=source, start=start)
        people = None
        last = found[-1] if found else None
        if columns.person is not None:
            labels = id_column(table, columns.person, source=source, start=start)
            chance = block_generator(seed, SURVEY, i, block).random(y.size)
            people = People.of(labels, i, start, chance)
        with about(source):
            for name in table.columns:
                # refuses lists and structs here, where the part is known; a few rows suffice
                coded(table[name].head(100), f"column {name!r}")
            seen = {
                name: _seen(table[name], last.seen[name] if last else None)
                for name in columns.named
            }
        unseen = UnseenValues.of(columns.subject.schema, table)
        found.append(Survey({i: y.size}, seen, {}, people, unseen))
        if columns.person is None:  # people are joined once at the end, to avoid copies
            found = [Survey.joined(found)]
        advance(len(table))
    return replace(Survey.joined(found), digests={i: hashed.digest()}) if found else None


def _seen(values: pd.Series[Any], before: Seen | None) -> Seen:
    """Collect the values of a column, unless earlier blocks contain too many distinct values."""
    if before is None or before.labels is not None:
        return Seen.of(values)
    return before if before.has_missing else replace(before, has_missing=bool(values.isna().any()))


# --- random samples of rows of a table in parts


@dataclass(frozen=True)
class Sample:
    """Some rows of a table, in its order.

    Parameters
    ----------
    part, row : ndarray of int, shape (k,)
        Part number of each row, and row number within the part.
    table : DataFrame of k rows
        The rows.
    """

    part: Ints
    row: Ints
    table: pd.DataFrame

    @classmethod
    def joined(cls, taken: Mapping[int, pd.DataFrame], rows: Mapping[int, Ints]) -> Sample:
        """Concatenate the rows taken from each part."""
        numbers = sorted(taken)
        # a column without values in a part has no type, and would turn dates of other parts into
        # objects
        typed = [taken[i].dropna(axis="columns", how="all") for i in numbers]
        table = pd.concat(typed, ignore_index=True).reindex(columns=taken[numbers[0]].columns)
        part = np.repeat(np.array(numbers, dtype=np.intp), [len(taken[i]) for i in numbers])
        return cls(part, np.concatenate([rows[i] for i in numbers]), table)

    def __len__(self) -> int:
        return len(self.table)

    def of_parts(self, numbers: Collection[int]) -> Sample:
        """Return the rows of these parts."""
        kept = np.isin(self.part, list(numbers))
        return Sample(self.part[kept], self.row[kept], self.table[kept].reset_index(drop=True))


def take_part(
    shared: tuple[AuditColumns, Mapping[int, Ints]], parts: Parts, i: int, advance: Advance
) -> pd.DataFrame:
    """Return the chosen rows of one part; raise InputError if the forecaster refuses them."""
    columns, rows = shared[0], shared[1][i]
    source = parts.names[i]
    taken = []
    for start, table in parts.blocks(i, columns.with_person):
        taken.append(table.iloc[_within(rows, start, len(table))])
        advance(len(table))
    table = pd.concat(taken, ignore_index=True)
    forecaster: Any
    forecaster, X = columns.subject.of(table, source)
    if X is not None:
        # a trial forecast, while the part of a refused row is known; the audit takes 64 draws
        with refusals(source, int(rows[0]), int(rows[-1])):
            forecaster.forecast(X, 0.5)
    return table


def _within(rows: Ints, start: int, count: int) -> Ints:
    """Return the chosen rows among `count` rows from `start`, relative to `start`."""
    first, last = np.searchsorted(rows, (start, start + count))
    return rows[first:last] - start


# --- scoring of the parts of a table, one block at a time

RowBits = Mapping[int, NDArray[np.uint8]]
"""Rows of each part, as one bit per row: all workers receive the rows of all parts, and numbers of
rows would take 64 times the space."""


def count_part(
    shared: tuple[AuditColumns, CountPlan, RowBits | None, int],
    parts: Parts,
    i: int,
    advance: Advance,
) -> RowCounts | None:
    """Score one part; return None if none of its rows are audited.

    `shared` are the columns, the plan, the audited rows (None for all) and the seed of the draws.
    """
    columns, plan, kept, seed = shared
    source = parts.names[i]
    rows = None if kept is None else np.flatnonzero(np.unpackbits(kept[i]))
    total = None
    for block, (start, whole) in enumerate(parts.blocks(i, columns.columns)):
        table = whole if rows is None else whole.iloc[_within(rows, start, len(whole))]
        if len(table):
            y = number_column(table, columns.target, source=source, start=start)
            model, X = columns.subject.of(table, source, start)
            # keyed by part and block, so draws depend on neither worker nor order
            random = block_generator(seed, SCORES, i, block)
            with refusals(source, start, start + len(whole) - 1):
                found = count_rows(model, X, y, table, plan, i, random)
            total = found if total is None else total + found
        advance(len(whole))
    return total


def added(counts: Iterable[tuple[int, RowCounts | None]]) -> tuple[RowCounts, list[int]]:
    """Sum the counts as they arrive; return the sum and the part numbers."""
    # counts take 0.2 MB per group and part: a list for all parts might not fit in memory
    done = []
    total = None
    for i, one in counts:
        done.append(i)
        if one is not None:
            total = one if total is None else total + one
    assert total is not None
    return total, sorted(done)


# --- types of the columns of a table in parts, from a model's schema or from all parts


def typed_parts(
    over: Callable[..., Any],
    parts: Parts,
    columns: Sequence[str],
    schema: Schema,
    skipped: dict[str, str] | None,
) -> Parts:
    """Return the parts with typed columns, by a model's schema or else by all csv parts together.

    A part with text in a column of numbers or dates in most parts is refused, or added to
    `skipped`.
    """
    unknown = tuple(name for name in columns if name not in schema)
    # parquet parts have types, but csv cells are text: one part may contain integers and another
    # words, so only all parts together determine the type of a column
    if not unknown or all(count is not None for count in parts.counts):
        return parts.typed(schema.apply)
    found: dict[int, dict[str, Evidence]] = dict(
        over(look_at_part, unknown, description="reading types")
    )
    for name in unknown:
        kinds = Counter(one[name].kind for one in found.values() if one[name].counts["values"])
        kind = "date" if kinds["date"] > kinds["number"] else "number"
        # without a majority of numbers the column is text, and its numbers are codes
        is_typed = 2 * (kinds["number"] + kinds["date"]) > len(found)
        for i in [i for i in sorted(found) if is_typed and found[i][name].kind == "category"]:
            error = _misfit(parts.names[i], name, kind, found[i][name])
            if skipped is None:
                raise error
            skipped[parts.names[i]] = str(error)
            del found[i]
    total = {
        name: reduce(add, (one[name] for one in found.values()), Evidence()) for name in unknown
    }
    return parts.typed(schema.with_others(found_schema(total)).apply)


def look_at_part(
    columns: tuple[str, ...], parts: Parts, i: int, advance: Advance
) -> dict[str, Evidence]:
    """Count the cells of some columns of one part by type."""
    found = dict.fromkeys(columns, Evidence())
    is_csv = parts.n_rows(i) is None
    for start, block in parts.blocks(i, columns):
        for name in columns:
            values = block[name]
            found[name] += Evidence.of_text(values, start) if is_csv else Evidence.of_typed(values)
        advance(len(block))
    return found


def _misfit(source: str, name: str, kind: str, found: Evidence) -> InputError:
    if kind not in found.odd:  # a column of text in parquet
        return InputError(f"{source}: column {name!r} contains text, unlike most parts; correct it")
    row, value = found.odd[kind]
    return InputError(
        f"{source}: column {name!r}, row {row + 1}: {value!r} is not a {kind} as in most parts;"
        " correct it or drop the row"
    )
