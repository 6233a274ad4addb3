"""Learned groups in which a deterministic model is off: overall, and in its spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from evenhand._validate import Floats, InputError
from evenhand.calibration import PITs, as_pits, covered
from evenhand.planning import LEVEL
from evenhand.search import FoundGroup, GroupSearch

SEARCH_FOLDS = 3
"""Folds of a search: the models of the last two are trained, which takes 0.2 s at 1,000 rows."""

SEARCH_ROWS = 10_000
"""Most rows of a search."""


@dataclass(frozen=True, eq=False)
class SpreadGroup:
    """Learned group whose spread differs the most from that of other people.

    Parameters
    ----------
    error : float
        Estimate of the part of the group's W1 error that is due to a spread other than that of all
        people, 0 to 1/4; not clipped, as that of `FoundGroup`.
    is_significant : bool
        Whether the spread differs significantly.
    coverage_80, overall_80 : float
        Share of outcomes that the model's 80% prediction intervals cover in the group and overall.
    description : str or None
        Conditions that nearly define the group, as in `FoundGroup`.
    """

    error: float
    is_significant: bool
    coverage_80: float
    overall_80: float
    description: str | None


@dataclass(frozen=True, eq=False)
class GroupSearches:
    """Searches for learned groups in which a deterministic model is off.

    Parameters
    ----------
    pit : PITs or ndarray of shape (n,)
        PITs of the deterministic model on rows that it has not seen; with cells for outcomes with
        atoms, over whose positions `learned` averages.
    X : table or array of n rows
        Features.
    mass : float
        Group size, as a share of the rows.
    confidence : float
        Confidence level of bounds and tests.
    seed : int
        Seed of the searches.
    """

    pit: Floats | PITs
    X: Any
    mass: float
    confidence: float
    seed: int

    def learned(self) -> FoundGroup | None:
        """Return the group with the largest error; None with too few rows or unusable features."""
        return self._found(self.pit)

    def spread(self) -> SpreadGroup | None:
        """Return the group whose spread differs the most; None as for `learned`.

        The distances of PITs from 1/2 are replaced by their ranks, whose distribution is uniform
        overall: a group deviates from it only if its spread is not that of all people, so a model
        that recalibration repairs has no such group. Under the hypothesis that the distance does
        not depend on the features, the ranks are in random order.
        """
        pits = as_pits(self.pit)
        # a rank needs one value per person: the drawn position in a cell
        (drawn,) = pits.matrix.T
        n = drawn.size
        # equal distances, as of PITs of 0 and 1, are ranked at random: mean ranks are not uniform
        order = np.random.default_rng(self.seed).permutation(n)
        ranks = np.empty(n)
        ranks[order] = (rankdata(np.abs(drawn[order] - 0.5), method="ordinal") - 0.5) / n
        found = self._found(ranks)
        if found is None:
            return None
        inside = covered(pits, LEVEL)
        return SpreadGroup(
            # a symmetric deviation of the PITs is half as large as that of their distances
            error=found.error / 2,
            is_significant=found.is_significant,
            coverage_80=float(inside[found.rows].mean()),
            overall_80=float(inside.mean()),
            description=found.description,
        )

    def _found(self, pit: Floats | PITs) -> FoundGroup | None:
        try:
            search = GroupSearch(
                pit,
                self.X,
                n_folds=SEARCH_FOLDS,
                max_rows=SEARCH_ROWS,
                random_state=self.seed,
            )
            return search.find(self.mass, confidence=self.confidence)
        except InputError:
            # too few rows, or features that only the model can read
            return None
