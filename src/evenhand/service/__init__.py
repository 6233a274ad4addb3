"""Serving of forecasts: decision log, replay and outcomes."""

from evenhand.service.decision_log import DecisionLog, Transaction
from evenhand.service.entries import Entry, Head, Logged
from evenhand.service.log_errors import LogError
from evenhand.service.opening import open_log
from evenhand.service.verification import Verification, verify

__all__ = [
    "DecisionLog",
    "Entry",
    "Head",
    "LogError",
    "Logged",
    "Transaction",
    "Verification",
    "open_log",
    "verify",
]
