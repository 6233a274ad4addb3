"""Families: normal distributions, counts, and CDFs that are linear or constant in pieces."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import interpolate, special

from evenhand._kinds import OutcomeKind
from evenhand._logarithms import safe_log
from evenhand._validate import (
    Floats,
    Ints,
    Mask,
    Pair,
    as_floats,
    bad_input,
    check_probabilities,
    refuse_entry,
)
from evenhand.distributions.base import (
    CACHED,
    LEVEL_TOLERANCE,
    LOG_HALF,
    MOST_VALUES,
    WIDE_REACH,
    Distribution,
    Function,
    Knots,
    Tail,
    TwoSided,
    batch_array,
    broadcast,
    check_columns,
    check_monotone,
    found_inside,
    in_blocks,
    increasing_array,
    over_scores,
    parameters,
    score_grid,
)
from evenhand.tables import row_blocks

# --- normal distributions

LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)

SUMS = "...k,...k->..."
"""Sums over components, whose order does not depend on the number of rows."""

# the trapezoidal rule errs by exp(-2 pi d / step) if no pole is nearer than d standard
# deviations: 1e-11 for d = 1
NODE_STEP = 1 / 4
"""Step of normal scores in expectations of smooth functions."""


class Normal(Distribution, loc=0, scale=0):
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

    has_mean = True

    def __init__(self, loc: ArrayLike, scale: ArrayLike) -> None:
        self.loc, self.scale = parameters("scale", loc=loc, scale=scale)

    def _score(self, y: ArrayLike) -> Floats:
        return (as_floats("y", y) - self.loc) / self.scale

    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        return Tail.at_score(self._score(y))

    def _side(self, y: ArrayLike, *, upper: bool, left: bool = False, log: bool = False) -> Floats:
        score = -self._score(y) if upper else self._score(y)
        return special.log_ndtr(score) if log else special.ndtr(score)

    def point(self, tail: Tail) -> Floats:
        score = special.ndtri_exp(tail.log)
        return self.loc + self.scale * np.where(tail.upper, -score, score)

    def logpdf(self, y: ArrayLike) -> Floats:
        return -0.5 * self._score(y) ** 2 - np.log(self.scale) - LOG_ROOT_2PI

    def mean(self) -> Floats:
        return self.loc

    def std(self) -> Floats:
        return self.scale

    def crps(self, y: ArrayLike) -> Floats:
        # E|Y - y| - E|Y - Y'| / 2 (Gneiting & Raftery 2007)
        return _mean_abs(as_floats("y", y) - self.loc, self.scale) - self.scale / np.sqrt(np.pi)


# --- mixtures: exact quantiles, and tables of quantiles for integrals

MOST_STEPS = 200
"""Largest number of steps of the solver; one or two are usual."""

FAR_SCORE = 3.5
"""Largest normal score whose square enters the expansion of the starts of the solver."""

DEEPEST_PLAIN = -36.0
"""Normal score below which tail probabilities are handled by their logarithms."""

LEAST_PLAIN = float(np.log(1e-290))
"""Logarithm of the smallest tail that is computed as a probability with all digits."""

KNOT_STEP = 0.5
"""Distance of the normal scores between whose quantiles a table is interpolated."""

MOST_MISSED = 1e-4
"""Largest difference of normal scores in a table of interpolated quantiles."""

MOST_BENT = 0.2
"""Largest relative difference of the slopes at two knots from the slope between them."""


class NormalMixture(Distribution, weights=1, loc=1, scale=1):
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

    has_mean = True

    def __init__(self, weights: ArrayLike, loc: ArrayLike, scale: ArrayLike) -> None:
        raw = batch_array("weights", weights)
        if raw.ndim < 1 or (raw < 0).any() or not (raw.sum(axis=-1) > 0).all():
            rule = "be at least 0 with a positive sum over the last axis"
            raise bad_input("weights", rule, f"{raw.tolist()}"[:80])
        weights = raw / raw.sum(axis=-1, keepdims=True)
        found = parameters("scale", weights=weights, loc=loc, scale=scale)
        self.weights, self.loc, self.scale = found

    def _score(self, y: ArrayLike) -> Floats:
        return (as_floats("y", y)[..., None] - self.loc) / self.scale

    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        score = self._score(y)
        lower, upper = (
            safe_log(np.einsum(SUMS, self.weights, special.ndtr(side * score)))
            for side in (1.0, -1.0)
        )
        tail = Tail.smaller(lower, upper)
        deep = tail.log < LEAST_PLAIN
        if deep.any():
            # there the outcome is on the same side of all components
            weights = np.broadcast_to(self.weights, score.shape)[deep]
            logs = special.log_ndtr(-np.abs(score[deep]))
            tail.log[deep] = special.logsumexp(logs, b=weights, axis=-1)
        return tail

    def logpdf(self, y: ArrayLike) -> Floats:
        logs = -0.5 * self._score(y) ** 2 - np.log(self.scale) - LOG_ROOT_2PI
        return special.logsumexp(logs, b=self.weights, axis=-1)

    def point(self, tail: Tail) -> Floats:
        near = tail.near()
        depth = special.ndtri_exp(near.log)
        return self._at_scores(np.where(near.upper, -depth, depth))[0]

    def _at_scores(self, scores: Floats) -> Pair:
        """Return quantiles at normal scores, and the slopes of the normal scores of the CDF."""
        rows = np.arange(math.prod(self.batch_shape)).reshape(self.batch_shape)
        both = np.broadcast_arrays(scores, rows)
        shape, (score, row) = both[0].shape, map(np.ravel, both)
        # the solver starts at the expansion of Cornish and Fisher, which diverges in far tails
        square = np.minimum(score**2, FAR_SCORE**2)
        mean, std, skew, kurtosis = (moment[row] for moment in self._moments)
        bend = kurtosis / 24 * (square - 3) - skew**2 / 36 * (2 * square - 5)
        start = mean + std * (score * (1 + bend) + skew / 6 * (square - 1))
        y, slopes = self._flat._solved(row, score, start)
        return y.reshape(shape), slopes.reshape(shape)

    @cached_property
    def _flat(self) -> NormalMixture:
        """The batch with one axis."""
        return self._changed(lambda array, _: array.reshape(-1, array.shape[-1]))

    @cached_property
    def _ends(self) -> tuple[Floats, ...]:
        """Least and largest means and deviations of the components."""
        return tuple(end(axis=-1) for of in (self.loc, self.scale) for end in (of.min, of.max))

    def _solved(self, row: Ints, score: Floats, start: Floats) -> Pair:
        """Return quantiles of rows of a batch (n,), and slopes, by Householder steps in a bracket.

        On the scale of normal scores the CDF of a mixture is nearly linear, so one or two steps of
        the fourth order suffice. The quantile lies between those of normals with the extreme means
        and deviations.
        """
        # mirrored where the upper tail is the smaller one, so that all tails are lower tails
        sign = np.where(score > 0, -1.0, 1.0)
        goal = sign * score
        left, right, narrow, wide = (end[row] for end in self._ends)
        low = np.where(sign > 0, left, -right) + goal * wide
        high = np.where(sign > 0, right, -left) + goal * narrow
        y = np.clip(sign * start, low, high)
        y[np.isinf(goal)] = goal[np.isinf(goal)]
        slopes = 1 / narrow
        is_open = (high > low) & np.isfinite(goal)

        def solve(evaluate: Callable[..., tuple[Floats, ...]], active: Ints) -> None:
            """Set solutions and slopes at `active`; `low` and `high` shrink to the brackets."""
            place = row[active]
            w, m, s = self.weights[place], sign[active, None] * self.loc[place], self.scale[place]
            least, last = narrow[active], high[active] - low[active]
            for _ in range(MOST_STEPS):
                if active.size == 0:
                    return
                here = y[active]
                at, slope, bend, turn = evaluate(w, (here[:, None] - m) / s, s)
                newton = (at - goal[active]) / slope
                ratio = (1 - bend * newton / 2) / (1 - bend * newton + turn * newton**2 / 6)
                jump = here - newton * np.clip(ratio, 0.5, 2.0)
                below = at < goal[active]
                low[active] = np.where(below, here, low[active])
                high[active] = np.where(below, high[active], here)
                # a step that leaves the bracket, or is not half as long as the last one, is
                # replaced by bisection: without the second rule steps can alternate between points
                quick = (jump >= low[active]) & (jump <= high[active])
                quick &= np.abs(jump - here) <= last / 2
                step = np.where(quick, jump, 0.5 * (low[active] + high[active]))
                last = np.abs(step - here)
                y[active] = step
                slopes[active] = slope * (1 + (step - here) * (bend + turn * (step - here) / 2))
                # the error after a Householder step is of the order of its fourth power
                moved = last > np.where(quick, 2e-3, 1e-13) * least + 1e-13 * np.abs(step)
                if not moved.all():
                    active, last, least = active[moved], last[moved], least[moved]
                    w, m, s = w[moved], m[moved], s[moved]

        for part in row_blocks(score.size, max(1, CACHED // self.loc.shape[-1])):
            active = part.start + np.flatnonzero(is_open[part])
            is_deep = goal[active] < DEEPEST_PLAIN
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                solve(_scores_of, active[~is_deep])
                solve(_deep_scores_of, active[is_deep])
        return sign * y, slopes

    def quantile_table(self, scores: Floats) -> Floats:
        # quantiles are smooth functions of normal scores: a cubic through exact quantiles and their
        # slopes replaces most of the solver's steps
        wanted = np.searchsorted(scores, np.arange(scores[0], scores[-1], KNOT_STEP))
        knots = np.unique(np.append(wanted, scores.size - 1))
        # beyond plain tails slopes would need logarithms
        if max(-scores[0], scores[-1]) > -DEEPEST_PLAIN or 3 * knots.size > scores.size:
            return super().quantile_table(scores)
        found = self.expand()._at_scores(scores[knots])
        exact, slopes = (array.reshape(-1, knots.size) for array in found)
        mixture = self._flat
        tables = [
            mixture.take(rows)._interpolated(scores, knots, exact[rows], slopes[rows])
            for rows in row_blocks(len(exact), max(1, CACHED // (self.loc.shape[-1] * knots.size)))
        ]
        return np.concatenate(tables).reshape(*self.batch_shape, scores.size)

    def _interpolated(self, scores: Floats, knots: Ints, exact: Floats, slopes: Floats) -> Floats:
        """Return quantiles of a batch (n,) at the scores, (n, q), from exact ones at the knots.

        Where the cubic misses the score in the middle between two knots, as at a gap between
        components, all quantiles between the knots are solved for.
        """
        at_knots = scores[knots]
        middle = (at_knots[1:] + at_knots[:-1]) / 2
        sign = np.where(middle > 0, -1.0, 1.0)[:, None]
        weights, loc, scale = (array[:, None] for array in (self.weights, self.loc, self.scale))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rise = 1 / slopes
            # near a gap between components slopes differ from that of the chord
            chord = np.diff(exact, axis=-1) / np.diff(at_knots)
            bends = np.maximum(np.abs(rise[:, 1:] / chord - 1), np.abs(rise[:, :-1] / chord - 1))
            cubic = interpolate.CubicHermiteSpline(at_knots, exact, np.nan_to_num(rise), axis=-1)
            z = sign * (cubic(middle)[..., None] - loc) / scale
            found = sign[:, 0] * _scores_of(weights, z, scale)[0]
            table = cubic(scores)
        # not the reverse: a comparison with NaN must count as a miss
        is_missed = ~((np.abs(found - middle) <= MOST_MISSED) & (bends <= MOST_BENT))
        is_solved = is_missed[:, np.maximum(np.searchsorted(knots, np.arange(scores.size)) - 1, 0)]
        is_solved[:, knots] = False
        table[:, knots] = exact
        rows, columns = np.nonzero(is_solved)
        # a bracket contains the solution, whatever the start
        start = np.nan_to_num(table[rows, columns])
        table[rows, columns] = self._solved(rows, scores[columns], start)[0]
        # rounding errors between equal quantiles
        return np.maximum.accumulate(table, axis=-1)

    def expectation(self, function: Function, *, is_smooth: bool = False) -> Floats:
        if not is_smooth:
            return super().expectation(function)
        # component by component, which needs less memory
        total, scores = np.zeros(self.batch_shape), score_grid(WIDE_REACH, NODE_STEP)
        for k in range(self.loc.shape[-1]):
            y = self.loc[..., k, None] + self.scale[..., k, None] * scores
            total += self.weights[..., k] * over_scores(scores, function(y))
        return total

    def mean(self) -> Floats:
        return (self.weights * self.loc).sum(axis=-1)

    def std(self) -> Floats:
        # moments about the mean, so that large offsets do not cancel
        spread = self.scale**2 + (self.loc - self.mean()[..., None]) ** 2
        return np.sqrt((self.weights * spread).sum(axis=-1))

    @cached_property
    def _moments(self) -> tuple[Floats, ...]:
        """Mean, standard deviation, skewness and excess kurtosis, each of shape (rows,)."""
        mean, std = self.mean(), self.std()
        gap = (self.loc - mean[..., None]) / std[..., None]
        variance = (self.scale / std[..., None]) ** 2
        skewness = np.einsum(SUMS, self.weights, gap * (gap**2 + 3 * variance))
        fourth = gap**2 * (gap**2 + 6 * variance) + 3 * variance**2
        kurtosis = np.einsum(SUMS, self.weights, fourth) - 3
        return np.ravel(mean), np.ravel(std), np.ravel(skewness), np.ravel(kurtosis)

    def crps(self, y: ArrayLike) -> Floats:
        # the number of pairs grows with the square of the number of components
        if self.loc.shape[-1] > 64:
            return super().crps(y)
        # E|Y - y| - E|Y - Y'| / 2 (Grimit et al. 2006)
        gap = as_floats("y", y)[..., None] - self.loc
        # of equal components: the difference of two normals is normal
        own = (self.weights**2 * self.scale).sum(axis=-1) / np.sqrt(np.pi)
        found = (self.weights * _mean_abs(gap, self.scale)).sum(axis=-1) - own
        variance = self.scale**2
        for i in range(1, self.loc.shape[-1]):
            spread = np.sqrt(variance[..., :i] + variance[..., i, None])
            gaps = _mean_abs(self.loc[..., :i] - self.loc[..., i, None], spread)
            found = found - self.weights[..., i] * np.einsum(SUMS, self.weights[..., :i], gaps)
        return found


def _scores_of(w: Floats, z: Floats, s: Floats) -> tuple[Floats, ...]:
    """Return the normal score `S` of the mixture's CDF, `S'`, `S'' / S'` and `S''' / S'`.

    `z` are scores of the components.
    """
    at = special.ndtri(np.clip(np.einsum(SUMS, w, special.ndtr(z)), 1e-300, 1 - 1e-16))
    densities = w * np.exp(-0.5 * z * z - LOG_ROOT_2PI) / s
    density = densities.sum(axis=-1)
    slope = density * np.exp(0.5 * at * at + LOG_ROOT_2PI)
    return at, slope, *_bends(at, slope, z, s, densities / density[..., None])


def _deep_scores_of(w: Floats, z: Floats, s: Floats) -> tuple[Floats, ...]:
    """Return the same from logarithms, for tails below the smallest float."""
    at = special.ndtri_exp(special.logsumexp(special.log_ndtr(z), b=w, axis=-1))
    logs = -0.5 * z * z - np.log(s)
    log_density = special.logsumexp(logs, b=w, axis=-1)
    slope = np.exp(log_density + 0.5 * at * at)
    return at, slope, *_bends(at, slope, z, s, w * np.exp(logs - log_density[:, None]))


def _bends(at: Floats, slope: Floats, z: Floats, s: Floats, shares: Floats) -> tuple[Floats, ...]:
    """Return `S'' / S'` and `S''' / S'` from the shares of the components in the density."""
    ratio = z / s
    fall = np.einsum(SUMS, shares, ratio)
    # f'' / f - (f' / f)^2 of the density f
    curve = np.einsum(SUMS, shares, ratio * ratio - 1 / (s * s)) - fall**2
    bend = at * slope - fall
    return bend, curve + slope**2 + bend * (at * slope + bend)


def _mean_abs(loc: Floats, scale: Floats) -> Floats:
    """Return E|X| for normal X."""
    z = loc / scale
    distance = z * special.erf(z * np.sqrt(0.5)) + 2 * np.exp(-0.5 * z * z - LOG_ROOT_2PI)
    return scale * distance


class Samples(NormalMixture, weights=1, loc=1, scale=1, values=1):
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

    recorded: ClassVar[dict[str, int | None]] = {"values": 1}
    # kernels are narrow: quantiles are solved for, not interpolated
    quantile_table = Distribution.quantile_table
    expectation = Distribution.expectation

    def __init__(self, values: ArrayLike) -> None:
        self.values = batch_array("values", values)
        if self.values.ndim < 1 or self.values.shape[-1] < 2:
            rule = "have at least two samples per row"
            raise bad_input("values", rule, f"shape {self.values.shape}")
        m, centre = self.values.shape[-1], self.values.mean(axis=-1, keepdims=True)
        # the standard deviation of equal samples can be a rounding error above 0
        low, first, last, high = np.quantile(
            self.values, [0.0, 0.25, 0.75, 1.0], axis=-1, keepdims=True
        )
        spread = np.where(low == high, 0.0, self.values.std(axis=-1, keepdims=True))
        remedy = "drop the row or give samples that differ"
        refuse_entry("values", spread[..., 0], spread[..., 0] == 0, "have a spread above 0", remedy)
        # Silverman's rule of thumb, robust to outliers by the interquartile range
        narrow = np.where(last > first, np.minimum(spread, (last - first) / 1.349), spread)
        width = 0.9 * narrow * m**-0.2
        # the variances of the shrunken samples and of the kernel add up to that of the samples
        shrink = np.sqrt(1 - (width / spread) ** 2)
        super().__init__(np.full(m, 1 / m), centre + shrink * (self.values - centre), width)


# --- counts

WIDE_VALUES = 512
"""Number of quantiles that stand for the values of a distribution with more than `MOST_VALUES`."""

LAGUERRE = special.roots_laguerre(16)
"""Nodes and weights of integrals against `exp(-x)`."""

LARGE_BESSEL = 5e8
"""Argument from which Bessel functions are computed by their asymptotic form."""

LARGE = 32.0
"""Number from which the series of Stirling's formula has all digits."""

