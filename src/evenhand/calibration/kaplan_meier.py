"""Kaplan-Meier estimates of the distribution of PITs, of which some are unknown (outcomes: 5)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._format import one_line
from evenhand._validate import (
    Floats,
    Ints,
    Mask,
    check_count,
    check_fraction,
)
from evenhand.calibration.cells import BLOCK_ROWS, Cells, Pit, as_cells
from evenhand.calibration.errors import (
    calibration_error,
    cell_excess,
    n_effective,
    quantile_distance,
    ramps_at,
)
from evenhand.calibration.group_sums import COVERED
from evenhand.calibration.intervals import binomial_intervals
from evenhand.calibration.scores import share_inside
from evenhand.draws import RandomState, generator

# --- the Kaplan-Meier estimate of the distribution of values that are cut off (outcomes: 5)


@dataclass(frozen=True, eq=False, repr=False)
class KaplanMeier:
    """Estimated distribution function of values, some of which are only known to be larger.

    It assumes that, among these people, being cut off is independent of the value.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Distinct observed values, increasing.
    cdf : ndarray of shape (k,)
        Estimated probability of values up to each of them.
    hazard_variance : ndarray of shape (k,)
        Variance of the estimated log survival at each of them, Greenwood's sum.
    last : float
        Largest value up to which anybody was observed: nothing is known beyond it.

    References
    ----------
    Kaplan & Meier, JASA 1958; Greenwood 1926.

    Examples
    --------
    >>> estimate = KaplanMeier.of([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 1])
    >>> estimate.at([1.0, 2.5, 3.0]).round(3)
    array([0.25 , 0.25 , 0.625])
    """

    values: Floats
    cdf: Floats
    hazard_variance: Floats
    last: float

    @classmethod
    def of(cls, values: ArrayLike, event: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Estimate from values, whether each was observed (or is a lower limit), and weights.

        Values are finite, `event` is boolean or 0 and 1, weights are at least 0 and not all 0;
        each has shape (n,).
        """
        value = np.asarray(values, dtype=np.float64)
        observed = np.asarray(event, dtype=np.bool_)
        weight = np.ones(value.size) if weights is None else np.asarray(weights, dtype=np.float64)
        # Kish's effective number of people, of whom each then counts once
        weight = weight * (weight.sum() / (weight**2).sum())
        order = np.argsort(value, kind="stable")
        value, observed, weight = value[order], observed[order], weight[order]
        # who is cut off at the value of an event was at risk of it
        at_risk = np.cumsum(weight[::-1])[::-1]
        distinct, first = np.unique(value, return_index=True)
        ended = np.add.reduceat(weight * observed, first)
        some = ended > 0
        ended, left = ended[some], at_risk[first[some]]
        hazard = np.minimum(ended / left, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.where(hazard < 1, hazard / (left * (1 - hazard)), 0.0)
        return cls(
            distinct[some], 1 - np.cumprod(1 - hazard), np.cumsum(variance), float(value[-1])
        )

    def __repr__(self) -> str:
        return one_line(self, n_values=self.values.size, last=self.last)

    def at(self, points: ArrayLike) -> Floats:
        """Estimated probability of values up to each point, in the shape of `points`."""
        steps = np.concatenate(([0.0], self.cdf))
        return np.asarray(steps[np.searchsorted(self.values, points, side="right")])

    def interval(self, point: float, confidence: float = 0.95) -> tuple[float, float]:
        """Return an interval for the probability of values up to a point.

        It is asymptotic, by Greenwood's variance on the scale of `log(-log S)`, and [0, 1] where
        there is no event or everybody has it.
        """
        check_fraction("confidence", confidence)
        place = int(np.searchsorted(self.values, point, side="right")) - 1
        if place < 0 or not 0 < self.cdf[place] < 1:
            return 0.0, 1.0
        log_survival = np.log1p(-self.cdf[place])
        z = special.ndtri((1 + confidence) / 2)
        half = z * np.sqrt(self.hazard_variance[place]) / -log_survival
        low, high = -np.expm1(log_survival * np.exp([-half, half]))
        return float(low), float(high)

    def error(self) -> float:
        """W1 distance of an estimate for PITs from uniform, 0 to 1/2.

        Beyond the last value the estimate continues as the forecasts predict, linearly to 1.
        """
        ends = np.concatenate(([0.0], self.values, [self.last]))
        levels = np.concatenate(([0.0], self.cdf))
        inner = quantile_distance(levels, ends)
        return float(inner + abs(levels[-1] - self.last) * (1 - self.last) / 2)


def estimated_error(pit: Pit) -> float:
    """Return the W1 error of PITs; where people were lost, of the Kaplan-Meier estimate."""
    cells = as_cells(pit)
    if not cells.n_samples:
        return math.nan
    if not cells.unknown.any():
        return calibration_error(cells)
    seen = ~cells.unknown
    values = np.where(seen[:, None], cells.drawn, cells.low)
    return min(KaplanMeier.of(values.ravel(), np.repeat(seen, cells.n_draws)).error(), 0.5)


# --- size of the calibration error where some PITs are only known to be larger (outcomes: 5)

# --- Kaplan-Meier estimates of the distribution of PITs, with their variances

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

    cells: Cells

    @cached_property
    def lost(self) -> Mask:
        """Who is cut off, shape (n,)."""
        return self.cells.unknown

    @cached_property
    def weights(self) -> Floats:
        """Weights of the people, shape (n,)."""
        if self.cells.weights is None:
            return np.ones(self.cells.n_samples)
        return self.cells.weights

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """Cells of what is known; the lower end, twice, of who is cut off. Shape (n, m)."""
        low = self.cells.low
        return low, np.where(self.lost[:, None], low, self.cells.high)

    @cached_property
    def low(self) -> Floats:
        """PITs at several positions in their cells; lower ends of who is cut off; (n, k)."""
        low, high = self.ends
        width = high - low
        if not width.any():
            return low
        count = max(POSITIONS // self.cells.n_draws, 1)
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
        left = ramps_at(edges, low, high) / self.cells.n_draws
        mass = np.diff(left, axis=-1, prepend=0.0)
        return 1 - left + mass, mass

    @cached_property
    def largest(self) -> float:
        """Largest error of these people, wherever who is cut off is in the cells.

        With `M(c) = (A(c) + B(c)) / 2` it is the integral of `|M(c) - c| + (B(c) - A(c)) / 2`: half
        of each unknown PIT at the lower end, the other half at 1, and half of all widths.
        """
        cells = self.cells
        if not self.lost.any():
            return calibration_error(cells)
        at_end = np.ones((int(self.lost.sum()), cells.n_draws))
        halves = np.where(self.lost, 0.5, 1.0) * self.weights
        middle = Cells(
            np.concatenate((self.ends[0], at_end)),
            np.concatenate((self.ends[1], at_end)),
            weights=np.concatenate((halves, halves[self.lost])),
        )
        width = float(self.weights[self.lost] @ (1 - self.ends[0][self.lost]).mean(axis=-1))
        return min(calibration_error(middle) + width / float(self.weights.sum()) / 2, 0.5)

    def bounds(self, tail: float, random: np.random.Generator) -> tuple[float, float]:
        """Return bounds for the error, each of which fails with probability `tail`."""
        n, m = self.cells.drawn.shape
        # independent PITs, one of each person at one position in its cell
        draw = np.zeros(n, dtype=np.intp) if m == 1 else random.integers(m, size=n)
        one = self.cells.drawn[np.arange(n), draw]
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


# --- Kaplan-Meier estimates for randomized forecasts, by way of their base


@dataclass(frozen=True, eq=False)
class ServedTimes(KnownPITs):
    """PITs of randomized forecasts, and those of their base, of shape (n, 1).

    The distribution of served PITs is that of the people whose time is known, weighted by the jumps
    of the Kaplan-Meier estimate of base PITs. What is left beyond its last jump is spread over the
    people who are cut off and whose completed base PIT is beyond it.
    """

    base: Cells

    @cached_property
    def _of_base(self) -> KnownPITs:
        """What is known of the base, each person at one position in the cell."""
        return KnownPITs(self.base.at_points(~self.lost))

    @cached_property
    def jumps(self) -> Floats:
        """Estimated probability of each person's outcome, shape (n,); 0 for who is cut off."""
        estimate = self._of_base.estimate
        values = self.base.drawn[:, 0]
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
        beyond = self.weights * ((self.jumps == 0) & (self.base.drawn[:, 0] > estimate.last))
        rest = 1 - self.jumps.sum()
        if rest > 0 and beyond.any():
            return np.asarray(self.jumps + rest * beyond / beyond.sum())
        total = self.jumps.sum()
        return np.asarray(self.jumps / total if total > 0 else self.cells.shares)

    @cached_property
    def error(self) -> float:
        """W1 distance of the distribution of served PITs to uniform."""
        some = self.masses > 0
        return min(calibration_error(Cells(self.cells.drawn[some], weights=self.masses[some])), 0.5)

    @cached_property
    def unknown(self) -> float:
        """Largest W1 distance from a distribution whose mass beyond the end is elsewhere."""
        moved = np.maximum(self.cells.drawn, 1 - self.cells.drawn).mean(axis=-1)
        return float((self.masses * (self.jumps == 0)) @ moved)

    def shares(self, level: float) -> tuple[float, float]:
        """Least and largest probability of a central interval, whatever is beyond the end."""
        matrix = self.cells.drawn
        least = float(self.jumps @ share_inside(matrix, matrix, level).mean(axis=-1))
        return least, least + float(1 - self.jumps.sum())

    @cached_property
    def level(self) -> float:
        """Integral of `F(c) - c`."""
        return 0.5 - float(self.masses @ self.cells.drawn.mean(axis=-1))

    @cached_property
    def spread(self) -> float:
        """Mean of `|u - 1/2| - 1/4`."""
        return float(self.masses @ np.abs(self.cells.drawn - 0.5).mean(axis=-1)) - 0.25

    def share(self, level: float) -> float:
        """Estimated probability of a central interval."""
        matrix = self.cells.drawn
        return float(self.masses @ share_inside(matrix, matrix, level).mean(axis=-1))

    def covariance(self) -> Floats:
        """Return the covariance of the distribution of served PITs at the edges of bins.

        Given a bin of base PITs, served ones have the mean CDF of the people whose time is known:
        the covariance is that of the base, mapped by these, and that of single people around them.
        """
        edges = np.arange(1, BINS + 1) / BINS
        known = np.flatnonzero(self.jumps > 0)
        jumps = self.jumps[known]
        place = np.clip(np.ceil(self.base.drawn[known, 0] * BINS) - 1, 0, BINS - 1).astype(np.intp)
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
        matrix = self.cells.drawn[rows]
        return ramps_at(edges, matrix, matrix) / self.cells.n_draws

    @staticmethod
    def _parts(n: int) -> list[slice]:
        return [slice(start, start + BLOCK_ROWS) for start in range(0, n, BLOCK_ROWS)]


# --- size of the error


class CensoredError(NamedTuple):
    """Calibration error of people of whom some have a PIT that is only known to be larger.

    Parameters
    ----------
    error, low, high : float
        W1 distance to uniform of the Kaplan-Meier estimate of the distribution of PITs, and an
        asymptotic confidence interval, 0 to 1/2. They assume that, among these people, the PIT of
        the outcome and the PIT at which a person is cut off are independent. Beyond the PIT up to
        which enough people were followed, the estimate assumes that the forecasts are right; the
        interval assumes nothing.
    least, most : float
        Bounds for the error whoever is cut off, 0 to 1/2. They have their confidence at any number
        of people; with weights, at any weights that do not depend on the outcomes.
    mean : float
        Mean PIT by the same estimate; below 1/2 outcomes are lower than forecast.
    coverage : dict of float to Estimate
        Coverage of the central 80% and 90% intervals by the same estimate, with asymptotic
        intervals.
    """

    error: float
    low: float
    high: float
    least: float
    most: float
    mean: float
    coverage: dict[float, Estimate]


def censored_error(
    cells: Cells,
    confidence: float = 0.95,
    *,
    n_groups: int = 1,
    base: Cells | None = None,
    random_state: RandomState = None,
) -> CensoredError:
    """Estimate and bound the calibration error of people of whom some are cut off.

    Parameters
    ----------
    cells : Cells
        PITs; those of people who are `censored` are only known to lie in their cell, which reaches
        to 1.
    confidence : float, default 0.95
        Confidence of each interval.
    n_groups : int, default 1
        Number of groups whose intervals hold simultaneously (Bonferroni).
    base : Cells of one column, optional
        For randomized forecasts: PITs of the deterministic forecasts under which they are
        calibrated over their draws, such as those inside a link, with the same people `censored`.
    random_state : int, generator or None
        Seed for the draw of each person behind `least`, if there are several.

    Returns
    -------
    CensoredError

    Notes
    -----
    The variance of the Kaplan-Meier estimate is that of the sum of the influence functions of
    people, so that several draws of a person count once. The error is a mean `integral s (F - c)`
    of the true distribution `F` for one function `s` with values from -1 to 1, and the estimate is
    the largest such integral of its own distribution: `high` adds a t quantile times the largest
    standard deviation of any of these integrals. `low` is the largest lower end of two of them,
    those for the level and the spread of PITs.

    A person's draw moves the PIT of the outcome and that of the time at which the person is cut
    off. Both are then dependent, so the Kaplan-Meier estimate of randomized forecasts is that of
    the PITs of their `base`; the people whose time is known have its jumps as weights (Efron 1967;
    Stute, Scandinavian Journal of Statistics 23, 1996).

    Without an assumption the PIT of a person who is cut off may be anywhere in its cell. `most` is
    the largest error of these people in any case (outcomes: 5), plus the margin of Hoeffding
    (JASA 58, 1963) for the one integral of values in [0, 1] that gives the largest error of the
    true distribution. `least` is the distance of the uniform distribution from a band of
    Dvoretzky, Kiefer and Wolfowitz (Massart 1990) about both ends of the cells.

    References
    ----------
    Kaplan & Meier, JASA 1958; Reid, Influence functions for censored data, Annals of Statistics
    1981.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> u, c = random.random((2, 2000))
    >>> lost = c < u
    >>> low = np.minimum(u, c)
    >>> cells = Cells.between(low, np.where(lost, 1.0, low), random.random(2000), reading=lost)
    >>> found = censored_error(cells)
    >>> found.error < 0.03, found.low, found.most > 0.2
    (True, 0.0, True)
    """
    check_fraction("confidence", confidence)
    tail = (1 - confidence) / (2 * check_count("n_groups", n_groups))
    data = KnownPITs(cells) if base is None else ServedTimes(cells, base)
    deviation = data.deviations
    low, high = 0.0, 0.5
    if data.is_large:
        freedom = data.n_effective - 1
        most_t, least_t = (float(-special.stdtrit(freedom, p)) for p in (tail, tail / 4))
        # level and spread, each in both directions
        known_level, known_spread = (abs(x) - data.unknown for x in (data.level, data.spread))
        low = max(known_level - least_t * deviation.level, 0.0)
        low = max(known_spread - least_t * deviation.spread, low)
        high = data.error + most_t * deviation.largest + data.unknown
    least, most = data.bounds(tail, generator(random_state))
    return CensoredError(
        data.error,
        min(low, data.error),
        min(high, 0.5),
        least,
        most,
        float(np.clip(0.5 - data.level, 0.0, 1.0)),
        {level: data.coverage(level, tail) for level in COVERED},
    )
