"""Joint correction of location and scale on the normal scores of PITs, by group membership.

A row's normal score `z` is replaced by `(z - m) / s`, with `m = m_0 + sum_g m_g` and
`log s = t_0 + sum_g t_g` over the groups `g` that contain it. The model is exact for normal
forecasts whose means and spreads are wrong by group, in the intersections of groups, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special

from evenhand._logarithms import log1mexp
from evenhand._validate import Floats, Mask
from evenhand.forecasters.pit_cells import PitCells
from evenhand.forecasters.steps import Patterns, Step, log_p_values, significant_groups

FARTHEST = 7.0
"""Largest absolute normal score: PITs nearer to 0 or 1 than 1.3e-12 lose precision."""

N_SCORES = 113
"""Number of inner knots: normal scores at steps of 1/8."""

PENALTY = 0.1
"""Precision of normal priors for the terms."""

LEAST_CELL = 1e-8
"""Smallest width of a cell, in normal scores; narrower cells are treated as points."""

WIDEST = 5.0
"""Bound on the absolute terms of the logarithm of the scale."""


@dataclass(frozen=True)
class Rescaling(Step):
    """Joint correction of location and scale.

    Parameters
    ----------
    location, log_scale : ndarray of shape (1 + n_groups,)
        Terms of all rows, then of each group; zeros for a group without a correction.
    """

    location: Floats
    log_scale: Floats

    @property
    def edges(self) -> Floats:
        scores = np.linspace(-FARTHEST, FARTHEST, N_SCORES)
        return np.concatenate(([0.0], special.ndtr(scores), [1.0]))

    def shares(self, members: Mask) -> Floats:
        scores = np.linspace(-FARTHEST, FARTHEST, N_SCORES)
        location = self.location[0] + members @ self.location[1:]
        log_scale = self.log_scale[0] + members @ self.log_scale[1:]
        moved = (scores - location[:, None]) * np.exp(-log_scale)[:, None]
        low = np.zeros((len(members), 1))
        return np.diff(special.ndtr(moved), axis=-1, prepend=low, append=low + 1)

    @property
    def is_corrected(self) -> Mask:
        return np.asarray((self.location[1:] != 0) | (self.log_scale[1:] != 0))

    @property
    def n_parameters(self) -> int:
        return int(np.count_nonzero(self.location) + np.count_nonzero(self.log_scale))

    def to_arrays(self) -> Mapping[str, Any]:
        return {"location": self.location, "log_scale": self.log_scale}


def learn_rescaling(
    pit: PitCells, weight: Floats, masks: Mask, patterns: Patterns, level: float
) -> Rescaling | None:
    """Fit the terms of significant groups; None if no group is significant.

    Groups get a term one after the other, the most significant first, and all terms are fitted
    jointly by penalized maximum likelihood after each.

    Parameters
    ----------
    pit : PitCells of n rows
    weight : ndarray of shape (n,)
        Weights that add up to the effective number of rows.
    masks : ndarray of bool, shape (n, 1 + n_groups)
        Membership; the first column is all rows.
    patterns : Patterns
        Patterns of the other columns.
    level : float
        Probability that calibrated PITs get any term.
    """
    found: Rescaling | None = None
    moved = pit

    def log_p(is_done: Mask) -> Floats:
        return log_p_values(moved.points, weight, masks, is_done)

    for _, is_done in significant_groups(log_p, weight @ masks, level):
        terms = np.zeros((2, masks.shape[1]))
        terms[:, is_done] = _fitted(pit, weight, masks[:, is_done].astype(np.float64))
        found = Rescaling(*terms)
        moved, _ = found.apply(pit, patterns)
    return found


def _fitted(pit: PitCells, weight: Floats, design: Floats) -> Floats:
    """Return the terms of location and log scale, shape (2, n_terms)."""
    n_terms = design.shape[1]
    ends = np.stack([special.ndtri(pit.low), special.ndtri(pit.high)])
    scores = np.clip(ends, -FARTHEST, FARTHEST)
    is_cell = np.diff(scores, axis=0)[0] > LEAST_CELL
    # cells at the ends of a range are open
    scores = np.where(np.isinf(ends) & is_cell, ends, scores)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        location, log_scale = np.split(parameters, 2)
        spread = design @ log_scale
        narrow = np.exp(-spread)
        errors = (scores - design @ location) * narrow
        losses, by_error, by_spread = losses_of_cells(errors, spread, is_cell)
        value = weight @ losses + PENALTY / 2 * parameters @ parameters
        slope = np.concatenate(
            (-design.T @ (weight * by_error * narrow), design.T @ (weight * by_spread))
        )
        return float(value), slope + PENALTY * parameters

    bounds = [(None, None)] * n_terms + [(-WIDEST, WIDEST)] * n_terms
    # the stubs of SciPy lack functions that return their gradient without further arguments
    minimize: Any = optimize.minimize
    found = minimize(loss, np.zeros(2 * n_terms), jac=True, method="L-BFGS-B", bounds=bounds)
    return np.reshape(found.x, (2, n_terms))


def losses_of_cells(errors: Floats, spread: Floats, is_cell: Mask) -> tuple[Floats, ...]:
    """Return negative log likelihoods, and their derivatives by the errors and the log scale.

    The likelihood of a cell is its probability, that of a point its density.

    Parameters
    ----------
    errors : ndarray of shape (2, n)
        Normal scores of the ends of cells, less the location and divided by the scale.
    spread : ndarray of shape (n,)
        Logarithms of the scale.
    is_cell : ndarray of bool, shape (n,)
        Whether the ends differ.
    """
    error = errors[0]
    if not is_cell.any():
        return spread + error**2 / 2, error, 1 - error**2
    low, high = errors[:, is_cell]
    # from the nearer tail, in which the difference of two probabilities keeps its digits
    is_above = np.isfinite(low) & (np.isinf(high) | (low + np.where(np.isinf(high), 0, high) > 0))
    near = special.log_ndtr(np.where(is_above, -low, high))
    far = special.log_ndtr(np.where(is_above, -high, low))
    log_mass = near + log1mexp(np.minimum(far - near, -1e-16))
    density = np.exp(-(errors[:, is_cell] ** 2) / 2 - np.log(2 * np.pi) / 2 - log_mass)
    moment = np.where(density > 0, errors[:, is_cell], 0.0) * density
    error = np.where(is_cell, 0.0, error)
    found = spread + error**2 / 2, error.copy(), 1 - error**2
    for values, of_cells in zip(
        found, (-log_mass, density[0] - density[1], moment[1] - moment[0]), strict=True
    ):
        values[is_cell] = of_cells
    return found
