"""Test of the hypothesis that a learned group is calibrated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evenhand._validate import Floats

NullMoments = tuple[Floats, Floats]
"""Estimates of the second and third moment of each value."""


def studentized_p_value(
    values: Sequence[Floats],
    deviations: Sequence[float],
    skewness: Sequence[float],
    moments: Sequence[NullMoments | None] | None = None,
) -> float:
    """Return the p-value of a one-sided test that all values have conditional expectation 0.

    Parameters
    ----------
    values : sequence of ndarray
        Pattern values of the selected rows, one array per evaluated fold.
    deviations : sequence of float
        Standard deviation of the values of each fold, estimated from earlier rows: folds with
        different patterns then have equal weights per row.
    skewness : sequence of float
        Skewness of the values of each fold, estimated from earlier rows.
    moments : sequence of pairs of ndarray, optional
        For outcomes with atoms, estimates of the second and third moments of the values of each
        fold under the hypothesis (`null_moments`); None for other outcomes.

    Returns
    -------
    float
        Upper tail of the standard normal distribution at the studentized sum, or at Hall's
        transformation of it if that is smaller.

    Notes
    -----
    Let `z_i` be the values divided by the deviation of their fold. The pattern, the deviation and
    the selected rows of a fold depend on its features and on earlier folds only. If the PITs of
    all rows are uniform and independent given the features, each `z_i` therefore has conditional
    expectation 0 given the features and all earlier values, so the sums of `z_i` form a
    martingale. The values are bounded by 1/2, and the studentized sum `sum z_i / sqrt(sum z_i^2)`
    is asymptotically standard normal by the martingale central limit theorem (Hall & Heyde 1980,
    theorem 3.2 and corollary 3.1), whichever models selected the rows. Folds are evaluated by
    models of earlier folds only because statistics of folds that train each other's models are
    correlated under the hypothesis: with two folds and linear models they are nearly equal.
    Luedtke & van der Laan (2016) use the same construction.

    The means over several draws of one person may be strongly skewed. If they are skewed to the
    left, a studentized sum of few values is too often large. With the skewness `k` of the mean,
    Hall's transformation `t + k t^2 / 3 + k^2 t^3 / 27 + k / 6` of the sum `t` is normal to a
    higher order; it is used where it is smaller. Sums of
    squares need no assumption on the dependence between these draws.

    Of a rare event that nobody in the group had, sums of squares and their skewness show nothing:
    the values are nearly equal, and their studentized sum is about the root of their number. The
    sum of `moments` has the same expectation under the hypothesis, and shows what could have
    happened. The sum is then divided by the root of the larger of both.

    References
    ----------
    Hall & Heyde (1980), Martingale Limit Theory and Its Application. doi:10.1016/C2013-0-10818-5

    Hall (1992), On the removal of skewness by transformation.
    doi:10.1111/j.2517-6161.1992.tb01876.x

    Luedtke & van der Laan (2016), Statistical inference for the mean outcome under a possibly
    non-unique optimal treatment strategy. doi:10.1214/15-AOS1384

    Examples
    --------
    Ten values of 1/4 have the studentized sum `sqrt(10)`.

    >>> round(studentized_p_value([np.full(10, 0.25)], [0.2], [0.0]), 5)
    0.00078
    """
    scaled = [fold / max(scale, 1e-9) for fold, scale in zip(values, deviations, strict=True)]
    z = np.concatenate(scaled)
    squares = float((z**2).sum())
    known = None if moments is None else _scaled_sums(moments, deviations)
    if known is not None:
        squares = max(squares, known[0])
    if squares == 0:
        return 1.0
    t = float(z.sum()) / math.sqrt(squares)
    # the scaled values of all folds have the same variance
    k = float(np.repeat(skewness, [fold.size for fold in scaled]).mean()) / math.sqrt(z.size)
    if known is not None:
        k = known[1] / squares**1.5
    transformed = t + k * t**2 / 3 + k**2 * t**3 / 27 + k / 6
    # math.erfc avoids an import of scipy.stats, which takes longer than the search
    return 0.5 * math.erfc(min(t, transformed) / math.sqrt(2))


def _scaled_sums(
    moments: Sequence[NullMoments | None], deviations: Sequence[float]
) -> tuple[float, float] | None:
    """Return the sums of the moments of scaled values; None if those of a fold are not known."""
    second = third = 0.0
    for fold, scale in zip(moments, deviations, strict=True):
        if fold is None:
            return None
        second += float(fold[0].sum()) / max(scale, 1e-9) ** 2
        third += float(fold[1].sum()) / max(scale, 1e-9) ** 3
    return second, third


def skewness_of(values: Floats) -> float:
    """Return the skewness of values; 0 if they are equal.

    Examples
    --------
    >>> round(skewness_of(np.array([0.0, 0.0, 0.0, 1.0])), 3)
    1.155
    """
    centred = values - values.mean()
    variance = float((centred**2).mean())
    return float((centred**3).mean()) / variance**1.5 if variance > 1e-12 else 0.0
