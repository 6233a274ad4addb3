"""Base classes of distributions that are made from other distributions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, Ints, Mask, bad_input
from evenhand.distributions.base import Distribution, draws_of
from evenhand.distributions.kinds import OutcomeKind
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


def take_part(part: Distribution, rows: Any, batch_shape: tuple[int, ...]) -> Distribution:
    """Return some rows of a part of a batch, or the whole part if all rows share it."""
    return part.take(rows) if has_rows(part.batch_shape, batch_shape) else part


def check_no_atoms(name: str, part: Distribution) -> None:
    """Refuse a part whose single outcomes have positive probability."""
    if part.has_atoms:
        got = f"outcomes of kind {str(part.outcome_kind)!r}"
        raise bad_input(name, "be a continuous distribution", got)
