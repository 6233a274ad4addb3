"""Opening of decision logs by path or URL."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand._validate import InputError, require_extra
from evenhand.service.decision_log import DecisionLog, LogError

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
        from evenhand.service.sql_log import SqlLog

        return SqlLog(PostgreSQL(url), create=create)
    raise _unknown(repr(url.render_as_string(hide_password=True)))


def _in_sqlite(path: Path, create: bool) -> DecisionLog:
    require_extra("sqlalchemy", "service")
    from evenhand.service.databases import SQLite
    from evenhand.service.sql_log import SqlLog

    return SqlLog(SQLite(path, create=create), create=create)


def _unknown(got: str) -> InputError:
    return InputError(
        f"a decision log must be a path that ends in {', '.join(SQLITE_ENDINGS)}, or a URL such as"
        f" postgresql://USER@HOST/DATABASE, got {got}; name one of these"
    )
