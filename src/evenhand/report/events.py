"""Sections on probabilities of an event: reliability, and certified event rates and biases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evenhand._format import (
    UNKNOWN,
    at_least,
    at_most,
    band,
    confidence_in_full,
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
from evenhand.report.document import Heading, Paragraph, Part, Section, tip_name
from evenhand.report.findings import MASS, Findings
from evenhand.report.records import Number, ProbabilityScores, known, or_zero, records
from evenhand.report.terms import IN_TIME

PRINTED = 10
"""Most bins in text: those of everyone."""

BINS, BAND = "simultaneous intervals of the rates", "simultaneous band of the curve"
"""Labels of areas."""


@dataclass(frozen=True)
class ReliabilityBin:
    """People of a group with similar predicted probabilities, and the rate of the event."""

    group: str
    bin: int
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


def _rate_top(*ends: Number) -> float:
    """Return the end of the axes: rare events need a scale of their own."""
    top = max(map(or_zero, ends))
    return next((end for end in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8) if top <= end), 1.0)


def _rate_chart(bins: Sequence[ReliabilityBin], findings: Findings) -> charts.Chart:
    """Draw the event rates of everyone by predicted probability, of 0/1 outcomes as a curve."""
    marks = [_rate_point(one) for one in bins]
    curve = records(IsotonicPoint, findings.values.get("calibration"))
    curve = tuple(one for one in curve if known(one.probability, one.rate))
    end = max(_rate_top(one.probability, one.rate, one.high) for one in bins)
    layers: list[charts.Layer] = [
        charts.Area.of(((or_zero(one.probability), one.low, one.high) for one in bins), BINS),
        charts.Line([(0, 0), (end, end)], "calibrated"),
        charts.Points(marks, "event rate", joined_by="line"),
    ]
    if curve:
        places = [(or_zero(one.probability), or_zero(one.rate)) for one in curve]
        end = max(end, *(_rate_top(one.probability, one.rate, one.high) for one in curve))
        layers = [
            charts.Area.of(((or_zero(one.probability), one.low, one.high) for one in curve), BAND),
            charts.Line([(0, 0), (end, end)], "calibrated"),
            charts.Line(places, "isotonic curve", kind="curve"),
            charts.Points(marks, "event rate"),
        ]
    ticks = charts.nice_ticks(0.0, end, 5)
    return charts.Chart(
        "Event rates by predicted probability: everyone.",
        charts.Axis(0, end, "Mean predicted probability", ticks, in_full),
        layers,
        charts.Axis(0, end, "Event rate", ticks, in_full),
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
        Column("predicted at most"): lambda b: _share(b.below),
        numeric("have the event at most"): lambda b: at_most(b.event_rate_below, percent),
        Column("predicted at least"): lambda b: _share(b.above),
        numeric("have the event at least"): lambda b: at_least(b.event_rate_above, percent),
    }
    table = Table.of("Bounds for events", bounds, cells)
    return [Heading("For the event, in every group"), Paragraph(text), table]


def _share(probability: Number) -> str:
    return UNKNOWN if probability is None else in_full(probability)


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
