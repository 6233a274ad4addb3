"""Values of a column as numbers, levels, booleans or dates, whatever a file format or a caller made of them."""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from evenhand._checks import Floats, coded
from evenhand.tables import as_mask, is_text, missing_words, parse_numbers, refuse_row, text_array

Kind = Literal["number", "category", "boolean", "date", "other"]
"""What a column holds; "other" is passed on as it is."""

Mask = NDArray[np.bool_]
Values = pd.Series  # of any type

# What pandas.api.types.infer_dtype says, to kinds.
_KIND_OF: dict[str, Kind] = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal"), "number"),
    **dict.fromkeys(("string", "categorical", "empty", "time", "period", "interval"), "category"),
    **dict.fromkeys(("datetime64", "datetime", "date"), "date"),
    "boolean": "boolean",
}

ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?( ?(Z|[+-][0-9]{2}(:?[0-9]{2})?))?)?$"
REMEDY = "correct it or leave it empty"
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")


def kind_of(values: Values[Any]) -> Kind:
    """Return the kind of a column by the types of its values; text stays text, whatever it looks like.

    Examples
    --------
    >>> kind_of(pd.Series([1, None])), kind_of(pd.Series(["1", None]))
    ('number', 'category')
    """
    return _KIND_OF.get(pd.api.types.infer_dtype(values, skipna=True), "other")


def missing(values: Values[Any]) -> Mask:
    """Return which values are missing."""
    return values.isna().to_numpy(dtype=bool)


def level(value: Any) -> str:
    """Return a value as the text that its level is called by: 1, 1.0 and "1" are one level, a midnight is its date.

    Examples
    --------
    >>> level(2.0), level("2.0"), level(pd.Timestamp("2020-01-31"))
    ('2', '2.0', '2020-01-31')
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, dt.datetime):
        stamp = pd.Timestamp(value)
        return stamp.date().isoformat() if stamp == stamp.normalize() else str(stamp)
    return str(value)


def factorized(values: Values[Any], place: str) -> tuple[NDArray[np.intp], list[str]]:
    """Return a code per row, -1 where missing, and the level of each code; two codes may have one level."""
    codes, distinct = coded(values, place)
    return codes, [level(value) for value in distinct]


def numbers(values: Values[Any], place: str, start: int = 0) -> Floats:
    """Return a column as floats: NaN where missing, finite elsewhere."""
    found, wrong = parse_numbers(values)
    refuse_row(wrong, values, place, "hold a number", REMEDY, start)
    refuse_row(np.isinf(found), values, place, "be finite", REMEDY, start)
    return found


def text_flags(values: Values[Any]) -> tuple[Mask, Mask]:
    """Return which texts are true, and which are false."""
    text = text_array(values)
    return tuple(as_mask(compute.is_in(text, value_set=pa.array(words))) for words in (TRUE, FALSE))  # type: ignore[return-value]


def booleans(values: Values[Any], place: str, start: int = 0) -> Values[Any]:
    """Return a column as booleans, with missing ones if there are any; 0 and 1 are booleans too."""
    if is_text(values):
        is_true, is_false = text_flags(values)
        flags, wrong = parse_numbers(values)
        flags = np.where(is_true, 1.0, np.where(is_false, 0.0, flags))
        wrong &= ~is_true & ~is_false
    else:
        flags, wrong = parse_numbers(values)
    is_missing = np.isnan(flags) & ~wrong
    refuse_row(wrong | ~(np.isin(flags, (0.0, 1.0)) | is_missing), values, place, "be true or false", REMEDY, start)
    if not is_missing.any():
        return pd.Series(flags == 1.0, index=values.index, name=values.name)
    held = pd.array(flags == 1.0, dtype="boolean")
    held[is_missing] = pd.NA
    return pd.Series(held, index=values.index, name=values.name)


def text_dates(values: Values[Any]) -> tuple[Values[Any], Mask]:
    """Return ISO dates that texts state, in UTC and without a zone, and which texts are neither date nor missing."""
    text = text_array(values)
    is_iso = as_mask(compute.match_substring_regex(text, ISO))
    plain = pd.Series(np.where(is_iso, text.to_numpy(zero_copy_only=False), None), index=values.index, dtype=object)
    stamps = pd.to_datetime(plain, utc=True, errors="coerce", format="ISO8601").dt.tz_localize(None)
    there = as_mask(compute.is_valid(text)) & ~missing_words(text)
    return stamps.astype("datetime64[us]"), there & missing(stamps)


def dates(values: Values[Any], place: str, start: int = 0) -> Values[Any]:
    """Return a column as dates; those of a typed column stay as they are."""
    if values.dtype.kind == "M":
        return values
    held = pd.api.types.infer_dtype(values, skipna=True)
    if held in ("date", "datetime", "datetime64"):
        return values
    if held in ("string", "empty") or is_text(values):
        found, wrong = text_dates(values)
        refuse_row(wrong, values, place, "hold a date", REMEDY, start)
        return found
    refuse_row(~missing(values), values, place, "hold a date", REMEDY, start)
    return pd.Series(pd.NaT, index=values.index, name=values.name)


def moments(values: Values[Any]) -> NDArray[np.datetime64]:
    """Return dates in microseconds, in UTC where they have a zone, NaT where missing."""
    plain = values.astype(object) if isinstance(values.dtype, pd.CategoricalDtype) else values
    if pd.api.types.infer_dtype(plain, skipna=True) == "date":  # pandas 2 reads them as nanoseconds, until 2262
        plain = pd.Series(plain.where(plain.notna(), None).to_numpy().astype("datetime64[s]"))
    stamps = pd.to_datetime(plain, utc=True, errors="coerce")
    return np.asarray(stamps.dt.tz_convert(None).to_numpy(dtype="datetime64[us]"))


def days(found: NDArray[np.datetime64]) -> Floats:
    """Return moments as days since 1970, NaN where missing."""
    return np.asarray((found - np.datetime64(0, "D")) / np.timedelta64(1, "D"))


def is_plain_text(values: Values[Any]) -> bool:
    """Whether values are text without empty ones; in a column of objects, without missing ones as well."""
    if not is_text(values) or (values == "").any():
        return False
    return isinstance(values.dtype, pd.StringDtype) or not missing(values).any()


def texts(values: Values[Any], place: str) -> Values[Any]:
    """Return a column as text, or missing where empty: numbers, dates and booleans as their levels are called."""
    if isinstance(values.dtype, pd.StringDtype):
        found = values.astype(object)
    elif is_text(values):
        found = values
    else:
        codes, levels = factorized(values, place)
        found = pd.Series(np.array([*levels, None], dtype=object)[codes], index=values.index, name=values.name)
    is_missing = missing(found) | (found == "").to_numpy(dtype=bool)
    if not is_missing.any():
        return found
    return found.where(~is_missing, np.nan)
