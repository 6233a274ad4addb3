"""The histogram of PITs with the band in which calibrated forecasts keep it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from evenhand._validate import Floats

HISTOGRAM_CONFIDENCE = 0.95
"""Probability that the band holds all bins of calibrated forecasts."""

HISTOGRAM_BINS = 20
"""Bins of 500 rows and more."""

BLOCK_ROWS = 20_000
"""Rows counted at once, so that memory stays that of the PITs."""


def histogram_bins(n: int) -> int:
    """Return the number of bins that so many rows can fill.

    Examples
    --------
    >>> histogram_bins(100), histogram_bins(1000)
    (10, 20)
    """
    return HISTOGRAM_BINS if n >= 500 else HISTOGRAM_BINS // 2


def pit_histogram(matrix: Floats, share: Floats, n_bins: int) -> tuple[Floats, Floats, Floats]:
    """Return the share of PITs in each bin and the band that holds all shares under calibration.

    Parameters
    ----------
    matrix : ndarray of shape (n, m)
        PITs: rows are people, columns draws.
    share : ndarray of shape (n,)
        Share of each person in the whole, from their weights; the sum is 1.
    n_bins : int
        Equal bins of [0, 1].

    Returns
    -------
    height, low, high : ndarray of shape (n_bins,)
        The band holds with 95% probability, all bins at once.

    Examples
    --------
    >>> pit = (np.arange(100)[:, None] + 0.5) / 100
    >>> pit_histogram(pit, np.full(100, 0.01), 4)[0].round(9)
    array([0.25, 0.25, 0.25, 0.25])
    """
    even = 1 / n_bins
    height = np.zeros(n_bins)
    variance = np.zeros(n_bins)
    for start in range(0, len(matrix), BLOCK_ROWS):
        part = draws_in_bins(matrix[start : start + BLOCK_ROWS], n_bins) / matrix.shape[1]
        weight = share[start : start + BLOCK_ROWS]
        height += weight @ part
        variance += weight**2 @ (part - even) ** 2
    return height, *histogram_band(variance, matrix.shape[1])


def histogram_band(variance: Floats, n_draws: int) -> tuple[Floats, Floats]:
    """Return the band that holds the shares of all bins under calibration.

    Parameters
    ----------
    variance : ndarray of shape (n_bins,)
        Sum over people of the squared deviation of their share in each bin from an even one, times
        their squared share in the whole.
    n_draws : int
        Draws per person.

    Returns
    -------
    low, high : ndarray of shape (n_bins,)
        Binomial, all bins at once by Bonferroni.
    """
    n_bins = variance.size
    even = 1 / n_bins
    # the mean over bins does not depend on how the bins are filled: of one draw per person it is
    # the true variance, so the band is exact; of several draws the outer bins vary more, and count
    # with their own
    pooled = np.full(n_bins, variance.mean())
    if n_draws > 1:
        pooled = np.maximum(variance, pooled)
    # a share varies as that of so many single trials would; at least one, where all shares are even
    n = np.maximum(np.round(even * (1 - even) / np.maximum(pooled, 1e-12)), 1)
    outside = (1 - HISTOGRAM_CONFIDENCE) / (2 * n_bins)
    return binom.ppf(outside, n, even) / n, binom.isf(outside, n, even) / n


def draws_in_bins(matrix: Floats, n_bins: int) -> NDArray[np.intp]:
    """Each person's number of PITs in each bin, shape (n, n_bins); the last bin holds a PIT of 1.

    Examples
    --------
    >>> draws_in_bins(np.array([[0.1, 0.6], [0.9, 1.0]]), 2)
    array([[1, 1],
           [0, 2]])
    """
    n = matrix.shape[0]
    cell = np.minimum((matrix * n_bins).astype(np.intp), n_bins - 1)
    cell += np.arange(n)[:, None] * n_bins
    return np.bincount(cell.ravel(), minlength=n * n_bins).reshape(n, n_bins)
