"""The charts of a report: calibration over everybody, and the worst groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from evenhand._format import (
    at_least,
    at_most,
    band,
    count,
    in_full,
    percent,
    points,
    points_in_full,
)
from evenhand.report.chart import (
    AREA_SIGN,
    EVEN_SIGN,
    Frame,
    area,
    axes,
    chart,
    known,
    line,
    line_sign,
    mark,
    nice_ticks,
    point,
    shape,
    sign,
    titled_chart,
)
from evenhand.report.findings import is_learned_off
from evenhand.report.page import table
from evenhand.report.sentences import Values

Points = list[tuple[float, float]]

FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
TENTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)

HATCH = (
    '<defs><pattern id="outside" width="6" height="6" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><path class="stripe" d="M0 0V6"/></pattern></defs>'
)
"""Lines over bars that lie outside their band: colour alone does not reach every reader."""


def pit_figure(audit: Values) -> str:
    """Draw the histogram of PITs with its band under calibration; nothing if it is not known."""
    pit = audit.get("pit")
    if not pit or not pit["share"]:
        return ""
    edges = pit["edges"]
    # one edge more than bars
    rows = list(zip(edges, edges[1:], pit["share"], pit["low"], pit["high"], strict=False))
    top = max([s for _, _, s, _, h in rows for s in (s, h) if known(s)], default=1.0) * 1.08
    frame = Frame((0, 1), (0, top or 1.0))
    # bins are equally wide, so each holds the same share of uniform PITs
    even = 1 / len(rows)
    parts = [
        HATCH,
        axes(
            frame,
            x="Stated chance of an outcome this low (PIT)",
            y="Share of outcomes",
            x_ticks=FIFTHS,
            y_ticks=nice_ticks(0.0, top or 1.0, 4),
            x_text=in_full,
            y_text=in_full,
        ),
        *(
            area(frame, [(a, low), (b, low)], [(a, high), (b, high)])
            for a, b, _, low, high in rows
            if low is not None and high is not None
        ),
        *(_pit_bar(frame, *row) for row in rows),
        # the ends of the band once more, since the bars cover it
        *(line(frame, edge, "edge") for edge in _pit_edges(rows)),
        line(frame, [(0, even), (1, even)], "even"),
    ]
    outside = sum(_is_outside(s, low, high) for _, _, s, low, high in rows)
    alt = "Histogram of PITs. Calibrated forecasts make all bars as high as the dashed line."
    key = [
        ('<rect class="bar blue" x="3" y="2" width="22" height="12"/>', "share of outcomes"),
        *([(_hatched(3, 2, 22, 12), "outside the band")] if outside else []),
        (AREA_SIGN, "95% band if calibrated, all bars at once"),
        (EVEN_SIGN, "calibrated"),
    ]
    note = (
        f"{count(outside, 'bar lies', 'bars lie')} outside the band."
        if outside
        else "All bars lie within the band."
    )
    header = ["stated chance", "#share of outcomes", "#band if calibrated"]
    cells = [[_range(a, b), percent(s), band(percent, low, high)] for a, b, s, low, high in rows]
    numbers = table("Numbers of the PIT histogram", header, cells)
    return titled_chart(
        "Where outcomes fall in their forecasts", chart(frame, alt, parts), key, note, numbers
    )


def _pit_edges(
    rows: Sequence[tuple[float, float, float | None, float | None, float | None]],
) -> list[Points]:
    """Return the lower and the upper end of the band as lines with steps."""
    lows = [(x, low) for a, b, _, low, _ in rows if low is not None for x in (a, b)]
    highs = [(x, high) for a, b, _, _, high in rows if high is not None for x in (a, b)]
    return [edge for edge in (lows, highs) if edge]


def _pit_bar(
    frame: Frame, a: float, b: float, share: float | None, low: float | None, high: float | None
) -> str:
    if share is None:
        return ""
    # a gap of two units between bars
    left = frame.x(a) + 1
    right = frame.x(b) - 1
    top = frame.y(share)
    bottom = frame.y(0)
    is_outside = _is_outside(share, low, high)
    # an empty bar keeps a visible foot, so that its value can be pointed at
    height = max(bottom - top, 0.5)
    drawing = (
        _hatched(left, top, right - left, height)
        if is_outside
        else (
            f'<rect class="bar blue" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}"'
            f' height="{height:.1f}"/>'
        )
    )
    label = (
        f"Stated chance {_range(a, b)}: {percent(share)} of outcomes; if calibrated"
        f" {band(percent, low, high)}"
    )
    return mark(label + (". Outside the band." if is_outside else "."), drawing)


def _hatched(x: float, y: float, width: float, height: float) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="bar red" {place}/><rect fill="url(#outside)" {place}/>'


def _is_outside(share: float | None, low: float | None, high: float | None) -> bool:
    return share is not None and (
        (low is not None and share < low) or (high is not None and share > high)
    )


def _range(a: float, b: float) -> str:
    return f"{in_full(a)} to {in_full(b)}"


def calibration_figure(audit: Values) -> str:
    """Draw stated against observed shares with their band; nothing if they are not known."""
    rows = [row for row in audit.get("calibration") or [] if known(row["level"], row["observed"])]
    if not rows:
        return ""
    frame = Frame((0, 1), (0, 1))
    banded = [row for row in rows if known(row["low"], row["high"])]
    low, high = ([(row["level"], row[key]) for row in banded] for key in ("low", "high"))
    observed = [(row["level"], row["observed"]) for row in rows]
    parts = [
        axes(
            frame,
            x="Stated chance",
            y="Share of outcomes at or below",
            x_ticks=FIFTHS,
            y_ticks=FIFTHS,
            x_text=in_full,
            y_text=in_full,
        ),
        area(frame, low, high) if banded else "",
        line(frame, [(0, 0), (1, 1)], "even"),
        (f'<g class="blue">{line(frame, observed, "path")}</g>'),
        *(_calibration_mark(frame, row) for row in rows),
    ]
    off = sum(_is_off(row) for row in rows)
    note = (
        f"At {count(off, 'level', 'levels')} of {len(rows)} the band does not hold the stated"
        " chance."
    )
    note = note if off else "At every level the band holds the stated chance."
    key = [
        (line_sign("blue", "circle"), "observed"),
        *([(sign("square", "red"), "surely not as stated")] if off else []),
        (AREA_SIGN, "95% band, all levels at once"),
        (EVEN_SIGN, "calibrated"),
    ]
    header = ["stated chance", "#observed", "#95% band"]
    cells = [
        [in_full(row["level"]), percent(row["observed"]), band(percent, row["low"], row["high"])]
        for row in rows
    ]
    numbers = table("Numbers of the calibration curve", header, cells)
    alt = "Calibration curve: share of outcomes at or below the forecast quantile of each level."
    return titled_chart(
        "Do stated chances come true?", chart(frame, alt, parts), key, note, numbers
    )


def _calibration_mark(frame: Frame, row: Values) -> str:
    label = (
        f"Stated {in_full(row['level'])}: {percent(row['observed'])} of outcomes lie at or below "
        f"(95% band {band(percent, row['low'], row['high'])})."
    )
    kind, name = ("red", "square") if _is_off(row) else ("blue", "circle")
    return point(frame, (row["level"], row["observed"]), name, kind, label)


def _is_off(row: Values) -> bool:
    # the band holds all levels at once: one level outside it is evidence against calibration
    return known(row["low"], row["high"]) and not row["low"] <= row["level"] <= row["high"]


def worst_figure(
    rows: Sequence[Values], learned: Sequence[Values], numbers: str, *, is_proven: bool
) -> str:
    """Draw the errors of worst groups by share: in hindsight, by chance, learned and certified."""
    # 1/2 is the largest error there is, so reports of all models share one scale
    frame = Frame((0, 1), (0, 0.5), height=330)
    rows = [row for row in rows if known(row["error"])]
    nulls = [row for row in rows if known(row["null_low"], row["null_high"])]
    means = [(row["mass"], row["null_mean"]) for row in rows if known(row["null_mean"])]
    proven = [row for row in rows if is_proven and known(row["certified"])]
    low, high = ([(row["mass"], row[key]) for row in nulls] for key in ("null_low", "null_high"))
    parts = [
        axes(
            frame,
            x="Share of people in the group",
            y="Off by (percentage points)",
            x_ticks=FIFTHS,
            y_ticks=TENTHS,
            x_text=in_full,
            y_text=points_in_full,
        ),
        area(frame, low, high) if nulls else "",
        line(frame, means, "even") if means else "",
        f'<g class="red">{line(frame, _stairs(proven), "path")}</g>' if proven else "",
        f'<g class="blue">{line(frame, [(row["mass"], row["error"]) for row in rows], "path")}</g>',
        *(_certified_mark(frame, row) for row in proven),
        *(_oracle_mark(frame, row) for row in rows),
        *(_learned_mark(frame, row) for row in learned if known(row["error"])),
    ]
    key = [(line_sign("blue", "circle"), "picked in hindsight (oracle)")]
    key += [(AREA_SIGN, "the same search in calibrated forecasts, 5% to 95%")] if nulls else []
    key += [(EVEN_SIGN, "their mean")] if means else []
    if learned:
        key.append((_learned_sign(), "learned from features, bar down to its lower bound"))
    if proven:
        words = "certified: no group of at least this share is worse"
        key.append((line_sign("red", "square"), words))
    alt = (
        "Error of the worst group against its share of the people, in percentage points; the"
        " numbers are in the table."
    )
    return titled_chart(
        "How far off is the worst group of each size?",
        chart(frame, alt, parts),
        key,
        numbers=numbers,
    )


def _stairs(rows: Sequence[Values]) -> list[tuple[float, float]]:
    """Return the corners of the certified bound.

    A bound holds for every group of at least its mass, so it is level up to the next mass.
    """
    corners = [(row["mass"], row["certified"]) for row in rows]
    turns = [(later[0], earlier[1]) for earlier, later in pairwise(corners)]
    return [point for pair in zip(corners, [*turns, corners[-1]], strict=True) for point in pair]


def _oracle_mark(frame: Frame, row: Values) -> str:
    label = (
        f"Worst {in_full(row['mass'])} picked in hindsight: off by {points(row['error'])} points"
    )
    if known(row["null_low"], row["null_high"]):
        label += f"; calibrated forecasts show {band(points, row['null_low'], row['null_high'])}"
    return point(frame, (row["mass"], row["error"]), "circle", "blue", f"{label}.")


def _certified_mark(frame: Frame, row: Values) -> str:
    label = (
        f"Certified: every group of at least {in_full(row['mass'])} of people is off by at most"
        f" {at_most(row['certified'])} points."
    )
    return point(frame, (row["mass"], row["certified"]), "square", "red", label)


def _learned_mark(frame: Frame, row: Values) -> str:
    x = frame.x(row["mass"])
    # unbiased estimates and their bounds may be negative, which the axis has no room for
    y = frame.y(max(row["error"], 0.0))
    end = frame.y(min(max(row["low"] or 0.0, 0.0), max(row["error"], 0.0)))
    drawing = (
        f'<path class="whisker" d="M{x:.1f} {y:.1f}V{end:.1f}M{x - 4:.1f}'
        f' {end:.1f}h8"/>{shape("diamond", x, y)}'
    )
    label = (
        f"Group of {in_full(row['mass'])} learned from features: off by {points(row['error'])}"
        " points"
    )
    if known(row["low"]):
        label += (
            f", surely by {at_least(row['low'])} or more"
            if is_learned_off(row)
            else ", not surely off"
        )
    return mark(f"{label}.", drawing, (x, y), "orange")


def _learned_sign() -> str:
    return (
        '<g class="orange"><path class="whisker" d="M14 7V15M10'
        f' 15h8"/>{shape("diamond", 14, 7)}</g>'
    )


def off_by_drawing(
    row: Values, *, label: str, is_off: bool, top: float, has_band: bool = False
) -> str:
    """Draw an error, and its band if it has one, on a scale from 0 to `top` for a table cell."""
    if not known(row["error"]):
        return ""
    kind, name = ("red", "square") if is_off else ("blue", "circle")
    frame = Frame((0, top), (0, 1), height=24, width=160, left=6, right=6, top=0, bottom=0)
    x = frame.x(max(row["error"], 0.0))
    grid = "".join(f'<path class="grid" d="M{frame.x(k * top / 5):.1f} 2V22"/>' for k in range(6))
    reach = ""
    if has_band and row["error_low"] is not None:
        # an upper end that is unknown leaves a bar from the lower end to the estimate
        end = frame.x(row["error"] if row["error_high"] is None else row["error_high"])
        reach = f'<path class="whisker" d="M{frame.x(row["error_low"]):.1f} 12H{end:.1f}"/>'
    drawn = mark(label, reach + shape(name, x, 12), (x, 12), kind)
    alt = f"Off by, from 0 to {points_in_full(top)} points"
    return f'<svg viewBox="0 0 160 24" role="group" aria-label="{alt}">{grid}{drawn}</svg>'


def scale_figure(marks: Sequence[tuple[str, str, float, str]]) -> str:
    """Draw errors on the scale from perfect to the worst: kind, shape, error and words of each."""
    if not marks:
        return ""
    frame = Frame((0, 0.5), (0, 1), height=62, width=340, left=14, right=14, top=0, bottom=0)
    ends = '<text class="tick" x="6" y="56">0 perfect</text>'
    ends += '<text class="tick" x="334" y="56" text-anchor="end">50 worst</text>'
    base = "".join(f'<path class="axis" d="M{frame.x(v):.1f} 20V34"/>' for v in TENTHS)
    track = f'<path class="axis" d="M{frame.x(0):.1f} 27H{frame.x(0.5):.1f}"/>'
    drawn = "".join(
        mark(f"{words}.", shape(name, frame.x(error), 27), (frame.x(error), 27), kind)
        for kind, name, error, words in marks
    )
    # the key gives each value in words: marks of close errors cover each other on the scale
    key = [(sign(name, kind), words) for kind, name, _, words in marks]
    svg = chart(
        frame,
        "Scale of errors, from 0 points, perfect, to 50, the worst",
        [base, track, ends, drawn],
    )
    return titled_chart("In percentage points", svg, key)
