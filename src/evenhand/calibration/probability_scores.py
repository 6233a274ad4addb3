"""The usual scores of probabilities of 0/1 outcomes, and the isotonic curve with its band."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import optimize, special

from evenhand._validate import Floats, check_fraction, check_weights
from evenhand.calibration.event_rates import check_events

MOST_LOG_ODDS = 36.0
"""Log odds that stand for probabilities of 0 and 1 in the fit of the slope."""

LEAST_EVENTS = 10
"""Fewest events, and fewest people without the event, for a slope and an intercept."""

STEEPEST = 10.0
"""Absolute slope beyond which outcomes are separated by the probabilities."""

SPAN, CURVE_POINTS, MOST_BLOCKS = 0.75, 100, 20_000
"""Share of the rows in each local regression, number of these, and most blocks of rows."""


class ProbabilityScores(NamedTuple):
    """Scores of probabilities of 0/1 outcomes; NaN where one does not exist.

    Parameters
    ----------
    n, n_events : int
        Numbers of rows and of events.
    predicted, rate : float
        Mean probability and event rate.
    slope, intercept : float
        Slope of a logistic regression of the event on the log odds of the probability, and
        intercept of one of slope 1 (Cox, Biometrika 45, 1958); right probabilities have 1 and 0. A
        slope below 1 means that probabilities are too extreme. Intervals are those of Wald, from
        `_low` to `_high`. NaN with fewer than 10 events, or if the probabilities separate the
        outcomes.
    observed_expected : float
        Event rate divided by mean probability, with its log-normal interval.
    ici, e_max : float
        Mean and largest distance of the event rate from the probability by a local linear
        regression with a span of 0.75 (Austin & Steyerberg, Statistics in Medicine 38, 2019).
    auc : float
        Probability that an event has a larger probability than its absence; ties count half.
    brier, scaled_brier, log_loss : float
        Mean squared error, the share by which it is below that of the event rate, and mean negative
        logarithm of the probability of the outcome.
    """

    n: int
    n_events: int
    predicted: float
    rate: float
    slope: float
    slope_low: float
    slope_high: float
    intercept: float
    intercept_low: float
    intercept_high: float
    observed_expected: float
    observed_expected_low: float
    observed_expected_high: float
    ici: float
    e_max: float
    auc: float
    brier: float
    scaled_brier: float
    log_loss: float


def probability_scores(
    probability: ArrayLike,
    event: ArrayLike,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> ProbabilityScores:
    """Return the usual scores of probabilities of 0/1 outcomes.

    Parameters
    ----------
    probability : array-like of shape (n,)
        Predicted probabilities of the event.
    event : array-like of shape (n,)
        1 where the event happened, else 0.
    sample_weight : array-like of shape (n,), optional
        Sampling weights; variances are then those of weighted estimating equations (sandwich).
    confidence : float, default 0.95
        Confidence of each interval by itself.

    Raises
    ------
    InputError
        If a probability is not between 0 and 1, or an event is neither 0 nor 1.

    Examples
    --------
    >>> p = np.repeat([0.2, 0.8], 50)
    >>> found = probability_scores(p, np.arange(100) % 10 < np.repeat([2, 8], 50))
    >>> round(found.slope, 3), round(found.auc, 2), round(found.brier, 2)
    (1.0, 0.8, 0.16)
    """
    p, y = check_events(probability, event)
    w = check_weights(sample_weight, p.size)
    z = -float(special.ndtri((1 - check_fraction("confidence", confidence)) / 2))
    is_weighted = sample_weight is not None
    predicted, rate = float(np.average(p, weights=w)), float(np.average(y, weights=w))
    brier = float(np.average((y - p) ** 2, weights=w))
    with np.errstate(divide="ignore"):
        loss = -np.log(np.where(y == 1, p, 1 - p))
    spread = rate * (1 - rate)
    slope, intercept = _regressions(p, y, w, z, is_weighted=is_weighted)
    ici, e_max = _distances(p, y, w)
    return ProbabilityScores(
        p.size,
        int(y.sum()),
        predicted,
        rate,
        *slope,
        *intercept,
        *_ratio(y, w, predicted, rate, z),
        ici,
        e_max,
        _auc(p, y, w),
        brier,
        1 - brier / spread if spread else np.nan,
        float(np.average(loss, weights=w)),
    )


def calibration_slope(
    probability: Floats, event: Floats, sample_weight: Floats | None = None
) -> tuple[float, float, float]:
    """Return the calibration slope of `probability_scores` with its 95% interval.

    Examples
    --------
    >>> p = np.repeat([0.2, 0.8], 50)
    >>> event = (np.arange(100) % 10 < np.repeat([2, 8], 50)).astype(float)
    >>> round(calibration_slope(p, event)[0], 3)
    1.0
    """
    w = check_weights(sample_weight, event.size)
    z = -float(special.ndtri(0.025))
    return _regressions(probability, event, w, z, is_weighted=sample_weight is not None)[0]


Estimate = tuple[float, float, float]
UNKNOWN: Estimate = (np.nan, np.nan, np.nan)


def _regressions(
    p: Floats, y: Floats, w: Floats, z: float, *, is_weighted: bool
) -> tuple[Estimate, Estimate]:
    """Return slope and intercept with their intervals."""
    odds = np.clip(special.logit(p), -MOST_LOG_ODDS, MOST_LOG_ODDS)
    if min(y.sum(), y.size - y.sum()) < LEAST_EVENTS:
        return UNKNOWN, UNKNOWN
    ones = np.ones((p.size, 1))
    intercept = _logistic(ones, y, w, odds, z, is_weighted=is_weighted)
    if np.ptp(odds) == 0:
        return UNKNOWN, intercept
    both = np.column_stack([odds, ones])
    slope = _logistic(both, y, w, np.zeros(p.size), z, is_weighted=is_weighted)
    return (slope if abs(slope[0]) <= STEEPEST else UNKNOWN), intercept


def _logistic(
    X: Floats, y: Floats, w: Floats, offset: Floats, z: float, *, is_weighted: bool
) -> Estimate:
    """Return the first coefficient of a logistic regression, by Newton steps that do not grow."""
    beta = np.zeros(X.shape[1])

    def loss(at: Floats) -> float:
        eta = X @ at + offset
        return float(w @ (np.logaddexp(0, eta) - y * eta))

    for _ in range(100):
        fitted = special.expit(X @ beta + offset)
        score = X.T @ (w * (y - fitted))
        information = (X * (w * fitted * (1 - fitted))[:, None]).T @ X
        if np.linalg.cond(information) > 1e14:
            return UNKNOWN
        step = np.linalg.solve(information, score)
        before = loss(beta)
        while loss(beta + step) > before + 1e-12 * abs(before) and np.abs(step).max() > 1e-12:
            step = step / 2
        beta = beta + step
        if np.abs(step).max() < 1e-10:
            break
    else:
        return UNKNOWN
    covariance = np.linalg.inv(information)
    if is_weighted:
        scores = X * (w * (y - fitted))[:, None]
        covariance = covariance @ (scores.T @ scores) @ covariance
    half = z * float(np.sqrt(covariance[0, 0]))
    return float(beta[0]), float(beta[0]) - half, float(beta[0]) + half


def _ratio(y: Floats, w: Floats, predicted: float, rate: float, z: float) -> Estimate:
    """Return observed by expected events, with the interval of the logarithm of the rate."""
    if not predicted or not rate:
        return (np.nan if not predicted else 0.0, np.nan, np.nan)
    deviation = float(np.sqrt((w**2 * (y - rate) ** 2).sum())) / float(w.sum())
    ratio, factor = rate / predicted, float(np.exp(z * deviation / rate))
    return ratio, ratio / factor, ratio * factor


def _auc(p: Floats, y: Floats, w: Floats) -> float:
    """Return the area under the ROC curve from mid-ranks."""
    _, place = np.unique(p, return_inverse=True)
    events, others = np.bincount(place, w * y), np.bincount(place, w * (1 - y))
    total = float(events.sum() * others.sum())
    below = np.cumsum(others) - others / 2
    return float(events @ below) / total if total else np.nan


def _distances(p: Floats, y: Floats, w: Floats) -> tuple[float, float]:
    """Return mean and largest distance of a local linear regression from the probabilities."""
    order = np.argsort(p, kind="stable")
    # rows of nearly equal probabilities are averaged: it keeps a curve of this span
    block = np.arange(p.size) * min(p.size, MOST_BLOCKS) // p.size
    mass = np.bincount(block, w[order])
    p, y = (np.bincount(block, w[order] * one[order]) / mass for one in (p, y))
    if p[0] == p[-1]:
        gap = abs(float(np.average(y - p, weights=mass)))
        return gap, gap
    at = np.unique(np.quantile(p, np.linspace(0, 1, CURVE_POINTS)))
    curve = _local_linear(p, y, mass, at)
    distance = np.abs(np.interp(p, at, curve) - p)
    return float(np.average(distance, weights=mass)), float(np.abs(curve - at).max())


def _local_linear(x: Floats, y: Floats, mass: Floats, at: Floats) -> Floats:
    """Return local linear regressions with tricube weights of the nearest rows; x is sorted."""
    k = max(int(SPAN * x.size + 1e-10), 2)
    found = np.empty(at.size)
    left = 0
    for i, point in enumerate(at):
        while left + k < x.size and point - x[left] > x[left + k] - point:
            left += 1
        near = slice(left, left + k)
        distance = np.abs(x[near] - point)
        reach = max(float(distance.max()), 1e-300)
        weight = mass[near] * (1 - np.minimum(distance / reach, 1.0) ** 3) ** 3
        total = float(weight.sum())
        if not total:
            found[i] = float(np.average(y[near], weights=mass[near]))
            continue
        mean_x, mean_y = float(weight @ x[near]) / total, float(weight @ y[near]) / total
        spread = float(weight @ (x[near] - mean_x) ** 2)
        slope = (
            float(weight @ ((x[near] - mean_x) * y[near])) / spread
            if spread > 1e-12 * total
            else 0.0
        )
        found[i] = mean_y + slope * (point - mean_x)
    return np.clip(found, 0.0, 1.0)


def isotonic_curve(
    probability: Floats,
    event: Floats,
    lowest: Floats,
    highest: Floats,
    low: Floats,
    high: Floats,
    sample_weight: Floats | None = None,
) -> pd.DataFrame:
    """Return the isotonic regression of an event on its probability, with a band.

    If the event rate does not fall as the probability rises, it is at least the lower end of the
    interval of every group of smaller probabilities, and at most the upper end of every group of
    larger ones: the band contains it wherever the intervals of all groups hold.

    Parameters
    ----------
    probability, event : ndarray of shape (n,)
        Probabilities and 0/1 outcomes.
    lowest, highest, low, high : ndarray of shape (k,)
        Range of the probabilities of each group, and the ends of the interval of its event rate.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    DataFrame
        At most about 100 points: `probability`, `rate`, and the band from `low` to `high`.

    Examples
    --------
    >>> p = np.repeat([0.1, 0.5], 100)
    >>> y = (np.arange(200) % 10 < np.repeat([2, 4], 100)).astype(float)
    >>> groups, low, high = np.array([0.1, 0.5]), np.array([0.1, 0.3]), np.array([0.3, 0.5])
    >>> isotonic_curve(p, y, groups, groups, low, high).round(2).to_dict("list")
    {'probability': [0.1, 0.5], 'rate': [0.2, 0.4], 'low': [0.1, 0.3], 'high': [0.3, 0.5]}
    """
    w = np.ones(event.size) if sample_weight is None else sample_weight
    values, place = np.unique(probability, return_inverse=True)
    mass = np.bincount(place, w)
    rates = np.bincount(place, w * event) / mass
    fitted = optimize.isotonic_regression(rates, weights=mass).x
    # the ends of every step, and no more points than a picture shows
    is_end = np.r_[True, fitted[1:] != fitted[:-1]] | np.r_[fitted[1:] != fitted[:-1], True]
    kept = np.flatnonzero(is_end)
    if kept.size > CURVE_POINTS:
        kept = kept[np.unique(np.linspace(0, kept.size - 1, CURVE_POINTS).round().astype(int))]
    at = values[kept]
    least = [low[highest <= x].max(initial=0.0) for x in at]
    most = [high[lowest >= x].min(initial=1.0) for x in at]
    columns = {"probability": at, "rate": fitted[kept], "low": least, "high": most}
    return pd.DataFrame(columns, dtype=np.float64)
