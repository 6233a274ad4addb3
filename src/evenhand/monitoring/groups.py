"""Named groups of a watch: learned from the first rows, with groups that appear later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Mask, about, bad_input, check_column
from evenhand.tables import EVERYONE, Group, Partition, of_levels

MOST_LATER = 100
"""Most groups of one column that may appear after the first update; more are most likely ids."""


class NamedGroups:
    """Groups by the values of columns, such as `sex = 2`, and the rows that belong to them.

    Columns define groups as in an audit: one group per value, or two halves at the median. Values
    that are seen later for the first time, and are not in a half, become further groups, in the
    order of their first rows.

    Parameters
    ----------
    partitions : sequence of Partition
        Groups of each column, learned from the first rows.
    has_everyone : bool, default False
        Whether all rows are a group, too, the first one; the only one without any columns.

    Attributes
    ----------
    names : list of str
        Names of the groups, those that appeared later last.
    n_first : int
        Number of groups of the first rows.

    Examples
    --------
    >>> table = pd.DataFrame({"sex": ["f", "m", "f"]})
    >>> groups = NamedGroups.learn(table, ["sex"])
    >>> groups.members(pd.DataFrame({"sex": ["m", None]})).tolist()
    [[False, True, False], [False, False, True]]
    >>> groups.names
    ['sex = f', 'sex = m', 'sex missing']
    """

    def __init__(self, partitions: Sequence[Partition], *, has_everyone: bool = False) -> None:
        self.partitions = tuple(partitions)
        self.has_everyone = has_everyone or not partitions
        self.names = [EVERYONE] * self.has_everyone
        self.names += [name for one in self.partitions for name in one.names]
        self.n_first = len(self.names)
        self._later: dict[str, int] = dict.fromkeys((one.column for one in self.partitions), 0)

    @classmethod
    def learn(cls, table: pd.DataFrame, columns: Sequence[str]) -> NamedGroups:
        """Learn the groups of some columns; InputError if a column is missing or has only ids."""
        named = [name for name in columns if name != EVERYONE]
        source = "rows of the first update"
        learned = [Partition.learn(_column(table, name), name, source=source) for name in named]
        return cls(learned, has_everyone=EVERYONE in columns)

    def check(self, table: pd.DataFrame) -> None:
        """Refuse a table without the columns of the groups."""
        for partition in self.partitions:
            check_column(partition.column, table.columns, "the table of groups")

    def members(self, table: Any) -> Mask:
        """Return the rows of each group, (n, G), after adding the groups that appear in them."""
        if not self.partitions:
            return np.full((len(table), 1), True)
        labels = np.column_stack([_labels(one, table) for one in self.partitions])
        # in the order of rows, whatever the columns, so that splits into updates do not matter
        codes, distinct = pd.factorize(labels.ravel())
        columns = np.unique(codes, return_index=True)[1] % len(self.partitions)
        places = [
            self._place_of(name, self.partitions[j].column)
            for name, j in zip(distinct, columns.tolist(), strict=True)
        ]
        of_row = np.array(places, dtype=np.intp)[codes].reshape(labels.shape)
        members = np.zeros((len(table), len(self.names)), dtype=np.bool_)
        members[:, : self.has_everyone] = True
        rows, _ = np.nonzero(of_row >= 0)
        members[rows, of_row[of_row >= 0]] = True
        return members

    def _place_of(self, name: str, column: str) -> int:
        """Return the index of a group, adding one that appears later; -1 if there are too many."""
        if name in self.names:
            return self.names.index(name)
        if self._later[column] >= MOST_LATER:
            return -1
        self._later[column] += 1
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

    def to_state(self) -> dict[str, Any]:
        """Return the groups as JSON values."""
        return {
            "partitions": [partition.to_state() for partition in self.partitions],
            "everyone": self.has_everyone,
            "later": self.names[self.n_first :],
            "n_later": dict(self._later),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> NamedGroups:
        """Rebuild the groups from the output of `to_state`."""
        groups = cls(
            [Partition.from_state(one) for one in state["partitions"]],
            has_everyone=state["everyone"],
        )
        groups.names += state["later"]
        groups._later = dict(state["n_later"])
        return groups


def _column(table: pd.DataFrame, name: str) -> pd.Series[Any]:
    check_column(name, table.columns, "the table of groups")
    # columns of numbers in object arrays, such as those of a log, become numbers
    return table[name].infer_objects()


def _labels(partition: Partition, table: pd.DataFrame) -> Any:
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
