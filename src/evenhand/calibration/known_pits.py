"""Kaplan-Meier estimates of the distribution of PITs, with their variances (outcomes: 5)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evenhand._validate import Floats, Mask
from evenhand.calibration.errors import calibration_error, cell_excess, n_effective
from evenhand.calibration.group_sums import COVERED
from evenhand.calibration.intervals import binomial_intervals
from evenhand.calibration.pits import BLOCK_ROWS, PITs
from evenhand.calibration.ramps import ramps_at
from evenhand.censoring import KaplanMeier

BINS = 100
"""Bins of PITs for variances; their edges contain the ends of the 80% and 90% intervals."""

POSITIONS = 32
"""Positions of each person's PITs with cells in estimates that average over the cells."""

MOST_SHARE = 0.02
"""Largest share of the probability that one person stands for. Beyond the PIT where few people are
left, who then stand for many others, an estimate would be as accidental as these few people."""

LEAST_ROWS = 30
LEAST_KNOWN = 10
"""Fewest people, and fewest people whose PIT is known, for an asymptotic interval."""


class Estimate(NamedTuple):
    """An estimate with the ends of its confidence interval."""

    value: float
    low: float
    high: float


class _Deviations(NamedTuple):
    """Standard deviations of functionals of the Kaplan-Meier estimate."""

    level: float
    spread: float
    largest: float
    covered: dict[float, float]


