"""Titles of axes and labels of series that figures and reports have in common."""

from __future__ import annotations

from evenhand._format import confidence_in_full
from evenhand.calibration import HISTOGRAM_CONFIDENCE

PIT_TITLE = "Predicted probability of an outcome this low (PIT)"
OUTCOMES_TITLE = "Share of outcomes"
PIT_BAND = f"simultaneous {confidence_in_full(HISTOGRAM_CONFIDENCE)} band under calibration"

ERROR_TITLE = "Calibration error (percentage points)"
SIZE_TITLE = "Group size (share of people)"
PRICE_TITLE = "Price: loss in log score (nats)"

ORACLE = "oracle (chosen after seeing the outcomes)"
SAME_SEARCH = "the same search in calibrated forecasts"
CERTIFIED = "certified upper bound for every group of at least this size"
LEARNED = "learned from features, with lower bound"
