"""Reading of whole tables, and checks that their parts agree in columns and types."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa

from evenhand._validate import InputError
from evenhand.tables.files import TABLE_ENDINGS, cast_columns, read_part


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
