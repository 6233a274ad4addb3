"""Typed rows of results: made once by an audit, and read by tables, JSON, its schema and words.

A field is a column of the tables, a key of the JSON and a property of its schema, which are all
read off these types. Unknown numbers are None, and None in JSON is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Self, TypedDict, TypeVar

import msgspec
import pandas as pd

from evenhand._format import count

R = TypeVar("R", bound="Row")

Values = Mapping[str, Any]
"""A result as plain values, or a row of one of its tables."""

Number = float | None
"""A number; None if it is unknown."""

MASS = 0.2
"""Size of the groups whose bounds lead a report."""

ROUNDING = 1e-9
"""Rounding error of a difference of shares: 0.8 - 0.78 is not above 0.02."""

LEAST_REPORTED = 0.001
"""Least lower bound that is reported; a smaller one would be printed as 0.0 points."""

GROUPS_LISTED = 3
"""Most groups with a sentence each."""


class Interval(NamedTuple):
    """Estimate with the ends of its interval."""

    value: Number = None
    low: Number = None
    high: Number = None


def with_ends(name: str) -> tuple[str, str, str]:
    """Return the names of an estimate and of the ends of its interval."""
    return name, f"{name}_low", f"{name}_high"


class Row(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A row of a table of results."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return a row from a mapping that may have other keys, NumPy numbers and NaN."""
        known = {name: values[name] for name in cls.__struct_fields__ if name in values}
        return msgspec.convert(plain(known), cls)

    def interval(self, name: str) -> Interval:
        """Return an estimate with its interval."""
        return Interval(*(getattr(self, each, None) for each in with_ends(name)))


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers of Python, and None for one that is not finite.

    Examples
    --------
    >>> plain({"a": (math.nan, 1)})
    {'a': [None, 1]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, msgspec.Struct):
        return plain(msgspec.structs.asdict(value))
    if is_dataclass(value):
        return plain(asdict(value))  # type: ignore[arg-type]
    # numbers and arrays of NumPy
    value = value.tolist() if hasattr(value, "tolist") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def rows_from(kind: type[R], columns: Mapping[str, Any] | pd.DataFrame) -> tuple[R, ...]:
    """Return rows from the columns of a table that are fields of the rows; NaN becomes None.

    Examples
    --------
    >>> rows_from(Score, {"measure": ["CRPS"], "value": [math.nan], "other": [1]})
    (Score(measure='CRPS', value=None, low=None, high=None, unit=None),)
    """
    names = [name for name in kind.__struct_fields__ if name in columns]
    values = [_listed(columns[name]) for name in names]
    return tuple(kind(**dict(zip(names, row, strict=True))) for row in zip(*values, strict=True))


def _listed(values: Any) -> list[Any]:
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    # NaN is not itself
    return [None if one is None or one != one else one for one in listed]  # noqa: PLR0124


def frame(rows: Iterable[Row], kind: type[Row]) -> pd.DataFrame:
    """Return rows as a table without the columns that are unknown in all of them."""
    listed = list(rows)
    columns = {name: [getattr(row, name) for row in listed] for name in kind.__struct_fields__}
    if listed:
        columns = {k: v for k, v in columns.items() if any(x not in (None, ()) for x in v)}
    return pd.DataFrame({name: _series(values) for name, values in columns.items()})


def _series(values: Sequence[Any]) -> pd.Series[Any]:
    # as objects: pandas would convert None to NaN in columns of texts
    if not all(one is None or isinstance(one, int | float) for one in values):
        return pd.Series(values, dtype=object)
    return pd.Series(values, dtype=float if None in values else None)


# --- findings: groups, and what was found of them


