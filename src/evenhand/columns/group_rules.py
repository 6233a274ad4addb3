"""Rules that define groups of rows: conjunctions of conditions on the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, get_args

import numpy as np
import pandas as pd

from evenhand._validate import InputError, Mask, bad_input, coded
from evenhand.columns.conversion import as_table
from evenhand.columns.cuts import EXACT_WHOLE, at_or_below
from evenhand.columns.groups import Condition, Group, Operator, label
from evenhand.columns.rule_text import as_value, parse_comparisons
from evenhand.columns.values import is_single, kind_of, missing, moments, unpacked
from evenhand.tables import column_of


@dataclass(frozen=True, repr=False)
class GroupRule:
    """Group of rows that meet every one of some conditions on columns.

    The text of a rule defines its rows: a value is compared with the number that is printed.

    Parameters
    ----------
    conditions : tuple of Condition
        Conditions that all must be true; at least one.

    Notes
    -----
    A missing value meets no comparison except `missing` and `!=`: `job != cook` selects all rows
    that `job = cook` does not. A condition that prints `(or missing)` selects missing values, too.
    Dates are compared in the local time of their zone.

    Examples
    --------
    >>> table = pd.DataFrame({"bmi": [0.01, 0.05, 0.07], "sex": [2, 2, 1]})
    >>> rule = GroupRule.parse("bmi > 0.03 and sex = 2", table.columns)
    >>> rule.name, rule.mask(table).tolist()
    ('bmi > 0.03 and sex = 2', [False, True, False])
    """

    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        if not self.conditions:
            raise InputError("a rule has no conditions; give at least one")
        for group in self.comparisons:
            if group.column is None or group.operator is None:
                raise InputError(
                    f"the group {group.name!r} is a mask without a rule, which cannot be applied to"
                    " other rows; pass its mask, or a rule on columns"
                )

    @classmethod
    def of(cls, *groups: Group) -> Self:
        """Return the rule of one group, or of the intersection of several.

        Raises InputError if a group is a mask, which has no rule.
        """
        return cls(tuple(Condition((group,)) for group in groups))

    @classmethod
    def parse(cls, text: str, columns: Iterable[Any], *, source: str = "the table") -> Self:
        """Read a rule such as `bmi > 0.03 and sex = 2`.

        Parameters
        ----------
        text : str
            Comparisons of columns with values, joined by `and`. Operators are `=`, `!=`, `<`, `<=`,
            `>`, `>=`, `is`, `is not`, `missing`, `is missing` and `is not missing`; a comparison
            may end with `(or missing)`. A value with ` and ` and an operator needs double quotes.
        columns : iterable of str
            Columns of the table; their names may contain spaces and the word `and`.
        source : str, default "the table"
            Name of the table, for messages.

        Raises
        ------
        InputError
            If the text is not a rule on these columns.
        """
        parsed = parse_comparisons(text, [str(column) for column in columns], source)
        return cls(tuple(Condition((group,), or_missing) for group, or_missing in parsed))

    @property
    def name(self) -> str:
        """The rule as text, which `parse` reads."""
        return " and ".join(_text(condition) for condition in self.conditions)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def comparisons(self) -> list[Group]:
        """The comparisons of all conditions."""
        return [group for condition in self.conditions for group in condition.comparisons]

    @property
    def columns(self) -> list[str]:
        """Columns that the rule reads, each once."""
        return list(dict.fromkeys(str(group.column) for group in self.comparisons))

    def mask(self, table: Any, *, source: str = "X") -> Mask:
        """Return the rows that meet the rule.

        Parameters
        ----------
        table : DataFrame of any library, or array-like of shape (n, p)
            Rows; the columns of an array are named x0, x1, ...
        source : str, default "X"
            Name of the table, for messages.

        Returns
        -------
        ndarray of bool, shape (n,)

        Raises
        ------
        InputError
            If a column is missing or cannot be compared with the value of the rule.
        """
        rows = as_table(table, name=source)
        inside = np.ones(len(rows), dtype=bool)
        for condition in self.conditions:
            inside &= _meets(condition, rows, source)
        return inside

    def to_state(self) -> list[dict[str, Any]]:
        """Return the rule as JSON values."""
        return [
            {
                "comparisons": [
                    {"column": group.column, "operator": group.operator, "value": group.value}
                    for group in condition.comparisons
                ],
                "or_missing": condition.or_missing,
            }
            for condition in self.conditions
        ]

    @classmethod
    def from_state(cls, state: Sequence[Mapping[str, Any]]) -> Self:
        """Rebuild a rule from the output of `to_state`; InputError if it is anything else."""
        # states come from files, which may be damaged or forged
        try:
            conditions = tuple(
                Condition(tuple(map(_comparison, one["comparisons"])), bool(one["or_missing"]))
                for one in state
            )
        except (KeyError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"state is not the output of GroupRule.to_state ({reason})") from error
        return cls(conditions)


def _comparison(state: Mapping[str, Any]) -> Group:
    column, operator, value = (state[key] for key in ("column", "operator", "value"))
    has_value = operator not in ("missing", "present")
    if operator not in get_args(Operator) or has_value != (value is not None):
        raise ValueError(f"operator {operator!r} with value {value!r}")
    return Group(str(column), operator, None if value is None else str(value))


def _text(condition: Condition) -> str:
    """Return a condition as text that can be parsed."""
    texts = [
        group.name
        if group.value is None
        else f"{group.column} {group.operator} {as_value(group.value)}"
        for group in condition.comparisons
    ]
    # missing values must meet both ends of a range
    ending = " (or missing)" if condition.or_missing else ""
    return " and ".join(f"{text}{ending}" for text in texts)


def _meets(condition: Condition, rows: pd.DataFrame, source: str) -> Mask:
    """Return the rows that meet every comparison of a condition."""
    inside = np.ones(len(rows), dtype=bool)
    for group in condition.comparisons:
        values = column_of(rows, str(group.column), source)
        is_missing = missing(values)
        found = is_missing.copy() if condition.or_missing else np.zeros(len(rows), dtype=bool)
        if group.value is None:
            found |= is_missing if group.operator == "missing" else ~is_missing
        elif group.operator in ("=", "!="):
            equal = _equal(values, group.value, f"{source}: column {group.column!r}")
            found |= equal if group.operator == "=" else ~equal
        else:
            present = unpacked(values)[~is_missing]
            found[~is_missing] |= _ordered(present, group, source)
        inside &= found
    return inside


def _ordered(present: pd.Series[Any], group: Group, source: str) -> Mask:
    """Compare non-missing numbers or dates with the value of `<`, `<=`, `>` or `>=`."""
    if present.empty:
        return np.zeros(0, dtype=bool)
    kind = kind_of(present)
    if kind not in ("number", "date"):
        place = f"{source}: column {group.column!r}"
        rule = f"contain numbers or dates to be compared by {group.operator}"
        remedy = "use = or !=, or convert the column, such as with pandas.to_datetime"
        raise bad_input(place, rule, f"values of kind {kind!r}", remedy)
    if kind == "date" and present.dtype.kind != "M":
        present = pd.Series(moments(present))
    text = str(group.value)
    try:
        _check_ordered(text, kind)
        at_most = at_or_below(present, text, learned_single=not _is_single_text(text, kind))
        # values equal to the number are on both sides of < and <=
        equal = _equal(present, text, source)
    except ValueError as error:
        what = "a date such as 2020-01-31" if kind == "date" else "a number"
        rule = f"compare column {group.column!r} with {what}"
        raise bad_input("the rule", rule, repr(text)) from error
    sides: dict[str | None, Mask] = {
        "<=": at_most | equal,
        ">": ~(at_most | equal),
        "<": at_most & ~equal,
        ">=": ~at_most | equal,
    }
    return sides[group.operator]


def _check_ordered(text: str, kind: str) -> None:
    """Raise ValueError for a value that has no place among numbers or dates."""
    if kind == "date":
        # numpy reads 20200131 as a year
        is_known = not np.isnat(np.datetime64(text)) and (not text.isdigit() or len(text) == 4)
    else:
        is_known = not np.isnan(float(text))
    if not is_known:
        raise ValueError(text)


def _is_single_text(text: str, kind: str) -> bool:
    """Whether a number is the shortest text of a float of 32 bits.

    A float of 32 bits that prints as the number is then equal to it.
    """
    if kind != "number":
        return False
    with np.errstate(over="ignore"):
        return float(str(np.float32(text))) == float(text)


def _equal(values: pd.Series[Any], text: str, place: str) -> Mask:
    """Return the rows whose value prints as the text, or is the same number, flag or date."""
    codes, distinct = coded(values, place)
    kept = np.asarray(distinct) if getattr(distinct.dtype, "kind", "") == "f" else distinct
    kind = kind_of(unpacked(values))
    # code -1, a missing value, selects the last entry
    same = np.zeros(len(kept) + 1, dtype=bool)
    for i in _candidates(kept, text):
        same[i] = label(kept[i]) == text or _is_same(kept[i], text, kind)
    return same[codes]


def _candidates(distinct: Any, text: str) -> Iterable[int]:
    """Return the numbers of the values that may print as a text: of floats those near it."""
    try:
        number = float(text) if getattr(distinct.dtype, "kind", "") == "f" else np.nan
    except ValueError:
        return ()
    if not np.isfinite(number):
        return range(len(distinct))
    # floats of 16 bits have three digits
    return np.flatnonzero(np.abs(distinct - number) <= 0.01 * abs(number))


def _is_same(value: Any, text: str, kind: str) -> bool:
    try:
        if kind == "boolean":
            return str(value).lower() == text.lower()
        if kind == "date":
            return pd.Timestamp(value).tz_localize(None) == pd.Timestamp(text)
        if kind != "number" or abs(float(value)) >= EXACT_WHOLE:
            return False
        number = float(text)
        if is_single(pd.Series([value])):
            return bool(np.float32(number) == value) and _is_single_text(text, kind)
        return float(value) == number
    except ValueError:
        return False