LOST_DIGITS = 1e4
"""Factor of rounding errors from which the slower complement of an incomplete beta is used."""

LEAST_DISPERSION = 1e-100
"""Smallest dispersion; one above its reciprocal is as extreme. Beyond both, tails overflow."""

_T = np.linspace(-3.5, 3.5, 101)
DIFFERENCE_NODES = 2 * np.sinh(_T)
DIFFERENCE_WEIGHTS = 2 * np.cosh(_T) * (_T[1] - _T[0]) / (2 * np.pi)
"""Quadrature of the mean difference, with a relative error below 1e-11 for any parameters."""


class Counts(Distribution):
    """Distributions on 0, 1, 2, ... with a mean and a dispersion."""

    has_mean = True
    kind = OutcomeKind.COUNT
    rate: Floats
    dispersion: Any

    @abstractmethod
    def _tail_of(self, k: Floats, upper: Mask) -> Floats:
        """Return `P(Y > k)` where `upper`, `P(Y <= k)` elsewhere, at whole numbers k >= 0."""

    @abstractmethod
    def _log_mass_of(self, k: Floats) -> Floats:
        """Return `log P(Y = k)` at whole numbers k >= 0."""

    @abstractmethod
    def _half_difference(self) -> Floats:
        """Return `E|Y - Y'| / 2` of two independent copies."""

    def mean(self) -> Floats:
        return self.rate

    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        point = self._joint(y)
        count = np.ceil(point) - 1 if left else np.floor(point)
        is_outside = (count < 0) | np.isposinf(count)
        k = np.where(is_outside, 0.0, count)
        # the tail that is the smaller one in most cases, or the other one
        upper = k + 1 > self.rate
        log = self._log_tail(k, upper)
        is_large = log > LOG_HALF
        if is_large.any():
            upper = upper ^ is_large
            log[is_large] = self._part(is_large)._log_tail(k[is_large], upper[is_large])
        return Tail(np.where(is_outside, -np.inf, log), np.where(is_outside, count > 0, upper))

    def _log_tail(self, k: Floats, upper: Mask) -> Floats:
        """Return the log of one tail at whole numbers k >= 0."""
        log = safe_log(self._tail_of(k, upper))
        far = log < LEAST_PLAIN
        if far.any():
            log[far] = self._part(far)._far_tail(k[far], upper[far])
        return log

    def _part(self, chosen: Mask) -> Self:
        """Return the distributions chosen from a shape that the batch broadcasts to."""
        return self._changed(lambda array, _: np.broadcast_to(array, chosen.shape)[chosen])

    def _far_tail(self, k: Floats, upper: Mask) -> Floats:
        """Return the log of tails of a batch (n,) that are too small for floats.

        A tail is the integral of t^(a - 1) (1 - t)^(b - 1) up to a probability x, over that up to
        1; with t = x exp(-s) the integrand is nearly exponential so far from the mean.
        """
        size, odds = 1 / self.dispersion, self.dispersion * self.rate
        a, b = np.where(upper, k + 1, size), np.where(upper, size - 1, k)
        ratio = np.where(upper, odds, 1 / odds)
        rate = a - b * ratio
        x, weights = LAGUERRE
        s = x / rate[:, None]
        log = b[:, None] * np.log1p(-ratio[:, None] * np.expm1(-s)) - a[:, None] * s
        integral = np.log(np.exp(log + x) @ weights) - np.log(rate)
        share = np.where(upper, self.rate, size) * (1 + self.dispersion * k)
        return self._log_mass_of(k) + np.log(share) + integral

    def point(self, tail: Tail) -> Floats:
        log, upper, _ = np.broadcast_arrays(*tail.near(), np.empty(self.batch_shape))
        found = self._part(np.full(log.shape, True))._searched(log.ravel(), upper.ravel())
        return found.reshape(log.shape)

    def _searched(self, log: Floats, upper: Mask) -> Floats:
        """Return the quantiles of a batch (n,) by bisection, around those of a gamma variable."""
        goal = log + np.where(upper, LEVEL_TOLERANCE, -LEVEL_TOLERANCE)
        # Wilson & Hilferty (1931)
        score = special.ndtri_exp(log)
        root = self.std() / (3 * self.rate)
        cube = (1 - root**2 + root * np.where(upper, -score, score)) ** 3
        k = np.clip(np.floor(self.rate * cube), 0.0, 1e300)
        step = np.ceil(0.02 * self.std())
        low, high = np.full(log.shape, -1.0), np.full(log.shape, np.inf)
        active = np.flatnonzero(np.isfinite(log))
        while active.size:
            found = self.take(active)._log_tail(k[active], upper[active])
            enough = np.where(upper[active], found <= goal[active], found >= goal[active])
            high[active[enough]], low[active[~enough]] = k[active[enough]], k[active[~enough]]
            # steps that double, and halves of what they enclose
            left, right = low[active], high[active]
            middle = np.maximum(np.floor(left + (right - left) / 2), right - step[active])
            k[active] = np.where(np.isinf(right), left + step[active], middle)
            step[active] *= 2
            active = active[(k[active] > left) & (k[active] < right)]
        return np.where(np.isneginf(log) & ~upper, 0.0, np.where(np.isnan(log), np.nan, high))

    def log_mass(self, y: ArrayLike) -> Floats:
        k = as_floats("y", y)
        is_value = (k >= 0) & (k == np.floor(k)) & (k < np.inf)
        found = self._log_mass_of(np.where(is_value, k, 0.0))
        return np.where(is_value, found, np.where(np.isnan(k), np.nan, -np.inf))

    def nodes(self, first: Floats, last: Floats, scores: Floats) -> Pair:
        first, last, wide = first[..., None], last[..., None], self.expand()
        is_wide = last - first >= MOST_VALUES
        size = int(np.where(is_wide, WIDE_VALUES - 1, last - first).max()) + 1
        ends = np.minimum(first + np.arange(size), last)
        if is_wide.any():
            # quantiles at equally spaced normal scores, each for the values since the one before
            low, high = special.ndtri_exp(wide.logcdf(first)), -special.ndtri_exp(wide.logsf(last))
            score = low + (high - low) * np.linspace(0.0, 1.0, size)
            ends = np.where(is_wide, wide.point(Tail.at_score(score)), ends)
        before = np.concatenate((ends[..., :1] - 1, ends[..., :-1]), axis=-1)
        return (before + 1 + ends) / 2, ends

    def std(self) -> Floats:
        return np.sqrt(self.rate + self.dispersion * self.rate**2)

    def crps(self, y: ArrayLike) -> Floats:
        # E|Y - y| - E|Y - Y'| / 2 (Wei & Held 2014); the mean of Y up to k is the mean times the
        # CDF, less `mean (1 + dispersion k) P(Y = k)`
        point = as_floats("y", y)
        k = np.floor(point)
        first = (point - self.rate) * (2 * self.cdf(point) - 1)
        first = first + 2 * self.rate * (1 + self.dispersion * k) * np.exp(self.log_mass(k))
        return first - self._half_difference()


