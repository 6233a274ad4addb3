"""Findings of an audit: groups, bounds and possible leaks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from evenhand._format import at_most, confidence_in_full, is_known
from evenhand.report.notes import Note
from evenhand.report.records import (
    Bound,
    Censoring,
    Estimate,
    Number,
    PlainInterval,
    Proof,
    Values,
    WorstGroup,
    or_zero,
)
from evenhand.report.terms import Terms
from evenhand.report.tolerance import Tolerance
from evenhand.search import HIGHER, LOWER

GROUPS_LISTED = 3
"""Most groups with a sentence each."""

LEAST_REPORTED = 0.001
"""Least lower bound that is reported; a smaller one would be printed as 0.0 points."""


@dataclass(frozen=True)
class GroupFinding:
    """A group, its estimates and the judgement on it.

    Parameters
    ----------
    name : str
        Name of the group.
    n : int
        Number of its rows.
    error, bias, coverage_80, coverage_90 : Estimate
        Estimates with confidence intervals. The bias is outcome minus forecast.
    direction : str or None
        Direction of its error: tested for scanned and learned groups, estimated for others.
    confidence : float
        Confidence of the intervals.
    is_off : bool
        Whether it is significantly off.
    is_beyond : bool
        Whether it is off by more than the tolerance.
    is_within : bool
        Whether its error is proven to be within the limit that was asked for.
    p_adjusted : float or None
        Its adjusted p-value.
    is_named : bool
        Whether it was named.
    is_tested, is_too_small, is_possible_leak : bool
        Whether it was judged, and why not.
    features : tuple of str
        Features that define it.
    column : str or None
        Column that makes a named group.
    is_probable : bool
        Whether its members are known only by probability: its numbers are then those of all rows,
        weighted by the probabilities.
    open_error : Estimate or None
        For times that are cut off, the ends between which the error lies whatever the reason for
        it; `error` is then the Kaplan-Meier estimate. None for other outcomes.
    """

    name: str
    n: int
    error: Estimate
    bias: Estimate
    coverage_80: Estimate
    coverage_90: Estimate
    direction: str | None
    confidence: float
    is_off: bool
    is_beyond: bool
    is_within: bool = False
    p_adjusted: Number = None
    is_named: bool = False
    is_tested: bool = True
    is_too_small: bool = False
    is_possible_leak: bool = False
    features: tuple[str, ...] = ()
    column: str | None = None
    is_probable: bool = False
    open_error: Estimate | None = None

    @property
    def most(self) -> Number:
        """Upper bound of its error that assumes nothing about times that are cut off."""
        return self.error.high if self.open_error is None else self.open_error.high

    @property
    def least(self) -> float:
        """Lower bound of its error; 0 if there is none that can be reported."""
        least = or_zero(self.error.low)
        return least if least >= LEAST_REPORTED else 0.0

    @property
    def is_judged(self) -> bool:
        """Whether it was examined: possible leaks and groups with too few rows were not."""
        return self.is_tested and not self.is_too_small and not self.is_possible_leak

    @property
    def rank(self) -> tuple[bool, bool, float, float, float, int]:
        """Place among findings: beyond the tolerance first, then by lower bound and estimate."""
        # lower bounds first, since estimates of small groups are large by chance; groups that are
        # not off by their p-values, which account for the size
        chance = 0.0 if self.is_off or self.p_adjusted is None else self.p_adjusted
        least, error = or_zero(self.error.low), or_zero(self.error.value)
        # of several names of the same rows, the one with the fewest features comes first
        n_features = len(self.features)
        return not self.is_beyond, not self.is_off, -least, chance, -error, n_features

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that define it, if they are known."""
        return self.features or (() if self.column is None else (self.column,))

    @property
    def is_mean_off(self) -> bool:
        """Whether the confidence interval of outcome minus forecast excludes 0."""
        is_beyond = or_zero(self.bias.low) > 0 or or_zero(self.bias.high) < 0
        return is_known(self.bias.value) and is_beyond

    @property
    def reported_bias(self) -> float:
        """Mean of outcome minus forecast; 0 if it is not reported."""
        # an interval that contains 0 shows no direction; learned groups have no interval
        is_shown = self.is_mean_off or not is_known(self.bias.low)
        return or_zero(self.bias.value) if is_shown else 0.0

    @property
    def is_direction_opposed(self) -> bool:
        """Whether the estimated mean, significant or not, contradicts the direction."""
        bias = or_zero(self.bias.value)
        return bool(bias) and self.direction == (HIGHER if bias < 0 else LOWER)


@dataclass(frozen=True)
class LearnedFinding:
    """Worst group of a given size that was learned from features."""

    group: GroupFinding
    mass: float
    n_judged: int
    low: Number
    description: str | None
    description_share: Number


