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
from numpy.typing import NDArray

from evenhand._checks import Floats, InputError, bad_input

__all__ = ["KINDS", "BooleanColumn", "CategoryColumn", "DateColumn", "NumberColumn", "TableEncoder"]

Column = pd.Series  # of any type: the kinds below say which they can read

MAX_LEVELS = 50  # most values of a text or category column that have an output of their own

# Bound on standardised outputs. Values of the training data never reach it (|z| <= sqrt(n_samples)); a later value that
# is absurdly far away stays finite, in float32 as well.
LIMIT = 1e6


@dataclass(frozen=True)
class EncodedColumn(ABC):
    """What was learned about one column.

    If the training data had missing values (`had_missing`), they have an output of their own. Otherwise there is none:
    an input that was always 0 in training would keep its random first weight.
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
        return np.column_stack([encoded, _missing(values)]) if self.had_missing else encoded


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
        return cls(name, bool(_missing(values).any()), *_mean_and_scale(_numbers(values, name)))

    def encode(self, values: Column[Any]) -> Floats:
        """Standardise."""
        return _standardised(_numbers(values, self.name), self.mean, self.scale)[:, None]


@final
@dataclass(frozen=True)
class BooleanColumn(EncodedColumn):
    """True is 1, false is -1, missing is 0, half way."""

    kind: ClassVar[str] = "boolean"

    @classmethod
    def fit(cls, name: str, values: Column[Any]) -> Self:
        """Learn whether values are missing."""
        return cls(name, bool(_missing(values).any()))

    def encode(self, values: Column[Any]) -> Floats:
        """Map booleans, and 0 and 1 where a file has them instead."""
        numbers = _parsed_numbers(values)
        _refuse(~np.isin(numbers, (0.0, 1.0)) & ~_missing(values), values, self.name, "be true or false")
        return np.nan_to_num(2 * numbers - 1)[:, None]


@final
@dataclass(frozen=True)
class CategoryColumn(EncodedColumn):
    """One output per remembered level, one for unknown ones, and "missing" is a level too if it was seen.

    The levels are the most frequent 50, ties in the order of their text. Levels are compared as text, and whole numbers
    without decimals, so that 1, 1.0 and "1" are one level whatever a file format made of them. Missing values that
    appear only after training are unknown.
    """

    kind: ClassVar[str] = "category"
    levels: tuple[str, ...]

    @classmethod
    def fit(cls, name: str, values: Column[Any]) -> Self:
        """Learn the levels."""
        codes, seen = _factorized(values, name)
        counts: Counter[str] = Counter()
        for level, count in zip(seen, np.bincount(codes[codes >= 0], minlength=len(seen)), strict=True):
            counts[level] += int(count)
        frequent = sorted(counts, key=lambda level: (-counts[level], level))[:MAX_LEVELS]
        return cls(name, bool((codes < 0).any()), tuple(sorted(frequent)))

    def outputs(self) -> tuple[str, ...]:
        """Return one name per level, and the one for unknown values."""
        return (*(f"{self.name} = {level}" for level in self.levels), f"{self.name} unknown")

    def encode(self, values: Column[Any]) -> Floats:
        """Set one output per row to 1: that of the level, or the last."""
        codes, seen = _factorized(values, self.name)
        position = {level: i for i, level in enumerate(self.levels)}
        unknown = len(self.levels)
        # The last entry is reached by code -1, a missing value.
        positions = np.array([*(position.get(level, unknown) for level in seen), unknown], dtype=np.intp)[codes]
        encoded = np.zeros((codes.size, unknown + 1))
        encoded[np.arange(codes.size), positions] = 1.0
        if self.had_missing:
            encoded[codes < 0] = 0.0
        return encoded


@final
@dataclass(frozen=True)
class DateColumn(EncodedColumn):
    """Days since 1970, standardised, and the time of the year as a sine and a cosine; all 0 where missing.

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
"""Kinds of columns. A new one is a class, an entry here, and the names pandas has for it in `_KIND_OF`."""

