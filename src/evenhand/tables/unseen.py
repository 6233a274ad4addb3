"""Counts of values that did not occur in a model's training table, per column."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._format import and_more, percent
from evenhand._validate import Floats
from evenhand.tables.schema import Column, Schema
from evenhand.tables.values import Kind, as_numbers, as_pandas, factorized, few_levels, missing

SURPRISING = 1e-3
"""Probability, for rows distributed as in training, below which a count is reported."""

MOST_SHOWN = 5
"""Largest number of training levels listed in a warning."""


class UnseenValuesWarning(UserWarning):
    """A column contains values that did not occur in the model's training table."""


@dataclass(frozen=True)
class Tally:
    """Count of unseen values in a column; counts of disjoint rows can be added.

    Parameters
    ----------
    n : int
        Number of values.
    n_missing : int
        Number of missing values.
    n_unseen : int
        Number of values with a level that is new, or outside the range of training.
    example : str or None
        First unseen level in text order.
    least, greatest : float
        Range of the numbers, or of the dates in days since 1970; infinite if there are none.
    """

    n: int
    n_missing: int
    n_unseen: int
    example: str | None = None
    least: float = np.inf
    greatest: float = -np.inf

    @classmethod
    def of(cls, column: Column, values: pd.Series[Any]) -> Self:
        """Count the values of a column that has been read by its schema."""
        n = len(values)
        known = column.known_levels
        levels_of_few = few_levels(values) if known else None
        if levels_of_few is not None and levels_of_few <= known:
            return cls(n, 0, 0)
        n_missing = int(missing(values).sum())
        if column.kind in ("number", "date"):
            found = as_numbers(values, column.kind)
            found = found[np.isfinite(found)]
            if found.size == 0 or column.least is None or column.greatest is None:
                return cls(n, n_missing, int(found.size) if column.least is None else 0)
            outside = int(((found < column.least) | (found > column.greatest)).sum())
            return cls(n, n_missing, outside, None, float(found.min()), float(found.max()))
        if column.levels is None or column.kind == "other":
            return cls(n, n_missing, 0)
        codes, levels = factorized(values, f"column {column.name!r}")
        is_new = np.array([*(shown not in known for shown in levels), False], dtype=np.bool_)[codes]
        example = min((shown for shown in levels if shown not in known), default=None)
        return cls(n, n_missing, int(is_new.sum()), example)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.n + other.n,
            self.n_missing + other.n_missing,
            self.n_unseen + other.n_unseen,
            min((one.example for one in (self, other) if one.example is not None), default=None),
            min(self.least, other.least),
            max(self.greatest, other.greatest),
        )


@dataclass(frozen=True)
class UnseenValues:
    """Unseen values by column; counts of disjoint rows can be added.

    Examples
    --------
    >>> schema = Schema.learn(pd.DataFrame({"sex": ["f", "m"], "age": [30.0, 60.0]}))
    >>> found = UnseenValues.of(schema, pd.DataFrame({"sex": ["F", "m"], "age": [31.0, 45000.0]}))
    >>> for line in found.lines():
    ...     print(line)
    column 'sex': 1 of 2 values never occurred in training, such as 'F'; training had 'f', 'm'
    column 'age': 1 of 2 values lie outside the range of training, 30 to 60, up to 45000; check ...
    """

    columns: tuple[Column, ...] = ()
    tallies: tuple[Tally, ...] = ()

    @classmethod
    def of(cls, schema: Schema, X: Any) -> Self:
        """Count unseen values in the columns that a table, read by the schema, shares with it."""
        table = as_pandas(X)
        # names may be numbers, as in a table made from an array
        values = {str(name): column for name, column in table.items()}
        # without training rows only the kind of a column is known, so no value is unseen
        columns = tuple(column for column in schema.columns if column.n and column.name in values)
        return cls(columns, tuple(Tally.of(column, values[column.name]) for column in columns))

    def __add__(self, other: UnseenValues) -> UnseenValues:
        pairs = zip(self.tallies, other.tallies, strict=True)
        return UnseenValues(self.columns, tuple(one + another for one, another in pairs))

    def lines(self) -> list[str]:
        """Return one or two messages for each column with unusual values."""
        found = []
        for column, tally in zip(self.columns, self.tallies, strict=True):
            if _has_unusual_gaps(column, tally):
                found.append(f"column {column.name!r}: {_missing_line(column, tally)}")
            if _has_unusual_values(column, tally):
                found.append(f"column {column.name!r}: {_unseen_line(column, tally)}")
        return found

    def records(self) -> list[dict[str, Any]]:
        """Return the counts of each column with unusual values, as JSON values."""
        return [
            {
                "column": column.name,
                "kind": column.kind,
                "n": tally.n,
                "n_missing": tally.n_missing,
                "n_unseen": tally.n_unseen,
                "example": tally.example,
                "least": shown(tally.least, column.kind),
                "greatest": shown(tally.greatest, column.kind),
                "training_least": shown(column.least, column.kind),
                "training_greatest": shown(column.greatest, column.kind),
                "training_missing": column.n_missing / column.n,
            }
            for column, tally in zip(self.columns, self.tallies, strict=True)
            if _has_unusual_gaps(column, tally) or _has_unusual_values(column, tally)
        ]


