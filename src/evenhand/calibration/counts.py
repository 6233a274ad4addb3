"""Additive counts of PITs in bins, for tables that do not fit into memory (method: proof).

Bins are open on the left and closed on the right, and the first also contains 0: the count at or
below an edge is exact.

PITs of outcomes with atoms are counted at one drawn position in each cell, so that all counts are
whole numbers, and bounds with exact null distributions use them as those of continuous outcomes.
The average over positions differs by less than `1 / sqrt(n)`, which is small where counts are
needed. Pathwise errors are averaged over positions before they are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import OneLine
from evenhand._validate import Floats, InputError, bad_input, check_fraction
from evenhand.calibration.cells import Pit, as_cells
from evenhand.calibration.errors import pathwise_errors, touches
from evenhand.draws import RandomState, check_own_draws, generator
from evenhand.tables import check_groups, row_blocks

Ints = NDArray[np.int64]

PIT_BINS = 6400
"""Number of bins of PITs: a multiple of 20 and 64, so that levels like 0.05 are edges."""

ERROR_BINS = 8192
"""Number of bins of [0, 1/2] for pathwise errors."""

GAP_BINS = 8192
"""Number of bins of [0, 1] for `|h[x, r](y) - r|`."""


@dataclass(frozen=True, eq=False, repr=False)
class PITCounts(OneLine):
    """Counts of the PITs of people, and of the PITs of named groups among them.

    The sum of the counts of two disjoint blocks of people is the counts of both blocks, also for
    each group.

    Parameters
    ----------
    n_draws : int
        Number of draws per person.
    pit : ndarray of int64, shape (6400,)
        PITs of all draws, in equal bins of [0, 1].
    one_draw : ndarray of int64, shape (6400,)
        One PIT per person, at a draw chosen at random, in the same bins.
    error : ndarray of int64, shape (8192,)
        People by pathwise error, in equal bins of [0, 1/2].
    gap : ndarray of int64, shape (8192,), or None
        People by `|h[x, r](y) - r|` at the same draw, in equal bins of [0, 1]; None if the draws
        are not known.
    inside : mapping of float to ndarray of int64, shape (n_draws + 1,)
        For each level, people by the number of draws whose interval between quantiles contains the
        outcome (`covered_whole`).
    base : ndarray of int64, shape (6400,), or None
        For a link around a deterministic forecaster: PITs of that forecaster, one per person, in
        the same bins as `pit`; None if they are not known.
    has_cells : bool, default False
        Whether any outcome has an atom.
    groups : mapping of str to PITCounts, optional
        Counts of named groups of the same people. A group may be empty.

    Examples
    --------
    >>> from evenhand.calibration import count_pits
    >>> first = count_pits([[0.2, 0.6]], levels=(0.5,))
    >>> both = first + count_pits([[0.3, 0.7]], levels=(0.5,))
    >>> both.n_samples, both.inside[0.5]  # one person with one of two draws inside, one with both
    (2, array([0, 1, 1]))
    """

    n_draws: int
    pit: Ints
    one_draw: Ints
    error: Ints
    gap: Ints | None
    inside: Mapping[float, Ints]
    base: Ints | None = None
    has_cells: bool = False
    groups: Mapping[str, PITCounts] = field(default_factory=dict)

    @property
    def _counted(self) -> dict[str, Any]:
        """What is counted, which must be the same in counts that are added."""
        return {
            "n_draws": self.n_draws,
            "levels": self.levels,
            "has_draws": self.gap is not None,
            "has_base": self.base is not None,
            "groups": sorted(self.groups),
        }

    @property
    def n_samples(self) -> int:
        """Number of people counted."""
        return int(self.one_draw.sum())

    @property
    def levels(self) -> tuple[float, ...]:
        """Levels of the counted central intervals, in increasing order."""
        return tuple(sorted(self.inside))

    def __add__(self, other: PITCounts) -> PITCounts:
        """Return the counts of both; InputError if they do not count the same quantities."""
        if not isinstance(other, PITCounts):
            return NotImplemented
        # a level or a group that only one block counted is unknown for both together
        for (what, own), given in zip(self._counted.items(), other._counted.values(), strict=True):
            if own != given:
                raise InputError(
                    f"counts with different {what} cannot be added, got {own} and {given}; count"
                    " all blocks with the same arguments of count_pits"
                )
        each = {
            one.name: total(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)
            if one.name not in ("n_draws", "has_cells")
        }
        return PITCounts(self.n_draws, **each, has_cells=self.has_cells or other.has_cells)


def total(mine: Any, others: Any) -> Any:
    """Return the sum of what two blocks counted; where one has nothing, that of the other."""
    if isinstance(mine, Mapping):
        return {key: one + others[key] for key, one in mine.items()}
    return mine + others if mine is not None and others is not None else mine or others


# --- counts of a block of people

BLOCK_PITS = 1 << 15
"""Number of PITs binned at once: they and their temporaries fit into the processor's cache."""


