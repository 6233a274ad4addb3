"""Sections on named and scanned groups."""

from __future__ import annotations

from collections.abc import Callable

from evenhand._format import (
    UNKNOWN,
    band,
    confidence_in_full,
    count,
    number,
    p_value,
    percent,
    points,
    whole,
)
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report.charts import Color, Shape
from evenhand.report.document import Paragraph, Section
from evenhand.report.findings import NAMED, Findings, GroupFinding
from evenhand.report.measures import reach_of, signed
from evenhand.report.notes import NoteKind
from evenhand.report.records import Estimate
from evenhand.report.sentences import (
    NOT_OFF,
    PROBLEM,
    TOLERATED,
    how_off,
    joined,
    no_scan,
)
from evenhand.report.terms import IN_FEATURES, IN_GROUP, Terms

SCANNED = 100
"""Most rows shown of the scan."""

PRINTED = 15
"""Most rows of the scan in text."""

FIRST = "problems before others"
"""Order of the rows of both tables."""

MARKS: dict[str, tuple[Color, Shape]] = {
    PROBLEM: ("red", "square"),
    TOLERATED: ("orange", "diamond"),
    NOT_OFF: ("blue", "circle"),
}
"""Marks of groups with a problem, with an error seen within the tolerance, and of others."""

OWN = "forecast's own level and spread"
"""What groups by the forecast are made from; 0/1 outcomes have tenths of the probability."""


def shown_named(findings: Findings) -> list[GroupFinding]:
    """Return all people, then named groups by importance; those too small come last."""
    return [*findings.overall, *sorted(findings.named, key=_place)[:NAMED]]


def shown_scanned(findings: Findings) -> list[GroupFinding]:
    """Return the most important of the scanned groups."""
    return sorted(findings.scanned, key=_place)[:SCANNED]


def named_section(findings: Findings) -> Section | None:
    """Show all people and the most important named groups."""
    shown = shown_named(findings)
    if not shown:
        return None
    texts = [_intervals_in_words(findings), *_bias_in_words(findings)]
    text = " ".join(texts)
    if any(group.is_probable for group in shown):
        text += (
            " Of groups known by probability, all numbers are those of all rows, weighted by the"
            " probability of membership; the number of rows is that of the expected members."
        )
    if len(findings.named) > NAMED:
        text += f" The first {NAMED} of {whole(len(findings.named))} groups are listed, {FIRST}."
    covered: Cells[GroupFinding] = {
        numeric("90% coverage", in_text=False): lambda g: estimate_cell(g.coverage_90, percent)
    }
    cells = _cells(findings)
    cells |= {} if findings.terms.is_event else covered
    cells |= {numeric("rows"): _rows}
    is_left_out = [not (group.is_judged or group.same_as) for group in shown]
    dim = [i for i, is_dim in enumerate(is_left_out) if is_dim]
    table = Table.of("Named groups", shown, cells, dim=dim, search="Find a group")
    return Section("Named groups", [Paragraph(text), table], "groups")


def by_forecast_section(findings: Findings) -> Section | None:
    """Show groups by the forecast's own level and spread; nothing without any."""
    if not findings.by_forecast:
        return None
    what = "tenth of the predicted probability" if findings.terms.is_event else OWN
    text = (
        f"Groups by the {what}: wrong high and wrong low forecasts cancel in an average, and show"
        " here. Equal forecasts are in one group. Intervals are those of the one family."
    )
    cells = _cells(findings) | {numeric("rows"): _rows}
    table = Table.of("Groups by the own forecast", findings.by_forecast, cells)
    return Section("Groups by the own forecast", [Paragraph(text), table], "own")


def _bias_in_words(findings: Findings) -> list[str]:
    if not findings.terms.has_bias:
        return []
    if findings.terms.is_event:
        return ["Negative differences mean that events are rarer than predicted."]
    skewed = NoteKind.SKEWED_RESIDUALS.value.partition(":")[0]
    return [
        f"Outcome minus forecast is in {findings.terms.unit}; negative values mean that outcomes"
        " are lower than forecast.",
        *(f"Note: {one}." for one in findings.values["notes"] if str(one).startswith(skewed)),
    ]


def positive_section(findings: Findings) -> Section | None:
    """Show groups of the people whose outcome is not the atom; nothing for other outcomes."""
    groups = findings.positive
    if not groups:
        return None
    shown = [groups[0], *sorted(groups[1:], key=_place)][: NAMED + 1]
    text = f"The same for the continuous part of the forecasts, in the {findings.terms.people}."
    cells = _cells(findings) | {numeric("rows"): _rows}
    title = f"Outcomes other than {findings.terms.atom}"
    table = Table.of(f"Named groups: {title.lower()}", shown, cells)
    return Section(title, [Paragraph(text), table], "positive")