def _deviance(k: Floats, mean: Floats, gap: Floats) -> Floats:
    """Return `k log(k / mean) - gap` with `gap = k - mean`, without cancellation (Loader 2000)."""
    return special.xlog1py(k, gap / mean) - gap


def _stirling_rest(k: Floats) -> Floats:
    """Return `log k! - k log k + k`, without cancellation for large k."""
    large = np.maximum(k, LARGE)
    square = large**-2
    series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / large
    small = special.gammaln(k + 1) - special.xlogy(k, k) + k
    return np.where(k < LARGE, small, 0.5 * np.log(2 * np.pi * large) + series)


class Poisson(Counts, rate=0):
    """Poisson distributions.

    Parameters
    ----------
    mean : array-like
        Means (> 0), of the batch shape.

    Examples
    --------
    >>> batch = Poisson([0.5, 4.0])
    >>> batch.cdf(1).round(3), batch.ppf(0.9)
    (array([0.91 , 0.092]), array([1., 7.]))
    """

    # the limit without dispersion, up to rounding
    dispersion = LEAST_DISPERSION

    def __init__(self, mean: ArrayLike) -> None:
        self.rate = batch_array("mean", mean, positive=True)

    def _tail_of(self, k: Floats, upper: Mask) -> Floats:
        # regularized incomplete gamma functions
        lower, above = special.gammaincc(k + 1, self.rate), special.gammainc(k + 1, self.rate)
        return np.where(upper, above, lower)

    def _log_mass_of(self, k: Floats) -> Floats:
        return -_deviance(k, self.rate, k - self.rate) - _stirling_rest(k)

    def _half_difference(self) -> Floats:
        # beyond that SciPy has no Bessel functions, which fall as the root
        twice = 2 * self.rate
        least = np.minimum(twice, LARGE_BESSEL)
        bessel = special.ive(0, least) + special.ive(1, least)
        return self.rate * bessel * np.sqrt(least / twice)


