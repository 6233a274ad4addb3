"""Picture of a comparison: errors of the groups that changed most, before and after."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand._format import points
from evenhand.report.changed_groups import CHANGED, ChangedGroup
from evenhand.report.charts import Chart, Color, Layer, Point, Points, Shape, error_axis
from evenhand.report.document import Section, short, tip_name
from evenhand.report.records import known, or_zero

MOST = 7
"""Most groups of the picture."""

NAME = 36
"""Most characters of the name of a group, so that it fits above its marks."""

MARKS: dict[str, tuple[Color, Shape, str]] = {
    "after: significantly worse": ("red", "square", "worse"),
    "after: significantly better": ("blue", "circle", "better"),
}
"""Marks of errors after the change by their words, with the outcome of the groups."""


def changes_picture(groups: Sequence[ChangedGroup]) -> Section | None:
    """Show errors before and after of the first groups with a change; None without any."""
    shown = [
        group
        for group in groups
        if group.outcome in CHANGED
        and known(group.of("error", "before"), group.of("error", "after"))
    ][:MOST]
    if not shown:
        return None
    ends = [(or_zero(g.of("error", "before")), or_zero(g.of("error", "after"))) for g in shown]
    layers: list[Layer] = []
    for words, (color, shape, outcome) in MARKS.items():
        marks = [
            Point(after, -i - 0.7, _tip(group), across=(before, after))
            for i, (group, (before, after)) in enumerate(zip(shown, ends, strict=True))
            if group.outcome == outcome
        ]
        layers.append(Points(marks, words, color, shape))
    starts = [
        Point(before, -i - 0.7, _tip(group))
        for i, (group, (before, _)) in enumerate(zip(shown, ends, strict=True))
    ]
    layers.insert(0, Points(starts, "before", "blue", "hollow"))
    chart = Chart(
        "Errors before and after of the groups that changed; the numbers are in the table.",
        error_axis(max(map(max, ends)), "Error in points"),
        layers,
        size="rows",
        names=[
            (short(group.name, NAME), f"{points(before)} → {points(after)}")
            for group, (before, after) in zip(shown, ends, strict=True)
        ],
    )
    return Section("Groups that changed", [chart])


def _tip(group: ChangedGroup) -> str:
    before, after = (points(group.of("error", end)) for end in ("before", "after"))
    return f"{tip_name(group.name)}: error from {before} to {after} points, {group.outcome}."
