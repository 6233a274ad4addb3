"""Corrections of PITs that depend on the groups that contain a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from scipy import stats

from evenhand._validate import Floats, Ints, Mask
from evenhand.forecasters.pit_cells import PitCells

FEWEST_ROWS = 30
"""Fewest rows of a group for a correction of its own."""

LEVEL = 0.05
"""Probability that calibrated data give any group, or all rows, a correction."""

N_MOMENTS = 4
"""Number of Legendre polynomials in the test of uniform PITs."""

LEAST_SLOPE = 1e-3
"""Smallest slope of a correction, so that densities stay finite."""

LEAST_LEFT = 1e-6
"""Smallest share of a group's variance that other groups leave, for a test of the group."""


@dataclass(frozen=True)
class Patterns:
    """Distinct patterns of membership and the pattern of each row.

    Parameters
    ----------
    members : ndarray of bool, shape (n_patterns, n_groups)
    which : ndarray of int, shape (n,)
    """

    members: Mask
    which: Ints

    @classmethod
    def of(cls, masks: Mask) -> Patterns:
        """Find the patterns of masks of shape (n, n_groups)."""
        members, which = np.unique(masks, axis=0, return_inverse=True)
        return cls(members, np.asarray(which.reshape(-1), dtype=np.intp))

    def rows(self) -> list[Ints]:
        """Return the rows of each pattern."""
        order = np.argsort(self.which, kind="stable")
        counts = np.bincount(self.which, minlength=len(self.members))
        return list(np.split(order, np.cumsum(counts)[:-1]))


@dataclass(frozen=True)
class Step(ABC):
    """Correction of PITs: an increasing, piecewise linear map for each pattern of membership."""

    @property
    @abstractmethod
    def edges(self) -> Floats:
        """Knots of the maps, increasing from 0 to 1, shape (n_cells + 1,)."""

    @abstractmethod
    def shares(self, members: Mask) -> Floats:
        """Return probabilities of the cells by pattern, shape (n_patterns, n_cells)."""

    @property
    @abstractmethod
    def is_corrected(self) -> Mask:
        """Whether each group has a term of its own, shape (n_groups,)."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Number of estimated parameters."""

    @abstractmethod
    def to_arrays(self) -> Mapping[str, Any]:
        """Return the fields, from which the constructor rebuilds the step."""

    def values(self, members: Mask) -> Floats:
        """Return the map at the edges for membership patterns of shape (n_patterns, n_groups)."""
        width = np.diff(self.edges)
        share = np.maximum(self.shares(members), LEAST_SLOPE * width)
        share /= share.sum(axis=-1, keepdims=True)
        inner = np.cumsum(share, axis=-1)[:, :-1]
        zeros = np.zeros((members.shape[0], 1))
        return np.concatenate((zeros, inner, zeros + 1), axis=-1)

    def apply(self, pit: PitCells, patterns: Patterns) -> tuple[PitCells, Floats]:
        """Return the corrected PITs of rows, and the logarithm of the slope at each."""
        low = np.empty(pit.size)
        high = low if pit.ties is None else np.empty(pit.size)
        log_slope = np.empty(pit.size)
        for rows, values in zip(patterns.rows(), self.values(patterns.members), strict=True):
            moved, log_slope[rows] = pit.take(rows).mapped(self.edges, values)
            low[rows], high[rows] = moved.low, moved.high
        return PitCells(low, high, pit.ties, pit.lost), log_slope


def log_p_values(pit: Floats, weight: Floats, masks: Mask, is_done: Mask | None = None) -> Floats:
    """Return log p-values of Neyman's smooth test of uniform PITs in each group, (n_groups,).

    Groups with a term have p-value 1, and so do groups with fewer than 30 rows. Other groups are
    tested for what the groups with a term leave: sums are taken over the residuals of the group's
    indicator in its regression on their indicators.

    References
    ----------
    Neyman (1937), Skandinavisk Aktuarietidskrift 20, 149-199.
    """
    # orthonormal polynomials on [0, 1], without the constant
    moments = legendre.legvander(2 * pit - 1, N_MOMENTS)[:, 1:]
    moments *= np.sqrt(2 * np.arange(1, N_MOMENTS + 1) + 1)
    found = np.zeros(masks.shape[1])
    done = np.zeros(masks.shape[1], dtype=bool) if is_done is None else is_done
    tested = ~done & (masks.sum(axis=0) >= FEWEST_ROWS)
    groups = masks[:, tested].astype(np.float64)
    fitted = masks[:, done].astype(np.float64)
    gram = fitted.T @ (weight[:, None] * fitted)
    own = groups - fitted @ (np.linalg.pinv(gram) @ (fitted.T @ (weight[:, None] * groups)))
    size = (weight**2) @ groups
    variance = (weight**2) @ own**2
    sums = own.T @ (weight[:, None] * moments)
    # nothing is left of a group that is identical to another or to its complement
    is_new = variance > LEAST_LEFT * size
    statistic = (sums**2).sum(axis=-1) / np.where(is_new, variance, np.inf)
    found[tested] = stats.chi2.logsf(statistic, N_MOMENTS)
    return found


def significant_groups(
    log_p_values: Callable[[Mask], Floats], sizes: Floats, level: float
) -> Iterator[tuple[int, Mask]]:
    """Yield groups that get a term, the most significant first, with the mask of all so far.

    A group and its complement have nearly the same p-value: the smaller of them is farther off, so
    the smallest group is taken whose log p-value is within 10% of the smallest.

    Parameters
    ----------
    log_p_values : callable
        Log p-values of all groups, given the mask of groups that have a term.
    sizes : ndarray of shape (n_groups,)
        Sizes of the groups.
    level : float
        Probability that calibrated data give any group a term.
    """
    is_done = np.zeros(sizes.size, dtype=bool)
    while True:
        found = log_p_values(is_done)
        if found.min() >= np.log(level / found.size):
            return
        group = int(np.where(found <= 0.9 * found.min(), sizes, np.inf).argmin())
        is_done[group] = True
        yield group, is_done
