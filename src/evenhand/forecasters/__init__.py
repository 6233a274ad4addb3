"""Forecasters: scikit-learn regressors that predict a whole distribution, `h[x, r]`.

A new forecaster needs one file and one line in `FORECASTERS`.
"""

from __future__ import annotations

from evenhand.forecasters.adapters import SPREADS as SPREADS
from evenhand.forecasters.adapters import SpreadKind as SpreadKind
from evenhand.forecasters.adapters import SpreadTrees as SpreadTrees
from evenhand.forecasters.adapters import SurvivalModel
from evenhand.forecasters.adapters import kind_of as kind_of
from evenhand.forecasters.adapters import plotting_positions as plotting_positions
from evenhand.forecasters.adapters import thawed as thawed
from evenhand.forecasters.base import Forecaster, State
from evenhand.forecasters.boosted import BoostedDistributionRegressor
from evenhand.forecasters.bounds import Bounds as Bounds
from evenhand.forecasters.bounds import check_support as check_support
from evenhand.forecasters.classified import ClassifierForecaster
from evenhand.forecasters.corrections import learn_corrections as learn_corrections
from evenhand.forecasters.counted import CountRegressor
from evenhand.forecasters.curves import Curve as Curve
from evenhand.forecasters.event_terms import learn_disjoint as learn_disjoint
from evenhand.forecasters.event_terms import learn_overlapping as learn_overlapping
from evenhand.forecasters.events import Events as Events
from evenhand.forecasters.grouping import By as By
from evenhand.forecasters.held_out import HeldOut as HeldOut
from evenhand.forecasters.held_out import Maps as Maps
from evenhand.forecasters.hurdle import HurdleRegressor
from evenhand.forecasters.maps import learn_maps as learn_maps
from evenhand.forecasters.maps import refined as refined
from evenhand.forecasters.membership import Everyone as Everyone
from evenhand.forecasters.membership import Overlapping as Overlapping
from evenhand.forecasters.network import MixtureMLPRegressor, PAICRegressor
from evenhand.forecasters.pit_cells import PitCells as PitCells
from evenhand.forecasters.randomized import RandomizedRegressor
from evenhand.forecasters.recalibrated import RecalibratedRegressor
from evenhand.forecasters.rescaling import Rescaling as Rescaling
from evenhand.forecasters.rescaling import learn_rescaling as learn_rescaling
from evenhand.forecasters.rescaling import losses_of_cells as losses_of_cells
from evenhand.forecasters.served import as_forecaster as as_forecaster
from evenhand.forecasters.steps import Patterns as Patterns
from evenhand.forecasters.steps import log_p_values as log_p_values
from evenhand.forecasters.table_models import TableClassifier as TableClassifier
from evenhand.forecasters.table_models import TableCounts as TableCounts
from evenhand.forecasters.tilts import Tilt as Tilt
from evenhand.forecasters.tilts import largest_likelihood as largest_likelihood

FORECASTERS: dict[str, type[Forecaster]] = {
    forecaster.__name__: forecaster
    for forecaster in (
        PAICRegressor,
        MixtureMLPRegressor,
        BoostedDistributionRegressor,
        RandomizedRegressor,
        RecalibratedRegressor,
        HurdleRegressor,
        CountRegressor,
        ClassifierForecaster,
    )
}

__all__ = [
    "FORECASTERS",
    "BoostedDistributionRegressor",
    "ClassifierForecaster",
    "CountRegressor",
    "Forecaster",
    "HurdleRegressor",
    "MixtureMLPRegressor",
    "PAICRegressor",
    "RandomizedRegressor",
    "RecalibratedRegressor",
    "State",
    "SurvivalModel",
]
