"""One value per person, as values or as counts of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats
from evenhand.calibration import SurvivalBand, betting_cvar, dkw_band, local_levels_band
from evenhand.certificates.certificate import Method

__all__ = ["Values"]


class Values(NamedTuple):
    """One value per person; with `counts`, each value is that of so many people."""

    values: Floats
    counts: NDArray[np.int64] | None = None

    def complement(self) -> Values:
        """Return 1 less each value."""
        return Values(1 - self.values, self.counts)

    def band(self, method: Method, top: float, confidence: float) -> SurvivalBand:
        """Upper band for the distribution of the values."""
        # bets make no band: they are laid for one mean, see worst_mean
        make = dkw_band if method == "dkw" else local_levels_band
        return make(self.values, top, confidence, self.counts)

    def worst_mean(
        self, method: Method, mass: float, top: float, confidence: float, seed: int
    ) -> float:
        """Upper bound for the mean of the worst `mass`; bets need a row each."""
        if method == "betting":
            return betting_cvar(self.values, mass, top, confidence, seed)
        return self.band(method, top, confidence).cvar(mass)

    def total(self) -> int:
        """Return the number of people."""
        return self.values.size if self.counts is None else int(self.counts.sum())

    def at_least(self, threshold: float) -> int:
        """Return the number of people whose value is at least this."""
        hits = self.values >= threshold
        return int(hits.sum() if self.counts is None else self.counts[hits].sum())
