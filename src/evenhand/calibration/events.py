"""0/1 outcomes under predicted probabilities: exact tests, intervals, reliability and scores.

Given the forecasts, the outcomes are independent events, so the distribution of a weighted sum of
them with whole weights is known exactly (verdict: 1). Tails of their number are at most binomial
(Hoeffding, Annals of Mathematical Statistics 27, 1956, theorem 4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.fft import irfft, rfft
from numpy.typing import ArrayLike
from scipy import optimize, special

from evenhand._validate import (
    Floats,
    Ints,
    Mask,
    as_floats,
    check_count,
    check_finite,
    check_fraction,
    check_rows,
    check_weights,
    refuse_entry,
)
from evenhand.calibration.intervals import Estimate, Interval, binomial_intervals

# --- exact tests, and intervals of rates

EVENT_NAMES = (
    "probability",
    "excess",
    "excess squares",
    "variance",
    "step excess",
    "step variance",
    "squared step variance",
    "impossible",
)
"""Values of each row with a probability `P` of its event `Y`: `P`, `Y - P` and its square, the
variance `P (1 - P)`, `Y - P` times the step of its log odds, the variance times that step and its
square, and whether the outcome is impossible."""

STEPS = 4
"""Steps per unit of log odds in the weights of the trend test."""

MOST_LOG_ODDS = 8.0
"""Log odds beyond which all probabilities have the same weight in the trend test."""

ONLY_DIRECT = 64
"""Least number of values of a distribution that is convolved by a Fourier transform."""

EXACT_ROWS = 20_000
"""Largest number of rows whose distribution is always exact; that of more rows is exact if their
events are rare, and otherwise normal with the exact variance and skewness."""

RARE_VARIANCE = 200.0
"""Variance of the number of events below which they are rare."""

MAYBE, CERTAIN = 1.0, 1e-3
"""Normal p-values times the number of groups between which exact ones may change a decision.

