"""Encoding of tables with mixed columns as numeric matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._format import and_more
from evenhand._validate import LARGEST, Floats, InputError, bad_input, read_state, typed_fields
from evenhand.results import plain
from evenhand.tables.groups import Condition, Group, Operator
from evenhand.tables.values import (
    ColumnKind,
    Series,
    as_pandas,
    as_table,
    booleans,
    column_kind,
    dates,
    days,
    is_plain_number,
    level_counts,
    moments,
    numbers,
    of_levels,
)

# --- encoding of single columns as numeric outputs: numbers, booleans, categories and dates

# training values never reach it (|z| <= sqrt(n)), and extreme later values stay finite, in
# float32 as well
LIMIT = 1e6
"""Bound on standardized outputs."""


@dataclass(frozen=True)
class EncodedColumn:
    """Learned encoding of one column.

    Numbers are standardized; missing values are 0, the mean, and a constant column gives zeros.
    Booleans are 1 if true, -1 if false, and 0 if missing. Categories are indicators of the 50 most
    frequent levels, with ties in text order, and of all others, as are missing values that first
    appear after training. Levels are compared as text, with whole numbers without decimals, so that
    1, 1.0 and "1" are the same level in every file format. Dates are standardized days since 1970,
    and the time of year as sine and cosine, all 0 if missing; times with a zone are converted to
    UTC, others are unchanged.

    If the training data had missing values, a separate output marks them. Otherwise there is no
    such output: the weight of an input that is always 0 in training would stay at its random
    initial value.

    Parameters
    ----------
    kind : {"number", "boolean", "category", "date"}
    name : str
    had_missing : bool
        Whether the training data had missing values.
    mean, scale : float
        Mean and standard deviation of numbers or days.
    levels : tuple of str
        Levels of categories.
    """

    kind: ColumnKind
    name: str
    had_missing: bool
    mean: float = 0.0
    scale: float = 0.0
    levels: tuple[str, ...] = ()

    @classmethod
    def fit(cls, name: str, values: Series) -> Self:
        """Learn the encoding of one column."""
        kind = encoded_kind(values, name)
        if kind != "category":
            found = _numbers(kind, name, values)
            center = (0.0, 0.0) if kind == "boolean" else _mean_and_scale(found)
            return cls(kind, name, bool(np.isnan(found).any()), *center)
        counts = level_counts(values, f"column {name!r}")
        levels = sorted(one for one in counts if one is not None)
        frequent = sorted(levels, key=counts.__getitem__, reverse=True)[:50]
        return cls(kind, name, counts[None] > 0, levels=tuple(sorted(frequent)))

    def outputs(self) -> tuple[str, ...]:
        """Return the names of the outputs without the one for missing values."""
        if self.kind == "category":
            return (*(f"{self.name} = {level}" for level in self.levels), f"{self.name} unknown")
        circle = (f"{self.name} sine", f"{self.name} cosine") if self.kind == "date" else ()
        return (self.name, *circle)

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of all outputs."""
        return self.outputs() + ((f"{self.name} missing",) if self.had_missing else ())

    def transform(self, values: Series) -> Floats:
        """Return all outputs, shape (n_samples, n_outputs)."""
        if self.kind == "category":
            return self._indicators(values)
        found = _numbers(self.kind, self.name, values)
        columns = [standardized(found, self.mean, self.scale)]
        if self.kind == "boolean":
            columns = [np.nan_to_num(2 * found - 1)]
        if self.kind == "date":
            # on a circle, as the last day of a year is next to the first day of the next year
            stamps = moments(dates(values, f"column {self.name!r}"))
            angle = 2 * np.pi * _share_of_year(stamps)
            columns += [np.nan_to_num(np.sin(angle)), np.nan_to_num(np.cos(angle))]
        return np.column_stack(columns + ([np.isnan(found)] if self.had_missing else []))

    def _indicators(self, values: Series) -> Floats:
        """Set one output per row to 1: that of its level, of unknown levels, or if missing."""
        position = {level: i for i, level in enumerate(self.levels)}
        unknown = len(self.levels)
        absent = unknown + self.had_missing
        place = f"column {self.name!r}"
        codes = of_levels(values, place, lambda one: position.get(one, unknown), absent)
        return np.eye(len(self.names_out))[codes]

    def condition(self, output: int, low: float, high: float) -> Condition | None:
        """Describe the rows whose output, an index of `names_out`, is in the interval (low, high].

        At least one end is finite. None if the interval has no description in words.
        """
        found: list[tuple[Operator, str | None]]
        is_above, or_missing = high == math.inf, False
        if output == len(self.outputs()):
            found = [("missing" if is_above else "present", None)]
        elif self.kind == "category" and output < len(self.levels):
            found = [("=" if is_above else "!=", self.levels[output])]
            if not is_above and len(self.levels) == 2 and not self.had_missing:
                found = [("=", self.levels[1 - output])]  # "sex = woman", not "sex != man"
        elif self.kind == "category" or output > 0:
            # rare and unseen levels, and bounds on a sine of the year, mean nothing to a reader
            return None
        elif self.kind == "boolean":
            found = [
                ("=", word) for word, code in (("false", -1), ("true", 1)) if low < code <= high
            ]
            # missing values are encoded as 0
            or_missing = self.had_missing and low < 0 <= high and found != []
            found = found or [("missing", None)]
        else:
            or_missing = self.had_missing and low < 0 <= high
            ends: list[tuple[Operator, float]] = [(">", low), ("<=", high)]
            found = [(operator, self._shown(end)) for operator, end in ends if math.isfinite(end)]
        return Condition(tuple(Group(self.name, *one) for one in found), or_missing)

    def _shown(self, end: float) -> str:
        """Return an end of a range in the units of the column."""
        value = self.mean + end * self.scale
        if self.kind == "number":
            shown = f"{value:.4g}"
            return f"{float(shown):.0f}" if "e+" in shown else shown
        return str(np.datetime64(0, "D") + np.timedelta64(math.floor(value), "D"))


