"""Logarithms of sums and differences of exponentials, accurate in both tails."""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats


def safe_log(x: Floats) -> Floats:
    """Logarithm for x >= 0; -infinity at 0, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def log_expm1(x: Floats) -> Floats:
    """Logarithm of exp(x) - 1 for x >= 0, accurate for small and large x; -infinity at 0."""
    return x + safe_log(-np.expm1(-x))


def softplus(x: Floats) -> Floats:
    """Logarithm of 1 + exp(x): the inverse of `log_expm1`."""
    # NumPy's logaddexp processes one number at a time and is slower
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def log_softplus(x: Floats) -> Floats:
    """Logarithm of log(1 + exp(x)), which approaches x far below zero."""
    return np.where(x < -40, x, np.log(softplus(np.maximum(x, -40.0))))


def log_expm1_scaled(x: Floats, log_x: Floats) -> Floats:
    """Logarithm of exp(x) - 1 where x may underflow, so that `log_x` is needed too."""
    return np.where(x > 1e-5, log_expm1(np.maximum(x, 1e-5)), log_x + x / 2)


def log1mexp(log_p: Floats) -> Floats:
    """Logarithm of 1 - p from log p."""
    with np.errstate(divide="ignore"):
        return np.where(log_p > -np.log(2.0), np.log(-np.expm1(log_p)), np.log1p(-np.exp(log_p)))