Bonferroni levels times that number are 0.01 to 0.05. Normal tails are within a factor of 10 there,
unless events are rare: then exact p-values are computed below `RARE_MAYBE` in any case.
"""

RARE_MAYBE = 1e-3
"""See `MAYBE`."""


def event_values(events: tuple[Floats, Floats]) -> Floats:
    """Return the values named in `EVENT_NAMES`, shape (8, n), of events and their probabilities.

    Examples
    --------
    >>> event_values((np.array([1.0]), np.array([0.5])))[:, 0]
    array([0.5 , 0.5 , 0.25, 0.25, 0.  , 0.  , 0.  , 0.  ])
    """
    happened, p = events
    excess = happened - p
    variance = p * (1 - p)
    step = log_odds_steps(p)
    trend = [step * excess, step * variance, step**2 * variance]
    return np.stack([p, excess, excess**2, variance, *trend, np.abs(excess) == 1])


def log_odds_steps(probability: Floats) -> Floats:
    """Return the log odds of probabilities in whole steps of a quarter, from -32 to 32."""
    with np.errstate(divide="ignore"):
        odds = np.log(probability) - np.log1p(-probability)
    return np.asarray(np.rint(STEPS * np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS)))


def trend_weights(probability: Floats, weights: Floats | float = 1.0) -> Ints:
    """Return whole weights of the trend test: steps of log odds about their weighted mean.

    A right level moves the sum of the outcomes with these weights hardly.

    Examples
    --------
    >>> trend_weights(np.array([0.1, 0.3, 0.5, 0.7, 0.9]))
    array([-9, -3,  0,  3,  9])
    """
    step = log_odds_steps(probability)
    variance = weights * probability * (1 - probability)
    total = variance.sum()
    if not total:
        return np.zeros(step.size, dtype=np.intp)
    return np.asarray(step - np.rint((variance * step).sum() / total), dtype=np.intp)


def count_distribution(probability: Floats) -> Floats:
    """Return the probabilities of 0, 1, ..., n of n independent events, by a product tree.

    Examples
    --------
    >>> count_distribution(np.array([0.1, 0.5, 0.9])).round(3)
    array([0.045, 0.455, 0.455, 0.045])
    """
    n = probability.size
    tree = np.zeros((1 << max(n - 1, 0).bit_length(), 2))
    tree[:, 0] = 1.0
    tree[:n, 0], tree[:n, 1] = 1 - probability, probability
    while len(tree) > 1:
        one, other = tree[0::2], tree[1::2]
        m = tree.shape[1]
        if m >= ONLY_DIRECT // 4:
            tree = _convolved(one, other)
            continue
        tree = np.zeros((len(one), 2 * m - 1))
        for j in range(m):
            tree[:, j : j + m] += one[:, j : j + 1] * other
    return tree[0, : n + 1]


def sum_distribution(probability: Floats, weight: Ints) -> tuple[int, Floats]:
    """Return the least value of a sum of events with whole weights, and its distribution.

    Examples
    --------
    >>> least, mass = sum_distribution(np.array([0.1, 0.5, 0.9]), np.array([-1, 0, 2]))
    >>> least, mass.round(2)
    (-1, array([0.01, 0.09, 0.09, 0.81]))
    """
    least, mass = 0, np.ones(1)
    # small weights first: distributions stay short for longer
    for w in sorted(set(weight.tolist()) - {0}, key=abs):
        own = count_distribution(probability[weight == w])
        spread = np.zeros(abs(w) * (own.size - 1) + 1)
        spread[:: abs(w)] = own if w > 0 else own[::-1]
        least += min(w, 0) * (own.size - 1)
        is_short = min(mass.size, spread.size) < ONLY_DIRECT
        mass = np.convolve(mass, spread) if is_short else _convolved(mass, spread)
    return least, mass


def _convolved(one: Floats, other: Floats) -> Floats:
    n = one.shape[-1] + other.shape[-1] - 1
    size = 1 << (n - 1).bit_length()
    mass = irfft(rfft(one, size) * rfft(other, size), size)[..., :n]
    # absolute errors of the transform are about 1e-15
    return np.asarray(np.maximum(mass, 0.0))


def event_p_value(happened: Floats, probability: Floats, weight: Ints | None = None) -> float:
    """Return the two-sided p-value of the weighted number of events, given their probabilities.

    It is exact, unless there are many rows and their events are not rare (`EXACT_ROWS`). An
    impossible outcome has the p-value 0.

    Parameters
    ----------
    happened, probability : ndarray of shape (n,)
        Events and their probabilities.
    weight : ndarray of int, shape (n,), optional
        Whole weights; 1 by default.

    Examples
    --------
    >>> p = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 40)
    >>> happened = np.concatenate([np.arange(40) < k for k in (8, 16, 20, 24, 32)]).astype(float)
    >>> event_p_value(happened, p), round(event_p_value(happened, p, trend_weights(p)), 6)
    (1.0, 0.001475)
    """
    if (np.abs(happened - probability) == 1).any():
        return 0.0
    variance = probability * (1 - probability)
    if happened.size > EXACT_ROWS and variance.sum() >= RARE_VARIANCE:
        c = np.ones(1) if weight is None else weight
        return _skewed_p_value(c * (happened - probability), c**2 * variance,
                               c**3 * variance * (1 - 2 * probability))  # fmt: skip
    if weight is None:
        least, mass, total = 0, count_distribution(probability), happened.sum()
    else:
        least, mass = sum_distribution(probability, weight)
        total = (weight * happened).sum()
    at = round(float(total)) - least
    tails = mass[: at + 1].sum(), mass[at:].sum()
    return float(min(1.0, 2 * min(tails) + 1e-13))


def _skewed_p_value(values: Floats, variances: Floats, cubes: Floats) -> float:
    """Return the normal p-value of a sum, corrected for its skewness (Cornish and Fisher 1938)."""
    deviation = np.sqrt(variances.sum())
    if not deviation:
        return 1.0
    z = values.sum() / deviation
    z -= cubes.sum() / deviation**3 * (z**2 - 1) / 6
    return float(special.erfc(abs(z) / np.sqrt(2)))


def two_point_entropy(t: Floats, variance: Floats) -> Floats:
    """Return the entropy of the two-point variable that exceeds its mean by `t` most likely.

    Its values exceed their mean by 1 or fall below it by `variance`: no variable with that variance
    that exceeds its mean by at most 1 has heavier tails in the bound of Hoeffding (JASA 58, 1963,
    theorem 3).
    """
    p = np.minimum((t + variance) / (1 + variance), 1.0)
    q = variance / (1 + variance)
    return np.asarray(special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q))


def rate_intervals(count: Floats, n: Floats, tail: float) -> Interval:
    """Return intervals for the mean probability of `n` independent events of which `count` occur.

    They are those of Clopper and Pearson, whose tails bound those of events with different
    probabilities (Hoeffding 1956); a single event, or a single person without one, has the
    probability `tail` where the expected number is `tail`.

    Examples
    --------
    >>> low, high = rate_intervals(np.array([0.0, 1.0]), np.array([10.0, 10.0]), 0.025)
    >>> low.round(4), high.round(3)
    (array([0.    , 0.0025]), array([0.308, 0.445]))
    """
    # binomial tails of two events or more within 1 of their mean exceed 1/4
    tail = min(tail, 0.25)
    low, high = binomial_intervals(count, count, n, tail)
    low = np.where(count == 1, np.minimum(low, tail / n), low)
    return low, np.where(n - count == 1, np.maximum(high, 1 - tail / n), high)


# --- reliability in bins of equal numbers of people


def mid_ranks(values: Floats, weights: Floats | None = None) -> Floats:
    """Return mid-ranks between 0 and 1; values that are equal up to rounding have the same.

    Examples
    --------
    >>> mid_ranks(np.array([0.2, 0.1, 0.2, 0.4]))
    array([0.5  , 0.125, 0.5  , 0.875])
    """
    # values of equal forecasts may differ by rounding errors, which must not divide people
    mantissa, exponent = np.frexp(values)
    values = np.ldexp(np.round(mantissa * 2**30), exponent - 30)
    _, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weights)
    return np.asarray(((np.cumsum(mass) - mass / 2) / mass.sum())[place])


def rank_parts(rank: Floats, k: int) -> Ints:
    """Return which of k parts each rank between 0 and 1 is in, from 0."""
    return np.minimum((k * rank).astype(np.intp), k - 1)


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
    """Return the bin of each probability, from 0, in bins of equal numbers of people.

    Parameters
    ----------
    probability : ndarray of shape (n,)
        Probabilities. Equal ones are in the same bin, so there may be fewer than `n_bins`.
    n_bins : int, default 10
        Largest number of bins.
    kept : ndarray of bool, shape (n,), optional
        People whose bins are returned; the bins are those of all.

    Examples
    --------
    >>> probability_bins(np.array([0.1, 0.5, 0.1, 0.9]), n_bins=2)
    array([0, 1, 0, 1])
    """
    # bins depend on the probabilities alone: given these, events remain independent
    parts = rank_parts(mid_ranks(probability), n_bins)
    return np.unique(parts if kept is None else parts[kept], return_inverse=True)[1]


def check_events(probability: ArrayLike, event: ArrayLike) -> tuple[Floats, Floats]:
    """Check probabilities and events, one of each per person."""
    values = as_floats("probability", probability)
    means = check_finite("probability", values.mean(axis=-1) if values.ndim == 2 else values)
    refuse_entry("probability", values, (values < 0) | (values > 1), "lie between 0 and 1")
    occurred = check_rows("event", event, means.size)
    remedy = "code the event as 1 and its absence as 0"
    refuse_entry("event", occurred, (occurred != 0) & (occurred != 1), "be 0 or 1", remedy)
    return means, occurred


# --- scores, and the isotonic curve with its band

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

UNKNOWN = Estimate(np.nan, np.nan, np.nan)


class ProbabilityScores(NamedTuple):
    """Scores of probabilities of 0/1 outcomes; NaN where one does not exist.

    Parameters
    ----------
    n, n_events : int
        Numbers of rows of positive weight, and of events among them.
    predicted, rate : float
        Mean probability and event rate.
    slope, slope_low, slope_high : float
        Slope of the logistic regression of the event on an intercept and the log odds of the
        probability, and its Wald interval (Cox, Biometrika 45, 1958). It is 1 if probabilities are
        right, and below 1 if they are too extreme. NaN with fewer than 10 events or 10 other rows
        (effective numbers, with weights), for equal probabilities, and where probabilities separate
        the outcomes: if Newton's method does not converge, or the slope is beyond 10.
    intercept, intercept_low, intercept_high : float
        Calibration in the large: intercept of the logistic regression with slope 1, and its Wald
        interval. It is 0 if probabilities are right on average. NaN if all outcomes are equal.
        Where the slope is not 1 the interval is too short: at 0.62 it misses in 8%, not 5%.
    observed_expected, observed_expected_low, observed_expected_high : float
        Event rate divided by mean probability. The Wald interval of its logarithm uses the robust
        variance of a ratio of means; it is NaN without events.
    ici, e_max : float
        Mean and largest distance between the probability and the event rate by a local linear
        regression on it, with tricube weights and a span of 0.75.
    auc : float
        Area under the ROC curve: the probability that a row with the event has a larger probability
        than one without; ties count one half. NaN if all outcomes are equal.
    brier, scaled_brier : float
        Mean squared error, and the share by which it is below that of the event rate; the latter is
        NaN if all outcomes are equal.
    log_loss : float
        Mean negative log probability of the outcome. Infinite if an outcome was impossible.
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
    probability : array-like of shape (n,) or (n, m)
        Probabilities of the event; the mean is taken over draws.
    event : array-like of shape (n,)
        1 or True where the event occurred, else 0 or False.
    sample_weight : array-like of shape (n,), optional
        Sampling weights. Unequal ones need robust (sandwich) variances of slope and intercept.
    confidence : float, default 0.95
        Confidence of each interval by itself. All intervals are asymptotic.

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
    return ProbabilityScores(
        int(levels.n.sum()),
        int(levels.n_events.sum()),
        predicted,
        rate,
        *_slope(levels, z),
        *_intercept(levels, z),
        *_observed_expected(levels, z),
        *_distances(levels),
        auc,
        brier,
        1 - brier / variance,
        -float((special.xlogy(yes, p) + special.xlog1py(no, -p)).sum()) / weight,
    )


