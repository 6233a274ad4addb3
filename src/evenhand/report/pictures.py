"""Charts of an audit: groups, rates by forecast and by the horizon, calibration and PITs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from evenhand._format import band, count, in_full, percent, points, points_in_full, whole
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
    error_axis,
    nice_ticks,
    rate_axis,
    share_axis,
)
from evenhand.report.document import short, tip_name
from evenhand.report.kinds import Kind
from evenhand.report.slots import name_of
from evenhand.results import AuditRows, Bin, CurvePoint, Finding, Reliability, Survival

DRAWN = 8
"""Most rows of a chart."""

NAME = 30
"""Most characters of the name of a row, so that it fits beside its mark."""

LEVEL = 0.8
"""The interval whose coverage is drawn."""


def overview(rows: AuditRows) -> Chart | None:
    """Return the picture of a page, by what is known: rates, coverage, or errors of groups."""
    kind, leading = Kind.of(rows), rows.leading
    tenths = [one for one in rows.by_forecast if None not in (one.predicted, one.rate)]
    if kind.has_rates and len(tenths) > 1:
        return by_forecast(tenths, rows)
    if overview_is_survival(rows):
        return survival(rows)
    drawn = list(groups_drawn(rows))
    covered = [one for one in drawn if one.coverage_80 is not None]
    # a mark at 80% must not stand for a problem of another kind
    is_plain = leading is None or abs((leading.coverage_80 or LEVEL) - LEVEL) > rows.tolerance
    if kind.has_coverage and covered and is_plain:
        return coverage(covered, rows)
    return errors([one for one in drawn if one.size.value is not None], rows)


def overview_is_survival(rows: AuditRows) -> bool:
    """Whether the picture of a page has rates by the horizon: those of the worst group are known."""
    known = {one.group for one in rows.survival}
    return bool(known) and (rows.leading is None or rows.leading.group in known)


def groups_drawn(rows: AuditRows) -> Iterable[Finding]:
    """Yield everyone, the worst groups that share no feature, named groups, then others."""
    named = sorted(rows.named, key=lambda one: one.rank)
    others = sorted(rows.examined, key=lambda one: one.rank)
    found: list[Finding] = []
    for one in (*rows.overall, *rows.listed, *named, *others):
        is_shown = one in rows.overall or one.is_judged
        # the people of a positive part are not those of the other groups
        if is_shown and one.same_as is None and one not in (*found, *rows.positive_part):
            found.append(one)
    return found[:DRAWN]


def _name(one: Finding, rows: AuditRows) -> str:
    name = "everyone" if one is rows.everyone else name_of(one, rows)
    # the range of a group by the forecast is in the table
    name = name.partition(" (")[0] if one.key is not None else name
    return short(f"{name[:1].upper()}{name[1:]}", NAME)


def _row(one: Finding, rows: AuditRows) -> Row:
    size = one.size
    reach = str(tables.estimate(size, points).below)
    values = (points(size.value), reach if reach != "-" else "")
    return Row(_name(one, rows), whole(one.n), values, one is rows.leading)


def _tip(one: Finding, rows: AuditRows, what: str) -> str:
    result = tables.result(one, rows).text
    return f"{tip_name(name_of(one, rows))}: {what} ({count(one.n, 'row')}); {result}."


def _marks(places: Iterable[tuple[Finding, Point]]) -> list[Layer]:
    """Return marks: red squares where a problem was found, grey circles elsewhere."""
    listed = list(places)
    bad = [replace(point, is_off=True) for one, point in listed if one.problem]
    others = [point for one, point in listed if not one.problem]
    return [
        Points(others, "none found", "grey", "hollow"),
        Points(bad, "problem found", "red", "square"),
    ]


def _note(drawn: Sequence[Finding], rows: AuditRows) -> str:
    n = len(rows.examined) + 1
    which = f"{len(drawn)} of {count(n, 'group')}. " if n > len(drawn) else ""
    return f"{which}Small number: rows."


def coverage(drawn: Sequence[Finding], rows: AuditRows) -> Chart:
    """Draw how many outcomes the 80% interval covers, with errors and intervals beside."""
    values = [(one, one.coverage_80 or 0.0) for one in drawn]
    # room for the label left of the least mark
    low = max(0.0, int(10 * min(0.5, *(value - 0.1 for _, value in values))) / 10)
    ticks = [tick for tick in nice_ticks(low, 1.0, 6) if abs(tick - LEVEL) > 0.01]
    marks, labels = [], []
    for i, (one, value) in enumerate(values):
        y = -i - 0.5
        tip = _tip(one, rows, f"the 80% interval covers {percent(value)}")
        marks.append((one, Point(value, y, tip, stem=(LEVEL, value))))
        labels.append(Label(value, y, percent(value), "left" if value < LEVEL else "right"))
    n = len(drawn)
    return Chart(
        "Share of outcomes that the 80% interval covers, by group; the numbers are in the table.",
        Axis(low, 1.0, "", ticks, in_full),
        [
            Line([(LEVEL, -n), (LEVEL, 0)]),
            Label(LEVEL, 0, "should be 80%", "above", is_reference=True),
            *_marks(marks),
            *labels,
        ],
        title="How many outcomes does the 80% interval cover?",
        note=_note(drawn, rows),
        rows=[_row(one, rows) for one in drawn],
        heads=["error in points", "interval"],
    )


def errors(drawn: Sequence[Finding], rows: AuditRows) -> Chart | None:
    """Draw errors of groups with their intervals and the tolerance; None without errors."""
    if not drawn:
        return None
    marks = []
    for i, one in enumerate(drawn):
        size = one.size
        value, low = max(size.value or 0.0, 0.0), size.low
        # without an upper end, the whisker reaches from the lower end to the estimate
        across = None if low is None else (max(low, 0.0), value if size.high is None else size.high)
        reach = "" if low is None else f" ({tables.estimate(size, points).below})"
        tip = _tip(one, rows, f"off by {points(value)} points{reach}")
        marks.append((one, Point(value, -i - 0.5, tip, across=across)))
    most = max(end for _, point in marks for end in (point.x, *(point.across or ())))
    axis, n = error_axis(most, "0 is perfect"), len(drawn)
    edge = min(rows.tolerance, axis.high)
    zone = f"tolerance: up to {points_in_full(rows.tolerance)} points"
    return Chart(
        "Errors of groups with intervals; the numbers are in the table.",
        axis,
        [Area([(0, -n), (0, 0)], [(edge, -n), (edge, 0)], zone), *_marks(marks)],
        title="Error of the forecasts in points, by group",
        note=_note(drawn, rows),
        rows=[_row(one, rows) for one in drawn],
        heads=["error in points", "interval"],
    )


def by_forecast(tenths: Sequence[Finding], rows: AuditRows) -> Chart:
    """Draw predicted and observed rates by tenth of the probability."""
    n = len(tenths)
    ends = [(one.predicted or 0.0) + (one.bias_high or 0.0) for one in tenths]
    axis = rate_axis(max(ends + [one.predicted or 0.0 for one in tenths]), "")
    layers: list[Layer] = []
    marks = []
    for i, one in enumerate(tenths, 1):
        predicted, rate = one.predicted or 0.0, one.rate or 0.0
        tip = (
            f"{tip_name(name_of(one, rows))}: {percent(predicted)} predicted,"
            f" {percent(rate)} observed; {tables.result(one, rows).text}."
        )
        label = "predicted" if i == 1 else ""
        layers.append(Line([(i - 0.36, predicted), (i + 0.36, predicted)], label, "level", tip=tip))
        known = None not in (one.bias_low, one.bias_high)
        reach = (predicted + (one.bias_low or 0.0), predicted + (one.bias_high or 0.0))
        reach = (max(reach[0], 0.0), min(reach[1], 1.0))
        marks.append((one, Point(i, rate, tip, upright=reach if known else None)))
    worst = min((one for one in tenths if one.problem), key=lambda one: one.rank, default=None)
    if worst is not None:
        x = tenths.index(worst) + 1
        side = "left" if x > n / 2 else "right"
        shift = -0.36 if side == "left" else 0.36
        layers += [
            Label(x + shift, worst.predicted or 0.0, f"predicted {percent(worst.predicted)}", side,
                  is_reference=True),
            Label(x, worst.rate or 0.0, f"observed {percent(worst.rate)}", side),
        ]  # fmt: skip
    part = "tenth" if n == 10 else "part"
    return Chart(
        f"Predicted and observed rate, by {part} of the forecast.",
        Axis(
            0.5, n + 0.5, f"{part} of the forecast, lowest to highest", range(1, n + 1), whole_tick
        ),
        [*layers, *_marks(marks)],
        axis,
        title=f"Predicted and observed, by {part} of the forecast",
        height=300,
    )


def whole_tick(value: float) -> str:
    """Write the number of a part."""
    return f"{value:.0f}"


def survival(rows: AuditRows) -> Chart | None:
    """Draw predicted and observed rates by the horizon by group; None without rates."""
    found = {one.group: one for one in rows.groups}
    drawn = tables.survival_rows(rows)[:DRAWN]
    if not drawn:
        return None
    ends = [end or 0.0 for one in drawn for end in (one.predicted, one.observed, one.high)]
    layers: list[Layer] = []
    marks = []
    for i, one in enumerate(drawn):
        predicted, observed = one.predicted or 0.0, one.observed or 0.0
        y = -i - 0.5
        tip = (
            f"{tip_name(one.group)}: {percent(predicted)} predicted, {percent(observed)} observed"
            f" ({band(percent, one.low, one.high)})."
        )
        label = "" if i else "predicted"
        layers.append(Line([(predicted, y - 0.3), (predicted, y + 0.3)], label, "level", tip=tip))
        across = None if None in (one.low, one.high) else (one.low or 0.0, one.high or 0.0)
        finding = found.get(one.group) or Finding(group=one.group, n=one.n)
        marks.append((finding, Point(observed, y, tip, across=across)))
    return Chart(
        "Predicted and observed rate by the horizon, by group; the numbers are in the table.",
        rate_axis(max(ends), ""),
        [*layers, *_marks(marks)],
        title=f"Predicted and observed rate of the event by {Kind.of(rows).horizon}",
        note="Mark: observed (Kaplan-Meier), with its interval. Small number: rows.",
        rows=[_survival_row(one, rows, found.get(one.group)) for one in drawn],
        heads=["predicted", "observed"],
    )


def _survival_row(one: Survival, rows: AuditRows, found: Finding | None) -> Row:
    name = one.group if found is None else _name(found, rows)
    is_strong = found is not None and found is rows.leading
    return Row(
        short(name, NAME), whole(one.n), (percent(one.predicted), percent(one.observed)), is_strong
    )


# --- calibration of everyone


def calibration(rows: AuditRows) -> Chart | None:
    """Draw observed shares by predicted probability; None if they are not known."""
    curve = [one for one in rows.calibration if None not in (one.level, one.observed)]
    if not curve:
        return None

    def is_off(one: CurvePoint) -> bool:
        # the band holds for all levels at once: one level outside is evidence against calibration
        level = one.level or 0.0
        return (one.low is not None and level < one.low) or (
            one.high is not None and level > one.high
        )

    marks = [
        Point(
            one.level or 0.0,
            one.observed or 0.0,
            f"Predicted {in_full(one.level)}: {percent(one.observed)} of outcomes lie at or below"
            f" this quantile (95% band {band(percent, one.low, one.high)}).",
            is_off(one),
        )
        for one in curve
    ]
    off = sum(point.is_off for point in marks)
    where = f"{off} of {count(len(curve), 'level')}" if off else "every level"
    verb = "does not contain" if off else "contains"
    area = Area.of(
        ((one.level or 0.0, one.low, one.high) for one in curve), "95% band, all at once"
    )
    return Chart(
        "Calibration curve: share of outcomes at or below the forecast quantile of each level.",
        share_axis("Predicted probability"),
        [
            area,
            Line([(0, 0), (1, 1)], "right forecasts"),
            Points(marks, "observed", joined_by="line", off_label="outside the band"),
        ],
        share_axis("Share of outcomes at or below"),
        title="Calibration curve",
        note=f"At {where}, the band {verb} the predicted probability." if area.low else "",
        numbers=tables.calibration(rows),
    )


def pit(rows: AuditRows) -> Chart | None:
    """Draw the distribution of PITs with its band under calibration; None if it is not known."""
    bins = [one for one in rows.pit if one.share is not None]
    if not bins:
        return None
    top = max(end or 0.0 for one in bins for end in (one.share, one.high)) * 1.08 or 1.0
    bars = list(map(_bar, bins))
    # steps along the ends of the band
    area = Area.of(((x, one.low, one.high) for one in bins for x in (one.start, one.end)), PIT_BAND)
    # bins are equally wide, so each contains the same share of uniform PITs
    even = 1 / len(bins)
    outside = sum(bar.is_off for bar in bars)
    inside = "All bars lie within the band." if area.low else ""
    return Chart(
        "Histogram of PITs. Under calibration, all bars are as high as the dashed line.",
        share_axis(PIT_TITLE),
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
        note=f"{count(outside, 'bar lies', 'bars lie')} outside the band." if outside else inside,
        numbers=tables.pit(rows),
    )


def _bar(one: Bin) -> Bar:
    share = one.share or 0.0
    is_off = (one.low is not None and share < one.low) or (
        one.high is not None and share > one.high
    )
    tip = (
        f"PIT {in_full(one.start)} to {in_full(one.end)}: {percent(share)} of outcomes; under"
        f" calibration {band(percent, one.low, one.high)}.{' Outside the band.' if is_off else ''}"
    )
    return Bar(one.start, one.end, share, tip, is_off)


def reliability(rows: AuditRows) -> Chart | None:
    """Draw event rates of everyone by predicted probability; None if they are not known."""
    bins = [one for one in rows.reliability if None not in (one.probability, one.rate)]
    bins = [one for one in bins if one.group == bins[0].group]
    if not bins:
        return None
    curve = [one for one in rows.calibration if None not in (one.probability, one.rate)]
    drawn: Sequence[Reliability | CurvePoint] = curve or bins
    ends = [end or 0.0 for one in (*bins, *curve) for end in (one.probability, one.rate, one.high)]
    axis = rate_axis(max(ends), "Mean predicted probability")
    marks = [
        Point(
            one.probability or 0.0,
            one.rate or 0.0,
            f"Predicted {percent(one.probability)} on average: the rate is {percent(one.rate)}"
            f" (interval {band(percent, one.low, one.high)}, {whole(one.n)} rows).",
        )
        for one in bins
    ]
    label = "95% band of the curve" if curve else "95% intervals, all at once"
    return Chart(
        "Event rates of everyone by predicted probability.",
        axis,
        [
            Area.of(((one.probability or 0.0, one.low, one.high) for one in drawn), label),
            Line([(0, 0), (axis.high, axis.high)], "right forecasts"),
            Line([(o.probability or 0.0, o.rate or 0.0) for o in curve], "isotonic curve", "curve"),
            Points(marks, "observed rate", joined_by="nothing" if curve else "line"),
        ],
        replace(axis, title="Observed rate"),
        title="Reliability diagram",
    )
