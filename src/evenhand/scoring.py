"""Scores of forecasts per person, scores of 0/1 probabilities, and scorers for scikit-learn.

scikit-learn's default scorer uses `predict` only, which does not depend on `alpha`. The scorers
here use forecasts at 16 fixed draws, the same for every person, so that a score is a function of
the model and the rows and can compare values of `alpha`, links and estimators.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import optimize, special

from evenhand._validate import (
    Floats,
    Ints,
    Mask,
    Pair,
    bad_input,
    check_count,
    check_finite,
    check_fraction,
    check_weights,
    refuse_entry,
)
from evenhand.calibration import binomial_intervals, check_events, mid_ranks, over_draws, rank_parts
from evenhand.draws import nodes
from evenhand.forecast import Forecast
from evenhand.outcomes import Outcomes, Rounding
from evenhand.results import Interval, ProbabilityScores, with_ends
from evenhand.tables import EVERYONE

SCORED_DRAWS = 16
"""Number of draws per person. Their mean is within 0.001 nats of the mean over all draws."""

__all__ = [
    "cell_log_score",
    "crps",
    "interval_width",
    "isotonic_curve",
    "log_score",
    "neg_cell_log_score",
    "neg_crps",
    "neg_log_score",
    "probability_scores",
    "reliability",
    "spread",
]

# --- scorers


def neg_log_score(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Return the mean log density of the outcomes; greater is better.

    For counts, scores and events it is the mean log probability; for outcomes with an atom, the
    log probability at the atom and the log density elsewhere.

    Where the outcomes are rounded (`outcomes.rounding_step`), the density is the mean density
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
    return _score_on_grid(Rounding.grid(y), estimator, X, y)


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
        Rounding step of the outcomes, above 0, in units of `y`; `outcomes.rounding_step` detects
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
    >>> from evenhand import RandomizedRegressor, outcomes, scoring
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = np.round(3 * X[:, 0] + rng.normal(size=200), 1)
    >>> scorer = scoring.neg_cell_log_score(outcomes.rounding_step(y))
    >>> model = RandomizedRegressor(BayesianRidge())
    >>> cross_val_score(model, X, y, scoring=scorer, cv=3).shape
    (3,)
    """
    if not step > 0:
        raise bad_input("step", "be positive", step)
    # a partial function of a module can be sent to other processes
    return partial(_score_on_grid, Rounding(float(step), span))


def _score_on_grid(grid: Rounding, estimator: Any, X: Any, y: ArrayLike) -> float:
    return -float(log_score_on(_forecast(estimator, X), y, grid).mean())


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
    return -float(crps(_forecast(estimator, X), y).mean())


def _forecast(estimator: Any, X: Any) -> Forecast:
    if not hasattr(estimator, "forecast"):
        rule = "be a forecaster with a method forecast(X, r)"
        remedy = "wrap other estimators and pipelines: RandomizedRegressor(pipeline)"
        raise bad_input("estimator", rule, type(estimator).__name__, remedy)
    # with fixed draws, equal for all people, scores of two models differ by the models only
    return estimator.forecast(X, nodes(SCORED_DRAWS))


# --- scores of forecasts per person (method: front)


def log_score(forecast: Forecast, y: ArrayLike) -> Floats:
    """Return the negative log density of each outcome in nats, mean over draws; lower is better.

    At an outcome that has a probability, such as a count or the zero of a hurdle, it is the
    negative log probability.

    Raises
    ------
    InputError
        If an outcome is outside the support of its forecast, where the score is infinite.
    """
    outcomes = check_finite("y", y)
    scores = log_loss(forecast, outcomes)
    rule = "lie within the support of the forecasts"
    remedy = "correct the outcome, or fit the forecaster with a wider support"
    refuse_entry("y", outcomes, np.isposinf(scores), rule, remedy)
    return scores


def cell_log_score(
    forecast: Forecast, y: ArrayLike, step: float, span: tuple[float, float] | None = None
) -> Floats:
    """Return the negative log mean density over each outcome's rounding cell in nats.

    The score of an outcome `y` is `-log(P(rounding cell of y) / step)`, mean over draws. On rounded
    outcomes spikes on the grid can increase a log density without limit, but not the probability
    of a cell. The outer cells, those of the smallest and largest outcome (of `span`, if given), are
    open. For a fine step the score of all other outcomes equals the log score.
    """
    outcomes = check_finite("y", y)
    ends = (float(outcomes.min()), float(outcomes.max())) if span is None else span
    return over_draws(-forecast.log_cell(outcomes, step, ends))


