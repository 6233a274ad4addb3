"""Charts of an audit: groups, rates by forecast and by the horizon, calibration and PITs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from evenhand._escape import short
from evenhand._format import UNKNOWN, band, count, in_full, percent, points, points_in_full, whole
from evenhand.report import tables
from evenhand.report.charts import (
    OUTCOMES_TITLE,
    PIT_BAND,
    PIT_TITLE,
    Area,
    Axis,
    Bar,
    Bars,
    Chart,
    Label,
    Layer,
    Line,
    Point,
    Points,
    Row,
    Side,
    error_axis,
    nice_ticks,
    plain,
    rate_axis,
)
from evenhand.report.kinds import Kind, one_line
from evenhand.report.slots import capitalized, name_of
from evenhand.results import AuditRows, Finding

DRAWN = 8
"""Most rows of a chart."""

NAME = 60
"""Most characters of the name of a row, so that its two lines fit beside its mark."""

LEVEL = 0.8
"""The interval whose coverage is drawn."""

# --- the picture of a page


def overview(rows: AuditRows) -> Chart | None:
    """Return the picture of a page, by what is known: rates, coverage, or errors of groups."""
    kind, leading = Kind.of(rows), rows.leading
    tenths = [one for one in rows.by_forecast if None not in (one.predicted, one.rate)]
    if kind.has_rates and len(tenths) > 1:
        return by_forecast(tenths, rows)
    if overview_is_survival(rows):
        return survival(rows)
    drawn = [one for one in groups_drawn(rows) if one.size.value is not None]
    is_covered = not kind.has_rates and all(one.coverage_80 is not None for one in drawn)
    # a mark at 80% must not stand for a problem of another kind
    is_plain = leading is None or abs((leading.coverage_80 or LEVEL) - LEVEL) > rows.tolerance
    return groups(drawn, rows, is_covered=is_covered and is_plain) if drawn else None


def overview_is_survival(rows: AuditRows) -> bool:
    """Whether the picture has rates by the horizon: those of the worst group are known."""
    known = {one.group for one in rows.survival}
    return bool(known) and (rows.leading is None or rows.leading.group in known)


def groups_drawn(rows: AuditRows) -> list[Finding]:
    """Return everyone, the worst groups that share no feature, named groups, then others."""
    named = sorted(rows.named, key=lambda one: one.rank)
    others = sorted(rows.examined, key=lambda one: one.rank)
    # a group by features and one found by search may have the same name: the worse one is drawn
    found: dict[str, Finding] = {}
    for one in (*rows.overall, *rows.listed, *named, *others):
        is_shown = one in rows.overall or one.is_judged
        # the people of a positive part are not those of the other groups
        if is_shown and one.same_as is None and one not in rows.positive_part:
            found.setdefault(name_of(one, rows), one)
        if len(found) == DRAWN:
            break
    return list(found.values())


def _row(one: Finding, rows: AuditRows, values: Sequence[str], summary: str = "") -> Row:
    name = "everyone" if one is rows.everyone else name_of(one, rows)
    # the range of a group by the forecast is in the table
    name = name.partition(" (")[0] if one.key is not None else name
    return Row(short(capitalized(name), NAME), whole(one.n), values, one is rows.leading, summary)


def _marks(places: Iterable[tuple[Finding, Point]], rows: AuditRows) -> list[Layer]:
    """Return marks with their results: red squares where a problem was found, else circles."""
    layers: dict[bool, list[Point]] = {False: [], True: []}
    for one, point in places:
        result = tables.result(one, rows).text
        tip = f"{one_line(name_of(one, rows))}: {point.tip} ({count(one.n, 'row')}); {result}."
        layers[one.problem].append(replace(point, tip=tip))
    return [
        Points(layers[False], "none found", "grey", "hollow"),
        Points(layers[True], "problem found", "red", "square"),
    ]


def groups(drawn: Sequence[Finding], rows: AuditRows, *, is_covered: bool) -> Chart:
    """Draw what the 80% interval covers by group, or errors; errors and intervals stand beside."""
    named = []
    for one in drawn:
        error = tables.estimate(one.size, points)
        values = (error.text, "" if error.below == UNKNOWN else error.below)
        named.append(_row(one, rows, values, "" if is_covered else str(error)))
    n = sum(one is not rows.everyone and one is not rows.given for one in drawn)
    note = f"Everyone and {n} of {count(len(rows.examined), 'group')}. Small number: rows."
    note += " Bold: largest lower end of the error." * (rows.leading in drawn)
    title, axis, marks, layers = (_coverage if is_covered else _errors)(drawn, rows)
    return Chart(
        f"{title} The table has the numbers.",
        axis,
        [*layers[:2], *_marks(zip(drawn, marks, strict=True), rows), *layers[2:]],
        title=title.rstrip("."),
        note=note,
        rows=named,
        heads=("error in points", "interval"),
    )


Drawn = tuple[str, Axis, list[Point], list[Layer]]
"""Title, axis, marks of the groups, and other layers, of which two are below the marks."""


def _coverage(drawn: Sequence[Finding], rows: AuditRows) -> Drawn:
    values = [one.coverage_80 or 0.0 for one in drawn]
    # room for the label left of the least mark
    low = max(0.0, int(10 * min(0.5, *(value - 0.1 for value in values))) / 10)
    ticks = [tick for tick in nice_ticks(low, 1.0, 6) if abs(tick - LEVEL) > 0.01]
    places = [(value, -i - 0.5) for i, value in enumerate(values)]
    marks = [
        Point(x, y, f"the 80% interval covers {percent(x)}", stem=(LEVEL, x)) for x, y in places
    ]
    layers: list[Layer] = [
        Line([(LEVEL, -len(drawn)), (LEVEL, 0)]),
        Label(LEVEL, 0, "should be 80%", "above", is_reference=True),
        *(Label(x, y, percent(x), "left" if x < LEVEL else "right") for x, y in places),
    ]
    title = "How many outcomes does the 80% interval cover?"
    return title, Axis(low, 1.0, "", ticks, in_full), marks, layers


def _errors(drawn: Sequence[Finding], rows: AuditRows) -> Drawn:
    marks = []
    for i, one in enumerate(drawn):
        low, value = one.size.low, max(one.size.value or 0.0, 0.0)
        # without an upper end, the whisker reaches from the lower end to the estimate
        high = value if one.size.high is None else one.size.high
        across = None if low is None else (max(low, 0.0), high)
        tip = f"off by {tables.estimate(one.size, points)} points"
        marks.append(Point(value, -i - 0.5, tip, across=across))
    axis = error_axis(
        max(end for one in marks for end in (one.x, *(one.across or ()))), "0 is perfect"
    )
    n, edge = len(drawn), min(rows.tolerance, axis.high)
    zone = f"tolerance: up to {points_in_full(rows.tolerance)} points"
    area = Area([(0, -n), (0, 0)], [(edge, -n), (edge, 0)], zone)
    return "Error of the forecasts in points, by group.", axis, marks, [area]


def by_forecast(tenths: Sequence[Finding], rows: AuditRows) -> Chart:
    """Draw predicted and observed rates by tenth of the probability."""
    n, part = len(tenths), "tenth" if len(tenths) == 10 else "part"
    layers: list[Layer] = []
    marks = []
    for i, one in enumerate(tenths, 1):
        predicted, rate = one.predicted or 0.0, one.rate or 0.0
        tip = f"{percent(predicted)} predicted, {percent(rate)} observed"
        ends = [predicted + end for end in (one.bias_low, one.bias_high) if end is not None]
        upright = (max(ends[0], 0.0), min(ends[1], 1.0)) if len(ends) == 2 else None
        marks.append(Point(i, rate, tip, upright=upright))
        label = "predicted" if i == 1 else ""
        layers.append(Line([(i - 0.36, predicted), (i + 0.36, predicted)], label, "level"))
    worst = min((one for one in tenths if one.problem), key=lambda one: one.rank, default=None)
    if worst is not None:
        i, predicted = tenths.index(worst), worst.predicted or 0.0
        # above and below all marks of this tenth, so that no mark is covered
        low, high = marks[i].upright or (marks[i].y, marks[i].y)
        sides: tuple[Side, Side] = (
            ("above", "below") if marks[i].y > predicted else ("below", "above")
        )
        place = {"above": max(high, predicted), "below": min(low, predicted)}
        layers += [
            Label(i + 1, place[sides[0]], percent(marks[i].y), sides[0]),
            Label(i + 1, place[sides[1]], percent(predicted), sides[1], is_reference=True),
        ]
    most = max(end for point in marks for end in (point.y, *(point.upright or ())))
    title = f"{part} of the forecast, lowest to highest"
    return Chart(
        f"Predicted and observed rate, by {part} of the forecast; the table has the numbers.",
        Axis(0.5, n + 0.5, title, range(1, n + 1), plain),
        [*layers, *_marks(zip(tenths, marks, strict=True), rows)],
        rate_axis(max([most, *(one.predicted or 0.0 for one in tenths)]), ""),
        title=f"Predicted and observed, by {part} of the forecast",
        note="Mark: observed, with its interval.",
    )


def survival(rows: AuditRows) -> Chart | None:
    """Draw predicted and observed rates by the horizon by group; None without rates."""
    drawn = tables.survival_rows(rows)[:DRAWN]
    if not drawn:
        return None
    known = {one.group: one for one in rows.groups}
    found = [known.get(one.group) or Finding(group=one.group, n=one.n) for one in drawn]
    layers: list[Layer] = []
    marks = []
    for i, one in enumerate(drawn):
        predicted, observed, y = one.predicted or 0.0, one.observed or 0.0, -i - 0.5
        label = "" if i else "predicted"
        layers.append(Line([(predicted, y - 0.22), (predicted, y + 0.22)], label, "level"))
        reach = band(percent, one.low, one.high)
        tip = f"{percent(predicted)} predicted, {percent(observed)} observed ({reach})"
        across = None if one.low is None or one.high is None else (one.low, one.high)
        marks.append(Point(observed, y, tip, across=across))
    ends = [end or 0.0 for one in drawn for end in (one.predicted, one.observed, one.high)]
    return Chart(
        "Predicted and observed rate by the horizon, by group; the table has the numbers.",
        rate_axis(max(ends), ""),
        [*layers, *_marks(zip(found, marks, strict=True), rows)],
        title=f"Predicted and observed rate of the event by {Kind.of(rows).horizon}",
        note="Mark: observed (Kaplan-Meier), with its interval. Small number: rows.",
        rows=[
            _row(
                *(group, rows, (percent(one.predicted), percent(one.observed))),
                f"{percent(one.predicted)} predicted, {percent(one.observed)} observed",
            )
            for group, one in zip(found, drawn, strict=True)
        ],
        heads=("predicted", "observed"),
    )


# --- calibration of everyone


def calibration(rows: AuditRows) -> Chart | None:
    """Draw observed shares, or rates of an event, by predicted probability; None if unknown."""
    places = [
        (one.probability, one.rate, one) if rows.is_event else (one.level, one.observed, one)
        for one in rows.calibration
    ]
    curve = [(x, y, one.low, one.high) for x, y, one in places if x is not None and y is not None]
    # of events, bins of people are marked; the curve is isotonic
    bins = [one for one in rows.reliability if one.group == rows.reliability[0].group]
    seen = [
        (one.probability, one.rate, one.low, one.high)
        for one in bins
        if one.probability is not None and one.rate is not None
    ]
    if not (seen or curve):
        return None
    show = percent if rows.is_event else in_full
    marks = [
        Point(
            x,
            y,
            f"Predicted {show(x)}: observed {percent(y)} ({band(percent, low, high)}).",
            # intervals and bands hold for all marks at once: one that excludes x is evidence
            _is_outside(x, low, high),
        )
        for x, y, low, high in seen or curve
    ]
    ends = [end or 0.0 for one in (*seen, *curve) for end in (one[0], one[1], one[3])]
    axis = rate_axis(max(ends), "Predicted probability")
    band_of = [(x, low, high) for x, _, low, high in curve or seen]
    title = "Observed rate" if rows.is_event else "Share of outcomes at or below the quantile"
    return Chart(
        f"{title} by predicted probability, of everyone.",
        axis,
        [
            Area.of(band_of, "95% band of the curve" if curve else "95% intervals"),
            Line([(0, 0), (axis.high, axis.high)], "right forecasts"),
            Line([(x, y) for x, y, _, _ in curve], "isotonic curve" * rows.is_event, "curve"),
            Points(marks, "observed", off_label="interval excludes the predicted probability"),
        ],
        replace(axis, title=title),
        title="Reliability diagram" if rows.is_event else "Calibration curve",
    )


def _is_outside(value: float | None, low: float | None, high: float | None) -> bool:
    return value is not None and not (low or 0.0) <= value <= (1.0 if high is None else high)


def pit(rows: AuditRows) -> Chart | None:
    """Draw the distribution of PITs with its band under calibration; None if it is not known."""
    bins = [one for one in rows.pit if one.share is not None]
    if not bins:
        return None
    bars = []
    for one in bins:
        is_off = _is_outside(one.share, one.low, one.high)
        tip = (
            f"PIT {in_full(one.start)} to {in_full(one.end)}: {percent(one.share)} of outcomes;"
            f" under calibration {band(percent, one.low, one.high)}."
        )
        tip += " Outside the band." * is_off
        bars.append(Bar(one.start, one.end, one.share or 0.0, tip, is_off))
    top = max(end or 0.0 for one in bins for end in (one.share, one.high)) * 1.08 or 1.0
    # steps along the ends of the band
    area = Area.of(((x, one.low, one.high) for one in bins for x in (one.start, one.end)), PIT_BAND)
    # bins are equally wide, so each contains the same share of uniform PITs
    even = 1 / len(bins)
    return Chart(
        "Histogram of PITs. Under calibration, all bars are as high as the dashed line.",
        rate_axis(1.0, PIT_TITLE),
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
