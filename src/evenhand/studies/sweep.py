"""Sweeps of forecasters along alpha, without and with recalibration: the common part of studies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from evenhand.distributions import Recalibrated
from evenhand.forecast import Forecast
from evenhand.forecasters import learn_maps
from evenhand.studies.verdicts import Claim, interval

PAIC = 0.1
LIKELIHOOD = 1.0
"""The alphas that the paper compares: nearly all weight on individual calibration, and none."""

MASS = 0.2
"""Group size of the errors in tables and claims."""

N_DRAWS = 64
"""Draws per person of a PIT matrix."""

LINK = "entropic"
NETWORK = "paper's network"
"""Name of the paper's network in tables."""

MAX_STEPS = 1100
"""Steps of `PAICRegressor`, at which the published figures come out
(benchmarks/crime_published.py)."""

NEGLIGIBLE = 0.02
"""An improvement by less than this counts as none: the errors that it is compared with are ten
times as large."""

Row = dict[str, Any]
Map = tuple[Floats, Floats]


def learn_map(pit: Floats) -> Map:
    """Levels and values of one isotonic map, from PITs of any shape (method: recalibration)."""
    # draws of a person count as rows: one map is learned for all of them
    seen = pit.ravel()
    levels, values, _ = learn_maps(
        seen, np.ones(seen.size), [("all", np.ones(seen.size, dtype=np.bool_))]
    )
    return levels[0], values[0]


def apply_map(forecast: Forecast, learned: Map) -> Forecast:
    """Recalibrate a forecast by the map."""
    return Forecast(Recalibrated(forecast.distribution, *learned), forecast.r)


def values_at(rows: pd.DataFrame, column: str, alpha: float, recalibrated: bool) -> Floats:
    """Values of a measure at one alpha, in the order of the seeds."""
    # by seed, so that differences of two alphas are paired
    own = rows[(rows["alpha"] == alpha) & (rows["recalibrated"] == recalibrated)]
    return own.sort_values("seed")[column].to_numpy(dtype=np.float64)


def recalibration_claim(rows: pd.DataFrame, alpha: float) -> Claim:
    """Claim of both applications: recalibration does not improve adversarial groups."""
    before, after = (values_at(rows, "worst_error", alpha, own) for own in (False, True))
    return Claim(
        f"Recalibration does not improve adversarial groups, alpha {alpha:g}",
        f"worst fifth: error before less after, {NEGLIGIBLE:g} at most",
        before - after,
        NEGLIGIBLE,
        is_above=False,
    )


def means_with_ends(rows: pd.DataFrame, columns: list[str]) -> Row:
    """Means of columns, each followed by the ends of its 95% t interval as `_low` and `_high`."""
    row: Row = {}
    for column in columns:
        mean, low, high = interval(rows[column].to_numpy(dtype=np.float64))
        row |= {column: mean, f"{column}_low": low, f"{column}_high": high}
    return row


def yes_or_no(answer: bool) -> str:
    """Write a truth value as tables show it."""
    return "yes" if answer else "no"


def claims_text(rest: str = "") -> str:
    """Describe the table of claims."""
    return (
        "A claim holds if all of its interval lies on its side, and does not if all of it lies on"
        f" the other.{rest}"
    )


def counted(count: int, noun: str) -> str:
    """Write a count with its noun, which takes an s."""
    return f"{count} {noun}{'s' * (count > 1)}"
