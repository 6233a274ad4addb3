"""Serving of forecasts: decision log, replay and outcomes."""

# for the commands and for tests; `__all__` is the documented reference
from evenhand.service.contexts import Naming as Naming
from evenhand.service.contexts import versions as versions
from evenhand.service.decision_log import DecisionLog, Transaction
from evenhand.service.entries import Entry, Head, Logged
from evenhand.service.entries import EntryKind as EntryKind
from evenhand.service.entry_times import EntryTimes
from evenhand.service.exporting import export
from evenhand.service.feature_tables import row_of as row_of
from evenhand.service.features import Features as Features
from evenhand.service.features import RowReader as RowReader
from evenhand.service.forecasts import Forecasting as Forecasting
from evenhand.service.forecasts import inside_link as inside_link
from evenhand.service.loading import loaded as loaded
from evenhand.service.log_errors import LogError
from evenhand.service.log_watch import LogWatch as LogWatch
from evenhand.service.logged_forecasts import context_of as context_of
from evenhand.service.logged_forecasts import logged_forecast as logged_forecast
from evenhand.service.matured import matured_rows
from evenhand.service.opening import open_log
from evenhand.service.outcome_values import check_outcome as check_outcome
from evenhand.service.outcomes import Recorded, record_outcome, record_outcomes
from evenhand.service.replay import replay_forecast
from evenhand.service.replay_result import Check, Difference, Replay
from evenhand.service.replay_result import ReplayPart as ReplayPart
from evenhand.service.row_places import RowPlaces as RowPlaces
from evenhand.service.served import Served
from evenhand.service.service import Service
from evenhand.service.unseen_features import UnseenFeatures as UnseenFeatures
from evenhand.service.verification import Verification, verify
from evenhand.service.watch_state import WatchState as WatchState
from evenhand.service.watched_contexts import Scope as Scope
from evenhand.service.watched_contexts import WatchedContexts as WatchedContexts

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
