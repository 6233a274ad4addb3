"""What a PIT matrix tells: calibration on average, for groups, for each person. No model is seen here."""

from __future__ import annotations

from evenhand.calibration.any_link import LinkCertificate, certify_link
from evenhand.calibration.certificates import Certificate, Method
from evenhand.calibration.certified_pits import certify_pit
from evenhand.calibration.counts import PITCounts, binned_error, certify_counts, count_pits
from evenhand.calibration.errors import calibration_error, check_pit, error_band, pathwise_errors
from evenhand.calibration.learned import FoundGroup, find_group
from evenhand.calibration.null import NullCurve, null_curve
from evenhand.calibration.scan import scan_groups
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
    "Certificate",
    "FoundGroup",
    "LinkCertificate",
    "Method",
    "NullCurve",
    "PITCounts",
    "WorstGroupCurve",
    "binned_error",
    "calibration_error",
    "cell_log_score",
    "certify_counts",
    "certify_link",
    "certify_pit",
    "check_pit",
    "count_pits",
    "covered",
    "crps",
    "error_band",
    "find_group",
    "interval_width",
    "log_score",
    "null_curve",
    "pathwise_errors",
    "rounding_step",
    "scan_groups",
    "spread",
    "worst_group_curve",
]