@dataclass(frozen=True)
class Findings:
    """Findings of an audit.

    Parameters
    ----------
    values : dict
        Plain values of the audit, None for unknown numbers.
    terms : Terms
        Words for the kind of outcome.
    censoring : Censoring or None
        Numbers of people by what is known of their times; None for other outcomes.
    tolerance : Tolerance
        Errors up to which significant findings are not important.
    confidence : float
        Confidence of the simultaneous intervals and of the tests.
    n_simultaneous : int
        Number of groups whose intervals hold simultaneously; 0 if each holds for itself.
    everyone : GroupFinding or None
        All people.
    named, scanned : tuple of GroupFinding
        Groups in the order of the audit.
    learned : tuple of LearnedFinding
        Learned groups by increasing size.
    positive : tuple of GroupFinding
        Named groups of the people whose outcome is not the atom, everyone first; empty unless
        outcomes have an atom.
    distinct : tuple of GroupFinding
        Named groups, then scanned groups, each set of rows once.
    worst_groups : tuple of WorstGroup
        Oracle worst groups by increasing size.
    proof : Proof or None
        The certificate.
    plain : tuple of PlainInterval
        Intervals of the deterministic forecaster by group size and increasing level; empty if there
        is no such forecaster.
    why_no_scan : tuple of Note
        Notes that explain why no group was scanned.
    has_features : bool
        Whether features were searched.
    """

    values: Values
    terms: Terms
    censoring: Censoring | None
    tolerance: Tolerance
    confidence: float
    n_simultaneous: int
    everyone: GroupFinding | None
    named: tuple[GroupFinding, ...]
    scanned: tuple[GroupFinding, ...]
    learned: tuple[LearnedFinding, ...]
    positive: tuple[GroupFinding, ...]
    distinct: tuple[GroupFinding, ...]
    worst_groups: tuple[WorstGroup, ...]
    proof: Proof | None
    plain: tuple[PlainInterval, ...]
    why_no_scan: tuple[Note, ...]
    has_features: bool

    @property
    def is_randomized(self) -> bool:
        """Whether forecasts depend on a draw."""
        return bool(self.values["is_randomized"])

    @property
    def level(self) -> str:
        """Confidence of certified bounds and of learned groups' lower bounds, as text."""
        return confidence_in_full(self.confidence if self.proof is None else self.proof.confidence)

    @property
    def n_draws(self) -> int:
        """Draws per row."""
        return int(self.values["n_draws"])

    @property
    def bound(self) -> Bound | None:
        """Bound for every group of the size nearest a fifth; None without a guarantee."""
        return None if self.proof is None else self.proof.bound

    @property
    def is_mean_too_high(self) -> bool:
        """Whether forecasts are significantly too high on average."""
        # the bias is outcome minus forecast
        return self.everyone is not None and self.everyone.reported_bias < 0

    @property
    def is_bound_useful(self) -> bool:
        """Whether that bound is less than the largest error."""
        # compared as printed: a bound just below 1/2 is rounded up to it
        return self.bound is not None and at_most(self.bound.group_error) != at_most(0.5)

    @cached_property
    def n_named(self) -> int:
        """Number of named groups that were judged; possible leaks were not."""
        return sum(not group.is_possible_leak for group in self.named)

    @cached_property
    def n_scanned(self) -> int:
        """Number of scanned groups that were tested."""
        return sum(group.is_tested for group in self.scanned)

    @cached_property
    def off(self) -> tuple[GroupFinding, ...]:
        """Groups that are significantly off, the most important first, each set of rows once."""
        off = (group for group in self.distinct if group.is_off)
        return tuple(sorted(off, key=lambda group: group.rank))

    @property
    def beyond(self) -> tuple[GroupFinding, ...]:
        """Groups that are off by more than the tolerance, by falling lower bound."""
        return tuple(group for group in self.off if group.is_beyond)

    @property
    def tolerated(self) -> tuple[GroupFinding, ...]:
        """Groups that are significantly off within the tolerance, by falling lower bound."""
        return tuple(group for group in self.off if not group.is_beyond)

    @property
    def headline(self) -> GroupFinding | None:
        """Group beyond the tolerance with the largest lower bound; None if there is none."""
        return next(iter(self.beyond), None)

    @property
    def leading(self) -> GroupFinding | None:
        """Finding beyond the tolerance with the largest lower bound; None if there is none.

        It is a named, scanned or learned group, or all people together.
        """
        learned, everyone = self.learned_off, self.everyone
        found = [] if self.headline is None else [self.headline]
        found += [] if learned is None else [learned.group]
        found += [everyone] if everyone is not None and everyone.is_beyond else []
        # of equal bounds, such as 0, that of a named or scanned group is the plainest
        return max(found, key=lambda group: group.least, default=None)

    @property
    def listed(self) -> tuple[GroupFinding, ...]:
        """Groups beyond the tolerance that have a sentence each; no two share a feature."""
        # groups that share a feature with a worse one mostly share its rows and its error
        found: list[GroupFinding] = []
        used: set[str] = set()
        for group in self.beyond:
            if len(found) < GROUPS_LISTED and used.isdisjoint(group.columns):
                found.append(group)
                used.update(group.columns)
        return tuple(found)

    @property
    def learned_off(self) -> LearnedFinding | None:
        """Learned group beyond the tolerance with the largest lower bound; None without one."""
        # one group only: learned groups of different sizes mostly overlap
        off = (found for found in self.learned if found.group.is_beyond)
        return min(off, key=lambda found: found.group.rank, default=None)

    @property
    def least_proven(self) -> GroupFinding | None:
        """Examined group whose error has the largest upper bound; None if none is known.

        Groups known by probability have no upper bound.
        """
        judged = (one for one in self.distinct if one.is_judged and not one.is_probable)
        known = (one for one in judged if is_known(one.most))
        return max(known, key=lambda one: or_zero(one.most), default=None)

    @property
    def n_within(self) -> tuple[int, int]:
        """Numbers of examined groups whose error is proven to be within the limit, and of all."""
        judged = [group for group in self.distinct if group.is_judged]
        return sum(group.is_within for group in judged), len(judged)
