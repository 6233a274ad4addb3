"""Scores of forecasters on certifying rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand._validate import Floats
from evenhand.calibration import calibration_error, crps, interval_width, log_score
from evenhand.forecast import Forecast
from evenhand.planning import LEVEL
from evenhand.selection.baseline import WITHOUT_FEATURES, without_features

COMPARED_DRAWS = 2
"""Draws per person in the comparison of CRPS."""

COMPARED = 250
"""Most people in the comparison of CRPS, which is slow without a closed form."""


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
            "width": float(interval_width(forecast, LEVEL).mean()),
            "average_error": calibration_error(self.pit(forecast) if pit is None else pit),
            "certified_group_error": np.nan,
        }

    def without_features(self, learned: Floats) -> list[dict[str, Any]]:
        """Return the row of the forecast that ignores every feature, if it has a density.

        `learned` are the training outcomes, of which there may be none.
        """
        # its folds must not change the draws of the other forecasts
        forecast = without_features(learned, self.y, self.random.spawn(1)[0])
        return [] if forecast is None else [self.line(WITHOUT_FEATURES, forecast)]
