"""A first look at a table in parts: how many rows, which values name groups, and rows chosen at random."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.groups import Seen
from evenhand.scale._engine import Advance
from evenhand.scale._people import People
from evenhand.scale._subjects import Subject
from evenhand.tables import Parts, id_column, number_column

SURVEY, SCORES = 0, 1
"""Purposes of random numbers."""

MOST_BLOCKS = 25
"""Blocks whose surveys wait to be joined."""

Ints = NDArray[np.intp]


def block_generator(seed: int, purpose: int, part: int, block: int) -> np.random.Generator:
    """Return the random numbers of one block of one part: they hang on neither order nor worker."""
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
        Columns that groups are named by or searched in.
    person : str or None
        Column that names people.
    sample_size : int
        Rows to choose at random.
    most : float
        Rows with a random number above it are surely not among those chosen; 1 where the number of rows is not known.
    seed : int
        Of the choice.
    """

    subject: Subject
    target: str
    columns: tuple[str, ...]
    groups: tuple[str, ...]
    person: str | None
    sample_size: int
    most: float
    seed: int


@dataclass(frozen=True)
class Sample:
    """Rows chosen at random: those with the least of as many random numbers as there are rows.

    Parameters
    ----------
    size : int
        Most rows.
    chance : ndarray of shape (k,)
        Random number of each row.
    part, row : ndarray of int, shape (k,)
        Where it stands.
    table : DataFrame of k rows
        What it holds.
    """

    size: int
    chance: NDArray[np.float64]
    part: Ints
    row: Ints
    table: pd.DataFrame

    def __len__(self) -> int:
        return len(self.table)

    def __add__(self, other: Sample) -> Sample:
        return Sample.joined([self, other])

    @staticmethod
    def joined(samples: Sequence[Sample]) -> Sample:
        """Return the rows chosen of all, in the order of the table."""
        chance, part, row = (
            np.concatenate([getattr(one, name) for one in samples]) for name in ("chance", "part", "row")
        )
        kept = np.lexsort((row, part, chance))[: samples[0].size]
        kept = kept[np.lexsort((row[kept], part[kept]))]
        table = pd.concat([one.table for one in samples if len(one.table)] or [samples[0].table], ignore_index=True)
        return Sample(samples[0].size, chance[kept], part[kept], row[kept], table.iloc[kept].reset_index(drop=True))

    def among(self, kept: Mapping[int, Ints]) -> Sample:
        """Return those of certain rows of each part."""
        at = np.zeros(self.part.size, dtype=np.bool_)
        for part in np.unique(self.part):
            here = self.part == part
            at[here] = np.isin(self.row[here], kept[part])
        return Sample(self.size, self.chance[at], self.part[at], self.row[at], self.table[at].reset_index(drop=True))


@dataclass(frozen=True)
class Survey:
    """What a first look finds; surveys of different parts add up to that of all of them.

    Parameters
    ----------
    n_rows : dict of int to int
        Rows of each part.
    span : tuple of float
        The least and the greatest outcome.
    seen : dict of str to Seen
        What the columns of groups hold.
    sample : Sample
        Rows chosen at random.
    digests : dict of int to bytes
        Hash of the outcomes of each part.
    people : People or None
        Who has which row.
    """

    n_rows: dict[int, int]
    span: tuple[float, float]
    seen: dict[str, Seen]
    sample: Sample
    digests: dict[int, bytes]
    people: People | None

    def __add__(self, other: Survey) -> Survey:
        return Survey.joined([self, other])

    @staticmethod
    def joined(surveys: Sequence[Survey]) -> Survey:
        """Add up surveys of different rows."""
        n_rows: Counter[int] = Counter()
        for one in surveys:
            n_rows.update(one.n_rows)
        people = [one.people for one in surveys if one.people is not None]
        return Survey(
            dict(n_rows),
            (min(one.span[0] for one in surveys), max(one.span[1] for one in surveys)),
            {name: reduce(add, (one.seen[name] for one in surveys)) for name in surveys[0].seen},
            Sample.joined([one.sample for one in surveys]),
            {part: digest for one in surveys for part, digest in one.digests.items()},
            People.joined(people) if people else None,
        )


def survey_part(plan: SurveyPlan, parts: Parts, i: int, advance: Advance) -> Survey | None:
    """Look at one part, and complain of what an audit would stumble on; None of a part without rows."""
    source, found, outcomes = parts.names[i], list[Survey](), hashlib.sha256()
    wanted = list(dict.fromkeys((*plan.columns, *([] if plan.person is None else [plan.person]))))
    for block, (start, table) in enumerate(parts.blocks(i, wanted)):
        y = number_column(table, plan.target, source=source, start=start)
        outcomes.update(np.ascontiguousarray(y, dtype="<f8").data)
        plan.subject.of(table, source, start)  # complains of forecasts that are none
        people = None
        random = block_generator(plan.seed, SURVEY, i, block)
        if plan.person is not None:
            labels = id_column(table, plan.person, source=source, start=start)
            people = People.of(labels, i, start, random.random(y.size))
        seen = {name: _seen(table[name], found[-1].seen[name] if found else None) for name in plan.groups}
        sample = _chosen(plan, i, start, table, random)
        found.append(Survey({i: y.size}, (float(y.min()), float(y.max())), seen, sample, {}, people))
        if len(found) == MOST_BLOCKS:
            found = [Survey.joined(found)]
        advance(len(table))
    return replace(Survey.joined(found), digests={i: outcomes.digest()}) if found else None


def _seen(values: pd.Series[Any], before: Seen | None) -> Seen:
    """Look at a column, unless blocks before this one have told all that can be told."""
    if before is None or before.labels is not None:
        return Seen.of(values)
    return before if before.has_missing else replace(before, has_missing=bool(values.isna().any()))


def _chosen(plan: SurveyPlan, i: int, start: int, table: pd.DataFrame, random: np.random.Generator) -> Sample:
    """Rows of a block that may be among those chosen of all."""
    chance = random.random(len(table))
    rows = np.flatnonzero(chance <= plan.most)
    return Sample(
        plan.sample_size, chance[rows], np.full(rows.size, i), start + rows, table[list(plan.columns)].iloc[rows]
    )
