"""Exact sentences of the errors of forecasters; other tests check their facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from evenhand import (
    InputError,
    MixtureMLPRegressor,
    PAICRegressor,
    RandomizedRegressor,
    RecalibratedRegressor,
)
from evenhand.forecasters.network import Rows, split_rows
from evenhand.scale import forecast_from_columns

X = np.arange(40.0)[:, None]
Y = X[:, 0] + np.sin(X[:, 0])
TABLE = pd.DataFrame({"age": X[:, 0]})
OUTPUT = pd.DataFrame(
    {"mu": [0.0, 1.0], "sigma": [1.0, 0.0], "q0.1": [0.0, 2.0], "q0.9": [1.0, 1.0]}
)


def randomized(estimator: Any, **options: Any) -> Any:
    return RandomizedRegressor(estimator).fit(X, Y, **options)


def recalibrated(by: Any, rows: Any = TABLE) -> Any:
    return RecalibratedRegressor(LinearRegression(), by=by).fit(rows, Y)


def columns(**options: str) -> Any:
    return forecast_from_columns(OUTPUT, **options, source="t.csv")


def split_without_weight() -> None:
    weight = np.zeros(40)
    weight[0] = 1.0
    split_rows(Rows(X, Y, weight), 0.5, 0)


SENTENCES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: randomized(StandardScaler()),
        "estimator must be a regressor with fit and predict, got StandardScaler; pass a function"
        " from rows to a Forecast instead",
    ),
    (
        lambda: randomized(RandomizedRegressor(lambda rows: (0 * rows[:, 0], 0 * rows[:, 0] + 1))),
        "estimator RandomizedRegressor is already randomized, and randomization must be the"
        " outermost step; use it without this wrapper, or pass a deterministic estimator",
    ),
    (lambda: randomized([]), "estimator is an empty list; give at least one model"),
    (
        lambda: randomized([LinearRegression()]),
        "estimator contains a LinearRegression, but only models that predict normal distributions"
        " or mixtures of them can be mixed; put plain regressors in a VotingRegressor",
    ),
    (
        lambda: randomized(lambda rows: rows),
        "estimator must return a deterministic Forecast, a Distribution or (mean, std) for each of"
        " its 1 row, got ndarray",
    ),
    (
        lambda: randomized(KNeighborsRegressor(), sample_weight=np.ones(40)),
        "sample_weight is not supported by KNeighborsRegressor.fit; fit without weights",
    ),
    (
        lambda: RandomizedRegressor(LinearRegression()).fit(X, None),
        "y is missing: this estimator requires y to be passed, but the target y is None; pass the"
        " outcomes",
    ),
    (
        lambda: RandomizedRegressor(LinearRegression()).fit(TABLE[:0], Y[:0]),
        "X must have at least one row, got an empty table",
    ),
    (
        lambda: recalibrated([]),
        "`by` is empty; name at least one column, or omit it for a single map",
    ),
    (
        lambda: recalibrated("age", X),
        "X must be a table, as `by` names columns, got ndarray; pass a DataFrame, or a function"
        " from X to labels as `by`",
    ),
    (
        lambda: columns(mean="mu"),
        "t.csv: --mean needs --std; name both columns, or add --outcome count if it has counts",
    ),
    (
        lambda: columns(mean="mu", std="sigma"),
        "t.csv: column 'sigma', row 2: a standard deviation must be positive, got 0; correct it or"
        " drop the row",
    ),
    (
        lambda: columns(quantiles="q"),
        "t.csv: column 'q0.9', row 2: quantiles must not decrease with their level, got 1 after 2;"
        " correct them, or sort each row with --sort-quantiles (in Python: sort_quantiles=True)",
    ),
    (
        lambda: columns(quantiles="mu,sigma"),
        "--quantiles must name columns that end in their level, such as q0.05, got 'mu'",
    ),
    (
        lambda: columns(samples="mu"),
        "--samples must name at least two columns, got 'mu'; separate them by commas, or give the"
        " common prefix of their names",
    ),
    (
        lambda: PAICRegressor(hidden=(8,)).fit(X, Y),
        "hidden must list the numbers of units of at least two hidden layers, got (8,)",
    ),
    (lambda: PAICRegressor.path(X, Y, []), "alphas is empty; give at least one alpha"),
    (
        lambda: MixtureMLPRegressor().fit(X, Y, X_val=X),
        "X_val and y_val must be given together, got only one of them",
    ),
    (
        lambda: MixtureMLPRegressor().fit(X, Y, X_val=X, y_val=Y[:3]),
        "y_val must have one value per row (40), got shape (3,)",
    ),
    (
        split_without_weight,
        "sample_weight is zero on all training or all validation rows; drop rows of zero weight",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=[one[1][:40] for one in SENTENCES])
def test_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == sentence
