"""Schema of a table: kinds, levels and ranges of its columns, learned or seen in csv cells."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from traceback import walk_stack
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from evenhand._format import and_more, percent
from evenhand._validate import AnyPath, Floats
from evenhand.tables.files import open_parts
from evenhand.tables.values import (
    BOOLEANS,
    FEW,
    ORDERED,
    ColumnKind,
    Series,
    as_mask,
    as_numbers,
    as_pandas,
    booleans,
    column_kind,
    dates,
    is_plain_number,
    is_plain_text,
    level,
    level_counts,
    missing,
    missing_words,
    numbers,
    of_levels,
    parse_numbers,
    parse_text_numbers,
    rounded,
    text_array,
    text_dates,
    unpacked,
)

TEXT_TYPES: dict[str, Any] = {"string": "string", "str": pd.StringDtype(na_value=np.nan)}
"""Types of text that models may receive in place of objects, by their names."""

MAX_STORED_LEVELS = 1000
"""Largest number of levels stored per column; new values in columns with more are not detected."""


@dataclass(frozen=True)
class Column:
    """Kind and summary of a column of the training table.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"number", "category", "boolean", "date", "other"}
        Kind of its values.
    n : int
        Number of training rows; 0 if only the kind is known.
    n_missing : int
        Number of missing values.
    least, greatest : float or None
        Range of numbers, or of dates in days since 1970.
    levels : tuple of str or None
        Sorted levels of categories and booleans; None if there are more than 1,000.
    dtype : str
        Type in memory that models receive. Text: "object", "str", "string" or "category". Dates:
        type of the training table, such as "datetime64[us]". Numbers: "float32" or "float16" if
        training had fewer digits. "object" if any type will do.
    categories : tuple or None
        Ordered categories of a column of type "category".
    """

    name: str
    kind: ColumnKind
    n: int = 0
    n_missing: int = 0
    least: float | None = None
    greatest: float | None = None
    levels: tuple[str, ...] | None = None
    dtype: str = "object"
    categories: tuple[str | int | float | bool, ...] | None = None

    @cached_property
    def known_levels(self) -> frozenset[str]:
        """The levels as a set; empty if they are not stored."""
        return frozenset(self.levels or ())

    @property
    def ends(self) -> tuple[float, float]:
        """Range of numbers or dates: from infinity to minus infinity if there is none."""
        if self.least is None or self.greatest is None:
            return np.inf, -np.inf
        return self.least, self.greatest

    @classmethod
    def learn(cls, values: Series, name: str) -> Self:
        """Summarize a column of the training table."""
        kind = column_kind(values)
        n = len(values)
        n_missing = int(missing(values).sum())
        if kind in ORDERED:
            found = as_numbers(values, kind)
            # an infinite end of the range would include every later value
            finite = found[np.isfinite(found)]
            least = float(finite.min()) if finite.size else None
            greatest = float(finite.max()) if finite.size else None
            return cls(name, kind, n, n_missing, least, greatest, dtype=_dtype_of(values, kind))
        if kind == "other":
            return cls(name, kind, n, n_missing)
        has_own_type = isinstance(values.dtype, pd.CategoricalDtype | pd.StringDtype)
        dtype = str(values.dtype) if has_own_type else "object"
        counts = level_counts(values, f"column {name!r}")
        # empty text is missing as well, as in a csv file
        n_missing = counts[None] + counts[""]
        levels = sorted(filter(None, counts))
        kept = tuple(levels) if len(levels) <= MAX_STORED_LEVELS else None
        categories = _categories(values, dtype)
        return cls(name, kind, n, n_missing, levels=kept, dtype=dtype, categories=categories)

    def read(self, values: Series, place: str) -> Series:
        """Convert a column to this kind; columns of this kind are returned unchanged."""
        # categorical numbers, booleans or dates are treated as plain ones
        if self.kind in ("number", "boolean", "date"):
            values = unpacked(values)
        if self.kind == "number":
            found = numbers(values, place)
            if not is_plain_number(values.dtype):
                values = pd.Series(found, index=values.index, name=values.name)
            # with more digits than in training, a value at a cut could be on its other side
            return rounded(values, place, self.dtype) if self.dtype.startswith("float") else values
        if self.kind == "boolean":
            is_read = values.dtype in (np.bool_, pd.BooleanDtype())
            return values if is_read else booleans(values, place)
        if self.kind == "date":
            return dates(values, place, self.dtype if self.dtype.startswith("datetime64") else None)
        if self.kind == "category":
            return self._read_levels(values, place)
        return values

    def _read_levels(self, values: Series, place: str) -> Series:
        if isinstance(values.dtype, pd.CategoricalDtype):
            # models may use the codes, which depend on the categories of each table
            if self.dtype == "category" and tuple(values.cat.categories) == self.categories:
                return values
        elif str(values.dtype) == self.dtype and is_plain_text(values):
            return values
        known = {level(value): value for value in self.categories or ()}
        read = of_levels(values, place, lambda text: _category(text, known), np.nan, object)
        dtype = TEXT_TYPES.get(self.dtype, object)
        if self.dtype == "category":
            # new values become new categories: they are not missing
            old = set(known.values())
            new = [value for value in dict.fromkeys(read) if pd.notna(value) and value not in old]
            dtype = pd.CategoricalDtype([*known.values(), *new])
        return pd.Series(read, values.index, name=values.name, dtype=dtype)


@dataclass(frozen=True)
class Schema:
    """Columns of a training table, by which all rows for its model are read.

    A value then has the same meaning in a single row, a batch, csv, parquet and Python. A value
    that does not fit its column is an error that names its row.

    Examples
    --------
    >>> schema = Schema.learn(pd.DataFrame({"zip": ["01234", "98765"], "age": [30, 40]}))
    >>> schema.apply(pd.DataFrame({"zip": ["01234"], "age": ["35"]}), "new.csv").values.tolist()
    [['01234', 35.0]]
    """

    columns: tuple[Column, ...] = ()

    @classmethod
    def learn(cls, X: Any) -> Self:
        """Summarize the columns of a training table, a DataFrame of any library."""
        table = as_pandas(X)
        return cls(tuple(Column.learn(table[name], str(name)) for name in table.columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def apply(self, frame: pd.DataFrame, source: str) -> pd.DataFrame:
        """Convert columns of a table to the kinds of the schema; other columns are unchanged.

        For messages, `source` is the name of the file, "" for a table in memory.
        """
        known = {column.name: column for column in self.columns}
        changed: dict[int, Series] = {}
        for i, (label, values) in enumerate(frame.items()):
            name = str(label)
            if name in known:
                place = f"{source}: column {name!r}" if source else f"column {name!r}"
                read = known[name].read(values, place)
                if read is not values:
                    changed[i] = read
        if not changed:  # the same object, by which callers know that they can keep the original
            return frame
        parts = {i: changed.get(i, frame.iloc[:, i]) for i in range(frame.shape[1])}
        return pd.DataFrame(parts, index=frame.index).set_axis(frame.columns, axis="columns")

    def covers(self, frame: pd.DataFrame) -> bool:
        """Whether a short table has plain numbers only, all within the ranges of training.

        `apply` returns such a table unchanged, and it contains no unseen values. The columns must
        be those of the schema, in its order. This quick check of the whole table is for single
        rows, where the work per column takes longer than most predictions.
        """
        if self._number_ends is None or len(frame) > FEW:
            return False
        if not all(map(is_plain_number, frame.dtypes)):
            return False
        least, greatest = self._number_ends
        values = frame.to_numpy(dtype=float)
        return bool(((values >= least) & (values <= greatest)).all())

    @property
    def are_numbers(self) -> bool:
        """Whether all columns are numbers in which models accept any number of digits."""
        return all(column.kind == "number" and column.dtype == "object" for column in self.columns)

    @cached_property
    def _number_ends(self) -> tuple[Floats, Floats] | None:
        """Ranges of the columns, if all are plain numbers."""
        if not self.are_numbers:
            return None
        least, greatest = np.reshape([column.ends for column in self.columns], (-1, 2)).T
        return least, greatest


def _dtype_of(values: Series, kind: ColumnKind) -> str:
    """Return the type in which models receive numbers or dates; "object" if any type will do."""
    if kind == "number":
        return str(values.dtype) if values.dtype in (np.float32, np.float16) else "object"
    return str(values.dtype) if str(values.dtype).startswith("datetime64") else "datetime64[us]"


def _categories(values: Series, dtype: str) -> tuple[Any, ...] | None:
    if dtype != "category":
        return None
    plain = values.cat.categories.tolist()
    can_be_stored = all(isinstance(value, str | int | float | bool) for value in plain)
    return tuple(plain if can_be_stored else [level(value) for value in plain])


def _category(text: str, known: Mapping[str, Any]) -> Any:
    """Return the category whose text is given, else the text; NaN for empty text and numbers."""
    if text in known or all(isinstance(one, str) for one in known.values()):
        return known.get(text, text) if text else np.nan
    (number,), (is_wrong,) = parse_numbers(pd.Series([text]))
    if is_wrong:
        return text
    return known.get(level(float(number)), text) if np.isfinite(number) else np.nan


# --- inference of column kinds from all cells, as csv files contain no types

# it has a plus sign, a leading zero or more than 15 digits, which floats cannot represent
CODE = r"^(\+|-?0[0-9]|-?[0-9]{16,}$)"
"""Text that is a code although it could be read as a number."""

MOSTLY = 0.9
"""Share of numbers in a column of text above which the other cells are reported."""


def cells_of_text(values: Series) -> Counter[str]:
    """Count the cells of a column of a csv file; counts of disjoint rows can be added.

    Returns the number of non-empty `values`; of `words` for a missing value, such as `NA`, which
    are ordinary text in a column of text; of `codes`; and of values that can be read as each kind.

    Examples
    --------
    >>> zips, sizes = pd.Series(["01234", "5"]), pd.Series(["1.5", "NA"])
    >>> kind_of_cells([cells_of_text(zips)]), kind_of_cells([cells_of_text(sizes)])
    ('category', 'number')
    """
    text = text_array(values)
    is_word = missing_words(text)
    there = as_mask(compute.is_valid(text)) & ~is_word
    is_code = as_mask(compute.match_substring_regex(text, CODE))
    is_number = there & ~parse_text_numbers(text)[1] & ~is_code
    found = {"values": there | is_word, "words": is_word, "codes": is_code, "number": is_number}
    if (there & ~is_number).any():  # most columns are numbers: skip the other kinds
        found["boolean"] = as_mask(compute.is_in(text, value_set=pa.array([*BOOLEANS])))
        found["date"] = ~missing(text_dates(values)[0])
    return Counter({name: int(mask.sum()) for name, mask in found.items()})


def cells_of_type(values: Series) -> Counter[str]:
    """Count the values of a column of known type, where text is never read as numbers."""
    # the type applies to all values: each non-missing value counts for one kind
    n = int((~missing(values)).sum())
    return Counter({"values": n, column_kind(values): n})


def kind_of_cells(parts: Sequence[Counter[str]]) -> ColumnKind:
    """Return the kind of a column by the cells of its parts; an empty column counts as numbers.

    It is the kind common to all cells, or else the numbers or dates of most parts, which other
    cells are refused for. Codes in some of the parts, such as 01234, make it text.
    """
    kinds: tuple[ColumnKind, ...] = ("number", "boolean", "date", "other")

    def common(cells: Counter[str]) -> ColumnKind:
        # words for a missing value fit every kind except text, where they are ordinary text
        n = cells["values"] - cells["words"]
        return next((kind for kind in kinds if cells[kind] == n > 0), "category")

    some = [cells for cells in parts if cells["values"]]
    total = reduce(add, some, Counter[str]())
    found = common(total) if some else "number"
    usual, n = Counter(map(common, some)).most_common(1)[0] if some else (found, 0)
    is_usual = usual in ORDERED and 2 * n > len(parts) and not total["codes"]
    return usual if found == "category" and is_usual else found


def remark_on(name: str, values: Series) -> str | None:
    """Return a warning if nearly all cells of a text column are numbers; None otherwise."""
    text = text_array(values)
    is_odd = parse_text_numbers(text)[1] | as_mask(compute.match_substring_regex(text, CODE))
    n_values = as_mask(compute.is_valid(text)).sum()
    n_there = n_values - missing_words(text).sum()
    if is_odd.sum() > (1 - MOSTLY) * n_there:
        return None
    row = np.argmax(is_odd)
    return (
        f"column {name!r} is read as categories: {is_odd.sum():,} of its {n_values:,} values are"
        f" not numbers or are codes, the first in row {row + 1}, {values.iloc[row][:40]!r};"
        " leave unknown values empty"
    )


def found_columns(found: Mapping[str, Sequence[Counter[str]]]) -> list[Column]:
    """Return columns whose kinds are inferred from the cells of the parts."""
    as_read = str(pd.Series(["text"]).dtype)  # "object" before pandas 3
    return [Column(name, kind_of_cells(cells), dtype=as_read) for name, cells in found.items()]


def read_typed(
    path: AnyPath, *, schema: Schema | None = None, text: Collection[str | None] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """Read a table and convert its columns to their kinds; return also warnings about them.

    The columns of a `schema`, that of a model, are read by it from any file. Other columns have the
    types of the parquet file; in csv a column is numeric, boolean or a date only if every cell of
    the whole table can be read so. Columns of csv files in `text`, such as ids, stay text.
    """
    known = schema or Schema()
    parts = open_parts(path)
    table = parts.whole()
    names = [] if parts.schema else [str(name) for name in table.columns if str(name) not in text]
    found = found_columns({n: [cells_of_text(table[n])] for n in names if n not in known})
    remarks = [remark_on(c.name, table[c.name]) for c in found if c.kind == "category"]
    kinds = (column for column in (*known.columns, *found) if column.name not in text)
    table = Schema(tuple(kinds)).apply(table, os.path.basename(os.fspath(path)))
    return table, [remark for remark in remarks if remark is not None]


# --- values that did not occur in training

SURPRISING = 1e-3
"""Probability, for rows distributed as in training, below which a count is reported."""

MOST_SHOWN = 5
"""Largest number of training levels listed in a warning."""

COUNTS = ("n", "n_missing", "n_unseen")


class UnseenValuesWarning(UserWarning):
    """A column contains values that did not occur in the model's training table."""


