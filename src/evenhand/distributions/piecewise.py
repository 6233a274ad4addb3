"""Exact moments and CRPS of piecewise linear CDFs.

`levels` are the CDF values at the knots `values`; both broadcast to `batch_shape + (q,)`. The
probability below the first and above the last level is placed at the end knots; families with tails
add them.
"""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats

BLOCK_NUMBERS = 2_000_000
"""Number of values in a temporary array."""


def mean(levels: Floats, values: Floats) -> Floats:
    """Return the mean."""
    mass, ends = _masses(levels)
    # the density is constant within a cell, so the mean over a cell is its middle
    inner = (mass * (values[..., 1:] + values[..., :-1])).sum(axis=-1) / 2
    return np.asarray(inner + ends[0] * values[..., 0] + ends[1] * values[..., -1])


def node_weights(levels: Floats) -> Floats:
    """Return weights of equally spaced nodes for expectations under a smooth CDF.

    The weights are slopes of the CDF from finite differences of order h^4.
    """
    # two more nodes on each side, at which the CDF is 0 and 1
    below = np.zeros((*levels.shape[:-1], 2))
    above = np.ones((*levels.shape[:-1], 2))
    padded = np.concatenate((below, levels, above), axis=-1)
    near = padded[..., 3:-1] - padded[..., 1:-3]
    wide = padded[..., 4:] - padded[..., :-4]
    weights = (8 * near - wide) / 12
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def level_weights(levels: Floats) -> Floats:
    """Return weights of the knots in expectations by the trapezium rule over levels.

    Exact for step functions, whose knots appear with the CDF before and at each step.
    """
    ends = np.zeros((*levels.shape[:-1], 1)), np.ones((*levels.shape[:-1], 1))
    middle = (levels[..., 1:] + levels[..., :-1]) / 2
    return np.diff(np.concatenate((ends[0], middle, ends[1]), axis=-1), axis=-1)


def std(levels: Floats, values: Floats) -> Floats:
    """Return the standard deviation."""
    # moments about a point of the support, so that large offsets do not cancel
    centre = values[..., values.shape[-1] // 2][..., None]
    a = values[..., :-1] - centre
    b = values[..., 1:] - centre
    mass, ends = _masses(levels)
    first = (mass * (a + b)).sum(axis=-1) / 2 + ends[0] * a[..., 0] + ends[1] * b[..., -1]
    second = (mass * (a * a + a * b + b * b)).sum(axis=-1) / 3
    second = second + ends[0] * a[..., 0] ** 2 + ends[1] * b[..., -1] ** 2
    return np.asarray(np.sqrt(np.maximum(second - first**2, 0.0)))


def tail_crps(mass: Floats, scale: Floats, distance: Floats) -> Floats:
    """Return the CRPS that an exponential tail adds to a CDF with a jump by `mass` at its start.

    At distance d beyond the end let F = mass exp(-d / scale). The tail adds `integral F^2 = mass^2
    scale / 2` in total, and up to the outcome the integrand is (1 - F)^2 instead of 1.
    """
    at = mass * np.exp(-distance / scale)
    return np.asarray(mass**2 * scale / 2 - 2 * scale * (mass - at))


def crps(levels: Floats, values: Floats, y: Floats) -> Floats:
    """Return the CRPS at `y`, `integral (F(z) - 1{z >= y})^2 dz`."""
    shape = np.broadcast_shapes(levels.shape[:-1], values.shape[:-1], y.shape)
    q = values.shape[-1]
    rows = shape[0] if shape else 1
    step = max(1, BLOCK_NUMBERS * rows // max(int(np.prod(shape)) * q, 1))
    if not shape or step >= rows:
        return _crps(levels, values, y)
    parts = []
    for start in range(0, rows, step):
        cut = slice(start, start + step)
        parts.append(
            _crps(
                _rows(levels, len(shape) + 1, cut),
                _rows(values, len(shape) + 1, cut),
                _rows(y, len(shape), cut),
            )
        )
    return np.concatenate(parts)


def _rows(array: Floats, ndim: int, cut: slice) -> Floats:
    """Return some rows of an array, or the array if it is the same for all rows."""
    return array[cut] if array.ndim == ndim and array.shape[0] > 1 else array


def _crps(levels: Floats, values: Floats, y: Floats) -> Floats:
    point = y[..., None]
    low = values[..., :-1]
    high = values[..., 1:]
    at_low = levels[..., :-1]
    at_high = levels[..., 1:]
    turn = np.clip(point, low, high)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(high > low, (turn - low) / (high - low), 1.0)
    at_turn = at_low + share * (at_high - at_low)
    # F is linear in a cell: the integral of F^2 is its length times (a^2 + ab + b^2) / 3
    left = (turn - low) * (at_low**2 + at_low * at_turn + at_turn**2)
    c = 1 - at_turn
    d = 1 - at_high
    right = (high - turn) * (c**2 + c * d + d**2)
    inner = (left + right).sum(axis=-1) / 3
    # beyond the knots F is 0 or 1, and the integrand up to the outcome is 1
    outside = np.maximum(low[..., 0] - y, 0.0) + np.maximum(y - high[..., -1], 0.0)
    return np.asarray(inner + outside)


def _masses(levels: Floats) -> tuple[Floats, tuple[Floats, Floats]]:
    return np.diff(levels, axis=-1), (levels[..., 0], 1 - levels[..., -1])
