"""The watch over served forecasts: alarms when a promise, a tolerance or the draws are broken."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._files import written
from evenhand._format import Summarized, one_line
from evenhand._validate import (
    AnyPath,
    InputError,
    Mask,
    about,
    bad_input,
    check_choice,
    check_column,
    check_fraction,
    named,
    read_state,
    short,
)
from evenhand.certificates import Certificate, Promise
from evenhand.monitoring.e_processes import Alarm, Part, Statement, Stored, Tests, read
from evenhand.monitoring.rows import Rows, as_duration, as_time
from evenhand.monitoring.statements import (
    FAIR_DRAWS,
    BiasSums,
    Kind,
    PITSums,
    SeenDraws,
    ValueCounts,
    calibrated,
    excess_of,
    kept_envelope,
    kept_promise,
    needed,
    promise_values,
)
from evenhand.report import watch_html, watch_text
from evenhand.selection import Selection
from evenhand.store import CERTIFICATE, read_certificate
from evenhand.tables import EVERYONE, Column, Group, Partition, check_names, of_levels

# --- named groups: learned from the first rows, with groups that appear later

MOST_LATER = 100
"""Most groups of one column that may appear after the first update; more are most likely ids."""


@dataclass
class NamedGroups(Stored):
    """Groups by the values of columns, such as `sex = 2`, and the rows that belong to them.

    Columns define groups as in an audit: one group per value, or two halves at the median. Values
    that are seen later for the first time, and are not in a half, become further groups, in the
    order of their first rows.

    Attributes
    ----------
    partitions : list of Partition
        Groups of each column, learned from the first rows.
    has_everyone : bool
        Whether all rows are a group, too, the first one.
    names : list of str
        Names of the groups, those that appeared later last; none before groups are learned.
    n_first : int
        Number of groups of the first rows.
    n_later : dict
        Number of groups of each column that appeared later.
    """

    partitions: list[Partition] = field(default_factory=list)
    has_everyone: bool = False
    names: list[str] = field(default_factory=list)
    n_first: int = 0
    n_later: dict[str, int] = field(default_factory=dict)

    def learn(self, table: pd.DataFrame | None, columns: Sequence[str]) -> None:
        """Learn the groups of some columns; InputError if a column is missing or has only ids."""
        named = [name for name in columns if name != EVERYONE]
        source = "rows of the first update"
        self.partitions = [
            Partition.learn(_column(table, name), name, source=source) for name in named
        ]
        self.has_everyone = EVERYONE in columns
        self.names = [EVERYONE] * self.has_everyone
        self.names += [name for one in self.partitions for name in one.names]
        self.n_first = len(self.names)
        self.n_later = dict.fromkeys(named, 0)

    def check(self, rows: Rows) -> None:
        """Refuse rows without the columns of the groups."""
        for partition in self.partitions:
            _column(rows.columns, partition.column)

    def members(self, rows: Rows) -> Mask:
        """Return the rows of each group, (n, G), after adding the groups that appear in them."""
        labels = [_labels(one, rows.columns) for one in self.partitions]
        # in the order of rows, whatever the columns, so that splits into updates do not matter
        codes, distinct = pd.factorize(np.array(labels, dtype=object).ravel(order="F"))
        columns = np.unique(codes, return_index=True)[1] % max(len(labels), 1)
        places = [
            self._place_of(name, self.partitions[j].column)
            for name, j in zip(distinct, columns.tolist(), strict=True)
        ]
        of_row = np.array(places, dtype=int)[codes].reshape(len(rows), len(labels))
        members = np.zeros((len(rows), len(self.names)), dtype=bool)
        members[:, : self.has_everyone] = True
        in_group, _ = np.nonzero(of_row >= 0)
        members[in_group, of_row[of_row >= 0]] = True
        return members

    def _place_of(self, name: str, column: str) -> int:
        """Return the index of a group, adding one that appears later; -1 if there are too many."""
        if name in self.names:
            return self.names.index(name)
        if self.n_later[column] >= MOST_LATER:
            return -1
        self.n_later[column] += 1
        self.names.append(name)
        return len(self.names) - 1

    def log_thresholds(self, risk: float) -> list[float]:
        """Return the logarithms of the thresholds of all groups, which share a risk.

        Of G first groups each has `risk / (G + 1)`, and the remaining part is for later groups, the
        j-th of which has `1 / (j (j + 1))` of it. Nothing is spent twice, as the sum is at most the
        risk however many groups appear (outcomes: 6, e-Bonferroni with weights).
        """
        n_parts = self.n_first + bool(self.partitions)
        later = np.arange(1, len(self.names) - self.n_first + 1, dtype=float)
        weights = np.append(np.ones(self.n_first), 1 / (later * (later + 1)))
        return [float(one) for one in np.log(n_parts / (risk * weights))]


def _column(table: pd.DataFrame | None, name: str) -> pd.Series[Any]:
    table = needed(table, "columns, but the watch has groups", "give them as columns")
    check_column(name, table.columns, "the table of groups")
    # columns of numbers in object arrays, such as those of a log, become numbers
    return table[name].infer_objects()


def _labels(partition: Partition, table: pd.DataFrame | None) -> Any:
    """Return the name of the group of each row, also of values without one in the first rows."""
    name, place = partition.column, f"column {partition.column!r}"
    values = typed = _column(table, name)
    with about("rows"):
        if partition.cut is not None:
            typed = Column(name, partition.kind).read(values, place)
        labels = partition.labels(typed)
    unknown = np.flatnonzero(pd.isna(labels))
    absent = Group(name, "missing").name
    labels[unknown] = of_levels(
        values.iloc[unknown], place, lambda one: Group(name, "=", one).name, absent, object
    )
    return labels


# --- calendar periods of a watch, in UTC

Period = Literal["hour", "day", "week", "month"]
"""Calendar unit in which a watch counts time; weeks begin on Monday."""

FREQUENCIES: dict[Period, str] = {"hour": "h", "day": "D", "week": "W-SUN", "month": "M"}
"""Names of pandas, in which a week is named by its last day."""


# --- settings of a watch


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

    def __post_init__(self) -> None:
        # each once, before anything reads it
        object.__setattr__(self, "groups", tuple(dict.fromkeys(map(str, check_names(self.groups)))))
        check_fraction("tolerance", self.tolerance)
        check_fraction("false_alarm", self.false_alarm)
        check_choice("period", self.period, tuple(FREQUENCIES))


# --- the share of the allowed risk that each part of a watch has

SHARES: dict[Part, float] = {"promise": 0.5, "group": 0.4, "draws": 0.1}
"""Share of each part in the probability of a false alarm, if a watch has all parts."""


def risk_shares(false_alarm: float, parts: Sequence[Part]) -> dict[Part, float]:
    """Return the probability of a false alarm that each part of a watch may spend.

    Shares are fixed, and parts that are absent give theirs to the others in proportion. Then the
    sum is `false_alarm` whatever the rows are, and the bound of a union applies.

    Examples
    --------
    >>> {part: round(risk, 6) for part, risk in risk_shares(0.05, ["group", "draws"]).items()}
    {'group': 0.04, 'draws': 0.01}
    """
    total = sum(SHARES[part] for part in parts)
    return {part: false_alarm * SHARES[part] / total for part in parts}


# --- rows, periods and tests of a watch: what its state consists of

STATE_SCHEMA = "evenhand.watch-state/1"
"""Name and version of the layout of states."""

CHUNK = 1 << 17
"""Most pairs of a row and a group that are added at once, which limits the memory of an update."""

MOST_PERIODS = 200_000
"""Most periods between two rows: 22 years of hours. More are a wrong clock."""

OF_GROUPS = ("group", "draws of groups")
"""Names of the tests of each group; the others are of all rows."""


@dataclass
class Ledger(Stored):
    """Everything that a watch has seen, with its settings and what is promised for every group."""

    settings: Settings
    promise: Promise | None
    n_rows: int = 0
    n_missing: int = 0
    n_late: int = 0
    n_learned: int = 0
    first: int | None = None
    current: int = 0
    reached: np.datetime64 | None = None
    kind: Kind = "pit"
    tests: dict[str, Tests] = field(default_factory=dict)
    # no groups until they are defined
    groups: NamedGroups = field(default_factory=NamedGroups)
    # values of the promise, errors of groups, draws that were seen, and their distribution
    values: ValueCounts | None = None
    errors: PITSums | BiasSums | None = None
    seen: SeenDraws = field(default_factory=SeenDraws)
    drawn: PITSums = field(default_factory=lambda: PITSums(1))
    alarms: list[Alarm] = field(default_factory=list)
    notices: list[Alarm] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.matures_after = as_duration(self.settings.matures_after_days)

    def learn(self, table: Any) -> None:
        """Define the groups by the features of the first rows, which do not count in them."""
        if self.first is not None or self.groups.names:
            raise InputError("the groups are defined already; begin another watch for others")
        if self.settings.groups:
            self.groups.learn(table, self.settings.groups)
            self.n_learned = len(table)

    def add(self, rows: Rows, until: np.datetime64 | None) -> None:
        """Add rows, and move time on to `until`."""
        ends = rows.time + self.matures_after
        self._check(rows, [*ends[:1], *ends[-1:]], [] if until is None else [until])
        if len(rows):
            if self.first is None:
                self._begin(rows)
            step = max(1, CHUNK // max(8, len(self.groups.names)))
            for first in range(0, len(rows), step):
                self._add(rows.take(slice(first, first + step)))
            self.reached = ends[-1]
        if until is not None:
            self.reached = until
            if self.first is not None:
                # the period of the last moment before `until`
                self._advance(self._numbers(np.array([until]) - np.timedelta64(1, "us"))[0])

    def _check(self, rows: Rows, ends: list[np.datetime64], until: list[np.datetime64]) -> None:
        """Refuse rows and times that do not follow those seen; nothing has changed by then."""
        before = [] if self.reached is None else [self.reached]
        if ends and before and ends[0] < before[0]:
            raise InputError(
                f"row 0 was served at {rows.time[0]} and matures at {ends[0]}, before"
                f" {before[0]}, which the watch has reached; add rows in the order of serving, each"
                " once, and all rows of a time before moving on"
            )
        reached = [*before, *ends]
        if until and reached and until[0] < reached[-1]:
            raise InputError(
                f"until is {until[0]}, before {reached[-1]}, which the watch has reached; leave"
                " until out or give a later time"
            )
        if ends:
            self._check_columns(rows)
        numbers = self._numbers(np.array([*ends, *until], dtype="datetime64[us]")).tolist()
        start = numbers[0] if numbers and self.first is None else self.current
        if numbers and numbers[-1] - start > MOST_PERIODS:
            raise InputError(
                f"{[*ends, *until][-1]} is {numbers[-1] - start:,} periods after the rows before;"
                " check the clock, or use a longer period"
            )

    def _check_columns(self, rows: Rows) -> None:
        if self.promise is not None:
            promise_values(self.promise, rows)
        # the first rows define what the later ones need
        if self.first is not None:
            if self.kind == "event":
                excess_of(rows)
            self.groups.check(rows)

    def _numbers(self, times: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of the period of each time."""
        return pd.DatetimeIndex(times).to_period(FREQUENCIES[self.settings.period]).asi8

    def _begin(self, rows: Rows) -> None:
        """Learn groups and kinds from the rows of the first update, and share out the risk."""
        if not self.groups.names:
            # without anything else to watch, everyone is a group
            everyone = () if self.promise else (EVERYONE,)
            self.groups.learn(rows.columns, self.settings.groups or everyone)
        self.kind = "pit" if rows.excess is None else "event"
        self._make_tests(has_draws=rows.r is not None and not np.isnan(rows.r).all())
        self.first = int(self._numbers(rows.time[:1] + self.matures_after)[0])
        self.current = self.first - 1
        self._advance(self.first)

    def _make_tests(self, *, has_draws: bool) -> None:
        """Make the tests: the promise, its envelope, named groups and the draws."""
        promise, settings = self.promise, self.settings
        there = {"promise": promise, "group": self.groups.names, "draws": has_draws}
        risks = risk_shares(settings.false_alarm, [part for part in SHARES if there[part]])
        if promise is not None:
            self.values = ValueCounts(promise)
            # each side has half of the risk
            sides = kept_promise(promise)
            for side in sides:
                risk = risks["promise"] / len(sides)
                self._test(f"promise {side.directions[0]}", "promise", side, risk)
            # base PITs are known under a known link
            if promise.envelope is not None and promise.statistic == "mean_pit":
                for side in kept_envelope(promise.envelope):
                    name = f"envelope {side.directions[0]}"
                    self._test(name, "promise", side, settings.false_alarm / 2)
        if self.groups.names:
            self.errors = BiasSums() if self.kind == "event" else PITSums()
            self._test("group", "group", calibrated(self.kind, settings.tolerance), risks["group"])
        if has_draws:
            by_group = bool(self.groups.partitions)
            # all rows have half of the risk if there are groups
            risk = risks["draws"] / 2 if by_group else risks["draws"]
            self._test("draws", "draws", FAIR_DRAWS, risk)
            if by_group:
                self._test("draws of groups", "draws", FAIR_DRAWS, risk)
        self._add_groups()

    def _test(self, name: str, part: Part, statement: Statement, risk: float) -> None:
        """Test a statement about all rows, or about each group, at a risk of a false alarm."""
        self.tests[name] = Tests(statement, part, risk)
        if name not in OF_GROUPS:
            self.tests[name].add([None], [-math.log(risk)])

    def _add_groups(self) -> None:
        """Add groups that have appeared to their tests."""
        for test in (self.tests[name] for name in OF_GROUPS if name in self.tests):
            n_known = len(test.names)
            test.add(self.groups.names[n_known:], self.groups.log_thresholds(test.risk)[n_known:])
        if self.errors is not None:
            self.errors.extend(len(self.groups.names))

    def _advance(self, number: int) -> None:
        for _ in range(number - self.current):
            for test in self.tests.values():
                test.begin_period()
            if self.values is not None:
                self.values.begin_period()
            self.current += 1

    def _add(self, rows: Rows) -> None:
        """Add rows period by period."""
        members = self.groups.members(rows)
        # cuts by people served later would not be known when these were served
        members[: max(0, self.n_learned - self.n_rows), self.groups.has_everyone :] = False
        self._add_groups()
        self.n_missing += int((~rows.known).sum())
        if rows.delay is not None:
            self.n_late += int((~rows.known & ~np.isnan(rows.delay)).sum())
        if self.errors is not None:
            observed = excess_of(rows) if self.kind == "event" else np.stack(rows.pit)
            self.errors.add(observed[..., rows.known], members[rows.known])
        sets = self._sets(rows, members)
        x = {name: self.tests[name].statement.values(rows) for name in sets}
        values = None if self.promise is None else promise_values(self.promise, rows)
        numbers = self._numbers(rows.time + self.matures_after)
        starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(rows)]
        for start, end in pairwise(starts):
            self._advance(numbers[start])
            some = slice(start, end)
            if self.values is not None and values is not None:
                value, covered = values
                self.values.add(value[some][covered[some]])
            found = [
                (row, name, alarm)
                for name, mine in sets.items()
                for row, alarm in self.tests[name].update(x[name][some], mine[some], self.date_of)
            ]
            # in the order of rows, which splits of the rows into updates must not change
            for _, name, alarm in sorted(found, key=lambda one: one[0]):
                # people outside the envelope break no promise
                (self.notices if name.startswith("envelope") else self.alarms).append(alarm)
        self.n_rows += len(rows)

    def _sets(self, rows: Rows, members: Mask) -> dict[str, Mask]:
        """Return the rows of the sets of each test that these rows are for."""
        everyone = np.full((len(rows), 1), True)
        sets = {name: members if name in OF_GROUPS else everyone for name in self.tests}
        of_draws = [name for name, test in self.tests.items() if test.part == "draws"]
        if rows.r is None:
            return {name: mine for name, mine in sets.items() if name not in of_draws}
        if of_draws:
            # a repeated draw follows from the past, and would be counted as often as people ask
            is_new = self.seen.is_new(rows.r)
            self.drawn.add(np.stack((rows.r, rows.r))[:, is_new], everyone[is_new])
            sets |= {name: sets[name] & is_new[:, None] for name in of_draws}
        return sets

    def date_of(self, number: int) -> str:
        """Return the start of a period by its number, from 1 for the first one.

        It is an ISO date; of an hour with its time in UTC.
        """
        period = self.settings.period
        found = pd.Period(ordinal=(self.first or 0) + number - 1, freq=FREQUENCIES[period])
        first = found if period == "hour" else found.asfreq("D", how="start")
        return str(first).replace(" ", "T")

    def check_like(self, other: Ledger) -> None:
        """Refuse if another watch has another promise or other settings."""
        mine, others = ({"certificate": one.promise, **vars(one.settings)} for one in (self, other))
        for name, value in mine.items():
            if value != others[name]:
                raise InputError(
                    f"{named(name.removesuffix('_days'))} is {short(value)} in the state, not"
                    f" {short(others[name])}; settings are fixed when a watch begins, so begin a"
                    " new watch for others"
                )

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Ledger:
        """Rebuild the ledger from the output of `to_state`."""
        names = ("settings", "promise", "kind")
        ledger = cls(**{name: read(name, cls._declared()[name], state[name]) for name in names})
        ledger.groups.restore(state["groups"])
        if state["first"] is not None:
            ledger._make_tests(has_draws="draws" in state["tests"])
        ledger.restore(state)
        return ledger


