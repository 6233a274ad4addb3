"""Conversion of tables of any library and of arrays to pandas, and of dataclasses to JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from evenhand._validate import InputError, bad_input


def as_pandas(X: Any, name: str = "X") -> Any:
    """Convert a table or series of any library to pandas; return anything else unchanged.

    Parameters
    ----------
    X : object
        Tables and series of pandas are returned unchanged.
    name : str, default "X"
        Name of the parameter for messages.

    Raises
    ------
    InputError
        If the table is lazy, so that its rows are not in memory.
    """
    # narwhals would refuse pandas tables with repeated names, with another message
    if isinstance(X, pd.DataFrame | pd.Series):
        return X
    native = nw.from_native(X, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise bad_input(name, "be in memory", type(X).__name__, "collect its rows first")
    return native.to_pandas() if isinstance(native, nw.DataFrame | nw.Series) else X


def as_table(
    X: Any, n_rows: int | None = None, *, name: str = "X", per: str = "row of pit"
) -> pd.DataFrame:
    """Convert a table of any library, or an array of shape (n, p), to a pandas DataFrame.

    Parameters
    ----------
    X : DataFrame of any library, or array-like of shape (n, p)
        The columns of an array are named x0, x1, ...
    n_rows : int, optional
        Required number of rows.
    name : str, default "X"
        Name of the parameter for messages.
    per : str, default "row of pit"
        What one row of the table corresponds to, for messages.

    Raises
    ------
    InputError
        If `X` is neither a table nor two-dimensional, has another number of rows, or has two
        columns of the same name.

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
        # columns of numbers in an object array become numeric, as they would be in a table
        table = table.infer_objects() if array.dtype == object else table
    if n_rows is not None and len(table) != n_rows:
        raise bad_input(name, f"have one row per {per} ({n_rows})", f"{len(table)} rows")
    refuse_repeated_names(table, name)
    return table


def stack_rows(first: Any, second: Any) -> Any:
    """Stack the rows of two tables of the same library, or of two arrays."""
    if not hasattr(first, "columns"):
        return np.vstack([first, second])
    tables = [nw.from_native(table) for table in (first, second)]
    return nw.maybe_reset_index(nw.concat(tables)).to_native()


def refuse_repeated_names(X: Any, name: str = "X") -> None:
    """Raise InputError if two columns of a table have the same name, as text."""
    twice, count = Counter(map(str, X.columns)).most_common(1)[0] if len(X.columns) else ("", 1)
    if count > 1:
        raise InputError(f"{name}: column name {twice!r} appears {count} times; rename or drop one")


def as_json(learned: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON values, with tuples as lists."""
    fields = asdict(learned)
    return {key: list(one) if isinstance(one, tuple) else one for key, one in fields.items()}
