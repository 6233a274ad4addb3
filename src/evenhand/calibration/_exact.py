"""Sums that do not depend on the order of their terms: floats as whole numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._validate import Floats

Wholes = NDArray[Any]
"""Python integers of any size."""

SMALLEST = 1074
"""Every finite float is a whole multiple of 2^-1074."""


def exact(values: ArrayLike) -> Wholes:
    """Return finite floats as whole multiples of 2^-1074, shape as given.

    These add up without rounding.

    Examples
    --------
    >>> forth = exact([1e16])[0] + exact([1.0])[0] + exact([-1e16])[0]
    >>> float(rounded(forth)), 1e16 + 1.0 - 1e16
    (1.0, 0.0)
    """
    return np.asarray(_wholes(np.asarray(values, dtype=np.float64)), dtype=object)


def rounded(wholes: Any) -> Floats:
    """Return sums of what `exact` returned as the nearest floats."""
    return np.asarray(_floats(np.asarray(wholes, dtype=object)), dtype=np.float64)


def _whole(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator << (SMALLEST + 1 - denominator.bit_length())


def _float(whole: int) -> float:
    return float(Fraction(whole, 1 << SMALLEST))


_wholes = np.frompyfunc(_whole, 1, 1)
_floats = np.frompyfunc(_float, 1, 1)
