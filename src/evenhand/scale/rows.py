"""Rows of tables in parts: where their forecasts come from, and the people that they belong to."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats, InputError, Ints, about, check_column
from evenhand.distributions import OutcomeKind
from evenhand.draws import id_text
from evenhand.forecast import Forecast
from evenhand.forecast_columns import ForecastColumns, check_event_values
from evenhand.tables import Parts, Schema, unreported

# --- sources of forecasts: a forecaster, or columns of another model

SOURCES = ("r", "context", "key")
"""Columns, in forecasts written by evenhand, from which a draw can be reproduced."""

# no randomized forecast is calibrated in groups defined by them
SERVED = re.compile(r"r|context|key|served_mean|served_std|(q|survival_)[0-9.]+")
"""Names of columns that depend on the draw."""


@dataclass
class ModelSubject:
    """A fitted forecaster that was trained on a table."""

    forecaster: Any
    _kind: OutcomeKind | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def schema(self) -> Schema:
        """Schema of the training table."""
        schema = getattr(self.forecaster, "schema_", None)
        return schema if isinstance(schema, Schema) else Schema()

    def columns(self, present: Iterable[str], source: str) -> list[str]:
        """Return the columns that the forecaster was trained on."""
        names = list(getattr(self.forecaster, "feature_names_in_", []))
        if not names:
            raise InputError(
                "the model was trained on an array without column names; train it on a table"
            )
        known = [str(name) for name in present]
        for name in sorted(set(names).difference(known), key=names.index):
            check_column(name, known, source)
        return names

    def outcome_kind_in(self, table: pd.DataFrame, source: str) -> OutcomeKind:
        """Return the kind of outcome, from the forecast of the first row that was seen."""
        if self._kind is None:
            self._kind = _forecast_of(self, table.head(1), source).outcome_kind
        return self._kind

    def check_outcomes(self, y: Floats, table: pd.DataFrame, *, target: str, source: str) -> None:
        """Refuse values other than 0 and 1 where the forecaster predicts a 0/1 outcome."""
        if self.outcome_kind_in(table, source) is OutcomeKind.BINARY:
            check_event_values(y, target=target, source=source)

    @property
    def inner(self) -> ForecastColumns | None:
        """The forecasts in columns that the forecaster changes, if it does."""
        found = self.forecaster
        while hasattr(found, "estimator"):
            found = found.estimator
        return found if isinstance(found, ForecastColumns) else None

    def of(self, table: pd.DataFrame, source: str) -> tuple[Any, pd.DataFrame]:
        """Return the forecaster and its input columns."""
        return self.forecaster, table[self.columns(table.columns, source)]


Subject = ModelSubject | ForecastColumns
"""Source of forecasts for rows of a table; `source` is the file name in messages."""


def as_subject(model: Any) -> Subject:
    """Return a model as a `Subject`."""
    return model if isinstance(model, Subject) else ModelSubject(model)


def _forecast_of(subject: Subject, first: pd.DataFrame, source: str) -> Forecast:
    """Return the forecast of the first row of a table."""
    model: Any
    model, X = subject.of(first, source)
    with refusals(source, 0):
        return model if X is None else model.forecast(X, r=0.5)


def first_forecast(subject: Subject, parts: Parts) -> Forecast | None:
    """Return the forecast of the first row of a table in parts, which shows kind and randomization.

    None if no row can be read: such a table is not refused here.
    """
    typed = parts.typed(subject.schema.apply)
    for i in range(len(parts)):
        try:
            for _, block in typed.blocks(i, subject.columns(parts.columns, parts.source)):
                return _forecast_of(subject, block.head(1), parts.names[i])
        except InputError:  # a part that is skipped or refused when forecasts are written
            continue
    return None


def searched_columns(
    subject: Subject,
    present: Sequence[str],
    target: str,
    apart: Collection[str | None],
    source: str,
) -> list[str]:
    """Return the columns in which groups are searched by default.

    For a forecaster these are its features; for columns of another model's forecasts, also inside
    of a forecaster, all other columns, without those that depend on the draw in forecasts written
    by evenhand. Columns in `apart`, which have another role, are left out. Raises InputError if the
    target is one of the forecasts.
    """
    used = subject.columns(present, source)
    # other columns of a model's table may contain information from after the outcome
    if subject.inner is None:
        return [name for name in used if name not in apart]
    used = subject.inner.columns(present, source)
    if target in used:
        raise InputError(
            f"{source}: column {target!r} is the target and cannot be its own forecast; name"
            " another column"
        )
    # no randomized forecast is calibrated given its draw (method: proof)
    is_served = has_sources(present)
    left_out = {*used, *apart, *(name for name in present if is_served and SERVED.fullmatch(name))}
    return [name for name in present if name not in left_out]


def has_sources(present: Iterable[str]) -> bool:
    """Return whether a table has the columns of forecasts written by evenhand."""
    return set(SOURCES) <= set(present)


@contextmanager
def refusals(source: str, first: int) -> Iterator[None]:
    """Add the part to the message if a forecaster refuses rows, which are counted from `first`.

    Warnings of unseen values are silenced, because they are counted over all parts.
    """
    with unreported(), about(source, first):
        yield


# --- people: repeated ids, and selection of one row per person


@dataclass(frozen=True, eq=False)
class People:
    """People by a hash of their labels.

    They take 32 bytes per row, and three times as much while they are sorted.

    Parameters
    ----------
    rows : DataFrame
        One row per row of the table: `label`, the hash of the label, whose collisions are ignored
        (probability 1e-5 at 20 million labels); `chance`, a random number, of which the smallest
        selects a row for each person; `part`, the number of the part; and `row`, within the part.
    """

    rows: pd.DataFrame

    @classmethod
    def of(
        cls, labels: Sequence[str | int], part: int, start: int, chance: Floats | float = 0.0
    ) -> People:
        """Hash the labels of consecutive rows.

        Without `chance` the first row of each person is selected.
        """
        # 1 and "1" are the same person (method: draws)
        text = np.array([id_text(label) for label in labels], dtype=object)
        hashed = pd.util.hash_array(text, categorize=False)
        row = np.arange(start, start + text.size)
        return cls(pd.DataFrame({"label": hashed, "chance": chance, "part": part, "row": row}))

    @staticmethod
    def joined(people: Sequence[People]) -> People:
        """Concatenate people of different rows."""
        return People(pd.concat([one.rows for one in people], ignore_index=True))

    def chosen(self) -> dict[int, Ints]:
        """Return the selected rows of each part, one per person, in increasing order."""
        # ties are broken by position, so the order of reading has no effect
        ordered = self.rows.sort_values(["chance", "part", "row"], ignore_index=True)
        kept = ordered.drop_duplicates("label").sort_values(["part", "row"])
        # parts without selected rows are listed, too
        none = dict.fromkeys(np.unique(self.rows["part"]).tolist(), np.zeros(0, dtype=int))
        some: Any = kept.groupby("part")["row"]
        return none | {int(i): rows.to_numpy() for i, rows in some}

    def repeated(self, parts: Parts, column: str) -> Repeated | None:
        """Return the label with the most rows; None if all labels are distinct."""
        ordered = self.rows.sort_values(["part", "row"], ignore_index=True)
        counts = ordered["label"].value_counts(sort=False)  # in the order of the first rows
        if len(counts) == len(ordered):
            return None
        most = ordered[ordered["label"] == counts.idxmax()]
        (part, row), other = zip(most["part"][:2].tolist(), most["row"][:2].tolist(), strict=True)
        _, table = next(parts.blocks(part, [column], size=row + 1))
        where = [
            f"{parts.names[i]}, row {k + 1}" if parts.is_folder else f"row {k + 1}"
            for i, k in ((part, row), other)
        ]
        return Repeated(str(table[column].iloc[row]), len(most), int((counts > 1).sum()), *where)


@dataclass(frozen=True)
class Repeated:
    """Summary of repeated ids.

    Parameters
    ----------
    label : str
        An id with the most rows.
    n_rows : int
        Number of its rows.
    n_labels : int
        Number of repeated ids.
    first, again : str
        The first two rows of `label`.
    """

    label: str
    n_rows: int
    n_labels: int
    first: str
    again: str
