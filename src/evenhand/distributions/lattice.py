"""Distributions on a lattice (counts, ordinal scores and events), and exact sums over them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._kinds import OutcomeKind
from evenhand._validate import Floats, Ints, Mask
from evenhand.distributions.base import Distribution

LEVEL_TOLERANCE = 1e-8
"""Relative tolerance of probabilities in quantiles, so that `ppf(cdf(y))` is `y` despite the
rounding of `cdf` and of the tables of links."""


class Lattice(Distribution):
    """Distributions all of whose probability is on single values.

    A family implements both tails at its values (`logcdf` and `logsf`), the value below each
    outcome (`_below`), and `nodes`, which are its values.
    """

    @property
    def outcome_kind(self) -> OutcomeKind:
        return OutcomeKind.COUNT

    @abstractmethod
    def _below(self, y: ArrayLike) -> Floats:
        """Return an outcome with `P(Y <= _below(y)) = P(Y < y)`."""

    def values_of_rows(self) -> Lattice | None:
        shape = self.batch_shape
        if len(shape) == 1:
            return self
        is_one_each = len(shape) == 2 and shape[1] == 1
        return self._rebuilt(lambda array, dims: array[:, 0]) if is_one_each else None

    @abstractmethod
    def ends(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the numbers of the first and the last value between two tails, given as logs.

        Values are numbered upwards, by any integers.
        """

    @abstractmethod
    def tails_between(self, first: Floats, last: Floats) -> tuple[Floats, Floats, Mask]:
        """Return values from number `first` to `last` (k,), and the smaller tail at each.

        The three arrays of shape (k, q) are the values, of which rows with fewer repeat the last
        one, the log of the smaller tail (`P(Y <= value)` or `P(Y > value)`), and whether it is the
        upper one.
        """

    def logcdf_left(self, y: ArrayLike) -> Floats:
        return self.logcdf(self._below(y))

    def logsf_left(self, y: ArrayLike) -> Floats:
        return self.logsf(self._below(y))

    def logpdf(self, y: ArrayLike) -> Floats:
        """Log density of the continuous part, `-inf`: use `log_mass`."""
        return np.full(np.broadcast_shapes(np.shape(y), self.batch_shape), -np.inf)


# --- moments and CRPS, also of monotone maps of the CDFs

LEAST_TAIL = float(np.log(1e-20))
"""Logarithm of the probability that sums may leave out at either end."""

MOST_VALUES = 1024
"""Largest number of values of a distribution that sums go through one by one."""

BLOCK_NUMBERS = 1 << 18
KEPT_NUMBERS = 1 << 23
"""Number of tails that are computed at once, and that are kept for further sums."""

WIDER = 1.25
"""Largest ratio of the numbers of values of two distributions in a block."""

TailMap = Callable[[Floats, Mask, Ints], Floats]
"""Function of the logs of the base's smaller tails (k, q), whether each is the upper tail, and the
rows (k,) that returns these tails after the map, shape (k, m, q)."""


class _Block(NamedTuple):
    rows: Ints
    values: Floats
    is_upper: Mask
    tails: Floats


