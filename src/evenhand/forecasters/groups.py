"""Groups of rows with separate maps: disjoint ones by columns or labels, and overlapping ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._validate import InputError, Mask, bad_input, check_column
from evenhand.forecast import Forecast
from evenhand.forecasters.maps import Everyone, Labelled, Labels, Members, Overlapping
from evenhand.tables import (
    OWN_VALUES,
    Group,
    GroupRule,
    Partition,
    as_pandas,
    as_table,
    column_of,
    forecast_values,
    kind_of,
    label,
)

# --- groups of rows for separate recalibration maps, defined by columns or by a function

By = str | Sequence[str] | Callable[[Any], Any] | Mapping[str, Any]
Columns = str | Sequence[str] | Callable[[Any], Any]


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


# --- definitions of overlapping groups by name: rules, functions, and masks of the training rows


@dataclass(frozen=True)
class NamedGroups:
    """Groups that may overlap, each with a rule, a function or masks that are given with the rows.

    Parameters
    ----------
    rules : dict of str to GroupRule, callable or None
        Definition of each group; None for a group that was given as a mask.
    """

    rules: dict[str, GroupRule | Callable[[Any], Any] | None]

    @classmethod
    def read(cls, by: Mapping[str, Any], X: Any) -> Self:
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
        rules = [rule for rule in self.rules.values() if isinstance(rule, GroupRule)]
        return list(dict.fromkeys(column for rule in rules for column in rule.columns))

    @property
    def own_values(self) -> list[str]:
        """Values of the own forecast that rules depend on."""
        return [column for column in self._columns if column in OWN_VALUES]

    def members(self, X: Any, masks: Mapping[str, Any] | None, own: pd.DataFrame) -> Overlapping:
        """Return the membership of rows.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Rows.
        masks : mapping of str to array of bool, or None
            Masks of the groups without a rule; others are ignored.
        own : DataFrame
            Columns `own_values` of the rows: a person's groups depend on that person only.
        """
        table = X if own.empty else as_table(X).assign(**{str(key): own[key].array for key in own})
        found = [
            _given(name, masks, X)
            if rule is None
            else rule.mask(table)
            if isinstance(rule, GroupRule)
            else _as_mask(f"by[{name!r}]", rule(X), len(X), "return")
            for name, rule in self.rules.items()
        ]
        return Overlapping(tuple(self.rules), np.column_stack(found))

    def to_state(self) -> dict[str, Any]:
        """Return the definitions as JSON values; InputError for a function."""
        stored: dict[str, Any] = {}
        for name, rule in self.rules.items():
            if rule is not None and not isinstance(rule, GroupRule):
                raise InputError(
                    f"by[{name!r}] is the function {rule!r}, which cannot be stored; write the"
                    " group as a rule, such as 'age > 50', or as a boolean column of X"
                )
            stored[name] = None if rule is None else rule.to_state()
        return stored

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the definitions from the output of `to_state`."""
        return cls(
            {
                name: None if rule is None else GroupRule.from_state(rule)
                for name, rule in state.items()
            }
        )


def _definition(name: str, value: Any, X: Any) -> GroupRule | Callable[[Any], Any] | None:
    """Return the definition of a group in one of the accepted forms."""
    if isinstance(value, GroupRule):
        return value
    if isinstance(value, str):
        return _rule_of_text(name, value, as_pandas(X))
    if hasattr(value, "conditions"):  # a FoundGroup
        if not value.conditions:
            remedy = "pass a mask of its rows"
            raise bad_input(f"by[{name!r}]", "have a rule", "a group without conditions", remedy)
        return GroupRule(tuple(value.conditions))
    if callable(value):
        return value  # type: ignore[no-any-return]
    if value is None:
        raise InputError(
            f"by[{name!r}] is missing, as masks are not stored with a model; pass a mask of these"
            " rows or a rule such as 'age > 50'"
        )
    return None


def _rule_of_text(name: str, text: str, table: Any) -> GroupRule:
    """Return the rule of a boolean column or of a text."""
    if not isinstance(table, pd.DataFrame):
        remedy = "pass a DataFrame, or a mask or a function from X to a mask"
        rule = f"be a table, as by[{name!r}] names columns"
        raise bad_input("X", rule, type(table).__name__, remedy)
    if text not in map(str, table.columns):
        columns = dict.fromkeys([*map(str, table.columns), *OWN_VALUES])
        return GroupRule.parse(text, columns, source="X")
    kind = kind_of(column_of(table, text, "X"))
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


def taken(masks: Mapping[str, Any], rows: Iterable[int]) -> dict[str, Any]:
    """Return masks restricted to some rows; other definitions of groups are returned unchanged."""
    kept = np.asarray(rows)

    def restricted(value: Any) -> Any:
        if value is None or isinstance(value, str) or hasattr(value, "conditions"):
            return value
        if callable(value):
            return value
        return np.asarray(as_pandas(value))[kept]

    return {name: restricted(value) for name, value in masks.items()}


# --- groups of a forecaster's rows, defined by its parameter `by`


class ByGroups:
    """A forecaster with groups in its parameter `by`."""

    by: By | None
    _grouping: Grouping | NamedGroups | None

    def _define_groups(self, table: Any) -> None:
        """Learn the definitions of the groups."""
        self._grouping = None
        if isinstance(self.by, Mapping):
            self._grouping = NamedGroups.read(self.by, table)
        elif self.by is not None:
            self._grouping = Grouping.learn(self.by, table)

    @property
    def _own_values(self) -> list[str]:
        """Names of the values of the own forecast that define groups."""
        return self._grouping.own_values if isinstance(self._grouping, NamedGroups) else []

    def _training_members(
        self, table: Any, sample_weight: ArrayLike | None, own: pd.DataFrame
    ) -> Members:
        """Return the groups of the training rows, of which `own` are values of forecasts."""
        if self._grouping is None:
            return Everyone()
        if isinstance(self._grouping, Grouping):
            return self._grouping.members(table)
        assert isinstance(self.by, Mapping)
        masks = {str(name): value for name, value in self.by.items()}
        # the masks of rows of weight 0, which were dropped from the table
        if sample_weight is not None:
            masks = taken(masks, np.flatnonzero(np.asarray(sample_weight)))
        return self._grouping.members(table, masks, own)

    def _set_grouping(self, learned: dict[str, Any]) -> None:
        """Rebuild the definitions of the groups of a stored model."""
        self._grouping = None
        if not self.by:
            return
        if isinstance(self.by, Mapping):
            self._grouping = NamedGroups.from_state(self.by)
            self.by = dict(self._grouping.rules)
        elif not callable(self.by):  # functions are not stored
            self.by = self.by if isinstance(self.by, str) else list(self.by)
            self._grouping = Grouping.from_state(self.by, learned["columns"])

    def _members(self, rows: Any, groups: Mapping[str, Any] | None, forecast: Forecast) -> Members:
        """Return the groups of rows with their base forecasts."""
        if isinstance(self._grouping, NamedGroups):
            own = forecast_values(forecast, self._own_values)
            return self._grouping.members(rows, groups, own)
        if groups is not None:
            raise InputError(
                "groups has no effect, as no group was given to `by` as a mask; leave it out"
            )
        return Everyone() if self._grouping is None else self._grouping.members(rows)
