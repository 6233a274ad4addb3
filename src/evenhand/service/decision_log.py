"""Append-only decision logs with a hash chain: the interface of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from evenhand._validate import InputError

# --- entries of a decision log

EntryKind = Literal["context", "forecast", "outcome"]

Key = Literal["number", "id", "subject"]
"""Column by which forecasts are looked up."""


@dataclass(frozen=True)
class Entry:
    """Entry of a decision log, before it has a place in the log.

    Parameters
    ----------
    kind : {"context", "forecast", "outcome"}
        "context" opens a context: one model, key and set of options under a name. "forecast" is a
        served forecast. "outcome" is the outcome of a forecast, or its correction.
    id : str
        Of a forecast: its unique id; of an outcome: the id of its forecast; of a context: its name.
    request : str or None
        Hash that only requests for the same forecast have in common; unique in the log. Of an
        outcome: hash of the forecast and of the number of its outcomes so far.
    subject : str or None
        Hash of context and person, which the revisions of a forecast have in common; of an outcome,
        the hash that its corrections have in common. None for a context.
    values : dict
        All other content, as JSON values.
    """

    kind: EntryKind
    id: str
    request: str | None = None
    subject: str | None = None
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Logged(Entry):
    """Entry with its place in the log and in the hash chain.

    Parameters
    ----------
    number : int
        Position in the log, from 1.
    time : str
        Reading of the clock in UTC, ISO 8601 with microseconds and "Z"; before that of the previous
        entry if one of them is wrong (see `EntryTimes`).
    previous : str
        Hash of the previous entry; 64 zeros for the first.
    sha256 : str
        SHA-256 of the content of the entry, which includes `previous`.
    """

    number: int = 0
    time: str = ""
    previous: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Head:
    """Last entry of a log; kept elsewhere, it shows later that no entry before it has changed.

    Its text, NUMBER:SHA256, is what commands print and read.
    """

    number: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.number}:{self.sha256}"


# --- append-only decision logs with a hash chain: the interface of all of them

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
    def forecasts(self, by: Key, values: Iterable[Any]) -> Iterator[Logged]:
        """Yield the forecasts with these numbers, ids or subjects, in order if these are."""

    @abstractmethod
    def head(self) -> Head | None:
        """Return the number and hash of the last entry; None for an empty log."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""


# --- errors of decision logs that could not be read or written

FULL = "the disk is full; free space and repeat the request"
CLOSED = "the log is closed; open it anew"
READ_ONLY = "the log can only be read; make it writable to add entries"


class LogError(InputError):
    """A decision log cannot be read or written. The message is one line with a remedy.

    Nothing that was confirmed before is lost. The log can be used again once the cause, such as a
    full disk, is gone.

    Examples
    --------
    >>> raise LogError("log.sqlite: the disk is full; free space and repeat the request")
    Traceback (most recent call last):
    evenhand.service.decision_log.LogError: log.sqlite: the disk is full; free space and repeat ...
    """


def changed(source: str, number: int, reason: str) -> InputError:
    """Return the error for an entry that is not as it was written."""
    return InputError(
        f"{source}: entry {number} {reason}; compare the log with a backup, and do not rely on"
        " entries from there on"
    )
