"""Files of decision logs in parquet."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from threading import RLock

import pyarrow as pa
from pyarrow import parquet

from evenhand._files import Partial
from evenhand._validate import InputError
from evenhand.logs.chain import FORMAT, Row, check_format, logged
from evenhand.logs.entries import Logged
from evenhand.logs.log_errors import changed
from evenhand.tables import open_parquet, readable

GROUP = 1000
"""Rows of a row group, the least that is read."""

_VERSION = b"evenhand.decision_log"
_DIGITS = 12
_PART = re.compile(rf"part-\d{{{_DIGITS}}}-\d{{{_DIGITS}}}\.parquet")


def part_name(rows: list[Row]) -> str:
    """Return the name of a file for new rows, which has their first and last number."""
    return f"part-{rows[0].number:0{_DIGITS}}-{rows[-1].number:0{_DIGITS}}.parquet"


def part_names(folder: Path) -> list[str]:
    """Return the names of the files of a log, in order."""
    names = _listed(folder)
    # while another process adds files, a listing may have one and not the one before it
    return names if _are_contiguous(names) else _listed(folder)


def _listed(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if _PART.fullmatch(name))


def _are_contiguous(names: list[str]) -> bool:
    ends = [[int(number) for number in name[5:-8].split("-")] for name in names]
    return all(one[1] + 1 == two[0] for one, two in pairwise(ends))


class Parts:
    """Entries in files, with an index of requests, forecasts and subjects in memory.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    source : str
        Name of the log in messages.
    """

    def __init__(self, folder: Path, source: str) -> None:
        self.source = source
        self._folder = folder
        self._names: list[str] = []
        self._lock = RLock()
        # where an entry is: its file and its place there
        self._requests: dict[str, tuple[Path, int]] = {}
        self._forecasts: dict[str, tuple[Path, int]] = {}
        self._subjects: Counter[str] = Counter()
        self._last: Logged | None = None
        self._group: tuple[Path | None, int, list[Row]] = (None, 0, [])

    def extend(self, names: list[str]) -> None:
        """Add the entries of new files; `names` are those of all files of the log, in order."""
        with self._lock:
            if names == self._names:
                return
            gone = sorted(set(self._names) - set(names))
            if gone:
                raise InputError(
                    f"{self._folder / gone[0]} has been removed; restore it from a backup"
                )
            known = set(self._names)
            for name in names:
                if name not in known:
                    self._add(self._folder / name)

    def paths(self) -> list[Path]:
        """Return the files."""
        with self._lock:
            return [self._folder / name for name in self._names]

    def last(self) -> Logged | None:
        """Return the last entry."""
        return self._last

    def find(self, request: str) -> Logged | None:
        """Return the entry with this `request`."""
        with self._lock:
            return self._entry(self._requests.get(request))

    def forecast(self, id: str) -> Logged | None:
        """Return the forecast with this id."""
        with self._lock:
            return self._entry(self._forecasts.get(id))

    def n_of(self, subject: str) -> int:
        """Return the number of entries with this `subject`."""
        with self._lock:
            return self._subjects[subject]

    def _add(self, path: Path) -> None:
        with _opened(path) as file:
            columns = file.read(["kind", "id", "request", "subject"]).columns
            last = _rows(file.read_row_group(file.num_row_groups - 1))[-1]
        # all that can fail is done: a file is in the index as a whole or not at all
        self._last = logged(last, self.source)
        self._names.append(path.name)
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        for place, (kind, id, request, subject) in enumerate(rows):
            if request is not None:
                self._requests[request] = (path, place)
            if kind == "forecast":
                self._forecasts[id] = (path, place)
            if subject is not None:
                self._subjects[subject] += 1

    def _entry(self, where: tuple[Path, int] | None) -> Logged | None:
        if where is None:
            return None
        path, place = where
        at, first, rows = self._group
        # entries that are asked for one after another are often neighbours
        if at != path or not first <= place < first + len(rows):
            self._group = (path, *_group_with(path, place, self.source))
        _, first, rows = self._group
        return logged(rows[place - first], self.source)


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file; memory is that of a row group."""
    with _opened(path) as file:
        for i in range(file.num_row_groups):
            yield from _rows(file.read_row_group(i))


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a file atomically and durably, readable by its owner only."""
    partial = Partial(path)
    try:
        os.fchmod(partial.handle, 0o600)
        schema = _schema()
        with (
            os.fdopen(partial.handle, "wb", closefd=False) as file,
            parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer,
        ):
            remaining = iter(rows)
            while group := list(islice(remaining, GROUP)):
                columns = zip(zip(*group, strict=True), schema.types, strict=True)
                arrays = [pa.array(column, type) for column, type in columns]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        partial.commit()
    except BaseException:
        partial.discard()
        raise


def _schema() -> pa.Schema:
    texts = [(name, pa.string()) for name in Row._fields[1:]]
    version = {_VERSION: str(FORMAT).encode()}
    return pa.schema([("number", pa.int64()), *texts]).with_metadata(version)


@contextmanager
def _opened(path: Path) -> Iterator[parquet.ParquetFile]:
    with readable(path), open_parquet(path) as file:
        found = file.schema_arrow
        version = (found.metadata or {}).get(_VERSION)
        if version is None or not found.equals(_schema()) or file.metadata.num_rows == 0:
            raise InputError(f"{path} is not a decision log; name another file")
        check_format(int(version), str(path))
        yield file


def _rows(table: pa.Table) -> list[Row]:
    return [Row(*row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def _group_with(path: Path, place: int, source: str) -> tuple[int, list[Row]]:
    """Return the row group that has a place, and its own first place."""
    first = 0
    with _opened(path) as file:
        for i in range(file.num_row_groups):
            n_rows = file.metadata.row_group(i).num_rows
            if place < first + n_rows:
                return first, _rows(file.read_row_group(i))
            first += n_rows
    raise changed(source, place, "is missing")
