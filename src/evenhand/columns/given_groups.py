"""Named groups given as masks, labels or names of columns, by one rule for every function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Mask, bad_input
from evenhand.columns.conversion import as_pandas, as_table
from evenhand.columns.features import group_columns
from evenhand.columns.groups import Group, Groups
from evenhand.columns.partition import Partition
from evenhand.columns.values import kind_of


def check_groups(groups: Any, n_samples: int, X: Any = None, *, is_block: bool = False) -> Groups:
    """Return named groups of rows, by one rule for every function that takes groups.

    Parameters
    ----------
    groups : None, DataFrame, Series, mapping, or sequence of column names
        A DataFrame or Series of any library, or a dict of name to values: booleans are a mask, one
        group of that name; other values are labels, which make the groups of `group_columns`. Names
        stand for columns of X, and make the groups of `group_columns` too. Rows are matched by
        position.
    n_samples : int
        Rows.
    X : table or Series, optional
        What columns are taken from, and whose index those of pandas must have; outcomes where there
        is no table.
    is_block : bool, default False
        Whether the rows are a block of more: then a group may be empty, and labels are refused, as
        the groups that they make would depend on the block.

    Raises
    ------
    InputError
        If a mask has a missing value, a length or an index does not fit, or two groups have one
        name.
    """
    found: dict[str, tuple[Group, Mask]] = {}
    # "everyone" is the first row of every table of groups
    for place, group, mask in _formed(groups, n_samples, X, is_block):
        if group.name == "everyone" or group.name in found:
            raise bad_input(place, "have a name of its own", f"{group.name!r} twice")
        if not is_block and not mask.any():
            raise bad_input(place, "hold at least one row", "none")
        found[group.name] = group, mask
    return Groups(found.values())


def _formed(groups: Any, n: int, X: Any, is_block: bool) -> Iterator[tuple[str, Group, Mask]]:
    """Yield where each group is from, what it is and its rows."""
    named = _values_by_name(groups, n, X)
    if named is None:
        table = as_pandas(X)
        if not isinstance(table, pd.DataFrame):
            got = type(groups).__name__
            raise bad_input("groups", "be masks by name where X is not a table", got)
        columns = as_table(table, n, per="outcome")
        for group, mask in group_columns(columns, check_names(groups), source="X").pairs():
            yield "groups", group, mask
    for name, values in named or ():
        place = f"groups[{name!r}]"
        column = _one_column(values, place, n, X, "booleans" if is_block else "booleans or labels")
        if _is_mask(column):
            is_known = isinstance(groups, Groups)
            group = groups.what(name) if is_known else Group.given(str(name))
            yield place, group, _mask(column, place)
        elif is_block:  # another block may have other labels, and another median
            got = f"{column.dtype} of shape ({n},)"
            remedy = "labels of a block may lack those of other blocks"
            raise bad_input(place, f"be {n} booleans", got, remedy)
        else:
            partition = Partition.learn(column, str(name), source="groups")
            for group, mask in partition.masks(column).pairs():
                yield place, group, mask


def _values_by_name(groups: Any, n: int, X: Any) -> Iterable[tuple[Any, Any]] | None:
    """Return the values of each name, if there are any; None of names alone."""
    if groups is None:
        return ()
    if isinstance(groups, Mapping):
        return groups.items()
    if isinstance(groups, str):
        rule = "be a list of column names or masks by name"
        raise bad_input("groups", rule, repr(groups), f"write [{groups!r}]")
    table = as_pandas(groups, "groups")
    if isinstance(table, pd.Series):
        if table.name in (None, ""):
            remedy = "write {'name': series}"
            raise bad_input("groups", "have a name", "a Series without one", remedy)
        return [(table.name, groups)]
    if not isinstance(table, pd.DataFrame):
        return None
    _check_match("groups", groups, n, X)
    return [(name, table.iloc[:, j].array) for j, name in enumerate(table.columns)]


def _check_match(place: str, values: Any, n: int, X: Any) -> None:
    """Refuse another length, and another index than that of X: rows are matched by position."""
    if len(values) != n:
        raise bad_input(place, f"have one row per row that is judged ({n})", f"{len(values)} rows")
    # an index that differs most likely means another order of the rows
    are_indexed = all(isinstance(one, pd.Series | pd.DataFrame) for one in (values, X))
    if are_indexed and not values.index.equals(X.index):
        of = "y" if isinstance(X, pd.Series) else "X"
        rule = f"have the index of {of}, as rows are matched by position"
        in_order = f"give .to_numpy() if the rows are in the order of {of}"
        remedy = f"order it by .loc[{of}.index], or {in_order}"
        raise bad_input(place, rule, "another index", remedy)


def _one_column(values: Any, place: str, n: int, X: Any, kinds: str) -> pd.Series[Any]:
    """Return values of any library as a column without an index."""
    series = as_pandas(values, place)
    if isinstance(series, pd.Series):
        _check_match(place, values, n, X)
        # without its index, which pandas would align with other rows
        return pd.Series(series.array, name=series.name)
    array = values if isinstance(values, pd.api.extensions.ExtensionArray) else np.asarray(values)
    if array.shape != (n,):
        raise bad_input(place, f"be {n} {kinds}", f"{array.dtype} of shape {array.shape}")
    return pd.Series(array)


def _is_mask(column: pd.Series[Any]) -> bool:
    # categories of True and False are labels: a way to make missing values a group of their own
    return not isinstance(column.dtype, pd.CategoricalDtype) and kind_of(column) == "boolean"


def _mask(column: pd.Series[Any], place: str) -> Mask:
    missing = column.isna().to_numpy(dtype=bool)
    if missing.any():
        got = f"{int(missing.sum())} (the first in row {int(np.argmax(missing))}, counted from 0)"
        as_labels = "make labels of them by .astype('category'): then they are a group of their own"
        rule = "have no missing values, as it is a mask"
        raise bad_input(place, rule, got, f"fill them, or {as_labels}")
    return column.to_numpy(dtype=np.bool_)


def check_names(groups: Any) -> list[Any]:
    """Return names of columns, where nothing else can be given.

    Examples
    --------
    >>> check_names(["sex"])
    ['sex']
    """
    # where rows are read in parts, there are none in memory to match masks with
    table = as_pandas(groups, "groups")
    if isinstance(table, str | Mapping | pd.DataFrame | pd.Series):
        remedy = "add the groups to the table as columns"
        raise bad_input("groups", "hold names of columns", type(groups).__name__, remedy)
    names = list(groups)
    for name in names:
        if isinstance(name, bool | np.bool_) or not isinstance(name, str | int | np.integer):
            remedy = "give masks as {'name': mask}"
            raise bad_input("groups", "hold names of columns", type(name).__name__, remedy)
    return names
