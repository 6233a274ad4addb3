"""Section on example people and their forecasts under several draws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from evenhand._format import count, number
from evenhand._table import Cells, Column, Table, numeric
from evenhand.report import charts
from evenhand.report.document import Pair, Paragraph, Section
from evenhand.report.findings import Findings
from evenhand.report.names import tip_name
from evenhand.report.records import Person, known, or_zero, records
from evenhand.report.terms import Terms


def examples_section(findings: Findings) -> Section | None:
    """Show prediction intervals of example people under their draws; nothing without examples."""
    people = records(Person, findings.values.get("examples"))
    rows = [row for row in people if known(row.row, row.low, row.high, row.outcome)]
    if not rows:
        return None
    text = (
        f"People from the lowest outcomes to the highest, {_named_by(findings)}. Each line is"
        " an 80% prediction interval: under calibration, two in ten outcomes lie outside, so that a"
        " single miss is no sign of an error."
    )
    if any(row.lost for row in rows):
        text += (
            " Of a person who was cut off, the vertical line is the time at which the person was"
            " last seen without the event, which is later."
        )
    # a deterministic forecast has no draw
    if _has_draws(rows):
        text += (
            " Each person is served the forecast of one draw; a higher draw gives a lower forecast."
            " The differences between the forecasts of a person show the effect of the draw."
        )
    pair = Pair([_chart(rows, findings.terms)], [Paragraph(text)], is_remark=True)
    return Section("Example people", [pair], "examples", in_text=False)


def _has_draws(rows: Sequence[Person]) -> bool:
    return any(row.draw is not None for row in rows)


def _chart(rows: Sequence[Person], terms: Terms) -> charts.Chart:
    ends = [or_zero(end) for row in rows for end in (row.low, row.high, row.outcome)]
    # 1/40 of the range at both ends; divided first, since the range of huge values may overflow
    room = max(ends) / 40 - min(ends) / 40 or 1.0
    low, high = min(ends) - room, max(ends) + room
    # rows of a person are consecutive
    groups = [_group(list(group)) for _, group in groupby(rows, key=lambda row: row.row)]
    layer = charts.Intervals(
        groups, "80% prediction interval and median", "misses the outcome", "outcome"
    )
    return charts.Chart(
        "80% prediction intervals of example people under several draws, and their outcomes.",
        charts.Axis(low, high, terms.axis, charts.nice_ticks(low, high, 4)),
        [layer],
        title="Forecasts of example people",
        note=f"In {terms.unit}.",
        numbers=_table(rows),
    )


def _group(rows: Sequence[Person]) -> charts.IntervalGroup:
    first = rows[0]
    tip = f"{_name(first, 'Row')}: outcome {_outcome(first)}."
    intervals = list(map(_interval, rows))
    return charts.IntervalGroup(_name(first, "row"), or_zero(first.outcome), tip, intervals)


def _interval(row: Person) -> charts.Interval:
    low, high = or_zero(row.low), or_zero(row.high)
    draw = "" if row.draw is None else f"draw {row.draw:.2f}"
    person = f"{_name(row, 'Row')}, {draw}" if draw else _name(row, "Row")
    side = "outside" if row.is_missed else "not known to be outside" if row.lost else "inside"
    tip = (
        f"{person}: 80% interval {number(low)} to {number(high)}, median {number(row.median)}; the"
        f" outcome {_outcome(row)} is {side}."
    )
    return charts.Interval(low, high, row.median, tip, draw, is_off=row.is_missed)


def _outcome(row: Person) -> str:
    return f"after {number(row.outcome)}" if row.lost else number(row.outcome)


def _table(rows: Sequence[Person]) -> Table:
    draw: Cells[Person] = {numeric("draw"): lambda p: "-" if p.draw is None else f"{p.draw:.2f}"}
    cells: Cells[Person] = {
        Column("person"): lambda p: _name(p, "row"),
        **(draw if _has_draws(rows) else {}),
        numeric("80% interval from"): lambda p: number(p.low),
        numeric("median"): lambda p: number(p.median),
        numeric("to"): lambda p: number(p.high),
        numeric("outcome"): _outcome,
    }
    return Table.of("Example people", rows, cells)


def _name(row: Person, noun: str) -> str:
    """Return the row of a person in the table, counted from 1."""
    return f"{noun} {row.row + 1:,}"


def _named_by(findings: Findings) -> str:
    """Return how people are named, and the table in which rows are counted."""
    data = (findings.values.get("provenance") or {}).get("data") or {}
    table = tip_name(data["name"]) if data.get("name") else "the table that was given"
    size = f" ({count(data['n_rows'], 'row')})" if data.get("n_rows") else ""
    return f"named by their rows of {table}{size}, counted from 1"
