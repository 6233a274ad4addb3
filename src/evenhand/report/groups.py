"""Sections on groups: named, scanned and learned ones, with each error drawn on one scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from evenhand._format import (
    at_least,
    band,
    count,
    in_full,
    is_known,
    number,
    p_value,
    percent,
    points,
    points_in_full,
    whole,
)
from evenhand._table import Cell, Column, Table, Value, numeric
from evenhand.report.charts import Axis, Chart, Point, Points
from evenhand.report.document import Paragraph, Section
from evenhand.report.findings import ADJUSTED_LEVEL, Findings, GroupFinding
from evenhand.report.names import tip_name
from evenhand.report.records import Estimate, Number, or_zero
from evenhand.report.sentences import how_off, learned_in_words, no_scan

SCANNED = 100
NAMED = 400
"""Most rows shown of the scan and of the named groups."""

TOPS = (0.1, 0.25, 0.5)
"""Ends of the scale that errors are drawn on: the least that holds them all."""


def named_section(findings: Findings) -> Section | None:
    """Show the named groups: everyone, then by falling lower bound; those too small come last."""
    overall = [] if findings.everyone is None else [findings.everyone]
    groups = overall + sorted(findings.named, key=_place)
    shown = groups[: NAMED + 1]
    if not shown:
        return None
    # bands of groups too small are not shown, and would stretch the scale
    errors = [group.error for group in shown if not group.is_too_small]
    top = _top(end for error in errors for end in (error.value, error.high))
    columns = [
        *_columns(top),
        numeric("80% interval holds"),
        numeric("90% interval holds", in_text=False),
        numeric("rows"),
    ]
    text = (
        "Estimates with 95% bands, each for its group alone: of many groups some bands miss by"
        f" chance. Outcome minus forecast is in {findings.unit}: below 0, outcomes are lower than"
        " forecast."
    )
    if len(groups) > len(shown):
        text += (
            f" Shown are the {NAMED} of {whole(len(groups) - 1)} groups, those off by most for sure"
            " first."
        )
    dim = [i for i, group in enumerate(shown) if group.is_too_small or group.is_possible_leak]
    rows = [_named_row(group, top, findings.unit) for group in shown]
    table = Table("Named groups", columns, rows, dim, "Find a group")
    return Section("Named groups", [Paragraph(text), table], "groups")


def _place(group: GroupFinding) -> tuple[bool, bool, float, float]:
    # the banded part of an error first: estimates of small groups are large by chance
    error = group.error
    least = -or_zero(error.low), -or_zero(error.value)
    return group.is_too_small, group.is_possible_leak, *least


def _named_row(group: GroupFinding, top: float, unit: str) -> Sequence[Cell]:
    how = how_off(group, unit)
    error = _estimate(group.error, points)
    label = f"{tip_name(group.name)}: off by {error.text} points (95% band {error.below}), {how}."
    drawing = _drawing(group, label, top)
    # an error of a few rows is mostly chance, so it is neither shown nor sorted by
    if group.is_too_small:
        error, drawing = Value("-"), None
    return [
        group.name,
        error,
        Value("", order=error.order, drawing=drawing),
        how,
        _estimate(group.bias, number),
        _estimate(group.coverage_80, percent),
        _estimate(group.coverage_90, percent),
        Value(whole(group.n), order=group.n),
    ]


def _columns(top: float) -> list[Column]:
    """Return the columns that both tables of groups begin with."""
    return [
        Column("group"),
        numeric("off by (points)"),
        Column(f"on a scale of 0 to {points_in_full(top)}", in_text=False),
        Column("how"),
        numeric("outcome minus forecast"),
    ]


def _estimate(estimate: Estimate, show: Callable[..., str]) -> Value:
    """Write an estimate with its band; columns are sorted by the estimate."""
    reach = band(show, estimate.low, estimate.high)
    return Value(show(estimate.value), reach, estimate.value)


def _top(values: Iterable[Number]) -> float:
    # one scale for the whole table, so that drawings can be compared
    most = max((value for value in values if value is not None), default=0.0)
    return next((top for top in TOPS if most <= top), TOPS[-1])


def _drawing(group: GroupFinding, label: str, top: float) -> Chart | None:
    """Draw an error, and its band if it has one, on a scale from 0 to `top`."""
    error = group.error.value
    if error is None:
        return None
    low, high = group.error.low, group.error.high
    # an upper end that is unknown leaves a bar from the lower end to the estimate
    reach = None if low is None else (low, error if high is None else high)
    point = Point(max(error, 0.0), 0.5, label, is_off=group.is_off, across=reach)
    axis = Axis(0, top, ticks=[k * top / 5 for k in range(6)])
    alt = f"Off by, from 0 to {points_in_full(top)} points"
    return Chart(alt, axis, [Points([point])], size="cell")


def scanned_section(findings: Findings) -> Section | None:
    """Show the scanned groups with the smallest p-values."""
    groups = findings.scanned
    if not groups:
        why = str(findings.why_no_scan[0]) if findings.why_no_scan else no_scan(findings)
        text = f"No groups were scanned: {why}."
        return Section("Groups by features", [Paragraph(text)], "features")
    off = findings.n_scanned_off
    text = (
        f"{count(findings.n_scanned, 'group')} looked at: values and halves of features, and their"
        f" intersections two by two. {off:,} of them {'has' if off == 1 else 'have'} an adjusted"
        f" p-value below {ADJUSTED_LEVEL:g}; it holds for all at once."
    )
    shown = groups[:SCANNED]
    if len(groups) > SCANNED:
        text += f" Shown are the {SCANNED} surest."
    top = _top(group.error.value for group in shown)
    numbers = [numeric(title) for title in ("80% interval holds", "adjusted p", "rows")]
    rows = [_scanned_row(group, top, findings.unit) for group in shown]
    dim = [i for i, group in enumerate(shown) if not group.is_off]
    label, search = "Groups by features", "Find a group by its features"
    table = Table(label, [*_columns(top), *numbers], rows, dim, search)
    return Section("Groups by features", [Paragraph(text), table], "features")


def _scanned_row(group: GroupFinding, top: float, unit: str) -> Sequence[Cell]:
    # without a test, as for a possible leak, the direction is all that is known
    has_test = is_known(group.p_adjusted)
    how = how_off(group, unit) if has_test else str(group.direction or "-")
    error = group.error.value
    label = (
        f"{tip_name(group.name)}: off by {points(error)} points, {how} (adjusted p"
        f" {p_value(group.p_adjusted, '= ')})."
    )
    return [
        group.name,
        Value(points(error), order=error),
        # no band: the scan gives none, its evidence is the adjusted p-value
        Value("", order=error, drawing=_drawing(group, label, top)),
        how,
        _estimate(group.bias, number),
        _estimate(group.coverage_80, percent),
        Value(p_value(group.p_adjusted), order=group.p_adjusted),
        Value(whole(group.n), order=group.n),
    ]


def learned_section(findings: Findings) -> Section | None:
    """Show the worst group that features can define, at each share of the people."""
    if not findings.learned:
        return None
    text = (
        "For each share of people the worst group that features can define, learned on some rows"
        " and judged on others. The error is estimated from below; each lower bound holds by"
        " itself."
    )
    columns = [
        Column("share of people"),
        numeric("off by (points)"),
        numeric("at least"),
        Column("how"),
        numeric("outcome minus forecast", in_text=False),
        numeric("80% interval holds", in_text=False),
        numeric("p", in_text=False),
        numeric("rows"),
        Column("in words"),
    ]
    rows: list[Sequence[Cell]] = [
        [
            in_full(found.mass),
            points(found.group.error.value),
            at_least(found.low),
            how_off(found.group, findings.unit),
            number(found.group.bias.value),
            percent(found.group.coverage_80.value),
            p_value(found.p_value),
            Value(whole(found.group.n), f"of {whole(found.n_judged)} judged"),
            learned_in_words(found),
        ]
        for found in findings.learned
    ]
    table = Table("Learned groups", columns, rows)
    title = "Worst groups learned from features"
    return Section(title, [Paragraph(text), table], "learned")
