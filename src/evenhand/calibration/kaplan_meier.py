"""Kaplan-Meier estimates of the distribution of PITs, of which some are unknown (outcomes: 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._format import OneLine
from evenhand._validate import Floats, Pair, check_count, check_fraction
from evenhand.calibration.bands import binomial_intervals, share_interval
from evenhand.calibration.cells import Cells, Pit, as_cells, divided
from evenhand.calibration.errors import (
    calibration_error,
    cell_excess,
    middle_distances,
    n_effective,
    ramps_at,
    share_inside,
)
from evenhand.calibration.group_sums import COVERED
from evenhand.draws import BLOCK_ROWS, RandomState, fresh, generator
from evenhand.outcomes import Outcomes
from evenhand.results import Interval
from evenhand.tables import row_blocks

# --- the Kaplan-Meier estimate of the distribution of values that are cut off (outcomes: 5)


@dataclass(frozen=True, eq=False, repr=False)
class KaplanMeier(OneLine):
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
        """Interval from values, whether each was observed (or is a lower limit), and weights.

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
        variance = divided(hazard, left * (1 - hazard))
        return cls(
            distinct[some], 1 - np.cumprod(1 - hazard), np.cumsum(variance), float(value[-1])
        )

    def at(self, points: ArrayLike) -> Floats:
        """Estimated probability of values up to each point, in the shape of `points`."""
        steps = np.concatenate(([0.0], self.cdf))
        return steps[np.searchsorted(self.values, points, side="right")]

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

    def cells(self) -> Cells:
        """Interval for PITs, as cells with weights.

        What is left beyond the last value is one cell up to 1, as the forecasts predict.
        """
        low, high = np.append(self.values, self.last), np.append(self.values, 1.0)
        return Cells(low, high, weights=np.diff(self.cdf, prepend=0.0, append=1.0))

    def error(self) -> float:
        """W1 distance of an estimate for PITs from uniform, 0 to 1/2."""
        return min(calibration_error(self.cells()), 0.5)


def estimated_error(pit: Pit) -> float:
    """Return the W1 error of PITs; where people were lost, of the Kaplan-Meier estimate."""
    cells = as_cells(pit)
    if not cells.n_samples:
        return math.nan
    if not cells.unknown.any():
        return calibration_error(cells)
    seen = ~cells.unknown
    values = np.where(seen[:, None], cells.drawn, cells.low)
    return KaplanMeier.of(values.ravel(), np.repeat(seen, cells.n_draws)).error()


# --- distributions of PITs of which some are only known to be larger (outcomes: 5)

BINS = 100
"""Bins of PITs for variances; their edges contain the ends of the 80% and 90% intervals."""

EDGES = np.arange(1, BINS + 1) / BINS

POSITIONS = 32
"""Positions of each person's PITs with cells in estimates that average over the cells."""

# beyond the PIT where few people are left, who then stand for many others, an estimate would be
# as accidental as these few people
MOST_SHARE = 0.02
"""Largest share of the probability that one person stands for."""

LEAST_ROWS = 30
LEAST_KNOWN = 10
"""Fewest people, and fewest people whose PIT is known, for an asymptotic interval."""


class _Sizes(NamedTuple):
    """What an estimated distribution `F` of PITs shows.

    `unknown` is the largest W1 distance to a distribution that differs beyond the end of the
    estimate, `level` the integral of `F(c) - c`, one half minus the mean PIT, `spread` the mean of
    `|u - 1/2| - 1/4`, and `shares` contains the probability of each central interval, and its least
    and largest one whatever is beyond the end.
    """

    error: float
    unknown: float
    level: float
    spread: float
    shares: dict[float, list[float]]


def _ends(cells: Cells) -> Pair:
    """Return the cells of what is known; the lower end, twice, of who is cut off. Shape (n, m)."""
    return cells.low, np.where(cells.unknown[:, None], cells.low, cells.high)


