"""Distributions made from others: base classes, location-scale families and joined batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand._kinds import OutcomeKind
from evenhand._validate import Floats, InputError, Ints, Mask, bad_input
from evenhand.distributions import piecewise
from evenhand.distributions.base import Distribution, batch_array, broadcast, draws_of, joint_shape
from evenhand.distributions.lattice import LatticeSums
from evenhand.distributions.piecewise import has_rows


class Wrapper(Distribution):
    """Distributions made from those of another batch and from an array of one value for each."""

    event_dims: ClassVar[dict[str, int]] = {}

    inner: ClassVar[str] = "base"
    """Name of the other batch, as an attribute and an argument."""

    shared: ClassVar[tuple[str, ...]] = ()
    """Names of the parameters that all distributions have in common."""

    @property
    def outcome_kind(self) -> OutcomeKind:
        """Kind of outcome that the distributions describe: that of the other batch."""
        return self._inside.outcome_kind

    @property
    def _inside(self) -> Distribution:
        found: Distribution = getattr(self, self.inner)
        return found

    @property
    def batch_shape(self) -> tuple[int, ...]:
        own = (np.shape(getattr(self, name)) for name in self.event_dims)
        return np.broadcast_shapes(self._inside.batch_shape, *own)

    def take(self, rows: Any) -> Self:
        shape = self.batch_shape
        # parts that all rows share, such as one residual distribution, are kept whole
        return self._with(
            take_part(self._inside, rows, shape),
            lambda array: array[rows] if has_rows(array.shape, shape) else array,
        )

    def take_draws(self, columns: Ints) -> Self:
        return self._with(self._inside.take_draws(columns), lambda array: draws_of(array, columns))

    def expand(self) -> Self:
        return self._with(self._inside.expand(), lambda array: array[..., None])

    def _with(self, inside: Any, change: Callable[[Floats], Floats]) -> Self:
        """Return the same around another batch with changed arrays, without validation."""
        own = {name: getattr(self, name) for name in self.event_dims}
        fields = {name: None if array is None else change(array) for name, array in own.items()}
        fields |= {name: getattr(self, name) for name in self.shared}
        return self._unchecked({self.inner: inside} | fields)


class TailMap(Wrapper):
    """Distributions whose CDF is an increasing map of the CDF of `base`."""

    base: Distribution

    @abstractmethod
    def _log_tail(self, tail: Floats, is_upper: Mask, *, of_upper: bool) -> Floats:
        """Return the log of the mapped tail on either side from the base's smaller tail."""

    @abstractmethod
    def _log_slope(self, y: ArrayLike) -> Floats:
        """Return the log derivative of the map at outcomes."""

    def _tail(self, y: ArrayLike, *, left: bool = False) -> tuple[Floats, Mask]:
        """Return the log of the base's smaller tail, and whether it is the upper tail.

        Tails are those at `y`, or those of the left limits.
        """
        lower = self.base.logcdf_left(y) if left else self.base.logcdf(y)
        upper = self.base.logsf_left(y) if left else self.base.logsf(y)
        is_upper = lower > upper
        return np.where(is_upper, upper, lower), is_upper

    def logcdf(self, y: ArrayLike) -> Floats:
        return self._log_tail(*self._tail(y), of_upper=False)

    def logsf(self, y: ArrayLike) -> Floats:
        return self._log_tail(*self._tail(y), of_upper=True)

    def logcdf_left(self, y: ArrayLike) -> Floats:
        return self._log_tail(*self._tail(y, left=True), of_upper=False)

    def logsf_left(self, y: ArrayLike) -> Floats:
        return self._log_tail(*self._tail(y, left=True), of_upper=True)

    def log_mass(self, y: ArrayLike) -> Floats:
        found = super().log_mass(y)
        if not self.has_atoms:
            return found
        # small atoms between large tails, whose difference has few digits: a mass that is less than
        # 1e-8 of the smaller tail is the slope times that of the base
        smaller = np.minimum(self.logcdf(y), self.logsf_left(y))
        with np.errstate(invalid="ignore"):
            is_small = ~(found - smaller > np.log(1e-8)) & ~np.isneginf(smaller)
        if not is_small.any():
            return found
        return np.where(is_small, self.base.log_mass(y) + self._log_slope(y), found)

    def mean(self) -> Floats:
        return self._moment(0, super().mean)

    def std(self) -> Floats:
        return self._moment(1, super().std)

    def _moment(self, order: int, otherwise: Callable[[], Floats]) -> Floats:
        """Return the mean (0) or the standard deviation (1), from sums where there are any."""
        sums = self._sums
        if sums is None:
            return otherwise()
        found = sums.moments()[order]
        if self._wide is not None:
            found[sums.is_wide] = (piecewise.mean, piecewise.std)[order](*self._wide._cached_table)
        return found.reshape(self.batch_shape)

    def crps(self, y: ArrayLike) -> Floats:
        point = np.asarray(y, dtype=np.float64)
        sums = self._sums
        one_each = (*self.batch_shape[:1], 1)[: len(self.batch_shape)]
        if sums is None or point.shape not in ((), one_each):
            return super().crps(point)
        point = np.broadcast_to(point, one_each).ravel()
        found = sums.crps(point)
        if self._wide is not None:
            part = point[sums.is_wide, None]
            found[sums.is_wide] = piecewise.crps(*self._wide._cached_table, part)
        return found.reshape(self.batch_shape)

    @cached_property
    def _wide(self) -> Self | None:
        """The rows that have too many values for sums, with an axis for the draws."""
        if self._sums is None or not self._sums.is_wide.any():
            return None
        part = self.take(self._sums.is_wide)
        return part if len(self.batch_shape) == 2 else part.expand()

    @cached_property
    def _sums(self) -> LatticeSums | None:
        """Sums over the values of a lattice that has one distribution per row."""
        return None


