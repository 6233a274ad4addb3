"""Scorers of predicted distributions for model selection in scikit-learn.

scikit-learn's default scorer uses `predict` only, which does not depend on `alpha`. These scorers
use forecasts at 16 fixed draws, the same for every person, so that a score is a function of the
model and the rows and can compare values of `alpha`, links and estimators.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from evenhand._validate import Floats, bad_input
from evenhand.calibration import crps, log_score
from evenhand.draws import nodes
from evenhand.forecast import Forecast

SCORED_DRAWS = 16
"""Number of draws per person. Their mean is within 0.001 nats of the mean over all draws."""

__all__ = ["neg_crps", "neg_log_score"]


def neg_log_score(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Return the mean log density of the outcomes; greater is better.

    Parameters
    ----------
    estimator : forecaster
        Fitted estimator with a method `forecast(X, r)`.
    X : DataFrame or array-like of shape (n, n_features)
        Features.
    y : array-like of shape (n,)
        Continuous outcomes.

    Returns
    -------
    float
        Log density in nats, for `y` in its own units, mean over rows and draws: the negative of
        the log score in an audit.

    Raises
    ------
    InputError
        If the estimator has no `forecast`, or an outcome is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> from sklearn.model_selection import GridSearchCV
    >>> from evenhand import RandomizedRegressor, scoring
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X[:, 0] + rng.normal(size=200)
    >>> grid = {"alpha": [0.1, 0.5, 1.0]}
    >>> model = RandomizedRegressor(BayesianRidge())
    >>> search = GridSearchCV(model, grid, scoring=scoring.neg_log_score).fit(X, y)
    >>> search.best_params_
    {'alpha': 1.0}

    Around a correct model every randomization costs log score, so `alpha` is not tuned by this
    score: `randomize` finds the weakest randomization that a certificate needs. Use the scores to
    compare models, links and the `alpha` of trained networks.
    """
    return -_mean(log_score(_forecast(estimator, X), y))


def neg_crps(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Return minus the mean continuous ranked probability score; greater is better.

    Parameters
    ----------
    estimator : forecaster
        Fitted estimator with a method `forecast(X, r)`.
    X : DataFrame or array-like of shape (n, n_features)
        Features.
    y : array-like of shape (n,)
        Continuous outcomes.

    Returns
    -------
    float
        Minus the CRPS in units of `y`, mean over rows and draws; at most 0.

    Raises
    ------
    InputError
        If the estimator has no `forecast`, or an outcome is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> from evenhand import RandomizedRegressor, scoring
    >>> X = np.arange(100.0)[:, None]
    >>> y = X[:, 0] + np.random.default_rng(0).normal(size=100)
    >>> sharp = RandomizedRegressor(BayesianRidge(), alpha=1.0).fit(X, y)
    >>> blunt = RandomizedRegressor(BayesianRidge(), alpha=0.1).fit(X, y)
    >>> scoring.neg_crps(sharp, X, y) > scoring.neg_crps(blunt, X, y)
    True
    """
    return -_mean(crps(_forecast(estimator, X), y))


def _forecast(estimator: Any, X: Any) -> Forecast:
    if not hasattr(estimator, "forecast"):
        rule = "be a forecaster with a method forecast(X, r)"
        remedy = "wrap other estimators and pipelines: RandomizedRegressor(pipeline)"
        raise bad_input("estimator", rule, type(estimator).__name__, remedy)
    # with fixed draws, equal for all people, scores of two models differ by the models only
    forecast: Forecast = estimator.forecast(X, nodes(SCORED_DRAWS))
    return forecast


def _mean(scores: Floats) -> float:
    return float(scores.mean())
