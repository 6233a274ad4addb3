"""Rows of features as a model reads them, with a hash that depends on their values only."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import and_more, percent
from evenhand._validate import AnyPath, Floats, InputError, bad_input, did_you_mean, is_container
from evenhand.decisions import BayesDecision
from evenhand.distributions import (
    Distribution,
    Hurdle,
    OutcomeKind,
    Randomized,
    as_hurdle,
    to_records,
)
from evenhand.forecast import Forecast
from evenhand.forecasters import Forecaster
from evenhand.links import Link
from evenhand.service.log import digest_of, first_line
from evenhand.store import foreign_parts, load_with_hash, pack
from evenhand.tables import (
    Column,
    Schema,
    Tally,
    as_pandas,
    as_table,
    level,
    moments,
    refuse_repeated_names,
    unreported,
)

# --- values of one column of served rows, as JSON values and as arrays for a model

Value = float | bool | str | None
"""Value of a column as JSON: a number, whether true, text or an ISO date; None if missing."""

ODD: Any = object()
"""Stands for a value that only a whole column of pandas can read."""

DAY = re.compile("(1[7-9]|20|21)[0-9]{2}-[0-9]{2}-[0-9]{2}")
"""ISO dates within the range of all types of dates."""

EXACT = 2**53
"""Largest integer up to which floats represent all integers."""


class ColumnReader:
    """Reader of the values of a column of the training table."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self._kind = column.kind
        self._is_double = column.dtype == "object"
        self._place = f"column {column.name!r}"

    @cached_property
    def _codes(self) -> dict[str, int] | None:
        """Number of each category by its level, for columns of the type "category"."""
        categories = self.column.categories
        if categories is None:
            return None
        return {level(value): code for code, value in enumerate(categories)}

    @cached_property
    def _categories(self) -> pd.CategoricalDtype:
        return pd.CategoricalDtype(list(self.column.categories or ()))

    def value(self, given: Any) -> Value:
        """Return one value; InputError if it is not of the kind of the column."""
        found = self._plain(given)
        if found is not ODD:
            return found
        # pandas would change or refuse other types, such as large integers
        return self.values(pd.Series([given], dtype=object))[0]

    def values(self, given: pd.Series[Any]) -> list[Value]:
        """Return a whole column; messages name the row, from 1."""
        try:
            self._check_single(given)
            read = self.column.read(given, self._place)
        except InputError:
            raise
        except (TypeError, ValueError, ArithmeticError) as error:
            raise InputError(f"{self._place} cannot be read ({first_line(error)[:200]})") from error
        if self._kind == "number":
            found = read.to_numpy(dtype=float, na_value=np.nan).tolist()
            return [None if math.isnan(value) else value + 0.0 for value in found]
        if self._kind == "date":
            # in UTC, as ISO text with microseconds
            texts = np.datetime_as_string(moments(read), unit="us").tolist()
            return [None if text == "NaT" else text for text in texts]
        missing = read.isna().tolist()
        return [
            None if is_missing else self._single(value)
            for value, is_missing in zip(read.tolist(), missing, strict=True)
        ]

    def array(self, values: Sequence[Value]) -> Any:
        """Return values as an array in which the model need not convert them."""
        if self._kind == "number":
            return np.array(values, dtype=float)  # None becomes NaN
        if self._kind == "boolean" and None not in values:
            return np.array(values, dtype=bool)
        if self._kind == "date" and "," not in self.column.dtype:  # without a zone
            is_known = self.column.dtype.startswith("datetime64")
            stamps = np.array(values, dtype="datetime64[us]")  # None becomes NaT
            return stamps.astype(self.column.dtype) if is_known else stamps
        codes = self._codes
        if codes is not None and all(value is None or value in codes for value in values):
            numbers = np.array([-1 if value is None else codes[str(value)] for value in values])
            return pd.Categorical.from_codes(numbers, dtype=self._categories, validate=False)
        found = np.empty(len(values), dtype=object)
        found[:] = values
        if self._kind == "category" and self.column.dtype == "str":
            return pd.array(found, dtype=pd.StringDtype(na_value=np.nan))
        return found

    def example(self) -> Value:
        """Return a value within the range of training."""
        column = self.column
        if self._kind == "number":
            return column.least if column.n else 0.0
        if self._kind == "boolean":
            return False
        if self._kind == "date":
            return str(np.datetime64(round((column.least or 0.0) * 86_400_000_000), "us"))
        return column.levels[0] if column.levels else None

    def _plain(self, given: Any) -> Any:
        """Return a value of the common types without pandas; ODD for others."""
        # text of numbers of other types depends on their digits
        is_scalar = isinstance(given, np.number | np.bool_) and self._kind != "category"
        value = given.item() if is_scalar else given
        kind = type(value)
        if value is None or (kind is float and math.isnan(value)):
            return None
        if self._kind == "number":
            is_plain = self._is_double and kind in (int, float) and abs(value) <= EXACT
            return value + 0.0 if is_plain else ODD  # -0.0 is 0.0
        if self._kind == "boolean":
            return value if kind is bool else ODD
        if self._kind == "category" and kind in (str, int, float):
            return self._plain_level(value)
        return _day(value) if self._kind == "date" and kind is str else ODD

    def _plain_level(self, value: str | int | float) -> Any:
        text = level(value)
        if self._codes is None:
            return text if text and text.isascii() else ODD
        return text if text in self._codes else ODD

    def _single(self, value: Any) -> Value:
        """Return a value of a boolean, a category, or a column without a kind."""
        plain = value.item() if isinstance(value, np.generic) else value
        if self._kind == "category":
            return _text(level(plain), self._place)
        if self._kind == "boolean" or isinstance(plain, bool):
            return bool(plain)
        if isinstance(plain, int | float) and math.isfinite(plain):
            return float(plain)
        if not isinstance(plain, str):
            rule = "be text, a finite number, or true or false"
            raise bad_input(self._place, rule, f"{type(plain).__name__} {plain!r}"[:80])
        return _text(plain, self._place)

    def _check_single(self, values: pd.Series[Any]) -> None:
        if values.dtype != object:
            return
        for row, value in enumerate(values.tolist()):
            if is_container(value) or isinstance(value, tuple | bytes | bytearray | complex):
                place = f"{self._place}, row {row + 1}"
                raise bad_input(place, "be a single value", f"a {type(value).__name__}")


