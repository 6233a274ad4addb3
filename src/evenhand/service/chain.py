"""Canonical content of entries, and the hash chain that connects them."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from evenhand._validate import InputError, bad_input
from evenhand.service.decision_log import DecisionLog, Entry, Head, Logged, changed
from evenhand.service.entry_times import MOST_ERROR, EntryTimes

LOGGER = logging.getLogger(__name__)

FORMAT = 1
"""Version of logs; others are refused."""

BEFORE_FIRST = "0" * 64
"""Hash in place of that of a previous entry, in the first."""


class Row(NamedTuple):
    """Stored row of an entry; all but `content` and `sha256` copy what `content` has."""

    number: int
    kind: str
    id: str
    request: str | None
    subject: str | None
    content: str
    sha256: str


def next_row(entry: Entry, last: Logged | None, source: str) -> Row:
    """Return the row that appends an entry to a log with this last entry."""
    now = datetime.now(UTC)
    time = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if last is None:
        return _row(entry, 1, time, BEFORE_FIRST, source)
    # a wrong clock is reported and no outage: readers put such entries between their neighbours
    if datetime.fromisoformat(last.time) - now > MOST_ERROR:
        LOGGER.warning(
            "%s: entry %d is at %s, but entry %d before it at %s; a clock is or was wrong, check"
            " those of all machines that write the log",
            *(source, last.number + 1, time, last.number, last.time),
        )
    return _row(entry, last.number + 1, time, last.sha256, source)


def stored_row(entry: Logged, source: str) -> Row:
    """Return the row of an entry of a log."""
    row = _row(entry, entry.number, entry.time, entry.previous, source)
    if row.sha256 != entry.sha256:
        raise changed(source, entry.number, "has been replaced by other content")
    return row


def _row(entry: Entry, number: int, time: str, previous: str, source: str) -> Row:
    content = {
        "number": number,
        "time": time,
        "previous": previous,
        "kind": entry.kind,
        "id": entry.id,
        "request": entry.request,
        "subject": entry.subject,
        "values": entry.values,
    }
    try:
        text = _canonical(content)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{source}: the values of an entry must be finite JSON values ({error})"
        ) from error
    return Row(number, entry.kind, entry.id, entry.request, entry.subject, text, _sha256(text))


def logged(row: Row, source: str) -> Logged:
    """Return the entry of a row; InputError if the row contradicts itself."""
    content = row.content
    if not isinstance(content, str) or _sha256(content) != row.sha256:
        raise changed(source, row.number, "has been changed")
    try:
        entry = Logged(**json.loads(content), sha256=row.sha256)
        copies = (entry.number, entry.kind, entry.id, entry.request, entry.subject)
    except (TypeError, ValueError) as error:
        raise changed(source, row.number, "has been replaced by other content") from error
    if copies != row[:5]:
        raise changed(source, row.number, "is not what its row shows: a column has been changed")
    return entry


def is_storable(text: Any) -> bool:
    """Return whether databases can have this text in a column.

    Not if it contains the character 0, or half of a surrogate pair.
    """
    if not isinstance(text, str) or "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def digest_of(*parts: Any) -> str:
    """Return the SHA-256 of JSON values, which depends on no order of keys.

    Examples
    --------
    >>> digest_of({"a": 1.0, "b": None}) == digest_of({"b": None, "a": 1.0})
    True
    """
    return _sha256(_canonical(parts))


def _canonical(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no blanks, ASCII, finite numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


# --- verification of the hash chain of a decision log


@dataclass(frozen=True)
class Verification:
    """Result of a verification in which every entry was as it was written.

    Parameters
    ----------
    n_entries : int
        Number of entries.
    head : Head or None
        The last entry, to be noted outside of the log as the anchor of later verifications; None
        for an empty log.
    times : EntryTimes
        Times of the entries, with those at which a clock was wrong.
    """

    n_entries: int
    head: Head | None
    times: EntryTimes = field(default_factory=lambda: EntryTimes.of([]), compare=False, repr=False)


def verify(
    log: DecisionLog,
    anchor: Head | None = None,
    *,
    each: Callable[[Logged], object] | None = None,
) -> Verification:
    """Verify that no entry of a log has been changed, removed, added later or moved.

    The chain alone cannot show that the last entries were cut off, or that someone computed all
    hashes anew. An anchor, a head that was noted elsewhere, shows both for all entries up to it.

    Parameters
    ----------
    log : DecisionLog
        The log; entries that are added during the verification are not part of it.
    anchor : Head, optional
        Head of the log at an earlier time.
    each : function, optional
        Called with every entry once its place in the chain is verified, so that the log is read
        only once.

    Returns
    -------
    Verification
        Number of entries and the head.

    Raises
    ------
    InputError
        If the log is not as it was written; names the first entry where this shows.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.service import Entry, open_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = open_log(f"{folder}/log.sqlite")
    ...     logged = log.run(lambda transaction: transaction.add(Entry("context", "2026-11")))
    ...     verify(log, anchor=log.head()).n_entries
    ...     log.close()
    1
    """
    if anchor is not None and anchor.number < 1:
        raise bad_input("the anchor", "be an entry, from 1", anchor.number)
    last = None
    readings = []
    for last in verified(log.entries(), log.source):
        if anchor is not None and last.number == anchor.number and last.sha256 != anchor.sha256:
            raise changed(
                log.source, last.number, "is not the one of the anchor: the log has been rewritten"
            )
        readings.append(last.time)
        if each is not None:
            each(last)
    n_entries = 0 if last is None else last.number
    if anchor is not None and n_entries < anchor.number:
        raise InputError(
            f"{log.source}: the log ends with entry {n_entries}, and the anchor is entry"
            f" {anchor.number}: entries after {n_entries} are missing; restore them from a backup"
        )
    head = None if last is None else Head(last.number, last.sha256)
    return Verification(n_entries, head, EntryTimes.of(readings))


def verified(entries: Iterable[Logged], source: str) -> Iterator[Logged]:
    """Yield all entries of a log, from the first; InputError where the chain is broken."""
    number, previous = 0, BEFORE_FIRST
    for entry in entries:
        if entry.number != number + 1:
            raise changed(source, number + 1, "is missing")
        if entry.previous != previous:
            which = f"{entry.number - 1} or {entry.number}"
            raise changed(source, entry.number, f"breaks the chain: entry {which} was rewritten")
        number, previous = entry.number, entry.sha256
        yield entry
