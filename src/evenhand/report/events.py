"""Sections on probabilities of an event: reliability, and certified event rates and biases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evenhand._format import (
    UNKNOWN,
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    is_known,
    percent,
    points,
    whole,
)
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report import charts
from evenhand.report.assumptions import IN_TIME
from evenhand.report.coverage import MASS
from evenhand.report.document import Heading, Pair, Paragraph, Part, Section
from evenhand.report.findings import Findings
from evenhand.report.names import short, tip_name
from evenhand.report.records import Number, known, or_zero, records

DRAWN_GROUPS = 1
"""Groups drawn beside everyone: the one with the largest significant deviation."""

PRINTED = 10
"""Most bins in text: those of everyone."""


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

    @property
    def is_off(self) -> bool:
        """Whether the interval of the rate excludes the mean probability."""
        inside = or_zero(self.low) <= or_zero(self.probability) <= or_zero(self.high)
        return known(self.low, self.high, self.probability) and not inside


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
    shown = [names[0], *_worst(bins, names[1:])]
    end = _end(one for one in bins if one.group in shown)
    drawn = [_chart(_bins_of(bins, name), name, end) for name in shown]
    cells: Cells[ReliabilityBin] = {
        Column("group"): lambda one: one.group,
        numeric("mean predicted probability"): lambda one: Value(
            percent(one.probability), order=one.probability
        ),
        numeric("event rate"): lambda one: Value(
            percent(one.rate), band(percent, one.low, one.high), one.rate
        ),
        Column("finding"): _finding,
        numeric("rows"): lambda one: Value(whole(one.n), order=one.n),
    }
    dim = [i for i, one in enumerate(bins) if not one.is_off]
    search = "Find a group" if len(names) > 1 else ""
    table = Table.of("Reliability by group", bins, cells, dim=dim, search=search, printed=PRINTED)
    parts: list[Part] = [Paragraph(text), Pair(drawn[:1], drawn[1:]), table]
    return Section("Predicted probabilities and event rates", parts, "reliability")


def _bins_of(bins: Sequence[ReliabilityBin], group: str) -> list[ReliabilityBin]:
    return [one for one in bins if one.group == group]


def _worst(bins: Sequence[ReliabilityBin], names: Sequence[str]) -> list[str]:
    """Return the group with most people in bins that are significantly off, if there is one."""
    off = {name: sum(one.n for one in _bins_of(bins, name) if one.is_off) for name in names}
    worst = sorted((name for name in names if off[name]), key=lambda name: -off[name])
    return worst[:DRAWN_GROUPS]


def _finding(one: ReliabilityBin) -> str:
    if not one.is_off:
        return "not significantly off"
    side = "rarer" if or_zero(one.rate) < or_zero(one.probability) else "more frequent"
    return f"events {side} than predicted"


def _end(bins: Iterable[ReliabilityBin]) -> float:
    """Return the end of the axes: rare events need a scale of their own."""
    top = max(or_zero(end) for one in bins for end in (one.probability, one.rate, one.high))
    return next((end for end in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8) if top <= end), 1.0)


def _chart(bins: Sequence[ReliabilityBin], group: str, end: float) -> charts.Chart:
    """Draw the event rates of a group by predicted probability."""
    marks = [_point(one) for one in bins]
    ends = ((or_zero(one.probability), one.low, one.high) for one in bins)
    ticks = charts.nice_ticks(0.0, end, 5)
    off = sum(mark.is_off for mark in marks)
    verb = "does not contain" if off else "contains"
    where = f"{off} of {count(len(marks), 'bin')}" if off else "every bin"
    return charts.Chart(
        f"Event rates by predicted probability: {group}.",
        charts.Axis(0, end, "Mean predicted probability", ticks, in_full),
        [
            charts.Area.of(ends, "simultaneous intervals of the rates"),
            charts.Line([(0, 0), (end, end)], "calibrated"),
            charts.Points(marks, "event rate", joined_by="line", off_label="significantly off"),
        ],
        charts.Axis(0, end, "Event rate", ticks, in_full),
        title=short(group, 60),
        note=f"In {where}, the interval {verb} the predicted probability.",
    )


def _point(one: ReliabilityBin) -> charts.Point:
    tip = (
        f"{tip_name(one.group)}: predicted {percent(one.probability)} on average, the event rate is"
        f" {percent(one.rate)} (interval {band(percent, one.low, one.high)}, {whole(one.n)} rows)."
    )
    return charts.Point(or_zero(one.probability), or_zero(one.rate), tip, one.is_off)


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
