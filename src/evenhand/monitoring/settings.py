"""Settings of a watch, and the checks of a state that is resumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import InputError, bad_input, check_choice, check_fraction
from evenhand.columns import EVERYONE, check_names
from evenhand.monitoring.rows import as_horizon

# --- calendar periods of a watch, in UTC

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


# --- settings of a watch, and the checks of a state that is resumed

STATE_SCHEMA = "evenhand.watch-state/1"
"""Name and version of the layout of states."""

MOST = 2.0**62
"""Limit of the numbers of a state: more are no counts of rows, and no evidence."""


@dataclass(frozen=True)
class Settings:
    """Settings of a watch, fixed before its first row.

    Parameters
    ----------
    groups : tuple of str
        Columns that define named groups.
    tolerance : float
        Largest error of a named group.
    false_alarm : float
        Probability that the watch ever raises a false alarm.
    period : {"hour", "day", "week", "month"}
        Calendar unit.
    horizon_days : float or None
        Days from serving at which outcomes are read; None if rows have no horizon.
    """

    groups: tuple[str, ...]
    tolerance: float
    false_alarm: float
    period: Period
    horizon_days: float | None

    @classmethod
    def checked(
        cls,
        groups: Iterable[str],
        tolerance: float,
        false_alarm: float,
        period: str,
        horizon: float | str | timedelta | None,
    ) -> Self:
        """Return checked settings; InputError if one is outside its range."""
        if isinstance(groups, str):
            rule = "be a list of column names"
            raise bad_input("groups", rule, repr(groups), f"write [{groups!r}]")
        names = tuple(str(name) for name in check_names(groups))
        for name in names:
            if names.count(name) > 1:
                raise bad_input("groups", "name each column once", f"{name!r} twice")
            if name == EVERYONE:
                raise bad_input("groups", "not name 'everyone'", repr(name), "rename the column")
        chosen: Any = check_choice("period", period, PERIODS)
        days = None if horizon is None else float(as_horizon(horizon) / np.timedelta64(1, "D"))
        return cls(
            names,
            check_fraction("tolerance", tolerance),
            check_fraction("false_alarm", false_alarm),
            chosen,
            days,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return {**asdict(self), "groups": list(self.groups)}

    def differences(self, other: Settings) -> list[str]:
        """Return which settings differ, with both values."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return [
            f"{name.removesuffix('_days')} is {value!r} in the state, not {getattr(other, name)!r}"
            for name, value in pairs
            if value != getattr(other, name)
        ]


def check_form(found: Any, fresh: Any, n_past: int) -> None:
    """Raise ValueError unless a state has the keys, types and lengths of a fresh one.

    Parameters
    ----------
    found : object
        JSON values of a state, or a part of it.
    fresh : object
        The same of a watch in its first period. In `found`, a list of one dict may have more, and
        an empty list has one number for each period before the current one.
    n_past : int
        Number of these periods.
    """
    kinds = (int, float) if type(fresh) is float else (type(fresh),)
    if type(found) not in kinds:
        raise ValueError(f"{found!r:.40} in place of {fresh!r:.40}")
    if isinstance(found, dict):
        if found.keys() != fresh.keys():
            raise ValueError(f"keys {', '.join(map(str, found)):.60}")
        for name, value in found.items():
            check_form(value, fresh[name], n_past)
    elif isinstance(found, list):
        if not fresh:
            fresh = [0.0] * min(n_past, len(found) + 1)
        elif len(fresh) == 1 and isinstance(fresh[0], dict):
            fresh = fresh * max(len(found), 1)
        for value, example in zip(found, fresh, strict=True):
            check_form(value, example, n_past)
    elif isinstance(found, int | float) and not abs(found) < MOST:
        raise ValueError(f"number {found:.6g}")


def check_schema(state: Any) -> None:
    """Refuse what is no state of a watch."""
    schema = state.get("schema") if isinstance(state, Mapping) else None
    if schema != STATE_SCHEMA:
        raise InputError(
            f"this is not the state of a watch (its schema is {schema!r:.60}, not"
            f" {STATE_SCHEMA!r}); pass the output of Watch.state"
        )
