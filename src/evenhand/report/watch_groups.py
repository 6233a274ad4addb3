"""Section on the named groups of a watch."""

from __future__ import annotations

from evenhand._format import UNKNOWN, percent, points, points_in_full, whole
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report.document import Paragraph, Section
from evenhand.report.watched import Watched, WatchedGroup, of_alarm

PRINTED = 8
"""Most groups in text."""


def groups_section(watched: Watched) -> Section | None:
    """Show the groups with their evidence and errors; None without groups."""
    groups = watched.groups
    if not groups:
        return None
    error = "bias (points)" if watched.is_event else "error (points)"
    cells: Cells[WatchedGroup] = {
        Column("group"): lambda one: one.name,
        Column("status"): lambda one: "alarm" if one.is_alarm else "no alarm",
        numeric("maximum, of threshold"): lambda one: Value(
            of_alarm(one.highest), order=one.highest
        ),
        numeric(error): lambda one: Value(
            points(one.error), one.direction or UNKNOWN, order=one.error
        ),
        numeric("forecasts"): lambda one: Value(whole(one.n), order=one.n),
        numeric("missing", in_text=False): lambda one: Value(
            percent(one.n_missing / one.n) if one.n else UNKNOWN, order=one.n_missing
        ),
    }
    limit = points_in_full(float(watched.settings["tolerance"]))
    text = (
        "Groups with the highest evidence first. An alarm means an error above the tolerance of"
        f" {limit} points; evidence is the maximum so far. Below an error is its direction:"
        " outcomes higher or lower than forecast, or forecasts too narrow or too wide."
    )
    quiet = [i for i, one in enumerate(groups) if not one.is_alarm]
    dim = quiet if len(quiet) < len(groups) else ()
    table = Table.of("Groups", groups, cells, dim=dim, search="Find a group", printed=PRINTED)
    return Section("Groups", [Paragraph(text), table], "groups")
