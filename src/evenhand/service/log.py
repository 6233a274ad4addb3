"""Decision logs: entries, the hash chain that connects them, and the databases that have them."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Self, TypeVar
from urllib.parse import quote
from weakref import WeakSet

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from evenhand._files import Partial, link_target
from evenhand._format import and_more, count
from evenhand._validate import AnyPath, InputError, bad_input, require_extra

if TYPE_CHECKING:
    import sqlalchemy as sa

T = TypeVar("T")

# --- entries of a decision log

EntryKind = Literal["context", "forecast", "outcome"]

Key = Literal["number", "id", "request", "subject"]
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
    evenhand.service.log.LogError: log.sqlite: the disk is full; free space and repeat ...
    """


REPLACED = "has been replaced by other content"


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
    def of(cls, readings: Sequence[str]) -> Self:
        """Return the times of all entries of a log.

        Parameters
        ----------
        readings : sequence of str
            `Logged.time` of the entries, in the order of the log.
        """
        present = np.datetime64(datetime.now(UTC).replace(tzinfo=None), "us")
        raw = np.fromiter((reading[:-1] for reading in readings), dtype="datetime64[us]")
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
    times = raw.astype(np.int64)
    # with right clocks, everything is in order
    if (np.diff(times[usable]) >= 0).all():
        return usable
    found = np.zeros(raw.size, dtype=bool)
    # from the last one: the largest first time, negative, of a sequence of each length
    firsts: list[int] = []
    places: list[int] = []
    following: dict[int, int] = {}
    for place in np.flatnonzero(usable)[::-1].tolist():
        value = -int(times[place])
        length = bisect_right(firsts, value)
        firsts[length : length + 1] = [value]
        places[length : length + 1] = [place]
        following[place] = places[length - 1] if length else -1
    place = places[-1]
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


class StoredRow(NamedTuple):
    """Stored row of an entry; all but `content` and `sha256` copy what `content` has."""

    number: int
    kind: str
    id: str
    request: str | None
    subject: str | None
    content: str
    sha256: str


COPIED: Callable[[Logged], tuple[Any, ...]] = attrgetter(*StoredRow._fields[:5])
"""What a row copies from its content."""


def next_row(entry: Entry, last: Logged | None, source: str) -> StoredRow:
    """Return the row that appends an entry to a log with this last entry."""
    now = datetime.now(UTC)
    time = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    number, previous = (1, BEFORE_FIRST) if last is None else (last.number + 1, last.sha256)
    # a wrong clock is reported and no outage: readers put such entries between their neighbours
    if last is not None and datetime.fromisoformat(last.time) - now > MOST_ERROR:
        LOGGER.warning(
            "%s: entry %d is at %s, but entry %d before it at %s; a clock is or was wrong, check"
            " those of all machines that write the log",
            source,
            number,
            time,
            last.number,
            last.time,
        )
    placed = Logged(**vars(entry), number=number, time=time, previous=previous)
    try:
        return _row(placed)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{source}: the values of an entry must be finite JSON values ({error})"
        ) from error


def _row(entry: Logged) -> StoredRow:
    text = _canonical({name: value for name, value in vars(entry).items() if name != "sha256"})
    return StoredRow._make((*COPIED(entry), text, _sha256(text)))


def logged(row: StoredRow, source: str) -> Logged:
    """Return the entry of a row; InputError if the row contradicts itself."""
    content = row.content
    if not isinstance(content, str) or _sha256(content) != row.sha256:
        raise changed(source, row.number, "has been changed")
    try:
        entry = Logged(**json.loads(content), sha256=row.sha256)
    except (TypeError, ValueError) as error:
        raise changed(source, row.number, REPLACED) from error
    if COPIED(entry) != row[:5]:
        raise changed(source, row.number, "is not what its row shows: a column has been changed")
    return entry


def is_storable(value: str | int) -> bool:
    """Return whether databases can have this text in a column.

    Not if it contains the character 0, or half of a surrogate pair.
    """
    try:
        return b"\0" not in str(value).encode()
    except UnicodeEncodeError:
        return False


def digest_of(*parts: Any) -> str:
    """Return the SHA-256 of JSON values, which depends on no order of keys."""
    return _sha256(_canonical(parts))


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