def _day(text: str) -> Any:
    """Return an ISO date without a time as a time; ODD for other text."""
    if DAY.fullmatch(text) is None:
        return ODD
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return ODD
    return f"{text}T00:00:00.000000"


def _text(text: str, place: str) -> str:
    """Return text that can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise bad_input(place, "be valid Unicode text", ascii(text)[:80]) from error
    return text


# --- rows of features


@dataclass(frozen=True)
class Features:
    """Features of one person, as the model reads them.

    Parameters
    ----------
    values : dict of str to Value
        Value of each column of the model.
    groups : dict of str to Value
        Value of each column that defines groups.
    sha256 : str
        SHA-256 of `values` as JSON with sorted keys: equal for 1, 1.0 and "1" in a column of
        numbers, in any order of columns.
    """

    values: dict[str, Value]
    groups: dict[str, Value]
    sha256: str


class FeatureReader:
    """Reader of the rows for a fitted forecaster, by the schema of its training table.

    Columns of groups that the model does not have are read as they are.
    """

    def __init__(self, model: Any, groups: Sequence[str] = ()) -> None:
        learned = getattr(model, "schema_", Schema())
        self._is_table = bool(learned.columns)
        if not self._is_table:
            n_columns = int(model.n_features_in_)
            learned = Schema(tuple(Column(f"x{j}", "number") for j in range(n_columns)))
        self._columns = learned.columns
        self.names = list(learned.names)
        # labels that are not text, for which scikit-learn stores no names
        has_names = hasattr(model, "feature_names_in_")
        labels: list[Hashable] = [
            name if has_names or not name.isdecimal() else int(name) for name in learned.names
        ]
        self._labels = pd.Index(labels)
        self._are_numbers = learned.are_numbers
        self.groups = tuple(dict.fromkeys(groups))
        others = tuple(Column(name, "other") for name in self.groups if name not in learned)
        self.schema = Schema((*learned.columns, *others))
        self._cells = {column.name: ColumnReader(column) for column in self.schema.columns}

    def read(self, row: Any, *, drop_others: bool = False) -> Features:
        """Read the row of one person: a mapping, a Series, or a table with one row.

        For a model that was trained on an array, it may also be a sequence of numbers.
        `drop_others` ignores columns that the model does not have. Raises InputError with the name
        of a column that is missing, unknown, or has a value of another kind.
        """
        given = self._given(row)
        if drop_others:
            given = {name: given[name] for name in self._cells if name in given}
        self._check_names(given)
        return self._features(
            {name: self._cells[name].value(value) for name, value in given.items()}
        )

    def read_all(self, X: Any) -> list[Features]:
        """Read the rows of a table or array; messages name column and row, from 1."""
        given = {str(name): values for name, values in as_table(X).items()}
        self._check_names(given)
        names = list(self.schema.names)
        read = [self._cells[name].values(given[name]) for name in names]
        return [
            self._features(dict(zip(names, row, strict=True))) for row in zip(*read, strict=True)
        ]

    def table(self, rows: Sequence[Features]) -> Any:
        """Return rows as the table or array that the model expects."""
        columns = [[row.values[column.name] for row in rows] for column in self._columns]
        if self._are_numbers or not self._is_table:
            array = np.array(columns, dtype=float).T  # None becomes NaN
            return pd.DataFrame(array, columns=self._labels) if self._is_table else array
        arrays = {
            i: self._cells[column.name].array(values)
            for i, (column, values) in enumerate(zip(self._columns, columns, strict=True))
        }
        table = pd.DataFrame(arrays, index=pd.RangeIndex(len(rows)), copy=False)
        table.columns = self._labels
        return table

    def example(self) -> Features:
        """Return a row within the ranges of training."""
        return self._features({name: cells.example() for name, cells in self._cells.items()})

    def _features(self, values: dict[str, Value]) -> Features:
        features = {column.name: values[column.name] for column in self._columns}
        return Features(features, {name: values[name] for name in self.groups}, digest_of(features))

    def _given(self, row: Any) -> Mapping[str, Any]:
        """Return the values of a row by the names of their columns, as text."""
        if type(row) is dict and all(type(name) is str for name in row):
            return row
        is_list = isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1)
        if is_list and not self._is_table:
            if len(row) != len(self._columns):
                raise bad_input("row", f"have {len(self._columns)} values", len(row))
            return dict(zip(self.names, row, strict=True))
        if isinstance(row, pd.Series):
            row = row.to_dict()
        found = as_pandas(row, "row")
        if isinstance(found, pd.DataFrame):
            if len(found) != 1:
                raise bad_input("row", "have one row", f"{len(found)} rows")
            refuse_repeated_names(found.columns, "row")
            return {str(name): values.iloc[0] for name, values in found.items()}
        if not isinstance(found, Mapping):
            raise bad_input("row", "be a mapping from column names to values", type(row).__name__)
        return {str(name): value for name, value in found.items()}

    def _check_names(self, given: Mapping[str, Any]) -> None:
        if given.keys() == self._cells.keys():
            return
        extra = [name for name in given if name not in self._cells]
        for name in self._cells:
            if name not in given:
                remedy = did_you_mean(name, extra) or "null stands for a missing value"
                raise InputError(f"the row has no column {name!r}; {remedy}")
        names = self.schema.names
        remedy = did_you_mean(extra[0], names) or f"the model has only {and_more(names)}"
        raise InputError(f"the row has an unknown column {extra[0][:80]!r}; {remedy}")


# --- warnings about values of a row that did not occur in training

LISTED_LEVELS = 5
"""Largest number of training levels listed in a warning."""


def unseen_values(columns: Sequence[Column], values: Mapping[str, Value]) -> list[str]:
    """Return a sentence for each unusual value of a row, by the rules of `UnseenValues` for one.

    Without the values, which may be secret, and without dates, which are normally after those of
    training.
    """
    known = [column for column in columns if column.n and column.kind not in ("date", "other")]
    known.sort(key=lambda column: column.kind != "number")
    found = ((column, _unusual(column, values[column.name])) for column in known)
    return [f"column {column.name!r}: the {why}" for column, why in found if why]


def _unusual(column: Column, value: Value) -> str:
    """Return why a value is improbable for a row distributed as in training; "" if it is not."""
    noun = column.kind if column.kind in ("number", "category") else "value"
    if value is not None and column.kind != "number":
        value = level(value) or None  # empty text is missing, as in training
    if value is None:
        tally = Tally(column, 1, n_missing=1)
        share = column.n_missing / column.n
        usual = f"in training {percent(share)} were" if share else "training had no missing ones"
        why = f"{noun} is missing; {usual}"
    elif column.kind == "number":
        number, (low, high) = float(value), column.ends
        if low <= number <= high:  # nearly always, and then without a distribution
            return ""
        tally = Tally(column, 1, 0, 1, None, number, number)
        side = "below" if number < low else "above"
        why = f"{noun} lies {side} the range of training, {low:.6g} to {high:.6g}; check the units"
        if low > high:
            why = f"{noun} is present; in training all were missing"
    elif column.levels is None or value in column.known_levels:  # too many to be stored, or seen
        return ""
    else:
        listed = and_more(map(repr, column.levels), LISTED_LEVELS) or "none"
        return f"{noun} never occurred in training, which had {listed}"
    return why if tally.lines() else ""


Decide = Callable[[Forecast], Sequence[Any]] | BayesDecision
"""Rule for actions: a function from a forecast to one action per row, or a `BayesDecision`."""


@dataclass(frozen=True)
class Forecasting:
    """A fitted forecaster with the reader of its rows, and what is served of its forecasts."""

    model: Any
    reader: FeatureReader
    levels: tuple[float, ...]
    decide: Decide | None = None

    def values(self, rows: Sequence[Features], r: ArrayLike) -> list[dict[str, Any]]:
        """Return the forecast of each row at its draw, as JSON values.

        `r` is None if the forecast does not depend on it. `record` is the deterministic
        distribution, and `link` and `alpha` are those around it, None if `record` is what is
        served. There are either `quantiles` by level or `probability`, and `mean` and `action`.
        """
        with unreported():  # a warning for each person would fill the log of a server
            forecast, mean = self.model.forecast_and_predict(self.reader.table(rows), r)
        base, link = inside_link(forecast.distribution)
        shared = _named(link)
        n = len(rows)
        is_event = forecast.outcome_kind is OutcomeKind.BINARY
        columns: dict[str, list[Any]] = {
            "r": [None] * n if forecast.r is None else np.broadcast_to(forecast.r, n).tolist(),
            "record": to_records(base),
            "quantiles": [{}] * n if is_event else self._quantiles(forecast),
            "mean": _finite(mean),
            "probability": _finite(forecast.event_probability()) if is_event else [None] * n,
            "action": [None] * n if self.decide is None else _actions(self.decide, forecast),
        }
        return [
            {name: column[row] for name, column in columns.items()} | shared for row in range(n)
        ]

    def _quantiles(self, forecast: Forecast) -> list[dict[str, float | None]]:
        names = [f"{level}" for level in self.levels]
        table = forecast.ppf(self.levels)
        return [dict(zip(names, _finite(row), strict=True)) for row in table]

    def settings(self) -> dict[str, Any]:
        """Return what all forecasts of the model have in common, as JSON values.

        That is the kind of outcome, the link, and the atom of amounts with one.
        """
        rows = [self.reader.example()]
        with unreported():
            forecast = self.model.forecast(self.reader.table(rows), [0.5])
        base, link = inside_link(forecast.distribution)
        atom = None
        if forecast.outcome_kind is OutcomeKind.HURDLE:
            hurdle = as_hurdle(base)
            atom = {"at": hurdle.at, "end": hurdle.end}
        return {"outcome": str(forecast.outcome_kind), **_named(link), "atom": atom}


def inside_link(distribution: Distribution) -> tuple[Distribution, Link | None]:
    """Return the distribution inside a link, and the link; None if there is no link.

    Of amounts with an atom, the link is around the continuous part.
    """
    if isinstance(distribution, Randomized):
        return distribution.base, distribution.link
    if isinstance(distribution, Hurdle) and isinstance(distribution.positive, Randomized):
        part = distribution.positive
        return Hurdle(distribution.chance, part.base, distribution.at, distribution.end), part.link
    return distribution, None


def _named(link: Link | None) -> dict[str, Any]:
    if link is None:
        return {"link": None, "alpha": None}
    return {"link": link.name, "alpha": link.alpha}


def _finite(values: Floats) -> list[float | None]:
    found = np.asarray(values, dtype=float).tolist()
    return [value if math.isfinite(value) else None for value in found]


def _actions(decide: Decide, forecast: Forecast) -> list[Any]:
    """Return one action per row; the log refuses what is no JSON value."""
    if isinstance(decide, BayesDecision):
        found = decide.decide(forecast).chosen.tolist()
    else:
        found = list(decide(forecast))
    if len(found) != len(forecast):
        rule = f"return one action per row ({len(forecast)})"
        raise bad_input("decide", rule, f"{len(found)} actions")
    return [one.item() if isinstance(one, np.generic) else one for one in found]


# --- loading of the model of a service, with its hash


class Loaded(NamedTuple):
    """Fitted forecaster, its hash, and the names of inner models that the hash does not cover."""

    forecaster: Forecaster
    sha256: str
    unstored: list[str]


def loaded(model: AnyPath | Forecaster | Loaded) -> Loaded:
    """Return a forecaster from its folder, or as given, with the hash that its folder would have.

    What is loaded already is returned as it is. Raises InputError for anything else.
    """
    if isinstance(model, Loaded):
        return model
    if isinstance(model, str | os.PathLike):
        forecaster, sha256 = load_with_hash(model)
        return Loaded(forecaster, sha256, [])
    if not isinstance(model, Forecaster):
        rule = "be a model folder or a fitted forecaster"
        raise bad_input("model", rule, type(model).__name__, "randomize(...) has one as .model")
    packed = pack(model)
    return Loaded(model, packed.sha256, [part["name"] for part in foreign_parts(packed.entry)])
