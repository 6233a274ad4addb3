"""Forecasters: scikit-learn regressors that predict a whole distribution, `h[x, r]`.

A new forecaster needs one file and its name in `__all__`.
"""

from evenhand.forecast_columns import ForecastColumns
from evenhand.forecasters.adapters import SpreadTrees, adapter_of, is_held_out
from evenhand.forecasters.around import (
    ClassifierForecaster,
    CountRegressor,
    HurdleRegressor,
    RandomizedRegressor,
    TableClassifier,
    TableCounts,
    TableMeans,
    as_forecaster,
)
from evenhand.forecasters.base import (
    SPREADS,
    Bounds,
    Forecaster,
    SpreadKind,
    State,
    check_support,
    thawed,
)
from evenhand.forecasters.boosted import BoostedDistributionRegressor, lightgbm
from evenhand.forecasters.conversions import QuantileGrid, SurvivalModel
from evenhand.forecasters.groups import By
from evenhand.forecasters.networks import MixtureMLPRegressor, PAICRegressor
from evenhand.forecasters.recalibrated import RecalibratedClassifier, RecalibratedRegressor
from evenhand.forecasters.samples import n_cells

__all__ = [
    "FORECASTERS",
    "BoostedDistributionRegressor",
    "ClassifierForecaster",
    "CountRegressor",
    "ForecastColumns",
    "Forecaster",
    "HurdleRegressor",
    "MixtureMLPRegressor",
    "PAICRegressor",
    "RandomizedRegressor",
    "RecalibratedClassifier",
    "RecalibratedRegressor",
    "State",
    "SurvivalModel",
]

FORECASTERS: dict[str, type[Forecaster] | type[ForecastColumns]] = {
    name: globals()[name] for name in __all__ if name not in ("FORECASTERS", "Forecaster", "State")
}
"""Forecasters by their names, which model folders store."""