@dataclass(frozen=True, eq=False)
class KnownPITs:
    """What is known of the PITs of some people."""

    pits: PITs

    @cached_property
    def lost(self) -> Mask:
        """Who is cut off, shape (n,)."""
        if self.pits.censored is None:
            return np.zeros(self.pits.n_samples, dtype=np.bool_)
        return self.pits.censored

    @cached_property
    def weights(self) -> Floats:
        """Weights of the people, shape (n,)."""
        if self.pits.weights is None:
            return np.ones(self.pits.n_samples)
        return self.pits.weights

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """Cells of what is known; the lower end, twice, of who is cut off. Shape (n, m)."""
        low = self.pits.low
        return low, np.where(self.lost[:, None], low, self.pits.high)

    @cached_property
    def low(self) -> Floats:
        """PITs at several positions in their cells; lower ends of who is cut off; (n, k)."""
        low, high = self.ends
        width = high - low
        if not width.any():
            return low
        count = max(POSITIONS // self.pits.n_draws, 1)
        at = (np.arange(count) + 0.5) / count
        return (low[:, :, None] + width[:, :, None] * at).reshape(low.shape[0], -1)

    @cached_property
    def n_effective(self) -> float:
        return n_effective(self.weights)

    @cached_property
    def is_large(self) -> bool:
        """Whether there are enough people for asymptotic intervals."""
        known = self.weights[~self.lost]
        if not known.any() or n_effective(known) < LEAST_KNOWN:
            return False
        return self.n_effective >= LEAST_ROWS

    @cached_property
    def estimate(self) -> KaplanMeier:
        """Kaplan-Meier estimate of the distribution of PITs, up to `end`."""
        values = self.low.ravel()
        observed = np.repeat(~self.lost, self.low.shape[1]) & (values <= self.end)
        return KaplanMeier.of(np.minimum(values, self.end), observed, self._weights_of_values)

    @cached_property
    def end(self) -> float:
        """Level up to which enough people are left, an edge of a bin; 1 if nobody is cut off."""
        if not self.lost.any():
            return 1.0
        values = self.low.ravel()
        observed = np.repeat(~self.lost, self.low.shape[1])
        whole = KaplanMeier.of(values, observed, self._weights_of_values)
        edges = np.arange(1, BINS) / BINS
        order = np.argsort(values)
        share = np.append(0.0, np.cumsum(self._weights_of_values[order]))
        left = 1 - share[np.searchsorted(values[order], edges, side="left")] / share[-1]
        # complete outcomes stand for themselves alone
        most = max(MOST_SHARE, 1.5 / self.n_effective)
        is_few = 1 - whole.at(edges) > most * self.n_effective * left
        return float(edges[np.argmax(is_few)]) if is_few.any() else 1.0

    @cached_property
    def _weights_of_values(self) -> Floats:
        return np.repeat(self.weights, self.low.shape[1])

    @cached_property
    def error(self) -> float:
        """W1 distance of the estimate to uniform."""
        return min(self.estimate.error(), 0.5)

    @cached_property
    def unknown(self) -> float:
        """Largest W1 distance of the estimate from a distribution that differs beyond its end."""
        # the line to 1, from a constant that begins at the end or from one that ends at 1
        last = self.estimate.last
        return (1 - self._at(last)) * (1 - last) / 2

    @cached_property
    def level(self) -> float:
        """Integral of `F(c) - c`: one half minus the mean PIT."""
        return self._area(1.0) - 0.5

    @cached_property
    def spread(self) -> float:
        """Mean of `|u - 1/2| - 1/4`, as an integral of `F(c) - c` with signs."""
        return 2 * self._area(0.5) - self._area(1.0) + 0.25

    def _area(self, stop: float) -> float:
        """Return the integral of the estimated distribution function up to a level."""
        estimate = self.estimate
        ends = np.minimum(np.concatenate(([0.0], estimate.values, [estimate.last])), stop)
        inner = float(np.concatenate(([0.0], estimate.cdf)) @ np.diff(ends))
        beyond = max(stop - estimate.last, 0.0)
        return inner + beyond * (self._at(estimate.last) + self._at(stop)) / 2

    def _at(self, level: float) -> float:
        """Return the estimated distribution function; beyond the last PIT it is a line to 1."""
        estimate = self.estimate
        found = float(estimate.at(level))
        if level <= estimate.last or estimate.last >= 1:
            return found
        return found + (1 - found) * (level - estimate.last) / (1 - estimate.last)

    def share(self, level: float) -> float:
        """Estimated probability of a central interval."""
        return self._at((1 + level) / 2) - self._at((1 - level) / 2)

    def shares(self, level: float) -> tuple[float, float]:
        """Least and largest probability of a central interval, whatever is beyond the end."""
        last = self.estimate.last
        ends = (1 - level) / 2, (1 + level) / 2
        below, inside = (self._at(min(end, last)) for end in ends)
        lowest = below if ends[0] <= last else 1.0
        return max(inside - lowest, 0.0), (1.0 if ends[1] > last else inside) - below

    def coverage(self, level: float, tail: float) -> Estimate:
        """Return the coverage of a central interval; either end fails with probability `tail`."""
        share = min(max(self.share(level), 0.0), 1.0)
        if not self.is_large:
            return Estimate(share, 0.0, 1.0)
        variance = self.deviations.covered[level] ** 2
        # trials of equal weight whose mean has the estimated variance (Korn & Graubard 1998)
        trials = self.n_effective
        if variance > 0:
            trials = min(share * (1 - share) / variance, trials)
        least, most = (np.array([min(max(end, 0.0), 1.0) * trials]) for end in self.shares(level))
        low, high = binomial_intervals(least, most, np.array([trials]), tail)
        return Estimate(share, float(low[0]), float(high[0]))

    @cached_property
    def deviations(self) -> _Deviations:
        """Standard deviations from the covariance of the estimate at the edges of bins."""
        covariance = self.covariance()
        n = self.n_effective
        covariance *= n / max(n - 1, 1)
        sign = np.where(np.arange(1, BINS + 1) <= BINS / 2, 1.0, -1.0)

        def deviation(weights: Floats) -> float:
            return math.sqrt(max(float(weights @ covariance @ weights), 0.0))

        covered = {}
        for level in COVERED:
            tail = round(BINS * (1 - level) / 2)
            contrast = np.zeros(BINS)
            contrast[[BINS - tail - 1, tail - 1]] = 1.0, -1.0
            covered[level] = deviation(contrast)
        # no function with values from -1 to 1 has a larger variance
        largest = math.sqrt(float(np.abs(covariance).sum())) / BINS
        even = np.full(BINS, 1 / BINS)
        return _Deviations(deviation(even), deviation(sign / BINS), largest, covered)

    def covariance(self) -> Floats:
        """Return the covariance of the estimate at the edges of bins, from influence functions."""
        at_risk, ended = np.zeros((2, BINS))
        for rows in self._blocks():
            risk, mass = self._risk(rows)
            weight = self.weights[rows]
            at_risk += weight @ risk
            ended += (weight * ~self.lost[rows]) @ mass
        hazard = np.divide(ended, at_risk, out=np.zeros(BINS), where=at_risk > 0)
        hazard = np.minimum(hazard, 1.0)
        # beyond the end the estimate is a line to 1, which varies less than its value at the end
        is_used = np.arange(1, BINS + 1) <= round(BINS * self.end)
        hazard[~is_used] = 0.0
        survival = np.cumprod(1 - hazard)
        # derivative of log(1 - hazard) in the number of events
        left = at_risk * (1 - hazard)
        scale = np.divide(1.0, left, out=np.zeros(BINS), where=left > 0)
        covariance = np.zeros((BINS, BINS))
        for rows in self._blocks():
            risk, mass = self._risk(rows)
            excess = (mass * ~self.lost[rows, None] * is_used - risk * hazard) * scale
            influence = self.weights[rows, None] * np.cumsum(excess, axis=-1) * survival
            covariance += influence.T @ influence
        return covariance

    def _blocks(self) -> Iterator[slice]:
        for start in range(0, self.lost.size, BLOCK_ROWS):
            yield slice(start, start + BLOCK_ROWS)

    def _risk(self, rows: slice) -> tuple[Floats, Floats]:
        """Return each person's share of draws at risk in each bin, and of those that end there."""
        low, high = (end[rows] for end in self.ends)
        edges = np.arange(1, BINS + 1) / BINS
        left = ramps_at(edges, low, high) / self.pits.n_draws
        mass = np.diff(left, axis=-1, prepend=0.0)
        return 1 - left + mass, mass

    @cached_property
    def largest(self) -> float:
        """Largest error of these people, wherever who is cut off is in the cells.

        With `M(c) = (A(c) + B(c)) / 2` it is the integral of `|M(c) - c| + (B(c) - A(c)) / 2`: half
        of each unknown PIT at the lower end, the other half at 1, and half of all widths.
        """
        pits = self.pits
        if not self.lost.any():
            return calibration_error(pits)
        at_end = np.ones((int(self.lost.sum()), pits.n_draws))
        halves = np.where(self.lost, 0.5, 1.0) * self.weights
        middle = PITs(
            np.concatenate((self.ends[0], at_end)),
            None,
            np.concatenate((halves, halves[self.lost])),
            (np.concatenate((self.ends[0], at_end)), np.concatenate((self.ends[1], at_end))),
        )
        width = float(self.weights[self.lost] @ (1 - self.ends[0][self.lost]).mean(axis=-1))
        return min(calibration_error(middle) + width / float(self.weights.sum()) / 2, 0.5)

    def bounds(self, tail: float, random: np.random.Generator) -> tuple[float, float]:
        """Return bounds for the error, each of which fails with probability `tail`."""
        n, m = self.pits.matrix.shape
        # independent PITs, one of each person at one position in its cell
        draw = np.zeros(n, dtype=np.intp) if m == 1 else random.integers(m, size=n)
        one = self.pits.matrix[np.arange(n), draw]
        low = np.where(self.lost, self.ends[0][np.arange(n), draw], one)
        # a band for each end of the cells, on one side
        margin = math.sqrt(math.log(2 / tail) / (2 * self.n_effective))
        least = least_error(low[:, None], self.lost, self.weights, margin)
        beyond = math.sqrt(math.log(1 / tail) / (2 * self.n_effective))
        return least, min(self.largest + beyond, 0.5)


def least_error(low: Floats, lost: Mask, weights: Floats, margin: float) -> float:
    """Return the least distance of any distribution function between `A` and `B` from uniform.

    `A` counts the people who are not cut off, `B` all; both are moved apart by the margin.
    """
    share = np.repeat(weights / weights.sum() / low.shape[1], low.shape[1])
    high = np.where(lost[:, None], 1.0, low)
    above = cell_excess(high.ravel(), share, margin)
    return above + cell_excess(1 - low.ravel(), share, margin)