def encoded_kind(values: Series, name: str) -> ColumnKind:
    """Return the kind for a column of the training data; InputError for an unknown one."""
    kind = column_kind(values)
    if kind != "other":
        return kind
    # a column with text among numbers is read as numbers, so that the error names the text; mixed
    # types without numbers are categories
    inferred = pd.api.types.infer_dtype(values, skipna=True)
    if not inferred.startswith("mixed"):
        rule = "contain numbers, text, booleans or dates"
        raise bad_input(f"column {name!r}", rule, inferred, "convert it first, or drop it")
    types = {type(value) for value in values.dropna()} - {bool, np.bool_}
    return (
        "number" if any(issubclass(one, float | int | np.number) for one in types) else "category"
    )


def _numbers(kind: ColumnKind, name: str, values: Series) -> Floats:
    """Return numbers, booleans as 0 and 1, or days since 1970; NaN if missing."""
    place = f"column {name!r}"
    if kind == "boolean":
        return booleans(values, place).to_numpy(dtype=float, na_value=np.nan)
    return days(moments(dates(values, place))) if kind == "date" else numbers(values, place)


def _mean_and_scale(numbers: Floats) -> tuple[float, float]:
    """Return mean and standard deviation of the non-missing numbers; 0 if only rounding varies."""
    present = numbers[~np.isnan(numbers)]
    if present.size == 0:
        return 0.0, 0.0
    # squares of numbers above 1e154 overflow, but not squares of their ratios to the maximum
    peak = np.abs(present).max() or 1.0
    shares = present / peak
    mean = shares.mean()
    scale = shares.std()
    # the deviation of a constant column, or of one that varies in its last digits only, is the
    # rounding error of the mean
    return float(mean * peak), float(scale * peak) if scale > 1e-12 else 0.0


def standardized(numbers: Floats, mean: Floats | float, scale: Floats | float) -> Floats:
    """Return (numbers - mean) / scale clipped to the limit; 0 if missing or if the scale is 0."""
    # a missing number and a scale of 0 both give NaN here
    unit = np.where(np.equal(scale, 0.0), np.nan, scale)
    with np.errstate(over="ignore"):
        scores = np.minimum(np.maximum((numbers - mean) / unit, -LIMIT), LIMIT)
    return np.where(np.isnan(scores), 0.0, scores)


