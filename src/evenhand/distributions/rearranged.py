"""A randomized forecaster made monotone in its draw."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand._checks import Floats, bad_input
from evenhand.distributions._base import Bools, Distribution


class Rearranged(Distribution):
    """The CDFs of a forecaster over its draws, sorted at each outcome so that they increase with the draw.

    Column `j` takes the `j`-th smallest CDF value at each `y`. Mean log density over draws is unchanged and
    the pathwise error of each row is at most what it was.

    Parameters
    ----------
    base : Distribution
        Batch of shape (n, m), columns ordered by increasing draw.
    axis : int, default -1
        Axis of the draws in the batch, counted from the end.

    Examples
    --------
    >>> from evenhand.distributions import Normal
    >>> Rearranged(Normal([[0.0, 1.0]], 1.0)).cdf(0.0).round(3)
    array([[0.159, 0.5  ]])
    """

    event_dims: ClassVar[dict[str, int]] = {}

    def __init__(self, base: Distribution, axis: int = -1) -> None:
        if len(base.batch_shape) < 2:
            raise bad_input("base", "hold several draws per person, shape (n, m)", f"shape {base.batch_shape}")
        self.base, self.axis = base, axis

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.base.batch_shape

    def take(self, rows: Any) -> Rearranged:
        return Rearranged(self.base.take(rows), self.axis)

    def expand(self) -> Rearranged:
        return Rearranged(self.base.expand(), self.axis - 1)

    def logcdf(self, y: ArrayLike) -> Floats:
        return np.sort(self.base.logcdf(y), axis=self.axis)

    def logsf(self, y: ArrayLike) -> Floats:
        return np.flip(np.sort(self.base.logsf(y), axis=self.axis), axis=self.axis)

    def logpdf(self, y: ArrayLike) -> Floats:
        # by log odds, which keep their digits in both tails
        order = np.argsort(self.base.logcdf(y) - self.base.logsf(y), axis=self.axis)
        return np.take_along_axis(self.base.logpdf(y), order, axis=self.axis)

    def quantile_from_tail(self, log_p: Floats, upper: Bools) -> Floats:
        # the j-th smallest CDF has the j-th largest quantile
        return np.flip(np.sort(self.base.quantile_from_tail(log_p, upper), axis=self.axis), axis=self.axis)
