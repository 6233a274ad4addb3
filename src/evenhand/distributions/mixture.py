"""Mixtures of normal distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import Floats, Mask, bad_input
from evenhand.distributions.base import Distribution, batch_array, broadcast
from evenhand.distributions.mixture_quantiles import (
    DEEPEST_PLAIN,
    SOLVED,
    interpolated,
    knots_of,
    solve_scores,
)
from evenhand.distributions.normal import LOG_ROOT_2PI, Normal
from evenhand.tables import row_blocks


class NormalMixture(Distribution):
    """Mixtures of normal distributions.

    Parameters
    ----------
    weights, loc, scale : array-like of shape (..., n_components)
        Weights (>= 0; normalized to sum to 1), means and standard deviations (> 0). They broadcast
        together; the axes before the last are the batch.

    Examples
    --------
    >>> mixture = NormalMixture([0.5, 0.5], [[-1.0, 1.0]], [0.1, 0.1])
    >>> mixture.cdf(0.0)
    array([0.5])
    """

    event_dims: ClassVar[dict[str, int]] = {"weights": 1, "loc": 1, "scale": 1}
    has_mean: ClassVar[bool] = True

    def __init__(self, weights: ArrayLike, loc: ArrayLike, scale: ArrayLike) -> None:
        raw = batch_array("weights", weights)
        if raw.ndim < 1:
            raise bad_input("weights", "have one value per component on the last axis", "a number")
        if (raw < 0).any() or not (raw.sum(axis=-1) > 0).all():
            raise bad_input(
                "weights", "be at least 0 with a positive sum", "a negative weight or zeros only"
            )
        self.weights, self.loc, self.scale = broadcast(
            weights=raw / raw.sum(axis=-1, keepdims=True),
            loc=batch_array("loc", loc),
            scale=batch_array("scale", scale, positive=True),
        )

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.loc.shape[:-1]

    def _score(self, y: ArrayLike) -> Floats:
        return np.asarray((np.asarray(y, dtype=np.float64)[..., None] - self.loc) / self.scale)

    def _log_sum(self, logs: Floats) -> Floats:
        return np.asarray(special.logsumexp(logs, b=self.weights, axis=-1))

    def logcdf(self, y: ArrayLike) -> Floats:
        # weights that sum to 1 + 1e-16 must not give a probability above 1
        return np.minimum(self._log_sum(special.log_ndtr(self._score(y))), 0.0)

    def logsf(self, y: ArrayLike) -> Floats:
        return np.minimum(self._log_sum(special.log_ndtr(-self._score(y))), 0.0)

    def logpdf(self, y: ArrayLike) -> Floats:
        return self._log_sum(-0.5 * self._score(y) ** 2 - np.log(self.scale) - LOG_ROOT_2PI)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        shape = np.broadcast_shapes(np.shape(log_p), np.shape(upper), self.batch_shape)
        sign = np.where(np.broadcast_to(upper, shape), -1.0, 1.0).ravel()
        score = np.asarray(special.ndtri_exp(np.broadcast_to(log_p, shape).ravel()))
        n_batch = int(np.prod(self.batch_shape))
        k = self.loc.shape[-1]
        row = np.broadcast_to(np.arange(n_batch).reshape(self.batch_shape), shape).ravel()
        # mirror the distribution where the upper tail is given, so that all tails are lower tails
        weights, loc, scale = (
            np.reshape(array, (n_batch, k)) for array in (self.weights, self.loc, self.scale)
        )
        # Newton's method starts at the quantile of the normal with the same mean and variance
        start = (np.ravel(self.mean())[row] * sign) + np.ravel(self.std())[row] * score
        step = max(1, SOLVED // k)
        solved = [
            solve_scores(weights, loc, scale, row[cut], sign[cut], score[cut], start[cut])
            for cut in (slice(first, first + step) for first in range(0, max(row.size, 1), step))
        ]
        return np.asarray(sign * np.concatenate(solved)).reshape(shape)

    def quantile_table(self, scores: Floats) -> Floats:
        # quantiles are smooth functions of normal scores: a cubic through exact quantiles and their
        # slopes replaces most of the Newton steps
        knots = knots_of(scores)
        # beyond plain tails slopes would need logarithms
        is_deep = max(-scores[0], scores[-1]) > -DEEPEST_PLAIN
        if is_deep or 3 * knots.size > scores.size or scores.ndim != 1:
            return super().quantile_table(scores)
        exact = super().quantile_table(scores[knots]).reshape(-1, knots.size)
        k = self.loc.shape[-1]
        weights, loc, scale = (
            np.reshape(array, (-1, k)) for array in (self.weights, self.loc, self.scale)
        )
        table = np.concatenate(
            [
                interpolated(weights[rows], loc[rows], scale[rows], scores, knots, exact[rows])
                for rows in row_blocks(exact.shape[0], max(1, SOLVED // (k * knots.size)))
            ]
        )
        return table.reshape(*self.batch_shape, scores.size)

    def smooth_expectation(self, function: Callable[[Floats], Floats]) -> Floats:
        # component by component, which needs less memory
        parts = (
            Normal(self.loc[..., k], self.scale[..., k]).smooth_expectation(function)
            for k in range(self.loc.shape[-1])
        )
        total = np.zeros(self.batch_shape)
        for k, part in enumerate(parts):
            total += self.weights[..., k] * part
        return total

    def mean(self) -> Floats:
        return np.asarray((self.weights * self.loc).sum(axis=-1))

    def std(self) -> Floats:
        # moments about the mean, so that large offsets do not cancel
        spread = self.scale**2 + (self.loc - self.mean()[..., None]) ** 2
        return np.asarray(np.sqrt((self.weights * spread).sum(axis=-1)))

    def crps(self, y: ArrayLike) -> Floats:
        # the number of pairs grows with the square of the number of components
        if self.loc.shape[-1] > 64:
            return super().crps(y)
        # E|Y - y| - E|Y - Y'| / 2 (Grimit et al. 2006)
        first = (
            self.weights
            * _mean_abs(np.asarray(y, dtype=np.float64)[..., None] - self.loc, self.scale)
        ).sum(-1)
        return np.asarray(first - 0.5 * self._mean_difference())

    def _mean_difference(self) -> Floats:
        """Return E|Y - Y'| of two independent copies, looping over the components of one."""
        total = np.zeros(self.batch_shape)
        for i in range(self.loc.shape[-1]):
            # the difference of two normals is normal
            spread = np.sqrt(self.scale**2 + self.scale[..., i, None] ** 2)
            gaps = _mean_abs(self.loc - self.loc[..., i, None], spread)
            total += self.weights[..., i] * (self.weights * gaps).sum(axis=-1)
        return total


def _mean_abs(loc: Floats, scale: Floats) -> Floats:
    """Return E|X| for normal X."""
    z = loc / scale
    return np.asarray(
        loc * (2 * special.ndtr(z) - 1) + 2 * scale * np.exp(-0.5 * z**2 - LOG_ROOT_2PI)
    )
