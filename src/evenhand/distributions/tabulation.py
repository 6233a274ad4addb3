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