def in_blocks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most `size` items."""
    rest = iter(items)
    while block := list(islice(rest, size)):
        yield block


# --- what differs between the databases of decision logs: connections, locks, triggers, errors

PATIENCE_SECONDS = 60.0
"""Time to wait for writers of other processes."""

FULL = "the disk is full; free space and repeat the request"
CLOSED = "the log is closed; open it anew"
READ_ONLY = "the log can only be read; make it writable to add entries"

BUSY = (
    f"another process has been writing for {PATIENCE_SECONDS:.0f} seconds; end it, or repeat the"
    " request later"
)


class Database(ABC):
    """A database in which a log can be."""

    source: str
    """Path or URL without a password."""

    url: str | sa.URL

    triggers: tuple[str, ...]
    """Statements that follow those of `TABLES` and make these append-only."""

    is_read_only = False

    options: Mapping[str, Any] = {}
    """Options of the pool of connections."""

    def connect(self, dialect: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return a new connection of the driver."""
        return dialect.connect(*arguments, **options)

    def check_in_place(self) -> None:
        """Raise LogError if the log is no longer where it was opened."""
        return

    @abstractmethod
    def lock(self, connection: sa.Connection) -> None:
        """Begin a transaction that excludes other writers until it ends."""

    def after_commit(self, connection: sa.Connection) -> None:
        """Do what has to be done now and then; entries are durable, so that nothing may fail."""
        return

    @abstractmethod
    def reason(self, error: BaseException) -> str:
        """Return what an error of the driver means, with a remedy, in one line."""

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise errors of the database as LogError, without statements and their parameters."""
        import sqlalchemy as sa

        try:
            yield
        except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
            # that of the driver, without the statement that SQLAlchemy adds
            cause = getattr(error, "orig", None) or error
            raise LogError(f"{self.source}: {self.reason(cause)}") from error


def first_line(error: BaseException) -> str:
    """Return the first line of a message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# --- decision logs in files of SQLite

POLL_SECONDS = 0.0005
"""Time between attempts to begin while another process writes."""

# an entry takes some 20 kB there, five pages, so that a busy service does this every few seconds
WAL_BYTES = 16 * 2**20
"""Size of the file beside the log above which entries are moved into the log."""

CHECKPOINT_SECONDS = 0.02
"""Time to wait for readers before that is done later."""

SQLITE_REASONS = {
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_NOTADB: "the file is not a decision log; name another file",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; compare it with a backup",
}
"""By primary result code."""


