"""Test of the hypothesis that a learned group is calibrated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evenhand._validate import Floats


def studentized_p_value(values: Sequence[Floats], deviations: Sequence[float]) -> float:
    """Return the p-value of a one-sided test that all values have conditional expectation 0.

    Parameters
    ----------
    values : sequence of ndarray
        Pattern values of the selected rows, one array per evaluated fold.
    deviations : sequence of float
        Standard deviation of the values of each fold, estimated from earlier rows: folds with
        different patterns then have equal weights per row.

    Returns
    -------
    float
        Upper tail of the standard normal distribution at the studentized sum.

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
    Luedtke & van der Laan (2016) use the same construction. Sums of squares need no assumption on
    the dependence between several draws of one person.

    References
    ----------
    Hall & Heyde (1980), Martingale Limit Theory and Its Application. doi:10.1016/C2013-0-10818-5

    Luedtke & van der Laan (2016), Statistical inference for the mean outcome under a possibly
    non-unique optimal treatment strategy. doi:10.1214/15-AOS1384

    Examples
    --------
    Ten values of 1/4 have the studentized sum `sqrt(10)`.

    >>> round(studentized_p_value([np.full(10, 0.25)], [0.2]), 5)
    0.00078
    """
    scaled = [fold / max(scale, 1e-9) for fold, scale in zip(values, deviations, strict=True)]
    z = np.concatenate(scaled)
    size = math.sqrt(float((z**2).sum()))
    # math.erfc avoids an import of scipy.stats, which takes longer than the search
    return 1.0 if size == 0 else 0.5 * math.erfc(float(z.sum()) / size / math.sqrt(2))
