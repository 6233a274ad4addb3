"""Surveys of tables in parts: rows, outcomes, values that name groups, and people."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import about, coded
from evenhand.columns import Seen, UnseenValues
from evenhand.scale.audit_columns import AuditColumns
from evenhand.scale.engine import Advance
from evenhand.scale.people import People
from evenhand.tables import Parts, id_column, number_column

Ints = NDArray[np.intp]

SURVEY = 0
CHOICE = 1
SCORES = 2
"""Purposes of random numbers."""


def block_generator(seed: int, purpose: int, part: int, block: int) -> np.random.Generator:
    """Return the random numbers of one block of one part.

    They depend on neither order nor worker.
    """
    # keys, not one generator after another: a block has its numbers whoever reads what before it
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, part, block)))


@dataclass(frozen=True)
class Survey:
    """Summary of rows used to plan an audit; surveys of disjoint rows can be added.

    Parameters
    ----------
    n_rows : dict of int to int
        Rows of each part.
    span : tuple of float
        The least and the greatest outcome.
    seen : dict of str to Seen
        What the columns of groups hold.
    digests : dict of int to bytes
        Hash of the outcomes of each part.
    people : People or None
        Who has which row.
    unseen : UnseenValues
        Values that the forecaster's training never had.
    """

    n_rows: dict[int, int]
    span: tuple[float, float]
    seen: dict[str, Seen]
    digests: dict[int, bytes]
    people: People | None
    unseen: UnseenValues

    def __add__(self, other: Survey) -> Survey:
        return Survey.joined([self, other])

    @staticmethod
    def joined(surveys: Sequence[Survey]) -> Survey:
        """Add up surveys of different rows."""
        n_rows: dict[int, int] = {}
        for part, n in (item for one in surveys for item in one.n_rows.items()):
            n_rows[part] = n_rows.get(part, 0) + n
        people = [one.people for one in surveys if one.people is not None]
        return Survey(
            n_rows,
            (min(one.span[0] for one in surveys), max(one.span[1] for one in surveys)),
            {name: reduce(add, (one.seen[name] for one in surveys)) for name in surveys[0].seen},
            {part: digest for one in surveys for part, digest in one.digests.items()},
            People.joined(people) if people else None,
            reduce(add, (one.unseen for one in surveys)),
        )

    def chosen(self, kept: Mapping[int, Ints] | None, size: int, seed: int) -> dict[int, Ints]:
        """Choose rows of each part at random, all alike likely.

        All of them if they are no more than `size`.

        `kept` are the rows of each part that are to be chosen from, if not all are.
        """
        numbers = sorted(self.n_rows)
        sizes = [self.n_rows[i] if kept is None else kept[i].size for i in numbers]
        ends = np.cumsum(sizes)
        total = sum(sizes)
        # places among all rows, so that each set of rows is as likely as any other of its size
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
    """Survey one part and refuse what an audit cannot use; None of a part without rows."""
    columns, seed = shared
    source = parts.names[i]
    found = list[Survey]()
    hashed = hashlib.sha256()
    for block, (start, table) in enumerate(parts.blocks(i, columns.with_person)):
        y = number_column(table, columns.target, source=source, start=start)
        # little-endian whatever the machine, so that the hash of a table is one everywhere
        hashed.update(np.ascontiguousarray(y, dtype="<f8").data)
        # reading forecasts from columns checks them, so a bad part is found in the first pass
        columns.subject.of(table, source, start)
        people = None
        last = found[-1] if found else None
        if columns.person is not None:
            labels = id_column(table, columns.person, source=source, start=start)
            chance = block_generator(seed, SURVEY, i, block).random(y.size)
            people = People.of(labels, i, start, chance)
        with about(source):
            for name in table.columns:
                # lists and structs are refused here, where the part is known; a few rows show them
                coded(table[name].head(100), f"column {name!r}")
            seen = {
                name: _seen(table[name], last.seen[name] if last else None)
                for name in columns.named
            }
        unseen = UnseenValues.of(columns.subject.schema, table)
        span = float(y.min()), float(y.max())
        found.append(Survey({i: y.size}, span, seen, {}, people, unseen))
        if columns.person is None:  # people are joined at the end: each time would copy them all
            found = [Survey.joined(found)]
        advance(len(table))
    return replace(Survey.joined(found), digests={i: hashed.digest()}) if found else None


def _seen(values: pd.Series[Any], before: Seen | None) -> Seen:
    """Look at a column, unless earlier blocks have shown that it has too many values."""
    if before is None or before.labels is not None:
        return Seen.of(values)
    return before if before.has_missing else replace(before, has_missing=bool(values.isna().any()))
