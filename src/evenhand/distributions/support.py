"""Intervals of possible outcomes, and smooth increasing maps from them onto the real line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._logarithms import log_expm1, softplus
from evenhand._validate import Floats


@dataclass(frozen=True)
class Support:
    """Interval of possible outcomes, with a smooth increasing map from it onto the real line.

    With two bounds the map is `log((y - low) / (high - y))`. With one bound at a distance `x` from
    the outcome it is `log(bend (exp(x / bend) - 1))`, mirrored for an upper bound: the logarithm
    for distances below `bend`, and linear for larger distances. Without bounds it is the identity.

    Parameters
    ----------
    low, high : float
        Bounds of the outcome; -inf and inf on a side without bound.
    bend : float, default inf
        Distance from a single bound at which the map turns from a logarithm to a line, > 0; units
        of `y`. At inf it is the logarithm.
    edge : float, default 0
        Distance from a bound to which outcomes at the bound are moved, where the logarithm of their
        density is evaluated; units of `y`.
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
        with np.errstate(divide="ignore"):
            if np.isinf(self.low):
                return point if np.isinf(self.high) else -self._bent(self._above(point))
            if np.isinf(self.high):
                return self._bent(self._below(point))
            return np.asarray(np.log(self._below(point)) - np.log(self._above(point)))

    def from_line(self, points: ArrayLike) -> Floats:
        """Map points of the line to outcomes."""
        point = np.asarray(points, dtype=np.float64)
        if np.isinf(self.low):
            return point if np.isinf(self.high) else self.high - self._distance(-point)
        if np.isinf(self.high):
            return self.low + self._distance(point)
        # from the nearer bound, so that distances to both keep their digits
        width = self.high - self.low
        nearer = width * special.expit(-np.abs(point))
        return np.where(point < 0, self.low + nearer, self.high - nearer)

    def log_slope(self, y: ArrayLike) -> Floats:
        """Logarithm of the derivative of `to_line` at outcomes inside the interval."""
        point = np.asarray(y, dtype=np.float64)
        if np.isinf(self.low):
            return (
                np.zeros_like(point) if np.isinf(self.high) else self._log_slope(self.high - point)
            )
        if np.isinf(self.high):
            return self._log_slope(point - self.low)
        width = np.log(self.high - self.low)
        return np.asarray(width - np.log(point - self.low) - np.log(self.high - point))

    def inside(self, y: ArrayLike) -> Floats:
        """Return the outcomes, with those at a bound moved inside by `edge`."""
        point = np.asarray(y, dtype=np.float64)
        point = np.where(point == self.low, self.low + self.edge, point)
        return np.where(point == self.high, self.high - self.edge, point)

    def to_state(self) -> dict[str, Any]:
        """Return the fields as JSON values; None stands for infinity."""
        return {name: None if np.isinf(value) else value for name, value in asdict(self).items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from the output of `to_state`."""
        return cls(**{name: value for name, value in state.items() if value is not None})

    def _below(self, y: Floats) -> Floats:
        """Return the distance from the lower bound, 0 beyond it."""
        return np.maximum(y - self.low, 0.0)

    def _above(self, y: Floats) -> Floats:
        return np.maximum(self.high - y, 0.0)

    def _bent(self, distance: Floats) -> Floats:
        if np.isinf(self.bend):
            return np.asarray(np.log(distance))
        return np.asarray(log_expm1(distance / self.bend) + np.log(self.bend))

    def _distance(self, point: Floats) -> Floats:
        """Return the distance from the bound, the inverse of `_bent`."""
        if np.isinf(self.bend):
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(point))
        return np.asarray(self.bend * softplus(point - np.log(self.bend)))

    def _log_slope(self, distance: Floats) -> Floats:
        if np.isinf(self.bend):
            return np.asarray(-np.log(distance))
        return np.asarray(-np.log(self.bend) - np.log(-np.expm1(-distance / self.bend)))
