"""Status of an audit in words: the decision, its reason and the condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evenhand._format import (
    at_least,
    at_most,
    confidence_in_full,
    count,
    in_full,
    percent,
    points,
    points_in_full,
)
from evenhand.report.document import StatusBox
from evenhand.report.findings import Findings
from evenhand.report.records import or_zero
from evenhand.report.status import Decision, JudgedCondition, Limit, Status, status_of

TITLES = {
    Decision.PASS: "Pass",
    Decision.FAIL: "Fail",
    Decision.UNDECIDED: "Cannot be judged",
}

NAME = 60
"""Most characters of a group's name in the status."""

BEYOND = "groups_beyond_tolerance"

QUANTITIES: dict[str, Callable[[Sequence[str]], str]] = {
    "certified_group_error": lambda a: f"the certified error of every group of at least {a[0]}",
    "oracle_group_error": lambda a: f"the error of the oracle worst group of {a[0]}",
    "learned_group_error": lambda a: f"the estimated error of the learned group of {a[0]}",
    "average_error": lambda a: "the estimated error over all people",
    BEYOND: lambda a: "the number of groups that are off by more than the tolerance",
    "coverage": lambda a: (
        f"the certified coverage of the {a[0]} interval in every group of at least {a[1]}"
    ),
    "certified_event_rate": lambda a: (
        f"the certified event rate where at most {a[0]} is predicted, in every group of at least"
        f" {a[1]}"
    ),
    "certified_bias": lambda a: (
        f"the certified bias of the probabilities in every group of at least {a[0]}"
    ),
}
"""Quantities of conditions in words, with their levels and group sizes."""

SHARES = ("coverage", "certified_event_rate")
"""Quantities that are shares of outcomes; the others are errors in points, or numbers of groups."""

REQUIRED = {">": "at most", ">=": "below", "<": "at least", "<=": "above"}
"""What is required where a comparison must not be true."""


def status_box(findings: Findings) -> StatusBox:
    """Return the status of an audit with its reason and the condition."""
    status = status_of(findings)
    if status.conditions:
        reasons = [_of_gate(status.conditions), *map(condition_sentence, status.conditions)]
        return StatusBox(TITLES[status.decision], str(status.decision), reasons)
    assert status.limit is not None
    sentences = _reasons(status, status.limit, findings)
    return StatusBox(TITLES[status.decision], str(status.decision), sentences)


def _of_gate(conditions: Sequence[JudgedCondition]) -> str:
    n_failed = sum(one.is_true is True for one in conditions)
    n_open = sum(one.is_true is None for one in conditions)
    n = count(len(conditions), "condition")
    if n_failed:
        verb = "is" if n_failed == 1 else "are"
        return f"{n_failed} of {n} of the gate {verb} not met."
    if n_open:
        verb = "is" if n_open == 1 else "are"
        return f"{n_open} of {n} of the gate {verb} about numbers that this audit does not contain."
    if len(conditions) == 1:
        return "The condition of the gate is met."
    return f"All {n} of the gate are met."


def condition_sentence(condition: JudgedCondition) -> str:
    """Return what a condition requires, and its value."""
    name = condition.quantity
    shares = [in_full(share) for share in condition.arguments]
    if shares:
        shares[-1] += " of people"
    quantity = QUANTITIES[name](shares)
    required = f"{REQUIRED[condition.relation]} {_given(condition.limit, name)}"
    opening = f"{quantity[:1].upper()}{quantity[1:]} must be {required}"
    if condition.value is None:
        return f"{opening}; it is unknown."
    return f"{opening}; it is {_value(condition)}."


def _given(limit: float, quantity: str) -> str:
    if quantity == BEYOND:
        return f"{limit:g}"
    return in_full(limit) if quantity in SHARES else f"{points_in_full(limit)} points"


def _value(condition: JudgedCondition) -> str:
    value, name = or_zero(condition.value), condition.quantity
    if name == BEYOND:
        return f"{value:g}"
    # bounds are rounded to the side on which they stay valid
    if name == "coverage":
        return at_least(value, percent)
    if name == "certified_event_rate":
        return at_most(value, percent)
    shown = at_most(value) if name.startswith("certified") else points(value)
    if shown.removesuffix(".0") == points_in_full(condition.limit):
        shown = f"{100 * value:.6g}"  # the digits by which it differs from the limit
    return shown


def limit_in_words(limit: Limit) -> str:
    """Return the limit that is judged."""
    # 0/1 outcomes have no intervals, and `within` is a limit of the error alone
    if not limit.levels:
        return f"{points_in_full(limit.tolerance.error)} points of error"
    return str(limit.tolerance)


def _reasons(status: Status, limit: Limit, findings: Findings) -> list[str]:
    allowed = limit_in_words(limit)
    confidence = confidence_in_full(findings.confidence)
    groups = count(status.n_groups, "examined group")
    if status.decision is Decision.PASS:
        who = f"all people and {groups} are" if status.n_groups else "the forecasts are"
        return [f"With {confidence} confidence, {who} proven to be within the limit ({allowed})."]
    if status.decision is Decision.FAIL:
        off = [one for one in status.exceeding if one.group is not findings.everyone]
        n, everyone = len(off), len(off) < len(status.exceeding)
        some = f"{n} of {groups}"
        if everyone:
            some = (
                f"the forecasts for all people and {some}" if n else "the forecasts for all people"
            )
        verb = "exceeds" if n == 1 and not everyone else "exceed"
        return [f"With {confidence} confidence, {some} {verb} the limit ({allowed})."]
    opening = f"The forecasts are not proven to be within the limit ({allowed}), nor to exceed it."
    return [opening, *_rows_in_words(status, findings)]


def _rows_in_words(status: Status, findings: Findings) -> list[str]:
    now = count(findings.values["n_samples"], "row")
    if status.n_rows_to_fail is not None:
        n = _about(status.n_rows_to_fail)
        return [f"If the estimates are right, about {n} rows would prove it exceeded; now {now}."]
    if status.n_rows_to_pass is not None:
        n = _about(status.n_rows_to_pass)
        return [f"If all groups are calibrated, about {n} rows would prove it; now {now}."]
    if any(one.group.is_probable for one in status.unproven):
        return ["Errors of groups that are known only by probability have no upper bound."]
    return []


def _about(n: int) -> str:
    """Return a number of rows to two digits, rounded up."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return f"{-(-n // unit) * unit:,}"
