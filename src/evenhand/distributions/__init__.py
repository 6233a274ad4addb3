"""Families of distributions over batches, and wrappers around them.

A new family needs one file and one line in `FAMILIES`.
"""

from __future__ import annotations

from evenhand.distributions.base import Distribution
from evenhand.distributions.kinds import OutcomeKind
from evenhand.distributions.location_scale import LocationScale
from evenhand.distributions.mixture import NormalMixture
from evenhand.distributions.normal import Normal
from evenhand.distributions.quantiles import Quantiles
from evenhand.distributions.randomized import Randomized
from evenhand.distributions.rearranged import Rearranged
from evenhand.distributions.recalibrated import Recalibrated
from evenhand.distributions.samples import Samples
from evenhand.distributions.support import Support
from evenhand.distributions.tabulation import from_ppf
from evenhand.distributions.transformed import Transformed
from evenhand.distributions.truncated import Truncated

FAMILIES: tuple[type[Distribution], ...] = (Normal, NormalMixture, Quantiles, Samples)

WRAPPERS: tuple[type[Distribution], ...] = (
    LocationScale,
    Randomized,
    Rearranged,
    Recalibrated,
    Transformed,
    Truncated,
)

__all__ = [
    "FAMILIES",
    "WRAPPERS",
    "Distribution",
    "LocationScale",
    "Normal",
    "NormalMixture",
    "OutcomeKind",
    "Quantiles",
    "Randomized",
    "Rearranged",
    "Recalibrated",
    "Samples",
    "Support",
    "Transformed",
    "Truncated",
    "from_ppf",
]
