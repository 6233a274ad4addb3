"""Distributions of counts: Poisson and negative binomial."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import Floats, Mask, bad_input
from evenhand.distributions.base import GRID_REACH, GRID_STEP, batch_array, broadcast, score_grid
from evenhand.distributions.lattice import (
    LEAST_TAIL,
    LEVEL_TOLERANCE,
    Lattice,
    LatticeSums,
    own_tails,
    ratio_tails,
)

# --- tails of counts that are too small for floats, by continued fractions

MOST_TERMS = 20_000
TINY = 1e-300
"""Stands for a zero denominator in the modified Lentz method."""


def log_gamma_tails(k: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """Return the logs of `P(Y <= k)` and `P(Y > k)` of Poisson outcomes, far from their mean.

    They are the regularized incomplete gamma functions Q(k + 1, mean) and P(k + 1, mean). Each log
    is accurate on the side of the mean where its tail is small.
    """
    a = k + 1
    log_front = special.xlogy(a, mean) - mean - special.gammaln(a)

    # Press et al., Numerical Recipes, equation 6.2.7
    def upper_gamma(j: int) -> tuple[Floats, Floats]:
        return j * (a - j), mean + 2 * j + 1 - a

    # DLMF 8.9.1
    def lower_gamma(j: int) -> tuple[Floats, Floats]:
        i = (j + 1) // 2
        if j % 2:
            return (-mean if i == 1 else -(a + i - 1) * mean), a + j
        return i * mean, a + j

    return (
        np.asarray(log_front - _log_fraction(mean + 1 - a, upper_gamma)),
        np.asarray(log_front - np.log(a) - _log_fraction(np.ones_like(a), lower_gamma)),
    )


def log_beta_tails(k: Floats, mean: Floats, dispersion: Floats) -> tuple[Floats, Floats]:
    """Return the same for negative binomial outcomes: regularized incomplete beta functions."""
    size = 1 / dispersion
    odds = dispersion * mean
    log_success = -np.log1p(odds)
    log_fail = np.log(odds) + log_success
    return (
        _log_beta(size, k + 1, log_success, log_fail),
        _log_beta(k + 1, size, log_fail, log_success),
    )


def _log_beta(a: Floats, b: Floats, log_x: Floats, log_y: Floats) -> Floats:
    """Return `log I_x(a, b)` for x below about a / (a + b), with y = 1 - x."""
    x = np.exp(log_x)

    # Press et al., Numerical Recipes, equation 6.4.6
    def terms(j: int) -> tuple[Floats, Floats]:
        m = j // 2
        if j % 2:
            return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), np.ones_like(a)
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), np.ones_like(a)

    front = a * log_x + b * log_y - np.log(a) - special.betaln(a, b)
    return np.asarray(front - _log_fraction(np.ones_like(a), terms))


def _log_fraction(first: Floats, terms: Callable[[int], tuple[Floats, Floats]]) -> Floats:
    """Return the log of `b_0 + a_1 / (b_1 + a_2 / (b_2 + ...))` by the modified Lentz method."""
    value = np.where(first == 0, TINY, first)
    c, d = value.copy(), np.zeros_like(value)
    # where the tail is not small the fraction may pass through 0; such values are not used
    with np.errstate(all="ignore"):
        for j in range(1, MOST_TERMS):
            a, b = terms(j)
            d = b + a * d
            d = 1 / np.where(d == 0, TINY, d)
            c = b + a / c
            c = np.where(c == 0, TINY, c)
            change = c * d
            value = value * change
            if not (np.abs(change - 1) > 1e-15).any():
                break
        return np.asarray(np.log(value))


# --- families of counts

MOST_ATOMS = 1024
FIRST_ATOMS = 512
"""Largest number of values of a distribution that sums go through one by one. Of wider ones it is
the first values, and between quantiles otherwise, as for continuous distributions."""

REPEATED = 0.9
"""Tail from which the other one is not a difference from 1, which would lose digits."""

LARGE_BESSEL = 1e7
"""Argument from which Bessel functions are computed by their asymptotic series."""

LEAST_DISPERSION = 1e-100
"""Smallest dispersion; one above its reciprocal is as extreme. Beyond both, tails overflow."""

LOG_LEAST_TAIL = np.log(1e-290)
"""Logarithm of the smallest tail that SciPy computes with all digits; smaller ones are computed by
continued fractions."""


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
    def _tail(self, k: Floats, *, upper: bool) -> Floats:
        """Return `P(Y <= k)` (`P(Y > k)` if `upper`) at whole numbers k >= 0."""

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
        shape = np.broadcast_shapes(value.shape, self.batch_shape)
        value = np.broadcast_to(value, shape)
        is_inside = (value >= 0) & np.isfinite(value)
        log_tail = np.where((value < 0) ^ upper, -np.inf, 0.0)
        log_tail[np.isnan(value)] = np.nan
        if is_inside.any():
            part = self._flat(shape).take(is_inside.ravel())
            log_tail[is_inside] = part._log_inside(value[is_inside], upper=upper)
        return log_tail

    def _log_inside(self, k: Floats, *, upper: bool) -> Floats:
        """Return the same at whole numbers k >= 0, one for each distribution of one axis."""
        # only one tail, as each takes long: the one that is small on this side of the mean
        is_above = k > self.mean()
        near = np.empty(k.shape)
        for side in (False, True):
            rows = is_above == side
            near[rows] = self.take(rows)._tail(k[rows], upper=side)
        is_rest = (near > REPEATED) & (is_above != upper)
        with np.errstate(divide="ignore"):
            log_tail = np.where(is_above == upper, np.log(near), np.log1p(-near))
            if is_rest.any():
                log_tail[is_rest] = np.log(self.take(is_rest)._tail(k[is_rest], upper=upper))
        is_far = log_tail < LOG_LEAST_TAIL
        if is_far.any():
            log_tail[is_far] = self.take(is_far)._far_tails(k[is_far])[int(upper)]
        return log_tail

    def logcdf(self, y: ArrayLike) -> Floats:
        return self._log_tail(y, upper=False)

    def logsf(self, y: ArrayLike) -> Floats:
        return self._log_tail(y, upper=True)

    def _flat(self, shape: tuple[int, ...]) -> Self:
        """Return the distributions broadcast to a shape, as a batch with one axis."""
        return self._unchecked(
            {
                name: np.broadcast_to(value, shape).ravel()
                for name, value in self._parameters.items()
            }
        )

    def _rebuilt(self, change: Callable[[Floats, int], Floats]) -> Self:
        return self._unchecked({name: change(value, 0) for name, value in self._parameters.items()})

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
        first = np.minimum(low[..., None] + np.arange(FIRST_ATOMS), high[..., None])
        wide = np.sort(np.concatenate((first, self.quantile_table(scores)), axis=-1), axis=-1)
        # rows are padded with their last value, which adds nothing to a sum
        size = max(n_atoms, wide.shape[-1])
        every = np.minimum(low[..., None] + np.arange(size), high[..., None])
        padding = np.repeat(wide[..., -1:], size - wide.shape[-1], axis=-1)
        return np.where(is_narrow[..., None], every, np.concatenate((wide, padding), axis=-1))

    def ends(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        tails = np.stack((lower, upper), axis=-1)
        found = self.expand().quantile_from_tail(tails, np.array([False, True]))
        return found[..., 0], found[..., 1]

    def tails_between(self, first: Floats, last: Floats) -> tuple[Floats, Floats, Mask]:
        sizes = (last - first).astype(np.intp) + 1
        values = np.minimum(first[:, None] + np.arange(sizes.max()), last[:, None])
        log_below, log_above = self.logcdf(first - 1), self.logsf(last)
        log_tail, is_upper = ratio_tails(
            self.expand()._log_ratio(values[:, 1:]), np.exp(log_below), np.exp(log_above), sizes
        )
        # sums of probabilities below the smallest float
        far = np.minimum(self.logcdf(first), self.logsf(last - 1)) < LOG_LEAST_TAIL
        if far.any():
            part = self.take(far).expand()
            lower, upper = part.logcdf(values[far]), part.logsf(values[far])
            is_upper[far] = lower > upper
            log_tail[far] = np.where(is_upper[far], upper, lower)
        return values, log_tail, is_upper

    def _table(self) -> tuple[Floats, Floats]:
        nodes = self.nodes(GRID_REACH + 1, GRID_STEP)
        if len(self.batch_shape) != 1:
            return self.atom_table(nodes)
        # sums of masses, which take a tenth of the time of incomplete beta functions
        is_wide = nodes[:, -1] - nodes[:, 0] >= MOST_ATOMS
        levels = np.ones((nodes.shape[0], 2 * nodes.shape[1]))
        if is_wide.any():
            levels[is_wide] = self.take(is_wide).atom_table(nodes[is_wide])[0]
        if not is_wide.all():
            part = nodes[~is_wide]
            _, log_tail, is_upper = self.take(~is_wide).tails_between(part[:, 0], part[:, -1])
            at = np.where(is_upper, -np.expm1(log_tail), np.exp(log_tail))
            size = at.shape[1]
            left = np.concatenate((np.zeros((len(at), 1)), at[:, :-1]), axis=-1)
            # rows are padded with their last value, at which there is nothing more
            levels[~is_wide, : 2 * size] = np.stack((left, at), axis=-1).reshape(len(at), -1)
            levels[~is_wide, 2 * size :] = at[:, -1:]
        return np.maximum.accumulate(levels, axis=-1), np.repeat(nodes, 2, axis=-1)

    @abstractmethod
    def _log_ratio(self, k: Floats) -> Floats:
        """Return the log of `P(Y = k) / P(Y = k - 1)` at whole numbers k >= 1."""

    def crps(self, y: ArrayLike) -> Floats:
        point = np.asarray(y, dtype=np.float64)
        if len(self.batch_shape) != 1 or point.ndim > 1:
            return super().crps(point)
        point = np.broadcast_to(point, self.batch_shape)
        tail = np.full(self.batch_shape, LEAST_TAIL)
        sums = LatticeSums(self, tail, tail, own_tails, 1)
        found = sums.crps(point)[:, 0]
        if sums.is_wide.any():
            wide = self.take(sums.is_wide)
            found[sums.is_wide] = super(Counts, wide).crps(point[sums.is_wide])
        return found


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

    def _tail(self, k: Floats, *, upper: bool) -> Floats:
        return np.asarray((special.gammainc if upper else special.gammaincc)(k + 1, self.rate))

    def _far_tails(self, k: Floats) -> tuple[Floats, Floats]:
        return log_gamma_tails(k, self.rate)

    def _skewness(self) -> Floats:
        return np.asarray(1 / np.sqrt(self.rate))

    def _log_ratio(self, k: Floats) -> Floats:
        return np.log(self.rate / k)

    def mean(self) -> Floats:
        return self.rate

    def std(self) -> Floats:
        return np.sqrt(self.rate)

    def crps(self, y: ArrayLike) -> Floats:
        # Wei & Held (2014): E|Y - y| - E|Y - Y'| / 2, with Bessel functions in the second
        point = np.asarray(y, dtype=np.float64)
        twice = 2 * self.rate
        first = point * (2 * self.cdf(point) - 1) + self.rate * (1 - 2 * self.cdf(point - 1))
        # SciPy has no values beyond about 1e9; the next term is below 1e-13 (DLMF 10.40.1)
        small, large = np.minimum(twice, LARGE_BESSEL), np.maximum(twice, LARGE_BESSEL)
        bessel = np.where(
            twice > LARGE_BESSEL,
            (2 - 1 / (4 * large)) / np.sqrt(2 * np.pi * large),
            special.ive(0, small) + special.ive(1, small),
        )
        half = self.rate * bessel
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
        wrong = (self.dispersion < LEAST_DISPERSION) | (self.dispersion > 1 / LEAST_DISPERSION)
        if wrong.any():
            rule = f"lie between {LEAST_DISPERSION:g} and {1 / LEAST_DISPERSION:g}"
            got = float(self.dispersion[wrong].flat[0])
            raise bad_input("dispersion", rule, got, "use Poisson distributions if there is none")

    def _tail(self, k: Floats, *, upper: bool) -> Floats:
        size = 1 / self.dispersion
        odds = self.dispersion * self.center
        # from the smaller of failure and success, neither of which is a difference from 1
        is_small = odds <= 1
        a, b = np.where(is_small, k + 1, size), np.where(is_small, size, k + 1)
        x = np.where(is_small, odds, 1.0) / (1 + odds)
        found = np.empty(k.shape)
        # P(Y > k) = I(fail; k + 1, size) = 1 - I(success; size, k + 1)
        plain = is_small == upper
        found[plain] = special.betainc(a[plain], b[plain], x[plain])
        found[~plain] = special.betaincc(a[~plain], b[~plain], x[~plain])
        return found

    def _far_tails(self, k: Floats) -> tuple[Floats, Floats]:
        return log_beta_tails(k, self.center, self.dispersion)

    def _skewness(self) -> Floats:
        odds = self.dispersion * self.center
        return np.asarray((1 + 2 * odds) / np.sqrt(self.center * (1 + odds)))

    def _log_ratio(self, k: Floats) -> Floats:
        # (k - 1 + size) / k times odds / (1 + odds)
        odds = self.dispersion * self.center
        return np.log(self.center * (1 + (k - 1) * self.dispersion) / (k * (1 + odds)))

    def mean(self) -> Floats:
        return self.center

    def std(self) -> Floats:
        return np.sqrt(self.center + self.dispersion * self.center**2)
