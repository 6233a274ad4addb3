"""Recalibration of probabilities of events: joint terms of log odds by group (outcomes: 3).

A forecast probability P is calibrated in a group if the event has the rate P among the rows of the
group with this forecast. The correction adds terms to the log odds: `l + a + b (l - c) / s`, with
`a = a_0 + sum_g a_g` and `b = b_0 + sum_g b_g` over the groups `g` that contain a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse, special

from evenhand._validate import Floats, Mask
from evenhand.forecasters.curves import Curve

LEAST_SLOPE = 0.05
"""Smallest slope of corrected in predicted log odds, so that the correction increases."""

EXACT = 1e-12
"""Probabilities closer to 0 or 1 count as exactly 0 or 1, which no correction could change."""


@dataclass(frozen=True)
class EventMaps:
    """Corrections of the probability of an event.

    Parameters
    ----------
    names : tuple of str
        Groups with terms of their own.
    location, slope : ndarray of shape (1 + n_groups,)
        Terms of all rows, then of each group.
    center, scale : float
        Mean and standard deviation of the predicted log odds.
    least : float
        Predicted probabilities are moved into `[least, 1 - least]`.
    curve : Curve
        Further correction of all rows.
    """

    names: tuple[str, ...]
    location: Floats
    slope: Floats
    center: float
    scale: float
    least: float
    curve: Curve

    def apply(self, probability: Floats, members: sparse.csr_array) -> Floats:
        """Return the corrected probabilities.

        Parameters
        ----------
        probability : ndarray of shape (n,)
            Predicted probabilities.
        members : sparse array of shape (n, n_groups)
            Membership in the groups with terms.
        """
        if self.is_identity:
            return probability
        odds = special.logit(np.clip(probability, self.least, 1 - self.least))
        location = self.location[0] + members @ self.location[1:]
        slope = self.slope[0] + members @ self.slope[1:]
        # groups that did not overlap in training may have slopes that add up to less than -1
        slope = np.maximum(slope / self.scale, LEAST_SLOPE - 1)
        moved = odds + location + slope * (odds - self.center)
        return np.asarray(special.expit(self.curve.apply(moved)))

    @property
    def is_identity(self) -> bool:
        """Whether nothing is corrected."""
        return not (self.location.any() or self.slope.any() or self.curve.knots.size)

    def to_state(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "names": list(self.names),
            "location": self.location.tolist(),
            "slope": self.slope.tolist(),
            "numbers": [self.center, self.scale, self.least],
            "curve": [self.curve.knots.tolist(), self.curve.values.tolist()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild corrections from the output of `to_state`."""
        center, scale, least = map(float, state["numbers"])
        location, slope = (np.array(state[name], dtype=float) for name in ("location", "slope"))
        knots, values = (np.array(one, dtype=np.float64) for one in state["curve"])
        curve = Curve(knots, values)
        return cls(tuple(state["names"]), location, slope, center, scale, least, curve)


@dataclass(frozen=True)
class Events:
    """Predicted probabilities of an event in n rows, and what happened.

    Parameters
    ----------
    probability : ndarray of shape (n,)
        Predicted probabilities.
    happened : ndarray of bool or float, shape (n,)
        Whether the event happened, or the probability that it did where this is not known.
    """

    probability: Floats
    happened: Mask | Floats

    def take(self, rows: Any) -> Events:
        """Return some rows."""
        return Events(self.probability[rows], self.happened[rows])

    def gains(self, corrected: Floats) -> Floats:
        """Return the gain in log score of each row by corrected probabilities.

        What happened must be known.
        """
        return self._log_scores(corrected) - self._log_scores(self.probability)

    def _log_scores(self, probability: Floats) -> Floats:
        # an event of probability 0 has an infinite loss, which no mean can contain
        inside = np.clip(probability, EXACT, 1 - EXACT)
        return np.where(self.happened, np.log(inside), np.log1p(-inside))
