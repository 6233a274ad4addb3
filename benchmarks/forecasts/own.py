"""Evenhand's forecasters in the forecast benchmark, with their defaults.

- network: `MixtureMLPRegressor()`.
- boosted: `BoostedDistributionRegressor()`.
- auto: the one of these two with the lower CRPS on held-out rows, as `evenhand fit --model auto`.
- wrapped: the forecast of `RandomizedRegressor(HistGradientBoostingRegressor())` before
  randomization, a wrapper around a plain regressor.

The result files contain scores per row instead of predictions.

    python benchmarks/forecasts/own.py FOLDER --out FOLDER --tables engel --forecasters network
"""

from __future__ import annotations

import warnings

# imported here, so that the first fit does not include it
import lightgbm  # noqa: F401
import numpy as np
import pandas as pd
import torch
from jobs import Fit, Predict, Rows, run_jobs
from scores import Scale, row_scores
from sklearn.ensemble import HistGradientBoostingRegressor

from evenhand import (
    BoostedDistributionRegressor,
    Forecast,
    MixtureMLPRegressor,
    RandomizedRegressor,
)
from evenhand.cli.fitting import better_model


def fit_network(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """Mixture density networks."""
    return MixtureMLPRegressor(random_state=seed).fit(X, y).forecast


def fit_boosted(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """Boosted mean and spread."""
    return BoostedDistributionRegressor(random_state=seed).fit(X, y).forecast


def fit_auto(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """The better of both on held-out rows."""
    models = {
        "network": MixtureMLPRegressor(random_state=seed),
        "boosted": BoostedDistributionRegressor(random_state=seed),
    }
    return better_model(models, X, y, seed).fit(X, y).forecast


def fit_wrapped(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """Gradient boosting in the wrapper."""
    model = HistGradientBoostingRegressor(random_state=seed)
    return RandomizedRegressor(model, random_state=seed).fit(X, y).base_forecast


FORECASTERS: dict[str, Fit] = {
    "network": fit_network,
    "boosted": fit_boosted,
    "wrapped": fit_wrapped,
    "auto": fit_auto,
}


def scored(forecast: Forecast, rows: Rows, test: np.ndarray) -> dict[str, np.ndarray]:
    """Return the scores of the test rows."""
    return row_scores(forecast, rows.y[test], Scale.of(rows.y))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    run_jobs(FORECASTERS, scored)
