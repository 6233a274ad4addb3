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

from evenhand.calibration import Cells, Reading
from evenhand.outcomes import Outcomes

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
    def of(cls, n, random, shift=0.0):
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
