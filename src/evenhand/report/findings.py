"""Findings of an audit: groups, bounds and leaks, each judged once for all renderings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from evenhand._format import at_most, is_known
from evenhand.report.notes import Note
from evenhand.report.records import (
    Bound,
    Estimate,
    Leak,
    Number,
    Proof,
    Score,
    Values,
    WorstGroup,
    or_zero,
)
from evenhand.search import HIGHER, LOWER

NAMED_LISTED = 2
GROUPS_LISTED = 3
"""Most named groups, and most groups named or scanned, that sentences list one by one."""


@dataclass(frozen=True)
class GroupFinding:
    """A group and the judgement on it.

    Parameters
    ----------
    name : str
        Its name.
    n : int
        Its rows.
    error, bias, coverage_80, coverage_90 : Estimate
        Estimates, with bands of named groups. The bias is outcome minus forecast.
    direction : str or None
        Direction of its error: tested for scanned and learned groups, estimated for named ones.
    is_off : bool
        Whether it is significantly off, judged together with all other groups.
    least : float
        Lower bound of its error; 0 if there is none that can be reported.
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
    p_adjusted: Number = None
    is_named: bool = False
    is_tested: bool = True
    is_too_small: bool = False
    is_possible_leak: bool = False
    features: tuple[str, ...] = ()
    column: str | None = None

    @property
    def is_mean_off(self) -> bool:
        """Whether the 95% band of outcome minus forecast leaves out 0."""
        is_beyond = or_zero(self.bias.low) > 0 or or_zero(self.bias.high) < 0
        return is_known(self.bias.value) and is_beyond

    @property
    def reported_bias(self) -> float:
        """The mean of outcome minus forecast; 0 where it is not reported."""
        # a named group has a band for its mean, and one that includes 0 shows no direction
        return or_zero(self.bias.value) if self.is_mean_off or not self.is_named else 0.0

    @property
    def is_mean_opposed(self) -> bool:
        """Whether outcomes and their mean lie on different sides of the forecasts."""
        bias = self.reported_bias
        return bool(bias) and self.direction == (HIGHER if bias < 0 else LOWER)


@dataclass(frozen=True)
class LearnedFinding:
    """The worst group of a share of people that was learned from features."""

    group: GroupFinding
    mass: float
    n_judged: int
    low: Number
    p_value: Number
    description: str
    description_share: Number


@dataclass(frozen=True)
class Findings:
    """What an audit found.

    Parameters
    ----------
    values : dict
        The audit as plain values, None for unknown numbers: names, sizes and tables that need no
        judgement.
    unit : str
        Unit of the outcome.
    everyone : GroupFinding or None
        All people.
    named, scanned : tuple of GroupFinding
        Groups in the order of the audit.
    learned : tuple of LearnedFinding
        Learned groups by rising size.
    named_off, scanned_off : tuple of GroupFinding
        Groups that are significantly off: named ones by falling lower bound, scanned ones by rising
        p-value, without those that go by another name.
    worst_groups : tuple of WorstGroup
        Oracle worst groups by rising size.
    proof : Proof or None
        The certificate.
    assumptions, not_covered : tuple of str
        Of the certificate.
    scores : tuple of Score
        Measures of all rows.
    leaks : tuple of Leak
        Groups and features that the outcome may define.
    why_no_scan : tuple of Note
        Notes on a scan that could not run.
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
    assumptions: tuple[str, ...]
    not_covered: tuple[str, ...]
    scores: tuple[Score, ...]
    leaks: tuple[Leak, ...]
    why_no_scan: tuple[Note, ...]
    has_features: bool

    @property
    def is_randomized(self) -> bool:
        """Whether a draw stands behind the forecasts."""
        return bool(self.values["is_randomized"])

    @property
    def n_draws(self) -> int:
        """Draws per row."""
        return int(self.values["n_draws"])

    @property
    def bound(self) -> Bound | None:
        """The bound for every group of the share nearest a fifth; None if nothing is proven."""
        return None if self.proof is None else self.proof.bound

    @property
    def is_bound_useful(self) -> bool:
        """Whether that bound is less than the largest error there is."""
        # compared as printed: a bound just below 1/2 is rounded up to it
        return self.bound is not None and at_most(self.bound.group_error) != at_most(0.5)

    @cached_property
    def n_named(self) -> int:
        """Named groups that were judged: possible leaks were not."""
        return sum(not group.is_possible_leak for group in self.named)

    @cached_property
    def n_scanned(self) -> int:
        """Groups that the scan judged: those without a test were not."""
        return sum(is_known(group.p_adjusted) for group in self.scanned)

    @cached_property
    def n_scanned_off(self) -> int:
        """Scanned groups that are significantly off."""
        return sum(group.is_off for group in self.scanned)

    @property
    def listed(self) -> tuple[GroupFinding, ...]:
        """The named and the scanned groups that sentences list one by one."""
        named = self.named_off[:NAMED_LISTED]
        return named + self.scanned_off[: GROUPS_LISTED - len(named)]

    @property
    def farthest_off(self) -> GroupFinding | None:
        """The listed group with the largest lower bound; None if none is significantly off."""
        return max(self.listed, key=lambda g: (g.least, or_zero(g.error.value)), default=None)

    @property
    def learned_off(self) -> LearnedFinding | None:
        """The learned group with the largest lower bound; None if none is significantly off."""
        # one of them: learned groups of several sizes mostly overlap
        off = (found for found in self.learned if found.group.is_off)
        return max(off, key=lambda found: found.group.least, default=None)