class NegativeBinomial(Counts, rate=0, dispersion=0):
    """Negative binomial distributions: Poisson with gamma distributed means.

    Parameters
    ----------
    mean : array-like
        Means (> 0).
    dispersion : array-like
        Excess variance in units of the squared mean (> 0): the variance is
        `mean + dispersion * mean**2`.

    Examples
    --------
    >>> batch = NegativeBinomial([4.0], 0.5)
    >>> batch.std().round(3), batch.ppf(0.9)
    (array([3.464]), array([9.]))
    """

    def __init__(self, mean: ArrayLike, dispersion: ArrayLike) -> None:
        found = parameters("mean", "dispersion", mean=mean, dispersion=dispersion)
        self.rate, self.dispersion = found
        wrong = (self.dispersion < LEAST_DISPERSION) | (self.dispersion > 1 / LEAST_DISPERSION)
        rule = f"lie between {LEAST_DISPERSION:g} and {1 / LEAST_DISPERSION:g}"
        remedy = "use Poisson distributions if there is none"
        refuse_entry("dispersion", self.dispersion, wrong, rule, remedy)

    def _tail_of(self, k: Floats, upper: Mask) -> Floats:
        # the incomplete beta function I_x(a, b) of the probability of a failure, or of a success
        size, odds = 1 / self.dispersion, self.dispersion * self.rate
        a, b = np.where(upper, k + 1, size), np.where(upper, size, k + 1)
        x, rest = np.where(upper, odds, 1.0) / (1 + odds), np.where(upper, 1.0, odds) / (1 + odds)
        found: Floats = np.asarray(special.betainc(a, b, x), dtype=float)
        # where digits of 1 - x are lost: the same from the other chance, which takes longer
        lost = (x > 0.5) & (b > LOST_DIGITS * rest)
        if lost.any():
            found[lost] = special.betaincc(b[lost], a[lost], rest[lost])
        return found

    def _log_mass_of(self, k: Floats) -> Floats:
        # successes and failures among size + k trials, each as for Poisson distributions
        size, odds = 1 / self.dispersion, self.dispersion * self.rate
        trials = size + k
        gap = (k - self.rate) / (1 + odds)
        failures = _deviance(k, trials * odds / (1 + odds), gap)
        successes = _deviance(size, trials / (1 + odds), -gap)
        rests = _stirling_rest(trials) - _stirling_rest(size) - _stirling_rest(k)
        return np.log(size / trials) + rests - failures - successes

    def _half_difference(self) -> Floats:
        # for an integer D, E|D| is the integral of (1 - E cos(tD)) / (1 - cos t) over a period, by
        # 2 pi (Fejer's kernel), and E cos(t (Y - Y')) is the squared modulus of the characteristic
        # function; in u = log(tan(t / 2)) the integrand falls exponentially on both sides
        def integral(mean: Floats, dispersion: Floats) -> Floats:
            spread = 4 * mean * (1 + dispersion * mean)
            u = DIFFERENCE_NODES - np.log1p(spread) / 2
            log_square = np.log1p(dispersion * spread * special.expit(2 * u)) / dispersion
            return (-np.expm1(-log_square) * np.exp(-u)) @ DIFFERENCE_WEIGHTS

        return in_blocks(integral, self.rate[..., None], self.dispersion[..., None])


