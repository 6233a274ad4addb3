"""Coverage of prediction intervals in every group: randomized, and without a draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from evenhand._format import at_least, at_most, in_full, is_known, is_trivial, percent
from evenhand._table import Cells, Column, Table, numeric
from evenhand.certificates import LEAST_FLOOR
from evenhand.figures import SIZE_TITLE
from evenhand.report import charts
from evenhand.report.document import Heading, Pair, Paragraph, Part
from evenhand.report.findings import MASS, Findings
from evenhand.report.records import Bound, Number, PlainInterval, known, or_zero

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
        return f"at least {at_least(low, percent)} of outcomes, without an upper bound"
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
    shown: Part = explained if chart is None else Pair([chart], [explained], is_remark=True)
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
