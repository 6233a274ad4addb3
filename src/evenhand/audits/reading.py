"""PITs of all rows of an audit, read in blocks."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from evenhand._validate import Floats, Ints, Mask, check_outcomes
from evenhand.audits.blocks import Block, Ends, inside_link, read_forecast, spread_pits
from evenhand.audits.outcomes import (
    Events,
    PositivePart,
    RoundingCells,
    Simulate,
    is_off_atom,
    outcome_ends,
    rounding_of,
)
from evenhand.calibration import Grid, PITs
from evenhand.censoring import CensoredTimes, KaplanMeier
from evenhand.certificates import LinkBase
from evenhand.distributions import Distribution, Hurdle, OutcomeKind, Randomized, as_hurdle
from evenhand.draws import fresh
from evenhand.forecast import Forecast, check_forecast_of_times

# --- simulated outcomes, for the null distribution of searches


def simulation(
    forecast: Forecast,
    rounding: RoundingCells,
    origin: float,
    times: CensoredTimes | None = None,
) -> Simulate:
    """Return a function that draws outcomes from forecasts, and gives the PITs of these outcomes.

    The outcomes of a randomized forecast are drawn from the deterministic forecast inside its link,
    under which it is calibrated; those of other randomized forecasts from one of their draws,
    chosen at random. Rounded outcomes are rounded to the grid that contains `origin`.

    Times are cut off anew, see `cut_off`.
    """

    def simulate(random: np.random.Generator) -> PITs:
        inside = calibrated(forecast, random)
        drawn = inside.ppf(fresh(inside.batch_shape, random)).reshape(-1)
        outcomes = _rounded(forecast, drawn, rounding, origin)
        seen = None if times is None else cut_off(np.maximum(outcomes, 0.0), times, random)
        outcomes = outcomes if seen is None else seen.time
        ends = outcome_ends(forecast, outcomes, rounding, seen)
        pit, cells = spread_pits(forecast.distribution, ends, fresh(outcomes.size, random))
        return PITs(pit, None, None, cells, None if seen is None else seen.is_lost)

    return simulate


def cut_off(latent: Floats, times: CensoredTimes, random: np.random.Generator) -> CensoredTimes:
    """Return new times of the same people, cut off as they were.

    A person who was lost is cut off at the same time. When the others would have been cut off is
    drawn from the Kaplan-Meier estimate of that time, given that it is later than what was seen of
    them. This assumes that it is independent of the features, so it is approximate.

    Parameters
    ----------
    latent : ndarray of shape (n,)
        New times until the event, at least 0.
    times : CensoredTimes
        The times that were seen.
    """
    lost = times.is_lost
    estimate = KaplanMeier.of(times.time, lost)
    before = estimate.at(times.time)
    levels = before + (1 - before) * fresh(lost.size, random)
    # beyond the last of these times nobody is cut off
    drawn = np.append(estimate.values, np.inf)[np.searchsorted(estimate.cdf, levels)]
    cut = np.where(lost, times.time, drawn)
    happened = latent <= cut
    if times.horizon is not None:
        happened &= latent < times.horizon
        cut = np.minimum(cut, times.horizon)
    seen = np.where(happened, latent, np.minimum(latent, cut))
    return CensoredTimes(seen, happened, times.horizon, times.entered, seen, happened)


def _rounded(forecast: Forecast, values: Floats, rounding: RoundingCells, origin: float) -> Floats:
    if not rounding.is_used:
        return values
    rounded = rounding.rounded(values, origin)
    if forecast.outcome_kind is not OutcomeKind.HURDLE:
        return rounded
    # a value near the atom is rounded to the next value of the grid: it is not the atom
    at = as_hurdle(forecast.distribution).at
    return np.where((values == at) | (rounded == at), values, rounded)


def calibrated(forecast: Forecast, random: np.random.Generator) -> Distribution:
    """Return distributions of shape (n,) or (n, 1) under which the forecasts are calibrated."""
    distribution = forecast.distribution
    inside = inside_link(forecast)
    if inside is not None:
        return inside.base
    if isinstance(distribution, Hurdle) and isinstance(distribution.positive, Randomized):
        chance = (
            distribution.chance if distribution.chance.ndim == 1 else distribution.chance[:, :1]
        )
        return Hurdle(chance, distribution.positive.base, distribution.at, distribution.end)
    if len(distribution.batch_shape) == 1:
        return distribution
    n, m = distribution.batch_shape
    return distribution.take_draws(random.integers(m, size=(n, 1)))


# --- completed times


class Imputation(NamedTuple):
    """Completed times of people whose outcome is open above, for tests (outcomes: 5).

    Under calibrated forecasts, and if being cut off is independent of the time given the features,
    a completed time has the distribution of the time itself. For a deterministic forecast its PIT
    is the position in the cell. A randomized forecast is calibrated over its draws, and not given
    one: uniform positions in the cells of served forecasts would not be uniform over draws.

    Parameters
    ----------
    rows : ndarray of bool, shape (n,)
        People whose outcome is open above.
    times : ndarray of shape (n,)
        Completed times of these people; the times of others.
    ties : ndarray of shape (n,)
        Position of each completed time within its own cell, if it is an atom.
    pit, low, high : ndarray of shape (n,)
        PITs of all people under the distributions under which the forecasts are calibrated, and the
        ends of their cells.
    """

    rows: Mask
    times: Floats
    ties: Floats
    pit: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(
        cls,
        forecast: Forecast,
        times: CensoredTimes,
        ends: Ends,
        ties: Floats,
        random: np.random.Generator,
    ) -> Self:
        """Complete times; `ends` and `ties` are those that PITs are computed from."""
        rows = np.isposinf(ends[1]) & ~times.happened
        inside = calibrated(forecast, random)
        shape = (-1,) if len(inside.batch_shape) == 1 else (-1, 1)
        level, cells = spread_pits(inside, ends, ties)
        low, high = (end.reshape(-1) for end in (cells or (level, level)))
        completed = inside.ppf(level.reshape(shape))
        least, most = (inside.cdf_left(completed).reshape(-1), inside.cdf(completed).reshape(-1))
        level, width = level.reshape(-1), most - least
        own = np.divide(level - least, width, out=ties.copy(), where=width > 0)
        values = np.where(rows, np.maximum(completed.reshape(-1), times.time), times.time)
        return cls(rows, values, np.clip(own, 0.0, 1.0), level, low, high)

    def take(self, rows: Ints) -> Self:
        """Return the completed times of some people."""
        return type(self)(
            self.rows[rows],
            self.times[rows],
            self.ties[rows],
            self.pit[rows],
            self.low[rows],
            self.high[rows],
        )

    def positions(self, forecast: Forecast, pits: Floats, low: Floats, rows: Mask) -> Floats:
        """Return PITs, shape (n, m), with those of some people at their completed times.

        `low` are the lower ends of what is known of the PITs.
        """
        found = pits.copy()
        if rows.any():
            at = self.times[rows]
            moved, _ = spread_pits(forecast[rows].distribution, (at, at), self.ties[rows])
            found[rows] = np.maximum(moved.reshape(at.size, -1), low[rows])
        return found


# --- PITs of all rows


class Reading:
    """PITs of all rows of an audit, filled in block by block.

    Arrays of all rows are made with the first block: a list of blocks would double the memory.

    Parameters
    ----------
    outcomes : ndarray of shape (n,)
        Outcomes of all rows, finite.
    ties : ndarray of shape (n,)
        Position of each person's PITs within their cells, between 0 and 1.
    times : CensoredTimes or None
        Which of the outcomes are times that are cut off; None if all are known.
    """

    def __init__(self, outcomes: Floats, ties: Floats, times: CensoredTimes | None = None) -> None:
        self.outcomes = outcomes
        self.times = times
        self.at_horizon: Floats | None = None
        self.by_horizon: Floats | None = None
        self.mean = np.empty(outcomes.size)
        self.base: LinkBase | None = None
        self.kind = OutcomeKind.CONTINUOUS
        self.rounding = RoundingCells()
        self.grid: Grid | None = None
        self._ties = ties
        self._pit = np.empty((outcomes.size, 0))
        self._r: Floats | None = None
        self._cells: Ends | None = None
        self.events: Events | None = None
        self._positive: list[Block] = []
        self._base: Floats | None = None
        self._at = 0.0
        self._off_atom = np.zeros(outcomes.size, dtype=np.bool_)

    def add(
        self, rows: slice, forecast: Forecast, random: np.random.Generator, *, is_own: bool
    ) -> None:
        """Read the forecasts of a block of rows; the first block begins with row 0."""
        if rows.start == 0:
            self._start(forecast)
        outcomes, ties = self.outcomes[rows], self._ties[rows]
        times = None if self.times is None else self.times.take(rows)
        ends = outcome_ends(forecast, outcomes, self.rounding, times)
        has_mean = times is None
        block = read_forecast(forecast, ends, ties, random, is_own=is_own, has_mean=has_mean)
        guess = None
        if times is not None:
            guess = Imputation.of(forecast, times, ends, ties, random)
            if forecast.is_randomized and block.cells is not None:
                self._fill_base(rows, guess)
                pit = guess.positions(forecast, block.pit, block.cells[0], guess.rows)
                block = block._replace(pit=pit)
        self._fill(rows, block)
        if times is not None and times.horizon is not None:
            self._fill_horizon(rows, forecast, times.horizon)
        found = Events.of(forecast, outcomes)
        if found is not None and self.events is not None:
            self.events.probability[rows] = found.probability
            self.events.happened[rows] = found.happened
        if self.kind is OutcomeKind.HURDLE:
            off = np.flatnonzero(is_off_atom(forecast, outcomes))
            self._off_atom[rows] = is_off_atom(forecast, outcomes)
            if off.size:
                part = forecast.positive_part()[off]
                ends = ends[0][off], ends[1][off]
                block = read_forecast(
                    part, ends, ties[off], random, is_own=is_own, has_mean=has_mean
                )
                if guess is not None and block.cells is not None:
                    guess = guess.take(off)
                    is_before = is_off_atom(forecast, guess.times)
                    some = guess.rows & is_before
                    pit = guess.positions(part, block.pit, block.cells[0], some)
                    block = block._replace(pit=pit)
                self._positive.append(block)

    def _fill_base(self, rows: slice, guess: Imputation) -> None:
        if self._base is None:
            self._base = np.empty((3, self.outcomes.size))
        self._base[:, rows] = guess.pit, guess.low, guess.high

    def time_base(self, weights: Floats | None) -> PITs | None:
        """Return PITs of the base of randomized forecasts of times; None for others."""
        if self._base is None or self.times is None:
            return None
        pit, low, high = (values[:, None] for values in self._base)
        return PITs(pit, None, weights, (low, high), self.times.is_lost)

    def _fill_horizon(self, rows: slice, forecast: Forecast, horizon: float) -> None:
        if self.by_horizon is None:
            self.by_horizon = np.empty(self.outcomes.size)
        served = forecast.cdf_left(horizon)
        self.by_horizon[rows] = served.reshape(served.shape[0], -1).mean(axis=-1)
        inside = inside_link(forecast)
        known = forecast.distribution if inside is None else inside.base
        if inside is None and forecast.is_randomized:
            return
        if self.at_horizon is None:
            self.at_horizon = np.empty(self.outcomes.size)
        self.at_horizon[rows] = known.cdf_left(horizon).reshape(-1)

    def _start(self, forecast: Forecast) -> None:
        """Read the kind of outcome off the first forecasts, and check all outcomes."""
        check_forecast_of_times(forecast, self.times)
        self.kind = forecast.outcome_kind
        # many people may be cut off, or reach the horizon, at one time
        check_outcomes(self.outcomes, kind=str(self.kind) if self.times is None else None)
        self.rounding = rounding_of(forecast, self.outcomes, self.times)
        # the grid is for scores of rounding cells, which times that are cut off do not have
        if self.kind is OutcomeKind.CONTINUOUS and self.times is None:
            self.grid = Grid.of(self.outcomes)
        if self.kind is OutcomeKind.HURDLE:
            self._at = as_hurdle(forecast.distribution).at
        if self.kind in (OutcomeKind.BINARY, OutcomeKind.HURDLE):
            self.events = Events(np.empty(self.outcomes.size), np.empty(self.outcomes.size))

    def _fill(self, rows: slice, block: Block) -> None:
        n = self.outcomes.size
        if rows.start == 0:  # draws, cells and link are known from the first block
            shape = (n, block.pit.shape[1])
            self._pit = np.empty(shape)
            self._r = None if block.r is None else np.empty((n, block.r.shape[1]))
            # a block without atoms at the ends has no cells, although others may have them
            has_cells = block.cells is not None or self.rounding.is_used or self.times is not None
            self._cells = (np.empty(shape), np.empty(shape)) if has_cells else None
            self.base = None if block.base is None else _empty_base(n, block.base, has_cells)
        self._pit[rows] = block.pit
        self.mean[rows] = block.mean
        if self._r is not None:
            self._r[rows] = block.r
        if self._cells is not None:
            ends = (block.pit, block.pit) if block.cells is None else block.cells
            self._cells[0][rows], self._cells[1][rows] = ends
        if self.base is not None and block.base is not None:
            self.base.pit[rows] = block.base.pit
            if self.base.cells is not None:
                low, high = block.base.cells or (block.base.pit, block.base.pit)
                self.base.cells[0][rows], self.base.cells[1][rows] = low, high

    def pits(self, weights: Floats | None) -> PITs:
        """Return the PITs of all rows."""
        censored = None if self.times is None else self.times.is_lost
        return PITs(self._pit, self._r, weights, self._cells, censored)

    def positive(self, weights: Floats | None) -> PositivePart | None:
        """Return the PITs of the people whose outcome is not the atom of a hurdle, if any."""
        if not self._positive:
            return None
        rows = np.flatnonzero(self._off_atom)
        return PositivePart.joined(
            rows, self._positive, self.outcomes, weights, self._at, self.times
        )


def _empty_base(n: int, base: LinkBase, has_cells: bool) -> LinkBase:
    """Return the base of a link with arrays for `n` people."""
    cells = (np.empty(n), np.empty(n)) if has_cells else None
    return LinkBase(np.empty(n), base.link, cells)
