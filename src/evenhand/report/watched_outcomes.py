"""Charts of the outcomes of a watch: the worst group beside the promise, and delays."""

from __future__ import annotations

from evenhand._format import (
    at_most,
    count,
    in_full,
    is_known,
    percent,
    plain_number,
    points,
    points_in_full,
    whole,
)
from evenhand._table import Cells, Column, Table, numeric
from evenhand.report.charts import (
    Area,
    Axis,
    Bar,
    Bars,
    Chart,
    Layer,
    Line,
    Point,
    Points,
    error_axis,
    nice_ticks,
)
from evenhand.report.records import Values
from evenhand.report.watched import Watched, days_in_words


def promise_chart(watched: Watched) -> Chart | None:
    """Draw the estimate of the worst group beside what was promised; None without an estimate."""
    promise, settings = watched.promise or {}, watched.settings
    estimate, best, worst = (promise.get(key) for key in ("estimate", "best_case", "worst_case"))
    targets, target = settings.get("targets"), settings.get("target")
    if targets is not None:
        # the bound of the side that is estimated
        target = targets[promise.get("direction") == "lower"]
    if not (is_known(estimate) and is_known(target)):
        return None
    ends = (best, worst) if is_known(best) and is_known(worst) else (estimate, estimate)
    axis = _points_axis(max(1.1 * target, *ends))
    tip = (
        f"Estimate: {points(estimate)} points; {points(ends[0])} to {points(ends[1])} with missing"
        " outcomes at best and at worst."
    )
    promised = f"promised: {at_most(target)} points or less"
    return Chart(
        "Estimate of the worst group, with missing outcomes at best and at worst, beside the bound"
        " that was promised.",
        axis,
        [
            Area([(0.0, -1.0), (target, -1.0)], [(0.0, 0.0), (target, 0.0)], promised),
            Points(
                [Point(estimate, -0.7, tip, across=ends)],
                "estimate, with missing outcomes at best and at worst",
            ),
        ],
        size="rows",
        names=[(f"worst {in_full(settings.get('mass'))} of the people watched", points(estimate))],
    )


def _points_axis(most: float) -> Axis:
    """Return an axis of points, which may be more than the largest error of a distribution."""
    if most <= 0.5:
        return error_axis(most, "Points")
    return Axis(0, 1, "Points", nice_ticks(0.0, 1.0), points_in_full)


def delays_chart(delays: Values, horizon: float | None) -> Chart | None:
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
    bars = [
        Bar(low, high, n, _delay_tip(low, high, n, known), _is_late(low, horizon))
        for low, high, n in bins
    ]
    low, high = bins[0][0], bins[-1][1]
    layers: list[Layer] = [Bars(bars, "outcomes", "after the horizon")]
    if horizon is not None and low < horizon <= high:
        layers.append(Line([(horizon, 0), (horizon, top)], f"horizon: {days_in_words(horizon)}"))
    cells: Cells[tuple[float, float, int]] = {
        Column("days"): lambda one: f"{plain_number(one[0])} to {plain_number(one[1])}",
        numeric("outcomes"): lambda one: whole(one[2]),
    }
    return Chart(
        "Histogram of the days from a forecast to the record of its outcome.",
        Axis(low, high, "Days from forecast to outcome", nice_ticks(low, high, 6)),
        layers,
        Axis(0, top, "Outcomes", nice_ticks(0.0, top, 4)),
        title="Delays of outcomes",
        height=240,
        numbers=Table.of("Delays of outcomes", bins, cells),
    )


def _is_late(start: float, horizon: float | None) -> bool:
    return horizon is not None and start >= horizon


def _delay_tip(low: float, high: float, n: int, known: int) -> str:
    ends = f"{plain_number(low)} to {plain_number(high)} days"
    return f"{ends}: {count(n, 'outcome')}, {percent(n / known)}."
