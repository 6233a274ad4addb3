"""Cells of tables: numbers in text, missing values, ids, and errors that name the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from evenhand._format import count
from evenhand._ids import check_id, id_text
from evenhand._validate import Floats, InputError, Mask, bad_input, check_column, coding_of, short

ISO_DATES = "write dates as YYYY-MM-DD"
"""What to do with dates that are not read."""

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


def parse_dates(values: pd.Series[Any]) -> tuple[NDArray[np.datetime64], Mask] | None:
    """Return texts and objects as dates, in UTC, or None if most of them are numbers.

    Returns
    -------
    dates : ndarray of datetime64, shape (n,)
        NaT where there is no date.
    wrong : ndarray of bool, shape (n,)
        Values that are neither dates such as 2024-12-31 nor missing.

    Examples
    --------
    >>> parse_dates(pd.Series(["2024-12-31", "31/12/2024", None]))[1]
    array([False,  True, False])
    >>> parse_dates(pd.Series(["0.5", "unknown", "2"])) is None
    True
    """
    is_there = values.notna().to_numpy()
    _, no_numbers = parse_numbers(values)
    if 2 * no_numbers.sum() < is_there.sum():
        return None
    # days first and months first look the same, so neither is guessed
    stamps = pd.to_datetime(values, format="ISO8601", utc=True, errors="coerce")
    dates = stamps.to_numpy("M8[ns]")
    return dates, np.asarray(np.isnat(dates) & is_there)


# --- columns of tables as numbers and ids, and row blocks


def column_of(table: pd.DataFrame, column: str, source: str) -> pd.Series[Any]:
    """Return one column by name; InputError lists the columns and suggests similar names."""
    names = [str(name) for name in table.columns]
    return table.iloc[:, names.index(check_column(str(column), names, source))]


def number_column(
    table: pd.DataFrame, column: str, *, source: str, start: int = 0, option: str = ""
) -> Floats:
    """Return a column as finite float64 numbers, shape (n_samples,).

    Text is accepted if every cell is a number; booleans become 0 and 1. `source` is the file name
    and `start` the number, from 0, of the table's first row within the file, and `option` the
    option that drops rows with missing values, all for messages. Raises InputError if there is no
    such column, or a value is text, a date, missing or infinite.

    Examples
    --------
    >>> number_column(pd.DataFrame({"loan": [100, " 5"]}), "loan", source="a.csv")
    array([100.,   5.])
    """
    values = column_of(table, column, source)
    place = f"{source}: column {column!r}"
    remedy = "correct it or drop the row"
    if values.dtype.kind in "mM":
        remedy = "convert dates to numbers, such as days, first"
        raise bad_input(place, "contain numbers", str(values.dtype), remedy)
    numbers, wrong = parse_numbers(values)
    # words for an event or a score have a code; other words are mistakes of single rows
    coding = coding_of(values.tolist()) if wrong.all() else None
    refuse_row(wrong, values, place, "be a number", coding or remedy, start)
    missing = np.isnan(numbers)
    if missing.any():
        n = int(missing.sum())
        first = start + int(np.argmax(missing)) + 1
        those = "that row" if n == 1 else "those rows"
        raise InputError(
            f"{place} has {count(n, 'missing value')}, the first in row {first}; drop {those}"
            + f" with {option}" * bool(option)
        )
    refuse_row(np.isinf(numbers), values, place, "be finite", remedy, start)
    return numbers


def id_column(table: pd.DataFrame, column: str, *, source: str, start: int = 0) -> list[str | int]:
    """Return a column of ids unchanged. Ids are text or whole numbers.

    `source` is the file name and `start` the number, from 0, of the table's first row within the
    file, both for messages. Raises InputError if there is no such column, or an id is missing,
    empty, a float or of another type, or contains an invisible character, which would make it look
    like another id.

    Examples
    --------
    >>> id_column(pd.DataFrame({"id": ["007", "008"]}), "id", source="loans.csv")
    ['007', '008']
    """
    values = column_of(table, column, source)
    place = f"{source}: column {column!r}, row "
    remedy = "write ids as text, as decimal numbers lose digits"
    ids: list[str | int] = []
    cells = zip(values.tolist(), values.isna(), strict=True)
    for row, (value, missing) in enumerate(cells, start=start + 1):
        if missing or value == "":
            raise InputError(f"{place}{row} has no id; fill it or drop the row")
        if isinstance(value, bool) or not isinstance(value, str | int | np.integer):
            raise bad_input(f"{place}{row}", "be text or a whole number", short(value), remedy)
        ids.append(value if isinstance(value, str) else int(value))
        check_id(ids[-1], f"{place}{row}")
    return ids


def refuse_repeated(ids: Sequence[str | int], column: str, *, source: str) -> None:
    """Raise InputError if an id appears twice.

    Examples
    --------
    >>> refuse_repeated(["a", "1", 1], "id", source="loans.csv")
    Traceback (most recent call last):
    evenhand._validate.InputError: loans.csv: column 'id', row 3 repeats the id 1 of row 2; ...
    """
    first: dict[str, int] = {}
    for row, value in enumerate(ids, start=1):
        # as text: the ids 1 and "1" mean the same person
        before = first.setdefault(id_text(value), row)
        if before != row:
            raise repeated_id(source, column, row, value, f"row {before}")


def repeated_id(source: str, column: str, row: int, value: str | int, first: str) -> InputError:
    """Return the error for row `row` of `source`, from 1, which repeats an id."""
    remedy = (
        "rows of one person are not independent: name people who have several rows with --person"
        f" {column}"
    )
    return InputError(
        f"{source}: column {column!r}, row {row} repeats the id {value} of {first}; {remedy}"
    )


def take_rows(table: Any, rows: Any) -> Any:
    """Select rows by number or slice, from a DataFrame of any library or an array.

    Examples
    --------
    >>> take_rows(pd.DataFrame({"id": [7, 8, 9]}, index=[2, 1, 0]), [0, 2])["id"].tolist()
    [7, 9]
    """
    # square brackets would select columns of a pandas table
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def row_blocks(n: int, size: int) -> list[slice]:
    """Return slices of at most `size` rows that together cover n rows.

    Examples
    --------
    >>> row_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
