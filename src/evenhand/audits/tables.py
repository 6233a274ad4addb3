"""The tables of an audit: scores, named groups, worst groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand import calibration, certificates, search
from evenhand._format import stated
from evenhand._validate import Floats
from evenhand.audits.forecasts import Subject
from evenhand.calibration import crps_and_spread, error_with_band, n_effective
from evenhand.columns import Group, Groups

LEVELS = (0.8, 0.9)
Z95 = 1.959964
SMALL_GROUP = 30

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


def score_table(
    subject: Subject, weight: Floats, random: np.random.Generator, unit: str
) -> pd.DataFrame:
    """Scores with 95% bands, one row per measure; `unit` is that of the outcome."""
    y = subject.outcomes[subject.scored]
    w = weight[subject.scored]
    measured = [("log score", calibration.log_score(subject.wide, y), "nats")]
    if subject.step is not None:
        cells = calibration.cell_log_score(subject.wide, y, subject.step)
        measured.append((f"log score, cells of {subject.step:g}", cells, "nats"))
    scores, spreads = crps_and_spread(subject.few, y)
    measured += [("CRPS", scores, unit), ("mean std", spreads, unit)]
    for level in LEVELS:
        width = calibration.interval_width(subject.few, level)
        measured.append((f"{stated(level)} interval width", width, unit))
    rows = [
        {"measure": name, **_mean_band(values, w), "unit": unit} for name, values, unit in measured
    ]
    return pd.DataFrame(rows + pit_scores(subject.pit, weight, random))


def pit_scores(pit: Floats, weight: Floats, random: np.random.Generator) -> list[dict[str, Any]]:
    """Rows of the score table that PITs alone give."""
    rows: list[dict[str, Any]] = [
        {
            "measure": f"{stated(level)} coverage",
            **_share_band(calibration.covered(pit, level), weight),
            "unit": "share",
        }
        for level in LEVELS
    ]
    error, low, high = error_with_band(pit, sample_weight=weight, random_state=random)
    rows.append(
        {
            "measure": "average error",
            "value": error,
            "low": low,
            "high": high,
            "unit": "probability",
        }
    )
    return rows


def _mean_band(values: Floats, weight: Floats) -> dict[str, float]:
    """Weighted mean with a normal 95% band from the spread between people."""
    mean = float(np.average(values, weights=weight))
    share = weight / weight.sum()
    # linearized variance of a weighted mean
    variance = (
        float((share**2 * (values - mean) ** 2).sum()) if n_effective(weight) >= 2 else np.nan
    )
    return mean_band(mean, variance)


def mean_band(mean: float, variance: float) -> dict[str, float]:
    """A mean with a normal 95% band from its variance."""
    half = Z95 * float(np.sqrt(variance))
    return {"value": mean, "low": mean - half, "high": mean + half}


def _share_band(values: Floats, weight: Floats) -> dict[str, float]:
    """Weighted mean of shares with Wilson's 95% band."""
    mean = float(np.average(values, weights=weight))
    share = weight / weight.sum()
    n = n_effective(weight)
    return share_band(mean, float((share**2 * (values - mean) ** 2).sum()) if n >= 2 else 0.0, n)


def share_band(mean: float, variance: float, n: float) -> dict[str, float]:
    """A mean of shares with Wilson's 95% band, which has a width even where all agree.

    The number of rows is an effective one: that at which single trials would vary as these shares
    do.
    """
    mean = min(max(mean, 0.0), 1.0)
    n = mean * (1 - mean) / variance if variance > 0 else n
    centre = (mean + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * np.sqrt(mean * (1 - mean) / n + (Z95 / (2 * n)) ** 2)
    return {
        "value": mean,
        "low": max(float(centre - half), 0.0),
        "high": min(float(centre + half), 1.0),
    }


def group_table(
    pit: Floats,
    residual: Floats | None,
    groups: Groups,
    leaks: pd.DataFrame,
    weight: Floats,
    random: np.random.Generator,
) -> pd.DataFrame:
    """Error, lean and coverage of everybody and of each named group."""
    everyone = Group.given("everyone"), np.ones(pit.shape[0], dtype=np.bool_)
    rows = []
    for group, mask in (everyone, *groups.pairs()):
        part = pit[mask]
        w = weight[mask]
        bias = (
            {"value": np.nan, "low": np.nan, "high": np.nan}
            if residual is None
            else _mean_band(residual[mask], w)
        )
        rows.append(
            group_row(
                group,
                int(mask.sum()),
                error_with_band(part, sample_weight=w, random_state=random),
                float(np.average(part.mean(axis=-1), weights=w)),
                bias,
                {level: _share_band(calibration.covered(part, level), w) for level in LEVELS},
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
    """Say under which name the scan lists each group.

    Its own, or that of another with the same rows.
    """
    listed = set(scan["group"])
    same_rows = scan.attrs.get("same_rows", {})
    names = [same_rows.get(name, name) for name in groups["group"]]
    # as objects: pandas would make NaN of a missing name
    column = pd.Series([name if name in listed else None for name in names], dtype=object)
    return groups.assign(scanned_as=column)


def group_row(
    group: Group,
    n: int,
    error: tuple[float, float, float],
    mean_pit: float,
    bias: Mapping[str, float],
    coverage: Mapping[float, Mapping[str, float]],
    too_small: bool,
) -> dict[str, Any]:
    """Row of the table of groups.

    Errors come with their band, bias and coverage as `value`, `low`, `high`.
    """
    row: dict[str, Any] = {"group": group.name, "n": n}
    row |= dict(zip(("error", "error_low", "error_high"), error, strict=True)) | {
        "mean_pit": mean_pit
    }
    row |= {"bias": bias["value"], "bias_low": bias["low"], "bias_high": bias["high"]}
    for level, band in coverage.items():
        key = f"coverage_{level * 100:.0f}"
        row |= {key: band["value"], f"{key}_low": band["low"], f"{key}_high": band["high"]}
    return row | {"too_small": too_small, "column": group.column}


def worst_group_table(
    pit: Floats,
    masses: Sequence[float],
    certificate: certificates.PITCertificate | None,
    n_simulations: int,
    random: np.random.Generator,
) -> pd.DataFrame:
    """Oracle worst group of each mass, what chance alone would give, and what is certified."""
    curve = search.worst_group_curve(pit, masses, random_state=0)
    table = pd.DataFrame(
        {"mass": curve.masses, "n": [rows.size for rows in curve.rows], "error": curve.errors}
    )
    null = search.null_curve(pit, masses, n_simulations=n_simulations, random_state=random)
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
    return (
        pd.DataFrame(columns).infer_objects() if not found else _with_numbers(pd.DataFrame(columns))
    )


def _with_numbers(table: pd.DataFrame) -> pd.DataFrame:
    numbers = [key for key in table.columns if key not in ("direction", "description", "features")]
    return table.astype(dict.fromkeys(numbers, float)).astype({"n": int, "n_judged": int})
