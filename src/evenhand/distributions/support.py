"""Intervals of possible outcomes, and smooth increasing maps from them onto the real line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._logarithms import log_expm1, softplus
from evenhand._validate import Floats, InputError, typed_fields


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
