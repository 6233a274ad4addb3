"""Rows, periods and parts of a watch: what its state consists of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from itertools import pairwise
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import InputError, check_choice
from evenhand.certificates import Promise
from evenhand.monitoring.named_groups import NamedGroups
from evenhand.monitoring.promise_test import promise_values
from evenhand.monitoring.rows import Rows, as_horizon, as_time
from evenhand.monitoring.settings import Alarm, Calendar, Notice, Part, Settings, risk_shares
from evenhand.monitoring.tallies import Delays
from evenhand.monitoring.watched_parts import (
    EnvelopeKept,
    FairDraws,
    GroupErrors,
    Kind,
    PromiseKept,
    WatchedPart,
    excess_of,
)
from evenhand.monitoring.witnesses import Crossing

CHUNK = 1 << 14
"""Most rows that are added at once, which limits the memory of an update."""

MOST_PERIODS = 200_000
"""Most periods between two rows: 22 years of hours. More are a wrong clock."""


class Ledger:
    """Everything that a watch has seen.

    Parameters
    ----------
    settings : Settings
        Settings of the watch.
    promise : Promise or None
        What is promised for every group of a size.
    """

    def __init__(self, settings: Settings, promise: Promise | None) -> None:
        self.settings = settings
        self.promise = promise
        self.calendar = Calendar(settings.period)
        self.horizon = as_horizon(settings.horizon_days)
        self.delays = Delays(settings.horizon_days or 0.0)
        self.n_rows = 0
        self.first: int | None = None
        self.current = 0
        self.until: np.datetime64 | None = None
        self.last: np.datetime64 | None = None
        self.kind: Kind = "pit"
        self.groups: NamedGroups | None = None
        self.n_learned = 0
        self.parts: dict[str, WatchedPart] = {}
        # with the numbers of the rows that raised them, since splits of the rows into updates must
        # not change the order
        self._found: list[tuple[int, Alarm]] = []
        self._noticed: list[tuple[int, Notice]] = []

    @property
    def alarms(self) -> list[Alarm]:
        """All alarms, in the order of rows."""
        return [alarm for _, alarm in self._found]

    @property
    def notices(self) -> list[Notice]:
        """All notices, in the order of rows."""
        return [notice for _, notice in self._noticed]

    @property
    def n_periods(self) -> int:
        """Number of periods so far, the current one included."""
        return 0 if self.first is None else self.current - self.first + 1

    def learn(self, table: Any) -> None:
        """Define the groups by the features of the first rows, which do not count in them."""
        if self.first is not None or self.groups is not None:
            raise InputError("the groups are defined already; begin another watch for others")
        if self.settings.groups:
            self.groups = NamedGroups.learn(table, self.settings.groups)
            self.n_learned = len(table)

    def add(self, rows: Rows, until: np.datetime64 | None) -> None:
        """Add rows, and move time on to `until`."""
        self._check(rows, until)
        if len(rows):
            if self.first is None:
                self._begin(rows)
            for first in range(0, len(rows), CHUNK):
                self._add(rows.take(slice(first, first + CHUNK)))
            self.last = rows.time[-1]
        if until is not None:
            self.until = until
            if self.first is not None:
                # the period of the last moment before `until`
                moment = np.array([until - np.timedelta64(1, "us")])
                self._advance(int(self.calendar.numbers(moment)[0]))

    def _check(self, rows: Rows, until: np.datetime64 | None) -> None:
        """Refuse rows and times that do not follow those seen; nothing has changed by then."""
        ends = rows.time + self.horizon
        if len(rows) and self.last is not None and rows.time[0] < self.last:
            raise InputError(
                f"row 0 was served at {rows.time[0]}, before the last row of the watch"
                f" ({self.last}); add rows in the order of serving, each once"
            )
        if len(rows) and self.until is not None and ends[0] < self.until:
            raise InputError(
                f"the horizon of row 0 ends at {ends[0]}, before {self.until}, up to which the"
                " watch has been moved on; add all rows of a time before moving on"
            )
        last = None if self.last is None else self.last + self.horizon
        times = (self.until, last, *ends[-1:])
        reached = [one for one in times if one is not None]
        if until is not None and reached and until < max(reached):
            raise InputError(
                f"until is {until}, before {max(reached)}, which the watch has reached; leave until"
                " out or give a later time"
            )
        if len(rows):
            self._check_columns(rows)
        new = [*ends[:1], *ends[-1:], *([] if until is None else [until])]
        self._check_distance(np.array(new, dtype="datetime64[us]"))

    def _check_distance(self, times: NDArray[Any]) -> None:
        """Refuse times that are many periods later than those seen, which take long to count."""
        numbers = self.calendar.numbers(times)
        start = numbers[:1] if self.first is None else [self.current]
        if numbers.size and numbers[-1] - start[0] > MOST_PERIODS:
            raise InputError(
                f"{times[-1]} is {numbers[-1] - start[0]:,} periods after the rows before; check"
                " the clock, or use a longer period"
            )

    def _check_columns(self, rows: Rows) -> None:
        if self.promise is not None:
            promise_values(self.promise, rows)
        if self.first is None:  # the first rows define what the later ones need
            return
        if self.kind == "event":
            excess_of(rows)
        if self.groups is not None and self.groups.partitions:
            self.groups.check(_table_of(rows))

    def _begin(self, rows: Rows) -> None:
        """Learn groups and kinds from the rows of the first update, and share out the risk."""
        kind: Kind = "pit" if rows.excess is None else "event"
        groups = self.groups
        if groups is None and self.settings.groups:
            groups = NamedGroups.learn(_table_of(rows), self.settings.groups)
        elif groups is None and self.promise is None:
            groups = NamedGroups([])
        has_draws = rows.r is not None and not bool(np.isnan(rows.r).all())
        self._make_parts(kind, groups, has_draws)
        number = int(self.calendar.numbers(rows.time[:1] + self.horizon)[0])
        self.first = number
        self.current = number - 1
        self._advance(number)

    def _make_parts(self, kind: Kind, groups: NamedGroups | None, has_draws: bool) -> None:
        self.kind = kind
        self.groups = groups
        present: list[Part] = []
        if self.promise is not None:
            present.append("promise")
        if groups is not None:
            present.append("group")
        if has_draws:
            present.append("draws")
        false_alarm = self.settings.false_alarm
        risks = risk_shares(false_alarm, present)
        promise = self.promise
        if promise is not None:
            self.parts["promise"] = PromiseKept(promise, risks["promise"])
            # base PITs are known under a known link
            if promise.envelope is not None and promise.statistic == "mean_pit":
                self.parts["envelope"] = EnvelopeKept(promise.envelope, false_alarm)
        if groups is not None:
            tolerance = self.settings.tolerance
            self.parts["group"] = GroupErrors(groups, kind, tolerance, risks["group"])
        if has_draws:
            self.parts["draws"] = FairDraws(groups, risks["draws"])

    def _advance(self, number: int) -> None:
        for _ in range(number - self.current):
            for part in self.parts.values():
                part.begin_period()
            self.current += 1

    def _add(self, rows: Rows) -> None:
        """Add rows period by period."""
        members = np.zeros((len(rows), 0), dtype=np.bool_)
        if self.groups is not None:
            members = self.groups.members(_table_of(rows) if self.groups.partitions else rows.time)
            # cuts by people served later would not be known when these were served
            members[: max(0, self.n_learned - self.n_rows)] = False
        self.delays.add(rows.known, rows.delay)
        numbers = self.calendar.numbers(rows.time + self.horizon)
        starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(rows)]
        steps = [(part, part.prepare(rows, members)) for part in self.parts.values()]
        for start, end in pairwise(starts):
            self._advance(int(numbers[start]))
            for part, step in steps:
                self._note(part, step(slice(start, end)), self.n_rows + start)
        self.n_rows += len(rows)
        order = list(self.parts)
        self._found.sort(key=lambda one: (one[0], order.index(one[1].part)))

    def _note(self, part: WatchedPart, crossings: Iterable[Crossing], n_before: int) -> None:
        """Keep crossings as alarms or notices, with the numbers of their rows."""
        for crossing in crossings:
            values = self._dated(part.part, crossing)
            if part.is_notice:
                self._noticed.append((n_before + crossing.row, Notice(*values)))
            else:
                self._found.append((n_before + crossing.row, Alarm(*values)))

    def _dated(self, part: Part, crossing: Crossing) -> tuple[Any, ...]:
        """Return the values of an alarm or a notice."""
        assert self.first is not None
        return (
            part,
            crossing.name,
            crossing.direction,
            self.calendar.start(self.current),
            self.calendar.start(self.first + crossing.since - 1),
            crossing.log_evidence,
            crossing.threshold,
            crossing.n_rows,
        )

    def check_like(self, other: Ledger) -> None:
        """Refuse if another watch has another promise or other settings."""
        if self.promise != other.promise:
            raise InputError(
                "the state belongs to another certificate: its promise is"
                f" {_in_words(self.promise)}, not {_in_words(other.promise)}; begin a new watch for"
                " a new certificate"
            )
        differences = self.settings.differences(other.settings)
        if differences:
            raise InputError(f"{differences[0]}; settings are fixed when a watch begins")

    def to_state(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "settings": self.settings.to_dict(),
            "promise": None if self.promise is None else self.promise.to_dict(),
            "n_rows": self.n_rows,
            "first": self.first,
            "current": self.current,
            "until": _text(self.until),
            "last": _text(self.last),
            "kind": self.kind,
            "groups": None if self.groups is None else self.groups.to_state(),
            "n_learned": self.n_learned,
            "delays": self.delays.to_state(),
            "parts": {name: part.to_state() for name, part in self.parts.items()},
            "alarms": [[row, asdict(alarm)] for row, alarm in self._found],
            "notices": [[row, asdict(notice)] for row, notice in self._noticed],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Ledger:
        """Rebuild the ledger from the output of `to_state`."""
        values = state["settings"]
        settings = Settings.checked(*(values[field.name] for field in fields(Settings)))
        promise = None if state["promise"] is None else Promise.from_dict(state["promise"])
        ledger = cls(settings, promise)
        found = state["groups"]
        ledger.groups = None if found is None else NamedGroups.from_state(found)
        ledger.until, ledger.last = (
            None if state[name] is None else as_time(name, state[name])
            for name in ("until", "last")
        )
        if state["first"] is not None:
            kind: Any = check_choice("kind", state["kind"], get_args(Kind))
            ledger._make_parts(kind, ledger.groups, "draws" in state["parts"])
        ledger.n_rows, ledger.n_learned = state["n_rows"], state["n_learned"]
        ledger.first, ledger.current = state["first"], state["current"]
        for name, part in ledger.parts.items():
            part.restore(state["parts"][name])
        ledger.delays.restore(state["delays"])
        ledger._found = [(row, Alarm(**alarm)) for row, alarm in state["alarms"]]
        ledger._noticed = [(row, Notice(**notice)) for row, notice in state["notices"]]
        return ledger


def _table_of(rows: Rows) -> Any:
    if rows.columns is None:
        raise InputError("rows have no columns, but the watch has groups; give them as columns")
    return rows.columns


def _in_words(promise: Promise | None) -> str:
    if promise is None:
        return "none"
    return f"{promise.statistic} at most {promise.target:g} at size {promise.mass:g}"


def _text(time: np.datetime64 | None) -> str | None:
    return None if time is None else str(time)
