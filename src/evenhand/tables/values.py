"""Conversion of column values to numbers, levels, booleans or dates, and of tables to pandas."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import asdict
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from evenhand._validate import LARGEST, Floats, InputError, Ints, Mask, bad_input, coded
from evenhand.tables.cells import (
    as_mask,
    is_text,
    missing_words,
    parse_numbers,
    refuse_row,
    text_array,
)

Kind = Literal["number", "category", "boolean", "date", "other"]
"""Kind of a column; values of kind "other" are passed on unchanged."""

Values = pd.Series  # of any type

_KIND_OF: dict[str, Kind] = {
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

REMEDY = "correct it or leave it empty"

FEW = 64
"""Number of values up to which a loop in Python is faster than a call of pandas."""

TRUE = ("true", "True", "TRUE")
FALSE = ("false", "False", "FALSE")


def kind_of(values: Values[Any]) -> Kind:
    """Return the kind of a column by the types of its values; text is never read as numbers.

    Examples
    --------
    >>> kind_of(pd.Series([1, None])), kind_of(pd.Series(["1", None]))
    ('number', 'category')
    """
    return _KIND_OF.get(pd.api.types.infer_dtype(values, skipna=True), "other")


def missing(values: Values[Any]) -> Mask:
    """Return a mask of the missing values."""
    if is_plain_number(values):
        return np.asarray(np.isnan(values.to_numpy()))
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


def factorized(values: Values[Any], place: str) -> tuple[Ints, list[str]]:
    """Return one code per row, -1 if missing, and the level of each code.

    Two codes may have the same level.
    """
    codes, distinct = coded(values, place)
    return codes, [level(value) for value in distinct]


def few_levels(values: Values[Any]) -> set[str] | None:
    """Return the levels of a short column of text, integers or booleans without missing values.

    None for any other column, which `factorized` can read.

    Examples
    --------
    >>> few_levels(pd.Series(["b", "a", "b"])) == {"a", "b"}, few_levels(pd.Series(["b", None]))
    (True, None)
    """
    if len(values) > FEW:
        return None
    found = values.tolist()
    is_plain = all(type(value) in (str, int, bool) for value in found)
    return set(map(level, found)) if is_plain else None


def numbers(values: Values[Any], place: str, start: int = 0) -> Floats:
    """Convert a column to floats of at most `LARGEST` in size, with NaN for missing values."""
    if is_plain_number(values):
        found = values.to_numpy(dtype=np.float64)
    else:
        found, wrong = parse_numbers(values)
        refuse_row(wrong, values, place, "be a number", REMEDY, start)
    refuse_row(np.isinf(found), values, place, "be finite", REMEDY, start)
    rule = f"lie between -{LARGEST:g} and {LARGEST:g}"
    refuse_row(np.abs(found) > LARGEST, values, place, rule, REMEDY, start)
    return found


def rounded(values: Values[Any], place: str, start: int, dtype: str) -> Values[Any]:
    """Round numbers to a shorter type, "float32" or "float16"."""
    if str(values.dtype) == dtype:
        return values
    with np.errstate(over="ignore"):
        found: Values[Any] = values.astype(dtype)  # type: ignore[call-overload]
    too_large = np.isinf(found.to_numpy()) & np.isfinite(values.to_numpy())
    rule = f"be within the range of {dtype}, the type in training"
    refuse_row(too_large, values, place, rule, REMEDY, start)
    return found


def text_flags(values: Values[Any]) -> tuple[Mask, Mask]:
    """Return masks of the texts that mean true and of those that mean false."""
    text = text_array(values)
    is_true, is_false = (compute.is_in(text, value_set=pa.array(words)) for words in (TRUE, FALSE))
    return as_mask(is_true), as_mask(is_false)


def booleans(values: Values[Any], place: str, start: int = 0) -> Values[Any]:
    """Convert a column to booleans, nullable if some are missing; 0 and 1 are accepted."""
    if is_text(values):
        is_true, is_false = text_flags(values)
        flags, wrong = parse_numbers(values)
        flags = np.where(is_true, 1.0, np.where(is_false, 0.0, flags))
        wrong &= ~is_true & ~is_false
    else:
        flags, wrong = parse_numbers(values)
    is_missing = np.isnan(flags) & ~wrong
    wrong |= ~(np.isin(flags, (0.0, 1.0)) | is_missing)
    refuse_row(wrong, values, place, "be true or false", REMEDY, start)
    if not is_missing.any():
        return pd.Series(flags == 1.0, index=values.index, name=values.name)
    nullable = pd.array(flags == 1.0, dtype="boolean")
    nullable[is_missing] = pd.NA
    return pd.Series(nullable, index=values.index, name=values.name)


def text_dates(values: Values[Any]) -> tuple[Values[Any], Mask]:
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


def dates(values: Values[Any], place: str, start: int = 0, dtype: str | None = None) -> Values[Any]:
    """Convert a column to dates of a type such as "datetime64[us, UTC]"; None keeps date types."""
    if values.dtype.kind == "M" and dtype in (None, str(values.dtype)):
        return values
    inferred = pd.api.types.infer_dtype(values, skipna=True)
    if values.dtype.kind == "M" or inferred in ("date", "datetime", "datetime64"):
        found = pd.Series(moments(values), index=values.index, name=values.name)
    elif inferred in ("string", "empty") or is_text(values):
        found, wrong = text_dates(values)
        refuse_row(wrong, values, place, "be a date", REMEDY, start)
    else:
        refuse_row(~missing(values), values, place, "be a date", REMEDY, start)
        found = pd.Series(pd.NaT, index=values.index, name=values.name).astype("datetime64[us]")
    return found if dtype is None else _dates_as(found, values, place, start, dtype)


def _dates_as(
    found: Values[Any], values: Values[Any], place: str, start: int, dtype: str
) -> Values[Any]:
    """Convert dates, in UTC and without a zone, to a type and its zone."""
    wanted: Any = pd.api.types.pandas_dtype(dtype)
    has_zone = isinstance(wanted, pd.DatetimeTZDtype)
    unit: Any = wanted.unit if has_zone else np.datetime_data(wanted)[0]
    # the range of 64-bit integers in this unit, whose smallest value means a missing date
    least, greatest = (np.datetime64(end, unit) for end in (-(2**63) + 1, 2**63 - 1))
    outside = ((found < least) | (found > greatest)).to_numpy(dtype=bool)
    rule = f"be within the range of {dtype}, the type in training"
    refuse_row(outside, values, place, rule, REMEDY, start)
    plain: Values[Any] = found.astype(f"datetime64[{unit}]")  # type: ignore[call-overload]
    return plain.dt.tz_localize("UTC").astype(wanted) if has_zone else plain


def unpacked(values: Values[Any]) -> Values[Any]:
    """Return the values of a categorical column; other columns are returned unchanged."""
    is_packed = isinstance(values.dtype, pd.CategoricalDtype)
    return values.astype(values.cat.categories.dtype) if is_packed else values


def moments(values: Values[Any]) -> NDArray[np.datetime64]:
    """Return dates in microseconds, in UTC if they have a zone, NaT if missing."""
    plain = unpacked(values)
    if isinstance(plain.dtype, np.dtype) and plain.dtype.kind == "M":
        return np.asarray(plain.to_numpy(dtype="datetime64[us]"))
    if pd.api.types.infer_dtype(plain, skipna=True) == "date":
        # pandas 2 would convert them to nanoseconds, which end in 2262
        objects = plain.astype(object)
        plain = pd.Series(objects.where(objects.notna(), None).to_numpy().astype("datetime64[s]"))
    stamps = pd.to_datetime(plain, utc=True, errors="coerce")
    return np.asarray(stamps.dt.tz_convert(None).to_numpy(dtype="datetime64[us]"))


def days(found: NDArray[np.datetime64]) -> Floats:
    """Return times as days since 1970, NaN if missing."""
    return np.asarray((found - np.datetime64(0, "D")) / np.timedelta64(1, "D"))


def as_numbers(values: Values[Any], kind: Kind) -> Floats:
    """Return numbers, or dates as days since 1970; NaN for missing or invalid values."""
    if kind == "date":
        return days(moments(values))
    if is_plain_number(values):
        return values.to_numpy(dtype=np.float64)
    return parse_numbers(values)[0]


def is_single(values: Values[Any]) -> bool:
    """Whether values are floats of 32 bits or fewer."""
    dtype = unpacked(values).dtype
    return dtype.kind == "f" and getattr(dtype, "itemsize", 8) <= 4


def is_plain_number(values: Values[Any]) -> bool:
    """Whether values are numbers of a NumPy type, which every model reads alike."""
    return is_plain_dtype(values.dtype)


def is_plain_dtype(dtype: Any) -> bool:
    """Whether a type is a NumPy type of numbers."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iuf"


