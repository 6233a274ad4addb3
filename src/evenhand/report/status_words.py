"""Status of an audit in words: the verdict, its numbers, and the conditions of a gate."""

from __future__ import annotations

import math

from evenhand._format import (
    at_least,
    at_most,
    confidence_in_full,
    count,
    percent,
    points,
    points_in_full,
    points_with_digits,
)
from evenhand.report.document import StatusBox
from evenhand.report.findings import Findings
from evenhand.report.records import or_zero
from evenhand.report.sentences import joined
from evenhand.report.status import JudgedCondition, Status, Verdict, most_of, status_of

KINDS = {Verdict.PROBLEM: "problem", Verdict.NO_PROBLEM: "none", Verdict.TOO_FEW: "few"}
"""Styles of the verdicts on a page."""


def status_box(findings: Findings) -> StatusBox:
    """Return the verdict of an audit with its numbers."""
    status = status_of(findings)
    title = str(status.verdict).capitalize()
    sentences = {
        Verdict.PROBLEM: _of_problems,
        Verdict.NO_PROBLEM: _of_no_problem,
        Verdict.TOO_FEW: _of_few_rows,
    }[status.verdict](status, findings)
    if status.is_proven:
        sentences.append(f"Proven within {points_in_full(status.tolerance)} points.")
    return StatusBox(
        title if status.verdict is Verdict.PROBLEM else f"{title}.",
        KINDS[status.verdict],
        sentences,
    )


def _of_problems(status: Status, findings: Findings) -> list[str]:
    where = f"in {count(status.n_problems, 'group')}"
    if findings.is_everyone_problem:
        only = ": all people together"
        where += "; all people together are one of them" if status.n_problems > 1 else only
    if not status.n_beyond:
        return [f"{where}."]
    limit, confidence = points_in_full(status.tolerance), confidence_in_full(findings.confidence)
    which = "In 1, the error is" if status.n_beyond == 1 else f"In {status.n_beyond:,}, errors are"
    return [f"{where}.", f"{which} beyond {limit} points with {confidence} confidence."]


def _of_no_problem(status: Status, findings: Findings) -> list[str]:
    everyone, *groups = status.detectable
    text = f"an error of {points(everyone.error)} points or more of all people together"
    found = [f"These rows would have shown, with 80% probability, {text}."]
    sizes = [f"in a group of {count(one.n, 'row')} {points(one.error)} or more" for one in groups]
    return [*found, *([f"{joined(sizes)}.".replace("in a", "In a", 1)] if sizes else [])]


def _of_few_rows(status: Status, findings: Findings) -> list[str]:
    found, most = status.detectable[0], most_of(findings)
    text = (
        f"Only an error of {points(found.error)} points or more of all people together would have"
        " been found, with 80% probability"
    )
    if not most:
        return [f"{text}."]
    # detectable errors shrink as the root of the number of rows; two digits, rounded up
    n = found.n * (found.error / most) ** 2
    unit = 10 ** max(math.floor(math.log10(n)) - 1, 0)
    enough = math.ceil(n / unit) * unit
    return [f"{text}.", f"About {enough:,} rows would show {points(most)} points."]


def condition_lines(findings: Findings) -> list[str]:
    """Return whether each condition of a gate is met."""
    given = findings.values.get("conditions") or ()
    return [_condition_line(JudgedCondition(**one)) for one in given]


def _condition_line(one: JudgedCondition) -> str:
    opening = f"`--fail-if {one.text}`:"
    if one.value is None:
        return f"{opening} not known."
    met = "met" if one.is_true else "not met"
    return f"{opening} {met}." if one.text == one.quantity else f"{opening} {met} ({_value(one)})."


def _value(condition: JudgedCondition) -> str:
    value, name = or_zero(condition.value), condition.quantity
    if name == "groups_beyond_tolerance":
        return f"it is {value:g}"
    # bounds are rounded to the side on which they stay valid
    if name == "coverage":
        return f"at least {at_least(value, percent)}"
    if name == "certified_event_rate":
        return f"at most {at_most(value, percent)}"
    shown = at_most(value)
    if shown.removesuffix(".0") == points_in_full(condition.limit):
        shown = points_with_digits(value)  # those by which it differs from the limit
    return f"at most {shown} points"
