"""Sections on the proof, its assumptions and the oracle worst groups."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand._format import (
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    is_known,
    percent,
    points,
    points_in_full,
    whole,
)
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report.charts import (
    FIFTHS,
    TENTHS,
    Area,
    Axis,
    Chart,
    Layer,
    Line,
    Point,
    Points,
    known,
)
from evenhand.report.document import Bullets, Heading, Pair, Paragraph, Part, Section
from evenhand.report.findings import Findings, LearnedFinding
from evenhand.report.records import Bound, NamedBound, Proof, Question, WorstGroup, or_zero
from evenhand.report.verdict import chance_sentence

NAMED = 400
"""Most named groups whose bounds are shown."""


def proof_section(findings: Findings) -> Section:
    """Show the bounds for all groups and for named ones, and which questions the rows answer."""
    title, proof = "What is proven", findings.proof
    if proof is None:
        text = "There is no certificate; the notes say why."
        return Section(title, [Paragraph(text)], "proof", in_text=False)
    draws = count(proof.n_draws, "draw") if findings.is_randomized else "one forecast"
    # each bound holds for all groups of its size at once (method.md, 5)
    parts: list[Part] = [
        Paragraph(
            f"Each statement holds with {confidence_in_full(proof.confidence)} confidence at any"
            f" number of rows, from {count(proof.n_samples, 'person', 'people')} with {draws} each."
            " Over everybody, stated chances are off by at most"
            f" {at_most(proof.average_error)} points."
        )
    ]
    if proof.bound is not None:
        parts += [Heading("For every group"), _every_group(proof)]
    if proof.groups:
        parts += [Heading("For named groups, all at once"), *_named(findings, proof.groups)]
    if proof.questions:
        answers: Cells[Question] = {
            Column("question"): lambda q: f"{q.question}?",
            Column("answered"): lambda q: "yes" if q.answered else "no",
            Column("why"): lambda q: q.why,
        }
        table = Table.of("Questions", proof.questions, answers)
        parts += [Heading("What these rows can answer"), table]
    parts.append(Paragraph(f"Method of the bounds: {proof.method}.", "facts"))
    return Section(title, parts, "proof", in_text=False)


def _every_group(proof: Proof) -> Table:
    # a chain of theorems that ends at the worst error there is bounds nothing
    has_chain = any(
        row.chain is not None and at_most(row.chain) != at_most(0.5) for row in proof.every_group
    )
    chain: Cells[Bound] = {numeric("by the paper's chain"): lambda b: at_most(b.chain)}
    cells: Cells[Bound] = {
        Column("every group of at least"): lambda b: f"{in_full(b.mass)} of people",
        numeric("off by at most (points)"): lambda b: at_most(b.group_error),
        **(chain if has_chain else {}),
        numeric("80% interval holds at least"): lambda b: at_least(b.coverage_80_low, percent),
        numeric("at most"): lambda b: at_most(b.coverage_80_high, percent),
    }
    return Table.of("Bounds for every group", proof.every_group, cells)


def _named(findings: Findings, bounds: Sequence[NamedBound]) -> list[Part]:
    # the certificate bounds groups of any size; small ones come last, as in the named table
    small = {group.name for group in findings.named if group.is_too_small}

    def place(row: NamedBound) -> tuple[bool, float, float]:
        return row.group in small, -or_zero(row.low), -or_zero(row.error)

    shown = sorted(bounds, key=place)[:NAMED]
    note = (
        f"Shown are the {NAMED} of {whole(len(bounds))} groups, those off by most for sure first."
    )
    cells: Cells[NamedBound] = {
        Column("group"): lambda b: str(b.group),
        numeric("rows"): lambda b: Value(whole(b.n), order=b.n),
        numeric("measured (points)"): lambda b: Value(points(b.error), order=b.error),
        numeric("at least"): lambda b: Value(at_least(b.low), order=b.low),
        numeric("at most"): lambda b: Value(at_most(b.high), order=b.high),
    }
    table = Table.of("Bounds for named groups", shown, cells, search="Find a named group")
    return [Paragraph(note), table] if len(bounds) > NAMED else [table]


def limits_section(findings: Findings) -> Section | None:
    """Show what the proof assumes and does not cover."""
    listed = {"Assumed": findings.assumptions, "Not covered": findings.not_covered}
    parts: list[Part] = []
    for title, texts in listed.items():
        parts += [Heading(title), Bullets.of(texts)] if texts else []
    if not parts:
        return None
    return Section("What the proof rests on", parts, "limits", in_text=findings.bound is not None)


def oracle_section(findings: Findings) -> Section | None:
    """Show the oracle worst groups, beside chance, learned groups and proof."""
    if not findings.worst_groups:
        return None
    remarks = [
        Paragraph(
            "For each share of people, the rows whose forecasts look worst once the outcomes are"
            " seen. Beside it, what the same search finds in calibrated forecasts of the same kind:"
            " mean, and 5% to 95%."
        )
    ]
    # (1 - mass) / 2 is the score of a perfect deterministic forecaster (method.md, 6)
    if findings.n_draws == 1:
        warning = (
            "This measures what can be proven, not harm: with one forecast per person even the true"
            " distribution scores about (1 - share) / 2 here, 40 points for the worst fifth."
        )
        remarks.insert(0, Paragraph(warning, "warn"))
    where = chance_sentence(findings)
    if where:
        remarks.append(Paragraph(where))
    # without a proof the bounds show nothing, and are not drawn
    title = f"{'W' if findings.bound else 'Appendix: w'}orst groups picked in hindsight"
    return Section(title, [Pair([_worst_chart(findings)], remarks, is_remark=True)], "worst")


def _worst_chart(findings: Findings) -> Chart:
    """Draw the errors of worst groups by share: in hindsight, by chance, learned and certified."""
    rows = [row for row in findings.worst_groups if known(row.error)]
    nulls = [row for row in rows if known(row.null_low, row.null_high)]
    means = [(row.mass, or_zero(row.null_mean)) for row in rows if known(row.null_mean)]
    proven = [row for row in rows if findings.bound and known(row.certified)]
    low = [(row.mass, or_zero(row.null_low)) for row in nulls]
    high = [(row.mass, or_zero(row.null_high)) for row in nulls]
    oracle = [Point(row.mass, or_zero(row.error), _oracle_tip(row)) for row in rows]
    certified = [Point(row.mass, or_zero(row.certified), _certified_tip(row)) for row in proven]
    learned = [
        _learned_point(found) for found in findings.learned if known(found.group.error.value)
    ]
    searched = "the same search in calibrated forecasts, 5% to 95%"
    bounded = "certified: no group of at least this share is worse"
    found = "learned from features, bar down to its lower bound"
    layers: list[Layer] = [
        *([Area(low, high, searched)] if nulls else []),
        *([Line(means, "their mean")] if means else []),
        *([Points(certified, bounded, "red", "square", "steps", rank=4)] if proven else []),
        Points(oracle, "picked in hindsight (oracle)", joined_by="line"),
        *([Points(learned, found, "orange", "diamond", rank=3)] if learned else []),
    ]
    return Chart(
        "Error of the worst group against its share of the people, in percentage points; the"
        " numbers are in the table.",
        # 1/2 is the largest error there is, so reports of all models share one scale
        Axis(0, 1, "Share of people in the group", FIFTHS, in_full),
        layers,
        Axis(0, 0.5, "Off by (percentage points)", TENTHS, points_in_full),
        title="How far off is the worst group of each size?",
        numbers=_oracle_table(findings),
        height=330,
    )


def _oracle_tip(row: WorstGroup) -> str:
    label = f"Worst {in_full(row.mass)} picked in hindsight: off by {points(row.error)} points"
    if known(row.null_low, row.null_high):
        label += f"; calibrated forecasts show {band(points, row.null_low, row.null_high)}"
    return f"{label}."


def _certified_tip(row: WorstGroup) -> str:
    return (
        f"Certified: every group of at least {in_full(row.mass)} of people is off by at most"
        f" {at_most(row.certified)} points."
    )


def _learned_point(found: LearnedFinding) -> Point:
    error, group = or_zero(found.group.error.value), found.group
    tip = f"Group of {in_full(found.mass)} learned from features: off by {points(error)} points"
    if is_known(found.low):
        surely = f"surely by {at_least(group.least)} or more"
        tip += f", {surely if group.is_off else 'not surely off'}"
    # unbiased estimates and their bounds may be negative, which the axis has no room for
    height = max(error, 0.0)
    return Point(found.mass, height, f"{tip}.", down_to=min(max(group.least, 0.0), height))


def _oracle_table(findings: Findings) -> Table:
    proven: Cells[WorstGroup] = {numeric("certified, at most"): lambda w: at_most(w.certified)}
    cells: Cells[WorstGroup] = {
        Column("share of people"): lambda w: in_full(w.mass),
        numeric("rows"): lambda w: whole(w.n),
        numeric("off by (points)"): lambda w: points(w.error),
        numeric("if calibrated"): lambda w: Value(
            points(w.null_mean), band(points, w.null_low, w.null_high)
        ),
        **(proven if findings.bound else {}),
    }
    return Table.of("Worst groups picked in hindsight", findings.worst_groups, cells)
