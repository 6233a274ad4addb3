"""Forecasters of other libraries, as a competent user runs them; needs their environment.

- ngboost: NGBoost with a normal distribution, 500 rounds, defaults otherwise.
- ngboost-stopped: the same with at most 1,000 rounds; it stops after 20 rounds without a better log
  score on a fifth of the rows, and predicts with the best round.
- catboost: CatBoost with the loss RMSEWithUncertainty, which predicts a normal distribution;
  1,000 iterations and defaults otherwise. Categories and missing numbers are its own.
- catboost-stopped: the same; it stops after 50 iterations without a better log score on a fifth of
  the rows, and predicts with the best iteration.
- forest: quantile regression forest (quantile-forest) of 200 trees with at least 5 rows per leaf;
  200 quantiles, at the middles of equal shares of probability.
- conformal: scikit-learn's HistGradientBoostingRegressor with its defaults and native categories,
  fitted on 75% of the rows; the residuals of the other 25% are one distribution for all rows
  (split conformal prediction).

For NGBoost and the forest missing numbers are replaced by the median and categories are one-hot
encoded. One thread each; a fit includes the preparation of features.

    python benchmarks/forecasts/peers.py FOLDER --out FOLDER --tables engel --forecasters ngboost
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import catboost
import ngboost
import numpy as np
import pandas as pd
from jobs import Fit, Predict, run_jobs, table_file, write_table
from quantile_forest import RandomForestQuantileRegressor
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tables import TABLES, read

LEVELS = (np.arange(200) + 0.5) / 200
"""Levels of the quantiles of the forest."""

NOT_PACKAGED = ("crime", "credit")
"""Sources that evenhand's own loaders read."""


def encoded() -> ColumnTransformer:
    """Return a preparation of features for models of plain numbers."""
    categories = make_column_selector(dtype_include="category")
    numbers = make_column_selector(dtype_exclude="category")
    return ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median"), numbers),
            ("categories", OneHotEncoder(handle_unknown="ignore", sparse_output=False), categories),
        ]
    )


def fit_ngboost(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """NGBoost of 500 rounds."""
    model = ngboost.NGBRegressor(n_estimators=500, random_state=seed, verbose=False)
    encoder = encoded()
    model.fit(encoder.fit_transform(X), y)
    return lambda rows: normal_arrays(model, encoder.transform(rows))


def fit_stopped_ngboost(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """NGBoost that stops early."""
    model = ngboost.NGBRegressor(
        n_estimators=1000, early_stopping_rounds=20, random_state=seed, verbose=False
    )
    encoder = encoded()
    numbers = encoder.fit_transform(X)
    learn, stop = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed)
    model.fit(numbers[learn], y[learn], X_val=numbers[stop], Y_val=y[stop])
    return lambda rows: normal_arrays(model, encoder.transform(rows))


def normal_arrays(model: ngboost.NGBRegressor, numbers: np.ndarray) -> dict[str, Any]:
    """Return the normal distributions that NGBoost predicts."""
    # rounds are counted from 0; pred_dist does not choose the best one by itself
    best = model.best_val_loss_itr
    normal = model.pred_dist(numbers, max_iter=None if best is None else best + 1)
    return {"mean": normal.loc, "std": normal.scale}


def fit_catboost(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """CatBoost of 1,000 iterations."""
    model = catboost_model(X, seed).fit(named(X), y)
    return lambda rows: catboost_arrays(model, rows)


def fit_stopped_catboost(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """CatBoost that stops early."""
    learn, stop = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed)
    model = catboost_model(X, seed, early_stopping_rounds=50)
    model.fit(named(X.iloc[learn]), y[learn], eval_set=(named(X.iloc[stop]), y[stop]))
    return lambda rows: catboost_arrays(model, rows)


def catboost_model(X: pd.DataFrame, seed: int, **settings: Any) -> catboost.CatBoostRegressor:
    """Return CatBoost with uncertainty, not fitted."""
    return catboost.CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        cat_features=list(X.select_dtypes("category")),
        random_seed=seed,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        **settings,
    )


def named(X: pd.DataFrame) -> pd.DataFrame:
    """Return features with categories as text; CatBoost takes missing numbers, not categories."""
    words = X.select_dtypes("category")
    return X.assign(
        **{word: words[word].astype(object).fillna("missing").astype(str) for word in words}
    )


def catboost_arrays(model: catboost.CatBoostRegressor, X: pd.DataFrame) -> dict[str, Any]:
    """Return the normal distributions that CatBoost predicts."""
    mean, variance = model.predict(named(X), thread_count=1).T
    return {"mean": mean, "std": np.sqrt(variance)}


def fit_forest(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """Quantile regression forest."""
    model = RandomForestQuantileRegressor(
        n_estimators=200, min_samples_leaf=5, random_state=seed, n_jobs=1
    )
    pipeline = make_pipeline(encoded(), model).fit(X, y)

    def predict(rows: pd.DataFrame) -> dict[str, Any]:
        quantiles = model.predict(pipeline[0].transform(rows), quantiles=list(LEVELS))
        return {"levels": LEVELS, "quantiles": quantiles}

    return predict


def fit_conformal(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """Gradient boosting with split conformal prediction."""
    learn, calibrate = train_test_split(np.arange(len(y)), test_size=0.25, random_state=seed)
    model = HistGradientBoostingRegressor(random_state=seed).fit(X.iloc[learn], y[learn])
    residuals = y[calibrate] - model.predict(X.iloc[calibrate])
    return lambda rows: {"centre": model.predict(rows), "residuals": residuals}


FORECASTERS: dict[str, Fit] = {
    "ngboost": fit_ngboost,
    "ngboost-stopped": fit_stopped_ngboost,
    "catboost": fit_catboost,
    "catboost-stopped": fit_stopped_catboost,
    "forest": fit_forest,
    "conformal": fit_conformal,
}


def prepare(folder: Path) -> None:
    """Write the tables that come inside packages, as all forecasters read them."""
    for table in TABLES:
        if table.source not in NOT_PACKAGED and not table_file(folder, table.name).exists():
            write_table(folder, table, read(table))


def main() -> None:
    """Prepare tables, or run jobs."""
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["prepare"]:
        parser = argparse.ArgumentParser()
        parser.add_argument("prepare")
        parser.add_argument("folder", type=Path)
        prepare(parser.parse_args().folder)
    else:
        run_jobs(FORECASTERS, lambda predicted, rows, test: predicted)


if __name__ == "__main__":
    main()