def take_part(part: Distribution, rows: Any, batch_shape: tuple[int, ...]) -> Distribution:
    """Return some rows of a part of a batch, or the whole part if all rows share it."""
    return part.take(rows) if has_rows(part.batch_shape, batch_shape) else part


def check_no_atoms(name: str, part: Distribution) -> None:
    """Refuse a part whose single outcomes have positive probability."""
    if part.has_atoms:
        got = f"outcomes of kind {str(part.outcome_kind)!r}"
        raise bad_input(name, "be a continuous distribution", got)


# --- a residual distribution, shifted and scaled for each person


class LocationScale(Wrapper):
    """Distributions of `loc + scale * Z`, where `Z` has the distribution `base`.

    Parameters
    ----------
    base : Distribution
        Distribution of the residual `Z`: a batch that broadcasts against `loc`, usually of shape
        (1,).
    loc, scale : array-like
        Location and scale (> 0), broadcast to the batch shape; units of `y`.

    Examples
    --------
    >>> from evenhand.distributions import Normal
    >>> LocationScale(Normal([0.0], 1.0), [5.0, 7.0], 2.0).mean()
    array([5., 7.])
    """

    event_dims: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}

    def __init__(self, base: Distribution, loc: ArrayLike, scale: ArrayLike = 1.0) -> None:
        self.base = base
        self.loc, self.scale = broadcast(
            loc=batch_array("loc", loc), scale=batch_array("scale", scale, positive=True)
        )
        joint_shape(base=base.batch_shape, loc=self.loc.shape)
        check_no_atoms("base", base)

    def _standard(self, y: ArrayLike) -> Floats:
        return np.asarray((np.asarray(y, dtype=np.float64) - self.loc) / self.scale)

    def logcdf(self, y: ArrayLike) -> Floats:
        return self.base.logcdf(self._standard(y))

    def logsf(self, y: ArrayLike) -> Floats:
        return self.base.logsf(self._standard(y))

    def logpdf(self, y: ArrayLike) -> Floats:
        # change of variables: the density is per unit of y
        return np.asarray(self.base.logpdf(self._standard(y)) - np.log(self.scale))

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        return np.asarray(self.loc + self.scale * self.base.quantile_from_tail(log_p, upper))

    def mean(self) -> Floats:
        return np.asarray(self.loc + self.scale * self.base.mean())

    def std(self) -> Floats:
        return np.asarray(self.scale * self.base.std())

    def crps(self, y: ArrayLike) -> Floats:
        # the CRPS has the unit of y and scales with the distribution
        return np.asarray(self.scale * self.base.crps(self._standard(y)))


# --- rows of several families

Part = tuple[Ints, Distribution]
"""Numbers of rows, and their distributions in this order."""