def _estimate(cells: Cells) -> tuple[KaplanMeier, float]:
    """Return the estimate up to the level where enough people are left, and this level.

    It is an edge of a bin, and 1 if nobody is cut off.
    """
    low, high = _ends(cells)
    width = high - low
    if width.any():
        count = max(POSITIONS // cells.n_draws, 1)
        at = (np.arange(count) + 0.5) / count
        low = (low[:, :, None] + width[:, :, None] * at).reshape(cells.n_samples, -1)
    values = low.ravel()
    lost = np.repeat(cells.unknown, low.shape[1])
    weights = np.repeat(cells.each_weight, low.shape[1])
    end = 1.0
    if lost.any():
        whole = KaplanMeier.of(values, ~lost, weights)
        in_bins = np.histogram(values, np.append(0.0, EDGES), weights=weights)[0]
        left = 1 - np.cumsum(in_bins)[:-1] / weights.sum()
        # complete outcomes stand for themselves alone
        n = n_effective(cells.each_weight)
        is_few = 1 - whole.at(EDGES[:-1]) > max(MOST_SHARE, 1.5 / n) * n * left
        end = float(EDGES[np.argmax(is_few)]) if is_few.any() else 1.0
    return KaplanMeier.of(np.minimum(values, end), ~lost & (values <= end), weights), end


def _sizes(cells: Cells, masses: Floats, jumps: Floats, last: float, unknown: float) -> _Sizes:
    """Return the sizes of a distribution of PITs, whose rows of cells have masses.

    The jumps of the estimate among them add up to its value at the end; what is left is beyond the
    PIT `last`, wherever it is.
    """
    low, high, rest = cells.low, cells.high, 1 - float(jumps.sum())
    shares = {}
    for level in COVERED:
        inside = share_inside(low, high, level).mean(axis=-1)
        least = float(jumps @ inside)
        most = least + rest if last < (1 + level) / 2 else least
        shares[level] = np.clip((masses @ inside, least, most), 0.0, 1.0).tolist()
    some = masses > 0
    own = Cells(low[some], high[some], weights=masses[some])
    return _Sizes(
        min(calibration_error(own), 0.5),
        unknown,
        0.5 - float(masses @ (low + high).mean(axis=-1)) / 2,
        float(masses @ middle_distances(low, high).mean(axis=-1)) - 0.25,
        shares,
    )


def _covariance(cells: Cells, end: float) -> Floats:
    """Return the covariance of the estimate at the edges of bins, from influence functions."""
    lost, weights, ends = cells.unknown, cells.each_weight, _ends(cells)
    blocks = row_blocks(cells.n_samples, BLOCK_ROWS)

    def at_risk_and_ended(rows: slice) -> Pair:
        """Return each person's share of draws at risk in each bin, and of those that end there."""
        left = ramps_at(EDGES, ends[0][rows], ends[1][rows]) / cells.n_draws
        mass = np.diff(left, axis=-1, prepend=0.0)
        return 1 - left + mass, mass * ~lost[rows, None]

    at_risk, ended = np.zeros((2, BINS))
    for rows in blocks:
        risk, mass = at_risk_and_ended(rows)
        at_risk += weights[rows] @ risk
        ended += weights[rows] @ mass
    hazard = np.minimum(divided(ended, at_risk), 1.0)
    # beyond the end the estimate is a line to 1, which varies less than its value at the end
    is_used = np.arange(1, BINS + 1) <= round(BINS * end)
    hazard[~is_used] = 0.0
    survival = np.cumprod(1 - hazard)
    # derivative of log(1 - hazard) in the number of events
    left = at_risk * (1 - hazard)
    scale = divided(1.0, left)
    covariance = np.zeros((BINS, BINS))
    for rows in blocks:
        risk, mass = at_risk_and_ended(rows)
        excess = (mass * is_used - risk * hazard) * scale
        influence = weights[rows, None] * np.cumsum(excess, axis=-1) * survival
        covariance += influence.T @ influence
    return covariance


# --- Kaplan-Meier estimates for randomized forecasts, by way of their base


def _jumps(cells: Cells, pit: Floats, estimate: KaplanMeier, end: float) -> Floats:
    """Return the estimated probability of each person's outcome, (n,); 0 for who is cut off.

    `pit` contains one PIT of each person under the base that the estimate is of.
    """
    known = ~cells.unknown & (pit <= end)
    place = np.searchsorted(estimate.values, pit[known])
    weight = cells.each_weight[known]
    total = np.bincount(place, weight, minlength=estimate.values.size)
    found = np.zeros(pit.size)
    found[known] = weight * (np.diff(estimate.cdf, prepend=0.0) / total)[place]
    return found


def _masses(cells: Cells, pit: Floats, jumps: Floats, last: float) -> Floats:
    """Return the masses of people in the estimated distribution of served PITs.

    People with a known time have the jumps of the estimate of base PITs. What is left beyond its
    last jump is spread over the people who are cut off and whose completed base PIT is beyond it.
    """
    rest = 1 - jumps.sum()
    beyond = cells.each_weight * ((jumps == 0) & (pit > last))
    if rest > 0 and beyond.any():
        return jumps + rest * beyond / beyond.sum()
    return jumps / jumps.sum() if jumps.any() else cells.shares


def _served_covariance(cells: Cells, pit: Floats, jumps: Floats, of_base: Floats) -> Floats:
    """Return the covariance of the distribution of served PITs at the edges of bins.

    Given a bin of base PITs, served ones have the mean CDF of the people whose time is known: the
    covariance is that of the base, mapped by these, and that of single people around them.
    """
    known = np.flatnonzero(jumps > 0)
    mass = jumps[known]
    place = np.clip(np.ceil(pit[known] * BINS) - 1, 0, BINS - 1).astype(np.intp)
    blocks = row_blocks(known.size, BLOCK_ROWS)

    def cdf(rows: slice) -> Floats:
        drawn = cells.drawn[known[rows]]
        return ramps_at(EDGES, drawn, drawn) / cells.n_draws

    mapped = np.zeros((BINS, BINS))
    for rows in blocks:
        np.add.at(mapped, place[rows], mass[rows, None] * cdf(rows))
    mapped = divided(mapped, np.bincount(place, mass, minlength=BINS)[:, None])
    # of increments of the base: F(b) - F(b - 1)
    steps = mapped.T @ (np.eye(BINS) - np.eye(BINS, k=-1))
    covariance = steps @ of_base @ steps.T
    for rows in blocks:
        excess = mass[rows, None] * (cdf(rows) - mapped[place[rows]])
        covariance += excess.T @ excess
    return covariance


# --- bounds that need no assumption


def largest_error(cells: Cells) -> float:
    """Return the largest error of these people, wherever who is cut off is in the cells.

    With `M(c) = (A(c) + B(c)) / 2` it is the integral of `|M(c) - c| + (B(c) - A(c)) / 2`: half of
    each unknown PIT at the lower end, the other half at 1, and half of all widths.
    """
    lost, weights = cells.unknown, cells.each_weight
    if not lost.any():
        return calibration_error(cells)
    at_end = np.ones((int(lost.sum()), cells.n_draws))
    halves = np.where(lost, 0.5, 1.0) * weights
    low, high = (np.concatenate((end, at_end)) for end in _ends(cells))
    middle = Cells(low, high, weights=np.concatenate((halves, halves[lost])))
    width = float(weights[lost] @ (1 - cells.low[lost]).mean(axis=-1))
    return min(calibration_error(middle) + width / float(weights.sum()) / 2, 0.5)


def _bounds(cells: Cells, tail: float, random: np.random.Generator) -> tuple[float, float]:
    """Return bounds for the error, each of which fails with probability `tail`."""
    # independent PITs, one of each person at one position in its cell
    place = cells.one_draw_each(random)
    low = np.where(cells.unknown, cells.low[place], cells.drawn[place])
    high = np.where(cells.unknown, 1.0, low)
    # a band for each end of the cells, on one side
    size = 2 * n_effective(cells.each_weight)
    margin = math.sqrt(math.log(2 / tail) / size)
    least = cell_excess(high, cells.shares, margin) + cell_excess(1 - low, cells.shares, margin)
    return float(least), min(largest_error(cells) + math.sqrt(math.log(1 / tail) / size), 0.5)


def _coverage(shares: list[float], deviation: float, n: float, tail: float) -> Interval:
    """Return the coverage of a central interval; either end fails with probability `tail`."""
    share, *ends = shares
    # trials of equal weight whose mean has the estimated variance (Korn & Graubard 1998)
    trials = min(share * (1 - share) / deviation**2, n) if deviation > 0 else n
    least, most = (end * trials for end in ends)
    low, high = binomial_intervals(least, most, trials, tail)
    return Interval(share, float(low), float(high))


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
    coverage : dict of float to Interval
        Coverage of the central 80% and 90% intervals by the same estimate, with asymptotic
        intervals.
    """

    error: float
    low: float
    high: float
    least: float
    most: float
    mean: float
    coverage: dict[float, Interval]


def censored_error(
    cells: Cells,
    confidence: float = 0.95,
    *,
    n_groups: int = 1,
    base: Cells | None = None,
    random_state: RandomState = None,
) -> CensoredError:
    """Interval and bound the calibration error of people of whom some are cut off.

    Parameters
    ----------
    cells : Cells
        PITs; those that are `unknown` only lie somewhere in their cell, which reaches to 1.
    confidence : float, default 0.95
        Confidence of each interval.
    n_groups : int, default 1
        Number of groups whose intervals hold simultaneously (Bonferroni).
    base : Cells of one column, optional
        For randomized forecasts: PITs of the deterministic forecasts under which they are
        calibrated over their draws, such as those inside a link, with the same people `unknown`.
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
    >>> cells = Cells(low, np.where(lost, 1.0, low), ties=random.random(2000), reading=lost)
    >>> found = censored_error(cells)
    >>> found.error < 0.03, found.low, found.most > 0.2
    (True, 0.0, True)
    """
    check_fraction("confidence", confidence)
    tail = (1 - confidence) / (2 * check_count("n_groups", n_groups))
    own = cells if base is None else base.at_points(~cells.unknown)
    estimate, end = _estimate(own)
    if base is None:
        line = estimate.cells()
        masses, last = line.shares, estimate.last
        jumps = np.append(masses[:-1], 0.0)
        # the line to 1, from a constant that begins at the end or from one that ends at 1
        found = _sizes(line, masses, jumps, last, float(masses[-1]) * (1 - last) / 2)
    else:
        pit = base.drawn[:, 0]
        jumps = _jumps(cells, pit, estimate, end)
        masses = _masses(cells, pit, jumps, estimate.last)
        moved = np.maximum(cells.drawn, 1 - cells.drawn).mean(axis=-1)
        unknown = float((masses * (jumps == 0)) @ moved)
        found = _sizes(cells.at_points(), masses, jumps, 0.0, unknown)
    low, high = 0.0, 0.5
    coverage = {level: Interval(share, 0.0, 1.0) for level, (share, *_) in found.shares.items()}
    n, known = n_effective(cells.each_weight), cells.each_weight[~cells.unknown]
    if n >= LEAST_ROWS and known.any() and n_effective(known) >= LEAST_KNOWN:
        covariance = _covariance(own, end)
        if base is not None:
            covariance = _served_covariance(cells, pit, jumps, covariance)
        covariance *= n / max(n - 1, 1)

        def deviation(weights: Floats) -> float:
            return math.sqrt(max(float(weights @ covariance @ weights), 0.0))

        most_t, least_t = (float(-special.stdtrit(n - 1, p)) for p in (tail, tail / 4))
        # level and spread, each in both directions
        sign = np.where(EDGES <= 0.5, 1.0, -1.0)
        for size, signs in ((found.level, np.ones(BINS)), (found.spread, sign)):
            low = max(low, abs(size) - found.unknown - least_t * deviation(signs / BINS))
        # no function with values from -1 to 1 has a larger variance
        largest = math.sqrt(float(np.abs(covariance).sum())) / BINS
        high = found.error + most_t * largest + found.unknown
        for level, shares in found.shares.items():
            below = round(BINS * (1 - level) / 2)
            contrast = np.zeros(BINS)
            contrast[[BINS - below - 1, below - 1]] = 1.0, -1.0
            coverage[level] = _coverage(shares, deviation(contrast), n, tail)
    least, most = _bounds(cells, tail, generator(random_state))
    return CensoredError(
        found.error,
        min(low, found.error),
        min(high, 0.5),
        least,
        most,
        float(np.clip(0.5 - found.level, 0.0, 1.0)),
        coverage,
    )


# --- the event by the horizon

LEAST_REACHED = 5
"""Fewest people who reached the horizon, for an upper end by the Kaplan-Meier estimate."""


def rates_by_horizon(
    times: Outcomes, predicted: Floats, weights: Floats, confidence: float
) -> dict[str, float | int]:
    """Return the predicted and the observed rate of the event by the horizon, with bounds.

    `confidence` is that of each interval.
    """
    assert times.horizon is not None
    happened, lost = times.happened, times.is_lost
    estimate = KaplanMeier.of(times.value, happened, weights)
    observed = float(estimate.at(times.horizon))
    n = n_effective(weights)
    least, most = (
        float(np.average(mask, weights=weights)) * n for mask in (happened, happened | lost)
    )
    lowest = share_interval(least, n, confidence)[0]
    highest = share_interval(most, n, confidence)[1]
    low, high = estimate.interval(times.horizon, confidence)
    reached = weights[times.has_reached]
    if not reached.any() or n_effective(reached) < LEAST_REACHED:
        # the estimate ends before the horizon: its last value is a lower end only
        high = 1.0
    return {
        "n": times.n_samples,
        "n_events": int(happened.sum()),
        "n_lost": int(lost.sum()),
        "predicted": float(np.average(predicted, weights=weights)),
        "observed": observed,
        # without an event there is no variance, but the bounds need none
        "low": max(low, lowest),
        "high": min(high, highest),
        "least": lowest,
        "most": highest,
    }


# --- new times, cut off as those that were seen


def cut_off(latent: Floats, times: Outcomes, random: np.random.Generator) -> Outcomes:
    """Return new times of the same people, cut off as they were, from `latent` times until events.

    A person who was lost is cut off at the same time. When the others would have been cut off is
    drawn from the Kaplan-Meier estimate of that time, given that it is later than what was seen of
    them. This assumes that it is independent of the features, so it is approximate.
    """
    lost = times.is_lost
    estimate = KaplanMeier.of(times.value, lost)
    before = estimate.at(times.value)
    levels = before + (1 - before) * fresh(lost.size, random)
    # beyond the last of these times nobody is cut off
    drawn = np.append(estimate.values, np.inf)[np.searchsorted(estimate.cdf, levels)]
    cut = np.where(lost, times.value, drawn)
    happened = latent <= cut
    if times.horizon is not None:
        happened &= latent < times.horizon
        cut = np.minimum(cut, times.horizon)
    return times.completed(np.where(happened, latent, np.minimum(latent, cut)), happened)
