"""How far PITs are from uniform: on average, for each person, with bands (method: objects)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, bad_input, check_fraction
from evenhand.calibration.bands import error_interval
from evenhand.calibration.pits import PITs, as_pits
from evenhand.draws import RandomState, generator

BAND_GRID = 200
BAND_ROWS = 20_000
LEAST_ROWS = 30
"""Fewest rows, less if weights differ, from which a bootstrap tells how a sample varies."""

BLOCK = 10_000
BLOCK_PITS = 1 << 20
"""Rows, and PITs, worked on at once, so that memory stays that of the PITs."""


def calibration_error(
    pit: ArrayLike | PITs, p: float = 1.0, sample_weight: ArrayLike | None = None
) -> float:
    """Exact Wasserstein-`p` distance between the law of PITs and the uniform law.

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
    """`W_p^p`; one sort, all else in blocks.

    A million people by 64 draws are half a gigabyte each time.
    """
    count = matrix.size
    m = matrix.shape[1]
    total = 0.0
    done = 0.0
    values = np.sort(matrix, axis=None) if weights is None else matrix.ravel()
    order = None if weights is None else np.argsort(values, kind="stable")
    for start in range(0, count, BLOCK_PITS):
        stop = min(start + BLOCK_PITS, count)
        if weights is None or order is None:
            total += float(
                quantile_distance(values[start:stop], np.arange(start, stop + 1) / count, p)
            )
            continue
        places = order[start:stop]
        ends = np.concatenate(([done], done + np.cumsum(weights[places // m]) / count))
        total += float(quantile_distance(values[places], ends, p))
        done = ends[-1]
    return total


def pathwise_errors(pit: ArrayLike | PITs) -> Floats:
    """Exact W1 of each person's PITs over draws to the uniform law, shape (n,), between 0 and 1/2.

    With one column (a deterministic forecaster) it is `u^2/2 + (1-u)^2/2`, never below 1/4.

    Examples
    --------
    >>> pathwise_errors([[0.25, 0.75], [0.5, 0.5]])
    array([0.125, 0.25 ])
    """
    matrix = as_pits(pit).matrix
    ends = np.linspace(0.0, 1.0, matrix.shape[1] + 1)
    blocks = (matrix[start : start + BLOCK] for start in range(0, matrix.shape[0], BLOCK))
    return np.concatenate(
        [quantile_distance(np.sort(block, axis=-1), ends, 1.0) for block in blocks]
    )


def quantile_distance(values: Floats, ends: Floats, p: float) -> Floats:
    """Sum over cells of the integral of `|value - t|^p`, in closed form.

    Cells run between `ends`.
    """

    def antiderivative(s: Floats) -> Floats:
        return np.asarray(np.sign(s) * np.abs(s) ** (p + 1) / (p + 1))

    return np.asarray(
        (antiderivative(ends[1:] - values) - antiderivative(ends[:-1] - values)).sum(axis=-1)
    )


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
    distance between the two laws of PITs; the bootstrap estimates that distance's quantile. The
    band is a little wide near a true error of 0 and approximate; for a bound that holds at any n
    use a certificate. Of fewer than 30 rows a bootstrap knows too little: then the band is the
    certificate's, from one draw of each row, or with weights 0 and 1/2.

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
    """Return `calibration_error` and its `error_band`.

    The band needs the error, and a sort of all PITs is slow.
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
    if n_effective(weights) < LEAST_ROWS:
        if pits.weights is not None:
            return error, 0.0, 0.5
        one_draw = matrix[np.arange(n), random.integers(matrix.shape[1], size=n)]
        return error, *error_interval(one_draw, confidence)
    # beyond so many rows a subset tells the spread, which shrinks as 1 / sqrt(n)
    rows = np.arange(n) if n <= BAND_ROWS else random.choice(n, BAND_ROWS, replace=False)
    shares = _grid_cdf(matrix[rows])
    w = weights[rows] / weights[rows].mean()
    centre = (w[:, None] * shares).mean(axis=0)
    distances = np.empty(n_resamples)
    for start in range(0, n_resamples, 50):
        count = min(50, n_resamples - start)
        counts = random.multinomial(rows.size, np.full(rows.size, 1 / rows.size), size=count) * w
        resampled = counts @ shares / counts.sum(axis=-1, keepdims=True)
        distances[start : start + count] = np.abs(resampled - centre).mean(axis=-1)
    margin = float(np.quantile(distances, confidence) * np.sqrt(rows.size / n))
    return error, max(error - margin, 0.0), min(error + margin, 0.5)


def n_effective(weights: Floats) -> float:
    """Rows of equal weight that would say as much about a mean (Kish)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def _grid_cdf(matrix: Floats) -> Floats:
    """Each person's share of PITs at or below the midpoints of an even grid, shape (n, BAND_GRID)."""
    n, m = matrix.shape
    cell = np.minimum(np.ceil(matrix * BAND_GRID - 0.5).clip(0), BAND_GRID).astype(np.intp)
    flat = cell + np.arange(n)[:, None] * (BAND_GRID + 1)
    counts = np.bincount(flat.ravel(), minlength=n * (BAND_GRID + 1)).reshape(n, BAND_GRID + 1)
    return np.asarray(np.cumsum(counts[:, :BAND_GRID], axis=-1) / m)
