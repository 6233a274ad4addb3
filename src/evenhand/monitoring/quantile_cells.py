"""Grid of quantiles for the hypothesis that the mean of the worst share is at most a target."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from evenhand._validate import Floats

N_CELLS = 32
"""Number of cells; 64 detect a change hardly earlier."""

LAST_CELL = 0.02
"""Width of the cell next to the target, as a share of the distance from the least value to it."""


class QuantileCells(NamedTuple):
    """Cells of quantiles q from the least value to the target, and the values that test them.

    The largest mean of a group of a share `mass` of people is `CVaR(x) = min over q of
    q + E(x - q)_+ / mass` (Rockafellar & Uryasev 2000). It is at most `target` if and only if there
    is a q with `E z_q <= 1`, `z_q = (x - q)_+ / (mass (target - q))`. In q, `z_q` falls where `x <
    target` and rises where `x > target`. Its minimum over a cell therefore lies at one of the two
    ends, and has a mean of at most 1 if any q of the cell serves.

    Parameters
    ----------
    target : float
        Promised largest mean.
    mass : float
        Share of people.
    left, right : ndarray of shape (n_cells,)
        Ends of the cells.

    Examples
    --------
    The minimum of `z_q` over all cells is 0 for values below, and large for values above:

    >>> cells = QuantileCells.of(target=0.3, mass=0.2, low=-0.5)
    >>> ratios = cells.ratios(np.array([-0.5, 0.3, 0.5]))
    >>> ratios.shape, ratios.min(axis=-1).round(2)
    ((3, 32), array([0.  , 0.  , 6.25]))
    """

    target: float
    mass: float
    left: Floats
    right: Floats

    @classmethod
    def of(cls, target: float, mass: float, low: float) -> Self:
        """Make the cells for values of at least `low`, which is below the target."""
        if mass == 1:
            # the mean of everybody: q = low is the weakest condition
            return cls(target, mass, np.array([low]), np.array([low]))
        # the loss of power by a cell depends on its width over the distance to the target, so the
        # widths fall in geometric steps. A q below `low` serves only if `low` does
        edges = target - (target - low) * np.geomspace(1.0, LAST_CELL, N_CELLS)
        edges[0] = low
        return cls(target, mass, edges, np.append(edges[1:], target))

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.left.size

    def ratios(self, x: Floats) -> Floats:
        """Return the least `z_q` over each cell, shape (..., n_cells)."""
        value = x[..., None]
        at_left = np.maximum(value - self.left, 0.0) / (self.target - self.left)
        # q = target serves if no value exceeds it, and then needs no bet
        distance = self.target - self.right
        above = np.maximum(value - self.right, 0.0)
        at_right = np.divide(above, distance, out=np.zeros_like(above), where=distance > 0)
        least = np.where(value > self.target, at_left, at_right)
        return np.ascontiguousarray(least / self.mass)
