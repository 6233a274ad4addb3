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

    @abstractmethod
    def ends(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the numbers of the first and the last value between two tails, given as logs.

        For batches with one axis; values are numbered upwards, by any integers.
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
