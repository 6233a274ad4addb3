"""Families of distributions over batches, and wrappers around them.

A new family needs one file and one line in `records.FAMILY_NAMES`.
"""

from __future__ import annotations

from evenhand._kinds import OutcomeKind
from evenhand.distributions.base import NO_BINARY_RANDOMIZATION, Distribution
from evenhand.distributions.categorical import SUM_TOLERANCE as SUM_TOLERANCE
from evenhand.distributions.categorical import Bernoulli, Categorical, empirical
from evenhand.distributions.counts import NegativeBinomial, Poisson
from evenhand.distributions.hurdle import End as End
from evenhand.distributions.hurdle import Hurdle, as_hurdle, beyond
from evenhand.distributions.normal import Normal, NormalMixture, Samples
from evenhand.distributions.quantiles import Quantiles, from_ppf
from evenhand.distributions.randomized import Randomized
from evenhand.distributions.recalibrated import Recalibrated
from evenhand.distributions.records import (
    FAMILY_NAMES,
    WRAPPER_NAMES,
    from_records,
    to_records,
)
from evenhand.distributions.support import Support, Transformed, Truncated
from evenhand.distributions.survival import SurvivalCurves, curve_times, describes_times
from evenhand.distributions.wrappers import Joined, LocationScale

FAMILIES: tuple[type[Distribution], ...] = tuple(FAMILY_NAMES.values())
WRAPPERS: tuple[type[Distribution], ...] = (*WRAPPER_NAMES.values(), Joined)

__all__ = [
    "FAMILIES",
    "NO_BINARY_RANDOMIZATION",
    "WRAPPERS",
    "Bernoulli",
    "Categorical",
    "Distribution",
    "Hurdle",
    "Joined",
    "LocationScale",
    "NegativeBinomial",
    "Normal",
    "NormalMixture",
    "OutcomeKind",
    "Poisson",
    "Quantiles",
    "Randomized",
    "Recalibrated",
    "Samples",
    "Support",
    "SurvivalCurves",
    "Transformed",
    "Truncated",
    "as_hurdle",
    "beyond",
    "curve_times",
    "describes_times",
    "empirical",
    "from_ppf",
    "from_records",
    "to_records",
]
