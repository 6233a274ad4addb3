"""Findings of an audit, read from its values."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Any

from evenhand._format import is_known
from evenhand.report.earlier import with_decisions
from evenhand.report.findings import Findings, GroupFinding, LearnedFinding
from evenhand.report.notes import NO_SCAN, Note, NoteKind, notes_of
from evenhand.report.records import (
    Bound,
    Censoring,
    Estimate,
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
from evenhand.report.terms import Terms
from evenhand.report.tolerance import Tolerance
from evenhand.search import HIGHER, LOWER, MIXED, NARROW, WIDE

MASS = 0.2
"""Group size of the bound in the verdict."""

POINTWISE = 0.95
"""Confidence of intervals that hold each for itself."""

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
    audit = with_decisions(given | absent)
    proof = _proof_of(audit)
    censoring = record(Censoring, audit["censoring"]) if audit.get("censoring") else None
    family = audit.get("family") or {}
    joint = family.get("confidence", POINTWISE)
    scanned = [_scanned(row, joint) for row in audit["scan"]]
    directions = {group.name: group.direction for group in scanned}
    probable = {str(row.get("group")) for row in audit.get("membership") or ()}
    groups = [_named(row, directions, joint, probable) for row in audit["groups"]]
    # a named group that equals a value of a feature is listed once, under its own name
    names = {row["group"] for row in audit["groups"]}
    names |= {row.get("scanned_as") or row["group"] for row in audit["groups"]}
    others = [
        (group, (group.n, row.get("error")))
        for group, row in zip(scanned, audit["scan"], strict=True)
        if group.name not in names
    ]
    learned_confidence = joint if proof is None else proof.confidence
    return Findings(
        values=audit,
        terms=_terms_of(audit, censoring),
        censoring=censoring,
        tolerance=record(Tolerance, audit["tolerance"]) if audit.get("tolerance") else Tolerance(),
        confidence=joint,
        n_simultaneous=family.get("n_groups", 0),
        everyone=groups[0] if groups else None,
        named=tuple(groups[1:]),
        scanned=tuple(scanned),
        learned=tuple(_learned(row, learned_confidence) for row in audit["learned"]),
        positive=tuple(
            _named(row, {}, joint, ())
            for row in audit.get("positive_part") or ()
            # who is lost may or may not have the event by the horizon: there is no such part
            if "off" in row and censoring is None
        ),
        distinct=(*groups[1:], *_distinct(others)),
        worst_groups=records(WorstGroup, audit["worst_groups"]),
        proof=proof,
        plain=_plain_of(audit),
        why_no_scan=notes_of(notes, *NO_SCAN),
        has_features=bool(audit["learned"] or notes_of(notes, NoteKind.COLUMN_NOT_SCANNED)),
    )


def _terms_of(audit: Values, censoring: Censoring | None) -> Terms:
    unit = (audit.get("about") or {}).get("unit")
    atom = (audit.get("certificate") or {}).get("atom")
    terms = Terms.of(audit.get("outcome_kind"), audit.get("target"), unit, atom)
    return terms if censoring is None else terms.of_times(censoring.horizon, unit)


def _named(
    row: Values, directions: dict[str, str | None], joint: float, probable: Container[str]
) -> GroupFinding:
    # one direction for the same rows, if the scan found one
    tested = directions.get(str(row.get("scanned_as") or row["group"]))
    is_tested = tested in {LOWER, HIGHER, NARROW, WIDE}
    return _finding(
        row,
        direction=tested if is_tested else _estimated_direction(row),
        confidence=joint if row.get("simultaneous") else POINTWISE,
        is_named=True,
        is_probable=row["group"] in probable,
    )


def _scanned(row: Values, joint: float) -> GroupFinding:
    is_tested = is_known(row.get("p_adjusted"))
    return _finding(row, direction=row.get("direction"), confidence=joint, is_tested=is_tested)


def _finding(row: Values, **judged: Any) -> GroupFinding:
    # the error of randomized PITs is that of a test: it understates errors of times that are cut
    # off (outcomes: 5)
    is_censored = "km_error" in row
    return GroupFinding(
        name=str(row.get("group", "")),
        n=row["n"],
        error=estimate(row, "km_error", "km") if is_censored else estimate(row, "error"),
        open_error=(
            Estimate(None, row.get("least_error"), row.get("most_error")) if is_censored else None
        ),
        bias=estimate(row, "bias"),
        coverage_80=estimate(row, "coverage_80"),
        coverage_90=estimate(row, "coverage_90"),
        is_off=bool(row["off"]),
        is_beyond=bool(row["beyond_tolerance"]),
        is_within=bool(row.get("within")),
        p_adjusted=row.get("p_adjusted"),
        is_too_small=bool(row.get("too_small")),
        is_possible_leak=bool(row.get("possible_leak")),
        features=tuple(map(str, row.get("features") or ())),
        column=row.get("column"),
        **judged,
    )


def _learned(row: Values, confidence: float) -> LearnedFinding:
    # the rows that judge a learned group are not those that defined it, and its bound is adjusted
    # for the number of learned groups
    group = _finding(row, direction=row.get("direction"), confidence=confidence)
    if group.open_error is None:
        group = replace(group, error=Estimate(group.error.value, row.get("low")))
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


def _distinct(
    groups: Iterable[tuple[GroupFinding, tuple[int, Number]]],
) -> Iterable[GroupFinding]:
    """Return one group for each set of rows, which sizes and errors of PITs identify."""
    # the same rows may have several names if two features split people equally
    found: dict[tuple[int, Number], GroupFinding] = {}
    # the name with the fewest features is kept
    for group, rows in sorted(groups, key=lambda one: len(one[0].features)):
        found.setdefault(rows, group)
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
