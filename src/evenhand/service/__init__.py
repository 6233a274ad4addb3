"""Serving of forecasts: decision log, replay and outcomes."""

# for the commands and for tests; `__all__` is the documented reference
from evenhand.service.contexts import WatchedContexts, context_of, logged_forecast
from evenhand.service.features import loaded
from evenhand.service.log import (
    DecisionLog,
    Entry,
    EntryTimes,
    Head,
    LogError,
    Logged,
    Transaction,
    Verification,
    export,
    open_log,
    verify,
)
from evenhand.service.log_watch import LogWatch, WatchState
from evenhand.service.matured import matured_rows
from evenhand.service.outcomes import Recorded, RowPlaces, record_outcome, record_outcomes
from evenhand.service.replay import Check, Difference, Replay, replay_forecast, row_of
from evenhand.service.service import Served, Service

__all__ = [
    "Check",
    "DecisionLog",
    "Difference",
    "Entry",
    "EntryTimes",
    "Head",
    "LogError",
    "Logged",
    "Recorded",
    "Replay",
    "Served",
    "Service",
    "Transaction",
    "Verification",
    "export",
    "matured_rows",
    "open_log",
    "record_outcome",
    "record_outcomes",
    "replay_forecast",
    "verify",
]