def shown(value: float | None, kind: Kind) -> float | str | None:
    """Return an end of a range as a number, or as an ISO date."""
    if value is None or not np.isfinite(value):
        return None
    return value if kind == "number" else str(np.datetime64(int(np.floor(value)), "D"))


def _has_unusual_gaps(column: Column, tally: Tally) -> bool:
    """Whether so many missing values are improbable for rows distributed as in training."""
    if tally.n_missing == 0 or column.n_missing == 0:
        return tally.n_missing > 0
    share = column.n_missing / column.n
    return tally.n_missing == tally.n and share**tally.n < SURPRISING


def _has_unusual_values(column: Column, tally: Tally) -> bool:
    """Whether so many unseen values, or one so far out, are improbable under the training data."""
    if column.least is None or column.greatest is None:  # levels, or all missing in training
        return tally.n_unseen > 0
    if tally.n_unseen == 0:
        return False
    n = column.n - column.n_missing
    # two ways to be unusual: many values outside the range, or a single one far outside
    as_far = _probability_as_far(column.least, column.greatest, tally, n)
    return min(_probability_outside(tally, n), as_far) < SURPRISING


def _missing_line(column: Column, tally: Tally) -> str:
    if column.n_missing == 0:
        count = f"{tally.n_missing:,} of {tally.n:,} values are missing"
        return f"{count}; training had no missing ones"
    share = column.n_missing / column.n
    return f"all {tally.n:,} values are missing; in training {percent(share)} were"


def _unseen_line(column: Column, tally: Tally) -> str:
    count = f"{tally.n_unseen:,} of {tally.n:,} values"
    if column.kind in ("category", "boolean"):
        levels = column.levels or ()
        listed = and_more([*map(repr, levels)], MOST_SHOWN) or "none"
        example = f"such as {tally.example!r}"
        return f"{count} never occurred in training, {example}; training had {listed}"
    if column.least is None or column.greatest is None:
        return f"{count} are present; in training all were missing"
    ends = " to ".join(_text(end, column.kind) for end in (column.least, column.greatest))
    low = f"down to {_text(tally.least, column.kind)}" if tally.least < column.least else ""
    high = f"up to {_text(tally.greatest, column.kind)}" if tally.greatest > column.greatest else ""
    reach = " and ".join(filter(None, (low, high)))
    return f"{count} lie outside the range of training, {ends}, {reach}; check the units"


def _probability_outside(tally: Tally, n: int) -> float:
    """Probability of so many values outside the range of n others from the same distribution."""
    from scipy.stats import betabinom  # slow to import

    # for any distribution, the probability outside the range of n values is Beta(2, n - 1)
    present = tally.n - tally.n_missing
    return float(betabinom.sf(tally.n_unseen - 1, present, 2, n - 1)) if n > 1 else 1.0


