"""Times that are cut off, with the distribution that forecasts know: the simulation of outcomes: 5.

`log T = LOCATION + SLOPE x + SCALE (z + shift)` with normal `x` and `z`, of which the forecasts
know the distribution without the shift. People enter over the years 0 to 6 of a study, evenly, and
leave at a constant rate after 8 years in the mean. outcomes: 5 does not give the three parameters:
those below reproduce both of its tables.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand import Forecast
from evenhand.calibration import Cells, Reading
from evenhand.outcomes import Outcomes

Floats = NDArray[np.float64]

LOCATION, SLOPE, SCALE = 0.6, 0.8, 0.7
STUDY, LEAVING = 6.0, 8.0
GRID = np.concatenate((np.linspace(0.02, STUDY, 90), np.geomspace(6.5, 100, 10)))
SHIFTED = 0.2


@dataclass(frozen=True)
class Sample:
    """People of the simulation; `known` and `truth` are their PITs at both times."""

    x: Floats
    is_shifted: NDArray[np.bool_]
    entered: Floats
    event_at: Floats
    time: Floats
    event: NDArray[np.bool_]

    @classmethod
    def of(cls, n, random, shift=0.0, leaving=LEAVING):
        x, z = random.normal(size=(2, n))
        is_shifted = random.random(n) < SHIFTED
        event_at = np.exp(LOCATION + SLOPE * x + SCALE * (z + shift * is_shifted))
        entered = random.uniform(0, STUDY, n)
        cut = np.minimum(STUDY - entered, random.exponential(leaving, n))
        return cls(x, is_shifted, entered, event_at, np.minimum(event_at, cut), event_at <= cut)

    @property
    def known(self):
        return forecast_cdf(self.time, self.x)

    @property
    def truth(self):
        return forecast_cdf(self.event_at, self.x)

    def forecast(self, horizon=None):
        return forecast_of(self.x, horizon)

    def pits(self, random):
        """PITs as an audit makes them: a cell up to 1 for who is censored."""
        high = np.where(self.event, self.known, 1.0)
        ties = random.random(self.time.size)
        return Cells(self.known, high, ties=ties, reading=~self.event * Reading.UNKNOWN)

    def times(self, horizon=None):
        entered = None if horizon is None else self.entered
        return Outcomes(self.time, self.event, horizon, entered)


def forecast_cdf(time, x):
    return np.asarray(special.ndtr((np.log(time) - LOCATION - SLOPE * x) / SCALE))


def forecast_of(x, horizon=None):
    """Return curves, linear between their times."""
    return Forecast.from_survival(GRID, 1 - forecast_cdf(GRID, x[:, None]), horizon)
