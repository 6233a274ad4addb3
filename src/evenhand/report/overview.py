"""Picture of the main findings: errors of all people and of the most important groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evenhand._format import at_most, band, count, in_full, points, points_in_full
from evenhand.report.charts import Area, Chart, Layer, Point, Points, error_axis
from evenhand.report.document import Section, short, tip_name
from evenhand.report.findings import Findings, GroupFinding
from evenhand.report.groups import MARKS, kind_of
from evenhand.report.records import Number, known, or_zero
from evenhand.report.sentences import PROBLEM, how_off

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
    return _Mark(name, size, points(value), tip, kind_of(group), _ends(low, high, size))


def _ends(low: Number, high: Number, value: float) -> tuple[float, float] | None:
    # without an upper end, the bar reaches from the lower end to the estimate
    return None if low is None else (max(low, 0.0), value if high is None else high)
