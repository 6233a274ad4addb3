"""Scale of the outcome on which trees are grown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand._validate import Floats
from evenhand.forecasters.gaps import smallest_gap
from evenhand.forecasters.weighted import weighted_quantiles


@dataclass(frozen=True)
class OutcomeScale:
    """Standardized outcomes, or standardized inverse hyperbolic sines of outcomes.

    `arcsinh(y / bend)` is `log(2 y / bend)` for outcomes far above `bend` and linear below, so it
    is defined for every outcome. If effects and noise are proportional to the outcome, they are
    additive on this scale.

    Parameters
    ----------
    offset, unit : float
        Centre and spread of the (transformed) training outcomes.
    bend : float, optional
        Outcome at which the scale turns from linear to logarithmic; None is linear everywhere.
    """

    offset: float
    unit: float
    bend: float | None = None

    @classmethod
    def learn(cls, y: Floats, weight: Floats, bend: float | None = None) -> OutcomeScale:
        """Return the scale with the median of the outcomes at 0 and their quartiles near -+1."""
        line = y if bend is None else np.arcsinh(y / bend)
        # median and quartiles, so that outliers do not determine the unit of the trees
        low, centre, high = weighted_quantiles(line, weight, [0.25, 0.5, 0.75])
        return cls(float(centre), float((high - low) / 2 or line.std() or 1.0), bend)

    def to_unit(self, y: Floats) -> Floats:
        """Return the position of outcomes on this scale."""
        line = y if self.bend is None else np.arcsinh(y / self.bend)
        return np.asarray((line - self.offset) / self.unit)

    def to_outcome(self, position: Floats) -> Floats:
        """Return the outcome at a position."""
        line = self.offset + self.unit * position
        return np.asarray(line if self.bend is None else self.bend * np.sinh(line))

    def slope(self, position: Floats) -> Floats:
        """Return the derivative of the outcome by the position."""
        line = self.offset + self.unit * position
        stretch = np.ones_like(line) if self.bend is None else self.bend * np.cosh(line)
        return np.asarray(self.unit * stretch)


def possible_scales(y: Floats, weight: Floats) -> list[OutcomeScale]:
    """Return the linear scale, and the logarithmic one if outcomes are spread over multiples.

    Outcomes qualify if none is negative and the 90% quantile is more than twice the 10% quantile.
    """
    scales = [OutcomeScale.learn(y, weight)]
    least, low, centre, high = weighted_quantiles(y, weight, [0.02, 0.1, 0.5, 0.9])
    if y.min() >= 0 and high > 2 * low and centre > 0:
        bend = max(least, 1e-3 * centre, smallest_gap(y))
        scales.append(OutcomeScale.learn(y, weight, float(bend)))
    return scales
