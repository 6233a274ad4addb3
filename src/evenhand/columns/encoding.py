"""Tables with mixed columns as matrices of numbers that learners can take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

from evenhand._validate import Floats, InputError, bad_input
from evenhand.columns.conversion import as_json, as_pandas, as_table, from_json
from evenhand.columns.encoded_columns import KINDS, EncodedColumn, encoded_kind
from evenhand.columns.groups import Condition

MOST_ABSENT = 10
"""Absent columns that a message lists."""


class TableEncoder:
    """Encoding of tables with columns of any kind as float64 matrices.

    Numbers are standardised, texts and categories become one output per level, dates a trend and a
    season; missing values get an output of their own if the training data had some. At predict time
    columns are found by name, their order and further columns do not matter, and unseen levels have
    a place.

    Attributes
    ----------
    columns_ : tuple of EncodedColumn
        What was learned, in the order of the training data.
    named_ : bool
        Whether the training data had column names. If either side has none, columns are taken by
        position.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20.0, 40.0, None], "job": ["nurse", "cook", "nurse"]})
    >>> encoder = TableEncoder()
    >>> encoder.fit_transform(table).tolist()
    [[-1.0, 0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0, 0.0]]
    >>> encoder.names_out
    ('age', 'age missing', 'job = cook', 'job = nurse', 'job unknown')
    """

    columns_: tuple[EncodedColumn, ...]
    named_: bool

    def fit(self, X: Any) -> Self:
        """Learn the encoding.

        Parameters
        ----------
        X : DataFrame of any library, or array-like of shape (n_samples, n_features)
            At least one row and one column. Columns of an array are named x0, x1, ...

        Raises
        ------
        InputError
            If a column appears twice, holds infinite values, text among numbers, or values of no
            known kind.
        """
        table, named = _named_table(X)
        if table.shape[0] == 0 or table.shape[1] == 0:
            raise bad_input("X", "have at least one row and one column", f"shape {table.shape}")
        self.columns_ = tuple(
            encoded_kind(table[name], name).fit(name, table[name]) for name in table.columns
        )
        self.named_ = named
        return self

    def transform(self, X: Any) -> Floats:
        """Return the matrix, shape (n_samples, len(names_out)), every value finite.

        Raises InputError if a column of the training data is absent or a value cannot be read, with
        its row.
        """
        columns = self._fitted()
        table, named = _named_table(X)
        names = [column.name for column in columns]
        # columns of an array are known by their position alone
        if not (named and self.named_) and table.shape[1] == len(names):
            table = table.set_axis(names, axis="columns")
        absent = [name for name in names if name not in table.columns]
        if absent:
            shown = ", ".join(map(repr, absent[:MOST_ABSENT]))
            more = f" and {len(absent) - MOST_ABSENT} more" * (len(absent) > MOST_ABSENT)
            got = f"a table without {shown}{more}"
            raise bad_input("X", "have the columns it had in training", got, "add them")
        return np.hstack([column.transform(table[column.name]) for column in columns])

    def fit_transform(self, X: Any) -> Floats:
        """Learn the encoding of `X` and return its matrix."""
        return self.fit(X).transform(X)

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of the outputs, in the order of the matrix' columns."""
        return tuple(name for column in self._fitted() for name in column.names_out)

    def condition(self, j: int, low: float, high: float) -> Condition | None:
        """Return the rows whose column `j` of the matrix is in (low, high]; None without words."""
        column, output = self._sources()[j]
        return column.condition(output, low, high)

    @property
    def readable(self) -> list[bool]:
        """Whether `condition` has words for each column of the matrix."""
        upper = (0.0, math.inf)
        return [column.condition(i, *upper) is not None for column, i in self._sources()]

    def _sources(self) -> list[tuple[EncodedColumn, int]]:
        return [(column, i) for column in self._fitted() for i in range(len(column.names_out))]

    def to_state(self) -> dict[str, Any]:
        """Return everything that was learned, as JSON can hold it."""
        columns = [{"kind": column.kind, **as_json(column)} for column in self._fitted()]
        return {"named": self.named_, "columns": columns}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the encoder that gave this state.

        Raises InputError if the state is not one that `to_state` gives.
        """
        encoder = cls()
        # states are read from files, which may be damaged or forged
        try:
            encoder.named_ = bool(state["named"])
            encoder.columns_ = tuple(_column_from_state(entry) for entry in state["columns"])
        except (KeyError, TypeError, ValueError) as error:
            got = f"{type(error).__name__}: {error}"
            raise bad_input("state", "be what TableEncoder.to_state gives", got) from error
        return encoder

    def _fitted(self) -> tuple[EncodedColumn, ...]:
        if not hasattr(self, "columns_"):
            raise InputError("TableEncoder must be fitted before it is used; call fit first")
        return self.columns_


def _column_from_state(entry: Mapping[str, Any]) -> EncodedColumn:
    fields = from_json(entry)
    return KINDS[fields.pop("kind")](**fields)


def _named_table(X: Any) -> tuple[pd.DataFrame, bool]:
    """Return a table with text as column names, and whether `X` had names itself."""
    frame = as_pandas(X)
    table = as_table(frame)
    return table.set_axis(table.columns.map(str), axis="columns"), isinstance(frame, pd.DataFrame)