def _probability_as_far(least: float, greatest: float, tally: Tally, n: int) -> float:
    """Bound the probability of a value so far outside the range of n others.

    Tails are assumed to decrease as 1 / distance^2 or faster: each value is outside with
    probability at most 2 / n, and given that, twice as far out with probability at most 1 / 4.
    """
    width = greatest - least
    present = tally.n - tally.n_missing
    if width == 0:
        return 0.0  # a constant column has no scale, and a new value is never expected
    distance = max(least - tally.least, tally.greatest - greatest) / width
    # not squared, as the square of a large float is an error
    return 2 * present / n / (1 + distance) / (1 + distance)


def _text(value: float, kind: Kind) -> str:
    return f"{value:.6g}" if kind == "number" else str(shown(value, kind))


_REPORTED: ContextVar[bool] = ContextVar("reports_unseen", default=True)


@contextmanager
def unreported() -> Iterator[None]:
    """Suppress warnings about unseen values, for inner models and rows counted elsewhere."""
    token = _REPORTED.set(False)
    try:
        yield
    finally:
        _REPORTED.reset(token)


def warn_unseen(schema: Schema, X: Any) -> None:
    """Warn about unseen values, attributed to the code that called this package."""
    if _REPORTED.get():
        for line in UnseenValues.of(schema, X).lines():
            warnings.warn(line, UnseenValuesWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """Return the stack level, seen from the caller, of the first frame outside this package."""
    level = 0
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("evenhand."):
        level = level + 1
        frame = frame.f_back
    return level + 1


# --- exact copies of rows in a table

MOST_COPIES = 0.01
"""Share of repeated rows up to which nothing is reported."""

LEAST_DIFFERENT = 10
"""Fewest rows with equal features whose outcomes would differ if features did not matter."""

MOST_DIFFERENT = 0.1
"""Largest share of these that may differ: different people with equal features do differ."""


def copies_in_words(features: pd.DataFrame, y: Floats) -> str | None:
    """Return a warning if rows repeat other rows, features and outcome; None if none do.

    Rows of a table of few values agree honestly. Repeated rows are copies if one column nearly
    identifies the distinct rows, and if the outcomes of rows with equal features are equal.

    Parameters
    ----------
    features : DataFrame
        Features, shape (n, p).
    y : ndarray of shape (n,)
        Outcomes.

    Examples
    --------
    >>> x = pd.DataFrame({"x": np.arange(200.0) % 50})
    >>> copies_in_words(x, x["x"].to_numpy() ** 2)
    '75.0% of 200 rows are exact copies of other rows, with equal features and outcomes: ...'
    >>> copies_in_words(x, np.arange(200.0))
    """
    hashes = [_hash(features.iloc[:, [i]]) for i in range(features.shape[1])]
    rows = pd.DataFrame({"x": _hash(features) if hashes else 0, "y": y})
    is_copy = rows.duplicated().to_numpy()
    n = int(is_copy.sum())
    if n <= MOST_COPIES * y.size:
        return None
    n_distinct = [np.unique(column[~is_copy]).size for column in (y, *hashes)]
    if max(n_distinct) < (y.size - n) / 2:
        return None
    shared = rows[rows.duplicated("x", keep=False)]
    shuffled = shared.assign(y=np.random.default_rng(0).permutation(shared["y"]))
    n_different, by_chance = (
        len(one.drop_duplicates()) - one["x"].nunique() for one in (shared, shuffled)
    )
    if by_chance < LEAST_DIFFERENT or n_different > MOST_DIFFERENT * by_chance:
        return None
    return (
        f"{percent(n / y.size)} of {y.size:,} rows are exact copies of other rows, with equal"
        " features and outcomes: where people are counted, these are rows, and tests, intervals and"
        " guarantees, which assume independent rows, are wrong; keep one row of each person"
    )


def _hash(table: pd.DataFrame) -> NDArray[Any]:
    """Return a hash of each row; cells may be of any type."""
    return pd.util.hash_pandas_object(table, index=False, categorize=False).to_numpy()
