"""Sections on certified bounds, their assumptions, and intervals without a draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from evenhand._format import (
    LEAST_FLOOR,
    UNKNOWN,
    at_least,
    at_most,
    band,
    count,
    in_full,
    is_known,
    is_largest,
    is_trivial,
    percent,
    points,
    whole,
)
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report import charts
from evenhand.report.calibration import event_parts
from evenhand.report.certificates import union_sentence
from evenhand.report.charts import SIZE_TITLE
from evenhand.report.document import Bullets, Heading, Pair, Paragraph, Part, Section
from evenhand.report.findings import MASS, NAMED, Findings
from evenhand.report.records import (
    Bound,
    NamedBound,
    Number,
    PlainInterval,
    Proof,
    Question,
    Values,
    known,
    or_zero,
)
from evenhand.report.terms import WITHOUT

# --- coverage of prediction intervals in every group: randomized, and without a draw

PLAIN = (
    "Prediction intervals of the deterministic model, without a draw. A group can contain at most"
    " all people whom an interval misses, so an interval that seldom misses has a lower bound of"
    " coverage in every group. It has no upper bound and gives no guarantee for other levels. The"
    " bounds in the table hold jointly with {level} confidence."
)
"""Explanation of the table of intervals without a draw."""


def both_sides(low: Number, high: Number) -> str:
    """Write a coverage by both of its bounds: "between 61.2% and 89.3% of outcomes"."""
    if is_trivial(high) and or_zero(low) < LEAST_FLOOR:
        return "any share of outcomes, as nothing is proven"
    if is_trivial(high):
        return f"at least {at_least(low, percent)} of outcomes"
    return f"between {at_least(low, percent)} and {at_most(high, percent)} of outcomes"


def is_informative(bound: Bound) -> bool:
    """Whether either of the bounds of a coverage is informative."""
    has_ceiling = is_known(bound.coverage_80_high) and not is_trivial(bound.coverage_80_high)
    return has_ceiling or or_zero(bound.coverage_80_low) >= LEAST_FLOOR


def same_floor(findings: Findings, bound: Bound) -> PlainInterval | None:
    """Return the lowest level of an interval without a draw with at least the same floor."""
    least = or_zero(bound.coverage_80_low)
    enough = (one for one in _of_size(findings, bound.mass) if or_zero(one.floor) >= least)
    return next(enough, None)


def plain_sentences(findings: Findings, bound: Bound) -> list[str]:
    """Return the floor of a wider interval without a draw, to compare with a randomized one."""
    plain = _of_size(findings, bound.mass)
    # without a lower bound there is nothing to compare
    if not plain or or_zero(bound.coverage_80_low) < LEAST_FLOOR:
        return []
    every = f"every group of at least {in_full(bound.mass)} of {findings.terms.people}"
    found = same_floor(findings, bound)
    if found is None:
        last = plain[-1]
        level, floor = in_full(last.level), at_least(last.floor, percent)
        return [
            f"Without a draw, no prediction interval of up to {level} has this lower bound. The"
            f" {level} interval covers at least {floor} of outcomes in {every}."
        ]
    # widths are unknown if only PITs are given
    width = ""
    if is_known(found.width):
        side = "wider" if found.width >= 1 else "narrower"
        ratio = percent(abs(found.width - 1), decimals=0)
        width = f" On average it is {ratio} {side} than the randomized 80% interval."
    least = "at least " if findings.terms.is_time else ""
    return [
        f"Without a draw, the {in_full(found.level)} interval of the deterministic model covers at"
        f" least {at_least(found.floor, percent)} of outcomes in the same groups.{width} It covers"
        f" {least}{percent(found.covered)} of outcomes overall, without an upper bound in a group"
        " and without a guarantee for other levels."
    ]


def floors_sentence(findings: Findings) -> str | None:
    """Return the lower bounds of a deterministic forecaster; None if none is informative."""
    plain = _of_size(findings, MASS)
    useful = [
        f"{in_full(one.level)} interval at least {at_least(one.floor, percent)}"
        for one in plain
        if or_zero(one.floor) >= LEAST_FLOOR
    ]
    if not useful:
        return None
    # the floors are not the coverage that was measured
    return (
        "Without a draw, only lower bounds of coverage can be proven for every group of at least"
        f" {in_full(MASS)} of {findings.terms.people}. Guaranteed there with {findings.level}"
        f" confidence: {', '.join(useful)}."
    )


def plain_parts(findings: Findings) -> list[Part]:
    """Show the coverage of intervals without a draw and of a randomized one."""
    table = _plain_table(findings)
    if table is None:
        return []
    explained = Paragraph(PLAIN.format(level=findings.level))
    chart = _coverage_chart(findings)
    shown: Part = explained if chart is None else Pair([chart], [explained])
    return [Heading("For every group, without a draw"), shown, table]


def _plain_table(findings: Findings) -> Table | None:
    """Return the floors of intervals without a draw by level and group size, or None."""
    masses = sorted({one.mass for one in findings.plain if one.mass < 1})
    floors = {(one.level, one.mass): one.floor for one in findings.plain}
    rows = [one for one in findings.plain if masses and one.mass == masses[0]]
    is_time = findings.terms.is_time
    # people who are cut off count as missed: with many of them, no lower bound is above 0
    most = max((or_zero(floors.get((one.level, m))) for one in rows for m in masses), default=0.0)
    if not rows or (is_time and most < LEAST_FLOOR):
        return None

    def floor_at(mass: float) -> Callable[[PlainInterval], str]:
        return lambda row: at_least(floors.get((row.level, mass)), percent)

    widths: Cells[PlainInterval] = {
        numeric("mean width / 80% interval"): lambda row: percent(row.width, decimals=0)
    }
    cells: Cells[PlainInterval] = {
        Column("prediction interval"): lambda row: in_full(row.level),
        numeric(f"covers overall{', at least' if is_time else ''}"): lambda row: percent(
            row.covered
        ),
        **{numeric(f"at least, in every {in_full(mass)}"): floor_at(mass) for mass in masses},
        **(widths if all(is_known(row.width) for row in rows) else {}),
    }
    return Table.of("Coverage of intervals without a draw in every group", rows, cells)


def _coverage_chart(findings: Findings) -> charts.Chart | None:
    """Draw both bounds of a randomized interval by group size, and a plain one with its floors."""
    bounds = [] if findings.proof is None else findings.proof.every_group
    rows = [row for row in bounds if known(row.coverage_80_low, row.coverage_80_high)]
    if findings.bound is None or not rows:
        return None
    # each pair of bounds holds up to the next size and beyond
    ends = [*(row.mass for row in rows[1:]), 1.0]
    steps = [
        (x, row.coverage_80_low, row.coverage_80_high)
        for row, end in zip(rows, ends, strict=True)
        for x in (row.mass, end)
    ]
    layers: list[charts.Layer] = [
        charts.Area.of(steps, "80% interval with a draw: between its certified bounds"),
        charts.Line([(0, 0.8), (1, 0.8)], "nominal coverage"),
        charts.Points([_bound_point(row, end) for row in rows for end in ("low", "high")]),
    ]
    found = same_floor(findings, findings.bound)
    if found is not None:
        floors = [one for one in findings.plain if one.level == found.level]
        label = f"{in_full(found.level)} interval without a draw: above its certified lower bound"
        marks = [_floor_point(one) for one in floors if is_known(one.floor)]
        layers.append(charts.Points(marks, label, "orange", "diamond", "steps", rank=3))
    return charts.Chart(
        "Certified bounds of the coverage in every group against the size of the group; the numbers"
        " are in the tables.",
        charts.share_axis(SIZE_TITLE),
        layers,
        charts.share_axis("Share of outcomes covered"),
        title="Coverage in every group",
    )


def _bound_point(row: Bound, end: Literal["low", "high"]) -> charts.Point:
    value = row.coverage_80_low if end == "low" else row.coverage_80_high
    tip = (
        f"In every group of at least {in_full(row.mass)} of people, the 80% interval with a draw"
        f" covers {both_sides(row.coverage_80_low, row.coverage_80_high)}."
    )
    return charts.Point(row.mass, or_zero(value), tip)


def _floor_point(one: PlainInterval) -> charts.Point:
    tip = (
        f"In every group of at least {in_full(one.mass)} of people, the {in_full(one.level)}"
        f" interval without a draw covers at least {at_least(one.floor, percent)} of outcomes."
    )
    return charts.Point(one.mass, or_zero(one.floor), tip)


def _of_size(findings: Findings, mass: float) -> list[PlainInterval]:
    """Return the intervals without a draw for groups of one size, by increasing level."""
    return [one for one in findings.plain if one.mass == mass]


# --- sections on certified bounds and their assumptions

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
    parts += _unions(proof)
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
    rests_on = f" {SHARP}" if proof.link_bound == "sharp" and not is_event else ""
    parts.append(Paragraph(f"Method of the bounds: {proof.method}.{rests_on}", "facts"))
    return Section(title, parts, "proof", in_text=False)


def _unions(proof: Proof) -> list[Part]:
    """Show the bounds for unions of named cells, and the cells, the worst first."""
    if proof.unions is None:
        return []
    found = proof.unions
    error: Cells[Values] = {numeric("error at most (points)"): lambda c: at_most(c["error"])}
    if found["coverage_80"] is not None:
        error[numeric("80% intervals cover")] = lambda c: band(
            percent, c["coverage_80_low"], c["coverage_80_high"]
        )
    bias: Cells[Values] = {
        numeric("event rate minus mean probability (points)"): lambda c: band(
            points, c["bias_low"], c["bias_high"]
        )
    }
    cells: Cells[Values] = {
        Column("cell"): lambda c: str(c["cell"]),
        numeric("rows"): lambda c: whole(c["n"]),
        **({} if found["bias"] is None else bias),
        **({} if found["error"] is None else error),
    }

    def worst(cell: Values) -> float:
        ends = (or_zero(cell.get("error")), -or_zero(cell.get("bias_low")))
        return -max(*ends, or_zero(cell.get("bias_high")))

    table = Table.of("Bounds for cells of named groups", sorted(found["cells"], key=worst), cells)
    heading = "For every union of named groups"
    shown: list[Part] = [Heading(heading), Paragraph(union_sentence(found))]
    return [*shown, table] if found["cells"] else shown


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
    apart = f" {overall} points; this bound is separate from those in the tables."
    return (
        f"The bounds are computed from {people} with {draws} each. Each bound holds with"
        f" {findings.level} confidence at any sample size."
        f"{apart if is_known(proof.average_error) else ''}"
    )


def _every_group(findings: Findings, proof: Proof) -> Table:
    # a chain of theorems that ends at the largest error gives no bound
    has_chain = any(
        row.chain is not None and not is_largest(row.chain) for row in proof.every_group
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
