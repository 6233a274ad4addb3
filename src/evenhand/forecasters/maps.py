"""Recalibration maps: monotone maps learned from PITs, for all rows and for groups of rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask

Labels = NDArray[np.object_]

LEAST_PIT = 1e-12
"""PITs nearer to 0 or 1 than this, or nearer to each other, count as tied: floats have no digits
left near 1."""


def learn_maps(
    pit: Floats, weight: Floats, groups: Iterable[tuple[str, Mask]]
) -> tuple[Floats, Floats, pd.DataFrame]:
    """Learn the map of all rows, and one more for each group of at least 50 rows.

    Parameters
    ----------
    pit : ndarray of shape (n,)
        PITs of rows that the model was not fitted on, between 0 and 1.
    weight : ndarray of shape (n,)
        Weights of the rows; those of weight 0 do not count.
    groups : iterable of (str, ndarray)
        Names and masks of shape (n,).

    Returns
    -------
    levels, values : ndarray of shape (n_maps, n_knots)
        Knots of the maps: that of all rows, then those of the groups with maps of their own, in
        the order of the groups.
    table : DataFrame
        `group_table` of the groups.
    """
    used = weight > 0
    maps = [_learn_map(pit[used], weight[used])]
    rows: list[tuple[str, int, str]] = []
    for name, mask in groups:
        inside = used & mask
        # a map of 50 rows has 10 knots, each with a standard error of at most 0.07
        own = int(inside.sum()) >= 50
        rows.append((name, int(inside.sum()), "own" if own else "pooled"))
        if own:
            maps.append(_learn_map(pit[inside], weight[inside]))
    n_knots = max(levels.size for levels, _ in maps)
    refined = [_refined(levels, values, n_knots) for levels, values in maps]
    levels, values = (np.stack(knots) for knots in zip(*refined, strict=True))
    return levels, values, group_table(rows)


def group_table(rows: Iterable[tuple[str, int, str]]) -> pd.DataFrame:
    """Return name, number of rows and kind of map, "own" or "pooled", of each group."""
    return pd.DataFrame(list(rows), columns=["group", "n_samples", "map"])


def map_of_rows(table: pd.DataFrame, labels: Labels) -> Ints:
    """Return which of the maps of `learn_maps` each row takes, 0 where its group has none."""
    own = pd.Index(table["group"][table["map"] == "own"])
    # -1, a label without a map of its own, becomes 0
    return np.asarray(1 + own.get_indexer(pd.Index(labels)), dtype=np.intp)


def _learn_map(pit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the knots of a map: the isotonic distribution of PITs at equal steps of its values.

    Over a base that is right the map costs about n_knots / (2 n) nats.
    """
    place, share = _plotting_positions(np.clip(pit, LEAST_PIT, 1 - LEAST_PIT), weight)
    # steps of a histogram with equal masses whose bias and noise are in balance; unequal weights
    # count as fewer rows (Kish)
    n_effective = weight.sum() ** 2 / (weight**2).sum()
    n_steps = int(np.clip(round(2 * n_effective**0.4), 2, 200))
    values = np.arange(1, n_steps) / n_steps
    ends = [0.0], [1.0]
    shares, places = (np.concatenate((ends[0], knots, ends[1])) for knots in (share, place))
    levels, values = _joined(np.interp(values, shares, places), values)
    return np.concatenate(([0.0], levels, [1.0])), np.concatenate(([0.0], values, [1.0]))


def _plotting_positions(pit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return distinct PITs in order with plotting positions: i / (n + 1), the mean over ties."""
    place, which = np.unique(pit, return_inverse=True)
    mass = np.bincount(which, weights=weight / weight.mean())
    return place, (np.cumsum(mass) - mass / 2 + 0.5) / (pit.size + 1)


def _joined(levels: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Join knots at nearly the same level into one at their mean: a map has no jumps."""
    which = np.cumsum(np.diff(levels, prepend=-np.inf) > LEAST_PIT) - 1
    count = np.bincount(which)
    return np.bincount(which, weights=levels) / count, np.bincount(which, weights=values) / count


def _refined(levels: Floats, values: Floats, n_knots: int) -> tuple[Floats, Floats]:
    """Return the same map with knots added on its widest line."""
    # maps of several groups then fit into one array
    missing = n_knots - levels.size
    if missing == 0:
        return levels, values
    at = int(np.argmax(np.diff(levels)))
    share = np.arange(1, missing + 1) / (missing + 1)
    added = (knots[at] + share * (knots[at + 1] - knots[at]) for knots in (levels, values))
    more_levels, more_values = added
    return np.insert(levels, at + 1, more_levels), np.insert(values, at + 1, more_values)
