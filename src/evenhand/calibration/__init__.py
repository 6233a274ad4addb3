"""Calibration of PITs: errors with confidence intervals, bands, histograms and counts."""

# names for other rooms stand beside those of `__all__`, the documented reference
from evenhand.calibration.bands import (
    CDFBand,
    CDFBands,
    SurvivalBand,
    betting_cvar,
    binomial_intervals,
    cvar,
    error_interval,
    local_levels,
    local_levels_band,
    share_bound,
    share_interval,
)
from evenhand.calibration.cells import Cells, Events, Pit, Reading, as_cells, divided
from evenhand.calibration.counts import ERROR_BINS, GAP_BINS, PIT_BINS, PITCounts, count_pits, total
from evenhand.calibration.errors import (
    CURVE_LEVELS,
    HISTOGRAM_BINS,
    bin_sums,
    binned_error,
    calibration_curve,
    calibration_error,
    cell_error,
    cell_excess,
    covered,
    covered_whole,
    curve_points,
    histogram_table,
    line_distance,
    middle_distances,
    n_effective,
    pathwise_errors,
    pit_histogram,
    quantile_distance,
    ramps_at,
    row_distances,
)
from evenhand.calibration.events import check_events, mid_ranks, rank_parts
from evenhand.calibration.group_sums import (
    COVERED,
    LEAST_EFFECTIVE,
    MEASURES,
    GroupRows,
    GroupSums,
    coverage_name,
    given_forecast,
    hall,
    holm,
    own_parts,
    rate_error,
    simultaneous_intervals,
)
from evenhand.calibration.kaplan_meier import (
    CensoredError,
    KaplanMeier,
    censored_error,
    cut_off,
    estimated_error,
    rates_by_horizon,
)
from evenhand.calibration.means import (
    Profile,
    mean_bounds,
    over_draws,
    paired_change,
    weighted_mean_band,
    weighted_share_band,
)

__all__ = [
    "ERROR_BINS",
    "GAP_BINS",
    "PIT_BINS",
    "Cells",
    "CensoredError",
    "KaplanMeier",
    "PITCounts",
    "Reading",
    "SurvivalBand",
    "betting_cvar",
    "binned_error",
    "calibration_error",
    "cell_error",
    "censored_error",
    "count_pits",
    "covered",
    "covered_whole",
    "cvar",
    "error_interval",
    "local_levels_band",
    "pathwise_errors",
    "pit_histogram",
    "share_bound",
    "share_interval",
]
