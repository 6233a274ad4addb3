"""Logarithms of tails of counts that are too small for floats, by continued fractions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from evenhand._validate import Floats

MOST_TERMS = 20_000
TINY = 1e-300
"""Stands for a zero denominator in the modified Lentz method."""


def log_gamma_tails(k: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """Return the logs of `P(Y <= k)` and `P(Y > k)` of Poisson outcomes, far from their mean.

    They are the regularized incomplete gamma functions Q(k + 1, mean) and P(k + 1, mean). Each log
    is accurate on the side of the mean where its tail is small.
    """
    a = k + 1
    log_front = special.xlogy(a, mean) - mean - special.gammaln(a)

    # Press et al., Numerical Recipes, equation 6.2.7
    def upper_gamma(j: int) -> tuple[Floats, Floats]:
        return j * (a - j), mean + 2 * j + 1 - a

    # DLMF 8.9.1
    def lower_gamma(j: int) -> tuple[Floats, Floats]:
        i = (j + 1) // 2
        if j % 2:
            return (-mean if i == 1 else -(a + i - 1) * mean), a + j
        return i * mean, a + j

    return (
        np.asarray(log_front - _log_fraction(mean + 1 - a, upper_gamma)),
        np.asarray(log_front - np.log(a) - _log_fraction(np.ones_like(a), lower_gamma)),
    )


def log_beta_tails(k: Floats, mean: Floats, dispersion: Floats) -> tuple[Floats, Floats]:
    """Return the same for negative binomial outcomes: regularized incomplete beta functions."""
    size = 1 / dispersion
    odds = dispersion * mean
    log_success = -np.log1p(odds)
    log_fail = np.log(odds) + log_success
    return (
        _log_beta(size, k + 1, log_success, log_fail),
        _log_beta(k + 1, size, log_fail, log_success),
    )


def _log_beta(a: Floats, b: Floats, log_x: Floats, log_y: Floats) -> Floats:
    """Return `log I_x(a, b)` for x below about a / (a + b), with y = 1 - x."""
    x = np.exp(log_x)

    # Press et al., Numerical Recipes, equation 6.4.6
    def terms(j: int) -> tuple[Floats, Floats]:
        m = j // 2
        if j % 2:
            return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), np.ones_like(a)
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), np.ones_like(a)

    front = a * log_x + b * log_y - np.log(a) - special.betaln(a, b)
    return np.asarray(front - _log_fraction(np.ones_like(a), terms))


def _log_fraction(first: Floats, terms: Callable[[int], tuple[Floats, Floats]]) -> Floats:
    """Return the log of `b_0 + a_1 / (b_1 + a_2 / (b_2 + ...))` by the modified Lentz method."""
    value = np.where(first == 0, TINY, first)
    c, d = value.copy(), np.zeros_like(value)
    # where the tail is not small the fraction may pass through 0; such values are not used
    with np.errstate(all="ignore"):
        for j in range(1, MOST_TERMS):
            a, b = terms(j)
            d = b + a * d
            d = 1 / np.where(d == 0, TINY, d)
            c = b + a / c
            c = np.where(c == 0, TINY, c)
            change = c * d
            value = value * change
            if not (np.abs(change - 1) > 1e-15).any():
                break
        return np.asarray(np.log(value))