def _share_of_year(found: NDArray[np.datetime64]) -> Floats:
    """Return the elapsed share of the year, NaN if missing."""
    start = found.astype("datetime64[Y]")
    length = (start + 1).astype("datetime64[D]") - start.astype("datetime64[D]")
    return (found - start) / length


# --- encoding of tables

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
        """Learn the encoding of a table of any library, or of an array with columns x0, x1, ...

        Raises InputError without rows or columns, or if a column name is repeated, or a column
        contains infinite values, text among numbers or values of an unknown kind.
        """
        table, named = _named_table(X)
        if table.shape[0] == 0 or table.shape[1] == 0:
            raise bad_input("X", "have at least one row and one column", f"shape {table.shape}")
        self.columns_ = tuple(EncodedColumn.fit(name, table[name]) for name in table.columns)
        self.named_ = named
        return self

    def transform(self, X: Any) -> Floats:
        """Return the matrix of finite values, shape (n_samples, len(names_out)).

        Raises InputError if a column of the training data is missing, or a value cannot be read;
        the message names its row.
        """
        columns = self.columns_
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
            shown = and_more(map(repr, absent), MOST_ABSENT)
            raise InputError(f"X lacks columns of the training table: {shown}; add them")
        return np.hstack([column.transform(table[column.name]) for column in columns])

    def fit_transform(self, X: Any) -> Floats:
        """Learn the encoding of `X` and return its matrix."""
        return self.fit(X).transform(X)

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of the outputs, in the order of the columns of the matrix."""
        return tuple(name for column in self.columns_ for name in column.names_out)

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
        return [(column, i) for column in self.columns_ for i in range(len(column.names_out))]

    def to_state(self) -> dict[str, Any]:
        """Return the learned encodings as JSON values."""
        return {"named": self.named_, "columns": plain(self.columns_)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild an encoder from the output of `to_state`; InputError if it is anything else."""
        encoder = cls()
        with read_state("TableEncoder.to_state"):
            encoder.named_ = bool(state["named"])
            encoder.columns_ = tuple(
                EncodedColumn(**typed_fields(EncodedColumn, entry)) for entry in state["columns"]
            )
        return encoder


def _plain_numbers(X: Any, columns: Sequence[EncodedColumn]) -> Floats | None:
    """Return the rows as an array, if they consist of the columns of training and all are numbers.

    None if any value needs to be converted, or is too large and must be refused.
    """
    if not all(column.kind == "number" for column in columns):
        return None
    if isinstance(X, pd.DataFrame):
        is_same = X.columns.tolist() == [column.name for column in columns]
        if not is_same or not all(map(is_plain_number, X.dtypes)):
            return None
        X = X.to_numpy(dtype=float)
    elif type(X) is not np.ndarray or X.dtype != np.float64 or X.shape[1:] != (len(columns),):
        return None
    return None if (np.abs(X) > LARGEST).any() else X


def _encoded_numbers(numbers: Floats, columns: Sequence[EncodedColumn]) -> Floats:
    """Encode all columns at once, which for one row takes a small part of the time."""
    mean = np.array([column.mean for column in columns])
    scale = np.array([column.scale for column in columns])
    encoded = np.ascontiguousarray(standardized(numbers, mean, scale))
    marked = np.flatnonzero([column.had_missing for column in columns])
    # the output for missing values follows that of its column
    return np.insert(encoded, marked + 1, np.isnan(numbers[:, marked]), axis=1)


def _named_table(X: Any) -> tuple[pd.DataFrame, bool]:
    """Return a table with text as column names, and whether `X` had column names."""
    frame = as_pandas(X)
    table = as_table(frame)
    if not all(type(name) is str for name in table.columns):
        table = table.set_axis(table.columns.map(str), axis="columns")
    return table, isinstance(frame, pd.DataFrame)
