"""Calibration audits: sharpness, coverage, group errors, worst groups and a certificate."""

from evenhand.audits.comparison import Comparison, compare, paired
from evenhand.audits.counted import CountPlan, RowCounts, count_rows
from evenhand.audits.forecasts import BLOCK_ROWS, PIT_DRAWS, forecast_of
from evenhand.audits.gate import judged, parse_condition, with_conditions
from evenhand.audits.result import Audit, renumbered, with_sources
from evenhand.audits.rows import STANDARD, Search, check_about
from evenhand.audits.run import AuditedRows, audit, audit_pit, audited, certify
