"""Skewed scales: increasing functions of scores that are roughly normal (Tukey's g)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand._validate import Floats
from evenhand.forecasters.weighted import weighted_quantiles

PROBABILITIES = (0.1, 0.5, 0.9)
NORMAL_SCORE = 1.2815515655446004
"""Score of the last of these quantiles under a standard normal distribution."""

LEAST_SIDE = 0.02
"""Distance of an outer quantile from the median, in standard deviations, below which a variable is
only standardized: most of its values are the same."""

MAX_SKEW = 1.0
FEW_ROWS = 50
"""Number of rows at which the estimated skewness is halved."""

SMALLEST = 0.02
"""Value of 1 + g v below which the logarithm is continued by its tangent."""

REACH = (-4.0, 6.0)
"""Scores beyond which the exponential of outcomes is continued by its tangent at the latest."""


def robust_scale(values: Floats, weight: Floats) -> tuple[float, float, float]:
    """Return offset, unit and skewness g of a variable.

    If the variable is `offset + unit * (exp(g score) - 1) / g` with a standard normal score, its
    quantiles at 10%, 50% and 90% determine all three. For g = 0 it is normal, for g = 1 lognormal.

    References
    ----------
    Hoaglin, Summarizing shape numerically: the g-and-h distributions, 1985.
    """
    mean = float(np.average(values, weights=weight))
    std = float(np.sqrt(np.average((values - mean) ** 2, weights=weight))) or 1.0
    low, middle, high = weighted_quantiles(values, weight, PROBABILITIES)
    if min(high - middle, middle - low) <= LEAST_SIDE * std:
        return mean, std, 0.0
    skew = math.log((high - middle) / (middle - low)) / NORMAL_SCORE
    skew *= values.size / (values.size + FEW_ROWS)
    skew = min(max(skew, -MAX_SKEW), MAX_SKEW)
    # the limit of the expression below for g to 0, where it cannot be evaluated
    if abs(skew) < 1e-3:
        return middle, (high - low) / (2 * NORMAL_SCORE), 0.0
    return middle, skew * (high - low) / (2 * math.sinh(skew * NORMAL_SCORE)), skew


def skew_scores(units: Floats, skew: Floats | float) -> Floats:
    """Return log(1 + g units) / g, or the units where g is 0; the inverse of `Skew.place`."""
    argument = 1 + np.asarray(skew) * units
    logarithm = np.log(np.maximum(argument, SMALLEST))
    tangent = np.minimum(argument - SMALLEST, 0.0) / SMALLEST
    with np.errstate(invalid="ignore"):
        scores = (logarithm + tangent) / np.where(skew == 0, 1.0, skew)
    return np.where(skew == 0, units, scores)


@dataclass(frozen=True)
class Skew:
    """Map from scores to outcomes in units: (exp(g score) - 1) / g, linear beyond two scores.

    Parameters
    ----------
    g : float
        Skewness; 0 is the identity.
    low, high : float
        Scores beyond which the map is linear, so that no outcome is out of reach.
    """

    g: float = 0.0
    low: float = REACH[0]
    high: float = REACH[1]

    @classmethod
    def reaching(cls, units: Floats, g: float) -> Skew:
        """Return the map that is exponential on the range of the outcomes."""
        scores = skew_scores(units, g)
        return cls(g, max(float(scores.min()), REACH[0]), min(float(scores.max()), REACH[1]))

    def place(self, score: Any, library: Any = np) -> tuple[Any, Any]:
        """Return outcomes and slopes at scores; `library` is numpy or torch."""
        if self.g == 0:
            return score, 1.0
        inside = library.clip(score, self.low, self.high)
        slope = library.exp(self.g * inside)
        return library.expm1(self.g * inside) / self.g + slope * (score - inside), slope
