"""Groups of rows defined by the columns of a table: values, halves, missing values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from evenhand._validate import InputError
from evenhand.columns.cuts import plain_halves
from evenhand.columns.groups import Group, Groups
from evenhand.columns.partition import MAX_GROUPS, MAX_VALUES, Partition
from evenhand.tables import column_of


def group_columns(table: pd.DataFrame, names: Iterable[str], *, source: str) -> Groups:
    """Return the named groups that columns define, for an audit.

    Text, booleans, categories, and numbers or dates with at most 10 distinct values give one group
    per value, such as `sex = 2`. Other numbers and dates are split into two halves at the median,
    `age <= 50` and `age > 50`, or at the next smaller value if no value is above the median. The
    cut is rounded only so far that the rows still match the names of the halves. Dates and whole
    numbers of 2^53 and more are cut at one of their values. Missing values are a separate group,
    `age missing`. The groups of a column are a partition of the rows, and none is empty.

    Parameters
    ----------
    table : DataFrame
        Rows.
    names : iterable of str
        Columns that define groups.
    source : str
        Name of the file, for messages.

    Raises
    ------
    InputError
        If there is no such column, or a text column has more than 100 distinct values.

    Examples
    --------
    >>> groups = group_columns(pd.DataFrame({"sex": [2, 1, None]}), ["sex"], source="loans.csv")
    >>> for name, rows in groups.items():
    ...     print(name, rows.tolist())
    sex = 1 [False, True, False]
    sex = 2 [True, False, False]
    sex missing [False, False, True]
    """
    columns = ((name, column_of(table, name, source)) for name in names)
    return Groups(
        pair
        for name, values in columns
        for pair in Partition.learn(values, name, source=source).masks(values).pairs()
    )


@dataclass(frozen=True)
class LeftOut:
    """Reason why a feature defines no groups; `str` gives it in words.

    Parameters
    ----------
    reason : {"constant", "many values", "same split"}
        Kind of reason.
    other : str, optional
        Another feature that gives the same split.
    """

    reason: Literal["constant", "many values", "same split"]
    other: str | None = None

    def __str__(self) -> str:
        words = {
            "constant": "constant",
            "many values": f"more than {MAX_GROUPS} distinct values",
            "same split": f"it splits the rows as {self.other!r} does",
        }
        return words[self.reason]


def feature_groups(table: pd.DataFrame) -> Iterator[tuple[str, Groups | LeftOut]]:
    """Yield each column of a table with its groups, or the reason why it has none."""
    # most features of a wide table are plain numbers, many of which are cut in one step
    halves = {j: (cut, high) for j, cut, high in plain_halves(table, MAX_VALUES)}
    for j, name in enumerate(table.columns):
        if j in halves:
            cut, high = halves[j]
            pairs = [(Group(name, "<=", cut), ~high), (Group(name, ">", cut), high)]
            yield str(name), Groups(pairs)
            continue
        try:
            yield str(name), group_columns(table, [name], source="X")
        except InputError:  # ids and free text, which must not stop the scan of other features
            yield str(name), LeftOut("many values")
