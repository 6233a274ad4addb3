"""Neural forecasters (torch), whose training, which needs torch, is imported on first use."""

from __future__ import annotations

from evenhand.forecasters.network.estimators import MixtureMLPRegressor, PAICRegressor

__all__ = ["MixtureMLPRegressor", "PAICRegressor"]
