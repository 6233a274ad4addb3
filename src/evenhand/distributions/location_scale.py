"""Location-scale families: a residual distribution, shifted and scaled for each person."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, Mask
from evenhand.distributions.base import Distribution, batch_array, broadcast, joint_shape
from evenhand.distributions.wrappers import Wrapper, check_no_atoms


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
