"""Serving of forecasts: decision log, replay and outcomes."""

from evenhand.service.decision_log import DecisionLog, Transaction
from evenhand.service.entries import Entry, Head, Logged

__all__ = ["DecisionLog", "Entry", "Head", "Logged", "Transaction"]
