"""Calibration of PITs: errors with bands, scores, histogram and counts. No model is seen here."""

from __future__ import annotations

from evenhand.calibration.bands import (
    SurvivalBand,
    betting_cvar,
    binned_distance,
    binned_error_interval,
    cvar,
    dkw_band,
    error_interval,
    local_levels_band,
    share_bound,
    share_interval,
)
from evenhand.calibration.counts import PITCounts, binned_error, count_pits
from evenhand.calibration.errors import calibration_error, check_pit, error_band, pathwise_errors
from evenhand.calibration.scores import (
    cell_log_score,
    covered,
    crps,
    interval_width,
    log_score,
    rounding_step,
    spread,
)

__all__ = [
    "PITCounts",
    "SurvivalBand",
    "betting_cvar",
    "binned_distance",
    "binned_error",
    "binned_error_interval",
    "calibration_error",
    "cell_log_score",
    "check_pit",
    "count_pits",
    "covered",
    "crps",
    "cvar",
    "dkw_band",
    "error_band",
    "error_interval",
    "interval_width",
    "local_levels_band",
    "log_score",
    "pathwise_errors",
    "rounding_step",
    "share_bound",
    "share_interval",
    "spread",
]
