"""Forecasters: scikit-learn regressors that predict a whole distribution, `h[x, r]`.

A new forecaster needs one file and one line in `FORECASTERS`.
"""

from __future__ import annotations

from evenhand.forecast_columns import ForecastColumns
from evenhand.forecasters.around import (
    ClassifierForecaster,
    CountRegressor,
    HurdleRegressor,
    RandomizedRegressor,
)
from evenhand.forecasters.around import TableClassifier as TableClassifier
from evenhand.forecasters.around import TableCounts as TableCounts
from evenhand.forecasters.around import TableMeans as TableMeans
from evenhand.forecasters.around import as_forecaster as as_forecaster
from evenhand.forecasters.base import SPREADS as SPREADS
from evenhand.forecasters.base import Bounds as Bounds
from evenhand.forecasters.base import Forecaster, State
from evenhand.forecasters.base import SpreadKind as SpreadKind
from evenhand.forecasters.base import check_support as check_support
from evenhand.forecasters.base import thawed as thawed
from evenhand.forecasters.boosted import BoostedDistributionRegressor
from evenhand.forecasters.boosted import lightgbm as lightgbm
from evenhand.forecasters.conversions import QuantileGrid as QuantileGrid
from evenhand.forecasters.conversions import SurvivalModel
from evenhand.forecasters.groups import By as By
from evenhand.forecasters.kinds import SpreadTrees as SpreadTrees
from evenhand.forecasters.kinds import is_held_out as is_held_out
from evenhand.forecasters.kinds import kind_of as kind_of
from evenhand.forecasters.networks import MixtureMLPRegressor, PAICRegressor
from evenhand.forecasters.recalibrated import RecalibratedClassifier, RecalibratedRegressor

FORECASTERS: dict[str, type[Forecaster] | type[ForecastColumns]] = {
    forecaster.__name__: forecaster
    for forecaster in (
        PAICRegressor,
        MixtureMLPRegressor,
        BoostedDistributionRegressor,
        RandomizedRegressor,
        RecalibratedRegressor,
        RecalibratedClassifier,
        HurdleRegressor,
        CountRegressor,
        ClassifierForecaster,
        SurvivalModel,
        ForecastColumns,
    )
}

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
