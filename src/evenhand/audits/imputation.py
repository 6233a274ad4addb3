"""Times that are cut off, completed by the distributions under which forecasts are calibrated."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from evenhand._validate import Floats, Ints, Mask
from evenhand.audits.blocks import Ends, spread_pits
from evenhand.audits.outcomes import calibrated
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
    """

    rows: Mask
    times: Floats
    ties: Floats

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
        below = inside.cdf_left(ends[0].reshape(shape)).reshape(-1)
        level = below + ties * (1 - below)
        completed = inside.ppf(level.reshape(shape))
        least = inside.cdf_left(completed).reshape(-1)
        most = inside.cdf(completed).reshape(-1)
        width = most - least
        own = np.divide(level - least, width, out=ties.copy(), where=width > 0)
        values = np.where(rows, np.maximum(completed.reshape(-1), times.time), times.time)
        return cls(rows, values, np.clip(own, 0.0, 1.0))

    def take(self, rows: Ints) -> Self:
        """Return the completed times of some people."""
        return self._replace(rows=self.rows[rows], times=self.times[rows], ties=self.ties[rows])

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