class SQLite(Database):
    """File of SQLite in WAL mode, in which readers do not wait for writers.

    A new file, and the files that SQLite makes beside it, are readable by their owner only. Raises
    InputError if the file is missing and is not to be made, or cannot be made.
    """

    # chooses the dialect alone: `connect` opens the file
    url = "sqlite:///log"

    triggers = (
        # a replaced row is deleted without the trigger for deleted rows
        """CREATE TRIGGER entries_in_order BEFORE INSERT ON entries
        WHEN NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM entries)
            OR EXISTS (SELECT 1 FROM entries WHERE request = NEW.request)
            OR NEW.kind = 'forecast'
                AND EXISTS (SELECT 1 FROM entries WHERE kind = 'forecast' AND id = NEW.id)
        BEGIN SELECT RAISE(ABORT, 'entries of a decision log are appended in order'); END""",
        """CREATE TRIGGER entries_not_updated BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'entries of a decision log never change'); END""",
        """CREATE TRIGGER entries_not_deleted BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'entries of a decision log are never deleted'); END""",
    )

    def __init__(self, path: Path, *, create: bool) -> None:
        self.source = str(path)
        # a process that changes its working directory must not open another file
        self._path = path.absolute()
        if create and not path.exists():
            _make_private(self._path)
        if not path.is_file():
            wrong = "is not a file" if path.exists() else "does not exist"
            raise InputError(f"{path} {wrong}; name the file of a decision log")
        self.is_read_only = not os.access(path, os.W_OK)
        self._file = os.stat(self._path)
        # SQLite follows links, and has its files beside the file itself
        self._wal = Path(f"{self._path.resolve()}-wal")
        self._wal_limit = WAL_BYTES

    def connect(self, dialect: Any, arguments: Any, options: Any) -> sqlite3.Connection:
        self.check_in_place()
        connection = sqlite3.connect(
            f"file:{quote(os.fsencode(self._path))}?{self._mode()}",
            uri=True,
            timeout=PATIENCE_SECONDS,
            isolation_level=None,  # transactions begin with `lock`, and single reads need none
            check_same_thread=False,  # one thread at a time has a connection of the pool
        )
        try:
            if not self.is_read_only:
                # the file keeps this mode
                _when_free(connection, "PRAGMA journal_mode=WAL")
            # a committed entry survives a loss of power
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA wal_autocheckpoint=0")
        except BaseException:
            connection.close()
            raise
        return connection

    def lock(self, connection: sa.Connection) -> None:
        _when_free(_driver(connection), "BEGIN IMMEDIATE")
        self._check_wal(connection)

    def after_commit(self, connection: sa.Connection) -> None:
        """Move entries from the file beside the log into the log, when there are many.

        SQLite would do so itself, but without excluding writers, and may then, before version
        3.51.3, destroy the file: https://www.sqlite.org/wal.html#walresetbug
        """
        with suppress(OSError, sqlite3.Error):
            size = self._wal.stat().st_size
            if size > self._wal_limit:
                # wait for slow readers next time
                self._wal_limit = size + WAL_BYTES
                driver = _driver(connection)
                with _patience(driver, CHECKPOINT_SECONDS):
                    (is_busy, *_) = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not is_busy:
                    self._wal_limit = WAL_BYTES

    def reason(self, error: BaseException) -> str:
        code = getattr(error, "sqlite_errorcode", None)
        # extended codes have the kind of error in their lowest byte
        known = None if code is None else SQLITE_REASONS.get(code & 0xFF)
        return known or f"the log cannot be read or written ({first_line(error)}); check the disk"

    def check_in_place(self) -> None:
        # entries of a file that was moved away are where nobody would look for them
        if not _is_file(self._path, self._file):
            raise LogError(
                f"{self.source}: the file was moved or replaced while the log was open; open the"
                " log anew, and move logs only when no process has them open"
            )

    def _check_wal(self, connection: sa.Connection) -> None:
        """Refuse to write to a removed file beside the log, which no other process would read."""
        with suppress(FileNotFoundError):
            connection.info.setdefault("wal", os.stat(self._wal))
        if not _is_file(self._wal, connection.info.get("wal")):
            raise LogError(
                f"{self.source}: the file {self._wal.name} was removed or replaced while the log"
                " was open; end all processes that have the log open, and not by force: the last"
                " entries are still with them"
            )

    def _mode(self) -> str:
        if not self.is_read_only:
            return "mode=rw"
        # files beside a log are needed to read what has not been moved from there, and can often
        # not be made where the log can only be read
        is_whole = not self._wal.exists() or self._wal.stat().st_size == 0
        return "mode=ro&immutable=1" if is_whole else "mode=ro"


def _is_file(path: Path, known: os.stat_result | None) -> bool:
    """Return whether a path still leads to a known file."""
    with suppress(FileNotFoundError):
        return known is not None and os.path.samestat(os.stat(path), known)
    return False


def _driver(connection: sa.Connection) -> sqlite3.Connection:
    driver: Any = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


