"""Calibration errors of PITs, overall and per person, with intervals (method: objects)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, Ints, bad_input, check_fraction
from evenhand.calibration.distances import quantile_distance, row_distances
from evenhand.calibration.intervals import error_interval
from evenhand.calibration.pits import BLOCK_ROWS, Pit, PITs, as_pits
from evenhand.calibration.ramps import cell_row_distances, ramp_distance, ramps_at
from evenhand.draws import RandomState, generator

BLOCK_PITS = 1 << 20
"""Number of PITs processed at once, so that temporaries need little memory."""

BLOCK_CELLS = 1 << 14
"""Number of cells of PITs processed at once."""

GRID_POINTS = 200
"""Number of levels at which resampled distributions are compared."""

MOST_RESAMPLED_ROWS = 5000
"""Largest number of rows that are resampled; larger samples are subsampled first. The spread
estimated from so many rows has a smaller error than its quantile from 400 resamples."""


def calibration_error(pit: Pit, p: float = 1.0, sample_weight: ArrayLike | None = None) -> float:
    """Return the exact Wasserstein-`p` distance between the distribution of PITs and uniform.

    For `p = 1` this is the expected calibration error (ECE) over all probability levels,
    `integral_0^1 |P(PIT <= c) - c| dc`: 0 is perfect, 1/2 the largest possible error. PITs of
    outcomes with atoms are averaged over their cells, exactly.

    Parameters
    ----------
    pit : PITs, array-like of shape (n,) or (n, m), or tuple (low, high) of two such arrays
        PITs between 0 and 1, or the ends of their cells: rows are people, columns are draws.
    p : float, default 1
        Order, finite and at least 1.
    sample_weight : array-like of shape (n,), optional
        Weights of the people.

    Returns
    -------
    float
        Between 0 and 1/2 for `p = 1`.

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
    if not 1 <= p < np.inf:
        raise bad_input("p", "be finite and at least 1", p)
    if pits.cells is not None:
        low, high = (end.ravel() for end in pits.cells)
        weights = 1 / low.size if pits.weights is None else _weights_of_draws(pits)
        return float(ramp_distance(low, high, weights, p) ** (1 / p))
    return float(_distance_to_uniform(pits.matrix, pits.weights, p) ** (1 / p))


