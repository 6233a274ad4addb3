"""Scores of forecasters on certifying rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand._validate import Floats
from evenhand.calibration import calibration_error, crps, log_score
from evenhand.forecast import Forecast

COMPARED_DRAWS = 2
"""Draws per person in the comparison of CRPS and interval widths."""

COMPARED = 250
"""Most people in the comparison of CRPS and widths, which are slow without a closed form."""


class HeldOutScores:
    """Scores that compare forecasters on the outcomes of the certifying people."""

    def __init__(self, y: Floats, step: float | None, random: np.random.Generator) -> None:
        self.y = y
        self.step = step
        self.random = random
        self.compared = np.arange(y.size)
        # one random sample for all forecasters
        if y.size > COMPARED:
            self.compared = np.sort(random.choice(y.size, COMPARED, replace=False))

    def pit(self, forecast: Forecast) -> Floats:
        """Return PITs of the outcomes, spread over their rounding cells if they are rounded."""
        return forecast.pit(self.y, step=self.step, random_state=self.random)

    def crps(self, part: Forecast) -> float:
        """Return the mean CRPS of the compared people."""
        return float(np.mean(crps(part, self.y[self.compared])))

    def line(self, name: str, forecast: Forecast, pit: Floats | None = None) -> dict[str, Any]:
        """Return the row of a forecaster in `Selection.comparison`."""
        return {
            "forecaster": name,
            "log_score": float(np.mean(log_score(forecast, self.y))),
            "crps": self.crps(forecast[self.compared]),
            "average_error": calibration_error(self.pit(forecast) if pit is None else pit),
            "certified_group_error": np.nan,
        }
