"""Tables of an audit: named groups, learned groups and oracle worst groups."""

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
"""Name of the group of all rows, the first row of the table of groups."""

SMALL_GROUP = 30
"""Effective number of rows below which a group is too small for reliable estimates."""

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
    """Return error, direction and coverage, overall and for each named group."""
    everyone = Group.given(EVERYONE), np.ones(pits.n_samples)
    named = ((groups.what(name), groups.membership(name)) for name in groups.names)
    rows = []
    for group, members in (everyone, *named):
        mask = members > 0
        # probabilities of membership are weights: estimates are sum p z / sum p
        part = pits.take(mask).weighted_by(members[mask])
        # groups are bootstrapped one after the other, so the seed determines all intervals
        w = np.ones(part.n_samples) if part.weights is None else part.weights
        rows.append(
            group_row(
                group,
                round(float(members.sum())),
                error_with_band(part, random_state=random),
                float(np.average(part.matrix.mean(axis=-1), weights=w)),
                UNKNOWN if residual is None else weighted_mean_band(residual[mask], w),
                {level: weighted_share_band(covered(part, level), w) for level in LEVELS},
                n_effective(w) < SMALL_GROUP,
            )
        )
    return group_frame(rows, leaks)


def group_frame(rows: Sequence[Mapping[str, Any]], leaks: pd.DataFrame) -> pd.DataFrame:
    """Return the table of groups from its rows, with possible leaks marked."""
    # as objects: pandas would convert None to NaN
    column = pd.Series([row["column"] for row in rows], dtype=object)
    leaked = set(leaks.loc[leaks["kind"] == "group", "name"])
    return pd.DataFrame(rows).assign(
        column=column, possible_leak=[row["group"] in leaked for row in rows]
    )


def with_scanned_as(groups: pd.DataFrame, scan: pd.DataFrame) -> pd.DataFrame:
    """Add the column `scanned_as`: the name under which the scan lists each group's rows.

    It is the group's own name, or that of another group of the same rows.
    """
    listed = set(scan["group"])
    same_rows = scan.attrs.get("same_rows", {})
    names = [same_rows.get(name, name) for name in groups["group"]]
    # as objects: pandas would convert None to NaN
    column = pd.Series([name if name in listed else None for name in names], dtype=object)
    return groups.assign(scanned_as=column)


def coverage_column(level: float) -> str:
    """Return the name of the column that contains the coverage of an interval."""
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
    """Return a row of the table of groups.

    `error` is the error and the ends of its interval; bias and coverage have keys `value`, `low`
    and `high`.
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
    """Return the oracle worst group of each size, its null distribution and the certified bound."""
    # random starts have a fixed seed, so the group does not depend on the searches before
    curve = search.worst_group_curve(pits, masses, random_state=0)
    table = pd.DataFrame(
        {"mass": curve.masses, "n": [rows.size for rows in curve.rows], "error": curve.errors}
    )
    # an oracle finds groups in calibrated forecasts, too (method: worst groups)
    null = search.null_curve(pits, masses, n_simulations=n_simulations, random_state=random)
    table["null_mean"] = null.mean
    table["null_low"] = null.low
    table["null_high"] = null.high
    bounds = [
        np.nan if certificate is None else certificate.group_error(mass) for mass in table["mass"]
    ]
    return table.assign(certified=bounds)


def learned_table(found: Sequence[search.FoundGroup]) -> pd.DataFrame:
    """Return the table of learned groups, one row per size."""
    # as objects: pandas would convert None to NaN
    columns = {
        key: pd.Series([getattr(group, key) for group in found], dtype=object)
        for key in LEARNED_COLUMNS
    }
    numbers = [key for key in columns if key not in ("direction", "description", "features")]
    types: dict[str, type] = dict.fromkeys(numbers, float) | {"n": int, "n_judged": int}
    return pd.DataFrame(columns).astype(types)
