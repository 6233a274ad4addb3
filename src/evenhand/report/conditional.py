"""Sections on coverage by features, and on groups whose members are known by probability."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand._format import band, confidence_in_full, in_full, number, percent, points, whole
from evenhand._table import Cells, Column, Table, numeric
from evenhand.report.document import Bullets, Paragraph, Section
from evenhand.report.findings import Findings
from evenhand.report.records import Number, Values, known, or_zero, records


@dataclass(frozen=True)
class Miscoverage:
    """Estimated difference of the coverage by features from the level of an interval."""

    level: float
    excess: Number
    low: Number
    high: Number
    n: int
    lowest_fifth: Number
    highest_fifth: Number


@dataclass(frozen=True)
class Membership:
    """Bounds for a group known by probability, whatever its relation to the outcome."""

    group: str
    members: Number
    coverage_80_least: Number
    coverage_80_most: Number
    coverage_90_least: Number
    coverage_90_most: Number
    bias_least: Number
    bias_most: Number


def miscoverage_section(findings: Findings) -> Section | None:
    """Report how far the coverage of intervals, given the features, differs from their level."""
    rows = records(Miscoverage, findings.values.get("miscoverage"))
    rows = tuple(row for row in rows if known(row.level, row.excess, row.low, row.high))
    if not rows:
        return None
    confidence = _confidence(findings.values)
    text = (
        "Coverage may differ from the level of an interval for people with some features: this is"
        " the mean absolute difference. A model predicts from features whether the coverage is"
        f" above or below the level, and is evaluated on {whole(rows[0].n)} rows from which it had"
        " not learned. As the model is imperfect, the estimate is conservative: the true"
        " difference may be larger, even than the upper end of the interval."
    )
    sentences = [_miscoverage_in_words(row, confidence) for row in rows]
    return Section("Coverage by features", [Paragraph(text), Bullets.of(sentences)], "coverage")


def _miscoverage_in_words(row: Miscoverage, confidence: str) -> str:
    level = in_full(row.level)
    interval = f"{confidence} confidence interval {band(points, row.low, row.high)}"
    ends = (
        f"In the fifth of people with the lowest predicted coverage it covers"
        f" {percent(row.lowest_fifth)} of outcomes, in the fifth with the highest"
        f" {percent(row.highest_fifth)}."
    )
    if not or_zero(row.low) > 0:
        return (
            f"The {level} interval: no significant difference of the coverage by features was"
            f" found. The estimate is {points(max(or_zero(row.excess), 0.0))} points"
            f" ({interval}). {ends}"
        )
    return (
        f"The {level} interval: the coverage of people with the same features differs from {level}"
        f" by an estimated {points(row.excess)} points on average ({interval}). {ends}"
    )


def membership_section(findings: Findings) -> Section | None:
    """Report bounds for groups known by probability that need no assumption on membership."""
    rows = records(Membership, findings.values.get("membership"))
    if not rows:
        return None
    text = (
        "Members of these groups are known by probability. The estimates among the named groups"
        " weight rows by these probabilities. They are those of the group itself if membership is"
        " independent of the outcome, given what the probabilities were computed from; otherwise"
        " they differ by the mean covariance of outcome and membership, given the same, divided by"
        " the share of members. The ranges below contain the value of the group whatever this"
        f" relation is, each with {_confidence(findings.values)} confidence, if the probabilities"
        " are correct on average. These groups are not certified."
    )
    cells: Cells[Membership] = {
        Column("group"): lambda one: one.group,
        numeric("members expected"): lambda one: whole(round(or_zero(one.members))),
        numeric("80% coverage"): lambda one: band(
            percent, one.coverage_80_least, one.coverage_80_most
        ),
        numeric("90% coverage"): lambda one: band(
            percent, one.coverage_90_least, one.coverage_90_most
        ),
        numeric("outcome minus forecast"): lambda one: band(number, one.bias_least, one.bias_most),
    }
    table = Table.of("Groups known by probability", rows, cells)
    title = "Groups known by probability"
    return Section(title, [Paragraph(text), table], "membership")


def _confidence(values: Values) -> str:
    """Return the confidence of the audit as text."""
    source = values.get("family") or values.get("certificate") or {}
    return confidence_in_full(source.get("confidence") or 0.95)
