"""What differs between the databases of decision logs: connections, locks, triggers, errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from evenhand.service.log_errors import LogError

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