# --- look-up in the knots of each row


def count_below(knots: Floats, point: Floats, *, left: bool = False, row: Any = None) -> Ints:
    """Return how many of the increasing knots are at most each point, or below it if `left`.

    Knots have a last axis, and points broadcast against the others; or `row` has the row of knots
    of each point.
    """
    if knots.size == knots.shape[-1]:
        return np.searchsorted(knots.ravel(), point, side="left" if left else "right")
    is_below = np.less if left else np.less_equal
    shape = knots.shape[:-1] if row is None else np.shape(row)
    found = np.zeros(np.broadcast_shapes(shape, point.shape), dtype=int)
    for bit in reversed(range(knots.shape[-1].bit_length())):
        further = found + (1 << bit)
        is_inside = further <= knots.shape[-1]
        value = entries(knots, np.where(is_inside, further, 1) - 1, row)
        found = np.where(is_inside & is_below(value, point), further, found)
    return found


def entries(array: Floats, index: Ints, row: Any = None) -> Floats:
    """Return the entries of a batch of arrays at indices that broadcast against the batch."""
    if array.size == array.shape[-1] and index.ndim >= array.ndim - 1:
        return array.ravel()[index]
    if row is not None:
        return array[row, index]
    shape = np.broadcast_shapes(array.shape[:-1], index.shape)
    full = np.broadcast_to(array, (*shape, array.shape[-1]))
    return np.take_along_axis(full, np.broadcast_to(index, shape)[..., None], axis=-1)[..., 0]


