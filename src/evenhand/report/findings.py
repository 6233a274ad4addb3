"""Findings of an audit: groups, bounds and possible leaks. Problems are counted here alone."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from evenhand._format import confidence_in_full, in_full, is_known, is_largest
from evenhand._kinds import HIGHER, LOWER, MIXED, NARROW, WIDE
from evenhand.report.records import (
    Bound,
    Censoring,
    Estimate,
    GivenForecast,
    NamedBound,
    Number,
    PlainInterval,
    Proof,
    Question,
    Values,
    estimate,
    or_zero,
    record,
    records,
    without_nan,
)
from evenhand.report.terms import Terms

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
        return self.bound is not None and not is_largest(self.bound.group_error)

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


# --- findings of an audit, read from its values

DEFAULT = 0.02, 0.95
"""Tolerance and confidence of audits that lack them."""

GIVEN = "everyone, given the own forecast"
"""Name of all people where the mean error given the own forecast is meant."""

TRENDS = {
    "trend of mean": "errors differ between low and high forecasts",
    "trend of width": "errors differ between narrow and wide forecasts",
}
"""What the trend tests of everyone find."""

TABLES = (
    *("scores", "groups", "by_forecast", "scan", "learned", "positive_part"),
    *("plain_intervals", "notes"),
)
EMPTY: Values = {**dict.fromkeys(TABLES, ()), "n_draws": 1, "certificate": None}
"""Values of an audit that lacks them."""


def findings_of(audit: Values) -> Findings:
    """Return the findings of an audit.

    Parameters
    ----------
    audit : dict
        `Audit.to_dict()`, or an audit read from JSON.
    """
    given = without_nan(audit)
    absent = {key: value for key, value in EMPTY.items() if given.get(key) is None}
    audit = given | absent
    proof = _proof_of(audit)
    censoring = record(Censoring, audit["censoring"]) if audit.get("censoring") else None
    terms = _terms_of(audit, censoring)
    tolerance = DEFAULT[0] if audit.get("tolerance") is None else audit["tolerance"]
    joint = (audit.get("family") or {}).get("confidence", DEFAULT[1])
    scanned = [_scanned(row, terms, joint) for row in audit["scan"]]
    directions = {group.name: group.direction for group in scanned}
    probable = {str(row.get("group")) for row in audit.get("membership") or ()}
    groups = [_named(row, terms, directions, joint, probable) for row in audit["groups"]]
    own = [_named(row, terms, directions, joint, ()) for row in audit["by_forecast"]]
    own = [replace(one, is_named=False) for one in own]
    ids = [row.get("scanned_as") or row["group"] for row in audit["by_forecast"]]
    ids += [row.get("scanned_as") or row["group"] for row in audit["groups"][1:]]
    by_forecast, named, scanned = _once(own, groups[1:], scanned, ids)
    everyone = groups[0] if groups else None
    size = record(GivenForecast, audit["given_forecast"]) if audit.get("given_forecast") else None
    of_all = None
    if everyone is not None and size is not None and not terms.is_event:
        everyone, of_all = _given(everyone, size, tolerance)
    of_learned = joint if proof is None else proof.confidence
    return Findings(
        values=audit,
        terms=terms,
        censoring=censoring,
        tolerance=tolerance,
        confidence=joint,
        family=audit.get("family") or {},
        everyone=everyone,
        given=of_all,
        given_forecast=size,
        by_forecast=tuple(by_forecast),
        named=tuple(named),
        scanned=tuple(scanned),
        learned=tuple(_learned(row, terms, of_learned) for row in audit["learned"]),
        positive=tuple(
            replace(one, name=f"{one.name}, outcomes other than {terms.atom}")
            # who is lost may or may not have the event by the horizon: there is no such part
            for one in (
                _named(row, terms, {}, joint, ()) for row in audit["positive_part"] if not censoring
            )
        ),
        proof=proof,
        plain=_plain_of(audit),
    )


def _given(
    everyone: GroupFinding, size: GivenForecast, tolerance: float
) -> tuple[GroupFinding, GroupFinding]:
    """Return all people, and all people given the own forecast; one of them has the problem."""
    is_own = everyone.is_problem and or_zero(everyone.error.value) <= tolerance + ROUNDING
    unknown = Estimate(None)
    p_values = {name: p for name, p in (size.tests or {}).items() if is_known(p)}
    test = min(p_values, key=lambda name: or_zero(p_values[name]), default="")
    given = replace(
        everyone,
        name=GIVEN,
        error=Estimate(size.error, size.low, size.high),
        bias=unknown,
        coverage_80=unknown,
        coverage_90=unknown,
        open_error=None,
        direction=TRENDS.get(test),
        is_off=is_own,
        is_problem=is_own,
        same_as=None if is_own else everyone.name,
    )
    return replace(everyone, is_problem=everyone.is_problem and not is_own), given


def _once(
    by_forecast: Iterable[GroupFinding],
    named: Iterable[GroupFinding],
    scanned: Iterable[GroupFinding],
    ids: Sequence[str],
) -> Iterator[list[GroupFinding]]:
    """Yield groups by the forecast, named and scanned groups, so that the same rows count once.

    `ids` are the names that the scan gives to the first two kinds. Without such a name, size and
    error identify the rows of groups by the forecast and of scanned groups.
    """
    first: dict[object, str] = {}
    names = iter(ids)
    for kind, groups in enumerate((by_forecast, named)):
        found = []
        for group, name in zip(groups, names, strict=False):
            rows = _rows_of(group)
            same = first.get(name) or first.get(rows)
            found.append(_repeated(group, same) if same else group)
            first.setdefault(name, group.name)
            if kind == 0:
                first.setdefault(rows, group.name)
        yield found
    # of several names of the same rows, the one with the fewest features is kept
    others = []
    for group in sorted(scanned, key=lambda one: len(one.features)):
        if group.name not in first and first.setdefault(_rows_of(group), group.name) == group.name:
            others.append(group)
    yield others


def _rows_of(group: GroupFinding) -> tuple[object, ...]:
    numbers = (group.error.value, group.bias.value, group.predicted)
    # sums of the same rows in another order differ in the last digits
    return group.n, *(f"{or_zero(number):.9g}" for number in numbers)


def _repeated(group: GroupFinding, name: str) -> GroupFinding:
    return replace(group, same_as=name, is_off=False, is_problem=False)


def _terms_of(audit: Values, censoring: Censoring | None) -> Terms:
    unit = (audit.get("about") or {}).get("unit")
    atom = (audit.get("certificate") or {}).get("atom")
    terms = Terms.of(audit.get("outcome_kind"), audit.get("target"), unit, atom)
    return terms if censoring is None else terms.of_times(censoring.horizon, unit)


def _named(
    row: Values,
    terms: Terms,
    directions: dict[str, str | None],
    joint: float,
    probable: Container[str],
) -> GroupFinding:
    # one direction for the same rows, if the scan found one
    tested = directions.get(str(row.get("scanned_as") or row["group"]))
    is_tested = tested in {LOWER, HIGHER, NARROW, WIDE}
    return _finding(
        row,
        terms,
        direction=tested if is_tested else _estimated_direction(row, terms),
        confidence=joint,
        is_named=True,
        is_probable=row["group"] in probable,
    )


def _scanned(row: Values, terms: Terms, joint: float) -> GroupFinding:
    is_tested = is_known(row.get("p_adjusted"))
    return _finding(
        row, terms, direction=row.get("direction"), confidence=joint, is_tested=is_tested
    )


def _finding(row: Values, terms: Terms, **judged: Any) -> GroupFinding:
    # the error of randomized PITs is that of a test: it understates errors of times that are cut
    # off (outcomes: 5)
    is_censored = "km_error" in row
    # groups by the own forecast share what they are made from, as groups of a feature do
    features = row.get("features") or (row["key"],) if row.get("key") else row.get("features")
    return GroupFinding(
        name=str(row.get("group", "")),
        n=row["n"],
        error=estimate(row, "km_error", "km") if is_censored else estimate(row, "error"),
        open_error=(
            Estimate(None, row.get("least_error"), row.get("most_error")) if is_censored else None
        ),
        bias=estimate(row, "bias"),
        coverage_80=Estimate(None) if terms.is_event else estimate(row, "coverage_80"),
        coverage_90=Estimate(None) if terms.is_event else estimate(row, "coverage_90"),
        predicted=row.get("predicted"),
        rate=row.get("rate"),
        is_off=bool(row.get("off")),
        is_problem=bool(row.get("problem")),
        p_adjusted=row.get("p_adjusted"),
        is_too_small=bool(row.get("too_small")),
        is_possible_leak=bool(row.get("possible_leak")),
        features=tuple(map(str, features or ())),
        column=row.get("column"),
        **judged,
    )


def _learned(row: Values, terms: Terms, confidence: float) -> LearnedFinding:
    # the rows that judge a learned group are not those that defined it, and its bound is adjusted
    # for the number of learned groups
    direction, mass = row.get("direction"), row["mass"]
    group = _finding(row, terms, direction=direction, confidence=confidence, mass=mass)
    defined = row.get("description") or (
        f"by {', '.join(group.features)}" if group.features else ""
    )
    name = f"{in_full(mass)} found by search" + (f": {defined}" if defined else "")
    group = replace(group, name=name)
    if group.open_error is None:
        group = replace(group, error=Estimate(group.error.value, row.get("low")))
    return record(LearnedFinding, {**row, "group": group})


def _estimated_direction(row: Values, terms: Terms) -> str:
    """Return the direction of a group's error by its mean and its spread."""
    bias = estimate(row, "bias")
    if terms.is_event:
        return _event_direction(row, bias)
    mean = row.get("mean_pit")
    # the error is at least the distance of the mean PIT from 1/2: is that most of the error
    if is_known(mean) and abs(mean - 0.5) >= max(or_zero(row.get("error")) / 2, 1e-9):
        return LOWER if mean < 0.5 else HIGHER
    # otherwise the spread explains the error if the interval of the coverage excludes 80%
    covered = estimate(row, "coverage_80")
    if is_known(covered.high) and covered.high < 0.8:
        return NARROW
    if is_known(covered.low) and covered.low > 0.8:
        return WIDE
    return MIXED