@contextmanager
def _patience(driver: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Let SQLite wait for other connections for another time in the block."""
    driver.execute(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")
    try:
        yield
    finally:
        driver.execute(f"PRAGMA busy_timeout = {1000 * PATIENCE_SECONDS:.0f}")


def _when_free(driver: sqlite3.Connection, statement: str) -> None:
    """Execute a statement once no other process writes.

    SQLite itself waits in steps of up to 0.1 seconds, much longer than a transaction takes: of
    several busy processes, one would get the lock again and again. And it does not wait for another
    process that switches the same new file to WAL mode.
    """
    end = time.monotonic() + PATIENCE_SECONDS
    with _patience(driver, 0.0):
        while True:
            try:
                driver.execute(statement).fetchone()
                return
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > end:
                    raise
            time.sleep(POLL_SECONDS)


def _make_private(path: Path) -> None:
    """Make an empty file; never opens an existing one, as closing it would end SQLite's locks."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:  # another process was faster
        return
    except OSError as error:
        raise InputError(
            f"{path} cannot be made: {error.strerror}; name a file in an existing folder that can"
            " be written"
        ) from error


# --- decision logs in PostgreSQL

CONNECT_SECONDS = 10
"""Time to wait for a server that does not answer, unless the URL has its own."""

POSTGRESQL_REASONS = {"53100": FULL, "55P03": BUSY, "25006": READ_ONLY}
"""By SQLSTATE."""


class PostgreSQL(Database):
    """Database of a server, in the schema that new tables of the user are made in.

    Nothing but SELECT and INSERT on its two tables is needed to append, so that the owner of the
    log can refuse everything else to the service.
    """

    triggers = (
        "ALTER TABLE entries ALTER number TYPE BIGINT",
        """CREATE FUNCTION refuse_change_of_log() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'entries of a decision log never change'; END $$""",
        """CREATE TRIGGER entries_not_changed BEFORE UPDATE OR DELETE ON entries
        FOR EACH ROW EXECUTE FUNCTION refuse_change_of_log()""",
        """CREATE TRIGGER entries_not_truncated BEFORE TRUNCATE ON entries
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_log()""",
    )

    def __init__(self, url: sa.URL) -> None:
        self.url = url.set(drivername="postgresql+psycopg")
        secret = [name for name in url.query if "password" in name.lower()]
        self._secrets = [url.password, *(url.query[name] for name in secret)]
        shown = url.set(drivername="postgresql").difference_update_query(secret)
        self.source = shown.render_as_string(hide_password=True)
        defaults = {
            "client_encoding": "utf8",  # of a database without an encoding, too
            "connect_timeout": CONNECT_SECONDS,
            # a connection whose other end is gone without a word is given up
            "tcp_user_timeout": 1000 * round(PATIENCE_SECONDS),
        }
        self.options = {
            # reads need no transaction, and `lock` begins those that write
            "isolation_level": "AUTOCOMMIT",
            # connections from before a restart of the server are replaced
            "pool_pre_ping": True,
            "connect_args": {k: v for k, v in defaults.items() if k not in url.query},
        }

    def lock(self, connection: sa.Connection) -> None:
        # what waited for the lock must see what the transaction before it added: READ COMMITTED.
        # Not LOCK TABLE, which needs more rights than INSERT, and stops for each VACUUM
        connection.exec_driver_sql(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = on;"
            f" SET LOCAL lock_timeout = '{PATIENCE_SECONDS:.0f}s';"
            " SELECT pg_advisory_xact_lock(hashtextextended('evenhand ' || current_schema(), 0))",
            execution_options={"no_parameters": True},  # several statements at once
        )

    def reason(self, error: BaseException) -> str:
        known = POSTGRESQL_REASONS.get(getattr(error, "sqlstate", None) or "")
        text = first_line(error)
        for secret in filter(None, self._secrets):
            text = text.replace(str(secret), "***")
        return known or (
            f"the database cannot be used ({text}); check the server and the URL, and repeat the"
            " request"
        )


# --- requests of concurrent threads that are answered in one call


class Batches(Generic[T]):
    """Queue of requests. The first thread that finds nobody at work answers all that wait.

    While it is at work, other threads gather; the first of them is the next. So the price of one
    call is shared by all that wait for it.

    Parameters
    ----------
    answer : callable
        Returns the answers to a list of requests. After an error, other than of the database, each
        request is answered alone, so that it concerns no other one.
    interrupted : Exception
        The error of the others in a batch whose thread was interrupted by the user.
    """

    def __init__(self, answer: Callable[[list[T]], list[Any]], interrupted: Exception) -> None:
        self._answer = answer
        self._interrupted = interrupted
        self._changed = threading.Condition()
        self._waiting: dict[Future[Any], T] = {}
        self._leader: int | None = None

    @property
    def is_led_here(self) -> bool:
        """Whether the calling thread is answering a batch."""
        return self._leader == threading.get_ident()

    def run(self, request: T) -> Any:
        """Return the answer to a request; its errors are raised."""
        mine: Future[Any] = Future()
        with self._changed:
            self._waiting[mine] = request
            try:
                self._changed.wait_for(lambda: mine.done() or self._is_next(mine))
            except BaseException:  # an interrupt by the user
                self._waiting.pop(mine, None)
                self._changed.notify_all()
                raise
            if mine.done():
                return mine.result()
            self._leader = threading.get_ident()
            batch, self._waiting = self._waiting, {}
        try:
            self._settle(batch)
        except BaseException:  # an interrupt by the user
            for one in batch:
                if not one.done():
                    one.set_exception(self._interrupted)
            raise
        finally:
            with self._changed:
                self._leader = None
                self._changed.notify_all()
        return mine.result()

    def _settle(self, batch: Mapping[Future[Any], T]) -> None:
        try:
            answers = self._answer(list(batch.values()))
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, LogError):
                for future, request in batch.items():
                    self._settle({future: request})
                return
            for future in batch:
                future.set_exception(error)
        else:
            for future, answer in zip(batch, answers, strict=True):
                future.set_result(answer)

    def _is_next(self, future: Future[Any]) -> bool:
        return self._leader is None and next(iter(self._waiting)) is future


