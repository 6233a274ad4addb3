"""Tables of a result as csv files in a folder of their own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand._files import link_target, write_text
from evenhand._validate import InputError
from evenhand.results import plain

MARK = "tables.json"
"""File of a folder of tables that lists them, so that only our own files are replaced."""

TABLES_SCHEMA = "evenhand.tables/1"

NUMERIC = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of texts that a spreadsheet computes; they are written after an apostrophe."""


def write_tables(folder: str | os.PathLike[str], tables: Mapping[str, pd.DataFrame]) -> list[Path]:
    """Write each table as a csv file to a folder, which is made if it is missing.

    Numbers have all digits, unknown values are empty, lists are written as JSON, and a
    text that a spreadsheet would compute, such as a name `=1+1`, is written after an apostrophe.
    The file `tables.json` lists the files, which a later call replaces; other files of these names
    are never replaced, and neither are the tables of something else.

    Returns
    -------
    list of Path
        The csv files.
    """
    place = Path(folder)
    names = [f"{name}.csv" for name in tables]
    ours = _replaceable(place, names)
    place = link_target(place)
    place.mkdir(parents=True, exist_ok=True)
    # listed first: an interrupted run leaves files that the next run may replace
    files = sorted({*ours, *names})
    write_text(place / MARK, json.dumps({"schema": TABLES_SCHEMA, "files": files}, indent=2) + "\n")
    for name, table in zip(names, tables.values(), strict=True):
        write_text(place / name, csv_of(table))
    return [place / name for name in names]


def _replaceable(place: Path, names: Sequence[str]) -> list[str]:
    """Return the files of a folder of tables that may be replaced.

    Raises InputError if the folder is a file, contains one of the files `names` that evenhand did
    not write, or contains the tables of something else.
    """
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file, not a folder; name a new or empty folder for tables")
    ours = _listed(place)
    foreign = [name for name in (MARK, *names) if name not in ours and (place / name).exists()]
    # tables.json lists the others, and not itself
    foreign = [name for name in foreign if name != MARK or not ours]
    if foreign:
        raise InputError(
            f"{place} contains {foreign[0]!r}, which evenhand did not write; use a new or empty"
            " folder for tables"
        )
    # another version may have more tables, or fewer
    is_same = set(ours) <= set(names) or set(names) <= set(ours)
    if ours and not is_same:
        raise InputError(
            f"{place} contains other tables, {', '.join(sorted(ours)[:3])}, ...; use a new or empty"
            " folder for tables"
        )
    return ours


def csv_of(table: pd.DataFrame) -> str:
    """Return a table as csv with all digits of its numbers."""
    written = {
        str(name): pd.Series([_cell(value) for value in table[name]], dtype=object)
        for name in table.columns
    }
    return pd.DataFrame(written, columns=[str(c) for c in table.columns]).to_csv(index=False)


def _cell(value: Any) -> Any:
    shown = plain(value)
    if isinstance(shown, list):
        return json.dumps(shown, ensure_ascii=False)
    if isinstance(shown, str) and shown.startswith(FORMULA) and not NUMERIC.fullmatch(shown):
        return f"'{shown}"
    # the shortest text that is read as the same number
    return repr(shown) if isinstance(shown, float) else shown


def _listed(folder: Path) -> list[str]:
    """Return the files that an earlier call listed."""
    try:
        values = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    if not isinstance(values, dict) or values.get("schema") != TABLES_SCHEMA:
        return []
    files = values.get("files")
    return [str(name) for name in files] if isinstance(files, list) else []
