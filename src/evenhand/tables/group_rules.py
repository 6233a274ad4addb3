"""Rules that define groups of rows, and their text: conjunctions of conditions on columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from evenhand._kinds import OutcomeKind
from evenhand._validate import (
    Floats,
    InputError,
    Mask,
    bad_input,
    check_choice,
    check_column,
    read_state,
    typed_fields,
)
from evenhand.tables.groups import Condition, Group, Operator, codes_of, comparable, point_of
from evenhand.tables.values import as_json, as_table, column_of, kind_of, missing, unpacked

if TYPE_CHECKING:
    from evenhand.forecast import Forecast

# --- text of rules on columns: parsing against the known columns of a table, and quoting

OPERATORS: dict[str, Operator] = {
    "is not missing": "present",
    "is missing": "missing",
    "present": "present",
    "missing": "missing",
    "is not": "!=",
    "is": "=",
    "!=": "!=",
    "<=": "<=",
    ">=": ">=",
    "==": "=",
    "=": "=",
    "<": "<",
    ">": ">",
}
"""Operators as text. An operator that begins with another one comes before it."""

QUOTED = r'"(?:[^"\\]|\\.)*"'

ORDERS = {"<": lt, "<=": le, ">": gt, ">=": ge}

OR_MISSING = "(or missing)"

LOOKS_LIKE_COMPARISON = re.compile(r"[<>=]|\bis\b|\bmissing\b|\bpresent\b")

AND = re.compile(" and ")

JOINS = re.compile(r"\s(?:and|or)\s", re.IGNORECASE)
"""Words between comparisons. Of these only "and" is one of the language: "or" is refused."""

MOST_CONDITIONS = 100
"""Most conditions of a rule, which are parsed one within another."""


def _pattern(columns: Sequence[str]) -> re.Pattern[str]:
    """Return the pattern of one comparison, up to the next one or to the end of the text."""
    # longer names first: the column "age and sex" takes precedence over the column "age"
    ordered = sorted(columns, key=len, reverse=True)
    known = "|".join(map(re.escape, ordered)) or "(?!)"
    texts = list(OPERATORS)
    # operators without a value, words, which need spaces around them, and signs
    alone, words, signs = ("|".join(part) for part in (texts[:4], texts[4:6], texts[6:]))
    value = rf"{QUOTED}|(?!{QUOTED})\S.*?"
    after = rf" and \s*(?=(?:{known})(?:\s+(?:{alone}|{words})(?!\S)|\s*(?:{signs})))"
    return re.compile(
        rf"\s*(?P<column>{known})(?:\s+(?P<alone>{alone})"
        rf"|(?:\s+(?P<word>{words})(?!\S)|\s*(?P<sign>{signs})(?![<>=]))\s*(?P<value>{value}))"
        rf"\s*(?P<missing>{re.escape(OR_MISSING)})?\s*(?:\Z|{after})",
        re.DOTALL,
    )


def _is_read_well(comparison: re.Match[str]) -> bool:
    """Whether a value contains no comparison, such as one of a column whose name is misspelled."""
    value = comparison["value"]
    if value is None or re.fullmatch(QUOTED, value):
        return True
    # an order compares numbers and dates, which are checked with the column
    is_equality = OPERATORS[comparison["sign"] or comparison["word"]] in ("=", "!=")
    others = (JOINS if is_equality else AND).split(value)[1:]
    is_cut_off = "and" in (value.split(" ")[0], value.split(" ")[-1])
    return not (is_cut_off or any(map(LOOKS_LIKE_COMPARISON.search, others)))


def as_value(value: str) -> str:
    """Return a value as `GroupRule.parse` reads it: in quotes where it needs them.

    Examples
    --------
    >>> print(as_value("cook"), as_value("a and b = c"))
    cook "a and b = c"
    """
    is_trimmed = value == value.strip() != "" and not value.endswith(OR_MISSING)
    if is_trimmed and '"' not in value and not JOINS.search(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _error(text: str, columns: Sequence[str], source: str) -> InputError:
    """Return the error of a text that cannot be parsed, about its first wrong comparison."""
    for part in text.split(" and "):
        found = re.match(r"\s*(.+?)\s*(?:[<>=!]|\bis\b|\bmissing\b|\bpresent\b)", part)
        if found and found[1] not in columns:
            try:
                check_column(found[1], columns, source)
            except InputError as error:
                return error
    rule = "be comparisons such as 'bmi > 0.03 and sex = 2'"
    remedy = 'join them by "and", and put values that contain operators in double quotes'
    return bad_input("a rule", rule, repr(text), remedy)


# --- rules that define groups of rows: conjunctions of conditions on the columns of a table


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
            if (group.value is None) != (group.operator in ("missing", "present")):
                raise InputError(f"the comparison {group.name!r} has a wrong number of values")

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
        if text.count(" and ") >= MOST_CONDITIONS:
            got = f"{text.count(' and ') + 1:,}"
            raise bad_input("a rule", f"have at most {MOST_CONDITIONS} conditions", got)
        names, found, at = [str(column) for column in columns], list[Condition](), 0
        pattern = _pattern(names)
        while at < len(text) or not found:
            match = pattern.match(text, at)
            if match is None or not _is_read_well(match):
                raise _error(text, names, source)
            value, at = match["value"], match.end()
            if value is not None and re.fullmatch(QUOTED, value):
                value = re.sub(r"\\(.)", r"\1", value[1:-1])
            operator = OPERATORS[match["alone"] or match["sign"] or match["word"]]
            comparison = Group(match["column"], operator, value)
            found.append(Condition((comparison,), match["missing"] is not None))
        return cls(tuple(found))

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
        return [as_json(condition) for condition in self.conditions]

    @classmethod
    def from_state(cls, state: Sequence[Mapping[str, Any]]) -> Self:
        """Rebuild a rule from the output of `to_state`; InputError if it is anything else."""
        with read_state("GroupRule.to_state"):
            return cls(tuple(_condition(**one) for one in state))


def _condition(comparisons: Sequence[Mapping[str, Any]], or_missing: bool) -> Condition:
    """Rebuild a condition from the output of `GroupRule.to_state`."""
    groups = (Group(**typed_fields(Group, group)) for group in comparisons)
    return Condition(tuple(groups), bool(or_missing))


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
        place = f"{source}: column {group.column!r}"
        if group.value is None:
            found |= is_missing if group.operator == "missing" else ~is_missing
        elif group.operator in ("=", "!="):
            equal = codes_of(values, [group.value], place) == 0
            found |= equal if group.operator == "=" else ~equal
        else:
            found[~is_missing] |= _ordered(values[~is_missing], group, place)
        inside &= found
    return inside


def _ordered(present: pd.Series[Any], group: Group, place: str) -> Mask:
    """Compare non-missing numbers or dates with the value of `<`, `<=`, `>` or `>=`."""
    if present.empty:
        return np.zeros(0, dtype=bool)
    kind = kind_of(unpacked(present))
    if kind not in ("number", "date"):
        rule = f"contain numbers or dates to be compared by {group.operator}"
        remedy = "use = or !=, or convert the column, such as with pandas.to_datetime"
        raise bad_input(place, rule, f"values of kind {kind!r}", remedy)
    text = str(group.value)
    try:
        values = comparable(present)
        point = point_of(text, values)
    except ValueError as error:
        what = "a date such as 2020-01-31" if kind == "date" else "a number"
        rule = f"compare column {group.column!r} with {what}"
        raise bad_input("the rule", rule, repr(text)) from error
    return np.asarray(ORDERS[str(group.operator)](values, point))


# --- values of a person's own forecast, which rules may name as columns


def forecast_values(forecast: Forecast, names: Iterable[str]) -> pd.DataFrame:
    """Return values of each person's own forecast, on average over several draws.

    Parameters
    ----------
    forecast : Forecast
        Forecasts of n people.
    names : iterable of str
        Names of `OWN_VALUES`. The mean is the median where it is not finite, and the width of a
        forecast with an atom at the end of its range is that of its other part.

    Returns
    -------
    DataFrame of n rows
        One column per name, in units of the outcome or probabilities from 0 to 1.

    Raises
    ------
    InputError
        If a name is another, or is a value of forecasts of another kind.

    Examples
    --------
    >>> from evenhand import Forecast
    >>> forecast = Forecast.from_normal([3.0], [1.0])
    >>> forecast_values(forecast, ["predicted mean", "80% width"]).round(2).to_dict("records")
    [{'predicted mean': 3.0, '80% width': 2.56}]
    """
    wanted = {name: OWN_VALUES[check_choice("name", name, tuple(OWN_VALUES))] for name in names}
    blocks = [
        {name: value(part).reshape(len(part), -1).mean(axis=-1) for name, value in wanted.items()}
        for _, part in forecast.blocks()
    ]
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in wanted}
    return pd.DataFrame(columns, index=range(len(forecast)))


def _event(forecast: Forecast, name: str, kind: OutcomeKind, end: str | None = None) -> Floats:
    """Return the probability of an event that forecasts of one kind have."""
    if (forecast.outcome_kind, forecast.atom_end) != (kind, end):
        raise InputError(
            f"a group is defined by {name!r}, which forecasts of kind"
            f" {str(forecast.outcome_kind)!r} do not have; define it by another of their values"
        )
    found = forecast.event_probability()
    return 1 - found if end == "low" else found


def _mean(forecast: Forecast) -> Floats:
    mean = forecast.mean()
    is_finite = np.isfinite(mean)
    return mean if is_finite.all() else np.where(is_finite, mean, forecast.ppf(0.5))


def _width(forecast: Forecast) -> Floats:
    part = forecast if forecast.atom_end is None else forecast.positive_part()
    low, high = part.interval(0.8)
    return high - low


OWN_VALUES: dict[str, Callable[[Forecast], Floats]] = {
    "predicted probability": lambda one: _event(one, "predicted probability", OutcomeKind.BINARY),
    "predicted mean": _mean,
    "predicted median": lambda one: one.ppf(0.5),
    "80% width": _width,
    "chance of zero": lambda one: _event(one, "chance of zero", OutcomeKind.HURDLE, "low"),
    "event by horizon": lambda one: _event(one, "event by horizon", OutcomeKind.HURDLE, "high"),
}
"""Functions for the values of forecasts, shape of the batch, by names that rules reserve."""
