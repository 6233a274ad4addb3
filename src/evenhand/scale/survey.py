"""Surveys of tables in parts: rows, outcomes, values of group columns, and people."""

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
"""Keys of the random streams by purpose."""


def block_generator(seed: int, purpose: int, part: int, block: int) -> np.random.Generator:
    """Return the random generator of one block, which depends on neither order nor worker."""
    # a keyed stream per block, instead of one stream that blocks consume in some order
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, part, block)))


@dataclass(frozen=True)
class Survey:
    """Summary of rows used to plan an audit; surveys of disjoint rows can be added.

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
