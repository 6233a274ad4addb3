"""Reading of csv and parquet files, one or a folder of them, whole or only their headers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import compute, csv, parquet

from evenhand._validate import InputError, bad_input, short

TABLE_ENDINGS = (".csv", ".csv.gz", ".parquet")


def ending_of(path: Path, endings: Sequence[str]) -> str:
    """Return the longest of `endings` that matches the file name."""
    fitting = [ending for ending in endings if path.name.lower().endswith(ending)]
    if not fitting:
        rule = f"end in {', '.join(endings)}"
        raise bad_input(str(path), rule, repr(path.suffix), "save it in one of these formats")
    return max(fitting, key=len)


def _reason(error: BaseException) -> str:
    return (str(error).splitlines() or ["no reason given"])[0][:120]


def cast_columns(table: pa.Table, schema: pa.Schema, place: str) -> pa.Table:
    """Cast a table to a schema with the same columns; InputError names a column that does not fit.

    `place` names the file in messages.
    """
    # column by column: Arrow's message on a whole table names no column
    for i, field in enumerate(schema):
        if table.schema.field(i) == field:
            continue
        try:
            table = table.set_column(i, field, table.column(i).cast(field.type))
        except pa.ArrowException as error:
            raise InputError(
                f"{place}: column {field.name!r} cannot be converted to {field.type}, its type in"
                f" the rest of the table ({_reason(error)}); write the column with one type"
            ) from error
    return table


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn any error while reading a file into a one-line InputError that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        ending = ending_of(path, TABLE_ENDINGS)
        raise InputError(
            f"{path} is not a readable {ending} file ({_reason(error)}); write it again, with text"
            " as UTF-8"
        ) from error


def check_part(path: Path) -> bool:
    """Return whether a part is parquet (otherwise csv); refuse unknown endings and empty files."""
    ending = ending_of(path, TABLE_ENDINGS)
    if path.stat().st_size == 0:
        raise InputError(f"{path} is an empty file; write a table with at least one row")
    return ending == ".parquet"


def read_part(path: Path) -> pa.Table:
    """Read one file and check its header.

    Columns of parquet files have the types of `plain_schema`, columns of csv files are text.
    """
    with readable(path):
        is_parquet = check_part(path)
        table = _read_parquet(path) if is_parquet else _read_csv(path)
    check_header(table.column_names, path, is_csv=not is_parquet)
    return table


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


def _read_parquet(path: Path) -> pa.Table:
    with open_parquet(path) as file:
        table = file.read()
    table = table.select(
        [i for i, name in enumerate(table.column_names) if not name.startswith("__index_level_")]
    )
    return cast_columns(table, plain_schema(table.schema), str(path))


def csv_head(path: Path) -> tuple[list[str], bool]:
    """Return the header of a csv file and whether a row follows it; rows are not checked."""
    # no handler of invalid rows here: a thread of the reader releases it, which can abort a process
    # that is exiting
    parse = csv.ParseOptions(newlines_in_values=True)
    convert = csv.ConvertOptions(check_utf8=False)
    try:
        with (
            _csv_stream(path) as stream,
            csv.open_csv(stream, parse_options=parse, convert_options=convert) as reader,
        ):
            return list(reader.schema.names), any(batch.num_rows for batch in reader)
    except pa.ArrowInvalid:
        table, wrong = _without_ragged_rows(path)
        return table.column_names, bool(table.num_rows or wrong)


def _csv_stream(path: Path) -> Any:
    return pa.input_stream(
        str(path), compression="gzip" if path.name.lower().endswith(".gz") else None
    )


def _parse_csv(path: Path, **options: Any) -> pa.Table:
    with _csv_stream(path) as stream:
        return csv.read_csv(stream, **options)


def _read_csv(path: Path) -> pa.Table:
    """Read every cell as text; empty cells are missing.

    No cell is parsed as a number here: the kind of a column depends on the model or on all parts,
    never on a single file.
    """
    names, _ = csv_head(path)
    # as bytes first: invalid UTF-8 is then detected here, where the row can be named
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.binary()), strings_can_be_null=False
    )
    try:
        table = _parse_csv(
            path, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=convert
        )
    except pa.ArrowInvalid:
        _refuse_ragged_row(path)
        raise
    columns = []
    for i, name in enumerate(table.column_names):
        place = f"{path}: column {name!r}"
        values = _decode(table.column(i), place)
        has_nul = compute.match_substring(values, "\0")
        _refuse_cell(has_nul, values, place, "contain no NUL characters", "write the file again")
        _refuse_swallowed_rows(values, place, column=i, n_columns=table.num_columns)
        empty = compute.equal(values, "")
        columns.append(compute.if_else(empty, pa.scalar(None, pa.string()), values))
    return pa.table(columns, names=table.column_names)


def _refuse_cell(wrong: Any, values: pa.ChunkedArray, place: str, rule: str, remedy: str) -> None:
    row = compute.index(wrong, value=True).as_py()
    if row >= 0:
        raise bad_input(f"{place}, row {row + 1}", rule, short(values[row].as_py()), remedy)


def _refuse_swallowed_rows(
    values: pa.ChunkedArray, place: str, *, column: int, n_columns: int
) -> None:
    """Refuse a cell that contains rows of the table.

    Two stray quotes turn everything between them into one cell.
    """
    if n_columns == 1:
        return
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
    for row in _without_ragged_rows(path)[1][:1]:
        n_values = f"{row.actual_columns} value{'s' * (row.actual_columns != 1)}"
        # pyarrow counts the header as row 1
        raise InputError(
            f"{path}: row {row.number - 1} has {n_values}, {short(row.text)}, and the header has"
            f" {row.expected_columns}; quote values that contain commas, and name all columns in"
            " the first line"
        )


def _without_ragged_rows(path: Path) -> tuple[pa.Table, list[Any]]:
    """Return the rows of a csv file that are as long as the header, and the other rows."""
    found: list[Any] = []

    def keep(row: Any) -> str:
        found.append(row)
        return "skip"

    options = {
        "parse_options": csv.ParseOptions(newlines_in_values=True, invalid_row_handler=keep),
        "read_options": csv.ReadOptions(use_threads=False),  # threads do not count rows
        "convert_options": csv.ConvertOptions(check_utf8=False),
    }
    return _parse_csv(path, **options), found


def _decode(values: pa.ChunkedArray, place: str) -> pa.ChunkedArray:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid as error:
        rows = enumerate(values.to_pylist(), start=1)
        broken = (pair for pair in rows if pair[1].decode("utf-8", "ignore").encode() != pair[1])
        row, value = next(broken)
        place = f"{place}, row {row}"
        remedy = "save the file with UTF-8 encoding"
        raise bad_input(place, "be UTF-8 text", short(value), remedy) from error


def check_header(names: list[str], path: Path, *, is_csv: bool) -> None:
    """Refuse repeated column names, NUL, and csv files whose first line is data."""
    for name in (name for name in names if "\0" in name):
        place = f"{path}: a column name"
        raise bad_input(place, "contain no NUL characters", short(name), "write the file again")
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    remedy = "add a first line of column names"
    if count > 1:
        remedy = f"rename one, or {remedy} if there is none" if is_csv else "rename one"
        raise InputError(f"{path}: column name {name!r} appears {count} times; {remedy}")
    if is_csv and len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        rule = "separate values by commas"
        raise bad_input(str(path), rule, short(names[0]), "save it as comma-separated csv")
    # pandas writes 0, 1, 2, ... for an array without names; any other header of numbers is a row of
    # data
    is_counted = names == [str(i) for i in range(len(names))]
    is_data = not is_counted and pd.notna(pd.to_numeric(names, errors="coerce")).all()
    if is_csv and is_data:
        place = f"{path}: the first line"
        raise bad_input(place, "name the columns", short(",".join(names)), remedy)


# --- reading of whole tables, and checks that their parts agree in columns and types


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    r"""Read a csv file, a parquet file or a folder of such parts.

    Cells of csv files are returned as text; `columns.Schema` determines which columns are numbers,
    dates or booleans.

    Parameters
    ----------
    path : path
        A file ending in .csv, .csv.gz or .parquet, or a folder of such files. Parts are sorted by
        name; names that begin with a dot or an underscore are ignored.

    Returns
    -------
    DataFrame
        At least one row. Columns of csv files are text, with empty cells missing. In parquet files
        dates and timestamps are datetimes, and numbers with missing values are floats with NaN.

    Raises
    ------
    InputError
        If the file does not exist, is damaged or empty, has an unknown ending, no rows, no header,
        a repeated column, a row of the wrong length, invalid UTF-8, a NUL character or a cell that
        contains rows (a quote that is never closed); or if the parts of a folder differ in their
        columns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "loans.csv")
    ...     _ = file.write_text("id,income\n007,1200\n")
    ...     read_table(file).values.tolist()
    [['007', '1200']]
    """
    place, paths = table_paths(path)
    table = _read_parts(paths)
    if table.num_rows == 0:
        raise no_rows(place)
    return to_pandas(table)


def holds_text(path: str | os.PathLike[str]) -> bool:
    """Whether a table has no types because all its files are csv."""
    return all(part.suffix.lower() != ".parquet" for part in table_paths(path)[1])


def table_paths(path: str | os.PathLike[str]) -> tuple[Path, list[Path]]:
    """Return a path and its files: the file itself, or the parts of a folder sorted by name."""
    place = Path(path)
    if not place.exists():
        raise InputError(f"{place}: no such path; check its spelling and folder")
    if not place.is_dir():
        return place, [place]
    paths = sorted(part for part in place.iterdir() if part.is_file() and part.name[0] not in "._")
    # a folder of other files, such as a model
    if not any(part.name.lower().endswith(TABLE_ENDINGS) for part in paths):
        endings = ", ".join(TABLE_ENDINGS)
        raise InputError(f"{place} is a folder without parts; parts end in {endings}")
    return place, paths


def no_rows(place: Path) -> InputError:
    """Return the error for a table without rows."""
    return InputError(f"{place} has no rows of data; at least one is needed")


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Convert a table to pandas, with dates as datetimes and without an index column."""
    # pandas metadata would turn saved index columns (often the ids) into an index, where they have
    # no column name; it is removed because even ignored metadata is parsed, which fails if damaged
    plain = table.replace_schema_metadata(None)
    return pd.DataFrame(plain.to_pandas(date_as_object=False, ignore_metadata=True))