class Finding(Row, frozen=True):
    """A group and what was found of it; the same type for everyone, whatever made the group.

    Parameters
    ----------
    group : str
        Name of the group, or its rule; for groups found by search the rule, "" if none describes
        it.
    n : int
        Number of rows; of groups known by probability the expected number of members.
    error : float or None
        W1 distance of the PITs to the uniform distribution, 0 to 1/2. Of 0/1 outcomes the absolute
        difference of event `rate` and mean `predicted` probability, 0 to 1, of everyone the mean
        distance by score.
    error_low, error_high : float or None
        Ends of its interval. The intervals of a measure hold for all groups at once.
    bias, bias_low, bias_high : float or None
        Mean of outcome minus forecast, in units of the outcome, with its interval.
    coverage_80, coverage_80_low, coverage_80_high : float or None
        Share of outcomes in 80% prediction intervals; 0/1 outcomes have none.
    coverage_90, coverage_90_low, coverage_90_high : float or None
        The same for 90% intervals.
    mean_pit : float or None
        Below 1/2 if outcomes are lower than forecast.
    predicted, rate : float or None
        Mean probability and event rate of 0/1 outcomes.
    slope, slope_low, slope_high : float or None
        Calibration slope of 0/1 outcomes, where the trend decides the test.
    km_error, km_error_low, km_error_high : float or None
        Size of the error of times that may be cut off, by Kaplan-Meier; `error` is that of the
        tested PITs, which understates the size.
    censored : bool
        Whether outcomes may be cut off, so that the size of the error is `km_error`.
    least_error, most_error : float or None
        Ends between which that size lies whoever is cut off.
    direction : str or None
        Direction of the error: tested, or estimated of groups that no search tested.
    p_value, p_adjusted : float or None
        P-value of the tests of the group, and adjusted for the whole family; None if not tested.
    off, problem : bool
        Whether the adjusted p-value is below one minus the confidence, and whether the error is
        beyond the tolerance as well, or the slope outside 0.8 to 1.25.
    too_small, possible_leak : bool
        Whether it has too few rows, or may be defined by the outcome: such groups do not count.
    probable : bool
        Whether members are known by probability only: numbers are then those of all rows, weighted
        by the probabilities.
    column : str or None
        Column that defines a named group; None for a mask.
    features : tuple of str
        Columns that define a group by features, or that separate one found by search.
    scanned_as, same_as : str or None
        Name of the same rows among the groups by features; group with the same rows that is listed
        before this one, and counts for both.
    key, part, n_parts, lowest, highest : optional
        Of groups by the forecast: value of the forecast, place among the groups by it (from 1) and
        their number, and range of its values.
    mass, n_judged, description_share : optional
        Of groups found by search: size, number of rows that were judged, and share of people whom
        the rule selects.
    rule : list of dict or None
        Conditions that select the group among other rows; see `GroupRule`.
    """

    group: str
    n: int
    error: Number = None
    error_low: Number = None
    error_high: Number = None
    bias: Number = None
    bias_low: Number = None
    bias_high: Number = None
    coverage_80: Number = None
    coverage_80_low: Number = None
    coverage_80_high: Number = None
    coverage_90: Number = None
    coverage_90_low: Number = None
    coverage_90_high: Number = None
    mean_pit: Number = None
    predicted: Number = None
    rate: Number = None
    slope: Number = None
    slope_low: Number = None
    slope_high: Number = None
    km_error: Number = None
    km_error_low: Number = None
    km_error_high: Number = None
    censored: bool = False
    least_error: Number = None
    most_error: Number = None
    direction: str | None = None
    p_value: Number = None
    p_adjusted: Number = None
    off: bool = False
    problem: bool = False
    too_small: bool = False
    possible_leak: bool = False
    probable: bool = False
    column: str | None = None
    features: tuple[str, ...] = ()
    scanned_as: str | None = None
    same_as: str | None = None
    key: str | None = None
    part: int | None = None
    n_parts: int | None = None
    lowest: Number = None
    highest: Number = None
    mass: Number = None
    n_judged: int | None = None
    description_share: Number = None
    rule: list[dict[str, Any]] | None = None

    @property
    def size(self) -> Interval:
        """Size of the error: where times are cut off, the Kaplan-Meier estimate."""
        if self.censored:
            return Interval(self.km_error, self.km_error_low, self.km_error_high)
        return Interval(self.error, self.error_low, self.error_high)

    @property
    def least(self) -> float:
        """Lower bound of its error; 0 if there is none that can be reported."""
        least = self.size.low or 0.0
        return least if least >= LEAST_REPORTED else 0.0

    @property
    def is_judged(self) -> bool:
        """Whether it was examined and counts, each set of rows once."""
        # groups by features are listed without a test if they may be leaks
        is_left_out = self.too_small or self.possible_leak or self.same_as is not None
        is_tested = self.p_adjusted is not None or self.mass is not None or not self.features
        return not is_left_out and is_tested

    def is_beyond(self, tolerance: float) -> bool:
        """Whether the whole interval of its error is beyond a tolerance."""
        return self.is_judged and (self.size.low or 0.0) > tolerance + ROUNDING

    def is_proven(self, tolerance: float) -> bool:
        """Whether the whole interval is within a tolerance."""
        # the numbers of a group known by probability are not those of its members
        # where times may be cut off, by the bound that assumes nothing about them
        most = self.most_error if self.censored else self.error_high
        return not self.probable and most is not None and most <= tolerance + ROUNDING

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that define it, if they are known; of groups by the forecast their value."""
        ruled = [one["column"] for each in self.rule or () for one in each["comparisons"]]
        return tuple(ruled) or self.features or tuple(filter(None, [self.key, self.column]))[:1]

    @property
    def is_mean_off(self) -> bool:
        """Whether the interval of outcome minus forecast excludes 0."""
        return (self.bias_low or 0.0) > 0 or (self.bias_high or 0.0) < 0

    @property
    def reported_bias(self) -> float:
        """Mean of outcome minus forecast; 0 if it is not reported."""
        # an interval that contains 0 shows no direction; groups found by search have no interval
        is_shown = self.is_mean_off or self.bias_low is None
        return self.bias or 0.0 if is_shown else 0.0

    @property
    def rank(self) -> tuple[bool, bool, bool, bool, float, float, float, int]:
        """Place among groups: problems first, then by lower bound and estimate; small ones last."""
        # lower bounds first, since estimates of small groups are large by chance; groups that are
        # not off by their p-values, which account for the size
        counts = self.same_as is None
        chance = 0.0 if self.off and counts else self.p_adjusted or 0.0
        least, error = self.size.low or 0.0, self.size.value or 0.0
        # of several names of the same rows, the one with the fewest features comes first
        return (
            *(self.too_small, self.possible_leak),
            *(not (self.problem and counts), not (self.off and counts)),
            *(-least, chance, -error, len(self.features)),
        )


class GivenForecast(Row, frozen=True):
    """Mean error of people with the same forecast, and tests that it is 0.

    Parameters
    ----------
    error : float
        Estimate, 0 to 1/2, or to 1 for 0/1 outcomes, where it is the mean over people of the
        absolute difference of event rate and probability.
    low, high : float or None
        Interval; `low` is 0 unless the tests reject. No upper end is known but for 0/1 outcomes,
        where it is that of the mean within the groups by the forecast, and of the mean itself if
        the true rate crosses the diagonal at most twice as the probability rises.
    measured, chance : float or None
        Mean error of the groups by the forecast, and its mean if the forecasts are right.
    n_bins : int or None
        Number of groups by one value of the forecast.
    is_complete : bool or None
        For 0/1 outcomes, whether the groups are tenths, or one per distinct probability.
    tests : dict of str to float
        P-value of each test of everyone; that of all together is their number times the least.
    """

    error: float
    low: Number = None
    high: Number = None
    measured: Number = None
    chance: Number = None
    n_bins: int | None = None
    is_complete: bool | None = None
    tests: dict[str, float] = {}

    @property
    def p_value(self) -> float:
        """P-value of all tests together (Bonferroni)."""
        return min(1.0, len(self.tests) * min(self.tests.values()))


class Family(Row, frozen=True):
    """All tests and intervals of an audit, which hold together with its confidence.

    Parameters
    ----------
    confidence : float
        Probability that no test rejects falsely; also that the intervals of any one measure cover
        their true values at once.
    n_groups, n_by_forecast, n_learned, n_tests : int
        Numbers of named and scanned groups, of groups by the forecast, of learned groups, and of
        tests of everyone.
    shares : dict of str to float
        Error probability of everyone, of groups by the forecast, of named and scanned groups and of
        learned groups; 0 where there are none.
    min_size : int
        Least number of rows of a scanned group.
    effective_share : float
        Effective number of rows, as a share of the rows; 1 without weights.
    variance, group_variance : float
        Mean variance of the mean position in a cell under uniform PITs, of everyone and the largest
        of a named or scanned group, else of one by the forecast: 1/12 for points, less for cells.
    asymptotic : tuple of str
        Measures ("error", "coverage", "bias") whose intervals need large groups; those of the
        others have their confidence in groups of any size.
    """

    confidence: float
    n_groups: int
    n_by_forecast: int
    n_learned: int
    n_tests: int
    shares: dict[str, float]
    min_size: int
    effective_share: float = 1.0
    variance: float = 1 / 12
    group_variance: float = 1 / 12
    asymptotic: tuple[str, ...] = ()

    @property
    def level(self) -> float:
        """Error probability of the whole family."""
        return 1 - self.confidence

    def part(self, name: str) -> tuple[int, float]:
        """Return the number of groups of a part, such as "by_forecast", and their share.

        Everyone is one group. An absent part, which has no share, gets that of the family.
        """
        return getattr(self, f"n_{name}", 1), self.shares[name] or self.level


# --- verdict, and conditions of a gate


class Verdict(StrEnum):
    """Verdict of an audit."""

    PROBLEM = "problem found"
    NO_PROBLEM = "no problem found"
    TOO_FEW = "too few rows"


class Detectable(Row, frozen=True):
    """Error that a group of a number of rows would have shown with 80% probability."""

    n: int
    error: float


class Status(Row, frozen=True):
    """Verdict of an audit and the numbers behind it; `str` gives a line.

    Parameters
    ----------
    verdict : Verdict
        "problem found" if a member of the family has a problem; else "too few rows" if not even
        an error of 10 points of all people (0/1: a doubling of the rate) would have been found;
        else "no problem found".
    is_proven : bool
        Whether the interval of everyone and of every group lies within the tolerance.
    n_examined : int
        Number of groups that were examined beside everyone, the same rows once.
    n_problems : int
        Number of members with a problem; all people together are one member.
    n_beyond : int
        Number of members whose whole interval is beyond the tolerance.
    detectable : tuple of Detectable
        Errors that these rows would have shown: of all people, then of the groups of median and
        of least size.
    """

    verdict: Verdict
    is_proven: bool
    n_examined: int
    n_problems: int
    n_beyond: int
    detectable: tuple[Detectable, ...]

    def __str__(self) -> str:
        where = f" in {count(self.n_problems, 'group')}" if self.n_problems else ""
        proven = ", proven within the tolerance" if self.is_proven else ""
        return f"{self.verdict}{where}{proven} ({self.n_examined:,} examined beside everyone)"


class GateCondition(Row, frozen=True, omit_defaults=False):
    """Condition of a gate under which the command fails, and its value in the audit.

    Parameters
    ----------
    text : str
        The condition as it was written.
    quantity : str
        `problem`, `too-few-rows` or `not-proven`, which are conditions by themselves;
        `groups_beyond_tolerance`: the number of members of the family, all people among them, whose
        whole interval is beyond the tolerance; `certified_group_error`;
        `coverage`: the certified lower bound on the coverage of a central prediction interval, in
        every group of a given size; `certified_event_rate`: the certified upper bound on the event
        rate of every group of a given size in which each predicted probability is at most a given
        one; or `certified_bias`: the certified upper bound on the absolute difference of event rate
        and mean forecast in every group of a given size.
    arguments : tuple of float
        The nominal level, or the largest probability, and the group size (mass); fractions.
    relation : {">", ">=", "<", "<="}
        The comparison.
    limit : float
        The number compared with.
    value : float or None
        The quantity; None if it is not judged or the audit does not contain it.
    is_true : bool or None
        Whether the condition is true; None if it cannot be evaluated.
    reason : str or None
        Why it cannot be evaluated.
    """

    text: str
    quantity: str
    arguments: tuple[float, ...]
    relation: str
    limit: float
    value: Number = None
    is_true: bool | None = None
    reason: str | None = None


class Note(Row, frozen=True):
    """A part of an audit that was left out or computed differently; `str` gives a sentence."""

    kind: str
    text: str
    subject: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()

    def __str__(self) -> str:
        return self.text


# --- scores, curves and rates


class Score(Row, frozen=True):
    """Measure of all rows with its interval; `unit` is "share", "probability" or another one."""

    measure: str
    value: Number = None
    low: Number = None
    high: Number = None
    unit: str | None = None


class ProbabilityScores(Row, frozen=True):
    """Scores of the probabilities of 0/1 outcomes in a group, as the field reports them."""

    group: str
    n: int
    n_events: int | None = None
    predicted: Number = None
    rate: Number = None
    slope: Number = None
    slope_low: Number = None
    slope_high: Number = None
    intercept: Number = None
    intercept_low: Number = None
    intercept_high: Number = None
    observed_expected: Number = None
    observed_expected_low: Number = None
    observed_expected_high: Number = None
    ici: Number = None
    e_max: Number = None
    auc: Number = None
    brier: Number = None
    scaled_brier: Number = None
    log_loss: Number = None


class Bin(Row, frozen=True):
    """Bin of the histogram of PITs, with its simultaneous 95% band under calibration."""

    start: float
    end: float
    share: Number = None
    low: Number = None
    high: Number = None


class CurvePoint(Row, frozen=True):
    """Point of the calibration curve, with its simultaneous 95% band.

    The share `observed` at or below the forecast quantile of a `level`; of 0/1 outcomes the
    isotonic `rate` of the event at a `probability`.
    """

    level: Number = None
    observed: Number = None
    probability: Number = None
    rate: Number = None
    low: Number = None
    high: Number = None


class Reliability(Row, frozen=True):
    """People of a group with similar predicted probabilities, and the rate of the event.

    The intervals of a group hold for all of its bins at once.
    """

    group: str
    bin: int
    n: int
    probability: Number = None
    rate: Number = None
    low: Number = None
    high: Number = None


class Censoring(Row, frozen=True):
    """Numbers of people by what is known of their time until the event.

    Those who reached the horizon were seen without the event until then, those who are lost only
    until before it, or at any time if there is no horizon. `n_followed` of all people entered at
    least a horizon before the end of follow-up; None if it is unknown when they entered.
    """

    n_events: int
    n_reached: int
    n_lost: int
    horizon: Number = None
    n_followed: int | None = None

    @property
    def n_people(self) -> int:
        """Number of people."""
        return self.n_events + self.n_reached + self.n_lost


class Survival(Row, frozen=True):
    """Predicted and observed rate of the event by the horizon in a group.

    `observed` is the Kaplan-Meier estimate with its interval, `least` and `most` are the ends of
    the rate whatever happened to the people who are lost before the horizon. Intervals and ends are
    simultaneous for all groups.
    """

    group: str
    n: int
    n_events: int
    n_lost: int
    predicted: Number = None
    observed: Number = None
    low: Number = None
    high: Number = None
    least: Number = None
    most: Number = None


class Miscoverage(Row, frozen=True):
    """Difference of the coverage by features from the level: `search.conditional_miscoverage`."""

    level: Number = None
    excess: Number = None
    low: Number = None
    high: Number = None
    n: int = 0
    lowest_fifth: Number = None
    highest_fifth: Number = None


class Membership(Row, frozen=True):
    """Bounds for a group known by probability, whatever the relation of membership and outcome.

    The expected number of `members`, and for coverage and bias the ends `least` and `most` of an
    interval that contains the value of the group, with the confidence of the audit each.
    """

    group: str
    members: Number = None
    coverage_80_least: Number = None
    coverage_80_most: Number = None
    coverage_90_least: Number = None
    coverage_90_most: Number = None
    bias_least: Number = None
    bias_most: Number = None


class Leak(Row, frozen=True):
    """Group or feature that the outcome may define: see `search.find_leaks`."""

    kind: Literal["group", "feature"]
    name: str
    column: str | None = None
    apart: Number = None
    rank_correlation: Number = None
    forecast_rank_correlation: Number = None


class Unseen(Row, frozen=True):
    """Values of a column that are absent from the forecaster's training table."""

    column: str
    kind: str
    n: int
    n_missing: int
    n_unseen: int
    example: str | None = None
    least: float | str | None = None
    greatest: float | str | None = None
    training_least: float | str | None = None
    training_greatest: float | str | None = None
    training_missing: Number = None


