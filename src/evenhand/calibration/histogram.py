"""The histogram of PITs with the band in which calibrated forecasts keep it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from evenhand._validate import Floats

HISTOGRAM_CONFIDENCE = 0.95
FEW_ROWS = 500
FEW_BINS = 10
HISTOGRAM_BINS = 20
BLOCK = 20_000
"""Rows counted at once, so that memory stays that of the PITs."""

TINY = 1e-12


def histogram_bins(n: int) -> int:
    """Bars that so many rows can fill."""
    return FEW_BINS if n < FEW_ROWS else HISTOGRAM_BINS


def pit_histogram(matrix: Floats, share: Floats, n_bins: int) -> tuple[Floats, Floats, Floats]:
    """Share of PITs in each bin, people weighing `share`, and the band that holds them all under calibration."""
    even = 1 / n_bins
    height = np.zeros(n_bins)
    variance = np.zeros(n_bins)
    for start in range(0, len(matrix), BLOCK):
        part = draws_in_bins(matrix[start : start + BLOCK], n_bins) / matrix.shape[1]
        weight = share[start : start + BLOCK]
        height += weight @ part
        variance += weight**2 @ (part - even) ** 2
    return height, *histogram_band(variance, matrix.shape[1])


def histogram_band(variance: Floats, n_draws: int) -> tuple[Floats, Floats]:
    """Band that holds the shares of all bins under calibration, from the variance of each about an even share."""
    n_bins = variance.size
    even = 1 / n_bins
    # the mean over bins does not hang on how the bins are filled: of one draw per person it is the
    # true variance, so the band is exact; of several draws the outer bins vary more, and count with
    # their own
    variance = (
        np.maximum(variance, variance.mean()) if n_draws > 1 else np.full(n_bins, variance.mean())
    )
    # a share varies as that of so many single trials would
    n = np.maximum(np.round(even * (1 - even) / np.maximum(variance, TINY)), 1)
    outside = (1 - HISTOGRAM_CONFIDENCE) / (2 * n_bins)
    return binom.ppf(outside, n, even) / n, binom.isf(outside, n, even) / n


def draws_in_bins(matrix: Floats, n_bins: int) -> NDArray[np.intp]:
    """Each person's number of PITs in each bin, shape (n, n_bins).

    A PIT of 1 counts to the last.
    """
    n = matrix.shape[0]
    cell = (
        np.minimum((matrix * n_bins).astype(np.intp), n_bins - 1) + np.arange(n)[:, None] * n_bins
    )
    return np.bincount(cell.ravel(), minlength=n * n_bins).reshape(n, n_bins)
