"""Charts: axes, layers of marks with their labels, and coordinates; charts of an audit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, Literal

from evenhand._format import (
    UNKNOWN,
    band,
    count,
    in_full,
    is_known,
    number_in_full,
    percent,
    points,
    points_in_full,
    whole,
)
from evenhand.report import tables
from evenhand.report.kinds import Kind, in_one_line
from evenhand.report.slots import capitalized, name_of
from evenhand.results import AuditRows, CurvePoint, Finding, Reliability

PIT_TITLE = "Predicted probability of an outcome this low (PIT)"
OUTCOMES_TITLE = "Share of outcomes"
PIT_BAND = "simultaneous 95% band under calibration"

Place = tuple[float, float]
"""A point in units of the data."""

Color = Literal["blue", "red", "orange", "grey"]
Shape = Literal["circle", "square", "diamond", "hollow", "triangle"]
Side = Literal["left", "right", "above", "below"]


@dataclass(frozen=True)
class Axis:
    """Range, title and ticks of an axis."""

    low: float
    high: float
    title: str = ""
    ticks: Sequence[float] = ()
    show: Callable[[float], str] = number_in_full


def top_axis(most: float, title: str = "") -> Axis:
    """Return an axis of shares from 0: rare events and small errors need a scale of their own.

    Examples
    --------
    >>> top_axis(0.12).high
    0.2
    """
    top = next((top for top in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8) if most <= top), 1.0)
    return Axis(0, top, title, nice_ticks(0.0, top, 5), in_full)


@dataclass(frozen=True)
class Area:
    """Area between two lines."""

    low: Sequence[Place]
    high: Sequence[Place]
    label: str

    @classmethod
    def of(cls, ends: Iterable[tuple[float, float | None, float | None]], label: str) -> Area:
        """Return the area between two ends at each place; places of unknown ends are left out."""
        known = [(x, low, high) for x, low, high in ends if is_known(low) and is_known(high)]
        return cls([(x, low) for x, low, _ in known], [(x, high) for x, _, high in known], label)


@dataclass(frozen=True)
class Line:
    """Line through points: dashed for a reference, thin for an edge, solid for a curve or level."""

    points: Sequence[Place]
    label: str = ""
    kind: Literal["even", "edge", "curve", "level"] = "even"


@dataclass(frozen=True)
class Label:
    """Text beside a place: left of it, right of it, above or below it."""

    x: float
    y: float
    text: str
    side: Side
    is_reference: bool = False


@dataclass(frozen=True)
class Bar:
    """Bar of a histogram with its label."""

    start: float
    end: float
    height: float
    tip: str
    is_off: bool


@dataclass(frozen=True)
class Bars:
    """Bars of a histogram; those that are off have another colour and a pattern."""

    bars: Sequence[Bar]
    label: str
    off_label: str


@dataclass(frozen=True)
class Point:
    """Point with its label, and a whisker across an interval, or upright; a stem is pale."""

    x: float
    y: float
    tip: str
    is_off: bool = False
    across: Place | None = None
    upright: Place | None = None
    stem: Place | None = None


@dataclass(frozen=True)
class Points:
    """Points of one colour and shape; those that are off are red squares.

    `along` is a curve with many more points than are marked; it is drawn below the marks.
    """

    points: Sequence[Point]
    label: str
    color: Color = "blue"
    shape: Shape = "circle"
    off_label: str = ""
    along: Sequence[Place] = ()


Layer = Area | Line | Bars | Points | Label


@dataclass(frozen=True)
class ChartRow:
    """Named row of a chart: its name, a small number beside it, and values on the right.

    A narrow picture has `summary` in the place of the values.
    """

    name: str
    small: str = ""
    values: Sequence[str] = ()
    is_strong: bool = False
    summary: str = ""

    @property
    def lines(self) -> list[str]:
        """The name in at most two lines."""
        return wrap(self.name, LINE, max_lines=2, placeholder="…") or [""]


@dataclass(frozen=True)
class Chart:
    """Specification of a chart; its key is derived from the labels of the layers.

    Parameters
    ----------
    alt : str
        Description for screen readers.
    x, y : Axis
        Axes; charts of rows have no vertical axis.
    layers : sequence of layers
        Layers in drawing order.
    title, note : str
        Text above the chart.
    rows : sequence of Row
        Named rows from top to bottom, of a chart without a vertical axis: row i is at y = -i - 0.5.
    heads : sequence of str
        Titles of the values of the rows.
    """

    alt: str
    x: Axis
    layers: Sequence[Layer]
    y: Axis | None = None
    title: str = ""
    note: str = ""
    rows: Sequence[ChartRow] = ()
    heads: Sequence[str] = ()


def nice_ticks(low: float, high: float, n: int) -> list[float]:
    """Return round values that divide a range of positive width into about `n` parts.

    Examples
    --------
    >>> nice_ticks(0.0, 10.0, 5)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    span = high - low
    # the smallest of 1, 2, 5 and 10 times a power of ten that gives at most n parts
    unit = 10.0 ** math.floor(math.log10(span / n))
    step = unit * next((k for k in (1, 2, 5) if span / (k * unit) <= n), 10)
    # a billionth of a step of tolerance, so that an end that is a tick up to rounding is one
    first = math.ceil(low / step - 1e-9)
    count = math.floor((high - first * step) / step + 1e-9) + 1
    # twelve digits: 3 * 0.1 is shown as 0.3
    return [float(f"{(first + i) * step:.12g}") for i in range(count)]


