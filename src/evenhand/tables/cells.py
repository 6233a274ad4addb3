"""Parsing of cells: numbers in text, missing values, and errors that name the row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute

from evenhand._validate import Floats, Mask, bad_input, short

MISSING_WORDS = (
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "NaN",
    "nan",
    "-nan",
    "-NaN",
    "NULL",
    "Null",
    "null",
    "None",
    "<NA>",
)
"""Texts that mean a missing value in columns of numbers, booleans and dates. In a column of text
they are ordinary values."""

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"

INFINITE = r"^[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?$"
"""Infinite numbers. Number columns refuse them, which is clearer than reading the column as
text."""


def refuse_row(
    wrong: Mask, values: pd.Series[Any], place: str, rule: str, remedy: str, start: int = 0
) -> None:
    """Raise InputError for the first row marked as wrong, with its value.

    `start` is the number, from 0, of the first row within its file.
    """
    if wrong.any():
        row = int(np.argmax(wrong))
        raise bad_input(f"{place}, row {start + row + 1}", rule, short(values.iloc[row]), remedy)


def is_text(values: pd.Series[Any]) -> bool:
    """Whether all non-missing values are text.

    Examples
    --------
    >>> is_text(pd.Series(["a", None])), is_text(pd.Series(["a", 1]))
    (True, False)
    """
    if isinstance(values.dtype, pd.StringDtype):
        return True
    return values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) == "string"


def text_array(values: pd.Series[Any]) -> pa.Array:
    """Return text as an Arrow array without surrounding whitespace; null if missing or empty."""
    text = pa.array(values, type=pa.string(), from_pandas=True)
    # a cell of blanks looks empty and is treated so
    trimmed = compute.utf8_trim_whitespace(
        text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    )
    return compute.if_else(compute.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)


def as_mask(flags: pa.Array) -> Mask:
    """Return an Arrow array of booleans as a NumPy array, with false for null."""
    filled = compute.fill_null(flags, fill_value=False)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.bool_)


def missing_words(text: pa.Array) -> Mask:
    """Return a mask of the texts that mean a missing value."""
    return as_mask(compute.is_in(text, value_set=pa.array(MISSING_WORDS)))


def parse_text_numbers(text: pa.Array) -> tuple[Floats, Mask]:
    """Parse texts as numbers, with NaN for missing values; return also a mask of invalid texts.

    A text is invalid if it is neither a number nor one of `MISSING_WORDS`. Numbers are rounded
    correctly, as by Python's `float`, so that every file format gives the same number.

    Examples
    --------
    >>> parse_text_numbers(pa.array(["007", "-1.5e3", "NA", "12 kg", None]))
    (array([    7., -1500.,    nan,    nan,    nan]), array([False, False, False,  True, False]))
    """
    is_finite = as_mask(compute.match_substring_regex(text, NUMBER))
    is_infinite = as_mask(compute.match_substring_regex(text, INFINITE))
    is_number = is_finite | is_infinite
    # Arrow does not parse a plus sign
    unsigned = compute.replace_substring_regex(text, r"^\+", "")
    chosen = compute.if_else(pa.array(is_number), unsigned, pa.scalar(None, pa.string()))
    numbers = np.array(chosen.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    is_there = as_mask(compute.is_valid(text))
    return numbers, is_there & ~is_number & ~missing_words(text)


def parse_numbers(values: pd.Series[Any]) -> tuple[Floats, Mask]:
    """Parse a column as numbers, with NaN for missing values; return also a mask of invalid values.

    A value is invalid if it is neither a number nor missing. Text is parsed as by
    `parse_text_numbers`, booleans become 0 and 1, and dates are invalid.

    Examples
    --------
    >>> parse_numbers(pd.Series([1, " 5", "", "?"], dtype=object))
    (array([ 1.,  5., nan, nan]), array([False, False, False,  True]))
    """
    plain = values.astype(object) if isinstance(values.dtype, pd.CategoricalDtype) else values
    if is_text(plain):
        return parse_text_numbers(text_array(plain))
    missing = plain.isna().to_numpy(dtype=bool)
    if plain.dtype.kind in "mMc":  # pandas would convert dates to nanoseconds
        return np.full(len(plain), np.nan), ~missing
    if plain.dtype == object and any(isinstance(value, str) for value in plain):
        return _parse_mixed(plain)
    numbers: Floats = pd.to_numeric(plain, errors="coerce").to_numpy(
        dtype=np.float64, na_value=np.nan
    )
    return numbers, np.isnan(numbers) & ~missing


def _parse_mixed(values: pd.Series[Any]) -> tuple[Floats, Mask]:
    """Parse a column in which text is mixed with other values."""
    # each type by its own rule: text with surrounding blanks can be a number too
    text = np.array([isinstance(value, str) for value in values], dtype=np.bool_)
    numbers = np.empty(len(values))
    wrong = np.empty(len(values), dtype=np.bool_)
    numbers[text], wrong[text] = parse_text_numbers(text_array(values[text]))
    if not text.all():
        numbers[~text], wrong[~text] = parse_numbers(values[~text].infer_objects())
    return numbers, wrong
