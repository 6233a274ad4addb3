"""Cells of PITs under true distributions with atoms, and their true group errors, for tests."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from evenhand.calibration import Cells
from evenhand.links import Link
from sharp_laws import LEVELS, WIDTHS, ascended_error, every_corner, group_error, largest_weights

QUADRATURE = 2000
"""Number of midpoints over the draw."""

SLACK = 5e-4
"""Numerical error of group errors here: midpoints over the draw and cells of levels."""


def cells_of(law, n, random):
    """Return the ends of the cells of n outcomes: `poisson 2`, `event 0.1` or `atom 0.5`."""
    kind, value = law.split()
    if kind == "poisson":
        y = random.poisson(float(value), n)
        return stats.poisson.cdf(y - 1, float(value)), stats.poisson.cdf(y, float(value))
    if kind == "event":
        # no event has the cell [0, 1 - p], an event the cell [1 - p, 1]
        is_event = random.random(n) < float(value)
        return np.where(is_event, 1 - float(value), 0.0), np.where(is_event, 1, 1 - float(value))
    assert kind == "atom"
    u = random.random(n)
    is_atom = u < float(value)
    return np.where(is_atom, 0.0, u), np.where(is_atom, float(value), u)


def pits_of(law, n, random):
    low, high = cells_of(law, n, random)
    return Cells(low, high, ties=random.random(n))


@dataclass(frozen=True)
class CountWorld:
    """Kinds of people, equally frequent: true and forecast probabilities of outcomes 0, 1, ..."""

    link: Link
    true: tuple[tuple[float, ...], ...]
    forecast: tuple[tuple[float, ...], ...]

    @cached_property
    def cells(self):
        """Cells of the base's PIT by kind and outcome, (kinds, outcomes)."""
        upper = np.minimum(np.cumsum(self.forecast, axis=-1), 1.0)
        upper[:, -1] = 1.0
        return np.concatenate((np.zeros((upper.shape[0], 1)), upper[:, :-1]), axis=-1), upper

    def sample(self, n, rng):
        """Cells of the base's PITs, and the kinds of people."""
        kind = rng.integers(len(self.true), size=n)
        upto = np.cumsum(self.true, axis=-1)[:, :-1]
        y = (rng.uniform(size=(n, 1)) > upto[kind]).sum(axis=-1)
        low, high = self.cells
        return low[kind, y], high[kind, y], kind

    @cached_property
    def weights(self):
        return np.ravel(self.true) / len(self.true)

    @cached_property
    def served(self):
        """Cells of the served PITs, (points, midpoints over the draw)."""
        r = (np.arange(QUADRATURE) + 0.5) / QUADRATURE
        low, high = (self.link.ppf(np.ravel(end)[:, None], r) for end in self.cells)
        return low, high

    @cached_property
    def cdfs(self):
        """CDFs of the randomized PITs, averaged over the draw and V, at `LEVELS`."""
        low, high = self.served
        return np.stack(
            [
                np.clip((c - low) / np.maximum(high - low, 1e-300), 0.0, 1.0).mean(axis=-1)
                for c in LEVELS
            ],
            axis=-1,
        )

    @cached_property
    def errors(self):
        return np.asarray(np.abs(self.cdfs - LEVELS) @ WIDTHS)

    def worst(self, mass):
        """Largest W1 error of a group by kind and outcome, at least that of any group by x."""
        some = self.weights > 0
        weights, cdfs = self.weights[some], self.cdfs[some]
        if mass == 1:
            return float(group_error(weights[None], cdfs)[0])
        if weights.size <= 12:
            return float(group_error(every_corner(weights, mass), cdfs).max())
        return ascended_error(weights, cdfs, mass)

    def least_bound(self, mass):
        """Least bound that pathwise errors and the overall error allow: at least `worst`."""
        direct = mean_of_largest(self.errors, self.weights, mass)
        if mass == 1:
            return min(direct, self.worst(1.0))
        rest = (1 - mass) * mean_of_largest(self.errors, self.weights, 1 - mass)
        return min(direct, (self.worst(1.0) + rest) / mass)

    def coverages(self, mass, level):
        """Least and largest coverage of the intervals of whole values in a group."""
        low, high = self.served
        inside = (high >= (1 - level) / 2) & (low < (1 + level) / 2)
        hits = inside.mean(axis=-1)
        return (
            -mean_of_largest(-hits, self.weights, mass),
            mean_of_largest(hits, self.weights, mass),
        )


def mean_of_largest(values, weights, mass):
    return float(largest_weights(values[None], weights, mass)[0] @ values)
