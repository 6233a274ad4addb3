"""The watch over served forecasts: alarms when a promise, a tolerance or the draws are broken."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from evenhand._files import write_text
from evenhand._format import Summarized, one_line
from evenhand._validate import InputError, about, bad_input, check_fraction
from evenhand.certificates import Certificate, EventCertificate, Promise
from evenhand.monitoring.ledger import Ledger
from evenhand.monitoring.rows import Rows, as_time
from evenhand.monitoring.settings import STATE_SCHEMA, Alarm, Notice, Settings, check_schema
from evenhand.monitoring.watched_parts import FairDraws, GroupErrors, PromiseKept, cases
from evenhand.report import watch_html, watch_text
from evenhand.selection import Selection
from evenhand.store import CERTIFICATE, certificate_at

# --- promises of certificates, of selected randomizations, and of folders with a certificate

DEFAULT_MASS = 0.2
"""Group size of a promise, if neither the certificate nor the caller gives one."""

Promising = Certificate | EventCertificate | Selection | Promise | str | os.PathLike[str]
"""What contains a promise: a certificate, a selected randomization, or the path of a folder."""


def promise_of(source: Promising, mass: float | None = None) -> Promise:
    """Return what is promised for every group of a size, in the form that a watch tests.

    Parameters
    ----------
    source : Certificate, EventCertificate, Selection, Promise or path
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
    if isinstance(source, Certificate | EventCertificate):
        only = getattr(source, "mass", None)
        return source.promise((only or DEFAULT_MASS) if mass is None else mass)
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
    content = certificate_at(path)
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
        "horizon_days": settings.horizon_days,
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

    A watch tests three things on rows whose horizon has passed: the promise of a certificate for
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
    horizon : float, str, timedelta or None, default None
        Time from serving at which outcomes are read, in days or as "365d". A row belongs to the
        period in which its horizon ends, never to that in which its outcome arrived. None: rows
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
    once. Draws are tested when their rows enter, at the end of the horizon. For detection
    without that delay, use another watch without a horizon on rows without outcomes.

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
        horizon: float | str | timedelta | None = None,
    ) -> None:
        settings = Settings.checked(groups, tolerance, false_alarm, period, horizon)
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

        Their outcomes are not needed, so groups are known before the first horizon has passed.
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
            Served forecasts whose horizon has passed, in the order of serving, later than all rows
            before. May be empty.
        until : time, optional
            Time up to which all rows whose horizon has passed are included. Periods without rows
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
