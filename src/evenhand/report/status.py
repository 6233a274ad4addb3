"""Status of an audit: its verdict by evidence, and the conditions of a gate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import sqrt
from statistics import NormalDist
from typing import Any

from evenhand._format import (
    at_least,
    at_most,
    confidence_in_full,
    count,
    is_known,
    joined,
    percent,
    points,
    points_in_full,
    points_with_digits,
)
from evenhand.report.document import StatusBox
from evenhand.report.findings import Findings, GroupFinding
from evenhand.report.records import Number, or_zero

NORMAL = NormalDist()
POWER = 0.8
"""Probability with which a detectable error is found."""

MOST = 0.1
"""Detectable error of all people above which there are too few rows."""


class Verdict(StrEnum):
    """Verdict of an audit."""

    PROBLEM = "problem found"
    NO_PROBLEM = "no problem found"
    TOO_FEW = "too few rows"


@dataclass(frozen=True)
class JudgedCondition:
    """Condition of a gate under which the command fails, and its value in the audit.

    Parameters
    ----------
    text : str
        The condition as it was written.
    quantity : str
        Name of the quantity.
    arguments : tuple of float
        Level or probability, and group size; fractions.
    relation : {">", ">=", "<", "<="}
        The comparison.
    limit : float
        The number compared with.
    value : float or None
        The quantity; None if the audit does not contain it.
    is_true : bool or None
        Whether the condition is true; None if it cannot be evaluated.
    reason : str or None
        Why it cannot be evaluated.
    """

    text: str
    quantity: str
    arguments: tuple[float, ...]
    relation: str
    limit: float
    value: Number = None
    is_true: bool | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Detectable:
    """Error that a group of a number of rows would have shown with 80% probability."""

    n: int
    error: float


@dataclass(frozen=True)
class Status:
    """Verdict of an audit and the numbers behind it.

    Parameters
    ----------
    verdict : Verdict
        "problem found" if a member of the family has a problem; else "too few rows" if not even
        an error of 10 points of all people (0/1: a doubling of the rate) would have been found;
        else "no problem found".
    is_proven : bool
        Whether the interval of everyone and of every group lies within the tolerance.
    n_examined : int
        Number of groups that were examined beside everyone, the same rows once.
    n_problems : int
        Number of members with a problem; all people together are one member.
    n_beyond : int
        Number of members whose whole interval is beyond the tolerance.
    tolerance : float
        Error up to which significant findings are no problem.
    detectable : tuple of Detectable
        Errors that these rows would have shown: of all people, then of the groups of median and
        of least size.
    """

    verdict: Verdict
    is_proven: bool
    n_examined: int
    n_problems: int
    n_beyond: int
    tolerance: float
    detectable: tuple[Detectable, ...]

    def __str__(self) -> str:
        where = f" in {count(self.n_problems, 'group')}" if self.n_problems else ""
        proven = f", proven within {points_in_full(self.tolerance)} points" * self.is_proven
        return f"{self.verdict}{where}{proven} ({self.n_examined:,} examined beside everyone)"

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict and the counts as plain values."""
        left_out = {"tolerance", "detectable"}
        plain = {key: value for key, value in asdict(self).items() if key not in left_out}
        return plain | {"verdict": str(self.verdict)}


def status_of(findings: Findings) -> Status:
    """Return the status of an audit, by the groups that it marks as problems."""
    detectable = tuple(_detectable_errors(findings))
    verdict = Verdict.NO_PROBLEM
    if findings.problems:
        verdict = Verdict.PROBLEM
    elif detectable[0].error > most_of(findings):
        verdict = Verdict.TOO_FEW
    return Status(
        verdict,
        is_proven=_is_proven(findings),
        n_examined=len(findings.examined),
        n_problems=len(findings.problems),
        n_beyond=sum(group.is_beyond(findings.tolerance) for group in findings.examined)
        + any(group.is_beyond(findings.tolerance) for group in findings.overall),
        tolerance=findings.tolerance,
        detectable=detectable,
    )