def _read_parts(paths: list[Path]) -> pa.Table:
    parts = {path: read_part(path) for path in paths}
    first = parts[paths[0]]
    for path, part in parts.items():
        check_same_columns(part.column_names, first.column_names, str(path), paths[0].name)
    # pandas gives the columns of a part without rows arbitrary types
    names = first.column_names
    filled = {path: part.select(names) for path, part in parts.items() if part.num_rows}
    # csv parts beside parquet parts take the types of those
    typed = {path: part for path, part in filled.items() if path.suffix.lower() == ".parquet"}
    schema = None
    for path, part in (typed or filled).items():
        schema = unify_types(schema, part.schema, path)
    typed_parts = [cast_columns(part, schema, str(path)) for path, part in filled.items()]
    return pa.concat_tables(typed_parts or [first])


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


def unify_types(schema: pa.Schema | None, part: pa.Schema, path: Path) -> pa.Schema:
    """Return types that fit a part and all earlier parts, if any.

    InputError names the column whose types are incompatible.
    """
    if schema is None:
        return part
    fields = []
    for ours, theirs in zip(schema, part, strict=True):
        both = [pa.schema([ours]), pa.schema([theirs])]
        try:
            fields += pa.unify_schemas(both, promote_options="permissive")
        except pa.ArrowException as error:
            raise InputError(
                f"{path}: column {ours.name!r} has the type {theirs.type}, but {ours.type} in"
                " earlier parts; write one type in all parts"
            ) from error
    return pa.schema(fields)
