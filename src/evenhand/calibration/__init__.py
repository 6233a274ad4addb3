"""Calibration of PITs: errors with confidence intervals, bands, histograms and counts."""

from __future__ import annotations

from evenhand.calibration.bands import CDFBand as CDFBand
from evenhand.calibration.bands import CDFBands as CDFBands
from evenhand.calibration.bands import Estimate as Estimate

# parts for other rooms are imported under their own names; `__all__` is the documented reference
from evenhand.calibration.bands import (
    SurvivalBand,
    betting_cvar,
    cvar,
    error_interval,
    local_levels_band,
    share_bound,
    share_interval,
)
from evenhand.calibration.bands import binomial_intervals as binomial_intervals
from evenhand.calibration.bands import local_levels as local_levels
from evenhand.calibration.cells import Cells, Reading
from evenhand.calibration.cells import Events as Events
from evenhand.calibration.cells import Pit as Pit
from evenhand.calibration.cells import as_cells as as_cells
from evenhand.calibration.counts import (
    ERROR_BINS,
    GAP_BINS,
    PIT_BINS,
    PITCounts,
    count_pits,
)
from evenhand.calibration.errors import HISTOGRAM_BINS as HISTOGRAM_BINS
from evenhand.calibration.errors import HISTOGRAM_CONFIDENCE as HISTOGRAM_CONFIDENCE
from evenhand.calibration.errors import (
    binned_error,
    calibration_error,
    cell_error,
    covered,
    covered_whole,
    pathwise_errors,
    pit_histogram,
)
from evenhand.calibration.errors import cell_excess as cell_excess
from evenhand.calibration.errors import draws_in_bins as draws_in_bins
from evenhand.calibration.errors import histogram_table as histogram_table
from evenhand.calibration.errors import line_distance as line_distance
from evenhand.calibration.errors import n_effective as n_effective
from evenhand.calibration.errors import quantile_distance as quantile_distance
from evenhand.calibration.errors import ramps_at as ramps_at
from evenhand.calibration.errors import row_distances as row_distances
from evenhand.calibration.events import EVENT_NAMES as EVENT_NAMES
from evenhand.calibration.events import check_events as check_events
from evenhand.calibration.events import event_values as event_values
from evenhand.calibration.events import mid_ranks as mid_ranks
from evenhand.calibration.events import rank_parts as rank_parts
from evenhand.calibration.group_sums import COVERED as COVERED
from evenhand.calibration.group_sums import LEAST_EFFECTIVE as LEAST_EFFECTIVE
from evenhand.calibration.group_sums import GroupRows as GroupRows
from evenhand.calibration.group_sums import GroupSums as GroupSums
from evenhand.calibration.group_sums import coverage_name as coverage_name
from evenhand.calibration.group_sums import given_forecast as given_forecast
from evenhand.calibration.group_sums import holm as holm
from evenhand.calibration.group_sums import own_parts as own_parts
from evenhand.calibration.group_sums import rate_error as rate_error
from evenhand.calibration.group_sums import simultaneous_intervals as simultaneous_intervals
from evenhand.calibration.kaplan_meier import (
    CensoredError,
    KaplanMeier,
    censored_error,
)
from evenhand.calibration.kaplan_meier import estimated_error as estimated_error

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
