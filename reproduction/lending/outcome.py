"""Outcome of a round of the lending game: answers and utilities by person."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand._format import Summarized, plain_number
from evenhand._validate import Floats, Ints, Mask
from reproduction.lending.rules import LendingRules


@dataclass(frozen=True, eq=False, repr=False)
class Round(Summarized):
    """Outcome of a round for n people.

    Parameters
    ----------
    game : LendingGame
        The rules.
    qualified, applied, approved : ndarray of bool, shape (n,)
        Whether each person is qualified, applied and was approved.
    tries : ndarray of int, shape (n,)
        Number of applications of each person.
    bank : forecaster
        The bank of this round, as fitted then.
    """

    game: LendingRules
    qualified: Mask
    applied: Mask
    approved: Mask
    tries: Ints
    bank: Any = field(default=None, compare=False)

    @property
    def bank_utilities(self) -> Floats:
        """Gain of the bank from each person, shape (n,)."""
        game = self.game
        return np.where(
            self.approved, np.where(self.qualified, game.bank_gain, -game.bank_loss), 0.0
        )

    @property
    def utilities(self) -> Floats:
        """Gain of each person, shape (n,); 0 for people who did not apply."""
        game = self.game
        gain = np.where(self.qualified, game.gain_qualified, game.gain_unqualified)
        # the first try is free, further tries cost
        ending = np.where(self.approved, gain, -game.refusal_cost)
        return np.where(self.applied, ending - game.retry_cost * np.maximum(self.tries - 1, 0), 0.0)

    @property
    def bank_utility(self) -> float:
        """Mean gain of the bank over all people, including those who did not apply."""
        return float(self.bank_utilities.mean())

    @property
    def bank_utility_per_applicant(self) -> float:
        """Mean gain of the bank over applicants; 0 if nobody applied."""
        return float(self.bank_utilities[self.applied].mean()) if self.applied.any() else 0.0

    @property
    def exploiting(self) -> float:
        """Share of all people who are unqualified and applied (exploitative in the paper)."""
        return float((self.applied & ~self.qualified).mean())

    @property
    def bad_loan_share(self) -> float:
        """Share of people who are unqualified and approved; individual calibration bounds it."""
        # a share of all people, because there are no bounds for groups defined by answers
        return float((self.approved & ~self.qualified).mean())

    @property
    def default_rate(self) -> float:
        """Unqualified share of approved people, which calibration does not bound; NaN if none."""
        return (
            float((~self.qualified[self.approved]).mean()) if self.approved.any() else float("nan")
        )

    def measures(self) -> dict[str, float]:
        """Return counts, shares and utilities by name, as a row of a table of rounds."""
        names = (
            "bank_utility",
            "bank_utility_per_applicant",
            "exploiting",
            "bad_loan_share",
            "default_rate",
        )
        counts = {
            "people": self.applied.size,
            "applied": int(self.applied.sum()),
            "approved": int(self.approved.sum()),
        }
        counts["bad_loans"] = int((self.approved & ~self.qualified).sum())
        return counts | {name: getattr(self, name) for name in names}

    def summary(self) -> str:
        """Return the round in two sentences."""
        seen = self.measures()
        gained = self.utilities[self.applied].mean() if self.applied.any() else 0.0
        return (
            f"{seen['applied']:,} of {seen['people']:,} people applied, {seen['approved']:,} were"
            f" approved, {seen['bad_loans']:,} of them unqualified. The bank gained"
            f" {plain_number(self.bank_utility)} per person and"
            f" {plain_number(self.bank_utility_per_applicant)} per applicant; applicants gained"
            f" {plain_number(gained)} each."
        )

    def __repr__(self) -> str:
        seen = self.measures()
        return (
            f"Round({seen['people']} people, {seen['applied']} applied, {seen['approved']}"
            f" approved, {seen['bad_loans']} of them unqualified)"
        )
