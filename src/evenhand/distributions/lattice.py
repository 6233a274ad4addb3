"""Base class of distributions on a lattice: counts, ordinal scores and events."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, Mask
from evenhand.distributions.base import Distribution
from evenhand.distributions.kinds import OutcomeKind

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
        """Return the first and the last value between two tails, as in `ValuesOfRows`."""

    @abstractmethod
    def tails_between(self, first: Floats, last: Floats) -> tuple[Floats, Floats, Mask]:
        """Return values and their smaller tails, as in `ValuesOfRows`."""

    def logcdf_left(self, y: ArrayLike) -> Floats:
        return self.logcdf(self._below(y))

    def logsf_left(self, y: ArrayLike) -> Floats:
        return self.logsf(self._below(y))

    def logpdf(self, y: ArrayLike) -> Floats:
        """Log density of the continuous part, `-inf`: use `log_mass`."""
        return np.full(np.broadcast_shapes(np.shape(y), self.batch_shape), -np.inf)