def log_score_on(forecast: Forecast, y: ArrayLike, grid: Rounding) -> Floats:
    """Return the log score; the cell log score where continuous outcomes lie on a grid."""
    if grid.step is None or forecast.has_atoms:
        return log_score(forecast, y)
    return cell_log_score(forecast, y, grid.step, grid.span)


def crps(forecast: Forecast, y: ArrayLike) -> Floats:
    """Return the continuous ranked probability score of each outcome, in units of `y`.

    The score is the mean over draws.
    """
    outcomes = check_finite("y", y)
    return _in_blocks(forecast, lambda part, rows: part.crps(outcomes[rows]))[0]


def censored_log_score(forecast: Forecast, times: Outcomes) -> Floats:
    """Return right-censored log scores, mean over draws."""
    # an atom at the horizon is known to be the outcome of who reaches it
    is_open = times.is_lost if forecast.has_atoms else ~times.happened
    y = times.value
    found = log_loss(forecast, y)
    if is_open.any():
        some = forecast[is_open]
        at = y[is_open] if len(some.distribution.batch_shape) == 1 else y[is_open, None]
        found[is_open] = over_draws(-some.distribution.logsf(at))
    return found


def log_loss(forecast: Forecast, y: Floats) -> Floats:
    """Return log scores; infinite where a forecast excludes the outcome.

    Classifiers often predict probabilities of exactly 0. That makes a log score useless, but not
    the audit.
    """
    return over_draws(-forecast.log_density(y))


def spread(forecast: Forecast) -> Floats:
    """Return the standard deviation of each person's forecasts, in units of `y`.

    The value is the mean over draws.
    """
    return _in_blocks(forecast, lambda part, _: part.std())[0]


def crps_and_spread(forecast: Forecast, y: ArrayLike) -> Pair:
    """Return `crps` and `spread` together, in half the time: both use a table of each forecast."""
    outcomes = check_finite("y", y)
    scores, spreads = _in_blocks(
        forecast, lambda part, rows: part.crps(outcomes[rows]), lambda part, _: part.std()
    )
    return scores, spreads


def interval_width(forecast: Forecast, level: float = 0.9) -> Floats:
    """Return the width of each person's central intervals, mean over draws, in units of `y`."""
    low, high = forecast.interval(level)
    return over_draws(high - low)


def _in_blocks(forecast: Forecast, *measures: Callable[[Forecast, slice], Floats]) -> list[Floats]:
    """Return the means over draws of some measures, computed in blocks of rows."""
    blocks = [
        [over_draws(measure(part, rows)) for measure in measures]
        for rows, part in forecast.blocks()
    ]
    return [np.concatenate(each) for each in zip(*blocks, strict=True)]


# --- scores of probabilities of 0/1 outcomes, and the isotonic curve with its band

LEAST_EVENTS = 10
"""Fewest events, and fewest rows without the event, for a slope."""

STEEPEST = 10.0
"""Absolute slope beyond which outcomes count as separated by the probabilities."""

MOST_NEWTON = 50
"""Largest number of Newton steps."""

SPAN = 0.75
"""Share of the rows in each local regression (Austin & Steyerberg 2019)."""

MOST_BINS = 200
"""Most distinct probabilities in local regressions; more are averaged in bins of equal weight."""

MOST_POINTS = 80
"""Most points of an isotonic curve, beside the ends of the groups of its band."""

UNKNOWN = Interval(np.nan, np.nan, np.nan)