class WorstGroup(Row, frozen=True):
    """The oracle worst group of a size.

    `null_mean`, `null_low` and `null_high` are the mean and the 5% and 95% quantiles of the same
    search on calibrated forecasts of the same kind, `certified` is the bound for every group.
    """

    mass: float
    n: int
    error: Number = None
    null_mean: Number = None
    null_low: Number = None
    null_high: Number = None
    certified: Number = None


# --- what is proven


class Bound(Row, frozen=True):
    """Certified bounds for every group of at least a given size."""

    mass: float
    group_error: Number = None
    chain: Number = None
    coverage_80_low: Number = None
    coverage_80_high: Number = None
    bias_low: Number = None
    bias_high: Number = None


class PlainInterval(Row, frozen=True):
    """Central prediction interval of the deterministic forecaster, without a draw.

    Parameters
    ----------
    level : float
        Nominal level of the interval.
    mass : float
        Smallest share of people in a group.
    floor : float
        Certified lower bound for its coverage in every group of at least this share of people, 0 to
        1. The bounds of all levels hold at once, at every size. There is no upper bound below 1,
        unless the group contains nearly all people.
    covered : float
        Share of all of these people whose outcome the interval covers: an estimate.
    width : float or None
        Mean width relative to that of the 80% intervals that are served; None if it is unknown.
    """

    level: float
    mass: float
    floor: float
    covered: float
    width: Number = None

    @property
    def wider(self) -> float:
        """Relative width minus 1; NaN if it is unknown."""
        return (math.nan if self.width is None else self.width) - 1


