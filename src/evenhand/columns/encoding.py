"""Tables with mixed columns to a matrix of numbers that a neural network can take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self, final

import narwhals as nw
import numpy as np
import pandas as pd

from evenhand._validate import Floats, InputError, bad_input
from evenhand.columns.values import (
    booleans,
    dates,
    days,
    factorized,
    kind_of,
    missing,
    moments,
    numbers,
)

__all__ = ["KINDS", "BooleanColumn", "CategoryColumn", "DateColumn", "NumberColumn", "TableEncoder"]

Column = pd.Series  # of any type: the kinds below say which they can read

MAX_LEVELS = 50  # most values of a text or category column that have an output of their own

# Bound on standardised outputs. Values of the training data never reach it (|z| <=
# sqrt(n_samples)); a later value that is absurdly far away stays finite, in float32 as well.
LIMIT = 1e6


@dataclass(frozen=True)
class EncodedColumn(ABC):
    """What was learned about one column.

    If the training data had missing values (`had_missing`), they have an output of their own.
    Otherwise there is none: an input that was always 0 in training would keep its random first
    weight.
    """

    kind: ClassVar[str]
    name: str
    had_missing: bool

    @classmethod
    @abstractmethod
    def fit(cls, name: str, values: Column[Any]) -> Self:
        """Learn the encoding of one column."""

    @abstractmethod
    def encode(self, values: Column[Any]) -> Floats:
        """Return the outputs, shape (n_samples, n_outputs), without the one for missing values."""

    def outputs(self) -> tuple[str, ...]:
        """Return the names of these outputs."""
        return (self.name,)

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of all outputs."""
        return self.outputs() + ((f"{self.name} missing",) if self.had_missing else ())

    def transform(self, values: Column[Any]) -> Floats:
        """Return all outputs, shape (n_samples, n_outputs)."""
        encoded = self.encode(values)
        return np.column_stack([encoded, missing(values)]) if self.had_missing else encoded


@final
@dataclass(frozen=True)
class NumberColumn(EncodedColumn):
    """Numbers, standardised; missing ones are 0, the mean. A constant column gives zeros."""

    kind: ClassVar[str] = "number"
    mean: float
    scale: float

    @classmethod
    def fit(cls, name: str, values: Column[Any]) -> Self:
        """Learn mean and standard deviation."""
        return cls(
            name, bool(missing(values).any()), *_mean_and_scale(numbers(values, f"column {name!r}"))
        )

    def encode(self, values: Column[Any]) -> Floats:
        """Standardise."""
        return _standardised(numbers(values, f"column {self.name!r}"), self.mean, self.scale)[
            :, None
        ]


@final
@dataclass(frozen=True)
class BooleanColumn(EncodedColumn):
    """True is 1, false is -1, missing is 0, half way."""

    kind: ClassVar[str] = "boolean"

    @classmethod
    def fit(cls, name: str, values: Column[Any]) -> Self:
        """Learn whether values are missing."""
        return cls(name, bool(missing(values).any()))

    def encode(self, values: Column[Any]) -> Floats:
        """Map booleans, and 0 and 1 where a file has them instead."""
        flags = booleans(values, f"column {self.name!r}").to_numpy(
            dtype=np.float64, na_value=np.nan
        )
        return np.asarray(np.nan_to_num(2 * flags - 1)[:, None])


