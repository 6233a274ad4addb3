"""Settings of a watch, and the checks of a state that is resumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import InputError, bad_input, check_choice, check_fraction
from evenhand.monitoring.rows import as_duration
from evenhand.tables import EVERYONE, check_names

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
    matures_after_days : float or None
        Days from serving at which outcomes are read; None if rows mature at once.
    """

    groups: tuple[str, ...]
    tolerance: float
    false_alarm: float
    period: Period
    matures_after_days: float | None

    @classmethod
    def checked(
        cls,
        groups: Iterable[str],
        tolerance: float,
        false_alarm: float,
        period: str,
        matures_after: float | str | timedelta | None,
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
        days = (
            None
            if matures_after is None
            else float(as_duration(matures_after) / np.timedelta64(1, "D"))
        )
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


def check_schema(state: Any) -> None:
    """Refuse what is no state of a watch."""
    schema = state.get("schema") if isinstance(state, Mapping) else None
    if schema != STATE_SCHEMA:
        raise InputError(
            f"this is not the state of a watch (its schema is {schema!r:.60}, not"
            f" {STATE_SCHEMA!r}); pass the output of Watch.state"
        )


# --- alarms and notices of a watch, and the part of the allowed risk that each test has

Part = Literal["promise", "group", "draws"]

Direction = Literal["higher", "lower", "narrow", "wide", "extreme", "central", "gap"]

SHARES: dict[Part, float] = {"promise": 0.5, "group": 0.4, "draws": 0.1}
"""Share of each part in the probability of a false alarm, if a watch has all parts."""


@dataclass(frozen=True)
class Alarm:
    """Evidence that reached its threshold: a promise or tolerance is broken, or draws are not fair.

    Parameters
    ----------
    part : {"promise", "group", "draws"}
        What was tested: the promise for every group of a size, the tolerance of a named group, or
        whether draws are uniform.
    group : str or None
        Name of the group; None if all rows were tested.
    direction : {"higher", "lower", "narrow", "wide", "extreme", "central", "gap"}
        Outcomes higher or lower than forecast, forecasts too narrow or too wide; draws too high,
        too low, too often near 0 and 1 or near 1/2; PITs too far from their draws.
    date : str
        Start of the period in which the threshold was reached.
    since : str
        Start of the period from which on the evidence was largest: about when the change began.
    log_evidence : float
        Logarithm of the evidence when it reached the threshold.
    threshold : float
        Logarithm of the threshold.
    n_rows : int
        Number of rows of the group until then.
    """

    part: Part
    group: str | None
    direction: Direction
    date: str
    since: str
    log_evidence: float
    threshold: float
    n_rows: int


class Notice(Alarm):
    """Evidence of a change that breaks no promise, such as PITs outside the certified envelope."""


def risk_shares(false_alarm: float, parts: Iterable[Part]) -> dict[Part, float]:
    """Return the probability of a false alarm that each part of a watch may spend.

    Shares are fixed, and parts that are absent give theirs to the others in proportion. Then the
    sum is `false_alarm` whatever the rows are, and the bound of a union applies.

    Examples
    --------
    >>> {part: round(risk, 6) for part, risk in risk_shares(0.05, ["group", "draws"]).items()}
    {'group': 0.04, 'draws': 0.01}
    """
    present = [part for part in SHARES if part in set(parts)]
    total = sum(SHARES[part] for part in present)
    return {part: false_alarm * SHARES[part] / total for part in present}
