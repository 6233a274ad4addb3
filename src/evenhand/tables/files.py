"""Csv and parquet files, one or a folder of parts, read and written whole or block by block."""

from __future__ import annotations

import csv
import gzip
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pyarrow as pa
from pyarrow import compute, parquet
from pyarrow import csv as arrow_csv

from evenhand._files import Partial, link_target
from evenhand._format import count
from evenhand._validate import AnyPath, InputError, bad_input, check_column, counted_from, short
from evenhand.tables.values import refuse_repeated_names, row_blocks

TABLE_ENDINGS = (".csv", ".csv.gz", ".parquet")


def ending_of(path: Path, endings: Sequence[str]) -> str:
    """Return the longest of `endings` that matches the file name."""
    fitting = [ending for ending in endings if path.name.lower().endswith(ending)]
    if not fitting:
        rule = f"end in {', '.join(endings)}"
        raise bad_input(str(path), rule, repr(path.suffix), "save it in one of these formats")
    return max(fitting, key=len)


def cast_columns(table: pa.Table, schema: pa.Schema, place: str) -> pa.Table:
    """Cast a table to a schema of the same columns; InputError names a column that does not fit."""
    # column by column: Arrow's message on a whole table names no column
    columns = []
    for values, field in zip(table.columns, schema, strict=True):
        column = f"{place}: column {field.name!r}"
        what = f"{column} cannot be converted to {field.type}, its type in the rest of the table"
        with refused(what, "write the column with one type"):
            columns.append(values.cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


@contextmanager
def refused(what: str, remedy: str) -> Iterator[None]:
    """Turn any error of a file or of its types into a one-line InputError: what, why, remedy."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        reason = (str(error).splitlines() or ["no reason given"])[0][:120]
        raise InputError(f"{what} ({reason}); {remedy}") from error


def readable(path: Path) -> AbstractContextManager[None]:
    """Turn any error while reading a file into a one-line InputError that names the file."""
    ending = ending_of(path, TABLE_ENDINGS)
    return refused(f"{path} is not a readable {ending} file", "write it again, with text as UTF-8")


def open_parquet(path: Path, **options: Any) -> parquet.ParquetFile:
    """Open a parquet file; reading verifies the checksums of its pages, if it has any."""
    # not read_table, which adds columns for folder names such as `year=2020`
    return parquet.ParquetFile(path, page_checksum_verification=True, **options)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of the data columns of a parquet file, with decimals as floats."""
    # index columns without a name are bookkeeping of pandas, and decimals would become Python
    # objects
    fields = [field for field in schema if not field.name.startswith("__index_level_")]
    return pa.schema(
        [f.with_type(pa.float64()) if pa.types.is_decimal(f.type) else f for f in fields]
    )


def csv_head(path: Path) -> tuple[list[str], bool]:
    """Return the header of a csv file and whether a row follows it; rows are not checked."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
        return next(filter(None, csv.reader(lines)), []), any(line.rstrip("\r\n") for line in lines)


def _parse_csv(path: Path, names: Iterable[str], handler: Any = None) -> pa.Table:
    # as bytes: invalid UTF-8 is then detected later, where the row can be named
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.binary()), strings_can_be_null=False, check_utf8=False
    )
    parse = arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=handler)
    read = arrow_csv.ReadOptions(use_threads=handler is None)  # threads do not count rows
    packed = "gzip" if path.name.lower().endswith(".gz") else None
    with pa.input_stream(str(path), compression=packed) as stream:
        return arrow_csv.read_csv(stream, read, parse, convert)


def _read_csv(path: Path) -> pa.Table:
    """Read every cell as text; empty cells are missing.

    The kind of a column depends on the model or on all parts, never on a single file.
    """
    names, _ = csv_head(path)
    try:
        table = _parse_csv(path, names)
    except pa.ArrowInvalid:
        _refuse_ragged_row(path)
        raise
    columns = []
    for i, name in enumerate(table.column_names):
        place = f"{path}: column {name!r}"
        values = _decode(table.column(i), place)
        nul = compute.index(compute.match_substring(values, "\0"), value=True).as_py()
        if nul >= 0:
            rule, got = "contain no NUL characters", short(values[nul].as_py())
            raise bad_input(f"{place}, row {nul + 1}", rule, got, "write the file again")
        if table.num_columns > 1:
            _refuse_swallowed_rows(values, place, column=i, n_columns=table.num_columns)
        empty = compute.equal(values, "")
        columns.append(compute.if_else(empty, pa.scalar(None, pa.string()), values))
    return pa.table(columns, names=table.column_names)


def _refuse_swallowed_rows(
    values: pa.ChunkedArray, place: str, *, column: int, n_columns: int
) -> None:
    """Refuse a cell that contains rows: two stray quotes make one cell of all between them."""
    has_lines = compute.match_substring_regex(values, "[\n\r]")
    for row in compute.indices_nonzero(has_lines).to_pylist():
        cell = values[row].as_py()
        commas = [line.count(",") for line in cell.splitlines()]
        # commas of whole rows: the first line lacks the columns before this cell, the last line the
        # columns after it
        rows = [n_columns - 1 - column, *([n_columns - 1] * (len(commas) - 2)), column]
        is_short = len(commas) == 2 and n_columns == 2  # may be any text with one comma
        if (commas == rows and not is_short) or (n_columns > 2 and n_columns - 1 in commas[1:-1]):
            raise InputError(
                f"{place}, row {row + 1} contains {len(commas)} lines that look like rows of the"
                f" table, {short(cell)}; find the quote that is never closed, and double quotes"
                " inside values"
            )


def _refuse_ragged_row(path: Path) -> None:
    """Raise InputError for the first row whose length differs from the header's."""
    found: list[Any] = []

    def keep(row: Any) -> str:
        found.append(row)
        return "skip"

    _parse_csv(path, [], keep)
    for row in found[:1]:
        # pyarrow counts the header as row 1
        raise InputError(
            f"{path}: row {row.number - 1} has {count(row.actual_columns, 'value')},"
            f" {short(row.text)}, and the header has {row.expected_columns}; quote values that"
            " contain commas, and name all columns in the first line"
        )


def _decode(values: pa.ChunkedArray, place: str) -> pa.ChunkedArray:
    with suppress(pa.ArrowInvalid):
        return values.cast(pa.string())
    cells = values.to_pylist()
    row = next(i for i, cell in enumerate(cells) if cell.decode("utf-8", "ignore").encode() != cell)
    remedy = "save the file with UTF-8 encoding"
    raise bad_input(f"{place}, row {row + 1}", "be UTF-8 text", short(cells[row]), remedy)


def check_header(names: list[str], path: Path, *, is_csv: bool) -> None:
    """Refuse repeated column names, NUL, and csv files whose first line is data."""
    for name in (name for name in names if "\0" in name):
        place = f"{path}: a column name"
        raise bad_input(place, "contain no NUL characters", short(name), "write the file again")
    remedy = "add a first line of column names"
    missing = f", or {remedy} if there is none" if is_csv else ""
    refuse_repeated_names(names, str(path), f"rename one{missing}")
    if is_csv and len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        rule = "separate values by commas"
        remedy = "save it as comma-separated csv with decimal points"
        raise bad_input(str(path), rule, short(names[0]), remedy)
    # pandas writes 0, 1, 2, ... for an array without names; any other header of numbers is a row of
    # data
    is_counted = names == [str(i) for i in range(len(names))]
    is_data = not is_counted and pd.notna(pd.to_numeric(names, errors="coerce")).all()
    if is_csv and is_data:
        place = f"{path}: the first line"
        raise bad_input(place, "name the columns", short(",".join(names)), remedy)


# --- reading of whole tables and of their parts, which agree in columns and types


def read_table(path: AnyPath) -> pd.DataFrame:
    """Read a file or a folder of parts at once, with the cells of csv files as text."""
    return open_parts(path).whole()


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Convert a table to pandas, with dates as datetimes and without an index column."""
    # pandas metadata would turn saved index columns (often the ids) into an index, where they have
    # no column name; it is removed because even ignored metadata is parsed, which fails if damaged
    return table.replace_schema_metadata(None).to_pandas(date_as_object=False, ignore_metadata=True)


def check_same_columns(names: Sequence[str], wanted: Sequence[str], place: str, first: str) -> None:
    """Raise InputError unless a part has the columns of the first one, in any order."""
    given, known = Counter(names), set(wanted)
    differ = [f"{name!r} is missing" for name in wanted if name not in given]
    differ += [f"{name!r} is additional" for name in names if name not in known]
    differ += [f"{name!r} is repeated" for name in wanted if given[name] > 1]
    if differ:
        raise InputError(
            f"{place} has other columns than {first}: {', '.join(differ[:4])}; repair or remove it"
        )


# --- block-wise reading of tables larger than memory

# takes the block and, for messages, the file name. Must be picklable.
Typing = Callable[[pd.DataFrame, str], pd.DataFrame]
"""Converts the columns of a block to their kinds."""


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
    advance : callable or None
        Takes the number of rows of each block once it has been processed, to show progress.
    """

    paths: tuple[Path, ...]
    columns: tuple[str, ...]
    skipped: dict[str, str]
    schema: Any
    counts: tuple[int | None, ...]
    source: str
    is_folder: bool
    kinds: Typing | None = None
    advance: Callable[[int], object] | None = None

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def names(self) -> tuple[str, ...]:
        """The file names of the parts."""
        return tuple(path.name for path in self.paths)

    def typed(self, kinds: Typing) -> Parts:
        """Return the same parts with a function that converts the columns of each block."""
        return replace(self, kinds=kinds)

    def blocks(
        self, i: int, columns: Sequence[str] | None = None, *, size: int = 20_000
    ) -> Iterator[tuple[int, pd.DataFrame]]:
        """Read part `i` in blocks of `size` rows, each with the number, from 0, of its first row.

        A part without rows has no block. Values are those of `whole`, or converted to `kinds`, with
        two exceptions for parquet: integers are floats in blocks with missing values, and
        categories are those read so far. A parquet part takes the memory of one block and one page
        per column; a csv part is read whole and must fit in memory. Raises InputError, also while
        blocks are read, if the part is damaged or has changed since it was opened.
        """
        for start, table in self.tables(i, self.columns if columns is None else columns, size):
            block = to_pandas(table)
            if self.kinds is not None:
                with counted_from(start):
                    block = self.kinds(block, self.names[i])
            yield start, block
            if self.advance is not None:
                self.advance(len(block))

    def tables(
        self, i: int, columns: Sequence[str], size: int | None = None
    ) -> Iterator[tuple[int, pa.Table]]:
        """Read part `i` as `blocks` does, without conversion; in one block if `size` is None."""
        path, n_rows = self.paths[i], self.counts[i]
        wanted = [check_column(name, self.columns, str(path)) for name in columns]
        if n_rows == 0:
            return
        with readable(path):
            if n_rows is None:
                table = _read_csv(path)
                check_same_columns(table.column_names, self.columns, str(path), self.names[0])
                table = table.select(wanted)
                for rows in row_blocks(table.num_rows, size or max(1, table.num_rows)):
                    yield rows.start, table.slice(rows.start, rows.stop - rows.start)
            else:
                yield from self._parquet_tables(path, n_rows, wanted, size or n_rows)

    def whole(self) -> pd.DataFrame:
        """Read all parts, as `read_table`."""
        # csv parts beside parquet parts take the types of those
        tables = [
            cast_columns(table, self.schema or table.schema, str(path))
            for i, path in enumerate(self.paths)
            for _, table in self.tables(i, self.columns)
        ]
        return to_pandas(pa.concat_tables(tables))

    def _parquet_tables(
        self, path: Path, n_rows: int, wanted: list[str], size: int
    ) -> Iterator[tuple[int, pa.Table]]:
        schema = pa.schema([self.schema.field(name) for name in wanted])
        # pre_buffer would load whole row groups, and without a buffer size the reader would load a
        # whole column of a row group
        with open_parquet(path, pre_buffer=False, buffer_size=1 << 16) as file:
            names = plain_schema(file.schema_arrow).names
            check_same_columns(names, self.columns, str(path), self.names[0])
            # another process may have rewritten the part since it was opened
            if file.metadata.num_rows != n_rows:
                raise InputError(
                    f"{path} had {n_rows} rows when it was opened and now has"
                    f" {file.metadata.num_rows}; do not change parts while they are read"
                )
            batches = file.iter_batches(size, columns=wanted, use_threads=False)
            for number, table in enumerate(_in_blocks(batches, size)):
                # older readers keep the order of the file, and read `x.y` together with `x`
                yield number * size, cast_columns(table.select(wanted), schema, str(path))


def _in_blocks(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Regroup batches of at most `size` rows into tables of `size` rows each, except the last."""
    # batches end at row groups, which blocks and the draws made for them must not depend on
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        # a batch has at most `size` rows
        if sum(one.num_rows for one in waiting) >= size:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, size)
            waiting = table.slice(size).to_batches()
    if waiting:
        yield pa.Table.from_batches(waiting)


def open_parts(path: AnyPath, *, skip_bad: bool = False) -> Parts:
    """Open a folder of parts, or one file, for block-wise reading.

    Parts are sorted by name; names that begin with a dot or an underscore are ignored. Only headers
    are read: names, types and number of rows of parquet parts, and names of csv parts. Damage in
    the data is detected while blocks are read. Blocks of csv parts contain text until their columns
    are given kinds (`Parts.typed`).

    Raises InputError for a path without rows, and for a part that is damaged, has an unknown ending
    or a repeated column, or differs from earlier parts in columns or types. With `skip_bad` such
    parts are left out, with the reasons in `skipped`: the first usable part determines the columns.
    """
    place = Path(path)
    if not place.exists():
        raise InputError(f"{place}: no such path; check its spelling and folder")
    paths = [place]
    if place.is_dir():
        found = sorted(part for part in place.iterdir() if part.is_file())
        paths = [part for part in found if part.name[0] not in "._"]
        # a folder of other files, such as a model
        if not any(part.name.lower().endswith(TABLE_ENDINGS) for part in paths):
            endings = ", ".join(TABLE_ENDINGS)
            raise InputError(f"{place} is a folder without parts; parts end in {endings}")
    types: Any = None
    columns: list[str] = []
    counts: dict[Path, int | None] = {}
    skipped: dict[str, str] = {}
    is_empty = True
    for part in paths:
        try:
            names, schema, n_rows, has_rows = _head(part)
            # parts are compared with the first usable one: a bad part must not define the columns
            if counts:
                check_same_columns(names, columns, str(part), next(iter(counts)).name)
            columns = columns or names
            # pandas gives the columns of a part without rows arbitrary types
            if n_rows:
                typed = pa.schema([schema.field(name) for name in columns])
                other = f"{part} has another type than earlier parts"
                with refused(other, "write one type in all parts"):
                    types = pa.unify_schemas([types or typed, typed], promote_options="permissive")
        except InputError as error:
            if not skip_bad:
                raise
            skipped[part.name] = str(error)
        else:
            counts[part] = n_rows
            is_empty = is_empty and not has_rows
    if not counts:
        reason = next(iter(skipped.values()))
        raise InputError(
            f"{place}: no part can be used ({len(skipped)} tried); the first error: {reason}"
        )
    if is_empty:
        raise InputError(f"{place} has no rows of data; at least one is needed")
    n_rows_of = tuple(counts.values())
    return Parts(
        tuple(counts), tuple(columns), skipped, types, n_rows_of, place.name, place.is_dir()
    )


def _head(path: Path) -> tuple[list[str], Any, int | None, bool]:
    """Return columns, types and number of rows of a part, and whether it has any rows.

    Types and number of rows are None for csv.
    """
    with readable(path):
        is_parquet = ending_of(path, TABLE_ENDINGS) == ".parquet"
        if path.stat().st_size == 0:
            raise InputError(f"{path} is an empty file; write a table with at least one row")
        if is_parquet:
            with open_parquet(path) as file:
                n_rows, schema = file.metadata.num_rows, plain_schema(file.schema_arrow)
            names, has_rows = schema.names, n_rows > 0
        else:
            schema = n_rows = None
            names, has_rows = csv_head(path)
    check_header(names, path, is_csv=not is_parquet)
    return names, schema, n_rows, has_rows


# --- atomic writing of tables, whole or block by block


def check_writable(path: AnyPath, endings: Sequence[str]) -> Path:
    """Return the path if a file could be written there; meant to be called before long work.

    Symbolic links are followed, and the file need not exist. Raises InputError if the path has none
    of the `endings`, is a folder or a device, or its folder is missing or write-protected.
    """
    target = Path(path)
    ending_of(target, endings)
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise InputError(f"{target} is a device, pipe or socket; name a plain file")
    folder = link_target(target).parent if target.is_symlink() else target.parent
    if not folder.is_dir():
        raise InputError(f"{target}: there is no folder {folder}; create it first")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{target}: the folder {folder} is write-protected; choose another")
    return target


class TableWriter:
    """Context manager that writes a table block by block and atomically, as csv or parquet.

    Blocks go to a hidden file next to `path`, which replaces `path` when the `with` block ends
    without an error. Any error in the `with` block removes the hidden file and leaves an older
    `path` unchanged; so do SIGINT and, in the command, SIGTERM. The hidden file of a
    killed process is removed by the next writer of the same `path`. If `path` is a symbolic link,
    its target is written. Only one block is in memory at a time.

    Parameters
    ----------
    path : path
        A file ending in .csv, .csv.gz or .parquet, which determines the format. In parquet each
        block is at least one row group. Without blocks, which determine the columns, no file is
        written.

    Attributes
    ----------
    n_rows : int
        Rows written so far.
    """

    def __init__(self, path: AnyPath) -> None:
        self.path = check_writable(path, TABLE_ENDINGS)
        self.n_rows = 0
        self._columns: list[Any] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        # in the folder of the target, as a rename is atomic only within a file system
        self._partial = Partial(link_target(self.path))
        file = os.fdopen(self._partial.handle, "wb", closefd=False)
        self._sink: Any = self._open.enter_context(file)
        if self.path.name.lower().endswith(".gz"):
            # without a time stamp, so that the same table gives the same bytes
            packed = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
            self._sink = self._open.enter_context(packed)
        return self

    def write(self, frame: pd.DataFrame) -> None:
        """Append a block of rows, without its index.

        The first block determines the columns and, in parquet, their types, to which later blocks
        are cast; their columns may be in another order. Floats keep all digits in both formats.
        """
        is_first = not self._columns
        self._columns = self._columns or list(frame.columns)
        place = f"{self.path}: the block after row {self.n_rows}"
        if list(frame.columns) != self._columns:
            check_same_columns(list(frame.columns), self._columns, place, "the first block")
            frame = frame[self._columns]
        if not self.path.name.lower().endswith(".parquet"):
            # spreadsheets run text that begins with = or @ as a formula
            safe = spreadsheet_safe(frame)
            safe.to_csv(self._sink, index=False, header=is_first, lineterminator="\n")
        else:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            if is_first:
                # with checksums, damage in the middle of the file is detected when it is read
                schema = table.schema
                self._sink = parquet.ParquetWriter(self._sink, schema, write_page_checksum=True)
                self._open.callback(self._sink.close)
            self._sink.write_table(cast_columns(table, self._sink.schema, place))
        self.n_rows += len(frame)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            # after an error the disk may be full, and the rest is discarded anyway
            with nullcontext() if kind is None else suppress(Exception):
                self._open.close()
            if kind is None and self._columns:
                self._partial.commit()
        finally:
            self._partial.discard()


def write_table(frame: pd.DataFrame, path: AnyPath) -> None:
    """Write a table atomically, without its index, as csv or parquet by the ending of `path`."""
    with TableWriter(path) as writer:
        writer.write(frame)


# --- protection of csv cells that a spreadsheet would run as formulas

FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""Beginning of a cell that a spreadsheet may run, also with full-width characters, or of the
protected form of such a cell."""

NEGATIVE = re.compile("-[0-9]+(\\.[0-9]+)?(e-?[0-9]+)?")
"""Negative numbers, which a spreadsheet does not run."""


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Protect text cells and column names of a table that a spreadsheet would run as formulas.

    Examples
    --------
    >>> table = pd.DataFrame({"id": ["@ada", "-5", "ben"], "mean": [-0.5, 1.0, 2.0]})
    >>> spreadsheet_safe(table)["id"].tolist()
    ["'@ada", '-5', 'ben']
    """
    # column names are cells of the file as well
    named = frame.rename(columns=guarded)
    texts = named.select_dtypes(exclude=["number", "bool"]).columns
    named[texts] = named[texts].map(guarded)
    return named


def guarded(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet might run as a formula.

    A text that already has such an apostrophe gets another, so that no two texts are written alike
    and `unguarded` can undo it. Negative numbers are unchanged: a spreadsheet shows their value.

    Examples
    --------
    >>> [guarded(text) for text in ("=1+1", "'=1+1", "'t Hooft", "-5.2e-3", "-5+1", 7)]
    ["'=1+1", "''=1+1", "'t Hooft", '-5.2e-3', "'-5+1", 7]
    """
    if isinstance(value, str) and FORMULA.match(value) and not NEGATIVE.fullmatch(value):
        return f"'{value}"
    return value


def unguarded(text: str) -> str:
    """Return the original text from the output of `guarded`."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text