# --- promises of certificates, of selected randomizations, and of folders with a certificate

DEFAULT_MASS = 0.2
"""Group size of the promise of a certificate for all sizes."""

Promising = Certificate | Selection | Promise | AnyPath
"""What contains a promise: a certificate, a selected randomization, or the path of a folder."""


def promise_of(source: Promising) -> Promise:
    """Return what is promised for every group of a size, in the form that a watch tests.

    Parameters
    ----------
    source : Certificate, Selection, Promise or path
        A certificate; the result of `randomize`; or a folder with `certificate.json`, which
        `evenhand fit` and `evenhand randomize` write, or that file itself. Of a certificate that
        bounds groups of all sizes it is the promise for those of at least 20%.

    Returns
    -------
    Promise

    Raises
    ------
    InputError
        If nothing is promised, or the certificate is damaged.

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
    if isinstance(source, Certificate):
        return source.promise(source.mass or DEFAULT_MASS)
    if isinstance(source, Selection):
        return source.promise()
    if isinstance(source, Promise):
        return source
    if not isinstance(source, str | os.PathLike):
        rule = "be a Certificate, a Selection, a Promise or a path"
        raise bad_input("certificate", rule, type(source).__name__)
    path, content = Path(source), read_certificate(Path(source))
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


PROMISED = ("mass", "target", "targets", "statistic", "confidence", "atom", "link", "alpha")
"""Keys of a promise that are listed with the settings; None without one."""


def watch_values(ledger: Ledger) -> dict[str, Any]:
    """Return settings, alarms, evidence per period and estimates as JSON values."""
    n_periods = 0 if ledger.first is None else ledger.current - ledger.first + 1
    dates = [ledger.date_of(1 + i) for i in range(n_periods)]
    tests = [
        record
        for name, test in ledger.tests.items()
        # what gives no alarm is no evidence for one
        if not name.startswith("envelope")
        for record in test.records()
    ]
    return {
        "schema": SCHEMA,
        "status": ("alarm" if ledger.alarms else "no alarm") if ledger.n_rows else "no rows yet",
        "settings": _settings(ledger),
        "first": dates[0] if dates else None,
        "until": dates[-1] if dates else None,
        "n_periods": n_periods,
        "n_rows": ledger.n_rows,
        "n_missing": ledger.n_missing,
        "n_late": ledger.n_late,
        "n_waiting": None,
        "n_repeated": None,
        "days_90": None,
        "alarms": [_alarm(alarm, tests) for alarm in ledger.alarms],
        "notices": [asdict(notice) for notice in ledger.notices],
        "dates": dates,
        "tests": tests,
        "promise": _promise(ledger, dates),
        "groups": _groups(ledger),
        "draws": _draws(ledger),
    }


def _settings(ledger: Ledger) -> dict[str, Any]:
    promised = {} if ledger.promise is None else ledger.promise.to_dict()
    return {
        **asdict(ledger.settings),
        "groups": list(ledger.settings.groups),
        "kind": None if ledger.first is None else ledger.kind,
        **{name: promised.get(name) for name in PROMISED},
    }


def _promise(ledger: Ledger, dates: list[str]) -> dict[str, Any] | None:
    """Return estimates and evidence; after an alarm with the estimate of the rows since then."""
    if ledger.values is None:
        return None
    names = ("estimate", "best_case", "worst_case", "direction")
    found = ledger.values.estimates()
    alarm = next((one for one in ledger.alarms if one.part == "promise"), None)
    recent = None
    if alarm is not None:
        since = ledger.values.estimates(dates.index(alarm.since) + 1)
        recent = {"since": dates[since["since"] - 1], **{name: since[name] for name in names}}
    tests = ledger.tests.items()
    sides = [test.evidence() for name, test in tests if name.startswith("promise")]
    evidence = ("log_evidence", "max_log_evidence", "threshold")
    return {
        **{name: found[name] for name in names},
        **{name: max(side[name] for side in sides) for name in evidence},
        "recent": recent,
    }


def _groups(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the estimates and the evidence of each group."""
    errors = ledger.errors
    if errors is None:
        return []
    tests = ledger.tests["group"]
    return [
        {
            "name": name,
            "n_missing": int(tests.n_rows[j]) - errors.n_rows(j),
            "error": errors.error(j),
            "bias_direction": errors.direction(j),
            "since_start": j < ledger.groups.n_first,
            **tests.evidence(j),
        }
        for j, name in enumerate(ledger.groups.names)
    ]


