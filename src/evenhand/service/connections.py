"""Pool of connections of a decision log, which does not share them with forks of its process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol
from weakref import WeakSet

import sqlalchemy as sa

from evenhand.service.databases import Database
from evenhand.service.log_errors import LogError

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
        self._refusal = "the log is closed; open it anew"
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


class Forkable(Protocol):
    """A log that must prepare for forks of its process."""

    def before_fork(self) -> None:
        """Release what must not be shared."""

    def after_fork(self) -> None:
        """Replace, in the fork, what threads of its parent may have locked."""


def prepare_for_forks(log: Forkable) -> None:
    """Call `before_fork` and `after_fork` of a log whenever its process is forked."""
    _prepared_logs().add(log)


@cache
def _prepared_logs() -> WeakSet[Forkable]:
    """Return the logs to prepare; the first call registers what prepares them."""
    logs: WeakSet[Forkable] = WeakSet()

    def before_fork() -> None:
        for log in list(logs):
            log.before_fork()

    def after_fork() -> None:
        for log in list(logs):
            log.after_fork()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before_fork, after_in_child=after_fork)
    return logs