# --- tables of a decision log in a database, and statements that read and write them

TABLES = (
    """CREATE TABLE entries (
        number INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, request TEXT UNIQUE,
        subject TEXT, content TEXT NOT NULL, sha256 TEXT NOT NULL)""",
    "CREATE INDEX entries_by_subject ON entries (subject)",
    # not of all kinds: to read a page of all forecasts, SQLite would sort those of such an index
    "CREATE UNIQUE INDEX forecasts_by_id ON entries (id) WHERE kind = 'forecast'",
    "CREATE INDEX contexts ON entries (number) WHERE kind = 'context'",
    "CREATE TABLE log_format (version INTEGER NOT NULL)",
    f"INSERT INTO log_format VALUES ({FORMAT})",
)

PAGE = 1000
"""Entries that are read at a time."""

LAST = "SELECT * FROM entries ORDER BY number DESC LIMIT 1"
BY_REQUEST = "SELECT * FROM entries WHERE request IN ?"
N_OF = "SELECT subject, count(*) FROM entries WHERE subject IN ? GROUP BY subject"
INSERT = f"INSERT INTO entries VALUES ({', '.join('?' * len(StoredRow._fields))})"


def _run(connection: sa.Connection, statement: str, values: Sequence[Any]) -> sa.CursorResult[Any]:
    """Execute a statement with its values, or with each row of them; `IN ?` is for all values."""
    # as text of the driver: what SQLAlchemy adds to it takes longer than SQLite takes to answer
    statement = statement.replace("IN ?", f"IN ({', '.join('?' * len(values)) or 'NULL'})")
    if connection.dialect.name != "sqlite":
        statement = statement.replace("?", "%s")
    return connection.exec_driver_sql(statement, values)


def _rows_of(connection: sa.Connection, statement: str, *values: Any) -> list[StoredRow]:
    """Return the rows that a statement finds."""
    return [StoredRow._make(row) for row in _run(connection, statement, values)]


def by_request(entries: Iterable[Logged]) -> dict[str, Logged]:
    """Return entries by their requests."""
    return {str(one.request): one for one in entries}


@dataclass
class Transaction:
    """Exclusive access to a log, among all threads and processes, until the work is done.

    Parameters
    ----------
    source : str
        Name of the log.
    connection : Connection
        Open connection, in a transaction.
    last : Logged or None
        Last entry in the log.
    added : list of (Row, Logged)
        New entries, which wait to be inserted together.
    """

    source: str
    connection: sa.Connection
    last: Logged | None
    added: list[tuple[StoredRow, Logged]] = field(default_factory=list)

    def find(self, *requests: str) -> dict[str, Logged]:
        """Return the entries with these requests, by request, from the log or added before."""
        rows = _rows_of(self.connection, BY_REQUEST, *requests)
        found = by_request(logged(row, self.source) for row in rows)
        new = by_request(entry for _, entry in self.added)
        return found | {request: new[request] for request in requests if request in new}

    def n_of(self, *subjects: str) -> Counter[str]:
        """Return the number of entries with each subject, in the log and added before."""
        found = Counter(dict(map(tuple, _run(self.connection, N_OF, subjects))))
        wanted = set(subjects)
        found.update(row.subject for row, _ in self.added if row.subject in wanted)
        return found

    def add(self, *entries: Entry) -> list[Logged]:
        """Append entries, which are durable once `run` has returned.

        If the request of one, or its id among forecasts, is in the log, `run` raises InputError.
        """
        n = len(self.added)
        for entry in entries:
            row = next_row(entry, self.added[-1][1] if self.added else self.last, self.source)
            # read back, so that what is returned now equals what is read later
            self.added.append((row, logged(row, self.source)))
        return [entry for _, entry in self.added[n:]]

    def insert(self) -> None:
        """Insert what was added; InputError if the log has the request or the id of one."""
        import sqlalchemy as sa

        rows = [row for row, _ in self.added]
        try:
            _run(self.connection, INSERT, rows)
        except sa.exc.IntegrityError as error:
            requests, ids = (and_more(repr(row[i]) for row in rows) for i in (3, 2))
            raise InputError(
                f"{self.source}: an entry with the request {requests}, or a forecast with the id"
                f" {ids}, is in the log already; find it before adding one"
            ) from error


# --- append-only decision logs with a hash chain

POOL_SIZE = 8
"""Connections kept open for the next request; others are closed after use."""


