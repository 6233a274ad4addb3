"""Decision logs in PostgreSQL."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from evenhand.service.databases import BUSY, PATIENCE_SECONDS, Database, first_line
from evenhand.service.log_errors import FULL, READ_ONLY

CONNECT_SECONDS = 10
"""Time to wait for a server that does not answer, unless the URL has its own."""

_REASONS = {"53100": FULL, "55P03": BUSY, "25006": READ_ONLY}
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
        known = _REASONS.get(getattr(getattr(error, "orig", None), "sqlstate", None) or "")
        return known or (
            f"the database cannot be used ({self._without_secrets(first_line(error))}); check the"
            " server and the URL, and repeat the request"
        )

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            if secret:
                text = text.replace(str(secret), "***")
        return text
