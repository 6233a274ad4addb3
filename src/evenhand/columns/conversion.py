"""Conversion of tables of any library and arrays to pandas, and of learned columns to JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from evenhand._validate import bad_input


def as_pandas(X: Any, name: str = "X") -> Any:
    """Return a table or series of any library as one of pandas, and anything else as it is.

    Parameters
    ----------
    X : object
        Tables and series of pandas are returned unchanged.
    name : str, default "X"
        Parameter that messages name.

    Raises
    ------
    InputError
        If the table is lazy, so that its rows are not in memory.
    """
    # narwhals refuses tables of pandas with repeated names, in a message of its own
    if isinstance(X, pd.DataFrame | pd.Series):
        return X
    native = nw.from_native(X, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise bad_input(name, "be held in memory", type(X).__name__, "collect its rows first")
    return native.to_pandas() if isinstance(native, nw.DataFrame | nw.Series) else X


def as_table(
    X: Any, n_rows: int | None = None, *, name: str = "X", per: str = "row of pit"
) -> pd.DataFrame:
    """Return a table of any library, or an array of shape (n, p), as a table of pandas.

    Parameters
    ----------
    X : DataFrame of any library, or array-like of shape (n, p)
        The columns of an array are named x0, x1, ...
    n_rows : int, optional
        Number of rows that the table must have.
    name : str, default "X"
        Parameter that messages name.
    per : str, default "row of pit"
        What each row of the table belongs to, for messages.

    Raises
    ------
    InputError
        If `X` is no table and has not two dimensions, has another number of rows, or two columns
        have one name.

    Examples
    --------
    >>> as_table([[1.0, 2.0]]).columns.tolist()
    ['x0', 'x1']
    """
    table = as_pandas(X, name)
    if not isinstance(table, pd.DataFrame):
        array = np.asarray(X)
        if array.ndim != 2:
            got = f"shape {array.shape}"
            raise bad_input(name, "be a table or an array of shape (n, p)", got)
        table = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])], copy=False)
        # numbers among objects become number columns, as those of a table would be
        table = table.infer_objects() if array.dtype == object else table
    if n_rows is not None and len(table) != n_rows:
        raise bad_input(name, f"have one row per {per} ({n_rows})", f"{len(table)} rows")
    refuse_repeated_names(table, name)
    return table


def stack_rows(first: Any, second: Any) -> Any:
    """Return the rows of two tables of one library, or of two arrays, one below the other."""
    if not hasattr(first, "columns"):
        return np.vstack([first, second])
    tables = [nw.from_native(table) for table in (first, second)]
    return nw.maybe_reset_index(nw.concat(tables)).to_native()


def refuse_repeated_names(X: Any, name: str = "X") -> None:
    """Raise InputError if two columns of a table have one name, as text."""
    twice, count = Counter(map(str, X.columns)).most_common(1)[0] if len(X.columns) else ("", 1)
    if count > 1:
        place = f"{name}: column {twice!r}"
        raise bad_input(place, "appear once", f"{count} times", "rename or drop one")


def as_json(learned: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON can hold them, tuples as lists."""
    fields = asdict(learned)
    return {key: list(one) if isinstance(one, tuple) else one for key, one in fields.items()}


def from_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a dataclass that `as_json` gave, lists as tuples."""
    return {key: tuple(one) if isinstance(one, list) else one for key, one in dict(fields).items()}