class NamedBound(Row, frozen=True):
    """Certified bounds for a named group."""

    group: str
    n: int
    error: Number = None
    low: Number = None
    high: Number = None


class EventBound(Row, frozen=True):
    """Certified bounds for the event in every group of a share of all people.

    `event_rate_below` is an upper bound for groups whose predicted probabilities are at most
    `below`, `event_rate_above` a lower bound for groups in which they are at least `above`.
    """

    mass: float
    below: Number = None
    event_rate_below: Number = None
    above: Number = None
    event_rate_above: Number = None
    bias_low: Number = None
    bias_high: Number = None


class Question(Row, frozen=True):
    """Question that rows can answer or not."""

    question: str
    answered: bool
    why: str = ""


class Cell(TypedDict, total=False):
    """Bounds for a cell of named columns."""

    cell: str
    n: int
    error: Number
    coverage_80_low: Number
    coverage_80_high: Number
    bias_low: Number
    bias_high: Number


class UnionBounds(TypedDict):
    """Bounds for every union of cells of named columns."""

    columns: list[str]
    n: int
    n_cells: int
    n_before: int
    overlap: bool
    confidence: float
    error: Number
    coverage_80: list[Number] | None
    bias: list[Number] | None
    is_randomized: bool
    cells: list[Cell]