# What pandas.api.types.infer_dtype says, to kinds. Text among numbers is a number column, so that the text is named.
_KIND_OF = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "mixed-integer"), "number"),
    **dict.fromkeys(("string", "categorical", "empty", "time", "period", "interval"), "category"),
    **dict.fromkeys(("datetime64", "datetime", "date"), "date"),
    "boolean": "boolean",
}


class TableEncoder:
    """Turn tables with numbers, categories, text, booleans, dates and missing values into a float64 matrix.

    Numbers are standardised, texts and categories become one output per level, dates a trend and a season; missing
    values get an output of their own if the training data had some. At predict time columns are found by name, their
    order and further columns do not matter, and unseen levels have a place.

    Attributes
    ----------
    columns_ : tuple of EncodedColumn
        What was learned, in the order of the training data.
    named_ : bool
        Whether the training data had column names. If either side has none, columns are taken by position.

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
            At least one row and one column. Columns of an array are named x0, x1, ... Raises InputError if a column
            appears twice, holds infinite values, text among numbers, or values of no known kind.
        """
        table, named = _as_table(X)
        if table.shape[0] == 0 or table.shape[1] == 0:
            raise bad_input("X", "have at least one row and one column", f"shape {table.shape}")
        self.columns_ = tuple(_kind(table[name], name).fit(name, table[name]) for name in table.columns)
        self.named_ = named
        return self

    def transform(self, X: Any) -> Floats:
        """Return the matrix, shape (n_samples, len(names_out)), every value finite.

        Raises InputError if a column of the training data is absent or a value cannot be read, with its row.
        """
        columns = self._fitted()
        table, named = _as_table(X)
        names = [column.name for column in columns]
        if not (named and self.named_) and table.shape[1] == len(names):
            table = table.set_axis(names, axis="columns")
        absent = [name for name in names if name not in table.columns]
        if absent:
            shown = ", ".join(map(repr, absent[:10])) + (f" and {len(absent) - 10} more" if len(absent) > 10 else "")
            raise bad_input("X", "have the columns it had in training", f"a table without {shown}", "add them")
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
        columns = [{key: list(x) if isinstance(x, tuple) else x for key, x in entry.items()} for entry in entries]
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
    fields: dict[str, Any] = {key: tuple(x) if isinstance(x, list) else x for key, x in dict(entry).items()}
    return KINDS[fields.pop("kind")](**fields)


def _as_table(X: Any) -> tuple[pd.DataFrame, bool]:
    """Return a pandas DataFrame with text as column names, and whether `X` had names itself."""
    frame = X if isinstance(X, pd.DataFrame) else nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, pd.DataFrame | nw.DataFrame):
        array = np.asarray(X)
        if array.ndim != 2:
            raise bad_input("X", "be a table or have 2 dimensions", f"shape {array.shape}")
        return pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])]), False
    table = frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()
    table = table.set_axis(table.columns.map(str), axis="columns")
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise bad_input(f"column {twice[0]!r}", "appear once", "it twice or more", "rename or drop one")
    return table, True


def _kind(values: Column[Any], name: str) -> type[EncodedColumn]:
    """Return the kind that a column of the training data is."""
    inferred = pd.api.types.infer_dtype(values, skipna=True)
    if inferred == "mixed":  # numbers among other things, or things of several types without any number
        types = {type(value) for value in values.dropna()} - {bool, np.bool_}
        numbers = any(issubclass(one, float | int | np.number) for one in types)
        inferred = "floating" if numbers else "categorical"
    if inferred not in _KIND_OF:
        remedy = "turn it into one of these first, or drop it"
        raise bad_input(f"column {name!r}", "hold numbers, text, booleans or dates", inferred, remedy)
    return KINDS[_KIND_OF[inferred]]


def _missing(values: Column[Any]) -> NDArray[np.bool_]:
    return values.isna().to_numpy(dtype=bool)


