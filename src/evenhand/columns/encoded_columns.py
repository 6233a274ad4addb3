"""Encodings of single columns: numbers, booleans, categories and dates as numeric outputs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
import pandas as pd

from evenhand._validate import Floats, bad_input
from evenhand.columns.groups import Condition, Group, Operator
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

Column = pd.Series
"""Values of any type; each kind of encoding refuses those that it cannot read."""

LIMIT = 1e6
"""Bound on standardised outputs. Values of the training data never reach it (|z| <= sqrt(n)); a
later value that is absurdly far away stays finite, in float32 as well."""


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

    def condition(self, output: int, low: float, high: float) -> Condition | None:
        """Return the rows whose output, a place in `names_out`, is in the interval (low, high].

        One end at least is finite. None where a bound has no plain words.
        """
        if self.had_missing and output == len(self.outputs()):
            return Condition((Group(self.name, "missing" if high == math.inf else "present"),))
        return self._within(output, low, high)

    @abstractmethod
    def _within(self, output: int, low: float, high: float) -> Condition | None:
        """Return the condition of an output that is not the one for missing values."""

    def _range(self, low: float, high: float, shown: Callable[[float], str]) -> Condition:
        """Return the condition of a range; `shown` writes an end in the units of the column."""
        ends: list[tuple[Operator, float]] = [(">", low), ("<=", high)]
        finite = [(operator, end) for operator, end in ends if math.isfinite(end)]
        comparisons = tuple(Group(self.name, operator, shown(end)) for operator, end in finite)
        return Condition(comparisons, self._holds_missing(low, high))

    def _holds_missing(self, low: float, high: float) -> bool:
        """Whether bounds take in missing values, which numbers, booleans and dates encode as 0."""
        return self.had_missing and low < 0 <= high


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
        found = numbers(values, f"column {name!r}")
        return cls(name, bool(missing(values).any()), *_mean_and_scale(found))

    def encode(self, values: Column[Any]) -> Floats:
        """Standardise."""
        found = numbers(values, f"column {self.name!r}")
        return _standardised(found, self.mean, self.scale)[:, None]

    def _within(self, output: int, low: float, high: float) -> Condition:
        return self._range(low, high, lambda end: f"{self.mean + end * self.scale:.4g}")


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
        found = booleans(values, f"column {self.name!r}")
        flags = found.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(np.nan_to_num(2 * flags - 1)[:, None])

    def _within(self, output: int, low: float, high: float) -> Condition:
        # false is -1, missing is 0 and true is 1
        words = [word for word, code in (("false", -1), ("true", 1)) if low < code <= high]
        if not words:
            return Condition((Group(self.name, "missing"),))
        return Condition((Group(self.name, "=", words[0]),), self._holds_missing(low, high))


@final
@dataclass(frozen=True)
class CategoryColumn(EncodedColumn):
    """One output per remembered level, one for unknown levels, one for missing values if seen.

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
        rows = np.bincount(codes[codes >= 0], minlength=len(seen))
        for level, count in zip(seen, rows, strict=True):  # several codes may be of one level
            counts[level] += int(count)
        frequent = sorted(counts, key=lambda level: (-counts[level], level))[:50]
        return cls(name, bool((codes < 0).any()), tuple(sorted(frequent)))

    def outputs(self) -> tuple[str, ...]:
        """Return one name per level, and the one for unknown values."""
        return (*(f"{self.name} = {level}" for level in self.levels), f"{self.name} unknown")

    def encode(self, values: Column[Any]) -> Floats:
        """Set one output per row to 1: that of the level, or the last."""
        codes, seen = factorized(values, f"column {self.name!r}")
        position = {level: i for i, level in enumerate(self.levels)}
        unknown = len(self.levels)
        # the last entry is reached by code -1, a missing value
        places = [*(position.get(level, unknown) for level in seen), unknown]
        encoded = np.zeros((codes.size, unknown + 1))
        encoded[np.arange(codes.size), np.array(places, dtype=np.intp)[codes]] = 1.0
        if self.had_missing:
            encoded[codes < 0] = 0.0
        return encoded

    def _within(self, output: int, low: float, high: float) -> Condition | None:
        if output == len(self.levels):  # a level that was rare or never seen
            return None
        operator: Operator = "=" if high == math.inf else "!="
        return Condition((Group(self.name, operator, self.levels[output]),))


@final
@dataclass(frozen=True)
class DateColumn(EncodedColumn):
    """Days since 1970, standardised, and the time of the year as a sine and a cosine.

    All are 0 where the date is missing. Times with a zone are taken in UTC, others as they stand.
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
        # on a circle, as the last day of a year is next to the first of the next one
        angle = 2 * np.pi * year
        circle = np.nan_to_num(np.stack([np.sin(angle), np.cos(angle)], axis=-1))
        return np.column_stack([_standardised(days, self.mean, self.scale), circle])

    def _within(self, output: int, low: float, high: float) -> Condition | None:
        # sine and cosine of the year are in no units that people use
        return self._range(low, high, self._day) if output == 0 else None

    def _day(self, end: float) -> str:
        day = math.floor(self.mean + end * self.scale)
        return str(np.datetime64(0, "D") + np.timedelta64(day, "D"))


KINDS: dict[str, type[EncodedColumn]] = {
    kind.kind: kind for kind in (NumberColumn, BooleanColumn, CategoryColumn, DateColumn)
}
"""Kinds of columns. A new one is a class, an entry here, and its types of pandas in `values`."""


def encoded_kind(values: Column[Any], name: str) -> type[EncodedColumn]:
    """Return the encoding of a column of the training data; InputError of an unknown kind."""
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
    """Return mean and deviation of the numbers present; deviation 0 if only rounding varies."""
    present = numbers[~np.isnan(numbers)]
    if present.size == 0:
        return 0.0, 0.0
    # squares of numbers beyond 1e154 overflow, squares of their ratios to the peak do not
    peak = np.abs(present).max() or 1.0
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
    """Return days since 1970 and the share of the year that has passed, NaN where missing."""
    found = moments(dates(values, f"column {name!r}"))
    start = found.astype("datetime64[Y]")
    length = (start + 1).astype("datetime64[D]") - start.astype("datetime64[D]")
    return days(found), (found - start) / length
