"""Entries of a transaction that are not written yet."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from evenhand._validate import InputError
from evenhand.service.chain import Row, check_entry, logged, next_row
from evenhand.service.entries import Entry, Logged


class Stored(Protocol):
    """Lookups among the entries that are written."""

    source: str

    def find(self, request: str) -> Logged | None:
        """Return the entry with this `request`."""

    def n_of(self, subject: str) -> int:
        """Return the number of entries with this `subject`."""

    def forecast(self, id: str) -> Logged | None:
        """Return the forecast with this id."""


class Pending:
    """The `Transaction` of all logs: entries are collected, and written together at the end.

    Nothing has to be undone in the log when one of several works fails: what it added is dropped.

    Parameters
    ----------
    stored : Stored
        Entries in the log.
    last : Logged or None
        The last of them.
    """

    def __init__(self, stored: Stored, last: Logged | None) -> None:
        self._stored = stored
        self._last = last
        self._first = last
        self.rows: list[Row] = []
        self._entries: list[Logged] = []
        self._requests: dict[str, Logged] = {}
        self._subjects: Counter[str] = Counter()
        self._forecasts: set[str] = set()
        self._absent: set[str] = set()

    def find(self, request: str) -> Logged | None:
        """Return the entry with this `request`, from the log or added before."""
        if request in self._requests:
            return self._requests[request]
        # nobody else writes: what was not in the log is not looked up again to add it
        if request in self._absent:
            return None
        found = self._stored.find(request)
        if found is None:
            self._absent.add(request)
        return found

    def n_of(self, subject: str) -> int:
        """Return the number of entries with this `subject`, in the log and added before."""
        return self._stored.n_of(subject) + self._subjects[subject]

    def add(self, entry: Entry) -> Logged:
        """Append an entry; InputError if its request, or its id among forecasts, is there."""
        check_entry(entry)
        self._refuse_repeated(entry)
        source = self._stored.source
        row = next_row(entry, self._last, source)
        # read back, so that what is returned now equals what is read later
        added = self._last = logged(row, source)
        self.rows.append(row)
        self._entries.append(added)
        if added.request is not None:
            self._requests[added.request] = added
        if added.subject is not None:
            self._subjects[added.subject] += 1
        if added.kind == "forecast":
            self._forecasts.add(added.id)
        return added

    def drop_after(self, n_rows: int) -> None:
        """Drop the entries that were added after the first `n_rows`."""
        for entry in self._entries[n_rows:]:
            if entry.request is not None:
                del self._requests[entry.request]
            if entry.subject is not None:
                self._subjects[entry.subject] -= 1
            if entry.kind == "forecast":
                self._forecasts.discard(entry.id)
        del self.rows[n_rows:], self._entries[n_rows:]
        self._last = self._entries[-1] if self._entries else self._first

    def _refuse_repeated(self, entry: Entry) -> None:
        source = self._stored.source
        if entry.request is not None and self.find(entry.request) is not None:
            raise InputError(
                f"{source}: an entry with the request {entry.request!r} is in the log already; find"
                " it before adding one"
            )
        if entry.kind == "forecast" and (
            entry.id in self._forecasts or self._stored.forecast(entry.id) is not None
        ):
            raise InputError(
                f"{source}: a forecast with the id {entry.id!r} is in the log already; use a new id"
            )
