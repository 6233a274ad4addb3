"""Tables of an audit: named, learned and worst groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand import certificates, search
from evenhand._validate import Floats
from evenhand.audits.scores import LEVELS, Band, weighted_mean_band, weighted_share_band
from evenhand.calibration import PITs, covered, error_with_band, n_effective
from evenhand.columns import Group, Groups

EVERYONE = "everyone"
"""The group of all rows, which comes first in the table of groups."""

SMALL_GROUP = 30
"""Rows, less if their weights differ, below which a group is too small to tell."""

UNKNOWN: Band = {"value": np.nan, "low": np.nan, "high": np.nan}

SCAN_COLUMNS = (
    "group",
    "n",
    "error",
    "direction",
    "bias",
    "coverage_80",
    "p_value",
    "p_adjusted",
    "features",
)
LEARNED_COLUMNS = (
    "mass",
    "n",
    "n_judged",
    "error",
    "low",
    "p_value",
    "direction",
    "bias",
    "coverage_80",
    "description",
    "description_share",
    "features",
)


def group_table(
    pits: PITs,
    residual: Floats | None,
    groups: Groups,
    leaks: pd.DataFrame,
    random: np.random.Generator,
) -> pd.DataFrame:
    """Return error, direction and coverage of everybody and of each named group."""
    everyone = Group.given(EVERYONE), np.ones(pits.n_samples, dtype=np.bool_)
    rows = []
    for group, mask in (everyone, *groups.pairs()):
        part = pits.take(mask)
        # each group with its own bootstrap, in the order of the groups: the seed fixes all bands
        w = np.ones(part.n_samples) if part.weights is None else part.weights
        rows.append(
            group_row(
                group,
                part.n_samples,
                error_with_band(part, random_state=random),
                float(np.average(part.matrix.mean(axis=-1), weights=w)),
                UNKNOWN if residual is None else weighted_mean_band(residual[mask], w),
                {level: weighted_share_band(covered(part, level), w) for level in LEVELS},
                n_effective(w) < SMALL_GROUP,
            )
        )
    return group_frame(rows, leaks)


def group_frame(rows: Sequence[Mapping[str, Any]], leaks: pd.DataFrame) -> pd.DataFrame:
    """Table of groups from its rows, those that the outcome may define marked."""
    # as objects: pandas would make NaN of a missing column
    column = pd.Series([row["column"] for row in rows], dtype=object)
    leaked = set(leaks.loc[leaks["kind"] == "group", "name"])
    return pd.DataFrame(rows).assign(
        column=column, possible_leak=[row["group"] in leaked for row in rows]
    )


def with_scanned_as(groups: pd.DataFrame, scan: pd.DataFrame) -> pd.DataFrame:
    """Add to the table of groups the name under which the scan lists each.

    Its own, or that of another with the same rows.
    """
    listed = set(scan["group"])
    same_rows = scan.attrs.get("same_rows", {})
    names = [same_rows.get(name, name) for name in groups["group"]]
    # as objects: pandas would make NaN of a missing name
    column = pd.Series([name if name in listed else None for name in names], dtype=object)
    return groups.assign(scanned_as=column)


def coverage_column(level: float) -> str:
    """Return the name of the column with the coverage of an interval."""
    return f"coverage_{level * 100:.0f}"


def group_row(
    group: Group,
    n: int,
    error: tuple[float, float, float],
    mean_pit: float,
    bias: Band,
    coverage: Mapping[float, Band],
    too_small: bool,
) -> dict[str, Any]:
    """Row of the table of groups.

    Errors come with their band, bias and coverage as `value`, `low`, `high`.
    """
    row: dict[str, Any] = {"group": group.name, "n": n}
    row |= dict(zip(("error", "error_low", "error_high"), error, strict=True))
    row["mean_pit"] = mean_pit
    row |= {"bias": bias["value"], "bias_low": bias["low"], "bias_high": bias["high"]}
    for level, band in coverage.items():
        key = coverage_column(level)
        row |= {key: band["value"], f"{key}_low": band["low"], f"{key}_high": band["high"]}
    return row | {"too_small": too_small, "column": group.column}


def worst_group_table(
    pits: PITs,
    masses: Sequence[float],
    certificate: certificates.PITCertificate | None,
    n_simulations: int,
    random: np.random.Generator,
) -> pd.DataFrame:
    """Oracle worst group of each mass, what chance alone would give, and what is certified."""
    curve = search.worst_group_curve(pits, masses, random_state=0)
    # a fixed seed of its random starts: the group found does not depend on what was searched before
    table = pd.DataFrame(
        {"mass": curve.masses, "n": [rows.size for rows in curve.rows], "error": curve.errors}
    )
    # of calibrated draws: an oracle finds groups in those too (method: worst groups)
    null = search.null_curve(pits, masses, n_simulations=n_simulations, random_state=random)
    table["null_mean"] = null.mean
    table["null_low"] = null.low
    table["null_high"] = null.high
    bounds = [
        np.nan if certificate is None else certificate.group_error(mass) for mass in table["mass"]
    ]
    return table.assign(certified=bounds)


def learned_table(found: Sequence[search.FoundGroup]) -> pd.DataFrame:
    """One row per mass of what the learned search found."""
    # as objects: pandas would make NaN of a missing description
    columns = {
        key: pd.Series([getattr(group, key) for group in found], dtype=object)
        for key in LEARNED_COLUMNS
    }
    numbers = [key for key in columns if key not in ("direction", "description", "features")]
    types: dict[str, type] = dict.fromkeys(numbers, float) | {"n": int, "n_judged": int}
    return pd.DataFrame(columns).astype(types)
