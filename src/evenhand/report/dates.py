"""Axes of dates with ticks at round dates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from evenhand.report.charts import Axis, nice_ticks

TICKS = 7
"""Most ticks of an axis of dates, about."""


def time_axis(low: float, high: float, title: str = "") -> Axis:
    """Return an axis from one day to another, counted from 1970, with ticks at round dates.

    Examples
    --------
    >>> axis = time_axis(20_454.0, 20_818.0)  # 1 January to 31 December 2026
    >>> [axis.show(tick) for tick in axis.ticks]
    ['2026', 'Mar', 'May', 'Jul', 'Sep', 'Nov']
    """
    if high <= low:
        low, high = low - 0.5, high + 0.5
    ticks, pattern = _round_dates(low, high)
    return Axis(low, high, title, ticks, lambda day: _written(day, pattern))


def _round_dates(low: float, high: float) -> tuple[list[float], str]:
    """Return round dates between two days, at most about `TICKS`, and how to write them."""
    span = high - low
    if span < 2:
        return nice_ticks(low, high, 4), "time"
    if span <= 7 * TICKS:
        step = max(1, math.ceil(span / TICKS))
        first = math.ceil(low)
        return [float(day) for day in range(first, math.floor(high) + 1, step)], "day"
    months = next((step for step in (1, 2, 3, 6, 12, 24, 60) if span / (30.4 * step) <= TICKS), 120)
    return list(_months(low, high, months)), "month" if months < 12 else "year"


def _months(low: float, high: float, step: int) -> Iterable[float]:
    start = _date(low)
    month = start.year * 12 + start.month - 1
    month += -month % step
    while (day := _day(datetime(month // 12, month % 12 + 1, 1))) <= high:
        if day >= low:
            yield day
        month += step


def _date(day: float) -> datetime:
    return datetime(1970, 1, 1) + timedelta(days=day)


def _day(date: datetime) -> float:
    return (date - datetime(1970, 1, 1)).total_seconds() / 86400


def _written(day: float, pattern: str) -> str:
    # half a minute is added against rounding errors of days
    date = _date(day) + timedelta(seconds=30)
    if pattern == "time":
        return f"{date:%H:%M}"
    if pattern == "day":
        return f"{date.day} {date:%b}"
    # the year once, in January and wherever ticks are far apart
    return f"{date.year}" if pattern == "year" or date.month == 1 else f"{date:%b}"
