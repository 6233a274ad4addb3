"""Sections on named, scanned and learned groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from evenhand._format import (
    UNKNOWN,
    at_least,
    band,
    count,
    in_full,
    number,
    p_value,
    percent,
    points,
    points_in_full,
    whole,
)
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report.charts import Axis, Chart, Point, Points
from evenhand.report.document import Paragraph, Section
from evenhand.report.findings import Findings, GroupFinding, LearnedFinding
from evenhand.report.judging import ADJUSTED_LEVEL
from evenhand.report.names import tip_name
from evenhand.report.records import Estimate, Number, or_zero
from evenhand.report.sentences import how_off, learned_in_words, no_scan

SCANNED = 100
NAMED = 400
"""Most rows shown of the scan and of the named groups."""

TOPS = (0.1, 0.25, 0.5)
"""Possible ends of the scale on which errors are drawn; the smallest that fits is used."""


def named_section(findings: Findings) -> Section | None:
    """Show all people, then named groups by falling lower bound; those too small come last."""
    overall = [] if findings.everyone is None else [findings.everyone]
    groups = overall + sorted(findings.named, key=_place)
    shown = groups[: NAMED + 1]
    if not shown:
        return None
    # intervals of groups that are too small are not shown and would stretch the scale
    errors = [group.error for group in shown if not group.is_too_small]
    top = _top(end for error in errors for end in (error.value, error.high))
    text = (
        "Estimates with 95% confidence intervals, not adjusted for the number of groups: among many"
        " groups, some intervals miss the true value by chance. Outcome minus forecast is in"
        f" {findings.unit}; negative values mean that outcomes are lower than forecast."
    )
    if len(groups) > len(shown):
        text += (
            f" The {NAMED} of {whole(len(groups) - 1)} groups with the largest lower bounds are"
            " shown."
        )
    cells = _cells(top, findings.unit) | {
        numeric("90% coverage", in_text=False): lambda g: _estimate(g.coverage_90, percent),
        numeric("rows"): _rows,
    }
    dim = [i for i, group in enumerate(shown) if group.is_too_small or group.is_possible_leak]
    table = Table.of("Named groups", shown, cells, dim=dim, search="Find a group")
    return Section("Named groups", [Paragraph(text), table], "groups")


def _place(group: GroupFinding) -> tuple[bool, bool, float, float]:
    # sorted by the lower end of the interval: estimates of small groups are large by chance
    least, estimate = or_zero(group.error.low), or_zero(group.error.value)
    return group.is_too_small, group.is_possible_leak, -least, -estimate


def scanned_section(findings: Findings) -> Section:
    """Show the scanned groups with the smallest p-values."""
    groups, shown = findings.scanned, findings.scanned[:SCANNED]
    if not groups:
        return Section("Scanned groups", [Paragraph(no_scan(findings))], "features")
    off = findings.n_scanned_off
    least = "No group has" if off == 0 else f"{off:,} of them {'has' if off == 1 else 'have'}"
    text = (
        f"{count(findings.n_scanned, 'group was', 'groups were')} tested: values and halves of"
        f" features and their pairwise intersections. {least} a p-value below"
        f" {ADJUSTED_LEVEL:g}, adjusted for all of these groups."
    )
    if len(groups) > SCANNED:
        text += f" The {SCANNED} groups with the smallest p-values are shown."
    cells = _cells(_top(group.error.value for group in shown), findings.unit) | {
        numeric("adjusted p"): lambda g: Value(p_value(g.p_adjusted), order=g.p_adjusted),
        numeric("rows"): _rows,
    }
    dim = [i for i, group in enumerate(shown) if not group.is_off]
    search = "Find a group by its features"
    table = Table.of("Scanned groups", shown, cells, dim=dim, search=search)
    return Section("Scanned groups", [Paragraph(text), table], "features")


def _cells(top: float, unit: str) -> Cells[GroupFinding]:
    """Return the columns that both tables share; errors are drawn on a scale from 0 to `top`."""
    scale = Column(f"scale from 0 to {points_in_full(top)}", in_text=False)
    return {
        Column("group"): lambda g: g.name,
        numeric("error (points)"): _error,
        scale: lambda g: Value("", order=_error(g).order, drawing=_drawing(g, top, unit)),
        Column("finding"): lambda g: how_off(g, unit),
        numeric("outcome minus forecast"): lambda g: _estimate(g.bias, number),
        numeric("80% coverage"): lambda g: _estimate(g.coverage_80, percent),
    }


def _rows(group: GroupFinding) -> Value:
    return Value(whole(group.n), order=group.n)


def _error(group: GroupFinding) -> Value:
    # the error of a few rows is mostly chance: it is not shown, and rows are not sorted by it
    return Value(UNKNOWN) if group.is_too_small else _estimate(group.error, points)


def _estimate(estimate: Estimate, show: Callable[..., str]) -> Value:
    """Write an estimate with its interval; columns are sorted by the estimate."""
    reach = band(show, estimate.low, estimate.high)
    return Value(show(estimate.value), reach, estimate.value)


def _top(values: Iterable[Number]) -> float:
    # one scale for the whole table makes drawings comparable
    most = max((value for value in values if value is not None), default=0.0)
    return next((top for top in TOPS if most <= top), TOPS[-1])


def _drawing(group: GroupFinding, top: float, unit: str) -> Chart | None:
    """Draw an error with its interval, if it has one, on a scale from 0 to `top`."""
    error, low, high = group.error.value, group.error.low, group.error.high
    if error is None or group.is_too_small:
        return None
    # scanned groups have adjusted p-values instead of intervals
    evidence = f"adjusted p {p_value(group.p_adjusted, '= ')}"
    if group.is_named:
        evidence = f"95% interval {band(points, low, high)}"
    how = how_off(group, unit)
    tip = f"{tip_name(group.name)}: off by {points(error)} points ({evidence}), {how}."
    # without an upper end, the bar reaches from the lower end to the estimate
    reach = None if low is None else (low, error if high is None else high)
    point = Point(max(error, 0.0), 0.5, tip, is_off=group.is_off, across=reach)
    axis = Axis(0, top, ticks=[k * top / 5 for k in range(6)])
    alt = f"Error, from 0 to {points_in_full(top)} points"
    return Chart(alt, axis, [Points([point])], size="cell")


def learned_section(findings: Findings) -> Section | None:
    """Show the worst group that features can define, for each share of people."""
    if not findings.learned:
        return None
    text = (
        "For each share of people, the worst group that features can define is learned on some of"
        " the rows and evaluated on others. Its estimated error is conservative: on average it does"
        " not exceed the true error, and it may be negative. Each lower bound holds separately with"
        f" {findings.level} confidence. A finding is listed if p, from a separate test, is below"
        " 0.05; the test is more powerful than the bound, which may be 0 then."
    )
    cells: Cells[LearnedFinding] = {
        Column("share of people"): lambda f: in_full(f.mass),
        numeric("error (points)"): lambda f: points(f.group.error.value),
        numeric("lower bound"): lambda f: at_least(f.low),
        Column("finding"): lambda f: how_off(f.group, findings.unit),
        numeric("outcome minus forecast", in_text=False): lambda f: number(f.group.bias.value),
        numeric("80% coverage", in_text=False): lambda f: percent(f.group.coverage_80.value),
        numeric("p", in_text=False): lambda f: p_value(f.p_value),
        numeric("rows"): lambda f: Value(whole(f.group.n), f"of {whole(f.n_judged)} evaluated"),
        Column("definition"): learned_in_words,
    }
    table = Table.of("Learned groups", findings.learned, cells)
    title = "Worst groups learned from features"
    return Section(title, [Paragraph(text), table], "learned")