def most_of(findings: Findings) -> float:
    """Return the detectable error of all people above which there are too few rows."""
    if not findings.terms.is_event:
        return MOST
    predicted = _predicted(findings.everyone)
    # not even a doubling of a rare event would show
    return min(MOST, predicted, 1 - predicted)


def detectable_error(n: float, level: float, variance: Number = None) -> float:
    """Return the error of `n` rows that a two-sided test at a level finds with 80% probability.

    Parameters
    ----------
    n : float
        Number of rows.
    level : float
        Level of the test.
    variance : float, optional
        Mean of p (1 - p) of the probabilities of 0/1 outcomes. Without it, the error is the W1
        distance of PITs from uniform ones, whose variance is 1/12.

    Examples
    --------
    >>> round(detectable_error(500, 0.02 / 100), 3), round(detectable_error(500, 0.0004, 0.25), 3)
    (0.059, 0.099)
    """
    reach = NORMAL.inv_cdf(1 - level / 2) + NORMAL.inv_cdf(POWER)
    if variance is None:
        return reach / sqrt(12 * n)
    # the count is an integer: half of it for continuity
    return reach * sqrt(variance / n) + 1 / (2 * n)


def _detectable_errors(findings: Findings) -> Iterator[Detectable]:
    """Yield the errors that all people, and groups of median and of least size, would show."""
    family, is_event = findings.family, findings.terms.is_event
    shares = family.get("shares") or {}
    n, rows = findings.values["n_samples"], family.get("effective_share") or 1.0
    tests = family.get("n_tests") or 1
    level = (shares.get("everyone") or 1 - findings.confidence) / tests
    variance = _variance(findings) if is_event else None
    yield Detectable(n, detectable_error(rows * n, level, variance))
    kinds = {
        ("groups", "n_groups"): (*findings.named, *findings.scanned),
        ("by_forecast", "n_by_forecast"): findings.by_forecast,
    }
    for (share, number), found in kinds.items():
        groups = sorted((one for one in found if one.is_judged), key=lambda one: -one.n)
        if not groups or not shares.get(share) or not family.get(number):
            continue
        # a level for each group; continuous outcomes have two tests of each
        level = shares[share] / family[number] / (1 if is_event else 2)
        for one in dict.fromkeys((groups[(len(groups) - 1) // 2], groups[-1])):
            chance = _predicted(one, _predicted(findings.everyone))
            variance = chance * (1 - chance) if is_event else None
            yield Detectable(one.n, detectable_error(rows * one.n, level, variance))
        return


def _variance(findings: Findings) -> float:
    """Return the mean of p (1 - p) of all people, by groups of similar probabilities."""
    groups = [one for one in findings.by_forecast if is_known(one.predicted)]
    groups = groups or list(findings.overall[:1])
    shares = [(one.n, _predicted(one)) for one in groups]
    total = sum(n for n, _ in shares)
    return sum(n * p * (1 - p) for n, p in shares) / total if total else 0.25


def _predicted(group: GroupFinding | None, default: float = 0.5) -> float:
    """Return the mean probability of a group of 0/1 outcomes."""
    found = None if group is None else group.predicted
    return found if is_known(found) else default


def _is_proven(findings: Findings) -> bool:
    """Whether every upper end lies within the tolerance, which only 0/1 outcomes have.

    Errors of opposite signs cancel in a pooled number: the mean error given the own forecast needs
    an upper end, too.
    """
    given = findings.given_forecast
    if not findings.terms.is_event or given is None or not given.is_complete:
        return False
    everyone = findings.overall[:1]
    # of a group found by search nothing bounds the error from above; unless it is off, it is not
    # described either
    found = [one.group for one in findings.learned if not one.group.is_off]
    examined = [one for one in findings.examined if not any(one is other for other in found)]
    # groups of a few rows are not tested, but they are listed
    named = (one for one in findings.named if one.same_as is None and not one.is_possible_leak)
    members = (*everyone, *examined, *named)
    is_within = is_known(given.high) and given.high <= findings.tolerance
    return (
        bool(everyone) and is_within and all(one.is_proven(findings.tolerance) for one in members)
    )


# --- status of an audit in words: the verdict, its numbers, and the conditions of a gate

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
