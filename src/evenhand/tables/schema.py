"""Schema of a table: kinds, levels and ranges of its columns, learned or seen in csv cells."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from pyarrow import compute

from evenhand._validate import Floats, InputError, typed_fields
from evenhand.tables.cells import (
    as_mask,
    missing_words,
    parse_numbers,
    parse_text_numbers,
    text_array,
)
from evenhand.tables.files import holds_text, read_table
from evenhand.tables.values import (
    FEW,
    Kind,
    as_json,
    as_numbers,
    as_pandas,
    booleans,
    dates,
    factorized,
    is_plain_dtype,
    is_plain_number,
    is_plain_text,
    kind_of,
    level,
    missing,
    numbers,
    rounded,
    text_dates,
    text_flags,
    texts,
    unpacked,
)

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
    kind: Kind
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

    @classmethod
    def learn(cls, values: pd.Series[Any], name: str) -> Self:
        """Summarize a column of the training table."""
        kind = kind_of(values)
        n = len(values)
        n_missing = int(missing(values).sum())
        if kind in ("number", "date"):
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
        codes, levels = factorized(values, f"column {name!r}")
        distinct = sorted({*levels} - {""})
        kept = tuple(distinct) if len(distinct) <= MAX_STORED_LEVELS else None
        # empty text is missing as well, as in a csv file
        n_missing = int(np.append([not shown for shown in levels], True)[codes].sum())
        categories = _categories(values, dtype)
        return cls(name, kind, n, n_missing, levels=kept, dtype=dtype, categories=categories)

    def read(self, values: pd.Series[Any], place: str, start: int = 0) -> pd.Series[Any]:
        """Convert a column to this kind; columns of this kind are returned unchanged."""
        # categorical numbers, booleans or dates are treated as plain ones
        if self.kind in ("number", "boolean", "date"):
            values = unpacked(values)
        if self.kind == "number":
            found = numbers(values, place, start)
            if not is_plain_number(values):
                values = pd.Series(found, index=values.index, name=values.name)
            # with more digits than in training, a value at a cut could be on its other side
            has_digits = self.dtype.startswith("float")
            return rounded(values, place, start, self.dtype) if has_digits else values
        if self.kind == "boolean":
            is_read = values.dtype in (np.bool_, pd.BooleanDtype())
            return values if is_read else booleans(values, place, start)
        if self.kind == "date":
            dtype = self.dtype if self.dtype.startswith("datetime64") else None
            return dates(values, place, start, dtype=dtype)
        if self.kind == "category":
            return self._read_levels(values, place)
        return values

    def _read_levels(self, values: pd.Series[Any], place: str) -> pd.Series[Any]:
        if isinstance(values.dtype, pd.CategoricalDtype):
            # models may use the codes, which depend on the categories of each table
            if self.dtype == "category" and tuple(values.cat.categories) == self.categories:
                return values
        elif str(values.dtype) == self.dtype and is_plain_text(values):
            return values
        found = texts(values, place)
        if self.dtype != "category":
            return _as(found, self.dtype)
        known = {level(value): value for value in self.categories or ()}
        of_text = {value: _category(value, known) for value in found.dropna().unique()}
        read = pd.Series([of_text.get(value, value) for value in found], dtype=object)
        # new values become new categories: they are not missing
        old = set(known.values())
        new = [value for value in dict.fromkeys(read.dropna()) if value not in old]
        categories = pd.Categorical(read, [*known.values(), *new])
        return pd.Series(categories, index=values.index, name=values.name)

    def to_state(self) -> dict[str, Any]:
        """Return the column as JSON values."""
        return as_json(self)

    @classmethod
    def from_state(cls, entry: Mapping[str, Any]) -> Self:
        """Rebuild a column from the output of `to_state`; InputError if it is anything else."""
        column = cls(**typed_fields(cls, entry))
        ends = [end for end in (column.least, column.greatest) if end is not None]
        if ends != sorted(ends):
            raise InputError(f"column {column.name!r} has the range {ends}")
        return column


@dataclass(frozen=True)
class Schema:
    """Columns of a training table, by which all rows for its model are read.

    A value then has the same meaning in a single row, a batch, csv, parquet and Python. A value
    that does not fit its column is an error that names its row.

    Parameters
    ----------
    columns : tuple of Column
        Columns of the training table.

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

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def with_others(self, other: Schema) -> Schema:
        """Add the columns of another schema whose names are new."""
        return Schema(
            (*self.columns, *(column for column in other.columns if column.name not in self))
        )

    def without(self, names: Collection[str]) -> Schema:
        """Return the schema without the columns of these names."""
        return Schema(tuple(column for column in self.columns if column.name not in names))

    def apply(self, frame: pd.DataFrame, source: str, start: int = 0) -> pd.DataFrame:
        """Convert the columns of a table to the kinds of the schema.

        Parameters
        ----------
        frame : DataFrame
            Table; columns that are not in the schema are unchanged.
        source : str
            Name of the file, for messages; "" for a table in memory.
        start : int, default 0
            Number, from 0, of the first row within the file, for messages.

        Raises
        ------
        InputError
            If a value does not fit its column; the message names file, column, row and value.
        """
        known = {column.name: column for column in self.columns}
        changed: dict[int, pd.Series[Any]] = {}
        for i, (label, values) in enumerate(frame.items()):
            name = str(label)
            if name in known:
                place = f"{source}: column {name!r}" if source else f"column {name!r}"
                read = known[name].read(values, place, start)
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
        if not all(map(is_plain_dtype, frame.dtypes)):
            return False
        least, greatest = self._number_ends
        values = frame.to_numpy(dtype=np.float64)
        return bool(((values >= least) & (values <= greatest)).all())

    @cached_property
    def _number_ends(self) -> tuple[Floats, Floats] | None:
        """Ranges of the columns, if all are numbers in which models accept any number of digits."""
        if not all(column.kind == "number" and column.dtype == "object" for column in self.columns):
            return None
        # missing as NaN, which covers no value
        least, greatest = (
            np.array([getattr(column, end) for column in self.columns], dtype=np.float64)
            for end in ("least", "greatest")
        )
        return least, greatest

    def to_state(self) -> list[dict[str, Any]]:
        """Return the schema as JSON values."""
        return [column.to_state() for column in self.columns]

    @classmethod
    def from_state(cls, state: Iterable[Mapping[str, Any]]) -> Self:
        """Rebuild a schema from the output of `to_state`; InputError if it is anything else."""
        try:
            return cls(tuple(Column.from_state(entry) for entry in state))
        except (TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"schema is not the output of Schema.to_state ({reason})") from error


