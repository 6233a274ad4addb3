"""Decision logs in databases."""

from __future__ import annotations

import copy
import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote
from weakref import WeakSet

import pyarrow as pa
from pyarrow import parquet

from evenhand._files import Partial, link_target
from evenhand._validate import InputError, bad_input, require_extra
from evenhand.service.chain import (
    FORMAT,
    Entry,
    EntryKind,
    EntryTimes,
    Head,
    Key,
    LogError,
    Logged,
    Row,
    changed,
    in_blocks,
    is_storable,
    logged,
    next_row,
    stored_row,
    verified,
)

if TYPE_CHECKING:
    import sqlalchemy as sa
else:
    sa = require_extra("sqlalchemy", "service")

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

    url: sa.URL

    triggers: tuple[str, ...]
    """Statements that make the tables of a log append-only."""

    is_read_only = False

    @property
    def options(self) -> dict[str, Any]:
        """Options of the pool of connections."""
        return {}

    @abstractmethod
    def connect(self, dialect: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return a new connection of the driver."""

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
        try:
            yield
        except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
            # that of the driver, without the statement that SQLAlchemy adds
            cause = getattr(error, "orig", None) or error
            raise LogError(f"{self.source}: {self.reason(cause)}") from error


def first_line(error: BaseException) -> str:
    """Return the first line of a message."""
    message = str(error).strip()
    return message.splitlines()[0] if message else type(error).__name__


# --- decision logs in files of SQLite

POLL_SECONDS = 0.0005
"""Time between attempts to begin while another process writes."""

WAL_BYTES = 16 * 2**20
"""Size of the file beside the log above which entries are moved into the log.

An entry takes some 20 kB there, five pages, so that a busy service does this every few seconds.
"""

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

    Parameters
    ----------
    path : Path
        File of the log. A new file, and the files that SQLite makes beside it, are readable by
        their owner only.
    create : bool
        Whether to make the file if it is missing.

    Raises
    ------
    InputError
        If the file is missing and is not to be made, or cannot be made.
    """

    # chooses the dialect alone: `connect` opens the file
    url = sa.URL.create("sqlite", database="log")

    triggers = (
        # a replaced row is deleted without the trigger for deleted rows
        """CREATE TRIGGER entries_in_order BEFORE INSERT ON entries
        WHEN NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM entries)
            OR EXISTS (SELECT 1 FROM entries WHERE request = NEW.request)
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
        self.check_in_place()
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
        try:
            is_in_place = os.path.samestat(os.stat(self._path), self._file)
        except FileNotFoundError:
            is_in_place = False
        if not is_in_place:
            raise LogError(
                f"{self.source}: the file was moved or replaced while the log was open; open the"
                " log anew, and move logs only when no process has them open"
            )

    def _check_wal(self, connection: sa.Connection) -> None:
        """Refuse to write to a removed file beside the log, which no other process would read."""
        try:
            found = os.stat(self._wal)
            is_in_place = os.path.samestat(connection.info.setdefault("wal", found), found)
        except FileNotFoundError:
            is_in_place = False
        if not is_in_place:
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

    Parameters
    ----------
    url : URL
        URL of the database.
    """

    triggers = (
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

    @property
    def options(self) -> dict[str, Any]:
        defaults = {
            "client_encoding": "utf8",  # of a database without an encoding, too
            "connect_timeout": CONNECT_SECONDS,
            # a connection whose other end is gone without a word is given up
            "tcp_user_timeout": 1000 * round(PATIENCE_SECONDS),
        }
        return {
            # reads need no transaction, and `lock` begins those that write
            "isolation_level": "AUTOCOMMIT",
            # connections from before a restart of the server are replaced
            "pool_pre_ping": True,
            "connect_args": {k: v for k, v in defaults.items() if k not in self.url.query},
        }

    def connect(self, dialect: Any, arguments: Any, options: Any) -> Any:
        return dialect.connect(*arguments, **options)

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
        return known or (
            f"the database cannot be used ({self._without_secrets(first_line(error))}); check the"
            " server and the URL, and repeat the request"
        )

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            if secret:
                text = text.replace(str(secret), "***")
        return text


# --- requests of concurrent threads that are answered in one call

Asked = TypeVar("Asked")


class Ticket(Future[Any], Generic[Asked]):
    """A request that waits for its batch, and later its result or error."""

    def __init__(self, request: Asked) -> None:
        super().__init__()
        self.request = request


class Batches(Generic[Asked]):
    """Queue of requests. The first thread that finds nobody at work answers all that wait.

    While it is at work, other threads gather; the first of them is the next. So the price of one
    call is shared by all that wait for it.

    Parameters
    ----------
    answer : callable
        Receives a list of tickets, and gives each a result or an error. If it raises an error, that
        is the error of all tickets without one.
    interrupted : callable
        Returns the error of the others in a batch whose thread was interrupted by the user.
    """

    def __init__(
        self,
        answer: Callable[[list[Ticket[Asked]]], None],
        interrupted: Callable[[], Exception],
    ) -> None:
        self._answer = answer
        self._interrupted = interrupted
        self._changed = threading.Condition()
        self._waiting: list[Ticket[Asked]] = []
        self._leader: int | None = None

    @property
    def is_led_here(self) -> bool:
        """Whether the calling thread is answering a batch."""
        return self._leader == threading.get_ident()

    def run(self, request: Asked) -> Any:
        """Return the answer to a request; its errors are raised."""
        ticket = Ticket(request)
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: ticket.done() or self._is_next(ticket))
            except BaseException:  # an interrupt by the user
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                    self._changed.notify_all()
                raise
            if ticket.done():
                return ticket.result()
            self._leader = threading.get_ident()
            tickets, self._waiting = self._waiting, []
        try:
            self._answer(tickets)
        except Exception as error:
            _fail(tickets, error)
        except BaseException:
            _fail(tickets, self._interrupted())
            raise
        finally:
            with self._changed:
                self._leader = None
                self._changed.notify_all()
        return ticket.result()

    def _is_next(self, ticket: Ticket[Asked]) -> bool:
        return self._leader is None and self._waiting[0] is ticket


def _fail(tickets: Sequence[Ticket[Any]], error: Exception) -> None:
    for ticket in tickets:
        # an error of its own is the better explanation
        if not ticket.done():
            ticket.set_exception(error)


# --- tables of a decision log in a database

METADATA = sa.MetaData()

ENTRIES = sa.Table(
    "entries",
    METADATA,
    sa.Column(
        "number",
        # SQLite numbers the rows themselves only if the type has this very name
        sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
        primary_key=True,
        autoincrement=False,
    ),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("request", sa.Text, unique=True),
    sa.Column("subject", sa.Text, index=True),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
)

sa.Index("ix_entries_id", ENTRIES.c.kind, ENTRIES.c.id)

LOG_FORMAT = sa.Table("log_format", METADATA, sa.Column("version", sa.Integer, nullable=False))


# --- reads of the entries of a decision log in a database

PAGE = 1000
"""Entries that are read at a time."""

WANTED: sa.BindParameter[str] = sa.bindparam("wanted")

# built once: building takes longer than SQLite takes to answer
BY_REQUEST = sa.select(ENTRIES).where(ENTRIES.c.request == WANTED)
IS_FORECAST = ENTRIES.c.kind == "forecast"
BY_ID = sa.select(ENTRIES).where(IS_FORECAST, ENTRIES.c.id == WANTED).limit(1)
LAST = sa.select(ENTRIES).order_by(ENTRIES.c.number.desc()).limit(1)
N_OF = sa.select(sa.func.count()).where(ENTRIES.c.subject == WANTED)


def _is_of(kind: EntryKind) -> sa.ColumnElement[bool]:
    """Return the condition for entries of a kind, without the index of kinds.

    By that, SQLite would read or sort all forecasts of the log for each page of them.
    """
    return ENTRIES.c.kind.concat("") == kind


def _rows_of(connection: sa.Connection, wanted: Any, value: str = "") -> list[Row]:
    """Return the rows that a statement finds."""
    return [Row(*row) for row in connection.execute(wanted, {"wanted": value})]


# --- transactions, whose entries are written together at the end


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
        Last entry, in the log or added.
    rows : list of Row
        Rows of the entries that were added.
    requests, subjects, forecasts
        Entries that were added by their requests, number of them by subject, and ids of forecasts.
    absent : set of str
        Requests that the log does not have.
    """

    source: str
    connection: sa.Connection
    last: Logged | None
    rows: list[Row] = field(default_factory=list)
    requests: dict[str, Logged] = field(default_factory=dict)
    subjects: Counter[str] = field(default_factory=Counter)
    forecasts: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)

    def find(self, request: str) -> Logged | None:
        """Return the entry with this `request`, from the log or added before."""
        if request in self.requests:
            return self.requests[request]
        # nobody else writes: what was not in the log is not looked up again to add it
        if request in self.absent:
            return None
        found = _rows_of(self.connection, BY_REQUEST, request)
        if not found:
            self.absent.add(request)
        return logged(found[0], self.source) if found else None

    def n_of(self, subject: str) -> int:
        """Return the number of entries with this `subject`, in the log and added before."""
        n_stored = self.connection.execute(N_OF, {"wanted": subject}).scalar()
        return int(n_stored or 0) + self.subjects[subject]

    def add(self, entry: Entry) -> Logged:
        """Append an entry, which is durable once `run` has returned.

        InputError if its request, or its id among forecasts, is in the log.
        """
        self._refuse_repeated(entry)
        row = next_row(entry, self.last, self.source)
        # read back, so that what is returned now equals what is read later
        added = self.last = logged(row, self.source)
        self.rows.append(row)
        if added.request is not None:
            self.requests[added.request] = added
        if added.subject is not None:
            self.subjects[added.subject] += 1
        if added.kind == "forecast":
            self.forecasts.add(added.id)
        return added

    def tried(self) -> Transaction:
        """Return a transaction that goes on from here, and may be dropped."""
        own = ("rows", "requests", "subjects", "forecasts")
        return replace(self, **{name: copy.copy(getattr(self, name)) for name in own})

    def _refuse_repeated(self, entry: Entry) -> None:
        if entry.request is not None and self.find(entry.request) is not None:
            raise InputError(
                f"{self.source}: an entry with the request {entry.request!r} is in the log already;"
                " find it before adding one"
            )
        if entry.kind == "forecast" and (
            entry.id in self.forecasts or _rows_of(self.connection, BY_ID, entry.id)
        ):
            raise InputError(
                f"{self.source}: a forecast with the id {entry.id!r} is in the log already; use a"
                " new id"
            )


T = TypeVar("T")

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
            self._commit, lambda: LogError(f"{self.source}: the write was interrupted; repeat it")
        )

    def _new_engine(self) -> sa.Engine:
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

        If `work` raises an error, nothing that it added is kept.
        """
        if self._works.is_led_here:
            raise RuntimeError("run was called by a work of run; add to the transaction instead")
        result: T = self._works.run(work)
        return result

    def find(self, request: str) -> Logged | None:
        """Return the entry with this `request`, without waiting for writers."""
        # a repeated answer must be in the log that others see
        self._database.check_in_place()
        return self._one(BY_REQUEST, request)

    def get(self, id: str) -> Logged | None:
        """Return the forecast with this id."""
        return self._one(BY_ID, id)

    def entries(self, *, after: int = 0, kind: EntryKind | None = None) -> Iterator[Logged]:
        """Yield the entries after a number, in order, in one consistent view of the log."""
        # entries never change, so those up to today's head are one view, however long it is read
        last = self._rows(LAST)
        until = last[0].number if last else 0
        number = ENTRIES.c.number
        wanted = sa.select(ENTRIES).where(number <= until).order_by(number).limit(PAGE)
        if kind == "context":  # few, which the index of kinds finds
            wanted = wanted.where(ENTRIES.c.kind == kind)
        elif kind is not None:
            wanted = wanted.where(_is_of(kind))
        while after < until:
            page = self._rows(wanted.where(number > after))
            # one by one, so that the first change of a log is the one that is named
            for row in page:
                yield logged(row, self.source)
            after = page[-1].number if page else until

    def forecasts(self, by: Key, values: Iterable[Any]) -> Iterator[Logged]:
        """Yield the forecasts with these numbers, ids or subjects, in order if these are."""
        is_forecast = IS_FORECAST if by == "id" else _is_of("forecast")
        for some in in_blocks(values, PAGE):
            found = sa.select(ENTRIES).where(is_forecast, ENTRIES.c[by].in_(some))
            for row in self._rows(found.order_by(ENTRIES.c.number)):
                yield logged(row, self.source)

    def head(self) -> Head | None:
        """Return the number and hash of the last entry; None for an empty log."""
        last = self._one(LAST)
        return None if last is None else Head(last.number, last.sha256)

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

    def _one(self, wanted: Any, value: str = "") -> Logged | None:
        found = self._rows(wanted, value) if is_storable(value) else []
        return logged(found[0], self.source) if found else None

    def _rows(self, wanted: Any, value: str = "") -> list[Row]:
        with self._open() as connection:
            return _rows_of(connection, wanted, value)

    @contextmanager
    def _open(self) -> Iterator[sa.Connection]:
        """Yield a connection; what is not committed in the block is undone."""
        if self._refusal is not None:
            raise LogError(f"{self.source}: {self._refusal}")
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

    def _commit(self, works: Sequence[Ticket[Callable[[Transaction], Any]]]) -> None:
        """Call the works of all threads that wait for the disk in one transaction."""
        if self._database.is_read_only:
            raise LogError(f"{self.source}: {READ_ONLY}")
        answers = []
        with self._open() as connection:
            self._database.lock(connection)
            rows = _rows_of(connection, LAST)
            pending = Transaction(
                self.source, connection, logged(rows[0], self.source) if rows else None
            )
            for work in works:
                tried = pending.tried()
                try:
                    with self._database.translated():
                        answers.append((work, work.request(tried)))
                except Exception as error:
                    # what it added is dropped
                    work.set_exception(error)
                else:
                    pending = tried
            if pending.rows:
                connection.execute(sa.insert(ENTRIES), [row._asdict() for row in pending.rows])
                connection.commit()
                self._database.after_commit(connection)
        for work, answer in answers:
            work.set_result(answer)

    def _check_format(self, create: bool) -> None:
        with self._open() as connection:
            tables = _tables(connection)
            if not tables and create:
                connection.rollback()
                self._database.lock(connection)
                if not _tables(connection):  # another process may have been faster
                    self._create(connection)
                tables = _tables(connection)
            if not tables:
                raise InputError(f"{self.source} is empty; name a decision log")
            if LOG_FORMAT.name not in tables:
                raise InputError(
                    f"{self.source} is a database with other tables ({', '.join(tables[:3])}) and"
                    " not a decision log; name another one"
                )
            version = connection.execute(sa.select(LOG_FORMAT.c.version)).scalar()
        if version != FORMAT:
            raise InputError(
                f"{self.source} has version {version} of decision logs, and this evenhand reads"
                f" version {FORMAT}; update evenhand"
            )

    def _create(self, connection: sa.Connection) -> None:
        METADATA.create_all(connection, checkfirst=False)
        for trigger in self._database.triggers:
            connection.exec_driver_sql(trigger)
        connection.execute(sa.insert(LOG_FORMAT), {"version": FORMAT})
        connection.commit()


def _tables(connection: sa.Connection) -> list[str]:
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


def open_log(where: str | os.PathLike[str], *, create: bool = True) -> DecisionLog:
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


# --- export of decision logs as one parquet file

GROUP = 1000
"""Rows of a row group, the most that is in memory."""


def export(log: DecisionLog, path: str | os.PathLike[str]) -> Verification:
    """Write a log as one parquet file, and verify it on the way.

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
        Number of entries and the last one.

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
    try:
        last = _write(target, log)
    except OSError as error:
        raise LogError(
            f"{path} cannot be written: {error.strerror}; name a file in an existing folder with"
            " space"
        ) from error
    return Verification(last.number, Head(last.number, last.sha256))


def _write(path: Path, log: DecisionLog) -> Logged:
    """Write a file atomically and durably, readable by its owner only; return the last entry."""
    texts = [(name, pa.string()) for name in Row._fields[1:]]
    version = {"evenhand.decision_log": str(FORMAT)}
    schema = pa.schema([("number", pa.int64()), *texts]).with_metadata(version)
    with Partial(path) as partial:
        os.fchmod(partial.handle, 0o600)
        with (
            os.fdopen(partial.handle, "wb", closefd=False) as file,
            parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer,
        ):
            for group in in_blocks(verified(log.entries(), log.source), GROUP):
                rows = [stored_row(entry, log.source)._asdict() for entry in group]
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    return group[-1]
