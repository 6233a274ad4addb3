"""Warnings about values of a row that did not occur in training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evenhand._format import and_more, percent
from evenhand.columns import Column, Tally, UnseenValues, level
from evenhand.service.cells import Value

LISTED_LEVELS = 5
"""Largest number of training levels listed in a warning."""


class UnseenFeatures:
    """Finder of unseen values in single rows, by the rules of `UnseenValues` for one row.

    Dates are left out: those of served rows are normally after the dates of training.

    Parameters
    ----------
    columns : sequence of Column
        Columns of the training table.

    Examples
    --------
    >>> age = Column("age", "number", n=1000, least=20.0, greatest=60.0)
    >>> ward = Column("ward", "category", n=1000, levels=("east", "west"))
    >>> for warning in UnseenFeatures([age, ward]).warnings({"age": 710.0, "ward": "north"}):
    ...     print(warning)
    column 'age': the number lies above the range of training, 20 to 60; check the units
    column 'ward': the category never occurred in training, which had 'east', 'west'
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        known = [column for column in columns if column.n and column.kind not in ("date", "other")]
        # missing values and all values of a column without a range fail both comparisons
        self._numbers = [
            (
                column,
                math.inf if column.least is None else column.least,
                -math.inf if column.greatest is None else column.greatest,
            )
            for column in known
            if column.kind == "number"
        ]
        self._levels = [column for column in known if column.kind != "number"]

    def warnings(self, values: Mapping[str, Value]) -> list[str]:
        """Return a sentence for each unusual value, without the value, which may be secret.

        Parameters
        ----------
        values : dict of str to Value
            Value of each column, as in `Features`.
        """
        found = []
        for column, least, greatest in self._numbers:
            number = values[column.name]
            if number is None or not least <= float(number) <= greatest:
                found.append((column, number))
        for column in self._levels:
            shown = _level(values[column.name])
            if shown is None or shown not in column.known_levels:
                found.append((column, shown))
        return [
            f"column {column.name!r}: {_sentence(column, value)}"
            for column, value in found
            if _is_unusual(column, value)
        ]


def _level(value: Value) -> str | None:
    # empty text is missing, as in training
    return None if value is None or value == "" else level(value)


def _is_unusual(column: Column, value: Value) -> bool:
    """Whether a value, missing or unseen, is improbable for a row distributed as in training."""
    if value is None:
        tally = Tally(1, 1, 0)
    elif column.kind == "number":
        tally = Tally(1, 0, 1, None, float(value), float(value))
    elif column.levels is None:  # too many to be stored
        return False
    else:
        tally = Tally(1, 0, 1, str(value))
    return bool(UnseenValues((column,), (tally,)).records())


def _sentence(column: Column, value: Value) -> str:
    noun = {"number": "number", "category": "category"}.get(column.kind, "value")
    if value is None:
        share = column.n_missing / column.n
        usual = f"in training {percent(share)} were" if share else "training had no missing ones"
        return f"the {noun} is missing; {usual}"
    if column.kind != "number":
        levels = column.levels or ()
        listed = and_more([*map(repr, levels)], LISTED_LEVELS) or "none"
        return f"the {noun} never occurred in training, which had {listed}"
    if column.least is None or column.greatest is None:
        return f"the {noun} is present; in training all were missing"
    side = "below" if float(value) < column.least else "above"
    ends = f"{column.least:.6g} to {column.greatest:.6g}"
    return f"the {noun} lies {side} the range of training, {ends}; check the units"
