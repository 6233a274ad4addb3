"""A small, quick example of every forecaster, for the tests that hold for all of them."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import (
    BayesianRidge,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
)

from evenhand.distributions import OutcomeKind
from evenhand.forecasters import (
    BoostedDistributionRegressor,
    ClassifierForecaster,
    CountRegressor,
    HurdleRegressor,
    MixtureMLPRegressor,
    PAICRegressor,
    RandomizedRegressor,
    RecalibratedClassifier,
    RecalibratedRegressor,
)

Floats = NDArray[np.float64]

QUICK = {"hidden": (16, 16), "max_steps": 60, "learning_rate": 0.02, "random_state": 0}


@dataclass(frozen=True)
class Example:
    """How to make a forecaster, and its outcomes: those of `linear_task`, converted."""

    make: Callable[..., Any]
    outcomes: Callable[[Floats], Floats] = np.asarray
    kind: OutcomeKind = OutcomeKind.CONTINUOUS
    is_randomized: bool = False
    takes_mixed: bool = False


def small_mixture(n_members=2, n_components=2, **params):
    return MixtureMLPRegressor(n_members, n_components, **(QUICK | {"max_steps": 30} | params))


def small_paic(**params):
    return PAICRegressor(**(QUICK | params))


def small_boosted(**params):
    quick = {
        "n_estimators": 80,
        "learning_rate": 0.1,
        "min_child_samples": 5,
        "cv": 3,
        "random_state": 0,
    }
    return BoostedDistributionRegressor(**(quick | params))


SEEDED = {"random_state": 0}

EXAMPLES = {
    "PAICRegressor": Example(small_paic, is_randomized=True),
    "MixtureMLPRegressor": Example(small_mixture),
    "BoostedDistributionRegressor": Example(small_boosted),
    **{
        f"RandomizedRegressor({name})": Example(
            partial(RandomizedRegressor, **SEEDED, **params), is_randomized=True
        )
        for name, params in {
            "Ridge": {"estimator": Ridge()},
            "QuantileRegressor": {"estimator": QuantileRegressor(alpha=0.0), "alpha": 0.2},
            "BayesianRidge, recalibrate": {"estimator": BayesianRidge(), "recalibrate": True},
        }.items()
    },
    "RecalibratedRegressor(BayesianRidge)": Example(
        partial(RecalibratedRegressor, BayesianRidge(), **SEEDED)
    ),
}
"""By name, which begins with the class' name."""


def as_counts(y):
    """Counts that grow with the outcomes of `linear_task`, between 0 and 8."""
    return np.clip(np.floor(2 * np.asarray(y) + 3), 0, 8)


def as_scores(y):
    """Scores from 1 to 3 in steps of 0.5 that grow with the outcomes of `linear_task`."""
    return 2 + np.clip(np.round(np.asarray(y)), -2, 2) / 2


def as_events(y):
    """1 for outcomes above 0.3, 0 for others."""
    return (np.asarray(y) > 0.3).astype(np.float64)


def as_amounts(y):
    """0 for outcomes below 0.3, and amounts for others."""
    return np.maximum(np.asarray(y) - 0.3, 0.0)


HURDLE = HurdleRegressor(LogisticRegression(), BayesianRidge(), **SEEDED)
COUNT, BINARY = OutcomeKind.COUNT, OutcomeKind.BINARY
LOGISTIC = LogisticRegression()

DISCRETE = {
    "CountRegressor(PoissonRegressor)": Example(
        partial(CountRegressor, PoissonRegressor(), **SEEDED), as_counts, COUNT
    ),
    "CountRegressor(None)": Example(
        partial(CountRegressor, **SEEDED), as_counts, COUNT, takes_mixed=True
    ),
    "ClassifierForecaster(None)": Example(
        partial(ClassifierForecaster, **SEEDED), as_events, BINARY, takes_mixed=True
    ),
    "ClassifierForecaster(LogisticRegression)": Example(
        partial(ClassifierForecaster, LOGISTIC), as_events, BINARY
    ),
    "ClassifierForecaster(LogisticRegression), scores": Example(
        partial(ClassifierForecaster, LOGISTIC), as_scores, COUNT
    ),
    "RecalibratedClassifier(LogisticRegression)": Example(
        partial(RecalibratedClassifier, LOGISTIC), as_events, BINARY
    ),
    "HurdleRegressor(LogisticRegression, BayesianRidge)": Example(
        partial(HurdleRegressor, LOGISTIC, BayesianRidge(), **SEEDED),
        as_amounts,
        OutcomeKind.HURDLE,
    ),
    "RandomizedRegressor(LogisticRegression), scores": Example(
        partial(RandomizedRegressor, LOGISTIC, **SEEDED), as_scores, COUNT, is_randomized=True
    ),
    "RandomizedRegressor(HurdleRegressor)": Example(
        partial(RandomizedRegressor, HURDLE, alpha=0.2, **SEEDED),
        as_amounts,
        OutcomeKind.HURDLE,
        is_randomized=True,
    ),
}
"""Forecasters of outcomes with atoms, by name, which begins with the class' name."""


@functools.cache
def error_by_chance():
    """Return the simulated 0.999 quantile of the W1 of `n` uniform PITs, times `sqrt(n)`."""
    pit = np.sort(np.random.default_rng(0).uniform(size=(20_000, 200)))
    errors = np.abs(pit - (np.arange(200) + 0.5) / 200).mean(axis=1)
    return float(np.quantile(errors, 0.999) * np.sqrt(200))


def linear_task(n, seed=0):
    """Three features and an outcome with normal noise of standard deviation 0.5."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, X @ [1.0, -0.5, 0.0] + 0.5 * random.normal(size=n)


def incomes(n, seed=0):
    """Features and lognormal outcomes with standard deviation 0.8 of the logarithm."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    return X, np.exp(1 + 0.8 * X[:, 0] + 0.8 * random.normal(size=n))
