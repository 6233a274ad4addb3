"""Findings of an audit: groups, bounds and possible leaks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from evenhand._format import at_most, confidence_in_full, is_known
from evenhand.report.notes import Note
from evenhand.report.records import (
    Bound,
    Estimate,
    Number,
    PlainInterval,
    Proof,
    Values,
    WorstGroup,
    or_zero,
)
from evenhand.search import HIGHER, LOWER

NAMED_LISTED = 2
GROUPS_LISTED = 3
"""Most named groups, and most named or scanned groups, with a sentence each."""


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
        Estimates, with confidence intervals of named groups. The bias is outcome minus forecast.
    direction : str or None
        Direction of its error: tested for scanned and learned groups, estimated for named ones.
    is_off : bool
        Whether it is significantly off, judged together with all other groups.
    least : float
        Lower bound of its error; 0 if there is none that can be reported.
    is_separate : bool
        Whether that bound is the lower end of the group's own 95% interval, not of a certificate.
    p_adjusted : float or None
        Its adjusted p-value in the scan.
    is_named : bool
        Whether it was named.
    is_tested, is_too_small, is_possible_leak : bool
        Whether it was judged, and why not.
    features : tuple of str
        Features that define it.
    column : str or None
        Column that makes a named group.
    """

    name: str
    n: int
    error: Estimate
    bias: Estimate
    coverage_80: Estimate
    coverage_90: Estimate
    direction: str | None
    is_off: bool
    least: float
    is_separate: bool = False
    p_adjusted: Number = None
    is_named: bool = False
    is_tested: bool = True
    is_too_small: bool = False
    is_possible_leak: bool = False
    features: tuple[str, ...] = ()
    column: str | None = None

    @property
    def is_mean_off(self) -> bool:
        """Whether the 95% interval of outcome minus forecast excludes 0."""
        is_beyond = or_zero(self.bias.low) > 0 or or_zero(self.bias.high) < 0
        return is_known(self.bias.value) and is_beyond

    @property
    def reported_bias(self) -> float:
        """Mean of outcome minus forecast; 0 if it is not reported."""
        # an interval that contains 0 shows no direction; scanned and learned groups have none
        return or_zero(self.bias.value) if self.is_mean_off or not self.is_named else 0.0

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
    p_value: Number
    description: str | None
    description_share: Number


@dataclass(frozen=True)
class Findings:
    """Findings of an audit.

    Parameters
    ----------
    values : dict
        Plain values of the audit, None for unknown numbers.
    unit : str
        Unit of the outcome.
    everyone : GroupFinding or None
        All people.
    named, scanned : tuple of GroupFinding
        Groups in the order of the audit.
    learned : tuple of LearnedFinding
        Learned groups by increasing size.
    named_off, scanned_off : tuple of GroupFinding
        Groups that are significantly off: named groups by falling lower bound, scanned groups by
        increasing p-value, each set of rows once.
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
    unit: str
    everyone: GroupFinding | None
    named: tuple[GroupFinding, ...]
    scanned: tuple[GroupFinding, ...]
    learned: tuple[LearnedFinding, ...]
    named_off: tuple[GroupFinding, ...]
    scanned_off: tuple[GroupFinding, ...]
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
        """Confidence of lower bounds, as text."""
        # without a certificate, bounds are ends of 95% confidence intervals
        return confidence_in_full(0.95 if self.proof is None else self.proof.confidence)

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
        return sum(is_known(group.p_adjusted) for group in self.scanned)

    @cached_property
    def n_scanned_off(self) -> int:
        """Number of scanned groups that are significantly off."""
        return sum(group.is_off for group in self.scanned)

    @property
    def listed(self) -> tuple[GroupFinding, ...]:
        """Named and scanned groups that have a sentence each."""
        named = self.named_off[:NAMED_LISTED]
        return named + self.scanned_off[: GROUPS_LISTED - len(named)]

    @property
    def farthest_off(self) -> GroupFinding | None:
        """Listed group with the largest lower bound; None if no group is significantly off."""
        return max(self.listed, key=lambda g: (g.least, or_zero(g.error.value)), default=None)

    @property
    def learned_off(self) -> LearnedFinding | None:
        """Learned group with the largest lower bound; None if no group is significantly off."""
        # one group only: learned groups of different sizes mostly overlap
        off = (found for found in self.learned if found.group.is_off)
        return max(off, key=lambda f: (f.group.least, -or_zero(f.p_value)), default=None)