# --- linear between knots, with exponential tails

LEAST = 1e-300
"""Least probability inside the knots and beyond the last one, so that links have a density."""


class Piecewise(Distribution):
    """Distributions whose CDF is linear between knots, with exponential tails beyond them."""

    has_mean = True

    @property
    @abstractmethod
    def _lengths(self) -> Pair:
        """Mean lengths of the two tails; next to 0 where there is none."""

    @cached_property
    def _beyond(self) -> Floats:
        """Logarithms of the probabilities below the first and above the last knot."""
        levels = self._knots.left
        return safe_log(np.array((levels[..., 0], np.maximum(1 - levels[..., -1], LEAST))))

    def _cell(self, knots: Floats, point: Floats) -> list[Floats]:
        """Return outcomes and levels at both ends of the cell of `knots` that contains `point`."""
        values, levels, _ = self._knots
        cell = np.minimum(np.maximum(count_below(knots, point), 1), knots.shape[-1] - 1)
        return [entries(array, cell - at) for array in (values, levels) for at in (1, 0)]

    def _outside(self, y: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return outcomes, and how many lengths they are below and above the knots."""
        values, point, (low, high) = self._knots.values, self._joint(y), self._lengths
        with np.errstate(over="ignore"):
            below = np.maximum(values[..., 0] - point, 0.0) / low
            return point, below, np.maximum(point - values[..., -1], 0.0) / high

    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        point, below, above = self._outside(y)
        v_low, v_high, p_low, p_high = self._cell(self._knots.values, point)
        first, last = self._beyond
        with np.errstate(invalid="ignore"):
            inside = p_low + (p_high - p_low) * (point - v_low) / (v_high - v_low)
        log = np.log(np.clip(inside, LEAST, 1 - 1e-16))
        # logarithms of the tails are linear, so no outcome leads to underflow
        log = np.where(below > 0, first - below, np.where(above > 0, last - above, log))
        return Tail(log, above > 0).near()

    def point(self, tail: Tail) -> Floats:
        values, levels, _ = self._knots
        p = tail.plain(upper=False)
        v_low, v_high, p_low, p_high = self._cell(levels, p)
        inside = v_low + (v_high - v_low) * ((p - p_low) / (p_high - p_low))
        # the given tail has all its digits
        (lower, upper), (first, last), (low, high) = tail.both(), self._beyond, self._lengths
        with np.errstate(invalid="ignore"):
            below = values[..., 0] + low * (lower - first)
            above = values[..., -1] - high * (upper - last)
        return np.where(p < levels[..., 0], below, np.where(p > levels[..., -1], above, inside))

    def logpdf(self, y: ArrayLike) -> Floats:
        point, below, above = self._outside(y)
        v_low, v_high, p_low, p_high = self._cell(self._knots.values, point)
        inside = np.log(p_high - p_low) - np.log(v_high - v_low) - below
        return np.where(above > 0, self._beyond[1] - np.log(self._lengths[1]) - above, inside)

    def mean(self) -> Floats:
        # the knots have the probability of the tails at their ends
        (p, q), (low, high) = np.exp(self._beyond), self._lengths
        return self._knots.mean() - p * low + q * high

    def std(self) -> Floats:
        (p, q), (low, high), values = np.exp(self._beyond), self._lengths, self._knots.values
        # an exponential tail adds 2 s^2 -+ 2 s (v - centre) to the squared deviation at its end
        centre = self._knots.mean()
        second = self._knots.std() ** 2
        second = second + p * (2 * low**2 - 2 * low * (values[..., 0] - centre))
        second = second + q * (2 * high**2 + 2 * high * (values[..., -1] - centre))
        return np.sqrt(second - (q * high - p * low) ** 2)

    def crps(self, y: ArrayLike) -> Floats:
        point, below, above = self._outside(y)
        (p, q), (low, high) = np.exp(self._beyond), self._lengths
        tails = _tail_crps(p, low, below) + _tail_crps(q, high, above)
        return self._knots.crps(point) + tails


def _tail_crps(mass: Floats, scale: Floats, lengths: Floats) -> Floats:
    """Return the CRPS that an exponential tail adds to a CDF with a jump by `mass` at its start.

    At distance d beyond the end let F = mass exp(-d / scale). The tail adds `integral F^2 = mass^2
    scale / 2` in total, and up to the outcome the integrand is (1 - F)^2 instead of 1.
    """
    return mass**2 * scale / 2 + 2 * scale * mass * np.expm1(-lengths)


RELATIVE_GAP = 1e-9
"""Tied quantiles are separated by this fraction of the row's range, so that a density exists."""


class Quantiles(Piecewise, levels=1, values=1):
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

    def __init__(self, levels: ArrayLike, values: ArrayLike, *, sort: bool = False) -> None:
        rule = "be at least two increasing probabilities"
        grid, knots = increasing_array("levels", levels, rule, 2), batch_array("values", values)
        rule, remedy = "lie strictly between 0 and 1", "give a fraction: 0.9, not 90"
        refuse_entry("levels", grid, (grid <= 0) | (grid >= 1), rule, remedy)
        check_columns("values", knots, grid, "level")
        # monotone rearrangement: never farther from the true quantiles than crossing ones
        if sort:
            knots = np.sort(knots, axis=-1)
        remedy = "correct them, or sort each row: sort=True, or sort_quantiles=yes for columns"
        check_monotone("values", knots, 1, "not have crossing quantiles", remedy)
        self.levels, self.values = _in_rows(levels=grid, values=_spread_ties(knots))

    @cached_property
    def _knots(self) -> Knots:
        return Knots(self.values, self.levels, self.levels)

    @cached_property
    def _lengths(self) -> Pair:
        p, v = self.levels, self.values
        # an exponential tail with probability p that begins with density f has mean length p / f
        low = p[..., 0] * (v[..., 1] - v[..., 0]) / (p[..., 1] - p[..., 0])
        high = (1 - p[..., -1]) * (v[..., -1] - v[..., -2]) / (p[..., -1] - p[..., -2])
        return low, high


def _in_rows(**arrays: Floats) -> tuple[Floats, ...]:
    """Return arrays broadcast together; the first one is kept as it is if all rows share it."""
    full = broadcast(**arrays)
    first = next(iter(arrays.values()))
    return (first, *full[1:]) if first.ndim == 1 else full


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
        return np.asarray(ppf(float(special.ndtr(score))), dtype=float)

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


# --- survival curves

LEAST_RISK = 1e-9
"""Least probability of an event by the last time, spread over curves with flat parts."""


class SurvivalCurves(Piecewise, times=1, survival=1):
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

    def __init__(self, times: ArrayLike, survival: ArrayLike) -> None:
        grid = increasing_array("times", times, "be at least one, increasing")
        remedy = "leave out time 0, at which everybody survives"
        refuse_entry("times", grid, grid <= 0, "be above 0", remedy)
        curve = check_probabilities("survival", survival)
        check_columns("survival", curve, grid, "time")
        remedy = "give probabilities of times beyond each time, not up to it"
        check_monotone("survival", curve, -1, "fall", remedy)
        self.times, self.survival = _in_rows(times=grid, survival=curve)

    @cached_property
    def _knots(self) -> Knots:
        # beginning with 0, and without flat parts
        times = np.insert(self.times, 0, 0.0, axis=-1)
        cdf = np.insert(1 - self.survival, 0, 0.0, axis=-1)
        rising = np.diff(cdf, axis=-1) > 0
        spread = (1 - LEAST_RISK) * cdf + LEAST_RISK * times / times[..., -1:]
        levels = np.where(rising.all(axis=-1, keepdims=True), cdf, spread)
        return Knots(times, levels, levels)

    @cached_property
    def _lengths(self) -> Pair:
        # a curve that ends at 0 has no tail, and any hazard will do
        high = self._knots.values[..., -1] / -self._beyond[1]
        return np.full(high.shape, np.nextafter(0, 1)), high


def curve_times(distribution: Distribution) -> list[float]:
    """Return the times that all survival curves inside a distribution have; none for other forms.

    Examples
    --------
    >>> curve_times(SurvivalCurves([1.0, 3.0], [[0.5, 0.2]]))
    [1.0, 3.0]
    """
    curves = found_inside(distribution, SurvivalCurves)
    if curves is None:
        return []
    # there may be a grid for each person
    grid = curves.times.reshape(-1, curves.times.shape[-1])
    return grid[0].tolist() if (grid == grid[0]).all() else []


# --- steps at finitely many values

SUM_TOLERANCE = 1e-6
"""Largest deviation of a sum from 1; in single precision it is 1e-7 per class."""


class Categorical(TwoSided, support=1, probabilities=1):
    """Distributions on finitely many values.

    Parameters
    ----------
    support : array-like of shape (K,) or batch shape + (K,)
        Values, strictly increasing; units of `y`.
    probabilities : array-like of shape batch shape + (K,)
        Their probabilities, at least 0, with sum 1.

    Raises
    ------
    InputError
        If the values do not increase, or a row of probabilities is negative or does not add up
        to 1.

    Examples
    --------
    >>> batch = Categorical([1, 2, 3], [[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]])
    >>> batch.mean(), batch.cdf(2).round(3), batch.cdf(2, left=True)
    (array([2.1, 3. ]), array([0.7, 0. ]), array([0.2, 0. ]))
    """

    has_mean = True
    kind = OutcomeKind.COUNT

    def __init__(self, support: ArrayLike, probabilities: ArrayLike) -> None:
        rule = "be values that increase strictly along the last axis"
        values = increasing_array("support", support, rule)
        mass = as_floats("probabilities", probabilities)
        check_columns("probabilities", mass, values, "value of the support")
        refuse_entry("probabilities", mass, ~(mass >= 0), "be at least 0")
        total = mass.sum(axis=-1)
        is_wrong = ~(np.abs(total - 1) <= SUM_TOLERANCE)
        refuse_entry("probabilities", total, is_wrong, "add up to 1", "divide each row by its sum")
        self.support, self.probabilities = _in_rows(
            support=values, probabilities=mass / total[..., None]
        )

    @cached_property
    def _sums(self) -> Pair:
        """Probabilities below and from each value on, batch shape + (K + 1,)."""
        mass = self.probabilities
        lower, upper = np.zeros((2, *mass.shape[:-1], mass.shape[-1] + 1))
        # each tail is summed from its own end, so that small ones keep their digits
        np.cumsum(mass, axis=-1, out=lower[..., 1:])
        np.cumsum(mass[..., ::-1], axis=-1, out=upper[..., -2::-1])
        lower[..., -1] = upper[..., 0] = 1.0
        return np.minimum(lower, 1.0), np.minimum(upper, 1.0)

    def _position(self, y: ArrayLike, *, left: bool) -> Ints:
        """Return the number of values at most `y` (below `y` if `left`), of the joint shape."""
        return count_below(self.support, self._joint(y), left=left)

    @cached_property
    def _logs(self) -> tuple[Floats, ...]:
        """Logarithms of these, each from the smaller one, which has all digits."""
        nearer = Tail.smaller(*map(safe_log, self._sums))
        return tuple(nearer.on(upper=upper) for upper in (False, True))

    def _side(self, y: ArrayLike, *, upper: bool, left: bool = False, log: bool = False) -> Floats:
        sums = self._logs if log else self._sums
        return np.where(np.isnan(y), np.nan, entries(sums[upper], self._position(y, left=left)))

    def point(self, tail: Tail) -> Floats:
        lower, upper = (logs[..., 1:-1] for logs in self._logs)
        log, is_upper, _ = np.broadcast_arrays(*tail, np.empty(self.batch_shape))
        # values below the quantile: with too little probability up to them, or too much beyond
        short = count_below(lower, log - LEVEL_TOLERANCE, left=True)
        long = count_below(-upper, -(log + LEVEL_TOLERANCE), left=True)
        return entries(self.support, np.where(is_upper, long, short))

    def log_mass(self, y: ArrayLike) -> Floats:
        # not from the tails, whose difference loses small probabilities between large ones
        before, after = self._position(y, left=True), self._position(y, left=False)
        mass = entries(self.probabilities, np.minimum(before, self.support.shape[-1] - 1))
        return np.where(np.isnan(y), np.nan, np.where(after > before, safe_log(mass), -np.inf))

    @cached_property
    def _knots(self) -> Knots:
        lower = self._sums[0]
        return Knots(self.support, lower[..., :-1], lower[..., 1:])

    def nodes(self, first: Floats, last: Floats, scores: Floats) -> Pair:
        return self.support, self.support

    def mean(self) -> Floats:
        return (self.probabilities * self.support).sum(axis=-1)

    def std(self) -> Floats:
        deviation = self.support - self.mean()[..., None]
        return np.sqrt((self.probabilities * deviation**2).sum(axis=-1))

    def crps(self, y: ArrayLike) -> Floats:
        # E|Y - y| - E|Y - Y'| / 2, and half the mean difference is the integral of F (1 - F)
        gaps = np.abs(self.support - as_floats("y", y)[..., None])
        lower = np.cumsum(self.probabilities, axis=-1)[..., :-1]
        spread = (lower * (1 - lower) * np.diff(self.support)).sum(axis=-1)
        return (self.probabilities * gaps).sum(axis=-1) - spread


class Bernoulli(Categorical):
    """Distributions of an event that happens (1) or not (0).

    Parameters
    ----------
    probability : array-like
        Probabilities of the event, 0 to 1, of the batch shape.

    Examples
    --------
    >>> Bernoulli([0.1, 0.5]).log_mass(1).round(3)
    array([-2.303, -0.693])
    """

    recorded: ClassVar[dict[str, int | None]] = {"probability": 0}
    kind = OutcomeKind.BINARY

    def __init__(self, probability: ArrayLike) -> None:
        array = check_probabilities("probability", probability)
        self.support = np.array([0.0, 1.0])
        self.probabilities = np.stack((1 - array, array), axis=-1)

    @property
    def probability(self) -> Floats:
        """Probabilities of the event, shape of the batch."""
        return self.probabilities[..., 1]


def empirical(values: ArrayLike) -> Categorical:
    """Return the empirical distributions of samples of shape (..., m), one batch entry per row."""
    samples = batch_array("values", values)
    if samples.ndim < 1 or samples.shape[-1] < 1:
        raise bad_input("values", "have at least one sample per row", f"shape {samples.shape}")
    support, index = np.unique(samples, return_inverse=True)
    shape = samples.shape[:-1]
    rows = math.prod(shape)
    flat = index.reshape(rows, -1) + np.arange(rows)[:, None] * support.size
    counts = np.bincount(flat.ravel(), minlength=rows * support.size)
    return Categorical(support, counts.reshape(*shape, support.size) / samples.shape[-1])
