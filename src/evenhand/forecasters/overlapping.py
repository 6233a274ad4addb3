"""Definitions of overlapping groups by name: rules, functions, and masks of the training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from evenhand._validate import InputError, Mask, bad_input, check_column
from evenhand.columns import Group, GroupRule, as_pandas, as_table, kind_of
from evenhand.forecast import OWN_VALUES
from evenhand.forecasters.membership import Overlapping
from evenhand.tables import column_of


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
