"""Sections on certified bounds and their assumptions."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand._format import (
    UNKNOWN,
    at_least,
    at_most,
    count,
    in_full,
    percent,
    points,
    whole,
)
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.certificates import LEAST_FLOOR
from evenhand.report.coverage import plain_parts, same_floor
from evenhand.report.document import Bullets, Heading, Paragraph, Part, Section
from evenhand.report.events import event_parts
from evenhand.report.findings import NAMED, Findings
from evenhand.report.records import Bound, NamedBound, Proof, Question, or_zero
from evenhand.report.terms import WITHOUT

PATHWISE = (
    "The bounds for every group are pathwise: they bound the mean error of single people in the"
    " group."
)
PART = (
    "In the bounds for every group, for errors and coverage, the people are those whose outcome is"
    " not {atom}, and the forecasts those given that it is not. The bound for all people together"
    " and those for the event include everybody."
)
"""What the bounds for outcomes with an atom refer to."""

PART_OF_TIMES = (
    "In the bounds for every group, for errors and coverage, the people are those with the event by"
    " {horizon}, and the forecasts those of its time, given that it happens by then. Whoever is cut"
    " off before counts with the largest error. The bound for all people together and those for the"
    " event include everybody."
)
"""The same for times with a horizon, of which only those of events are randomized."""

WHOLE_TIMES = (
    "Of a person who was seen without the event until {horizon}, forecasts are only compared with"
    " the fact that the time is later. Whoever is cut off before counts with the largest error that"
    " any later time can have."
)
"""What bounds for times with a horizon mean if all of the forecast is randomized."""

FOLLOWED = (
    "These are the people who entered at least a horizon before the end of follow-up, whatever"
    " happened to them."
)
"""Who is certified if it is known when people entered."""

SHARP = (
    "The bounds for every group are sharp: they bound the error of the group itself, by two"
    " simultaneous bands for the PITs before the draw."
)
"""What the bounds for every group rest on."""


def proof_section(findings: Findings) -> Section:
    """Show certified bounds for every group and named groups, and the questions answered."""
    title, proof = "Guarantees", findings.proof
    if proof is None:
        text = "There is no certificate; see the notes."
        return Section(title, [Paragraph(text)], "proof", in_text=False)
    parts: list[Part] = [Paragraph(_holds_in_words(findings, proof))]
    parts += [Paragraph(text) for text in _people_in_words(findings)]
    if proof.bound is not None:
        parts += [Heading("For every group"), _every_group(findings, proof)]
    is_event = findings.terms.is_event
    # every interval of a 0/1 forecast that is not a single value covers everything
    parts += event_parts(findings) if is_event else plain_parts(findings) + event_parts(findings)
    if proof.groups:
        parts += [Heading("For all named groups simultaneously"), *_named(findings, proof.groups)]
    if proof.questions:
        answers: Cells[Question] = {
            Column("question"): lambda q: f"{q.question}?",
            Column("can be answered"): lambda q: "yes" if q.answered else "no",
            Column("why"): lambda q: str(q.why or "-"),
        }
        table = Table.of("Questions", proof.questions, answers)
        parts += [Heading("Questions that these rows can answer"), table]
    rests_on = "" if is_event else f" {SHARP if proof.link_bound == 'sharp' else PATHWISE}"
    parts.append(Paragraph(f"Method of the bounds: {proof.method}.{rests_on}", "facts"))
    return Section(title, parts, "proof", in_text=False)


def _people_in_words(findings: Findings) -> list[str]:
    """Return who the bounds are for, where that is not everybody whose outcome is known."""
    terms, censoring = findings.terms, findings.censoring
    if censoring is None:
        return [PART.format(atom=terms.atom)] if terms.is_part else []
    texts = [] if censoring.n_followed is None else [FOLLOWED]
    if terms.is_part:
        texts.append(PART_OF_TIMES.format(horizon=terms.horizon))
    elif terms.horizon:
        texts.append(WHOLE_TIMES.format(horizon=terms.horizon))
    return texts


def _holds_in_words(findings: Findings, proof: Proof) -> str:
    people = count(proof.n_samples, "person", "people")
    overall = f"Overall, predicted probabilities are off by at most {at_most(proof.average_error)}"
    if proof.is_joint:
        # one event implies all bounds (method.md, 11)
        return (
            f"The bounds for every group are computed from {people}, with one forecast each before"
            f" the draw. They hold jointly, for every alpha, with {findings.level} confidence at"
            f" any sample size. {overall} points"
            + ("." if findings.terms.is_part else "; this bound is one of them.")
        )
    draws = count(proof.n_draws, "draw") if findings.is_randomized else "one forecast"
    # each bound holds for all groups of its size simultaneously (method.md, 5)
    return (
        f"The bounds are computed from {people} with {draws} each. Each bound holds with"
        f" {findings.level} confidence at any sample size. {overall} points; this bound is separate"
        " from those in the tables."
    )


def _every_group(findings: Findings, proof: Proof) -> Table:
    # a chain of theorems that ends at the largest error gives no bound
    has_chain = any(
        row.chain is not None and at_most(row.chain) != at_most(0.5) for row in proof.every_group
    )
    chain: Cells[Bound] = {numeric("by the paper's chain"): lambda b: at_most(b.chain)}
    plain: Cells[Bound] = {
        numeric("same lower bound without a draw"): lambda b: _plain_level(findings, b)
    }
    cells: Cells[Bound] = {
        Column("every group of at least"): lambda b: f"{in_full(b.mass)} of people",
        numeric("error at most (points)"): lambda b: at_most(b.group_error),
        **(chain if has_chain else {}),
        numeric("80% coverage at least"): lambda b: at_least(b.coverage_80_low, percent),
        numeric("at most"): lambda b: at_most(b.coverage_80_high, percent),
        **(plain if findings.plain else {}),
    }
    return Table.of("Bounds for every group", proof.every_group, cells)


def _plain_level(findings: Findings, bound: Bound) -> str:
    """Return the interval without a draw that has the floor of a randomized one."""
    if or_zero(bound.coverage_80_low) < LEAST_FLOOR:
        return UNKNOWN  # any interval has a lower bound of 0
    found = same_floor(findings, bound)
    return "none" if found is None else f"{in_full(found.level)} interval"


def _named(findings: Findings, bounds: Sequence[NamedBound]) -> list[Part]:
    # the certificate bounds groups of any size; small ones come last, as in the table of groups
    small = {group.name for group in findings.named if group.is_too_small}

    def place(row: NamedBound) -> tuple[bool, float, float]:
        return row.group in small, -or_zero(row.low), -or_zero(row.error)

    shown = sorted(bounds, key=place)[:NAMED]
    note = f"The {NAMED} of {whole(len(bounds))} groups with the largest lower bounds are shown."
    estimated: Cells[NamedBound] = {
        numeric("estimated error (points)"): lambda b: Value(points(b.error), order=b.error)
    }
    cells: Cells[NamedBound] = {
        Column("group"): lambda b: str(b.group),
        numeric("rows"): lambda b: Value(whole(b.n), order=b.n),
        # the size of errors of times that are cut off is another estimate
        **({} if findings.terms.is_time else estimated),
        numeric("lower bound"): lambda b: Value(at_least(b.low), order=b.low),
        numeric("upper bound"): lambda b: Value(at_most(b.high), order=b.high),
    }
    table = Table.of("Bounds for named groups", shown, cells, search="Find a named group")
    # a report must not give one promise two numbers without the difference
    family = (
        "These bounds hold for the named groups alone, at any sample size. The intervals in the"
        " section Named groups also hold for the scanned groups, so they differ."
    )
    if findings.terms.is_time:
        family = f"These bounds hold for the named groups alone, at any sample size, {WITHOUT}."
    return [Paragraph(f"{family} {note}" if len(bounds) > NAMED else family), table]


def limits_section(findings: Findings) -> Section | None:
    """Show assumptions and limits of the certificate."""
    proof = findings.proof
    listed = {"Assumed": proof.assumptions, "Not covered": proof.not_covered} if proof else {}
    parts: list[Part] = []
    for title, texts in listed.items():
        parts += [Heading(title), Bullets.of(texts)] if texts else []
    if not parts:
        return None
    return Section("Assumptions and limits", parts, "limits", in_text=findings.bound is not None)
