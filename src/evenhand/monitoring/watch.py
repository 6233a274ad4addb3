"""The watch over served forecasts: alarms when a promise, a tolerance or the draws are broken."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from datetime import timedelta
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from evenhand._files import write_text
from evenhand._format import Summarized, one_line
from evenhand._validate import InputError, about, bad_input, check_choice, check_fraction
from evenhand.certificates import Certificate, Promise
from evenhand.monitoring.promise_test import promise_values
from evenhand.monitoring.rows import Rows, as_duration, as_time
from evenhand.monitoring.settings import (
    STATE_SCHEMA,
    Alarm,
    Calendar,
    Notice,
    Part,
    Settings,
    check_schema,
    risk_shares,
)
from evenhand.monitoring.tallies import Delays
from evenhand.monitoring.watched_parts import (
    EnvelopeKept,
    FairDraws,
    GroupErrors,
    Kind,
    NamedGroups,
    PromiseKept,
    WatchedPart,
    cases,
    excess_of,
)
from evenhand.monitoring.witnesses import Crossing
from evenhand.report import watch_html, watch_text
from evenhand.selection import Selection
from evenhand.store import CERTIFICATE, read_certificate

# --- rows, periods and parts of a watch: what its state consists of

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
        self.matures_after = as_duration(settings.matures_after_days)
        self.delays = Delays(settings.matures_after_days or 0.0)
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
        ends = rows.time + self.matures_after
        if len(rows) and self.last is not None and rows.time[0] < self.last:
            raise InputError(
                f"row 0 was served at {rows.time[0]}, before the last row of the watch"
                f" ({self.last}); add rows in the order of serving, each once"
            )
        if len(rows) and self.until is not None and ends[0] < self.until:
            raise InputError(
                f"row 0 matures at {ends[0]}, before {self.until}, up to which the"
                " watch has been moved on; add all rows of a time before moving on"
            )
        last = None if self.last is None else self.last + self.matures_after
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
        number = int(self.calendar.numbers(rows.time[:1] + self.matures_after)[0])
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
        numbers = self.calendar.numbers(rows.time + self.matures_after)
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


# --- the watch over served forecasts

# --- promises of certificates, of selected randomizations, and of folders with a certificate

DEFAULT_MASS = 0.2
"""Group size of a promise, if neither the certificate nor the caller gives one."""

Promising = Certificate | Selection | Promise | str | os.PathLike[str]
"""What contains a promise: a certificate, a selected randomization, or the path of a folder."""


def promise_of(source: Promising, mass: float | None = None) -> Promise:
    """Return what is promised for every group of a size, in the form that a watch tests.

    Parameters
    ----------
    source : Certificate, Selection, Promise or path
        A certificate; the result of `randomize`; or a folder with `certificate.json`, which
        `evenhand fit` and `evenhand randomize` write, or that file itself.
    mass : float, optional
        Smallest share of people in a group, for certificates that bound all sizes. By default 0.2,
        or the one size that was certified.

    Returns
    -------
    Promise

    Raises
    ------
    InputError
        If nothing is promised, the certificate is damaged, or `mass` is not the certified size.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.certificates import certify_link
    >>> from evenhand.links import Entropic
    >>> proof = certify_link(np.random.default_rng(0).uniform(size=2000), link=Entropic(0.12))
    >>> promise = promise_of(proof)
    >>> promise.statistic, promise.mass, promise.target == proof.group_error(0.2)
    ('mean_pit', 0.2, True)
    """
    if mass is not None:
        check_fraction("mass", mass, high_open=False)
    if isinstance(source, Certificate):
        return source.promise((source.mass or DEFAULT_MASS) if mass is None else mass)
    if isinstance(source, Promise):
        found = source
    elif isinstance(source, Selection):
        found = source.promise()
    elif isinstance(source, str | os.PathLike):
        found = _of_folder(Path(source))
    else:
        rule = "be a Certificate, a Selection, a Promise or a path"
        raise bad_input("certificate", rule, type(source).__name__)
    if mass not in (None, found.mass):
        raise bad_input("mass", f"be {found.mass:g}, the size of the groups promised", mass)
    return found


def _of_folder(path: Path) -> Promise:
    content = read_certificate(path)
    with about(str(path if path.name == CERTIFICATE else path / CERTIFICATE)):
        if content.get("promise") is None:
            raise InputError(
                "nothing is promised that served forecasts can show; watch named groups without a"
                " certificate"
            )
        return Promise.from_dict(content["promise"])


# --- the values of a watch that pages, texts and files are made of

SCHEMA = "evenhand.watch/1"
"""Name and version of the layout of the values."""


def watch_values(ledger: Ledger) -> dict[str, Any]:
    """Return settings, alarms, evidence per period and estimates as JSON values."""
    start, n_periods = ledger.first, ledger.n_periods
    dates = [ledger.calendar.start((start or 0) + i) for i in range(n_periods)]
    tests = [test for part in ledger.parts.values() for test in part.tests()]
    promise, groups, draws = (ledger.parts.get(part) for part in ("promise", "group", "draws"))
    return {
        "schema": SCHEMA,
        "status": _status(ledger),
        "settings": _settings(ledger),
        "first": dates[0] if dates else None,
        "until": dates[-1] if dates else None,
        "n_periods": n_periods,
        "n_rows": ledger.n_rows,
        "n_missing": ledger.delays.n_missing,
        "n_late": ledger.delays.n_late,
        "n_waiting": None,
        "n_repeated": None,
        "alarms": [_alarm(alarm, tests) for alarm in ledger.alarms],
        "notices": [asdict(notice) for notice in ledger.notices],
        "dates": dates,
        "tests": tests,
        "promise": _promise(promise, ledger, dates) if isinstance(promise, PromiseKept) else None,
        "groups": groups.records() if isinstance(groups, GroupErrors) else [],
        "draws": draws.record() if isinstance(draws, FairDraws) else None,
        "delays": {
            "days": list(ledger.delays.edges),
            "counts": ledger.delays.counts.tolist(),
            "n_late": ledger.delays.n_late,
            "n_missing": ledger.delays.n_missing,
        },
        "events": [],
    }


def _status(ledger: Ledger) -> str:
    if ledger.n_rows == 0:
        return "no rows yet"
    return "alarm" if ledger.alarms else "no alarm"


def _settings(ledger: Ledger) -> dict[str, Any]:
    settings, promise = ledger.settings, ledger.promise
    link = None if promise is None else promise.link
    return {
        "false_alarm": settings.false_alarm,
        "tolerance": settings.tolerance,
        "period": settings.period,
        "matures_after_days": settings.matures_after_days,
        "groups": list(settings.groups),
        "kind": None if ledger.first is None else ledger.kind,
        "mass": None if promise is None else promise.mass,
        "target": None if promise is None else promise.target,
        "targets": None if promise is None or promise.targets is None else [*promise.targets],
        "statistic": None if promise is None else promise.statistic,
        "confidence": None if promise is None else promise.confidence,
        "atom": None if promise is None else promise.atom,
        "link": None if link is None else link.name,
        "alpha": None if link is None else link.alpha,
    }


def _promise(promise: PromiseKept, ledger: Ledger, dates: list[str]) -> dict[str, Any]:
    """Return estimates and evidence; after an alarm with the estimate of the rows since then."""
    alarm = next((one for one in ledger.alarms if one.part == "promise"), None)
    recent = None
    if alarm is not None:
        found = promise.estimates(dates.index(alarm.since) + 1)
        recent = {"since": dates[found.since - 1], **cases(found)}
    return promise.record() | {"recent": recent}


def _alarm(alarm: Alarm, tests: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an alarm with the largest evidence of its test at the end of any period."""
    past = (
        test["log_evidence"]
        for test in tests
        if (test["part"], test["group"]) == (alarm.part, alarm.group)
        # both sides of a promise have tests of their own
        and (alarm.part != "promise" or test["direction"] == alarm.direction)
    )
    largest = max((max(evidence) for evidence in past), default=alarm.log_evidence)
    return {**asdict(alarm), "max_log_evidence": max(largest, alarm.log_evidence)}


