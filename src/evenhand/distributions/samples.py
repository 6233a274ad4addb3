"""Distributions given by samples (ensembles)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, InputError, Mask, bad_input
from evenhand.distributions.base import Distribution, batch_array, place_of
from evenhand.distributions.mixture import NormalMixture


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
        centre = self.values.mean(axis=-1, keepdims=True)
        spread = self.values.std(axis=-1, keepdims=True)
        # the standard deviation of equal samples can be a rounding error above 0
        equal = (self.values.min(axis=-1) == self.values.max(axis=-1)) | (spread[..., 0] == 0)
        if equal.any():
            place = place_of("values", tuple(np.argwhere(equal)[0]))
            raise InputError(
                f"{place} contains equal samples only, which have no"
                " density; drop the row or give samples that differ"
            )
        low, high = np.quantile(self.values, [0.25, 0.75], axis=-1, keepdims=True)
        # Silverman's rule of thumb, robust to outliers by the interquartile range
        narrow = np.where(high > low, np.minimum(spread, (high - low) / 1.349), spread)
        width = 0.9 * narrow * self.values.shape[-1] ** -0.2
        # the variances of the shrunken samples and of the kernel add up to that of the samples
        shrink = np.sqrt(1 - (width / spread) ** 2)
        weights = np.full(self.values.shape[-1], 1 / self.values.shape[-1])
        self._smooth = NormalMixture(weights, centre + shrink * (self.values - centre), width)

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
