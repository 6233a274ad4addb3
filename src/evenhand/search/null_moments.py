"""Null moments of pattern values of outcomes with atoms (outcomes: 4.3)."""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats
from evenhand.calibration import PITs
from evenhand.search.patterns import PATTERN_CELLS
from evenhand.search.ramps import LEAST_WIDTH

_EDGES = np.linspace(0.0, 1.0, PATTERN_CELLS + 1)
_GAUSS = 0.5 / np.sqrt(3)


def null_moments(pits: PITs, pattern: Floats) -> tuple[Floats, Floats]:
    """Return estimates of the second and third moment of each row's pattern value, shape (n,) each.

    If the PIT `W` of a row is uniform given the features, the moments of `T(W)` are known. With the
    mean `v`, the variance `w` and the third central moment `c` of `T(W)` over positions in the
    observed cell they are `E T^2 = E(v^2 + w)` and `E T^3 = E(v^3 + 3 v w + c)`. The value of a row
    is the mean of `v` over draws, which splits the moments of `v` in the same way. All of this
    gives estimates without bias. Of a rare event that nobody in a group had, the squares of values
    show nothing, but the cells show that it could happen.

    Parameters
    ----------
    pits : PITs of n rows
        PITs with their cells.
    pattern : ndarray of shape (PATTERN_CELLS,)
        Signs over probability levels.
    """
    steps = pattern / PATTERN_CELLS
    tails = np.append(np.cumsum(steps[::-1])[::-1], 0.0)
    # values of T, less its mean
    tails -= steps @ ((_EDGES[1:] + _EDGES[:-1]) / 2)
    whole = _integrals(np.ones(1), tails)[1:]
    # means over draws of v, v^2 and v^3, of w and of 3 v w + c
    sums = np.zeros((5, pits.n_samples))
    for low, high in zip(pits.low.T, pits.high.T, strict=True):
        mean, variance, third = _within(low, high, tails)
        sums += mean, mean**2, mean**3, variance, 3 * mean * variance + third
    mean, square, cube, spread, skew = sums / pits.n_draws
    between = square - mean**2
    rest = cube - mean**3  # 3 v times the variance between draws, plus their third central moment
    return whole[0] - spread - between, whole[1] - skew - rest


def _within(low: Floats, high: Floats, tails: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean, the variance and the third central moment of `T` over each cell."""
    width = high - low
    # moments over narrower cells lose their digits: such a cell is a point
    is_wide = width > LEAST_WIDTH
    integrals = _integrals(high, tails) - _integrals(low, tails)
    mean, square, cube = integrals / np.where(is_wide, width, 1.0)
    variance = np.maximum(square - mean**2, 0.0)
    third = cube - 3 * mean * square + 2 * mean**3
    return (
        np.where(is_wide, mean, np.interp((low + high) / 2, _EDGES, tails)),
        np.where(is_wide, variance, 0.0),
        np.where(is_wide, third, 0.0),
    )


def _integrals(u: Floats, tails: Floats) -> Floats:
    """Return the integrals from 0 to `u` of `T`, `T^2` and `T^3`, shape (3, n).

    `T` is linear between the edges, where it has the values `tails`.
    """
    place = np.minimum((u * PATTERN_CELLS).astype(np.intp), PATTERN_CELLS - 1)
    before = np.zeros((3, PATTERN_CELLS + 1))
    before[:, 1:] = np.cumsum(_gauss(_EDGES[:-1], _EDGES[1:], tails), axis=-1)
    return np.asarray(before[:, place] + _gauss(_EDGES[place], u, tails))


def _gauss(start: Floats, stop: Floats, tails: Floats) -> Floats:
    """Return the integrals over stretches on which `T` is linear, exactly, shape (3, k)."""
    # the rule of two points is exact for polynomials of degree 3
    middle, width = (start + stop) / 2, stop - start
    total = np.zeros((3, middle.size))
    for side in (-1, 1):
        value = np.interp(middle + width * side * _GAUSS, _EDGES, tails)
        total += value, value**2, value**3
    return np.asarray(total * width / 2)