class Joined(Distribution):
    """Distributions of several batches as one batch of shape (n,).

    Parameters
    ----------
    parts : sequence of (ndarray of int, Distribution)
        Numbers of the rows of each batch, which together are 0, ..., n - 1, and the batch. All
        batches have the same number of axes, and describe the same kind of outcome.

    Examples
    --------
    >>> from evenhand.distributions import Normal, Quantiles
    >>> flat = Quantiles([0.1, 0.9], [[1.0, 9.0]])
    >>> Joined([([1], flat), ([0, 2], Normal([0.0, 5.0], 1.0))]).ppf(0.5)
    array([0., 5., 5.])
    """

    event_dims: ClassVar[dict[str, int]] = {}

    def __init__(self, parts: Sequence[tuple[ArrayLike, Distribution]]) -> None:
        self.parts: list[Part] = [(np.asarray(rows, dtype=np.intp), batch) for rows, batch in parts]
        kinds = sorted({str(batch.outcome_kind) for _, batch in self.parts})
        if len(kinds) > 1:
            raise InputError(
                f"distributions describe outcomes of several kinds ({', '.join(kinds)}); use one"
                " batch for each"
            )

    @property
    def outcome_kind(self) -> OutcomeKind:
        return self.parts[0][1].outcome_kind

    @property
    def batch_shape(self) -> tuple[int, ...]:
        n = sum(rows.size for rows, _ in self.parts)
        return (n, *self.parts[0][1].batch_shape[1:])

    def take(self, rows: Any) -> Self:
        chosen = np.arange(self.batch_shape[0])[rows]
        parts: list[tuple[ArrayLike, Distribution]] = []
        for numbers, batch in self.parts:
            place = np.full(self.batch_shape[0], -1)
            place[numbers] = np.arange(numbers.size)
            inside = place[chosen]
            if (inside >= 0).any():
                parts.append((np.flatnonzero(inside >= 0), batch.take(inside[inside >= 0])))
        return type(self)(parts)

    def take_draws(self, columns: Ints) -> Self:
        return type(self)([(rows, batch.take_draws(columns[rows])) for rows, batch in self.parts])

    def expand(self) -> Self:
        return type(self)([(rows, batch.expand()) for rows, batch in self.parts])

    def _by_part(self, method: str, *arguments: Any) -> Floats:
        """Evaluate each batch at its rows of arguments that broadcast against the whole batch."""
        shape = np.broadcast_shapes(self.batch_shape, *(np.shape(array) for array in arguments))
        axis = len(shape) - len(self.batch_shape)
        full = [np.broadcast_to(array, shape) for array in arguments]
        found = np.empty(shape)
        for rows, batch in self.parts:
            at = (slice(None),) * axis + (rows,)
            found[at] = getattr(batch, method)(*(array[at] for array in full))
        return found

    def logcdf(self, y: ArrayLike) -> Floats:
        return self._by_part("logcdf", y)

    def logsf(self, y: ArrayLike) -> Floats:
        return self._by_part("logsf", y)

    def logpdf(self, y: ArrayLike) -> Floats:
        return self._by_part("logpdf", y)

    def logcdf_left(self, y: ArrayLike) -> Floats:
        return self._by_part("logcdf_left", y)

    def logsf_left(self, y: ArrayLike) -> Floats:
        return self._by_part("logsf_left", y)

    def log_mass(self, y: ArrayLike) -> Floats:
        return self._by_part("log_mass", y)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        return self._by_part("quantile_from_tail", log_p, upper)

    def nodes(self, reach: float, step: float) -> Floats:
        inner = [(rows, batch.nodes(reach, step)) for rows, batch in self.parts]
        size = max(nodes.shape[-1] for _, nodes in inner)
        found = np.empty((*self.batch_shape, size))
        for rows, nodes in inner:
            # padded with the last node, which adds nothing to a sum
            padding = np.repeat(nodes[..., -1:], size - nodes.shape[-1], axis=-1)
            found[rows] = np.concatenate((nodes, padding), axis=-1)
        return found

    def mean(self) -> Floats:
        return self._by_part("mean")

    def std(self) -> Floats:
        return self._by_part("std")

    def crps(self, y: ArrayLike) -> Floats:
        return self._by_part("crps", y)
