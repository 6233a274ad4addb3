"""Distributions of counts: Poisson and negative binomial."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import Floats, Mask
from evenhand.distributions import incomplete, piecewise
from evenhand.distributions.base import batch_array, broadcast, score_grid
from evenhand.distributions.lattice import LEVEL_TOLERANCE, Lattice

MOST_ATOMS = 1024
"""Largest number of values of a distribution that sums go through one by one; wider distributions
are summed between quantiles, as continuous ones are."""

LEAST_TAIL = 1e-290
"""Smallest tail that SciPy computes with all digits; smaller ones by continued fractions."""


class Counts(Lattice):
    """Distributions on 0, 1, 2, ...; a family implements both tails and three moments."""

    has_mean: ClassVar[bool] = True

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return np.shape(next(iter(self._parameters.values())))

    @property
    def _parameters(self) -> dict[str, Floats]:
        return {name: getattr(self, name) for name in self.event_dims}

    @abstractmethod
    def _tails(self, k: Floats) -> tuple[Floats, Floats]:
        """Return `P(Y <= k)` and `P(Y > k)` at whole numbers k >= 0."""

    @abstractmethod
    def _far_tails(self, k: Floats) -> tuple[Floats, Floats]:
        """Return the logarithms of both far from the mean, at whole numbers k >= 0."""

    @abstractmethod
    def _skewness(self) -> Floats:
        """Return the skewness."""

    def _below(self, y: ArrayLike) -> Floats:
        return np.ceil(np.asarray(y, dtype=np.float64)) - 1

    def _log_tail(self, y: ArrayLike, *, upper: bool) -> Floats:
        """Return the log of one tail, from the smaller of both."""
        value = np.floor(np.asarray(y, dtype=np.float64))
        is_inside = (value >= 0) & np.isfinite(value)
        k = np.where(is_inside, value, 0.0)
        tails = self._tails(k)
        own, other = tails[::-1] if upper else tails
        with np.errstate(divide="ignore"):
            log_own = np.where(own < 0.5, np.log(own), np.log1p(-np.minimum(other, 1.0)))
        is_far = (own < LEAST_TAIL) & is_inside
        if is_far.any():
            flat = self._flat(is_far.shape).take(is_far.ravel())
            k = np.broadcast_to(k, is_far.shape)
            log_own[is_far] = flat._far_tails(k[is_far])[int(upper)]
        below = 0.0 if upper else -np.inf
        log_own = np.where(value < 0, below, log_own)
        return np.where(value == np.inf, -np.inf if upper else 0.0, log_own)

    def logcdf(self, y: ArrayLike) -> Floats:
        return self._log_tail(y, upper=False)

    def logsf(self, y: ArrayLike) -> Floats:
        return self._log_tail(y, upper=True)

    def _flat(self, shape: tuple[int, ...]) -> Self:
        """Return the distributions broadcast to a shape, as a batch with one axis."""
        return self._with(
            {
                name: np.broadcast_to(value, shape).ravel()
                for name, value in self._parameters.items()
            }
        )

    def _rebuilt(self, change: Callable[[Floats, int], Floats]) -> Self:
        return self._with({name: change(value, 0) for name, value in self._parameters.items()})

    def _with(self, parameters: dict[str, Floats]) -> Self:
        """Return a batch with other parameters, without validation."""
        other = object.__new__(type(self))
        for name, value in parameters.items():
            setattr(other, name, value)
        return other

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        shape = np.broadcast_shapes(np.shape(log_p), np.shape(upper), self.batch_shape)
        tail = np.broadcast_to(np.asarray(log_p, dtype=np.float64), shape).ravel()
        is_upper = np.broadcast_to(upper, shape).ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            found = _search(self._flat(shape), tail, is_upper)
        return found.reshape(shape)

    def nodes(self, reach: float, step: float) -> Floats:
        scores = score_grid(reach, step)
        ends = special.log_ndtr(np.array([-reach, -reach]))
        low, high = np.moveaxis(
            self.expand().quantile_from_tail(ends, np.array([False, True])), -1, 0
        )
        is_narrow = high - low < MOST_ATOMS
        n_atoms = int(np.where(is_narrow, high - low, 0).max(initial=0)) + 1
        if is_narrow.all():
            return np.asarray(np.minimum(low[..., None] + np.arange(n_atoms), high[..., None]))
        wide = self.quantile_table(scores)
        size = max(n_atoms, scores.size)
        # rows are padded with their last value, which adds nothing to a sum
        every = np.minimum(low[..., None] + np.arange(size), high[..., None])
        wide = np.concatenate((wide, np.repeat(wide[..., -1:], size - scores.size, axis=-1)), -1)
        return np.where(is_narrow[..., None], every, wide)

    def crps(self, y: ArrayLike) -> Floats:
        # in blocks of rows, as each distribution may have a thousand values
        point = np.asarray(y, dtype=np.float64)
        shape = np.broadcast_shapes(point.shape, self.batch_shape)
        if len(self.batch_shape) != 1 or point.ndim > 1:
            return super().crps(point)
        point = np.broadcast_to(point, shape)
        rows = max(1, piecewise.BLOCK_NUMBERS // (4 * MOST_ATOMS))
        parts = [slice(start, start + rows) for start in range(0, shape[0], rows)]
        return np.concatenate(
            [piecewise.crps(*self.take(part)._table(), point[part]) for part in parts]
        )


def _search(batch: Any, tail: Floats, is_upper: Mask) -> Floats:
    """Return the smallest count whose CDF is large enough, by bisection; one per distribution."""
    center, spread, skew = batch.mean(), batch.std(), batch._skewness()
    score = special.ndtri_exp(tail)
    score = np.where(is_upper, -score, score)
    # Cornish-Fisher; a guess, from which a bracket grows
    guess = center + spread * (score + skew * (score**2 - 1) / 6)
    width = np.ceil(0.05 * spread + 1)
    low = np.clip(np.floor(np.nan_to_num(guess, posinf=1e300)) - width, -1.0, 1e300)
    high = low + 2 * width
    # outcomes without end, and the least outcome
    is_end = np.where(is_upper, tail == -np.inf, tail >= 0)
    is_first = np.where(is_upper, tail >= 0, tail == -np.inf)

    def reached(k: Floats, rows: Any) -> Mask:
        part = batch.take(rows)
        up = is_upper[rows]
        level = np.where(up, part.logsf(k), part.logcdf(k))
        goal = tail[rows]
        enough = np.where(up, level <= goal + LEVEL_TOLERANCE, level >= goal - LEVEL_TOLERANCE)
        return np.asarray(enough & (k >= 0))

    active = np.flatnonzero(~(is_end | is_first))
    step = 2 * width
    while active.size:  # upwards until the upper end is large enough
        active = active[~reached(high[active], active)]
        low[active] = high[active]
        high[active] += step[active]
        step[active] *= 2
    active = np.flatnonzero(~(is_end | is_first) & (low >= 0))
    step = 2 * width
    while active.size:
        active = active[reached(low[active], active)]
        high[active] = low[active]
        low[active] = np.maximum(low[active] - step[active], -1.0)
        step[active] *= 2
        active = active[low[active] >= 0]
    active = np.flatnonzero(~(is_end | is_first))
    while active.size:
        middle = np.floor(low[active] + (high[active] - low[active]) / 2)
        open_ = (middle > low[active]) & (middle < high[active])
        active, middle = active[open_], middle[open_]
        enough = reached(middle, active)
        high[active[enough]] = middle[enough]
        low[active[~enough]] = middle[~enough]
    return np.where(is_end, np.inf, np.where(is_first, 0.0, high))


class Poisson(Counts):
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

    event_dims: ClassVar[dict[str, int]] = {"rate": 0}

    def __init__(self, mean: ArrayLike) -> None:
        self.rate = batch_array("mean", mean, positive=True)

    def _tails(self, k: Floats) -> tuple[Floats, Floats]:
        return special.gammaincc(k + 1, self.rate), special.gammainc(k + 1, self.rate)

    def _far_tails(self, k: Floats) -> tuple[Floats, Floats]:
        return incomplete.log_gamma_tails(k, self.rate)

    def _skewness(self) -> Floats:
        return np.asarray(1 / np.sqrt(self.rate))

    def mean(self) -> Floats:
        return self.rate

    def std(self) -> Floats:
        return np.sqrt(self.rate)

    def crps(self, y: ArrayLike) -> Floats:
        # Wei & Held (2014): E|Y - y| - E|Y - Y'| / 2, with Bessel functions in the second
        point = np.asarray(y, dtype=np.float64)
        first = point * (2 * self.cdf(point) - 1) + self.rate * (1 - 2 * self.cdf(point - 1))
        half = self.rate * (special.ive(0, 2 * self.rate) + special.ive(1, 2 * self.rate))
        return np.asarray(first - half)


class NegativeBinomial(Counts):
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

    event_dims: ClassVar[dict[str, int]] = {"center": 0, "dispersion": 0}

    def __init__(self, mean: ArrayLike, dispersion: ArrayLike) -> None:
        self.center, self.dispersion = broadcast(
            mean=batch_array("mean", mean, positive=True),
            dispersion=batch_array("dispersion", dispersion, positive=True),
        )

    def _tails(self, k: Floats) -> tuple[Floats, Floats]:
        size = 1 / self.dispersion
        odds = self.dispersion * self.center
        # from the smaller of success and failure, neither of which is a difference from 1
        fail, success = odds / (1 + odds), 1 / (1 + odds)
        is_small = fail < 0.5
        return (
            np.where(
                is_small,
                special.betaincc(k + 1, size, fail),
                special.betainc(size, k + 1, success),
            ),
            np.where(
                is_small,
                special.betainc(k + 1, size, fail),
                special.betaincc(size, k + 1, success),
            ),
        )

    def _far_tails(self, k: Floats) -> tuple[Floats, Floats]:
        return incomplete.log_beta_tails(k, self.center, self.dispersion)

    def _skewness(self) -> Floats:
        odds = self.dispersion * self.center
        return np.asarray((1 + 2 * odds) / np.sqrt(self.center * (1 + odds)))

    def mean(self) -> Floats:
        return self.center

    def std(self) -> Floats:
        return np.sqrt(self.center + self.dispersion * self.center**2)