def calibration_slope(
    probability: ArrayLike, event: ArrayLike, sample_weight: ArrayLike | None = None
) -> Estimate:
    """Return the slope of `probability_scores` with its 95% interval, without the other scores.

    Examples
    --------
    >>> p = np.repeat([0.2, 0.8], 50)
    >>> round(calibration_slope(p, np.arange(100) % 10 < np.repeat([2, 8], 50))[0], 3)
    1.0
    """
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
        return np.asarray(self.yes_squares * (1 - fitted) ** 2 + self.no_squares * fitted**2)


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
    first = np.flatnonzero(np.append(True, probability[1:] != probability[:-1]))
    return _Levels(probability[first], *np.add.reduceat(columns, first, axis=-1))


def _slope(levels: _Levels, z: float) -> Estimate:
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
    return found if abs(found.value) <= STEEPEST else UNKNOWN


def _intercept(levels: _Levels, z: float) -> Estimate:
    """Return the calibration in the large."""
    levels = levels.inner()
    if not levels.yes.any() or not levels.no.any():
        return UNKNOWN
    return _logistic(np.ones((1, levels.p.size)), special.logit(levels.p), levels, z)


def _logistic(terms: Floats, offset: Floats, levels: _Levels, z: float) -> Estimate:
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
    return Estimate(estimate, estimate - half, estimate + half)


