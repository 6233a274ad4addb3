"""Typed rows of the tables of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from evenhand._format import finite, in_full, is_known

Values = Mapping[str, Any]
"""An audit as plain values, or a row of one of its tables."""

Number = float | None
"""A number; None if it is unknown."""

Record = TypeVar("Record")


@dataclass(frozen=True)
class Estimate:
    """Estimate with its interval."""

    value: Number
    low: Number = None
    high: Number = None

    @property
    def ends(self) -> tuple[Number, Number]:
        return self.low, self.high


@dataclass(frozen=True)
class GivenForecast:
    """Mean error given the own forecast, and what right forecasts would show by chance.

    `is_complete` if an upper end bounds it, `tests` are the p-values of the tests of everyone.
    """

    error: Number
    low: Number
    high: Number
    chance: Number
    is_complete: bool | None
    tests: Mapping[str, Number] | None


@dataclass(frozen=True)
class ProbabilityScores:
    """Scores of the probabilities of 0/1 outcomes in a group, as the field reports them."""

    group: str
    n: int
    n_events: int | None
    slope: Number
    slope_low: Number
    slope_high: Number
    intercept: Number
    intercept_low: Number
    intercept_high: Number
    observed_expected: Number
    observed_expected_low: Number
    observed_expected_high: Number
    ici: Number
    e_max: Number
    auc: Number
    brier: Number
    scaled_brier: Number
    log_loss: Number


@dataclass(frozen=True)
class Censoring:
    """Numbers of people by what is known of their time until the event.

    Those who reached the horizon were seen without the event until then, those who are lost only
    until before it, or at any time if there is no horizon. `n_followed` of all people entered at
    least a horizon before the end of follow-up; None if it is unknown when they entered.
    """

    n_events: int
    n_reached: int
    n_lost: int
    horizon: Number
    n_followed: int | None

    @property
    def n_people(self) -> int:
        """Number of people."""
        return self.n_events + self.n_reached + self.n_lost


@dataclass(frozen=True)
class Score:
    """Measure of all rows with its interval."""

    measure: str
    value: Number
    low: Number
    high: Number
    unit: str | None


@dataclass(frozen=True)
class Bound:
    """Certified bounds for every group of at least a given size."""

    mass: float
    group_error: Number
    chain: Number
    coverage_80_low: Number
    coverage_80_high: Number


@dataclass(frozen=True)
class PlainInterval:
    """Prediction interval of the deterministic forecaster, without a draw.

    `floor` is the certified lower bound for its coverage in every group of at least `mass`,
    `covered` its estimated coverage of all people, `width` its mean width relative to that of the
    80% intervals that are served.
    """

    level: float
    mass: float
    floor: Number
    covered: Number
    width: Number


@dataclass(frozen=True)
class NamedBound:
    """Certified bounds for a named group."""

    group: str
    n: int
    error: Number
    low: Number
    high: Number


@dataclass(frozen=True)
class Question:
    """Question that rows can answer or not."""

    question: str
    answered: bool
    why: str


@dataclass(frozen=True)
class Proof:
    """Certificate.

    `bound`, if there is one, is for every group of the size nearest a fifth. `link_bound` is
    "sharp" where these bounds are those of a link around a deterministic forecaster, else None.
    """

    confidence: float
    method: str
    link_bound: str | None
    n_samples: int
    n_draws: int
    average_error: Number
    groups: tuple[NamedBound, ...]
    every_group: tuple[Bound, ...]
    questions: tuple[Question, ...]
    assumptions: tuple[str, ...]
    not_covered: tuple[str, ...]
    bound: Bound | None
    unions: Values | None

    @property
    def is_joint(self) -> bool:
        """Whether the bounds for every group hold jointly, not each by itself."""
        return self.link_bound is not None


@dataclass(frozen=True)
class Leak:
    """Group or feature that the outcome may define."""

    kind: str
    name: str
    column: str | None
    apart: Number
    rank_correlation: Number


@dataclass(frozen=True)
class Bin:
    """Bin of the histogram of PITs with its band under calibration."""

    start: float
    end: float
    share: Number
    low: Number
    high: Number

    @property
    def range(self) -> str:
        """Both ends in percent."""
        return f"{in_full(self.start)} to {in_full(self.end)}"


@dataclass(frozen=True)
class Level:
    """Level of the calibration curve with its band."""

    level: float
    observed: Number
    low: Number
    high: Number


def record(kind: type[Record], row: Values) -> Record:
    """Read a row by the names of the fields; missing values are None."""
    names = (field.name for field in fields(kind))  # type: ignore[arg-type]
    return kind(**{name: row.get(name) for name in names})


def records(kind: type[Record], rows: Iterable[Values] | None) -> tuple[Record, ...]:
    """Read the rows of a table; a missing table is empty, and rows without values are omitted."""
    return tuple(record(kind, row) for row in rows or () if row)


def estimate(row: Values, key: str, ends: str = "") -> Estimate:
    """Read an estimate with its interval, whose ends are named `ends` or like the estimate."""
    ends = ends or key
    return Estimate(row.get(key), row.get(f"{ends}_low"), row.get(f"{ends}_high"))


def known(*values: Number) -> bool:
    """Whether all values are known."""
    return all(map(is_known, values))


def or_zero(value: Any) -> float:
    """Return a value; 0 if it is unknown."""
    return float(value) if is_known(value) else 0.0


def without_nan(value: Any) -> Any:
    """Replace numbers that are not finite by None: Python writes them to JSON, which has none."""
    if isinstance(value, Mapping):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return finite(value)
