"""The groups of an audit as tables that can be searched, with each error drawn on one scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from evenhand._format import (
    at_least,
    band,
    bound,
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
from evenhand.report.chart import tip_name
from evenhand.report.findings import (
    by_size,
    how_off,
    in_words,
    is_learned_off,
    is_sure,
    n_scanned,
    off_names,
    why_no_scan,
)
from evenhand.report.page import Cell, Section, Value, paragraph, section, table
from evenhand.report.plots import off_by_drawing
from evenhand.report.sentences import ADJUSTED_LEVEL, Values, unit_of

SCANNED = 100
NAMED = 400
"""Most rows shown of the scan and of the named groups."""

TOPS = (0.1, 0.25, 0.5)
"""Ends of the scale that errors are drawn on: the least that holds them all."""


def named_section(audit: Values) -> Section | None:
    """Show the named groups: everyone, then by falling lower bound; those too small come last."""
    rows = [*audit["groups"][:1], *by_size(audit["groups"][1:])]
    if not rows:
        return None
    # bands of groups too small are not shown, and would stretch the scale
    judged = [row for row in rows[: NAMED + 1] if not row["too_small"]]
    top = _top(row[end] for row in judged for end in ("error", "error_high"))
    header = [*_header(top), "#80% interval holds", "#90% interval holds", "#rows"]
    unit = unit_of(audit)
    text = (
        "Estimates with 95% bands, each for its group alone: of many groups some bands miss by"
        f" chance. Outcome minus forecast is in {unit}: below 0, outcomes are lower than"
        " forecast."
    )
    if rows[NAMED + 1 :]:
        text += (
            f" Shown are the {NAMED} of {whole(len(rows) - 1)} groups, those off by most for sure"
            " first."
        )
    dim = [i for i, row in enumerate(rows) if row["too_small"] or row.get("possible_leak")]
    # one set for all rows: with many named groups, asking for each would take quadratic time
    off = off_names(audit)
    cells = [_named_cells(row, top, unit, is_off=row["group"] in off) for row in rows[: NAMED + 1]]
    written = table("Named groups", header, cells, dim, search="Find a group")
    return section("Named groups", paragraph(text), written, key="groups")


def _named_cells(row: Values, top: float, unit: str, *, is_off: bool) -> list[Cell]:
    how = how_off(row, is_off=is_off, unit=unit)
    error, drawing = Value("-"), ""
    # an error of a few rows is mostly chance, so it is neither shown nor sorted by
    if not row["too_small"]:
        error = _estimate(row, "error", points)
        label = (
            f"{tip_name(row['group'])}: off by {error.text} points (95% band {error.below}), {how}."
        )
        drawing = off_by_drawing(row, label=label, is_off=is_off, top=top, has_band=True)
    return [
        str(row["group"]),
        error,
        Value("", order=error.order, drawing=drawing),
        how,
        _estimate(row, "bias", number),
        _estimate(row, "coverage_80", percent),
        _estimate(row, "coverage_90", percent),
        Value(whole(row["n"]), order=row["n"]),
    ]


def _header(top: float) -> list[str]:
    """Return the titles that both tables of groups begin with."""
    scale = f"on a scale of 0 to {points_in_full(top)}"
    return ["group", "#off by (points)", scale, "how", "#outcome minus forecast"]


def _estimate(row: Values, key: str, show: Callable[..., str]) -> Value:
    """Write an estimate with its band below; columns are sorted by the estimate."""
    return Value(show(row[key]), band(show, row[f"{key}_low"], row[f"{key}_high"]), row[key])


def _top(values: Iterable[float | None]) -> float:
    # one scale for the whole table, so that drawings can be compared
    most = max((value for value in values if value is not None and is_known(value)), default=0.0)
    return next((top for top in TOPS if most <= top), TOPS[-1])


def scanned_section(audit: Values) -> Section | None:
    """Show the scanned groups with the smallest p-values."""
    rows = audit["scan"]
    if not rows:
        text = f"No groups were scanned: {why_no_scan(audit)}."
        return section("Groups by features", paragraph(text), key="features")
    off = sum(is_sure(row) for row in rows)
    text = (
        f"{count(n_scanned(audit), 'group')} looked at: values and halves of features, and their"
        f" intersections two by two. {off:,} of them {'has' if off == 1 else 'have'} an adjusted"
        f" p-value below {ADJUSTED_LEVEL:g}; it holds for all at once."
    )
    if rows[SCANNED:]:
        text += f" Shown are the {SCANNED} surest."
    top = _top(row["error"] for row in rows[:SCANNED])
    header = [*_header(top), "#80% interval holds", "#adjusted p", "#rows"]
    unit = unit_of(audit)
    cells = [_scanned_cells(row, top, unit) for row in rows[:SCANNED]]
    dim = [i for i, row in enumerate(rows[:SCANNED]) if not is_sure(row)]
    written = table("Groups by features", header, cells, dim, search="Find a group by its features")
    return section("Groups by features", paragraph(text), written, key="features")


def _scanned_cells(row: Values, top: float, unit: str) -> list[Cell]:
    is_off = is_sure(row)
    # without a test, as for a possible leak, the direction is all that is known
    has_test = is_known(row["p_adjusted"])
    how = how_off(row, is_off=is_off, unit=unit) if has_test else str(row["direction"] or "-")
    label = (
        f"{tip_name(row['group'])}: off by {points(row['error'])} points, {how} (adjusted p"
        f" {p_value(row['p_adjusted'], '= ')})."
    )
    # no band: the scan gives none, its evidence is the adjusted p-value
    drawing = off_by_drawing(row, label=label, is_off=is_off, top=top)
    return [
        str(row["group"]),
        Value(points(row["error"]), order=row["error"]),
        Value("", order=row["error"], drawing=drawing),
        how,
        Value(number(row["bias"]), order=row["bias"]),
        Value(percent(row["coverage_80"]), order=row["coverage_80"]),
        Value(p_value(row["p_adjusted"]), order=row["p_adjusted"]),
        Value(whole(row["n"]), order=row["n"]),
    ]


def learned_section(audit: Values) -> Section | None:
    """Show the worst group that features can define, at each share of the people."""
    rows = audit["learned"]
    if not rows:
        return None
    text = (
        "For each share of people the worst group that features can define, learned on some rows"
        " and judged on others. The error is estimated from below; each lower bound holds by"
        " itself."
    )
    header = [
        "share of people",
        "#off by (points)",
        "#at least",
        "how",
        "#outcome minus forecast",
        "#80% interval holds",
        "#p",
        "#rows",
        "in words",
    ]
    cells: list[list[Cell]] = [
        [
            in_full(row["mass"]),
            points(row["error"]),
            bound(at_least, row["low"]),
            how_off(row, is_off=is_learned_off(row), unit=unit_of(audit)),
            number(row["bias"]),
            percent(row["coverage_80"]),
            p_value(row["p_value"]),
            (whole(row["n"]), f"of {whole(row['n_judged'])} judged"),
            in_words(row),
        ]
        for row in rows
    ]
    written = table("Learned groups", header, cells)
    return section("Worst groups learned from features", paragraph(text), written, key="learned")
