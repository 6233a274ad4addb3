"""Decision logs in databases."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import pyarrow as pa
import sqlalchemy as sa
from pyarrow import parquet

from evenhand._files import Partial, link_target
from evenhand._validate import InputError, bad_input, require_extra
from evenhand.service.batches import Batches, Ticket
from evenhand.service.chain import (
    FORMAT,
    Row,
    Verification,
    is_storable,
    logged,
    next_row,
    stored_row,
    verified,
)
from evenhand.service.databases import Database
from evenhand.service.decision_log import (
    CLOSED,
    READ_ONLY,
    DecisionLog,
    Entry,
    EntryKind,
    Head,
    LogError,
    Logged,
    Transaction,
)

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


# --- pool of connections of a decision log, which does not share them with forks of its process

POOL_SIZE = 8
"""Connections kept open for the next request; others are closed after use."""


class Connections:
    """Connections to the database of a log.

    A connection that two processes share destroys files of SQLite and confuses servers. So idle
    connections are closed before a fork, and a fork made while connections are in use must open
    the log anew.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._n_open = 0
        self._refusal: str | None = None
        self._engine = self._new_engine()

    @contextmanager
    def open(self) -> Iterator[sa.Connection]:
        """Yield a connection; what is not committed in the block is undone."""
        if self._refusal is not None:
            raise LogError(f"{self._database.source}: {self._refusal}")
        with self._database.translated(), self._engine.connect() as connection:
            yield connection

    def close(self) -> None:
        self._refusal = CLOSED
        self._engine.dispose()

    def before_fork(self) -> None:
        self._engine.dispose()

    def after_fork(self) -> None:
        """Forget, in a fork, the connections of the process that it comes from."""
        self._lock = threading.Lock()
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


# --- reads of the entries of a decision log in a database

PAGE = 1000
"""Entries that are read at a time."""


class Lookups:
    """Reads through one connection; in a transaction, they see the log as it is there.

    Parameters
    ----------
    connection : Connection
        Open connection.
    database : Database
        Where the log is.
    """

    def __init__(self, connection: sa.Connection, database: Database) -> None:
        self.source = database.source
        self._connection = connection
        self._database = database

    def find(self, request: str) -> Logged | None:
        """Return the entry with this `request`."""
        return self._one("request", {"wanted": request})

    def forecast(self, id: str) -> Logged | None:
        """Return the forecast with this id."""
        return self._one("forecast", {"wanted": id})

    def last(self) -> Logged | None:
        """Return the last entry."""
        return self._one("last", {})

    def n_of(self, subject: str) -> int:
        """Return the number of entries with this `subject`."""
        return int(self._number(_statements()["n_of"], {"wanted": subject}))

    def last_number(self) -> int:
        """Return the number of the last entry, 0 for an empty log."""
        return self._number(sa.select(sa.func.max(ENTRIES.c.number)), {}) or 0

    def page(self, after: int, until: int, kind: EntryKind | None) -> list[Row]:
        """Return the rows of some entries after a number, up to another, in order."""
        number = ENTRIES.c.number
        wanted = sa.select(ENTRIES).where(number > after, number <= until)
        if kind == "context":  # few, which the index of kinds finds
            wanted = wanted.where(ENTRIES.c.kind == kind)
        elif kind is not None:
            # not by that index, from which SQLite would sort all entries for each page
            wanted = wanted.where(ENTRIES.c.kind.concat("") == kind)
        return self._rows(wanted.order_by(number).limit(PAGE), {})

    def _one(self, name: str, values: dict[str, str]) -> Logged | None:
        rows = self._rows(_statements()[name], values)
        return logged(rows[0], self.source) if rows else None

    def _rows(self, statement: sa.Select[Any], values: dict[str, str]) -> list[Row]:
        with self._database.translated():
            return [Row(*row) for row in self._connection.execute(statement, values)]

    def _number(self, statement: sa.Select[Any], values: dict[str, str]) -> Any:
        with self._database.translated():
            return self._connection.execute(statement, values).scalar()


