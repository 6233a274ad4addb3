"""What is scored in parts: a forecaster, or forecasts of another model that stand in columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd

from evenhand._validate import InputError
from evenhand.columns import Schema, unreported
from evenhand.forecast import Forecast
from evenhand.forecasters import forecast_columns, forecast_from_columns

SOURCES = ("r", "context", "key")
"""Columns of forecasts that evenhand wrote which tell how a draw was made."""

SERVED = (*SOURCES, "served_mean", "served_std")
"""Columns that depend on the draw: in groups by these, no randomized forecast is calibrated."""


class Subject(Protocol):
    """Maker of forecasts of the rows of a table; `source` is its file name for messages."""

    @property
    def schema(self) -> Schema:
        """The columns that rows must be read by; none where nothing is known of them."""

    def columns(self, present: Iterable[str], source: str) -> list[str]:
        """Return the columns that it needs, or raise InputError if one is not there."""

    def of(
        self, table: pd.DataFrame, source: str, start: int = 0
    ) -> tuple[Any, pd.DataFrame | None]:
        """Return a forecaster with its rows, or forecasts without.

        `start` is the number of the first row.
        """


@dataclass(frozen=True)
class ModelSubject:
    """A fitted forecaster that was trained on a table."""

    forecaster: Any

    @property
    def schema(self) -> Schema:
        """The columns of its training table."""
        schema = getattr(self.forecaster, "schema_", None)
        return schema if isinstance(schema, Schema) else Schema()

    def columns(self, present: Iterable[str], source: str) -> list[str]:
        """Return the columns that it was trained on."""
        names = [str(name) for name in getattr(self.forecaster, "feature_names_in_", [])]
        if not names:
            raise InputError(
                "the model was trained on an array without column names; train it on a table"
            )
        missing = sorted(set(names).difference(present), key=names.index)
        if missing:
            listed = ", ".join(map(repr, missing))
            # a model of thousands of columns must not fill the terminal
            raise InputError(f"{source}: no column {listed}, which the model was trained on"[:400])
        return names

    def of(self, table: pd.DataFrame, source: str, start: int = 0) -> tuple[Any, pd.DataFrame]:
        """Return the forecaster and its columns."""
        return self.forecaster, table[self.columns(table.columns, source)]


@dataclass(frozen=True)
class ColumnSubject:
    """Forecasts of another model.

    Columns with means and standard deviations, with quantiles or with samples.

    Quantiles that fall with their level are refused, or sorted in each row with `sort_quantiles`.
    """

    mean: str | None = None
    std: str | None = None
    quantiles: str | None = None
    samples: str | None = None
    sort_quantiles: bool = False

    @property
    def named(self) -> dict[str, str]:
        """The columns that are named, by their kind."""
        kinds = ("mean", "std", "quantiles", "samples")
        return {kind: getattr(self, kind) for kind in kinds if getattr(self, kind) is not None}

    @property
    def schema(self) -> Schema:
        """Nothing is known of the rows."""
        return Schema()

    def columns(self, present: Iterable[str], source: str) -> list[str]:
        """Return the columns that hold them."""
        return forecast_columns(present, **self.named, source=source)

    def of(self, table: pd.DataFrame, source: str, start: int = 0) -> tuple[Forecast, None]:
        """Return the forecasts."""
        place: dict[str, Any] = {"source": source, "start": start}
        options = place | {"sort_quantiles": self.sort_quantiles} | self.named
        return forecast_from_columns(table, **options)[0], None


def as_subject(model: Any) -> Subject:
    """Return what makes forecasts: the columns that are named, or a fitted forecaster."""
    return model if isinstance(model, ColumnSubject | ModelSubject) else ModelSubject(model)


def searched_columns(
    subject: Subject, present: Sequence[str], target: str, apart: Collection[str], source: str
) -> list[str]:
    """Return the columns that groups are searched in by default.

    Those that have another part in the audit are left out. They are those of a forecaster, and
    beside forecasts of another model all others; beside
    forecasts that evenhand wrote without the draw and what depends on it. Raises InputError if the
    target is one of its own forecasts.
    """
    used = subject.columns(present, source)
    # a model's table may hold more, which nobody has checked for what is known after the outcome
    if isinstance(subject, ModelSubject):
        return [name for name in used if name not in apart]
    if target in used:
        raise InputError(
            f"{source}: column {target!r} is the target and cannot be its own forecast"
        )
    # given the draw no randomized forecast is calibrated (method: proof)
    left_out = {*used, *apart, *(SERVED if has_sources(present) else ())}
    return [name for name in present if name not in left_out]


def has_sources(present: Iterable[str]) -> bool:
    """Return whether a table has the columns that come with forecasts that evenhand wrote."""
    return set(SOURCES) <= set(present)


@contextmanager
def refusals(source: str, first: int, last: int) -> Iterator[None]:
    """Name the part, and what rows it may be, where a forecaster refuses them.

    Rows are counted from 0.

    Values that training never had are counted over all parts, not warned of in each.
    """
    try:
        with unreported():
            yield
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    except (TypeError, ValueError) as error:  # so models of other libraries say it
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{source}: among rows {first + 1} to {last + 1} are some that the model refuses"
            f" ({why}); correct them"
        ) from error
