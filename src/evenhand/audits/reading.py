"""PITs of all rows of an audit, read in blocks."""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats, check_outcomes
from evenhand.audits.blocks import Block, Ends, inside_link, read_forecast
from evenhand.audits.imputation import Imputation
from evenhand.audits.outcomes import (
    Events,
    PositivePart,
    is_off_atom,
    outcome_ends,
    rounding_of,
)
from evenhand.audits.rounding import RoundingCells
from evenhand.calibration import Grid, PITs
from evenhand.censoring import CensoredTimes
from evenhand.certificates import LinkBase
from evenhand.distributions import OutcomeKind, as_hurdle
from evenhand.forecast import Forecast, check_forecast_of_times


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
