"""Normal distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import Floats, Mask
from evenhand.distributions.base import (
    WIDE_REACH,
    Distribution,
    batch_array,
    broadcast,
    score_grid,
)

LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)


NODE_STEP = 1 / 4
"""Step of normal scores in expectations of smooth functions.

The trapezoidal rule errs by exp(-2 pi d / step) for a function whose poles are at least `d`
standard deviations from the real axis: 1e-11 for one standard deviation.
"""


class Normal(Distribution):
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

    event_dims: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}
    has_mean: ClassVar[bool] = True

    def __init__(self, loc: ArrayLike, scale: ArrayLike) -> None:
        self.loc, self.scale = broadcast(
            loc=batch_array("loc", loc), scale=batch_array("scale", scale, positive=True)
        )

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.loc.shape

    def _score(self, y: ArrayLike) -> Floats:
        return np.asarray((np.asarray(y, dtype=np.float64) - self.loc) / self.scale)

    def logcdf(self, y: ArrayLike) -> Floats:
        return np.asarray(special.log_ndtr(self._score(y)))

    def logsf(self, y: ArrayLike) -> Floats:
        return np.asarray(special.log_ndtr(-self._score(y)))

    def logpdf(self, y: ArrayLike) -> Floats:
        return np.asarray(-0.5 * self._score(y) ** 2 - np.log(self.scale) - LOG_ROOT_2PI)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        score = special.ndtri_exp(log_p)
        return np.asarray(self.loc + self.scale * np.where(upper, -score, score))

    def smooth_expectation(self, function: Callable[[Floats], Floats]) -> Floats:
        scores = score_grid(WIDE_REACH, NODE_STEP)
        weights = np.exp(-scores * scores / 2)
        values = function(self.loc[..., None] + self.scale[..., None] * scores)
        return np.asarray(values @ (weights / weights.sum()))

    def mean(self) -> Floats:
        return self.loc

    def std(self) -> Floats:
        return self.scale

    def crps(self, y: ArrayLike) -> Floats:
        # Gneiting & Raftery (2007), equation 21
        z = self._score(y)
        pdf = np.exp(-0.5 * z**2 - LOG_ROOT_2PI)
        return np.asarray(
            self.scale * (z * (2 * special.ndtr(z) - 1) + 2 * pdf - 1 / np.sqrt(np.pi))
        )
