"""Adapters for models of other libraries, and for forecasts in columns of a table."""

from __future__ import annotations

from evenhand.forecasters.adapters.base import Base
from evenhand.forecasters.adapters.classifier_bases import ClassifierBase, is_event
from evenhand.forecasters.adapters.count_bases import CountBase, check_counts, has_poisson_loss
from evenhand.forecasters.adapters.dispersion import Family
from evenhand.forecasters.adapters.distribution_bases import ForecasterBase
from evenhand.forecasters.adapters.estimators import (
    SPREADS,
    SpreadKind,
    Training,
    allows_missing,
    final_step,
    frozen,
    thawed,
)
from evenhand.forecasters.adapters.kinds import KINDS, kind_of
from evenhand.forecasters.adapters.quantile_bases import QuantileGrid
from evenhand.forecasters.adapters.residual_bases import ResidualBase
from evenhand.forecasters.adapters.spread_trees import SpreadTrees, on_grids
from evenhand.forecasters.adapters.survival_bases import SurvivalBase
from evenhand.forecasters.adapters.survival_models import SurvivalModel
from evenhand.forecasters.adapters.tails import (
    n_cells,
    plotting_positions,
    residual_distribution,
    tail_knots,
)

__all__ = [
    "KINDS",
    "SPREADS",
    "Base",
    "ClassifierBase",
    "CountBase",
    "Family",
    "ForecasterBase",
    "QuantileGrid",
    "ResidualBase",
    "SpreadKind",
    "SpreadTrees",
    "SurvivalBase",
    "SurvivalModel",
    "Training",
    "allows_missing",
    "check_counts",
    "final_step",
    "frozen",
    "has_poisson_loss",
    "is_event",
    "kind_of",
    "n_cells",
    "on_grids",
    "plotting_positions",
    "residual_distribution",
    "tail_knots",
    "thawed",
]
