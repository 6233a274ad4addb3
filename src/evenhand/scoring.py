"""Scorers of predicted distributions for model selection in scikit-learn.

scikit-learn's default scorer uses `predict` only, which does not depend on `alpha`. These scorers
use forecasts at 16 fixed draws, the same for every person, so that a score is a function of the
model and the rows and can compare values of `alpha`, links and estimators.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, bad_input
from evenhand.calibration import Rounding, crps, log_score_on
from evenhand.draws import nodes
from evenhand.forecast import Forecast

SCORED_DRAWS = 16
"""Number of draws per person. Their mean is within 0.001 nats of the mean over all draws."""

__all__ = ["neg_cell_log_score", "neg_crps", "neg_log_score"]


def neg_log_score(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Return the mean log density of the outcomes; greater is better.

    For counts, scores and events it is the mean log probability; for outcomes with an atom, the
    log probability at the atom and the log density elsewhere.

    Where the outcomes are rounded (`calibration.rounding_step`), the density is the mean density
    over each outcome's rounding cell, as in `neg_cell_log_score`: narrow spikes on the grid can
    raise a log density without limit.

    Parameters
    ----------
    estimator : forecaster
        Fitted estimator with a method `forecast(X, r)`.
    X : DataFrame or array-like of shape (n, n_features)
        Features.
    y : array-like of shape (n,)
        Outcomes, of the kind that the forecaster predicts.

    Returns
    -------
    float
        Log density in nats, for `y` in its own units, mean over rows and draws: the negative of
        the log score in an audit, or of that with cells.

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

    The grid is that of the rows that are scored. All candidates of a search have the same folds,
    so their scores are of the same kind. A fold of under ten distinct outcomes looks continuous
    unless a tenth of them are repeated: give the step to `neg_cell_log_score` then.
    """
    return -_mean(log_score_on(_forecast(estimator, X), y, Rounding.grid(y)))


def neg_cell_log_score(
    step: float, span: tuple[float, float] = (-np.inf, np.inf)
) -> Callable[[Any, Any, ArrayLike], float]:
    """Return a scorer: the mean log density over each outcome's rounding cell; greater is better.

    The score of an outcome `y` is the logarithm of the probability of its cell, `y -+ step / 2`,
    divided by the step. It does not depend on the other rows, so that folds of any size have the
    same score, and it equals the log density for a fine step.

    Parameters
    ----------
    step : float
        Rounding step of the outcomes, above 0, in units of `y`; `calibration.rounding_step` detects
        it.
    span : tuple of float, default (-inf, inf)
        Bounds at which outcomes are clipped, such as (0, 1) of a share; a cell at a bound is open
        and has all probability beyond it.

    Returns
    -------
    callable
        Scorer with the arguments `estimator`, `X` and `y` of `neg_log_score`; it returns a float in
        nats, for `y` in its own units.

    Raises
    ------
    InputError
        If the step is not positive.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> from sklearn.model_selection import cross_val_score
    >>> from evenhand import RandomizedRegressor, calibration, scoring
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = np.round(3 * X[:, 0] + rng.normal(size=200), 1)
    >>> scorer = scoring.neg_cell_log_score(calibration.rounding_step(y))
    >>> model = RandomizedRegressor(BayesianRidge())
    >>> cross_val_score(model, X, y, scoring=scorer, cv=3).shape
    (3,)
    """
    if not step > 0:
        raise bad_input("step", "be positive", step)
    # a partial function of a module can be sent to other processes
    return partial(_score_on_grid, Rounding(float(step), span))


def _score_on_grid(grid: Rounding, estimator: Any, X: Any, y: ArrayLike) -> float:
    return -_mean(log_score_on(_forecast(estimator, X), y, grid))


def neg_crps(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Return minus the mean continuous ranked probability score; greater is better.

    Parameters
    ----------
    estimator : forecaster
        Fitted estimator with a method `forecast(X, r)`.
    X : DataFrame or array-like of shape (n, n_features)
        Features.
    y : array-like of shape (n,)
        Outcomes, of the kind that the forecaster predicts.

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
