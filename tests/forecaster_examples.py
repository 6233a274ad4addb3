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


SEEDED = {"random_state": 0}


def small_boosted(**params):
    quick = {"n_estimators": 80, "learning_rate": 0.1, "min_child_samples": 5, "cv": 3}
    return BoostedDistributionRegressor(**(quick | SEEDED | params))


around = partial(RandomizedRegressor, **SEEDED)
randomized = partial(Example, is_randomized=True)

EXAMPLES = {
    "PAICRegressor": randomized(small_paic),
    "MixtureMLPRegressor": Example(small_mixture),
    "BoostedDistributionRegressor": Example(small_boosted),
    "RandomizedRegressor(Ridge)": randomized(partial(around, Ridge())),
    "RandomizedRegressor(QuantileRegressor)": randomized(
        partial(around, QuantileRegressor(alpha=0.0), alpha=0.2)
    ),
    "RandomizedRegressor(BayesianRidge, recalibrate)": randomized(
        partial(around, BayesianRidge(), recalibrate=True)
    ),
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


LOGISTIC = LogisticRegression()
hurdle = partial(HurdleRegressor, LOGISTIC, BayesianRidge(), **SEEDED)
counts = partial(Example, outcomes=as_counts, kind=OutcomeKind.COUNT)
scores = partial(Example, outcomes=as_scores, kind=OutcomeKind.COUNT)
events = partial(Example, outcomes=as_events, kind=OutcomeKind.BINARY)
amounts = partial(Example, outcomes=as_amounts, kind=OutcomeKind.HURDLE)

DISCRETE = {
    "CountRegressor(PoissonRegressor)": counts(
        partial(CountRegressor, PoissonRegressor(), **SEEDED)
    ),
    "CountRegressor(None)": counts(partial(CountRegressor, **SEEDED), takes_mixed=True),
    "ClassifierForecaster(None)": events(partial(ClassifierForecaster, **SEEDED), takes_mixed=True),
    "ClassifierForecaster(LogisticRegression), scores": scores(
        partial(ClassifierForecaster, LOGISTIC)
    ),
    "RecalibratedClassifier(LogisticRegression)": events(partial(RecalibratedClassifier, LOGISTIC)),
    "HurdleRegressor(LogisticRegression, BayesianRidge)": amounts(hurdle),
    "RandomizedRegressor(LogisticRegression), scores": scores(
        partial(around, LOGISTIC), is_randomized=True
    ),
    "RandomizedRegressor(HurdleRegressor)": amounts(
        partial(around, hurdle(), alpha=0.2), is_randomized=True
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
