"""Subcommand `watch`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from evenhand._files import write_text
from evenhand._format import and_more, count
from evenhand._validate import InputError, about
from evenhand.cli.checks import check_apart, check_out, listed_names, refuse_without_effect
from evenhand.cli.options import Times, with_options
from evenhand.cli.output import Decision, command_line, inform, show_result
from evenhand.cli.rooms import monitoring, outcomes, report, service, store, tables
from evenhand.cli.rows import Given, chosen_columns, numbers_in, people_of, typed_table


@with_options
def watch(
    given: typer.Context,
    log: str,
    matures_after: str | None = None,
    target: str | None = None,
    forecast: str | None = None,
    time: str | None = None,
    id: str | None = None,
    recorded: str | None = None,
    certificate: Path | None = None,
    groups: str | None = None,
    tolerance: float = 0.02,
    context: str | None = None,
    until: str | None = None,
    state: Path | None = None,
    false_alarm: float = 0.05,
    period: str = "day",
    fail_if_alarm: bool = False,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Watch forecasts as they are served: whether a promise, groups and draws keep within bounds.

    A decision log is verified first, and all contexts of the model are watched as one stream, in
    which each person counts once. A table with --target, --forecast and --time has the forecasts
    and outcomes of any model, one row per person. Without a certificate, the errors of everyone, of
    the named groups, and of low and high forecasts are watched.

    An alarm means that a promise, a tolerance or the uniformity of the draws is broken; it names
    what, since about when, and how strong the evidence is. You may watch as often as you like.

    Arguments
    ---------
    log : LOG|TABLE
        decision log (a .sqlite file or a URL), or a table of forecasts with --target

    What is watched
    ---------------
    matures_after : TIME
        time from a forecast to the reading of its outcome, such as 365d
    certificate : FOLDER
        folder of the served model, whose certificate is the promise
    period : PERIOD
        a change may begin with each hour, day, week or month

    Table of forecasts with outcomes, instead of a log
    --------------------------------------------------
    target : COLUMN
        of a table: column with the outcome, empty if missing
    forecast : FORECAST
    time : COLUMN
        column with the time of each forecast
    id : COLUMN
        column with ids of people, each of whom has one row
    recorded : COLUMN
        column with the times at which outcomes were recorded

    Groups
    ------
    groups : COLUMNS
        columns that define groups; by default all of a log
    tolerance : SHARE
        error of a group that raises no alarm

    Decision log
    ------------
    context : NAMES
        contexts; by default all of the served model, also later ones
    until : DATE
        date or time in UTC for which the log is read; by default now
    state : FILE
        file from which the watch continues; written in the end

    Decision
    --------
    false_alarm : SHARE
        probability of ever raising a false alarm, however often watched
    fail_if_alarm
        exit with code 1 if there is an alarm, new or old

    Output
    ------
    out : FILE
        file to write: an .html page, or .json

    Examples
    --------
    evenhand watch log.sqlite --certificate proven --matures-after 365d --state watch.json
        --fail-if-alarm --out watch.html
    """
    settings: dict[str, Any] = {
        "matures_after": matures_after,
        "tolerance": tolerance,
        "false_alarm": false_alarm,
        "period": period,
    }
    monitoring.Watch(
        groups=[tables.EVERYONE], **settings
    )  # refuses wrong settings before the log is read
    inputs = {"the log": Path(log.removeprefix("sqlite:///")), "the certificate": certificate}
    check_out(out, {**inputs, "the state": state})
    if state is not None:
        check_apart(state, inputs, option="--state")
    listed = None if groups is None else listed_names("--groups", groups)
    names = {"target": target, "forecast": forecast, "time": time}
    if any(names.values()):
        for name in (name for name, value in names.items() if value is None):
            raise InputError(
                f"a table is watched with --target, --forecast and --time; add --{name}"
            )
        reason = "on a table, only on a decision log"
        refuse_without_effect(given, ("certificate", "state", "context"), reason)
        columns = {"target": target, "time": time, "id": id, "recorded": recorded}
        found = _watched_table(Path(log), str(forecast), columns, groups, settings, until)
        _show(found.to_dict(), out, as_json)
        alarms = found.alarms
    else:
        if matures_after is None:
            raise InputError("a log is watched with --matures-after, such as --matures-after 90d")
        refuse_without_effect(given, ("id", "recorded"), "on a decision log, only on a table")
        watched, n_new = _watched_log(log, certificate, settings, listed, context, until, state)
        values = watched.to_dict(
            certificate=None if certificate is None else str(certificate),
            # the URL of a database may contain a password
            command=command_line().replace(shlex.quote(log), shlex.quote(watched.log.source)),
        )
        _show(values, out, as_json)
        # the text of a watch has its notes
        notes = [*watched.notes, report.late_sentence(values)] if as_json else []
        _inform(watched, n_new, notes)
        # last, so that a run that failed is repeated by the next one
        if state is not None:
            watched.state().write(state)
        alarms = watched.watch.alarms
    if fail_if_alarm:
        if alarms:
            inform(f"failed: {count(len(alarms), 'alarm')}")
        raise Decision(1 if alarms else 0)


