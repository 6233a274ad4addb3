"""Distributions conditional on an outcome within bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand._logarithms import log1mexp
from evenhand._validate import Floats, Mask
from evenhand.distributions.bounded import Bounded
from evenhand.distributions.kinds import OutcomeKind

LEAST_SHARE = np.log(1e-8)
"""Logarithm of the smallest difference of tails, relative to the larger one, that is computed as a
difference; it then has 8 digits. Smaller ones are a density times a distance."""


class Truncated(Bounded):
    """Distributions of a base's outcome, given that it lies inside an interval.

    The CDF is `(F(y) - F(low)) / (F(high) - F(low))`, computed from the smaller tail, so that bases
    with nearly all of their probability outside the interval have finite log densities. Outcomes
    nearer to a bound than `support.edge` are evaluated at that distance.

    Parameters
    ----------
    base : Distribution
        Distribution to truncate.
    support : Support
        Interval of possible outcomes, in the units of the base.

    Examples
    --------
    >>> from evenhand.distributions import Normal, Support
    >>> half = Truncated(Normal([0.0], 1.0), Support(low=0.0))
    >>> half.cdf(0.0), half.mean().round(2)
    (array([0.]), array([0.8]))
    """

    @property
    def outcome_kind(self) -> OutcomeKind:
        return OutcomeKind.CONTINUOUS

    def _clipped(self, y: ArrayLike) -> Floats:
        return np.clip(self.support.inside(y), self.support.low, self.support.high)

    def _log_between(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """Log probability of the base between two points."""
        # P(low < Y < high), also where the base has an atom at a bound
        lower = self.base.logcdf_left(high)
        upper = self.base.logsf(low)
        # a difference within the smaller tail, which keeps its digits
        is_lower = lower < upper
        whole = np.where(is_lower, lower, upper)
        rest = np.where(is_lower, self.base.logcdf(low), self.base.logsf_left(high))
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

    def _log_within(self) -> Floats:
        """Log probability of the base in the interval."""
        return self._log_between(self.support.low, self.support.high)

    def logcdf(self, y: ArrayLike) -> Floats:
        tail = self._log_between(self.support.low, self._clipped(y))
        return np.minimum(tail - self._log_within(), 0.0)

    def logsf(self, y: ArrayLike) -> Floats:
        tail = self._log_between(self._clipped(y), self.support.high)
        return np.minimum(tail - self._log_within(), 0.0)

    def logpdf(self, y: ArrayLike) -> Floats:
        point = np.asarray(y, dtype=np.float64)
        inside = np.where(np.isfinite(point), self._clipped(point), 0.0)
        density = self.base.logpdf(inside) - self._log_within()
        is_outside = (point < self.support.low) | (point > self.support.high)
        return np.where(is_outside, -np.inf, density)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        low = self.support.low
        high = self.support.high
        within = self._log_within()
        far = log1mexp(np.asarray(log_p))
        # probabilities between the quantile and each bound, and the tails of the base beyond it
        below = within + np.where(upper, far, log_p)
        above = within + np.where(upper, log_p, far)
        lower = np.logaddexp(below, self.base.logcdf(low))
        higher = np.logaddexp(above, self.base.logsf_left(high))
        is_upper = higher < lower
        tail = np.minimum(np.where(is_upper, higher, lower), 0.0)
        found = self.base.quantile_from_tail(tail, is_upper)
        # next to a bound the digits of the difference to its tail are lost
        if np.isfinite(low):
            near = low + self._length(below, low)
            found = np.where(self._is_little(below, low) & (below <= above), near, found)
        if np.isfinite(high):
            near = high - self._length(above, high)
            found = np.where(self._is_little(above, high) & (above < below), near, found)
        return np.clip(found, low, high)

    def _length(self, log_p: Floats, bound: float) -> Floats:
        """Return the length of a probability next to a bound, from the density there."""
        density = self.base.logpdf(bound)
        # at an atom, and where a density begins with 0: next to nothing, which clipping makes 0
        return np.where(np.isneginf(density), 0.0, np.exp(log_p - np.maximum(density, -700.0)))

    def _is_little(self, log_p: Floats, bound: float) -> Mask:
        """Whether a probability next to a bound is a small part of the tails there."""
        least = np.minimum(self.base.logcdf(bound), self.base.logsf(bound))
        return np.asarray(log_p - least < LEAST_SHARE)
