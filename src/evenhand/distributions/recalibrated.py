"""Recalibrated forecast `g(F(y))`: a monotone map of any base CDF (method: recalibration)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand._logarithms import log1mexp
from evenhand._validate import Floats, Ints, Mask, bad_input
from evenhand.distributions.base import (
    Distribution,
    batch_array,
    broadcast,
    joint_shape,
)
from evenhand.distributions.lattice import LEAST_TAIL, LatticeSums, own_tails
from evenhand.distributions.wrappers import TailMap


class Recalibrated(TailMap):
    """Distributions with the CDF `g(F(y))` for a base `F` and an increasing, piecewise linear `g`.

    The density is that of the base times the slope of `g`. Below the first inner knot and above the
    last inner knot each tail is the base's tail times a constant, because `g` is linear there and
    passes through (0, 0) and (1, 1).

    Parameters
    ----------
    base : Distribution
        Forecast to recalibrate.
    levels : array-like of shape (k,) or (n_maps, k)
        Probabilities of the base at the knots, strictly increasing from 0 to 1.
    values : array-like of shape (k,) or (n_maps, k)
        Recalibrated probabilities at the knots, strictly increasing from 0 to 1.
    which : array-like of int, optional
        Number of the map of each distribution, 0 to n_maps - 1; broadcasts against the batch. If
        None, all distributions share one map of shape (k,).

    Raises
    ------
    InputError
        If levels or values do not increase strictly from 0 to 1, `which` is not the number of a
        map, or the shapes do not match.

    Examples
    --------
    Half of the outcomes were in the lowest fifth of the base:

    >>> from evenhand.distributions import Normal
    >>> batch = Recalibrated(Normal([0.0], 1.0), levels=[0, 0.2, 1], values=[0, 0.5, 1])
    >>> batch.cdf(0.0), batch.ppf(0.5).round(3)
    (array([0.6875]), array([-0.842]))
    """

    event_dims: ClassVar[dict[str, int]] = {"which": 0}
    shared: ClassVar[tuple[str, ...]] = ("levels", "values")

    def __init__(
        self,
        base: Distribution,
        levels: ArrayLike,
        values: ArrayLike,
        which: ArrayLike | None = None,
    ) -> None:
        self.base = base
        self.levels, self.values = broadcast(
            levels=_check_knots("levels", levels), values=_check_knots("values", values)
        )
        self.which = _check_which(which, self.levels.shape)
        joint_shape(base=base.batch_shape, which=() if self.which is None else self.which.shape)

    def _mapped(self, tail: Floats, is_upper: Mask) -> tuple[Floats, Floats, Floats]:
        return _map_tail(self.levels, self.values, self.which, tail, is_upper)

    def _log_tail(self, tail: Floats, is_upper: Mask, *, of_upper: bool) -> Floats:
        near, far, _ = self._mapped(tail, is_upper)
        return np.where(is_upper == of_upper, near, far)

    def _log_slope(self, y: ArrayLike) -> Floats:
        return self._mapped(*self._tail(y))[2]

    def nodes(self, reach: float, step: float) -> Floats:
        return self.base.nodes(reach, step)

    def values_of_rows(self) -> Recalibrated | None:
        shape = self.batch_shape
        flat = self.base.values_of_rows() if self.base.batch_shape == shape else None
        if flat is None:
            return None
        return self._with(flat, lambda which: np.broadcast_to(which, shape).reshape(shape[0]))

    def ends(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the first and the last value between two tails, as in `Lattice`."""
        base: Any = self.base
        # the inverse map
        maps = self.values, self.levels, self.which
        low = _map_tail(*maps, lower, np.zeros(lower.shape, dtype=bool))[0]
        high = _map_tail(*maps, upper, np.ones(upper.shape, dtype=bool))[0]
        found: tuple[Floats, Floats] = base.ends(low, high)
        return found

    def tails_between(self, first: Floats, last: Floats) -> tuple[Floats, Floats, Mask]:
        """Return values and their smaller tails, as in `Lattice`."""
        base: Any = self.base
        values, log_tail, is_upper = base.tails_between(first, last)
        which = None if self.which is None else self.which[:, None]
        near, far, _ = _map_tail(self.levels, self.values, which, log_tail, is_upper)
        turned = near > far
        return values, np.where(turned, far, near), is_upper ^ turned

    @cached_property
    def _sums(self) -> LatticeSums | None:
        """Sums over the values, if the base is a narrow lattice."""
        flat = self.values_of_rows()
        if flat is None:
            return None
        tail = np.full(flat.batch_shape, LEAST_TAIL)
        sums = LatticeSums(flat, tail, tail, own_tails, 1)
        return None if sums.is_wide.any() else sums

    def logpdf(self, y: ArrayLike) -> Floats:
        return np.asarray(self.base.logpdf(y) + self._log_slope(y))

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        tail = np.asarray(log_p, dtype=np.float64)
        is_upper = np.asarray(upper)
        # the inverse map starts from the smaller tail of the recalibrated forecast
        is_large = tail > np.log(0.5)
        tail = np.where(is_large, log1mexp(tail), tail)
        is_upper = is_upper ^ is_large
        near, far, _ = _map_tail(self.values, self.levels, self.which, tail, is_upper)
        # the base takes the tail that is smaller after the inverse map
        turned = near > far
        return self.base.quantile_from_tail(np.where(turned, far, near), is_upper ^ turned)