class LatticeSums:
    """Sums over all values of `n` distributions at `m` draws each.

    The CDF is constant from each value to the next, so the mean, the variance and the CRPS are sums
    over these cells. Each sum goes over the tail on the side of its cell, seen from the median of
    the base, and keeps the digits of small tails.

    Distributions of similar numbers of values are computed together. The sums of a person depend on
    that person only.

    Parameters
    ----------
    base : Distribution
        Distributions, as from `Distribution.values_of_rows`.
    lower, upper : ndarray of shape (n,)
        Logs of the base's tails at which the sums may stop at each end.
    tail_map : function
        Map of the base's tails.
    n_draws : int
        Number `m` of maps of each distribution.
    """

    def __init__(
        self, base: Any, lower: Floats, upper: Floats, tail_map: TailMap, n_draws: int
    ) -> None:
        self._base = base
        self._map = tail_map
        self._shape = (base.batch_shape[0], n_draws)
        self._first, self._last = base.ends(lower, upper)
        self._size = self._last - self._first + 1
        self.is_wide: Mask = ~(self._size <= MOST_VALUES)
        """Whether a distribution has too many values, (n,): its sums are NaN."""
        narrow = self._size[~self.is_wide]
        is_small = narrow.sum() * n_draws <= KEPT_NUMBERS
        self._kept = list(self._made()) if is_small else None
        self._moments: tuple[Floats, Floats] | None = None

    def _blocks(self) -> Iterator[_Block]:
        return self._made() if self._kept is None else iter(self._kept)

    def _made(self) -> Iterator[_Block]:
        order = np.argsort(self._size, kind="stable")
        sizes = self._size[order][: int((~self.is_wide).sum())]
        start = 0
        while start < sizes.size:
            near = int(np.searchsorted(sizes, sizes[start] * WIDER + 4, side="right"))
            most = BLOCK_NUMBERS // (int(sizes[near - 1]) * self._shape[1])
            stop = min(near, start + max(1, most))
            rows = order[start:stop]
            values, log_tail, is_upper = self._base.take(rows).tails_between(
                self._first[rows], self._last[rows]
            )
            # the last value of each row has no cell
            tails = self._map(log_tail[:, :-1], is_upper[:, :-1], rows)
            yield _Block(rows, values, is_upper[:, :-1], tails)
            start = stop

    def moments(self) -> tuple[Floats, Floats]:
        """Return the means and standard deviations, both (n, m)."""
        if self._moments is None:
            mean = np.full(self._shape, np.nan)
            spread = np.full(self._shape, np.nan)
            for rows, values, is_upper, tails in self._blocks():
                mean[rows], spread[rows] = _moments(values, is_upper, tails)
            self._moments = mean, spread
        return self._moments

    def crps(self, y: Floats) -> Floats:
        """Return the CRPS (n, m) at outcomes `y` (n,), `integral (F(z) - 1{z >= y})^2 dz`."""
        found = np.full(self._shape, np.nan)
        for rows, values, is_upper, tails in self._blocks():
            point = y[rows][:, None]
            cells = np.diff(values, axis=-1)
            left = np.clip(point - values[:, :-1], 0.0, cells)
            # the square of the tail counts on its own side of the outcome, that of one minus the
            # tail on the other side
            other = np.where(is_upper, left, cells - left)
            inner = _weighted(tails * tails, cells) - 2 * _weighted(tails, other)
            inner += other.sum(axis=-1, keepdims=True)
            outside = np.maximum(values[:, :1] - point, 0) + np.maximum(point - values[:, -1:], 0)
            found[rows] = inner + outside
        return found


def own_tails(log_tail: Floats, is_upper: Mask, rows: Ints) -> Floats:
    """Return the tails of the base, as a map for `LatticeSums`."""
    return np.exp(log_tail)[:, None]


def _moments(values: Floats, is_upper: Mask, tails: Floats) -> tuple[Floats, Floats]:
    """Return the means and standard deviations, by sums of the tails on each side of a centre."""
    # the first value whose upper tail is the smaller one; all cells below it have lower tails
    place = np.minimum((~is_upper).sum(axis=-1), values.shape[-1] - 1)
    centre = np.take_along_axis(values, place[:, None], axis=-1)
    distance = values - centre
    first = _weighted(tails, np.diff(distance, axis=-1) * np.where(is_upper, 1.0, -1.0))
    second = _weighted(tails, np.abs(np.diff(distance**2, axis=-1)))
    return centre + first, np.sqrt(np.maximum(second - first**2, 0.0))


def _weighted(numbers: Floats, weights: Floats) -> Floats:
    """Return the sums over the last axis of (k, m, q) with weights (k, q)."""
    return np.asarray(np.matmul(numbers, weights[..., None])[..., 0])


def ratio_tails(
    log_ratio: Floats, below: Floats, above: Floats, sizes: NDArray[np.intp]
) -> tuple[Floats, Mask]:
    """Return the logs of the smaller tail at successive values, and whether it is the upper one.

    Parameters
    ----------
    log_ratio : ndarray of shape (k, q - 1)
        Logs of the probability of each value divided by that of the value before.
    below, above : ndarray of shape (k,)
        Probabilities below the first and above the last value.
    sizes : ndarray of shape (k,)
        Number of values of each row; later ones are not used.
    """
    log_mass = np.concatenate((np.zeros((len(sizes), 1)), np.cumsum(log_ratio, axis=-1)), axis=-1)
    is_value = np.arange(log_mass.shape[-1]) < sizes[:, None]
    log_mass[~is_value] = -np.inf
    mass = np.exp(log_mass - log_mass.max(axis=-1, keepdims=True))
    mass *= ((1 - below - above) / mass.sum(axis=-1))[:, None]
    lower = np.cumsum(mass, axis=-1) + below[:, None]
    # each tail is summed from its own end, so that small ones keep their digits
    upper = np.cumsum(mass[:, :0:-1], axis=-1)[:, ::-1]
    upper = np.concatenate((upper, np.zeros((len(sizes), 1))), axis=-1) + above[:, None]
    is_upper = lower > upper
    with np.errstate(divide="ignore"):
        return np.log(np.where(is_upper, upper, lower)), is_upper
