"""PITs of outcomes with or without atoms, as inputs of recalibration (outcomes: 2, 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import quantile_distance

LEAST_WIDTH = 1e-9
"""Width below which a cell is treated as a point, as sums of its density would lose digits."""

LEAST_RISK = 1e-12
"""Share of rows at risk below which there is none but for rounding errors."""


@dataclass(frozen=True, eq=False)
class PitCells:
    """PITs of n rows: points, or cells `[G(y-), G(y)]` of outcomes with atoms.

    Maps are estimated from the likelihood of the cells, and errors average over the position `V`
    within the cells. Only tests use one `V` per row (outcomes: 2).

    Parameters
    ----------
    low, high : ndarray of shape (n,)
        Ends of the cells, between 0 and 1; equal for continuous outcomes.
    ties : ndarray of shape (n,), optional
        Position `V` of each row, between 0 and 1; None if all cells are points.
    lost : ndarray of bool, shape (n,), optional
        Rows whose outcome is not known, only that it is beyond a time: their cells reach to 1.
        Errors are those of the Kaplan-Meier estimate, as an average over `V` dilutes them
        (outcomes: 5). None if there are no such rows.

    Examples
    --------
    Events of probability 0.5, all of which happen:

    >>> cells = PitCells(np.array([0.5, 0.5]), np.array([1.0, 1.0]), np.array([0.2, 0.6]))
    >>> cells.points, cells.error(np.ones(2))
    (array([0.6, 0.8]), 0.25)
    """

    low: Floats
    high: Floats
    ties: Floats | None = None
    lost: Mask | None = None

    @classmethod
    def spread(cls, low: Floats, high: Floats, lost: Mask | None = None) -> Self:
        """Return cells with fixed positions V, so that fits to the same rows agree."""
        ties = np.random.default_rng(0).uniform(size=low.size)
        if lost is not None:
            # a cell of a row that is lost is never a point, which would be a known outcome
            low = np.where(lost, np.minimum(low, 1 - 2 * LEAST_WIDTH), low)
        return cls(low, np.maximum(low, high), ties, lost)

    @classmethod
    def of(cls, pit: Floats | PitCells) -> PitCells:
        """Return PITs of continuous outcomes as points; cells are returned unchanged."""
        return pit if isinstance(pit, PitCells) else cls(pit, pit)

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.low.size)

    @property
    def points(self) -> Floats:
        """Randomized PITs, shape (n,)."""
        if self.ties is None:
            return self.low
        return np.clip(self.low + self.ties * (self.high - self.low), self.low, self.high)

    @property
    def is_wide(self) -> Mask:
        """Whether each row has a cell that is not a point."""
        return self.high - self.low > LEAST_WIDTH

    def take(self, rows: Any) -> Self:
        """Return some rows."""
        low = self.low[rows]
        if self.ties is None:
            return type(self)(low, low)
        lost = None if self.lost is None else self.lost[rows]
        return type(self)(low, self.high[rows], self.ties[rows], lost)

    def mapped(
        self, edges: Floats, values: Floats, side: Literal["left", "right"] = "right"
    ) -> tuple[PitCells, Floats]:
        """Apply an increasing, piecewise linear map.

        Parameters
        ----------
        edges, values : ndarray of shape (k,)
            Knots of the map, increasing from 0 to 1.
        side : {"left", "right"}
            Segment whose slope counts for a point at a knot.

        Returns
        -------
        cells : PitCells
        log_slope : ndarray of shape (n,)
            Logarithm of the map's slope at each point, and of its mean slope over each cell: the
            gain in log score.
        """
        low = np.interp(self.low, edges, values)
        at = np.searchsorted(edges, self.low, side=side) - 1
        slopes = np.diff(values) / np.diff(edges)
        log_slope = np.log(slopes[np.clip(at, 0, slopes.size - 1)])
        if self.ties is None:
            return PitCells(low, low), log_slope
        high = np.interp(self.high, edges, values)
        wide = self.is_wide & (high > low)
        ratio = (high - low)[wide] / (self.high - self.low)[wide]
        log_slope[wide] = np.log(ratio)
        return PitCells(low, high, self.ties, self.lost), log_slope

    def mapped_by(
        self,
        which: Ints,
        edges: Floats,
        values: Floats,
        side: Literal["left", "right"] = "right",
    ) -> tuple[PitCells, Floats]:
        """Apply one of several maps to each row.

        Parameters
        ----------
        which : ndarray of int, shape (n,)
            Number of the map of each row.
        edges, values : ndarray of shape (n_maps, k)
            Knots of the maps.
        side : {"left", "right"}
            As for `mapped`, which also describes what is returned.
        """
        low = np.empty(self.size)
        high = low if self.ties is None else np.empty(self.size)
        log_slope = np.empty(self.size)
        ends = np.cumsum(np.bincount(which, minlength=len(values)))[:-1]
        for number, rows in enumerate(np.split(np.argsort(which, kind="stable"), ends)):
            mapped, log_slope[rows] = self.take(rows).mapped(edges[number], values[number], side)
            low[rows], high[rows] = mapped.low, mapped.high
        return PitCells(low, high, self.ties, self.lost), log_slope

    def error(self, weight: Floats) -> float:
        """Return the W1 distance of the weighted PITs, averaged over V, from uniform.

        With rows that are lost, it is the distance of their Kaplan-Meier estimate.
        """
        if self.size == 0:
            return np.nan
        if self.ties is None:
            order = np.argsort(self.low)
            ends = np.concatenate(([0.0], np.cumsum(weight[order]) / weight.sum()))
            return float(quantile_distance(self.low[order], ends))
        at, left, right = self.distribution(weight)
        # the difference to uniform is linear between neighboring ends of cells
        first = right[:-1] - at[:-1]
        last = left[1:] - at[1:]
        size = np.abs(first) + np.abs(last)
        crossing = (first**2 + last**2) / np.maximum(size, 1e-300)
        return float(np.diff(at) @ np.where(first * last < 0, crossing, size) / 2)

    def distribution(self, weight: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the distribution of the weighted PITs, averaged over V: a mean of ramps.

        With rows that are lost, it is the Kaplan-Meier estimate, which assumes that being lost is
        independent of the outcome's PIT. Beyond the last row it continues linearly to 1.

        Returns
        -------
        at : ndarray of shape (k,)
            Ends of cells, from 0 to 1.
        left, right : ndarray of shape (k,)
            Probability below and up to each end; the distribution is linear between ends.
        """
        share = weight / weight.sum()
        wide = self.is_wide
        at = np.unique(np.concatenate(([0.0, 1.0], self.low, self.high[wide])))
        begin = np.searchsorted(at, self.low)
        point = ~wide
        if self.lost is not None:
            wide = wide & ~self.lost
        end = np.searchsorted(at, self.high[wide])
        density = share[wide] / (self.high - self.low)[wide]
        change = np.bincount(begin[wide], density, at.size) - np.bincount(end, density, at.size)
        jump = np.bincount(begin[point], share[point], at.size)
        ramps = np.concatenate(([0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(at))))
        right = ramps + np.cumsum(jump)
        if self.lost is None:
            return at, right - jump, right
        lost = np.bincount(begin[self.lost], share[self.lost], at.size)
        return at, *_kaplan_meier(right - jump, right, np.cumsum(lost))

    def expected_counts(self, weight: Floats, which: Ints, edges: Floats, values: Floats) -> Floats:
        """Return the expected weight of PITs in each cell of a grid, given their own cells.

        This is the first half of a step of the EM algorithm: within its cell, a PIT has the density
        of the map so far.

        Parameters
        ----------
        weight, which : ndarray of shape (n,)
            Weights, and numbers of the maps.
        edges : ndarray of shape (k + 1,)
            Edges of the grid, from 0 to 1.
        values : ndarray of shape (n_maps, k + 1)
            Maps at the edges.

        Returns
        -------
        ndarray of shape (n_maps, k)
        """
        k = edges.size - 1
        first = np.clip(np.searchsorted(edges, self.low, side="right") - 1, 0, k - 1)
        shape = values.shape[0], k
        if self.ties is None:
            return _sums(which * k + first, weight, shape)
        last = np.clip(np.searchsorted(edges, self.high, side="left") - 1, first, k - 1)
        density = np.diff(values) / np.diff(edges)
        low = values[which, first] + (self.low - edges[first]) * density[which, first]
        high = values[which, last] + (self.high - edges[last]) * density[which, last]
        several = self.is_wide & (last > first)
        scale = np.where(several, weight, 0.0) / np.where(several, high - low, 1.0)
        in_first = np.where(several, scale * (values[which, first + 1] - low), weight)
        in_last = scale * (high - values[which, last])
        # cells of the grid between the first and the last are covered as a whole
        inner = _sums(which * (k + 1) + first + 1, scale, (shape[0], k + 1))
        inner -= _sums(which * (k + 1) + last, scale, (shape[0], k + 1))
        found = np.cumsum(inner, axis=-1)[:, :k] * np.diff(values)
        found += _sums(which * k + first, in_first, shape) + _sums(which * k + last, in_last, shape)
        return np.maximum(found, 0.0)


