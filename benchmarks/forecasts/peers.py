"""Forecasters of other libraries, as a competent user runs them; needs their environment.

- ngboost: NGBoost with a normal distribution, 500 rounds, defaults otherwise.
- catboost: CatBoost with the loss RMSEWithUncertainty, which predicts a normal distribution;
  1,000 iterations and defaults otherwise. Categories and missing numbers are its own.
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
            (
                "categories",
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                categories,
            ),
        ]
    )


def fit_ngboost(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """NGBoost."""
    model = ngboost.NGBRegressor(n_estimators=500, random_state=seed, verbose=False)
    pipeline = make_pipeline(encoded(), model).fit(X, y)

    def predict(rows: pd.DataFrame) -> dict[str, Any]:
        normal = model.pred_dist(pipeline[0].transform(rows))
        return {"mean": normal.loc, "std": normal.scale}

    return predict


def fit_catboost(X: pd.DataFrame, y: np.ndarray, seed: int) -> Predict:
    """CatBoost with uncertainty."""
    words = list(X.select_dtypes("category"))

    def named(rows: pd.DataFrame) -> pd.DataFrame:
        # CatBoost takes missing numbers, but categories must be text
        return rows.assign(
            **{word: rows[word].astype(object).fillna("missing").astype(str) for word in words}
        )

    model = catboost.CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        cat_features=words,
        random_seed=seed,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    ).fit(named(X), y)

    def predict(rows: pd.DataFrame) -> dict[str, Any]:
        mean, variance = model.predict(named(rows), thread_count=1).T
        return {"mean": mean, "std": np.sqrt(variance)}

    return predict


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
    "catboost": fit_catboost,
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
