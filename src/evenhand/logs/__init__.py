"""Append-only logs with a hash chain: entries, and where they are stored."""

from __future__ import annotations

from evenhand.logs.batches import Batches, Ticket
from evenhand.logs.chain import digest_of
from evenhand.logs.decision_log import DecisionLog, Transaction
from evenhand.logs.entries import Entry, EntryKind, Head, Logged
from evenhand.logs.entry_times import EntryTimes
from evenhand.logs.exporting import export
from evenhand.logs.log_errors import LogError
from evenhand.logs.opening import open_log
from evenhand.logs.verification import Verification, verify

__all__ = [
    "Batches",
    "DecisionLog",
    "Entry",
    "EntryKind",
    "EntryTimes",
    "Head",
    "LogError",
    "Logged",
    "Ticket",
    "Transaction",
    "Verification",
    "digest_of",
    "export",
    "open_log",
    "verify",
]
