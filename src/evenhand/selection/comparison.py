"""Scores of forecasters on certifying rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand._validate import Floats
from evenhand.calibration import Grid, calibration_error, crps, interval_width, log_score_on
from evenhand.forecast import Forecast
from evenhand.planning import LEVEL
from evenhand.selection.baseline import WITHOUT_FEATURES, without_features

COMPARED_DRAWS = 2
"""Draws per person in the comparison of CRPS."""

COMPARED = 250
"""Most people in the comparison of CRPS, which is slow without a closed form."""


class HeldOutScores:
    """Scores that compare forecasters on the outcomes of the certifying people.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Outcomes.
    grid : Grid or None
        Grid of all outcomes, which makes the log score a cell log score.
    step : float or None
        Rounding step over whose cells PITs are spread.
    random : Generator
        Source of draws.
    """

    def __init__(
        self, y: Floats, grid: Grid | None, step: float | None, random: np.random.Generator
    ) -> None:
        self.y = y
        self.grid = grid
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
        return _line(
            name,
            log_score_on(forecast, self.y, self.grid),
            self.crps(forecast[self.compared]),
            interval_width(forecast, LEVEL),
            self.pit(forecast) if pit is None else pit,
        )

    def without_features(self, learned: Floats) -> list[dict[str, Any]]:
        """Return the row of the forecast that ignores every feature, if it has a density.

        `learned` are the training outcomes, of which there may be none.
        """
        # draws of its own: those of the other forecasts must not depend on it
        random = self.random.spawn(1)[0]
        parts = without_features(learned, self.y, random)
        if not parts:
            return []
        log_scores, scores, widths, pits = np.empty((4, self.y.size))
        is_compared = np.isin(np.arange(self.y.size), self.compared)
        for rows, forecast in parts:
            y = self.y[rows]
            log_scores[rows] = log_score_on(forecast, y, self.grid)
            widths[rows] = interval_width(forecast, LEVEL)
            pits[rows] = forecast.pit(y, step=self.step, random_state=random)
            some = np.flatnonzero(is_compared[rows])
            if some.size:
                scores[rows[some]] = crps(forecast[some], y[some])
        mean_crps = float(scores[self.compared].mean())
        return [_line(WITHOUT_FEATURES, log_scores, mean_crps, widths, pits)]


def _line(
    name: str, log_scores: Floats, mean_crps: float, widths: Floats, pit: Floats
) -> dict[str, Any]:
    return {
        "forecaster": name,
        "log_score": float(log_scores.mean()),
        "crps": mean_crps,
        "width": float(widths.mean()),
        "average_error": calibration_error(pit),
        "certified_group_error": np.nan,
    }
