"""Times that are cut off, completed by the distributions under which forecasts are calibrated."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from evenhand._validate import Floats, Ints, Mask
from evenhand.audits.blocks import Ends, spread_pits
from evenhand.audits.simulations import calibrated
from evenhand.censoring import CensoredTimes
from evenhand.forecast import Forecast


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
