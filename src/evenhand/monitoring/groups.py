"""Named groups of a watch: learned from the first rows, with groups that appear later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Mask, about, bad_input, check_column
from evenhand.monitoring.e_processes import Stored
from evenhand.monitoring.rows import Rows
from evenhand.monitoring.statements import needed
from evenhand.tables import EVERYONE, Group, Partition, of_levels

MOST_LATER = 100
"""Most groups of one column that may appear after the first update; more are most likely ids."""


class NamedGroups(Stored):
    """Groups by the values of columns, such as `sex = 2`, and the rows that belong to them.

    Columns define groups as in an audit: one group per value, or two halves at the median. Values
    that are seen later for the first time, and are not in a half, become further groups, in the
    order of their first rows.

    Attributes
    ----------
    partitions : list of Partition
        Groups of each column, learned from the first rows.
    has_everyone : bool
        Whether all rows are a group, too, the first one.
    names : list of str
        Names of the groups, those that appeared later last; none before groups are learned.
    n_first : int
        Number of groups of the first rows.
    n_later : dict
        Number of groups of each column that appeared later.

    Examples
    --------
    >>> groups = NamedGroups()
    >>> groups.learn(pd.DataFrame({"sex": ["f", "m", "f"]}), ["sex"])
    >>> days = ["2026-03-01", "2026-03-02"]
    >>> groups.members(Rows.of(days, [0.1, 0.2], groups={"sex": ["m", None]})).tolist()
    [[False, True, False], [False, False, True]]
    >>> groups.names
    ['sex = f', 'sex = m', 'sex missing']
    """

    partitions: list[Partition]
    has_everyone: bool
    names: list[str]
    n_first: int
    n_later: dict[str, int]

    def __init__(self) -> None:
        self.partitions = []
        self.has_everyone = False
        self.names = []
        self.n_first = 0
        self.n_later = {}

    def learn(self, table: pd.DataFrame | None, columns: Sequence[str]) -> None:
        """Learn the groups of some columns; InputError if a column is missing or has only ids."""
        named = [name for name in columns if name != EVERYONE]
        source = "rows of the first update"
        self.partitions = [
            Partition.learn(_column(table, name), name, source=source) for name in named
        ]
        self.has_everyone = EVERYONE in columns
        self.names = [EVERYONE] * self.has_everyone
        self.names += [name for one in self.partitions for name in one.names]
        self.n_first = len(self.names)
        self.n_later = dict.fromkeys(named, 0)

    def check(self, rows: Rows) -> None:
        """Refuse rows without the columns of the groups."""
        for partition in self.partitions:
            _column(rows.columns, partition.column)

    def members(self, rows: Rows) -> Mask:
        """Return the rows of each group, (n, G), after adding the groups that appear in them."""
        labels = [_labels(one, rows.columns) for one in self.partitions]
        # in the order of rows, whatever the columns, so that splits into updates do not matter
        codes, distinct = pd.factorize(np.array(labels, dtype=object).ravel(order="F"))
        columns = np.unique(codes, return_index=True)[1] % max(len(labels), 1)
        places = [
            self._place_of(name, self.partitions[j].column)
            for name, j in zip(distinct, columns.tolist(), strict=True)
        ]
        of_row = np.array(places, dtype=np.intp)[codes].reshape(len(rows), len(labels))
        members = np.zeros((len(rows), len(self.names)), dtype=np.bool_)
        members[:, : self.has_everyone] = True
        in_group, _ = np.nonzero(of_row >= 0)
        members[in_group, of_row[of_row >= 0]] = True
        return members

    def _place_of(self, name: str, column: str) -> int:
        """Return the index of a group, adding one that appears later; -1 if there are too many."""
        if name in self.names:
            return self.names.index(name)
        if self.n_later[column] >= MOST_LATER:
            return -1
        self.n_later[column] += 1
        self.names.append(name)
        return len(self.names) - 1

    def log_thresholds(self, risk: float) -> list[float]:
        """Return the logarithms of the thresholds of all groups, which share a risk.

        Of G first groups each has `risk / (G + 1)`, and the remaining part is for later groups, the
        j-th of which has `1 / (j (j + 1))` of it. Nothing is spent twice, as the sum is at most the
        risk however many groups appear (outcomes: 6, e-Bonferroni with weights).
        """
        n_parts = self.n_first + bool(self.partitions)
        later = np.arange(1, len(self.names) - self.n_first + 1, dtype=np.float64)
        weights = np.append(np.ones(self.n_first), 1 / (later * (later + 1)))
        return [float(one) for one in np.log(n_parts / (risk * weights))]


def _column(table: pd.DataFrame | None, name: str) -> pd.Series[Any]:
    table = needed(table, "columns, but the watch has groups", "give them as columns")
    check_column(name, table.columns, "the table of groups")
    # columns of numbers in object arrays, such as those of a log, become numbers
    return table[name].infer_objects()


def _labels(partition: Partition, table: pd.DataFrame | None) -> Any:
    """Return the name of the group of each row, also of values without one in the first rows."""
    values = _column(table, partition.column)
    with about("rows"):
        labels = partition.labels(_comparable(values, partition))
    unknown = np.flatnonzero(pd.isna(labels))
    name, place = partition.column, f"column {partition.column!r}"
    absent = Group(name, "missing").name
    labels[unknown] = of_levels(
        values.iloc[unknown], place, lambda one: Group(name, "=", one).name, absent, object
    )
    return labels


def _comparable(values: pd.Series[Any], partition: Partition) -> pd.Series[Any]:
    """Return the values of a column in halves as numbers or dates."""
    if partition.cut is None or values.dtype.kind in "iufM":
        return values
    is_date = partition.kind == "date"
    read: Any = pd.to_datetime if is_date else pd.to_numeric
    converted: pd.Series[Any] = read(values, errors="coerce")
    wrong = np.flatnonzero((converted.isna() & values.notna()).to_numpy())
    if wrong.size:
        row = int(wrong[0])
        rule = f"contain {'dates' if is_date else 'numbers'}, as in the first update"
        raise bad_input(f"column {partition.column!r}", rule, f"{values.iloc[row]!r} in row {row}")
    return converted
