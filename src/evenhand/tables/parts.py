"""Block-wise reading of tables larger than memory, from a folder of parts or one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from evenhand._validate import InputError, check_column
from evenhand.tables.files import (
    cast_columns,
    check_header,
    check_part,
    check_same_columns,
    csv_head,
    no_rows,
    open_parquet,
    plain_schema,
    read_part,
    readable,
    table_paths,
    to_pandas,
    unify_types,
)
from evenhand.tables.values import row_blocks

Typing = Callable[[pd.DataFrame, str, int], pd.DataFrame]
"""Converts the columns of a block to their kinds. Takes the block and, for messages, the file name
and the number of the block's first row. Must be picklable."""


@dataclass(frozen=True)
class Parts:
    """Parts of a table that are read block by block; created by `open_parts`.

    Picklable, without open files.

    Attributes
    ----------
    paths : tuple of Path
        The parts, sorted by name.
    columns : tuple of str
        Names of the columns that all parts have, in the order of the first part.
    skipped : dict of str
        Reason for each skipped part, in one line, by file name.
    schema : pyarrow.Schema or None
        Types that blocks of all parquet parts are cast to; None if no parquet part has rows. Blocks
        of csv parts contain text.
    counts : tuple of int or None
        Number of rows of each part; None for csv, where counting means reading.
    source : str
        Name of the folder or file, for messages.
    is_folder : bool
        Whether the parts are in a folder.
    kinds : Typing or None
        Function that converts columns to their kinds, for csv and parquet alike; see `typed`.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.tables.writing import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pd.DataFrame({"id": ["a", "b", "c"], "income": [1, 2, 3]})
    ...     write_table(table, Path(folder, "part-1.parquet"))
    ...     parts = open_parts(folder)
    ...     blocks = parts.blocks(0, ["income"], size=2)
    ...     [(start, block["income"].tolist()) for start, block in blocks]
    [(0, [1, 2]), (2, [3])]
    >>> parts.names, parts.columns
    (('part-1.parquet',), ('id', 'income'))
    """

    paths: tuple[Path, ...]
    columns: tuple[str, ...]
    skipped: dict[str, str]
    schema: Any
    counts: tuple[int | None, ...]
    source: str
    is_folder: bool
    kinds: Typing | None = None

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def names(self) -> tuple[str, ...]:
        """The file names of the parts."""
        return tuple(path.name for path in self.paths)

    def typed(self, kinds: Typing) -> Parts:
        """Return the same parts with a function that converts the columns of each block."""
        return replace(self, kinds=kinds)

    def n_rows(self, i: int) -> int | None:
        """Return the number of rows of part `i`, from 0; None for a csv part."""
        return self.counts[i]

    def blocks(
        self, i: int, columns: Sequence[str] | None = None, *, size: int = 20_000
    ) -> Iterator[tuple[int, pd.DataFrame]]:
        """Read part `i` block by block.

        Parameters
        ----------
        i : int
            Number of the part, from 0.
        columns : sequence of str, optional
            Columns that are read, in this order; all by default.
        size : int, default 20,000
            Rows of each block except the last, independent of the row groups of the file.

        Returns
        -------
        iterator of (int, DataFrame)
            Each block with the number, from 0, of its first row within the part; no block for a
            part without rows. Values are those of `read_table`, or converted to `kinds`, with two
            exceptions for parquet: integers are floats in blocks with missing values, and
            categories are those read so far. A parquet part takes the memory of one block and one
            page per column; a csv part is read whole and must fit in memory.

        Raises
        ------
        InputError
            If a column is unknown; while reading, if the part is damaged or has changed
            since it was opened.
        """
        path = self.paths[i]
        chosen = self.columns if columns is None else columns
        wanted = [check_column(name, self.columns, str(path)) for name in chosen]
        if self.counts[i] == 0:
            return
        read = self._csv_blocks if self.counts[i] is None else self._parquet_blocks
        for start, block in read(i, wanted, size):
            name = self.names[i]
            yield start, block if self.kinds is None else self.kinds(block, name, start)

    def _csv_blocks(
        self, i: int, wanted: list[str], size: int
    ) -> Iterator[tuple[int, pd.DataFrame]]:
        path = self.paths[i]
        table = read_part(path)
        check_same_columns(table.column_names, self.columns, str(path), self.names[0])
        table = table.select(wanted)
        with readable(path):
            for rows in row_blocks(table.num_rows, size):
                yield rows.start, to_pandas(table.slice(rows.start, size))

    def _parquet_blocks(
        self, i: int, wanted: list[str], size: int
    ) -> Iterator[tuple[int, pd.DataFrame]]:
        path = self.paths[i]
        start = 0
        schema = pa.schema([self.schema.field(name) for name in wanted])
        # pre_buffer would load whole row groups, and without a buffer size the reader would load a
        # whole column of a row group
        with readable(path), open_parquet(path, pre_buffer=False, buffer_size=1 << 16) as file:
            names = plain_schema(file.schema_arrow).names
            check_same_columns(names, self.columns, str(path), self.names[0])
            # another process may have rewritten the part since it was opened
            if file.metadata.num_rows != self.counts[i]:
                raise InputError(
                    f"{path} had {self.counts[i]} rows when it was opened and now has"
                    f" {file.metadata.num_rows}; do not change parts while they are read"
                )
            batches = file.iter_batches(size, columns=wanted, use_threads=False)
            for table in _in_blocks(batches, size):
                # older readers keep the order of the file, and read `x.y` together with `x`
                block = cast_columns(table.select(wanted), schema, str(path))
                yield start, to_pandas(block)
                start += block.num_rows


