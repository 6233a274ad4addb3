"""Canonical content of entries, and the hash chain that connects them."""

from __future__ import annotations

import hashlib
import json
import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenhand._format import and_more, count
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


# --- errors of decision logs that could not be read or written


class LogError(InputError):
    """A decision log cannot be read or written. The message is one line with a remedy.

    Nothing that was confirmed before is lost. The log can be used again once the cause, such as a
    full disk, is gone.

    Examples
    --------
    >>> raise LogError("log.sqlite: the disk is full; free space and repeat the request")
    Traceback (most recent call last):
    evenhand.service.chain.LogError: log.sqlite: the disk is full; free space and repeat ...
    """


def changed(source: str, number: int, reason: str) -> InputError:
    """Return the error for an entry that is not as it was written."""
    return InputError(
        f"{source}: entry {number} {reason}; compare the log with a backup, and do not rely on"
        " entries from there on"
    )


# --- times of the entries of a log, of which some clock readings may be wrong

FIRST = np.datetime64("2026-01-01", "us")
"""A reading before it is wrong: no log is older than the first version of its format."""

MOST_ERROR = timedelta(minutes=10)
"""Error of a clock from which on an entry is named; those of several machines differ by less."""

Times = NDArray[Any]
"""Array of type datetime64[us], in UTC."""


@dataclass(frozen=True, eq=False)
class EntryTimes:
    """Limits of the times of the entries of a log, and the entries at which a clock was wrong.

    The order of entries is that of their numbers. Right readings never decrease, so a longest
    sequence of readings that do not decrease is taken for right, and no right reading is moved by
    a few wrong ones. An entry outside this sequence was added between its neighbours in it.

    Parameters
    ----------
    earliest, latest : ndarray of datetime64[us], shape (n,)
        Limits of the time of each entry, in the order of the log, not decreasing; both are the
        reading where it is right. After the last right reading, `latest` is the present.
    wrong : list of str
        Number and reading of each entry that a clock dates more than 10 minutes outside its limits.

    Examples
    --------
    The clock of the second entry was a year ahead, and that of the last one was reset:

    >>> days = ["2026-03-01", "2027-03-01", "2026-03-02", "2026-03-03", "1970-01-01"]
    >>> times = EntryTimes.of([f"{day}T09:00:00.000000Z" for day in days])
    >>> [str(time)[:10] for time in times.earliest]
    ['2026-03-01', '2026-03-01', '2026-03-02', '2026-03-03', '2026-03-03']
    >>> [str(time)[:10] for time in times.latest[:4]]
    ['2026-03-01', '2026-03-02', '2026-03-02', '2026-03-03']
    >>> times.wrong
    ['2 (2027-03-01T09:00)', '5 (1970-01-01T09:00)']
    """

    earliest: Times
    latest: Times
    wrong: list[str]

    @classmethod
    def of(cls, readings: Sequence[str], until: np.datetime64 | None = None) -> Self:
        """Return the times of all entries of a log.

        Parameters
        ----------
        readings : sequence of str
            `Logged.time` of the entries, in the order of the log.
        until : datetime64, optional
            Time up to which readings may be right, if it is later than now.
        """
        now = np.datetime64(datetime.now(UTC).replace(tzinfo=None), "us")
        present = now if until is None else np.maximum(now, until)
        raw = np.array([reading[:-1] for reading in readings], dtype="datetime64[us]")
        is_right = _longest_in_order(raw, (raw >= FIRST) & (raw <= present))
        earliest = np.maximum.accumulate(np.where(is_right, raw, FIRST))
        latest = np.minimum.accumulate(np.where(is_right, raw, present)[::-1])[::-1]
        error = np.timedelta64(MOST_ERROR)
        is_wrong = (raw < earliest - error) | (raw > latest + error)
        named = [f"{i + 1} ({readings[i][:16]})" for i in np.flatnonzero(is_wrong).tolist()]
        return cls(earliest, latest, named)

    @property
    def note(self) -> str:
        """Sentence on the entries at which a clock was wrong; empty if there are none."""
        if not self.wrong:
            return ""
        return (
            f"a clock was wrong at {count(len(self.wrong), 'entry', 'entries')} of the log, number"
            f" {and_more(self.wrong)}; each counts between the entries beside it"
        )


def _longest_in_order(raw: Times, usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a longest subsequence of usable times that does not decrease (patience sorting)."""
    # from the last one: the largest first time, negative, of a sequence of each length
    firsts: list[int] = []
    places: list[int] = []
    following: dict[int, int] = {}
    values = (-raw.astype(np.int64)).tolist()
    for place in np.flatnonzero(usable)[::-1].tolist():
        length = bisect_right(firsts, values[place])
        firsts[length : length + 1] = [values[place]]
        places[length : length + 1] = [place]
        following[place] = places[length - 1] if length else -1
    found = np.zeros(raw.shape, dtype=np.bool_)
    place = places[-1] if places else -1
    while place >= 0:
        found[place] = True
        place = following[place]
    return found


# --- canonical content of entries, and the hash chain that connects them

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


def person_request(context: str, person: str, features_sha256: str) -> str:
    """Return the hash that all requests for the same forecast have in common."""
    return digest_of("forecast", context, person, features_sha256)


def person_subject(context: str, person: str) -> str:
    """Return the hash that the forecasts of a person in a context have in common."""
    return digest_of("person", context, person)


def _canonical(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no blanks, ASCII, finite numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


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


T = TypeVar("T")


def in_blocks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most `size` items.

    Examples
    --------
    >>> list(in_blocks("abc", 2))
    [['a', 'b'], ['c']]
    """
    rest = iter(items)
    while block := list(islice(rest, size)):
        yield block