# --- coordinates of the marks of charts

Width = Literal["wide", "middle", "narrow"]
"""Width of a drawing: the picture of a page, a figure in a section, or a picture on a phone."""

WIDTHS: dict[Width, float] = {"wide": 760, "middle": 480, "narrow": 358}

LINE = 32
"""Most characters of a line of the name of a row."""

NAMES, VALUES = 240.0, 190.0
"""Width of the names and of the values of rows in a wide picture."""


@dataclass(frozen=True)
class Frame:
    """Axes, size and margins of a chart, in units of the picture."""

    x_axis: Axis
    y_axis: Axis
    height: float
    width: float
    left: float = 44
    right: float = 20
    top: float = 28
    bottom: float = 46
    is_wide: bool = False

    @property
    def x_end(self) -> float:
        return self.width - self.right

    @property
    def y_end(self) -> float:
        return self.height - self.bottom

    def x(self, value: float) -> float:
        return self.left + _part(value, self.x_axis) * (self.x_end - self.left)

    def y(self, value: float) -> float:
        # vertical coordinates of SVG increase downwards
        return self.y_end - _part(value, self.y_axis) * (self.y_end - self.top)

    def path(self, places: Iterable[Place]) -> str:
        """Return the path of a line through points."""
        return "L".join(f"{digits(self.x(x))} {digits(self.y(y))}" for x, y in places)


def frame_of(chart: Chart, width: Width) -> Frame:
    """Return the frame of a chart: names of rows are above the marks unless it is wide."""
    units, is_wide = WIDTHS[width], width == "wide"
    if not chart.rows:
        return Frame(chart.x, chart.y or Axis(0, 1), 375 if is_wide else 300, units)
    n, axis = len(chart.rows), Axis(-len(chart.rows), 0)
    if is_wide:
        right = VALUES if chart.heads else 20
        return Frame(chart.x, axis, 34 * n + 70, units, NAMES, right, 26, 44, is_wide)
    height = 46 if all(len(row.lines) == 1 for row in chart.rows) else 60
    return Frame(chart.x, axis, height * n + 70, units, 14, 20, 26, 44)


def _part(value: float, axis: Axis) -> float:
    # halves, since the width of a range of huge numbers may overflow
    width = axis.high / 2 - axis.low / 2
    # values outside the range are drawn just beyond the axis; a range of one value is its middle
    return min(max((value / 2 - axis.low / 2) / width, -0.1), 1.1) if width > 0 else 0.5


def digits(value: float) -> str:
    """Format a coordinate."""
    # tenths are finer than a pixel, and short numbers keep the page small
    return f"{value:.1f}".removesuffix(".0")


# --- axes of dates


def time_axis(low: float, high: float, title: str) -> Axis:
    """Return an axis from one day to another, counted from 1970, with ticks at round dates.

    Examples
    --------
    >>> axis = time_axis(20_454.0, 20_818.0, "1 January to 31 December 2026")
    >>> [axis.show(tick) for tick in axis.ticks]
    ['2026', 'Mar', 'May', 'Jul', 'Sep', 'Nov']
    """
    # imported here: other charts do not wait for matplotlib, whose dates are days since 1970
    from matplotlib import dates

    made: Any = dates  # its functions have no types
    if high <= low:
        low, high = low - 0.5, high + 0.5
    locator = made.AutoDateLocator(minticks=3, maxticks=8)
    ticks = [one for one in locator.tick_values(*made.num2date([low, high])) if low <= one <= high]
    words = dict(zip(ticks, made.ConciseDateFormatter(locator).format_ticks(ticks), strict=True))
    return Axis(low, high, title, ticks, words.__getitem__)


