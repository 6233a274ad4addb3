"""Membership of rows in disjoint or overlapping groups, and the recalibration maps of groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from evenhand._validate import Floats, Ints, Mask
from evenhand.forecasters.corrections import learn_corrections
from evenhand.forecasters.maps import Labels, group_table, learn_maps, map_of_rows, refined
from evenhand.forecasters.pit_cells import PitCells
from evenhand.forecasters.steps import LEVEL, Patterns, Step

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
    low = np.empty(pit.size)
    high = low if pit.ties is None else np.empty(pit.size)
    log_slope = np.empty(pit.size)
    all_levels = np.atleast_2d(levels)
    all_values = np.atleast_2d(values)
    for number in np.unique(at):
        rows = at == number
        knots = all_levels[number], all_values[number]
        mapped, log_slope[rows] = pit.take(rows).mapped(*knots, side="left")
        low[rows], high[rows] = mapped.low, mapped.high
    return PitCells(low, high, pit.ties, pit.lost), log_slope


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