def _dtype_of(values: pd.Series[Any], kind: Kind) -> str:
    """Return the type in which models receive numbers or dates; "object" if any type will do."""
    if kind == "number":
        return str(values.dtype) if values.dtype in (np.float32, np.float16) else "object"
    return str(values.dtype) if str(values.dtype).startswith("datetime64") else "datetime64[us]"


def _categories(values: pd.Series[Any], dtype: str) -> tuple[Any, ...] | None:
    if dtype != "category":
        return None
    categories = values.cat.categories
    plain = [value.item() if isinstance(value, np.generic) else value for value in categories]
    can_be_stored = all(isinstance(value, str | int | float | bool) for value in plain)
    return tuple(plain if can_be_stored else [level(value) for value in plain])


def _category(text: str, known: Mapping[str, Any]) -> Any:
    """Return the category whose text is given, else the text, or NaN for a missing number."""
    if text in known or all(isinstance(one, str) for one in known.values()):
        return known.get(text, text)
    (number,), (is_wrong,) = parse_numbers(pd.Series([text]))
    if is_wrong:
        return text
    return known.get(level(float(number)), text) if np.isfinite(number) else np.nan


def _as(values: pd.Series[Any], dtype: str) -> pd.Series[Any]:
    if str(values.dtype) == dtype:
        return values
    types: dict[str, Any] = {"string": "string", "str": pd.StringDtype(na_value=np.nan)}
    return values.astype(types.get(dtype, object))


# --- inference of column kinds from all cells, as csv files contain no types

CODE = r"^(\+|-?0[0-9]|-?[0-9]{16,}$)"
"""Text that is a code although it could be read as a number: it has a plus sign, a leading zero or
more than 15 digits, which floats cannot represent."""

MOSTLY = 0.9
"""Share of numbers in a column of text above which the other cells are reported."""


