"""Section on calibration of all people: the histogram of PITs and the calibration curve."""

from __future__ import annotations

from evenhand._format import band, count, in_full, percent
from evenhand._table import Column, Table, numeric
from evenhand.report.charts import (
    FIFTHS,
    Area,
    Axis,
    Bar,
    Bars,
    Chart,
    Layer,
    Line,
    Point,
    Points,
    known,
    nice_ticks,
)
from evenhand.report.document import Pair, Paragraph, Part, Section
from evenhand.report.findings import Findings
from evenhand.report.records import Level, Number, Values, or_zero, records


def calibration_section(findings: Findings) -> Section | None:
    """Show calibration over everybody; nothing if it is not known."""
    levels = records(Level, findings.values.get("calibration"))
    charts = [_pit_chart(findings.values.get("pit") or {}), _calibration_chart(levels)]
    drawn = [chart for chart in charts if chart is not None]
    if not drawn:
        return None
    text = (
        "Of all outcomes a tenth should fall in each tenth of its own forecast. Bars that rise to"
        " the left say that outcomes are lower than forecast, to the right higher; a valley says"
        " that forecasts are too narrow, a hill too wide."
    )
    parts: list[Part] = [Paragraph(text), Pair(drawn[:1], drawn[1:])]
    return Section("Calibration over everybody", parts, "calibration", in_text=False)


def _pit_chart(pit: Values) -> Chart | None:
    """Draw the histogram of PITs with its band under calibration; nothing if it is not known."""
    if not pit.get("share"):
        return None
    edges = pit["edges"]
    # one edge more than bars
    rows = list(zip(edges, edges[1:], pit["share"], pit["low"], pit["high"], strict=False))
    top = max([v for row in rows for v in (row[2], row[4]) if known(v)], default=1.0) * 1.08
    bars = [_bar(*row) for row in rows if row[2] is not None]
    # steps along the ends of the band
    low = [(x, v) for a, b, _, v, high in rows if known(v, high) for x in (a, b)]
    high = [(x, v) for a, b, _, low_end, v in rows if known(low_end, v) for x in (a, b)]
    # bins are equally wide, so each holds the same share of uniform PITs
    even = 1 / len(rows)
    layers: list[Layer] = [
        Area(low, high, "95% band if calibrated, all bars at once"),
        Bars(bars, "share of outcomes", "outside the band"),
        # the ends of the band once more, since the bars cover it
        Line(low, kind="edge"),
        Line(high, kind="edge"),
        Line([(0, even), (1, even)], "calibrated"),
    ]
    outside = sum(bar.is_off for bar in bars)
    cells = [[_range(a, b), percent(s), band(percent, low, high)] for a, b, s, low, high in rows]
    columns = [
        Column("stated chance"),
        numeric("share of outcomes"),
        numeric("band if calibrated"),
    ]
    return Chart(
        "Histogram of PITs. Calibrated forecasts make all bars as high as the dashed line.",
        Axis(0, 1, "Stated chance of an outcome this low (PIT)", FIFTHS, in_full),
        layers,
        Axis(0, top or 1.0, "Share of outcomes", nice_ticks(0.0, top or 1.0, 4), in_full),
        title="Where outcomes fall in their forecasts",
        note=(
            f"{count(outside, 'bar lies', 'bars lie')} outside the band."
            if outside
            else "All bars lie within the band."
        ),
        numbers=Table("Numbers of the PIT histogram", columns, cells),
    )


def _bar(start: float, end: float, share: float, low: Number, high: Number) -> Bar:
    is_off = (low is not None and share < low) or (high is not None and share > high)
    tip = (
        f"Stated chance {_range(start, end)}: {percent(share)} of outcomes; if calibrated"
        f" {band(percent, low, high)}.{' Outside the band.' if is_off else ''}"
    )
    return Bar(start, end, share, tip, is_off)


def _range(a: float, b: float) -> str:
    return f"{in_full(a)} to {in_full(b)}"


def _calibration_chart(levels: tuple[Level, ...]) -> Chart | None:
    """Draw stated against observed shares with their band; nothing if they are not known."""
    rows = [row for row in levels if known(row.level, row.observed)]
    if not rows:
        return None
    banded = [row for row in rows if known(row.low, row.high)]
    marks = [_level_point(row) for row in rows]
    off = sum(mark.is_off for mark in marks)
    low = [(row.level, or_zero(row.low)) for row in banded]
    high = [(row.level, or_zero(row.high)) for row in banded]
    layers: list[Layer] = [
        Area(low, high, "95% band, all levels at once"),
        Line([(0, 0), (1, 1)], "calibrated"),
        Points(marks, "observed", joined_by="line", off_label="surely not as stated"),
    ]
    cells = [
        [in_full(row.level), percent(row.observed), band(percent, row.low, row.high)]
        for row in rows
    ]
    columns = [Column("stated chance"), numeric("observed"), numeric("95% band")]
    return Chart(
        "Calibration curve: share of outcomes at or below the forecast quantile of each level.",
        Axis(0, 1, "Stated chance", FIFTHS, in_full),
        layers,
        Axis(0, 1, "Share of outcomes at or below", FIFTHS, in_full),
        title="Do stated chances come true?",
        note=(
            f"At {count(off, 'level', 'levels')} of {len(rows)} the band does not hold the stated"
            " chance."
            if off
            else "At every level the band holds the stated chance."
        ),
        numbers=Table("Numbers of the calibration curve", columns, cells),
    )


def _level_point(row: Level) -> Point:
    # the band holds all levels at once: one level outside it is evidence against calibration
    is_off = known(row.low, row.high) and not or_zero(row.low) <= row.level <= or_zero(row.high)
    tip = (
        f"Stated {in_full(row.level)}: {percent(row.observed)} of outcomes lie at or below"
        f" (95% band {band(percent, row.low, row.high)})."
    )
    return Point(row.level, or_zero(row.observed), tip, is_off)