class DecisionLog:
    """Append-only log of contexts, served forecasts and outcomes, with a hash chain.

    Safe for threads and for several processes on one log. A connection that two processes share
    destroys files of SQLite and confuses servers. So idle connections are closed before a fork, and
    a fork made while connections are in use must open the log anew.

    Parameters
    ----------
    database : Database
        Where the log is.
    create : bool
        Whether to make the tables if there are none.

    Attributes
    ----------
    source : str
        Path or URL of the log without a password, for messages.

    Raises
    ------
    InputError
        If the database has no decision log, or one of another version.
    LogError
        If the database cannot be reached, read or written.
    """

    def __init__(self, database: Database, *, create: bool) -> None:
        self.source = database.source
        self._database = database
        self._n_open = 0
        self._refusal: str | None = None
        self._engine = self._new_engine()
        self._renew_locks()
        try:
            self._check_format(create)
        except BaseException:
            self.close()
            raise
        _logs_of_this_process().add(self)

    def _renew_locks(self) -> None:
        self._lock = threading.Lock()
        self._works: Batches[Callable[[Transaction], Any]] = Batches(
            self._commit, LogError(f"{self.source}: the write was interrupted; repeat it")
        )

    def _new_engine(self) -> sa.Engine:
        import sqlalchemy as sa

        engine = sa.create_engine(
            self._database.url,
            poolclass=sa.QueuePool,
            pool_size=POOL_SIZE,
            max_overflow=-1,
            hide_parameters=True,  # no content of entries in messages
            **self._database.options,
        )
        sa.event.listen(engine, "do_connect", self._connect)
        sa.event.listen(engine, "close", self._count_closed)
        return engine

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Call `work` with exclusive access, and return its result once all it added is durable.

        If `work` raises an error, nothing that it added is kept. It may be called again, if a work
        of another thread raises one.
        """
        if self._works.is_led_here:
            raise RuntimeError("run was called by a work of run; add to the transaction instead")
        return self._works.run(work)

    def get(self, id: str) -> Logged | None:
        """Return the forecast with this id."""
        return next(self.forecasts("id", [id] if isinstance(id, str) else []), None)

    def entries(self, *, after: int = 0, kind: EntryKind | None = None) -> Iterator[Logged]:
        """Yield the entries after a number, in order, in one consistent view of the log."""
        # entries never change, so those up to today's head are one view, however long it is read
        last = self._rows(LAST)
        until = last[0].number if last else 0
        wanted = "SELECT * FROM entries WHERE number > ? AND number <= ?"
        if kind is not None:
            wanted += f" AND kind = '{kind}'"
        while after < until:
            page = self._rows(f"{wanted} ORDER BY number LIMIT ?", after, until, PAGE)
            # one by one, so that the first change of a log is the one that is named
            for row in page:
                yield logged(row, self.source)
            after = page[-1].number if page else until

    def forecasts(self, by: Key, values: Iterable[Any]) -> Iterator[Logged]:
        """Yield the forecasts with these numbers, ids, ..., in order if these are."""
        wanted = f"SELECT * FROM entries WHERE kind = 'forecast' AND {by} IN ? ORDER BY number"
        for some in in_blocks(filter(is_storable, values), PAGE):
            for row in self._rows(wanted, *some):
                yield logged(row, self.source)

    def head(self) -> Head | None:
        """Return the number and hash of the last entry; None for an empty log."""
        last = [logged(row, self.source) for row in self._rows(LAST)]
        return Head(last[0].number, last[0].sha256) if last else None

    def close(self) -> None:
        """Close files and connections."""
        self._refusal = CLOSED
        self._engine.dispose()

    def before_fork(self) -> None:
        """Close connections that a fork would share."""
        self._engine.dispose()

    def after_fork(self) -> None:
        """Begin anew, in a fork, without locks of threads that it does not have."""
        self._renew_locks()
        if self._n_open:
            # SQLite counts locks of its files per process, and the count is now wrong: neither
            # these connections nor new ones are safe
            self._refusal = (
                "the process was forked while it used the log; open logs in the forks, or fork"
                " when no request is running"
            )
        else:
            # another thread may have locked the pool, which is empty
            self._engine = self._new_engine()

    def _rows(self, statement: str, *values: Any) -> list[StoredRow]:
        with self._open() as connection:
            return _rows_of(connection, statement, *values)

    @contextmanager
    def _open(self) -> Iterator[sa.Connection]:
        """Yield a connection; what is not committed in the block is undone."""
        if self._refusal is not None:
            raise LogError(f"{self.source}: {self._refusal}")
        # a repeated answer must be in the log that others see
        self._database.check_in_place()
        with self._database.translated(), self._engine.connect() as connection:
            yield connection

    def _connect(self, dialect: Any, record: Any, arguments: Any, options: Any) -> Any:
        with self._lock:
            self._n_open += 1
        try:
            return self._database.connect(dialect, arguments, options)
        except BaseException:
            self._count_closed()
            raise

    def _count_closed(self, *_: Any) -> None:
        with self._lock:
            self._n_open -= 1

    def _commit(self, works: Sequence[Callable[[Transaction], Any]]) -> list[Any]:
        """Call the works of all threads that wait for the disk in one transaction."""
        if self._database.is_read_only:
            raise LogError(f"{self.source}: {READ_ONLY}")
        with self._open() as connection:
            self._database.lock(connection)
            rows = _rows_of(connection, LAST)
            last = logged(rows[0], self.source) if rows else None
            transaction = Transaction(self.source, connection, last)
            answers = [work(transaction) for work in works]
            if transaction.added:
                transaction.insert()
                connection.commit()
                self._database.after_commit(connection)
        return answers

    def _check_format(self, create: bool) -> None:
        with self._open() as connection:
            if create and not _tables(connection):
                connection.rollback()
                self._database.lock(connection)
                if not _tables(connection):  # another process may have been faster
                    for statement in (*TABLES, *self._database.triggers):
                        connection.exec_driver_sql(statement)
                    connection.commit()
            tables = _tables(connection)
            if "log_format" not in tables:
                there = f"a database with other tables ({and_more(tables)})" if tables else "empty"
                raise InputError(f"{self.source} is {there}; name a decision log")
            version = connection.exec_driver_sql("SELECT version FROM log_format").scalar()
        if version != FORMAT:
            raise InputError(
                f"{self.source} has version {version} of decision logs, and this evenhand reads"
                f" version {FORMAT}; update evenhand"
            )


def _tables(connection: sa.Connection) -> list[str]:
    import sqlalchemy as sa

    return sa.inspect(connection).get_table_names()


@cache
def _logs_of_this_process() -> WeakSet[DecisionLog]:
    """Return the open logs; the first call registers what prepares them for forks."""
    logs: WeakSet[DecisionLog] = WeakSet()

    def before_fork() -> None:
        for log in list(logs):
            log.before_fork()

    def after_fork() -> None:
        for log in list(logs):
            log.after_fork()

    os.register_at_fork(before=before_fork, after_in_child=after_fork)
    return logs


# --- opening of decision logs by path or URL

SQLITE_ENDINGS = (".sqlite", ".sqlite3", ".db")


def open_log(where: AnyPath, *, create: bool = True) -> DecisionLog:
    """Open a decision log, and make it if there is none.

    Parameters
    ----------
    where : str or path
        A path that ends in `.sqlite`, `.sqlite3` or `.db`, or `sqlite:///PATH`: a file of SQLite,
        the default. `postgresql://USER@HOST/DATABASE`: tables in PostgreSQL, for servers
        on several machines.
    create : bool, default True
        Whether to make a log that does not exist. Readers pass False, so that a wrong path is an
        error and not an empty log.

    Returns
    -------
    DecisionLog
        The log; several threads and processes may have it open and write to it.

    Raises
    ------
    InputError
        If `where` has none of these forms or is something else than a decision log.
    LogError
        If the log cannot be reached, read or written.
    MissingExtraError
        If SQLAlchemy or the driver of PostgreSQL is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.service import Entry
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = open_log(f"{folder}/log.sqlite")
    ...     logged = log.run(lambda transaction: transaction.add(Entry("context", "2026-11")))
    ...     [(entry.number, entry.id) for entry in log.entries()]
    ...     log.close()
    [(1, '2026-11')]
    """
    sa = require_extra("sqlalchemy", "service")
    text = os.fspath(where)
    path: str | None = text
    if "://" in text:
        try:
            url = sa.make_url(text)
        except (sa.exc.ArgumentError, ValueError):  # of a port, which may be a part of a password
            url = None
        # from here on without the text, which may contain a password
        if url is None:
            raise _unknown("another URL")
        backend, path = url.drivername.partition("+")[0], url.database
        if backend in ("postgresql", "postgres"):
            require_extra("psycopg", "postgresql")
            return DecisionLog(PostgreSQL(url), create=create)
        if backend != "sqlite" or path in (None, "", ":memory:"):
            raise _unknown(repr(url.render_as_string(hide_password=True)))
    elif Path(text).suffix.lower() not in SQLITE_ENDINGS:
        raise _unknown(repr(text))
    try:
        return DecisionLog(SQLite(Path(str(path)), create=create), create=create)
    except OSError as error:
        raise LogError(
            f"{path} cannot be opened: {error.strerror}; check the path and its permissions"
        ) from error


def _unknown(got: str) -> InputError:
    return InputError(
        f"a decision log must be a path that ends in {', '.join(SQLITE_ENDINGS)}, or a URL such as"
        f" postgresql://USER@HOST/DATABASE, got {got}; name one of these"
    )


# --- verification of the hash chain of a decision log


@dataclass(frozen=True)
class Verification:
    """Result of a verification in which every entry was as it was written.

    Parameters
    ----------
    head : Head or None
        The last entry, to be noted outside of the log as the anchor of later verifications; None
        for an empty log.
    times : EntryTimes
        Times of the entries, with those at which a clock was wrong.
    """

    head: Head | None
    times: EntryTimes = field(default_factory=lambda: EntryTimes.of([]), compare=False, repr=False)

    @property
    def n_entries(self) -> int:
        """Number of entries."""
        return 0 if self.head is None else self.head.number


def verify(
    log: DecisionLog, anchor: Head | None = None, *, each: Callable[[Logged], object] | None = None
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
        The last entry, and with it the number of entries.

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
    head, readings = None, []
    for entry in verified(log.entries(), log.source):
        head = Head(entry.number, entry.sha256)
        if anchor is not None and head.number == anchor.number and head != anchor:
            raise changed(
                log.source, head.number, "is not the one of the anchor: the log has been rewritten"
            )
        readings.append(entry.time)
        if each is not None:
            each(entry)
    found = Verification(head, EntryTimes.of(readings))
    if anchor is not None and found.n_entries < anchor.number:
        raise InputError(
            f"{log.source}: the log ends with entry {found.n_entries}, and the anchor is entry"
            f" {anchor.number}: entries after {found.n_entries} are missing; restore them from a"
            " backup"
        )
    return found


# --- export of decision logs as one parquet file

GROUP = 1000
"""Rows of a row group, the most that is in memory."""


def export(log: DecisionLog, path: AnyPath) -> Verification:
    """Write a log as one parquet file, readable by its owner only, and verify it on the way.

    Each row has the `content` of an entry, JSON with the hash of the entry before it, its `sha256`,
    and copies of what it contains as columns.

    Parameters
    ----------
    log : DecisionLog
        Any log.
    path : str or path
        File that ends in `.parquet`; replaced atomically if it exists.

    Returns
    -------
    Verification
        The last entry, and with it the number of entries.

    Raises
    ------
    InputError
        If the log has no entries or is not as it was written, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from evenhand.service import Entry, open_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = open_log(f"{folder}/log.sqlite")
    ...     logged = log.run(lambda transaction: transaction.add(Entry("context", "2026-11")))
    ...     exported = export(log, f"{folder}/log.parquet")
    ...     log.close()
    ...     pd.read_parquet(f"{folder}/log.parquet")["sha256"][0] == exported.head.sha256
    True
    """
    target = link_target(path)
    if target.suffix.lower() != ".parquet" or target.is_dir():
        raise bad_input("path", "be a file that ends in .parquet", repr(str(path)))
    if log.head() is None:
        raise InputError(f"{log.source} has no entries; there is nothing to export")
    texts = [(name, pa.string()) for name in StoredRow._fields[1:]]
    schema = pa.schema([("number", pa.int64()), *texts], {"evenhand.decision_log": str(FORMAT)})
    try:
        with Partial(target) as partial:
            os.fchmod(partial.handle, 0o600)
            with (
                os.fdopen(partial.handle, "wb", closefd=False) as file,
                parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer,
            ):
                for group in in_blocks(verified(log.entries(), log.source), GROUP):
                    rows = [_row(entry) for entry in group]
                    for entry, row in zip(group, rows, strict=True):
                        if row.sha256 != entry.sha256:
                            raise changed(log.source, entry.number, REPLACED)
                    table = pa.Table.from_pylist([row._asdict() for row in rows], schema=schema)
                    writer.write_table(table)
    except OSError as error:
        raise LogError(
            f"{path} cannot be written: {error.strerror}; name a file in an existing folder with"
            " space"
        ) from error
    return Verification(Head(rows[-1].number, rows[-1].sha256))
