"""Recalibration maps: monotone maps estimated from PITs, for all rows and for groups."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask
from evenhand.forecasters.adapters import (
    effective_size,
    n_cells,
    plotting_positions,
    tail_knots,
)

Labels = NDArray[np.object_]

LEAST_PIT = 1e-12
"""PITs closer than this to 0, to 1 or to each other count as tied, as floats lose precision near
1."""


def learn_maps(
    pit: Floats, weight: Floats, groups: Iterable[tuple[str, Mask]]
) -> tuple[Floats, Floats, pd.DataFrame]:
    """Estimate the map of all rows, and one for each group of at least 50 rows.

    Parameters
    ----------
    pit : ndarray of shape (n,)
        Held-out PITs, between 0 and 1.
    weight : ndarray of shape (n,)
        Weights of the rows; rows of weight 0 are ignored.
    groups : iterable of (str, ndarray)
        Names and masks of shape (n,).

    Returns
    -------
    levels, values : ndarray of shape (n_maps, n_knots)
        Knots of the map of all rows, followed by the maps of groups with separate maps, in the
        order of the groups.
    table : DataFrame
        Output of `group_table`.
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
    longer = [refined(levels, values, n_knots) for levels, values in maps]
    levels, values = (np.stack(knots) for knots in zip(*longer, strict=True))
    return levels, values, group_table(rows)


def group_table(rows: Iterable[tuple[str, int, str]]) -> pd.DataFrame:
    """Return a table of groups with their names, numbers of rows and maps, "own" or "pooled"."""
    return pd.DataFrame(list(rows), columns=["group", "n_samples", "map"])


def map_of_rows(table: pd.DataFrame, labels: Labels) -> Ints:
    """Return the index of the map of `learn_maps` for each row; 0 if its group has no map."""
    own = pd.Index(table["group"][table["map"] == "own"])
    # -1, a label without a separate map, becomes 0, the map of all rows
    return np.asarray(1 + own.get_indexer(pd.Index(labels)), dtype=np.intp)


def _learn_map(pit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the knots of a map: the isotonic distribution of PITs, with more knots in both tails.

    Values are at equal steps of probability, and at ranks 1, 2, 4, ... from either end. On a
    calibrated base the map costs about n_knots / (2 n) nats.
    """
    place, share = plotting_positions(np.clip(pit, LEAST_PIT, 1 - LEAST_PIT), weight)
    n_effective = effective_size(weight)
    n_steps = n_cells(n_effective)
    values = np.arange(1, n_steps) / n_steps
    ends = [0.0], [1.0]
    shares, places = (np.concatenate((ends[0], knots, ends[1])) for knots in (share, place))
    levels = np.interp(values, shares, places)
    lower, upper = tail_knots(share, n_effective, values[0])
    levels, values = _joined(
        *(
            np.concatenate((knots[lower], inner, knots[upper]))
            for knots, inner in ((place, levels), (share, values))
        )
    )
    return np.concatenate(([0.0], levels, [1.0])), np.concatenate(([0.0], values, [1.0]))


def _joined(levels: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Merge knots at nearly the same level into their mean, so that the map has no jumps."""
    which = np.cumsum(np.diff(levels, prepend=-np.inf) > LEAST_PIT) - 1
    count = np.bincount(which)
    return np.bincount(which, weights=levels) / count, np.bincount(which, weights=values) / count


def refined(levels: Floats, values: Floats, n_knots: int) -> tuple[Floats, Floats]:
    """Return the same map with knots added on its longest segment, up to `n_knots`."""
    # so that the maps of several groups fit into one array
    missing = n_knots - levels.size
    if missing == 0:
        return levels, values
    at = int(np.argmax(np.diff(levels)))
    share = np.arange(1, missing + 1) / (missing + 1)
    added = (knots[at] + share * (knots[at + 1] - knots[at]) for knots in (levels, values))
    more_levels, more_values = added
    return np.insert(levels, at + 1, more_levels), np.insert(values, at + 1, more_values)
