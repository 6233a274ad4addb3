"""Conditions on an audit, for a gate in continuous integration.

A small fixed grammar, nothing is evaluated.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from evenhand._format import in_full
from evenhand._validate import InputError, bad_input, check_fraction
from evenhand.audits.result import Audit
from evenhand.audits.scores import AVERAGE_ERROR
from evenhand.certificates import PITCertificate
from evenhand.report import Note, NoteKind, notes_of

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
ARGUMENTS = {
    "certified_group_error": ("mass",),
    "oracle_group_error": ("mass",),
    "learned_group_error": ("mass",),
    "average_error": (),
    "coverage": ("level", "mass"),
}
EXAMPLE = 'write for example "certified_group_error(0.2) > 0.3"'
SHAPE = re.compile(r"\s*([a-z_]+)\s*(?:\(([^()]*)\))?\s*(>=|<=|>|<)\s*(\S+)\s*")


@dataclass(frozen=True)
class Condition:
    """A comparison of one quantity of an audit with a number.

    Parameters
    ----------
    text : str
        The condition as it was written.
    quantity : str
        `certified_group_error`, `oracle_group_error`, `learned_group_error`, `average_error`, or
        `coverage`: the certified least coverage of the central interval of a level in every group
        of a mass.
    arguments : tuple of float
        The mass, or the level and the mass; fractions.
    relation : {">", ">=", "<", "<="}
        The comparison.
    limit : float
        The number compared with.
    """

    text: str
    quantity: str
    arguments: tuple[float, ...]
    relation: str
    limit: float

    def value(self, audit: Audit) -> float:
        """Return the quantity.

        Raises
        ------
        InputError
            If the audit could not find it; the message names what to ask instead.
        """
        try:
            value = _quantity(audit, self.quantity, self.arguments)
            if not math.isfinite(value):  # compares false with any limit: a gate would let it pass
                raise InputError("the audit did not find it")
        except InputError as error:
            raise InputError(
                f"{self.text!r} cannot be judged: {error}; {self._instead()}"
            ) from error
        return value

    def _instead(self) -> str:
        """Name conditions of the same purpose that can be judged more often."""
        everybody = "for everybody, average_error"
        if self.quantity in ("certified_group_error", "coverage"):
            return (
                f"ask for learned_group_error({self.arguments[-1]:g}), of groups that features"
                f" define, or, {everybody}"
            )
        if self.quantity == "learned_group_error":
            return f"give more rows or --features, or ask for a larger group or, {everybody}"
        return "ask for another group size" if self.arguments else "give more rows"

    def holds(self, audit: Audit) -> bool:
        """Whether the condition is true of an audit."""
        return self.is_met_by(self.value(audit))

    def is_met_by(self, value: float) -> bool:
        """Whether the condition is true of a value of its quantity."""
        return RELATIONS[self.relation](value, self.limit)


def parse_condition(text: str) -> Condition:
    """Read a condition such as `certified_group_error(0.2) > 0.3`.

    Raises
    ------
    InputError
        If it is not of that form; the message says what is wrong with it.

    Examples
    --------
    >>> condition = parse_condition("coverage(0.8, 0.2) < 0.6")
    >>> condition.quantity, condition.arguments, condition.relation, condition.limit
    ('coverage', (0.8, 0.2), '<', 0.6)
    """
    match = SHAPE.fullmatch(text)
    if match is None:
        raise bad_input("--fail-if", "compare a quantity with a number", repr(text), EXAMPLE)
    quantity, listed, relation, limit = match.groups()
    if quantity not in ARGUMENTS:
        raise bad_input("--fail-if", f"name one of {', '.join(ARGUMENTS)}", repr(quantity), EXAMPLE)
    names = ARGUMENTS[quantity]
    given = [part for part in (listed or "").split(",") if part.strip()]
    if len(given) != len(names):
        form = f"{quantity}({', '.join(names)})" if names else quantity
        raise bad_input("--fail-if", f"be written as {form}", repr(text), EXAMPLE)
    values = tuple(
        check_fraction(name, _number(part, text), high_open=name == "level")
        for name, part in zip(names, given, strict=True)
    )
    # every quantity is a fraction; a limit such as 30 would never be reached
    return Condition(
        text.strip(),
        quantity,
        values,
        relation,
        check_fraction("limit", _number(limit, text), low_open=False, high_open=False),
    )


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise bad_input(
            "--fail-if", "hold numbers only", f"{text.strip()!r} in {whole!r}", EXAMPLE
        ) from error


def _quantity(audit: Audit, quantity: str, arguments: tuple[float, ...]) -> float:
    if quantity == "average_error":
        return audit.score(AVERAGE_ERROR)
    # the least coverage, which is what a gate guards: the mass comes last in every quantity
    *level, mass = arguments
    if quantity == "oracle_group_error":
        return audit.worst_group_error(mass)
    if quantity == "learned_group_error":
        return _learned(audit, mass)
    proof = _proof(audit, mass)
    return proof.coverage(level[0], mass)[0] if level else proof.group_error(mass)


def _learned(audit: Audit, mass: float) -> float:
    # why a search failed is a better answer than that its mass is not in the table
    for note in notes_of(audit.notes, NoteKind.NOT_LEARNED):
        if math.isclose(note.numbers[0], mass):
            raise InputError(str(note))
    if audit.learned.empty:
        raise InputError("the audit did not look for learned groups, which takes features")
    return audit.learned_group_error(mass)


def _proof(audit: Audit, mass: float) -> PITCertificate:
    """Return the certificate if the rows can answer for every group of a mass.

    A group of all is everybody.
    """
    if audit.certificate is None:
        unproven: tuple[Note | str, ...] = notes_of(audit.notes, NoteKind.NO_CERTIFICATE)
        raise InputError(str((*unproven, "there is no certificate")[0]))
    if audit.certificate.n_draws == 1 and mass < 1:
        # its bounds are then what even the true distribution gets: a gate would tell nothing of the
        # model
        known = (
            "only one draw per person is known"
            if audit.is_randomized
            else "one forecast per person"
        )
        raise InputError(
            f"{known}: no data can then bound the error in every group of {in_full(mass)} of people"
        )
    return audit.certificate
