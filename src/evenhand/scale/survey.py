"""A first look at a table in parts.

How many rows, which outcomes, which values name groups, and who has which row.
"""

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
from evenhand.scale.engine import Advance
from evenhand.scale.people import People
from evenhand.scale.subjects import Subject
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
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, part, block)))


@dataclass(frozen=True)
class SurveyPlan:
    """What is looked at.

    Parameters
    ----------
    subject : Subject
        The forecaster, or the columns with forecasts.
    target : str
        Column with the outcomes.
    columns : tuple of str
        All columns that an audit needs, the target among them.
    groups : tuple of str
        Columns that name groups.
    person : str or None
        Column that names people.
    seed : int
        Of the choice among the rows of a person.
    """

    subject: Subject
    target: str
    columns: tuple[str, ...]
    groups: tuple[str, ...]
    person: str | None
    seed: int


@dataclass(frozen=True)
class Survey:
    """What a first look finds; surveys of different rows add up to that of all of them.

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


def survey_part(plan: SurveyPlan, parts: Parts, i: int, advance: Advance) -> Survey | None:
    """Look at one part, and complain of what an audit would stumble on.

    None of a part without rows.
    """
    source = parts.names[i]
    found = list[Survey]()
    hashed = hashlib.sha256()
    wanted = list(dict.fromkeys((*plan.columns, *([] if plan.person is None else [plan.person]))))
    for block, (start, table) in enumerate(parts.blocks(i, wanted)):
        y = number_column(table, plan.target, source=source, start=start)
        hashed.update(np.ascontiguousarray(y, dtype="<f8").data)
        plan.subject.of(table, source, start)  # complains of forecasts that are none
        people = None
        last = found[-1] if found else None
        if plan.person is not None:
            labels = id_column(table, plan.person, source=source, start=start)
            people = People.of(
                labels, i, start, block_generator(plan.seed, SURVEY, i, block).random(y.size)
            )
        with about(source):
            for name in table.columns:
                # lists and structs are refused here, where the part is known; a few rows show them
                coded(table[name].head(100), f"column {name!r}")
            seen = {
                name: _seen(table[name], last.seen[name] if last else None) for name in plan.groups
            }
        unseen = UnseenValues.of(plan.subject.schema, table)
        span = float(y.min()), float(y.max())
        found.append(Survey({i: y.size}, span, seen, {}, people, unseen))
        if plan.person is None:  # people are joined at the end: each time would copy them all
            found = [Survey.joined(found)]
        advance(len(table))
    return replace(Survey.joined(found), digests={i: hashed.digest()}) if found else None


def _seen(values: pd.Series[Any], before: Seen | None) -> Seen:
    """Look at a column, unless earlier blocks have shown that it has too many values."""
    if before is None or before.labels is not None:
        return Seen.of(values)
    return before if before.has_missing else replace(before, has_missing=bool(values.isna().any()))
