"""Atomic writing of tables, whole or block by block, and csv cells that spreadsheets do not run."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from evenhand._files import Partial, link_target
from evenhand._validate import InputError
from evenhand.tables.files import TABLE_ENDINGS, cast_columns, check_same_columns, ending_of


def check_writable(path: str | os.PathLike[str], endings: Sequence[str]) -> Path:
    """Return the path if a file could be written there; meant to be called before long work.

    Symbolic links are followed, and the file need not exist. Raises InputError if the path has none
    of the `endings`, is a folder or a device, or its folder is missing or write-protected.

    Examples
    --------
    >>> check_writable("report.docx", (".html", ".json"))
    Traceback (most recent call last):
    evenhand._validate.InputError: report.docx must end in .html, .json, got '.docx'; save it in ...
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
    r"""Context manager that writes a table block by block and atomically, as csv or parquet.

    Blocks go to a hidden file next to `path`, which replaces `path` when the `with` block ends
    without an error. Any error in the `with` block or in a write removes the hidden file and leaves
    an older `path` unchanged; so do SIGINT and, in the command, SIGTERM. The hidden file of a
    killed process is removed by the next writer of the same `path`. If `path` is a symbolic link,
    its target is written. Only one block is in memory at a time.

    Parameters
    ----------
    path : path
        A file ending in .csv, .csv.gz or .parquet, which determines the format. In parquet each
        block is at least one row group.

    Attributes
    ----------
    n_rows : int
        Rows written so far.

    Raises
    ------
    InputError
        If `path` cannot be written; at the end of the `with` block, if no block was written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TableWriter(pathlib.Path(folder, "out.csv")) as writer:
    ...         writer.write(pd.DataFrame({"id": ["a"], "mean": [0.1]}))
    ...         writer.write(pd.DataFrame({"id": ["b"], "mean": [0.2]}))
    ...     pathlib.Path(folder, "out.csv").read_text()
    'id,mean\na,0.1\nb,0.2\n'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = check_writable(path, TABLE_ENDINGS)
        self.n_rows = 0
        self._is_parquet = ending_of(self.path, TABLE_ENDINGS) == ".parquet"
        self._columns: list[Any] | None = None
        self._encoders = ExitStack()
        self._file: IO[bytes] | None = None
        self._partial: Partial | None = None

    def __enter__(self) -> Self:
        # in the folder of the target, as a rename is atomic only within a file system
        self._partial = Partial(link_target(self.path))
        self._file = os.fdopen(self._partial.handle, "wb", closefd=False)
        self._sink: Any = self._file
        if self.path.name.lower().endswith(".gz"):
            # without a time stamp, so that the same table gives the same bytes
            packed = gzip.GzipFile(filename="", fileobj=self._file, mode="wb", mtime=0)
            self._sink = self._encoders.enter_context(packed)
        return self

    def write(self, frame: pd.DataFrame) -> None:
        """Append a block of rows, without its index.

        The first block determines the columns and, in parquet, their types, to which later blocks
        are cast. Floats keep all digits in both formats.

        Raises
        ------
        InputError
            If the columns are not those of the first block, in any order, or values do not fit its
            types. After an error nothing more can be written.
        """
        try:
            self._append(frame)
        except BaseException:
            self._discard()
            raise
        self.n_rows += len(frame)

    def _append(self, frame: pd.DataFrame) -> None:
        is_first = self._columns is None
        names = list(frame.columns)
        if self._columns is None:
            self._columns = names
        elif names != self._columns:
            place = f"{self.path}: the block after row {self.n_rows}"
            check_same_columns(names, self._columns, place, "the first block")
            frame = frame[self._columns]
        if self._is_parquet:
            self._append_parquet(pa.Table.from_pandas(frame, preserve_index=False), is_first)
        else:
            frame.to_csv(self._sink, index=False, header=is_first, lineterminator="\n")

    def _append_parquet(self, table: pa.Table, is_first: bool) -> None:
        if is_first:
            # with checksums, damage in the middle of the file is detected when it is read
            schema = _roomy(table.schema)
            self._sink = parquet.ParquetWriter(self._file, schema, write_page_checksum=True)
            self._encoders.callback(self._sink.close)
        place = f"{self.path}: the block after row {self.n_rows}"
        self._sink.write_table(cast_columns(table, self._sink.schema, place))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._discard()

    def _finish(self) -> None:
        if self._file is None or self._partial is None or self._columns is None:
            raise InputError(f"{self.path}: no block was written; write at least one")
        self._encoders.close()
        self._file.close()
        self._partial.commit()
        self._file = self._partial = None

    def _discard(self) -> None:
        """Close all files and remove the hidden file, if it still exists."""
        if self._file is None or self._partial is None:
            return
        with suppress(Exception):  # the disk may be full, and the rest is discarded anyway
            self._encoders.close()
        with suppress(Exception):
            self._file.close()
        self._partial.discard()
        self._file = self._partial = None


def _roomy(schema: pa.Schema) -> pa.Schema:
    """Widen dictionary types, as later blocks may have more categories than the first."""
    for i, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            # pandas encodes few categories in 8 bits
            wide = pa.dictionary(pa.int32(), field.type.value_type, ordered=field.type.ordered)
            schema = schema.set(i, field.with_type(wide))
    return schema


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    r"""Write a table atomically, without its index, as csv or parquet by the ending of `path`.

    Floats keep all digits in both formats. An existing file is replaced only once the new one is
    complete.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"mean": [0.1]}), pathlib.Path(folder, "out.csv"))
    ...     pathlib.Path(folder, "out.csv").read_text()
    'mean\n0.1\n'
    """
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
    texts = [name for name, kind in named.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
    for name in texts:
        named[name] = named[name].map(guarded)
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
    """Return the original text from the output of `guarded`.

    Examples
    --------
    >>> unguarded("'=1+1"), unguarded("'t Hooft")
    ('=1+1', "'t Hooft")
    """
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text
