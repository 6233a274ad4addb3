"""Statistics of weighted rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand._validate import Floats


def weighted_quantiles(values: Floats, weight: Floats, levels: Sequence[float]) -> Floats:
    """Return quantiles of weighted values, interpolated between the midpoints of their weights."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order])
    middles = (share - 0.5 * weight[order]) / share[-1]
    return np.asarray(np.interp(levels, middles, values[order]))
