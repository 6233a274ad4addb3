"""Conditions on an audit, for quality gates in continuous integration.

Conditions follow a small fixed grammar; no code is evaluated.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from evenhand._format import in_full
from evenhand._validate import (
    InputError,
    about,
    bad_input,
    check_count,
    check_fraction,
    did_you_mean,
    short,
)
from evenhand.audits.result import Audit
from evenhand.certificates import Certificate, question_keys
from evenhand.distributions import OutcomeKind
from evenhand.report import WHY, NoteKind, notes_of
from evenhand.results import GateCondition, Verdict

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
BEYOND = "groups_beyond_tolerance"
"""The number of groups whose whole interval is beyond the tolerance: the quantity with a count."""

WORDS = ("problem", "too-few-rows", "not-proven")
"""Conditions by themselves: numbers that are compared with 0."""

ARGUMENTS = {
    BEYOND: (),
    "certified_group_error": ("mass",),
    "coverage": ("level", "mass"),
    "certified_event_rate": ("below", "mass"),
    "certified_bias": ("mass",),
}
EVENTS = ("certified_event_rate", "certified_bias")
"""Quantities of 0/1 outcomes, and of whether an outcome is the atom of a hurdle."""

EXAMPLE = 'write for example "problem" or "certified_group_error(0.2) > 0.25"'
SHAPE = re.compile(r"\s*([a-z_]+)\s*(?:\(([^()]*)\))?\s*(>=|<=|>|<)\s*(\S+)\s*")


def judged(condition: GateCondition, audit: Audit) -> GateCondition:
    """Return a condition with its value in an audit, or why it cannot be evaluated."""
    try:
        value = _quantity(audit, condition.quantity, condition.arguments)
        if not math.isfinite(value):  # NaN compares false with any limit: a gate would pass
            raise InputError("the audit has no value of it")
    except InputError as error:
        reason = f"condition {condition.text!r} cannot be evaluated: {error}"
        return replace(condition, reason=reason)
    is_true = RELATIONS[condition.relation](value, condition.limit)
    return replace(condition, value=value, is_true=is_true)


def with_conditions(found: Audit, conditions: Iterable[GateCondition]) -> Audit:
    """Return an audit with the conditions of a gate, which do not change its status."""
    return found.with_rows(conditions=tuple(judged(one, found) for one in conditions))


def parse_condition(text: str) -> GateCondition:
    """Parse a condition such as `problem` or `certified_group_error(0.2) > 0.25`.

    Raises InputError, which names the mistake.
    """
    if text.strip() in WORDS:
        name = text.strip()
        return GateCondition(text=name, quantity=name, arguments=(), relation=">", limit=0.0)
    match = SHAPE.fullmatch(text)
    if match is None:
        rule = f"be {', '.join(WORDS)}, or compare a quantity with a number"
        raise bad_input("--fail-if", rule, short(text), EXAMPLE)
    quantity, listed, relation, limit = match.groups()
    if quantity not in ARGUMENTS:
        remedy = did_you_mean(quantity, ARGUMENTS) or EXAMPLE
        raise bad_input("--fail-if", f"name one of {', '.join(ARGUMENTS)}", short(quantity), remedy)
    names = ARGUMENTS[quantity]
    given = [part for part in (listed or "").split(",") if part.strip()]
    if len(given) != len(names):
        form = f"{quantity}({', '.join(names)})" if names else quantity
        raise bad_input("--fail-if", f"be written as {form}", short(text), EXAMPLE)
    try:
        *numbers, most = map(float, (*given, limit))
    except ValueError as error:
        raise bad_input("--fail-if", "have numbers", short(text), EXAMPLE) from error
    with about("--fail-if"):
        values = tuple(
            check_fraction(name, number, high_open=name != "mass")
            for name, number in zip(names, numbers, strict=True)
        )
        if quantity == BEYOND:
            check_count("limit", int(most) if most.is_integer() else most, least=0)
        else:
            # a fraction: a limit such as 30 would never be exceeded
            check_fraction("limit", most, low_open=False, high_open=False)
    return GateCondition(
        text=text.strip(), quantity=quantity, arguments=values, relation=relation, limit=most
    )


def _quantity(audit: Audit, quantity: str, arguments: tuple[float, ...]) -> float:
    status = audit.status
    counts = {
        "problem": status.n_problems,
        "too-few-rows": status.verdict is Verdict.TOO_FEW,
        "not-proven": not status.is_proven,
        BEYOND: status.n_beyond,
    }
    if quantity in counts:
        return float(counts[quantity])
    # the group size is the last argument of the other quantities
    *level, mass = arguments
    if audit.certificate is None:
        reasons = *notes_of(audit.notes, NoteKind.NO_CERTIFICATE), "there is no certificate"
        raise InputError(str(reasons[0]))
    proof = audit.certificate
    if quantity in EVENTS:
        return _of_events(audit, proof, level, mass)
    if audit.outcome_kind == OutcomeKind.BINARY:
        raise InputError(f"0/1 outcomes have no {quantity}; use certified_bias({mass:g})")
    # one interval has a floor without a draw, which is 0 for the true distribution at lower levels
    is_plain = bool(level) and not proof.is_randomized
    has_floor = is_plain and level[0] + mass > 1 + 1e-12
    # at size 1 the only group is all people, which one draw per person suffices to bound
    if mass < 1 and not proof.bounds_every_group and not has_floor:
        # a gate would not depend on the model; off an atom, the last reason is that of the gate
        open_ones = {key.rpartition(": ")[2]: WHY[why] for key, _, why in question_keys(proof)}
        why = open_ones["coverage" if level else "every group"]
        why += f"; choose a level above {1 - mass:g}" if is_plain else ""
        raise InputError(f"nothing is proven for every group of {in_full(mass)} of people: {why}")
    return proof.coverage(level[0], mass)[0] if level else proof.group_error(mass)


def _of_events(audit: Audit, proof: Certificate, below: Sequence[float], mass: float) -> float:
    if proof.events is None:
        raise InputError(
            "only forecasts of 0/1 outcomes and of outcomes with an atom at an end have certified"
            f" events, and the outcome is {audit.outcome_kind or 'unknown'}"
        )
    if below:
        (most,) = below
        # a bound that is true because there is no such group would pass
        share = np.average(proof.events.low <= most, weights=proof.events.count)
        if share < mass:
            rule = f"be at most {share:.3g}, the share of people with a probability up to {most:g}"
            raise bad_input("mass", rule, mass)
        return proof.event_rate(below=most, mass=mass)
    low, high = proof.bias(mass)
    return max(-low, high)
