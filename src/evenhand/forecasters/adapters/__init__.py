"""Adapters for models of other libraries, and for forecasts in columns of a table."""

from __future__ import annotations

from evenhand.forecasters.adapters.base import (
    SPREADS,
    Base,
    SpreadKind,
    Training,
    allows_missing,
    final_step,
    frozen,
    thawed,
)
from evenhand.forecasters.adapters.discrete_bases import (
    ClassifierBase,
    CountBase,
    Family,
    check_counts,
    has_poisson_loss,
    is_event,
)
from evenhand.forecasters.adapters.distribution_bases import ForecasterBase, QuantileGrid
from evenhand.forecasters.adapters.kinds import KINDS, kind_of
from evenhand.forecasters.adapters.residual_bases import ResidualBase
from evenhand.forecasters.adapters.spread_trees import SpreadTrees, on_grids
from evenhand.forecasters.adapters.survival import SurvivalBase, SurvivalModel

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
    "on_grids",
    "thawed",
]
