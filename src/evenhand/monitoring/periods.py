"""Calendar periods of a watch, in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Period = Literal["hour", "day", "week", "month"]
"""Calendar unit in which a watch counts time; weeks begin on Monday."""

PERIODS: tuple[Period, ...] = ("hour", "day", "week", "month")

UNITS: dict[Period, str] = {"hour": "h", "day": "D", "week": "D", "month": "M"}

DAYS_TO_MONDAY = 3
"""Days from Monday, 29 December 1969, to the first day of 1970, from which numpy counts days."""


@dataclass(frozen=True)
class Calendar:
    """Numbers of calendar periods.

    Parameters
    ----------
    period : {"hour", "day", "week", "month"}
        Calendar unit.

    Examples
    --------
    >>> week = Calendar("week")
    >>> week.numbers(np.array(["2026-03-01T23:00", "2026-03-02T00:00"], dtype="M8[us]"))
    array([2930, 2931])
    >>> week.start(2931)
    '2026-03-02'
    """

    period: Period

    def numbers(self, times: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of the period of each time, counted from 1970."""
        counted = times.astype(f"datetime64[{UNITS[self.period]}]").astype(np.int64)
        if self.period == "week":
            return np.asarray((counted + DAYS_TO_MONDAY) // 7, dtype=np.int64)
        return np.asarray(counted, dtype=np.int64)

    def start(self, number: int) -> str:
        """Return the start of a period as an ISO date; of an hour with its time in UTC."""
        if self.period == "week":
            number = 7 * number - DAYS_TO_MONDAY
        first = np.datetime64(number, UNITS[self.period])  # type: ignore[call-overload]
        unit = "m" if self.period == "hour" else "D"
        return str(first.astype(f"datetime64[{unit}]"))
