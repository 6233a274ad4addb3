"""Groups of rows for separate recalibration maps, defined by columns or by a function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import InputError, bad_input
from evenhand.columns import Partition, as_pandas, label
from evenhand.forecasters.membership import Labelled
from evenhand.tables import column_of

By = str | Sequence[str] | Callable[[Any], Any] | Mapping[str, Any]
Columns = str | Sequence[str] | Callable[[Any], Any]
Labels = NDArray[np.object_]


@dataclass(frozen=True)
class Grouping:
    """Groups of rows, defined by a function or by columns whose groups were learned in training.

    Parameters
    ----------
    by : str, sequence of str or callable
        Column names, or a function from a table to one label per row.
    columns : tuple of Partition
        Groups of each column; empty for a function.
    """

    by: Columns
    columns: tuple[Partition, ...] = ()

    @classmethod
    def learn(cls, by: Columns, X: Any) -> Self:
        """Learn the groups of columns; a function is stored unchanged."""
        if callable(by):
            return cls(by)
        names = [by] if isinstance(by, str) else list(by)
        if not names:
            raise InputError("`by` is empty; name at least one column, or omit it for a single map")
        table = _table(X)
        columns = ((column_of(table, name, "X"), name) for name in names)
        return cls(by, tuple(Partition.learn(*column, source="X") for column in columns))

    def labels(self, X: Any) -> Labels:
        """Return the label of each row; None if any column has a missing or unknown group."""
        if callable(self.by):
            answer = np.asarray(self.by(X), dtype=object)
            if answer.shape != (len(X),):
                rule = f"return one label per row ({len(X)})"
                raise bad_input("by", rule, f"shape {answer.shape}")
            found = [None if pd.isna(value) else label(value) for value in answer]
            return np.array(found, dtype=object)
        table = _table(X)
        parts = np.column_stack([part.labels(table[part.column]) for part in self.columns])
        # a combination is unknown if one of its groups is
        known = pd.notna(parts).all(axis=1)
        joined = np.array([", ".join(map(str, row)) for row in parts], dtype=object)
        return np.where(known, joined, cast(Any, None))

    def warn_unseen(self, labels: Labels, seen: Sequence[str]) -> None:
        """Warn if a function gives most rows of a forecast labels that are new.

        New values of columns are reported by the schema of the model instead.
        """
        # a function returns None for a row in no group, which is not a new label
        is_new = pd.notna(labels) & ~pd.Series(labels, dtype=object).isin(list(seen)).to_numpy()
        # with fewer rows, most may be new by chance
        if not callable(self.by) or labels.size < 20 or 2 * is_new.sum() <= labels.size:
            return
        warnings.warn(
            f"by: {int(is_new.sum())} of {labels.size} rows have labels that did not occur in"
            " training and get the map of all rows; use the labels of training"
            f" ({', '.join(seen)[:80]}), or fit again with rows of the new labels",
            UserWarning,
            stacklevel=3,
        )

    def members(self, X: Any) -> Labelled:
        """Return the groups of rows, with the names of all that are not empty.

        Names are in the order of a column, or else sorted.
        """
        labels = self.labels(X)
        seen = {str(name) for name in labels if name is not None}
        is_single = len(self.columns) == 1
        order = self.columns[0].names if is_single else sorted(seen)
        return Labelled([name for name in order if name in seen], labels)

    def to_state(self) -> tuple[str | list[str], list[dict[str, Any]]]:
        """Return `by` and the columns as JSON values; InputError if `by` is a function."""
        if callable(self.by):
            raise InputError(
                f"`by` is the function {self.by!r}, which cannot be stored; put its labels into a"
                " column of X and name that column"
            )
        by = self.by if isinstance(self.by, str) else list(self.by)
        return by, [column.to_state() for column in self.columns]

    @classmethod
    def from_state(cls, by: Columns, columns: Iterable[Mapping[str, Any]]) -> Self:
        """Rebuild a grouping from the output of `to_state`."""
        parts = tuple(map(Partition.from_state, columns))
        if [part.column for part in parts] != ([by] if isinstance(by, str) else by):
            raise InputError("by are not the names of the columns of groups")
        return cls(by, parts)


def _table(X: Any) -> pd.DataFrame:
    table = as_pandas(X)
    if not isinstance(table, pd.DataFrame):
        remedy = "pass a DataFrame, or a function from X to labels as `by`"
        raise bad_input("X", "be a table, as `by` names columns", type(X).__name__, remedy)
    return table
