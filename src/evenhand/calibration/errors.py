"""Calibration errors of PITs: on average and for each person, with bands (method: objects)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, bad_input, check_fraction
from evenhand.calibration.distances import quantile_distance, row_distances
from evenhand.calibration.intervals import error_interval
from evenhand.calibration.pits import BLOCK_ROWS, PITs, as_pits
from evenhand.draws import RandomState, generator

BLOCK_PITS = 1 << 20
"""PITs worked on at once, so that memory stays that of the PITs."""

GRID_POINTS = 200
"""Levels at which resampled distributions are compared."""

MOST_RESAMPLED_ROWS = 20_000


def calibration_error(
    pit: ArrayLike | PITs, p: float = 1.0, sample_weight: ArrayLike | None = None
) -> float:
    """Exact Wasserstein-`p` distance between the distribution of PITs and the uniform one.

    For `p = 1` it is the expected calibration error over all probability levels,
    `integral_0^1 |P(PIT <= c) - c| dc`: 0 is perfect, 1/2 the worst.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns draws.
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
    """
    pits = as_pits(pit, sample_weight=sample_weight)
    if not 1 <= p < np.inf:
        raise bad_input("p", "be finite and at least 1", p)
    return float(_distance_to_uniform(pits.matrix, pits.weights, p) ** (1 / p))


def _distance_to_uniform(matrix: Floats, weights: Floats | None, p: float) -> float:
    """`W_p^p` of all PITs, a row's weight for each of its draws; one sort, all else in blocks."""
    # in blocks, because a million people by 64 draws are half a gigabyte for each temporary
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


def pathwise_errors(pit: ArrayLike | PITs) -> Floats:
    """Exact W1 of each person's PITs over draws to uniform, shape (n,), between 0 and 1/2.

    With one column (a deterministic forecaster) it is `u^2/2 + (1-u)^2/2`, never below 1/4.

    Examples
    --------
    >>> pathwise_errors([[0.25, 0.75], [0.5, 0.5]])
    array([0.125, 0.25 ])
    """
    matrix = as_pits(pit).matrix
    starts = range(0, matrix.shape[0], BLOCK_ROWS)
    return np.concatenate([row_distances(matrix[start : start + BLOCK_ROWS]) for start in starts])


def error_band(
    pit: ArrayLike | PITs,
    confidence: float = 0.95,
    *,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 400,
    random_state: RandomState = None,
) -> tuple[float, float]:
    """Approximate confidence band of the W1 calibration error, from resampled people.

    By the triangle inequality the error of a sample differs from the true one by at most the
    distance between the two distributions of PITs; the bootstrap estimates that distance's
    quantile. The band is a little wide near a true error of 0 and approximate; for a bound that
    holds at any n use a certificate. Fewer than 30 rows are too few for a bootstrap: then the band
    is the certificate's, from one draw of each row, or with weights 0 and 1/2.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,) or (n, m)
        PITs; rows are resampled whole.
    confidence : float, default 0.95
        Two-sided level.
    sample_weight : array-like of shape (n,), optional
        Weights of the people.
    n_resamples : int, default 400
        Bootstrap samples.
    random_state : int, generator or None
        Seed.

    Returns
    -------
    low, high : float
        Within 0 and 1/2.
    """
    return error_with_band(
        pit,
        confidence,
        sample_weight=sample_weight,
        n_resamples=n_resamples,
        random_state=random_state,
    )[1:]


def error_with_band(
    pit: ArrayLike | PITs,
    confidence: float = 0.95,
    *,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 400,
    random_state: RandomState = None,
) -> tuple[float, float, float]:
    """Return `calibration_error` with its `error_band`, by one sort of the PITs for both.

    Parameters are those of `error_band`.

    Returns
    -------
    error, low, high : float
    """
    pits = as_pits(pit, sample_weight=sample_weight)
    check_fraction("confidence", confidence)
    if pits.weights is not None:
        # a row of weight 0 is no row: resamples of such rows alone would have no distribution
        pits = pits.take(pits.weights > 0)
    matrix = pits.matrix
    n = pits.n_samples
    weights = np.ones(n) if pits.weights is None else pits.weights
    random = generator(random_state)
    error = calibration_error(pits)
    # a bootstrap of fewer rows, in effect, does not show how a sample varies
    if n_effective(weights) < 30:
        if pits.weights is not None:
            return error, 0.0, 0.5
        # the certificate's interval needs independent PITs
        one_draw = matrix[np.arange(n), random.integers(matrix.shape[1], size=n)]
        return error, *error_interval(one_draw, confidence)
    # of more rows a random subset shows the spread, which shrinks as 1 / sqrt(n)
    rows = np.arange(n)
    if n > MOST_RESAMPLED_ROWS:
        rows = random.choice(n, MOST_RESAMPLED_ROWS, replace=False)
    distances = _resampled_distances(matrix[rows], weights[rows], n_resamples, random)
    margin = float(np.quantile(distances, confidence) * np.sqrt(rows.size / n))
    return error, max(error - margin, 0.0), min(error + margin, 0.5)


def _resampled_distances(
    matrix: Floats, weights: Floats, n_resamples: int, random: np.random.Generator
) -> Floats:
    """W1 between the distribution of PITs and those of bootstrap samples, (n_resamples,)."""
    n = matrix.shape[0]
    shares = _grid_cdf(matrix)
    w = weights / weights.mean()
    centre = (w[:, None] * shares).mean(axis=0)
    distances = np.empty(n_resamples)
    for start in range(0, n_resamples, 50):  # a matrix of 50 resamples by 20,000 rows at a time
        count = min(50, n_resamples - start)
        counts = random.multinomial(n, np.full(n, 1 / n), size=count) * w
        resampled = counts @ shares / counts.sum(axis=-1, keepdims=True)
        distances[start : start + count] = np.abs(resampled - centre).mean(axis=-1)
    return distances


def n_effective(weights: Floats) -> float:
    """Number of rows of equal weight that give a mean the same variance (Kish 1965).

    Parameters
    ----------
    weights : ndarray of shape (n,)
        At least 0, not all 0.

    Examples
    --------
    >>> n_effective(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    return float(weights.sum() ** 2 / (weights**2).sum())


def _grid_cdf(matrix: Floats) -> Floats:
    """Each person's share of PITs at or below midpoints of a grid, shape (n, GRID_POINTS)."""
    n, m = matrix.shape
    cell = np.minimum(np.ceil(matrix * GRID_POINTS - 0.5).clip(0), GRID_POINTS).astype(np.intp)
    flat = cell + np.arange(n)[:, None] * (GRID_POINTS + 1)
    counts = np.bincount(flat.ravel(), minlength=n * (GRID_POINTS + 1))
    counts = counts.reshape(n, GRID_POINTS + 1)
    return np.asarray(np.cumsum(counts[:, :GRID_POINTS], axis=-1) / m)
