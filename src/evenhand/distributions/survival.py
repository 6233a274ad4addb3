"""Distributions of times, given by survival curves (outcomes: 5)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, Mask, bad_input, place_of
from evenhand.distributions import piecewise
from evenhand.distributions.base import (
    Distribution,
    batch_array,
    broadcast,
    probability_array,
)

LEAST_RISK = 1e-9
"""Probability that is spread over a curve with flat parts, so that a density exists: the least
probability of an event by the last time."""


class SurvivalCurves(Distribution):
    """Distributions of times above 0 with given survival probabilities, linear between them.

    The curve begins at 1 at time 0. Beyond the last time the hazard is constant, and equal to the
    mean hazard up to it. A billionth of the probability of a curve with flat parts is spread evenly
    over its times, so that a density exists.

    Parameters
    ----------
    times : array-like of shape (q,) or (..., q)
        Increasing times above 0, in units of `y`.
    survival : array-like of shape (..., q)
        Probabilities of times beyond each of `times`, falling from at most 1; the axes before the
        last are the batch.

    Raises
    ------
    InputError
        If times do not increase from above 0, or a curve rises or leaves the range from 0 to 1.

    Examples
    --------
    >>> curve = SurvivalCurves([1.0, 2.0], [[0.8, 0.4]])
    >>> curve.sf(1.5).round(3), curve.ppf(0.6).round(3)
    (array([0.6]), array([2.]))
    """

    event_dims: ClassVar[dict[str, int]] = {"times": 1, "survival": 1}
    has_mean: ClassVar[bool] = True

    def __init__(self, times: ArrayLike, survival: ArrayLike) -> None:
        grid = batch_array("times", times)
        if grid.ndim < 1 or grid.shape[-1] < 1 or not (np.diff(grid, axis=-1) > 0).all():
            raise bad_input("times", "be at least one, increasing", f"{grid.tolist()}"[:80])
        if grid.min() <= 0:
            remedy = "leave out time 0, at which everybody survives"
            raise bad_input("times", "be above 0", float(grid.min()), remedy)
        curve = probability_array("survival", survival)
        if curve.ndim < 1 or curve.shape[-1] != grid.shape[-1]:
            rule = f"have one column per time ({grid.shape[-1]})"
            raise bad_input("survival", rule, f"shape {curve.shape}")
        _check_falling(curve)
        self.times, self.survival = broadcast(times=grid, survival=curve)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.survival.shape[:-1]

    @cached_property
    def _knots(self) -> tuple[Floats, Floats]:
        """Times and CDF values, `batch_shape + (q + 1,)`, beginning with 0; without flat parts."""
        start = np.zeros((*self.batch_shape, 1))
        times = np.concatenate((start, self.times), axis=-1)
        cdf = np.concatenate((start, 1 - self.survival), axis=-1)
        share = times / times[..., -1:]
        rising = np.diff(cdf, axis=-1) > 0
        spread = (1 - LEAST_RISK) * cdf + LEAST_RISK * share
        return times, np.where(rising.all(axis=-1, keepdims=True), cdf, spread)

    @cached_property
    def _tail(self) -> tuple[Floats, Floats]:
        """Log survival at the last time, and the hazard beyond it; shape of the batch."""
        times, cdf = self._knots
        # a curve that ends at 0 has no tail, and any hazard will do
        log_last = np.log(np.maximum(1 - cdf[..., -1], 1e-300))
        return log_last, -log_last / times[..., -1]

    def _broadcast(self, y: ArrayLike) -> Floats:
        point = np.asarray(y, dtype=np.float64)
        return np.broadcast_to(point, np.broadcast_shapes(point.shape, self.batch_shape))

    def _inside(self, point: Floats) -> Floats:
        """CDF up to the last time."""
        t_low, t_high, p_low, p_high = piecewise.cell_ends(self._knots[0], point, *self._knots)
        share = np.clip((point - t_low) / (t_high - t_low), 0.0, 1.0)
        return np.asarray(p_low + (p_high - p_low) * share)

    def logcdf(self, y: ArrayLike) -> Floats:
        point = self._broadcast(y)
        with np.errstate(divide="ignore"):
            # next to 0 a probability is too small for a float, but not impossible; at 0, a time
            # that is rounded, links need one to have a density
            least = np.where(point >= 0, 1e-300, 0.0)
            inside = np.log(np.maximum(self._inside(point), least))
            beyond = np.log1p(-np.exp(self.logsf(point)))
        return np.where(point > self._knots[0][..., -1], beyond, inside)

    def logsf(self, y: ArrayLike) -> Floats:
        point = self._broadcast(y)
        log_last, hazard = self._tail
        last = self._knots[0][..., -1]
        # where a curve ends at 0, no later time is impossible
        inside = np.log1p(-np.minimum(self._inside(point), 1 - 2.0**-53))
        return np.where(point > last, log_last - hazard * (np.maximum(point, last) - last), inside)

    def logpdf(self, y: ArrayLike) -> Floats:
        point = self._broadcast(y)
        log_last, hazard = self._tail
        last = self._knots[0][..., -1]
        t_low, t_high, p_low, p_high = piecewise.cell_ends(self._knots[0], point, *self._knots)
        with np.errstate(divide="ignore"):
            beyond = np.log(hazard) + log_last - hazard * (np.maximum(point, last) - last)
            inside = np.log(p_high - p_low) - np.log(t_high - t_low)
        return np.where(point < 0, -np.inf, np.where(point > last, beyond, inside))

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        tail, is_upper = np.broadcast_arrays(np.asarray(log_p), np.asarray(upper))
        shape = np.broadcast_shapes(tail.shape, self.batch_shape)
        tail, is_upper = np.broadcast_to(tail, shape), np.broadcast_to(is_upper, shape)
        p = np.where(is_upper, -np.expm1(tail), np.exp(tail))
        times, cdf = self._knots
        t_low, t_high, p_low, p_high = piecewise.cell_ends(cdf, p, *self._knots)
        inside = t_low + (t_high - t_low) * np.clip((p - p_low) / (p_high - p_low), 0.0, 1.0)
        log_last, hazard = self._tail
        with np.errstate(divide="ignore"):
            log_upper = np.where(is_upper, tail, np.log1p(-np.minimum(p, 1.0)))
        beyond = times[..., -1] + np.maximum(log_last - log_upper, 0.0) / hazard
        has_tail = (cdf[..., -1] < 1) & (log_upper < log_last)
        return np.where(has_tail, beyond, inside)

    def mean(self) -> Floats:
        times, cdf = self._knots
        log_last, hazard = self._tail
        return np.asarray(piecewise.mean(cdf, times) + np.exp(log_last) / hazard)

    def std(self) -> Floats:
        times, cdf = self._knots
        log_last, hazard = self._tail
        last, mass = times[..., -1], np.exp(log_last)
        # so far the probability beyond the last time is at it; the exponential tail adds
        # 2 s^2 + 2 s (last - centre) to the squared deviation there
        centre = piecewise.mean(cdf, times)
        second = piecewise.std(cdf, times) ** 2
        second = second + mass * (2 / hazard**2 + 2 * (last - centre) / hazard)
        return np.asarray(np.sqrt(second - (mass / hazard) ** 2))

    def crps(self, y: ArrayLike) -> Floats:
        times, cdf = self._knots
        log_last, hazard = self._tail
        point = np.asarray(y, dtype=np.float64)
        distance = np.maximum(point - times[..., -1], 0.0)
        tail = piecewise.tail_crps(np.exp(log_last), 1 / hazard, distance)
        return np.asarray(piecewise.crps(cdf, times, point) + tail)


def describes_times(distribution: Distribution) -> bool:
    """Whether the innermost distribution is given by survival curves.

    Examples
    --------
    >>> describes_times(SurvivalCurves([1.0], [[0.5]]))
    True
    """
    return _curves_in(distribution) is not None


def curve_times(distribution: Distribution) -> list[float]:
    """Return the times that all survival curves inside a distribution have; none for other forms.

    Examples
    --------
    >>> curve_times(SurvivalCurves([1.0, 3.0], [[0.5, 0.2]]))
    [1.0, 3.0]
    """
    curves = _curves_in(distribution)
    if curves is None:
        return []
    # there may be a grid for each person
    grid = curves.times.reshape(-1, curves.times.shape[-1])
    return grid[0].tolist() if (grid == grid[0]).all() else []


def _curves_in(distribution: Distribution) -> SurvivalCurves | None:
    """Return the survival curves inside links, maps and hurdles; None if there are none."""
    inner: Any = distribution
    while not isinstance(inner, SurvivalCurves):
        inner = getattr(inner, "positive", getattr(inner, "base", None))
        if inner is None:
            return None
    return inner


def _check_falling(survival: Floats) -> None:
    """Refuse curves that rise; the message names the row."""
    rises = np.diff(survival, axis=-1) > 0
    if rises.any():
        *row, column = (int(i) for i in np.argwhere(rises)[0])
        before, after = survival[*row, column], survival[*row, column + 1]
        got = f"{after:g} after {before:g} in column {column + 1}"
        remedy = "give probabilities of times beyond each time, not up to it"
        raise bad_input(place_of("survival", (*row,)), "fall", got, remedy)
