"""What to do after an audit, as lines of the command and of Python."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from evenhand._format import in_full, is_largest
from evenhand.report.kinds import Kind
from evenhand.results import MASS, AuditRows, Finding


@dataclass(frozen=True)
class Step:
    """A step after an audit: what it does, and how in the command and in Python, if it can."""

    what: str
    command: str = ""
    python: str = ""

    def code(self, has_command: bool) -> tuple[bool, str]:
        """Return whether a reader runs it as a command, and the command or lines of Python.

        Readers who audited with the command get the command, others the lines of Python.
        """
        is_shell = bool(self.command) and (has_command or not self.python)
        return is_shell, self.command if is_shell else self.python


FORECASTS = ("--target", "--forecast", "--event", "--horizon", "--weight", "--drop-missing")
"""Options of the command that name outcomes and forecasts of rows."""

PEOPLE = ("--id", "--person", "--entered", "--largest-weight")
"""Further options of rows that a certificate needs."""

GOAL = "0.25"
"""Largest group error in examples of a guarantee."""

MAPS = "RecalibratedRegressor(FrozenEstimator(model))"
"""A model with a correction of all its forecasts."""

APART = "with rows that neither the model nor this audit has seen"


def next_steps(rows: AuditRows, kind: Kind) -> Iterator[Step]:
    """Yield what to do next: repair, collect rows, prove; the most urgent first."""
    yield from _repairs(rows, _options(rows, FORECASTS))
    if not rows.problems:
        yield _more_rows(rows, kind)
    yield from _proof(rows, kind, _options(rows, (*FORECASTS, *PEOPLE)))


def _more_rows(rows: AuditRows, kind: Kind) -> Step:
    # a plan is for outcomes that are all known
    if kind.has_range:
        return Step("Follow people for longer, collect more rows, or name fewer groups.")
    n = max(len(rows.examined), 1)
    return Step(
        "See how many rows show which error.",
        f"evenhand plan --groups {n}",
        f"print(evenhand.plan(n_groups={n}))",
    )


def _repairs(rows: AuditRows, options: str) -> Iterator[Step]:
    """Yield how to recalibrate the groups, or all forecasts, that have a problem."""
    apart = (*rows.overall, *rows.by_forecast)
    others = [one for one in rows.problems if not any(one is other for other in apart)]
    # groups found by search have no column
    listed = [one for one in others if one.mass is None]
    # groups of people before those by the forecast, which a repair of others changes, too
    order = sorted(rows.listed, key=lambda one: one.key is not None)
    rules = [text for one in order if (text := _rule_of(one)) is not None][:1]
    # an error along the forecast is no matter of single groups
    leads = any(rows.leading is other for other in apart)
    is_of_all = rows.is_everyone_problem and (not others or leads)
    if rules and not is_of_all:
        yield _repair(rows, rules, options)
    elif listed and not is_of_all:
        yield _repair_by_column(rows, listed[0], options)
    elif rows.problems:
        yield Step(
            f"Recalibrate all forecasts {APART}.",
            _of_table(options, "evenhand recalibrate OTHER.csv {} --out repaired"),
            _of_model(rows, "repaired.fit({})", f"repaired = {MAPS}"),
        )


def _rule_of(one: Finding) -> str | None:
    """Return the rule of a group as text; None for a mask, and for a group without a rule."""
    if not one.rule:
        return None
    # the name of other groups is their rule
    if one.key is None and one.mass is None:
        return one.group
    texts = []
    for condition in one.rule:
        for each in condition["comparisons"]:
            operator, value = each["operator"], each["value"]
            words = {"missing": "is missing", "present": "is not missing"}.get(operator, operator)
            texts.append(
                f"{each['column']} {words}" + ("" if value is None else f" {_in_rule(value)}")
            )
            texts[-1] += " (or missing)" * bool(condition.get("or_missing"))
    return " and ".join(texts)


def _in_rule(value: str) -> str:
    """Return a value of a rule as rules are read: in quotes where it has their words or signs."""
    is_plain = value == value.strip() != "" and not value.endswith("(or missing)")
    if is_plain and '"' not in value and not re.search(r"\s(?:and|or)\s", value, re.IGNORECASE):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _repair(rows: AuditRows, rules: Sequence[str], options: str) -> Step:
    chosen = " ".join(f"--by {_quoted(rule)}" for rule in rules)
    what = f"Repair {'this group' if len(rules) == 1 else 'these groups'} {APART}."
    model = "model"
    if rows.is_randomized:
        # the draw is the outermost part of a forecaster: what it is put around is repaired
        what = f"Repair the model before the draw, {APART}; then randomize it again."
        model = "model.estimator_"
        options = ""
    command = _of_table(options, f"evenhand recalibrate OTHER.csv {{}} {chosen} --out repaired")
    first = ["found = evenhand.audit(model, X, y)"] * rows.has_command
    return Step(what, command, _of_model(rows, f"repaired = found.repair({model}, {{}})", *first))


def _repair_by_column(rows: AuditRows, one: Finding, options: str) -> Step:
    """Return how to recalibrate groups without a rule: masks, and groups of tables in parts."""
    column = _column_of(rows, one)
    # a mask has no rule that a command could name
    by = "by=groups" if column is None else f"by={json.dumps(column, ensure_ascii=False)}"
    option = "" if column is None else f" --by {_quoted(column)}"
    line = f"evenhand recalibrate OTHER.csv {{}}{option} --out repaired"
    return Step(
        f"Recalibrate the groups with a problem, {APART}.",
        _of_table(options, line),
        _of_model(rows, "repaired.fit({})", f"repaired = {MAPS[:-1]}, {by})"),
    )


def _column_of(rows: AuditRows, one: Finding) -> str | None:
    """Return the column that alone defines a group; None if there is none."""
    # recalibration by group takes one column; an intersection of two has none
    if one.features or not one.column:
        return one.features[0] if len(one.features) == 1 else None
    names = {other.group for other in rows.named}
    columns = {
        name for other in rows.scanned if other.group not in names for name in other.features
    }
    # a named group may come from outside the features, where the model cannot see its column
    return one.column if one.column in columns else None


def _proof(rows: AuditRows, kind: Kind, options: str) -> Iterator[Step]:
    """Yield how to prove something for every group, named or not, if nothing is proven."""
    bound = rows.bound
    if kind.has_rates or (bound is not None and not is_largest(bound.group_error)):
        return
    if rows.is_randomized:
        if rows.n_draws == 1 and bound is None:
            yield Step(
                "For a promise for every group, audit several draws per row.",
                "",
                "audit(model, X, y)",
            )
        return
    if kind.has_range and not kind.horizon:
        # the horizon depends on the times, which an audit does not record
        yield Step(
            "For a promise for every group, audit up to a horizon until which most people are"
            f" followed{' (--horizon)' if options else ''}.",
            python="" if options else "audit(model, X, evenhand.Outcomes(y, event, horizon=60))",
        )
        return
    size = f"{in_full(MASS)} of {kind.people}"
    floors = [one for one in rows.plain_intervals if one.mass == MASS and (one.floor or 0) > 0]
    wider = f"a wider interval, such as {in_full(floors[-1].level)}, or " if floors else ""
    yield Step(
        f"To prove coverage for every group of at least {size}, use {wider}a draw.",
        f"evenhand plan --max-group-error {GOAL}",
        f"print(evenhand.plan({GOAL}))",
    )
    yield Step(
        "If wider intervals are acceptable, randomize as little as the proof needs, on other rows.",
        _of_table(
            options, f"evenhand randomize OTHER.csv {{}} --max-group-error {GOAL} --out proven"
        ),
        _of_model(rows, f"chosen = evenhand.randomize(model, {{}}, max_group_error={GOAL})"),
    )


def _of_table(options: str, line: str) -> str:
    """Return a command on a table of forecasts; nothing for an audit that was made in Python."""
    if not options:
        return ""
    # a folder that is read must not be replaced
    is_read = any(line.endswith(f"--out {Path(word).name}") for word in options.split())
    return line.replace("{}", options, 1) + "-again" * is_read


def _of_model(rows: AuditRows, line: str, *first: str) -> str:
    """Return lines of Python on a model; those that load it follow an audit by the command."""
    lines = [*(['model = evenhand.load("model")'] * rows.has_command), *first]
    if rows.censoring is not None:
        horizon = rows.censoring.horizon
        until = "" if horizon is None else f", horizon={horizon:.15g}"
        lines.append(f"y_other = evenhand.Outcomes(y_other, event_other{until})")
    return "\n".join([*lines, line.replace("{}", "X_other, y_other")])


def _options(rows: AuditRows, names: Sequence[str]) -> str:
    """Return some options of the recorded command; nothing if no command was recorded."""
    recorded = rows.provenance.get("command")
    try:
        given = shlex.split(str(recorded or ""))
    except ValueError:  # an audit that was edited
        return ""
    words: list[str] = []
    for word, after in pairwise([*given, ""]):
        name, is_joined, value = word.partition("=")
        if name in names:
            has_value = name != "--drop-missing"
            words += [name, _quoted(value if is_joined else after)] if has_value else [name]
    return " ".join(words) if "--forecast" in words else ""


def _quoted(text: str) -> str:
    """Quote a word for shells, with double quotes where these suffice."""
    quoted = shlex.quote(text)
    is_simple = quoted != text and not any(sign in text for sign in "\"$`\\!'")
    return f'"{text}"' if is_simple else quoted
