"""Typed values of a watch: evidence by part and period, alarms, notices and groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from evenhand._format import count, is_known, percent, plain_number
from evenhand.report.records import Number, Values

PARTS = {"promise": "promise", "group": "groups", "draws": "draws"}
"""Parts of a watch with their names, in the order in which they are listed."""

NEVER = -math.inf
"""Log evidence before a test has started."""

LEAST = 0.001
"""Least share of the evidence of an alarm that is printed."""

MOST = 1_000_000
"""Largest multiple of the evidence of an alarm, and rarest probability, that is printed."""


@dataclass(frozen=True)
class Moment:
    """Start of a period: its position on an axis of days, and its words."""

    day: float
    words: str

    def before(self, days: float) -> Moment:
        """Return the day that was so many days before.

        Examples
        --------
        >>> Moment.of("2026-03-01").before(30).words
        '30 January 2026'
        """
        date = datetime(1970, 1, 1) + timedelta(days=self.day - days)
        return Moment.of(date.date().isoformat())

    @classmethod
    def of(cls, date: str) -> Moment:
        """Return the moment of an ISO date or time.

        Examples
        --------
        >>> Moment.of("2026-03-01").words, Moment.of("2026-03-01T14:00").words
        ('1 March 2026', '1 March 2026, 14:00')
        """
        # only the local part counts: all dates of a watch are in UTC
        found = datetime.fromisoformat(date.replace("Z", "+00:00")).replace(tzinfo=None)
        seconds = (found - datetime(1970, 1, 1)).total_seconds()
        words = f"{found.day} {found:%B %Y}"
        return cls(seconds / 86400, f"{words}, {found:%H:%M}" if "T" in date else words)


@dataclass(frozen=True)
class Evidence:
    """Evidence of one test by period, as the log of its share of the alarm threshold.

    Parameters
    ----------
    part : {"promise", "group", "draws"}
        What is tested.
    group : str or None
        Group of the test; None for all people.
    path : tuple of float
        One value per period; 0 is the threshold of an alarm.
    """

    part: str
    group: str | None
    path: tuple[float, ...]

    @property
    def highest(self) -> float:
        return max(self.path, default=NEVER)


@dataclass(frozen=True)
class Signal:
    """Alarm or notice.

    Parameters
    ----------
    part, group
        As of `Evidence`.
    direction : str
        What deviates.
    date, since : Moment
        Period of the alarm, and period since about which there is evidence.
    ratio, highest : float
        Log of the share of the alarm threshold: on that date, and at most until now.
    n_rows : int
        Rows until then.
    """

    part: str
    group: str | None
    direction: str
    date: Moment
    since: Moment
    ratio: float
    highest: float
    n_rows: int

    @property
    def name(self) -> str:
        """What the signal is about."""
        if self.part == "promise":
            return "promise for every group"
        if self.part == "draws":
            return "draws" if self.group is None else f"draws in {self.group}"
        return self.group or "everyone"


@dataclass(frozen=True)
class WatchedGroup:
    """Named group with its evidence, as the log of its share of the alarm threshold."""

    name: str
    n: int
    n_missing: int
    error: Number
    direction: str
    latest: float
    highest: float
    is_alarm: bool


class Watched:
    """Values of a watch, in the types that its page needs.

    Parameters
    ----------
    values : dict
        `Watch.to_dict()`.
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self.settings: Values = values.get("settings") or {}
        self.alarms = _signals([_with_highest(row, values) for row in values.get("alarms") or ()])
        self.notices = _signals(values.get("notices"))
        self.moments = tuple(map(Moment.of, values.get("dates") or ()))
        self.tests = tuple(map(_evidence, values.get("tests") or ()))

    @cached_property
    def groups(self) -> tuple[WatchedGroup, ...]:
        """Groups, those with most evidence first."""
        found = map(_group, self.values.get("groups") or ())
        return tuple(sorted(found, key=lambda one: (not one.is_alarm, -one.highest, one.name)))

    @property
    def is_alarm(self) -> bool:
        return bool(self.alarms)

    @property
    def is_empty(self) -> bool:
        return not self.values.get("n_rows")

    @property
    def is_event(self) -> bool:
        """Whether outcomes are 0/1."""
        return self.settings.get("kind") == "event"

    @property
    def promise(self) -> Values | None:
        return self.values.get("promise")

    @property
    def draws(self) -> Values | None:
        return self.values.get("draws")

    @property
    def span(self) -> str:
        """First and last period in words."""
        first, until = self.values.get("first"), self.values.get("until")
        if first is None or until is None:
            return ""
        return f"{Moment.of(first).words} to {Moment.of(until).words}"

    @property
    def periods(self) -> str:
        """Number of periods in words."""
        return count(int(self.values.get("n_periods") or 0), str(self.settings.get("period")))

    def paths(self) -> dict[str, list[Evidence]]:
        """Return the tests by part, without parts that have none."""
        listed = {part: [one for one in self.tests if one.part == part] for part in PARTS}
        return {part: tests for part, tests in listed.items() if tests}

    def highest(self, part: str) -> float:
        """Return the most evidence of a part at any time."""
        found = [one.highest for one in self.tests if one.part == part]
        found += [one.highest for one in self.alarms if one.part == part]
        return max(found, default=NEVER)


