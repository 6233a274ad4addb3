"""Recalibration maps: monotone maps estimated from PITs, for all rows and for groups."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import n_effective
from evenhand.forecasters.adapters import (
    n_cells,
    plotting_positions,
    tail_knots,
)
from evenhand.forecasters.pit_cells import PitCells

Labels = NDArray[np.object_]

FEWEST_ROWS = 50
"""Fewest rows of a disjoint group for a map of its own: a map of 50 rows has 10 knots, each with a
standard error of at most 0.07."""

MOST_EM = 100
"""Largest number of steps of the EM algorithm for outcomes with atoms."""

LEAST_GAIN = 0.05
"""Smallest gain in nats, of all rows together, for another step of the EM algorithm."""

LEAST_STEP = 1.5
"""Smallest ratio of the ranks of neighboring knots in a tail."""

SPARSE = 2.0
"""Largest ratio of the probability of an interval of the upper tail to its share of observed rows:
where most rows are lost, a few would determine the density of much probability."""

FEWEST_PASSED = 10
FEW_LEFT = 3
"""Fewest rows that are lost beyond the last observed row for a knot there, and how many of them are
at or beyond the knot."""

LEAST_PIT = 1e-12
"""PITs closer than this to 0, to 1 or to each other count as tied, as floats lose precision near
1."""


def learn_maps(
    pit: Floats | PitCells, weight: Floats, groups: Iterable[tuple[str, Mask]]
) -> tuple[Floats, Floats, pd.DataFrame]:
    """Estimate the map of all rows, and one for each group of at least 50 rows.

    Parameters
    ----------
    pit : ndarray of shape (n,) or PitCells
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
    pits = PitCells.of(pit)
    maps = [_learn_map(pits.take(used), weight[used])]
    rows: list[tuple[str, int, str]] = []
    for name, mask in groups:
        inside = used & mask
        # rows that are lost contain little about a map
        seen = inside if pits.lost is None else inside & ~pits.is_wide
        own = int(seen.sum()) >= FEWEST_ROWS
        rows.append((name, int(inside.sum()), "own" if own else "pooled"))
        if own:
            maps.append(_learn_map(pits.take(inside), weight[inside]))
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


def _learn_map(pit: PitCells, weight: Floats) -> tuple[Floats, Floats]:
    """Return the knots of a map: the isotonic distribution of PITs, with more knots in both tails.

    Values are at equal steps of probability, and at ranks 1, 2, 4, ... from either end. On a
    calibrated base the map costs about n_knots / (2 n) nats.
    """
    if pit.ties is not None:
        return _learn_map_of_cells(pit, weight, *_first_knots(pit, weight))
    place, share = plotting_positions(np.clip(pit.low, LEAST_PIT, 1 - LEAST_PIT), weight)
    n = n_effective(weight)
    n_steps = n_cells(n)
    values = np.arange(1, n_steps) / n_steps
    ends = [0.0], [1.0]
    shares, places = (np.concatenate((ends[0], knots, ends[1])) for knots in (share, place))
    levels = np.interp(values, shares, places)
    lower, upper = tail_knots(share, n, values[0])
    levels, values = _joined(
        *(
            np.concatenate((knots[lower], inner, knots[upper]))
            for knots, inner in ((place, levels), (share, values))
        )
    )
    return np.concatenate(([0.0], levels, [1.0])), np.concatenate(([0.0], values, [1.0]))


def _first_knots(pit: PitCells, weight: Floats) -> tuple[Floats, Floats]:
    """Return the knots of the distribution of cells, the first step of the EM algorithm.

    With rows that are lost, each interval has about the same number of rows that are not: the map
    has no more detail where most rows are lost. Its values are those of the Kaplan-Meier estimate.
    In the upper tail, intervals need as many rows as without rows that are lost, within `SPARSE`.
    Beyond the last observed row, one knot separates what rows that are lost have passed.
    """
    n = n_effective(weight)
    at, left, right = pit.distribution(weight)
    if pit.lost is None:
        # one more row with a uniform PIT, as for plotting positions i / (n + 1)
        share = (n * (left + right) / 2 + at) / (n + 1)
        values = _even_and_tail_values(n)
        return _joined(np.interp(values, share, at), values)
    seen = ~pit.is_wide
    if not seen.any():
        return np.empty(0), np.empty(0)
    n = n_effective(weight[seen])
    place, share_seen = plotting_positions(pit.low[seen], weight[seen])
    shares, places = (np.concatenate(([0.0], knots, [1.0])) for knots in (share_seen, place))
    share = (n * (left + right) / 2 + at) / (n + 1)
    wanted = _even_and_tail_values(n)
    levels = np.interp(wanted, shares, places)
    values = np.interp(levels, at, share)
    is_inner = wanted <= 1 - (1 - 1e-9) / n_cells(n)
    is_dense = np.diff(values, prepend=0.0) <= SPARSE * np.diff(wanted, prepend=0.0)
    levels = levels[is_inner | is_dense]
    passed = pit.low[pit.lost & (pit.low > place[-1])]
    if passed.size >= FEWEST_PASSED:
        levels = np.append(levels, np.partition(passed, -FEW_LEFT)[-FEW_LEFT])
    return _joined(levels, np.interp(levels, at, share))


def _even_and_tail_values(n: float) -> Floats:
    """Return values at equal steps of probability, and at ranks 1, 2, 4, ... from either end."""
    n_steps = n_cells(n)
    tail = 2.0 ** np.arange(max(0, np.log2((n + 1) / n_steps / LEAST_STEP))) / (n + 1)
    return np.concatenate((tail, np.arange(1, n_steps) / n_steps, 1 - tail[::-1]))


def _learn_map_of_cells(
    pit: PitCells, weight: Floats, levels: Floats, values: Floats
) -> tuple[Floats, Floats]:
    """Return the knots of the map with the largest likelihood of cells, `M(high) - M(low)`.

    Its self-consistency is calibration on average: if a PIT has the density of the map within its
    cell, the mean over rows is the map itself, so that randomized PITs of the recalibrated
    forecasts are uniform. Of points and rows that are lost, this is the Kaplan-Meier estimate
    (Efron 1967). The distribution of PITs before recalibration is the first step of the EM
    algorithm, and the prior: half a row for each interval between knots, on average.
    """
    n = n_effective(weight)
    inside = (levels > LEAST_PIT) & (levels < 1 - LEAST_PIT)
    levels = np.concatenate(([0.0], levels[inside], [1.0]))
    values = np.concatenate(([0.0], values[inside], [1.0]))
    prior = np.diff(values)
    which = np.zeros(pit.size, dtype=np.intp)
    scaled = weight * (n / weight.sum())
    pseudo = prior.size / 2
    prior = pseudo * prior
    if pit.lost is not None:
        observed = np.histogram(pit.low[~pit.is_wide], levels)[0]
        prior = np.where(observed > 0, prior, np.maximum(prior, 0.5))
        pseudo = float(prior.sum())
    gain = -np.inf
    for _ in range(MOST_EM):
        counts = pit.expected_counts(scaled, which, levels, values[None])[0]
        found = (counts + prior) / (counts.sum() + pseudo)
        values = np.concatenate(([0.0], np.cumsum(found)[:-1], [1.0]))
        last, gain = gain, float(scaled @ pit.mapped(levels, values)[1])
        if gain < last + LEAST_GAIN:
            break
    return levels, values


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
