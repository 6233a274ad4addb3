"""Realized and promised losses of each person under a decision, for everyone and for groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from evenhand._format import in_full, percent
from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import betting_cvar, cvar, local_levels_band, share_bound, share_interval
from evenhand.decisions.bayes import Decisions

WHY = {
    "one way": "all actions lose in the same direction of the outcome, or not at all",
    "same choice": (
        "no person's draws, {m} each, change the direction in which the chosen action loses"
    ),
    "draws": (
        "for {share} of people the draw decides in which direction the chosen action loses: either"
        " tail counts"
    ),
    "few draws": (
        "actions lose in both directions, and {m} draw(s) per person do not show whether the draw"
        " decides which: give at least {needed}, draws.jittered(n, 64)"
    ),
    "same for all": "everybody's chosen action loses in the same direction",
    "both": "chosen actions lose in both directions: either tail counts",
}
"""Why the theorem's bound is what it is."""

ENOUGH_DRAWS = 16
"""Fewest draws per person that show whether the chosen direction depends on the draw."""


class Statement(NamedTuple):
    """How often the loss exceeds `k` times the promise in a group; a row of a guarantee's table.

    `low` and `high` are what confidence leaves possible for `exceeded`, `bound` is the theorem's.
    """

    group: str
    kind: str
    mass: float
    k: float
    n: int
    promised: float
    realized: float
    exceeded: float
    low: float
    high: float
    bound: float

    @property
    def verdict(self) -> str:
        """Whether the rows prove the bound, refute it, or neither; "no claim" of a bound of 1."""
        if self.bound >= 1:
            return "no claim"
        if self.high <= self.bound:
            return "proven"
        return "broken" if self.low > self.bound else "open"


