"""Tables of a decision log in a database."""

from __future__ import annotations

import sqlalchemy as sa

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
