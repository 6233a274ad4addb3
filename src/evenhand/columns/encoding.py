"""Encoding of tables with mixed columns as numeric matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from evenhand._format import and_more
from evenhand._validate import LARGEST, Floats, InputError, bad_input, typed_fields
from evenhand.columns.conversion import as_json, as_pandas, as_table
from evenhand.columns.encoded_columns import (
    KINDS,
    EncodedColumn,
    NumberColumn,
    encoded_kind,
    standardized,
)
from evenhand.columns.groups import Condition
from evenhand.columns.values import is_plain_dtype

MOST_ABSENT = 10
"""Largest number of missing columns listed in a message."""


class TableEncoder:
    """Encoder of tables with columns of any kind as float64 matrices.

    Numbers are standardized, text and categories become one output per level, and dates become a
    trend and a season. Missing values have a separate output if the training data had some. At
    predict time columns are matched by name, in any order, additional columns are ignored, and
    unseen levels are encoded as unknown.

    Attributes
    ----------
    columns_ : tuple of EncodedColumn
        Learned encodings, in the order of the training data.
    named_ : bool
        Whether the training data had column names. If they or the new data have none, columns are
        matched by position.

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
            If a column name is repeated, or a column contains infinite values, text among numbers
            or values of an unknown kind.
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
        """Return the matrix of finite values, shape (n_samples, len(names_out)).

        Raises InputError if a column of the training data is missing, or a value cannot be read;
        the message names its row.
        """
        columns = self._fitted()
        numbers = _plain_numbers(X, columns)
        if numbers is not None:
            return _encoded_numbers(numbers, columns)
        table, named = _named_table(X)
        names = [column.name for column in columns]
        # columns of an array can only be matched by position
        if not (named and self.named_) and table.shape[1] == len(names):
            table = table.set_axis(names, axis="columns")
        absent = [name for name in names if name not in table.columns]
        if absent:
            shown = and_more([*map(repr, absent)], MOST_ABSENT)
            raise InputError(f"X lacks columns of the training table: {shown}; add them")
        return np.hstack([column.transform(table[column.name]) for column in columns])

    def fit_transform(self, X: Any) -> Floats:
        """Learn the encoding of `X` and return its matrix."""
        return self.fit(X).transform(X)

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of the outputs, in the order of the columns of the matrix."""
        return tuple(name for column in self._fitted() for name in column.names_out)

    def condition(self, j: int, low: float, high: float) -> Condition | None:
        """Describe the rows with column `j` of the matrix in (low, high]; None if impossible."""
        column, output = self._sources()[j]
        return column.condition(output, low, high)

    @property
    def readable(self) -> list[bool]:
        """Whether `condition` can describe each column of the matrix."""
        upper = (0.0, math.inf)
        return [column.condition(i, *upper) is not None for column, i in self._sources()]

    def _sources(self) -> list[tuple[EncodedColumn, int]]:
        return [(column, i) for column in self._fitted() for i in range(len(column.names_out))]

    def to_state(self) -> dict[str, Any]:
        """Return the learned encodings as JSON values."""
        columns = [{"kind": column.kind, **as_json(column)} for column in self._fitted()]
        return {"named": self.named_, "columns": columns}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild an encoder from the output of `to_state`; InputError if it is anything else."""
        encoder = cls()
        # states come from files, which may be damaged or forged
        try:
            encoder.named_ = bool(state["named"])
            encoder.columns_ = tuple(_column_from_state(entry) for entry in state["columns"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                "state is not the output of TableEncoder.to_state"
                f" ({type(error).__name__}: {error})"
            ) from error
        return encoder

    def _fitted(self) -> tuple[EncodedColumn, ...]:
        if not hasattr(self, "columns_"):
            raise InputError("TableEncoder is not fitted yet; call fit first")
        return self.columns_


def _column_from_state(entry: Mapping[str, Any]) -> EncodedColumn:
    fields = dict(entry)
    kind = KINDS[fields.pop("kind")]
    return kind(**typed_fields(kind, fields))


def _plain_numbers(X: Any, columns: Sequence[EncodedColumn]) -> Floats | None:
    """Return the rows as an array, if they consist of the columns of training and all are numbers.

    None if any value needs to be converted, or is too large and must be refused.
    """
    if not all(isinstance(column, NumberColumn) for column in columns):
        return None
    if isinstance(X, pd.DataFrame):
        is_same = X.columns.tolist() == [column.name for column in columns]
        if not is_same or not all(map(is_plain_dtype, X.dtypes)):
            return None
        X = X.to_numpy(dtype=np.float64)
    elif type(X) is not np.ndarray or X.dtype != np.float64 or X.shape[1:] != (len(columns),):
        return None
    return None if (np.abs(X) > LARGEST).any() else X


def _encoded_numbers(numbers: Floats, columns: Sequence[EncodedColumn]) -> Floats:
    """Encode all columns at once, which for one row takes a small part of the time."""
    found = [column for column in columns if isinstance(column, NumberColumn)]
    mean = np.array([column.mean for column in found])
    scale = np.array([column.scale for column in found])
    encoded = np.ascontiguousarray(standardized(numbers, mean, scale))
    marked = np.flatnonzero([column.had_missing for column in found])
    if marked.size == 0:
        return encoded
    # the output for missing values follows that of its column
    return np.insert(encoded, marked + 1, np.isnan(numbers[:, marked]), axis=1)


def _named_table(X: Any) -> tuple[pd.DataFrame, bool]:
    """Return a table with text as column names, and whether `X` had column names."""
    frame = as_pandas(X)
    table = as_table(frame)
    if not all(type(name) is str for name in table.columns):
        table = table.set_axis(table.columns.map(str), axis="columns")
    return table, isinstance(frame, pd.DataFrame)
