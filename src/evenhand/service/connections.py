"""Pool of connections of a decision log, which does not share them with forks of its process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from evenhand.service.databases import Database
from evenhand.service.log_errors import CLOSED, LogError

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
