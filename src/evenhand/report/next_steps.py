"""What to do after an audit, as lines of the command and of Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from evenhand._format import in_full
from evenhand._table import folded_command
from evenhand.report.document import Paragraph, Part, Section
from evenhand.report.findings import MASS, Findings, GroupFinding
from evenhand.report.records import Values, or_zero

FORECASTS = ("--target", "--forecast", "--event", "--horizon", "--weight", "--drop-missing")
"""Options of the command that name outcomes and forecasts of rows."""

PEOPLE = ("--id", "--person", "--entered", "--largest-weight")
"""Further options of rows that a certificate needs."""

GOAL = "0.25"
"""Largest group error in examples of a guarantee."""


@dataclass(frozen=True)
class NextStep:
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


def next_steps(findings: Findings) -> tuple[NextStep, ...]:
    """Return what to do next: repair, collect rows, prove; the most urgent first."""
    return tuple(_steps(findings))


def _steps(findings: Findings) -> Iterator[NextStep]:
    yield from _repairs(findings, forecast_options(findings, FORECASTS))
    if not findings.problems:
        yield _more_rows(findings)
    yield from _proof(findings, forecast_options(findings, (*FORECASTS, *PEOPLE)))


def _more_rows(findings: Findings) -> NextStep:
    """Return what finds smaller errors."""
    # a plan is for outcomes that are all known
    if findings.terms.is_time:
        return NextStep("Follow people for longer, collect more rows, or name fewer groups.")
    n = max(len(findings.examined), 1)
    return NextStep(
        "See how many rows show which error.",
        f"evenhand plan --groups {n}",
        f"print(evenhand.plan(n_groups={n}))",
    )


def _repairs(findings: Findings, options: str) -> Iterator[NextStep]:
    """Yield how to recalibrate the groups, or all forecasts, that have a problem."""
    names = repairable_names(findings)
    apart = (*findings.overall, *findings.by_forecast)
    others = [group for group in findings.problems if group not in apart]
    # groups found by search have no column
    listed = [group for group in others if group.mass is None]
    # an error along the forecast is no matter of single groups
    is_of_all = findings.is_everyone_problem and (not others or findings.leading in apart)
    if names and not is_of_all:
        yield _repair(findings, names, options)
    elif listed and not is_of_all:
        yield _repair_by_column(findings, listed[0], options)
    elif findings.problems:
        yield NextStep(
            "Recalibrate all forecasts with rows that neither the model nor this audit has seen.",
            _of_table(options, "evenhand recalibrate OTHER.csv {} --out repaired"),
            _of_model(findings, "RecalibratedRegressor(FrozenEstimator(model)).fit({})"),
        )


def repairable_names(findings: Findings) -> list[str]:
    """Return rules of the listed groups with a problem that have one, the most important first."""
    rules = (_rule_of(findings, group) for group in findings.listed)
    return [rule for rule in rules if rule is not None]


def _rule_of(findings: Findings, group: GroupFinding) -> str | None:
    """Return the rule of a group as text; None for a mask, and for a group without a rule."""
    for one in findings.values.get("off_groups") or ():
        is_group = one["group"] == group.name if one.get("mass") is None else False
        if one.get("rule") and (is_group or (group.mass and one.get("mass") == group.mass)):
            # the name of other groups is their rule
            return _rule_text(one["rule"]) if group in findings.by_forecast else str(one["group"])
    return None


def _rule_text(rule: Sequence[Values]) -> str:
    comparisons = [one for condition in rule for one in condition["comparisons"]]
    return " and ".join(f"{c['column']} {c['operator']} {c['value']}" for c in comparisons)


def _repair(findings: Findings, names: list[str], options: str) -> NextStep:
    chosen = " ".join(f"--by {_quoted(name)}" for name in names)
    what = "Recalibrate the groups with a problem, with rows that neither model nor audit has seen."
    model = "model"
    if findings.is_randomized:
        # the draw is the outermost part of a forecaster: what it is put around is repaired
        what = "Recalibrate the model before the draw, with rows that neither it nor the audit has"
        what += " seen; then randomize it again."
        model = "model.estimator_"
        options = ""
    command = _of_table(options, f"evenhand recalibrate OTHER.csv {{}} {chosen} --out repaired")
    line = f"repaired = found.repair({model}, {{}})"
    return NextStep(what, command, _of_model(findings, line, "found = evenhand.audit(model, X, y)"))


def _repair_by_column(findings: Findings, group: GroupFinding, options: str) -> NextStep:
    """Return how to recalibrate groups without a rule: masks, and groups of tables in parts."""
    column = _column_of(findings, group)
    by = "by=groups" if column is None else f"by={json.dumps(column, ensure_ascii=False)}"
    line = f"evenhand recalibrate OTHER.csv {{}} --by {_quoted(column or 'COLUMNS')} --out repaired"
    return NextStep(
        "Recalibrate the groups with a problem, with rows that neither model nor audit has seen.",
        _of_table(options, line),
        _of_model(findings, f"RecalibratedRegressor(FrozenEstimator(model), {by}).fit({{}})"),
    )


def _column_of(findings: Findings, group: GroupFinding) -> str | None:
    """Return the column that alone defines a group; None if there is none."""
    # recalibration by group takes one column; an intersection of two has none
    if not group.is_named:
        return group.features[0] if len(group.features) == 1 else None
    names = {other.name for other in findings.named}
    columns = {name for g in findings.scanned if g.name not in names for name in g.features}
    # a named group may come from outside the features, where the model cannot see its column
    return group.column if group.column in columns else None


def _proof(findings: Findings, options: str) -> Iterator[NextStep]:
    """Yield how to prove something for every group, named or not, if nothing is proven."""
    if findings.terms.is_event or findings.is_bound_useful:
        return
    if findings.is_randomized:
        if findings.n_draws == 1 and findings.bound is None:
            yield NextStep(
                "For a guarantee for every group, audit several draws per row.",
                "",
                "audit(model, X, y)",
            )
        return
    if findings.terms.is_time and not findings.terms.horizon:
        # the horizon depends on the times, which an audit does not record
        yield NextStep(
            "For a guarantee for every group, audit up to a horizon until which most people are"
            f" followed{' (--horizon)' if options else ''}.",
            python="" if options else "audit(model, X, evenhand.Outcomes(y, event, horizon=60))",
        )
        return
    size = f"{in_full(MASS)} of {findings.terms.people}"
    floors = [one for one in findings.plain if one.mass == MASS and or_zero(one.floor) > 0]
    wider = f"a wider interval, such as {in_full(floors[-1].level)}, or " if floors else ""
    yield NextStep(
        f"To prove coverage for every group of at least {size}, use {wider}randomized forecasts.",
        f"evenhand plan --max-group-error {GOAL}",
        f"print(evenhand.plan({GOAL}))",
    )
    yield NextStep(
        "If that price is acceptable, randomize as little as the proof needs, on other rows.",
        _of_table(
            options, f"evenhand randomize OTHER.csv {{}} --max-group-error {GOAL} --out proven"
        ),
        _of_model(findings, f"chosen = evenhand.randomize(model, {{}}, max_group_error={GOAL})"),
    )


def _of_table(options: str, line: str) -> str:
    """Return a command on a table of forecasts; nothing for an audit that was made in Python."""
    if not options:
        return ""
    # a folder that is read must not be replaced
    is_read = any(line.endswith(f"--out {Path(word).name}") for word in options.split())
    return line.replace("{}", options, 1) + "-again" * is_read


def _of_model(findings: Findings, line: str, *first: str) -> str:
    """Return lines of Python on a model; those that load it follow an audit by the command."""
    line = line.replace("{}", _rows(findings, "other"))
    if not has_command(findings):
        return line
    return "\n".join(['model = evenhand.load("model")', *first, line])


def _rows(findings: Findings, which: str) -> str:
    """Return the arguments of Python that are rows and outcomes, such as "X_other, y_other"."""
    outcomes = f"y_{which}"
    if findings.censoring is not None:
        horizon = findings.censoring.horizon
        until = "" if horizon is None else f", horizon={horizon:.15g}"
        outcomes = f"evenhand.Outcomes({outcomes}, event_{which}{until})"
    return f"X_{which}, {outcomes}"


def has_command(findings: Findings) -> bool:
    """Whether the audit was made by the command."""
    return bool((findings.values.get("provenance") or {}).get("command"))


def forecast_options(findings: Findings, names: Sequence[str]) -> str:
    """Return some options of the recorded command; nothing if no command was recorded."""
    recorded = (findings.values.get("provenance") or {}).get("command")
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


# --- section on what to do after an audit

WIDTH = 90
"""Most characters of a line of a command."""


def next_section(findings: Findings) -> Section | None:
    """Show the next steps, as commands if the audit was made by one, else in Python."""
    steps = next_steps(findings)
    if not steps:
        return None
    parts: list[Part] = []
    for step in steps:
        is_shell, code = step.code(has_command(findings))
        lines = [f">>> {line}" for line in code.split("\n")]
        lines = [f"$ {folded_command(code, WIDTH)}"] if is_shell else lines
        parts += [Paragraph(step.what), *([Paragraph("\n".join(lines), "code")] if code else [])]
    return Section("What to do next", parts, "next")
