"""Corrections of p-values for the number of tests."""

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


def benjamini_yekutieli(p_values: Floats) -> Floats:
    """Adjust p-values for the false discovery rate, for any dependence between the tests.

    NaN is no test.

    References
    ----------
    Benjamini & Yekutieli, Annals of Statistics 29(4), 2001.

    Examples
    --------
    >>> benjamini_yekutieli(np.array([0.01, np.nan, 0.04]))
    array([0.03,  nan, 0.06])
    """
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested])]
    adjusted = np.full(p_values.size, np.nan)
    ranks = np.arange(1, order.size + 1)
    steps = p_values[order] * order.size * (1 / ranks).sum() / ranks
    adjusted[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return adjusted