def _watched_log(
    log: str,
    certificate: Path | None,
    settings: dict[str, Any],
    listed: list[str] | None,
    context: str | None,
    until: str | None,
    state: Path | None,
) -> tuple[service.LogWatch, int]:
    """Return the watch over a log, and the number of its new alarms."""
    before = None if state is None else service.WatchState.read(state)
    decisions = service.open_log(log, create=False)
    about = {} if certificate is None else store.read_certificate(certificate)
    chosen = service.WatchedContexts.of(
        decisions,
        None if context is None else listed_names("--context", context),
        model_sha256=about.get("model_sha256"),
        before=None if before is None else before.scope,
    )
    if listed is None and before is not None and before.watch is not None:
        listed = list(before.watch["settings"]["groups"])  # which later contexts may lack
    settings["groups"] = chosen.group_columns(
        listed, decisions.source, with_everyone=certificate is None
    )
    found = service.LogWatch(decisions, chosen, monitoring.Watch(certificate, **settings), before)
    return found, len(found.update(until))


def _watched_table(
    path: Path,
    forecast: str,
    columns: Mapping[str, str | None],
    groups: str | None,
    settings: dict[str, Any],
    until: str | None,
) -> monitoring.Watch:
    """Return the watch over the forecasts and outcomes of a table."""
    given, times = Given.of(forecast).with_times(Times())
    subject, source = given.subject, path.name
    if getattr(given.forecaster, "alpha", None) is not None:
        raise InputError(f"{forecast} is randomized: its forecasts are watched in a decision log")
    wanted = {name: column for name, column in columns.items() if column is not None}
    data = typed_table(path, subject.schema, columns["id"])
    # what matures later may still have its outcome
    end = datetime.now(UTC) if until is None and settings["matures_after"] else until
    found = {name: tables.column_of(data, column, source) for name, column in wanted.items()}
    target = wanted["target"]
    outcome = {target: "target", times.event: "event"}
    named = chosen_columns("--groups", groups, outcome, list(data.columns), source)
    # outcomes of one person are dependent, and repeats of them look like evidence
    people_of(data, columns["id"], None, target, source)
    y: Any = tables.numbers(found.pop("target"), f"{source}: column {target!r}")
    event = numbers_in(data, times.event, source)
    served, recorded = columns["time"], columns["recorded"]
    with about(source, y=target, event=times.event, time=served, recorded=recorded):
        if times != Times():
            y = outcomes.Outcomes(y, event, times.horizon)
        made = monitoring.rows_of_forecast(
            given.forecaster.forecast(data[subject.columns(data.columns, source)]),
            y,
            groups=data[named],
            matures_after=settings["matures_after"],
            until=end,
            **found,
        )
    level = made.columns.columns[-1]
    watch = monitoring.Watch(groups=[tables.EVERYONE, *named, level], **settings)
    watch.update(made, until=end)
    return watch


def _show(values: dict[str, Any], out: Path | None, as_json: bool) -> None:
    """Write the values of a watch to a file, if one is named, and print them."""
    if out is not None:
        is_page = out.suffix.lower() == ".html"
        write_text(
            out, report.watch_html(values) if is_page else json.dumps(values, indent=2) + "\n"
        )
        inform(f"watch written to {out}")
    show_result(values, report.watch_text(values), as_json)


def _inform(found: service.LogWatch, n_new: int, notes: Sequence[str]) -> None:
    """Print what the text of a watch does not have: what was verified, and what is new."""
    verified = found.verified
    last = "" if verified.head is None else f"; last: {verified.head}"
    inform(f"hash chain of {count(verified.n_entries, 'entry', 'entries')} verified{last}")
    names = found.contexts.values
    if len(names) > 1:
        inform(f"watching {len(names):,} contexts as one: {and_more(map(repr, names))}")
    for note in filter(None, notes):
        inform(f"warning: {note}")
    if n_new:
        inform(f"{count(n_new, 'new alarm')}")