def _plain(values: Column[Any]) -> Column[Any]:
    return values.astype(object) if isinstance(values.dtype, pd.CategoricalDtype) else values


def _refuse(wrong: NDArray[np.bool_], values: Column[Any], name: str, rule: str) -> None:
    """Name the first wrong row and its value."""
    if wrong.any():
        row = int(np.argmax(wrong))
        got = repr(values.tolist()[row])[:60]
        raise bad_input(f"column {name!r}, row {row + 1}", rule, got, "correct it or leave it empty")


def _parsed_numbers(values: Column[Any]) -> Floats:
    """Return the numbers, NaN where there is none."""
    plain = _plain(values)
    if plain.dtype.kind in "mMc":  # pandas would count nanoseconds
        return np.full(len(plain), np.nan)
    return np.asarray(pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan))


def _numbers(values: Column[Any], name: str) -> Floats:
    """Return a column as floats, NaN where missing, and finite elsewhere."""
    numbers = _parsed_numbers(values)
    _refuse(np.isnan(numbers) & ~_missing(values), values, name, "hold a number")
    _refuse(np.isinf(numbers), values, name, "be finite")
    return numbers


def _mean_and_scale(numbers: Floats) -> tuple[float, float]:
    """Return mean and standard deviation of the numbers that are there; scale 0 if they are as good as the same."""
    present = numbers[~np.isnan(numbers)]
    if present.size == 0:
        return 0.0, 0.0
    peak = np.abs(present).max() or 1.0  # squares of numbers beyond 1e154 overflow, of their ratios to the peak do not
    shares = present / peak
    mean, scale = shares.mean(), shares.std()
    # What is left of a constant column, or of one that varies in its last digits, is the rounding of the mean.
    return float(mean * peak), float(scale * peak) if scale > 1e-12 else 0.0


def _standardised(numbers: Floats, mean: float, scale: float) -> Floats:
    """Return (numbers - mean) / scale within the limit, 0 where missing or if the scale is 0."""
    if scale == 0.0:
        return np.zeros_like(numbers)
    with np.errstate(over="ignore"):
        return np.nan_to_num(np.clip((numbers - mean) / scale, -LIMIT, LIMIT))


def _factorized(values: Column[Any], name: str) -> tuple[NDArray[np.intp], list[str]]:
    """Return a code per row, -1 where missing, and the level of each code as text; two codes may have one level."""
    try:
        codes, distinct = pd.factorize(values)
    except TypeError as error:
        raise bad_input(f"column {name!r}", "hold single values", "lists or other containers", "drop it") from error
    return np.asarray(codes, dtype=np.intp), [_level(value) for value in distinct]


def _level(value: Any) -> str:
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value) if whole else value)


def _days(values: Column[Any], name: str) -> tuple[Floats, Floats]:
    """Return days since 1970 and the fraction of the year that has passed, both NaN where missing."""
    plain = _plain(values)
    if plain.dtype.kind in "iufbm":  # pandas would take them for nanoseconds
        plain = pd.Series(pd.NaT, index=plain.index)
    elif pd.api.types.infer_dtype(plain, skipna=True) == "date":  # pandas 2 reads them as nanoseconds, until 2262
        plain = pd.Series(plain.where(plain.notna(), None).to_numpy().astype("datetime64[s]"))
    # Text of the ISO form is read too: one bad cell makes a csv column text, and that cell is then named.
    options: dict[str, Any] = {} if plain.dtype.kind == "M" else {"format": "ISO8601"}
    stamps = pd.to_datetime(plain, utc=True, errors="coerce", **options)
    moments = stamps.dt.tz_convert(None).to_numpy(dtype="datetime64[us]")
    _refuse(np.isnat(moments) & ~_missing(values), values, name, "hold a date")
    days = (moments - np.datetime64(0, "D")) / np.timedelta64(1, "D")
    start = moments.astype("datetime64[Y]")
    length = (start + 1).astype("datetime64[D]") - start.astype("datetime64[D]")
    return days, (moments - start) / length
