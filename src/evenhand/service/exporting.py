"""Export of decision logs as one parquet file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from evenhand._files import Partial, link_target
from evenhand._validate import InputError, bad_input
from evenhand.service.chain import FORMAT, Row, Verification, stored_row, verified
from evenhand.service.decision_log import DecisionLog, Head, LogError, Logged

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