class Proof(Row, frozen=True):
    """Certificate: `bound` is "sharp" where bounds are those of a link around a forecaster."""

    confidence: float
    method: str
    n_samples: int
    n_draws: int
    link_bound: str | None = None
    average_error: Number = None
    groups: tuple[NamedBound, ...] = ()
    every_group: tuple[Bound, ...] = ()
    events: tuple[EventBound, ...] | None = None
    questions: tuple[Question, ...] = ()
    assumptions: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    atom: Number = None
    follow_up: dict[str, float | bool | None] | None = None
    unions: UnionBounds | None = None


# --- where an audit comes from


class ModelSource(TypedDict, total=False):
    """Name, class and hash of the model."""

    name: str | None
    kind: str | None
    sha256: str | None


class DataSource(TypedDict, total=False):
    """Name, hash and rows of the table; of a table in parts their number, and the rows searched."""

    name: str | None
    sha256: str | None
    n_rows: int
    n_parts: int
    n_searched: int


class Provenance(TypedDict, total=False):
    """Versions, command, seed, model, data and origin of the draws."""

    evenhand: str
    date: str
    python: str
    packages: dict[str, str]
    command: str | None
    random_state: int | None
    model: ModelSource
    data: DataSource
    values_sha256: str
    draws: str


# --- an audit