def _place(group: GroupFinding) -> tuple[bool, bool, tuple[bool, bool, float, float, float, int]]:
    return group.is_too_small, group.is_possible_leak, group.rank


def _intervals_in_words(findings: Findings) -> str:
    """Return what the intervals of the tables of groups hold for."""
    if findings.terms.is_time:
        return _times_in_words(findings)
    confidence = confidence_in_full(findings.confidence)
    asymptotic = findings.family.get("asymptotic") or ()
    names = {"error": "error", "coverage": "coverage", "bias": findings.terms.bias}
    limits = [names.get(str(name), str(name)) for name in asymptotic]
    return (
        f"Estimates with simultaneous intervals: those of errors hold for everyone and all groups"
        f" of the tables at once, with {confidence} confidence."
    ) + (f" Intervals of {joined(limits)} are asymptotic." if limits else "")


def _times_in_words(findings: Findings) -> str:
    """Return what errors of times that are cut off assume, and what their intervals hold for."""
    confidence = confidence_in_full(findings.confidence)
    return (
        f"Errors and coverage are Kaplan-Meier estimates of PITs, which assume that {IN_GROUP}."
        f" Their {confidence} confidence intervals are asymptotic and hold for all of them at once."
        " The range without assumption contains the error whatever the unknown times are, with the"
        " same confidence at any number of rows. Problems are found by a test, which assumes that"
        f" {IN_FEATURES}."
    )


def scanned_section(findings: Findings) -> Section:
    """Show the most important of the scanned groups."""
    groups, shown = findings.scanned, shown_scanned(findings)
    if not groups:
        return Section("Groups by features", [Paragraph(no_scan(findings))], "features")
    n = sum(group.is_tested for group in groups)
    n_problems = sum(group.is_problem for group in groups)
    text = (
        f"{count(n, 'group was', 'groups were')} examined: values and halves of features and their"
        " pairwise intersections, without those whose rows a group of another table has."
        f" {count(n_problems, 'problem')} found."
    )
    if len(groups) > SCANNED:
        text += f" The first {SCANNED} groups are listed, {FIRST}."
    cells = _cells(findings) | {
        numeric("adjusted p"): lambda g: Value(p_value(g.p_adjusted), order=g.p_adjusted),
        numeric("rows"): _rows,
    }
    dim = [i for i, group in enumerate(shown) if not group.is_off]
    search = "Find a group by its features"
    table = Table.of(
        "Groups by features",
        shown,
        cells,
        dim=dim,
        search=search,
        printed=max(PRINTED, n_problems),
    )
    return Section("Groups by features", [Paragraph(text), table], "features")


def _cells(findings: Findings) -> Cells[GroupFinding]:
    """Return the columns that the tables of groups share."""
    terms = findings.terms
    covered: Cells[GroupFinding] = {
        numeric("80% coverage"): lambda g: estimate_cell(g.coverage_80, percent)
    }
    bias: Cells[GroupFinding] = {numeric(terms.bias): lambda g: bias_cell(g.bias, terms)}
    rates: Cells[GroupFinding] = {
        numeric("predicted"): lambda g: Value(percent(g.predicted), order=g.predicted),
        numeric("event rate"): lambda g: Value(percent(g.rate), order=g.rate),
    }
    unassumed: Cells[GroupFinding] = {numeric("without assumption (points)"): _open_error}
    error = "Kaplan-Meier error (points)" if terms.is_time else "error (points)"
    return {
        Column("group"): lambda g: g.name,
        numeric(error): _error,
        Column("finding"): lambda g: how_off(g, findings),
        **(bias if terms.has_bias else unassumed),
        **(rates if terms.is_event else covered),
    }


def _rows(group: GroupFinding) -> Value:
    return Value(whole(group.n), order=group.n)


def _error(group: GroupFinding) -> Value:
    # the error of a few rows is mostly chance: it is not shown, and rows are not sorted by it
    return Value(UNKNOWN) if group.is_too_small else estimate_cell(group.error, points)


def _open_error(group: GroupFinding) -> Value:
    """Write the range of an error that assumes nothing on why times are cut off."""
    ends = group.open_error or Estimate(None)
    return Value(band(points, ends.low, ends.high), order=ends.low)


def estimate_cell(estimate: Estimate, show: Callable[..., str]) -> Value:
    """Write an estimate with its interval; columns are sorted by the estimate."""
    reach = band(show, estimate.low, estimate.high)
    return Value(show(estimate.value), reach, estimate.value)


def bias_cell(bias: Estimate, terms: Terms) -> Value:
    """Write a difference of outcome and forecast with its interval."""
    if terms.is_event:
        return Value(signed(bias.value), reach_of(*bias.ends), bias.value)
    return estimate_cell(bias, number)


def kind_of(group: GroupFinding) -> str:
    """Return what was found of a group, a key of `MARKS`."""
    if group.is_problem:
        return PROBLEM
    return TOLERATED if group.is_off else NOT_OFF