@final
@dataclass(frozen=True)
class CategoryColumn(EncodedColumn):
    """One output per remembered level, one for unknown ones, and "missing" is a level too if it was seen.

    The levels are the most frequent 50, ties in the order of their text. Levels are compared as
    text, and whole numbers without decimals, so that 1, 1.0 and "1" are one level whatever a file
    format made of them. Missing values that appear only after training are unknown.
    """

    kind: ClassVar[str] = "category"
    levels: tuple[str, ...]

    @classmethod
    def fit(cls, name: str, values: Column[Any]) -> Self:
        """Learn the levels."""
        codes, seen = factorized(values, f"column {name!r}")
        counts: Counter[str] = Counter()
        for level, count in zip(
            seen, np.bincount(codes[codes >= 0], minlength=len(seen)), strict=True
        ):
            counts[level] += int(count)
        frequent = sorted(counts, key=lambda level: (-counts[level], level))[:MAX_LEVELS]
        return cls(name, bool((codes < 0).any()), tuple(sorted(frequent)))

    def outputs(self) -> tuple[str, ...]:
        """Return one name per level, and the one for unknown values."""
        return (*(f"{self.name} = {level}" for level in self.levels), f"{self.name} unknown")

    def encode(self, values: Column[Any]) -> Floats:
        """Set one output per row to 1: that of the level, or the last."""
        codes, seen = factorized(values, f"column {self.name!r}")
        position = {level: i for i, level in enumerate(self.levels)}
        unknown = len(self.levels)
        # The last entry is reached by code -1, a missing value.
        positions = np.array(
            [*(position.get(level, unknown) for level in seen), unknown], dtype=np.intp
        )[codes]
        encoded = np.zeros((codes.size, unknown + 1))
        encoded[np.arange(codes.size), positions] = 1.0
        if self.had_missing:
            encoded[codes < 0] = 0.0
        return encoded


@final
@dataclass(frozen=True)
class DateColumn(EncodedColumn):
    """Days since 1970, standardised, and the time of the year as a sine and a cosine.

    All 0 where missing.

    Times with a zone are taken in UTC, others as they stand.
    """

    kind: ClassVar[str] = "date"
    mean: float
    scale: float

    @classmethod
    def fit(cls, name: str, values: Column[Any]) -> Self:
        """Learn mean and standard deviation of the days."""
        days, _ = _days(values, name)
        return cls(name, bool(np.isnan(days).any()), *_mean_and_scale(days))

    def outputs(self) -> tuple[str, ...]:
        """Return three names."""
        return (self.name, f"{self.name} sine", f"{self.name} cosine")

    def encode(self, values: Column[Any]) -> Floats:
        """Standardise the days and place them on the circle of the year."""
        days, year = _days(values, self.name)
        angle = 2 * np.pi * year
        circle = np.nan_to_num(np.stack([np.sin(angle), np.cos(angle)], axis=-1))
        return np.column_stack([_standardised(days, self.mean, self.scale), circle])


KINDS: dict[str, type[EncodedColumn]] = {
    kind.kind: kind for kind in (NumberColumn, BooleanColumn, CategoryColumn, DateColumn)
}
"""Kinds of columns. A new one is a class, an entry here, and the types that pandas has for it in
`columns`."""


