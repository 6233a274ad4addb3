"""Cells of PITs under true distributions with atoms, for tests."""

from __future__ import annotations

import numpy as np
from scipy import stats

from evenhand.calibration import Cells


def cells_of(law: str, n: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
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


def pits_of(law: str, n: int, random: np.random.Generator) -> Cells:
    """Return PITs of n outcomes with a random position in each cell."""
    low, high = cells_of(law, n, random)
    return Cells.between(low, high, random.random(n))
