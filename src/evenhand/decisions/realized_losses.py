"""Realized and promised losses of a decision, overall and in groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from evenhand._format import count, in_full, percent
from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import betting_cvar, cvar, local_levels_band, share_bound, share_interval
from evenhand.decisions.bayes import Decisions

WHY = {
    "one way": "the losses of all actions are monotone in the same direction, or constant",
    "same choice": (
        "the direction in which the loss of the chosen action rises changes with the draw for no"
        " person, over {m} draws each"
    ),
    "draws": (
        "for {share} of people the direction in which the loss of the chosen action rises depends"
        " on the draw, so both tails count"
    ),
    "few draws": (
        "losses of different actions rise in both directions, and {draws} per person cannot"
        " show whether the direction depends on the draw: use at least {needed},"
        " draws.jittered(n, 64)"
    ),
    "same for all": "the loss of the chosen action rises in the same direction for all people",
    "both": "losses of chosen actions rise in both directions, so both tails count",
}
"""Reasons for the factor 1 or 2 in the theorem's bound."""

ENOUGH_DRAWS = 16
"""Minimum number of draws per person to see whether the direction depends on the draw."""


class Statement(NamedTuple):
    """Frequency of losses above `k` times the promise in a group; a row of a guarantee's table.

    `low` and `high` are the ends of a confidence interval for `exceeded`, `bound` is the theorem's.
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
        """Verdict of the rows on the bound: proven, broken or open; no claim if the bound is 1."""
        if self.bound >= 1:
            return "no claim"
        if self.high <= self.bound:
            return "proven"
        return "broken" if self.low > self.bound else "open"


@dataclass(frozen=True)
class RealizedLosses:
    """Realized and promised losses: rows are people, columns are draws.

    Parameters
    ----------
    losses, promised : ndarray of shape (n, m)
        Realized and promised loss.
    chosen_ways : ndarray of int, shape (n, m)
        Direction of the loss of the chosen action: 1 if it rises with the outcome, -1 if it falls,
        0 if it is constant.
    differs : ndarray of bool, shape (n,)
        Whether a person has actions of both directions.
    is_randomized : bool
        Whether the forecasts depend on draws.
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
        """Return the losses of some people."""
        return RealizedLosses(
            self.losses[rows],
            self.promised[rows],
            self.chosen_ways[rows],
            self.differs[rows],
            self.is_randomized,
        )

    @property
    def mixed(self) -> float:
        """Share of people for whom the direction of the loss depends on the draw.

        NaN if there are too few draws per person.
        """
        if not self.is_randomized or not self.differs.any():
            return 0.0
        # with few draws per person, actions that other draws would choose go unnoticed
        if self.losses.shape[1] < ENOUGH_DRAWS:
            return np.nan
        return float(_both(self.chosen_ways).mean())

    def factor(self) -> tuple[int, str]:
        """Return 1 or 2, for a bound of 1/k or 2/k, and the reason."""
        if not self.is_randomized:
            # calibration is over people, not draws: the directions of all people count
            both = bool(_both(self.chosen_ways.reshape(1, -1))[0])
            return (2, WHY["both"]) if both else (1, WHY["same for all"])
        # per person: without actions of opposite directions no draw can change the tail
        if not self.differs.any():
            return 1, WHY["one way"]
        m = self.losses.shape[1]
        if np.isnan(self.mixed):
            return 2, WHY["few draws"].format(draws=count(m, "draw"), needed=ENOUGH_DRAWS)
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
        """Return statements for everyone, for named groups and for every group of each size.

        They are simultaneous within each of the three kinds.
        """
        # Bonferroni correction for the named groups
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
        if shares.size == 0:  # one row per person may leave a group without rows
            nothing = (np.nan, np.nan, np.nan)
            return Statement(group, kind, mass, k, 0, *nothing, 0.0, 1.0, bound)
        if self.losses.shape[1] == 1:
            # one draw each: independent trials, for which Clopper-Pearson intervals are exact
            low, high = share_interval(round(shares.sum()), shares.size, confidence)
        else:
            # shares in [0, 1]: a betting bound on each side, at half the error probability
            side = 1 - (1 - confidence) / 2
            low = 1 - betting_cvar(1 - shares, 1.0, 1.0, side, random)
            high = betting_cvar(shares, 1.0, 1.0, side, random)
        means = (self.promised.mean(), self.losses.mean(), shares.mean())
        return Statement(group, kind, mass, k, shares.size, *means, low, high, bound)

    def _every_group(self, k: float, masses: Floats, confidence: float) -> Iterator[Statement]:
        """Yield statements for every group of each size, simultaneous over sizes."""
        shares = self._exceeded(k)
        everyone = self._bound(k)
        if self.losses.shape[1] > 1:
            high = local_levels_band(shares, 1.0, confidence).cvar
        else:
            # one draw per person: the worst group contains all people whose loss exceeds the bound
            all_misses = share_bound(round(shares.sum()), shares.size, confidence)

            def high(mass: float) -> float:
                return min(1.0, all_misses / mass)

        for mass in masses.tolist():
            # without draws average calibration allows all exceedances in the same group
            bound = everyone if self.is_randomized else min(1.0, everyone / mass)
            group = f"every group of {in_full(mass)}"
            means = (np.nan, np.nan, cvar(shares, mass))
            yield Statement(group, "every", mass, k, shares.size, *means, 0.0, high(mass), bound)

    def _exceeded(self, k: float) -> Floats:
        """Return the share of each person's draws whose loss exceeds k times the promise."""
        # a tolerance for rounding errors: a constant loss equals its promise
        return np.asarray((self.losses > (1 + 1e-9) * k * self.promised).mean(axis=1))

    def _bound(self, k: float) -> float:
        return min(1.0, self.factor()[0] / k)

    def broken_promise(self, confidence: float) -> tuple[float, float]:
        """Return a normal interval for mean realized minus promised loss; NaN for one person."""
        more = (self.losses - self.promised).mean(axis=1)
        if more.size < 2:
            return np.nan, np.nan
        half = float(norm.ppf((1 + confidence) / 2) * more.std(ddof=1) / np.sqrt(more.size))
        return float(more.mean()) - half, float(more.mean()) + half


def _both(ways: Ints) -> Mask:
    """Return whether each row contains both directions."""
    return np.asarray((ways > 0).any(axis=1) & (ways < 0).any(axis=1))
