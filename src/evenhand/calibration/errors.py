"""Calibration errors of PITs, overall and per person, with intervals (method: objects)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats
from evenhand.calibration.distances import quantile_distance, row_distances
from evenhand.calibration.pits import BLOCK_ROWS, Pit, PITs, as_pits
from evenhand.calibration.ramps import cell_row_distances, ramp_distance

BLOCK_PITS = 1 << 20
"""Number of PITs processed at once, so that temporaries need little memory."""

BLOCK_CELLS = 1 << 14
"""Number of cells of PITs processed at once."""


def calibration_error(pit: Pit, sample_weight: ArrayLike | None = None) -> float:
    """Return the exact Wasserstein-1 distance between the distribution of PITs and uniform.

    This is the expected calibration error (ECE) over all probability levels,
    `integral_0^1 |P(PIT <= c) - c| dc`: 0 is perfect, 1/2 the largest possible error. PITs of
    outcomes with atoms are averaged over their cells, exactly.

    Parameters
    ----------
    pit : PITs, array-like of shape (n,) or (n, m), or tuple (low, high) of two such arrays
        PITs between 0 and 1, or the ends of their cells: rows are people, columns are draws.
    sample_weight : array-like of shape (n,), optional
        Weights of the people.

    Returns
    -------
    float
        Between 0 and 1/2.

    References
    ----------
    Zhao, Ma & Ermon, ICML 2020, section 2 and the proposition that W1 equals ECE.

    Examples
    --------
    >>> calibration_error([0.5])
    0.25

    An event forecast with probability 0.5 that happens in one of two rows:

    >>> calibration_error(([0.0, 0.5], [0.5, 1.0]))
    0.0
    """
    pits = as_pits(pit, sample_weight=sample_weight)
    if pits.cells is not None:
        low, high = (end.ravel() for end in pits.cells)
        shares = 1 / low.size if pits.weights is None else _weights_of_draws(pits)
        return float(ramp_distance(low, high, shares))
    # in blocks: every temporary of a million people by 64 draws takes half a gigabyte
    matrix, weights = pits.matrix, pits.weights
    count, m = matrix.size, pits.n_draws
    values = np.sort(matrix, axis=None) if weights is None else matrix.ravel()
    order = None if weights is None else np.argsort(values, kind="stable")
    total = 0.0
    done = 0.0
    for start in range(0, count, BLOCK_PITS):
        stop = min(start + BLOCK_PITS, count)
        if weights is None or order is None:
            ends = np.arange(start, stop + 1) / count
            total += float(quantile_distance(values[start:stop], ends))
            continue
        places = order[start:stop]
        ends = np.concatenate(([done], done + np.cumsum(weights[places // m]) / count))
        total += float(quantile_distance(values[places], ends))
        done = ends[-1]
    return total


def pathwise_errors(pit: Pit) -> Floats:
    """Return each person's W1 distance between PITs over draws and uniform, shape (n,), 0 to 1/2.

    The distance is exact. With one column (a deterministic forecaster) it is
    `u^2/2 + (1-u)^2/2`, which is at least 1/4, for a continuous outcome. For outcomes with atoms
    it is the distance of the PITs over draws and positions in the cells (outcomes: 2).

    Examples
    --------
    >>> pathwise_errors([[0.25, 0.75], [0.5, 0.5]])
    array([0.125, 0.25 ])

    The error of an event forecast is half its distance from the outcome:

    >>> low, high = [[0.0], [0.8]], [[0.8], [1.0]]  # probability 0.2; the second event happened
    >>> pathwise_errors((low, high))
    array([0.1, 0.4])
    """
    pits = as_pits(pit)
    if pits.cells is None:
        return np.concatenate([row_distances(low) for low, _ in pits.row_blocks(BLOCK_ROWS)])
    # sums of ramps have many temporaries
    blocks = pits.row_blocks(max(1, BLOCK_CELLS // pits.n_draws))
    return np.concatenate([cell_row_distances(*block) for block in blocks])


def cell_error(pit: Pit, sample_weight: ArrayLike | None = None) -> float:
    """Return the least calibration error of any positions of the PITs in their cells, or less.

    The result is `integral_0^1 dist(c, [A(c), B(c)]) dc` with `A(c) = P(high <= c)` and
    `B(c) = P(low <= c)`: at most `calibration_error`, and equal to it for continuous outcomes
    (outcomes: 2). It is the error of sets that are made of whole cells: 0 for calibrated forecasts,
    but also for many wrong ones, such as biased probabilities of an event.

    Parameters
    ----------
    pit, sample_weight
        As for `calibration_error`.

    Returns
    -------
    float
        Between 0 and 1/2.

    Examples
    --------
    An event with probability 0.5 by the forecast that always happens:

    >>> cells = [0.5, 0.5], [1.0, 1.0]
    >>> cell_error(cells), calibration_error(cells)
    (0.125, 0.25)
    """
    pits = as_pits(pit, sample_weight=sample_weight)
    weights = None if pits.weights is None else _weights_of_draws(pits)
    above = cell_excess(pits.high.ravel(), weights)
    # the mirror image of B(c) - c below 0: P(1 - low < c') - c' above 0
    return above + cell_excess(1 - pits.low.ravel(), weights)


def _weights_of_draws(pits: PITs) -> Floats:
    """Return the share of each draw in the total weight, shape (n m,)."""
    return np.repeat(pits.shares / pits.n_draws, pits.n_draws)


def cell_excess(ends: Floats, weights: Floats | None, margin: float = 0.0) -> float:
    """Return `integral_0^1 (P(ends <= c) - margin - c)_+ dc`; the weights add up to 1."""
    if weights is None:
        left = np.sort(ends)
        share = np.arange(1, ends.size + 1) / ends.size
    else:
        order = np.argsort(ends)
        left = ends[order]
        share = np.cumsum(weights[order])
    share = share - margin
    right = np.append(left[1:], 1.0)
    # the antiderivative of (s - c)_+ is -(s - c)_+^2 / 2
    squares = np.maximum(share - left, 0.0) ** 2 - np.maximum(share - right, 0.0) ** 2
    return float(squares.sum()) / 2


def n_effective(weights: Floats) -> float:
    """Return the effective sample size: the rows of equal weight with the same variance of a mean.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        Weights of at least 0, not all 0.

    References
    ----------
    Kish, Survey Sampling, 1965.

    Examples
    --------
    >>> n_effective(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    return float(weights.sum() ** 2 / (weights**2).sum())
