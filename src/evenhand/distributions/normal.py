"""Normal distributions, their mixtures, and samples smoothed by them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import Floats, InputError, Ints, Mask, bad_input, place_of
from evenhand.distributions.base import (
    WIDE_REACH,
    Distribution,
    batch_array,
    broadcast,
    score_grid,
)
from evenhand.tables import row_blocks

LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)


NODE_STEP = 1 / 4
"""Step of normal scores in expectations of smooth functions.

The trapezoidal rule errs by exp(-2 pi d / step) for a function whose poles are at least `d`
standard deviations from the real axis: 1e-11 for one standard deviation.
"""


class Normal(Distribution):
    """Normal distributions.

    Parameters
    ----------
    loc, scale : array-like
        Mean and standard deviation (> 0), broadcast to the batch shape; units of `y`.

    Examples
    --------
    >>> Normal([0.0, 1.0], 2.0).ppf(0.975).round(2)
    array([3.92, 4.92])
    """

    event_dims: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}
    has_mean: ClassVar[bool] = True

    def __init__(self, loc: ArrayLike, scale: ArrayLike) -> None:
        self.loc, self.scale = broadcast(
            loc=batch_array("loc", loc), scale=batch_array("scale", scale, positive=True)
        )

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.loc.shape

    def _score(self, y: ArrayLike) -> Floats:
        return np.asarray((np.asarray(y, dtype=np.float64) - self.loc) / self.scale)

    def logcdf(self, y: ArrayLike) -> Floats:
        return np.asarray(special.log_ndtr(self._score(y)))

    def logsf(self, y: ArrayLike) -> Floats:
        return np.asarray(special.log_ndtr(-self._score(y)))

    def logpdf(self, y: ArrayLike) -> Floats:
        return np.asarray(-0.5 * self._score(y) ** 2 - np.log(self.scale) - LOG_ROOT_2PI)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        score = special.ndtri_exp(log_p)
        return np.asarray(self.loc + self.scale * np.where(upper, -score, score))

    def smooth_expectation(self, function: Callable[[Floats], Floats]) -> Floats:
        scores = score_grid(WIDE_REACH, NODE_STEP)
        weights = np.exp(-scores * scores / 2)
        values = function(self.loc[..., None] + self.scale[..., None] * scores)
        return np.asarray(values @ (weights / weights.sum()))

    def mean(self) -> Floats:
        return self.loc

    def std(self) -> Floats:
        return self.scale

    def crps(self, y: ArrayLike) -> Floats:
        # Gneiting & Raftery (2007), equation 21
        z = self._score(y)
        pdf = np.exp(-0.5 * z**2 - LOG_ROOT_2PI)
        return np.asarray(
            self.scale * (z * (2 * special.ndtr(z) - 1) + 2 * pdf - 1 / np.sqrt(np.pi))
        )


# --- mixtures: exact quantiles, and tables of quantiles for integrals

SOLVED = 65_536
"""Number of values in a temporary array of the solver, few enough for the cache."""

MOST_STEPS = 200
"""Largest number of steps of the solver; four are usual."""

DEEPEST_PLAIN = -36.0
"""Normal score below which tail probabilities are handled by their logarithms."""


KNOT_STEP = 0.5
"""Distance of the normal scores between whose quantiles a table is interpolated."""

MOST_MISSED = 1e-4
"""Largest difference of normal scores in a table of interpolated quantiles."""

MOST_BENT = 0.2
"""Largest relative difference of the slopes at two knots from the slope between them."""


def solve_scores(
    weights: Floats,
    loc: Floats,
    scale: Floats,
    row: Any,
    sign: Floats,
    score: Floats,
    start: Floats,
) -> tuple[Floats, Floats]:
    """Solve `ndtri(CDF(y)) = score` by Halley steps inside a bracket; return y and slopes.

    On the scale of normal scores the CDF of a mixture is nearly linear, so few steps suffice. The
    quantile lies between the quantiles of normals with the extreme means and deviations.
    """
    left, right = loc.min(axis=-1)[row], loc.max(axis=-1)[row]
    narrow, wide = scale.min(axis=-1)[row], scale.max(axis=-1)[row]
    low = np.where(sign > 0, left, -right) + score * np.where(score < 0, wide, narrow)
    high = np.where(sign > 0, right, -left) + score * np.where(score < 0, narrow, wide)
    y = np.clip(start, low, high)
    y[np.isinf(score)] = score[np.isinf(score)]
    slopes = 1 / narrow
    is_open = (high > low) & np.isfinite(score)

    def solve(evaluate: Callable[..., tuple[Floats, Floats, Floats]], active: Ints) -> None:
        """Set solutions and slopes at `active`; `low` and `high` shrink to the brackets."""
        w, m, s = weights[row[active]], sign[active, None] * loc[row[active]], scale[row[active]]
        least = narrow[active]
        last = high[active] - low[active]
        for _ in range(MOST_STEPS):
            if active.size == 0:
                return
            here = y[active]
            at, slope, bend = evaluate(w, (here[:, None] - m) / s, s)
            newton = (at - score[active]) / slope
            halley = here - newton / np.clip(1 - bend * newton / 2, 0.5, 2.0)
            below = at < score[active]
            low[active] = np.where(below, here, low[active])
            high[active] = np.where(below, high[active], here)
            # a step that leaves the bracket, or is not half as long as the last one, is replaced by
            # bisection: without the second rule steps can alternate between two points
            quick = (halley >= low[active]) & (halley <= high[active])
            quick &= np.abs(halley - here) <= last / 2
            step = np.where(quick, halley, 0.5 * (low[active] + high[active]))
            last = np.abs(step - here)
            y[active] = step
            slopes[active] = slope * (1 + bend * (step - here))
            # the error after a Halley step is of the order of its third power
            moved = last > np.where(quick, 3e-6, 1e-13) * least + 1e-13 * np.abs(step)
            if not moved.all():
                active, last, least = active[moved], last[moved], least[moved]
                w, m, s = w[moved], m[moved], s[moved]

    for part in row_blocks(score.size, max(1, SOLVED // loc.shape[-1])):
        active = part.start + np.flatnonzero(is_open[part])
        is_deep = score[active] < DEEPEST_PLAIN
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            solve(_scores_of, active[~is_deep])
            solve(_deep_scores_of, active[is_deep])
    return y, slopes


def knots_of(scores: Floats) -> Ints:
    """Return the numbers of scores about `KNOT_STEP` apart, with the first and the last one."""
    wanted = np.arange(scores[0], scores[-1], KNOT_STEP)
    return np.unique(np.append(np.searchsorted(scores, wanted), scores.size - 1))


def interpolated(
    weights: Floats,
    loc: Floats,
    scale: Floats,
    scores: Floats,
    knots: Ints,
    exact: Floats,
    rise: Floats,
) -> Floats:
    """Return quantiles at the scores, shape (n, q), from exact ones and derivatives at the knots.

    Where the cubic misses the score in the middle between two knots, as at a gap between
    components, all quantiles between the knots are solved for.
    """
    n = exact.shape[0]
    at_knots = scores[knots]
    row = np.arange(n)[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        middle = (at_knots[1:] + at_knots[:-1]) / 2
        place = np.arange(middle.size)
        found = _at(weights, loc, scale, row, middle, _cubic(at_knots, exact, rise, place, middle))
        # near a gap between components slopes differ from that of the chord
        chord = np.diff(exact, axis=-1) / np.diff(at_knots)
        bends = np.maximum(np.abs(rise[:, 1:] / chord - 1), np.abs(rise[:, :-1] / chord - 1))
        # not the reverse: a comparison with NaN must count as a miss
        is_missed = ~((np.abs(found - middle) <= MOST_MISSED) & (bends <= MOST_BENT))
        place = np.clip(np.searchsorted(knots, np.arange(scores.size)) - 1, 0, middle.size - 1)
        table = _cubic(at_knots, exact, rise, place, scores)
    table[:, knots] = exact
    solved = is_missed[:, place]
    solved[:, knots] = False
    rows, columns = np.nonzero(solved)
    if rows.size:
        sign = np.where(scores[columns] > 0, -1.0, 1.0)
        # a bracket contains the solution, whatever the start
        start = np.nan_to_num(sign * table[rows, columns])
        tail = sign * scores[columns]
        y, _ = solve_scores(weights, loc, scale, rows, sign, tail, start)
        table[rows, columns] = sign * y
    # rounding errors between equal quantiles
    return np.asarray(np.maximum.accumulate(table, axis=-1))


def _at(weights: Floats, loc: Floats, scale: Floats, row: Any, scores: Floats, y: Floats) -> Floats:
    """Return normal scores of the CDF at `y`, shape (n, q); `scores` are expected."""
    sign = np.where(scores > 0, -1.0, 1.0)
    rows = np.broadcast_to(row, y.shape).ravel()
    s = scale[rows]
    z = np.broadcast_to(sign, y.shape).reshape(-1, 1) * (y.reshape(-1, 1) - loc[rows]) / s
    return np.asarray(sign * _scores_of(weights[rows], z, s)[0].reshape(y.shape))


def _cubic(knots: Floats, values: Floats, slopes: Floats, place: Ints, at: Floats) -> Floats:
    """Evaluate the cubic between knots `place` and `place + 1` at `at`, shape (n, q)."""
    # row by row, not as a product of matrices, whose rounding would depend on the number of rows
    width = knots[place + 1] - knots[place]
    t = (at - knots[place]) / width
    gap = values[:, place + 1] - values[:, place]
    from_left = slopes[:, place] * width - gap
    from_right = gap - slopes[:, place + 1] * width
    bend = t * (1 - t) * ((1 - t) * from_left + t * from_right)
    return np.asarray(values[:, place] + t * gap + bend)


def _scores_of(w: Floats, z: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the normal score `S` of the mixture's CDF, its derivative and `S'' / S'`.

    `z` are scores of the components.
    """
    at = special.ndtri(np.clip(np.einsum("ij,ij->i", w, special.ndtr(z)), 1e-300, 1 - 1e-16))
    densities = w * np.exp(-0.5 * z * z - LOG_ROOT_2PI) / s
    density = densities.sum(axis=-1)
    slope = density * np.exp(0.5 * at * at + LOG_ROOT_2PI)
    return at, slope, at * slope - np.einsum("ij,ij->i", densities, z / s) / density