def _in_blocks(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Regroup batches of any lengths into tables of `size` rows each, except the last."""
    # batches end at row groups, which blocks and the draws made for them must not depend on
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows < size:
            continue
        table = pa.Table.from_batches(waiting)
        whole = rows - rows % size
        for start in range(0, whole, size):
            yield table.slice(start, size)
        waiting = table.slice(whole).to_batches()
        rows = rows - whole
    if rows:
        yield pa.Table.from_batches(waiting)


def open_parts(path: str | os.PathLike[str], *, skip_bad: bool = False) -> Parts:
    r"""Open a folder of parts, or one file, for block-wise reading.

    Only headers are read: names, types and number of rows of parquet parts, and names of csv parts.
    Damage in the data is detected while blocks are read. Blocks of csv parts contain text until
    their columns are given kinds (`Parts.typed`).

    Parameters
    ----------
    path : path
        A file ending in .csv, .csv.gz or .parquet, or a folder of such files. Parts are sorted by
        name; names that begin with a dot or an underscore are ignored.
    skip_bad : bool, default False
        Skip unusable parts, with the reasons in `skipped`, instead of raising an error. The first
        usable part determines the columns.

    Returns
    -------
    Parts

    Raises
    ------
    InputError
        If the path does not exist, no part has a row, or a part is damaged, has an unknown ending
        or a repeated column, or differs from earlier parts in columns or types; with `skip_bad`, if
        no part can be used.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("id,income\n007,1200\n")
    ...     _ = Path(folder, "b.csv").write_text("id\n008\n")
    ...     parts = open_parts(folder, skip_bad=True)
    >>> parts.names, list(parts.skipped)
    (('a.csv',), ['b.csv'])
    """
    place, paths = table_paths(path)
    schema: Any = None
    columns: list[str] = []
    good: dict[Path, _Head] = {}
    skipped: dict[str, str] = {}
    for part in paths:
        try:
            head = _Head.of(part)
            # parts are compared with the first usable one: a bad part must not define the columns
            if good:
                check_same_columns(head.names, columns, str(part), next(iter(good)).name)
            columns = columns or head.names
            schema = head.unified(schema, columns, part)
        except InputError as error:
            if not skip_bad:
                raise
            skipped[part.name] = str(error)
        else:
            good[part] = head
    if not good:
        reason = next(iter(skipped.values()))
        raise InputError(
            f"{place}: no part can be used ({len(skipped)} tried); the first error: {reason}"
        )
    if not any(head.has_rows for head in good.values()):
        raise no_rows(place)
    counts = tuple(head.n_rows for head in good.values())
    return Parts(tuple(good), tuple(columns), skipped, schema, counts, place.name, place.is_dir())


@dataclass(frozen=True)
class _Head:
    """Columns, types and number of rows of a part, read from its header.

    `schema` and `n_rows` are None for csv.
    """

    names: list[str]
    has_rows: bool
    schema: Any = None
    n_rows: int | None = None

    @staticmethod
    def of(path: Path) -> _Head:
        with readable(path):
            is_parquet = check_part(path)
            head = _parquet_head(path) if is_parquet else _Head(*csv_head(path))
        check_header(head.names, path, is_csv=not is_parquet)
        return head

    def unified(self, schema: Any, columns: list[str], path: Path) -> Any:
        """Return types, in the order of `columns`, that fit this part and earlier ones."""
        # pandas gives the columns of a part without rows arbitrary types
        if not self.n_rows:
            return schema
        return unify_types(schema, pa.schema([self.schema.field(name) for name in columns]), path)


def _parquet_head(path: Path) -> _Head:
    with open_parquet(path) as file:
        n_rows = int(file.metadata.num_rows)
        schema = plain_schema(file.schema_arrow)
    return _Head(list(schema.names), n_rows > 0, schema, n_rows)
