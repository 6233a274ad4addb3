"""Evidence for links from two one-sided bands (method: sharp certificate)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Self

from evenhand.calibration import CDFBands
from evenhand.certificates.certificate import WORST
from evenhand.certificates.contraction import Contraction
from evenhand.certificates.link_evidence import LinkEvidence, Sample
from evenhand.certificates.pointwise import pointwise_bound
from evenhand.links import Link


@dataclass(frozen=True, eq=False, repr=False)
class SharpEvidence(LinkEvidence):
    """Two one-sided bands for the CDF of the PIT, on which all bounds hold jointly.

    Of two bounds for a group's error that hold on the same event the smaller one is taken.

    Parameters
    ----------
    bands : CDFBands
        The bands.
    """

    bands: CDFBands

    bound = "sharp"

    @classmethod
    def _around(cls, bands: CDFBands) -> Self:
        return cls(bands.distance_band(), bands.nearness_band(), bands)

    @classmethod
    def of(cls, sample: Sample, confidence: float) -> Self:
        return cls._around(CDFBands.of(sample.low, sample.high, confidence, sample.counts))

    @classmethod
    def of_calibrated(cls, n: int, confidence: float) -> Self:
        return cls._around(CDFBands.of_uniform(n, confidence))

    def group_errors(self, link: Link) -> Callable[[float], float]:
        contraction = Contraction.of(link, self.bands)

        @cache  # an audit reads the same masses several times
        def bound(mass: float) -> float:
            pointwise = pointwise_bound(link, self.bands, mass)
            return min(contraction.bound(mass), pointwise, WORST)

        return bound
