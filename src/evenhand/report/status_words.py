"""Status of an audit in words: the decision, its reason and the condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evenhand._format import (
    at_least,
    at_most,
    confidence_in_full,
    count,
    in_full,
    is_known,
    percent,
    points,
    points_in_full,
    points_with_digits,
)
from evenhand.report.assumptions import IN_GROUP, WITHOUT
from evenhand.report.document import StatusBox
from evenhand.report.findings import Findings
from evenhand.report.records import or_zero
from evenhand.report.sentences import groups_in_words, joined
from evenhand.report.status import (
    Decision,
    JudgedCondition,
    Limit,
    Status,
    n_beyond_whatever,
    n_proven_beyond,
    status_of,
)

TITLES = {
    Decision.PASS: "Pass",
    Decision.FAIL: "Fail",
    Decision.UNDECIDED: "Not decided",
}

MANY_MORE = 1.5
"""Least ratio of needed and present rows for which the number of rows is named."""

BEYOND = "groups_beyond_tolerance"

QUANTITIES: dict[str, Callable[[Sequence[str]], str]] = {
    "certified_group_error": lambda a: f"the certified error of every group of at least {a[0]}",
    "oracle_group_error": lambda a: f"the error of the oracle worst group of {a[0]}",
    "learned_group_error": lambda a: f"the estimated error of the learned group of {a[0]}",
    "average_error": lambda a: "the estimated error over all people",
    BEYOND: lambda a: (
        "the number of named and scanned groups that are significantly off, with estimates beyond"
        " the tolerance,"
    ),
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

JOINTLY = "A fail needs wider intervals, which hold for all measures together."
"""What an interval beyond the limit does not prove."""

WITHIN_TIMES = f"Errors are within it {WITHOUT}; coverage is a Kaplan-Meier estimate."
"""What a pass assumes of times that are cut off."""

SHARES = ("coverage", "certified_event_rate")
"""Quantities that are shares of outcomes; the others are errors in points, or numbers of groups."""


def status_box(findings: Findings) -> StatusBox:
    """Return the status of an audit with its reason and the condition."""
    status = status_of(findings)
    title = TITLES[status.decision]
    if status.conditions:
        # nothing is wrong with the rows: the audit lacks what a condition compares
        title = "Cannot be judged" if status.decision is Decision.UNDECIDED else title
        reasons = [_of_gate(status.conditions)]
        for condition in status.conditions:
            reasons += condition_sentences(condition, findings, len(status.conditions) > 1)
        return StatusBox(title, str(status.decision), reasons)
    assert status.limit is not None
    return StatusBox(title, str(status.decision), _reasons(status, status.limit, findings))


def _of_gate(conditions: Sequence[JudgedCondition]) -> str:
    n_true = sum(one.is_true is True for one in conditions)
    n_open = sum(one.is_true is None for one in conditions)
    if len(conditions) == 1:
        text = conditions[0].text
        if n_open:
            return f"The condition of --fail-if is about a number that this audit lacks: {text}."
        return f"The condition of --fail-if is {'true' if n_true else 'false'}: {text}."
    n = count(len(conditions), "condition")
    if not (n_true or n_open):
        return f"All {n} of --fail-if are false."
    verb = "is" if (n_true or n_open) == 1 else "are"
    if n_true:
        return f"{n_true} of {n} of --fail-if {verb} true."
    return f"{n_open} of {n} of --fail-if {verb} about numbers that this audit does not contain."


def condition_sentences(
    condition: JudgedCondition, findings: Findings, is_one_of_many: bool = False
) -> list[str]:
    """Return sentences on the value of a condition; of many, each is named."""
    name = condition.quantity
    shares = [in_full(share) for share in condition.arguments]
    if shares:
        shares[-1] += " of people"
    quantity = QUANTITIES[name](shares)
    verdict = {True: "true", False: "false", None: "not known"}[condition.is_true]
    named = [f"The condition {condition.text} is {verdict}."] if is_one_of_many else []
    opening = f"{quantity[:1].upper()}{quantity[1:]} is"
    if condition.value is None:
        return [*named, f"{opening} unknown."]
    sentence = f"{opening} {_value(condition)} (limit: {_given(condition.limit, name)})."
    return [*named, sentence, *(_proven(findings) if name == BEYOND else [])]


def _proven(findings: Findings) -> list[str]:
    """Return how many of the groups that a gate counts are proven to be beyond the tolerance."""
    n_proven = n_proven_beyond(findings)
    if not findings.beyond:
        return []
    confidence = confidence_in_full(findings.confidence)
    some = f"{n_proven:,}" if n_proven else "None"
    verb = "are" if n_proven > 1 else "is"
    return [f"{some} of them {verb} beyond the tolerance with {confidence} confidence."]


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
        shown = points_with_digits(value)  # those by which it differs from the limit
    return shown


def limit_in_words(limit: Limit) -> str:
    """Return the limit that is judged."""
    # 0/1 outcomes have no intervals, and `within` is a limit of the error alone
    if not limit.levels:
        return f"{points_in_full(limit.tolerance.error)} points of error"
    return str(limit.tolerance)


def _reasons(status: Status, limit: Limit, findings: Findings) -> list[str]:
    # `within` is a limit of its own, beside the tolerance
    noun = "limit" if is_known(findings.values.get("within")) else "tolerance"
    allowed = f"the {noun} ({limit_in_words(limit)})"
    confidence = confidence_in_full(findings.confidence)
    if status.decision is Decision.PASS:
        groups = count(status.n_groups, "examined group")
        who = f"all people and {groups} are" if status.n_groups else "the forecasts are"
        passed = f"With {confidence} confidence, {who} proven to be within {allowed}."
        return [passed, *([WITHIN_TIMES] if findings.terms.is_time and limit.levels else [])]
    numbers = [] if noun == "limit" else _beyond_in_words(allowed, findings)
    if status.decision is Decision.FAIL:
        who = _exceeding(status, findings, are_groups_counted=bool(numbers))
        assumed = _assumed(status, findings)
        if numbers:
            return [*numbers, *([f"So {who}."] if who else []), *assumed]
        return [f"With {confidence} confidence, {who} beyond {allowed}.", *assumed]
    judged = "every examined group is" if status.n_groups else "the forecasts are"
    opening = f"These rows do not decide whether {judged} within {allowed}."
    numbers = _beyond_in_words("it", findings) if numbers else []
    joint = [JOINTLY] if status.exceeding else []
    return [opening, *numbers, *joint, *_rows_in_words(status, findings), *_guarantee(findings)]


def _assumed(status: Status, findings: Findings) -> list[str]:
    """Return what is assumed of times that are cut off; nothing for other outcomes."""
    if not findings.terms.is_time:
        return []
    n = n_beyond_whatever(status)
    proven = [f"For {count(n, 'group')} it holds {WITHOUT}."] if n else []
    return [f"This assumes that {IN_GROUP}.", *proven]


def _beyond_in_words(limit: str, findings: Findings) -> list[str]:
    """Return how many groups are beyond the tolerance by estimate, and how many are proven to be.

    The first number is that of a gate. The second is smaller, as confidence intervals are wide.
    """
    n, n_proven = len(findings.beyond), n_proven_beyond(findings)
    if not n:
        return []
    some = f"{groups_in_words(n, findings)} {'is' if n == 1 else 'are'} beyond {limit}"
    confidence = f"with {confidence_in_full(findings.confidence)} confidence"
    if n == n_proven:
        return [f"{some} {confidence}."]
    which = "not" if n == 1 else f"{n_proven:,} of them" if n_proven else "none of them"
    return [f"{some} by estimate, {which} {confidence}."]


def _exceeding(status: Status, findings: Findings, *, are_groups_counted: bool) -> str:
    """Return who is proven to be beyond the limit with a verb; nothing if there are no others.

    Named and scanned groups are left out if they are counted with those beyond the tolerance.
    """
    learned = [found.group for found in findings.learned]
    has_everyone = any(one.group is findings.everyone for one in status.exceeding)
    n_part = sum(one.is_part for one in status.exceeding)
    n_learned = sum(any(one.group is group for group in learned) for one in status.exceeding)
    n_groups = len(status.exceeding) - has_everyone - n_part - n_learned
    numbers = {
        groups_in_words(n_groups, findings): 0 if are_groups_counted else n_groups,
        f"{n_learned} of {count(len(learned), 'learned group')}": n_learned,
        f"{count(n_part, 'group')} of the {findings.terms.people}": n_part,
    }
    parts = ["all people"] * has_everyone + [text for text, n in numbers.items() if n]
    if not parts:
        return ""
    verb = "is" if not has_everyone and sum(numbers.values()) == 1 else "are"
    return f"{verb} {joined(parts)}" if are_groups_counted else f"{joined(parts)} {verb}"


def _guarantee(findings: Findings) -> list[str]:
    """Return what is proven for every group although the limit of single groups is undecided."""
    bound = findings.bound
    if bound is None or not findings.is_bound_useful:
        return []
    size = f"{in_full(bound.mass)} of {findings.terms.people}"
    return [
        f"Proven for every group of at least {size}: off by at most"
        f" {at_most(bound.group_error)} points."
    ]


def _rows_in_words(status: Status, findings: Findings) -> list[str]:
    now = count(findings.values["n_samples"], "row")
    if status.n_rows_to_fail is not None:
        n = _needed(status.n_rows_to_fail, findings)
        return [f"If the estimates are right, {n} would prove an error beyond it; now {now}."]
    if status.n_rows_to_pass is not None:
        n = _needed(status.n_rows_to_pass, findings)
        return [f"If all groups are calibrated, {n} would prove it; now {now}."]
    if any(is_known(one.group.most) and one.group.open_error for one in status.unproven):
        return ["More rows alone cannot prove it: times that are cut off stay unknown."]
    if any(one.group.is_probable for one in status.unproven):
        return ["Errors of groups that are known only by probability have no upper bound."]
    return []


def _needed(n: int, findings: Findings) -> str:
    """Return a number of rows to two digits, rounded up, unless it is near the present one."""
    # the root of the number of rows is an approximation, too coarse for a small difference
    if n < MANY_MORE * findings.values["n_samples"]:
        return "a few more rows"
    unit = 10 ** max(len(str(n)) - 2, 0)
    return f"about {-(-n // unit) * unit:,} rows"
