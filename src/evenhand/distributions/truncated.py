"""Distributions conditional on an outcome within bounds."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand._logarithms import log1mexp
from evenhand._validate import Floats, Ints, Mask, bad_input
from evenhand.distributions.base import Distribution

LEAST_SHARE = np.log(1e-8)
"""Logarithm of the smallest difference of tails, relative to the larger one, that is computed as a
difference; it then has 8 digits. Smaller ones are a density times a distance."""


class Truncated(Distribution):
    """Distributions of a base's outcome, given that it lies between two bounds.

    The CDF is `(F(y) - F(low)) / (F(high) - F(low))`, computed from the smaller tail, so that bases
    with nearly all of their probability outside the bounds have finite log densities.

    Parameters
    ----------
    base : Distribution
        Distribution to truncate.
    low, high : float
        Bounds, low < high; -inf and inf on a side without bound.

    Examples
    --------
    >>> from evenhand.distributions import Normal
    >>> half = Truncated(Normal([0.0], 1.0), low=0.0)
    >>> half.cdf(0.0), half.mean().round(2)
    (array([0.]), array([0.8]))
    """

    event_dims: ClassVar[dict[str, int]] = {}

    def __init__(self, base: Distribution, low: float = -np.inf, high: float = np.inf) -> None:
        if not low < high:
            raise bad_input("low and high", "fulfil low < high", f"{low} and {high}")
        self.base = base
        self.low = low
        self.high = high

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.base.batch_shape

    def take(self, rows: Any) -> Truncated:
        return Truncated(self.base.take(rows), self.low, self.high)

    def take_draws(self, columns: Ints) -> Truncated:
        return Truncated(self.base.take_draws(columns), self.low, self.high)

    def expand(self) -> Truncated:
        return Truncated(self.base.expand(), self.low, self.high)

    def _clipped(self, y: ArrayLike) -> Floats:
        return np.clip(np.asarray(y, dtype=np.float64), self.low, self.high)

    def _log_between(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """Log probability of the base between two points."""
        lower = self.base.logcdf(high)
        upper = self.base.logsf(low)
        # a difference within the smaller tail, which keeps its digits
        is_lower = lower < upper
        whole = np.where(is_lower, lower, upper)
        rest = np.where(is_lower, self.base.logcdf(low), self.base.logsf(high))
        with np.errstate(invalid="ignore"):  # both are -inf where both points are infinite
            gap = np.where(np.isinf(whole), -np.inf, np.minimum(rest - whole, 0.0))
        share = log1mexp(gap)
        is_near = share < LEAST_SHARE
        if not is_near.any():
            return whole + share
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.asarray(high) - np.asarray(low)
            middle = np.where(np.isfinite(distance), low + distance / 2, 0.0)
            near = self.base.logpdf(middle) + np.log(distance)
        return np.where(is_near, near, whole + share)

    def logcdf(self, y: ArrayLike) -> Floats:
        point = self._clipped(y)
        within = self._log_between(self.low, self.high)
        return np.minimum(self._log_between(self.low, point) - within, 0.0)

    def logsf(self, y: ArrayLike) -> Floats:
        point = self._clipped(y)
        within = self._log_between(self.low, self.high)
        return np.minimum(self._log_between(point, self.high) - within, 0.0)

    def logpdf(self, y: ArrayLike) -> Floats:
        point = np.asarray(y, dtype=np.float64)
        inside = np.where(np.isfinite(point), self._clipped(point), 0.0)
        density = self.base.logpdf(inside) - self._log_between(self.low, self.high)
        return np.where((point < self.low) | (point > self.high), -np.inf, density)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        within = self._log_between(self.low, self.high)
        far = log1mexp(np.asarray(log_p))
        # probabilities between the quantile and each bound, and the tails of the base beyond it
        below = within + np.where(upper, far, log_p)
        above = within + np.where(upper, log_p, far)
        lower = np.logaddexp(below, self.base.logcdf(self.low))
        higher = np.logaddexp(above, self.base.logsf(self.high))
        is_upper = higher < lower
        tail = np.minimum(np.where(is_upper, higher, lower), 0.0)
        found = self.base.quantile_from_tail(tail, is_upper)
        if np.isfinite(self.low):
            near = self.low + np.exp(below - self.base.logpdf(self.low))
            found = np.where(below - lower < LEAST_SHARE, near, found)
        if np.isfinite(self.high):
            near = self.high - np.exp(above - self.base.logpdf(self.high))
            found = np.where((above - higher < LEAST_SHARE) & (above < below), near, found)
        return self._clipped(found)
