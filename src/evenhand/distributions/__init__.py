"""Families of distributions over batches, and wrappers around them.

A new family needs one class.
"""

from evenhand._kinds import OutcomeKind
from evenhand.distributions.base import NO_BINARY_RANDOMIZATION, Distribution, Tail, found_inside
from evenhand.distributions.families import (
    SUM_TOLERANCE,
    Bernoulli,
    Categorical,
    NegativeBinomial,
    Normal,
    NormalMixture,
    Poisson,
    Quantiles,
    Samples,
    SurvivalCurves,
    count_below,
    curve_times,
    empirical,
    entries,
    from_ppf,
)
from evenhand.distributions.wrappers import (
    End,
    Hurdle,
    Joined,
    LocationScale,
    Randomized,
    Recalibrated,
    Support,
    Transformed,
    Truncated,
    as_hurdle,
    beyond,
    from_records,
    to_records,
)

__all__ = [
    "NO_BINARY_RANDOMIZATION",
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
    "Tail",
    "Transformed",
    "Truncated",
    "as_hurdle",
    "beyond",
    "curve_times",
    "empirical",
    "from_ppf",
    "from_records",
    "to_records",
]