class ResultRows(msgspec.Struct, frozen=True, kw_only=True, dict=True, forbid_unknown_fields=True):
    """All rows of a result, as its JSON has them."""

    def to_json(self) -> str:
        """Return the rows as JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def to_dict(self) -> dict[str, Any]:
        """Return the rows as plain values, in the layout of the JSON."""
        values: dict[str, Any] = plain(msgspec.to_builtins(self))
        return values


class AuditRows(ResultRows, frozen=True, kw_only=True):
    """All rows of an audit, as its JSON has them.

    Parameters
    ----------
    name, target : str or None
        Names of the audited forecaster and of the outcome.
    n_samples, n_draws : int
        Number of rows; draws per row, 1 for a deterministic forecaster or one draw per person.
    is_randomized : bool
        Whether the forecasts depend on draws.
    outcome_kind : str or None
        "continuous", "count", "hurdle" or "binary"; None if only PITs are known.
    rounding_step, grid_share : float or None
        Grid that the outcomes lie on, and share of the average error that it may explain.
    tolerance : float
        Error that does not matter.
    status : Status
        The verdict.
    family : Family
        The tests and intervals that hold together.
    groups : tuple of Finding
        Everyone, then the named groups.
    given : Finding or None
        Everyone, given the own forecast: a problem of everyone is marked there if their pooled
        error is within the tolerance. None for 0/1 outcomes, whose error is that, and for PITs.
    given_forecast : GivenForecast or None
        Mean error of people with the same forecast, for all kinds of outcome.
    by_forecast, scan, learned : tuple of Finding
        Groups by the forecast's own level and spread; groups by features, the smallest p-values
        first; groups found by search.
    positive_part : tuple of Finding
        Everyone and groups of the people whose outcome is not the atom of a hurdle, for the
        continuous part of the forecasts; a family of its own.
    scores, probability_scores, reliability, miscoverage, membership, survival
        Rows of these types.
    pit, calibration
        Histogram of PITs, and calibration curve.
    censoring : Censoring or None
        Numbers of people, if outcomes are times that may be cut off.
    worst_groups, plain_intervals
        Oracle worst groups; intervals without a draw.
    certificate : Proof or None
        What is proven.
    notes : tuple of Note
        What was left out or computed differently.
    caveat : str or None
        A warning that reports show first.
    possible_leaks, unseen
        What the outcome may define; values that training had not.
    conditions : tuple of GateCondition
        Conditions of a gate.
    about, provenance : dict
        Description for readers, and what is needed to repeat the audit.
    """

    schema: Literal["evenhand.audit/1"] = "evenhand.audit/1"
    name: str
    target: str | None = None
    about: dict[str, str] = {}
    n_samples: int
    n_draws: int
    is_randomized: bool
    outcome_kind: Literal["continuous", "count", "hurdle", "binary"] | None = None
    rounding_step: Number = None
    grid_share: Number = None
    tolerance: float = 0.02
    status: Status
    conditions: tuple[GateCondition, ...] = ()
    family: Family
    groups: Annotated[tuple[Finding, ...], msgspec.Meta(min_length=1)]
    given: Finding | None = None
    given_forecast: GivenForecast | None = None
    by_forecast: tuple[Finding, ...] = ()
    scan: tuple[Finding, ...] = ()
    learned: tuple[Finding, ...] = ()
    positive_part: tuple[Finding, ...] = ()
    scores: tuple[Score, ...] = ()
    probability_scores: tuple[ProbabilityScores, ...] = ()
    reliability: tuple[Reliability, ...] = ()
    pit: tuple[Bin, ...] = ()
    calibration: tuple[CurvePoint, ...] = ()
    miscoverage: tuple[Miscoverage, ...] = ()
    membership: tuple[Membership, ...] = ()
    censoring: Censoring | None = None
    survival: tuple[Survival, ...] = ()
    worst_groups: tuple[WorstGroup, ...] = ()
    plain_intervals: tuple[PlainInterval, ...] = ()
    certificate: Proof | None = None
    notes: tuple[Note, ...] = ()
    caveat: str | None = None
    possible_leaks: tuple[Leak, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    provenance: Provenance = {}

    @property
    def confidence(self) -> float:
        """Confidence of the tests and intervals of all groups together."""
        return self.family.confidence

    @property
    def is_event(self) -> bool:
        """Whether outcomes are 0 or 1."""
        return self.outcome_kind == "binary"

    @property
    def most_detectable(self) -> float:
        """Detectable error of all people above which there are too few rows."""
        # not even a doubling of a rare event, or of a rare other outcome, would show
        rate = self.everyone.predicted if self.is_event else None
        most = 2 * self.family.variance if rate is None else min(rate, 1 - rate)
        return min(0.1, most or 0.1)

    @property
    def has_command(self) -> bool:
        """Whether the audit was made by the command."""
        return bool(self.provenance.get("command"))

    @property
    def everyone(self) -> Finding:
        """All people."""
        return self.groups[0]

    @property
    def named(self) -> tuple[Finding, ...]:
        """Named groups."""
        return self.groups[1:]

    @property
    def overall(self) -> tuple[Finding, ...]:
        """All people, and all people given the own forecast."""
        return (self.everyone,) if self.given is None else (self.everyone, self.given)

    @property
    def bound(self) -> Bound | None:
        """Bound for every group of the size nearest a fifth; None without a guarantee."""
        proof = self.certificate
        # one PIT per person gives no guarantee for groups that were not named, but that of a base
        # does
        if proof is None or not self.is_randomized or (self.n_draws == 1 and not proof.link_bound):
            return None
        known = [one for one in proof.every_group if one.group_error is not None]
        return min(known, key=lambda one: abs(one.mass - MASS), default=None)

    @cached_property
    def scanned(self) -> tuple[Finding, ...]:
        """Groups by features whose rows no group of another table has."""
        return tuple(one for one in self.scan if one.same_as is None)

    @cached_property
    def examined(self) -> tuple[Finding, ...]:
        """All groups of the family beside everyone that were examined, each set of rows once."""
        groups = (*self.by_forecast, *self.named, *self.scan, *self.learned)
        # who is lost may or may not have the event by the horizon: there is no such part
        part = self.positive_part if self.censoring is None else ()
        return tuple(one for one in (*groups, *part) if one.is_judged)

    @cached_property
    def problems(self) -> tuple[Finding, ...]:
        """Members of the family with a problem, by falling lower bound of the error.

        A part of a group, which a rule with more conditions defines, does not come before the group
        if it is not proven to be worse: of many parts, some have larger bounds by chance.
        """
        found = [one for one in self.examined if one.problem]
        found += [one for one in reversed(self.overall) if one.problem][:1]
        # few have such rules: a scan of many columns may have thousands of problems
        parts = [one for one in found if one.rule and len(one.rule) > 1]
        placed = []
        for one in found:
            rule, error, least = one.rule or [], one.size.value or 0.0, one.least
            for part in parts if rule else ():
                more = [each for each in part.rule or [] if each not in rule]
                if len(more) == len(part.rule or []) - len(rule) > 0 and part.least <= error:
                    least = max(least, part.least)
            placed.append(((-least, least == one.least, one.rank), one))
        return tuple(one for _, one in sorted(placed, key=lambda pair: pair[0]))

    @property
    def is_everyone_problem(self) -> bool:
        """Whether all people together are one of the problems."""
        return any(one.problem for one in self.overall)

    @property
    def leading(self) -> Finding | None:
        """Problem with the largest lower bound; None if there is none."""
        return next(iter(self.problems), None)

    def apart(self, problems: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the worst groups of some with a problem, no two of which share a feature.

        Of all with a problem, these have a sentence each.
        """
        # groups that share a feature with a worse one mostly share its rows and its error, but not
        # those of outcomes off the atom
        found, used = list[Finding](), set[tuple[bool, str]]()
        for one in problems:
            columns = {(one in self.positive_part, name) for name in one.columns}
            if one not in self.overall and used.isdisjoint(columns):
                found.append(one)
                used |= columns
        return tuple(found[:GROUPS_LISTED])

    @classmethod
    def read(cls, text: str | bytes) -> Self:
        """Return the rows of the JSON of an audit; raises msgspec.MsgspecError with the place."""
        return msgspec.json.decode(text, type=cls)


