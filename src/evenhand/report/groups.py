"""Sections on groups: named, scanned, by the forecast and found by search, and their picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evenhand._format import (
    UNKNOWN,
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    joined,
    number,
    p_value,
    percent,
    points,
    points_in_full,
    whole,
)
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report.charts import Area, Chart, Color, Layer, Point, Points, Shape, error_axis
from evenhand.report.document import Bullets, Paragraph, Section, short, tip_name
from evenhand.report.findings import NAMED, Findings, GroupFinding, LearnedFinding
from evenhand.report.measures import reach_of, signed
from evenhand.report.notes import NoteKind
from evenhand.report.records import Estimate, Number, known, or_zero, records
from evenhand.report.sentences import (
    NOT_OFF,
    PROBLEM,
    TOLERATED,
    how_off,
    learned_in_words,
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
        "Groups by features", shown, cells, dim=dim, search=search, printed=max(PRINTED, n_problems)
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


# --- section on the worst groups that were learned from features

LEARNED = (
    "For each group size, the worst group is learned from features on some of the rows and"
    " evaluated on others."
)


def learned_section(findings: Findings) -> Section | None:
    """Show the learned group of each size."""
    if not findings.learned:
        return None
    terms = findings.terms
    sizes: Cells[LearnedFinding] = {
        numeric("error (points)"): lambda f: points(f.group.error.value),
        numeric("lower bound"): lambda f: at_least(f.low),
    }
    if terms.is_time:
        size = numeric("Kaplan-Meier error (points)")
        sizes = {size: lambda f: estimate_cell(f.group.error, points)}
    bias: Cells[LearnedFinding] = {
        numeric(terms.bias, in_text=False): lambda f: bias_cell(f.group.bias, terms)
    }
    covered: Cells[LearnedFinding] = {
        numeric("80% coverage", in_text=False): lambda f: percent(f.group.coverage_80.value)
    }
    cells: Cells[LearnedFinding] = {
        Column("share of people"): lambda f: in_full(f.mass),
        **sizes,
        Column("finding"): lambda f: how_off(f.group, findings),
        **(bias if terms.has_bias else {}),
        **({} if terms.is_event else covered),
        numeric("adjusted p", in_text=False): lambda f: p_value(f.group.p_adjusted),
        numeric("rows"): lambda f: Value(whole(f.group.n), f"of {whole(f.n_judged)} evaluated"),
        Column("definition"): learned_in_words,
    }
    table = Table.of("Groups found by search", findings.learned, cells)
    title = "Groups found by search"
    return Section(title, [Paragraph(_explained(findings)), table], "learned")


def _explained(findings: Findings) -> str:
    if findings.terms.is_time:
        return (
            f"{LEARNED} Errors are Kaplan-Meier estimates, which assume that {IN_GROUP}; their"
            f" {findings.level} intervals are asymptotic and hold for all learned groups at once."
        )
    return (
        f"{LEARNED} Its estimated error is conservative: on average it does not exceed the true"
        " error, and it may be negative. The lower bounds of all learned groups hold jointly, with"
        f" {findings.level} confidence. The test is more powerful than the bound, which may be 0"
        " where a problem is found."
    )


# --- sections on coverage by features, and on groups whose members are known by probability


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
    confidence = confidence_in_full(findings.confidence)
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
        f" relation is, each with {confidence_in_full(findings.confidence)} confidence, if the"
        " probabilities are correct on average. These groups are not certified."
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


# --- picture of the main findings: errors of all people and of the most important groups

MOST = 6
"""Most groups beside everyone."""

NAME = 44
"""Most characters of the name of a group, so that it fits above its mark."""

BOUND = "proven: at most this error"
"""Label of the certified bound."""


@dataclass(frozen=True)
class _Mark:
    """A mark of the picture: a group with its interval, or the certified bound."""

    name: str
    value: float
    words: str
    tip: str
    kind: str
    across: tuple[float, float] | None = None


def overview(findings: Findings) -> Section | None:
    """Show errors with intervals, the tolerance and the certified bound; None without errors."""
    rows = list(_marked(findings))
    if not rows:
        return None
    most = max(end for row in rows for end in (row.value, *(row.across or ())))
    axis = error_axis(most, "Error in points: 0 is perfect")
    tolerated = min(findings.tolerance, axis.high)
    zone = f"tolerance: up to {points_in_full(findings.tolerance)} points"
    layers: list[Layer] = [
        Area([(0, -len(rows)), (0, 0)], [(tolerated, -len(rows)), (tolerated, 0)], zone)
    ]
    for kind, (color, shape) in (MARKS | {BOUND: ("blue", "hollow")}).items():
        marks = [
            Point(row.value, -i - 0.7, row.tip, across=row.across)
            for i, row in enumerate(rows)
            if row.kind == kind
        ]
        layers.append(Points(marks, kind, color, shape))
    n, drawn = len(findings.problems), sum(row.kind == PROBLEM for row in rows)
    chart = Chart(
        "Errors of all people and of the most important groups; the numbers are in the tables.",
        axis,
        layers,
        size="rows",
        note=f"{drawn} of {count(n, 'problem')} are drawn." if n > drawn else "",
        names=[(row.name, row.words) for row in rows],
    )
    return Section("Who is affected", [chart])


def _marked(findings: Findings) -> Iterator[_Mark]:
    """Yield everyone, the most important groups and the bound for every group."""
    groups = sorted(findings.examined, key=lambda group: group.rank)
    for group in (*findings.overall, *groups[:MOST]):
        # all people have one mark
        if known(group.error.value) and group.same_as is None:
            yield _mark(group, findings)
    bound = findings.bound
    if bound is not None and findings.is_bound_useful and known(bound.group_error):
        people = f"every group of {in_full(bound.mass)} of {findings.terms.people}"
        tip = f"Proven for {people}: at most {at_most(bound.group_error)} points."
        if findings.terms.is_time and findings.terms.is_part:
            # the horizon and its unit would leave no room for the bound
            people = f"every group of {in_full(bound.mass)} with the event"
        error = or_zero(bound.group_error)
        words = f"at most {at_most(bound.group_error)}"
        yield _Mark(people, error, words, tip, BOUND, (0.0, error))


def _mark(group: GroupFinding, findings: Findings) -> _Mark:
    value, low, high = group.error.value, group.error.low, group.error.high
    size = max(value or 0.0, 0.0)
    reach = "" if low is None else f" (interval {band(points, low, high)})"
    how = how_off(group, findings)
    tip = f"{tip_name(group.name)}: off by {points(value)} points{reach}, {how}."
    name = short(group.name, NAME)
    # without an upper end, the bar reaches from the lower end to the estimate
    ends = None if low is None else (max(low, 0.0), size if high is None else high)
    return _Mark(name, size, points(value), tip, kind_of(group), ends)
