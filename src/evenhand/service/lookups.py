"""Reads of the entries of a decision log in a database."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from evenhand.service.chain import Row, logged
from evenhand.service.databases import Database
from evenhand.service.entries import EntryKind, Logged
from evenhand.service.schema import ENTRIES

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
        return self._one(_of_request(), {"wanted": request})

    def forecast(self, id: str) -> Logged | None:
        """Return the forecast with this id."""
        return self._one(_of_forecast(), {"wanted": id})

    def last(self) -> Logged | None:
        """Return the last entry."""
        return self._one(_last(), {})

    def n_of(self, subject: str) -> int:
        """Return the number of entries with this `subject`."""
        return int(self._number(_count_of_subject(), {"wanted": subject}))

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

    def _one(self, statement: sa.Select[Any], values: dict[str, str]) -> Logged | None:
        rows = self._rows(statement, values)
        return logged(rows[0], self.source) if rows else None

    def _rows(self, statement: sa.Select[Any], values: dict[str, str]) -> list[Row]:
        with self._database.translated():
            return [Row(*row) for row in self._connection.execute(statement, values)]

    def _number(self, statement: sa.Select[Any], values: dict[str, str]) -> Any:
        with self._database.translated():
            return self._connection.execute(statement, values).scalar()


# statements are built once: building takes longer than SQLite takes to answer


@cache
def _of_request() -> sa.Select[Any]:
    return sa.select(ENTRIES).where(ENTRIES.c.request == sa.bindparam("wanted"))


@cache
def _of_forecast() -> sa.Select[Any]:
    is_wanted = (ENTRIES.c.kind == "forecast") & (ENTRIES.c.id == sa.bindparam("wanted"))
    return sa.select(ENTRIES).where(is_wanted).order_by(ENTRIES.c.number).limit(1)


@cache
def _last() -> sa.Select[Any]:
    return sa.select(ENTRIES).order_by(ENTRIES.c.number.desc()).limit(1)


@cache
def _count_of_subject() -> sa.Select[Any]:
    return sa.select(sa.func.count()).where(ENTRIES.c.subject == sa.bindparam("wanted"))