def _deep_scores_of(w: Floats, z: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the same from logarithms, for tails below the smallest float."""
    at = special.ndtri_exp(special.logsumexp(special.log_ndtr(z), b=w, axis=-1))
    logs = -0.5 * z * z - np.log(s)
    log_density = special.logsumexp(logs, b=w, axis=-1)
    slope = np.exp(log_density + 0.5 * at * at)
    shares = w * np.exp(logs - log_density[:, None])
    return at, slope, at * slope - (shares * z / s).sum(axis=-1)


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
        return self._solved(log_p, upper)[0]

    def _solved(self, log_p: Floats, upper: Mask) -> tuple[Floats, Floats]:
        """Return quantiles, and the derivatives of the scores of the CDF at them."""
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
        # the solver starts at the quantile of the normal with the same mean and variance
        start = (np.ravel(self.mean())[row] * sign) + np.ravel(self.std())[row] * score
        y, slopes = solve_scores(weights, loc, scale, row, sign, score, start)
        return np.asarray(sign * y).reshape(shape), slopes.reshape(shape)

    def quantile_table(self, scores: Floats) -> Floats:
        # quantiles are smooth functions of normal scores: a cubic through exact quantiles and their
        # slopes replaces most of the solver's steps
        knots = knots_of(scores)
        # beyond plain tails slopes would need logarithms
        is_deep = max(-scores[0], scores[-1]) > -DEEPEST_PLAIN
        if is_deep or 3 * knots.size > scores.size or scores.ndim != 1:
            return super().quantile_table(scores)
        at_knots = scores[knots]
        exact, slopes = (
            np.reshape(array, (-1, knots.size))
            for array in self.expand()._solved(special.log_ndtr(-np.abs(at_knots)), at_knots > 0)
        )
        with np.errstate(divide="ignore"):
            rise = 1 / slopes
        k = self.loc.shape[-1]
        weights, loc, scale = (
            np.reshape(array, (-1, k)) for array in (self.weights, self.loc, self.scale)
        )
        table = np.concatenate(
            [
                interpolated(
                    weights[rows], loc[rows], scale[rows], scores, knots, exact[rows], rise[rows]
                )
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
        # of equal components: the difference of two normals is normal
        total = (self.weights**2 * self.scale).sum(axis=-1) * (2 / np.sqrt(np.pi))
        for i in range(1, self.loc.shape[-1]):
            spread = np.sqrt(self.scale[..., :i] ** 2 + self.scale[..., i, None] ** 2)
            gaps = _mean_abs(self.loc[..., :i] - self.loc[..., i, None], spread)
            total += 2 * self.weights[..., i] * (self.weights[..., :i] * gaps).sum(axis=-1)
        return np.asarray(total)


def _mean_abs(loc: Floats, scale: Floats) -> Floats:
    """Return E|X| for normal X."""
    z = loc / scale
    return np.asarray(
        loc * (2 * special.ndtr(z) - 1) + 2 * scale * np.exp(-0.5 * z**2 - LOG_ROOT_2PI)
    )


class Samples(Distribution):
    """Distributions given by samples, by kernel density estimation that keeps mean and variance.

    The normal kernel has the width of Silverman's rule. Samples are shrunk towards their mean to
    compensate for the variance of the kernel. CDF, density and log score exist for two samples or
    more.

    Parameters
    ----------
    values : array-like of shape (..., m)
        At least two samples per distribution, not all equal; the axes before the last are the
        batch.

    Examples
    --------
    >>> forecast = Samples([[1.0, 2.0, 3.0, 4.0]])
    >>> forecast.mean(), forecast.std().round(3)
    (array([2.5]), array([1.118]))
    """

    event_dims: ClassVar[dict[str, int]] = {"values": 1}
    has_mean: ClassVar[bool] = True

    def __init__(self, values: ArrayLike) -> None:
        self.values = batch_array("values", values)
        if self.values.ndim < 1 or self.values.shape[-1] < 2:
            rule = "have at least two samples per row"
            raise bad_input("values", rule, f"shape {self.values.shape}")
        spread = self.values.std(axis=-1)
        # the standard deviation of equal samples can be a rounding error above 0
        equal = (self.values.min(axis=-1) == self.values.max(axis=-1)) | (spread == 0)
        if equal.any():
            place = place_of("values", tuple(np.argwhere(equal)[0]))
            raise InputError(
                f"{place} contains equal samples only, which have no"
                " density; drop the row or give samples that differ"
            )

    @cached_property
    def _smooth(self) -> NormalMixture:
        centre = self.values.mean(axis=-1, keepdims=True)
        spread = self.values.std(axis=-1, keepdims=True)
        low, high = np.quantile(self.values, [0.25, 0.75], axis=-1, keepdims=True)
        # Silverman's rule of thumb, robust to outliers by the interquartile range
        narrow = np.where(high > low, np.minimum(spread, (high - low) / 1.349), spread)
        width = 0.9 * narrow * self.values.shape[-1] ** -0.2
        # the variances of the shrunken samples and of the kernel add up to that of the samples
        shrink = np.sqrt(1 - (width / spread) ** 2)
        weights = np.full(self.values.shape[-1], 1 / self.values.shape[-1])
        return NormalMixture(weights, centre + shrink * (self.values - centre), width)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.values.shape[:-1]

    def logcdf(self, y: ArrayLike) -> Floats:
        return self._smooth.logcdf(y)

    def logsf(self, y: ArrayLike) -> Floats:
        return self._smooth.logsf(y)

    def logpdf(self, y: ArrayLike) -> Floats:
        return self._smooth.logpdf(y)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        return self._smooth.quantile_from_tail(log_p, upper)

    def mean(self) -> Floats:
        return self._smooth.mean()

    def std(self) -> Floats:
        return self._smooth.std()

    def crps(self, y: ArrayLike) -> Floats:
        return self._smooth.crps(y)