# --- the watch over served forecasts


class Watch(Summarized):
    """Watch over served forecasts: whether they keep what was promised, read at any time.

    A watch tests three things on rows that have matured: the promise of a certificate for
    every group of a size, the error of named groups against a tolerance, and whether the draws are
    uniform. An alarm means that one of them is broken. Evidence is an e-process, so the probability
    of a false alarm, ever, is at most `false_alarm`, however often the watch is read
    (outcomes: 6).

    Parameters
    ----------
    certificate : Certificate, Selection, Promise, path or None, default None
        What was promised: a certificate, a selected randomization, or the folder of a model or of
        certified forecasts. The promise of a certificate is for groups of at least 20%, or of the
        size that was certified; `certificate.promise(mass)` is for another size. None watches
        groups and draws only.
    groups : list of str, default ()
        Columns that define named groups, as in an audit. The groups and the cuts of numbers are
        learned from the rows of the first update, so give it enough rows, at least 20. With neither
        groups nor a certificate, everyone is watched as one group.
    tolerance : float, default 0.02
        Error of a named group up to which there is no alarm: W1 distance of its served PITs from
        uniform, or bias of 0/1 forecasts.
    false_alarm : float, default 0.05
        Probability of a false alarm over an unlimited time. The promise has 50% of it, groups 40%
        and draws 10%; parts that are absent give theirs to the others in proportion.
    period : {"hour", "day", "week", "month"}, default "day"
        Calendar unit in UTC in which changes may begin, and for which evidence is kept.
    matures_after : float, str, timedelta or None, default None
        Time from serving at which outcomes are read, in days or as "365d". A row belongs to the
        period in which it matures, never to that in which its outcome arrived. None: rows
        belong to the period in which they were served.

    Raises
    ------
    InputError
        If a parameter is outside its range, or there is no promise in the certificate.

    Notes
    -----
    Each test alarms at most once, and an alarm stays even if the evidence falls later. Rows must
    come in the order of serving, and all rows of a period before those of the next; a period may
    come in several updates.

    Missing outcomes have the value least favourable to an alarm, so alarms are valid whatever is
    missing.

    Under a known link, errors of groups are averaged over draws: they are found in about a third of
    the time, and do not depend on draws that are not fair, which the test of the draws finds.

    Give each person once, with the first forecast: outcomes of one person are dependent given the
    past, and repeats of them look like evidence. `evenhand.service.matured_rows` does so.

    Draws are watched if the rows of the first update have any. A draw that is repeated is counted
    once. Draws are tested when their rows enter, when these mature. For detection without
    that delay, use another watch without `matures_after` on rows without outcomes.

    Values of a column that appear after the first update define further groups, up to 100 for each
    column, which share a part of the risk that was set aside for them. Numbers and dates in halves
    keep the cuts of the first update.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.monitoring import Rows
    >>> # forecasts that become too low after 20 days
    >>> random = np.random.default_rng(0)
    >>> day = np.repeat(np.arange(60), 20)
    >>> pit = random.uniform(size=day.size) ** np.where(day < 20, 1.0, 0.5)
    >>> watch = Watch(tolerance=0.02)
    >>> alarms = watch.update(Rows.of(np.datetime64("2026-01-01") + day, pit))
    >>> [(alarm.group, alarm.direction, alarm.since, alarm.date) for alarm in alarms]
    [('everyone', 'higher', '2026-01-21', '2026-01-23')]
    >>> Watch.from_state(watch.state()).alarms == watch.alarms
    True
    """

    def __init__(
        self,
        certificate: Any = None,
        *,
        groups: Iterable[str] = (),
        tolerance: float = 0.02,
        false_alarm: float = 0.05,
        period: str = "day",
        matures_after: float | str | timedelta | None = None,
    ) -> None:
        settings = Settings.checked(groups, tolerance, false_alarm, period, matures_after)
        self._ledger = Ledger(settings, None if certificate is None else promise_of(certificate))

    @property
    def alarms(self) -> list[Alarm]:
        """All alarms so far, in the order of the rows that raised them."""
        return self._ledger.alarms

    @property
    def notices(self) -> list[Notice]:
        """Changes so far that break no promise."""
        return self._ledger.notices

    def learn(self, table: Any) -> None:
        """Define the groups before the first update, by the first people who were served.

        Their outcomes are not needed, so groups are known before the first row matures.
        Without this call, groups are learned from the rows of the first update.

        Parameters
        ----------
        table : DataFrame
            Columns of `groups` of the first n people. Their n rows, the first of the updates, do
            not count in named groups: so no test of a group has a cut that depends on people who
            were served after its rows.

        Raises
        ------
        InputError
            If the groups are defined already, or a column is missing or has only ids.
        """
        self._ledger.learn(table)

    def update(self, rows: Rows, *, until: Any = None) -> list[Alarm]:
        """Add rows and return the alarms that they raise.

        Parameters
        ----------
        rows : Rows
            Served forecasts that have matured, in the order of serving, later than all rows
            before. May be empty.
        until : time, optional
            Time up to which all rows that have matured are included. Periods without rows
            until then are counted.

        Returns
        -------
        list of Alarm
            New alarms; those of earlier updates are in `alarms`.

        Raises
        ------
        InputError
            If rows are earlier than those seen, or lack a column that the watch needs. The message
            names the row, and the watch is unchanged.
        """
        if not isinstance(rows, Rows):
            got = type(rows).__name__
            raise bad_input("rows", "be Rows", got, "make them with Rows.of")
        end = None if until is None else as_time("until", until)
        n_before = {id(alarm) for alarm in self._ledger.alarms}
        self._ledger.add(rows, end)
        return [alarm for alarm in self._ledger.alarms if id(alarm) not in n_before]

    def state(self) -> dict[str, Any]:
        """Return the state as JSON values, from which `from_state` continues exactly."""
        return {"schema": STATE_SCHEMA, **self._ledger.to_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], *, like: Watch | None = None) -> Self:
        """Resume a watch from the output of `state`.

        Parameters
        ----------
        state : dict
            Output of `state`, also after a round trip through JSON.
        like : Watch, optional
            A watch with the certificate and the settings that the state must have.

        Raises
        ------
        InputError
            If the state is of another certificate or of other settings, or is
            no state of a watch. The message is one line.
        """
        check_schema(state)
        watch = cls.__new__(cls)
        try:
            watch._ledger = Ledger.from_state(state)
        except InputError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"the state of the watch is damaged ({reason:.120})") from error
        if like is not None:
            watch._ledger.check_like(like._ledger)
        return watch

    def summary(self) -> str:
        """Return what is watched, the status, alarms, notices and missing outcomes as text."""
        return watch_text(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return settings, alarms, evidence per period and estimates as JSON values."""
        return watch_values(self._ledger)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the watch as JSON; write it to `path` if given."""
        text = json.dumps(self.to_dict(), indent=2)
        if path is not None:
            write_text(path, text + "\n")
        return text

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the watch as one page of HTML that opens offline; write it to `path` if given."""
        text = watch_html(self.to_dict())
        if path is not None:
            write_text(path, text)
        return text

    def __repr__(self) -> str:
        facts = {"n_rows": self._ledger.n_rows, "alarms": len(self.alarms)}
        return one_line(self, **facts, groups=self._ledger.settings.groups or None)


# --- JSON Schema of a watch


def watch_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) that the JSON of a watch fulfils.

    It is the file `watch.schema.json` of the package, and lists every key.

    Examples
    --------
    >>> watch_schema()["properties"]["schema"]
    {'const': 'evenhand.watch/1'}
    """
    text = files("evenhand.monitoring").joinpath("watch.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
