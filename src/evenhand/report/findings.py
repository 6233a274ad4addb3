"""Findings of an audit: groups, bounds and possible leaks. Problems are counted here alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from evenhand._format import at_most, confidence_in_full, is_known
from evenhand.report.notes import Note
from evenhand.report.records import (
    Bound,
    Censoring,
    Estimate,
    GivenForecast,
    Number,
    PlainInterval,
    Proof,
    Values,
    or_zero,
)
from evenhand.report.terms import Terms
from evenhand.search import HIGHER, LOWER

MASS = 0.2
"""Group size of the bounds in the verdict."""

NAMED = 400
"""Most rows shown of the named groups."""

GROUPS_LISTED = 3
"""Most groups with a sentence each."""

LEAST_REPORTED = 0.001
"""Least lower bound that is reported; a smaller one would be printed as 0.0 points."""

ROUNDING = 1e-9
"""Rounding error of a difference of shares: 0.8 - 0.78 is not above 0.02."""


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
    is_problem : bool
        Whether it is significantly off and its estimate is beyond the tolerance.
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
    predicted, rate : float or None
        Mean probability and event rate of 0/1 outcomes; None for others.
    same_as : str or None
        Group with the same rows that is listed before it, and counts for both.
    mass : float or None
        Size of a group that was found by a search.
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
    is_problem: bool
    p_adjusted: Number = None
    is_named: bool = False
    is_tested: bool = True
    is_too_small: bool = False
    is_possible_leak: bool = False
    features: tuple[str, ...] = ()
    column: str | None = None
    is_probable: bool = False
    predicted: Number = None
    rate: Number = None
    same_as: str | None = None
    mass: Number = None
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
        """Whether it was examined and counts: possible leaks and groups of few rows do not."""
        is_left_out = self.is_too_small or self.is_possible_leak or self.same_as is not None
        return self.is_tested and not is_left_out

    def is_beyond(self, tolerance: float) -> bool:
        """Whether the whole interval of its error is beyond a tolerance."""
        return self.is_judged and or_zero(self.error.low) > tolerance + ROUNDING

    def is_proven(self, tolerance: float) -> bool:
        """Whether the whole interval is within a tolerance."""
        # the numbers of a group known by probability are not those of its members
        return not self.is_probable and is_known(self.most) and self.most <= tolerance + ROUNDING

    @property
    def rank(self) -> tuple[bool, bool, float, float, float, int]:
        """Place among findings: problems first, then by lower bound and estimate."""
        # lower bounds first, since estimates of small groups are large by chance; groups that are
        # not off by their p-values, which account for the size
        chance = 0.0 if self.is_off or self.p_adjusted is None else self.p_adjusted
        least, error = or_zero(self.error.low), or_zero(self.error.value)
        # of several names of the same rows, the one with the fewest features comes first
        n_features = len(self.features)
        return not self.is_problem, not self.is_off, -least, chance, -error, n_features

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
    tolerance : float
        Error up to which significant findings are not important.
    confidence : float
        Confidence of the simultaneous intervals and of the tests.
    family : dict
        The one family of tests and intervals: shares of the error probability, numbers of groups.
    everyone : GroupFinding or None
        All people.
    given : GroupFinding or None
        All people, with the mean error given the own forecast; None for 0/1 outcomes, whose error
        of everyone is that, and if forecasts are not known.
    given_forecast : GivenForecast or None
        What is known of this mean error, for all kinds of outcome.
    by_forecast, named, scanned : tuple of GroupFinding
        Groups by the forecast's own level and spread, named and scanned groups. Scanned groups
        whose rows another group has are left out, such named groups have `same_as`.
    learned : tuple of LearnedFinding
        Learned groups by increasing size.
    positive : tuple of GroupFinding
        Named groups of the people whose outcome is not the atom, everyone first; empty unless
        outcomes have an atom.
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
    tolerance: float
    confidence: float
    family: Values
    everyone: GroupFinding | None
    given: GroupFinding | None
    given_forecast: GivenForecast | None
    by_forecast: tuple[GroupFinding, ...]
    named: tuple[GroupFinding, ...]
    scanned: tuple[GroupFinding, ...]
    learned: tuple[LearnedFinding, ...]
    positive: tuple[GroupFinding, ...]
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

    @property
    def overall(self) -> tuple[GroupFinding, ...]:
        """All people, and all people given the own forecast; a problem is marked at one of them."""
        return tuple(group for group in (self.everyone, self.given) if group is not None)

    @property
    def distinct(self) -> tuple[GroupFinding, ...]:
        """Groups by the forecast, named and scanned groups, each set of rows once."""
        groups = (*self.by_forecast, *self.named, *self.scanned)
        return tuple(group for group in groups if group.same_as is None)

    @cached_property
    def examined(self) -> tuple[GroupFinding, ...]:
        """All groups of the one family beside everyone that were examined."""
        learned = (found.group for found in self.learned)
        return tuple(one for one in (*self.distinct, *learned, *self.positive) if one.is_judged)

    @cached_property
    def problems(self) -> tuple[GroupFinding, ...]:
        """Members of the family with a problem, by falling lower bound of the error."""
        found = (group for group in (*self.examined, *self.overall) if group.is_problem)
        return tuple(sorted(found, key=lambda group: (-group.least, group.rank)))

    @property
    def is_everyone_problem(self) -> bool:
        """Whether all people together are one of the problems."""
        return any(group.is_problem for group in self.overall)

    @property
    def seen(self) -> tuple[GroupFinding, ...]:
        """Groups that are significantly off within the tolerance, by falling lower bound."""
        found = (group for group in self.examined if group.is_off and not group.is_problem)
        return tuple(sorted(found, key=lambda group: group.rank))

    @property
    def leading(self) -> GroupFinding | None:
        """Problem with the largest lower bound; None if there is none."""
        return next(iter(self.problems), None)

    @property
    def listed(self) -> tuple[GroupFinding, ...]:
        """Groups with a problem that have a sentence each; no two share a feature."""
        # groups that share a feature with a worse one mostly share its rows and its error
        found: list[GroupFinding] = []
        used: set[str] = set()
        for group in self.problems:
            is_new = group not in self.overall and used.isdisjoint(group.columns)
            if len(found) < GROUPS_LISTED and is_new:
                found.append(group)
                used.update(group.columns)
        return tuple(found)
