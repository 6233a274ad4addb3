"""Options of an audit, checked before any work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import bad_input, check_count, check_finite, check_fraction
from evenhand.report import Tolerance


@dataclass(frozen=True)
class SearchOptions:
    """Options of the group searches; see the parameters of `audit`."""

    masses: Sequence[float]
    learned_masses: Sequence[float]
    min_size: int
    confidence: float
    n_simulations: int
    tolerance: Tolerance
    within: float | None


def check_search(
    masses: ArrayLike,
    learned_masses: ArrayLike,
    min_size: int,
    confidence: float,
    n_simulations: int,
    *,
    tolerance: float,
    coverage_tolerance: float,
    within: float | None,
) -> SearchOptions:
    """Check options before any work, so that a search can later fail only for lack of rows."""
    return SearchOptions(
        masses=_shares("masses", masses),
        learned_masses=_shares("learned_masses", learned_masses) if np.size(learned_masses) else [],
        min_size=check_count("min_size", min_size, least=2),
        confidence=check_fraction("confidence", confidence),
        n_simulations=check_count("n_simulations", n_simulations, least=2),
        tolerance=Tolerance.of(tolerance, coverage_tolerance),
        within=None if within is None else check_error("within", within),
    )


def check_error(name: str, value: float) -> float:
    """Return a calibration error as a float if it lies between 0 and 1/2, the largest error."""
    error = check_fraction(name, value)
    if error > 0.5:
        rule = "be at most 0.5, the largest calibration error"
        raise bad_input(name, rule, value, "give a smaller error, such as 0.03")
    return error


def _shares(name: str, values: ArrayLike) -> list[float]:
    shares = check_finite(name, np.atleast_1d(np.asarray(values)))
    return [
        check_fraction(f"{name}[{i}]", share, high_open=False) for i, share in enumerate(shares)
    ]