# --- charts of an audit

DRAWN = 8
"""Most rows of a chart."""

LEVEL = 0.8
"""The interval whose coverage is drawn."""


def overview(rows: AuditRows) -> Chart | None:
    """Return the picture of a page, by what is known: rates, coverage, or errors of groups."""
    kind, leading = Kind.of(rows), rows.leading
    tenths = [one for one in rows.by_forecast if None not in (one.predicted, one.rate)]
    if kind.has_rates and len(tenths) > 1:
        return _tenths_chart(tenths, rows)
    if is_survival(rows):
        return survival_chart(rows)
    drawn = [one for one in _groups_drawn(rows) if one.size.value is not None]
    is_covered = not kind.has_rates and all(one.coverage_80 is not None for one in drawn)
    # a mark at 80% must not stand for a problem of another kind
    is_plain = leading is None or abs((leading.coverage_80 or LEVEL) - LEVEL) > rows.tolerance
    return _groups_chart(drawn, rows, is_covered=is_covered and is_plain) if drawn else None


def is_survival(rows: AuditRows) -> bool:
    """Whether the picture has rates by the horizon: those of the worst group are known."""
    known = {one.group for one in rows.survival}
    return bool(known) and (rows.leading is None or rows.leading.group in known)


def _groups_drawn(rows: AuditRows) -> list[Finding]:
    """Return everyone, the worst groups that share no feature, named groups, then others."""
    named = sorted(rows.named, key=lambda one: one.rank)
    others = sorted(rows.examined, key=lambda one: one.rank)
    # a group by features and one found by search may have the same name: the worse one is drawn
    found: dict[str, Finding] = {}
    for one in (*rows.overall, *rows.apart(rows.problems), *named, *others):
        is_shown = one in rows.overall or one.is_judged
        # the people of a positive part are not those of the other groups
        if is_shown and one.same_as is None and one not in rows.positive_part:
            found.setdefault(name_of(one, rows), one)
        if len(found) == DRAWN:
            break
    return list(found.values())


def _row(one: Finding, rows: AuditRows, values: Sequence[str], summary: str = "") -> ChartRow:
    name = "everyone" if one is rows.everyone else name_of(one, rows)
    # the range of a group by the forecast is in the table
    name = name.partition(" (")[0] if one.key is not None else name
    return ChartRow(
        in_one_line(capitalized(name)), whole(one.n), values, one is rows.leading, summary
    )


def _marks(found: Iterable[Finding], marks: Sequence[Point], rows: AuditRows) -> Points:
    """Return marks with their results: red squares where a problem was found, else circles."""
    shown = []
    for one, point in zip(found, marks, strict=True):
        result = tables.result(one, rows).text
        tip = f"{in_one_line(name_of(one, rows))}: {point.tip} ({count(one.n, 'row')}); {result}."
        shown.append(replace(point, tip=tip, is_off=one.problem))
    return Points(shown, "no problem found", "grey", "hollow", "problem found")


def _groups_chart(drawn: Sequence[Finding], rows: AuditRows, *, is_covered: bool) -> Chart:
    """Draw what the 80% interval covers by group, or errors; errors and intervals stand beside."""
    named, marks, n = [], [], len(drawn)
    for i, one in enumerate(drawn):
        error = tables.estimate(one.size, points)
        values = (error.text, "" if error.below == UNKNOWN else error.below)
        named.append(_row(one, rows, values, "" if is_covered else str(error)))
        low, value = one.size.low, max(one.size.value or 0.0, 0.0)
        # without an upper end, the whisker reaches from the lower end to the estimate
        high = value if one.size.high is None else one.size.high
        across = None if low is None else (max(low, 0.0), high)
        mark = Point(value, -i - 0.5, f"off by {error} points", across=across)
        if is_covered:
            x = one.coverage_80 or 0.0
            mark = Point(x, -i - 0.5, f"the 80% interval covers {percent(x)}", stem=(LEVEL, x))
        marks.append(mark)
    if is_covered:
        # room for the label left of the least mark
        least = max(0.0, int(10 * min(0.5, *(one.x - 0.1 for one in marks))) / 10)
        ticks = [tick for tick in nice_ticks(least, 1.0, 6) if abs(tick - LEVEL) > 0.01]
        title = "How many outcomes does the 80% interval cover?"
        axis = Axis(least, 1.0, "", ticks, in_full)
        below: list[Layer] = [Line([(LEVEL, -n), (LEVEL, 0)])]
        above = [Label(LEVEL, 0, "should be 80%", "above", is_reference=True)]
        above += [
            Label(one.x, one.y, percent(one.x), "left" if one.x < LEVEL else "right")
            for one in marks
        ]
    else:
        ends = [end for one in marks for end in (one.x, *(one.across or ()))]
        title, axis = "Error of the forecasts in points, by group.", top_axis(max(ends))
        axis = replace(axis, title="0 is perfect", show=points_in_full)
        edge = min(rows.tolerance, axis.high)
        zone = f"tolerance: up to {points_in_full(rows.tolerance)} points"
        below, above = [Area([(0, -n), (0, 0)], [(edge, -n), (edge, 0)], zone)], []
    n_groups = sum(one is not rows.everyone and one is not rows.given for one in drawn)
    note = f"{n_groups} of {count(len(rows.examined), 'group')}. Small number: rows."
    note += f" No problem: within {points_in_full(rows.tolerance)} points, or not significant."
    return Chart(
        f"{title} The table has the numbers.",
        axis,
        [*below, _marks(drawn, marks, rows), *above],
        title=title.rstrip("."),
        note=note,
        rows=named,
        heads=("error in points", "interval"),
    )


