"""Section on overall calibration: the histogram of PITs and the calibration curve."""

from __future__ import annotations

from evenhand._format import band, count, in_full, percent
from evenhand._table import Cells, Column, Table, numeric
from evenhand.figures import OUTCOMES_TITLE, PIT_BAND, PIT_TITLE
from evenhand.report import charts
from evenhand.report.document import Pair, Paragraph, Part, Section
from evenhand.report.findings import Findings
from evenhand.report.records import Bin, Level, Values, known, or_zero, records
from evenhand.report.terms import IN_FEATURES


def calibration_section(findings: Findings) -> Section | None:
    """Show the calibration of all people; nothing if it is not known."""
    levels = records(Level, findings.values.get("calibration"))
    charts = [_pit_chart(findings.values.get("pit") or {}), _calibration_chart(levels)]
    drawn = [chart for chart in charts if chart is not None]
    if not drawn:
        return None
    text = (
        "Under calibration, a tenth of the outcomes falls into each tenth of the predicted"
        " distribution. Higher bars on the left mean that outcomes are lower than forecast, on the"
        " right that they are higher; a U shape means that forecasts are too narrow, a hump that"
        " they are too wide."
    )
    if findings.terms.is_time:
        text += (
            " Times that are cut off are drawn from the remaining part of their predicted"
            f" distributions: the bars test calibration, assuming that {IN_FEATURES}, but"
            " understate the size of errors."
        )
    parts: list[Part] = [Paragraph(text), Pair(drawn[:1], drawn[1:])]
    return Section("Overall calibration", parts, "calibration", in_text=False)


def _pit_chart(pit: Values) -> charts.Chart | None:
    """Draw the histogram of PITs with its band under calibration; nothing if it is not known."""
    if not pit.get("share"):
        return None
    edges, unknown = pit.get("edges") or (), [None] * len(pit["share"])
    ends = (pit.get(end) or unknown for end in ("low", "high"))
    values = (edges, edges[1:], pit["share"], *ends)
    # edges include the end of the last bin
    bins = [Bin(*row) for row in zip(*values, strict=False) if known(*row[:2])]
    if not bins:
        return None
    top = max(or_zero(end) for one in bins for end in (one.share, one.high)) * 1.08 or 1.0
    bars = [_bar(one) for one in bins if one.share is not None]
    # steps along the ends of the band
    steps = [(x, one.low, one.high) for one in bins for x in (one.start, one.end)]
    area = charts.Area.of(steps, PIT_BAND)
    # bins are equally wide, so each contains the same share of uniform PITs
    even = 1 / len(bins)
    layers: list[charts.Layer] = [
        area,
        charts.Bars(bars, "share of outcomes", "outside the band"),
        # the ends of the band again, on top of the bars
        charts.Line(area.low, kind="edge"),
        charts.Line(area.high, kind="edge"),
        charts.Line([(0, even), (1, even)], "calibrated"),
    ]
    outside = sum(bar.is_off for bar in bars)
    inside = "All bars lie within the band." if area.low else ""
    cells: Cells[Bin] = {
        Column("PIT"): lambda one: one.range,
        numeric("share of outcomes"): lambda one: percent(one.share),
        numeric("band under calibration"): lambda one: band(percent, one.low, one.high),
    }
    return charts.Chart(
        "Histogram of PITs. Under calibration, all bars are as high as the dashed line.",
        charts.share_axis(PIT_TITLE),
        layers,
        charts.Axis(0, top, OUTCOMES_TITLE, charts.nice_ticks(0.0, top, 4), in_full),
        title="Histogram of PITs",
        note=f"{count(outside, 'bar lies', 'bars lie')} outside the band." if outside else inside,
        numbers=Table.of("Numbers of the PIT histogram", bins, cells),
    )


def _bar(one: Bin) -> charts.Bar:
    share = or_zero(one.share)
    is_below = one.low is not None and share < one.low
    is_off = is_below or (one.high is not None and share > one.high)
    tip = (
        f"PIT {one.range}: {percent(share)} of outcomes; under calibration"
        f" {band(percent, one.low, one.high)}.{' Outside the band.' if is_off else ''}"
    )
    return charts.Bar(one.start, one.end, share, tip, is_off)


def _calibration_chart(levels: tuple[Level, ...]) -> charts.Chart | None:
    """Draw observed shares by predicted probability; nothing if they are not known."""
    rows = [row for row in levels if known(row.level, row.observed)]
    if not rows:
        return None
    marks = [_level_point(row) for row in rows]
    off = sum(mark.is_off for mark in marks)
    where = f"{off} of {count(len(rows), 'level')}" if off else "every level"
    verb = "does not contain" if off else "contains"
    ends = ((row.level, row.low, row.high) for row in rows)
    area = charts.Area.of(ends, "simultaneous 95% band")
    layers: list[charts.Layer] = [
        area,
        charts.Line([(0, 0), (1, 1)], "calibrated"),
        charts.Points(marks, "observed", joined_by="line", off_label="significantly off"),
    ]
    cells: Cells[Level] = {
        Column("predicted probability"): lambda row: in_full(row.level),
        numeric("observed share"): lambda row: percent(row.observed),
        numeric("95% band"): lambda row: band(percent, row.low, row.high),
    }
    return charts.Chart(
        "Calibration curve: share of outcomes at or below the forecast quantile of each level.",
        charts.share_axis("Predicted probability"),
        layers,
        charts.share_axis("Share of outcomes at or below"),
        title="Calibration curve",
        note=f"At {where}, the band {verb} the predicted probability." if area.low else "",
        numbers=Table.of("Numbers of the calibration curve", rows, cells),
    )


def _level_point(row: Level) -> charts.Point:
    # the band holds simultaneously: one level outside it is evidence against calibration
    is_off = known(row.low, row.high) and not or_zero(row.low) <= row.level <= or_zero(row.high)
    tip = (
        f"Predicted {in_full(row.level)}: {percent(row.observed)} of outcomes lie at or below this"
        f" quantile (95% band {band(percent, row.low, row.high)})."
    )
    return charts.Point(row.level, or_zero(row.observed), tip, is_off)
