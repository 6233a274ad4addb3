"""Recalibration maps that are estimated from PITs, and the membership of rows in groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import n_effective
from evenhand.forecasters.corrections import LEVEL, Patterns, Step, learn_corrections
from evenhand.forecasters.pit_cells import PitCells
from evenhand.forecasters.samples import n_cells, plotting_positions, tail_knots

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


# --- membership of rows in disjoint or overlapping groups, and the recalibration maps of groups

LEAST_STEPS = 1e-12, 1e-14
"""Smallest distances between the levels and between the values of two knots of a map."""

IDENTITY: Floats = np.array([0.0, 1.0])
"""Levels and values of the map that changes nothing."""


@dataclass(frozen=True)
class GroupMaps:
    """Maps of PITs that were estimated from held-out PITs.

    Parameters
    ----------
    levels, values : ndarray of shape (n_maps, n_knots)
        Knots of the map of all rows, followed by those of disjoint groups with separate maps.
    table : DataFrame
        Output of `group_table`.
    steps : tuple of Step
        Joint corrections of all rows and of overlapping groups, in place of the map of all rows.
    """

    levels: Floats
    values: Floats
    table: pd.DataFrame
    steps: tuple[Step, ...] = ()

    def pooled(self) -> GroupMaps:
        """Return only the map of all rows."""
        return GroupMaps(self.levels[:1], self.values[:1], group_table([]))


@dataclass(frozen=True)
class Members(ABC):
    """Membership of n rows in groups.

    Parameters
    ----------
    names : sequence of str
        Names of the groups.
    """

    names: Sequence[str]

    @abstractmethod
    def groups(self) -> Iterator[tuple[str, Mask]]:
        """Yield the groups with their rows."""

    @abstractmethod
    def take(self, rows: Ints) -> Self:
        """Return the membership of some rows."""

    @abstractmethod
    def learn(self, pit: PitCells, weight: Floats, level: float = LEVEL) -> GroupMaps:
        """Estimate maps from held-out PITs of these rows.

        `level` is the probability that calibrated PITs give overlapping groups any correction.
        """

    @abstractmethod
    def columns(self, names: Sequence[str], n: int) -> sparse.csr_array:
        """Return the membership of n rows in groups, by name, shape (n, n_groups)."""

    @abstractmethod
    def knots(self, maps: GroupMaps) -> tuple[Floats, Floats, Ints | None]:
        """Return levels and values of maps, and the number of the map of each row.

        The number is None if all rows have one map, of shape (n_knots,).
        """


@dataclass(frozen=True)
class Everyone(Members):
    """Rows without groups."""

    names: Sequence[str] = ()

    def groups(self) -> Iterator[tuple[str, Mask]]:
        return iter(())

    def take(self, rows: Ints) -> Self:
        return self

    def columns(self, names: Sequence[str], n: int) -> sparse.csr_array:
        return sparse.csr_array((n, len(names)))

    def learn(self, pit: PitCells, weight: Floats, level: float = LEVEL) -> GroupMaps:
        return GroupMaps(*learn_maps(pit, weight, ()))

    def knots(self, maps: GroupMaps) -> tuple[Floats, Floats, Ints | None]:
        return maps.levels[0], maps.values[0], None


@dataclass(frozen=True)
class Labelled(Members):
    """Disjoint groups.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Name of each row's group, None without one.
    """

    labels: Labels = field(default_factory=lambda: np.empty(0, dtype=object))

    def groups(self) -> Iterator[tuple[str, Mask]]:
        # one mask at a time, as a function may define many groups
        return ((name, self.labels == name) for name in self.names)

    def take(self, rows: Ints) -> Self:
        return type(self)(self.names, self.labels[rows])

    def columns(self, names: Sequence[str], n: int) -> sparse.csr_array:
        column = pd.Index(list(names), dtype=object).get_indexer(pd.Index(self.labels))
        rows = np.flatnonzero(column >= 0)
        ones = np.ones(rows.size)
        return sparse.csr_array((ones, (rows, column[rows])), shape=(n, len(names)))

    def learn(self, pit: PitCells, weight: Floats, level: float = LEVEL) -> GroupMaps:
        return GroupMaps(*learn_maps(pit, weight, self.groups()))

    def knots(self, maps: GroupMaps) -> tuple[Floats, Floats, Ints | None]:
        return maps.levels, maps.values, map_of_rows(maps.table, self.labels)


@dataclass(frozen=True)
class Overlapping(Members):
    """Groups that may overlap.

    Parameters
    ----------
    masks : ndarray of bool, shape (n, n_groups)
        Whether each row is in each group.
    """

    masks: NDArray[np.bool_] = field(default_factory=lambda: np.empty((0, 0), dtype=bool))

    def groups(self) -> Iterator[tuple[str, Mask]]:
        return zip(self.names, self.masks.T, strict=True)

    def take(self, rows: Ints) -> Self:
        return type(self)(self.names, self.masks[rows])

    def columns(self, names: Sequence[str], n: int) -> sparse.csr_array:
        masks = self.masks[:, [list(self.names).index(name) for name in names]]
        return sparse.csr_array(masks.astype(np.float64))

    def learn(self, pit: PitCells, weight: Floats, level: float = LEVEL) -> GroupMaps:
        used = weight > 0
        steps = learn_corrections(pit.take(used), weight[used], self.masks[used], level)
        levels, values, _ = learn_maps(pit, weight, ())
        is_own = np.zeros(len(self.names), dtype=bool)
        for step in steps:
            is_own |= step.is_corrected
        sizes = self.masks[used].sum(axis=0)
        kinds = np.where(is_own, "own", "pooled")
        rows = zip(self.names, map(int, sizes), map(str, kinds), strict=True)
        return GroupMaps(levels, values, group_table(rows), steps)

    def knots(self, maps: GroupMaps) -> tuple[Floats, Floats, Ints | None]:
        if not maps.steps:
            return IDENTITY, IDENTITY, None
        # maps depend on the groups that contain a row: one map per pattern of membership
        patterns = Patterns.of(self.masks)
        found = [_composed(maps, members) for members in patterns.members]
        n_knots = max(levels.size for levels, _ in found)
        longer = [refined(*knots, n_knots) for knots in found]
        levels, values = (np.stack(knots) for knots in zip(*longer, strict=True))
        return levels, values, patterns.which


def map_pits(
    pit: PitCells, levels: Floats, values: Floats, which: Ints | None
) -> tuple[PitCells, Floats]:
    """Return PITs under the maps of `Members.knots`, and the logarithm of the slope at each."""
    at = np.zeros(pit.size, dtype=np.intp) if which is None else which
    return pit.mapped_by(at, np.atleast_2d(levels), np.atleast_2d(values), "left")


def _composed(maps: GroupMaps, members: Mask) -> tuple[Floats, Floats]:
    """Return the knots of the corrections of a pattern, one after the other."""
    levels = values = IDENTITY
    for step in maps.steps:
        corrected = step.values(members[None, :])[0]
        # a composition of piecewise linear maps has the knots of both; new ones are mapped back
        added = np.setdiff1d(step.edges, values)
        at = np.searchsorted(values, added)
        levels = np.insert(levels, at, np.interp(added, values, levels))
        values = np.interp(np.insert(values, at, added), step.edges, corrected)
    least_level, least_value = LEAST_STEPS
    apart = (np.diff(levels) > least_level) & (np.diff(values) > least_value)
    kept = np.concatenate(([True], apart))
    # the last knot is (1, 1): drop the one before it instead
    if not kept[-1]:
        kept[np.flatnonzero(kept)[-1]] = len(kept) == 1
        kept[0] = kept[-1] = True
    return levels[kept], values[kept]