def probability_scores(
    probability: ArrayLike,
    event: ArrayLike,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> ProbabilityScores:
    """Return the usual scores of probabilities of 0/1 outcomes.

    Parameters
    ----------
    probability : array-like of shape (n,) or (n, m)
        Probabilities of the event; the mean is taken over draws.
    event : array-like of shape (n,)
        1 or True where the event occurred, else 0 or False.
    sample_weight : array-like of shape (n,), optional
        Sampling weights. Unequal ones need robust (sandwich) variances of slope and intercept.
    confidence : float, default 0.95
        Confidence of each interval by itself. All intervals are asymptotic.

    Returns
    -------
    ProbabilityScores
        A record of numbers; NaN where one does not exist.

        n, n_events : int
            Numbers of rows of positive weight, and of events among them.
        predicted, rate : float
            Mean probability and event rate.
        slope, slope_low, slope_high : float
            Slope of the logistic regression of the event on an intercept and the log odds of the
            probability, and its Wald interval (Cox, Biometrika 45, 1958). It is 1 if probabilities
            are right, and below 1 if they are too extreme. NaN with fewer than 10 events or 10
            other rows (effective numbers, with weights), for equal probabilities, and where
            probabilities separate the outcomes: if Newton's method does not converge, or the slope
            is beyond 10.
        intercept, intercept_low, intercept_high : float
            Calibration in the large: intercept of the logistic regression with slope 1, and its
            Wald interval. It is 0 if probabilities are right on average. NaN if all outcomes are
            equal. Where the slope is not 1 the interval is too short: at 0.62 it misses in 8%, not
            5%.
        observed_expected, observed_expected_low, observed_expected_high : float
            Event rate divided by mean probability. The Wald interval of its logarithm uses the
            robust variance of a ratio of means; it is NaN without events.
        ici, e_max : float
            Mean and largest distance between the probability and the event rate by a local linear
            regression on it, with tricube weights and a span of 0.75.
        auc : float
            Area under the ROC curve: the probability that a row with the event has a larger
            probability than one without; ties count one half. NaN if all outcomes are equal.
        brier, scaled_brier : float
            Mean squared error, and the share by which it is below that of the event rate; the
            latter is NaN if all outcomes are equal.
        log_loss : float
            Mean negative log probability of the outcome. Infinite if an outcome was impossible.

    Raises
    ------
    InputError
        If a probability is not between 0 and 1, or an event is neither 0 nor 1.

    Notes
    -----
    Slope and intercept leave out probabilities of exactly 0 and 1, whose log odds are infinite: a
    predicted outcome does not change the fit, and no slope above 0 fits an impossible one.

    ICI (integrated calibration index) and Emax are those of Austin and Steyerberg (Statistics in
    Medicine 38, 2019), but local regressions are linear, as in probcal and in Harrell's `val.prob`,
    where R's `loess` fits parabolas; curves are not limited to [0, 1]. More than 200 distinct
    probabilities are averaged in 200 bins of equal weight. By chance the ICI of right probabilities
    is above 0: about 0.03 at 300 rows and 0.01 at 2,000.

    Examples
    --------
    >>> p = np.repeat([0.2, 0.8], 50)
    >>> found = probability_scores(p, np.arange(100) % 10 < np.repeat([2, 8], 50))
    >>> round(found.slope, 3), round(found.auc, 2), round(found.brier, 2)
    (1.0, 0.8, 0.16)
    """
    z = -float(special.ndtri((1 - check_fraction("confidence", confidence)) / 2))
    levels = _levels(probability, event, sample_weight)
    p, yes, no = levels[:3]
    total = levels.total
    weight, events = float(total.sum()), float(yes.sum())
    predicted, rate = float(total @ p) / weight, events / weight
    brier = float(no @ p**2 + yes @ (1 - p) ** 2) / weight
    auc, variance = np.nan, np.nan
    if yes.any() and no.any():
        # of rows with the same probability, one half counts as below
        auc = float(yes @ (np.cumsum(no) - no / 2)) / (events * float(no.sum()))
        variance = rate * (1 - rate)
    estimates = {
        "slope": _slope(levels, z),
        "intercept": _intercept(levels, z),
        "observed_expected": _observed_expected(levels, z),
    }
    ici, e_max = _distances(levels)
    return ProbabilityScores(
        group=EVERYONE,
        n=int(levels.n.sum()),
        n_events=int(levels.n_events.sum()),
        predicted=predicted,
        rate=rate,
        **{
            each: end
            for name, one in estimates.items()
            for each, end in zip(with_ends(name), one, strict=True)
        },
        ici=ici,
        e_max=e_max,
        auc=auc,
        brier=brier,
        scaled_brier=1 - brier / variance,
        log_loss=-float((special.xlogy(yes, p) + special.xlog1py(no, -p)).sum()) / weight,
    )


def calibration_slope(
    probability: ArrayLike, event: ArrayLike, sample_weight: ArrayLike | None = None
) -> Interval:
    """Return the slope of `probability_scores` with its 95% interval, without the other scores."""
    return _slope(_levels(probability, event, sample_weight), float(special.ndtri(0.975)))


class _Levels(NamedTuple):
    """Distinct probabilities in increasing order, with sums over their rows.

    `yes` and `no` are the weights of the rows with the event and without it, `yes_squares` and
    `no_squares` sums of squared weights, `n` and `n_events` numbers of rows and of events.
    """

    p: Floats
    yes: Floats
    no: Floats
    yes_squares: Floats
    no_squares: Floats
    n: Floats
    n_events: Floats

    @property
    def is_weighted(self) -> bool:
        """Whether the weights of rows differ."""
        return not np.allclose(self.total, self.yes_squares + self.no_squares, rtol=1e-9, atol=0)

    @property
    def total(self) -> Floats:
        """Weight of each level."""
        return self.yes + self.no

    def inner(self) -> _Levels:
        """Return the levels with finite log odds."""
        kept = (self.p > 0) & (self.p < 1)
        return _Levels(*(column[kept] for column in self))

    def squares(self, fitted: Floats) -> Floats:
        """Return the sums of `w^2 (y - fitted)^2`."""
        return self.yes_squares * (1 - fitted) ** 2 + self.no_squares * fitted**2


def _levels(p: ArrayLike, y: ArrayLike, w: ArrayLike | None) -> _Levels:
    """Check the rows and return their levels; the weights of rows have mean 1."""
    probability, event = check_events(p, y)
    weight = check_weights(w, event.size)
    order = np.argsort(probability)
    order = order[weight[order] > 0]
    probability, event, weight = probability[order], event[order], weight[order]
    weight = weight / weight.mean()
    yes, no = weight * event, weight * (1 - event)
    columns = np.stack([yes, no, weight * yes, weight * no, np.ones(event.size), event])
    distinct, first = np.unique(probability, return_index=True)
    return _Levels(distinct, *np.add.reduceat(columns, first, axis=-1))


def _slope(levels: _Levels, z: float) -> Interval:
    """Return the calibration slope."""
    levels = levels.inner()
    p = levels.p
    yes, no, yes_squares, no_squares = (float(one.sum()) for one in levels[1:5])
    # effective numbers, sum(w)^2 / sum(w^2), of which 10 may be a rounding error below 10
    least = LEAST_EVENTS - 1e-9
    if p.size < 2 or yes**2 < least * yes_squares or no**2 < least * no_squares or not yes * no:
        return UNKNOWN
    odds = special.logit(p)
    odds -= np.average(odds, weights=levels.total)
    found = _logistic(np.stack([odds, np.ones(p.size)]), np.zeros(p.size), levels, z)
    is_known = found.value is not None and abs(found.value) <= STEEPEST
    return found if is_known else UNKNOWN


def _intercept(levels: _Levels, z: float) -> Interval:
    """Return the calibration in the large."""
    levels = levels.inner()
    if not levels.yes.any() or not levels.no.any():
        return UNKNOWN
    return _logistic(np.ones((1, levels.p.size)), special.logit(levels.p), levels, z)


def _logistic(terms: Floats, offset: Floats, levels: _Levels, z: float) -> Interval:
    """Return the first coefficient of a logistic regression, by Newton's method.

    `terms` has shape (k, levels). Steps are halved until the log likelihood does not fall.
    """
    yes, total = levels.yes, levels.total
    found, eta = np.zeros(len(terms)), offset

    def loss(eta: Floats) -> float:
        return float(total @ np.logaddexp(0, eta) - yes @ eta)

    least = loss(eta)
    for _ in range(MOST_NEWTON):
        fitted = special.expit(eta)
        information = (terms * (total * fitted * (1 - fitted))) @ terms.T
        if not np.linalg.cond(information) < 1e14:
            return UNKNOWN
        inverse = np.linalg.inv(information)
        step = inverse @ (terms @ (yes - total * fitted))
        if np.abs(step).max() < 1e-8:
            break
        while (now := loss(eta := offset + (found + step) @ terms)) > least + 1e-12 * abs(least):
            step = step / 2
        found, least = found + step, now
    else:
        return UNKNOWN
    variance = inverse
    if levels.is_weighted:
        variance = inverse @ (terms * levels.squares(fitted)) @ terms.T @ inverse
    estimate, half = float((found + step)[0]), z * float(np.sqrt(variance[0, 0]))
    return Interval(estimate, estimate - half, estimate + half)


def _observed_expected(levels: _Levels, z: float) -> Interval:
    """Return the ratio of event rate and mean probability."""
    events, expected = float(levels.yes.sum()), float(levels.total @ levels.p)
    if not expected:
        return UNKNOWN
    ratio = events / expected
    if not events:
        return Interval(ratio, np.nan, np.nan)
    # of the linearized logarithm: sum w (y - ratio p) / sum w y
    factor = float(np.exp(z * np.sqrt(levels.squares(ratio * levels.p).sum()) / events))
    return Interval(ratio, ratio / factor, ratio * factor)


def _distances(levels: _Levels) -> tuple[float, float]:
    """Return the mean and the largest distance between probability and smooth event rate."""
    p, total = levels.p, levels.total
    mass, mean_p, rate = _binned(levels)
    # no value beyond the ends of the curve
    at = mean_p.copy()
    at[[0, -1]] = p[[0, -1]]
    distance = np.abs(mean_p - at[:, None])
    within = np.cumsum(mass[np.argsort(distance, axis=-1)], axis=-1)
    farthest = (within < (SPAN - 1e-9) * within[:, -1:]).sum(axis=-1, keepdims=True)
    reach = np.take_along_axis(np.sort(distance, axis=-1), farthest, -1)
    share = np.divide(distance, reach, out=1.0 * (distance > 0), where=reach > 0)
    kernel = mass * np.maximum(1 - share**3, 0.0) ** 3
    # least squares of `rate ~ a + b (mean_p - at)` at each point; `a` is the curve
    x = mean_p - at[:, None]
    s, sx, sxx = kernel.sum(axis=-1), (kernel * x).sum(axis=-1), (kernel * x**2).sum(axis=-1)
    sy, sxy = kernel @ rate, (kernel * x) @ rate
    determinant = s * sxx - sx**2
    is_line = determinant > 1e-12 * s * sxx
    # the event rate of the only probability within reach has no line
    curve = np.divide(sxx * sy - sx * sxy, determinant, out=sy / s, where=is_line)
    found = np.abs(np.interp(p, at, curve) - p)
    return float(np.average(found, weights=total)), float(found.max())


def _binned(levels: _Levels) -> tuple[Floats, Floats, Floats]:
    """Return weights, mean probabilities and event rates of bins of about equal weight."""
    p, yes, total = levels.p, levels.yes, levels.total
    if p.size <= MOST_BINS:
        return total, p, yes / total
    place = (MOST_BINS * (np.cumsum(total) - total / 2) / total.sum()).astype(int)
    first = np.unique(place, return_index=True)[1]
    mass = np.add.reduceat(total, first)
    return mass, np.add.reduceat(total * p, first) / mass, np.add.reduceat(yes, first) / mass


def isotonic_curve(
    probability: ArrayLike,
    event: ArrayLike,
    lowest: Floats,
    highest: Floats,
    low: Floats,
    high: Floats,
    sample_weight: ArrayLike | None = None,
) -> pd.DataFrame:
    """Return the isotonic regression of an event on its probability, with a band.

    The regression is the reliability curve of Dimitriadis, Gneiting and Jordan (PNAS 118, 2021,
    doi:10.1073/pnas.2016191118). If the event rate does not fall as the probability rises, it is at
    least the lower end of the interval of every group of smaller probabilities, and at most the
    upper end of every group of larger ones: the band contains it wherever the intervals of all
    groups contain the rates of the groups.

    Parameters
    ----------
    probability, event : array-like of shape (n,)
        Probabilities and 0/1 outcomes.
    lowest, highest : ndarray of shape (k,)
        Least and largest probability in each of k groups by the probability.
    low, high : ndarray of shape (k,)
        Ends of the interval of the event rate of each group.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    DataFrame
        Points of the curve: `probability` in increasing order, `rate`, and the band from `low` to
        `high`. The points are the ends of steps of the curve, 80 of them at most, and those of the
        groups; lines between them are the curve. Between two points the band extends from the `low`
        of the left one to the `high` of the right one. Ends are NaN where the intervals of the
        groups contradict a rate that does not fall.

    Raises
    ------
    InputError
        If a probability is not between 0 and 1, or an event is neither 0 nor 1.

    Examples
    --------
    >>> p = np.repeat([0.1, 0.5], 100)
    >>> y = np.arange(200) % 10 < np.repeat([2, 4], 100)
    >>> groups, low, high = np.array([0.1, 0.5]), np.array([0.1, 0.3]), np.array([0.3, 0.5])
    >>> isotonic_curve(p, y, groups, groups, low, high)
       probability  rate  low  high
    0          0.1   0.2  0.1   0.3
    1          0.5   0.4  0.3   0.5
    """
    levels = _levels(probability, event, sample_weight)
    p = levels.p
    fitted = optimize.isotonic_regression(levels.yes / levels.total, weights=levels.total)
    first, after = fitted.blocks[:-1], fitted.blocks[1:]
    ends = p[np.union1d(first, after - 1)]
    if ends.size > MOST_POINTS:
        ends = ends[np.linspace(0, ends.size - 1, MOST_POINTS).round().astype(int)]
    at = np.unique(np.concatenate((ends, lowest, highest)))
    below, above = highest[:, None] <= at, lowest[:, None] >= at
    least = np.where(below, low[:, None], 0.0).max(axis=0, initial=0.0)
    most = np.where(above, high[:, None], 1.0).min(axis=0, initial=1.0)
    is_band = least <= most
    return pd.DataFrame(
        {
            "probability": at,
            "rate": np.interp(at, p, fitted.x),
            "low": np.where(is_band, least, np.nan),
            "high": np.where(is_band, most, np.nan),
        }
    )


# --- reliability in bins of equal numbers of people


def reliability(
    probability: ArrayLike,
    event: ArrayLike,
    weights: ArrayLike | None = None,
    n_bins: int = 10,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Compare probabilities of an event with its rates, in bins of equal numbers of people.

    Parameters
    ----------
    probability : array-like of shape (n,) or (n, m)
        Probabilities of the event; the mean is taken over draws, since only the mean matters
        (outcomes: 3).
    event : array-like of shape (n,)
        1 or True where the event occurred, else 0 or False.
    weights : array-like of shape (n,), optional
        Weights of the people.
    n_bins : int, default 10
        Largest number of bins. Their edges are quantiles of the probability; people with the same
        probability are in the same bin, so there may be fewer.
    confidence : float, default 0.95
        Probability that the intervals of all bins contain the true rates.

    Returns
    -------
    DataFrame
        One row per bin, by increasing probability: the number `bin` of the bin, `n` people in it,
        their mean `probability` and the `rate` of those to whom the event occurred, and the ends
        `low` and `high` of intervals that contain the true rates of all bins at once. These are
        those of Clopper and Pearson, by Bonferroni. Where people in a bin have different
        probabilities, the number of events varies less than a binomial one (Hoeffding 1956). With
        weights the intervals use the effective number of people and are asymptotic.

    Raises
    ------
    InputError
        If a probability is not between 0 and 1, or an event is neither 0 nor 1.

    Examples
    --------
    >>> p = np.repeat([0.1, 0.5], 100)
    >>> event = np.arange(200) % 10 < np.repeat([1, 8], 100)
    >>> reliability(p, event).round(2)
       bin    n  probability  rate   low  high
    0    0  100          0.1   0.1  0.04  0.19
    1    1  100          0.5   0.8  0.69  0.88
    """
    predicted, occurred = check_events(probability, event)
    w = check_weights(weights, predicted.size)
    count = check_count("n_bins", n_bins)
    check_fraction("confidence", confidence)
    kept = w > 0
    place = probability_bins(predicted, count, kept)
    predicted, occurred, w = predicted[kept], occurred[kept], w[kept]
    number = np.bincount(place)
    weight = np.bincount(place, w)
    rate = np.bincount(place, w * occurred) / weight
    # the effective number of people (Kish): their number, without weights
    trials = weight**2 / np.bincount(place, w**2)
    hits = rate * trials
    if weights is None:
        hits, trials = np.rint(hits), np.rint(trials)
    low, high = binomial_intervals(hits, hits, trials, (1 - confidence) / (2 * number.size))
    return pd.DataFrame(
        {
            "bin": np.arange(number.size),
            "n": number,
            "probability": np.bincount(place, w * predicted) / weight,
            "rate": rate,
            "low": low,
            "high": high,
        }
    )


def probability_bins(probability: Floats, n_bins: int = 10, kept: Mask | None = None) -> Ints:
    """Return the bin of each probability, from 0, in at most `n_bins` of equal numbers of people.

    Equal probabilities are in the same bin. `kept` are the people whose bins are returned; the bins
    are those of all.

    Examples
    --------
    >>> probability_bins(np.array([0.1, 0.5, 0.1, 0.9]), n_bins=2)
    array([0, 1, 0, 1])
    """
    # bins depend on the probabilities alone: given these, events remain independent
    parts = rank_parts(mid_ranks(probability), n_bins)
    return np.unique(parts if kept is None else parts[kept], return_inverse=True)[1]
