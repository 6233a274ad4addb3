"""Base class of certificates: confidence bounds on calibration errors (method: proof)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import (
    Summarized,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    percent,
    points,
)
from evenhand._validate import InputError, bad_input
from evenhand.certificates.assumptions import (
    DISCRETE,
    MEAN_PROBABILITIES,
    ONE_ROW_EACH,
    OTHER_GROUPS,
    SHARES_OF_ROWS,
    SHIFT,
    SMALLER_GROUPS,
)
from evenhand.certificates.event_certificate import MASSES, EventCertificate
from evenhand.certificates.promise import Promise
from evenhand.distributions import OutcomeKind

Method = Literal["local-levels", "betting"]

WORST = 0.5
"""Largest possible W1 error."""

NAMED_COLUMNS = ["group", "n", "error", "low", "high"]


class Certificate(Summarized, ABC):
    """Bounds on the calibration errors of a forecaster; each holds with the given confidence.

    A group is any share of the people that is chosen without seeing the draws: by features, by
    outcomes, by any reweighting whose density ratio is at most `1 / mass`. A method that bounds a
    quantity which this certificate cannot bound raises InputError, which names the alternative.

    Attributes
    ----------
    confidence : float
        Probability, over the rows and draws, that a bound holds.
    method : {"local-levels", "betting"}
        Method of the bounds for every group.
    mass : float or None
        The one group size for which bounds for every group are available; None if they are
        available for every size.
    one_row_each : bool
        Whether people have several rows and one row per person was used: group sizes are then
        shares of people, not of rows.
    kind : OutcomeKind
        Kind of outcome that the forecasts describe.
    events : EventCertificate or None
        Bounds of event rates and biases, for 0/1 outcomes and for whether an outcome is an atom.
    has_cells : bool
        Whether the PITs of outcomes are cells: outcomes have atoms, or were rounded.
    """

    # annotations, not abstract properties: in the subclasses they are fields of dataclasses
    confidence: float
    method: Method
    mass: float | None
    one_row_each: bool
    is_randomized: bool
    kind: OutcomeKind = OutcomeKind.CONTINUOUS
    events: EventCertificate | None = None
    has_cells: bool = False

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """Number of people."""

    @property
    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions under which the bounds hold."""

    @property
    def not_covered(self) -> tuple[str, ...]:
        """Situations that the bounds do not cover."""
        others: tuple[str, ...] = OTHER_GROUPS if self.is_randomized else ()
        if self.events is not None:
            others = (SMALLER_GROUPS,)
        if self.kind is OutcomeKind.CONTINUOUS and not self.has_cells:
            others = (*others, DISCRETE)
        elif self.kind is OutcomeKind.COUNT and self.is_randomized:
            others = (*others, MEAN_PROBABILITIES)
        return (SHIFT, *others, *((SHARES_OF_ROWS,) if self.one_row_each else ()))

    @abstractmethod
    def average_error(self) -> float:
        """Upper bound for the overall W1 error, 0 to 1/2."""

    @abstractmethod
    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error of every group that contains at least this share of people.

        Parameters
        ----------
        mass : float
            Smallest share of people in the group, 0 < mass <= 1.

        Returns
        -------
        float
            Between 0 and 1/2.
        """

    @abstractmethod
    def coverage(self, level: float, mass: float) -> tuple[float, float]:
        """Bounds for the coverage of central prediction intervals in every group of a given size.

        Parameters
        ----------
        level : float
            Nominal level of the interval, such as 0.8.
        mass : float
            Smallest share of people in the group, 0 < mass <= 1.

        Returns
        -------
        low, high : float
            The coverage of every such group lies between them. Intervals of outcomes with atoms
            contain whole values, so their coverage may exceed the nominal level.
        """

    @abstractmethod
    def mpaic(self, error: float) -> float:
        """Upper bound for `P(|h[X, R](Y) - R| >= error)`, the delta of the paper's mPAIC.

        For an outcome with an atom, `h[X, R](Y)` is the randomized PIT. That keeps what mPAIC
        implies: a person's pathwise error is at most the mean of `|PIT - R|`.

        Parameters
        ----------
        error : float
            A single threshold, 0 to 1, chosen before the rows were seen.

        Returns
        -------
        float
            Between 0 and 1.
        """

    @abstractmethod
    def promise(self, mass: float) -> Promise:
        """Return what is promised for every group of a size, in the form that a watch tests.

        Parameters
        ----------
        mass : float
            Smallest share of people in the group, 0 < mass <= 1.

        Raises
        ------
        InputError
            If nothing is promised that served forecasts can show; the message gives the reason.
        """

    def event_rate(
        self, *, below: float | None = None, above: float | None = None, mass: float
    ) -> float:
        """Bound the event rate of every group of people whose forecasts are below or above a value.

        As `EventCertificate.event_rate`. For an outcome with an atom at an end of its range, the
        event is that the outcome is not the atom, and `mass` is a share of all people.

        Raises
        ------
        InputError
            If the outcome is neither 0/1 nor has such an atom, or an argument is out of its range.
        """
        return self._known_events("event_rate").event_rate(below=below, above=above, mass=mass)

    def bias(self, mass: float) -> tuple[float, float]:
        """Bounds for the event rate minus the mean forecast in every group of at least this share.

        As `EventCertificate.bias`. For an outcome with an atom at an end of its range, the event is
        that the outcome is not the atom, and `mass` is a share of all people.

        Raises
        ------
        InputError
            If the outcome is neither 0/1 nor has such an atom, or `mass` is out of its range.
        """
        return self._known_events("bias").bias(mass)

    def _known_events(self, method: str) -> EventCertificate:
        if self.events is None:
            raise InputError(
                f"{method} bounds 0/1 forecasts, and this certificate has no events; use"
                " group_error and coverage, or certify the probability of an event with"
                " certificates.certify_events"
            )
        return self.events

    def named(self, group: str) -> float:
        """Upper bound for the W1 error of a named group, 0 to 1/2; simultaneous for all of them.

        Raises
        ------
        InputError
            If the rows were not certified with a group of this name.
        """
        table = self.named_table()
        found = table.loc[table["group"] == group, "high"]
        if table.empty:
            raise InputError(
                f"group {group!r} has no bound: these rows were certified without named groups;"
                " name groups in certify_pit(..., groups=...)"
            )
        if found.empty:
            raise bad_input("group", f"be one of {list(table['group'])}", repr(group))
        return float(found.iloc[0])

    def named_table(self) -> pd.DataFrame:
        """Return simultaneous bounds for the W1 errors of the named groups (Bonferroni).

        Columns: `group`, `n`, `error`, `low`, `high`. A group without rows has the trivial bounds 0
        and 1/2. The table is empty if no groups were named.
        """
        return pd.DataFrame(columns=NAMED_COLUMNS)

    def table(self, masses: ArrayLike = MASSES) -> pd.DataFrame:
        """Return the bounds for every group, one row per group size.

        Columns: `mass`, `group_error`, `coverage_80_low`, `coverage_80_high` (NaN if the evidence
        is counts that do not include that level).
        """
        # bounds made for a single mass do not hold for another
        shares = np.atleast_1d(masses).tolist() if self.mass is None else [self.mass]
        rows = [(mass, self.group_error(mass), *self._coverage_80(mass)) for mass in shares]
        columns = ["mass", "group_error", "coverage_80_low", "coverage_80_high"]
        return pd.DataFrame(rows, columns=columns)

    def summary(self) -> str:
        """Return the bounds as text, with their assumptions and limits."""
        lines = [
            f"With {confidence_in_full(self.confidence)} confidence, from"
            f" {count(self.n_samples, 'person', 'people')}, {self._forecasts()}:",
            *self._all_lines(),
            *self._group_lines(),
        ]
        lines += [ONE_ROW_EACH] if self.one_row_each else []
        lines.append(
            "Errors are means over all probability levels: 0 points is perfect, 50 the worst."
        )
        lines += self._remarks()
        lines.append("Assumes: " + "; ".join(self.assumptions) + ".")
        lines.append("Does not cover: " + "; ".join(self.not_covered) + ".")
        return "\n".join(lines)

    def _all_lines(self) -> list[str]:
        """Return the lines of the summary about all people and named groups."""
        overall = at_most(self.average_error())
        return [
            f"- overall, predicted probabilities are off by at most {overall} points",
            *(
                f"- in group {row['group']!r} ({count(row['n'], 'row')}), by"
                f" {band(points, row['low'], row['high'])} points"
                for row in self.named_table().to_dict("records")
            ),
        ]

    @abstractmethod
    def _forecasts(self) -> str:
        """Return the kind of forecasts that were certified, for the head of the summary."""

    def _remarks(self) -> list[str]:
        """Return the lines of the summary after the bounds."""
        return []

    def _group_lines(self, of: str = "people") -> list[str]:
        """Return the lines of the summary about every group of a given size of some people."""
        lines = []
        for row in self.table((0.1, 0.2, 0.5)).to_dict("records"):
            line = f"- in every group of at least {in_full(row['mass'])} of {of}"
            error = at_most(row["group_error"])
            # an error of 50 points, the largest, is no bound
            line += (
                f", by at most {error} points" if error != at_most(0.5) else ": nothing is proven"
            )
            if not np.isnan(row["coverage_80_low"]):
                line += _coverage(row["coverage_80_low"], row["coverage_80_high"])
            lines.append(line)
        return lines

    def _coverage_80(self, mass: float) -> tuple[float, float]:
        return self.coverage(0.8, mass)


def _coverage(low: float, high: float) -> str:
    """Return what is proven for the coverage of 80% prediction intervals; "" for nothing."""
    shown = band(percent, low, high)
    if shown == band(percent, 0.0, 1.0):
        return ""
    return f"; the 80% prediction interval covers {shown} of outcomes"
