"""Evidence for links from two one-sided bands (method: sharp certificate)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from evenhand.calibration import CDFBands
from evenhand.certificates.certificate import WORST
from evenhand.certificates.contraction import Contraction
from evenhand.certificates.link_evidence import LinkEvidence, Sample
from evenhand.certificates.pointwise import pointwise_bound
from evenhand.certificates.promise import Envelope
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

    def group_error(self, link: Link, mass: float) -> float:
        return _group_error(link, self.bands, mass)

    def envelope(self, mass: float) -> Envelope | None:
        return Envelope.of(self.bands, mass)


# a search evaluates its result once more, and an audit reads the same masses several times
@lru_cache(maxsize=64)
def _group_error(link: Link, bands: CDFBands, mass: float) -> float:
    contraction = _contraction(link, bands).bound(mass)
    return min(contraction, pointwise_bound(link, bands, mass), WORST)


@lru_cache(maxsize=4)
def _contraction(link: Link, bands: CDFBands) -> Contraction:
    return Contraction.of(link, bands)
