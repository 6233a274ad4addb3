"""Rows of features as a model reads them, with a hash that depends on their values only."""

from __future__ import annotations

import hashlib
import json
import math
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
    is_container,
)
from evenhand.columns import Column, Schema, as_pandas, level, refuse_repeated_names

Value = float | bool | str | None
"""Value of a column as JSON: a number, whether true, text or an ISO date; None if missing."""

ODD: Any = object()
"""Stands for a value that only a whole column of pandas can read."""


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


def digest_of(*parts: Any) -> str:
    """Return the SHA-256 of JSON values, which depends on no order of keys.

    Examples
    --------
    >>> digest_of({"a": 1.0, "b": None}) == digest_of({"b": None, "a": 1.0})
    True
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


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
        self._named = {column.name: column for column in self.schema.columns}

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
        return self._features({name: self._value(name, value) for name, value in given.items()})

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
        read = [_read(self._named[name], given[name]) for name in names]
        return [
            self._features(dict(zip(names, row, strict=True))) for row in zip(*read, strict=True)
        ]

    def table(self, rows: Sequence[Features]) -> Any:
        """Return rows as the table or array that the model expects."""
        columns = [[row.values[column.name] for row in rows] for column in self._columns]
        if self._are_numbers or not self._is_table:
            array = np.array(columns, dtype=np.float64).T  # None becomes NaN
            return pd.DataFrame(array, columns=self._labels) if self._is_table else array
        of_kind = {
            i: np.array(values, dtype=np.float64) if column.kind == "number" else values
            for i, (column, values) in enumerate(zip(self._columns, columns, strict=True))
        }
        return pd.DataFrame(of_kind).set_axis(self._labels, axis="columns")

    def example(self) -> Features:
        """Return a row within the ranges of training."""
        return self._features({column.name: _example(column) for column in self.schema.columns})

    def _features(self, values: dict[str, Value]) -> Features:
        features = {column.name: values[column.name] for column in self._columns}
        return Features(features, {name: values[name] for name in self.groups}, digest_of(features))

    def _given(self, row: Any) -> Mapping[str, Any]:
        """Return the values of a row by the names of their columns, as text."""
        if type(row) is dict and all(type(name) is str for name in row):
            return row
        if isinstance(row, pd.Series):
            row = row.to_dict()
        found = as_pandas(row, "row")
        if isinstance(found, pd.DataFrame):
            if len(found) != 1:
                raise bad_input("row", "have one row", f"{len(found)} rows")
            refuse_repeated_names(found, "row")
            return {str(name): values.iloc[0] for name, values in found.items()}
        if isinstance(found, Mapping):
            return {str(name): value for name, value in found.items()}
        is_list = isinstance(row, list | tuple | np.ndarray) and np.ndim(row) == 1
        if self._is_table or not is_list:
            rule = "be a mapping from column names to values"
            raise bad_input("row", rule, type(row).__name__)
        if len(row) != len(self._columns):
            raise bad_input("row", f"have {len(self._columns)} values", len(row))
        return dict(zip(self.schema.names, row, strict=False))

    def _check_names(self, given: Mapping[str, Any]) -> None:
        if given.keys() == self._named.keys():
            return
        extra = [name for name in given if name not in self._named]
        for name in self._named:
            if name not in given:
                remedy = did_you_mean(name, extra) or "null stands for a missing value"
                raise InputError(f"the row has no column {name!r}; {remedy}")
        names = self.schema.names
        remedy = did_you_mean(extra[0], names) or f"the model has only {first_names(names)}"
        raise InputError(f"the row has an unknown column {extra[0][:80]!r}; {remedy}")

    def _value(self, name: str, value: Any) -> Value:
        column = self._named[name]
        found = _plain(column, value)
        if found is not ODD:
            return found  # type: ignore[no-any-return]
        (read,) = _read(column, pd.Series([value], dtype=_dtype(value)))
        return read


def _dtype(value: Any) -> Any:
    """Return object for values that pandas would change or refuse, such as large integers."""
    return object if isinstance(value, int | str) else None


def _plain(column: Column, value: Any) -> Any:
    """Return a value of the common types without pandas; ODD for others."""
    if value is None:
        return None
    kind = type(value)
    if column.kind == "number" and column.dtype == "object" and kind in (int, float):
        if kind is float and math.isfinite(value):
            return value + 0.0  # -0.0 is 0.0
        # integers that floats represent exactly
        return float(value) if kind is int and abs(value) <= 2**53 else ODD
    if column.kind == "boolean" and kind is bool:
        return value
    is_text = column.kind == "category" and column.categories is None and kind is str
    return value if is_text and value and value.isascii() else ODD


def _read(column: Column, values: pd.Series[Any]) -> list[Value]:
    """Return the values of a column, read by its schema, as JSON values."""
    place = f"column {column.name!r}"
    try:
        _check_single(values, place)
        read = column.read(values, place)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise InputError(f"{place} cannot be read as {_noun(column)} ({why})") from error
    if column.kind == "number":
        return _numbers(read, place)
    if column.kind == "date":
        return _dates(read)
    missing = read.isna().tolist()
    plain = [None if gone else value for value, gone in zip(read.tolist(), missing, strict=True)]
    if column.kind == "category":
        return [None if value is None else _text(level(value), place) for value in plain]
    if column.kind == "boolean":
        return [None if value is None else bool(value) for value in plain]
    return [_scalar(value, place) for value in plain]


def _numbers(values: pd.Series[Any], place: str) -> list[Value]:
    found = values.to_numpy(dtype=np.float64, na_value=np.nan)
    is_infinite = np.isinf(found)
    if is_infinite.any():
        row = int(np.argmax(is_infinite))
        raise bad_input(f"{place}, row {row + 1}", "be finite", f"{found[row]:g}")
    # -0.0 is 0.0
    return [None if math.isnan(value) else value + 0.0 for value in found.tolist()]


def _check_single(values: pd.Series[Any], place: str) -> None:
    if values.dtype != object:
        return
    for row, value in enumerate(values.tolist()):
        if is_container(value) or isinstance(value, tuple | bytes | bytearray):
            at = f"{place}, row {row + 1}"
            raise bad_input(at, "be a single value", f"a {type(value).__name__}")


def _noun(column: Column) -> str:
    nouns = {"boolean": "true or false", "category": "text", "other": "a single value"}
    return nouns.get(column.kind, f"a {column.kind}")


def _dates(values: pd.Series[Any]) -> list[Value]:
    """Return dates in UTC as ISO text with microseconds."""
    plain = values
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        plain = values.dt.tz_convert("UTC").dt.tz_localize(None)
    stamps = plain.to_numpy(dtype="datetime64[us]")
    texts = np.datetime_as_string(stamps, unit="us").tolist()
    return [None if text == "NaT" else text for text in texts]


def _scalar(value: Any, place: str) -> Value:
    """Return a value of a column that has no kind."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or isinstance(plain, bool):
        return plain
    if isinstance(plain, int | float) and math.isfinite(plain):
        return float(plain)
    if not isinstance(plain, str):
        rule = "be text, a finite number, or true or false"
        raise bad_input(place, rule, f"{type(plain).__name__} {plain!r}"[:80])
    return _text(plain, place)


def _text(text: str, place: str) -> str:
    """Return text that can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise bad_input(place, "be valid Unicode text", ascii(text)[:80]) from error
    return text


def _example(column: Column) -> Value:
    if column.kind == "number":
        return 0.0 if column.least is None and column.n == 0 else column.least
    if column.kind == "boolean":
        return False
    if column.kind == "date":
        return "2000-01-01" if column.least is None else _of_day(column.least)
    return column.levels[0] if column.levels else None


def _of_day(days: float) -> str:
    stamp = np.datetime64(0, "us") + np.timedelta64(round(days * 86_400_000_000), "us")
    return str(np.datetime_as_string(stamp, unit="us"))
