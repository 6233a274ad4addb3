"""0/1 outcomes under predicted probabilities: exact tests and intervals of rates.

Given the forecasts, the outcomes are independent events, so the distribution of a weighted sum of
them with whole weights is known exactly (verdict: 1). Tails of their number are at most binomial
(Hoeffding, Annals of Mathematical Statistics 27, 1956, theorem 4).
"""

from __future__ import annotations

import numpy as np
from numpy.fft import irfft, rfft
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import Floats, Ints, Pair, as_floats, check_finite, check_rows, refuse_entry
from evenhand.calibration.bands import binomial_intervals
from evenhand.calibration.means import over_draws

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

# that of more rows is exact if their events are rare, and otherwise normal with the exact
# variance and skewness
EXACT_ROWS = 20_000
"""Largest number of rows whose distribution is always exact."""

RARE_VARIANCE = 200.0
"""Variance of the number of events below which they are rare."""

# Bonferroni levels times that number are 0.01 to 0.05. Normal tails are within a factor of 10
# there, unless events are rare: then exact p-values are computed below `RARE_MAYBE` in any case.
MAYBE, CERTAIN = 1.0, 1e-3
"""Normal p-values times the number of groups between which exact ones may change a decision."""

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
    """Return the probabilities of 0, 1, ..., n of n independent events, by a product tree."""
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
    """Return the least value of a sum of events with whole weights, and its distribution."""
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
    return np.maximum(mass, 0.0)


def event_p_value(happened: Floats, probability: Floats, weight: Ints | None = None) -> float:
    """Return the two-sided p-value of the weighted number of events, given their probabilities.

    It is exact, unless there are many rows and their events are not rare (`EXACT_ROWS`). An
    impossible outcome has the p-value 0.
    """
    if (np.abs(happened - probability) == 1).any():
        return 0.0
    variance = probability * (1 - probability)
    c = np.ones(happened.size, dtype=np.intp) if weight is None else weight
    if happened.size > EXACT_ROWS and variance.sum() >= RARE_VARIANCE:
        # the normal p-value, corrected for the skewness (Cornish and Fisher 1938)
        deviation = np.sqrt((c**2 * variance).sum())
        if not deviation:
            return 1.0
        z = (c * (happened - probability)).sum() / deviation
        z -= (c**3 * variance * (1 - 2 * probability)).sum() / deviation**3 * (z**2 - 1) / 6
        return float(special.erfc(abs(z) / np.sqrt(2)))
    least, mass = sum_distribution(probability, c)
    at = round(float((c * happened).sum())) - least
    tails = mass[: at + 1].sum(), mass[at:].sum()
    return float(min(1.0, 2 * min(tails) + 1e-13))


def two_point_entropy(t: Floats, variance: Floats) -> Floats:
    """Return the entropy of the two-point variable that exceeds its mean by `t` most likely.

    Its values exceed their mean by 1 or fall below it by `variance`: no variable with that variance
    that exceeds its mean by at most 1 has heavier tails in the bound of Hoeffding (JASA 58, 1963,
    theorem 3).
    """
    p = np.minimum((t + variance) / (1 + variance), 1.0)
    q = variance / (1 + variance)
    return special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)


def rate_intervals(count: Floats | float, n: Floats | float, tail: float) -> Pair:
    """Return intervals for the mean probability of `n` independent events of which `count` occur.

    They are those of Clopper and Pearson, whose tails bound those of events with different
    probabilities (Hoeffding 1956); a single event, or a single person without one, has the
    probability `tail` where the expected number is `tail`.
    """
    # binomial tails of two events or more within 1 of their mean exceed 1/4
    tail = min(tail, 0.25)
    low, high = binomial_intervals(count, count, n, tail)
    low = np.where(count == 1, np.minimum(low, tail / n), low)
    return low, np.where(n - count == 1, np.maximum(high, 1 - tail / n), high)


# --- ranks of probabilities


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


def check_events(probability: ArrayLike, event: ArrayLike) -> tuple[Floats, Floats]:
    """Check probabilities and events, one of each per person."""
    values = as_floats("probability", probability)
    means = check_finite("probability", over_draws(values))
    refuse_entry("probability", values, (values < 0) | (values > 1), "lie between 0 and 1")
    occurred = check_rows("event", event, means.size)
    remedy = "code the event as 1 and its absence as 0"
    refuse_entry("event", occurred, (occurred != 0) & (occurred != 1), "be 0 or 1", remedy)
    return means, occurred