def _check_knots(name: str, knots: ArrayLike) -> Floats:
    array = batch_array(name, knots)
    if array.ndim not in (1, 2) or array.size == 0:
        raise bad_input(name, "have shape (k,) or (n_maps, k)", f"shape {array.shape}")
    if array.shape[-1] < 2 or not (np.diff(array, axis=-1) > 0).all():
        rule = "have two or more knots that increase strictly along the last axis"
        raise bad_input(name, rule, f"{array.tolist()}"[:80])
    if (array[..., 0] != 0).any() or (array[..., -1] != 1).any():
        got = f"{array[..., 0].max():g} to {array[..., -1].min():g}"
        raise bad_input(name, "begin at 0 and end at 1", got, "give a fraction: 0.9, not 90")
    return array


def _check_which(which: ArrayLike | None, shape: tuple[int, ...]) -> Ints | None:
    """Return the numbers of the maps as integers; None if there is one map for all."""
    if which is None:
        if len(shape) > 1:
            remedy = "give the map of each row as which"
            raise bad_input(
                "levels and values", "have shape (k,) without which", f"shape {shape}", remedy
            )
        return None
    array = np.asarray(which)
    if len(shape) < 2:
        raise bad_input("levels and values", "have shape (n_maps, k) with which", f"shape {shape}")
    if array.dtype.kind not in "iu":
        raise bad_input("which", "be integers", str(array.dtype))
    wrong = (array < 0) | (array >= shape[0])
    if wrong.any():
        rule = f"lie between 0 and {shape[0] - 1}, the number of the last map"
        raise bad_input("which", rule, array[wrong].flat[0])
    return array.astype(np.intp, copy=False)


def _map_tail(
    levels: Floats, values: Floats, which: Ints | None, log_u: Floats, is_upper: Mask
) -> tuple[Floats, Floats, Floats]:
    """Return the logs of the mapped tail, of one minus it, and of the slope, at tails `log_u`.

    Upper tails use the map mirrored at (1/2, 1/2), in which levels above 1/2 keep their digits as
    1 - level.
    """
    # compute both sides for all points and select one per point
    shape = np.broadcast_shapes(() if which is None else which.shape, log_u.shape, is_upper.shape)
    tail = np.broadcast_to(log_u, shape)
    side = np.broadcast_to(is_upper, shape)
    lower = _map_lower(levels, values, which, tail)
    upper = _map_lower(1 - levels[..., ::-1], 1 - values[..., ::-1], which, tail)
    near, far, slope = (
        np.where(side, above, below) for below, above in zip(lower, upper, strict=True)
    )
    return near, far, slope


def _map_lower(
    levels: Floats, values: Floats, which: Ints | None, log_u: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the same logs for lower tails, which use the map itself."""
    u = np.exp(log_u)
    cell = _cell(levels, which, u)
    left, right, low, high = (
        _at(knots, which, cell + step) for knots in (levels, values) for step in (0, 1)
    )
    slope = (high - low) / (right - left)
    # both are computed from the ends of the cell, so that neither is a difference of large numbers
    near = low + slope * (u - left)
    far = (1 - high) + slope * (right - u)
    with np.errstate(divide="ignore"):
        # in the first cell g is a line through 0, and u may be below the smallest float
        log_near = np.where(cell == 0, np.log(slope) + log_u, np.log(near))
        log_far = np.log(np.maximum(far, 0.0))
    return np.minimum(log_near, 0.0), np.minimum(log_far, 0.0), np.log(slope)


def _cell(knots: Floats, which: Ints | None, point: Floats) -> Ints:
    """Return the number of the cell that contains each point."""
    if which is None:
        return _cell_of(knots, point)
    # points along axes that share the map are looked up together
    own = which.reshape((1,) * (point.ndim - which.ndim) + which.shape)
    n_own = max((axis + 1 for axis, size in enumerate(own.shape) if size > 1), default=0)
    shape = point.shape[:n_own]
    rows = np.broadcast_to(own.reshape(own.shape[:n_own]), shape).ravel()
    points = point.reshape(rows.size, -1)
    cells = np.empty(points.shape, dtype=np.intp)
    # numpy sorts small integers by radix, in linear time
    order = np.argsort(rows.astype(np.min_scalar_type(len(knots))), kind="stable")
    used, starts = np.unique(rows[order], return_index=True)
    for number, part in zip(used, np.split(order, starts[1:]), strict=True):
        cells[part] = _cell_of(knots[number], points[part])
    return cells.reshape(point.shape)


def _cell_of(knots: Floats, point: Floats) -> Ints:
    return np.clip(np.searchsorted(knots, point, side="right") - 1, 0, knots.size - 2)


def _at(knots: Floats, which: Ints | None, index: Ints) -> Floats:
    """Return the knot of each point."""
    return np.asarray(knots[index] if which is None else knots[which, index])