def _distance_to_uniform(matrix: Floats, weights: Floats | None, p: float) -> float:
    """Return `W_p^p` of all PITs; each draw of a row has the weight of the row."""
    # in blocks: every temporary of a million people by 64 draws takes half a gigabyte
    count = matrix.size
    m = matrix.shape[1]
    values = np.sort(matrix, axis=None) if weights is None else matrix.ravel()
    order = None if weights is None else np.argsort(values, kind="stable")
    total = 0.0
    done = 0.0
    for start in range(0, count, BLOCK_PITS):
        stop = min(start + BLOCK_PITS, count)
        if weights is None or order is None:
            ends = np.arange(start, stop + 1) / count
            total += float(quantile_distance(values[start:stop], ends, p))
            continue
        places = order[start:stop]
        ends = np.concatenate(([done], done + np.cumsum(weights[places // m]) / count))
        total += float(quantile_distance(values[places], ends, p))
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


def error_band(
    pit: Pit,
    confidence: float = 0.95,
    *,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 400,
    random_state: RandomState = None,
) -> tuple[float, float]:
    """Return an approximate confidence interval for the W1 error, by bootstrap of people.

    By the triangle inequality the error of a sample differs from the true error by at most the
    distance between the two distributions of PITs; the bootstrap estimates the quantile of that
    distance. The interval is approximate, and conservative near a true error of 0; certificates
    have bounds that hold at any sample size. With fewer than 30 rows, too few for a bootstrap, the
    interval is that of the certificate from one draw per row, or 0 to 1/2 if there are weights.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,) or (n, m)
        PITs; the draws of a person are resampled together.
    confidence : float, default 0.95
        Two-sided confidence level.
    sample_weight : array-like of shape (n,), optional
        Weights of the people.
    n_resamples : int, default 400
        Number of bootstrap samples.
    random_state : int, generator or None
        Seed.

    Returns
    -------
    low, high : float
        Ends of the interval, between 0 and 1/2.
    """
    return error_with_band(
        pit,
        confidence,
        sample_weight=sample_weight,
        n_resamples=n_resamples,
        random_state=random_state,
    )[1:]


def error_with_band(
    pit: Pit,
    confidence: float = 0.95,
    *,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 400,
    random_state: RandomState = None,
) -> tuple[float, float, float]:
    """Return `calibration_error` and `error_band`, with one sort of the PITs for both.

    The parameters are those of `error_band`.

    Returns
    -------
    error, low, high : float
    """
    random = generator(random_state)
    pits = as_pits(pit, sample_weight=sample_weight, random_state=random)
    check_fraction("confidence", confidence)
    if pits.weights is not None:
        # drop rows of weight 0: a resample of such rows only would have no distribution
        pits = pits.take(pits.weights > 0)
    n = pits.n_samples
    weights = np.ones(n) if pits.weights is None else pits.weights
    error = calibration_error(pits)
    # with fewer effective rows a bootstrap does not represent the sampling variation
    if n_effective(weights) < 30:
        if pits.weights is not None:
            return error, 0.0, 0.5
        # the certificate's interval needs independent PITs; in cells these are drawn, and may
        # differ from their average by more than the interval
        one_draw = pits.matrix[np.arange(n), random.integers(pits.n_draws, size=n)]
        low, high = error_interval(one_draw, confidence)
        return error, min(low, error), max(high, error)
    # the spread shrinks as 1 / sqrt(n), so a random subset of many rows suffices to estimate it
    rows = np.arange(n)
    if n > MOST_RESAMPLED_ROWS:
        rows = random.choice(n, MOST_RESAMPLED_ROWS, replace=False)
    distances = _resampled_distances(pits.take(rows), weights[rows], n_resamples, random)
    margin = float(np.quantile(distances, confidence) * np.sqrt(rows.size / n))
    return error, max(error - margin, 0.0), min(error + margin, 0.5)


def _resampled_distances(
    pits: PITs, weights: Floats, n_resamples: int, random: np.random.Generator
) -> Floats:
    """Return W1 between the distributions of PITs and of bootstrap samples, (n_resamples,)."""
    n = pits.n_samples
    if pits.n_draws == 1 and pits.cells is None and (weights == weights[0]).all():
        # people with one PIT each differ only by its place: resampled counts are multinomial
        in_cell = np.bincount(_grid_cells(pits.matrix[:, 0]), minlength=GRID_POINTS + 1) / n
        counts = random.multinomial(n, in_cell, size=n_resamples)
        below = np.cumsum(counts / n - in_cell, axis=-1)[:, :GRID_POINTS]
        return np.asarray(np.abs(below).mean(axis=-1))
    shares = _grid_cdf(pits)
    w = weights / weights.mean()
    centre = (w[:, None] * shares).mean(axis=0)
    distances = np.empty(n_resamples)
    for start in range(0, n_resamples, 50):  # at most a matrix of 50 resamples by 5,000 rows
        count = min(50, n_resamples - start)
        # a count of drawn row numbers takes an eighth of the time of multinomial counts
        drawn = random.integers(n, size=(count, n)) + n * np.arange(count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n) * w
        resampled = counts @ shares / counts.sum(axis=-1, keepdims=True)
        distances[start : start + count] = np.abs(resampled - centre).mean(axis=-1)
    return distances


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


def _grid_cells(values: Floats) -> Ints:
    """Return, for each PIT, the number of midpoints of a grid below it, 0 to GRID_POINTS."""
    cells = np.ceil(values * GRID_POINTS - 0.5).clip(0, GRID_POINTS)
    return np.asarray(cells, dtype=np.intp)


def _grid_cdf(pits: PITs) -> Floats:
    """Return each person's share of PITs at or below the midpoints of a grid, (n, GRID_POINTS)."""
    if pits.cells is not None:
        levels = (np.arange(GRID_POINTS) + 0.5) / GRID_POINTS
        return ramps_at(levels, *pits.cells) / pits.n_draws
    matrix = pits.matrix
    n, m = matrix.shape
    flat = _grid_cells(matrix) + np.arange(n)[:, None] * (GRID_POINTS + 1)
    counts = np.bincount(flat.ravel(), minlength=n * (GRID_POINTS + 1))
    counts = counts.reshape(n, GRID_POINTS + 1)
    return np.asarray(np.cumsum(counts[:, :GRID_POINTS], axis=-1) / m)
