"""Mixtures of normal distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import Floats, Mask, bad_input
from evenhand.distributions.base import Distribution, batch_array, broadcast
from evenhand.distributions.normal import LOG_ROOT_2PI, Normal

SOLVED = 65_536
"""Number of values in a temporary array of the solver, few enough for the cache."""

DEEPEST_PLAIN = -36.0
"""Normal score below which tail probabilities are handled by their logarithms."""


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
            _solve_scores(weights, loc, scale, row[cut], sign[cut], score[cut], start[cut])
            for cut in (slice(first, first + step) for first in range(0, max(row.size, 1), step))
        ]
        return np.asarray(sign * np.concatenate(solved)).reshape(shape)

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


def _solve_scores(
    weights: Floats,
    loc: Floats,
    scale: Floats,
    row: Any,
    sign: Floats,
    score: Floats,
    start: Floats,
) -> Floats:
    """Solve `ndtri(CDF(y)) = score` by Newton steps inside a bracket.

    On the scale of normal scores the CDF of a mixture is nearly linear, so few steps suffice. The
    quantile lies between the smallest and the largest quantile of the components.
    """
    ends = sign[:, None] * loc[row] + scale[row] * score[:, None]
    low = ends.min(axis=-1)
    high = ends.max(axis=-1)
    y = np.clip(start, low, high)
    y[np.isinf(score)] = score[np.isinf(score)]
    open_ended = (high > low) & np.isfinite(score)
    for evaluate, asked in (
        (_score_and_slope, np.flatnonzero(open_ended & (score >= DEEPEST_PLAIN))),
        (_deep_score_and_slope, np.flatnonzero(open_ended & (score < DEEPEST_PLAIN))),
    ):
        active = asked
        for _ in range(100):
            if active.size == 0:
                break
            w = weights[row[active]]
            m = sign[active, None] * loc[row[active]]
            s = scale[row[active]]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                at, slope = evaluate(w, (y[active, None] - m) / s, s)
                newton = y[active] - (at - score[active]) / slope
            # the bracket shrinks in each step; Newton steps that leave it are replaced by bisection
            below = at < score[active]
            low[active] = np.where(below, y[active], low[active])
            high[active] = np.where(below, high[active], y[active])
            inside = (newton >= low[active]) & (newton <= high[active])
            step = np.where(inside, newton, 0.5 * (low[active] + high[active]))
            moved = np.abs(step - y[active]) > 1e-13 * (np.abs(step) + s.min(axis=-1))
            y[active] = step
            active = active[moved]
    return y


def _score_and_slope(w: Floats, z: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Return the normal score of the mixture's CDF and its derivative; `z` are component scores."""
    at = special.ndtri(np.clip(np.einsum("ij,ij->i", w, special.ndtr(z)), 1e-300, 1 - 1e-16))
    density = np.einsum("ij,ij->i", w, np.exp(-0.5 * z * z - LOG_ROOT_2PI) / s)
    return at, np.asarray(density * np.exp(0.5 * at * at + LOG_ROOT_2PI))


def _deep_score_and_slope(w: Floats, z: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Return the same from logarithms, for tails below the smallest float."""
    at = special.ndtri_exp(special.logsumexp(special.log_ndtr(z), b=w, axis=-1))
    return at, np.exp(special.logsumexp(-0.5 * z * z - np.log(s), b=w, axis=-1) + 0.5 * at * at)
