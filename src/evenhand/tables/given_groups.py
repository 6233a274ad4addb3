"""Named groups given as masks, labels or column names, interpreted alike by every function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats, InputError, Mask, bad_input
from evenhand.tables.groups import EVERYONE, Group, Groups
from evenhand.tables.partition import MAX_GROUPS, MAX_VALUES, Partition, plain_halves
from evenhand.tables.values import as_pandas, as_table, column_of, kind_of

# --- groups of rows defined by the columns of a table: values, halves, missing values


def group_columns(table: pd.DataFrame, names: Iterable[str], *, source: str) -> Groups:
    """Return the named groups that columns define, for an audit.

    Text, booleans, categories, and numbers or dates with at most 10 distinct values give one group
    per value, such as `sex = 2`. Other numbers and dates are split into two halves at the median,
    `age <= 50` and `age > 50`, or at the next smaller value if no value is above the median. The
    cut is rounded only so far that the rows still match the names of the halves. Dates and whole
    numbers of 2^53 and more are cut at one of their values. Missing values are a separate group,
    `age missing`. The groups of a column are a partition of the rows, and none is empty.

    Parameters
    ----------
    table : DataFrame
        Rows.
    names : iterable of str
        Columns that define groups.
    source : str
        Name of the file, for messages.

    Raises
    ------
    InputError
        If there is no such column, or a text column has more than 100 distinct values.

    Examples
    --------
    >>> groups = group_columns(pd.DataFrame({"sex": [2, 1, None]}), ["sex"], source="loans.csv")
    >>> for name, rows in groups.items():
    ...     print(name, rows.tolist())
    sex = 1 [False, True, False]
    sex = 2 [True, False, False]
    sex missing [False, False, True]
    """
    columns = ((name, column_of(table, name, source)) for name in names)
    return Groups(
        pair
        for name, values in columns
        for pair in Partition.learn(values, name, source=source).masks(values).pairs()
    )


def feature_groups(table: pd.DataFrame) -> Iterator[tuple[str, Groups | str]]:
    """Yield each column of a table with its groups, or the reason in words why it has none."""
    # most features of a wide table are plain numbers, many of which are cut in one step
    halves = {j: (cut, high) for j, cut, high in plain_halves(table, MAX_VALUES)}
    for j, name in enumerate(table.columns):
        if j in halves:
            cut, high = halves[j]
            pairs = [(Group(name, "<=", cut), ~high), (Group(name, ">", cut), high)]
            yield str(name), Groups(pairs)
            continue
        try:
            yield str(name), group_columns(table, [name], source="X")
        except InputError:  # ids and free text, which must not stop the scan of other features
            yield str(name), f"more than {MAX_GROUPS} distinct values"


# --- named groups given as masks, labels or column names, interpreted alike by every function


def check_groups(
    groups: Any,
    n_samples: int,
    X: Any = None,
    *,
    is_block: bool = False,
    allow_probable: bool = False,
) -> Groups:
    """Return named groups of rows from any accepted form.

    Parameters
    ----------
    groups : None, DataFrame, Series, mapping, or sequence of column names
        A DataFrame or Series of any library, or a dict of name to values. Booleans are a mask, one
        group of that name. Floats that are all between 0 and 1, with one strictly between, are each
        row's probability of membership in one group of that name. Other values are labels, which
        define groups as in `group_columns`. Names refer to columns of X, which always define groups
        as in `group_columns`. Rows are matched by position.
    n_samples : int
        Number of rows.
    X : table or Series, optional
        Table with the named columns; pandas groups must have the same index. The outcomes if there
        is no table.
    is_block : bool, default False
        Whether the rows are a block of a larger table. Then a group may be empty, and labels are
        refused, as their groups would depend on the block.
    allow_probable : bool, default False
        Whether groups may be known by probability.

    Raises
    ------
    InputError
        If a mask has a missing value, a length or an index does not match, two groups have the same
        name, or a group is known by probability where members must be known.
    """
    found: set[str] = set()
    pairs: list[tuple[Group, Mask]] = []
    probable: list[tuple[Group, Floats]] = []
    for place, group, values in _formed(groups, n_samples, X, is_block):
        _check_group(place, group, values, found, is_block)
        found.add(group.name)
        if values.dtype == np.bool_:
            pairs.append((group, values))
        elif allow_probable:
            probable.append((group, values))
        else:
            rule = "be booleans or labels, as members must be known here"
            remedy = "audit this group, or name a column of X to halve it at its median"
            raise bad_input(place, rule, "probabilities of membership", remedy)
    return Groups(pairs, probable)


def _check_group(
    place: str, group: Group, values: NDArray[Any], found: set[str], is_block: bool
) -> None:
    """Refuse a reserved or repeated name, and an empty group."""
    if group.name == EVERYONE:
        reserved = f"the name {EVERYONE!r} is reserved for all rows"
        raise InputError(f"{place}: {reserved}; rename the group")
    if group.name in found:
        raise InputError(f"{place}: two groups have the name {group.name!r}; rename one")
    if not is_block and not values.any():
        raise InputError(f"{place} is an empty group; remove it")


def _formed(
    groups: Any, n: int, X: Any, is_block: bool
) -> Iterator[tuple[str, Group, NDArray[Any]]]:
    """Yield the place for messages, the definition and the mask or membership of each group."""
    named = _values_by_name(groups, n, X)
    if named is None:
        table = as_pandas(X)
        if not isinstance(table, pd.DataFrame):
            got = type(groups).__name__
            raise bad_input("groups", "be masks by name, as X is not a table", got)
        columns = as_table(table, n, per="outcome")
        for group, mask in group_columns(columns, check_names(groups), source="X").pairs():
            yield "groups", group, mask
    for name, values in named or ():
        place = f"groups[{name!r}]"
        column = _one_column(values, place, n, X, "booleans" if is_block else "booleans or labels")
        # categories of True and False are labels, so that missing values can be a separate group
        if not isinstance(column.dtype, pd.CategoricalDtype) and kind_of(column) == "boolean":
            is_known = isinstance(groups, Groups)
            group = groups.what(name) if is_known else Group.given(str(name))
            yield place, group, _mask(column, place)
        elif is_block:  # another block may have other labels or another median
            got = f"{column.dtype} of shape ({n},)"
            remedy = "make masks, as a block may not have all labels"
            raise bad_input(place, f"be {n} booleans", got, remedy)
        elif are_probabilities(column):
            yield place, Group.given(str(name)), column.to_numpy(dtype=np.float64)
        else:
            partition = Partition.learn(column, str(name), source="groups")
            for group, mask in partition.masks(column).pairs():
                yield place, group, mask


def _values_by_name(groups: Any, n: int, X: Any) -> Iterable[tuple[Any, Any]] | None:
    """Return the values of each name; None if there are only names."""
    if groups is None:
        return ()
    if isinstance(groups, Groups):
        return (
            (name, groups[name] if name in groups else groups.membership(name))
            for name in groups.names
        )
    if isinstance(groups, Mapping):
        return groups.items()
    if isinstance(groups, str):
        rule = "be a list of column names or masks by name"
        raise bad_input("groups", rule, repr(groups), f"write [{groups!r}]")
    table = as_pandas(groups, "groups")
    if isinstance(table, pd.Series):
        if table.name in (None, ""):
            raise InputError("groups is a Series without a name; write {'name': series}")
        return [(table.name, groups)]
    if not isinstance(table, pd.DataFrame):
        return None
    _check_match("groups", groups, n, X)
    return [(name, table.iloc[:, j].array) for j, name in enumerate(table.columns)]


def _check_match(place: str, values: Any, n: int, X: Any) -> None:
    """Refuse another length or another index than that of X, as rows are matched by position."""
    if len(values) != n:
        raise bad_input(place, f"have one row per outcome ({n})", f"{len(values)} rows")
    # a different index most likely means a different order of the rows
    are_indexed = all(isinstance(one, pd.Series | pd.DataFrame) for one in (values, X))
    if are_indexed and not values.index.equals(X.index):
        of = "y" if isinstance(X, pd.Series) else "X"
        raise InputError(
            f"{place} and {of} have different indexes, but rows are matched by position; reorder"
            f" with .loc[{of}.index], or pass .to_numpy() if the rows are in the order of {of}"
        )


def _one_column(values: Any, place: str, n: int, X: Any, kinds: str) -> pd.Series[Any]:
    """Convert values of any library to a column without an index."""
    series = as_pandas(values, place)
    if isinstance(series, pd.Series):
        _check_match(place, values, n, X)
        # without its index, by which pandas would reorder the rows
        return pd.Series(series.array, name=series.name)
    array = values if isinstance(values, pd.api.extensions.ExtensionArray) else np.asarray(values)
    if array.shape != (n,):
        raise bad_input(place, f"be {n} {kinds}", f"{array.dtype} of shape {array.shape}")
    return pd.Series(array)


def are_probabilities(column: pd.Series[Any]) -> bool:
    """Whether values are floats from 0 to 1, none missing, with at least one strictly between.

    Such values given by name are probabilities of membership: labels and codes are whole numbers.

    Examples
    --------
    >>> are_probabilities(pd.Series([0.0, 0.4])), are_probabilities(pd.Series([0.0, 1.0]))
    (True, False)
    """
    if column.dtype.kind != "f" or column.isna().any():
        return False
    values = column.to_numpy(dtype=np.float64)
    return bool(((values >= 0) & (values <= 1)).all() and ((values > 0) & (values < 1)).any())


def _mask(column: pd.Series[Any], place: str) -> Mask:
    missing = column.isna().to_numpy(dtype=bool)
    if missing.any():
        count = int(missing.sum())
        raise InputError(
            f"{place} is a mask with {count} missing value{'s' * (count != 1)}, the first in row"
            f" {int(np.argmax(missing))} (counted from 0); fill them, or make them a separate group"
            " with .astype('category')"
        )
    return column.to_numpy(dtype=np.bool_)


def check_names(groups: Any) -> list[Any]:
    """Return groups given as column names; InputError for any other form.

    Examples
    --------
    >>> check_names(["sex"])
    ['sex']
    """
    # rows that are read in parts are not in memory and cannot be matched with masks
    table = as_pandas(groups, "groups")
    if isinstance(table, str | Mapping | pd.DataFrame | pd.Series):
        remedy = "add the groups to the table as columns"
        raise bad_input("groups", "be a list of column names", type(groups).__name__, remedy)
    names = list(groups)
    for name in names:
        if isinstance(name, bool | np.bool_) or not isinstance(name, str | int | np.integer):
            remedy = "pass masks as {'name': mask}"
            raise bad_input("groups", "contain column names", type(name).__name__, remedy)
    return names
