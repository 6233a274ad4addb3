"""Sections on calibration: PITs, event rates by probability, and rates by a horizon."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from evenhand._format import (
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    is_known,
    number,
    percent,
    points,
    ratio,
    whole,
)
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report import charts
from evenhand.report.charts import OUTCOMES_TITLE, PIT_BAND, PIT_TITLE
from evenhand.report.document import Heading, Pair, Paragraph, Part, Section, tip_name
from evenhand.report.findings import MASS, Findings
from evenhand.report.records import (
    Bin,
    Level,
    Number,
    ProbabilityScores,
    Values,
    known,
    or_zero,
    records,
)
from evenhand.report.terms import IN_FEATURES, IN_TIME


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


# --- sections on probabilities of an event: reliability, and certified event rates and biases

PRINTED = 10
"""Most bins in text: those of everyone."""

BINS, BAND = "simultaneous intervals of the rates", "simultaneous band of the curve"
"""Labels of areas."""


@dataclass(frozen=True)
class ReliabilityBin:
    """People of a group with similar predicted probabilities, and the rate of the event."""

    group: str
    n: int
    probability: Number
    rate: Number
    low: Number
    high: Number


@dataclass(frozen=True)
class IsotonicPoint:
    """Isotonic estimate of the event rate at a probability, with its band."""

    probability: Number
    rate: Number
    low: Number
    high: Number


@dataclass(frozen=True)
class EventBound:
    """Certified bounds for the event in every group of a share of all people.

    `event_rate_below` is an upper bound for groups whose predicted probabilities are at most
    `below`, `event_rate_above` a lower bound for groups in which they are at least `above`.
    """

    mass: float
    below: Number
    event_rate_below: Number
    above: Number
    event_rate_above: Number
    bias_low: Number
    bias_high: Number


def reliability_section(findings: Findings) -> Section | None:
    """Show predicted probabilities beside event rates; nothing if outcomes are no events."""
    bins = records(ReliabilityBin, findings.values.get("reliability"))
    bins = tuple(one for one in bins if known(one.probability, one.rate))
    if not bins:
        return None
    terms = findings.terms
    event = "1" if terms.is_event else f"an outcome other than {terms.atom}"
    method = ""
    if terms.is_time:
        event = f"that of the times, by {terms.horizon}"
        method = f" Rates are Kaplan-Meier estimates, which assume that {IN_TIME}."
    confidence = confidence_in_full(findings.confidence)
    text = (
        f"The event is {event}. People are divided by predicted probability; under calibration, the"
        " rate of the event in each bin equals the mean predicted probability. The intervals of all"
        f" bins of a group contain its rates at once, with {confidence} confidence.{method}"
    )
    names = list(dict.fromkeys(one.group for one in bins))
    everyone = [one for one in bins if one.group == names[0]]
    cells: Cells[ReliabilityBin] = {
        Column("group"): lambda one: one.group,
        numeric("mean predicted probability"): lambda one: Value(
            percent(one.probability), order=one.probability
        ),
        numeric("event rate"): lambda one: Value(
            percent(one.rate), band(percent, one.low, one.high), one.rate
        ),
        numeric("rows"): lambda one: Value(whole(one.n), order=one.n),
    }
    search = "Find a group" if len(names) > 1 else ""
    table = Table.of("Reliability by group", bins, cells, search=search, printed=PRINTED)
    parts: list[Part] = [Paragraph(text), _rate_chart(everyone, findings), table]
    return Section("Predicted probabilities and event rates", parts, "reliability")


def _rate_chart(bins: Sequence[ReliabilityBin], findings: Findings) -> charts.Chart:
    """Draw the event rates of everyone by predicted probability, of 0/1 outcomes as a curve."""
    curve = records(IsotonicPoint, findings.values.get("calibration"))
    curve = tuple(one for one in curve if known(one.probability, one.rate))
    drawn: Sequence[ReliabilityBin | IsotonicPoint] = curve or bins
    found: Sequence[ReliabilityBin | IsotonicPoint] = [*bins, *curve]
    ends = (end for one in found for end in (one.probability, one.rate, one.high))
    axis = charts.rate_axis(max(map(or_zero, ends)), "Mean predicted probability")
    places = [(or_zero(one.probability), or_zero(one.rate)) for one in curve]
    reach = ((or_zero(one.probability), one.low, one.high) for one in drawn)
    layers: list[charts.Layer] = [
        charts.Area.of(reach, BAND if curve else BINS),
        charts.Line([(0, 0), (axis.high, axis.high)], "calibrated"),
        charts.Line(places, "isotonic curve", kind="curve"),
        charts.Points(
            list(map(_rate_point, bins)), "event rate", joined_by="nothing" if curve else "line"
        ),
    ]
    return charts.Chart(
        "Event rates by predicted probability: everyone.",
        axis,
        layers,
        replace(axis, title="Event rate"),
    )


def _rate_point(one: ReliabilityBin) -> charts.Point:
    tip = (
        f"{tip_name(one.group)}: predicted {percent(one.probability)} on average, the event rate is"
        f" {percent(one.rate)} (interval {band(percent, one.low, one.high)}, {whole(one.n)} rows)."
    )
    return charts.Point(or_zero(one.probability), or_zero(one.rate), tip)


def scores_section(findings: Findings) -> Section | None:
    """Show scores of the probabilities of everyone and of groups; nothing without them."""
    rows = records(ProbabilityScores, findings.values.get("probability_scores"))
    if not rows:
        return None
    text = (
        "The calibration slope is below 1 if probabilities are too extreme, and above 1 if they are"
        " not extreme enough; the intercept is 0 if the event rate is right. O:E is the number of"
        " events divided by the expected number. ICI is the mean, Emax the largest distance of the"
        " smoothed event rate from the probability. Each interval holds for itself, with"
        f" {confidence_in_full(findings.confidence)} confidence."
    )

    def with_ends(key: str) -> Callable[[ProbabilityScores], Value]:
        return lambda one: Value(
            ratio(getattr(one, key)),
            band(ratio, getattr(one, f"{key}_low"), getattr(one, f"{key}_high")),
            getattr(one, key),
        )

    cells: Cells[ProbabilityScores] = {
        Column("group"): lambda one: one.group,
        numeric("slope"): with_ends("slope"),
        numeric("intercept"): with_ends("intercept"),
        numeric("O:E"): with_ends("observed_expected"),
        numeric("ICI (points)"): lambda one: points(one.ici),
        numeric("Emax (points)"): lambda one: points(one.e_max),
        numeric("AUC"): lambda one: number(one.auc),
        numeric("Brier"): lambda one: number(one.brier),
        numeric("scaled Brier"): lambda one: percent(one.scaled_brier),
        numeric("log loss"): lambda one: number(one.log_loss),
        numeric("events", in_text=False): lambda one: whole(one.n_events),
        numeric("rows"): lambda one: Value(whole(one.n), order=one.n),
    }
    table = Table.of("Scores of probabilities", rows, cells)
    return Section("Scores of probabilities", [Paragraph(text), table], "probabilities")


def event_bounds(findings: Findings) -> tuple[EventBound, ...]:
    """Return the certified bounds for events, by increasing group size."""
    proof = findings.values.get("certificate") or {}
    return tuple(sorted(records(EventBound, proof.get("events")), key=lambda one: one.mass))


def event_parts(findings: Findings) -> list[Part]:
    """Show certified event rates and biases of every group; nothing without them."""
    bounds = event_bounds(findings)
    if not bounds:
        return []
    text = (
        "Group sizes are shares of all people. If all people of a group have predicted"
        " probabilities of at most p, the share that has the event is at most the bound, however"
        " the group is defined. No data can prove less. The bounds of event rates hold at once for"
        " all p and sizes, and so do those of the difference of event rate and mean probability,"
        f" each with {findings.level} confidence."
    )
    cells: Cells[EventBound] = {
        Column("every group of at least"): lambda b: f"{in_full(b.mass)} of people",
        numeric("rate minus probability at least (points)"): lambda b: points(b.bias_low, "down"),
        numeric("at most"): lambda b: points(b.bias_high, "up"),
        Column("predicted at most"): lambda b: in_full(b.below),
        numeric("have the event at most"): lambda b: at_most(b.event_rate_below, percent),
        Column("predicted at least"): lambda b: in_full(b.above),
        numeric("have the event at least"): lambda b: at_least(b.event_rate_above, percent),
    }
    table = Table.of("Bounds for events", bounds, cells)
    return [Heading("For the event, in every group"), Paragraph(text), table]


def event_sentence(findings: Findings) -> str | None:
    """Return the certified event rate of groups of a fifth of all people; None without one."""
    for one in event_bounds(findings):
        is_bounded = is_known(one.below) and or_zero(one.event_rate_below) < 1
        if math.isclose(one.mass, MASS) and is_bounded:
            return (
                f"In every group of at least {in_full(one.mass)} of people with predicted"
                f" probabilities up to {in_full(or_zero(one.below))}, at most"
                f" {at_most(one.event_rate_below, percent)} have the event ({findings.level}"
                " confidence)."
            )
    return None


# --- section on the predicted probability of the event by the horizon, and its observed rate

SEARCHED = 10
"""Most groups of a table without a search."""


@dataclass(frozen=True)
class SurvivalRow:
    """Predicted and observed rate of the event by the horizon in a group.

    `observed` is the Kaplan-Meier estimate with its interval, `least` and `most` are the ends of
    the rate whatever happened to the people who are lost before the horizon.
    """

    group: str
    n: int
    n_events: int
    n_lost: int
    predicted: Number
    observed: Number
    low: Number
    high: Number
    least: Number
    most: Number

    @property
    def gap(self) -> float:
        """Distance of the observed rate from the prediction."""
        return abs(or_zero(self.observed) - or_zero(self.predicted))


def survival_rows(findings: Findings) -> list[SurvivalRow]:
    """Return everyone, then groups by falling distance."""
    rows = records(SurvivalRow, findings.values.get("survival"))
    shown = [row for row in rows if known(row.predicted, row.observed)]
    return shown[:1] + sorted(shown[1:], key=lambda row: -row.gap)


def survival_section(findings: Findings) -> Section | None:
    """Compare predicted and observed rates by the horizon; nothing without a horizon."""
    rows = survival_rows(findings)
    if not rows:
        return None
    horizon = findings.terms.horizon
    title = f"Probability of the event by {horizon}"
    explained = [Paragraph(text) for text in _explained(findings, len(rows))]
    return Section(title, [*explained, _survival_table(rows, title)], "survival")


def survival_sentence(findings: Findings) -> str | None:
    """Return the predicted and observed rate of everyone; None without a horizon."""
    rows = survival_rows(findings)
    if not rows:
        return None
    everyone = rows[0]
    return (
        f"By {findings.terms.horizon}, {percent(everyone.observed)} of people have the event"
        f" (Kaplan-Meier, interval {band(percent, everyone.low, everyone.high)});"
        f" {percent(everyone.predicted)} were predicted."
    )


def _explained(findings: Findings, n_groups: int) -> list[str]:
    horizon = findings.terms.horizon
    confidence = confidence_in_full(findings.confidence)
    every = f"all {n_groups} rates at once" if n_groups > 1 else "the rate"
    return [
        f"The predicted probability of the event by {horizon} is one minus the survival probability"
        " at that time. Under calibration, its mean in a group equals the rate of the event.",
        f"Observed rates are Kaplan-Meier estimates. They assume that {IN_TIME}. Their intervals"
        f" are asymptotic and contain {every} with {confidence} confidence.",
        "At the lower end of the range without assumption nobody who was cut off before"
        f" {horizon} had the event by then, at its upper end everybody; with the same confidence.",
    ]


def _survival_table(rows: Sequence[SurvivalRow], title: str) -> Table:
    cells: Cells[SurvivalRow] = {
        Column("group"): lambda row: row.group,
        numeric("predicted"): lambda row: Value(percent(row.predicted), order=row.predicted),
        numeric("observed"): lambda row: Value(
            percent(row.observed), band(percent, row.low, row.high), row.observed
        ),
        numeric("without assumption"): lambda row: Value(
            band(percent, row.least, row.most), order=row.least
        ),
        numeric("events"): lambda row: Value(whole(row.n_events), order=row.n_events),
        numeric("cut off"): lambda row: Value(whole(row.n_lost), order=row.n_lost),
        numeric("rows"): lambda row: Value(whole(row.n), order=row.n),
    }
    search = "Find a group" if len(rows) > SEARCHED else ""
    return Table.of(title, rows, cells, search=search)
