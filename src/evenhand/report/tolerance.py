"""Tolerances that separate important from merely significant errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import points_in_full
from evenhand._validate import check_fraction

ROUNDING = 1e-9
"""Rounding error of a difference of shares: 0.8 - 0.75 is not above 0.05."""


@dataclass(frozen=True)
class Tolerance:
    """Largest errors of a group that are not important, even if they are significant.

    Parameters
    ----------
    error : float, default 0.02
        Calibration error, 0 to 1; 0.02 is 2 percentage points.
    coverage : float, default 0.05
        Absolute difference between the coverage of an 80% or 90% prediction interval and its level,
        0 to 1.

    Examples
    --------
    >>> Tolerance().is_exceeded([0.03, 0.01, 0.01], {0.8: [0.8, 0.76, 0.7]})
    array([ True, False,  True])
    """

    error: float = 0.02
    coverage: float = 0.05

    def __str__(self) -> str:
        error, coverage = map(points_in_full, (self.error, self.coverage))
        return f"{error} points of error, {coverage} points of coverage"

    @classmethod
    def of(cls, error: float, coverage: float) -> Self:
        """Check the parameters `tolerance` and `coverage_tolerance` of an audit.

        Raises
        ------
        InputError
            If one is not between 0 and 1.
        """
        checked = {
            name: check_fraction(name, value, low_open=False, high_open=False)
            for name, value in (("tolerance", error), ("coverage_tolerance", coverage))
        }
        return cls(*checked.values())

    def is_exceeded(
        self, error: ArrayLike, coverage: Mapping[float, ArrayLike]
    ) -> NDArray[np.bool_]:
        """Return which groups are off by more than the tolerance, by their estimates.

        Parameters
        ----------
        error : array-like of shape (g,)
            Estimated errors; NaN if unknown.
        coverage : dict of float to array-like of shape (g,)
            Estimated coverage of the prediction interval of each level.

        Returns
        -------
        ndarray of bool of shape (g,)
        """
        found = np.asarray(error, dtype=np.float64) > self.error + ROUNDING
        for level, shares in coverage.items():
            gap = np.abs(np.asarray(shares, dtype=np.float64) - level)
            found = found | (gap > self.coverage + ROUNDING)
        return found
