"""Groups that the columns of a table make: values, halves, missing."""

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
    """Return the named groups that some columns make, for an audit.

    Text, booleans, categories, and numbers or dates with at most 10 distinct values give one group
    per value, `sex = 2`. Other numbers and dates give two halves at the median, `age <= 50` and
    `age > 50`; if nothing lies above the median, at the value below it; the cut is rounded, but so
    that it still splits the rows as its name says. Dates and whole numbers of 2^53 and more are cut
    at one of their values. Missing values are a group of their own, `age missing`. The groups of
    one column share no row, leave none out and are never empty.

    Parameters
    ----------
    table : DataFrame
        Rows.
    names : iterable of str
        Columns that make groups.
    source : str
        Name of the file for messages.

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
    """Why a feature makes no groups of its own; printed as the reason.

    Parameters
    ----------
    reason : {"constant", "many values", "same split"}
        The kind of reason.
    other : str, optional
        The feature that splits the rows alike.
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
    """Yield each column of a table with the groups of `group_columns`, or why there are none."""
    # most features of a wide table are plain numbers, which are cut many at a time
    halves = {j: (cut, high) for j, cut, high in plain_halves(table, MAX_VALUES)}
    for j, name in enumerate(table.columns):
        if j in halves:
            cut, high = halves[j]
            pairs = [(Group(name, "<=", cut), ~high), (Group(name, ">", cut), high)]
            yield str(name), Groups(pairs)
            continue
        try:
            yield str(name), group_columns(table, [name], source="X")
        except InputError:  # ids and free text: the other features are scanned without them
            yield str(name), LeftOut("many values")
