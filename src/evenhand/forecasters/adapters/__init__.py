"""Adapters for models of other libraries, and for forecasts in columns of a table."""

from __future__ import annotations

from evenhand.forecasters.adapters.base import SPREADS as SPREADS
from evenhand.forecasters.adapters.base import Base as Base
from evenhand.forecasters.adapters.base import SpreadKind as SpreadKind
from evenhand.forecasters.adapters.base import Training as Training
from evenhand.forecasters.adapters.base import allows_missing as allows_missing
from evenhand.forecasters.adapters.base import final_step as final_step
from evenhand.forecasters.adapters.base import frozen as frozen
from evenhand.forecasters.adapters.base import thawed as thawed
from evenhand.forecasters.adapters.discrete_bases import ClassifierBase as ClassifierBase
from evenhand.forecasters.adapters.discrete_bases import CountBase as CountBase
from evenhand.forecasters.adapters.discrete_bases import Family as Family
from evenhand.forecasters.adapters.discrete_bases import check_counts as check_counts
from evenhand.forecasters.adapters.discrete_bases import has_poisson_loss as has_poisson_loss
from evenhand.forecasters.adapters.discrete_bases import is_event as is_event
from evenhand.forecasters.adapters.distribution_bases import ForecasterBase as ForecasterBase
from evenhand.forecasters.adapters.distribution_bases import QuantileGrid as QuantileGrid
from evenhand.forecasters.adapters.kinds import KINDS as KINDS
from evenhand.forecasters.adapters.kinds import kind_of as kind_of
from evenhand.forecasters.adapters.residual_bases import ResidualBase as ResidualBase
from evenhand.forecasters.adapters.spread_trees import SpreadTrees as SpreadTrees
from evenhand.forecasters.adapters.spread_trees import on_grids as on_grids
from evenhand.forecasters.adapters.survival import SurvivalBase as SurvivalBase
from evenhand.forecasters.adapters.survival import SurvivalModel as SurvivalModel
