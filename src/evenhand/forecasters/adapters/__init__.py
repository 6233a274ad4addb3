"""Adapters for models of other libraries."""

from __future__ import annotations

from evenhand.forecasters.adapters.conversions import QuantileGrid as QuantileGrid
from evenhand.forecasters.adapters.conversions import check_counts as check_counts
from evenhand.forecasters.adapters.conversions import frozen as frozen
from evenhand.forecasters.adapters.conversions import is_event as is_event
from evenhand.forecasters.adapters.kinds import KINDS as KINDS
from evenhand.forecasters.adapters.kinds import Base as Base
from evenhand.forecasters.adapters.kinds import SpreadTrees as SpreadTrees
from evenhand.forecasters.adapters.kinds import WrappingForecaster as WrappingForecaster
from evenhand.forecasters.adapters.kinds import check_after_fit as check_after_fit
from evenhand.forecasters.adapters.kinds import check_before_fit as check_before_fit
from evenhand.forecasters.adapters.kinds import has_own_support as has_own_support
from evenhand.forecasters.adapters.kinds import is_held_out as is_held_out
from evenhand.forecasters.adapters.kinds import kind_of as kind_of
from evenhand.forecasters.adapters.kinds import on_grids as on_grids
from evenhand.forecasters.adapters.kinds import refuse_binary as refuse_binary
from evenhand.forecasters.adapters.survival import SurvivalModel as SurvivalModel
from evenhand.forecasters.adapters.survival import has_survival_curves as has_survival_curves
