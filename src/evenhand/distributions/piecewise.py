"""Exact moments and CRPS of piecewise linear CDFs.

`levels` are the CDF values at the knots `values`; both broadcast to `batch_shape + (q,)`. The
probability below the first and above the last level is placed at the end knots; families with tails
add them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand._validate import Floats, Ints

BLOCK_NUMBERS = 100_000
"""Number of values in a temporary array, few enough for the cache."""


def cell_ends(knots: Floats, point: Floats, *columns: Floats) -> list[Floats]:
    """Return values of each column at both ends of the cell of `knots` that contains `point`.

    Beyond the ends this is the outermost cell. The columns have the shape of the batch and an axis
    of knots.
    """
    below = (knots <= point[..., None]).sum(axis=-1)
    at = np.minimum(np.maximum(below, 1), knots.shape[-1] - 1)
    # as np.take_along_axis, but with one index for all columns
    axes: tuple[Ints, ...] = np.indices(columns[0].shape[:-1], sparse=True)
    index = (*(axis[..., None] for axis in axes), np.stack((at - 1, at), axis=-1))
    return [column[index][..., end] for column in columns for end in (0, 1)]


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
    return in_blocks(_crps, BLOCK_NUMBERS, levels, values, y[..., None])


def in_blocks(evaluate: Callable[..., Floats], most: int, *arrays: Any) -> Floats:
    """Evaluate arrays that broadcast together in blocks of rows of at most `most` numbers."""
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    step = max(1, most * shape[0] // max(int(np.prod(shape)), 1)) if shape else 1
    if not shape or step >= shape[0]:
        return evaluate(*arrays)
    found = []
    for start in range(0, shape[0], step):
        cut = slice(start, start + step)
        found.append(
            evaluate(*(array[cut] if has_rows(array.shape, shape) else array for array in arrays))
        )
    return np.concatenate(found)


def has_rows(shape: tuple[int, ...], batch_shape: tuple[int, ...]) -> bool:
    """Whether a part has one row for each row of the batch; otherwise all rows share it."""
    return len(shape) == len(batch_shape) and shape[:1] == batch_shape[:1]


def _crps(levels: Floats, values: Floats, point: Floats) -> Floats:
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
    y = point[..., 0]
    outside = np.maximum(low[..., 0] - y, 0.0) + np.maximum(y - high[..., -1], 0.0)
    return np.asarray(inner + outside)


def _masses(levels: Floats) -> tuple[Floats, tuple[Floats, Floats]]:
    return np.diff(levels, axis=-1), (levels[..., 0], 1 - levels[..., -1])
