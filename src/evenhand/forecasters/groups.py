"""Groups of rows with separate maps: their definitions, and the membership of rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from evenhand._validate import Floats, InputError, Ints, Mask, bad_input, check_column
from evenhand.tables import (
    OWN_VALUES,
    Group,
    GroupRule,
    Partition,
    as_pandas,
    as_table,
    column_kind,
    column_of,
    level,
)

By = str | Sequence[str] | Callable[[Any], Any] | Mapping[str, Any]
Columns = str | Sequence[str] | Callable[[Any], Any]

# --- membership of rows


@dataclass(frozen=True)
class Members:
    """Membership of n rows in groups, whatever defines them.

    Parameters
    ----------
    names : sequence of str
        Names of the groups.
    which : ndarray of int, shape (n,)
        Number of each row's pattern of groups.
    patterns : ndarray of bool, shape (n_patterns, n_groups), optional
        Groups of each pattern. Empty for disjoint groups, of which there may be many: pattern 0 is
        in no group, and pattern i is in the i-th group.
    """

    names: Sequence[str]
    which: Ints
    patterns: Mask = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))

    @classmethod
    def overlapping(cls, names: Sequence[str], masks: Mask) -> Self:
        """Return the membership by masks of shape (n, n_groups)."""
        patterns, which = np.unique(masks, axis=0, return_inverse=True)
        return cls(names, which.reshape(-1), patterns)

    @property
    def are_disjoint(self) -> bool:
        """Whether each row is in one group at most."""
        return not len(self.patterns)

    def groups(self) -> Iterator[tuple[str, Mask]]:
        """Yield the groups with their rows."""
        # one mask at a time, as a function may define many groups
        for i, name in enumerate(self.names):
            is_in = self.which == i + 1 if self.are_disjoint else self.patterns[self.which, i]
            yield name, is_in

    def take(self, rows: Ints) -> Self:
        """Return the membership of some rows."""
        return replace(self, which=self.which[rows])

    def sums(self, terms: Floats) -> Floats:
        """Return the sum of the terms of all rows and of each row's groups, shape (n, k).

        `terms` of shape (1 + n_groups, k) are those of all rows, then of each group.
        """
        if self.are_disjoint:
            return terms[0] + np.append(0 * terms[:1], terms[1:], axis=0)[self.which]
        return (terms[0] + self.patterns @ terms[1:])[self.which]

    @property
    def matrix(self) -> sparse.csr_array:
        """Membership of all rows in everyone, then in each group, shape (n, 1 + n_groups)."""
        n_groups = len(self.names)
        patterns = sparse.csr_array(self.patterns.astype(float))
        if self.are_disjoint:
            patterns = sparse.eye_array(1 + n_groups, n_groups, k=-1, format="csr")
        everyone = sparse.csr_array(np.ones((self.which.size, 1)))
        return sparse.hstack((everyone, patterns[self.which]), format="csr")


# --- definition of disjoint groups by columns or by a function


@dataclass(frozen=True)
class Grouping:
    """Disjoint groups, defined by a function or by columns whose groups were learned in training.

    Parameters
    ----------
    by : str, sequence of str, callable or None
        Column names, or a function from a table to one label per row; None for no groups.
    columns : tuple of Partition
        Groups of each column; empty for a function.
    names : tuple of str
        Groups of the training table, in the order of a single column, or else sorted.
    """

    by: Columns | None
    columns: tuple[Partition, ...] = ()
    names: tuple[str, ...] = ()
    own_values: ClassVar[Sequence[str]] = ()

    @classmethod
    def learn(cls, by: Columns, X: Any) -> Self:
        """Learn the groups of columns or of a function."""
        names = [] if callable(by) else [by] if isinstance(by, str) else list(by)
        if not names and not callable(by):
            raise InputError("`by` is empty; name at least one column, or omit it for a single map")
        columns = ((column_of(_table(X), name, "X"), name) for name in names)
        found = cls(by, tuple(Partition.learn(*column, source="X") for column in columns))
        present = {name for name in found.labels(X) if name is not None}
        order = found.columns[0].names if len(names) == 1 else sorted(present)
        return replace(found, names=tuple(name for name in order if name in present))

    def labels(self, X: Any) -> NDArray[np.object_]:
        """Return the label of each row; None if any column has a missing or unknown group."""
        if callable(self.by):
            answer = np.asarray(self.by(X), dtype=object)
            if answer.shape != (len(X),):
                rule = f"return one label per row ({len(X)})"
                raise bad_input("by", rule, f"shape {answer.shape}")
            found = [None if pd.isna(value) else level(value) for value in answer]
            return np.array(found, dtype=object)
        table = _table(X)
        parts = np.column_stack([part.labels(table[part.column]) for part in self.columns])
        # a combination is unknown if one of its groups is
        known = pd.notna(parts).all(axis=1)
        joined = np.array([", ".join(map(str, row)) for row in parts], dtype=object)
        return np.where(known, joined, cast(Any, None))

    def members(
        self, X: Any, masks: Mapping[str, Any] | None = None, own: pd.DataFrame | None = None
    ) -> Members:
        """Return the groups of rows."""
        if masks is not None:
            raise InputError(
                "groups has no effect, as no group was given to `by` as a mask; leave it out"
            )
        if self.by is None:
            return Members((), np.zeros(len(X), dtype=int))
        labels = self.labels(X)
        # -1, a label that is new, becomes 0, no group
        index: Any = pd.Index(list(self.names), dtype=object)
        which = 1 + index.get_indexer(pd.Index(labels))
        if callable(self.by):
            self._warn_unseen(labels, which)
        return Members(self.names, which)

    def _warn_unseen(self, labels: NDArray[np.object_], which: Ints) -> None:
        """Warn if a function gives most rows labels that are new.

        New values of columns are reported by the schema of the model instead.
        """
        # a function returns None for a row in no group, which is not a new label
        n_new = (pd.notna(labels) & (which == 0)).sum()
        # with fewer rows, most may be new by chance
        if labels.size < 20 or 2 * n_new <= labels.size:
            return
        warnings.warn(
            f"by: {n_new} of {labels.size} rows have labels that did not occur in"
            " training and get the map of all rows; use the labels of training"
            f" ({', '.join(self.names)[:80]}), or fit again with rows of the new labels",
            UserWarning,
            stacklevel=5,
        )


def _table(
    X: Any, name: str = "`by`", or_pass: str = "a function from X to labels"
) -> pd.DataFrame:
    table = as_pandas(X)
    if not isinstance(table, pd.DataFrame):
        remedy = f"pass a DataFrame, or {or_pass} as {name}"
        raise bad_input("X", f"be a table, as {name} names columns", type(X).__name__, remedy)
    return table


# --- definitions of overlapping groups by name: rules, functions, and masks of the training rows


@dataclass(frozen=True)
class OverlappingGroups:
    """Groups that may overlap, each with a rule, a function or masks that are given with the rows.

    The definition of a group that was given as a mask is None.
    """

    by: dict[str, GroupRule | Callable[[Any], Any] | None]

    @classmethod
    def learn(cls, by: Mapping[str, Any], X: Any) -> Self:
        """Read the definitions; names of columns and rules as text refer to the table `X`.

        Columns of a rule may also be values of the own forecast, `OWN_VALUES`.
        """
        if not by:
            raise InputError("`by` is empty; name at least one group, or omit it for a single map")
        found = cls({str(name): _definition(str(name), value, X) for name, value in by.items()})
        present = [str(column) for column in as_table(X).columns]
        for column in found._columns:
            if column not in OWN_VALUES:
                check_column(column, present, "X")
            elif column in present:
                raise InputError(
                    f"X has a column {column!r}, which in a rule is a value of the model's own"
                    " forecast; rename the column"
                )
        return found

    @property
    def _columns(self) -> list[str]:
        """Columns of the rules, each once."""
        rules = [rule for rule in self.by.values() if isinstance(rule, GroupRule)]
        return list(dict.fromkeys(column for rule in rules for column in rule.columns))

    @property
    def own_values(self) -> Sequence[str]:
        """Values of the own forecast that rules depend on."""
        return [column for column in self._columns if column in OWN_VALUES]

    def members(self, X: Any, masks: Mapping[str, Any] | None, own: pd.DataFrame | None) -> Members:
        """Return the membership of rows; groups without a rule have masks, and others ignore them.

        `own` has the columns `own_values` of the rows: a person's groups depend on that person
        only.
        """
        table = X
        if own is not None and len(own.columns):
            table = as_table(X).assign(**{str(key): own[key].array for key in own})
        found = [
            _given(name, masks, X)
            if rule is None
            else rule.mask(table)
            if isinstance(rule, GroupRule)
            else _as_mask(f"by[{name!r}]", rule(X), len(X), "return")
            for name, rule in self.by.items()
        ]
        return Members.overlapping(tuple(self.by), np.column_stack(found))


def _definition(name: str, value: Any, X: Any) -> GroupRule | Callable[[Any], Any] | None:
    """Return the definition of a group in one of the accepted forms."""
    if isinstance(value, GroupRule):
        return value
    if isinstance(value, str):
        return _rule_of_text(name, value, _table(X, f"by[{name!r}]", "a function from X to a mask"))
    if hasattr(value, "conditions"):  # a FoundGroup
        if not value.conditions:
            remedy = "pass a mask of its rows"
            raise bad_input(f"by[{name!r}]", "have a rule", "a group without conditions", remedy)
        return GroupRule(tuple(value.conditions))
    if callable(value):
        return value
    if value is None:
        raise InputError(
            f"by[{name!r}] is missing, as masks are not stored with a model; pass a mask of these"
            " rows or a rule such as 'age > 50'"
        )
    return None


def _rule_of_text(name: str, text: str, table: pd.DataFrame) -> GroupRule:
    """Return the rule of a boolean column or of a text."""
    if text not in map(str, table.columns):
        columns = dict.fromkeys([*map(str, table.columns), *OWN_VALUES])
        return GroupRule.parse(text, columns, source="X")
    kind = column_kind(column_of(table, text, "X"))
    if kind != "boolean":
        remedy = f"write a rule such as '{text} > 1', or by={text!r} for a map for each value"
        what = f"column {text!r} of kind {kind!r}"
        raise bad_input(f"by[{name!r}]", "be a boolean column or a rule", what, remedy)
    return GroupRule.of(Group(text, "=", "true"))


def _given(name: str, masks: Mapping[str, Any] | None, X: Any) -> Mask:
    if masks is None or name not in masks:
        raise InputError(
            f"group {name!r} was given as a mask of the training rows, which does not determine"
            f" other rows; pass groups={{{name!r}: mask}} with the rows, or fit with a rule, such"
            " as 'age > 50'"
        )
    return _as_mask(f"groups[{name!r}]", masks[name], len(X), "be")


def _as_mask(place: str, values: Any, n: int, verb: str) -> Mask:
    """Return a mask of n rows; InputError for anything else."""
    column = as_pandas(values)
    if isinstance(column, pd.Series) and column.isna().any():
        raise bad_input(place, f"{verb} booleans", "missing values", "fill them")
    array = np.asarray(column)
    if array.dtype == object and all(isinstance(one, bool | np.bool_) for one in array.ravel()):
        array = array.astype(bool)
    if array.dtype != bool or array.shape != (n,):
        got = f"{array.dtype} of shape {array.shape}"
        raise bad_input(place, f"{verb} one boolean per row of X ({n})", got)
    return array


# --- groups of a forecaster's rows, defined by its parameter `by`

Groups: TypeAlias = Grouping | OverlappingGroups
"""Definition of the groups of a forecaster."""


def learn_groups(by: By | None, X: Any) -> Groups:
    """Learn the definition of groups from the training table."""
    if by is None:
        return Grouping(None)
    return OverlappingGroups.learn(by, X) if isinstance(by, Mapping) else Grouping.learn(by, X)


def check_storable(groups: Groups) -> None:
    """Raise InputError if a definition of groups is a function."""
    by: dict[str, Any] = {"`by`": groups.by}
    if isinstance(groups, OverlappingGroups):
        by = {f"by[{name!r}]": rule for name, rule in groups.by.items()}
    for name, rule in by.items():
        if callable(rule):
            raise InputError(
                f"{name} is the function {rule!r}, which cannot be stored; put its labels into a"
                " column of X and name that column, or write the group as a rule, such as"
                " 'age > 50'"
            )


def training_masks(
    groups: Groups, by: Any, sample_weight: ArrayLike | None
) -> dict[str, Any] | None:
    """Return the masks in `by`, of rows of positive weight; None for groups without names."""
    if isinstance(groups, Grouping):
        return None
    masks = {str(name): mask for name, mask in by.items() if groups.by[str(name)] is None}
    # rows of weight 0 were dropped from the table
    if sample_weight is not None:
        kept = np.flatnonzero(sample_weight)
        masks = {name: np.asarray(as_pandas(mask))[kept] for name, mask in masks.items()}
    return masks
