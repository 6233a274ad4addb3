"""Evidence for links from one band: mean pathwise errors of the worst people (method: proof)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from scipy.interpolate import PchipInterpolator

from evenhand._validate import Floats
from evenhand.calibration import CDFBand, SurvivalBand, local_levels, local_levels_band
from evenhand.certificates.certificate import WORST
from evenhand.certificates.link_evidence import LinkEvidence, Sample
from evenhand.links import Link

KNOTS = 30
"""Half of the number of distances at which a link's error is computed during the search."""


@dataclass(frozen=True, eq=False, repr=False)
class PathwiseEvidence(LinkEvidence):
    """One band for `|U - 1/2|`: a group's error is at most the mean pathwise error of its people.

    A person's pathwise error under a link increases with the distance of the PIT from 1/2.
    """

    bound = "pathwise"

    @classmethod
    def _around(cls, distances: SurvivalBand) -> Self:
        # nothing is known of how many people are near 1/2
        return cls(distances, CDFBand(np.zeros(1), np.ones(1)))

    @classmethod
    def of(cls, sample: Sample, confidence: float) -> Self:
        # rounded away from 1/2, so that no distance is understated
        distances = np.maximum(np.abs(sample.low - 0.5), np.abs(sample.high - 0.5))
        return cls._around(local_levels_band(distances, WORST, confidence, sample.counts))

    @classmethod
    def of_calibrated(cls, n: int, confidence: float) -> Self:
        ranks, bounds = local_levels(n, confidence)
        # distances come in pairs, the largest ones from the smallest and the largest PIT
        distances = 0.5 - ((ranks + 1) // 2 - 0.5) / n
        starts = np.append(distances, 0.0)[::-1]
        return cls._around(SurvivalBand(starts, np.append(bounds, 1.0)[::-1], WORST))

    def group_error(self, link: Link, mass: float) -> float:
        return self.worst_mean(_errors(link, self.distances), mass, WORST)

    def searched(self, family: type[Link], mass: float) -> Callable[[float], float]:
        # steps at which the band is at least `mass` all have full weight, so their widths
        # telescope: the bound depends only on the errors at the remaining steps
        needed = self.distances.starts[self.distances.upper < mass]
        inner = np.zeros(self.distances.starts.size - needed.size)

        def bound_at(alpha: float) -> float:
            errors = approximate_errors(family(alpha), needed)
            return self.worst_mean(np.append(inner, errors), mass, WORST)

        return bound_at


@lru_cache(maxsize=4)
def _errors(link: Link, distances: SurvivalBand) -> Floats:
    return link.pathwise_error(0.5 + distances.starts)


def approximate_errors(link: Link, distances: Floats) -> Floats:
    """Interpolate pathwise errors at distances of PITs from 1/2.

    The interpolation error is at most about 0.002, and 0.0001 on average.

    Parameters
    ----------
    link : Link
        The link.
    distances : ndarray of shape (n,)
        `|U - 1/2|`, 0 to 1/2.
    """
    left = 1 - (0.5 + distances)
    # the end of the unit interval is computed separately: its logarithm is infinite
    errors = np.full(distances.shape, float(link.pathwise_error(1.0)))
    is_inside = left > 0
    # errors are smooth in the logarithm of the distance from the end of the unit interval
    place = np.log(left[is_inside])
    knots = np.unique(place)
    if knots.size < 3:
        return link.pathwise_error(0.5 + distances)
    if knots.size > 2 * KNOTS:
        # half of the knots are equally spaced in that logarithm, half in rank
        ranks = np.linspace(0, knots.size - 1, KNOTS).astype(np.intp)
        knots = np.union1d(np.linspace(knots[0], knots[-1], KNOTS), knots[ranks])
    # the error at 1 - u equals that at u, and floats near 0 keep digits that those near 1 lose
    at_knots = link.pathwise_error(np.minimum(np.exp(knots), 0.5))
    errors[is_inside] = PchipInterpolator(knots, at_knots)(place)
    return errors
