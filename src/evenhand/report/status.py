"""Status of an audit: whether the forecasts meet the reader's own condition."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from statistics import NormalDist

from evenhand._format import is_known
from evenhand.report.findings import Findings, GroupFinding
from evenhand.report.records import Estimate, Number, known, or_zero, record
from evenhand.report.tolerance import ROUNDING, Tolerance

LEVELS = (0.8, 0.9)
"""Levels of the prediction intervals whose coverage is judged."""

ONE_SIDED = 4
"""Number of ends of intervals that a bound with all of the error probability counts as.

If intervals are normal, the shares of both kinds then add up to less than the error probability.
"""


class Decision(StrEnum):
    """Decision on a condition; "undecided" means that the rows do not suffice."""

    PASS = "pass"
    FAIL = "fail"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class JudgedCondition:
    """Condition of a gate under which an audit fails, and its value in the audit.

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
        Whether the condition is true, so that the audit fails; None if it cannot be evaluated.
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
class Limit:
    """Largest error, and largest distance of the coverage of intervals from their levels.

    Parameters
    ----------
    tolerance : Tolerance
        Both limits.
    levels : tuple of float
        Levels of the intervals that are judged; none for 0/1 outcomes, whose forecasts have no
        intervals, and if the reader asked for a limit of the error alone.
    widening : float, default 1
        Factor by which the intervals are wider that together may fail an audit.
    """

    tolerance: Tolerance
    levels: tuple[float, ...]
    widening: float = 1.0

    def shares(self, group: GroupFinding) -> Iterator[tuple[float, Estimate]]:
        """Yield the levels that are judged, with the coverage of a group."""
        known = {0.8: group.coverage_80, 0.9: group.coverage_90}
        return ((level, known[level]) for level in self.levels)

    def excess(self, group: GroupFinding) -> float | None:
        """Return the level whose coverage is proven to be beyond the limit; 0 for the error.

        None if nothing is proven to be beyond the limit. The lower bound decides, not the estimate,
        and only for groups that are significantly off. Intervals of each measure hold with their
        confidence: the widened ones hold together.
        """
        if not group.is_off:
            return None
        if or_zero(_widened(group.error, self.widening).low) > self.tolerance.error + ROUNDING:
            return 0.0
        limit = self.tolerance.coverage + ROUNDING
        wide = ((level, _widened(share, self.widening)) for level, share in self.shares(group))
        return next((level for level, share in wide if _least_gap(share, level) > limit), None)

    def is_proven(self, group: GroupFinding) -> bool:
        """Whether error and coverage of a group are proven to be within the limit."""
        error = group.most
        # the numbers of a group known by probability are not those of its members
        if group.is_probable or not is_known(error) or error > self.tolerance.error + ROUNDING:
            return False
        limit = self.tolerance.coverage + ROUNDING
        return all(_most_gap(share, level) <= limit for level, share in self.shares(group))

    def times_rows_to_pass(self, group: GroupFinding) -> float:
        """Return how many times as many rows prove the limit for a calibrated group."""
        # the error of members that are known by probability has no upper bound, and more rows do
        # not narrow what is not known of times that are cut off
        if group.is_probable or group.open_error is not None:
            return inf
        # ends of intervals, and estimates of calibrated groups, shrink as the root of the rows
        gaps = [(or_zero(group.most), self.tolerance.error)]
        for level, share in self.shares(group):
            gaps.append((_most_gap(share, level), self.tolerance.coverage))
        return max(most / limit if limit else inf for most, limit in gaps) ** 2

    def times_rows_to_fail(self, group: GroupFinding) -> float:
        """Return how many times as many rows prove an error beyond the limit.

        This assumes that the estimate is right.
        """
        beyond = or_zero(group.error.value) - self.tolerance.error
        width = self.widening * (or_zero(group.error.value) - or_zero(group.error.low))
        return (width / beyond) ** 2 if group.is_off and beyond > ROUNDING else inf


@dataclass(frozen=True)
class Judged:
    """Group that is judged; `is_part` for groups of the people whose outcome is not the atom."""

    group: GroupFinding
    is_part: bool = False


@dataclass(frozen=True)
class Status:
    """Decision of an audit by the reader's own condition.

    Parameters
    ----------
    decision : Decision
        Pass, fail or undecided.
    conditions : tuple of JudgedCondition
        Conditions of a gate; if there are any, they alone decide.
    limit : Limit or None
        The limit of every examined group; None if conditions decide.
    exceeding : tuple of Judged
        Groups that are significantly off, with an interval beyond the limit, by falling lower
        bound.
    unproven : tuple of Judged
        Groups that are not proven to be within the limit, by falling upper bound of the error.
    n_groups : int
        Number of groups that were examined, beside all people.
    n_rows_to_fail : int or None
        If the rows do not suffice: about how many prove an error beyond the limit, if an estimate
        that is significantly off is right; None if there is no such estimate.
    n_rows_to_pass : int or None
        The same for a pass, if the forecasts are calibrated in each group.
    """

    decision: Decision
    conditions: tuple[JudgedCondition, ...] = ()
    limit: Limit | None = None
    exceeding: tuple[Judged, ...] = ()
    unproven: tuple[Judged, ...] = ()
    n_groups: int = 0
    n_rows_to_fail: int | None = None
    n_rows_to_pass: int | None = None


