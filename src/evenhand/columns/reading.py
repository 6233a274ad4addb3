"""Whole tables read from files with columns of their kinds."""

from __future__ import annotations

import os
from collections.abc import Collection

import pandas as pd

from evenhand.columns.evidence import Evidence, found_schema
from evenhand.columns.schema import Schema
from evenhand.tables import holds_text, read_table


def read_typed(
    path: str | os.PathLike[str], *, schema: Schema | None = None, text: Collection[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    r"""Read a table with columns of their kinds.

    Parameters
    ----------
    path : path
        A file ending in .csv, .csv.gz or .parquet, or a folder of them.
    schema : Schema, optional
        Of a model: its columns are read by it, whatever the file. Of other columns parquet names
        the types; in csv a column is one of numbers, booleans or dates only if every cell of the
        whole table can be read so.
    text : collection of str
        Columns of csv files that stay as they are written, such as ids.

    Returns
    -------
    table : DataFrame
        At least one row.
    remarks : list of str
        Warnings, such as of a column of text in which nearly all cells are numbers.

    Raises
    ------
    InputError
        As `tables.read_table` does, or if a value does not fit its column, with file, column, row
        and value.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "loans.csv")
    ...     _ = file.write_text("zip,income\n01234,1200\n98765,\n")
    ...     read_typed(file)[0].values.tolist()
    [['01234', 1200.0], ['98765', nan]]
    """
    known = schema or Schema()
    table = read_table(path)
    found: dict[str, Evidence] = {}
    if holds_text(path):
        unknown = [
            name for name in map(str, table.columns) if name not in known and name not in text
        ]
        found = {name: Evidence.of_text(table[name]) for name in unknown}
    kinds = known.without(text).with_others(found_schema(found))
    remarks = [remark for name, one in found.items() if (remark := one.remark(name)) is not None]
    return kinds.apply(table, os.path.basename(os.fspath(path))), remarks