class TableEncoder:
    """Turn tables with numbers, categories, text, booleans, dates and missing values into a float64 matrix.

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
            At least one row and one column. Columns of an array are named x0, x1, ... Raises
            InputError if a column appears twice, holds infinite values, text among numbers, or
            values of no known kind.
        """
        table, named = _as_table(X)
        if table.shape[0] == 0 or table.shape[1] == 0:
            raise bad_input("X", "have at least one row and one column", f"shape {table.shape}")
        self.columns_ = tuple(
            _kind(table[name], name).fit(name, table[name]) for name in table.columns
        )
        self.named_ = named
        return self

    def transform(self, X: Any) -> Floats:
        """Return the matrix, shape (n_samples, len(names_out)), every value finite.

        Raises InputError if a column of the training data is absent or a value cannot be read, with
        its row.
        """
        columns = self._fitted()
        table, named = _as_table(X)
        names = [column.name for column in columns]
        if not (named and self.named_) and table.shape[1] == len(names):
            table = table.set_axis(names, axis="columns")
        absent = [name for name in names if name not in table.columns]
        if absent:
            shown = ", ".join(map(repr, absent[:10])) + (
                f" and {len(absent) - 10} more" if len(absent) > 10 else ""
            )
            raise bad_input(
                "X", "have the columns it had in training", f"a table without {shown}", "add them"
            )
        return np.hstack([column.transform(table[column.name]) for column in columns])

    def fit_transform(self, X: Any) -> Floats:
        """Learn the encoding of `X` and return its matrix."""
        return self.fit(X).transform(X)

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of the outputs, in the order of the matrix' columns."""
        return tuple(name for column in self._fitted() for name in column.names_out)

    def to_state(self) -> dict[str, Any]:
        """Return everything that was learned, as JSON can hold it."""
        entries = [{"kind": column.kind, **asdict(column)} for column in self._fitted()]
        columns = [
            {key: list(x) if isinstance(x, tuple) else x for key, x in entry.items()}
            for entry in entries
        ]
        return {"named": self.named_, "columns": columns}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the encoder that gave this state.

        Raises InputError if the state is not one that `to_state` gives.
        """
        encoder = cls()
        try:
            encoder.named_ = bool(state["named"])
            encoder.columns_ = tuple(_column_from_state(entry) for entry in state["columns"])
        except (KeyError, TypeError, ValueError) as error:
            raise bad_input(
                "state", "be what TableEncoder.to_state gives", f"{type(error).__name__}: {error}"
            ) from error
        return encoder

    def _fitted(self) -> tuple[EncodedColumn, ...]:
        if not hasattr(self, "columns_"):
            raise InputError("TableEncoder must be fitted before it is used; call fit first")
        return self.columns_


def _column_from_state(entry: Mapping[str, Any]) -> EncodedColumn:
    fields: dict[str, Any] = {
        key: tuple(x) if isinstance(x, list) else x for key, x in dict(entry).items()
    }
    return KINDS[fields.pop("kind")](**fields)


def _as_table(X: Any) -> tuple[pd.DataFrame, bool]:
    """Return a pandas DataFrame with text as column names, and whether `X` had names itself."""
    frame = (
        X if isinstance(X, pd.DataFrame) else nw.from_native(X, eager_only=True, pass_through=True)
    )
    if not isinstance(frame, pd.DataFrame | nw.DataFrame):
        array = np.asarray(X)
        if array.ndim != 2:
            raise bad_input("X", "be a table or have 2 dimensions", f"shape {array.shape}")
        return pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])]), False
    table = frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()
    table = table.set_axis(table.columns.map(str), axis="columns")
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise bad_input(
            f"column {twice[0]!r}", "appear once", "it twice or more", "rename or drop one"
        )
    return table, True


def _kind(values: Column[Any], name: str) -> type[EncodedColumn]:
    """Return the kind that a column of the training data is."""
    kind = kind_of(values)
    if kind != "other":
        return KINDS[kind]
    # text among numbers is a number column, so that the text is named; several types without a
    # number are categories
    held = pd.api.types.infer_dtype(values, skipna=True)
    if not held.startswith("mixed"):
        remedy = "turn it into one of these first, or drop it"
        raise bad_input(f"column {name!r}", "hold numbers, text, booleans or dates", held, remedy)
    types = {type(value) for value in values.dropna()} - {bool, np.bool_}
    has_numbers = any(issubclass(one, float | int | np.number) for one in types)
    return NumberColumn if has_numbers else CategoryColumn


def _mean_and_scale(numbers: Floats) -> tuple[float, float]:
    """Return mean and standard deviation of the numbers that are there.

    Scale 0 if they are as good as the same.
    """
    present = numbers[~np.isnan(numbers)]
    if present.size == 0:
        return 0.0, 0.0
    peak = (
        np.abs(present).max() or 1.0
    )  # squares of numbers beyond 1e154 overflow, of their ratios to the peak do not
    shares = present / peak
    mean = shares.mean()
    scale = shares.std()
    # What is left of a constant column, or of one that varies in its last digits, is the rounding
    # of the mean.
    return float(mean * peak), float(scale * peak) if scale > 1e-12 else 0.0


def _standardised(numbers: Floats, mean: float, scale: float) -> Floats:
    """Return (numbers - mean) / scale within the limit, 0 where missing or if the scale is 0."""
    if scale == 0.0:
        return np.zeros_like(numbers)
    with np.errstate(over="ignore"):
        return np.nan_to_num(np.clip((numbers - mean) / scale, -LIMIT, LIMIT))


def _days(values: Column[Any], name: str) -> tuple[Floats, Floats]:
    """Return days since 1970 and the fraction of the year that has passed, both NaN where missing."""
    found = moments(dates(values, f"column {name!r}"))
    start = found.astype("datetime64[Y]")
    length = (start + 1).astype("datetime64[D]") - start.astype("datetime64[D]")
    return days(found), (found - start) / length
