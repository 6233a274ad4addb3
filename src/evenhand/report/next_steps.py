"""What to do after an audit, as lines of the command and of Python."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from evenhand._escape import OR_MISSING, as_value
from evenhand._format import count, in_full, is_largest, joined
from evenhand.report.kinds import Kind
from evenhand.results import MASS, AuditRows, Finding


class NextStep(NamedTuple):
    """A step after an audit: what it does, and a command or lines of Python, if it has any."""

    what: str
    code: str = ""
    is_command: bool = False


FORECASTS = (
    *("--target", "--forecast", "--event", "--horizon"),
    *("--weight", "--person", "--drop-missing"),
)
"""Options of the command that name outcomes and forecasts of rows."""

PEOPLE = ("--id", "--entered", "--largest-weight")
"""Further options of rows that a certificate needs."""

GOAL = "0.25"
"""Largest group error in examples of a guarantee."""

LONGEST_BY = 80
"""Most characters of the rules of several groups in a command: a line."""

APART = "with rows new to model and audit"


def next_steps(rows: AuditRows, kind: Kind) -> Iterator[NextStep]:
    """Yield what to do next: repair, collect rows, prove."""
    if rows.problems:
        yield _repair(rows, _options(rows, FORECASTS))
    elif kind.has_range:
        # a plan is for outcomes that are all known
        yield NextStep("Follow people for longer, collect more rows, or name fewer groups.")
    else:
        n = max(len(rows.examined), 1)
        command, python = f"evenhand plan --groups {n}", f"n_groups={n}"
        if kind.has_rates and rows.everyone.rate is not None:
            # rows with and without the event are needed, so it is never printed as 0 or 1
            rate = f"{min(max(rows.everyone.rate, 0.001), 0.999):.3g}"
            command, python = f"{command} --rate {rate}", f"{python}, rate={rate}"
        what = "Plan how many rows would show smaller errors."
        code = command if rows.has_command else f"print(evenhand.plan({python}))"
        yield NextStep(what, code, rows.has_command)
    yield from _proof(rows, kind, _options(rows, (*FORECASTS, *PEOPLE)))


def _repair(rows: AuditRows, options: str) -> NextStep:
    """Return how to recalibrate groups, or all forecasts, that have a problem."""
    worst = rows.problems[0]
    # an error along the forecast, or of people whom nothing describes, is not of single groups
    others = [one for one in rows.problems if not one.key and (one.columns or one in rows.named)]
    is_of_all = rows.is_everyone_problem and worst not in others
    is_of_all |= worst in rows.positive_part[:1]
    # groups of people before those by the forecast, which a repair of others changes, too
    listed = rows.apart(one for one in rows.problems if one.rule)
    ruled, option = list[Finding](), ""
    for one in sorted(listed, key=lambda one: one.key is not None):
        by = f" --by {_quoted(_rule_of(one))}"
        # a group of all outcomes and of those off the atom is one
        if by not in option and (not ruled or len(option + by) <= LONGEST_BY):
            ruled, option = [*ruled, one], option + by
    if not options:
        # in Python all groups with a problem are repaired; masks have no rule, but the reader has
        # them, unlike the rows of groups by features and of those found by search
        masks = [one for one in others if not one.columns]
        ruled = [*masks, *(one for one in rows.problems if one.rule)]
    if not (is_of_all or ruled) and worst.mass and worst.features:
        # a repair of all people would not be one of a group without a rule
        names = worst.features
        what = f"Name groups by {joined(names)} (the worst one has no rule); audit again, {APART}."
        command = f"evenhand audit OTHER.csv {{}} --groups {_quoted(','.join(names))}"
        return _step(rows, options, what, command, f"audit(model, {{}}, groups={list(names)})")
    if is_of_all or not ruled:
        command = "evenhand recalibrate OTHER.csv {} --out repaired"
        model = "RecalibratedRegressor(FrozenEstimator(model))"
        what = f"Recalibrate {APART}; audit again."
        return _step(rows, options, what, command, f"repaired = {model}", "repaired.fit({})")
    which, model = count(len(ruled), "group"), "model"
    if len(ruled) == 1 or not options:
        which = "this group" if ruled == [worst] else "the groups"
    # errors of other groups may be those of the people who are in these
    is_first = options and len(ruled) < rows.status.n_problems
    what = f"Repair {which}{' first,' if is_first else ''}"
    if rows.is_randomized:
        # the draw is the outermost part of a forecaster: what it is put around is repaired
        what, options = "Before you randomize it again, repair the model inside", ""
        model = "model.estimator_"
    first = "found = evenhand.audit(model, X, y)" if rows.has_command else ""
    masks_of = ", groups=masks" if any(not one.rule for one in ruled) else ""
    line = f"repaired = found.repair({model}, {{}}{masks_of})"
    names = worst.features
    # a group by the columns of the worst one has most of its people
    is_near = names and set(names) <= set(ruled[0].columns)
    rest = ""
    if (worst.mass or worst.key) and not (worst.rule or is_near):
        by = f": name groups by {joined(names)}" if names else ""
        rest = f" (the worst one has no rule and is left out{by})"
    command = f"evenhand recalibrate OTHER.csv {{}}{option} --out repaired"
    return _step(rows, options, f"{what} {APART}{rest}; audit again.", command, first, line)


def _rule_of(one: Finding) -> str:
    """Return the rule of a group as text, which the command reads."""
    # the name of other groups is their rule
    if one.key is None and one.mass is None:
        return one.group
    texts = []
    for condition in one.rule or ():
        for each in condition["comparisons"]:
            operator, value = each["operator"], each["value"]
            words = {"missing": "is missing", "present": "is not missing"}.get(operator, operator)
            text = f"{each['column']} {words}"
            text += "" if value is None else f" {as_value(value)}"
            texts.append(text + f" {OR_MISSING}" * bool(condition.get("or_missing")))
    return " and ".join(texts)


def _proof(rows: AuditRows, kind: Kind, options: str) -> Iterator[NextStep]:
    """Yield how to prove something for every group, named or not, if nothing is proven."""
    promise = "For a promise for every group, audit"
    if kind.has_rates or (rows.bound is not None and not is_largest(rows.bound.group_error)):
        return
    if rows.is_randomized:
        if rows.n_draws == 1 and rows.bound is None:
            yield NextStep(f"{promise} several draws per row.", "audit(model, X, y)")
        return
    if kind.has_range and not kind.horizon:
        # the horizon depends on the times, which an audit does not record
        until = f"{promise} up to a horizon until which most people are followed"
        python = "audit(model, X, evenhand.Outcomes(y, event, horizon=60))"
        yield NextStep(f"{until} (--horizon).") if options else NextStep(f"{until}.", python)
        return
    floors = [one for one in rows.plain_intervals if one.mass == MASS and one.floor > 0]
    wider = f"a wider interval, such as {in_full(floors[-1].level)}, or " if floors else ""
    size = f"{in_full(MASS)} of {kind.people}"
    what = f"To prove coverage for every group of at least {size}, use {wider}a draw."
    plan = f"evenhand plan --goal {GOAL}" if rows.has_command else f"print(evenhand.plan({GOAL}))"
    yield NextStep(what, plan, rows.has_command)
    line = f"evenhand randomize OTHER.csv {{}} --goal {GOAL} --out proven"
    what = "If intervals may be wider, randomize as little as the proof needs on other rows."
    python = f"chosen = evenhand.randomize(model, {{}}, goal={GOAL})"
    yield _step(rows, options, what, line, python)


def _step(rows: AuditRows, options: str, what: str, command: str, *lines: str) -> NextStep:
    """Return a step with a command on a table of forecasts, and lines of Python on a model.

    An audit that was made in Python has no options, and so no command.
    """
    if options:
        # a folder that is read must not be replaced
        is_read = any(command.endswith(f"--out {Path(word).name}") for word in options.split())
        command = command.replace("{}", options, 1) + "-again" * is_read
    given = ['model = evenhand.load("model")'] * rows.has_command
    if rows.censoring is not None:
        horizon = rows.censoring.horizon
        until = "" if horizon is None else f", horizon={horizon:.15g}"
        given.append(f"y_other = evenhand.Outcomes(y_other, event_other{until})")
    code = "\n".join([*given, *filter(None, lines)]).replace("{}", "X_other, y_other")
    return NextStep(what, command, is_command=True) if options else NextStep(what, code)


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
