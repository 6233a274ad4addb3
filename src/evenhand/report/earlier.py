"""Audits of earlier schema versions, read as those of the current one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from evenhand._format import is_known
from evenhand.calibration import coverage_name
from evenhand.report.records import Number, Values, or_zero
from evenhand.report.tolerance import Tolerance

LEVEL = 0.05
"""Adjusted p-value below which a group was off."""

LEAST = 0.0005
"""Least lower bound that made a group off."""


def with_decisions(audit: Values) -> Values:
    """Return an audit whose groups have the columns `off` and `beyond_tolerance`.

    Before version 5, a named group was off if its adjusted p-value in the scan was below 0.05 or
    its certified lower bound was above 0; its own interval decided only without these.
    """
    if any("off" in row for row in audit["groups"]):
        return audit
    scanned = {row["group"]: row.get("p_adjusted") for row in reversed(audit["scan"])}
    listed = (audit["certificate"] or {}).get("groups") or []
    certified = {row["group"]: (row.get("low"), row.get("high")) for row in listed}
    tables = {
        "groups": [_decided(row, scanned, certified) for row in audit["groups"]],
        "scan": [row | {"off": _is_below(row.get("p_adjusted"))} for row in audit["scan"]],
        "learned": [row | {"off": or_zero(row.get("low")) >= LEAST} for row in audit["learned"]],
    }
    return {**audit, **{key: _important(rows) for key, rows in tables.items()}}


def _decided(
    row: Values, scanned: Mapping[str, Number], certified: Mapping[str, tuple[Number, Number]]
) -> Values:
    name = row["group"]
    p_adjusted = scanned.get(row.get("scanned_as") or name)
    ends = row.get("error_low"), row.get("error_high")
    # its own interval holds for itself only and would claim more than the joint judgement
    if name in certified:
        ends = certified[name]
    elif is_known(p_adjusted):
        ends = None, None
    is_judged = not row.get("too_small") and not row.get("possible_leak")
    is_off = is_judged and (_is_below(p_adjusted) or or_zero(ends[0]) >= LEAST)
    bounds = {"error_low": ends[0], "error_high": ends[1]}
    return {**row, **bounds, "p_adjusted": p_adjusted, "off": is_off}


def _is_below(p_adjusted: Any) -> bool:
    return is_known(p_adjusted) and p_adjusted < LEVEL


def _important(rows: Iterable[Mapping[str, Any]]) -> list[Values]:
    return [{**row, "beyond_tolerance": row["off"] and _is_exceeded(row)} for row in rows]


def _is_exceeded(row: Values) -> bool:
    # an unknown number, which is None in JSON, exceeds nothing
    coverage = {level: row.get(coverage_name(level), np.nan) for level in (0.8, 0.9)}
    return bool(Tolerance().is_exceeded(row.get("error", np.nan), coverage))
