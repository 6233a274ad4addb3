"""The values of a watch that pages, texts and files are made of."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from evenhand.monitoring.alarms import Alarm
from evenhand.monitoring.ledger import Ledger
from evenhand.monitoring.watched_parts import FairDraws, GroupErrors
from evenhand.monitoring.watched_promise import PromiseKept, cases

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
