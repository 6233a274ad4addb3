"""Findings of an audit: groups, bounds and leaks, each judged once for all renderings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from evenhand._format import at_most, is_known
from evenhand.certificates import DRAWS_ONLY
from evenhand.report.measures import units_of
from evenhand.report.notes import NO_SCAN, Note, NoteKind, notes_of
from evenhand.report.records import (
    Bound,
    Estimate,
    Leak,
    NamedBound,
    Number,
    Proof,
    Question,
    Score,
    Values,
    WorstGroup,
    estimate,
    or_zero,
    records,
    without_nan,
)
from evenhand.search import HIGHER, LOWER, MIXED, NARROW, WIDE

ADJUSTED_LEVEL = 0.05
"""Adjusted p-value below which a group is reported as off."""

LEAST_REPORTED = 0.0005
"""Least bound that is reported: a smaller one would read as 0.0 points."""

NAMED_LISTED = 2
GROUPS_LISTED = 3
"""Most named groups, and most groups named or scanned, that sentences list one by one."""

MASS = 0.2
"""Size of the groups whose bounds the verdict names."""


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
    is_too_small, is_possible_leak : bool
        Why it was not judged.
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
        return self.bound is not None and at_most(or_zero(self.bound.group_error)) != at_most(0.5)

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


def findings_of(audit: Values, notes: Sequence[Note] = ()) -> Findings:
    """Judge the groups of an audit.

    Parameters
    ----------
    audit : dict
        `Audit.to_dict()`, or what `json.load` makes of an audit written as JSON.
    notes : sequence of Note
        `Audit.notes`; JSON holds only their sentences.
    """
    audit = without_nan(audit)
    judge = _Judge(audit)
    everyone = tuple(judge.everyone(row) for row in audit["groups"][:1])
    named = tuple(map(judge.named, audit["groups"][1:]))
    scanned = tuple(map(judge.scanned, audit["scan"]))
    named_off = sorted(
        (group for group in named if group.is_off),
        key=lambda group: (-group.least, -or_zero(group.error.value)),
    )
    proof = _proof_of(audit)
    return Findings(
        values=audit,
        unit=units_of(audit.get("target")),
        everyone=everyone[0] if everyone else None,
        named=named,
        scanned=scanned,
        learned=tuple(map(_learned, audit["learned"])),
        named_off=tuple(named_off),
        scanned_off=tuple(_distinct(g for g in scanned if g.is_off and g.name not in judge.taken)),
        worst_groups=records(WorstGroup, audit["worst_groups"]),
        proof=proof,
        assumptions=_limits_of(audit, "assumptions"),
        not_covered=_limits_of(audit, "not_covered"),
        scores=records(Score, audit["scores"]),
        leaks=records(Leak, audit.get("possible_leaks")),
        why_no_scan=notes_of(notes, *NO_SCAN),
        has_features=bool(audit["learned"] or notes_of(notes, NoteKind.COLUMN_NOT_SCANNED)),
    )


class _Judge:
    """Judgements of groups by the scan and the certificate, which hold for all groups at once."""

    def __init__(self, audit: Values) -> None:
        certified = (audit["certificate"] or {}).get("groups", [])
        self.least = {row["group"]: or_zero(row["low"]) for row in certified}
        self.p_values = {row["group"]: row["p_adjusted"] for row in reversed(audit["scan"])}
        self.joint = self.p_values, self.least
        # a named group may be a value of a feature, and the same rows are tested once
        self.taken = {name for row in audit["groups"] for name in (row["group"], _scan_name(row))}

    def everyone(self, row: Values) -> GroupFinding:
        # all people are one group, not one of many: their own band is evidence as well
        least = max(or_zero(row["error_low"]), self.least.get(row["group"], 0.0))
        least = least if least > LEAST_REPORTED else 0.0
        return _finding(row, _estimated_direction(row), bool(least), least, is_named=True)

    def named(self, row: Values) -> GroupFinding:
        name, scanned_as = row["group"], _scan_name(row)
        p_adjusted = self.p_values.get(scanned_as)
        least = self._least(name, scanned_as, or_zero(row["error_low"]))
        # either suffices; a band of a group alone counts only where no joint judgement is known
        is_joint = any(one in table for one in (name, scanned_as) for table in self.joint)
        is_off = _is_significant(p_adjusted) or (
            (self.least.get(name, 0.0) if is_joint else or_zero(row["error_low"])) >= LEAST_REPORTED
        )
        is_judged = not row["too_small"] and not row.get("possible_leak")
        direction = _estimated_direction(row)
        return _finding(row, direction, is_judged and is_off, least, p_adjusted, is_named=True)

    def scanned(self, row: Values) -> GroupFinding:
        name, p_adjusted = row["group"], row["p_adjusted"]
        least = self._least(name, name, 0.0)
        return _finding(row, row["direction"], _is_significant(p_adjusted), least, p_adjusted)

    def _least(self, name: str, scanned_as: str, own: float) -> float:
        # a scanned group has a p-value for all groups at once; its own band would claim more
        least = self.least.get(name, 0.0 if scanned_as in self.p_values else own)
        return least if least >= LEAST_REPORTED else 0.0


def _finding(
    row: Values,
    direction: str | None,
    is_off: bool,
    least: float,
    p_adjusted: Number = None,
    *,
    is_named: bool = False,
) -> GroupFinding:
    return GroupFinding(
        name=str(row.get("group", "")),
        n=row["n"],
        error=estimate(row, "error"),
        bias=estimate(row, "bias"),
        coverage_80=estimate(row, "coverage_80"),
        coverage_90=estimate(row, "coverage_90"),
        direction=direction,
        is_off=is_off,
        least=least,
        p_adjusted=p_adjusted,
        is_named=is_named,
        is_too_small=bool(row.get("too_small")),
        is_possible_leak=bool(row.get("possible_leak")),
        features=tuple(map(str, row.get("features") or ())),
        column=row.get("column"),
    )


def _learned(row: Values) -> LearnedFinding:
    low = or_zero(row["low"])
    return LearnedFinding(
        group=_finding(row, row["direction"], low >= LEAST_REPORTED, low),
        mass=row["mass"],
        n_judged=row["n_judged"],
        low=row["low"],
        p_value=row["p_value"],
        description=row["description"] or "",
        description_share=row["description_share"],
    )


def _estimated_direction(row: Values) -> str:
    """Return the direction of a named group's error, from its mean PIT and coverage."""
    mean = row["mean_pit"]
    # a mean PIT away from 1/2 is an error of at least that much: is it most of the error
    if is_known(mean) and abs(mean - 0.5) >= max(or_zero(row["error"]) / 2, 1e-9):
        return LOWER if mean < 0.5 else HIGHER
    # the level explains little of it; the spread does where the band of coverage leaves out 80%
    if is_known(row["coverage_80_high"]) and row["coverage_80_high"] < 0.8:
        return NARROW
    if is_known(row["coverage_80_low"]) and row["coverage_80_low"] > 0.8:
        return WIDE
    return MIXED


