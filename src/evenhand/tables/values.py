"""Values of tables: cells in text, ids, and columns as numbers, levels, booleans or dates."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from evenhand._format import count
from evenhand._validate import (
    LARGEST,
    REMEDY,
    Floats,
    InputError,
    Mask,
    bad_input,
    check_column,
    coded,
    coding_of,
    place_of_rows,
    short,
)
from evenhand.draws import check_id, id_text

Series: TypeAlias = "pd.Series[Any]"
"""Column of any type."""

# --- cells: numbers and dates in text, missing values, ids

# in a column of text they are ordinary values
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
"""Texts that mean a missing value in columns of numbers, booleans and dates."""

# also infinite ones, which number columns refuse: clearer than reading the column as text
NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)$"


def refuse_row(wrong: Mask, values: Any, place: str, rule: str, remedy: str = REMEDY) -> None:
    """Raise InputError for the first row of a column or an array marked as wrong, with its value.

    Rows are counted as `place_of_rows` counts them.
    """
    if wrong.any():
        row = np.argmax(wrong)
        value = take_rows(values, row)
        got = f"{value:.10g}" if isinstance(value, float | np.floating) else short(value)
        raise bad_input(f"{place}, row {place_of_rows()[1] + row + 1}", rule, got, remedy)


def is_text(values: Series) -> bool:
    """Whether all non-missing values are text.

    Examples
    --------
    >>> is_text(pd.Series(["a", None])), is_text(pd.Series(["a", 1]))
    (True, False)
    """
    if isinstance(values.dtype, pd.StringDtype):
        return True
    return values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) == "string"


def text_array(values: Series) -> pa.Array:
    """Return text as an Arrow array without surrounding whitespace; null if missing or empty."""
    text = pa.array(values, type=pa.string(), from_pandas=True)
    # a cell of blanks looks empty and is treated so
    trimmed = compute.utf8_trim_whitespace(
        text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    )
    return compute.if_else(compute.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)


def as_mask(flags: pa.Array) -> Mask:
    """Return an Arrow array of booleans as a NumPy array, with false for null."""
    return compute.fill_null(flags, fill_value=False).to_numpy(zero_copy_only=False)


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
    is_number = as_mask(compute.match_substring_regex(text, NUMBER))
    # Arrow does not parse a plus sign
    unsigned = compute.replace_substring_regex(text, r"^\+", "")
    chosen = compute.if_else(pa.array(is_number), unsigned, pa.scalar(None, pa.string()))
    numbers = np.array(chosen.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
    return numbers, as_mask(compute.is_valid(text)) & ~is_number & ~missing_words(text)


def parse_numbers(values: Series) -> tuple[Floats, Mask]:
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
    # text among other values is read by its own rule: it may have surrounding blanks
    text = np.array([isinstance(value, str) for value in plain] if plain.dtype == object else False)
    if text.any():
        numbers, wrong = np.empty(len(plain)), np.empty(len(plain), dtype=bool)
        numbers[text], wrong[text] = parse_text_numbers(text_array(plain[text]))
        numbers[~text], wrong[~text] = parse_numbers(plain[~text].infer_objects())
        return numbers, wrong
    numbers = pd.to_numeric(plain, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    return numbers, np.isnan(numbers) & ~missing


# --- columns of tables as numbers and ids, and row blocks


def column_of(table: pd.DataFrame, column: str, source: str) -> Series:
    """Return one column by name; InputError lists the columns and suggests similar names."""
    names = [str(name) for name in table.columns]
    return table.iloc[:, names.index(check_column(str(column), names, source))]


def number_column(table: pd.DataFrame, column: str, *, source: str, option: str = "") -> Floats:
    """Return a column as finite float64 numbers, shape (n_samples,).

    Text is accepted if every cell is a number; booleans become 0 and 1. For messages, `option` is
    the option that drops rows with missing values. Raises InputError if there is no such column, or
    a value is text, a date, missing or infinite.
    """
    values = column_of(table, column, source)
    place = f"{source}: column {column!r}"
    found = numbers(values, place)
    missing = np.isnan(found)
    if missing.any():
        n = missing.sum()
        first = place_of_rows()[1] + np.argmax(missing) + 1
        raise InputError(
            f"{place} has {count(n, 'missing value')}, the first in row {first}; drop such rows"
            + f" with {option}" * bool(option)
        )
    return found


def id_column(table: pd.DataFrame, column: str, *, source: str) -> list[str | int]:
    """Return a column of ids, text or whole numbers, unchanged.

    Raises InputError if there is no such column, or an id is missing, empty, a float or of another
    type, or contains an invisible character, which would make it look like another id.
    """
    values = column_of(table, column, source)
    place = f"{source}: column {column!r}, row "
    ids: list[str | int] = []
    cells = zip(values.tolist(), values.isna(), strict=True)
    for row, (value, missing) in enumerate(cells, start=place_of_rows()[1] + 1):
        if missing or value == "":
            raise InputError(f"{place}{row} has no id; fill it or drop the row")
        if isinstance(value, bool) or not isinstance(value, str | int | np.integer):
            remedy = "write ids as text, as decimal numbers lose digits"
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
            raise repeated_id(source, column, f"row {row}", value, f"row {before}")


def repeated_id(source: str, column: str, again: str, value: str | int, first: str) -> InputError:
    """Return the error for a row of `source` that repeats the id of its row `first`."""
    return InputError(
        f"{source}: column {column!r}, {again} repeats the id {value} of {first}; rows of one"
        " person are not independent: keep one row of each, or use one of each with --person"
        f" {column} in audit, compare, fit or randomize"
    )


def take_rows(table: Any, rows: Any) -> Any:
    """Select rows by number or slice, from a DataFrame of any library or an array; None of None.

    Examples
    --------
    >>> take_rows(pd.DataFrame({"id": [7, 8, 9]}, index=[2, 1, 0]), [0, 2])["id"].tolist()
    [7, 9]
    >>> take_rows(pa.table({"id": [7, 8, 9]}), slice(1, 3))["id"].to_pylist()
    [8, 9]
    """
    if table is None:
        return None
    # square brackets would select columns of the tables of pandas and Arrow
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    known = nw.from_native(table, eager_only=True, pass_through=True)
    return nw.to_native(known[rows], pass_through=True)


def row_blocks(n: int, size: int) -> list[slice]:
    """Return slices of at most `size` rows that together cover n rows."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


