"""Correction of p-values for the number of tests."""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats


def holm(p_values: Floats) -> Floats:
    """Adjust p-values for the number of tests, step down (Holm, 1979); NaN is no test.

    Examples
    --------
    >>> holm(np.array([0.01, np.nan, 0.04]))
    array([0.02,  nan, 0.04])
    """
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested])]
    adjusted = np.full(p_values.size, np.nan)
    steps = p_values[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
