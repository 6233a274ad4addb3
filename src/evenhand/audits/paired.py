"""Simultaneous intervals for paired changes of group statistics.

Each statistic is the distance of a mean to a target: `T = mean_k |E profile_k - target_k|`. The
profile of an error is the share of PITs at or below each edge, its target the edge itself, so that
`T` is the W1 distance to the uniform distribution; the profile of a coverage is one number, covered
or not, and its target the level; that of a bias is the residual, and its target 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand._validate import Floats, Mask
from evenhand.calibration import n_effective

CERTAIN = 3.0
"""Standard errors beyond which the sign of a mean minus its target is taken as known."""

LEAST_ROWS = 50
"""Effective rows below which a change has no interval: it is asymptotic."""


@dataclass(frozen=True)
class Profile:
    """Values of each row whose means are compared with a target.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        Profile of each row.
    target : ndarray of shape (k,) or None
        Target of the means; None for the mean itself, of profiles of one number.
    weight : ndarray of shape (n,)
        Weights of the rows.
    is_share : bool
        Whether the values are shares of one event, between 0 and 1.
    """

    values: Floats
    target: Floats | None
    weight: Floats
    is_share: bool = False


@dataclass(frozen=True)
class Change:
    """Change of a statistic between two audits of the same rows, with its interval."""

    first: float
    second: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """Second minus first."""
        return self.second - self.first


def paired_changes(
    first: Profile, second: Profile, masks: Sequence[Mask], n_intervals: int, confidence: float
) -> list[Change]:
    """Return the change of a statistic in each group, with Bonferroni intervals.

    Parameters
    ----------
    first, second : Profile
        The same rows in both audits, in one order.
    masks : sequence of ndarray of bool, shape (n,)
        Groups.
    n_intervals : int
        Number of intervals that contain the truth together, over all groups and statistics.
    confidence : float
        Confidence with which they do.

    Notes
    -----
    Where a mean differs clearly from its target, the statistic is linear in the means, and its
    change is a mean of differences between rows: its interval is that of a paired t-test. The sign
    of a mean near its target is not known: the interval uses the least favourable one, and is wider
    by the largest bias that the statistic can have there, the mean absolute error of the mean. All
    of this is asymptotic in the rows of a group. Shares get pseudo-rows with changes of 1 and -1,
    as in the intervals of Bonett and Price (2012): a share that changes in no row has an interval.
    """
    tail = (1 - confidence) / (2 * n_intervals)
    return [_change(first, second, np.flatnonzero(mask), tail) for mask in masks]


def paired_mean(first: Floats, second: Floats, weight: Floats, confidence: float) -> Change:
    """Return the change of a weighted mean with its pointwise paired interval."""
    share = weight / weight.sum()
    change = second - first
    mean = float(share @ change)
    error = np.sqrt(float((share**2) @ (change - mean) ** 2))
    half = -float(special.ndtri((1 - confidence) / 2)) * error
    return Change(float(share @ first), float(share @ second), mean - half, mean + half)


def _change(first: Profile, second: Profile, rows: NDArray[np.intp], tail: float) -> Change:
    one = _side(first, rows)
    other = _side(second, rows)
    n = min(one.n_effective, other.n_effective)
    # reciprocals of equal shares may be a rounding error below their number
    if n < LEAST_ROWS - 1e-6:
        return Change(one.distance, other.distance, np.nan, np.nan)
    # the least favourable signs of means near their targets
    variance = max(float(((v - u) ** 2).sum()) for u in one.influences for v in other.influences)
    t = -float(special.stdtrit(n - 1, tail))
    if first.is_share:
        variance = (variance * n**2 + t**2 / 2) / (n + t**2 / 2) ** 2
    half = t * float(np.sqrt(variance))
    change = other.distance - one.distance
    low, high = change - half - other.bias, change + half + one.bias
    if first.is_share:
        low, high = max(low, -1.0), min(high, 1.0)
    return Change(one.distance, other.distance, low, high)


@dataclass(frozen=True)
class _Side:
    """Statistic of a group, its influence functions and the bound of its bias."""

    distance: float
    influences: tuple[Floats, ...]
    bias: float
    n_effective: float


def _side(profile: Profile, rows: NDArray[np.intp]) -> _Side:
    values = profile.values[rows]
    weight = profile.weight[rows]
    share = weight / weight.sum()
    k = values.shape[-1]
    mean = share @ values
    centred = share[:, None] * (values - mean) / k
    rows_of_weight = n_effective(weight)
    if profile.target is None:
        return _Side(float(mean[0]), (centred[:, 0],), 0.0, rows_of_weight)
    off = mean - profile.target
    error = k * np.sqrt((centred**2).sum(axis=0))
    is_certain = np.abs(off) >= CERTAIN * error
    sign = np.where(off < 0, -1.0, 1.0)
    certain = centred @ np.where(is_certain, sign, 0.0)
    uncertain = centred @ np.where(is_certain, 0.0, sign)
    influences = (certain + uncertain, certain - uncertain)
    bias = float(np.where(is_certain, 0.0, error).mean() * np.sqrt(2 / np.pi))
    return _Side(float(np.abs(off).mean()), influences, bias, rows_of_weight)
