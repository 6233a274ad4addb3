"""Rows of features as a model reads them, with a hash that depends on their values only."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import (
    InputError,
    bad_input,
    did_you_mean,
    first_names,
)
from evenhand.columns import Column, Schema, as_pandas, refuse_repeated_names
from evenhand.service.cells import Cells, Value
from evenhand.service.chain import digest_of


@dataclass(frozen=True)
class Features:
    """Features of one person, as the model reads them.

    Parameters
    ----------
    values : dict of str to Value
        Value of each column of the model.
    groups : dict of str to Value
        Value of each column that defines groups.
    sha256 : str
        SHA-256 of `values` as JSON with sorted keys: equal for 1, 1.0 and "1" in a column of
        numbers, in any order of columns.
    """

    values: dict[str, Value]
    groups: dict[str, Value]
    sha256: str


class RowReader:
    """Reader of the rows for a fitted forecaster.

    Parameters
    ----------
    model : Forecaster
        The forecaster; its schema is that of its training table.
    groups : sequence of str
        Columns that define groups. Those that the model does not have are read as they are.
    """

    def __init__(self, model: Any, groups: Sequence[str] = ()) -> None:
        learned = getattr(model, "schema_", Schema())
        self._is_table = bool(learned.columns)
        if not self._is_table:
            n_columns = int(model.n_features_in_)
            learned = Schema(tuple(Column(f"x{j}", "number") for j in range(n_columns)))
        self._columns = learned.columns
        # labels that are not text, for which scikit-learn stores no names
        has_names = hasattr(model, "feature_names_in_")
        labels: list[Hashable] = [
            name if has_names or not name.isdecimal() else int(name) for name in learned.names
        ]
        self._labels = pd.Index(labels)
        self._are_numbers = all(
            column.kind == "number" and column.dtype == "object" for column in self._columns
        )
        twice = next((name for i, name in enumerate(groups) if name in groups[:i]), None)
        if twice is not None:
            raise bad_input("groups", "have no repeated names", repr(twice), "name it once")
        self.groups = tuple(groups)
        others = tuple(Column(name, "other") for name in groups if name not in learned)
        self.schema = learned.with_others(Schema(others))
        self._cells = {column.name: Cells(column) for column in self.schema.columns}

    @property
    def names(self) -> list[str]:
        """Names of the columns of the model."""
        return [column.name for column in self._columns]

    def read(self, row: Any) -> Features:
        """Read the row of one person.

        Parameters
        ----------
        row : mapping, Series, or table with one row
            Value of each column. For a model that was trained on an array, a sequence of numbers
            too.

        Raises
        ------
        InputError
            If a column is missing, unknown, or has a value of another kind; the message names it.
        """
        given = self._given(row)
        self._check_names(given)
        return self._features(
            {name: self._cells[name].value(value) for name, value in given.items()}
        )

    def read_all(self, X: Any) -> list[Features]:
        """Read the rows of a table or array; messages name column and row, from 1."""
        table = as_pandas(X)
        if not isinstance(table, pd.DataFrame):
            array = np.asarray(X)
            if self._is_table or array.ndim != 2 or array.shape[1] != len(self._columns):
                what = "be a table" if self._is_table else f"have {len(self._columns)} columns"
                raise bad_input("X", what, f"{type(X).__name__} of shape {array.shape}")
            table = pd.DataFrame(array, columns=list(self.schema.names[: len(self._columns)]))
        refuse_repeated_names(table)
        given = {str(name): values for name, values in table.items()}
        self._check_names(given)
        names = list(self.schema.names)
        read = [self._cells[name].values(given[name]) for name in names]
        return [
            self._features(dict(zip(names, row, strict=True))) for row in zip(*read, strict=True)
        ]

    def table(self, rows: Sequence[Features]) -> Any:
        """Return rows as the table or array that the model expects."""
        columns = [[row.values[column.name] for row in rows] for column in self._columns]
        if self._are_numbers or not self._is_table:
            array = np.array(columns, dtype=np.float64).T  # None becomes NaN
            return pd.DataFrame(array, columns=self._labels) if self._is_table else array
        arrays = {
            i: self._cells[column.name].array(values)
            for i, (column, values) in enumerate(zip(self._columns, columns, strict=True))
        }
        table = pd.DataFrame(arrays, index=pd.RangeIndex(len(rows)), copy=False)
        table.columns = self._labels
        return table

    def example(self) -> Features:
        """Return a row within the ranges of training."""
        return self._features({name: cells.example() for name, cells in self._cells.items()})

    def _features(self, values: dict[str, Value]) -> Features:
        features = {column.name: values[column.name] for column in self._columns}
        return Features(features, {name: values[name] for name in self.groups}, digest_of(features))

    def _given(self, row: Any) -> Mapping[str, Any]:
        """Return the values of a row by the names of their columns, as text."""
        if type(row) is dict and all(type(name) is str for name in row):
            return row
        is_list = isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1)
        if is_list and not self._is_table:
            if len(row) != len(self._columns):
                raise bad_input("row", f"have {len(self._columns)} values", len(row))
            return dict(zip(self.names, row, strict=True))
        if isinstance(row, pd.Series):
            row = row.to_dict()
        found = as_pandas(row, "row")
        if isinstance(found, pd.DataFrame):
            if len(found) != 1:
                raise bad_input("row", "have one row", f"{len(found)} rows")
            refuse_repeated_names(found, "row")
            return {str(name): values.iloc[0] for name, values in found.items()}
        if not isinstance(found, Mapping):
            rule = "be a mapping from column names to values"
            raise bad_input("row", rule, type(row).__name__)
        return {str(name): value for name, value in found.items()}

    def _check_names(self, given: Mapping[str, Any]) -> None:
        if given.keys() == self._cells.keys():
            return
        extra = [name for name in given if name not in self._cells]
        for name in self._cells:
            if name not in given:
                remedy = did_you_mean(name, extra) or "null stands for a missing value"
                raise InputError(f"the row has no column {name!r}; {remedy}")
        names = self.schema.names
        remedy = did_you_mean(extra[0], names) or f"the model has only {first_names(names)}"
        raise InputError(f"the row has an unknown column {extra[0][:80]!r}; {remedy}")
