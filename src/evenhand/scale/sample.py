"""Random samples of rows of a table in parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.scale.audit_columns import AuditColumns
from evenhand.scale.engine import Advance
from evenhand.scale.subjects import refusals
from evenhand.tables import Parts

Ints = NDArray[np.intp]


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
        first, last = np.searchsorted(rows, (start, start + len(table)))
        taken.append(table.iloc[rows[first:last] - start])
        advance(len(table))
    table = pd.concat(taken, ignore_index=True)
    forecaster, X = columns.subject.of(table, source)
    if X is not None:
        # a trial forecast, while the part of a refused row is known; the audit takes 64 draws
        with refusals(source, int(rows[0]), int(rows[-1])):
            forecaster.forecast(X, 0.5)
    return table
