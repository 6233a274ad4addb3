"""Decision logs in databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import sqlalchemy as sa

from evenhand._validate import InputError
from evenhand.service.chain import FORMAT, check_format, is_storable, logged
from evenhand.service.connections import Connections
from evenhand.service.databases import Database
from evenhand.service.decision_log import DecisionLog, Transaction
from evenhand.service.entries import EntryKind, Head, Logged
from evenhand.service.forks import prepare_for_forks
from evenhand.service.group_commit import GroupCommit, Work
from evenhand.service.log_errors import READ_ONLY, LogError
from evenhand.service.lookups import Lookups
from evenhand.service.pending import Pending
from evenhand.service.schema import ENTRIES, LOG_FORMAT, METADATA

T = TypeVar("T")


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
        If the database has no decision log, or one of a later version.
    LogError
        If the database cannot be reached, read or written.
    """

    def __init__(self, database: Database, *, create: bool) -> None:
        self.source = database.source
        self._database = database
        self._connections = Connections(database)
        self._group = GroupCommit(self._commit, self.source)
        try:
            self._check_format(create)
        except BaseException:
            self._connections.close()
            raise
        prepare_for_forks(self)

    def run(self, work: Callable[[Transaction], T]) -> T:
        return self._group.run(work)

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
        self._group = GroupCommit(self._commit, self.source)

    def _commit(self, works: list[Work]) -> None:
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
        check_format(version, self.source)

    def _create(self, connection: sa.Connection) -> None:
        METADATA.create_all(connection, checkfirst=False)
        for trigger in self._database.triggers:
            connection.exec_driver_sql(trigger)
        connection.execute(sa.insert(LOG_FORMAT), {"version": FORMAT})
        connection.commit()


def _tables(connection: sa.Connection) -> list[str]:
    return sa.inspect(connection).get_table_names()
