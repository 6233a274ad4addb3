"""Shared code of the studies that vary alpha, with and without recalibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from evenhand.distributions import Recalibrated
from evenhand.forecast import Forecast
from evenhand.forecasters import learn_maps
from reproduction.verdicts import Claim, interval

PAIC = 0.1
LIKELIHOOD = 1.0
"""The values of alpha compared in the paper: mostly individual calibration, and likelihood
only."""

MASS = 0.2
"""Group size of worst-group errors in tables and claims."""

N_DRAWS = 64
"""Draws per person of a PIT matrix."""

LINK = "entropic"
NETWORK = "paper's network"
"""Name of the paper's network in tables."""

MAX_STEPS = 1100
"""Training steps of `PAICRegressor` that reproduce the published figures
(benchmarks/crime_published.py)."""

NEGLIGIBLE = 0.02
"""Largest improvement of an error that counts as none; the errors themselves are about ten times
as large."""

Row = dict[str, Any]
Map = tuple[Floats, Floats]


def learn_map(pit: Floats) -> Map:
    """Return levels and values of an isotonic map of PITs of any shape (method: recalibration)."""
    # draws count as rows: one map is learned for all draws
    seen = pit.ravel()
    levels, values, _ = learn_maps(
        seen, np.ones(seen.size), [("all", np.ones(seen.size, dtype=np.bool_))]
    )
    return levels[0], values[0]


def apply_map(forecast: Forecast, learned: Map) -> Forecast:
    """Recalibrate a forecast with the map."""
    return Forecast(Recalibrated(forecast.distribution, *learned), forecast.r)


def values_at(rows: pd.DataFrame, column: str, alpha: float, recalibrated: bool) -> Floats:
    """Return the values of a measure at one alpha, in the order of the seeds."""
    # sorted by seed, so that differences between alphas are paired
    own = rows[(rows["alpha"] == alpha) & (rows["recalibrated"] == recalibrated)]
    return own.sort_values("seed")[column].to_numpy(dtype=np.float64)


def recalibration_claim(rows: pd.DataFrame, alpha: float) -> Claim:
    """Return the claim that recalibration does not improve adversarial groups."""
    before, after = (values_at(rows, "worst_error", alpha, own) for own in (False, True))
    return Claim(
        f"Recalibration does not improve adversarial groups, alpha {alpha:g}",
        f"worst fifth: error before minus after, at most {NEGLIGIBLE:g}",
        before - after,
        NEGLIGIBLE,
        is_above=False,
    )


def means_with_ends(rows: pd.DataFrame, columns: list[str]) -> Row:
    """Return means of columns, each followed by the ends of its 95% t interval."""
    row: Row = {}
    for column in columns:
        mean, low, high = interval(rows[column].to_numpy(dtype=np.float64))
        row |= {column: mean, f"{column}_low": low, f"{column}_high": high}
    return row


def yes_or_no(answer: bool) -> str:
    """Return a boolean as "yes" or "no", for tables."""
    return "yes" if answer else "no"


def claims_text(rest: str = "") -> str:
    """Return the explanation of the table of claims."""
    return (
        "A claim holds if its whole 95% interval is on the claimed side of the limit, does not hold"
        f" if the whole interval is on the other side, and is undecided otherwise.{rest}"
    )


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, whose plural takes an s."""
    return f"{count} {noun}{'s' * (count > 1)}"
