"""Reading and writing tables, and taking typed columns out of them.

Complaints are one line: file, column, row, value, what to do. Rows are data rows counted from 1; empty lines are none.
"""

from __future__ import annotations

import gzip
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, csv, parquet

from evenhand._checks import Floats, bad_input, check_column

__all__ = [
    "TABLE_ENDINGS",
    "check_writable",
    "column_of",
    "id_column",
    "number_column",
    "read_table",
    "take_rows",
    "write_table",
]

TABLE_ENDINGS = (".csv", ".csv.gz", ".parquet")


def read_table(path: str | os.PathLike[str], *, text: Iterable[str] = ()) -> pd.DataFrame:
    r"""Read a csv file, a parquet file or a folder of such parts.

    Parameters
    ----------
    path : path
        A file ending in .csv, .csv.gz or .parquet, or a folder of them. Parts are read in the order of their names;
        names that begin with a dot or an underscore are passed over.
    text : iterable of str
        Columns of csv files that are read as text, so that an id `007` stays `007`. Their empty fields are missing.

    Returns
    -------
    DataFrame
        At least one row. Dates and timestamps are datetimes, numbers with missing values are floats with NaN.

    Raises
    ------
    InputError
        If there is no such file or it is damaged, empty, of an unknown ending, without rows or header, not UTF-8, has
        a column twice or a row of the wrong length; or if the parts of a folder differ in their columns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "loans.csv")
    ...     _ = file.write_text("id,income\n007,1200\n")
    ...     read_table(file, text=["id"])["id"].tolist()
    ['007']
    """
    place, names = Path(path), tuple(text)
    if not place.exists():
        raise bad_input(str(place), "be an existing file or folder", "no such path", "check its spelling and folder")
    table = _read_folder(place, names) if place.is_dir() else _read_part(place, names)
    if table.num_rows == 0:
        raise bad_input(str(place), "have at least one row of data", "none")
    # pandas metadata would turn saved index columns (often the ids) into an index, out of reach by name.
    return pd.DataFrame(table.to_pandas(date_as_object=False, ignore_metadata=True))


def _ending(path: Path, endings: Sequence[str]) -> str:
    """Return the longest of `endings` that the name has."""
    fitting = [ending for ending in endings if path.name.lower().endswith(ending)]
    if not fitting:
        raise bad_input(str(path), f"end in {', '.join(endings)}", repr(path.suffix), "save it in one of these formats")
    return max(fitting, key=len)


def _short(value: Any) -> str:
    """Return a value as it is shown in a message: on one line and not too long."""
    shown = repr(value.item() if isinstance(value, np.generic) else value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _read_folder(folder: Path, text: tuple[str, ...]) -> pa.Table:
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] not in "._")
    if not paths:
        raise bad_input(str(folder), "hold at least one part", "none", f"parts end in {', '.join(TABLE_ENDINGS)}")
    parts = [_read_part(path, text).replace_schema_metadata(None) for path in paths]
    schema = parts[0].schema
    for i, path in enumerate(paths[1:], start=1):
        parts[i] = _same_columns(parts[i], schema.names, path, paths[0].name)
        schema = _check_types(schema, parts[i].schema, path)
    return pa.concat_tables(parts, promote_options="permissive")


def _same_columns(part: pa.Table, names: list[str], path: Path, first: str) -> pa.Table:
    """Return the part with its columns in the order of the first part, or say how they differ."""
    differ = [f"no {name!r}" for name in names if name not in part.column_names]
    differ += [f"{name!r} besides" for name in part.column_names if name not in names]
    if differ:
        raise bad_input(str(path), f"have the columns of {first}", ", ".join(differ[:4]), "mend or remove that part")
    return part.select(names)


def _check_types(schema: pa.Schema, part: pa.Schema, path: Path) -> pa.Schema:
    """Return the types that hold both, or say which column of the part does not fit."""
    fields = []
    for ours, theirs in zip(schema, part, strict=True):
        try:
            fields += pa.unify_schemas([pa.schema([ours]), pa.schema([theirs])], promote_options="permissive")
        except pa.ArrowException as error:
            place, rule = f"{path}: column {ours.name!r}", f"hold {ours.type} as the parts before it do"
            raise bad_input(place, rule, str(theirs.type), "write one type in all parts") from error
    return pa.schema(fields)