def _tenths_chart(tenths: Sequence[Finding], rows: AuditRows) -> Chart:
    """Draw predicted and observed rates by tenth of the probability, and of the worst group."""
    n, part, leading = len(tenths), "tenth" if len(tenths) == 10 else "part", rows.leading
    drawn: dict[float, Finding] = dict(enumerate(tenths, 1))
    note = "Mark: observed, with its interval."
    worst = min((one for one in tenths if one.problem), key=lambda one: one.rank, default=None)
    # of groups found by search the rate is unknown
    if leading is not None and leading.rate is not None and leading not in (rows.everyone, *tenths):
        # apart from the tenths, on their right
        worst = drawn[n + 1.6] = leading
        note += f" Group: {in_one_line(name_of(leading, rows))}."
    layers: list[Layer] = []
    marks = []
    for i, one in drawn.items():
        predicted, rate = one.predicted or 0.0, one.rate or 0.0
        tip = f"{percent(predicted)} predicted, {percent(rate)} observed"
        ends = [predicted + end for end in (one.bias_low, one.bias_high) if end is not None]
        low, high = (max(ends[0], 0.0), min(ends[1], 1.0)) if len(ends) == 2 else (rate, rate)
        marks.append(Point(i, rate, tip, upright=(low, high) if ends[1:] else None))
        label = "predicted" if i == 1 else ""
        layers.append(Line([(i - 0.36, predicted), (i + 0.36, predicted)], label, "level"))
        if one is worst:
            # above and below all marks, so that none is covered
            sides: dict[Side, Callable[..., float]] = {"above": max, "below": min}
            for side, end in sides.items():
                shown, place = end(rate, predicted), end(low, high, predicted)
                layers.append(Label(i, place, percent(shown), side, shown == predicted))
    most = max(end for one in marks for end in (one.y, *(one.upright or ())))
    title = f"{part} of the forecast, lowest to highest"
    return Chart(
        f"Predicted and observed rate, by {part} of the forecast; the table has the numbers.",
        Axis(0.5, max(drawn) + 0.5, title, [*drawn], lambda i: f"{i}" if i <= n else "group"),
        [*layers, _marks(drawn.values(), marks, rows)],
        top_axis(max([most, *(one.predicted or 0.0 for one in drawn.values())])),
        title=f"Predicted and observed, by {part} of the forecast",
        note=note,
    )


def survival_chart(rows: AuditRows) -> Chart | None:
    """Draw predicted and observed rates by the horizon by group; None without rates."""
    drawn = tables.survival_rows(rows)[:DRAWN]
    if not drawn:
        return None
    known = {one.group: one for one in rows.groups}
    found = [known.get(one.group) or Finding(group=one.group, n=one.n) for one in drawn]
    layers: list[Layer] = []
    marks, named = [], []
    for i, (group, one) in enumerate(zip(found, drawn, strict=True)):
        predicted, observed, y = one.predicted or 0.0, one.observed or 0.0, -i - 0.5
        rates = percent(predicted), percent(observed)
        shown = "{} predicted, {} observed".format(*rates)
        named.append(_row(group, rows, rates, shown))
        label = "" if i else "predicted"
        layers.append(Line([(predicted, y - 0.22), (predicted, y + 0.22)], label, "level"))
        across = None if one.low is None or one.high is None else (one.low, one.high)
        reach = band(percent, one.low, one.high)
        marks.append(Point(observed, y, f"{shown} ({reach})", across=across))
    ends = [end or 0.0 for one in drawn for end in (one.predicted, one.observed, one.high)]
    return Chart(
        "Predicted and observed rate by the horizon, by group; the table has the numbers.",
        top_axis(max(ends)),
        [*layers, _marks(found, marks, rows)],
        title=f"Predicted and observed rate of the event by {Kind.of(rows).horizon}",
        note="Mark: observed (Kaplan-Meier), with its interval. Small number: rows.",
        rows=named,
        heads=("predicted", "observed"),
    )