def count_pits(
    pit: Pit,
    r: ArrayLike | None = None,
    *,
    levels: Iterable[float] = (0.8, 0.9),
    groups: Any = None,
    base: ArrayLike | None = None,
    random_state: RandomState = None,
) -> PITCounts:
    """Count the PITs of a block of people, and of each group among them.

    Parameters
    ----------
    pit : Cells, array-like of shape (n,) or (n, m), or tuple (low, high) of two such arrays
        PITs between 0 and 1, or the ends of their cells: rows are people, columns are draws. PITs
        with cells are counted at one position in each cell; pathwise errors average over them.
    r : array-like of shape (n,) or (n, m), optional
        The draws behind the PITs: fresh for each person, one in each of m cells (`draws.jittered`).
        Draws that people of this block share are refused; blocks are not compared.
    levels : iterable of float, default (0.8, 0.9)
        Nominal levels of the central intervals whose coverage is counted.
    groups : DataFrame, Series, or dict of name to mask of shape (n,), optional
        Groups named before the rows were seen. A group may have no rows in a block: its counts are
        then zero.
    base : array-like of shape (n,), optional
        For a link around a deterministic forecaster: PITs of that forecaster, between 0 and 1.
    random_state : int, generator or None
        Seed for the draw chosen per person, and for the positions in cells given as a tuple. Pass
        the same generator to all blocks: the result then equals that of the whole table, if a
        `Cells` fixes the positions. With the same integer, people in different blocks would not be
        independent.

    Returns
    -------
    PITCounts
        Counts of all rows; the attribute `groups` contains those of the groups, in their order.

    Raises
    ------
    InputError
        If the input is invalid or cannot support a guarantee.

    Examples
    --------
    >>> counts = count_pits([0.1, 0.2, 0.95], groups={"first two": np.array([True, True, False])})
    >>> counts.pit[:640].sum(), counts.inside[0.8]  # one PIT of at most 0.1; one beyond 0.9
    (np.int64(1), array([1, 2]))
    >>> counts.groups["first two"].n_samples
    2
    """
    random = generator(random_state)
    cells = as_cells(pit, r, random_state=random)
    n = cells.n_samples
    m = cells.n_draws
    masks = check_groups(groups, n, is_block=True)  # a group may have all its rows in other blocks
    shares = [check_fraction("level", level) for level in levels]
    if cells.draws is not None:
        check_own_draws(cells.draws)
    place = cells.one_draw_each(random)
    # every row is binned once; the counts of a group reuse the bins of its rows
    size = max(1, BLOCK_PITS // m)
    bins = np.concatenate([_pit_bins(cells.drawn[part]) for part in row_blocks(n, size)])
    error = _bins_of(pathwise_errors(cells), ERROR_BINS, 0.5)
    gap = None
    if cells.draws is not None:
        gap = _bins_of(np.abs(cells.drawn[place] - cells.draws[place]), GAP_BINS, 1.0)
    own = None
    if base is not None:
        own = _pit_bins(as_cells(base).drawn)
        if own.shape != (n, 1):
            raise bad_input("base", f"have one PIT per row ({n})", f"shape {np.shape(base)}")
    inside = {
        level: np.concatenate(
            [touches(*ends, level).sum(axis=-1) for ends in cells.row_blocks(size)]
        )
        for level in shares
    }

    def counted(rows: Any = slice(None)) -> PITCounts:
        """Count some of the people in each bin."""

        def people(bins: NDArray[Any], n_bins: int) -> Ints:
            return np.bincount(bins[rows].ravel(), minlength=n_bins).astype(np.int64, copy=False)

        return PITCounts(
            m,
            people(bins, PIT_BINS),
            people(bins[place], PIT_BINS),
            people(error, ERROR_BINS),
            None if gap is None else people(gap, GAP_BINS),
            {level: people(draws, m + 1) for level, draws in inside.items()},
            None if own is None else people(own, PIT_BINS),
            not cells.are_points,
        )

    groups = {name: counted(np.flatnonzero(mask)) for name, mask in masks.items()}
    return replace(counted(), groups=groups)


def _pit_bins(cells: Floats) -> NDArray[np.int16]:
    """Return the bin of each PIT."""
    bins = (cells * PIT_BINS).astype(np.int16)
    # products such as PIT_BINS * (k / PIT_BINS) are rounded to either side of k: a PIT at or below
    # the lower edge of its bin belongs to the bin below. The first bin includes PITs of 0
    bins -= (cells <= bins / PIT_BINS) & (bins > 0)
    return bins


def _bins_of(values: Floats, n_bins: int, top: float) -> NDArray[np.int16]:
    """Return bins of [0, top]; their number is a power of two, so that the product is exact."""
    return np.asarray(np.clip(np.ceil(values * (n_bins / top)) - 1, 0, n_bins - 1), dtype=np.int16)
