"""What differs between the databases of decision logs: connections, locks, triggers, errors."""

from __future__ import annotations

import os
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from evenhand._validate import InputError
from evenhand.service.decision_log import FULL, READ_ONLY, LogError

PATIENCE_SECONDS = 60.0
"""Time to wait for writers of other processes."""

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
    def reason(self, error: sa.exc.SQLAlchemyError) -> str:
        """Return what an error means, with a remedy, in one line."""

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise errors of the database as LogError, without statements and their parameters."""
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            raise LogError(f"{self.source}: {self.reason(error)}") from error


def first_line(error: sa.exc.SQLAlchemyError) -> str:
    """Return the message of a driver, without the statement that SQLAlchemy adds."""
    message = str(getattr(error, "orig", None) or error).strip()
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
                _use_wal(connection)
            # a committed entry survives a loss of power
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA wal_autocheckpoint=0")
        except BaseException:
            connection.close()
            raise
        return connection

    def lock(self, connection: sa.Connection) -> None:
        self.check_in_place()
        driver = _driver(connection)
        end = time.monotonic() + PATIENCE_SECONDS
        # SQLite itself waits in steps of up to 0.1 seconds, much longer than a transaction takes:
        # of several busy processes, one would get the lock again and again
        with _patience(driver, 0.0):
            while not _begins(driver) and time.monotonic() < end:
                time.sleep(POLL_SECONDS)
        if not driver.in_transaction:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
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

    def reason(self, error: sa.exc.SQLAlchemyError) -> str:
        code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
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


def _begins(driver: sqlite3.Connection) -> bool:
    """Begin a transaction; return False if another process writes."""
    try:
        driver.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        return error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY
    return True


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


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode, which the file keeps."""
    start = time.monotonic()
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait here for another process that switches the same new file
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() - start > PATIENCE_SECONDS:
                raise
            time.sleep(0.005)


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

    def reason(self, error: sa.exc.SQLAlchemyError) -> str:
        known = POSTGRESQL_REASONS.get(
            getattr(getattr(error, "orig", None), "sqlstate", None) or ""
        )
        return known or (
            f"the database cannot be used ({self._without_secrets(first_line(error))}); check the"
            " server and the URL, and repeat the request"
        )

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            if secret:
                text = text.replace(str(secret), "***")
        return text
