"""Values of one column of served rows, as JSON values and as arrays for a model."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import InputError, bad_input, is_container
from evenhand.columns import Column, level

Value = float | bool | str | None
"""Value of a column as JSON: a number, whether true, text or an ISO date; None if missing."""

ODD: Any = object()
"""Stands for a value that only a whole column of pandas can read."""

DAY = re.compile("(1[7-9]|20|21)[0-9]{2}-[0-9]{2}-[0-9]{2}")
"""ISO dates within the range of all types of dates."""

EXACT = 2**53
"""Largest integer up to which floats represent all integers."""


class Cells:
    """Reader of the values of a column.

    Parameters
    ----------
    column : Column
        The column of the training table.
    """

    def __init__(self, column: Column) -> None:
        self.column = column
        self._kind = column.kind
        self._is_double = column.dtype == "object"
        self._place = f"column {column.name!r}"

    @cached_property
    def _codes(self) -> dict[str, int] | None:
        """Number of each category by its level, for columns of the type "category"."""
        categories = self.column.categories
        if categories is None:
            return None
        return {level(value): code for code, value in enumerate(categories)}

    @cached_property
    def _categories(self) -> pd.CategoricalDtype:
        return pd.CategoricalDtype(list(self.column.categories or ()))

    def value(self, given: Any) -> Value:
        """Return one value; InputError if it is not of the kind of the column."""
        found = self._plain(given)
        if found is not ODD:
            return found  # type: ignore[no-any-return]
        # pandas would change or refuse other types, such as large integers
        return self.values(pd.Series([given], dtype=object))[0]

    def values(self, given: pd.Series[Any]) -> list[Value]:
        """Return a whole column; messages name the row, from 1."""
        try:
            self._check_single(given)
            read = self.column.read(given, self._place)
        except InputError:
            raise
        except (TypeError, ValueError, ArithmeticError) as error:
            why = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise InputError(f"{self._place} cannot be read as {self._noun} ({why})") from error
        if self._kind == "number":
            found = read.to_numpy(dtype=np.float64, na_value=np.nan).tolist()
            return [None if math.isnan(value) else value + 0.0 for value in found]
        if self._kind == "date":
            return _dates(read)
        missing = read.isna().tolist()
        return [
            None if is_missing else self._single(value)
            for value, is_missing in zip(read.tolist(), missing, strict=True)
        ]

    def array(self, values: Sequence[Value]) -> Any:
        """Return values as an array in which the model need not convert them."""
        if self._kind == "number":
            return np.array(values, dtype=np.float64)  # None becomes NaN
        if self._kind == "boolean" and None not in values:
            return np.array(values, dtype=np.bool_)
        if self._kind == "date" and "," not in self.column.dtype:  # without a zone
            is_known = self.column.dtype.startswith("datetime64")
            stamps = np.array(values, dtype="datetime64[us]")  # None becomes NaT
            return stamps.astype(self.column.dtype) if is_known else stamps
        codes = self._codes
        if codes is not None and all(value is None or value in codes for value in values):
            numbers = np.array([-1 if value is None else codes[str(value)] for value in values])
            return pd.Categorical.from_codes(numbers, dtype=self._categories, validate=False)
        found = np.empty(len(values), dtype=object)
        found[:] = list(values)
        if self._kind == "category" and self.column.dtype == "str":
            return pd.array(found, dtype=pd.StringDtype(na_value=np.nan))
        return found

    def example(self) -> Value:
        """Return a value within the range of training."""
        column = self.column
        if self._kind == "number":
            return 0.0 if column.least is None and column.n == 0 else column.least
        if self._kind == "boolean":
            return False
        if self._kind == "date":
            days = column.least or 0.0
            stamp = np.datetime64(0, "us") + np.timedelta64(round(days * 86_400_000_000), "us")
            return str(np.datetime_as_string(stamp, unit="us"))
        return column.levels[0] if column.levels else None

    def _plain(self, given: Any) -> Any:
        """Return a value of the common types without pandas; ODD for others."""
        # text of numbers of other types depends on their digits
        is_scalar = isinstance(given, np.number | np.bool_) and self._kind != "category"
        value = given.item() if is_scalar else given
        kind = type(value)
        if value is None or (kind is float and math.isnan(value)):
            return None
        if self._kind == "number":
            is_plain = self._is_double and kind in (int, float) and abs(value) <= EXACT
            return value + 0.0 if is_plain else ODD  # -0.0 is 0.0
        if self._kind == "boolean":
            return value if kind is bool else ODD
        if self._kind == "category" and kind in (str, int, float):
            return self._plain_level(value)
        return _day(value) if self._kind == "date" and kind is str else ODD

    def _plain_level(self, value: str | int | float) -> Any:
        text = level(value)
        if self._codes is None:
            return text if text and text.isascii() else ODD
        return text if text in self._codes else ODD

    def _single(self, value: Any) -> Value:
        """Return a value of a boolean, a category, or a column without a kind."""
        plain = value.item() if isinstance(value, np.generic) else value
        if self._kind == "category":
            return _text(level(plain), self._place)
        if self._kind == "boolean" or isinstance(plain, bool):
            return bool(plain)
        if isinstance(plain, int | float) and math.isfinite(plain):
            return float(plain)
        if not isinstance(plain, str):
            rule = "be text, a finite number, or true or false"
            raise bad_input(self._place, rule, f"{type(plain).__name__} {plain!r}"[:80])
        return _text(plain, self._place)

    def _check_single(self, values: pd.Series[Any]) -> None:
        if values.dtype != object:
            return
        for row, value in enumerate(values.tolist()):
            if is_container(value) or isinstance(value, tuple | bytes | bytearray | complex):
                place = f"{self._place}, row {row + 1}"
                raise bad_input(place, "be a single value", f"a {type(value).__name__}")

    @property
    def _noun(self) -> str:
        nouns = {"boolean": "true or false", "category": "text", "other": "a single value"}
        return nouns.get(self._kind, f"a {self._kind}")


def _day(text: str) -> Any:
    """Return an ISO date without a time as a time; ODD for other text."""
    if DAY.fullmatch(text) is None:
        return ODD
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return ODD
    return f"{text}T00:00:00.000000"


def _dates(values: pd.Series[Any]) -> list[Value]:
    """Return dates in UTC as ISO text with microseconds."""
    plain = values
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        plain = values.dt.tz_convert("UTC").dt.tz_localize(None)
    stamps = plain.to_numpy(dtype="datetime64[us]")
    texts = np.datetime_as_string(stamps, unit="us").tolist()
    return [None if text == "NaT" else text for text in texts]


def _text(text: str, place: str) -> str:
    """Return text that can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise bad_input(place, "be valid Unicode text", ascii(text)[:80]) from error
    return text
