"""Calibration of PITs: errors with bands, scores, histogram and counts. No model is seen here."""

from __future__ import annotations

from evenhand.calibration.bands import SurvivalBand, cvar, dkw_band, local_levels_band
from evenhand.calibration.betting import betting_cvar
from evenhand.calibration.binning import count_pits
from evenhand.calibration.counts import (
    ERROR_BINS,
    GAP_BINS,
    PIT_BINS,
    PITCounts,
    binned_error,
)
from evenhand.calibration.distances import (
    binned_distance,
    line_distance,
    quantile_distance,
    row_distances,
)
from evenhand.calibration.errors import (
    calibration_error,
    error_band,
    error_with_band,
    n_effective,
    pathwise_errors,
)
from evenhand.calibration.histogram import (
    HISTOGRAM_BINS,
    HISTOGRAM_CONFIDENCE,
    draws_in_bins,
    histogram_band,
    histogram_bins,
    pit_histogram,
)
from evenhand.calibration.intervals import (
    binned_error_interval,
    error_interval,
    share_bound,
    share_interval,
)
from evenhand.calibration.pits import PITs, as_pits, check_own_draws
from evenhand.calibration.scores import (
    cell_log_score,
    covered,
    crps,
    crps_and_spread,
    grid_step,
    interval_width,
    log_score,
    rounding_step,
    spread,
)

__all__ = [
    "ERROR_BINS",
    "GAP_BINS",
    "HISTOGRAM_BINS",
    "HISTOGRAM_CONFIDENCE",
    "PIT_BINS",
    "PITCounts",
    "PITs",
    "SurvivalBand",
    "as_pits",
    "betting_cvar",
    "binned_distance",
    "binned_error",
    "binned_error_interval",
    "calibration_error",
    "cell_log_score",
    "check_own_draws",
    "count_pits",
    "covered",
    "crps",
    "crps_and_spread",
    "cvar",
    "dkw_band",
    "draws_in_bins",
    "error_band",
    "error_interval",
    "error_with_band",
    "grid_step",
    "histogram_band",
    "histogram_bins",
    "interval_width",
    "line_distance",
    "local_levels_band",
    "log_score",
    "n_effective",
    "pathwise_errors",
    "pit_histogram",
    "quantile_distance",
    "rounding_step",
    "row_distances",
    "share_bound",
    "share_interval",
    "spread",
]
