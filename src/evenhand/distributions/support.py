"""Outcomes with bounds: intervals, maps onto the real line, and distributions on them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._kinds import OutcomeKind
from evenhand._logarithms import log1mexp, log_expm1, softplus
from evenhand._validate import Floats, InputError, Mask, typed_fields
from evenhand.distributions.base import Distribution
from evenhand.distributions.wrappers import Wrapper, check_no_atoms


@dataclass(frozen=True)
class Support:
    """Interval of possible outcomes, with a smooth increasing map from it onto the real line.

    The map is `g(y - low) - g(high - y)` with `g(x) = log(bend (exp(x / bend) - 1))`, without the
    part of a side that has no bound. `g` is the logarithm for distances from a bound below `bend`,
    and a line for larger distances: with `bend=inf` the map is `log(y - low)`, `-log(high - y)` or
    `log((y - low) / (high - y))`. Without bounds it is the identity.

    Parameters
    ----------
    low, high : float
        Bounds of the outcome; -inf and inf on a side without bound.
    bend : float, default inf
        Distance from a bound at which `g` turns from a logarithm to a line, > 0; units of `y`.
    edge : float, default 0
        Distance from a bound to which outcomes that are nearer are moved; units of `y`.
    is_map : bool, default True
        Whether outcomes are mapped to the line before a model is fitted. Otherwise forecasts for
        outcomes in their own units are truncated to the interval.

    Examples
    --------
    >>> Support(low=0.0).to_line([0.1, 1.0, 10.0]).round(2)
    array([-2.3,  0. ,  2.3])
    >>> Support(low=0.0, bend=1.0).from_line([-2.3, 0.0, 100.0]).round(2)
    array([  0.1 ,   0.69, 100.  ])
    """

    low: float = -np.inf
    high: float = np.inf
    bend: float = np.inf
    edge: float = 0.0
    is_map: bool = True

    def to_line(self, y: ArrayLike) -> Floats:
        """Map outcomes to the line; outcomes at and beyond a bound give -inf or inf."""
        point = np.asarray(y, dtype=np.float64)
        if np.isinf(self.low) and np.isinf(self.high):
            return point
        # beyond a bound the distance is 0, whose logarithm is -inf
        with np.errstate(divide="ignore"):
            if np.isinf(self.high):
                return self._bent(np.maximum(point - self.low, 0.0))
            above = self._bent(np.maximum(self.high - point, 0.0))
            if np.isinf(self.low):
                return -above
            return np.asarray(self._bent(np.maximum(point - self.low, 0.0)) - above)

    def from_line(self, points: ArrayLike) -> Floats:
        """Map points of the line to outcomes."""
        point = np.asarray(points, dtype=np.float64)
        if np.isinf(self.high):
            return point if np.isinf(self.low) else self.low + self._distance(point)
        if np.isinf(self.low):
            return np.asarray(self.high - self._distance(-point))
        # from the nearer bound, so that small distances to either keep their digits
        nearer = self._nearer_distance(-np.abs(point))
        return np.where(point < 0, self.low + nearer, self.high - nearer)

    def log_slope(self, y: ArrayLike) -> Floats:
        """Logarithm of the derivative of `to_line` at outcomes inside the interval."""
        point = np.asarray(y, dtype=np.float64)
        if np.isinf(self.low) and np.isinf(self.high):
            return np.zeros_like(point)
        if np.isinf(self.high):
            return self._log_slope(point - self.low)
        if np.isinf(self.low):
            return self._log_slope(self.high - point)
        return np.logaddexp(self._log_slope(point - self.low), self._log_slope(self.high - point))

    def inside(self, y: ArrayLike) -> Floats:
        """Return the outcomes; those in the interval keep a distance of `edge` from its bounds."""
        point = np.asarray(y, dtype=np.float64)
        is_inside = (point >= self.low) & (point <= self.high)
        return np.where(
            is_inside, np.clip(point, self.low + self.edge, self.high - self.edge), point
        )

    def to_state(self) -> dict[str, Any]:
        """Return the fields as JSON values; None stands for infinity."""
        return {name: None if np.isinf(value) else value for name, value in asdict(self).items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from the output of `to_state`."""
        given = {name: value for name, value in state.items() if value is not None}
        support = cls(**typed_fields(cls, given))
        if not support.low < support.high or support.bend <= 0:
            raise InputError(f"{support} is not an interval with a bend above 0")
        return support

    def _bent(self, distance: Floats) -> Floats:
        if np.isinf(self.bend):
            return np.asarray(np.log(distance))
        return np.asarray(log_expm1(distance / self.bend) + np.log(self.bend))

    def _log_slope(self, distance: Floats) -> Floats:
        if np.isinf(self.bend):
            return np.asarray(-np.log(distance))
        return np.asarray(-np.log(self.bend) - np.log(-np.expm1(-distance / self.bend)))

    def _distance(self, point: Floats) -> Floats:
        """Return the distance from a single bound, the inverse of `_bent`."""
        if np.isinf(self.bend):
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(point))
        return np.asarray(self.bend * softplus(point - np.log(self.bend)))

    def _nearer_distance(self, point: Floats) -> Floats:
        """Return the distance from the nearer of two bounds, at points of at most 0."""
        width = self.high - self.low
        if np.isinf(self.bend):
            return np.asarray(width * special.expit(point))
        # x = exp(distance / bend) - 1 solves x^2 + b x = c with b = 1 + exp(t) and
        # c = exp(t) (exp(width / bend) - 1); in logarithms, as c may overflow
        log_b = softplus(point)
        log_c = point + log_expm1(np.asarray(width / self.bend))
        root = 0.5 * np.logaddexp(2 * log_b, np.log(4.0) + log_c)
        return np.asarray(self.bend * softplus(np.log(2.0) + log_c - np.logaddexp(log_b, root)))