# --- columns as numbers, levels, booleans or dates, and tables of pandas

ColumnKind = Literal["number", "category", "boolean", "date", "other"]
"""Kind of a column; values of kind "other" are passed on unchanged."""

ORDERED = ("number", "date")
"""Kinds whose values have an order, also in columns of objects, as databases return them."""

_KIND_OF: dict[str, ColumnKind] = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal"), "number"),
    **dict.fromkeys(("string", "categorical", "empty", "time", "period", "interval"), "category"),
    **dict.fromkeys(("datetime64", "datetime", "date"), "date"),
    "boolean": "boolean",
}
"""Kinds by the output of pandas.api.types.infer_dtype."""

ISO = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?("
    r" ?(Z|[+-][0-9]{2}(:?[0-9]{2})?))?)?$"
)
"""Dates in ISO form, with or without a time and a zone."""

FEW = 64
"""Number of values up to which a loop in Python is faster than a call of pandas."""

BOOLEANS = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
"""Texts that are read as booleans."""

FLAGS = {
    **BOOLEANS,
    **{"1": 1.0, "1.0": 1.0, "0": 0.0, "0.0": 0.0},
    **dict.fromkeys(("", *MISSING_WORDS), np.nan),
}
"""Values of a column of booleans, by their levels."""


def column_kind(values: Series) -> ColumnKind:
    """Return the kind of a column by the types of its values; text is never read as numbers.

    Examples
    --------
    >>> column_kind(pd.Series([1, None])), column_kind(pd.Series(["1", None]))
    ('number', 'category')
    """
    return _KIND_OF.get(pd.api.types.infer_dtype(values, skipna=True), "other")


def missing(values: Series) -> Mask:
    """Return a mask of the missing values."""
    return values.isna().to_numpy(dtype=bool)


