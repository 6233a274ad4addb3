"""Histogram of PITs with a simultaneous band for calibrated forecasts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, bdtrik

from evenhand._validate import Floats
from evenhand.calibration.cells import Pit, as_cells
from evenhand.calibration.errors import ramps_at

HISTOGRAM_CONFIDENCE = 0.95
"""Probability that the band contains all bins of calibrated forecasts."""

HISTOGRAM_BINS = 20
"""Number of bins from 500 rows on."""

BLOCK_ROWS = 20_000
"""Number of rows counted at once, so that temporaries need little memory."""


class PITHistogram(NamedTuple):
    """Histogram of PITs in equal bins of [0, 1], with a 95% band for calibrated forecasts.

    Parameters
    ----------
    share : ndarray of shape (n_bins,)
        Share of the PITs in each bin; the sum is 1. A PIT with a cell counts in each bin by the
        share of the cell that lies in the bin.
    low, high : ndarray of shape (n_bins,)
        Ends of the band, simultaneous for the shares of all bins.
    """

    share: Floats
    low: Floats
    high: Floats

    @property
    def edges(self) -> Floats:
        """Edges of the bins, shape (n_bins + 1,)."""
        return np.arange(self.share.size + 1) / self.share.size

    def table(self) -> pd.DataFrame:
        """Return one row per bin: `start`, `end`, `share`, `low`, `high`."""
        return pd.DataFrame({"start": self.edges[:-1], "end": self.edges[1:]} | self._asdict())


def pit_histogram(
    pit: Pit, sample_weight: ArrayLike | None = None, n_bins: int | None = None
) -> PITHistogram:
    """Return the share of PITs in each bin and the band of all shares under calibration.

    Parameters
    ----------
    pit : Cells, array-like of shape (n,) or (n, m), or tuple (low, high) of two such arrays
        PITs between 0 and 1, or the ends of their cells: rows are people, columns are draws.
    sample_weight : array-like of shape (n,), optional
        Weights of the people; a `Cells` has its own.
    n_bins : int, optional
        Number of equal bins of [0, 1]: by default 20, or 10 for fewer than 500 rows.

    Returns
    -------
    PITHistogram
        A named tuple `(share, low, high)`. The band contains the shares of all bins with 95%
        probability (Bonferroni): exactly for one draw per person, approximately for several draws
        or for weights. For outcomes with atoms it is the band of randomized PITs; the shares are
        averages over these and vary less.

    Raises
    ------
    InputError
        If a PIT is not between 0 and 1, or the weights do not match.

    Examples
    --------
    >>> pit_histogram((np.arange(100) + 0.5) / 100, n_bins=4).table().round(9)
       start   end  share   low  high
    0   0.00  0.25   0.25  0.15  0.36
    1   0.25  0.50   0.25  0.15  0.36
    2   0.50  0.75   0.25  0.15  0.36
    3   0.75  1.00   0.25  0.15  0.36
    """
    cells = as_cells(pit, sample_weight=sample_weight)
    if n_bins is None:
        # each bin needs enough rows
        n_bins = HISTOGRAM_BINS if cells.n_samples >= 500 else HISTOGRAM_BINS // 2
    even = 1 / n_bins
    share = np.zeros(n_bins)
    variance = np.zeros(n_bins)
    weights = cells.shares
    for start, block in zip(
        range(0, cells.n_samples, BLOCK_ROWS), cells.row_blocks(BLOCK_ROWS), strict=True
    ):
        rows = slice(start, start + BLOCK_ROWS)
        # the band is that of drawn PITs, and shares are averages over the cells (outcomes: 4.3)
        drawn = draws_in_bins(cells.drawn[rows], n_bins) / cells.n_draws
        part = drawn if cells.are_points else cells_in_bins(*block, n_bins) / cells.n_draws
        share += weights[rows] @ part
        variance += weights[rows] ** 2 @ (drawn - even) ** 2
    return PITHistogram(share, *histogram_band(variance, cells.n_draws))


def histogram_band(variance: Floats, n_draws: int) -> tuple[Floats, Floats]:
    """Return the band of the shares of all bins under calibration.

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
        Binomial quantiles, simultaneous for all bins by Bonferroni.
    """
    n_bins = variance.size
    even = 1 / n_bins
    # the mean variance over bins does not depend on how the bins are filled: for one draw per
    # person it is the true variance, so the band is exact; for several draws the outer bins vary
    # more, and a bin that varies more than the mean keeps its own variance
    pooled = np.full(n_bins, variance.mean())
    if n_draws > 1:
        pooled = np.maximum(variance, pooled)
    # number of single trials with this variance; at least 1, as even shares have no variance
    n = np.maximum(np.round(even * (1 - even) / np.maximum(pooled, 1e-12)), 1)
    outside = (1 - HISTOGRAM_CONFIDENCE) / (2 * n_bins)
    return (
        _binomial_quantile(outside, n, even) / n,
        _binomial_quantile(1 - outside, n, even) / n,
    )


def _binomial_quantile(level: float, n: Floats, p: float) -> Floats:
    """Return the smallest count whose binomial CDF is at least `level`, without `scipy.stats`."""
    trials = n.astype(np.int_)
    count = np.ceil(bdtrik(level, n, p))
    # the inverse may be rounded up beyond the count where the CDF reaches the level
    one_less = np.maximum(count - 1, 0)
    return np.asarray(np.where(bdtr(one_less, trials, p) >= level, one_less, count))


def draws_in_bins(matrix: Floats, n_bins: int) -> NDArray[np.intp]:
    """Count each person's PITs in each bin, shape (n, n_bins); the last bin includes a PIT of 1.

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


def cells_in_bins(low: Floats, high: Floats, n_bins: int) -> Floats:
    """Return the sum over draws of the share of each cell in each bin, shape (n, n_bins).

    Parameters
    ----------
    low, high : ndarray of shape (n, m)
        Ends of the cells of PITs.
    n_bins : int
        Number of equal bins of [0, 1].

    Examples
    --------
    >>> cells_in_bins(np.array([[0.25, 0.5]]), np.array([[0.75, 0.5]]), 2)
    array([[0.5, 1.5]])
    """
    inner = np.arange(1, n_bins) / n_bins
    # a point at the edge of two bins lies in the upper one, as in `draws_in_bins`
    below = ramps_at(inner, low, high, is_below=True)
    return np.diff(below, axis=-1, prepend=0.0, append=low.shape[1])
