"""Distributions of censored times with exact values: the simulation of outcomes: 5.

`log T = LOCATION + SLOPE x + SCALE (z + shift)` with normal `x` and `z`, of which the forecasts
know the distribution without the shift. People enter over the years 0 to 6 of a study, evenly, and
leave at a constant rate after 8 years in the mean. outcomes: 5 does not give the three parameters:
those below reproduce both of its tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.calibration import Cells, Outcomes, Reading

Floats = NDArray[np.float64]

LOCATION, SLOPE, SCALE = 0.6, 0.8, 0.7
STUDY, LEAVING = 6.0, 8.0
SHIFTED = 0.2


@dataclass(frozen=True)
class Sample:
    """People of the simulation; `known` is the CDF of the forecasts at the time that is known."""

    x: Floats
    is_shifted: NDArray[np.bool_]
    entered: Floats
    time: Floats
    event: NDArray[np.bool_]
    known: Floats
    truth: Floats

    @classmethod
    def of(cls, n: int, random: np.random.Generator, shift: float = 0.0) -> Sample:
        x, z = random.normal(size=(2, n))
        is_shifted = random.random(n) < SHIFTED
        event_at = np.exp(LOCATION + SLOPE * x + SCALE * (z + shift * is_shifted))
        entered = random.uniform(0, STUDY, n)
        cut = np.minimum(STUDY - entered, random.exponential(LEAVING, n))
        time = np.minimum(event_at, cut)
        return cls(
            x,
            is_shifted,
            entered,
            time,
            event_at <= cut,
            forecast_cdf(time, x),
            forecast_cdf(event_at, x),
        )

    def pits(self, random: np.random.Generator) -> Cells:
        """PITs as an audit makes them: a cell up to 1 for who is censored."""
        high = np.where(self.event, self.known, 1.0)
        ties = random.random(self.time.size)
        return Cells.between(self.known, high, ties, reading=~self.event * Reading.UNKNOWN)

    def times(self, horizon: float | None = None) -> Outcomes:
        entered = None if horizon is None else self.entered
        return Outcomes(self.time, self.event, horizon, entered)


def forecast_cdf(time: Floats, x: Floats) -> Floats:
    return np.asarray(special.ndtr((np.log(time) - LOCATION - SLOPE * x) / SCALE))


def censoring_survival(time: Floats) -> Floats:
    """Probability that a person is still followed at a time."""
    return np.clip(1 - time / STUDY, 0, None) * np.exp(-time / LEAVING)


class Readings:
    """Errors of the readings of outcomes: 5 in a population, by quadrature.

    `followed` is the probability of being followed beyond the time with CDF `u`, on average over
    people, from which the distribution of every reading follows: Cells have the distribution of
    `Phi(z + shift)` and are independent of `x`.
    """

    def __init__(self, shift: float = 0.0, n_cells: int = 4000) -> None:
        ends = np.linspace(0, 1, n_cells + 1)
        self.u = (ends[1:] + ends[:-1]) / 2
        self.followed = _followed(self.u)
        # PITs are those of `Phi(z + shift)`
        scores = special.ndtri(self.u)
        density = np.exp(shift * scores - shift**2 / 2)
        self.cdf = special.ndtr(scores - shift)
        known = self.followed * density / n_cells
        self.event_rate = float(known.sum())
        self.events = np.cumsum(known) - known / 2
        lost = -np.diff(_followed(ends)) * (1 - self.cdf) / (1 - self.u)
        self.spread = np.cumsum(lost) - lost / 2

    @property
    def dropped(self) -> float:
        """Error if rows that are censored are dropped."""
        return self._distance(self.events / self.event_rate)

    @property
    def as_events(self) -> float:
        """Error if censoring is read as an event."""
        return self._distance(self._ended)

    @property
    def randomized(self) -> float:
        """Error of randomized PITs of the censored distribution."""
        return self._distance(self._ended - (1 - self.u) * self.spread)

    @property
    def truth(self) -> float:
        """Error of the forecasts."""
        return self._distance(self.cdf)

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and most error with which the observations agree."""
        low, high = self.events - self.u, self._ended - self.u
        inside = np.maximum(np.maximum(low, -high), 0)
        return float(inside.mean()), float(np.maximum(np.abs(low), np.abs(high)).mean())

    @property
    def _ended(self) -> Floats:
        return 1 - self.followed * (1 - self.cdf)

    def _distance(self, cdf: Floats) -> float:
        return float(np.abs(cdf - self.u).mean())


def _followed(u: Floats) -> Floats:
    x, weight = np.polynomial.hermite_e.hermegauss(151)
    # no time at CDF 0, and an infinite one at CDF 1
    with np.errstate(invalid="ignore", over="ignore"):
        time = np.exp(LOCATION + SLOPE * x + SCALE * special.ndtri(u)[:, None])
    return np.asarray(censoring_survival(time) @ (weight / weight.sum()))