def status_of(findings: Findings) -> Status:
    """Return the status of an audit.

    Conditions of a gate decide if there are any, else the limit that groups were to be proven
    within, else the tolerance. An audit passes if every examined group is proven to be within the
    limit, and fails if one is significantly off and proven to be beyond it, with intervals that
    hold together. A learned group was found by a search, which bounds its error from below alone:
    it can only fail.
    """
    given = findings.values.get("conditions") or ()
    conditions = tuple(record(JudgedCondition, one) for one in given)
    if conditions:
        return Status(_of_conditions(conditions), conditions)
    judged = list(_judged(findings))
    alone = limit_of(findings)
    limit = _joint(alone, findings, judged)
    learned = [Judged(found.group) for found in findings.learned]
    everything = [*judged, *learned]
    exceeding = [one for one in everything if alone.excess(one.group) is not None]
    is_proven = any(limit.excess(one.group) is not None for one in exceeding)
    unproven = [one for one in judged if not limit.is_proven(one.group)]
    decision = Decision.FAIL if is_proven else Decision.UNDECIDED
    if not unproven and judged and not exceeding:
        decision = Decision.PASS
    found = Status(
        decision,
        limit=limit,
        exceeding=tuple(sorted(exceeding, key=lambda one: -or_zero(one.group.error.low))),
        unproven=tuple(sorted(unproven, key=lambda one: -or_zero(one.group.most))),
        n_groups=len(learned) + sum(one.group is not findings.everyone for one in judged),
    )
    if decision is not Decision.UNDECIDED:
        return found
    to_fail = min((limit.times_rows_to_fail(one.group) for one in everything), default=inf)
    to_pass = max((limit.times_rows_to_pass(one.group) for one in unproven), default=inf)
    n = findings.values["n_samples"]
    if to_fail < inf:
        return replace(found, n_rows_to_fail=math.ceil(to_fail * n))
    return replace(found, n_rows_to_pass=math.ceil(to_pass * n) if to_pass < inf else None)


def n_beyond_whatever(status: Status) -> int:
    """Return how many groups exceed the limit of the error whatever times are cut off."""
    return sum(
        or_zero(one.group.open_error.low) > status.limit.tolerance.error + ROUNDING
        for one in status.exceeding
        if status.limit is not None and one.group.open_error is not None
    )


def n_proven_beyond(findings: Findings) -> int:
    """Return how many groups with estimates beyond the tolerance are proven to be beyond it."""
    limit = _tolerated(findings)
    return sum(limit.excess(group) is not None for group in findings.beyond)


def limit_of(findings: Findings) -> Limit:
    """Return the limit that was asked for; without one, the tolerance."""
    within = findings.values.get("within")
    if is_known(within):
        return Limit(Tolerance(within), ())
    return _tolerated(findings)


def _tolerated(findings: Findings) -> Limit:
    return Limit(findings.tolerance, () if findings.terms.is_event else LEVELS)


def _joint(limit: Limit, findings: Findings, judged: Iterable[Judged]) -> Limit:
    """Return the limit with intervals that are wide enough to hold together.

    A pass needs every bound, so that each may have its own confidence. One bound suffices for a
    fail: the error probability is divided among those of all people, of the groups and of the
    learned groups, for each measure (Bonferroni).
    """
    families = {(one.is_part, one.group is findings.everyone) for one in judged}
    n_one_sided = (findings.everyone is not None) + bool(findings.learned)
    n = len(families) * (1 + len(limit.levels)) + bool(findings.learned)
    if n < 2:
        return limit
    # intervals have half the error probability at either end. The bound of learned groups and the
    # band of the error of all people have all of it at one end, so each counts more than twice
    n += (ONE_SIDED - 1) * n_one_sided
    normal, level = NormalDist(), 1 - findings.confidence
    return replace(limit, widening=normal.inv_cdf(level / n) / normal.inv_cdf(level / 2))


def _widened(estimate: Estimate, factor: float) -> Estimate:
    """Return an estimate with an interval that is wider by a factor."""
    value, low, high = estimate.value, estimate.low, estimate.high
    return Estimate(
        value,
        or_zero(value) - factor * (or_zero(value) - or_zero(low)) if known(value, low) else low,
        or_zero(value) + factor * (or_zero(high) - or_zero(value)) if known(value, high) else high,
    )


def _of_conditions(conditions: Iterable[JudgedCondition]) -> Decision:
    found = {condition.is_true for condition in conditions}
    if True in found:
        return Decision.FAIL
    return Decision.UNDECIDED if None in found else Decision.PASS


def _judged(findings: Findings) -> Iterator[Judged]:
    """Yield all people and the groups that were examined, those of the continuous part last."""
    if findings.everyone is not None:
        yield Judged(findings.everyone)
    yield from (Judged(group) for group in findings.distinct if _is_examined(group))
    yield from (Judged(group, True) for group in findings.positive if _is_examined(group))


def _is_examined(group: GroupFinding) -> bool:
    # a named group of a few rows is not tested, but an audit must not pass without a proof for it
    return group.is_judged or (group.is_named and group.is_too_small)


def _least_gap(share: Estimate, level: float) -> float:
    """Return the least distance of a coverage from its level; 0 if the interval contains it."""
    if not (is_known(share.low) and is_known(share.high)):
        return 0.0
    return max(share.low - level, level - share.high, 0.0)


def _most_gap(share: Estimate, level: float) -> float:
    """Return the largest distance of a coverage from its level; infinite if it is unknown."""
    if not (is_known(share.low) and is_known(share.high)):
        return inf
    return max(share.high - level, level - share.low)
