"""Smallest difference of outcomes."""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats


def smallest_gap(y: Floats) -> float:
    """Return the smallest distance of different outcomes, the step if outcomes are rounded.

    The distance is 0 if all outcomes are equal.
    """
    distinct = np.unique(y)
    return float(np.diff(distinct).min()) if distinct.size > 1 else 0.0