# --- distributions of outcomes with bounds


class Bounded(Wrapper):
    """Distributions on one support, each from a distribution of the batch `base`."""

    shared: ClassVar[tuple[str, ...]] = ("support",)

    def __init__(self, base: Distribution, support: Support) -> None:
        self.base = base
        self.support = support


class Transformed(Bounded):
    """Distributions of `support.from_line(Z)`, where `Z` has the distribution `base`.

    Outside the support the density is 0. Outcomes nearer to a bound than `support.edge` are
    evaluated at that distance, so that an outcome at the bound has a finite log density.

    Parameters
    ----------
    base : Distribution
        Distribution on the real line.
    support : Support
        Map between outcomes and the real line.

    Examples
    --------
    >>> from evenhand.distributions import Normal, Support
    >>> lognormal = Transformed(Normal([0.0], 1.0), Support(low=0.0))
    >>> lognormal.ppf(0.5), lognormal.mean().round(3)
    (array([1.]), array([1.649]))
    """

    def __init__(self, base: Distribution, support: Support) -> None:
        check_no_atoms("base", base)
        super().__init__(base, support)

    def logcdf(self, y: ArrayLike) -> Floats:
        return self.base.logcdf(self.support.to_line(self.support.inside(y)))

    def logsf(self, y: ArrayLike) -> Floats:
        return self.base.logsf(self.support.to_line(self.support.inside(y)))

    def logpdf(self, y: ArrayLike) -> Floats:
        point = self.support.inside(y)
        line = self.support.to_line(point)
        is_inside = np.isfinite(line)
        if not is_inside.all():
            line = np.where(is_inside, line, 0.0)
            point = np.where(is_inside, point, self.support.from_line(0.0))
        # change of variables: the density is per unit of y
        density = self.base.logpdf(line) + self.support.log_slope(point)
        return np.where(is_inside, density, -np.inf)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        return self.support.from_line(self.base.quantile_from_tail(log_p, upper))

    def mean(self) -> Floats:
        return self.base.smooth_expectation(self.support.from_line)

    def std(self) -> Floats:
        mean = self.mean()[..., None]
        square = self.base.smooth_expectation(lambda z: (self.support.from_line(z) - mean) ** 2)
        return np.sqrt(square)


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
