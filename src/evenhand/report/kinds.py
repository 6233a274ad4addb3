"""Words of a report that differ between kinds of outcomes, and names and units of measures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from evenhand._escape import short
from evenhand._format import (
    UNKNOWN,
    in_full,
    is_known,
    number,
    number_in_full,
    percent,
    points,
)
from evenhand._kinds import HIGHER, LOWER, NARROW, WIDE
from evenhand.results import AuditRows

# --- assumptions of numbers on times that are cut off (outcomes: 5)

IN_GROUP = (
    "in each group, censoring is independent of how early or late the event is for its forecast"
)
"""Assumption of Kaplan-Meier estimates of PITs."""

IN_FEATURES = (
    "for people with the same features, censoring is independent of the time until the event"
)
"""Assumption of tests of randomized PITs."""

IN_TIME = "in each group, censoring is independent of the time until the event"
"""Assumption of Kaplan-Meier estimates of the rate of the event."""

WITHOUT = "without an assumption on why times are censored"
"""Condition of bounds that hold whatever the unknown times are."""

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
"""A target such as "visits"; other names, such as "n_visit" or "loss", are names of columns."""


def people_of(at: str, *, is_time: bool) -> str:
    """Return the people of whom group sizes are shares, of those off an atom or with an event."""
    return f"people with the event by {at}" if is_time else f"people whose outcome is not {at}"


class Directions(NamedTuple):
    """Directions of errors as parts of sentences, with a place for the size of the first two."""

    lower: str = "outcomes are{} lower than forecast"
    higher: str = "outcomes are{} higher than forecast"
    narrow: str = "intervals are narrower than needed"
    wide: str = "intervals are wider than needed"

    def of(self, direction: str | None, size: str = "") -> str | None:
        """Return a direction in words; None for another one, such as "mixed"."""
        known = dict(zip((LOWER, HIGHER, NARROW, WIDE), self, strict=True))
        return known[direction].format(size and f" {size}") if direction in known else None


FORECAST = Directions()


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
    directions : Directions
        Directions of errors, as parts of sentences.
    gap : str
        The error and what it is, in a sentence.
    point : str
        Definition of the error.
    error, residual : str
        Titles of the columns of errors, and of outcome minus forecast.
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
    directions: Directions = FORECAST
    gap: str = "error (gap of predicted and observed shares)"
    point: str = SCALE
    error: str = "Error in points"
    residual: str = "Outcome minus forecast"
    has_rates: bool = False
    has_range: bool = False

    @classmethod
    def of(cls, rows: AuditRows) -> Kind:
        """Return the words for an audit."""
        given, target = rows.about.get("unit"), rows.target or ""
        kind = KINDS["times" if rows.censoring is not None else rows.outcome_kind or ""]
        unit = one_line(given) if given else units_of(rows.target)
        if kind.name == "count" and not given and PLURAL.fullmatch(target):
            # what is counted is the unit of a count, if the name is a plural noun
            unit = target
        words: dict[str, Any] = {"unit": unit}
        if given and not kind.has_rates:
            words["residual"] = f"{kind.residual}, {unit}"
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
                directions=Directions(
                    "events are{} rarer than predicted",
                    "events are{} more frequent than predicted",
                    "probabilities are too extreme",
                    "probabilities are not extreme enough",
                ),
                gap="difference of predicted and observed rate",
                point=(
                    "The difference of the share of people who had the event and the mean"
                    " prediction, in points. Of all people it is the mean distance within tenths of"
                    " the probability."
                ),
                error="Distance in points",
                residual="Difference in points",
                has_rates=True,
            ),
            Kind(
                "times",
                "times until an event",
                directions=Directions(
                    "events are{} earlier than forecast", "events are{} later than forecast"
                ),
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
    return {"share": percent, "probability": points}.get(str(unit), number)


def signed(value: float | None, show: Callable[..., str] = points, toward: str = "nearest") -> str:
    """Write a change with its sign."""
    if not is_known(value):
        return UNKNOWN
    # a change that is printed as 0 has no sign
    text = show(value, toward)
    return f"+{text}" if value > 0 and text.strip("0.,") else text


def reach_of(low: float | None, high: float | None, show: Callable[..., str] = points) -> str:
    """Write the interval of a change, rounded outwards."""
    if not (is_known(low) and is_known(high)):
        return UNKNOWN
    return f"{signed(low, show, 'down')} to {signed(high, show, 'up')}"


LONGEST_NAME = 60
"""Most characters of the name of an outcome, a unit or a mark in a sentence."""


def units_of(target: str | None) -> str:
    """Return the unit of an outcome, such as "units of income", or "units of y" without a name."""
    return f"units of {'y' if target is None else one_line(target)}"


def one_line(name: object) -> str:
    """Return a name as part of a sentence: one line, shortened if it is long."""
    return short(" ".join(str(name).split()), LONGEST_NAME)


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
    group : str or None
        Name of the group in which it is measured; None for all people.

    Examples
    --------
    >>> print(Measure("coverage", 0.9))
    90% coverage
    """

    what: str
    level: float = float("nan")
    group: str | None = None

    def __str__(self) -> str:
        if self.group is None:
            return MEASURES[self.what][0].format(level=self.level, share=in_full(self.level))
        # the error of a group is its own, not the average error
        name = "error" if self.what == "error" else str(Measure(self.what, self.level))
        return f"{name}, {self.group}"

    def unit(self, outcome: str) -> str:
        """Return the unit; `outcome` is the unit of the outcome."""
        return MEASURES[self.what][1] or outcome