@dataclass(frozen=True)
class RealizedLosses:
    """Realized and promised losses: rows are people, columns draws.

    Parameters
    ----------
    losses, promised : ndarray of shape (n, m)
        Realized and promised loss.
    chosen_ways : ndarray of int, shape (n, m)
        Direction of the outcome in which the chosen action loses: 1, -1, or 0 for neither.
    differs : ndarray of bool, shape (n,)
        Whether some actions of a person lose in one direction and some in the other.
    is_randomized : bool
        Whether draws stand behind the forecasts.
    """

    losses: Floats
    promised: Floats
    chosen_ways: Ints
    differs: Mask
    is_randomized: bool

    @classmethod
    def of(
        cls, decisions: Decisions, losses: Floats, ways: Ints, is_randomized: bool
    ) -> RealizedLosses:
        """Collect losses; `ways` are the directions of all actions, shape (n or 1, n_actions)."""
        n = len(losses)
        ways = np.broadcast_to(ways, (n, ways.shape[1]))
        chosen = np.take_along_axis(ways, decisions.index.reshape(n, -1), axis=1)
        return cls(
            losses.reshape(n, -1),
            decisions.promised.reshape(n, -1),
            chosen,
            _both(ways),
            is_randomized,
        )

    def take(self, rows: Any) -> RealizedLosses:
        """Return some people."""
        return RealizedLosses(
            self.losses[rows],
            self.promised[rows],
            self.chosen_ways[rows],
            self.differs[rows],
            self.is_randomized,
        )

    @property
    def mixed(self) -> float:
        """Share of people whose draws choose actions that lose in different directions.

        NaN if there are too few draws to show it.
        """
        if not self.is_randomized or not self.differs.any():
            return 0.0
        # a few draws of a person may all choose alike although others would not
        if self.losses.shape[1] < ENOUGH_DRAWS:
            return np.nan
        return float(_both(self.chosen_ways).mean())

    def factor(self) -> tuple[int, str]:
        """1 or 2, for a bound of 1/k or 2/k, and why."""
        if not self.is_randomized:
            # calibrated over people, not draws: the directions of all of them count together
            both = bool(_both(self.chosen_ways.reshape(1, -1))[0])
            return (2, WHY["both"]) if both else (1, WHY["same for all"])
        # per person: where no two actions lose in opposite directions, no draw can change the tail
        if not self.differs.any():
            return 1, WHY["one way"]
        m = self.losses.shape[1]
        if np.isnan(self.mixed):
            return 2, WHY["few draws"].format(m=m, needed=ENOUGH_DRAWS)
        if self.mixed:
            return 2, WHY["draws"].format(share=percent(self.mixed))
        return 1, WHY["same choice"].format(m=m)

    def statements(
        self,
        k: float,
        groups: Mapping[str, Mask],
        masses: Floats,
        confidence: float,
        random: np.random.Generator,
    ) -> list[Statement]:
        """Statements for everyone, for all named groups together, for all masses together."""
        # all named groups at once, by Bonferroni
        shared = 1 - (1 - confidence) / max(len(groups), 1)
        return [
            self._statement("everyone", "everyone", 1.0, k, confidence, random),
            *(
                self.take(mask)._statement(name, "named", np.nan, k, shared, random)
                for name, mask in groups.items()
            ),
            *self._every_group(k, masses, confidence),
        ]

    def _statement(
        self,
        group: str,
        kind: str,
        mass: float,
        k: float,
        confidence: float,
        random: np.random.Generator,
    ) -> Statement:
        shares = self._exceeded(k)
        bound = self._bound(k)
        if shares.size == 0:  # a group that lost its rows to clusters: nothing is known
            nothing = (np.nan, np.nan, np.nan)
            return Statement(group, kind, mass, k, 0, *nothing, 0.0, 1.0, bound)
        if self.losses.shape[1] == 1:
            # one draw each: hits of independent trials, for which Clopper-Pearson is exact
            low, high = share_interval(round(shares.sum()), shares.size, confidence)
        else:
            # several: shares between 0 and 1, whose mean bets bound from each side at half the risk
            side = 1 - (1 - confidence) / 2
            low = 1 - betting_cvar(1 - shares, 1.0, 1.0, side, random)
            high = betting_cvar(shares, 1.0, 1.0, side, random)
        means = (self.promised.mean(), self.losses.mean(), shares.mean())
        return Statement(group, kind, mass, k, shares.size, *means, low, high, bound)

    def _every_group(self, k: float, masses: Floats, confidence: float) -> Iterator[Statement]:
        """Yield statements for every group of each mass, all masses together."""
        shares = self._exceeded(k)
        everyone = self._bound(k)
        if self.losses.shape[1] > 1:
            high = local_levels_band(shares, 1.0, confidence).cvar
        else:
            # a person's one draw exceeds or not: a group may hold everybody whose promise broke
            all_misses = share_bound(round(shares.sum()), shares.size, confidence)

            def high(mass: float) -> float:
                return min(1.0, all_misses / mass)

        for mass in masses.tolist():
            # without draws the misses that average calibration allows may all be in one group
            bound = everyone if self.is_randomized else min(1.0, everyone / mass)
            group = f"every group of {in_full(mass)}"
            means = (np.nan, np.nan, cvar(shares, mass))
            yield Statement(group, "every", mass, k, shares.size, *means, 0.0, high(mass), bound)

    def _exceeded(self, k: float) -> Floats:
        """Share of each person's draws whose loss exceeds k times the promise."""
        # by more than rounding errors: a constant loss is exactly what was promised
        return np.asarray((self.losses > (1 + 1e-9) * k * self.promised).mean(axis=1))

    def _bound(self, k: float) -> float:
        return min(1.0, self.factor()[0] / k)

    def broken_promise(self, confidence: float) -> tuple[float, float]:
        """Normal interval for the mean realized less promised loss; NaN for one person."""
        more = (self.losses - self.promised).mean(axis=1)
        if more.size < 2:
            return np.nan, np.nan
        half = float(norm.ppf((1 + confidence) / 2) * more.std(ddof=1) / np.sqrt(more.size))
        return float(more.mean()) - half, float(more.mean()) + half


def _both(ways: Ints) -> Mask:
    """Whether a row holds both directions."""
    return np.asarray((ways > 0).any(axis=1) & (ways < 0).any(axis=1))