def _draws(ledger: Ledger) -> dict[str, Any] | None:
    """Return the estimate and the evidence of the draws of all rows."""
    tests = ledger.tests.get("draws")
    if tests is None:
        return None
    return {
        "n_repeated": ledger.seen.n_repeated,
        "error": ledger.drawn.error(0),
        **tests.evidence(),
    }


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
        learned from the rows of the first update, so give it enough rows, at least 20. "everyone"
        among them is the group of all rows. With neither groups nor a certificate, everyone is
        watched as one group.
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
        groups: Any = (),
        tolerance: float = 0.02,
        false_alarm: float = 0.05,
        period: Any = "day",
        matures_after: float | str | timedelta | None = None,
    ) -> None:
        wait = as_duration(matures_after) / np.timedelta64(1, "D")
        days = None if matures_after is None else float(wait)
        settings = Settings(groups, tolerance, false_alarm, period, days)
        self._ledger = Ledger(settings, None if certificate is None else promise_of(certificate))

    @property
    def alarms(self) -> list[Alarm]:
        """All alarms so far, in the order of the rows that raised them."""
        return list(self._ledger.alarms)

    @property
    def notices(self) -> list[Alarm]:
        """Changes so far that break no promise."""
        return list(self._ledger.notices)

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
            raise bad_input("rows", "be Rows", type(rows).__name__, "make them with Rows.of")
        end = None if until is None else as_time("until", until)
        n_before = len(self._ledger.alarms)
        self._ledger.add(rows, end)
        return self._ledger.alarms[n_before:]

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
        watch = cls.__new__(cls)
        with read_state("Watch.state"):
            if (schema := state["schema"]) != STATE_SCHEMA:
                raise InputError(f"its schema is {schema!r:.60}, not {STATE_SCHEMA!r}")
            watch._ledger = Ledger.from_state(state)
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
        return written(json.dumps(self.to_dict(), indent=2), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the watch as one page of HTML that opens offline; write it to `path` if given."""
        return written(watch_html(self.to_dict()), path)

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
    return json.loads(text)
