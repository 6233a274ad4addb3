"""Rows chosen at random from a table in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.scale.engine import Advance
from evenhand.scale.subjects import Subject, refusals
from evenhand.tables import Parts

Ints = NDArray[np.intp]


@dataclass(frozen=True)
class Sample:
    """Some rows of a table, in its order.

    Parameters
    ----------
    part, row : ndarray of int, shape (k,)
        Where each stands.
    table : DataFrame of k rows
        What it holds.
    """

    part: Ints
    row: Ints
    table: pd.DataFrame

    @classmethod
    def joined(cls, taken: Mapping[int, pd.DataFrame], rows: Mapping[int, Ints]) -> Sample:
        """Put what was taken from each part side by side."""
        numbers = sorted(taken)
        # a column that is all missing in a part is of no type, and would make objects of dates
        # elsewhere
        typed = [taken[i].dropna(axis="columns", how="all") for i in numbers]
        table = pd.concat(typed, ignore_index=True).reindex(columns=taken[numbers[0]].columns)
        part = np.repeat(np.array(numbers, dtype=np.intp), [len(taken[i]) for i in numbers])
        return cls(part, np.concatenate([rows[i] for i in numbers]), table)

    def __len__(self) -> int:
        return len(self.table)


@dataclass(frozen=True)
class Choice:
    """Which rows of each part are taken, with which columns; forecasts of them are tried."""

    subject: Subject
    columns: Sequence[str]
    rows: Mapping[int, Ints]


def take_part(choice: Choice, parts: Parts, i: int, advance: Advance) -> pd.DataFrame:
    """Take the rows of one part, and complain of those that the forecaster would refuse."""
    source = parts.names[i]
    rows = choice.rows[i]
    taken = []
    for start, table in parts.blocks(i, choice.columns):
        first, last = np.searchsorted(rows, (start, start + len(table)))
        taken.append(table.iloc[rows[first:last] - start])
        advance(len(table))
    table = pd.concat(taken, ignore_index=True)
    forecaster, X = choice.subject.of(table, source)
    if X is not None:
        with refusals(source, int(rows[0]), int(rows[-1])):
            forecaster.forecast(X, 0.5)
    return table