@dataclass(frozen=True)
class Tally:
    """Count of unseen values in a column; counts of disjoint rows can be added.

    Parameters
    ----------
    column : Column
        The column of the training table.
    n : int
        Number of values.
    n_missing : int
        Number of missing values.
    n_unseen : int
        Number of values with a level that is new, or outside the range of training.
    example : str or None
        First unseen level in text order.
    least, greatest : float
        Range of the numbers, or of the dates in days since 1970; infinite if there are none.
    """

    column: Column
    n: int
    n_missing: int = 0
    n_unseen: int = 0
    example: str | None = None
    least: float = np.inf
    greatest: float = -np.inf

    @classmethod
    def of(cls, column: Column, values: Series) -> Self:
        """Count the values of a column that has been read by its schema."""
        n, n_missing = len(values), int(missing(values).sum())
        if column.kind in ORDERED:
            found = as_numbers(values, column.kind)
            found = found[np.isfinite(found)]
            low, high = column.ends
            n_unseen = int(((found < low) | (found > high)).sum())
            ends = float(found.min(initial=np.inf)), float(found.max(initial=-np.inf))
            return cls(column, n, n_missing, n_unseen, None, *ends)
        if column.levels is None:  # too many to be stored, or of another kind
            return cls(column, n, n_missing)
        counts = level_counts(values, f"column {column.name!r}")
        new = set(filter(None, counts)) - column.known_levels
        return cls(column, n, n_missing, sum(counts[one] for one in new), min(new, default=None))

    def __add__(self, other: Tally) -> Tally:
        both = (self, other)
        n, n_missing, n_unseen = (sum(getattr(one, name) for one in both) for name in COUNTS)
        example = min((one.example for one in both if one.example is not None), default=None)
        ends = min(self.least, other.least), max(self.greatest, other.greatest)
        return Tally(self.column, n, n_missing, n_unseen, example, *ends)

    def lines(self) -> list[str]:
        """Return a message for unusually many missing values, and one for unseen values."""
        column, kind, n = self.column, self.column.kind, f"{self.n:,} values"
        share = column.n_missing / column.n
        found = []
        if share == 0 < self.n_missing:
            found += [f"{self.n_missing:,} of {n} are missing; training had no missing ones"]
        elif 0 < self.n == self.n_missing and share**self.n < SURPRISING:
            found += [f"all {n} are missing; in training {percent(share)} were"]
        count = f"{self.n_unseen:,} of {n}"
        if self.example is not None:
            had = and_more(map(repr, column.levels or ()), MOST_SHOWN) or "none"
            such = f"such as {self.example!r}"
            found += [f"{count} never occurred in training, {such}; training had {had}"]
        elif self.n_unseen and self._probability() < SURPRISING:
            ends = (*column.ends, self.least, self.greatest)
            low, high, least, greatest = (
                f"{end:.6g}" if kind == "number" else shown(end, kind) for end in ends
            )
            had = "where all were missing" if column.least is None else f"{low} to {high}"
            reach = f"all values reach from {least} to {greatest}: check the units"
            found += [f"{count} lie outside the range of training, {had}; {reach}"]
        return [f"column {column.name!r}: {line}" for line in found]

    def _probability(self) -> float:
        """Probability of so many values outside the range of training, or of one so far outside.

        For rows distributed as in training. Tails are assumed to decrease as 1 / distance^2 or
        faster: each value is outside with probability at most 2 / n, and given that, twice as far
        out with probability at most 1 / 4.
        """
        from scipy.stats import betabinom  # slow to import

        low, high = self.column.ends
        if low >= high:
            return 0.0  # a constant column has no scale, and a new value is never expected
        n, present = self.column.n - self.column.n_missing, self.n - self.n_missing
        # for any distribution, the probability outside the range of n values is Beta(2, n - 1)
        as_many = float(betabinom.sf(self.n_unseen - 1, present, 2, n - 1))
        distance = max(low - self.least, self.greatest - high) / (high - low)
        # not squared, as the square of a large float is an error
        return min(as_many, 2 * present / n / (1 + distance) / (1 + distance))

    def record(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        column, ends = self.column, ("least", "greatest")
        return (
            {"column": column.name, "kind": column.kind}
            | {key: getattr(self, key) for key in (*COUNTS, "example")}
            | {end: shown(getattr(self, end), column.kind) for end in ends}
            | {f"training_{end}": shown(getattr(column, end), column.kind) for end in ends}
            | {"training_missing": column.n_missing / column.n}
        )


@dataclass(frozen=True)
class UnseenValues:
    """Unseen values by column; counts of disjoint rows can be added.

    Examples
    --------
    >>> schema = Schema.learn(pd.DataFrame({"sex": ["f", "m"], "age": [30.0, 60.0]}))
    >>> found = UnseenValues.of(schema, pd.DataFrame({"sex": ["F", "m"], "age": [31.0, 45000.0]}))
    >>> for line in found.lines():
    ...     print(line)
    column 'sex': 1 of 2 values never occurred in training, such as 'F'; training had 'f', 'm'
    column 'age': 1 of 2 values lie outside the range of training, 30 to 60; all values reach ...
    """

    tallies: tuple[Tally, ...] = ()

    @classmethod
    def of(cls, schema: Schema, X: Any) -> Self:
        """Count unseen values in the columns that a table, read by the schema, shares with it."""
        # names may be numbers, as in a table made from an array
        values = {str(name): column for name, column in as_pandas(X).items()}
        # without training rows only the kind of a column is known, so no value is unseen
        columns = [column for column in schema.columns if column.n and column.name in values]
        return cls(tuple(Tally.of(column, values[column.name]) for column in columns))

    def __add__(self, other: UnseenValues) -> UnseenValues:
        return UnseenValues(tuple(map(add, self.tallies, other.tallies)))

    def lines(self) -> list[str]:
        """Return one or two messages for each column with unusual values."""
        return [line for tally in self.tallies for line in tally.lines()]

    def records(self) -> list[dict[str, Any]]:
        """Return the counts of each column with unusual values, as JSON values."""
        return [tally.record() for tally in self.tallies if tally.lines()]


def shown(value: float | None, kind: ColumnKind) -> float | str | None:
    """Return an end of a range as a number, or as an ISO date."""
    if value is None or not np.isfinite(value):
        return None
    return value if kind == "number" else str(np.datetime64(math.floor(value), "D"))


_REPORTED: ContextVar[bool] = ContextVar("reports_unseen", default=True)


@contextmanager
def unreported() -> Iterator[None]:
    """Suppress warnings about unseen values, for inner models and rows counted elsewhere."""
    token = _REPORTED.set(False)
    try:
        yield
    finally:
        _REPORTED.reset(token)


def warn_unseen(schema: Schema, X: Any) -> None:
    """Warn about unseen values, attributed to the code that called this package."""
    if _REPORTED.get():
        for line in UnseenValues.of(schema, X).lines():
            frames = (frame for frame, _ in walk_stack(sys._getframe()))
            names = [frame.f_globals.get("__name__", "") for frame in frames]
            ours = [*(name.startswith("evenhand.") for name in names), False].index(False)
            warnings.warn(line, UnseenValuesWarning, stacklevel=ours + 1)


# --- exact copies of rows in a table

MOST_COPIES = 0.01
"""Share of repeated rows up to which nothing is reported."""

LEAST_DIFFERENT = 10
"""Fewest rows with equal features whose outcomes would differ if features did not matter."""

MOST_DIFFERENT = 0.1
"""Largest share of these that may differ: different people with equal features do differ."""


def copies_in_words(features: pd.DataFrame, y: Floats) -> str | None:
    """Return a warning if rows repeat other rows, features and outcome; None if none do.

    Rows of a table of few values agree honestly. Repeated rows are copies if one column nearly
    identifies the distinct rows, and if the outcomes of rows with equal features are equal.
    """
    # hashes take time, and most tables have few equal outcomes
    if pd.Series(y).duplicated().sum() <= MOST_COPIES * y.size:
        return None
    rows = pd.DataFrame({"x": _hash(features) if features.shape[1] else 0, "y": y})
    is_copy = rows.duplicated().to_numpy()
    n = is_copy.sum()
    if n <= MOST_COPIES * y.size:
        return None
    hashes = [_hash(features.iloc[:, [i]]) for i in range(features.shape[1])]
    n_distinct = [np.unique(column[~is_copy]).size for column in (y, *hashes)]
    if max(n_distinct) < (y.size - n) / 2:
        return None
    shared = rows[rows.duplicated("x", keep=False)]
    shuffled = shared.assign(y=np.random.default_rng(0).permutation(shared["y"]))
    n_different, by_chance = (
        len(one.drop_duplicates()) - one["x"].nunique() for one in (shared, shuffled)
    )
    if by_chance < LEAST_DIFFERENT or n_different > MOST_DIFFERENT * by_chance:
        return None
    return (
        f"{percent(n / y.size)} of {y.size:,} rows are exact copies of other rows, with equal"
        " features and outcomes: where people are counted, these are rows, and tests, intervals and"
        " guarantees, which assume independent rows, are wrong; keep one row of each person"
    )


def _hash(table: pd.DataFrame) -> NDArray[Any]:
    """Return a hash of each row; cells may be of any type."""
    return pd.util.hash_pandas_object(table, index=False, categorize=False).to_numpy()
