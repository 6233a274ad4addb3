"""Significance of the errors of groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evenhand._format import is_known
from evenhand.report.findings import Findings, GroupFinding, LearnedFinding
from evenhand.report.measures import units_of
from evenhand.report.notes import NO_SCAN, Note, NoteKind, notes_of
from evenhand.report.records import (
    Bound,
    NamedBound,
    Number,
    PlainInterval,
    Proof,
    Question,
    Values,
    WorstGroup,
    estimate,
    or_zero,
    record,
    records,
    without_nan,
)
from evenhand.search import HIGHER, LOWER, MIXED, NARROW, WIDE

ADJUSTED_LEVEL = 0.05
"""Adjusted p-value below which a group is reported as off."""

LEAST_REPORTED = 0.0005
"""Least lower bound that is reported; a smaller one would be printed as 0.0 points."""

MASS = 0.2
"""Group size of the bound in the verdict."""

TABLES = ("scores", "groups", "scan", "learned", "worst_groups", "plain_intervals", "notes")
EMPTY: Values = {**dict.fromkeys(TABLES, ()), "n_draws": 1, "certificate": None}
"""Values of an audit that lacks them."""


def findings_of(audit: Values, notes: Sequence[Note] = ()) -> Findings:
    """Return the findings of an audit.

    Parameters
    ----------
    audit : dict
        `Audit.to_dict()`, or an audit read from JSON.
    notes : sequence of Note
        `Audit.notes`; JSON contains only their sentences.
    """
    given = without_nan(audit)
    absent = {key: value for key, value in EMPTY.items() if given.get(key) is None}
    audit = given | absent
    judge = _Judge(audit)
    everyone = tuple(judge.everyone(row) for row in audit["groups"][:1])
    named = tuple(map(judge.named, audit["groups"][1:]))
    scanned = tuple(map(judge.scanned, audit["scan"]))
    # lower bounds first: estimates of small groups are large by chance
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
        plain=_plain_of(audit),
        why_no_scan=notes_of(notes, *NO_SCAN),
        has_features=bool(audit["learned"] or notes_of(notes, NoteKind.COLUMN_NOT_SCANNED)),
    )


class _Judge:
    """Judge of groups by the scan and the certificate, which hold for all groups simultaneously."""

    def __init__(self, audit: Values) -> None:
        certified = (audit["certificate"] or {}).get("groups") or []
        self.least = {row["group"]: or_zero(row.get("low")) for row in certified}
        self.p_values = {row["group"]: row.get("p_adjusted") for row in reversed(audit["scan"])}
        self.joint = self.p_values, self.least
        # a named group that equals a value of a feature is tested once, under the name of the scan
        self.taken = {name for row in audit["groups"] for name in (row["group"], _scan_name(row))}

    def everyone(self, row: Values) -> GroupFinding:
        # all people are one group, not one of many: their own interval is valid evidence
        own, certified = or_zero(row.get("error_low")), self.least.get(row["group"], 0.0)
        least = max(own, certified)
        least = least if least > LEAST_REPORTED else 0.0
        return self._named(row, is_off=bool(least), least=least, is_separate=own > certified)

    def named(self, row: Values) -> GroupFinding:
        name, scanned_as = row["group"], _scan_name(row)
        p_adjusted = self.p_values.get(scanned_as)
        own = or_zero(row.get("error_low"))
        least = self._least(name, scanned_as, own)
        # either suffices; a separate interval counts only without a joint judgement
        is_joint = any(one in table for one in (name, scanned_as) for table in self.joint)
        is_off = _is_significant(p_adjusted) or (
            (self.least.get(name, 0.0) if is_joint else own) >= LEAST_REPORTED
        )
        is_judged = not row.get("too_small") and not row.get("possible_leak")
        return self._named(
            row,
            is_off=is_judged and is_off,
            least=least,
            is_separate=name not in self.least and scanned_as not in self.p_values,
            p_adjusted=p_adjusted,
        )

    def _named(self, row: Values, **judged: Any) -> GroupFinding:
        return _finding(row, direction=_estimated_direction(row), is_named=True, **judged)

    def scanned(self, row: Values) -> GroupFinding:
        p_adjusted = row.get("p_adjusted")
        return _finding(
            row,
            direction=row.get("direction"),
            is_off=_is_significant(p_adjusted),
            least=self._least(row["group"], row["group"], 0.0),
            p_adjusted=p_adjusted,
            is_tested=is_known(p_adjusted),
        )

    def _least(self, name: str, scanned_as: str, own: float) -> float:
        # the separate interval of a scanned group would claim more than its adjusted p-value
        least = self.least.get(name, 0.0 if scanned_as in self.p_values else own)
        return least if least >= LEAST_REPORTED else 0.0


def _finding(row: Values, **judged: Any) -> GroupFinding:
    return GroupFinding(
        name=str(row.get("group", "")),
        n=row["n"],
        error=estimate(row, "error"),
        bias=estimate(row, "bias"),
        coverage_80=estimate(row, "coverage_80"),
        coverage_90=estimate(row, "coverage_90"),
        is_too_small=bool(row.get("too_small")),
        is_possible_leak=bool(row.get("possible_leak")),
        features=tuple(map(str, row.get("features") or ())),
        column=row.get("column"),
        **judged,
    )


def _learned(row: Values) -> LearnedFinding:
    # the rows that judge a learned group are not those that defined it: its test and its bound
    # need no adjustment for the search
    low = or_zero(row.get("low"))
    is_off = _is_significant(row.get("p_value"))
    group = _finding(
        row,
        direction=row.get("direction"),
        is_off=is_off,
        least=low if low >= LEAST_REPORTED else 0.0,
    )
    return record(LearnedFinding, {**row, "group": group})


def _estimated_direction(row: Values) -> str:
    """Return the direction of a named group's error by its mean PIT and coverage."""
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


def _scan_name(row: Values) -> str:
    """Return the name of a group in the scan."""
    return str(row.get("scanned_as") or row["group"])


def _is_significant(p_value: Number) -> bool:
    return p_value is not None and is_known(p_value) and p_value < ADJUSTED_LEVEL


def _distinct(groups: Iterable[GroupFinding]) -> Iterable[GroupFinding]:
    # the same rows may have several names if two features split people equally: equal sizes and
    # errors identify them
    found: dict[tuple[int, Number], GroupFinding] = {}
    for group in groups:
        found.setdefault((group.n, group.error.value), group)
    return found.values()


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