# --- a comparison


class Change(Row, frozen=True):
    """A measure before and after.

    Parameters
    ----------
    measure : str
        Its name.
    unit : str or None
        Unit of a score.
    before, before_low, before_high, after, after_low, after_high : float or None
        Estimates with their own intervals.
    change, change_low, change_high : float or None
        After minus before, with its paired interval.
    """

    measure: str
    unit: str | None = None
    before: Number = None
    before_low: Number = None
    before_high: Number = None
    after: Number = None
    after_low: Number = None
    after_high: Number = None
    change: Number = None
    change_low: Number = None
    change_high: Number = None


class ComparedGroup(Row, frozen=True):
    """A group before and after.

    Parameters
    ----------
    group : str
        Name of the group.
    n, n_after : int
        Numbers of its rows in both audits.
    outcome : str
        Paired, "better" or "worse" if the interval of the change of the error excludes 0, else "not
        significant", or "unknown" without an interval; of two audits "problem in both", "problem
        before", "problem after" or "no problem", by their verdicts.
    important : bool
        Whether such a change exceeds the tolerance, or these verdicts differ.
    changes : tuple of Change
        Measures before and after.
    same_as : str or None
        Group with the same rows that the first audit lists before it.
    """

    group: str
    n: int
    n_after: int
    outcome: str
    important: bool
    changes: tuple[Change, ...]
    same_as: str | None = None

    def change(self, measure: str) -> Change:
        """Return a measure before and after; unknown if it is not listed."""
        known = (one for one in self.changes if one.measure == measure)
        return next(known, Change(measure=measure))


