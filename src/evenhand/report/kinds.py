"""Words of a report that differ between kinds of outcomes, names of measures, and notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Any

from evenhand._escape import shortened
from evenhand._format import (
    Show,
    Toward,
    and_more,
    count,
    in_full,
    is_known,
    number,
    number_in_full,
    percent,
    points,
)
from evenhand._kinds import HIGHER, LOWER, NARROW, WIDE
from evenhand.results import AuditRows, Note, plain

# --- assumptions of numbers on times that are cut off (outcomes: 5)

IN_GROUP = (
    "in each group, censoring is independent of how early or late the event is for its forecast"
)
"""Assumption of Kaplan-Meier estimates of PITs."""

IN_FEATURES = "censoring is independent of the time until the event, given the features"
"""Assumption of tests of randomized PITs."""

IN_TIME = "in each group, censoring is independent of the time until the event"
"""Assumption of Kaplan-Meier estimates of the rate of the event."""

NO_HORIZON = (
    "Without a horizon nothing can be proven for every group: all people whose times are censored"
    " may be in one group, whose error then may be 50 points."
)
"""Why there is no guarantee for every group without a horizon."""

# --- kinds of outcomes

SCALE = (
    "The gap between the predicted and the observed share of people, averaged over all levels, in"
    " points: 0 is perfect, 50 the worst."
)
"""What an error is."""

PLURAL = re.compile("[a-z]{3,}[^s]s")
"""A target that is the unit of its counts, such as "visits"; others are names of columns."""


def people_of(at: str, *, is_time: bool) -> str:
    """Return the people of whom group sizes are shares, of those off an atom or with an event."""
    return f"people with the event by {at}" if is_time else f"people whose outcome is not {at}"


FORECAST: dict[str | None, str] = {
    LOWER: "outcomes are{} lower than forecast",
    HIGHER: "outcomes are{} higher than forecast",
    NARROW: "intervals are narrower than needed",
    WIDE: "intervals are wider than needed",
}
"""Directions of errors as parts of sentences, with a place for the size of the first two."""


@dataclass(frozen=True)
class Kind:
    """Words of a report on one kind of outcome, and what its tables have.

    Parameters
    ----------
    name : str
        The kind: "continuous", "count", "hurdle", "binary", "times" or "" if only PITs are known.
    outcome : str
        The kind of outcome in words.
    unit : str
        Unit of the outcome, as it follows a number in a sentence.
    people : str, default "people"
        The people of whom group sizes of bounds for every group are shares.
    part : str, default ""
        Who the groups of the continuous part are, after the name of a group; "" without such a
        part.
    atom : str, default ""
        The value that has a probability of its own: of amounts, mostly 0.
    horizon : str, default ""
        Time up to which outcomes are followed, with its unit if it is known; "" without one.
    directions : dict of str to str
        Directions of errors, as in `FORECAST`; others, such as "mixed", have no words.
    gap : str
        The error and what it is, in a sentence.
    point : str
        Definition of the error.
    residual : str
        Title of the column of outcome minus forecast.
    has_rates : bool, default False
        Whether forecasts are probabilities, which have no intervals and are compared with rates.
    has_range : bool, default False
        Whether errors have a range that assumes nothing about times that are cut off, whose means
        are not compared with mean forecasts.
    """

    name: str
    outcome: str
    unit: str = ""
    people: str = "people"
    part: str = ""
    atom: str = ""
    horizon: str = ""
    directions: Mapping[str | None, str] = field(default_factory=lambda: FORECAST)
    gap: str = "error (average gap of predicted and observed shares)"
    point: str = SCALE
    residual: str = "Outcome minus forecast"
    has_rates: bool = False
    has_range: bool = False

    @classmethod
    def of(cls, rows: AuditRows) -> Kind:
        """Return the words for an audit."""
        given, target = rows.about.get("unit"), rows.target or ""
        kind = KINDS["times" if rows.censoring is not None else rows.outcome_kind or ""]
        unit = in_one_line(given) if given else units_of(rows.target)
        if kind.name == "count" and not given and PLURAL.fullmatch(target):
            unit = target
        words: dict[str, Any] = {"unit": unit}
        if given and not kind.has_rates:
            words["residual"] = f"{kind.residual}, {unit}"
        if kind.has_rates and target:
            words["gap"] = f"{kind.gap} ({in_one_line(target)})"
        if rows.censoring is not None and rows.censoring.horizon is not None:
            time = number_in_full(rows.censoring.horizon)
            until = f"{time} {unit}" if given else f"time {time}"
            words |= {"horizon": until, "outcome": f"{kind.outcome}, followed until {until}"}
            # events may be a part of their own
            if rows.outcome_kind == "hurdle":
                words["people"] = people_of(until, is_time=True)
        elif kind.name == "hurdle":
            atom = None if rows.certificate is None else rows.certificate.atom
            value = kind.atom if atom is None else number_in_full(atom)
            words |= {"atom": value, "people": people_of(value, is_time=False)}
            words["part"] = f", outcome not {value}"
        return replace(kind, **words)


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        one.name: one
        for one in (
            Kind("continuous", "numbers"),
            Kind("count", "counts or scores"),
            Kind(
                "hurdle",
                "amounts, of which many have one value, such as 0",
                atom="the repeated value",
            ),
            Kind("", "known by their PITs alone"),
            Kind(
                "binary",
                "yes/no (1 if the event happens)",
                directions={
                    LOWER: "events are{} rarer than predicted",
                    HIGHER: "events are{} more frequent than predicted",
                    NARROW: "probabilities are too extreme",
                    WIDE: "probabilities are not extreme enough",
                },
                gap="gap of predicted and observed rate",
                point=(
                    "The difference of the event rate and the mean prediction, in points. Of all"
                    " people it is the mean distance within tenths of the probability."
                ),
                residual="Difference in points",
                has_rates=True,
            ),
            Kind(
                "times",
                "times until an event",
                directions=FORECAST
                | {
                    LOWER: "events are{} earlier than forecast",
                    HIGHER: "events are{} later than forecast",
                },
                # outcomes, 5: the classical reading, whose assumption a reader must know
                point=(
                    f"{SCALE} Where times are censored, these are Kaplan-Meier estimates, which"
                    f" assume that {IN_GROUP}."
                ),
                has_range=True,
            ),
        )
    }
)
"""Words by kind of outcome."""

# --- values of forecasts by which people are divided into groups


@dataclass(frozen=True)
class Key:
    """Value of a forecast: what its groups are parts of, and the words for both ends."""

    of: str
    lowest: str = "lowest"
    highest: str = "highest"
    is_share: bool = False


KEYS: Mapping[str, Key] = MappingProxyType(
    {
        "predicted probability": Key("probabilities", is_share=True),
        "predicted mean": Key("forecasts"),
        "predicted median": Key("forecasts"),
        "80% width": Key("80% intervals", "narrowest", "widest"),
        "chance of zero": Key("probabilities of 0", is_share=True),
        "event by horizon": Key("probabilities of the event", is_share=True),
    }
)
"""Values of forecasts by the names that rules have for them."""

# --- measures

MEASURES: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        "log score": ("log score", "nats"),
        "cell log score": ("log score, cells of {level:g}", "nats"),
        "CRPS": ("CRPS", None),
        "log loss": ("log loss", "nats"),
        "Brier score": ("Brier score", "squared probability"),
        "mean std": ("mean std", None),
        "interval width": ("{share} interval width", None),
        "coverage": ("{share} coverage", "share"),
        "whole coverage": ("{share} coverage, whole values", "share"),
        "error": ("average error", "probability"),
        "Kaplan-Meier error": ("average error, Kaplan-Meier", "probability"),
        "certified error": ("certified, any {share}", "probability"),
    }
)
"""Name of each quantity and its unit; without one it has the unit of the outcome."""


def formatter_of(unit: str | None) -> Callable[..., str]:
    """Return how values in a unit are printed: shares as percentages, errors as points."""
    known: dict[str, Callable[..., str]] = {"share": percent, "probability": points}
    return known.get(str(unit), number)


def signed(value: float | None, toward: Toward = "nearest", show: Show = points) -> str:
    """Write a change with its sign."""
    # a change that is printed as 0 has no sign
    text = show(value, toward)
    return f"+{text}" if is_known(value) and value > 0 and text.strip("0.,") else text


LONGEST_NAME = 60
"""Most characters of the name of an outcome, a unit or a mark in a sentence."""


def units_of(target: str | None) -> str:
    """Return the unit of an outcome, such as "units of income", or "units of y" without a name."""
    return f"units of {'y' if target is None else in_one_line(target)}"


def in_one_line(name: object) -> str:
    """Return a name as part of a sentence: one line, shortened if it is long."""
    return shortened(" ".join(str(name).split()), LONGEST_NAME)


@dataclass(frozen=True)
class Measure:
    """A quantity that an audit measures; `str` gives the name shown in tables.

    Parameters
    ----------
    what : str
        The quantity, one of `MEASURES`.
    level : float
        Probability of the interval, width of the rounding cell or size of the group; NaN for
        quantities without a level.

    Examples
    --------
    >>> print(Measure("coverage", 0.9))
    90% coverage
    """

    what: str
    level: float = float("nan")

    def __str__(self) -> str:
        return MEASURES[self.what][0].format(level=self.level, share=in_full(self.level))

    def unit(self, outcome: str) -> str:
        """Return the unit; `outcome` is the unit of the outcome."""
        return MEASURES[self.what][1] or outcome


# --- notes of an audit on parts that were left out or computed differently

MOST_NAMED = 8
"""Most features that a note lists."""


class NoteKind(Enum):
    """Kind of a note, with the template of its sentence."""

    PART_LEFT_OUT = "part left out: {reason}"
    NO_OUTCOME = "rows without an outcome were left out: {numbers[0]:,} of {numbers[1]:,}"
    ZERO_WEIGHTS = "rows of weight 0 were left out: {numbers[0]:,}"
    ONE_ROW_EACH = (
        "one row per person is audited, {numbers[0]:,} of {numbers[1]:,} rows; group sizes are"
        " shares of people, not of rows"
    )
    EMPTY_GROUP = "group {subject[0]!r} has no rows left"
    PROBABLE_GROUPS = (
        "values from 0 to 1 were read as probabilities of membership: {names}; estimates weight"
        " rows by them, and are those of the group if membership is independent of the outcome,"
        " given what they were computed from; such groups are neither certified nor scanned"
    )
    HALVED_FRACTIONS = (
        "columns of values from 0 to 1 were cut at their median: {names}; if they are probabilities"
        " of membership, pass {{'name': values}} as groups or name them in --group-probabilities"
    )
    NO_OWN_FORECAST = "forecasts are not known, so levels of the forecast cannot be compared"
    IMPOSSIBLE_OUTCOMES = (
        "outcomes with a predicted probability of 0: {numbers[2]:,.0f}, the first in {reason},"
        " where the probability of the event is {numbers[1]:g}; a group with one of them is"
        " significant"
    )
    NO_THINNING = (
        "no groups were found by search and nothing is certified: rows have weights, and the"
        " largest weight of the design is not known; give it in largest_weight or --largest-weight"
    )
    THINNED = (
        "groups found by search and guarantees use {numbers[0]:,} of {numbers[1]:,} rows, drawn"
        " with probabilities in proportion to their weights (seed {numbers[2]})"
    )
    FEW_AFTER_THINNING = (
        "no groups were found by search: too few of {numbers[0]:,} rows after thinning,"
        " {numbers[1]:,} kept"
    )
    COUNTED_ROWS = (
        "averages, named groups and guarantees use all {numbers[0]:,} rows; errors of averages and"
        " named groups are computed from binned PITs, within {half_bin:.5f} of the exact values"
    )
    SAMPLED_ROWS = "{names} use {numbers[0]:,} rows sampled at random"
    ROUNDING_CELLS = (
        "the forecasts are continuous, but {atom} of the outcomes are {numbers[0]:g}: PITs are"
        " spread over the cells of rounded outcomes, and rounding may explain up to {grid} of the"
        " average error"
    )
    TIED_OUTCOMES = (
        "the forecasts are continuous, but {atom} of the outcomes are {numbers[0]:g}, and outcomes"
        " lie on no grid: the PITs of these rows coincide unless their forecasts differ"
    )
    EVENT_AS_CONTINUOUS = (
        "the outcome is 0 or 1, but the forecasts are continuous: audit probabilities of the event"
        " instead, for example Forecast.from_probability(p) or a classifier"
    )
    EXCLUDED_OUTCOMES = (
        "outcomes predicted with probability 0, which make the log score infinite: {numbers[0]:,}"
    )
    CUT_OFF_TIMES = (
        "{numbers[0]:,} of {numbers[1]:,} times are cut off (censored). Tests assume that, given"
        " the features, being cut off is independent of the time of the event. Kaplan-Meier"
        " estimates assume that, within a group, it is independent of the PIT. The least and the"
        " largest possible errors assume nothing"
    )
    NO_TIME_CUT_OFF = (
        "no time is cut off: if people without an observed event were left out of the table, times"
        " seem shorter than they are, and these results are wrong"
    )
    SKEWED_RESIDUALS = (
        "outcome minus forecast is skewed: its sample skewness is {numbers[0]:.1f}, so intervals of"
        " its mean miss more often than stated, for lognormal errors up to 4 times as often in"
        " groups of 100 to 500 rows"
    )
    SCORED_ROWS = "scores are computed on {numbers[0]:,} rows sampled at random"
    NO_CERTIFICATE = "no certificate: {reason}"
    TOO_FEW_TO_SCAN = "no groups were scanned: the scan needs {numbers[0]} rows, got {numbers[1]}"
    NO_LARGE_GROUP = "no groups were scanned: none has at least {numbers[0]} rows"
    ALL_FEATURES_LEAK = "no groups were scanned: the outcome may define every feature"
    COLUMN_NOT_SCANNED = "column {subject[0]!r} was not scanned: {reason}"
    COLUMN_NOT_LEARNED = "column {subject[0]!r} identifies each row and is not used to learn groups"
    NOT_LEARNED = "no group of {size} was learned: {reason}"
    NO_MISCOVERAGE = "coverage was not estimated by features: {reason}"
    FEATURES = "groups were searched in {features}"
    LEARNED_ALONE = "learned groups may depend on {features}"


def note(
    kind: NoteKind, subject: Sequence[str] = (), numbers: Sequence[float] = (), reason: str = ""
) -> Note:
    """Return a note, whose sentence is the template of its kind.

    `subject` are the groups, columns or parts of the audit that are affected, and `reason` is an
    error message, or the place of a value; by default, that rows have weights.
    """
    text = kind.value.format(
        subject=subject,
        numbers=numbers,
        # without an error message, weights are the only reason
        reason=reason or "rows with weights are not a sample of the people",
        names=", ".join(subject),
        # a table may have hundreds of columns
        features=f"{count(len(subject), 'feature')}: {and_more(subject, MOST_NAMED)}",
        atom=percent(numbers[1], "up") if len(numbers) > 1 else "",
        grid=percent(numbers[3], "up") if len(numbers) > 3 else "",
        size=in_full(numbers[0]) if numbers else "",
        # each value lies within half a bin of the middle of its bin
        half_bin=0.5 / numbers[-1] if any(numbers[-1:]) else 0.0,
    )
    known = tuple(plain(list(numbers)))
    return Note(kind=kind.name, text=text, subject=tuple(map(str, subject)), numbers=known)


def notes_of(notes: Iterable[Note], *kinds: NoteKind) -> tuple[Note, ...]:
    """Return the notes of the given kinds in their order."""
    return tuple(one for one in notes if one.kind in {kind.name for kind in kinds})
