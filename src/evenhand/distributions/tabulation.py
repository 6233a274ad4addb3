"""Distributions from quantile functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import Floats
from evenhand.distributions.base import Distribution, score_grid
from evenhand.distributions.normal import Normal
from evenhand.distributions.quantiles import Quantiles

FINE = 1e-4
"""Largest error of the CDF between neighbouring quantiles of a table for logs."""

FINE_SCORE = 5.5
"""Largest normal score of such a table; less than 2e-8 of probability is beyond it."""


def from_ppf(ppf: Callable[[float], ArrayLike]) -> Distribution:
    """Make distributions from their quantile function: normal ones exactly, others from a table.

    Parameters
    ----------
    ppf : callable
        Function of a single probability that returns the finite quantile of each row, shape (n,).

    Returns
    -------
    Normal or Quantiles
        `Normal` if all rows are normal; otherwise `Quantiles` with 161 quantiles at normal scores
        from -5 to 5, whose CDF has an error of 0.0001 to 0.0003 between them.

    Examples
    --------
    >>> from scipy import stats
    >>> from_ppf(stats.norm([0.0, 1.0], 2.0).ppf).std()
    array([2., 2.])
    >>> from_ppf(stats.expon([0.0, 1.0]).ppf).cdf([1.0, 2.0]).round(3)
    array([0.632, 0.632])
    """

    def at(score: float) -> Floats:
        return np.asarray(ppf(float(special.ndtr(score))), dtype=np.float64)

    centre = at(0.0)
    unit = at(1.0) - centre
    # quantiles are a linear function of normal scores for normal distributions and for no others
    near = 1e-7 * unit + 1e-12 * np.abs(centre)
    if (unit > 0).all() and all(
        (np.abs(at(z) - centre - z * unit) <= near).all() for z in (-4.0, -1.5, 0.5, 3.0)
    ):
        return Normal(centre, unit)
    scores = score_grid(5.0, 1 / 16)
    values = np.column_stack([at(float(z)) for z in scores])
    return Quantiles(special.ndtr(scores), values, sort=True)


def fine_quantiles(distribution: Distribution) -> Quantiles:
    """Return a single continuous distribution, shape (1,), as quantiles of at most its precision.

    The CDF between neighbouring quantiles is within `FINE` of that of the distribution, at the
    points that are compared: quantiles are added where it is not linear.

    Examples
    --------
    >>> from evenhand.distributions import Transformed, Support
    >>> lognormal = Transformed(Normal([0.0], 1.0), Support(low=0.0))
    >>> table = fine_quantiles(lognormal)
    >>> bool(abs(table.cdf(2.0) - lognormal.cdf(2.0)).max() < 0.0005)
    True
    """
    levels = special.ndtr(score_grid(FINE_SCORE, 1 / 8))
    values = distribution.expand().ppf(levels)[0]
    while True:
        is_rough = np.zeros(levels.size - 1, dtype=np.bool_)
        # three points per cell, as the error of a cell can be 0 in its middle
        for share in (0.25, 0.5, 0.75):
            at = values[:-1] + share * np.diff(values)
            line = levels[:-1] + share * np.diff(levels)
            is_rough |= np.abs(distribution.expand().cdf(at)[0] - line) > FINE
        # a cell of less probability cannot have a larger error
        is_rough &= np.diff(levels) > FINE
        if not is_rough.any():
            return Quantiles(levels, values[None, :], sort=True)
        middle = (levels[:-1] + levels[1:])[is_rough] / 2
        levels = np.concatenate((levels, middle))
        order = np.argsort(levels)
        levels = levels[order]
        values = np.concatenate((values, distribution.expand().ppf(middle)[0]))[order]
