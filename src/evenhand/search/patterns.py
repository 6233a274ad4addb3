"""Sign patterns over probability levels, and what they make of PITs (method: worst groups).

A pattern says at which levels `c` a group's PITs are expected to be at or below `c` too often (+1)
or too rarely (-1). For every pattern `s` with values of at most 1 in size and every law `F` of
PITs, `integral_0^1 s(c) (F(c) - c) dc <= W1(F, Uniform)`, with equality for `s = sign(F(c) - c)`.
"""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats
from evenhand.search.directions import HIGHER, LOWER, MIXED, NARROW, WIDE, Direction

CELLS = 32
"""Patterns are constant on so many equal cells of [0, 1]."""

WAVES = 3
"""Cosines by which a law of PITs is described: level, spread, skew."""

_EDGES = np.linspace(0.0, 1.0, CELLS + 1)
_MIDDLES = (_EDGES[1:] + _EDGES[:-1]) / 2
_LEVEL = np.ones(CELLS)
_SPREAD = np.where(_MIDDLES < 0.5, 1.0, -1.0)


def starting_patterns() -> Floats:
    """Too low, too high, too narrow, too wide.

    The patterns that every search starts from, shape (4, CELLS).
    """
    return np.stack([_LEVEL, -_LEVEL, _SPREAD, -_SPREAD])


def pattern_values(pit: Floats, pattern: Floats) -> Floats:
    """Each row's `mean_j T(u_j) - integral_0^1 s(c) c dc` with `T(u) = integral_u^1 s(c) dc`, shape (n,).

    Between -1/2 and 1/2. The mean over rows from a law `F` of PITs is `integral_0^1 s(c) (F(c) - c)
    dc`: without bias, and never more than the error of `F`.
    """
    steps = pattern / CELLS
    # T is linear between the edges of cells, so interpolation is exact
    tails = np.append(np.cumsum(steps[::-1])[::-1], 0.0)
    return np.asarray(np.interp(pit, _EDGES, tails).mean(axis=-1) - steps @ _MIDDLES)


def waves(pit: Floats) -> Floats:
    """Each row's mean of `sqrt(2) cos(k pi u)` for k = 1 to WAVES, shape (n, WAVES).

    They are orthonormal, so that level and spread are learned on an equal footing.
    """
    return np.stack(
        [np.sqrt(2) * np.cos(k * np.pi * pit).mean(axis=-1) for k in range(1, WAVES + 1)], axis=-1
    )


def wave_weights(pattern: Floats) -> Floats:
    """Turn mean waves into the error seen by a pattern: weights, shape (WAVES,).

    A density `1 + sum_k b_k sqrt(2) cos(k pi u)` has `F(c) - c = sum_k b_k sqrt(2) sin(k pi c) / (k
    pi)`.
    """
    k = np.arange(1, WAVES + 1) * np.pi
    integrals = -np.diff(np.cos(k[:, None] * _EDGES), axis=-1)
    return np.asarray(np.sqrt(2) / k**2 * (integrals @ pattern))


def pattern_of(mean_waves: Floats) -> Floats:
    """Return the sign of `F(c) - c` for the law with these mean waves, shape (CELLS,)."""
    k = np.arange(1, WAVES + 1) * np.pi
    deviation = (mean_waves / k) @ np.sin(k[:, None] * _MIDDLES)
    return np.where(deviation >= 0, 1.0, -1.0)


def direction_of(pattern: Floats) -> Direction:
    """Say in words what a pattern looks for.

    `mixed` if neither level nor spread makes up three quarters of it.
    """
    level = float((pattern * _LEVEL).mean())
    spread = float((pattern * _SPREAD).mean())
    # signs that agree on three quarters of the levels have mean product 1/2
    if abs(level) >= max(0.5, abs(spread)):
        return LOWER if level > 0 else HIGHER
    if abs(spread) >= 0.5:
        return NARROW if spread > 0 else WIDE
    return MIXED