class ComparisonRows(ResultRows, frozen=True, kw_only=True):
    """All rows of a comparison, as its JSON has them.

    Parameters
    ----------
    names : tuple of str
        Names of what is compared.
    groups : tuple of ComparedGroup
        Groups that both audits list, everyone first.
    scores : tuple of Change
        Scores and certified bounds that both audits list, whose paired intervals hold each by
        itself.
    tolerance, confidence : float
        Change of the error up to which a group is not important, and confidence of the intervals:
        those of the second audit.
    is_paired : bool
        Whether changes have paired intervals.
    n_samples : int
        Number of rows of the first audit.
    notes : tuple of str
        What was not compared, and why.
    about : dict of str to str
        Description of the second audit for readers.
    provenance : dict
        Provenance of the audits `before` and `after`.
    """

    schema: Literal["evenhand.comparison/1"] = "evenhand.comparison/1"
    names: tuple[str, str]
    groups: Annotated[tuple[ComparedGroup, ...], msgspec.Meta(min_length=1)]
    scores: tuple[Change, ...]
    tolerance: float
    confidence: float
    is_paired: bool
    n_samples: int
    notes: tuple[str, ...] = ()
    about: dict[str, str] = {}
    provenance: dict[str, Provenance] = {}


def audit_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of an audit, generated from its types."""
    return msgspec.json.schema(AuditRows)
