"""Sign patterns over probability levels, and values of PITs under patterns (method: worst groups).

A pattern `s` is +1 at levels `c` where the PITs of a group are expected to lie at or below `c` too
often, and -1 where too rarely. For every pattern with absolute values of at most 1 and every
distribution `F` of PITs, `integral_0^1 s(c) (F(c) - c) dc <= W1(F, Uniform)`, with equality for
`s = sign(F(c) - c)`.
"""

from __future__ import annotations

import numpy as np

from evenhand._kinds import HIGHER, LOWER, MIXED, NARROW, WIDE, Direction
from evenhand._validate import Floats
from evenhand.calibration import Cells, as_cells
from evenhand.search.worst_groups import LEAST_WIDTH, mean_cdfs

# --- values of PITs under patterns

PATTERN_CELLS = 32
"""Number of equal cells of [0, 1] on which a pattern is constant."""

WAVES = 4
"""Number of cosines that describe a distribution of PITs: level, spread, skew, and a shape of equal
spread with other tails."""

_EDGES = np.linspace(0.0, 1.0, PATTERN_CELLS + 1)
_MIDDLES = (_EDGES[1:] + _EDGES[:-1]) / 2
_FREQUENCIES = np.arange(1, WAVES + 1)[:, None] * np.pi
_SINES = np.sin(_FREQUENCIES * _MIDDLES) / _FREQUENCIES
_INTEGRALS = (
    -np.sqrt(2) * np.diff(np.cos(_FREQUENCIES * _EDGES), axis=-1).T / _FREQUENCIES[:, 0] ** 2
)
_LEVEL = np.ones(PATTERN_CELLS)
_SPREAD = np.where(_MIDDLES < 0.5, 1.0, -1.0)


def starting_patterns() -> Floats:
    """Return the patterns of all waves, shape (2 * WAVES, PATTERN_CELLS).

    The first four are too low, too high, too narrow and too wide; each wave has both signs.
    """
    signs = np.array([1.0, -1.0])
    return pattern_of((np.eye(WAVES)[:, None] * signs[:, None]).reshape(-1, WAVES))


def pattern_values(pit: Floats | Cells, pattern: Floats) -> Floats:
    """Return each row's value under a pattern, shape (n,), between -1/2 and 1/2.

    The value is `mean_j T(u_j) - integral_0^1 s(c) c dc` with `T(u) = integral_u^1 s(c) dc`. Its
    expectation for PITs with distribution `F` is `integral_0^1 s(c) (F(c) - c) dc`, which is at
    most the error of `F`. For cells, the value is the mean over positions in the cell.
    """
    pits = as_cells(pit)
    if not pits.are_points:
        return np.asarray(pattern_basis(pits) @ pattern)
    steps = pattern / PATTERN_CELLS
    # T is linear between the edges of cells, so interpolation is exact
    tails = np.append(np.cumsum(steps[::-1])[::-1], 0.0)
    return np.asarray(np.interp(pits.drawn, _EDGES, tails).mean(axis=-1) - steps @ _MIDDLES)


def pattern_basis(pit: Floats | Cells) -> Floats:
    """Return the matrix, shape (n, PATTERN_CELLS), whose product with a pattern gives its values.

    For many patterns one product takes less time than `pattern_values` for each.
    """
    pits = as_cells(pit)
    width = 1 / PATTERN_CELLS
    if not pits.are_points:
        # the mean part of a cell of the pattern above a PIT is the integral of its ramp
        return np.asarray(width * (mean_cdfs(pits.low, pits.high, PATTERN_CELLS) - _MIDDLES))
    basis = np.zeros((pits.n_samples, PATTERN_CELLS))
    # the part of each cell above a PIT; one draw at a time, as all draws would need much memory
    for draw in pits.drawn.T:
        basis += np.clip(_EDGES[1:] - draw[:, None], 0.0, width)
    return np.asarray(basis / pits.n_draws - width * _MIDDLES)


def waves(pit: Floats | Cells) -> Floats:
    """Return each row's mean of `sqrt(2) cos(k pi u)` for k = 1 to WAVES, shape (n, WAVES).

    The cosines are orthonormal, so a squared error gives equal weight to level and spread.
    """
    pits = as_cells(pit)
    return np.stack([_mean_wave(pits, k) for k in range(1, WAVES + 1)], axis=-1)


def _mean_wave(pits: Cells, k: int) -> Floats:
    if pits.are_points:
        return np.asarray(np.sqrt(2) * np.cos(k * np.pi * pits.drawn).mean(axis=-1))
    # the mean of a cosine over a cell of width w is that at its middle times sinc(k w / 2)
    middle = (pits.low + pits.high) / 2
    means = np.cos(k * np.pi * middle) * np.sinc(k * (pits.high - pits.low) / 2)
    return np.asarray(np.sqrt(2) * means.mean(axis=-1))


def wave_weights(pattern: Floats) -> Floats:
    """Return weights, shape (..., WAVES), whose product with mean waves is the value of a pattern.

    A density `1 + sum_k b_k sqrt(2) cos(k pi u)` has `F(c) - c = sum_k b_k sqrt(2) sin(k pi c) / (k
    pi)`.
    """
    return np.asarray(pattern @ _INTEGRALS)


def pattern_of(mean_waves: Floats) -> Floats:
    """Return the sign of `F(c) - c` for distributions with these mean waves, by cell."""
    return np.where(mean_waves @ _SINES >= 0, 1.0, -1.0)


def direction_of(pattern: Floats) -> Direction:
    """Return the direction of a pattern; mixed if it agrees with no direction on 3/4 of levels."""
    level = float(pattern @ _LEVEL) / PATTERN_CELLS
    spread = float(pattern @ _SPREAD) / PATTERN_CELLS
    # signs that agree on three quarters of the levels have a mean product of 3/4 - 1/4 = 1/2
    if abs(level) >= max(0.5, abs(spread)):
        return LOWER if level > 0 else HIGHER
    if abs(spread) >= 0.5:
        return NARROW if spread > 0 else WIDE
    return MIXED


# --- null moments of pattern values of outcomes with atoms (outcomes: 4.3)

_GAUSS = 0.5 / np.sqrt(3)


def null_moments(pits: Cells, pattern: Floats) -> tuple[Floats, Floats]:
    """Return estimates of the second and third moment of each row's pattern value, shape (n,) each.

    If the PIT `W` of a row is uniform given the features, the moments of `T(W)` are known. With the
    mean `v`, the variance `w` and the third central moment `c` of `T(W)` over positions in the
    observed cell they are `E T^2 = E(v^2 + w)` and `E T^3 = E(v^3 + 3 v w + c)`. The value of a row
    is the mean of `v` over draws, which splits the moments of `v` in the same way. All of this
    gives estimates without bias. Of a rare event that nobody in a group had, the squares of values
    show nothing, but the cells show that it could happen.

    Parameters
    ----------
    pits : Cells of n rows
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
