"""Measures of an audit with their names and units, and signed changes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from evenhand._format import UNKNOWN, in_full, is_known, number, percent, points

Quantity = Literal[
    "log score",
    "cell log score",
    "CRPS",
    "log loss",
    "Brier score",
    "mean std",
    "interval width",
    "coverage",
    "whole coverage",
    "error",
    "Kaplan-Meier error",
    "certified error",
]

NAMES: dict[Quantity, Callable[[float], str]] = {
    "log score": lambda level: "log score",
    "cell log score": lambda level: f"log score, cells of {level:g}",
    "CRPS": lambda level: "CRPS",
    "log loss": lambda level: "log loss",
    "Brier score": lambda level: "Brier score",
    "mean std": lambda level: "mean std",
    "interval width": lambda level: f"{in_full(level)} interval width",
    "coverage": lambda level: f"{in_full(level)} coverage",
    "whole coverage": lambda level: f"{in_full(level)} coverage, whole values",
    "error": lambda level: "average error",
    "Kaplan-Meier error": lambda level: "average error, Kaplan-Meier",
    "certified error": lambda level: f"certified, any {in_full(level)}",
}
UNITS: dict[Quantity, str] = {
    "log score": "nats",
    "cell log score": "nats",
    "log loss": "nats",
    "Brier score": "squared probability",
    "coverage": "share",
    "whole coverage": "share",
    "error": "probability",
    "Kaplan-Meier error": "probability",
    "certified error": "probability",
}
"""Units of measures; the others have the unit of the outcome."""


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


LONGEST_TARGET = 60
"""Most characters of the name of an outcome in a sentence."""


def units_of(target: str | None) -> str:
    """Return the unit of an outcome, such as "units of income", or "units of y" without a name."""
    return f"units of {'y' if target is None else one_line(target)}"


def one_line(name: str) -> str:
    """Return the name of an outcome or its unit as part of a sentence, shortened if it is long."""
    # a column name may contain line breaks, and a sentence is one line
    line = " ".join(str(name).split())
    return line if len(line) <= LONGEST_TARGET else f"{line[: LONGEST_TARGET - 1]}…"


@dataclass(frozen=True)
class Measure:
    """A quantity that an audit measures; `str` gives the name shown in tables.

    Parameters
    ----------
    what : str
        The quantity.
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

    what: Quantity
    level: float = float("nan")
    group: str | None = None

    def __str__(self) -> str:
        if self.group is None:
            return NAMES[self.what](self.level)
        # the error of a group is its own, not the average error
        name = "error" if self.what == "error" else str(Measure(self.what, self.level))
        return f"{name}, {self.group}"

    def unit(self, outcome: str) -> str:
        """Return the unit; `outcome` is the unit of the outcome."""
        return UNITS.get(self.what, outcome)


def log_score_name(step: float | None) -> str:
    """Return the name of the log score of outcomes with a rounding step, or without one.

    Examples
    --------
    >>> log_score_name(None), log_score_name(0.5)
    ('log score', 'log score, cells of 0.5')
    """
    return str(Measure("log score") if step is None else Measure("cell log score", step))
