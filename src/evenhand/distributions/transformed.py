"""Distributions of outcomes with bounds, from distributions on the real line."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, Mask
from evenhand.distributions.base import Distribution
from evenhand.distributions.bounded import Bounded
from evenhand.distributions.support import Support
from evenhand.distributions.wrappers import check_no_atoms


class Transformed(Bounded):
    """Distributions of `support.from_line(Z)`, where `Z` has the distribution `base`.

    Outside the support the density is 0. Outcomes nearer to a bound than `support.edge` are
    evaluated at that distance, so that an outcome at the bound has a finite log density.

    Parameters
    ----------
    base : Distribution
        Distribution on the real line.
    support : Support
        Map between outcomes and the real line.

    Examples
    --------
    >>> from evenhand.distributions import Normal, Support
    >>> lognormal = Transformed(Normal([0.0], 1.0), Support(low=0.0))
    >>> lognormal.ppf(0.5), lognormal.mean().round(3)
    (array([1.]), array([1.649]))
    """

    def __init__(self, base: Distribution, support: Support) -> None:
        check_no_atoms("base", base)
        super().__init__(base, support)

    def logcdf(self, y: ArrayLike) -> Floats:
        return self.base.logcdf(self.support.to_line(self.support.inside(y)))

    def logsf(self, y: ArrayLike) -> Floats:
        return self.base.logsf(self.support.to_line(self.support.inside(y)))

    def logpdf(self, y: ArrayLike) -> Floats:
        point = self.support.inside(y)
        line = self.support.to_line(point)
        is_inside = np.isfinite(line)
        if not is_inside.all():
            line = np.where(is_inside, line, 0.0)
            point = np.where(is_inside, point, self.support.from_line(0.0))
        # change of variables: the density is per unit of y
        density = self.base.logpdf(line) + self.support.log_slope(point)
        return np.where(is_inside, density, -np.inf)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        return self.support.from_line(self.base.quantile_from_tail(log_p, upper))

    def mean(self) -> Floats:
        return self.base.smooth_expectation(self.support.from_line)

    def std(self) -> Floats:
        mean = self.mean()[..., None]
        square = self.base.smooth_expectation(lambda z: (self.support.from_line(z) - mean) ** 2)
        return np.sqrt(square)