def leading(tests: Sequence[Evidence]) -> list[tuple[int, float, str | None]]:
    """Return the most evidence of some tests in each period: its place, value and group."""
    n = max((len(one.path) for one in tests), default=0)
    found = []
    for place in range(n):
        best = max(tests, key=lambda one: one.path[place] if place < len(one.path) else NEVER)
        if place < len(best.path) and best.path[place] > NEVER:
            found.append((place, best.path[place], best.group))
    return found


def of_alarm(ratio: float) -> str:
    """Write evidence as a share or a multiple of the alarm threshold.

    Parameters
    ----------
    ratio : float
        Log of evidence over threshold.

    Examples
    --------
    >>> [of_alarm(math.log(x)) for x in (0.00001, 0.0123, 0.5, 1.0, 12.34, 1e9)]
    ['under 0.1%', '1.2%', '50%', '1 time', '12.3 times', 'over 1,000,000 times']
    """
    if ratio >= math.log(MOST):
        return f"over {MOST:,} times"
    share = math.exp(ratio)
    if ratio >= 0:
        words = plain_number(share, "down")
        return f"{words} time{'' if words == '1' else 's'}"
    if share < LEAST:
        return f"under {percent(LEAST)}"
    # never 100%, which would be an alarm
    return percent(share, "down", 1 if share < 0.1 else 0)


def of_threshold(ratio: float) -> str:
    """Write evidence relative to the alarm threshold, for a sentence.

    Examples
    --------
    >>> of_threshold(math.log(0.5)), of_threshold(math.log(3))
    ('50% of the alarm threshold', '3 times the alarm threshold')
    """
    return f"{of_alarm(ratio)}{' of' if ratio < 0 else ''} the alarm threshold"


def days_in_words(days: float) -> str:
    """Return a length of time, below one day in hours or minutes.

    Examples
    --------
    >>> days_in_words(365), days_in_words(1), days_in_words(0.5), days_in_words(0.5 / 24)
    ('365 days', '1 day', '12 hours', '30 minutes')
    """
    units = (("day", 1), ("hour", 24), ("minute", 24 * 60))
    name, per_day = next((one for one in units if days * one[1] >= 1), units[-1])
    n = plain_number(days * per_day)
    return f"{n} {name}{'' if n == '1' else 's'}"


def rarity(false_alarm: float, ratio: float) -> str:
    """Write how rare so much evidence is if nothing is broken, by Ville's inequality.

    Parameters
    ----------
    false_alarm : float
        Probability of a false alarm of all tests together.
    ratio : float
        Log of evidence over threshold.

    Examples
    --------
    >>> rarity(0.05, math.log(130)), rarity(0.05, 100.0)
    ('at most 1 in 2,600', 'at most 1 in 1,000,000')
    """
    most = math.log(MOST)
    cases = math.exp(min(ratio - math.log(false_alarm), most))
    return f"at most 1 in {plain_number(_two_digits(cases))}"


def _two_digits(value: float) -> float:
    # rounded down, the direction in which the bound stays valid
    unit = 10.0 ** (math.floor(math.log10(value) + 1e-9) - 1)
    return math.floor(value / unit + 1e-9) * unit


def _signals(rows: Iterable[Values] | None) -> tuple[Signal, ...]:
    found = [
        Signal(
            str(row["part"]),
            row.get("group"),
            str(row.get("direction") or ""),
            Moment.of(row["date"]),
            Moment.of(row["since"]),
            ratio_of(row, "log_evidence"),
            max(ratio_of(row, "log_evidence"), ratio_of(row, "max_log_evidence")),
            int(row.get("n_rows") or 0),
        )
        for row in rows or ()
    ]
    return tuple(sorted(found, key=lambda one: one.date.day))


def _with_highest(row: Values, values: Values) -> Values:
    """Return an alarm with the most evidence of its group within a period, not only at its end."""
    known = {one["name"]: one["max_log_evidence"] for one in values.get("groups") or ()}
    within = known.get(row.get("group")) if row["part"] == "group" else None
    at_ends = row.get("max_log_evidence")
    found = [one for one in (within, at_ends, row["log_evidence"]) if one is not None]
    return {**row, "max_log_evidence": max(found)}


def _evidence(row: Values) -> Evidence:
    limit: float = row["threshold"]
    path = (value - limit if is_known(value) else NEVER for value in row["log_evidence"])
    return Evidence(str(row["part"]), row.get("group"), tuple(path))


def ratio_of(row: Values, key: str) -> float:
    """Return log evidence over threshold; NEVER if it is unknown."""
    value = row.get(key)
    return NEVER if value is None else float(value) - float(row["threshold"])


def _group(row: Values) -> WatchedGroup:
    return WatchedGroup(
        str(row["name"]),
        int(row["n"]),
        int(row.get("n_missing") or 0),
        row.get("error"),
        str(row.get("bias_direction") or ""),
        ratio_of(row, "log_evidence"),
        ratio_of(row, "max_log_evidence"),
        bool(row.get("is_alarm")),
    )
