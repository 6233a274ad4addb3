"""A table as 0/1 group masks (method: worst groups)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import InputError, bad_input
from evenhand.columns import as_pandas
from evenhand.columns.groups import EXACT_WHOLE, MAX_GROUPS, MAX_VALUES, cut_name, group_columns

Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

CELLS = 4_000_000  # numbers in one working array, some 32 MB
TOO_MANY = f"more than {MAX_GROUPS} distinct values"


@dataclass(frozen=True)
class Masks:
    """Groups of rows: mask `g` is column `column[g]`, or its complement.

    Parameters
    ----------
    columns : ndarray of bool, shape (n, k)
        Column 0 holds all rows, so that a sum over one mask is a sum over a pair. Two halves share
        one column.
    names : list of str
        Of the masks, such as `age <= 50`.
    feature, column : ndarray of int, shape (g,)
        What each mask is made of; masks are in the order of their columns.
    complement : ndarray of bool, shape (g,)
        True where the mask is the rows that the column does not hold.
    labels : list of str
        Names of the features; named groups are features of their own and come last.
    n_unnamed : int
        How many features are no named groups.
    left_out : dict
        Features without a mask, and why.
    same_rows : dict
        Named groups without a mask of their own, and the name of the mask that holds the same rows.
    """

    columns: Bools
    names: list[str]
    feature: Ints
    column: Ints
    complement: Bools
    labels: list[str]
    n_unnamed: int
    left_out: dict[str, str]
    same_rows: dict[str, str]

    def sizes(self) -> Ints:
        """Return the number of rows of each mask."""
        counts = np.array([np.count_nonzero(column) for column in self.columns.T])[self.column]
        return np.where(self.complement, self.columns.shape[0] - counts, counts)

    def keep(self, wanted: Bools) -> Masks:
        """Return some of the masks, with the columns that they need."""
        needed = np.unique(np.concatenate(([0], self.column[wanted])))
        return Masks(
            columns=(
                self.columns if needed.size == self.columns.shape[1] else self.columns[:, needed]
            ),
            names=[name for name, kept in zip(self.names, wanted, strict=True) if kept],
            feature=self.feature[wanted],
            column=np.searchsorted(needed, self.column[wanted]),
            complement=self.complement[wanted],
            labels=self.labels,
            n_unnamed=self.n_unnamed,
            left_out=self.left_out,
            same_rows=self.same_rows,
        )


def as_table(X: Any, n_samples: int) -> pd.DataFrame:
    """Return features as a table of `n_samples` rows.

    The columns of an array are named x0, x1, ...
    """
    try:
        table = as_pandas(X)
    except TypeError:
        array = np.asarray(X)
        if array.ndim != 2:
            raise bad_input(
                "X", "be a table or an array of shape (n, p)", f"shape {array.shape}"
            ) from None
        table = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])], copy=False)
        table = table.infer_objects() if array.dtype == object else table
    if len(table) != n_samples:
        raise bad_input("X", f"have one row per row of pit ({n_samples})", f"{len(table)} rows")
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise bad_input("X", "have distinct column names", f"{str(twice)!r} twice", "rename one")
    return table


def make_masks(table: pd.DataFrame, groups: Mapping[str, Bools]) -> Masks:
    """Cut every feature into the groups of `group_columns`, and add the named ones.

    A text column with too many values and a feature that is constant make no mask; nor does one
    that splits the rows in two as another does. A named group that a feature makes too, that is
    named twice or that holds all rows counts once.
    """
    return assemble(len(table), feature_groups(table), groups)


def feature_groups(table: pd.DataFrame) -> Iterator[tuple[str, Mapping[str, Bools] | str]]:
    """Yield each feature with its groups, or with the reason why there are none."""
    halves = _fast_halves(table)
    return ((str(name), _parts(table, j, halves)) for j, name in enumerate(table.columns))


def _parts(
    table: pd.DataFrame, j: int, halves: dict[int, tuple[str, Bools]]
) -> Mapping[str, Bools] | str:
    """Return the groups of one feature, or why there are none."""
    name = table.columns[j]
    if j in halves:
        cut, high = halves[j]
        return {f"{name} <= {cut}": ~high, f"{name} > {cut}": high}
    try:
        return group_columns(table, [name], source="X")
    except InputError:
        return TOO_MANY


def assemble(
    n_samples: int,
    features: Iterable[tuple[str, Mapping[str, Bools] | str]],
    groups: Mapping[str, Bools],
) -> Masks:
    """Put groups of features side by side.

    In place of those of a feature may stand why there are none.
    """
    left_out = dict[str, str]()
    splits = dict[bytes, str]()
    labels = list[str]()
    columns: list[Bools] = [np.ones(n_samples, dtype=np.bool_)]
    made: list[tuple[str, int, int, bool]] = []  # name, feature, column, complement
    for j, (name, masks) in enumerate(features):
        labels.append(name)
        if isinstance(masks, str):
            left_out[name] = masks
            continue
        why = _twin(masks, name, splits) if len(masks) > 1 else "constant"
        if why:
            left_out[name] = why
            continue
        first, *others = masks
        if len(others) == 1:  # the groups of a column leave no row out
            made.append((first, j, len(columns), True))
        else:
            others = list(masks)
        for other in others:
            made.append((other, j, len(columns), False))
            columns.append(masks[other])
    named, same_rows = _distinct(
        groups, columns[0], ((name, columns[c] ^ flipped) for name, _, c, flipped in made)
    )
    for j, (name, mask) in enumerate(named.items(), start=len(labels)):
        made.append((name, j, len(columns), False))
        columns.append(mask)
    return Masks(
        columns=_side_by_side(columns),
        names=[name for name, *_ in made],
        feature=np.array([feature for _, feature, _, _ in made], dtype=np.intp),
        column=np.array([column for _, _, column, _ in made], dtype=np.intp),
        complement=np.array([complement for *_, complement in made], dtype=np.bool_),
        labels=[*labels, *named],
        n_unnamed=len(labels),
        left_out=left_out,
        same_rows=same_rows,
    )


def _twin(masks: Mapping[str, Bools], name: str, splits: dict[bytes, str]) -> str:
    """Say which feature before this one splits the rows in two as it does.

    None if it has more groups.
    """
    half = list(masks.values())[-1]
    # among some of the rows a rare group may be empty, which makes no twins
    if len(masks) != 2 or half.all() or not half.any():
        return ""
    twin = splits.setdefault(np.packbits(half ^ half[0]).tobytes(), name)
    return f"it splits the rows as {twin!r} does" if twin != name else ""


def _distinct(
    groups: Mapping[str, Bools], everyone: Bools, known: Iterable[tuple[str, Bools]]
) -> tuple[dict[str, Bools], dict[str, str]]:
    """Return the groups whose rows no other mask holds, and of the others the name of that mask.

    A repeated test would only cost power.
    """
    kept = dict[str, Bools]()
    same_rows = dict[str, str]()
    if not groups:
        return kept, same_rows
    seen = {np.packbits(mask).tobytes(): name for name, mask in known}
    all_rows = np.packbits(everyone).tobytes()
    for name, mask in groups.items():
        rows = np.packbits(mask).tobytes()
        if rows in seen:
            same_rows[name] = seen[rows]
        elif rows != all_rows:
            kept[name] = mask
            seen[rows] = name
    return kept, same_rows


def _side_by_side(columns: list[Bools]) -> Bools:
    out = np.empty((columns[0].size, len(columns)), dtype=np.bool_)
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def _fast_halves(table: pd.DataFrame) -> dict[int, tuple[str, Bools]]:
    """Cut, as it is named, and upper half of each number column that is plain.

    Plain is a column that is all there, finite, of many values that floats tell apart, and not
    mostly its maximum. The cut is that of `group_columns`, many columns in one step; what is not
    plain is left to that function.
    """
    dtypes = table.dtypes.to_numpy()
    numeric = [
        j for j, dtype in enumerate(dtypes) if isinstance(dtype, np.dtype) and dtype.kind in "iuf"
    ]
    n = len(table)
    found = {}
    width = max(1, CELLS // n)
    for start in range(0, len(numeric), width):
        part = numeric[start : start + width]
        values = np.ascontiguousarray(table.iloc[:, part].to_numpy(dtype=np.float64).T)
        rising = np.partition(values, ((n - 1) // 2, n // 2), axis=-1)
        with np.errstate(over="ignore", invalid="ignore"):
            cuts = (rising[:, (n - 1) // 2] + rising[:, n // 2]) / 2
            # that many values among the first rows are enough to know that there are that many
            plain = (np.diff(np.sort(values[:, :100], axis=-1), axis=-1) > 0).sum(
                axis=-1
            ) >= MAX_VALUES
        plain &= np.isfinite(values).all(axis=-1) & np.isfinite(cuts) & (cuts < values.max(axis=-1))
        whole = np.array([dtypes[j].kind in "iu" for j in part])
        plain &= ~whole | (np.abs(values).max(axis=-1) < EXACT_WHOLE)
        high = values > cuts[:, None]
        last = np.where(high, -np.inf, values).max(axis=-1)
        first = np.where(high, values, np.inf).min(axis=-1)
        found.update(
            {
                part[i]: (cut_name(cuts[i], last[i], first[i]), high[i])
                for i in np.flatnonzero(plain)
            }
        )
    return found