def _sums(at: Ints, weight: Floats, shape: tuple[int, int]) -> Floats:
    """Return sums of weights by place in a flat array of this shape."""
    sums = np.bincount(at, weights=weight, minlength=shape[0] * shape[1])
    return np.asarray(sums, dtype=np.float64).reshape(shape)


def _kaplan_meier(left: Floats, right: Floats, lost: Floats) -> tuple[Floats, Floats]:
    """Return the Kaplan-Meier estimate of a distribution of which some rows are lost.

    Parameters
    ----------
    left, right : ndarray of shape (k,)
        Share of all rows that are known to be below, and up to, each point; linear between points.
    lost : ndarray of shape (k,)
        Share of all rows that are lost at or before each point.

    Returns
    -------
    left, right : ndarray of shape (k,)
        Probability below and up to each point.
    """
    lost_before = np.concatenate(([0.0], lost[:-1]))
    before, after = 1 - left - lost_before, 1 - right - lost_before
    # where no row was at risk, probabilities of survival do not change
    remain = _ratios(after, before)
    # between points the known rows reduce the rows at risk and the survival in proportion
    inside = _ratios(before[1:], (1 - right - lost)[:-1])
    survival = np.cumprod(np.stack((np.concatenate(([1.0], inside)), remain), axis=-1).ravel())
    found_left, found_right = 1 - survival.reshape(-1, 2).T
    if 1 - right[-2] - lost[-2] <= LEAST_RISK:
        found_left[-1] = 1.0
    found_right[-1] = 1.0
    return found_left, found_right


def _ratios(after: Floats, before: Floats) -> Floats:
    at_risk = before > LEAST_RISK
    ratio = np.maximum(after, 0.0) / np.where(at_risk, before, 1.0)
    # of rows that have all ended, a rounding error is left
    return np.where(at_risk, np.where(after > LEAST_RISK, ratio, 0.0), 1.0)
