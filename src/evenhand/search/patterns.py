"""Sign patterns over probability levels, and values of PITs under patterns (method: worst groups).

A pattern `s` is +1 at levels `c` where the PITs of a group are expected to lie at or below `c` too
often, and -1 where too rarely. For every pattern with absolute values of at most 1 and every
distribution `F` of PITs, `integral_0^1 s(c) (F(c) - c) dc <= W1(F, Uniform)`, with equality for
`s = sign(F(c) - c)`.
"""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats
from evenhand.calibration import PITs, as_pits
from evenhand.search.directions import HIGHER, LOWER, MIXED, NARROW, WIDE, Direction
from evenhand.search.ramps import mean_cdfs

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


def pattern_values(pit: Floats | PITs, pattern: Floats) -> Floats:
    """Return each row's value under a pattern, shape (n,), between -1/2 and 1/2.

    The value is `mean_j T(u_j) - integral_0^1 s(c) c dc` with `T(u) = integral_u^1 s(c) dc`. Its
    expectation for PITs with distribution `F` is `integral_0^1 s(c) (F(c) - c) dc`, which is at
    most the error of `F`. For cells, the value is the mean over positions in the cell.
    """
    pits = as_pits(pit)
    if pits.cells is not None:
        return np.asarray(pattern_basis(pits) @ pattern)
    steps = pattern / PATTERN_CELLS
    # T is linear between the edges of cells, so interpolation is exact
    tails = np.append(np.cumsum(steps[::-1])[::-1], 0.0)
    return np.asarray(np.interp(pits.matrix, _EDGES, tails).mean(axis=-1) - steps @ _MIDDLES)


def pattern_basis(pit: Floats | PITs) -> Floats:
    """Return the matrix, shape (n, PATTERN_CELLS), whose product with a pattern gives its values.

    For many patterns one product takes less time than `pattern_values` for each.
    """
    pits = as_pits(pit)
    width = 1 / PATTERN_CELLS
    if pits.cells is not None:
        # the mean part of a cell of the pattern above a PIT is the integral of its ramp
        return np.asarray(width * (mean_cdfs(pits.low, pits.high, PATTERN_CELLS) - _MIDDLES))
    basis = np.zeros((pits.n_samples, PATTERN_CELLS))
    # the part of each cell above a PIT; one draw at a time, as all draws would need much memory
    for draw in pits.matrix.T:
        basis += np.clip(_EDGES[1:] - draw[:, None], 0.0, width)
    return np.asarray(basis / pits.n_draws - width * _MIDDLES)


def waves(pit: Floats | PITs) -> Floats:
    """Return each row's mean of `sqrt(2) cos(k pi u)` for k = 1 to WAVES, shape (n, WAVES).

    The cosines are orthonormal, so a squared error gives equal weight to level and spread.
    """
    pits = as_pits(pit)
    return np.stack([_mean_wave(pits, k) for k in range(1, WAVES + 1)], axis=-1)


def _mean_wave(pits: PITs, k: int) -> Floats:
    if pits.cells is None:
        return np.asarray(np.sqrt(2) * np.cos(k * np.pi * pits.matrix).mean(axis=-1))
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
