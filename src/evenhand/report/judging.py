"""Findings of an audit, read from its values."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from evenhand._format import in_full, is_known
from evenhand.report.findings import MASS, ROUNDING, Findings, GroupFinding, LearnedFinding
from evenhand.report.notes import NO_SCAN, Note, NoteKind, notes_of
from evenhand.report.records import (
    Bound,
    Censoring,
    Estimate,
    GivenForecast,
    NamedBound,
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
from evenhand.search import HIGHER, LOWER, MIXED, NARROW, WIDE

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
        why_no_scan=notes_of(notes, *NO_SCAN),
        has_features=bool(audit["learned"] or notes_of(notes, NoteKind.COLUMN_NOT_SCANNED)),
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
