"""One-sided confidence bands for the CDF of a PIT from both ends (method: sharp certificate)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from evenhand._format import one_line
from evenhand._validate import Floats
from evenhand.calibration.bands import Counts, SurvivalBand, local_levels, rising_values


@dataclass(frozen=True, eq=False, repr=False)
class CDFBand:
    """Upper confidence band for `P(U <= u)` on [0, 1], a right-continuous step function.

    Parameters
    ----------
    starts : ndarray of shape (k,)
        Left ends of the steps, strictly increasing from 0.
    upper : ndarray of shape (k,)
        Bound for `P(U <= u)` on each step, increasing to 1.
    """

    starts: Floats
    upper: Floats

    def __repr__(self) -> str:
        return one_line(self, steps=self.starts.size)

    def at(self, u: Floats) -> Floats:
        """Return the band at points between 0 and 1."""
        return np.asarray(self.upper[np.searchsorted(self.starts, u, side="right") - 1])

    @classmethod
    def of(cls, values: Floats, confidence: float, counts: Counts | None = None) -> Self:
        """Make the band with equal local levels from independent values between 0 and 1.

        Parameters
        ----------
        values : ndarray of shape (k,)
            The values, in any order.
        confidence : float
            Probability that the band holds everywhere.
        counts : ndarray of int64, shape (k,), optional
            Number of occurrences of each value; 1 by default.
        """
        rising, upto = rising_values(values, counts)
        ranks, bounds = local_levels(int(upto[-1]), confidence)
        # P(U < w) of the i-th smallest value w has the bound of the i-th rank
        return cls.of_ranks(rising[np.searchsorted(upto[1:], ranks)], bounds)

    @classmethod
    def of_ranks(cls, values: Floats, bounds: Floats) -> Self:
        """Make the band from increasing values `w` with bounds of `P(U < w)`.

        Between two values `P(U <= u)` is at most the bound of the next one: the band is read just
        below it. Its value at an atom therefore contains the atom.
        """
        starts = np.append(0.0, values)
        upper = np.append(bounds, 1.0)
        # of equal values only the last one begins a step
        is_last = np.append(starts[1:] > starts[:-1], True)
        return cls(starts[is_last], upper[is_last])


@dataclass(frozen=True, eq=False, repr=False)
class CDFBands:
    """Upper bands for the CDFs of a PIT `U` and of `1 - U`, which hold jointly.

    Parameters
    ----------
    upper : CDFBand
        Upper band for `P(U <= u)`.
    mirrored : CDFBand
        Upper band for `P(1 - U <= u)`: `P(U < u)` is at least `1 - mirrored.at(1 - u)`.
    """

    upper: CDFBand
    mirrored: CDFBand

    def __repr__(self) -> str:
        return one_line(self, steps=self.upper.starts.size + self.mirrored.starts.size)

    @classmethod
    def of(cls, low: Floats, high: Floats, confidence: float, counts: Counts | None = None) -> Self:
        """Make the bands from independent PITs of which only limits may be known.

        Parameters
        ----------
        low, high : ndarray of shape (k,)
            Limits of the PITs, in any order; both are the PITs themselves if these are known.
        confidence : float
            Probability that both bands hold everywhere; each has half of the risk.
        counts : ndarray of int64, shape (k,), optional
            Number of PITs between each pair of limits; 1 by default.
        """
        # rounded down: 1 - 1e-20 rounds up to 1, as if the PIT were 0, which no link changes
        rest = 1 - high
        rest = np.where(1 - rest < high, np.nextafter(rest, 0.0), rest)
        each = (1 + confidence) / 2
        return cls(CDFBand.of(low, each, counts), CDFBand.of(rest, each, counts))

    @classmethod
    def of_uniform(cls, n: int, confidence: float) -> Self:
        """Make the bands of `n` PITs at the middle of equal cells, `(i - 1/2) / n`."""
        ranks, bounds = local_levels(n, (1 + confidence) / 2)
        band = CDFBand.of_ranks((ranks - 0.5) / n, bounds)
        return cls(band, band)

    def distance_band(self) -> SurvivalBand:
        """Return an upper band for `P(|U - 1/2| > t)`: the sum of both bands."""
        # P(U < 1/2 - t) is the limit of P(U <= u) from below
        below = [0.5 - band.starts[1:][::-1] for band in (self.upper, self.mirrored)]
        bounds = [band.upper[:-1][::-1] for band in (self.upper, self.mirrored)]
        inside = [distance[distance > 0] for distance in below]
        starts = np.union1d(np.append(0.0, inside[0]), inside[1])
        tails = [
            np.append(1.0, bound)[np.searchsorted(distance, starts, side="right")]
            for distance, bound in zip(below, bounds, strict=True)
        ]
        return SurvivalBand(starts, np.minimum(tails[0] + tails[1], 1.0), 0.5)

    def nearness_band(self) -> CDFBand:
        """Return an upper band for `P(|U - 1/2| <= t)`, with `t` from 0 to 1/2."""
        ends = np.append(self.upper.starts, self.mirrored.starts) - 0.5
        starts = np.unique(np.append(0.0, ends[ends > 0]))
        both = self.upper.at(0.5 + starts) + self.mirrored.at(0.5 + starts)
        return CDFBand(starts, np.clip(both - 1, 0.0, 1.0))
