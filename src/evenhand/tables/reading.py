"""Whole tables read from files, and the columns and types that their parts must share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa

from evenhand._validate import InputError, bad_input
from evenhand.tables.files import TABLE_ENDINGS, cast_columns, read_part


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    r"""Read a csv file, a parquet file or a folder of such parts.

    Cells of csv files are text, as written; `columns.Schema` determines which columns hold numbers,
    dates or booleans.

    Parameters
    ----------
    path : path
        A file ending in .csv, .csv.gz or .parquet, or a folder of them. Parts are read in the order
        of their names; names that begin with a dot or an underscore are passed over.

    Returns
    -------
    DataFrame
        At least one row. From csv files: text, missing where the field is empty. From parquet:
        dates and timestamps are datetimes, numbers with missing values are floats with NaN.

    Raises
    ------
    InputError
        If there is no such file or it is damaged, empty, of an unknown ending, without rows or
        header, not UTF-8, has a column twice, a row of the wrong length, a NUL character or a cell
        that holds rows (a quote that is never closed); or if the parts of a folder differ in their
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
    """Whether a table names no types: all its files are csv."""
    return all(part.suffix.lower() != ".parquet" for part in table_paths(path)[1])


def table_paths(path: str | os.PathLike[str]) -> tuple[Path, list[Path]]:
    """Return a path and the files to read there: itself, or the parts of a folder by name."""
    place = Path(path)
    if not place.exists():
        remedy = "check its spelling and folder"
        raise bad_input(str(place), "be an existing file or folder", "no such path", remedy)
    if not place.is_dir():
        return place, [place]
    paths = sorted(part for part in place.iterdir() if part.is_file() and part.name[0] not in "._")
    if not paths:
        remedy = f"parts end in {', '.join(TABLE_ENDINGS)}"
        raise bad_input(str(place), "hold at least one part", "none", remedy)
    return place, paths


def no_rows(place: Path) -> InputError:
    """Make the error for a table that is empty."""
    return bad_input(str(place), "have at least one row of data", "none")


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Return a table as pandas holds it: dates as datetimes, no column as an index."""
    # pandas metadata would turn saved index columns (often the ids) into an index, out of reach by
    # name; it is taken off since it would be parsed all the same, and fail where a file is damaged
    # there.
    plain = table.replace_schema_metadata(None)
    return pd.DataFrame(plain.to_pandas(date_as_object=False, ignore_metadata=True))


def _read_parts(paths: list[Path]) -> pa.Table:
    parts = {path: read_part(path) for path in paths}
    first = parts[paths[0]]
    for path, part in parts.items():
        check_same_columns(part.column_names, first.column_names, str(path), paths[0].name)
    # pandas gives the columns of a part without rows any type
    names = first.column_names
    filled = {path: part.select(names) for path, part in parts.items() if part.num_rows}
    # csv holds text; beside parquet it takes the types that are found there
    typed = {path: part for path, part in filled.items() if path.suffix.lower() == ".parquet"}
    schema = None
    for path, part in (typed or filled).items():
        schema = unify_types(schema, part.schema, path)
    typed_parts = [cast_columns(part, schema, str(path)) for path, part in filled.items()]
    return pa.concat_tables(typed_parts or [first])


def check_same_columns(names: Sequence[str], wanted: Sequence[str], place: str, first: str) -> None:
    """Refuse columns other than those of the first part, in any order, and name the differences."""
    differ = [f"no {name!r}" for name in wanted if name not in names]
    differ += [f"{name!r} besides" for name in names if name not in wanted]
    differ += [f"{name!r} more than once" for name in wanted if list(names).count(name) > 1]
    if differ:
        got = ", ".join(differ[:4])
        raise bad_input(place, f"have the columns of {first}", got, "mend or remove that part")


def unify_types(schema: pa.Schema | None, part: pa.Schema, path: Path) -> pa.Schema:
    """Return types that hold those of a part and of the parts before it, if any.

    InputError names the column whose types do not go together.
    """
    if schema is None:
        return part
    fields = []
    for ours, theirs in zip(schema, part, strict=True):
        both = [pa.schema([ours]), pa.schema([theirs])]
        try:
            fields += pa.unify_schemas(both, promote_options="permissive")
        except pa.ArrowException as error:
            place = f"{path}: column {ours.name!r}"
            rule = f"hold {ours.type} as the parts before it do"
            raise bad_input(place, rule, str(theirs.type), "write one type in all parts") from error
    return pa.schema(fields)