@dataclass(frozen=True)
class Evidence:
    """Counts of cells that determine the kind of a column; counts of disjoint rows can be added.

    Parameters
    ----------
    n_values : int
        Number of non-empty cells.
    n_words : int
        Number of cells with a word for a missing value, such as `NA`, which is ordinary text in a
        column of text.
    n_numbers, n_booleans, n_dates, n_other : int
        Number of cells that can be read as this kind; `n_other` counts values that are neither
        these nor text.
    odd : tuple of (int, str) or None
        Row number, from 0, and content of the first cell that is not a number.

    Examples
    --------
    >>> zips, sizes = pd.Series(["01234", "5"]), pd.Series(["1.5", "NA"])
    >>> Evidence.of_text(zips).kind, Evidence.of_text(sizes).kind
    ('category', 'number')
    """

    n_values: int = 0
    n_words: int = 0
    n_numbers: int = 0
    n_booleans: int = 0
    n_dates: int = 0
    n_other: int = 0
    odd: tuple[int, str] | None = None

    @classmethod
    def of_text(cls, values: pd.Series[Any], start: int = 0) -> Self:
        """Count the cells of a column of a csv file; `start` is the number of the first row."""
        text = text_array(values)
        is_word = missing_words(text)
        there = as_mask(compute.is_valid(text)) & ~is_word
        is_code = as_mask(compute.match_substring_regex(text, CODE))
        is_number = there & ~parse_text_numbers(text)[1] & ~is_code
        odd = np.flatnonzero(there & ~is_number)
        n_words = int(is_word.sum())
        n_values = int(there.sum()) + n_words
        if odd.size == 0:  # most columns are numbers: skip the other kinds
            return cls(n_values, n_words, int(is_number.sum()))
        n_booleans = int(np.logical_or(*text_flags(values)).sum())
        n_dates = int((~missing(text_dates(values)[0])).sum())
        first = int(odd[0])
        shown = (start + first, str(values.iloc[first]))
        return cls(n_values, n_words, int(is_number.sum()), n_booleans, n_dates, odd=shown)

    @classmethod
    def of_typed(cls, values: pd.Series[Any]) -> Self:
        """Count the values of a column of known type, where text is never read as numbers."""
        # the type applies to all values: each non-missing value counts for one kind
        n = int((~missing(values)).sum())
        kind = kind_of(values)
        flags = [int(kind == one) for one in ("number", "boolean", "date", "other")]
        n_numbers, n_booleans, n_dates, n_other = (n * flag for flag in flags)
        return cls(n, 0, n_numbers, n_booleans, n_dates, n_other)

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(
            self.n_values + other.n_values,
            self.n_words + other.n_words,
            self.n_numbers + other.n_numbers,
            self.n_booleans + other.n_booleans,
            self.n_dates + other.n_dates,
            self.n_other + other.n_other,
            min((one.odd for one in (self, other) if one.odd is not None), default=None),
        )

    @property
    def is_empty(self) -> bool:
        """Whether all cells are empty."""
        return self.n_values == 0

    @property
    def kind(self) -> Kind:
        """The kind common to all cells; an empty column counts as numbers."""
        if self.is_empty:
            return "number"
        counts: dict[Kind, int] = {
            "number": self.n_numbers,
            "boolean": self.n_booleans,
            "date": self.n_dates,
            "other": self.n_other,
        }
        # words for a missing value fit every kind except text, where they are ordinary text
        n = self.n_values - self.n_words
        return next((kind for kind, count in counts.items() if count == n > 0), "category")

    def remark(self, name: str) -> str | None:
        """Return a warning if nearly all cells of a text column are numbers; None otherwise."""
        n_odd = self.n_values - self.n_words - self.n_numbers
        is_mostly_numbers = self.n_numbers >= MOSTLY * (self.n_numbers + n_odd)
        if self.kind != "category" or self.odd is None or not is_mostly_numbers:
            return None
        row, value = self.odd
        return (
            f"column {name!r} is read as categories: {n_odd:,} of its {self.n_values:,} values are"
            f" not numbers or are codes, the first in row {row + 1}, {value[:40]!r}; leave unknown"
            " values empty"
        )


def found_schema(found: Mapping[str, Evidence]) -> Schema:
    """Return a schema of inferred kinds."""
    as_read = str(pd.Series(["text"]).dtype)  # "object" before pandas 3
    return Schema(
        tuple(Column(name, evidence.kind, dtype=as_read) for name, evidence in found.items())
    )


def read_typed(
    path: str | os.PathLike[str], *, schema: Schema | None = None, text: Collection[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    r"""Read a table and convert its columns to their kinds.

    Parameters
    ----------
    path : path
        A file ending in .csv, .csv.gz or .parquet, or a folder of such files.
    schema : Schema, optional
        Schema of a model, by which the model's columns are read from any file. Other columns have
        the types of the parquet file; in csv a column is numeric, boolean or a date only if every
        cell of the whole table can be read so.
    text : collection of str
        Columns of csv files that are left as text, such as ids.

    Returns
    -------
    table : DataFrame
        At least one row.
    remarks : list of str
        Warnings, for instance about a text column in which nearly all cells are numbers.

    Raises
    ------
    InputError
        As in `tables.read_table`, or if a value does not fit its column; the message names file,
        column, row and value.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "loans.csv")
    ...     _ = file.write_text("zip,income\n01234,1200\n98765,\n")
    ...     read_typed(file)[0].values.tolist()
    [['01234', 1200.0], ['98765', nan]]
    """
    known = schema or Schema()
    table = read_table(path)
    found: dict[str, Evidence] = {}
    if holds_text(path):
        unknown = [
            name for name in map(str, table.columns) if name not in known and name not in text
        ]
        found = {name: Evidence.of_text(table[name]) for name in unknown}
    kinds = known.without(text).with_others(found_schema(found))
    remarks = [remark for name, one in found.items() if (remark := one.remark(name)) is not None]
    return kinds.apply(table, os.path.basename(os.fspath(path))), remarks