def _observed_expected(levels: _Levels, z: float) -> Estimate:
    """Return the ratio of event rate and mean probability."""
    events, expected = float(levels.yes.sum()), float(levels.total @ levels.p)
    if not expected:
        return UNKNOWN
    ratio = events / expected
    if not events:
        return Estimate(ratio, np.nan, np.nan)
    # of the linearized logarithm: sum w (y - ratio p) / sum w y
    factor = float(np.exp(z * np.sqrt(levels.squares(ratio * levels.p).sum()) / events))
    return Estimate(ratio, ratio / factor, ratio * factor)


def _distances(levels: _Levels) -> tuple[float, float]:
    """Return the mean and the largest distance between probability and smooth event rate."""
    p, total = levels.p, levels.total
    mass, mean_p, rate = _binned(levels)
    # no value beyond the ends of the curve
    at = mean_p.copy()
    at[[0, -1]] = p[[0, -1]]
    distance = np.abs(mean_p - at[:, None])
    order = np.argsort(distance, axis=-1)
    within = np.cumsum(mass[order], axis=-1)
    farthest = (within < (SPAN - 1e-9) * within[:, -1:]).sum(axis=-1, keepdims=True)
    reach = np.take_along_axis(np.take_along_axis(distance, order, -1), farthest, -1)
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
    place = (MOST_BINS * (np.cumsum(total) - total / 2) / total.sum()).astype(np.intp)
    first = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
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
        ends = ends[np.linspace(0, ends.size - 1, MOST_POINTS).round().astype(np.intp)]
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