@cache
def _statements() -> dict[str, sa.Select[Any]]:
    """Return statements that are built once: building takes longer than SQLite takes to answer."""
    entries = sa.select(ENTRIES)
    wanted: sa.BindParameter[str] = sa.bindparam("wanted")
    is_forecast = (ENTRIES.c.kind == "forecast") & (ENTRIES.c.id == wanted)
    n_entries = sa.select(sa.func.count())
    return {
        "request": entries.where(ENTRIES.c.request == wanted),
        "forecast": entries.where(is_forecast).order_by(ENTRIES.c.number).limit(1),
        "last": entries.order_by(ENTRIES.c.number.desc()).limit(1),
        "n_of": n_entries.where(ENTRIES.c.subject == wanted),
    }


# --- entries of a transaction that are not written yet


class Pending:
    """The `Transaction` of all logs: entries are collected, and written together at the end.

    Nothing has to be undone in the log when one of several works fails: what it added is dropped.

    Parameters
    ----------
    stored : Lookups
        Entries in the log.
    last : Logged or None
        The last of them.
    """

    def __init__(self, stored: Lookups, last: Logged | None) -> None:
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


# --- group commit: works of concurrent threads that share one transaction

T = TypeVar("T")


class Work(Ticket):
    """A work that waits for its transaction."""

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        super().__init__()
        self._work = work

    def call(self, pending: Pending) -> None:
        """Call the work; if it fails, drop what it added, and keep the error for its caller."""
        n_rows = len(pending.rows)
        try:
            self.answer = self._work(pending)
        except Exception as error:
            pending.drop_after(n_rows)
            self.error = error


# --- decision logs in databases


