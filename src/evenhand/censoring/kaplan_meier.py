"""The Kaplan-Meier estimate of the distribution of values that are cut off (outcomes: 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._format import one_line
from evenhand._validate import Floats, check_fraction


@dataclass(frozen=True, eq=False, repr=False)
class KaplanMeier:
    """Estimated distribution function of values, some of which are only known to be larger.

    It assumes that, among these people, being cut off is independent of the value.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Distinct observed values, increasing.
    cdf : ndarray of shape (k,)
        Estimated probability of values up to each of them.
    hazard_variance : ndarray of shape (k,)
        Variance of the estimated log survival at each of them, Greenwood's sum.
    last : float
        Largest value up to which anybody was observed: nothing is known beyond it.

    References
    ----------
    Kaplan & Meier, JASA 1958; Greenwood 1926.

    Examples
    --------
    >>> estimate = KaplanMeier.of([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 1])
    >>> estimate.at([1.0, 2.5, 3.0]).round(3)
    array([0.25 , 0.25 , 0.625])
    """

    values: Floats
    cdf: Floats
    hazard_variance: Floats
    last: float

    @classmethod
    def of(cls, values: ArrayLike, event: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Estimate from values, whether each was observed (or is a lower limit), and weights.

        Values are finite, `event` is boolean or 0 and 1, weights are at least 0 and not all 0;
        each has shape (n,).
        """
        value = np.asarray(values, dtype=np.float64)
        observed = np.asarray(event, dtype=np.bool_)
        weight = np.ones(value.size) if weights is None else np.asarray(weights, dtype=np.float64)
        # Kish's effective number of people, of whom each then counts once
        weight = weight * (weight.sum() / (weight**2).sum())
        order = np.argsort(value, kind="stable")
        value, observed, weight = value[order], observed[order], weight[order]
        # who is cut off at the value of an event was at risk of it
        at_risk = np.cumsum(weight[::-1])[::-1]
        distinct, first = np.unique(value, return_index=True)
        ended = np.add.reduceat(weight * observed, first)
        some = ended > 0
        ended, left = ended[some], at_risk[first[some]]
        hazard = np.minimum(ended / left, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.where(hazard < 1, hazard / (left * (1 - hazard)), 0.0)
        return cls(
            distinct[some], 1 - np.cumprod(1 - hazard), np.cumsum(variance), float(value[-1])
        )

    def __repr__(self) -> str:
        return one_line(self, n_values=self.values.size, last=self.last)

    def at(self, points: ArrayLike) -> Floats:
        """Estimated probability of values up to each point, in the shape of `points`."""
        steps = np.concatenate(([0.0], self.cdf))
        return np.asarray(steps[np.searchsorted(self.values, points, side="right")])

    def interval(self, point: float, confidence: float = 0.95) -> tuple[float, float]:
        """Return an interval for the probability of values up to a point.

        It is asymptotic, by Greenwood's variance on the scale of `log(-log S)`, and [0, 1] where
        there is no event or everybody has it.
        """
        check_fraction("confidence", confidence)
        place = int(np.searchsorted(self.values, point, side="right")) - 1
        if place < 0 or not 0 < self.cdf[place] < 1:
            return 0.0, 1.0
        log_survival = np.log1p(-self.cdf[place])
        z = special.ndtri((1 + confidence) / 2)
        half = z * np.sqrt(self.hazard_variance[place]) / -log_survival
        low, high = -np.expm1(log_survival * np.exp([-half, half]))
        return float(low), float(high)

    def error(self) -> float:
        """W1 distance of an estimate for PITs from uniform, 0 to 1/2.

        Beyond the last value the estimate continues as the forecasts predict, linearly to 1.
        """
        ends = np.concatenate(([0.0], self.values, [self.last]))
        levels = np.concatenate(([0.0], self.cdf))
        # the antiderivative of |s - c| is -(s - c)|s - c| / 2
        left, right = levels - ends[:-1], levels - ends[1:]
        inner = (left * np.abs(left) - right * np.abs(right)).sum() / 2
        return float(inner + abs(levels[-1] - self.last) * (1 - self.last) / 2)
