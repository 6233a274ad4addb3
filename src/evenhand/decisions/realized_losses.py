"""Realized and promised losses of each person under a decision, for everyone and for groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from evenhand._format import percent, stated
from evenhand._validate import Floats
from evenhand.calibration import (
    betting_cvar,
    cvar,
    local_levels_band,
    share_bound,
    share_interval,
)
from evenhand.decisions.bayes import Decisions

Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]

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
        return (
            float(_both(self.chosen_ways).mean())
            if self.losses.shape[1] >= ENOUGH_DRAWS
            else np.nan
        )

    def factor(self) -> tuple[int, str]:
        """1 or 2, for a bound of 1/k or 2/k, and why."""
        if not self.is_randomized:
            both = bool(_both(self.chosen_ways.reshape(1, -1))[0])
            return (2, WHY["both"]) if both else (1, WHY["same for all"])
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
    ) -> list[dict[str, Any]]:
        """Rows for everyone, for all named groups together, for groups of all masses together."""
        everyone = self._statement(k, confidence, random) | {
            "group": "everyone",
            "kind": "everyone",
            "mass": 1.0,
        }
        shared = 1 - (1 - confidence) / max(len(groups), 1)
        named = [
            self.take(mask)._statement(k, shared, random)
            | {
                "group": name,
                "kind": "named",
                "mass": np.nan,
            }
            for name, mask in groups.items()
        ]
        return [everyone, *named, *self._every_group(k, masses, confidence)]

    def _statement(
        self, k: float, confidence: float, random: np.random.Generator
    ) -> dict[str, Any]:
        shares = self._exceeded(k)
        m = self.losses.shape[1]
        row = {"k": k, "n": shares.size, "bound": self._bound(k)}
        if shares.size == 0:
            return row | {
                "promised": np.nan,
                "realized": np.nan,
                "exceeded": np.nan,
                "low": 0.0,
                "high": 1.0,
            }
        row |= {"promised": self.promised.mean(), "realized": self.losses.mean()}
        if m == 1:
            low, high = share_interval(round(shares.sum()), shares.size, confidence)
        else:
            side = 1 - (1 - confidence) / 2
            low = 1 - betting_cvar(1 - shares, 1.0, 1.0, side, random)
            high = betting_cvar(shares, 1.0, 1.0, side, random)
        return row | {"exceeded": shares.mean(), "low": low, "high": high}

    def _every_group(self, k: float, masses: Floats, confidence: float) -> list[dict[str, Any]]:
        shares = self._exceeded(k)
        bound = self._bound(k)
        if self.losses.shape[1] > 1:
            band = local_levels_band(shares, 1.0, confidence)
            high = [band.cvar(mass) for mass in masses]
        else:  # one group may hold everybody whose promise was broken
            everyone = share_bound(round(shares.sum()), shares.size, confidence)
            high = [min(1.0, everyone / mass) for mass in masses]
        bounds = [bound if self.is_randomized else min(1.0, bound / mass) for mass in masses]
        return [
            {
                "k": k,
                "n": shares.size,
                "exceeded": cvar(shares, mass),
                "low": 0.0,
                "high": most,
                "bound": limit,
            }
            | {"promised": np.nan, "realized": np.nan}
            | {"group": f"every group of {stated(mass)}", "kind": "every", "mass": mass}
            for mass, most, limit in zip(masses.tolist(), high, bounds, strict=True)
        ]

    def _exceeded(self, k: float) -> Floats:
        """Share of each person's draws whose loss exceeds k times the promise."""
        # by more than rounding errors
        return np.asarray((self.losses > (1 + 1e-9) * k * self.promised).mean(axis=1))

    def _bound(self, k: float) -> float:
        return min(1.0, self.factor()[0] / k)

    def broken_promise(self, confidence: float) -> tuple[float, float]:
        """Ends of a normal interval for the mean of the realized less the promised loss.

        NaN for one person.
        """
        more = (self.losses - self.promised).mean(axis=1)
        if more.size < 2:
            return np.nan, np.nan
        half = float(norm.ppf((1 + confidence) / 2) * more.std(ddof=1) / np.sqrt(more.size))
        return float(more.mean()) - half, float(more.mean()) + half


def _both(ways: Ints) -> Mask:
    """Whether a row holds both directions."""
    return np.asarray((ways > 0).any(axis=1) & (ways < 0).any(axis=1))
