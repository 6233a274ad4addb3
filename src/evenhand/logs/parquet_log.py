"""Decision logs in parquet files, for batches."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from evenhand._locks import one_writer
from evenhand._validate import InputError
from evenhand.logs.chain import logged
from evenhand.logs.decision_log import DecisionLog, Transaction
from evenhand.logs.entries import EntryKind, Head, Logged
from evenhand.logs.forks import prepare_for_forks
from evenhand.logs.group_commit import GroupCommit, Work
from evenhand.logs.log_errors import CLOSED, FULL, READ_ONLY, LogError
from evenhand.logs.parquet_parts import Parts, part_name, part_names, read_rows, write_rows
from evenhand.logs.pending import Pending

T = TypeVar("T")


class ParquetLog(DecisionLog):
    """Log in a folder, to which each `run` that adds entries adds a file; or in an exported file.

    For services that forecast in batches: the index of all requests is in memory, and many small
    files are slow to open.

    Parameters
    ----------
    path : Path
        Folder, or file that `export` wrote.
    create : bool
        Whether to make the folder if it is missing.

    Raises
    ------
    InputError
        If there is something else than a decision log.
    LogError
        If the folder cannot be made.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        self.source = str(path)
        # a process that changes its working directory must not open another folder
        self._path = path.absolute()
        self._is_closed = False
        if create and not path.exists():
            with self._translated():
                self._path.mkdir(mode=0o700, exist_ok=True)
        if not path.exists():
            raise InputError(f"{path} does not exist; name the folder of a decision log")
        self.after_fork()
        self._refresh()
        self._refuse_other_files()
        if self._parts.last() is None and not create:
            raise InputError(f"{path} is empty; name a decision log")
        prepare_for_forks(self)

    def run(self, work: Callable[[Transaction], T]) -> T:
        return self._group.run(work)

    def find(self, request: str) -> Logged | None:
        self._refresh()
        return self._parts.find(request)

    def get(self, id: str) -> Logged | None:
        self._refresh()
        return self._parts.forecast(id)

    def entries(self, *, after: int = 0, kind: EntryKind | None = None) -> Iterator[Logged]:
        self._refresh()
        for path in self._parts.paths():
            for row in read_rows(path):
                if row.number > after and kind in (None, row.kind):
                    yield logged(row, self.source)

    def head(self) -> Head | None:
        self._refresh()
        last = self._parts.last()
        return None if last is None else Head(last.number, last.sha256)

    def close(self) -> None:
        self._is_closed = True

    def before_fork(self) -> None:
        """Nothing is open between calls."""

    def after_fork(self) -> None:
        """Begin anew, without locks of threads that a fork does not have."""
        folder = self._path.parent if self._path.is_file() else self._path
        self._parts = Parts(folder, self.source)
        self._group = GroupCommit(self._commit, self.source)

    def _commit(self, works: list[Work]) -> None:
        if self._path.is_file():
            raise LogError(f"{self.source}: an exported log can only be read; open the log itself")
        with self._translated(), one_writer(self._path) as is_alone:
            if not is_alone:
                raise LogError(
                    f"{self.source}: the file system has no locks, so that processes would"
                    " overwrite entries; use a local folder"
                )
            self._refresh()
            pending = Pending(self._parts, self._parts.last())
            for work in works:
                work.call(pending)
            if pending.rows:
                write_rows(self._path / part_name(pending.rows), pending.rows)

    def _refresh(self) -> None:
        if self._is_closed:
            raise LogError(f"{self.source}: {CLOSED}")
        is_file = self._path.is_file()
        self._parts.extend([self._path.name] if is_file else part_names(self._path))

    def _refuse_other_files(self) -> None:
        """Refuse folders with other files, such as the parts of a table."""
        if self._parts.last() is None:
            others = sorted(p.name for p in self._path.iterdir() if not p.name.startswith("."))
            if others:
                raise InputError(
                    f"{self.source} is a folder with other files ({', '.join(others[:3])}) and not"
                    " a decision log; name another one"
                )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise errors of the file system as LogError."""
        try:
            yield
        except OSError as error:
            reason = f"the log cannot be written ({error.strerror or error}); check the disk"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                reason = FULL
            elif error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                reason = READ_ONLY
            raise LogError(f"{self.source}: {reason}") from error