def _read_part(path: Path, text: tuple[str, ...]) -> pa.Table:
    ending = _ending(path, TABLE_ENDINGS)
    try:
        if path.stat().st_size == 0:
            raise bad_input(str(path), "hold a table", "an empty file")
        table = _read_parquet(path) if ending == ".parquet" else _read_csv(path, text)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        got = f"an error ({(str(error).splitlines() or ['no reason given'])[0][:120]})"
        raise bad_input(str(path), f"be a readable {ending} file", got, "write it again, text as UTF-8") from error
    _check_header(table.column_names, path, is_csv=ending != ".parquet")
    return table


def _read_parquet(path: Path) -> pa.Table:
    # ParquetFile and not read_table: the latter invents columns from folder names such as `year=2020`.
    with parquet.ParquetFile(path) as file:
        table = file.read()
    # Index columns without a name are bookkeeping of pandas; decimals would arrive as Python objects.
    table = table.select([i for i, name in enumerate(table.column_names) if not name.startswith("__index_level_")])
    for i, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.float64()))
    return table


def _parse_csv(path: Path, **options: Any) -> pa.Table:
    with pa.input_stream(str(path), compression="gzip" if path.name.lower().endswith(".gz") else None) as stream:
        return csv.read_csv(stream, **options)


def _read_csv(path: Path, text: tuple[str, ...]) -> pa.Table:
    # As bytes first: a column that is no UTF-8 is then noticed here, where the row can be named.
    convert = csv.ConvertOptions(column_types={name: pa.binary() for name in text}, strings_can_be_null=False)
    try:
        table = _parse_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=convert)
    except pa.ArrowInvalid:
        _refuse_ragged_row(path)
        raise
    for i, field in enumerate(table.schema):
        values = table.column(i)
        if pa.types.is_binary(field.type):
            values = _decode(values, f"{path}: column {field.name!r}")
        if pa.types.is_string(values.type):
            # Only an empty field is missing text; "NA" may be Namibia.
            values = compute.if_else(compute.equal(values, ""), pa.scalar(None, pa.string()), values)
        table = table.set_column(i, field.name, values)
    return table


def _refuse_ragged_row(path: Path) -> None:
    """Read once more, on one thread so that rows have numbers, and name the first row of the wrong length."""
    found: list[Any] = []

    def keep(row: Any) -> str:
        found.append(row)
        return "skip"

    parse = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=keep)
    _parse_csv(path, parse_options=parse, read_options=csv.ReadOptions(use_threads=False))
    for row in found[:1]:
        # pyarrow counts the header as row 1.
        place, got = f"{path}: row {row.number - 1}", f"{row.actual_columns} ({_short(row.text)})"
        rule = f"have {row.expected_columns} value(s) as the header has"
        raise bad_input(place, rule, got, "quote values that contain commas; the first line must name all columns")


def _decode(values: pa.ChunkedArray, place: str) -> pa.ChunkedArray:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid as error:
        rows = enumerate(values.to_pylist(), start=1)
        row, value = next((row, value) for row, value in rows if value.decode("utf-8", "ignore").encode() != value)
        raise bad_input(f"{place}, row {row}", "be UTF-8 text", _short(value), "save the file as UTF-8") from error


def _check_header(names: list[str], path: Path, *, is_csv: bool) -> None:
    """Refuse a name that appears twice, and a first line of a csv file that is data."""
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    remedy = "put a line of column names first"
    if count > 1:
        remedy = f"rename one, or {remedy} if there is none" if is_csv else "rename one"
        raise bad_input(f"{path}: column {name!r}", "appear once", f"{count} times", remedy)
    if is_csv and len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise bad_input(str(path), "separate values by commas", _short(names[0]), "save it as comma-separated csv")
    # 0, 1, 2, ... is what pandas writes for an array without names; other all-number headers are a row of data.
    numbers = pd.notna(pd.to_numeric(names, errors="coerce")).all() and names != [str(i) for i in range(len(names))]
    if is_csv and numbers:
        raise bad_input(f"{path}: the first line", "name the columns", _short(",".join(names)), remedy)


def column_of(table: pd.DataFrame, column: str, source: str) -> pd.Series[Any]:
    """Return one column, or say which there are and which one may have been meant."""
    names = [str(name) for name in table.columns]
    return table.iloc[:, names.index(check_column(str(column), names, source))]


