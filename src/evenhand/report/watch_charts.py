"""Charts of a watch: evidence over time and by part, and delays of outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evenhand._format import count, percent, plain_number
from evenhand.report.charts import (
    Axis,
    Bar,
    Bars,
    Chart,
    Color,
    Layer,
    Line,
    Place,
    Point,
    Points,
    Shape,
    nice_ticks,
    time_axis,
)
from evenhand.report.document import tip_name
from evenhand.report.records import Values
from evenhand.report.watched import (
    NEVER,
    PARTS,
    Signal,
    Watched,
    days_in_words,
    direction_words,
    leading,
    of_threshold,
)

MARKS: dict[str, tuple[Color, Shape]] = {
    "promise": ("blue", "circle"),
    "group": ("orange", "diamond"),
    "draws": ("grey", "hollow"),
}
"""Colour and shape of each part."""

MARKED = 15
"""Most marks of a curve beside those of alarms: more a pointer cannot distinguish."""

DRAWN = 300
"""Most points of a curve in each direction: the picture is 420 units wide."""

LOWEST, TOP = -6.0, 4.0
"""Ends of the axis of evidence, in decimal logs; beyond them, curves are cut."""


@dataclass(frozen=True)
class Curve:
    """Evidence of a part by period, in decimal logs of its share of the alarm threshold."""

    part: str
    places: Sequence[tuple[int, float, str | None]]

    @property
    def words(self) -> str:
        return PARTS[self.part]


def decimal(ratio: float) -> float:
    """Return the decimal log of evidence over threshold, cut at the ends of the axis."""
    return min(max(ratio / math.log(10), LOWEST), TOP)


def share_words(power: float) -> str:
    """Write a tick of evidence: a multiple or a part of the alarm threshold.

    Examples
    --------
    >>> [share_words(power) for power in (-5, -2, 0, 1, 4)]
    ['÷10⁵', '÷100', 'alarm', '×10', '×10⁴']
    """
    size = abs(round(power))
    if not size:
        return "alarm"
    raised = str(size).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ("×" if power > 0 else "÷") + (f"{10**size}" if size < 3 else f"10{raised}")


def evidence_axis(ratios: Iterable[float], title: str = "", n: int = 6) -> Axis:
    """Return an axis of evidence that contains the threshold and all values, from LOWEST to TOP."""
    powers = [decimal(ratio) for ratio in ratios if ratio > NEVER]
    low = math.floor(min([-1.0, *powers]))
    high = max(1, math.ceil(max([0.0, *powers])))
    step = max(1, math.ceil((high - low) / n))
    # counted from the threshold, so that it is a tick
    ticks = [float(k) for k in range(-10, 11) if low <= k <= high and k % step == 0]
    return Axis(low, high, title, ticks, share_words)


def evidence_chart(watched: Watched) -> Chart | None:
    """Draw the evidence of each part by period with the threshold; None without a period."""
    moments = watched.moments
    curves = [Curve(part, leading(tests)) for part, tests in watched.paths().items()]
    curves = [curve for curve in curves if curve.places]
    if not moments or not curves:
        return None
    ratios = [value for curve in curves for _, value, _ in curve.places]
    signals = [*watched.alarms, *watched.notices]
    axis = time_axis(moments[0].day, moments[-1].day, watched.span)
    height = evidence_axis([*ratios, *(one.ratio for one in signals)], "Evidence (log scale)")
    layers: list[Layer] = [
        Line([(axis.low, 0.0), (axis.high, 0.0)], "alarm threshold"),
        *(_curve_points(curve, watched) for curve in curves),
        _signal_points(watched.notices, "notice", "grey", "triangle"),
        _signal_points(watched.alarms, "alarm", "red", "square"),
    ]
    is_cut = any(not LOWEST <= ratio / math.log(10) <= TOP for ratio in ratios)
    return Chart(
        "Evidence of each part by period, on a logarithmic scale; an alarm is raised at the"
        " dashed line.",
        axis,
        layers,
        height,
        title="Evidence by part",
        note=_note(watched, is_cut=is_cut),
    )


def _note(watched: Watched, *, is_cut: bool) -> str:
    n_groups = len(watched.groups)
    note = "A line that reaches the dashed line raises an alarm."
    if n_groups > 1:
        note += (
            f" The line of groups is that of the group with the highest evidence, of {n_groups:,}."
        )
    ends = f"{share_words(LOWEST)} and {share_words(TOP)}"
    return note + (f" Evidence is drawn between {ends}." if is_cut else "")


def _curve_points(curve: Curve, watched: Watched) -> Points:
    moments = watched.moments
    color, shape = MARKS[curve.part]
    points = [
        Point(moments[place].day, decimal(ratio), _tip(curve, place, ratio, group, watched))
        for place, ratio, group in _some(curve.places)
    ]
    along = [(moments[place].day, decimal(ratio)) for place, ratio, _ in curve.places]
    return Points(points, curve.words, color, shape, along=thinned(along))


def _tip(curve: Curve, place: int, ratio: float, group: str | None, watched: Watched) -> str:
    name = tip_name(group) if group is not None else curve.words
    return f"{watched.moments[place].words}, {name}: {of_threshold(ratio)}."


def _some(places: Sequence[tuple[int, float, str | None]]) -> list[tuple[int, float, str | None]]:
    """Return evenly spaced points of a curve, with the last and the highest."""
    step = math.ceil(len(places) / MARKED)
    highest = max(range(len(places)), key=lambda i: places[i][1])
    kept = {*range(len(places) - 1, -1, -step), highest}
    return [places[i] for i in sorted(kept)]


def thinned(places: Sequence[Place], most: int = DRAWN) -> list[Place]:
    """Return a curve with the lowest and highest point of each of `most` stretches, and the last.

    Examples
    --------
    >>> len(thinned([(i, i % 7) for i in range(10_000)], 100))
    201
    """
    if len(places) <= 2 * most:
        return list(places)
    size = math.ceil(len(places) / most)
    found: list[Place] = []
    for start in range(0, len(places), size):
        block = places[start : start + size]
        ends = {min(block, key=lambda one: one[1]), max(block, key=lambda one: one[1])}
        found += sorted(ends)
    return found if found[-1] == places[-1] else [*found, places[-1]]


def _signal_points(signals: Sequence[Signal], word: str, color: Color, shape: Shape) -> Points:
    points = [
        Point(
            one.date.day,
            decimal(one.ratio),
            f"{one.date.words}: {word}, {one.name},"
            f" {direction_words(one.part, one.direction)}; since about"
            f" {one.since.words}.",
        )
        for one in signals
    ]
    return Points(points, word, color, shape)


def delays_chart(delays: Values, matures_after: float | None) -> Chart | None:
    """Draw a histogram of the days from forecasts to their outcomes; None without outcomes."""
    days, counts = delays.get("days") or (), delays.get("counts") or ()
    bins = [
        (float(low), float(high), int(n))
        for low, high, n in zip(days, days[1:], counts, strict=False)
    ]
    known = sum(n for *_, n in bins)
    if not known:
        return None
    top = 1.08 * max(n for *_, n in bins)
    late = float("inf") if matures_after is None else matures_after
    bars = [
        Bar(low, high, n, _delay_tip(low, high, n, known), low >= late) for low, high, n in bins
    ]
    low, high = bins[0][0], bins[-1][1]
    layers: list[Layer] = [Bars(bars, "outcomes", "too late")]
    if matures_after is not None and low < matures_after <= high:
        layers.append(
            Line(
                [(matures_after, 0), (matures_after, top)],
                f"matures after {days_in_words(matures_after)}",
            )
        )
    return Chart(
        "Histogram of the days from a forecast to the record of its outcome.",
        Axis(low, high, "Days from forecast to outcome", nice_ticks(low, high, 6)),
        layers,
        Axis(0, top, "Outcomes", nice_ticks(0.0, top, 4)),
        title="Delays of outcomes",
        height=240,
    )


def _delay_tip(low: float, high: float, n: int, known: int) -> str:
    ends = f"{plain_number(low)} to {plain_number(high)} days"
    return f"{ends}: {count(n, 'outcome')}, {percent(n / known)}."
