"""Distributions given by quantiles or by a quantile function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import Floats, InputError, Mask, bad_input, place_of
from evenhand.distributions import piecewise
from evenhand.distributions.base import Distribution, batch_array, broadcast, score_grid
from evenhand.distributions.normal import Normal

RELATIVE_GAP = 1e-9
"""Tied quantiles are separated by this fraction of the row's range, so that a density exists."""


class Quantiles(Distribution):
    """Distributions with given quantiles, a CDF linear between them, and exponential tails.

    The tails begin with the density of the outermost interval. Equal quantiles at neighbouring
    levels, which would be an atom, are separated by a billionth of the row's range, so that a
    density exists.

    Parameters
    ----------
    levels : array-like of shape (q,) or (..., q)
        Probabilities strictly between 0 and 1, increasing, at least two.
    values : array-like of shape (..., q)
        Quantiles at the levels; the axes before the last are the batch; units of `y`.
    sort : bool, default False
        Whether to sort crossing quantiles in each row. Sorting never increases the distance from
        the true quantiles (Chernozhukov, Fernandez-Val & Galichon 2010).

    Raises
    ------
    InputError
        If levels are not increasing probabilities, or quantiles cross and `sort` is False.

    Examples
    --------
    >>> Quantiles([0.1, 0.5, 0.9], [[0.0, 1.0, 3.0]]).cdf(2.0)
    array([0.7])
    """

    event_dims: ClassVar[dict[str, int]] = {"levels": 1, "values": 1}
    has_mean: ClassVar[bool] = True

    def __init__(self, levels: ArrayLike, values: ArrayLike, *, sort: bool = False) -> None:
        grid = batch_array("levels", levels)
        knots = batch_array("values", values)
        if grid.ndim < 1 or grid.shape[-1] < 2 or not (np.diff(grid, axis=-1) > 0).all():
            raise bad_input(
                "levels", "be at least two increasing probabilities", f"{grid.tolist()}"[:80]
            )
        if grid.min() <= 0 or grid.max() >= 1:
            remedy = "give a fraction: 0.9, not 90"
            raise bad_input(
                "levels",
                "lie strictly between 0 and 1",
                f"{grid.min():g} to {grid.max():g}",
                remedy,
            )
        if knots.ndim < 1 or knots.shape[-1] != grid.shape[-1]:
            raise bad_input(
                "values", f"have one column per level ({grid.shape[-1]})", f"shape {knots.shape}"
            )
        # monotone rearrangement: never farther from the true quantiles than crossing ones
        if sort:
            knots = np.sort(knots, axis=-1)
        else:
            _check_order(knots)
        self.levels, self.values = broadcast(levels=grid, values=_spread_ties(knots))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.values.shape[:-1]

    @cached_property
    def _tail_scales(self) -> tuple[Floats, Floats]:
        """Mean lengths of the two exponential tails."""
        p = self.levels
        v = self.values
        # an exponential tail with probability p that begins with density f has mean length p / f
        low = p[..., 0] * (v[..., 1] - v[..., 0]) / (p[..., 1] - p[..., 0])
        high = (1 - p[..., -1]) * (v[..., -1] - v[..., -2]) / (p[..., -1] - p[..., -2])
        return low, high

    def _log_tails(self, y: ArrayLike) -> tuple[Floats, Floats]:
        point = np.asarray(y, dtype=np.float64)
        shape = np.broadcast_shapes(point.shape, self.batch_shape)
        point = np.broadcast_to(point, shape)
        low, high = self._tail_scales
        first = self.values[..., 0]
        last = self.values[..., -1]
        p_low, p_high, v_low, v_high = piecewise.cell_ends(
            self.values, point, self.levels, self.values
        )
        inside = np.clip(
            p_low + (p_high - p_low) * (point - v_low) / (v_high - v_low), 1e-300, 1 - 1e-16
        )
        # logarithms of the tails are linear, so no outcome leads to underflow
        log_low = np.log(self.levels[..., 0]) + np.minimum(point - first, 0.0) / low
        log_high = np.log1p(-self.levels[..., -1]) - np.maximum(point - last, 0.0) / high
        log_cdf = np.where(
            point < first,
            log_low,
            np.where(point > last, np.log1p(-np.exp(log_high)), np.log(inside)),
        )
        log_sf = np.where(
            point > last,
            log_high,
            np.where(point < first, np.log1p(-np.exp(log_low)), np.log1p(-inside)),
        )
        return log_cdf, log_sf

    def logcdf(self, y: ArrayLike) -> Floats:
        return self._log_tails(y)[0]

    def logsf(self, y: ArrayLike) -> Floats:
        return self._log_tails(y)[1]

    def logpdf(self, y: ArrayLike) -> Floats:
        point = np.broadcast_to(
            np.asarray(y, dtype=np.float64), np.broadcast_shapes(np.shape(y), self.batch_shape)
        )
        low, high = self._tail_scales
        p_low, p_high, v_low, v_high = piecewise.cell_ends(
            self.values, point, self.levels, self.values
        )
        # 0 between the knots; beyond them the density decays from that of the outermost interval
        outside = np.minimum(point - self.values[..., 0], 0.0) / low
        outside = outside - np.maximum(point - self.values[..., -1], 0.0) / high
        return np.asarray(np.log(p_high - p_low) - np.log(v_high - v_low) + outside)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        tail = np.asarray(log_p)
        is_upper = np.asarray(upper)
        low, high = self._tail_scales
        p = np.where(is_upper, -np.expm1(tail), np.exp(tail))
        p = np.broadcast_to(p, np.broadcast_shapes(p.shape, self.batch_shape))
        p_low, p_high, v_low, v_high = piecewise.cell_ends(self.levels, p, self.levels, self.values)
        inside = v_low + (v_high - v_low) * (p - p_low) / (p_high - p_low)
        with np.errstate(divide="ignore"):
            # the given tail has all its digits; the other tail is computed from it
            log_lower = np.where(is_upper, np.log(np.maximum(p, 0.0)), tail)
            log_upper = np.where(is_upper, tail, np.log1p(-np.minimum(p, 1.0)))
        first, last = self.levels[..., 0], self.levels[..., -1]
        below = self.values[..., 0] + low * (log_lower - np.log(first))
        above = self.values[..., -1] - high * (log_upper - np.log1p(-last))
        return np.where(p < first, below, np.where(p > last, above, inside))

    def mean(self) -> Floats:
        low, high = self._tail_scales
        inner = piecewise.mean(self.levels, self.values)
        return np.asarray(inner - self.levels[..., 0] * low + (1 - self.levels[..., -1]) * high)

    def std(self) -> Floats:
        p = self.levels[..., 0]
        q = 1 - self.levels[..., -1]
        low, high = self._tail_scales
        centre = piecewise.mean(self.levels, self.values)
        # so far the probability of the tails is at the end knots; an exponential tail adds
        # 2 s^2 -+ 2 s (v - centre) to the squared deviation there
        second = piecewise.std(self.levels, self.values) ** 2
        second = second + p * (2 * low**2 - 2 * low * (self.values[..., 0] - centre))
        second = second + q * (2 * high**2 + 2 * high * (self.values[..., -1] - centre))
        return np.sqrt(second - (q * high - p * low) ** 2)

    def crps(self, y: ArrayLike) -> Floats:
        point = np.asarray(y, dtype=np.float64)
        inner = piecewise.crps(self.levels, self.values, point)
        low, high = self._tail_scales
        left = piecewise.tail_crps(
            self.levels[..., 0], low, np.maximum(self.values[..., 0] - point, 0.0)
        )
        right = piecewise.tail_crps(
            1 - self.levels[..., -1], high, np.maximum(point - self.values[..., -1], 0.0)
        )
        return np.asarray(inner + left + right)


