"""Section on the predicted probability of the event by the horizon, and its observed rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand._format import band, confidence_in_full, in_full, percent, whole
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report import charts
from evenhand.report.document import Pair, Paragraph, Section, short, tip_name
from evenhand.report.findings import Findings
from evenhand.report.records import Number, known, or_zero, records
from evenhand.report.terms import IN_TIME

DRAWN = 10
"""Most groups drawn beside everyone: those with the largest differences."""

NAME = 30
"""Most characters of the name of a group, so that it fits beside its numbers."""

HALF = 0.12
"""Half the height of a range, as a share of that of a row."""

TOPS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
"""Possible ends of the axis of rates; the smallest that fits is used."""


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
    pair = Pair([_survival_chart(rows[: DRAWN + 1], horizon)], explained, is_remark=True)
    return Section(title, [pair, _survival_table(rows, title)], "survival")


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
        "The grey range needs no assumption: at its lower end nobody who was cut off before"
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
    search = "Find a group" if len(rows) > DRAWN else ""
    return Table.of(title, rows, cells, search=search)


def _survival_chart(rows: Sequence[SurvivalRow], horizon: str) -> charts.Chart:
    """Draw predicted and observed rates of groups, one below the other."""
    ends = (end for row in rows for end in (row.predicted, row.observed, row.high, row.most))
    most = max(map(or_zero, ends))
    top = next((top for top in TOPS if most <= top), 1.0)
    tips = [_survival_tip(row, horizon) for row in rows]
    places = [-i - 0.7 for i in range(len(rows))]
    observed = [
        charts.Point(or_zero(row.observed), at, tip, across=_reach(row))
        for row, at, tip in zip(rows, places, tips, strict=True)
    ]
    predicted = [
        charts.Point(or_zero(row.predicted), at, tip)
        for row, at, tip in zip(rows, places, tips, strict=True)
    ]
    layers: list[charts.Layer] = [
        *_ranges(rows, places),
        charts.Points(observed, "observed, with interval"),
        charts.Points(predicted, "predicted", "orange", "diamond"),
    ]
    return charts.Chart(
        f"Predicted and observed rates of the event by {horizon}; the numbers are in the table.",
        charts.Axis(0, top, "Rate of the event", charts.nice_ticks(0.0, top, 5), in_full),
        layers,
        size="rows",
        title="Predicted and observed",
        note="Beside each name: predicted / observed.",
        names=[(short(row.group, NAME), _numbers(row)) for row in rows],
    )


def _ranges(rows: Sequence[SurvivalRow], places: Sequence[float]) -> list[charts.Layer]:
    """Return the ranges without an assumption; the first names them in the key."""
    known_ends = [
        (or_zero(row.least), or_zero(row.most), at)
        for row, at in zip(rows, places, strict=True)
        if known(row.least, row.most)
    ]
    return [
        charts.Area(
            [(low, at - HALF), (high, at - HALF)],
            [(low, at + HALF), (high, at + HALF)],
            "" if i else "without assumption",
        )
        for i, (low, high, at) in enumerate(known_ends)
    ]


def _reach(row: SurvivalRow) -> tuple[float, float] | None:
    return (or_zero(row.low), or_zero(row.high)) if known(row.low, row.high) else None


def _numbers(row: SurvivalRow) -> str:
    return f"{percent(row.predicted)} / {percent(row.observed)}"


def _survival_tip(row: SurvivalRow, horizon: str) -> str:
    return (
        f"{tip_name(row.group)}: predicted {percent(row.predicted)}, observed"
        f" {percent(row.observed)} by {horizon} (interval {band(percent, row.low, row.high)},"
        f" without assumption {band(percent, row.least, row.most)})."
    )
