"""Columns of tables as numbers and ids, and row blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand._ids import check_id, id_text
from evenhand._validate import Floats, InputError, bad_input, check_column, coding_of, short
from evenhand.tables.cells import parse_numbers, refuse_row


def column_of(table: pd.DataFrame, column: str, source: str) -> pd.Series[Any]:
    """Return one column by name; InputError lists the columns and suggests similar names."""
    names = [str(name) for name in table.columns]
    return table.iloc[:, names.index(check_column(str(column), names, source))]


def number_column(
    table: pd.DataFrame, column: str, *, source: str, start: int = 0, option: str = ""
) -> Floats:
    """Return a column as finite float64 numbers, shape (n_samples,).

    Text is accepted if every cell is a number; booleans become 0 and 1. `source` is the file name
    and `start` the number, from 0, of the table's first row within the file, and `option` the
    option that drops rows with missing values, all for messages. Raises InputError if there is no
    such column, or a value is text, a date, missing or infinite.

    Examples
    --------
    >>> number_column(pd.DataFrame({"loan": [100, " 5"]}), "loan", source="a.csv")
    array([100.,   5.])
    """
    values = column_of(table, column, source)
    place = f"{source}: column {column!r}"
    remedy = "correct it or drop the row"
    if values.dtype.kind in "mM":
        remedy = "convert dates to numbers, such as days, first"
        raise bad_input(place, "contain numbers", str(values.dtype), remedy)
    numbers, wrong = parse_numbers(values)
    # words for an event or a score have a code; other words are mistakes of single rows
    coding = coding_of(values.tolist()) if wrong.all() else None
    refuse_row(wrong, values, place, "be a number", coding or remedy, start)
    missing = np.isnan(numbers)
    if missing.any():
        count = int(missing.sum())
        first = start + int(np.argmax(missing)) + 1
        values_are = "value" if count == 1 else "values"
        those = "that row" if count == 1 else "those rows"
        raise InputError(
            f"{place} has {count} missing {values_are}, the first in row {first}; drop {those}"
            + f" with {option}" * bool(option)
        )
    refuse_row(np.isinf(numbers), values, place, "be finite", remedy, start)
    return numbers


def id_column(table: pd.DataFrame, column: str, *, source: str, start: int = 0) -> list[str | int]:
    """Return a column of ids unchanged. Ids are text or whole numbers.

    `source` is the file name and `start` the number, from 0, of the table's first row within the
    file, both for messages. Raises InputError if there is no such column, or an id is missing,
    empty, a float or of another type, or contains an invisible character, which would make it look
    like another id.

    Examples
    --------
    >>> id_column(pd.DataFrame({"id": ["007", "008"]}), "id", source="loans.csv")
    ['007', '008']
    """
    values = column_of(table, column, source)
    place = f"{source}: column {column!r}, row "
    remedy = "write ids as text, as decimal numbers lose digits"
    ids: list[str | int] = []
    cells = zip(values.tolist(), values.isna(), strict=True)
    for row, (value, missing) in enumerate(cells, start=start + 1):
        if missing or value == "":
            raise InputError(f"{place}{row} has no id; fill it or drop the row")
        if isinstance(value, bool) or not isinstance(value, str | int | np.integer):
            raise bad_input(f"{place}{row}", "be text or a whole number", short(value), remedy)
        ids.append(value if isinstance(value, str) else int(value))
        check_id(ids[-1], f"{place}{row}")
    return ids


def refuse_repeated(ids: Sequence[str | int], column: str, *, source: str) -> None:
    """Raise InputError if an id appears twice.

    Examples
    --------
    >>> refuse_repeated(["a", "1", 1], "id", source="loans.csv")
    Traceback (most recent call last):
    evenhand._validate.InputError: loans.csv: column 'id', row 3 repeats the id 1 of row 2; ...
    """
    first: dict[str, int] = {}
    for row, value in enumerate(ids, start=1):
        # as text: the ids 1 and "1" mean the same person
        before = first.setdefault(id_text(value), row)
        if before != row:
            raise repeated_id(source, column, row, value, f"row {before}")


def repeated_id(source: str, column: str, row: int, value: str | int, first: str) -> InputError:
    """Return the error for row `row` of `source`, from 1, which repeats an id."""
    remedy = (
        "rows of one person are not independent: name people who have several rows with --cluster"
        f" {column}"
    )
    return InputError(
        f"{source}: column {column!r}, row {row} repeats the id {value} of {first}; {remedy}"
    )


def take_rows(table: Any, rows: Any) -> Any:
    """Select rows by number or slice, from a DataFrame of any library or an array.

    Examples
    --------
    >>> take_rows(pd.DataFrame({"id": [7, 8, 9]}, index=[2, 1, 0]), [0, 2])["id"].tolist()
    [7, 9]
    """
    # square brackets would select columns of a pandas table
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def row_blocks(n: int, size: int) -> list[slice]:
    """Return slices of at most `size` rows that together cover n rows.

    Examples
    --------
    >>> row_blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