def _scan_name(row: Values) -> str:
    """Return the name that the scan has for the rows of a group."""
    return str(row.get("scanned_as") or row["group"])


def _is_significant(p_adjusted: Number) -> bool:
    return p_adjusted is not None and is_known(p_adjusted) and p_adjusted < ADJUSTED_LEVEL


def _distinct(groups: Iterable[GroupFinding]) -> Iterable[GroupFinding]:
    # the same rows may have several names, as where two features split people alike: equal size
    # and error identify them
    found: dict[tuple[int, Number], GroupFinding] = {}
    for group in groups:
        found.setdefault((group.n, group.error.value), group)
    return found.values()


def _proof_of(audit: Values) -> Proof | None:
    proof = audit["certificate"]
    if proof is None:
        return None
    bounds = records(Bound, proof["every_group"])
    # one PIT per person proves nothing for groups that were not named
    is_proven = audit["is_randomized"] and audit["n_draws"] > 1
    known = [bound for bound in bounds if is_proven and is_known(bound.group_error)]
    return Proof(
        **{
            key: proof[key]
            for key in ("confidence", "method", "n_samples", "n_draws", "average_error")
        },
        groups=records(NamedBound, proof["groups"]),
        every_group=bounds,
        questions=records(Question, proof["questions"]),
        bound=min(known, key=lambda bound: abs(bound.mass - MASS), default=None),
    )


def _limits_of(audit: Values, key: str) -> tuple[str, ...]:
    """Return the assumptions or limits of a proof, without those on draws if there are none."""
    # an audit read from JSON has its limits as the certificate prints them, and nothing else
    texts = map(str, (audit["certificate"] or {}).get(key, []))
    return tuple(text for text in texts if audit["is_randomized"] or text not in DRAWS_ONLY)
