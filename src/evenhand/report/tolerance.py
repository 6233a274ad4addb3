"""Tolerances that separate important from merely significant errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from evenhand._validate import check_fraction


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
    >>> Tolerance()
    Tolerance(error=0.02, coverage=0.05)
    """

    error: float = 0.02
    coverage: float = 0.05

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
