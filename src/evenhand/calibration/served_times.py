"""Kaplan-Meier estimates for randomized forecasts, by way of their base (outcomes: 5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand._validate import Floats, Ints
from evenhand.calibration.errors import calibration_error
from evenhand.calibration.known_pits import BINS, KnownPITs
from evenhand.calibration.pits import BLOCK_ROWS, PITs
from evenhand.calibration.ramps import ramps_at
from evenhand.calibration.scores import share_inside


@dataclass(frozen=True, eq=False)
class ServedTimes(KnownPITs):
    """PITs of randomized forecasts, and those of their base, of shape (n, 1).

    The distribution of served PITs is that of the people whose time is known, weighted by the jumps
    of the Kaplan-Meier estimate of base PITs. What is left beyond its last jump is spread over the
    people who are cut off and whose completed base PIT is beyond it.
    """

    base: PITs

    @cached_property
    def _of_base(self) -> KnownPITs:
        """What is known of the base, each person at one position in the cell."""
        one = self.base.matrix
        cells = self.base.cells
        if cells is not None:
            lost = self.lost[:, None]
            cells = (np.where(lost, cells[0], one), np.where(lost, cells[1], one))
        return KnownPITs(PITs(one, None, self.base.weights, cells, self.base.censored))

    @cached_property
    def jumps(self) -> Floats:
        """Estimated probability of each person's outcome, shape (n,); 0 for who is cut off."""
        estimate = self._of_base.estimate
        values = self.base.matrix[:, 0]
        known = ~self.lost & (values <= self._of_base.end)
        place = np.searchsorted(estimate.values, values[known])
        weight = self.weights[known]
        sizes = np.diff(estimate.cdf, prepend=0.0) / np.bincount(
            place, weight, minlength=estimate.values.size
        )
        found = np.zeros(values.size)
        found[known] = weight * sizes[place]
        return found

    @cached_property
    def masses(self) -> Floats:
        """Weights of all rows in the distribution of served PITs; they add up to 1."""
        estimate = self._of_base.estimate
        # by their completed times, or by times beyond the end of the estimate
        beyond = self.weights * ((self.jumps == 0) & (self.base.matrix[:, 0] > estimate.last))
        rest = 1 - self.jumps.sum()
        if rest > 0 and beyond.any():
            return np.asarray(self.jumps + rest * beyond / beyond.sum())
        total = self.jumps.sum()
        return np.asarray(self.jumps / total if total > 0 else self.pits.shares)

    @cached_property
    def error(self) -> float:
        """W1 distance of the distribution of served PITs to uniform."""
        some = self.masses > 0
        return min(calibration_error(PITs(self.pits.matrix[some], None, self.masses[some])), 0.5)

    @cached_property
    def unknown(self) -> float:
        """Largest W1 distance from a distribution whose mass beyond the end is elsewhere."""
        moved = np.maximum(self.pits.matrix, 1 - self.pits.matrix).mean(axis=-1)
        return float((self.masses * (self.jumps == 0)) @ moved)

    def shares(self, level: float) -> tuple[float, float]:
        """Least and largest probability of a central interval, whatever is beyond the end."""
        matrix = self.pits.matrix
        least = float(self.jumps @ share_inside(matrix, matrix, level).mean(axis=-1))
        return least, least + float(1 - self.jumps.sum())

    @cached_property
    def level(self) -> float:
        """Integral of `F(c) - c`."""
        return 0.5 - float(self.masses @ self.pits.matrix.mean(axis=-1))

    @cached_property
    def spread(self) -> float:
        """Mean of `|u - 1/2| - 1/4`."""
        return float(self.masses @ np.abs(self.pits.matrix - 0.5).mean(axis=-1)) - 0.25

    def share(self, level: float) -> float:
        """Estimated probability of a central interval."""
        matrix = self.pits.matrix
        return float(self.masses @ share_inside(matrix, matrix, level).mean(axis=-1))

    def covariance(self) -> Floats:
        """Return the covariance of the distribution of served PITs at the edges of bins.

        Given a bin of base PITs, served ones have the mean CDF of the people whose time is known:
        the covariance is that of the base, mapped by these, and that of single people around them.
        """
        edges = np.arange(1, BINS + 1) / BINS
        known = np.flatnonzero(self.jumps > 0)
        jumps = self.jumps[known]
        place = np.clip(np.ceil(self.base.matrix[known, 0] * BINS) - 1, 0, BINS - 1).astype(np.intp)
        mapped = np.zeros((BINS, BINS))
        for rows in self._parts(known.size):
            np.add.at(mapped, place[rows], jumps[rows, None] * self._cdf(known[rows], edges))
        total = np.bincount(place, jumps, minlength=BINS)[:, None]
        mapped = np.divide(mapped, total, out=np.zeros((BINS, BINS)), where=total > 0)
        # of increments of the base: F(b) - F(b - 1)
        steps = mapped.T @ (np.eye(BINS) - np.eye(BINS, k=-1))
        covariance = np.asarray(steps @ self._of_base.covariance() @ steps.T)
        for rows in self._parts(known.size):
            excess = jumps[rows, None] * (self._cdf(known[rows], edges) - mapped[place[rows]])
            covariance += excess.T @ excess
        return covariance

    def _cdf(self, rows: Ints, edges: Floats) -> Floats:
        matrix = self.pits.matrix[rows]
        return ramps_at(edges, matrix, matrix) / self.pits.n_draws

    @staticmethod
    def _parts(n: int) -> list[slice]:
        return [slice(start, start + BLOCK_ROWS) for start in range(0, n, BLOCK_ROWS)]
