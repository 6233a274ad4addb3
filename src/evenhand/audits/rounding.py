"""Cells of outcomes that have atoms under a continuous forecast (outcomes: 4.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand._validate import MILD_ATOM, Floats, largest_atom
from evenhand.calibration import rounding_step

OPEN = (-np.inf, np.inf)
"""Bounds of outcomes that are no atoms: no cell is open."""


@dataclass(frozen=True)
class RoundingCells:
    """Cells over whose probability PITs of outcomes are spread.

    Many rows may share an outcome although the forecast is continuous. Their PITs would coincide
    under the true distribution of the unrounded outcome, and that distribution would seem
    miscalibrated. An outcome on a grid has the cell `y -+ step / 2`. The cell of an atom at the
    smallest or largest outcome is open: that outcome stands for all values beyond it.

    Parameters
    ----------
    step : float or None
        Distance of neighbouring grid values, in units of the outcome; None for outcomes off a grid.
    span : tuple of float
        Bounds of the outcome that are atoms, whose cells are open; infinite for an end that is
        none.

    Examples
    --------
    A fifth of the outcomes are censored at 3, the others are continuous:

    >>> y = np.minimum(np.random.default_rng(0).exponential(2.0, size=500), 3.0)
    >>> cells = RoundingCells.of(y)
    >>> cells
    RoundingCells(step=None, span=(-inf, 3.0))
    >>> cells.ends(np.array([1.5, 3.0]))
    (array([1.5, 3. ]), array([1.5, inf]))
    """

    step: float | None = None
    span: tuple[float, float] = OPEN

    @classmethod
    def of(cls, outcomes: Floats) -> RoundingCells:
        """Return the cells of outcomes; no cells unless more than 2% of the rows share one."""
        # on a fine grid spreading would add a random number to each PIT without any benefit
        _, share = largest_atom(outcomes)
        if not _is_atom(share * outcomes.size, outcomes.size):
            return cls()
        low, high = float(outcomes.min()), float(outcomes.max())
        ends = (
            low if _is_atom((outcomes == low).sum(), outcomes.size) else -np.inf,
            high if _is_atom((outcomes == high).sum(), outcomes.size) else np.inf,
        )
        return cls(rounding_step(outcomes), ends)

    @property
    def is_used(self) -> bool:
        """Whether any outcome has a cell."""
        return self.step is not None or self.span != OPEN

    def ends(self, outcomes: Floats) -> tuple[Floats, Floats]:
        """Return both ends of each outcome's cell; the outcome itself where it has no cell."""
        half = 0.0 if self.step is None else self.step / 2
        low = np.where(outcomes <= self.span[0], -np.inf, outcomes - half)
        return low, np.where(outcomes >= self.span[1], np.inf, outcomes + half)

    def rounded(self, values: Floats, origin: float) -> Floats:
        """Return the outcomes that would be observed instead of continuous values.

        Parameters
        ----------
        values : ndarray
            Values of a continuous distribution.
        origin : float
            A value on the grid.
        """
        step = self.step
        on_grid = values if step is None else origin + step * np.round((values - origin) / step)
        return np.clip(on_grid, *self.span)


def spread_step(outcomes: Floats) -> float | None:
    """Return the rounding step over whose cells PITs are spread, or None if they are not."""
    return RoundingCells.of(outcomes).step


def _is_atom(count: float, n: int) -> bool:
    # a single row is more than 2% of fewer than 50 rows
    return count > MILD_ATOM * n and count > 1.5