def _event_direction(row: Values, bias: Estimate) -> str:
    slope = estimate(row, "slope")
    # the second test of a group of 0/1 outcomes is that of its slope
    if not (or_zero(bias.low) > 0 or or_zero(bias.high) < 0):
        if is_known(slope.high) and slope.high < 1:
            return NARROW
        if is_known(slope.low) and slope.low > 1:
            return WIDE
    return LOWER if or_zero(bias.value) < 0 else HIGHER


def _plain_of(audit: Values) -> tuple[PlainInterval, ...]:
    found = records(PlainInterval, audit["plain_intervals"])
    known = [one for one in found if is_known(one.level) and is_known(one.mass)]
    return tuple(sorted(known, key=lambda one: (one.mass, one.level)))


def _proof_of(audit: Values) -> Proof | None:
    proof = audit["certificate"]
    if not proof:
        return None
    bounds = records(Bound, proof.get("every_group"))
    # one PIT per person gives no guarantee for groups that were not named, but that of a base does
    is_proven = audit["is_randomized"] and (audit["n_draws"] > 1 or bool(proof.get("link_bound")))
    known = [bound for bound in bounds if is_proven and is_known(bound.group_error)]
    read = {
        "groups": records(NamedBound, proof.get("groups")),
        "every_group": bounds,
        "questions": records(Question, proof.get("questions")),
        "assumptions": tuple(map(str, proof.get("assumptions") or ())),
        "not_covered": tuple(map(str, proof.get("not_covered") or ())),
        "bound": min(known, key=lambda bound: abs(bound.mass - MASS), default=None),
    }
    return record(Proof, {**proof, **read})
