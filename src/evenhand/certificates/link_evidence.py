"""Evidence of a certificate of links: bands for a base's PITs (method: sharp certificate)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from evenhand._format import one_line
from evenhand._validate import Floats
from evenhand.calibration import CDFBand, SurvivalBand
from evenhand.certificates.promise import Envelope
from evenhand.links import Link

Bound = Literal["sharp", "pathwise"]


@dataclass(frozen=True)
class Sample:
    """PITs of people, or limits between which they lie, with their numbers.

    Parameters
    ----------
    low, high : ndarray of shape (k,)
        Limits of the PITs; both are the PITs themselves if these are known.
    counts : ndarray of int64, shape (k,), or None
        Number of people between each pair of limits; None for one each.
    """

    low: Floats
    high: Floats
    counts: NDArray[np.int64] | None = None

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.low.size if self.counts is None else int(self.counts.sum())

    def quantiles(self, most: int) -> Floats:
        """Return at most that many PITs, increasing, in the middle of equal steps in rank."""
        n = self.n_samples
        size = min(n, most)
        ranks = ((np.arange(size) + 0.5) * n / size).astype(np.int64)
        middle = (self.low + self.high) / 2
        if self.counts is None:
            return np.asarray(np.sort(middle)[ranks])
        order = np.argsort(middle, kind="stable")
        upto = np.cumsum(self.counts[order])
        return np.asarray(middle[order][np.searchsorted(upto, ranks, side="right")])


@dataclass(frozen=True, eq=False, repr=False)
class LinkEvidence(ABC):
    """Bands for a base's PITs, which bound the errors of every group under every link.

    Parameters
    ----------
    distances : SurvivalBand
        Upper band for `P(|U - 1/2| > t)`, `U` the PIT.
    nearness : CDFBand
        Upper band for `P(|U - 1/2| <= t)`.
    """

    distances: SurvivalBand
    nearness: CDFBand

    bound: ClassVar[Bound]

    def __repr__(self) -> str:
        return one_line(self, bound=self.bound, distances=self.distances)

    @classmethod
    @abstractmethod
    def of(cls, sample: Sample, confidence: float) -> Self:
        """Make the bands from PITs."""

    @classmethod
    @abstractmethod
    def of_calibrated(cls, n: int, confidence: float) -> Self:
        """Make the bands of `n` people with evenly spread PITs, `(i - 1/2) / n`."""

    @abstractmethod
    def group_error(self, link: Link, mass: float) -> float:
        """Return the bound for the W1 error of every group of at least this share."""

    def envelope(self, mass: float) -> Envelope | None:
        """Return bounds of both tails of the PIT, for groups of a size; None without such bands."""
        return None

    def searched(self, family: type[Link], mass: float) -> Callable[[float], float]:
        """Return the bound as a function of alpha for a search; it may be approximate."""
        return lambda alpha: self.group_error(family(alpha), mass)

    def worst_mean(self, values: Floats, mass: float, top: float) -> float:
        """Bound the mean of the worst `mass` of a quantity at the steps of the distances.

        The quantity increases with the distance and is at most `top`.
        """
        # monotone: moving the steps of the band from distances to values bounds the quantity
        steps = np.append(0.0, np.minimum(values, top))
        return SurvivalBand(steps, np.append(1.0, self.distances.upper), top).cvar(mass)

    def best_mean(self, values: Floats, mass: float) -> float:
        """Bound the mean of the best `mass` of a quantity at the steps of the nearness.

        The quantity decreases with the distance from 1/2.
        """
        shares = np.diff(np.minimum(self.nearness.upper, mass), prepend=0.0)
        return float(shares @ values) / mass
