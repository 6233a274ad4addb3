"""Subcommand `watch`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from evenhand._files import write_text
from evenhand._format import and_more, count
from evenhand._validate import (
    about,
    check_choice,
    check_fraction,
)
from evenhand.cli import options
from evenhand.cli.auditing import check_out
from evenhand.cli.checks import check_apart, listed_names
from evenhand.cli.options import GATE, GROUPS, LOG, flag, option, with_options
from evenhand.cli.output import Verdict, command_line, inform, show_result
from evenhand.cli.rooms import monitoring, report, service, store

if TYPE_CHECKING:
    from evenhand.service import LogWatch

WATCHED = "What is watched"
"""Panel of options in the help page."""


@with_options
def watch(
    log: options.Log,
    matures_after: Annotated[
        str,
        option("time from a forecast to the reading of its outcome, such as 365d", WATCHED, "TIME"),
    ],
    certificate: Annotated[
        Path | None,
        option("folder of the served model, whose certificate is the promise", WATCHED, "FOLDER"),
    ] = None,
    groups: Annotated[
        str | None,
        option("columns that define groups; by default all of the log", GROUPS, "COLUMNS"),
    ] = None,
    tolerance: Annotated[
        float, option("error of a group that raises no alarm", GROUPS, "SHARE")
    ] = 0.02,
    context: Annotated[
        str | None,
        option("contexts; by default all of the served model, also later ones", LOG, "NAMES"),
    ] = None,
    until: Annotated[
        str | None,
        option("date or time in UTC for which the log is read; by default now", LOG, "DATE"),
    ] = None,
    state: Annotated[
        Path | None, option("file from which the watch continues; written in the end", LOG, "FILE")
    ] = None,
    false_alarm: Annotated[
        float,
        option("probability of ever raising a false alarm, however often watched", GATE, "SHARE"),
    ] = 0.05,
    period: Annotated[
        str,
        option("a change may begin with each hour, day, week or month", WATCHED, "PERIOD"),
    ] = "day",
    fail_if_alarm: Annotated[
        bool, flag("--fail-if-alarm", "exit with code 1 if there is an alarm, new or old", GATE)
    ] = False,
    out: options.Out = None,
    as_json: options.AsJson = False,
) -> None:
    """Watch a decision log: whether the promise of a certificate still holds, by group and draw.

    First, the hash chain of the whole log is verified. All contexts of the model are watched as one
    stream, in which each person counts once. An alarm means that a promise, the tolerance
    of a group or the uniformity of the draws is broken; it names what, since about when, and how
    strong the evidence is. The log may be watched as often as you like.
    """
    settings = _checked(matures_after, tolerance, false_alarm, period)
    _check_files(out, state, log, certificate)
    listed = None if groups is None else listed_names("--groups", groups)
    before = None if state is None else service.WatchState.read(state)
    decisions = service.open_log(log, create=False)
    about = {} if certificate is None else store.read_certificate(certificate)
    chosen = service.WatchedContexts.of(
        decisions,
        None if context is None else listed_names("--context", context),
        model_sha256=about.get("model_sha256"),
        before=None if before is None else before.scope,
    )
    if listed is None and before is not None:
        listed = before.groups
    settings["groups"] = chosen.group_columns(listed, decisions.source)
    found = service.LogWatch(decisions, chosen, monitoring.Watch(certificate, **settings), before)
    alarms = found.update(until)
    values = found.to_dict(
        certificate=None if certificate is None else str(certificate),
        # the URL of a database may contain a password
        command=command_line().replace(shlex.quote(log), shlex.quote(decisions.source)),
    )
    if out is not None:
        _write(out, values)
    show_result(values, report.watch_text(values), as_json)
    # the text of a watch has its notes
    _inform(found, len(alarms), [*found.notes, report.late_sentence(values)] if as_json else [])
    # last, so that a run that failed is repeated by the next one
    if state is not None:
        found.state().write(state)
    if fail_if_alarm:
        n = len(found.watch.alarms)
        if n:
            inform(f"failed: {count(n, 'alarm')}")
        raise Verdict(1 if n else 0)


def _checked(
    matures_after: str, tolerance: float, false_alarm: float, period: str
) -> dict[str, Any]:
    """Return the settings of a watch by the names of its parameters."""
    with about("--matures-after"):
        monitoring.as_duration(matures_after)
    return {
        "matures_after": matures_after,
        "tolerance": check_fraction("--tolerance", tolerance),
        "false_alarm": check_fraction("--false-alarm", false_alarm),
        "period": check_choice("--period", period, monitoring.PERIODS),
    }


def _check_files(out: Path | None, state: Path | None, log: str, certificate: Path | None) -> None:
    """Refuse outputs that are inputs or cannot be written, before the log is read."""
    inputs = {"the log": Path(log.removeprefix("sqlite:///")), "the certificate": certificate}
    check_out(out, {**inputs, "the state": state})
    if state is not None:
        check_apart(state, inputs, option="--state")


def _write(out: Path, values: Mapping[str, Any]) -> None:
    """Write the values of a watch as a page or as JSON."""
    is_page = out.suffix.lower() == ".html"
    write_text(out, report.watch_html(values) if is_page else json.dumps(values, indent=2) + "\n")
    inform(f"watch written to {out}")


def _inform(found: LogWatch, n_new: int, notes: Sequence[str]) -> None:
    """Print what the text of a watch does not have: what was verified, and what is new."""
    verified = found.verified
    last = "" if verified.head is None else f"; last: {verified.head}"
    inform(f"hash chain of {count(verified.n_entries, 'entry', 'entries')} verified{last}")
    names = found.contexts.names
    if len(names) > 1:
        inform(f"watching {len(names):,} contexts as one: {and_more(list(map(repr, names)))}")
    for note in filter(None, notes):
        inform(f"warning: {note}")
    if n_new:
        inform(f"{count(n_new, 'new alarm')}")
