"""Words of a report that depend on the kind of outcome."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evenhand._format import number_in_full, plain_number, points
from evenhand._kinds import HIGHER, LOWER, NARROW, WIDE, OutcomeKind
from evenhand.report.measures import one_line, units_of
from evenhand.report.records import Number

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

WITHOUT = "without an assumption on why times are cut off"
"""Condition of bounds that hold whatever the unknown times are."""

NO_HORIZON = (
    "Without a horizon nothing can be proven for every group: all times that are cut off may be in"
    " one group, whose error then may be 50 points."
)
"""Why there is no guarantee for every group without a horizon."""


# --- words of a report that depend on the kind of outcome

Directions = Mapping[str | None, str]
"""Directions of errors in words."""

WORDS: Directions = {
    LOWER: "outcomes lower than forecast",
    HIGHER: "outcomes higher than forecast",
    NARROW: "intervals too narrow",
    WIDE: "intervals too wide",
}
EVENT_WORDS: Directions = {
    LOWER: "events rarer than predicted",
    HIGHER: "events more frequent than predicted",
    NARROW: "probabilities too extreme",
    WIDE: "probabilities not extreme enough",
}
TIME_WORDS: Directions = {
    **WORDS,
    LOWER: "events earlier than forecast",
    HIGHER: "events later than forecast",
}

PLURAL = re.compile("[a-z]{2,}s")
"""A target such as "visits"; other names, such as "n_visit", are names of columns."""

OUTCOMES = {
    OutcomeKind.COUNT: "counts or scores",
    OutcomeKind.HURDLE: "amounts with an atom at one end of the range",
    OutcomeKind.BINARY: "yes/no (1 if the event happens)",
}
"""Kinds of outcomes that are not continuous, for the table of what was audited."""

SCALE = (
    "Errors are absolute differences between predicted and actual probabilities in percentage"
    " points, averaged over all probability levels. 0 is perfect calibration, 50 the largest error."
)
"""Definition of the error."""

EVENT_SCALE = (
    "Errors are differences between event rates and mean predicted probabilities in percentage"
    " points. That of everyone is the mean distance within tenths of the probability."
)
"""Definition of the error of probabilities."""

# outcomes, 5: the classical reading, whose assumption a reader of any number must know
TIME_SCALE = (
    f"{SCALE} Where times are cut off (censored), errors are Kaplan-Meier estimates. They assume"
    f" that {IN_GROUP}."
)


@dataclass(frozen=True)
class Terms:
    """Words of a report on one kind of outcome.

    Parameters
    ----------
    kind : OutcomeKind or None
        Kind of outcome; None if only PITs are known.
    unit : str
        Unit of the outcome, as it follows a number in a sentence.
    atom : str, default "the atom"
        The atom of amounts: its value, if it is known.
    is_time : bool, default False
        Whether outcomes are times until an event, which may be cut off.
    horizon : str, default ""
        Time up to which outcomes are followed, with its unit if it is known; "" without one.
    """

    kind: OutcomeKind | None
    unit: str
    atom: str = "the atom"
    is_time: bool = False
    horizon: str = ""

    @classmethod
    def of(
        cls, kind: Any, target: str | None = None, unit: str | None = None, atom: Any = None
    ) -> Terms:
        """Return the words for values as an audit stores them.

        Parameters
        ----------
        kind : str or None
            Kind of outcome; other values than those of `OutcomeKind` count as unknown.
        target : str, optional
            Name of the outcome.
        unit : str, optional
            Its unit, if it is known.
        atom : float, optional
            The atom of amounts.

        Examples
        --------
        >>> terms = Terms.of("continuous", "dose", "mg per week")
        >>> terms.size(-2.5)
        '2.5 mg per week'
        >>> Terms.of("count", "visits").size(0.3), Terms.of("count", "y").size(0.3)
        ('0.3 visits', '0.3 units of y')
        """
        known = OutcomeKind(kind) if kind in list(OutcomeKind) else None
        name = number_in_full(atom) if isinstance(atom, int | float) else "the atom"
        plain = units_of(target)
        if unit:
            return cls(known, one_line(unit), name)
        # what is counted is the unit of a count, if the name is a plural noun
        if known is OutcomeKind.COUNT and PLURAL.fullmatch(target or ""):
            plain = str(target)
        return cls(known, plain, name)

    def of_times(self, horizon: Number, unit: str | None) -> Terms:
        """Return the words for times until an event, with a horizon or None, and a unit."""
        until = ""
        if horizon is not None:
            time = number_in_full(horizon)
            until = f"{time} {one_line(unit)}" if unit else f"the horizon {time}"
        return replace(self, is_time=True, horizon=until)

    @property
    def is_event(self) -> bool:
        """Whether outcomes are 0 or 1, so that forecasts are probabilities and not intervals."""
        return self.kind is OutcomeKind.BINARY

    @property
    def outcome(self) -> str | None:
        """The kind of outcome in words; None for continuous or unknown outcomes."""
        if self.is_time:
            until = f", followed until {self.horizon}" if self.horizon else ""
            return f"times until an event{until}"
        if self.kind is OutcomeKind.HURDLE and self.atom == "0":
            return "amounts with zeros"
        return None if self.kind is None else OUTCOMES.get(self.kind)

    @property
    def is_part(self) -> bool:
        """Whether bounds for every group are about the people whose outcome is not the atom."""
        return self.kind is OutcomeKind.HURDLE

    @property
    def people(self) -> str:
        """The people of whom group sizes of certified bounds are shares."""
        if not self.is_part:
            return "people"
        if self.is_time:
            return f"people with the event by {self.horizon}"
        return f"people whose outcome is not {self.atom}"

    @property
    def has_atoms(self) -> bool:
        """Whether single outcomes have positive probability."""
        return self.outcome is not None

    @property
    def directions(self) -> Directions:
        """Directions in words."""
        if self.is_time:
            return TIME_WORDS
        return EVENT_WORDS if self.is_event else WORDS

    @property
    def scale(self) -> str:
        """Definition of the error."""
        if self.is_time:
            return TIME_SCALE
        return EVENT_SCALE if self.is_event else SCALE

    @property
    def has_bias(self) -> bool:
        """Whether mean outcomes are known; those of times that are cut off are not."""
        return not self.is_time

    @property
    def bias(self) -> str:
        """Name of the mean residual in tables."""
        return (
            "event rate minus probability (points)" if self.is_event else "outcome minus forecast"
        )

    def size(self, bias: float) -> str:
        """Return the absolute value of a mean residual with its unit."""
        if self.is_event:
            return f"{points(abs(bias))} points"
        return f"{plain_number(abs(bias))} {self.unit}"
