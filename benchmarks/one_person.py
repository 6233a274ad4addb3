"""Time of one person's forecast, compared with the model's own `predict`.

Models around which forecasts are randomized are fitted on a generated table, saved and loaded. Rows
are one row of an array of ten numbers, and one row of a pandas table of ten columns of mixed kinds
(numbers, one with missing values, categories, text, a boolean), for models that read such tables
through a pipeline or by themselves. For each row the following run in turn in one process, many
times:

1. `predict` of the fitted base model;
2. `forecast` of the randomized model at a given draw;
3. a keyed draw for the person's id, `forecast` at that draw and one interval.

Medians of the CPU times are shown in microseconds, with the ratios of 2 and 3 to 1. For models
whose `predict` takes `return_std`, 1 is the call with it, as forecasts need it.
The exit code is 1 if a ratio of 2 is above 2, or one of 3 above 2.5.

    OMP_NUM_THREADS=1 python benchmarks/one_person.py [--repeats 100] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge, LinearRegression, QuantileRegressor, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import (
    BoostedDistributionRegressor,
    MixtureMLPRegressor,
    RandomizedRegressor,
    load,
    save,
)
from evenhand.draws import KeyedDraws
from record import print_lost

FITTED = 500
"""Rows of the training table."""

WITH_STD = ("GaussianProcess", "BayesianRidge")
"""Models whose `predict` takes `return_std`."""

MOST_FORECAST, MOST_SERVED = 2.0, 2.5
"""Largest accepted ratios to `predict` of a forecast, and of a forecast with draw and interval."""


def make_table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Generate a table of mixed columns, an array of numbers, and outcomes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    table = pd.DataFrame(X[:, :6], columns=[f"x{i}" for i in range(6)])
    table["seldom"] = np.where(rng.random(n) < 0.1, np.nan, X[:, 6])
    table["is_new"] = X[:, 7] > 0
    table["region"] = rng.choice(["north", "south", "west"], n)
    table["job"] = pd.Categorical(rng.choice([f"job {i}" for i in range(8)], n))
    return table, X, X[:, 0] + X[:, 1] * X[:, 2] + (1 + (X[:, 7] > 0)) * rng.normal(size=n)


def for_table(model: Any) -> Pipeline:
    """Return a pipeline that encodes the mixed columns for a model of numbers."""
    numbers = [*(f"x{i}" for i in range(6)), "seldom", "is_new"]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(sparse_output=False), ["region", "job"]),
    )
    return make_pipeline(columns, model)


def models() -> dict[str, Any]:
    """Return the models by name."""
    kernel = RBF(3.0) + WhiteKernel()
    return {
        "LinearRegression": LinearRegression(),
        "Ridge with scaling": make_pipeline(StandardScaler(), Ridge()),
        "RandomForest(100)": RandomForestRegressor(100, min_samples_leaf=3, random_state=0),
        "GradientBoosting": GradientBoostingRegressor(random_state=0),
        "HistGradientBoosting": HistGradientBoostingRegressor(random_state=0),
        "GaussianProcess": GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True),
        "BayesianRidge": BayesianRidge(),
        "QuantileRegressor": QuantileRegressor(alpha=0.01),
        "boosted distribution": BoostedDistributionRegressor(n_estimators=200, random_state=0),
        "default network": MixtureMLPRegressor(max_steps=100, random_state=0),
    }


def cases(only: list[str]) -> Iterator[tuple[str, str, Any, Any, np.ndarray]]:
    """Yield name, kind of row, model, training rows and outcomes."""
    table, X, y = make_table(FITTED, 0)
    for name, model in models().items():
        if only and name not in only:
            continue
        yield name, "array", model, X, y
        yield name, "numbers", model, pd.DataFrame(X).add_prefix("x"), y
        reads_tables = isinstance(model, BoostedDistributionRegressor | MixtureMLPRegressor)
        if isinstance(model, Pipeline):
            model = model[-1]
        yield name, "table", model if reads_tables else for_table(model), table, y


def median_times(actions: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Run the actions in turn; returns the median seconds of each."""
    times: list[list[float]] = [[] for _ in actions]
    for i in range(repeats + 10):
        for action, found in zip(actions, times, strict=True):
            start = time.process_time()
            action()
            if i >= 10:  # caches are filled by then
                found.append(time.process_time() - start)
    return [statistics.median(found) for found in times]


def actions_of(model: Any, row: Any, options: dict[str, Any]) -> list[Callable[[], Any]]:
    """Return `predict` of the model inside, a forecast, and a keyed draw with one interval."""
    key = b"a key for this benchmark only"

    def served() -> Any:
        draw = KeyedDraws(key, "2026-11")(["person 17"])
        return model.forecast(row, r=draw).interval(0.8)

    return [
        lambda: model.estimator_.predict(row, **options),
        lambda: model.forecast(row, r=0.3),
        served,
    ]


def main() -> None:
    """Measure each model and print a line for it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    # networks are not trained to the end here
    warnings.simplefilter("ignore")
    print(f"medians of {options.repeats}, microseconds")
    print(f"{'model':22} {'row':8} {'predict':>9} {'forecast':>9} {'served':>9}", end=" ")
    print(f"{'forecast':>9} {'served':>9}")
    slow = []
    for name, kind, estimator, X, y in cases(options.only):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "model"
            save(RandomizedRegressor(estimator, random_state=0).fit(X, y), place)
            model = load(place)
        asked = {"return_std": True} if name in WITH_STD else {}
        actions = actions_of(model, X[:1], asked)
        one, forecast, served = median_times(actions, options.repeats)
        ratios = (forecast / one, served / one)
        print(f"{name:22} {kind:8}", *(f"{1e6 * t:9.0f}" for t in (one, forecast, served)), end=" ")
        print(*(f"{ratio:9.2f}" for ratio in ratios), flush=True)
        if ratios[0] > MOST_FORECAST or ratios[1] > MOST_SERVED:
            slow.append(f"{name}, {kind}")
    print(f"required: forecast at most {MOST_FORECAST:g} times predict,", end=" ")
    print(f"with draw and interval {MOST_SERVED:g}")
    raise SystemExit(print_lost(slow))


if __name__ == "__main__":
    main()
