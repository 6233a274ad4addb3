"""Append-only decision logs with a hash chain: the interface of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from evenhand.service.entries import Entry, EntryKind, Head, Logged

T = TypeVar("T")


class Transaction(Protocol):
    """Exclusive access to a log, among all threads and processes, until the work is done."""

    def find(self, request: str) -> Logged | None:
        """Return the entry with this `request`."""

    def n_of(self, subject: str) -> int:
        """Return the number of entries with this `subject`."""

    def add(self, entry: Entry) -> Logged:
        """Append an entry; it is durable once `run` has returned."""


class DecisionLog(ABC):
    """Append-only log of contexts, served forecasts and outcomes, with a hash chain.

    Safe for threads and for several processes on one log.
    """

    source: str
    """Path or URL of the log without a password, for messages."""

    @abstractmethod
    def run(self, work: Callable[[Transaction], T]) -> T:
        """Call `work` with exclusive access, and return its result once all it added is durable.

        If `work` raises an error, nothing that it added is kept.
        """

    @abstractmethod
    def find(self, request: str) -> Logged | None:
        """Return the entry with this `request`, without waiting for writers."""

    @abstractmethod
    def get(self, id: str) -> Logged | None:
        """Return the forecast with this id."""

    @abstractmethod
    def entries(self, *, after: int = 0, kind: EntryKind | None = None) -> Iterator[Logged]:
        """Yield the entries after a number, in order, in one consistent view of the log."""

    @abstractmethod
    def head(self) -> Head | None:
        """Return the number and hash of the last entry; None for an empty log."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""
