"""Inference of column kinds from all cells, as csv files contain no types."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from pyarrow import compute

from evenhand.columns.schema import Column, Schema
from evenhand.columns.values import Kind, kind_of, missing, text_dates, text_flags
from evenhand.tables import (
    as_mask,
    holds_text,
    missing_words,
    parse_text_numbers,
    read_table,
    text_array,
)

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