def level(value: Any) -> str:
    """Return the level of a value, as text.

    1, 1.0 and "1" are the same level, and the level of a midnight is its date.

    Examples
    --------
    >>> level(2.0), level("2.0"), level(pd.Timestamp("2020-01-31"))
    ('2', '2.0', '2020-01-31')
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, dt.datetime) and value is not pd.NaT:
        stamp = pd.Timestamp(value)
        return stamp.date().isoformat() if stamp == stamp.normalize() else str(stamp)
    return str(value)


def of_levels(
    values: Series, place: str, function: Callable[[str], Any], absent: Any, dtype: Any = int
) -> NDArray[Any]:
    """Return a function of the level of each row, with `absent` for missing values.

    The function is called once for each distinct value.

    Examples
    --------
    >>> of_levels(pd.Series([10, None, 7]), "column 'x'", len, 0)
    array([2, 0, 1])
    """
    codes, distinct = coded(values, place)
    # code -1, a missing value, selects the last entry
    return np.array([*(function(level(value)) for value in distinct), absent], dtype=dtype)[codes]


def level_counts(values: Series, place: str) -> Counter[str | None]:
    """Count the levels of a column, and its missing values as None.

    Examples
    --------
    >>> level_counts(pd.Series(["1", 1.0, None, "b"], dtype=object), "column 'x'")
    Counter({'1': 2, None: 1, 'b': 1})
    """
    codes, distinct = coded(values, place)
    found = Counter[str | None]()
    # code -1 is a missing value, and several codes may have one level
    rows = np.bincount(codes + 1, minlength=len(distinct) + 1)
    for one, n in zip([None, *map(level, distinct)], rows.tolist(), strict=True):
        found[one] += n
    return found


def numbers(values: Series, place: str) -> Floats:
    """Convert a column to floats of at most `LARGEST` in size, with NaN for missing values."""
    found, wrong = parse_numbers(values)
    # words for an event or a score have a code; other words are mistakes of single rows
    first = str(values.iloc[np.argmax(wrong)]) if wrong.any() else ""
    remedy = REMEDY
    if re.fullmatch(r"[-+0-9.]*,[0-9.,]+", first):
        remedy = "write numbers with a decimal point and no other separators, such as 1234.5"
    elif re.fullmatch(r"[-+0-9.,]+%", first):
        remedy = "write percentages as fractions, such as 0.48 for 48%"
    elif wrong.any() and np.isnan(found).all():
        remedy = coding_of(values[wrong].tolist()) or "convert it to numbers, such as dates to days"
    refuse_row(wrong, values, place, "be a number", remedy)
    refuse_row(np.abs(found) > LARGEST, values, place, f"lie between -{LARGEST:g} and {LARGEST:g}")
    return found


def rounded(values: Series, place: str, dtype: str) -> Series:
    """Round numbers to a shorter type, "float32" or "float16"."""
    if str(values.dtype) == dtype:
        return values
    with np.errstate(over="ignore"):
        found: Series = values.astype(dtype)  # type: ignore[call-overload]
    too_large = np.isinf(found.to_numpy()) & np.isfinite(values.to_numpy())
    refuse_row(too_large, values, place, f"be within the range of {dtype}, the type in training")
    return found


def booleans(values: Series, place: str) -> Series:
    """Convert a column to booleans, nullable if some are missing; 0 and 1 are accepted."""
    # 2 is neither
    flags = of_levels(values, place, lambda one: FLAGS.get(one.strip(), 2.0), np.nan, np.float64)
    refuse_row(flags == 2, values, place, "be true or false")
    is_missing = np.isnan(flags)
    found: Any = flags == 1.0
    if is_missing.any():
        found = pd.arrays.BooleanArray(found, is_missing)
    return pd.Series(found, index=values.index, name=values.name)


def text_dates(values: Series) -> tuple[Series, Mask]:
    """Parse texts as ISO dates, in UTC and without a zone; return also a mask of invalid texts.

    A text is invalid if it is neither a date nor a missing value.
    """
    text = text_array(values)
    is_iso = as_mask(compute.match_substring_regex(text, ISO))
    # pandas would also read 2020 and 20200131 as ISO dates, but they are numbers here
    iso = np.where(is_iso, text.to_numpy(zero_copy_only=False), None)
    plain = pd.Series(iso, index=values.index, dtype=object)
    stamps = pd.to_datetime(plain, utc=True, errors="coerce", format="ISO8601").dt.tz_localize(None)
    there = as_mask(compute.is_valid(text)) & ~missing_words(text)
    return stamps.astype("datetime64[us]"), there & missing(stamps)


def dates(values: Series, place: str, dtype: str | None = None) -> Series:
    """Convert a column to dates of a type such as "datetime64[us, UTC]"; None keeps date types."""
    if values.dtype.kind == "M" and dtype in (None, str(values.dtype)):
        return values
    if column_kind(values) == "date":
        found = pd.Series(moments(values), index=values.index, name=values.name)
    else:
        text = values if is_text(values) else values.where(missing(values), "?").astype(object)
        found, wrong = text_dates(text)
        refuse_row(wrong, values, place, "be a date", "write dates as YYYY-MM-DD")
    return found if dtype is None else _dates_as(found, values, place, dtype)


def _dates_as(found: Series, values: Series, place: str, dtype: str) -> Series:
    """Convert dates, in UTC and without a zone, to a type and its zone."""
    wanted: Any = pd.api.types.pandas_dtype(dtype)
    has_zone = isinstance(wanted, pd.DatetimeTZDtype)
    unit: Any = wanted.unit if has_zone else np.datetime_data(wanted)[0]
    # the range of 64-bit integers in this unit, whose smallest value means a missing date
    least, greatest = (np.datetime64(end, unit) for end in (-(2**63) + 1, 2**63 - 1))
    outside = ((found < least) | (found > greatest)).to_numpy(dtype=bool)
    refuse_row(outside, values, place, f"be within the range of {dtype}, the type in training")
    plain: Series = found.astype(f"datetime64[{unit}]")  # type: ignore[call-overload]
    return plain.dt.tz_localize("UTC").astype(wanted) if has_zone else plain


def unpacked(values: Series) -> Series:
    """Return the values of a categorical column; other columns are returned unchanged."""
    is_packed = isinstance(values.dtype, pd.CategoricalDtype)
    return values.astype(values.cat.categories.dtype) if is_packed else values


def moments(values: Series) -> NDArray[np.datetime64]:
    """Return dates in microseconds, in UTC if they have a zone, NaT if missing."""
    plain = unpacked(values)
    if isinstance(plain.dtype, np.dtype) and plain.dtype.kind == "M":
        return plain.to_numpy(dtype="datetime64[us]")
    if pd.api.types.infer_dtype(plain, skipna=True) == "date":
        # pandas 2 would convert them to nanoseconds, which end in 2262
        objects = plain.astype(object)
        plain = pd.Series(objects.where(objects.notna(), None).to_numpy().astype("datetime64[s]"))
    stamps = pd.to_datetime(plain, utc=True, errors="coerce")
    return stamps.dt.tz_convert(None).to_numpy(dtype="datetime64[us]")


def days(found: NDArray[np.datetime64]) -> Floats:
    """Return times as days since 1970, NaN if missing."""
    return (found - np.datetime64(0, "D")) / np.timedelta64(1, "D")


def as_numbers(values: Series, kind: ColumnKind) -> Floats:
    """Return numbers, or dates as days since 1970; NaN if missing, invalid or of another kind."""
    if kind not in ORDERED:
        return np.full(len(values), np.nan)
    return days(moments(values)) if kind == "date" else parse_numbers(values)[0]


def is_plain_number(dtype: Any) -> bool:
    """Whether a type is a NumPy type of numbers, which every model reads alike."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iuf"


