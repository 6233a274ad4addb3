"""What held-out PITs prove about a forecaster.

Bounds that hold with stated confidence (method: proof).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import Summarized, at_least, at_most, one_line, stated, stated_confidence
from evenhand._validate import Floats, InputError, bad_input, check_fraction
from evenhand.calibration.bands import SurvivalBand, share_bound
from evenhand.certificates import evidence as _evidence
from evenhand.certificates.evidence import (
    ASSUMPTIONS,
    ONE_ROW_EACH,
    WORST,
    Evidence,
    Method,
    Values,
    not_covered,
)

__all__ = [
    "ASSUMPTIONS",
    "ONE_ROW_EACH",
    "WORST",
    "Certificate",
    "ChoiceBounds",
    "Method",
    "not_covered",
]

AVERAGE_SHARE = 0.1
"""Share of the risk of error that `group_error` spends on the error over everybody, which helps
at large masses."""

LOW_SHARE = 0.9
"""Share of the risk of coverage that is spent on the lower bound, the one that people are harmed
by."""

MASS = 0.2
"""Group size whose bound is shown in one line."""

CHOSEN = "the choice of the randomization on these people, in bounds for named groups"
"""What bounds that account for a choice do not cover."""


class ChoiceBounds(Protocol):
    """Bounds for every group that account for a choice of the randomization on the same people."""

    @property
    def confidence(self) -> float:
        """Probability that they hold."""

    @property
    def method(self) -> str:
        """How they are made."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What they rest on."""

    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error of every group of at least this share of people."""

    def coverage(self, level: float, mass: float) -> tuple[float, float]:
        """Bounds for the coverage of every such group."""

    def average_error(self) -> float:
        """Upper bound for the W1 error over everybody."""


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Summarized):
    """Bounds on the calibration of a forecaster, each of which holds with the stated confidence.

    A group here is any share of the people that is chosen without seeing the draws: by features, by
    outcomes, by any reweighting whose density ratio is at most `1 / mass`. Each method states one
    thing with `confidence`: `group_error` all masses at once, `named` all named groups at once,
    `coverage` all masses at once for one level, `mpaic` one threshold, `mpaic_curve` all of them.
    To hold `k` of them together use `confidence = 1 - (1 - confidence) / k`.

    Parameters
    ----------
    confidence : float
        Probability, over the rows and draws, that a statement is true.
    method : {"local-levels", "betting", "dkw"}
        How the bounds for every group are made.
    mass : float or None
        The one mass that bets are laid for; None where all masses are covered.
    is_randomized : bool
        Whether a draw stands behind the forecasts.
    evidence : RowEvidence or CountEvidence
        PITs of each person, or counts of them, that prove it.
    seed : int
        Of the order of the rows in bets.
    one_row_each : bool
        Whether one row of each person was taken, of several: shares are then of people, not of
        rows.
    choice : ChoiceBounds or None
        Where the randomization was chosen on these people: bounds that account for that.
        `average_error`, `group_error` and `coverage` are then read from them; other bounds do not
        account for the choice.
    """

    confidence: float
    method: Method
    mass: float | None
    is_randomized: bool
    evidence: Evidence
    seed: int = 0
    one_row_each: bool = False
    choice: ChoiceBounds | None = None

    def __repr__(self) -> str:
        return one_line(
            self,
            method=self.method if self.choice is None else self.choice.method,
            n_samples=self.n_samples,
            n_draws=self.n_draws,
            confidence=self.confidence,
            average_error=self.average_error(),
            group_error=self.group_error(self._shown_mass) if self.n_draws > 1 else None,
            group_mass=self._shown_mass if self.n_draws > 1 else None,
            groups=len(self.groups),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the statements rest on."""
        assumed = ASSUMPTIONS if self.choice is None else self.choice.assumptions
        return assumed + self.evidence.assumptions

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What they say nothing about."""
        chosen = (CHOSEN,) if self.choice is not None and self.groups else ()
        return not_covered(self.one_row_each) + chosen

    def accounting_for(self, choice: ChoiceBounds) -> Certificate:
        """Return the certificate with bounds for every group that account for a choice made on the same people.

        Raises
        ------
        InputError
            If they are made at another confidence.
        """
        if choice.confidence != self.confidence:
            raise bad_input(
                "choice",
                f"have the confidence of the certificate ({self.confidence:g})",
                choice.confidence,
            )
        return replace(self, choice=choice)

    @property
    def n_samples(self) -> int:
        """People."""
        return self.evidence.n_samples

    @property
    def n_draws(self) -> int:
        """Draws per person."""
        return self.evidence.n_draws

    @property
    def pit(self) -> Floats:
        """PITs that prove it, shape (n, m); counts keep none, and raise InputError."""
        return self.evidence.pit

    @property
    def one_draw(self) -> Floats:
        """One PIT per person, its draw chosen at random, shape (n,).

        Counts keep none, and raise InputError.
        """
        return self.evidence.one_draw

    @property
    def r(self) -> Floats | None:
        """Draws behind the PITs, shape (n, m), where known and kept."""
        return self.evidence.r

    @property
    def gaps(self) -> Floats | None:
        """`|h[x, r](y) - r|` of the draw in `one_draw`, shape (n,), where known and kept."""
        return self.evidence.gap

    @property
    def groups(self) -> Mapping[str, Any]:
        """The named groups: masks over the rows, or counts of their people."""
        return self.evidence.named

    def average_error(self) -> float:
        """Upper bound for the W1 error over everybody, 0 to 1/2; for any forecaster."""
        if self.choice is not None:
            return self.choice.average_error()
        return self.evidence.error_interval(self.confidence)[1]

    def named(self, group: str) -> float:
        """Upper bound for the W1 error of a named group, 0 to 1/2.

        All named groups at once, for any forecaster.
        """
        table = self.named_table()
        found = table.loc[table["group"] == group, "high"]
        if found.empty:
            raise bad_input("group", f"be one of {list(self.groups)}", repr(group))
        return float(found.iloc[0])

    def named_table(self) -> pd.DataFrame:
        """Bounds for the W1 errors of the named groups, all at once (Bonferroni).

        `group`, `n`, `error`, `low`, `high`.

        A group without rows has the bounds 0 and 1/2: nothing is known.
        """
        return self._named.copy()

    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error of every group of at least this share of people, 0 to 1/2.

        For a deterministic forecaster it is never below 1/4 for groups of up to half of the people:
        what is bounded there is the pathwise error, and no other quantity can be. See `questions`.
        """
        check_fraction("mass", mass, high_open=False)
        if self.choice is not None:
            return self.choice.group_error(mass)
        if self.method == "betting":
            self._check_one_mass(mass)
            return self._worst_mean(self.evidence.errors, mass, WORST, self.confidence)
        everybody = self.evidence.error_interval(1 - (1 - self.confidence) * AVERAGE_SHARE)[1]
        if mass == 1:
            return min(self._band.cvar(1.0), everybody)
        # a group's distance from uniform is at most that of everybody and of its complement
        # together, by share
        rest = (everybody + (1 - mass) * self._band.cvar(1 - mass)) / mass
        return min(self._band.cvar(mass), rest, WORST)

    def coverage(self, level: float, mass: float) -> tuple[float, float]:
        """Bound the share of outcomes that the central interval of a level holds, in every group of this mass.

        Parameters
        ----------
        level : float
            Stated probability of the interval, such as 0.8.
        mass : float
            Least share of people in the group, 0 < mass <= 1.

        Returns
        -------
        low, high : float
            The coverage of every such group lies between them.
        """
        check_fraction("level", level)
        check_fraction("mass", mass, high_open=False)
        if self.choice is not None:
            return self.choice.coverage(level, mass)
        if self.method == "betting":
            self._check_one_mass(mass)
        inside = self.evidence.inside(level)
        risk = 1 - self.confidence
        missed = self._worst_mean(inside.complement(), mass, 1.0, 1 - risk * LOW_SHARE)
        return 1 - missed, self._worst_mean(inside, mass, 1.0, 1 - risk * (1 - LOW_SHARE))

    def mpaic(self, error: float) -> float:
        """Upper bound for `P(|h[X, R](Y) - R| >= error)`, the delta of the paper's mPAIC, at one threshold.

        Clopper-Pearson on one draw per row. Needs the draws.
        """
        check_fraction("error", error, low_open=False, high_open=False)
        gaps = self._known_gaps()
        return share_bound(gaps.at_least(error), gaps.total(), self.confidence)

    def mpaic_curve(self, errors: ArrayLike) -> Floats:
        """Upper bounds for `P(|h[X, R](Y) - R| >= error)` at all thresholds at once, by DKW.

        Shape as `errors`.

        Looser at each one than `mpaic`, which holds for a single threshold chosen beforehand. Needs
        the draws.
        """
        thresholds = np.asarray(errors, dtype=np.float64)
        for error in thresholds.ravel():
            check_fraction("error", error, low_open=False, high_open=False)
        band = self._known_gaps().band("dkw", 1.0, self.confidence)
        # P(gap >= e) is at most the band just below e
        before = np.searchsorted(band.starts, thresholds, side="left") - 1
        return np.where(before < 0, 1.0, band.upper[np.maximum(before, 0)])

    def chain(self, mass: float) -> float:
        """Return the bound for every group that the paper's own results give, 0 to 1/2.

        Looser than `group_error`.

        A bound on mPAIC at all thresholds at once (the concentration proposition, in the direction
        that a certificate needs), then PAIC, then groups, the two thresholds chosen best. Needs the
        draws.
        """
        check_fraction("mass", mass, high_open=False)
        threshold = np.linspace(0.0, WORST, 201)
        delta = self.mpaic_curve(threshold)
        e = threshold[:, None]
        target = threshold[None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            outside = np.where(target > e, delta[:, None] * (1 - e) / (target - e), np.inf)
        bounds = np.where(outside < mass, target + outside / mass, WORST)
        return min(float(bounds.min()), WORST)

    @cached_property
    def questions(self) -> pd.DataFrame:
        """What the rows can answer for this kind of forecaster: `question`, `answered`, `why`."""
        return _evidence.questions(self.n_draws, self.is_randomized)

    def summary(self) -> str:
        """Return the statements as text, with what they assume and what they do not cover."""
        draws = f"{self.n_draws} draw{'' if self.n_draws == 1 else 's'}"
        each = draws if self.is_randomized else "one deterministic forecast"
        lines = [
            f"With {stated_confidence(self.confidence)} confidence, from {self.n_samples:,} people,"
            f" {each} each:"
        ]
        lines.append(
            f"- over everybody, stated chances are off by at most {at_most(self.average_error())}"
            " points"
        )
        lines += [
            f"- for group {row['group']!r} ({row['n']} rows), by {at_least(row['low'])} to"
            f" {at_most(row['high'])} points"
            for row in self._named.to_dict("records")
        ]
        if self.n_draws > 1:
            for row in self.table((0.1, 0.2, 0.5)).to_dict("records"):
                error = at_most(row["group_error"])
                line = (
                    f"- for every group of at least {stated(row['mass'])} of people, by at most"
                    f" {error} points"
                )
                if self.evidence.knows(0.8):
                    low = at_least(row["coverage_80_low"])
                    high = at_most(row["coverage_80_high"])
                    line += f"; the 80% interval holds {low}% to {high}% there"
                lines.append(line)
        if self.choice is not None:
            lines.append(
                "Bounds for every group account for the randomization having been chosen on these"
                " people."
            )
        lines += [ONE_ROW_EACH] if self.one_row_each else []
        lines.append(
            "Off by 0 points is perfect, by 50 the worst, averaged over all probability levels."
        )
        lines += [
            f"Cannot be answered: {row['question']}? {row['why']}."
            for row in self.questions.to_dict("records")
            if not row["answered"]
        ]
        lines.append("Assumes: " + "; ".join(self.assumptions) + ".")
        lines.append("Does not cover: " + "; ".join(self.not_covered) + ".")
        return "\n".join(lines)

    def table(self, masses: ArrayLike = (0.1, 0.2, 0.5, 1.0)) -> pd.DataFrame:
        """Return the bounds for every group of some masses, the paper's chain beside the direct bound.

        Columns: `mass`, `group_error`, `chain` (NaN where the draws are not known, and where the
        randomization was chosen on these people), `coverage_80_low`, `coverage_80_high` (NaN where
        counts do not know that level).
        """
        shares = (
            [self.mass]
            if self.mass is not None
            else [float(mass) for mass in np.atleast_1d(masses)]
        )
        columns = ["mass", "group_error", "chain", "coverage_80_low", "coverage_80_high"]
        rows = []
        for mass in shares:
            has_chain = self.evidence.gaps is not None and self.choice is None
            chain = self.chain(mass) if has_chain else np.nan
            is_counted = self.choice is not None or self.evidence.knows(0.8)
            held = self.coverage(0.8, mass) if is_counted else (np.nan, np.nan)
            rows.append((mass, self.group_error(mass), chain, *held))
        return pd.DataFrame(rows, columns=columns)

    @property
    def _shown_mass(self) -> float:
        return MASS if self.mass is None else self.mass

    @cached_property
    def _band(self) -> SurvivalBand:
        return self.evidence.errors.band(
            self.method, WORST, 1 - (1 - self.confidence) * (1 - AVERAGE_SHARE)
        )

    def _worst_mean(self, values: Values, mass: float, top: float, confidence: float) -> float:
        return values.worst_mean(self.method, mass, top, confidence, self.seed)

    @cached_property
    def _named(self) -> pd.DataFrame:
        return _evidence.named_table(self.evidence.groups, self.confidence)

    def _known_gaps(self) -> Values:
        if self.evidence.gaps is None:
            raise InputError(
                "mPAIC compares PITs with their draws, which are not known here; give r"
            )
        return self.evidence.gaps

    def _check_one_mass(self, mass: float) -> None:
        if mass != self.mass:
            remedy = "use method='local-levels' for all masses"
            raise bad_input(
                "mass", f"be {self.mass}, the one mass that bets were laid for", mass, remedy
            )
