"""Tables read block by block: a folder of parts, or one file, larger than memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from evenhand._validate import InputError, bad_input, check_column, check_count
from evenhand.tables.files import (
    cast_columns,
    check_header,
    check_part,
    csv_head,
    open_parquet,
    plain_schema,
    read_part,
    readable,
)
from evenhand.tables.reading import check_same_columns, no_rows, table_paths, to_pandas, unify_types
from evenhand.tables.typed_columns import row_blocks

Typing = Callable[[pd.DataFrame, str, int], pd.DataFrame]
"""Gives the columns of a block their kinds; the file name and the number of the block's first row
are for messages. Can be pickled."""


@dataclass(frozen=True)
class Parts:
    """The parts of a table, to be read block by block; made by `open_parts`.

    Can be pickled; holds no open file.

    Attributes
    ----------
    paths : tuple of Path
        The parts, sorted by name.
    columns : tuple of str
        Names of the columns that all parts have, in the order of the first part.
    skipped : dict of str
        By file name, why a part was left out, in one line.
    schema : pyarrow.Schema or None
        The types that every block of a parquet part has, whatever the part's own; None if no
        parquet part has rows. Blocks of a csv part hold text.
    counts : tuple of int or None
        Rows of each part; None for csv, whose rows are only counted by reading them.
    source : str
        Name of the folder or file, for messages.
    is_folder : bool
        Whether it is a folder.
    kinds : Typing or None
        What gives columns their kinds, in csv and parquet parts alike; see `typed`.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.tables import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pd.DataFrame({"id": ["a", "b", "c"], "income": [1, 2, 3]})
    ...     write_table(table, Path(folder, "part-1.parquet"))
    ...     parts = open_parts(folder)
    ...     blocks = parts.blocks(0, ["income"], size=2)
    ...     [(start, block["income"].tolist()) for start, block in blocks]
    [(0, [1, 2]), (2, [3])]
    >>> parts.names, parts.columns, parts.total_rows
    (('part-1.parquet',), ('id', 'income'), 3)
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

    @property
    def total_rows(self) -> int | None:
        """Rows of all parts together; None if a part is csv."""
        known = [count for count in self.counts if count is not None]
        return sum(known) if len(known) == len(self.counts) else None

    def typed(self, kinds: Typing) -> Parts:
        """Return the same parts, whose blocks hold columns of these kinds."""
        return replace(self, kinds=kinds)

    def n_rows(self, i: int) -> int | None:
        """Rows of part `i`, counted from 0; None if it is csv."""
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
            Rows of each block but the last, whatever the row groups of the file.

        Returns
        -------
        iterator of (int, DataFrame)
            The number, from 0, that the block's first row has in the part, and the block; none for
            a part without rows. Values are as `read_table` gives them, or of the `kinds`, but for
            two things that pandas knows only of a block of parquet: whole numbers are floats in
            blocks where some are missing, and categories are those met so far. Memory stays that of
            a block and one page of each column for parquet; a csv part is read whole and has to fit
            in memory.

        Raises
        ------
        InputError
            If a column or the part is unknown; while reading, if the part is damaged or was changed
            since it was opened.
        """
        if not 0 <= i < len(self):
            raise bad_input("i", f"be the number of a part, from 0 to {len(self) - 1}", i)
        path = self.paths[i]
        chosen = self.columns if columns is None else columns
        wanted = [check_column(name, self.columns, str(path)) for name in chosen]
        if not wanted:
            raise bad_input("columns", "name at least one column", "none")
        size = check_count("size", size)
        if self.counts[i] == 0:
            return iter(())
        read = self._csv_blocks if self.counts[i] is None else self._parquet_blocks
        return self._typed_blocks(i, read(i, wanted, size))

    def _typed_blocks(
        self, i: int, blocks: Iterator[tuple[int, pd.DataFrame]]
    ) -> Iterator[tuple[int, pd.DataFrame]]:
        for start, block in blocks:
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
        # pre_buffer would hold whole row groups in memory, and without a buffer size the reader a
        # column's share of a row group
        with readable(path), open_parquet(path, pre_buffer=False, buffer_size=1 << 16) as file:
            names = plain_schema(file.schema_arrow).names
            check_same_columns(names, self.columns, str(path), self.names[0])
            # another process may have written the part anew since it was opened
            if file.metadata.num_rows != self.counts[i]:
                rule = f"have {self.counts[i]} rows as when it was opened"
                remedy = "leave parts as they are until they are read"
                raise bad_input(str(path), rule, file.metadata.num_rows, remedy)
            distinct = list(dict.fromkeys(wanted))
            batches = file.iter_batches(size, columns=distinct, use_threads=False)
            for table in _in_blocks(batches, size):
                # older readers keep the order of the file, and take `x.y` along with `x`
                block = cast_columns(table.select(wanted), schema, str(path))
                yield start, to_pandas(block)
                start += block.num_rows


def _in_blocks(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Cut batches of any lengths into tables of `size` rows each, but for the last."""
    # batches end where row groups do: blocks, and the draws made for them, must not depend on that
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows < size:
            continue
        table = pa.Table.from_batches(held)
        whole = rows - rows % size
        for start in range(0, whole, size):
            yield table.slice(start, size)
        held = table.slice(whole).to_batches()
        rows = rows - whole
    if rows:
        yield pa.Table.from_batches(held)


def open_parts(path: str | os.PathLike[str], *, skip_bad: bool = False) -> Parts:
    r"""Open a folder of parts, or one file, to be read block by block.

    Only heads are read: of parquet parts names, types and number of rows; of csv parts names. So
    damage further on shows while blocks are read. Blocks of csv parts hold text until they are
    given kinds (`Parts.typed`).

    Parameters
    ----------
    path : path
        A file ending in .csv, .csv.gz or .parquet, or a folder of them. Parts come in the order of
        their names; names that begin with a dot or an underscore are passed over.
    skip_bad : bool, default False
        Leave bad parts out, and say why in `skipped`, instead of refusing all. The first good part
        determines the columns.

    Returns
    -------
    Parts

    Raises
    ------
    InputError
        If there is no such path, no part has a row, or a part is damaged, of an unknown ending, has
        a column twice, or differs from the parts before it in columns or types; with `skip_bad`, if
        all are bad.

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
            # a part is compared with the first good one: a bad part must not set the columns
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
        got = f"none of {len(skipped)}"
        raise bad_input(
            str(place), "hold at least one good part", got, next(iter(skipped.values()))
        )
    if not any(head.has_rows for head in good.values()):
        raise no_rows(place)
    counts = tuple(head.n_rows for head in good.values())
    return Parts(tuple(good), tuple(columns), skipped, schema, counts, place.name, place.is_dir())


@dataclass(frozen=True)
class _Head:
    """Columns, types and number of rows of a part, known before its rows are read.

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
        """Return types, in the order of `columns`, that hold this part's and those before it."""
        # pandas gives the columns of a part without rows any type
        if not self.n_rows:
            return schema
        return unify_types(schema, pa.schema([self.schema.field(name) for name in columns]), path)


def _parquet_head(path: Path) -> _Head:
    with open_parquet(path) as file:
        n_rows = int(file.metadata.num_rows)
        schema = plain_schema(file.schema_arrow)
    return _Head(list(schema.names), n_rows > 0, schema, n_rows)
