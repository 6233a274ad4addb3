"""Scorers for model selection in scikit-learn: the whole distribution is scored, not its mean.

scikit-learn's default scorer sees `predict` alone, which does not depend on `alpha`. These see
forecasts at 16 fixed draws, the same for every person, so that a score is a function of the model
and the rows: values of `alpha`, links and estimators can be compared by it.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from evenhand._validate import Floats, bad_input
from evenhand.calibration import crps, log_score
from evenhand.draws import nodes
from evenhand.forecast import Forecast

SCORED_DRAWS = 16
"""Draws per person: the mean over them is within 0.001 nats of the mean over all draws."""

__all__ = ["neg_crps", "neg_log_score"]


def neg_log_score(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Score a forecaster by the mean log density of the outcomes; greater is better.

    Parameters
    ----------
    estimator : forecaster
        Fitted; any estimator with `forecast(X, r)`.
    X : DataFrame or array-like of shape (n, n_features)
        Rows.
    y : array-like of shape (n,)
        Continuous outcomes.

    Returns
    -------
    float
        Mean over rows and draws of the log density, in nats per unit of `y`: the negative of the
        log score in an audit.

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

    Randomization always costs log score around a model that is right: `randomize` finds how much of
    it a proof needs, and these scores compare models, links and `alpha` of trained networks.
    """
    return -_mean(log_score(_forecast(estimator, X), y))


def neg_crps(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Score a forecaster by its mean continuous ranked probability score; greater is better.

    Parameters
    ----------
    estimator : forecaster
        Fitted; any estimator with `forecast(X, r)`.
    X : DataFrame or array-like of shape (n, n_features)
        Rows.
    y : array-like of shape (n,)
        Continuous outcomes.

    Returns
    -------
    float
        Minus the mean over rows and draws of the CRPS, in units of `y`; at most 0.

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
        rule = "be a forecaster with forecast(X, r)"
        remedy = "a Pipeline goes inside: RandomizedRegressor(pipeline)"
        raise bad_input("estimator", rule, type(estimator).__name__, remedy)
    # fixed draws, equal for all people: scores of two models differ by the models alone
    forecast: Forecast = estimator.forecast(X, nodes(SCORED_DRAWS))
    return forecast


def _mean(scores: Floats) -> float:
    return float(scores.mean())
