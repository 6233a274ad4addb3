"""What a link costs on given people: loss of log score and width of prediction intervals."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import exp, log

import numpy as np
from scipy.optimize import brentq

from evenhand._validate import Floats
from evenhand.calibration import interval_width
from evenhand.certificates import LEAST_ALPHA
from evenhand.draws import jittered, nodes
from evenhand.forecast import Forecast
from evenhand.links import Link

LEVEL = 0.8
"""Nominal level of the prediction intervals whose width is compared."""

PRICE_DRAWS = 16
MOST_PRICED = 400_000
"""Draws per person in the price, and most people times draws."""

WIDTH_DRAWS = 4
WIDTH_PEOPLE = 2000
"""Draws per person, and most people, in the width of randomized intervals: people without a closed
form of their quantiles take time."""

RIGHT_DRAWS = 1024
"""Draws in the width over a right base."""

TOLERANCE = 1e-4
"""Relative tolerance of the alpha whose cost reaches a limit."""


class Costs:
    """Costs of links around a deterministic forecast, at fixed draws.

    Parameters
    ----------
    base : Forecast
        Deterministic forecast of n people.
    pit : ndarray of shape (n,)
        Its PITs.
    random : Generator
        Source of the draws, which are the same for all links: a cost is then a continuous function
        of alpha.
    """

    def __init__(self, base: Forecast, pit: Floats, random: np.random.Generator) -> None:
        n = pit.size
        self.pit = pit
        self.draws = jittered(n, int(np.clip(MOST_PRICED // n, 1, PRICE_DRAWS)), random)
        rows = np.arange(n)
        if n > WIDTH_PEOPLE:
            rows = np.sort(random.choice(n, WIDTH_PEOPLE, replace=False))
        self._rows = rows
        self._base = base[rows]
        self._width_draws = jittered(rows.size, WIDTH_DRAWS, random)

    def randomized_pit(self, link: Link) -> Floats:
        """Return PITs of the randomized forecasts, shape (n, m)."""
        return link.ppf(self.pit[:, None], self.draws)

    def price(self, link: Link) -> float:
        """Return the mean loss of log score through a link, in nats."""
        # log h = log g - log k at the base's PIT: the price needs no further forecasts
        return float(link.logpdf(self.randomized_pit(link), self.draws).mean())

    def wider(self, link: Link) -> float:
        """Return the relative increase of the mean width of 80% intervals through a link."""
        served = self._base.randomized(link.alpha, link, self._width_draws)
        return float(interval_width(served, LEVEL).mean()) / self._unrandomized - 1

    def base_width(self, level: float) -> float:
        """Return the mean width of the intervals of the deterministic forecast, in units of y."""
        return float(interval_width(self._base, level).mean())

    @cached_property
    def _unrandomized(self) -> float:
        return self.base_width(LEVEL)


def right_wider(link: Link) -> float:
    """Return the relative increase of the width of 80% intervals over a right, normal base."""
    right = Forecast.from_normal([0.0], [1.0])
    served = right.randomized(link.alpha, link, nodes(RIGHT_DRAWS))
    widths = [float(interval_width(forecast, LEVEL).mean()) for forecast in (served, right)]
    return widths[0] / widths[1] - 1


def least_alpha(cost: Callable[[float], float], most: float) -> float:
    """Return the smallest alpha, from `LEAST_ALPHA` on, whose cost is at most `most`.

    Parameters
    ----------
    cost : callable
        Cost as a function of alpha: continuous, 0 at 1, in general decreasing.
    most : float
        Limit of the cost, above 0.
    """
    if cost(LEAST_ALPHA) <= most:
        return LEAST_ALPHA
    root = brentq(lambda place: cost(exp(place)) - most, log(LEAST_ALPHA), 0.0, xtol=TOLERANCE)
    alpha = min(exp(root), 1.0)
    # the root lies on either side of the limit
    while cost(alpha) > most:
        alpha = min(alpha * (1 + TOLERANCE), 1.0)
    return alpha
