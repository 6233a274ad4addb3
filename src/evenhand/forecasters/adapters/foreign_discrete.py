"""Conversion of discrete distributions of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand._format import count
from evenhand._validate import Floats, InputError
from evenhand.distributions import Categorical, Distribution, NegativeBinomial, Poisson

TAIL = 1e-10
"""Probability of each tail that is left out of a table of probabilities."""

MOST_VALUES = 5000
"""Largest number of values in a table of probabilities."""


def is_discrete(predicted: Any) -> bool:
    """Whether a predicted distribution is discrete: of skpro by its tag, others by their name."""
    get_tag = getattr(predicted, "get_tag", None)
    if callable(get_tag):
        return bool(get_tag("distr:measuretype", "continuous", raise_error=False) == "discrete")
    return _family(predicted) == "Poisson"


def discrete_of(predicted: Any, n_samples: int, name: str) -> Distribution:
    """Convert a discrete distribution: Poisson and negative binomial exactly, others by a table.

    Parameters
    ----------
    predicted : object
        Output of a model of skpro or NGBoost, for `n_samples` rows.
    n_samples : int
        Number of rows.
    name : str
        Name of the model, for messages.
    """
    family = _family(predicted)
    values = _parameters(predicted)
    if family == "Poisson" and "mu" in values:
        return Poisson(_column(values["mu"], n_samples))
    if family == "NegativeBinomial" and {"mu", "alpha"} <= values.keys():
        # skpro: the variance is mu + mu**2 / alpha
        mean = _column(values["mu"], n_samples)
        return NegativeBinomial(mean, 1 / _column(values["alpha"], n_samples))
    return _tabulated(predicted, n_samples, name)


def _tabulated(predicted: Any, n_samples: int, name: str) -> Distribution:
    """Return the probabilities of all whole numbers between two extreme quantiles."""
    try:
        low, high = (_column(predicted.ppf(p), n_samples) for p in (TAIL, 1 - TAIL))
        first, last = np.floor(low.min()), np.ceil(high.max())
        if not last - first < MOST_VALUES:
            raise InputError(
                f"estimator {name} predicts values from {first:g} to {last:g}, more than"
                f" {MOST_VALUES}; return a Forecast from a function instead"
            )
        support = np.arange(first, last + 1)
        mass = np.stack([_column(predicted.pmf(value), n_samples) for value in support], axis=-1)
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        raise InputError(
            f"estimator {name} predicts discrete distributions without probabilities (pmf) for"
            f" {count(n_samples, 'row')} ({error}); return a Forecast from a function instead"
        ) from error
    total = mass.sum(axis=-1, keepdims=True)
    if not (np.abs(total - 1) <= 1e-6).all():
        raise InputError(
            f"estimator {name} predicts probabilities of whole numbers that do not add up to 1;"
            " return a Forecast from a function instead"
        )
    return Categorical(support, mass / total)


def _family(predicted: Any) -> str:
    return type(predicted).__name__


def _parameters(predicted: Any) -> dict[str, Any]:
    """Return the parameters of a distribution of skpro or NGBoost."""
    # arrays of one row per person, unlike the constructor parameters of skpro
    broadcast = getattr(predicted, "_bc_params", None)
    if isinstance(broadcast, dict):
        return broadcast
    params = getattr(predicted, "params", None)
    if isinstance(params, dict):
        return params
    get_params = getattr(predicted, "get_params", None)
    return dict(get_params(deep=False)) if callable(get_params) else {}


def _column(values: Any, n_samples: int) -> Floats:
    """Return one number per row."""
    column = np.ravel(np.asarray(values, dtype=np.float64))
    return np.broadcast_to(column, (n_samples,)) if column.size == 1 else column