class SqlLog(DecisionLog):
    """Log in a table of a database.

    Parameters
    ----------
    database : Database
        Where the log is.
    create : bool
        Whether to make the tables if there are none.

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
        self._connections = Connections(database)
        self._works = self._new_batches()
        try:
            self._check_format(create)
        except BaseException:
            self._connections.close()
            raise
        _logs_of_this_process().add(self)

    def run(self, work: Callable[[Transaction], T]) -> T:
        if self._works.is_led_here:
            raise RuntimeError("run was called by a work of run; add to the transaction instead")
        result: T = self._works.run(Work(work))
        return result

    def find(self, request: str) -> Logged | None:
        if not is_storable(request):
            return None
        # a repeated answer must be in the log that others see
        self._database.check_in_place()
        with self._connections.open() as connection:
            return Lookups(connection, self._database).find(request)

    def get(self, id: str) -> Logged | None:
        if not is_storable(id):
            return None
        with self._connections.open() as connection:
            return Lookups(connection, self._database).forecast(id)

    def entries(self, *, after: int = 0, kind: EntryKind | None = None) -> Iterator[Logged]:
        # entries never change, so those up to today's head are one view, however long it is read
        with self._connections.open() as connection:
            until = Lookups(connection, self._database).last_number()
        while after < until:
            with self._connections.open() as connection:
                page = Lookups(connection, self._database).page(after, until, kind)
            for row in page:
                yield logged(row, self.source)
            after = page[-1].number if page else until

    def head(self) -> Head | None:
        with self._connections.open() as connection:
            last = Lookups(connection, self._database).last()
        return None if last is None else Head(last.number, last.sha256)

    def close(self) -> None:
        self._connections.close()

    def before_fork(self) -> None:
        """Close connections that a fork would share."""
        self._connections.before_fork()

    def after_fork(self) -> None:
        """Begin anew, in a fork, without locks of threads that it does not have."""
        self._connections.after_fork()
        self._works = self._new_batches()

    def _new_batches(self) -> Batches[Work]:
        return Batches(
            self._commit, lambda: LogError(f"{self.source}: the write was interrupted; repeat it")
        )

    def _commit(self, works: list[Work]) -> None:
        """Call the works of all threads that wait for the disk in one transaction."""
        if self._database.is_read_only:
            raise LogError(f"{self.source}: {READ_ONLY}")
        with self._connections.open() as connection:
            self._database.lock(connection)
            stored = Lookups(connection, self._database)
            pending = Pending(stored, stored.last())
            for work in works:
                work.call(pending)
            if pending.rows:
                connection.execute(sa.insert(ENTRIES), [row._asdict() for row in pending.rows])
                connection.commit()
                self._database.after_commit(connection)

    def _check_format(self, create: bool) -> None:
        with self._connections.open() as connection:
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
def _logs_of_this_process() -> WeakSet[SqlLog]:
    """Return the open logs; the first call registers what prepares them for forks."""
    logs: WeakSet[SqlLog] = WeakSet()

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
    if "://" in text:
        return _at_url(text, create)
    if Path(text).suffix.lower() not in SQLITE_ENDINGS:
        raise _unknown(repr(text))
    try:
        return _in_sqlite(Path(text), create)
    except OSError as error:
        raise LogError(
            f"{text} cannot be opened: {error.strerror}; check the path and its permissions"
        ) from error


def _at_url(text: str, create: bool) -> DecisionLog:
    require_extra("sqlalchemy", "service")
    import sqlalchemy as sa

    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):  # of a port, which may be a part of a password
        url = None
    # from here on without the text, which may contain a password
    if url is None:
        raise _unknown("another URL")
    backend = url.drivername.partition("+")[0]
    if backend == "sqlite" and url.database not in (None, "", ":memory:"):
        return _in_sqlite(Path(str(url.database)), create)
    if backend in ("postgresql", "postgres"):
        require_extra("psycopg", "postgresql")
        from evenhand.service.databases import PostgreSQL

        return SqlLog(PostgreSQL(url), create=create)
    raise _unknown(repr(url.render_as_string(hide_password=True)))


def _in_sqlite(path: Path, create: bool) -> DecisionLog:
    require_extra("sqlalchemy", "service")
    from evenhand.service.databases import SQLite

    return SqlLog(SQLite(path, create=create), create=create)


def _unknown(got: str) -> InputError:
    return InputError(
        f"a decision log must be a path that ends in {', '.join(SQLITE_ENDINGS)}, or a URL such as"
        f" postgresql://USER@HOST/DATABASE, got {got}; name one of these"
    )


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
    last: list[Logged] = []
    try:
        _write(target, _rows(log, last))
    except OSError as error:
        raise LogError(
            f"{path} cannot be written: {error.strerror}; name a file in an existing folder with"
            " space"
        ) from error
    return Verification(last[0].number, Head(last[0].number, last[0].sha256))


def _rows(log: DecisionLog, last: list[Logged]) -> Iterator[Row]:
    """Yield the rows of a log; `last` has the last entry afterwards."""
    for entry in verified(log.entries(), log.source):
        last[:] = [entry]
        yield stored_row(entry, log.source)


def _write(path: Path, rows: Iterator[Row]) -> None:
    """Write a file atomically and durably, readable by its owner only."""
    texts = [(name, pa.string()) for name in Row._fields[1:]]
    version = {"evenhand.decision_log": str(FORMAT)}
    schema = pa.schema([("number", pa.int64()), *texts]).with_metadata(version)
    partial = Partial(path)
    try:
        os.fchmod(partial.handle, 0o600)
        with (
            os.fdopen(partial.handle, "wb", closefd=False) as file,
            parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer,
        ):
            while group := list(islice(rows, GROUP)):
                columns = zip(zip(*group, strict=True), schema.types, strict=True)
                arrays = [pa.array(column, type) for column, type in columns]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        partial.commit()
    except BaseException:
        partial.discard()
        raise