def is_plain_text(values: Values[Any]) -> bool:
    """Whether values are text without empty values, and in object columns without missing ones."""
    # most columns of few rows return here, long before pandas could
    is_few = len(values) <= FEW and (
        isinstance(values.dtype, pd.StringDtype) or values.dtype == object
    )
    if is_few and all(type(value) is str and value for value in values.tolist()):
        return True
    if not is_text(values) or (values == "").any():
        return False
    return isinstance(values.dtype, pd.StringDtype) or not missing(values).any()


def texts(values: Values[Any], place: str) -> Values[Any]:
    """Convert a column to text, where empty text is missing; other values become their levels."""
    if isinstance(values.dtype, pd.StringDtype):
        found = values.astype(object)
    elif is_text(values):
        found = values
    else:
        codes, levels = factorized(values, place)
        # code -1, a missing value, selects the last entry
        shown = np.array([*levels, None], dtype=object)[codes]
        found = pd.Series(shown, index=values.index, name=values.name)
    is_missing = missing(found) | (found == "").to_numpy(dtype=bool)
    if not is_missing.any():
        return found
    return found.where(~is_missing, np.nan)


# --- conversion of tables of any library and of arrays to pandas, and of dataclasses to JSON


def as_pandas(X: Any, name: str = "X") -> Any:
    """Convert a table or series of any library to pandas; return anything else unchanged.

    Parameters
    ----------
    X : object
        Tables and series of pandas are returned unchanged.
    name : str, default "X"
        Name of the parameter for messages.

    Raises
    ------
    InputError
        If the table is lazy, so that its rows are not in memory.
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

    Parameters
    ----------
    X : DataFrame of any library, or array-like of shape (n, p)
        The columns of an array are named x0, x1, ...
    n_rows : int, optional
        Required number of rows.
    name : str, default "X"
        Name of the parameter for messages.
    per : str, default "row of pit"
        What one row of the table corresponds to, for messages.

    Raises
    ------
    InputError
        If `X` is neither a table nor two-dimensional, has another number of rows, or has two
        columns of the same name.

    Examples
    --------
    >>> as_table([[1.0, 2.0]]).columns.tolist()
    ['x0', 'x1']
    """
    table = as_pandas(X, name)
    if not isinstance(table, pd.DataFrame):
        array = np.asarray(X)
        if array.ndim != 2:
            got = f"shape {array.shape}"
            raise bad_input(name, "be a table or an array of shape (n, p)", got)
        table = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])], copy=False)
        # columns of numbers in an object array become numeric, as they would be in a table
        table = table.infer_objects() if array.dtype == object else table
    if n_rows is not None and len(table) != n_rows:
        raise bad_input(name, f"have one row per {per} ({n_rows})", f"{len(table)} rows")
    refuse_repeated_names(table, name)
    return table


def refuse_repeated_names(X: Any, name: str = "X") -> None:
    """Raise InputError if two columns of a table have the same name, as text."""
    twice, count = Counter(map(str, X.columns)).most_common(1)[0] if len(X.columns) else ("", 1)
    if count > 1:
        raise InputError(f"{name}: column name {twice!r} appears {count} times; rename or drop one")


def as_json(learned: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON values, with tuples as lists."""
    fields = asdict(learned)
    return {key: list(one) if isinstance(one, tuple) else one for key, one in fields.items()}
