"""What a PIT matrix tells: calibration on average, for groups, for each person. No model is seen here."""

from __future__ import annotations

from evenhand.calibration.errors import calibration_error, error_band, pathwise_errors
from evenhand.calibration.scores import (
    cell_log_score,
    covered,
    crps,
    interval_width,
    log_score,
    rounding_step,
    spread,
)
from evenhand.calibration.worst import WorstGroupCurve, worst_group_curve

__all__ = [
    "WorstGroupCurve",
    "calibration_error",
    "cell_log_score",
    "covered",
    "crps",
    "error_band",
    "interval_width",
    "log_score",
    "pathwise_errors",
    "rounding_step",
    "spread",
    "worst_group_curve",
]
