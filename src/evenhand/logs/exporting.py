"""Export of decision logs as one parquet file."""

from __future__ import annotations

import os
from collections.abc import Iterator

from evenhand._files import link_target
from evenhand._validate import InputError, bad_input
from evenhand.logs.chain import Row, stored_row
from evenhand.logs.decision_log import DecisionLog
from evenhand.logs.entries import Head, Logged
from evenhand.logs.log_errors import LogError
from evenhand.logs.verification import Verification, verified


def export(log: DecisionLog, path: str | os.PathLike[str]) -> Verification:
    """Write a log as one parquet file, which `open_log` can read, and verify it on the way.

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
    >>> from evenhand.service import Entry, open_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = open_log(f"{folder}/log.sqlite")
    ...     logged = log.run(lambda transaction: transaction.add(Entry("context", "2026-11")))
    ...     exported = export(log, f"{folder}/log.parquet")
    ...     open_log(f"{folder}/log.parquet").head() == exported.head == log.head()
    ...     log.close()
    True
    """
    from evenhand.logs.parquet_parts import write_rows

    target = link_target(path)
    if target.suffix.lower() != ".parquet" or target.is_dir():
        raise bad_input("path", "be a file that ends in .parquet", repr(str(path)))
    if log.head() is None:
        raise InputError(f"{log.source} has no entries; there is nothing to export")
    last: list[Logged] = []
    try:
        write_rows(target, _rows(log, last))
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
