"""Times of served rows and their horizons."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import InputError, bad_input
from evenhand.columns import as_pandas

UNITS = {"w": 7 * 24 * 60, "d": 24 * 60, "h": 60, "min": 1}
"""Minutes in the units of a horizon given as text."""

MOST_DAYS = 36525
"""Longest horizon in days, a hundred years: far from the range of dates."""


def as_horizon(value: Any) -> np.timedelta64:
    """Return a horizon, the time from serving at which outcomes are read.

    Parameters
    ----------
    value : float, str, timedelta or None
        Days as a number, or text such as "365d", "12h", "90min" or "2w"; None is no wait.

    Returns
    -------
    numpy.timedelta64
        In microseconds.

    Raises
    ------
    InputError
        If it is anything else, negative, or more than a hundred years.

    Examples
    --------
    >>> bool(as_horizon("365d") == as_horizon(365))
    True
    >>> as_horizon("one year")
    Traceback (most recent call last):
    evenhand._validate.InputError: horizon must be days or text such as '365d', got 'one year'
    """
    days = _days(value)
    if days is None or not 0 <= days <= MOST_DAYS:
        raise bad_input("horizon", "be days or text such as '365d'", repr(value))
    return np.timedelta64(round(days * 86_400_000_000), "us")


def _days(value: Any) -> float | None:
    """Return a horizon in days; None if it cannot be read."""
    if value is None:
        return 0.0
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "D"))
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(w|d|h|min)\s*", value)
        return None if found is None else float(found[1]) * UNITS[found[2]] / UNITS["d"]
    try:
        return None if isinstance(value, bool) or not math.isfinite(value) else float(value)
    except TypeError:
        return None


def as_time(name: str, value: datetime | np.datetime64 | str) -> np.datetime64:
    """Return one time in UTC with microseconds; a time without a zone is in UTC.

    Examples
    --------
    >>> as_time("until", "2026-11-23T12:00:00+01:00")
    np.datetime64('2026-11-23T11:00:00.000000')
    """
    remedy = "write it as 2026-11-23 or 2026-11-23T12:00:00Z"
    try:
        if isinstance(value, np.datetime64):
            return _known(np.datetime64(str(value), "us"))
        time = datetime.fromisoformat(value) if isinstance(value, str) else value
        if time.tzinfo is not None:
            time = time.astimezone(UTC).replace(tzinfo=None)
        return _known(np.datetime64(time, "us"))
    except (AttributeError, TypeError, ValueError) as error:
        raise bad_input(name, "be a date or time", repr(value), remedy) from error


def _known(time: np.datetime64) -> np.datetime64:
    if np.isnat(time):
        raise ValueError("the time is missing")
    return time


def as_times(name: str, values: Any, *, allow_missing: bool = False) -> NDArray[Any]:
    """Return times as an array of datetime64[us] in UTC; times without a zone are in UTC.

    Examples
    --------
    >>> as_times("time", ["2026-03-01T09:00+02:00"])
    array(['2026-03-01T07:00:00.000000'], dtype='datetime64[us]')
    """
    values = as_pandas(values, name)
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        times = values.astype("datetime64[us]")
    else:
        is_read = getattr(getattr(values, "dtype", None), "kind", "") == "M"
        try:
            column = pd.Series(values) if is_read else pd.Series(values, dtype=object)
            read = pd.to_datetime(column, utc=True, format=None if is_read else "ISO8601")
        except (TypeError, ValueError, OverflowError) as error:
            reason = str(error).partition(",")[0]
            raise bad_input(name, "contain dates in ISO format", reason) from error
        times = read.dt.tz_localize(None).to_numpy().astype("datetime64[us]")
    if times.ndim != 1:
        raise bad_input(name, "have 1 dimension", f"shape {times.shape}")
    if not allow_missing and np.isnat(times).any():
        row = int(np.argmax(np.isnat(times)))
        raise InputError(f"{name}[{row}] is missing; give each row its time")
    return times
