"""Typed rows of an audit, read from its plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from evenhand._format import in_full, is_known

Values = Mapping[str, Any]
"""An audit as plain values, or a row of one of its tables."""

Number = float | None
"""A number, or None where it is not known."""

Record = TypeVar("Record")


@dataclass(frozen=True)
class Estimate:
    """An estimate and its band."""

    value: Number
    low: Number = None
    high: Number = None


@dataclass(frozen=True)
class Score:
    """A measure of all rows with its band."""

    measure: str
    value: Number
    low: Number
    high: Number
    unit: str | None


@dataclass(frozen=True)
class WorstGroup:
    """The oracle worst group of a share of people, beside calibrated forecasts and the proof."""

    mass: float
    n: int
    error: Number
    null_mean: Number
    null_low: Number
    null_high: Number
    certified: Number


@dataclass(frozen=True)
class Bound:
    """Certified bounds for every group of at least a share of people."""

    mass: float
    group_error: Number
    chain: Number
    coverage_80_low: Number
    coverage_80_high: Number


@dataclass(frozen=True)
class NamedBound:
    """Certified bounds for a named group, and whether it has too few rows for a finding."""

    group: str
    n: int
    error: Number
    low: Number
    high: Number


@dataclass(frozen=True)
class Question:
    """A question that rows can answer or not."""

    question: str
    answered: bool
    why: str


@dataclass(frozen=True)
class Proof:
    """A certificate.

    `bound` is its bound for every group of the share nearest a fifth; None if it proves nothing
    for groups that were not named.
    """

    confidence: float
    method: str
    n_samples: int
    n_draws: int
    average_error: Number
    groups: tuple[NamedBound, ...]
    every_group: tuple[Bound, ...]
    questions: tuple[Question, ...]
    bound: Bound | None


@dataclass(frozen=True)
class Leak:
    """A group or feature that the outcome may define."""

    kind: str
    name: str
    column: str | None
    apart: Number
    rank_correlation: Number


@dataclass(frozen=True)
class Bin:
    """A bin of the histogram of PITs with its band under calibration."""

    start: float
    end: float
    share: Number
    low: Number
    high: Number

    @property
    def range(self) -> str:
        """The bin in words."""
        return f"{in_full(self.start)} to {in_full(self.end)}"


@dataclass(frozen=True)
class Level:
    """A level of the calibration curve with its band."""

    level: float
    observed: Number
    low: Number
    high: Number


@dataclass(frozen=True)
class Person:
    """The 80% interval of an example person under one draw, and the outcome."""

    row: int
    id: str | None
    draw: Number
    low: Number
    median: Number
    high: Number
    outcome: Number


@dataclass(frozen=True)
class PricePoint:
    """A point of the curve of prices: an alpha with its group error and log score given up."""

    alpha: float
    group_error: Number
    price: Number


def record(kind: type[Record], row: Values) -> Record:
    """Read a row by the names of the fields; what is missing is None."""
    # values of older audits lack the columns that were added later
    names = (field.name for field in fields(kind))  # type: ignore[arg-type]
    return kind(**{name: row.get(name) for name in names})


def records(kind: type[Record], rows: Iterable[Values] | None) -> tuple[Record, ...]:
    """Read the rows of a table; none if it is missing."""
    return tuple(record(kind, row) for row in rows or ())


def estimate(row: Values, key: str) -> Estimate:
    """Read an estimate with its band."""
    return Estimate(row.get(key), row.get(f"{key}_low"), row.get(f"{key}_high"))


def or_zero(value: Any) -> float:
    """Return a value, or 0 where it is unknown."""
    return float(value) if is_known(value) else 0.0


def without_nan(value: Any) -> Any:
    """Put None for what is not finite: JSON has no word for it, but Python reads and writes one."""
    if isinstance(value, Mapping):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
