"""A monotone map around any base: the recalibrated forecast `g(F(y))` (method: recalibration)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._checks import Floats, bad_input
from evenhand.distributions._base import Bools, Distribution, batch_array, broadcast, has_rows, joint_shape
from evenhand.links._base import log1mexp


class Recalibrated(Distribution):
    """Distributions with the CDF `g(F(y))`, `F` the base's and `g` increasing and linear between knots.

    The density is the base's times the slope of `g`. Below the first inner knot and above the last one `g` is
    linear through (0, 0) and (1, 1): there each tail is the base's tail times a constant.

    Parameters
    ----------
    base : Distribution
        The forecast to be mended.
    levels : array-like of shape (k,) or (..., k)
        Probabilities of the base at the knots, strictly increasing from 0 to 1; the axes before the last broadcast
        against the batch: shape (k,) serves every row, shape (n, k) has a map for each row of a batch (n,).
    values : array-like of shape (k,) or (..., k)
        What the map makes of them, strictly increasing from 0 to 1.

    Raises
    ------
    InputError
        If levels or values do not rise strictly from 0 to 1, or shapes do not fit.

    Examples
    --------
    Half of the outcomes fell into the lowest fifth of the base:

    >>> from evenhand.distributions import Normal
    >>> batch = Recalibrated(Normal([0.0], 1.0), levels=[0, 0.2, 1], values=[0, 0.5, 1])
    >>> batch.cdf(0.0), batch.ppf(0.5).round(3)
    (array([0.6875]), array([-0.842]))
    """

    event_dims: ClassVar[dict[str, int]] = {"levels": 1, "values": 1}

    def __init__(self, base: Distribution, levels: ArrayLike, values: ArrayLike) -> None:
        self.base = base
        self.levels, self.values = broadcast(
            levels=_check_knots("levels", levels), values=_check_knots("values", values)
        )
        joint_shape(base=base.batch_shape, levels=self.levels.shape[:-1])

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.base.batch_shape, self.levels.shape[:-1])

    def take(self, rows: Any) -> Recalibrated:
        base = self.base.take(rows) if has_rows(self.base.batch_shape, self.batch_shape) else self.base
        if has_rows(self.levels.shape[:-1], self.batch_shape):
            return Recalibrated(base, self.levels[rows], self.values[rows])
        return Recalibrated(base, self.levels, self.values)

    def expand(self) -> Recalibrated:
        if self.levels.ndim == 1:
            return Recalibrated(self.base.expand(), self.levels, self.values)
        return Recalibrated(self.base.expand(), self.levels[..., None, :], self.values[..., None, :])

    def _mapped(self, y: ArrayLike) -> tuple[Floats, Floats, Floats, Bools]:
        """Logs of the tail on the side of the smaller base tail, of the other tail, of the slope; and the side."""
        lower, upper = self.base.logcdf(y), self.base.logsf(y)
        is_upper = lower > upper
        return (*_map_tail(self.levels, self.values, np.where(is_upper, upper, lower), is_upper), is_upper)

    def logcdf(self, y: ArrayLike) -> Floats:
        near, far, _, is_upper = self._mapped(y)
        return np.where(is_upper, far, near)

    def logsf(self, y: ArrayLike) -> Floats:
        near, far, _, is_upper = self._mapped(y)
        return np.where(is_upper, near, far)

    def logpdf(self, y: ArrayLike) -> Floats:
        return np.asarray(self.base.logpdf(y) + self._mapped(y)[2])

    def quantile_from_tail(self, log_p: Floats, upper: Bools) -> Floats:
        tail, is_upper = np.asarray(log_p, dtype=np.float64), np.asarray(upper)
        is_large = tail > np.log(0.5)
        tail, is_upper = np.where(is_large, log1mexp(tail), tail), is_upper ^ is_large
        near, far, _ = _map_tail(self.values, self.levels, tail, is_upper)
        turned = near > far
        return self.base.quantile_from_tail(np.where(turned, far, near), is_upper ^ turned)


def _check_knots(name: str, knots: ArrayLike) -> Floats:
    array = batch_array(name, knots)
    if array.ndim < 1 or array.shape[-1] < 2 or not (np.diff(array, axis=-1) > 0).all():
        raise bad_input(name, "rise strictly along the last axis, two knots or more", f"{array.tolist()}"[:80])
    if (array[..., 0] != 0).any() or (array[..., -1] != 1).any():
        got = f"{array[..., 0].max():g} to {array[..., -1].min():g}"
        raise bad_input(name, "begin at 0 and end at 1", got, "fractions everywhere: 0.9, not 90")
    return array


def _map_tail(levels: Floats, values: Floats, log_u: Floats, is_upper: Bools) -> tuple[Floats, Floats, Floats]:
    """Log of the mapped tail, of one minus it and of the slope, where `log_u` is a lower or an upper tail.

    An upper tail goes through the map mirrored at (1/2, 1/2). Levels above 1/2 keep their digits in 1 - level.
    """
    shape = np.broadcast_shapes(levels.shape[:-1], log_u.shape, is_upper.shape)
    tail, side = np.broadcast_to(log_u, shape), np.broadcast_to(is_upper, shape)
    lower = _map_lower(levels, values, tail)
    upper = _map_lower(1 - levels[..., ::-1], 1 - values[..., ::-1], tail)
    near, far, slope = (np.where(side, above, below) for below, above in zip(lower, upper, strict=True))
    return near, far, slope


def _map_lower(levels: Floats, values: Floats, log_u: Floats) -> tuple[Floats, Floats, Floats]:
    """The same for lower tails, whose map is in place."""
    u = np.exp(log_u)
    cell = _cell(levels, u)
    left, right, low, high = (_at(knots, cell + step) for knots in (levels, values) for step in (0, 1))
    slope = (high - low) / (right - left)
    # both from the cell's own ends, so that neither is a difference of large numbers
    near, far = low + slope * (u - left), (1 - high) + slope * (right - u)
    with np.errstate(divide="ignore"):
        log_near = np.where(cell == 0, np.log(slope) + log_u, np.log(near))
        log_far = np.log(np.maximum(far, 0.0))
    return np.minimum(log_near, 0.0), np.minimum(log_far, 0.0), np.log(slope)


def _cell(knots: Floats, point: Floats) -> NDArray[np.intp]:
    """Index of the last knot at or below the point, the last knot of all left out: the cell that holds the point."""
    if knots.ndim == 1:
        return np.clip(np.searchsorted(knots, point, side="right") - 1, 0, knots.size - 2)
    low = np.zeros(point.shape, dtype=np.intp)
    high = np.full(point.shape, knots.shape[-1] - 1, dtype=np.intp)
    for _ in range(int(knots.shape[-1]).bit_length()):  # halves the cells that are left; rows have knots of their own
        middle = (low + high) // 2
        below = _at(knots, middle) <= point
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def _at(knots: Floats, index: NDArray[np.intp]) -> Floats:
    """Return each point's knot."""
    if knots.ndim == 1:
        return np.asarray(knots[index])
    spread = np.broadcast_to(knots, (*index.shape, knots.shape[-1]))
    return np.take_along_axis(spread, index[..., None], axis=-1)[..., 0]
