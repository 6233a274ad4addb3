"""Grids of rounded outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, check_finite

REPEATED = 0.1
"""Share of repeated outcomes above which few distinct values, or a very fine grid, are a grid."""

LEAST_VALUES = 10
MOST_CELLS = 1e5
"""Least distinct outcomes, and most cells between the smallest and the largest, of a grid without
repeated outcomes: numbers that are not rounded fulfil the rule with a probability below 1e-9."""

TOLERANCE = 1e-3
"""Largest deviation from the grid in steps; errors of printed and converted numbers are smaller."""

CLIPPED = 0.01
"""Share of outcomes above which the end of a grid is a bound of the outcome."""


@dataclass(frozen=True)
class Grid:
    """Grid that rounded outcomes lie on.

    Parameters
    ----------
    step : float
        Distance of neighbouring grid values, in units of the outcome.
    span : tuple of float
        Bounds of the outcome, whose rounding cells are open; infinite without a bound.

    Examples
    --------
    Counts have a bound at 0, where outcomes pile up:

    >>> Grid.of(np.random.default_rng(0).poisson(2.0, size=1000))
    Grid(step=1.0, span=(0.0, inf))
    """

    step: float
    span: tuple[float, float] = (-np.inf, np.inf)

    @classmethod
    def of(cls, y: ArrayLike) -> Grid | None:
        """Return the grid of outcomes; None if they look continuous.

        An end is a bound if over 1% of the outcomes, and at least three, are equal to it. A cell
        that is open at any other extreme outcome would add the probability of the whole tail to it,
        so that the score on a fine grid would not be the log score.
        """
        step = rounding_step(y)
        if step is None:
            return None
        outcomes = np.asarray(y, dtype=np.float64)
        low, high = float(outcomes.min()), float(outcomes.max())
        return cls(
            step,
            (
                low if _is_clipped(outcomes, low) else -np.inf,
                high if _is_clipped(outcomes, high) else np.inf,
            ),
        )


def _is_clipped(outcomes: Floats, end: float) -> bool:
    count = int((outcomes == end).sum())
    # in a fold of few rows, two rows may share an extreme outcome by chance
    return count > max(2, CLIPPED * outcomes.size)


def rounding_step(y: ArrayLike) -> float | None:
    """Return the step of the grid of rounded outcomes; None if the outcomes look continuous.

    The step is the largest number of which all differences of outcomes are multiples. Outcomes are
    considered rounded if the step is the smallest difference and at least a tenth of the outcomes
    are repeated, or if there are at least 10 distinct ones and the step is at least 1e-5 of their
    range. The second rule does not depend on the number of rows, so that folds and whole tables
    have the same grid, unless all outcomes of a fold are multiples of a larger step.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcomes.

    Returns
    -------
    float or None
        Step in units of `y`, to ten digits.

    Examples
    --------
    >>> rounding_step([0.1, 0.3, 0.3, 0.5])
    0.2
    >>> rounding_step([1499, 1795, 1595, 1849, 3295, 3695, 1720, 1995, 2225, 2575])
    1.0
    """
    outcomes = check_finite("y", y)
    values = np.unique(outcomes)
    # 0.3 and 0.1 + 0.2 are the same grid value
    values = values[np.diff(values, prepend=-np.inf) > 1e-9 * (values[-1] - values[0])]
    if values.size < 2:
        return None
    gaps = np.diff(values)
    reach = float(values[-1] - values[0])
    step = float(gaps.min())
    if values.size > (1 - REPEATED) * outcomes.size or not _divides(step, gaps):
        step = _common_divisor(gaps, reach / MOST_CELLS) if values.size >= LEAST_VALUES else 0.0
    if step == 0:
        return None
    # the smallest gap has a rounding error of its own: divide the whole range instead
    step = reach / float(np.round(gaps / step).sum())
    return float(np.format_float_positional(step, precision=10, fractional=False))


def _divides(step: float, gaps: Floats) -> bool:
    return bool(np.abs(gaps - step * np.round(gaps / step)).max() <= TOLERANCE * step)


def _common_divisor(gaps: Floats, least: float) -> float:
    """Return the largest step that divides all gaps (Euclid); 0 if it is smaller than `least`."""
    step = float(gaps.min())
    while step >= least:
        rest = np.abs(gaps - step * np.round(gaps / step))
        rest = rest[rest > TOLERANCE * step]
        if not rest.size:
            return step
        # a remainder is at most half a step: the loop takes at most 17 rounds
        step = float(rest.min())
    return 0.0