def is_plain_text(values: Series) -> bool:
    """Whether a column of text has neither missing nor empty values."""
    is_typed = isinstance(values.dtype, pd.StringDtype) or values.dtype == object
    return is_typed and all(type(value) is str and value for value in values.tolist())


# --- conversion of tables of any library and of arrays to pandas


def as_pandas(X: Any, name: str = "X") -> Any:
    """Convert a table or series of any library to pandas; return anything else unchanged.

    Raises InputError if the table is lazy, so that its rows are not in memory.
    """
    # narwhals would refuse pandas tables with repeated names, with another message
    if isinstance(X, pd.DataFrame | pd.Series):
        return X
    native = nw.from_native(X, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise bad_input(name, "be in memory", type(X).__name__, "collect its rows first")
    return native.to_pandas() if isinstance(native, nw.DataFrame | nw.Series) else X


def as_table(
    X: Any, n_rows: int | None = None, *, name: str = "X", per: str = "row of pit"
) -> pd.DataFrame:
    """Convert a table of any library, or an array of shape (n, p), to a pandas DataFrame.

    The columns of an array are named x0, x1, ... A message about another number of rows names what
    each row belongs to (`per`).
    """
    table = as_pandas(X, name)
    if not isinstance(table, pd.DataFrame):
        array = np.asarray(X)
        if array.ndim != 2:
            raise bad_input(name, "be a table or an array of shape (n, p)", f"shape {array.shape}")
        table = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])], copy=False)
    if n_rows is not None and len(table) != n_rows:
        raise bad_input(name, f"have one row per {per} ({n_rows})", f"{len(table)} rows")
    refuse_repeated_names(table.columns, name)
    return table


def refuse_repeated_names(
    names: Iterable[Any], place: str = "X", remedy: str = "rename or drop one"
) -> None:
    """Raise InputError if two columns of a table have the same name, as text."""
    for name, n in Counter(map(str, names)).most_common(1):
        if n > 1:
            raise InputError(f"{place}: column name {name!r} appears {n} times; {remedy}")
