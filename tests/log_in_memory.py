"""A decision log in memory, whose clock a test sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from evenhand.service import DecisionLog, Entry, Head, Logged
from evenhand.service.decision_log import EntryKind

T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)
"""Time of the first entries."""


class LogInMemory(DecisionLog):
    """Entries in a list, without hashes; each has the time of `clock`."""

    def __init__(self) -> None:
        self.source = "memory"
        self.clock = START
        self.n_runs = 0
        self._entries: list[Logged] = []

    def at(self, **since: float) -> LogInMemory:
        """Set the clock to a time since the start, and return the log."""
        self.clock = START + timedelta(**since)
        return self

    def run(self, work: Callable[[LogInMemory], T]) -> T:
        self.n_runs += 1
        before = list(self._entries)
        try:
            return work(self)
        except BaseException:
            self._entries = before
            raise

    def find(self, request: str) -> Logged | None:
        return next((one for one in self._entries if one.request == request), None)

    def n_of(self, subject: str) -> int:
        return sum(one.subject == subject for one in self._entries)

    def add(self, entry: Entry) -> Logged:
        time = f"{self.clock:%Y-%m-%dT%H:%M:%S.%f}Z"
        logged = Logged(**asdict(entry), number=len(self._entries) + 1, time=time)
        self._entries.append(logged)
        return logged

    def get(self, id: str) -> Logged | None:
        mine = (one for one in self._entries if one.kind == "forecast")
        return next((one for one in mine if one.id == id), None)

    def entries(self, *, after: int = 0, kind: EntryKind | None = None) -> Iterator[Logged]:
        listed = list(self._entries)
        return (one for one in listed[after:] if kind in (None, one.kind))

    def head(self) -> Head | None:
        return Head(len(self._entries), "0" * 64) if self._entries else None

    def close(self) -> None:
        pass
