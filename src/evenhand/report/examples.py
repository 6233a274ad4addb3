"""Example people, with their forecasts under several draws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from evenhand._format import count, number
from evenhand.report.chart import (
    Frame,
    axes,
    chart,
    known,
    line_sign,
    mark,
    nice_ticks,
    plain,
    shape,
    tip_name,
    titled_chart,
)
from evenhand.report.page import Cell, Section, escape, paragraph, section, short, table
from evenhand.report.sentences import Values, unit_of

ON_CHART = 14
"""Most characters of a name beside the picture."""

LINE = 17.0
GAP = 26.0
"""Heights of a forecast and of a person's head in the picture of examples."""


def examples_section(audit: Values) -> Section | None:
    """Show example people with an interval for each of several draws; nothing without examples."""
    rows = [
        row for row in audit.get("examples") or [] if known(row["low"], row["high"], row["outcome"])
    ]
    if not rows:
        return None
    # a deterministic forecast has no draw
    several = any(row["draw"] is not None for row in rows)
    unit = unit_of(audit)
    text = (
        f"People from the lowest outcomes to the highest, {_named_by(audit, rows)}. Each line is an"
        " 80% interval: two in ten outcomes lie outside one, so a miss is no fault by itself."
    )
    if several:
        text += (
            " A person gets one draw, and with it one of these forecasts; a higher draw gives a"
            " lower forecast. How far they lie apart is how much of a forecast is up to chance."
        )
    key = [
        (line_sign("blue", "hollow"), "80% interval and median"),
        (_missed_sign(), "does not hold the outcome"),
        ('<path class="fact" d="M14 1V15"/>', "outcome"),
    ]
    drawn = titled_chart(
        "Example people and their forecasts",
        _examples_chart(rows, unit),
        key,
        f"In {unit}.",
        _examples_table(rows, several=several),
    )
    return section(
        "Example people",
        f'<div class="pair"><div>{drawn}</div><div class="aside">{paragraph(text)}</div></div>',
        key="examples",
    )


def _examples_table(rows: Sequence[Values], *, several: bool) -> str:
    draw = ["#draw"] if several else []
    header = ["person", *draw, "#80% interval from", "#median", "#to", "#outcome"]
    cells: list[list[Cell]] = [
        [
            person_name(row),
            *([_draw(row["draw"])] if several else []),
            *(number(row[name]) for name in ("low", "median", "high", "outcome")),
        ]
        for row in rows
    ]
    return table("Example people", header, cells)


def person_name(row: Values) -> str:
    """Name a person: by the id if it was given, else by the row of the table, counted from 1."""
    return _name(row, "row")


def _name(row: Values, noun: str) -> str:
    # ids come from data and keep their case; only the noun of ours begins a sentence
    return f"{noun} {row['row'] + 1:,}" if row.get("id") is None else tip_name(row["id"])


def _named_by(audit: Values, rows: Sequence[Values]) -> str:
    """Return what names people, and of which table rows are counted."""
    if all(row.get("id") is not None for row in rows):
        return "named by their ids"
    data = (audit.get("provenance") or {}).get("data") or {}
    table = tip_name(data["name"]) if data.get("name") else "the table that was given"
    size = f" ({count(data['n_rows'], 'row')})" if data.get("n_rows") else ""
    return f"named by their rows of {table}{size}, counted from 1"


def _missed_sign() -> str:
    return f'<g class="red"><path class="path dashed" d="M1 8H27"/>{shape("hollow", 14, 8)}</g>'


def _draw(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _examples_chart(rows: Sequence[Values], unit: str) -> str:
    ends = [row[key] for row in rows for key in ("low", "high", "outcome")]
    # 1/40 of the range at both ends, divided first: the range of huge values may overflow
    room = max(ends) / 40 - min(ends) / 40 or 1.0
    # rows of one person follow each other; ids may be missing, the row number never is
    people = [list(group) for _, group in groupby(rows, key=lambda row: row["row"])]
    height = sum(_height(person) for person in people) + 56
    frame = Frame(
        (min(ends) - room, max(ends) + room), (0, 1), height=height, left=92, top=4, bottom=46
    )
    ticks = nice_ticks(*frame.x_range, 4)
    parts = [axes(frame, x=unit[:1].upper() + unit[1:], y="", x_ticks=ticks, x_text=plain)]
    top = frame.top
    for person in people:
        parts.append(_person(frame, person, top))
        top += _height(person)
    alt = "80% intervals of example people, under several draws each, and their outcomes."
    return chart(frame, alt, parts)


def _height(person: Sequence[Values]) -> float:
    return _head(person) + LINE * len(person)


def _head(person: Sequence[Values]) -> float:
    """Return the room above a person's forecasts: a single one has the name beside it."""
    return GAP if len(person) > 1 or person[0]["draw"] is not None else GAP / 2


def _person(frame: Frame, person: Sequence[Values], top: float) -> str:
    first = person[0]
    head = _head(person)
    x = frame.x(first["outcome"])
    end = top + _height(person) - 4
    name_at = top + (16 if head == GAP else head + LINE * 0.3 + 4)
    name = (
        f'<text x="4" y="{name_at:.1f}"'
        f' aria-hidden="true">{escape(short(person_name(first), ON_CHART))}</text>'
    )
    label = f"{_name(first, 'Row')}: outcome {number(first['outcome'])}."
    # a wide invisible strip: a line of one pixel is hard to point at
    hit = (
        f'<rect class="hit" x="{x - 6:.1f}" y="{top + 4:.1f}" width="12"'
        f' height="{end - top - 4:.1f}"/>'
    )
    fact = mark(label, f'{hit}<path class="fact" d="M{x:.1f} {top + 8:.1f}V{end:.1f}"/>')
    lines = [_interval(frame, row, top + head + LINE * (i + 0.3)) for i, row in enumerate(person)]
    return name + fact + "".join(lines)


def _interval(frame: Frame, row: Values, y: float) -> str:
    # closed at both ends: an outcome at an end, as rounded ones are, is covered
    holds = row["low"] <= row["outcome"] <= row["high"]
    left = frame.x(row["low"])
    right = frame.x(row["high"])
    # dashed as well as red, for readers who do not see red
    line_kind = "path" if holds else "path dashed"
    drawing = (
        f'<rect class="hit" x="{left:.1f}" y="{y - 7:.1f}" width="{max(right - left, 1):.1f}"'
        f' height="14"/><path class="{line_kind}" d="M{left:.1f} {y:.1f}H{right:.1f}"/><path'
        f' class="path" d="M{left:.1f} {y - 4:.1f}v8M{right:.1f} {y - 4:.1f}v8"/>'
    )
    # a median that is not finite arrives as None: JSON has no word for it
    if known(row["median"]):
        drawing += shape("hollow", frame.x(row["median"]), y)
    draw = "" if row["draw"] is None else f"draw {_draw(row['draw'])}"
    person = f"{_name(row, 'Row')}, {draw}" if draw else _name(row, "Row")
    label = (
        f"{person}: 80% interval {number(row['low'])} to"
        f" {number(row['high'])}, median {number(row['median'])}; the outcome"
        f" {number(row['outcome'])} is {'inside' if holds else 'outside'}."
    )
    tick = f'<text class="tick" x="8" y="{y:.1f}" dy=".35em" aria-hidden="true">{draw}</text>'
    return (tick if draw else "") + mark(label, drawing, kind="blue" if holds else "red")
