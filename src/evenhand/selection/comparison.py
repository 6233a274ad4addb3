"""Scores of forecasters on certifying rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand._validate import Floats
from evenhand.calibration import Grid, calibration_error, crps, interval_width, log_score_on
from evenhand.forecast import Forecast
from evenhand.planning import LEVEL
from evenhand.selection.baseline import WITHOUT_FEATURES, without_features

Cells = tuple[Floats, Floats]
"""Lower and upper ends of PITs, which differ where an outcome has a positive probability."""

COMPARED_DRAWS = 2
"""Draws per person in the comparison of CRPS."""

COMPARED = 250
"""Most people in the comparison of CRPS, which is slow without a closed form: a randomized forecast
of 4,500 people takes 2 to 17 s. The standard error beside it shows the noise of so few people."""


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

    def pit(self, forecast: Forecast) -> Floats | Cells:
        """Return PITs of the outcomes, spread over their rounding cells if they are rounded.

        Those of forecasts with atoms are the ends of cells, over which errors are averaged.
        """
        if forecast.has_atoms:
            return forecast.pit_interval(self.y)
        return forecast.pit(self.y, step=self.step, random_state=self.random)

    def crps(self, part: Forecast) -> Floats:
        """Return the CRPS of each compared person, averaged over draws."""
        each = crps(part, self.y[self.compared])
        return np.asarray(each.reshape(self.compared.size, -1).mean(axis=-1))

    def line(
        self, name: str, forecast: Forecast, pit: Floats | Cells | None = None
    ) -> dict[str, Any]:
        """Return the row of a forecaster in `Selection.comparison`."""
        return self._line(
            name,
            self.losses(forecast),
            self.crps(forecast[self.compared]),
            interval_width(forecast, LEVEL),
            self.pit(forecast) if pit is None else pit,
        )

    def losses(self, forecast: Forecast) -> Floats:
        """Return the log score of each person, shape (n,)."""
        return log_score_on(forecast, self.y, self.grid)

    def average_error(self, pit: Floats | Cells) -> float:
        """Return the estimated overall error of PITs."""
        return calibration_error(pit)

    def without_features(self, learned: Floats, like: Forecast) -> list[dict[str, Any]]:
        """Return the row of the forecast that ignores every feature, if it has a density.

        `learned` are the training outcomes, of which there may be none; `like` is a forecast of the
        same kind of outcome.
        """
        # draws of its own: those of the other forecasts must not depend on it
        random = self.random.spawn(1)[0]
        parts = without_features(learned, self.y, like, random)
        if not parts:
            return []
        losses, scores, widths, low, high = np.empty((5, self.y.size))
        is_compared = np.isin(np.arange(self.y.size), self.compared)
        for rows, forecast in parts:
            y = self.y[rows]
            losses[rows] = log_score_on(forecast, y, self.grid)
            widths[rows] = interval_width(forecast, LEVEL)
            if forecast.has_atoms:
                low[rows], high[rows] = forecast.pit_interval(y)
            else:
                low[rows] = high[rows] = forecast.pit(y, step=self.step, random_state=random)
            some = np.flatnonzero(is_compared[rows])
            if some.size:
                scores[rows[some]] = crps(forecast[some], y[some])
        return [self._line(WITHOUT_FEATURES, losses, scores[self.compared], widths, (low, high))]

    def _line(
        self, name: str, losses: Floats, crps: Floats, widths: Floats, pit: Floats | Cells
    ) -> dict[str, Any]:
        return {
            "forecaster": name,
            "log_score": float(losses.mean()),
            **mean_with_error(crps),
            "width": float(widths.mean()),
            "average_error": self.average_error(pit),
            "certified_group_error": np.nan,
        }


def mean_with_error(crps: Floats) -> dict[str, float]:
    """Return the mean of CRPS and its standard error, as columns of `Selection.comparison`."""
    error = crps.std(ddof=1) / np.sqrt(crps.size)
    return {"crps": float(crps.mean()), "crps_error": float(error)}
