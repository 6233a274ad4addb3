"""Entries of a decision log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

EntryKind = Literal["context", "forecast", "outcome"]


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
