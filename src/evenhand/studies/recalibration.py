"""Isotonic recalibration of randomized forecasts: one map for everybody (method: recalibration)."""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats
from evenhand.distributions import Recalibrated
from evenhand.forecast import Forecast
from evenhand.forecasters import learn_maps

Map = tuple[Floats, Floats]


def learn_map(pit: Floats) -> Map:
    """Learn the map from PITs of any shape: its levels and values."""
    # draws of a person count as rows: one map is learned for all of them
    seen = pit.ravel()
    levels, values, _ = learn_maps(
        seen, np.ones(seen.size), [("all", np.ones(seen.size, dtype=np.bool_))]
    )
    return levels[0], values[0]


def apply_map(forecast: Forecast, learned: Map) -> Forecast:
    """Recalibrate a forecast by the map."""
    return Forecast(Recalibrated(forecast.distribution, *learned), forecast.r)
