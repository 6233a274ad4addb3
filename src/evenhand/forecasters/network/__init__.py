"""Neural forecasters: stacks of networks and their training (torch)."""

from __future__ import annotations

from evenhand.forecasters.network.mixture_mlp import MixtureMLPRegressor
from evenhand.forecasters.network.neural import NeuralForecaster
from evenhand.forecasters.network.paic import PAICRegressor

__all__ = ["MixtureMLPRegressor", "NeuralForecaster", "PAICRegressor"]
