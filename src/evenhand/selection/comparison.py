"""What forecasters are compared by on the certifying rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand._validate import (
    MILD_ATOM,
    Floats,
    largest_atom,
)
from evenhand.calibration import calibration_error, crps, log_score, rounding_step
from evenhand.forecast import Forecast

COMPARED = 250
"""Most people whose CRPS and widths are compared: they are slow where forecasts have no closed
form."""


class Held:
    """The outcomes of the certifying people, and what forecasters are compared by on them."""

    def __init__(self, y: Floats, step: float | None, random: np.random.Generator) -> None:
        self.y = y
        self.step = step
        self.random = random
        self.compared = np.arange(y.size)
        if y.size > COMPARED:
            self.compared = np.sort(random.choice(y.size, COMPARED, replace=False))

    def pit(self, forecast: Forecast) -> Floats:
        return forecast.pit(self.y, step=self.step, random_state=self.random)

    def crps(self, part: Forecast) -> float:
        """Mean CRPS of the people who are compared."""
        return float(np.mean(crps(part, self.y[self.compared])))

    def line(self, name: str, forecast: Forecast, pit: Floats | None = None) -> dict[str, Any]:
        return {
            "forecaster": name,
            "log_score": float(np.mean(log_score(forecast, self.y))),
            "crps": self.crps(forecast[self.compared]),
            "average_error": calibration_error(self.pit(forecast) if pit is None else pit),
            "certified_group_error": np.nan,
        }


def spread_step(y: Floats) -> float | None:
    """Rounding step of outcomes that pile up PITs, which are then spread over the cell.

    None for others.
    """
    return rounding_step(y) if largest_atom(y)[1] > MILD_ATOM else None