def _refuse_row(wrong: NDArray[np.bool_], values: pd.Series[Any], place: str, rule: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise bad_input(f"{place}, row {row + 1}", rule, _short(values.iloc[row]), "correct it or drop the row")


def number_column(table: pd.DataFrame, column: str, *, source: str) -> Floats:
    """Return a column as float64, shape (n_samples,): all there, all finite.

    Text is accepted if every cell of it is a number; booleans are 0 and 1. `source` is the file name for messages.
    Raises InputError if there is no such column, or a value is text, a date, missing or infinite.

    Examples
    --------
    >>> number_column(pd.DataFrame({"loan": [100, "?"]}), "loan", source="a.csv")
    Traceback (most recent call last):
    evenhand._checks.InputError: a.csv: column 'loan', row 2 must hold a number, got '?'; correct it or drop the row
    """
    values = column_of(table, column, source)
    place = f"{source}: column {column!r}"
    if values.dtype.kind in "mM":
        raise bad_input(place, "hold numbers", str(values.dtype), "turn dates into numbers, such as days, first")
    missing = values.isna().to_numpy(dtype=bool)
    plain = values.astype(object) if isinstance(values.dtype, pd.CategoricalDtype) else values
    numbers: Floats = pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    _refuse_row(np.isnan(numbers) & ~missing, values, place, "hold a number")
    if missing.any():
        got = f"{int(missing.sum())} (the first in row {int(np.argmax(missing)) + 1})"
        raise bad_input(place, "have no missing values", got, "fill them or drop those rows")
    _refuse_row(np.isinf(numbers), values, place, "be finite")
    return numbers


def id_column(table: pd.DataFrame, column: str, *, source: str) -> list[str | int]:
    """Return a column of ids, text or whole numbers, as they are in the table; `source` is its file name for messages.

    Raises InputError if there is no such column, or an id is missing, empty, a float or of another type.

    Examples
    --------
    >>> id_column(pd.DataFrame({"id": ["007", "008"]}), "id", source="loans.csv")
    ['007', '008']
    """
    values = column_of(table, column, source)
    place, remedy = f"{source}: column {column!r}, row ", "write ids as text: as decimal numbers they lose digits"
    ids: list[str | int] = []
    for row, (value, missing) in enumerate(zip(values.tolist(), values.isna(), strict=True), start=1):
        if missing or value == "":
            raise bad_input(f"{place}{row}", "hold an id", "a missing value", "fill it or drop the row")
        if isinstance(value, bool) or not isinstance(value, str | int | np.integer):
            raise bad_input(f"{place}{row}", "hold text or a whole number", _short(value), remedy)
        ids.append(value if isinstance(value, str) else int(value))
    return ids


def check_writable(path: str | os.PathLike[str], endings: Sequence[str]) -> Path:
    """Return the path if a file of that name could be written; call this before long work.

    Raises InputError if it has none of the `endings`, is a folder, or its folder is missing or write-protected.

    Examples
    --------
    >>> check_writable("report.docx", (".html", ".json"))
    Traceback (most recent call last):
    evenhand._checks.InputError: report.docx must end in .html, .json, got '.docx'; save it in one of these formats
    """
    target = Path(path)
    _ending(target, endings)
    if target.is_dir():
        raise bad_input(str(target), "be a file", "a folder", "name a file in it")
    if not target.parent.is_dir():
        raise bad_input(str(target), "lie in an existing folder", f"no folder {target.parent}", "make it first")
    if not os.access(target.parent, os.W_OK):
        raise bad_input(str(target), "lie in a folder that can be written to", str(target.parent), "choose another")
    return target


def take_rows(table: Any, rows: Any) -> Any:
    """Return some rows, by their numbers or a slice, of a DataFrame of any library or of an array.

    Examples
    --------
    >>> take_rows(pd.DataFrame({"id": [7, 8, 9]}, index=[2, 1, 0]), [0, 2])["id"].tolist()
    [7, 9]
    """
    # square brackets would choose columns of a pandas table
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def row_blocks(n: int, size: int) -> list[slice]:
    """Return slices that cover n rows, at most `size` at once.

    Examples
    --------
    >>> row_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    r"""Write a table without its index, as csv or parquet by the ending; all of it or nothing.

    Floats keep every digit in either format. A file of that name is replaced only once the new one is complete.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"mean": [0.1]}), pathlib.Path(folder, "out.csv"))
    ...     pathlib.Path(folder, "out.csv").read_text()
    'mean\n0.1\n'
    """
    target = check_writable(path, TABLE_ENDINGS)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with partial.open("xb") as file:
            if target.name.lower().endswith(".parquet"):
                parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), file)
            elif target.name.lower().endswith(".gz"):
                # Without a time stamp, so that the same table gives the same bytes.
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                    frame.to_csv(packed, index=False, lineterminator="\n")
            else:
                frame.to_csv(file, index=False, lineterminator="\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