def _check_order(values: Floats) -> None:
    """Refuse crossing quantiles; the message names the row."""
    crosses = np.diff(values, axis=-1) < 0
    if crosses.any():
        *row, column = (int(i) for i in np.argwhere(crosses)[0])
        below = values[*row, column]
        above = values[*row, column + 1]
        place = place_of("values", (*row,))
        raise InputError(
            f"{place} has crossing quantiles, got {above:g} after {below:g} in column {column + 1};"
            " correct the quantiles, or pass sort=True to sort each row"
        )


def _spread_ties(values: Floats) -> Floats:
    """Separate equal neighbours by a billionth of the row's range, or of its largest value."""
    reach = values[..., -1:] - values[..., :1]
    largest = np.abs(values).max(axis=-1, keepdims=True)
    # with a range below a millionth of the values the gaps would vanish in rounding
    size = np.maximum(np.where(reach > 0, np.maximum(reach, 1e-6 * largest), largest), 1e-12)
    tied = (np.diff(values, axis=-1) <= RELATIVE_GAP * size).any(axis=-1, keepdims=True)
    ramp = np.arange(values.shape[-1]) * 2 * RELATIVE_GAP * size
    return np.where(tied, values + ramp, values)


def from_ppf(ppf: Callable[[float], ArrayLike]) -> Distribution:
    """Make distributions from their quantile function: normal ones exactly, others from a table.

    Parameters
    ----------
    ppf : callable
        Function of a single probability that returns the finite quantile of each row, shape (n,).

    Returns
    -------
    Normal or Quantiles
        `Normal` if all rows are normal; otherwise `Quantiles` with 161 quantiles at normal scores
        from -5 to 5, whose CDF has an error of 0.0001 to 0.0003 between them.

    Examples
    --------
    >>> from scipy import stats
    >>> from_ppf(stats.norm([0.0, 1.0], 2.0).ppf).std()
    array([2., 2.])
    >>> from_ppf(stats.expon([0.0, 1.0]).ppf).cdf([1.0, 2.0]).round(3)
    array([0.632, 0.632])
    """

    def at(score: float) -> Floats:
        return np.asarray(ppf(float(special.ndtr(score))), dtype=np.float64)

    centre = at(0.0)
    unit = at(1.0) - centre
    # quantiles are a linear function of normal scores for normal distributions and for no others
    near = 1e-7 * unit + 1e-12 * np.abs(centre)
    if (unit > 0).all() and all(
        (np.abs(at(z) - centre - z * unit) <= near).all() for z in (-4.0, -1.5, 0.5, 3.0)
    ):
        return Normal(centre, unit)
    scores = score_grid(5.0, 1 / 16)
    values = np.column_stack([at(float(z)) for z in scores])
    return Quantiles(special.ndtr(scores), values, sort=True)
