"""Neural forecasters (torch), whose files that need torch are imported on first use."""

from __future__ import annotations

from evenhand.forecasters.network.mixture_mlp import MixtureMLPRegressor
from evenhand.forecasters.network.paic import PAICRegressor

__all__ = ["MixtureMLPRegressor", "PAICRegressor"]