# --- calibration of everyone


def calibration_chart(rows: AuditRows, *, of_rates: bool) -> Chart | None:
    """Draw observed shares, or rates of an event, by predicted probability; None if unknown."""
    of_x, of_y = ("probability", "rate") if of_rates else ("level", "observed")

    def places(found: Iterable[CurvePoint | Reliability]) -> list[tuple[float, float, Any, Any]]:
        each = ((getattr(one, of_x), getattr(one, of_y), one.low, one.high) for one in found)
        return [one for one in each if is_known(one[0]) and is_known(one[1])]

    # of events, bins of people are marked; the curve is isotonic
    bins = [one for one in rows.reliability if one.group == rows.reliability[0].group]
    curve, seen = places(rows.calibration), places(bins if of_rates else ())
    if not (seen or curve):
        return None
    show = percent if of_rates else in_full
    marks = []
    for x, y, low, high in seen or curve:
        tip = f"Predicted {show(x)}: observed {percent(y)} ({band(percent, low, high)})."
        # intervals and bands hold for all marks at once: one that excludes x is evidence
        is_off = not (low or 0.0) <= x <= (1.0 if high is None else high)
        marks.append(Point(x, y, tip, is_off))
    ends = [end or 0.0 for one in (*seen, *curve) for end in (one[0], one[1], one[3])]
    axis = top_axis(max(ends), "Predicted probability")
    band_of = [(x, low, high) for x, _, low, high in curve or seen]
    title = "Observed rate" if of_rates else "Share of outcomes at or below the quantile"
    return Chart(
        f"{title} by predicted probability, of everyone.",
        axis,
        [
            Area.of(band_of, "95% band of the curve" if curve else "95% intervals"),
            Line([(0, 0), (axis.high, axis.high)], "right forecasts"),
            Line([(x, y) for x, y, _, _ in curve], "isotonic curve" * of_rates, "curve"),
            Points(marks, "observed", off_label="interval excludes the predicted probability"),
        ],
        replace(axis, title=title),
        title="Reliability diagram" if of_rates else "Calibration curve",
    )


def pit_chart(rows: AuditRows) -> Chart | None:
    """Draw the distribution of PITs with its band under calibration; None if it is not known."""
    bins = [one for one in rows.pit if one.share is not None]
    if not bins:
        return None
    bars = []
    for one in bins:
        is_off = not (one.low or 0.0) <= (one.share or 0.0) <= (1 if one.high is None else one.high)
        right = f"under calibration {band(percent, one.low, one.high)}"
        tip = f"PIT {in_full(one.start)} to {in_full(one.end)}: {percent(one.share)} of outcomes;"
        tip += f" {right}.{' Outside the band.' * is_off}"
        bars.append(Bar(one.start, one.end, one.share or 0.0, tip, is_off))
    top = max(end or 0.0 for one in bins for end in (one.share, one.high)) * 1.08 or 1.0
    # steps along the ends of the band
    area = Area.of(((x, one.low, one.high) for one in bins for x in (one.start, one.end)), PIT_BAND)
    # bins are equally wide, so each contains the same share of uniform PITs
    even = 1 / len(bins)
    return Chart(
        "Histogram of PITs. Under calibration, all bars are as high as the dashed line.",
        top_axis(1.0, PIT_TITLE),
        [
            area,
            Bars(bars, "share of outcomes", "outside the band"),
            # the ends of the band again, on top of the bars
            Line(area.low, kind="edge"),
            Line(area.high, kind="edge"),
            Line([(0, even), (1, even)], "calibrated"),
        ],
        Axis(0, top, OUTCOMES_TITLE, nice_ticks(0.0, top, 4), in_full),
        title="Distribution of PITs",
    )
