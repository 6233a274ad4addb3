"""What an audit keeps of PITs that do not fit into memory.

Integer counts in bins, which add up (method: proof).

Bins are open to the left and closed to the right, and the first also holds 0: the count at or below
an edge is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import one_line
from evenhand._validate import Floats, InputError, bad_input, check_count, check_fraction
from evenhand.calibration.bands import binned_distance
from evenhand.calibration.pits import PITs, as_pits, check_own_draws
from evenhand.columns import check_groups
from evenhand.draws import RandomState, generator

__all__ = ["ERROR_BINS", "GAP_BINS", "PIT_BINS", "PITCounts", "binned_error", "count_pits"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Whole = TypeVar("Whole", np.int32, np.intp)

PIT_BINS = 6400
"""Bins of [0, 1] for PITs: a multiple of 20 and of 64, so that levels such as 0.05 and 0.9 are
edges."""

ERROR_BINS = 8192
"""Bins of [0, 1/2] for pathwise errors that are counted."""

GAP_BINS = 8192
"""Bins of [0, 1] for `|h[x, r](y) - r|` that are counted."""

BLOCK_PITS = 1 << 15
"""PITs worked on at once: these and what is made of them stay in the cache."""


@dataclass(frozen=True, eq=False, repr=False)
class PITCounts:
    """Counts of the PITs of some people; those of two blocks of people add up to those of both.

    Parameters
    ----------
    n_draws : int
        Draws per person.
    pit : ndarray of int64, shape (6400,)
        PITs of all draws, in equal bins of [0, 1].
    one_draw : ndarray of int64, shape (6400,)
        One PIT per person, its draw chosen at random, in the same bins.
    error : ndarray of int64, shape (8192,)
        People by their pathwise errors, in equal bins of [0, 1/2].
    gap : ndarray of int64, shape (8192,), or None
        People by `|h[x, r](y) - r|` of the same one draw, in equal bins of [0, 1]; None if draws
        are not known.
    inside : dict of float to ndarray of int64, shape (n_draws + 1,)
        For each level, people by how many of their draws' central intervals hold the outcome.

    Raises
    ------
    InputError
        If the arrays are not counts of one and the same people.

    Examples
    --------
    >>> first, _ = count_pits([[0.2, 0.6]], levels=(0.5,))
    >>> second, _ = count_pits([[0.3, 0.7]], levels=(0.5,))
    >>> (first + second).n_samples, (first + second).inside[0.5]  # one of two draws, and both
    (2, array([0, 1, 1]))
    """

    n_draws: int
    pit: Ints
    one_draw: Ints
    error: Ints
    gap: Ints | None
    inside: dict[float, Ints]

    def __post_init__(self) -> None:
        check_count("n_draws", self.n_draws)
        n = self.n_samples
        for name, counts, bins, total in self._named():
            if counts.shape != (bins,) or counts.dtype != np.int64:
                raise bad_input(
                    name,
                    f"be {bins} counts of type int64",
                    f"{counts.dtype} of shape {counts.shape}",
                )
            if counts.min() < 0 or counts.sum() != total * n:
                rule = f"hold counts that add up to {total * n}, of {n} people"
                raise bad_input(
                    name, rule, f"a sum of {counts.sum()} and a least one of {counts.min()}"
                )

    def __repr__(self) -> str:
        return one_line(
            self,
            n_samples=self.n_samples,
            n_draws=self.n_draws,
            levels=self.levels,
            has_draws=self.gap is not None,
        )

    @property
    def n_samples(self) -> int:
        """People counted."""
        return int(self.one_draw.sum())

    @property
    def levels(self) -> tuple[float, ...]:
        """Levels of the central intervals that were counted, rising."""
        return tuple(sorted(self.inside))

    def __add__(self, other: PITCounts) -> PITCounts:
        """Counts of both; raises InputError where they do not count the same things."""
        if not isinstance(other, PITCounts):
            return NotImplemented
        for what, mine, others in (
            ("n_draws", self.n_draws, other.n_draws),
            ("levels", self.levels, other.levels),
            ("known draws", self.gap is not None, other.gap is not None),
        ):
            if mine != others:
                raise bad_input(
                    what, "be the same in all counts that are added", f"{mine} and {others}"
                )
        return PITCounts(
            self.n_draws,
            self.pit + other.pit,
            self.one_draw + other.one_draw,
            self.error + other.error,
            None if self.gap is None or other.gap is None else self.gap + other.gap,
            {level: self.inside[level] + other.inside[level] for level in self.inside},
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PITCounts):
            return NotImplemented
        if (self.n_draws, self.levels, self.gap is None) != (
            other.n_draws,
            other.levels,
            other.gap is None,
        ):
            return False
        pairs = zip(sorted(self._named()), sorted(other._named()), strict=True)
        return all(np.array_equal(mine, others) for (_, mine, *_), (_, others, *_) in pairs)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def merged(cls, parts: Iterable[PITCounts]) -> PITCounts:
        """Add up the counts of several blocks of people, in any order.

        There must be at least one.
        """
        several = list(parts)
        if not several:
            raise InputError("there are no counts to merge; give those of at least one block")
        return reduce(add, several)

    def _named(self) -> Iterator[tuple[str, Ints, int, int]]:
        """Yield the name of each array, the array, its length and how often it counts each person."""
        yield "pit", self.pit, PIT_BINS, self.n_draws
        yield "one_draw", self.one_draw, PIT_BINS, 1
        yield "error", self.error, ERROR_BINS, 1
        if self.gap is not None:
            yield "gap", self.gap, GAP_BINS, 1
        for level, counts in self.inside.items():
            yield f"inside[{level}]", counts, self.n_draws + 1, 1


def count_pits(
    pit: ArrayLike | PITs,
    r: ArrayLike | None = None,
    *,
    levels: Iterable[float] = (0.8, 0.9),
    groups: Any = None,
    random_state: RandomState = None,
) -> tuple[PITCounts, dict[str, PITCounts]]:
    """Count the PITs of a block of people, and of each group among them.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns draws.
    r : array-like of shape (n,) or (n, m), optional
        The draws behind the PITs: fresh for each person, one in each of m cells (`draws.jittered`).
        Draws that people share are refused; those of people in different blocks are not compared.
    levels : iterable of float, default (0.8, 0.9)
        Levels of central intervals whose coverage will be asked for.
    groups : DataFrame, Series, or dict of name to mask of shape (n,), optional
        Groups named before the rows were seen. In one block a group may have no rows: its counts
        are zeros.
    random_state : int, generator or None
        Of the draw chosen per person. Give one and the same generator to all blocks: with it they
        choose as the whole table at once would; with one and the same number people in different
        blocks would depend on each other.

    Returns
    -------
    everybody : PITCounts
        Of all rows.
    by_group : dict of str to PITCounts
        Of the groups, in their order.

    Raises
    ------
    InputError
        If the input does not fit, or could not carry a guarantee.

    Examples
    --------
    >>> everybody, by_group = count_pits([0.1, 0.2, 0.95], groups={"first two": np.array([True, True, False])})
    >>> everybody.pit[:640].sum(), everybody.inside[0.8]  # one PIT of at most 0.1; one outside of [0.1, 0.9]
    (np.int64(1), array([1, 2]))
    >>> by_group["first two"].n_samples
    2
    """
    pits = as_pits(pit, r)
    matrix = pits.matrix
    draws = pits.draws
    n, m = matrix.shape
    masks = check_groups(groups, n, is_block=True)  # other blocks may have some
    shares = [check_fraction("level", level) for level in levels]
    if draws is not None:
        check_own_draws(draws)
    place = np.arange(n), generator(random_state).integers(m, size=n)
    bins, error, inside = _binned(matrix, shares)
    gap = None if draws is None else _bin(np.abs(matrix[place] - draws[place]), GAP_BINS, 1.0)
    rows = _Rows(bins, bins[place], error, gap, inside)
    return rows.counts(), {name: rows.take(mask).counts() for name, mask in masks.items()}


def binned_error(counts: PITCounts) -> float:
    """W1 calibration error from counts.

    That of the law that is exact at the edges of bins and linear between them.

    It differs from the exact `calibration_error` of the same PITs by at most half the width of a
    bin, 1/12800. Where PITs lie within their bin changes the error by no more than the distance
    between the two laws (triangle inequality). That is at most the sum, over bins, of the share in
    the bin times the distance of a law on the bin to the uniform law on it; the latter is convex,
    so it is largest for an atom, at an end: half of the width.

    Parameters
    ----------
    counts : PITCounts
        Of at least one person.

    Returns
    -------
    float
        Between 0 and 1/2.

    Examples
    --------
    >>> abs(binned_error(count_pits([0.5])[0]) - 0.25) <= 1 / 12800
    True
    """
    if counts.n_samples == 0:
        raise bad_input("counts", "hold at least one person", "none")
    return binned_distance(counts.pit)


@dataclass(frozen=True)
class _Rows:
    """What is counted of each person: bins of PITs, of one PIT, of the error and the gap.

    Draws inside, by level.
    """

    pit: NDArray[np.int32]
    one_draw: NDArray[np.int32]
    error: NDArray[np.int32]
    gap: NDArray[np.int32] | None
    inside: dict[float, NDArray[np.intp]]

    def take(self, mask: Bools) -> _Rows:
        """Return some people."""
        rows = np.flatnonzero(mask)
        gap = None if self.gap is None else self.gap[rows]
        inside = {level: counts[rows] for level, counts in self.inside.items()}
        return _Rows(
            self.pit.take(rows, axis=0), self.one_draw[rows], self.error[rows], gap, inside
        )

    def counts(self) -> PITCounts:
        """Count them."""
        m = self.pit.shape[1]
        return PITCounts(
            m,
            _count(self.pit.ravel(), PIT_BINS),
            _count(self.one_draw, PIT_BINS),
            _count(self.error, ERROR_BINS),
            None if self.gap is None else _count(self.gap, GAP_BINS),
            {level: _count(inside, m + 1) for level, inside in self.inside.items()},
        )


def _binned(
    matrix: Floats, levels: list[float]
) -> tuple[NDArray[np.int32], NDArray[np.int32], dict[float, NDArray[np.intp]]]:
    """Bins of PITs, shape (n, m), and of pathwise errors, shape (n,), and draws inside of each level, shape (n,)."""
    n, m = matrix.shape
    bins = np.empty((n, m), dtype=np.int32)
    error = np.empty(n)
    inside = {level: np.empty(n, dtype=np.intp) for level in levels}
    edges = np.arange(PIT_BINS + 1) / PIT_BINS
    ends = np.linspace(0.0, 1.0, m + 1)
    edges[0] = -1.0  # a PIT of 0 belongs to the first bin
    size = max(1, BLOCK_PITS // m)
    for start in range(0, n, size):
        part = slice(start, start + size)
        block = matrix[part]
        _bin_exactly(block, edges, bins[part])
        error[part] = _errors(block, ends)
        for level, count in inside.items():
            # the ends are those of `covered`
            held = block >= (1 - level) / 2
            held &= block <= (1 + level) / 2
            count[part] = held.sum(axis=-1)
    return bins, _bin(error, ERROR_BINS, 0.5), inside


def _bin_exactly(values: Floats, edges: Floats, out: NDArray[np.int32]) -> None:
    """Bins of PITs, right at every edge.

    Products such as `PIT_BINS * (k / PIT_BINS)` are rounded to either side of `k`.
    """
    out[...] = values * PIT_BINS
    out -= values <= edges.take(out)


def _bin(values: Floats, n_bins: int, top: float) -> NDArray[np.int32]:
    """Bins of [0, top] where the number of bins is a power of two, so that the product is exact."""
    return np.asarray(np.clip(np.ceil(values * (n_bins / top)) - 1, 0, n_bins - 1), dtype=np.int32)


def _errors(block: Floats, ends: Floats) -> Floats:
    """Exactly `pathwise_errors`, in place; a PIT that rises with its draw comes sorted."""
    rising = block if (block[:, 1:] >= block[:, :-1]).all() else np.sort(block, axis=-1)
    right = ends[1:] - rising
    left = ends[:-1] - rising
    size = np.abs(right)
    right *= size
    left *= np.abs(left, out=size)
    right -= left
    return np.asarray(right.sum(axis=-1) / 2)


def _count(bins: NDArray[Whole], n_bins: int) -> Ints:
    return np.bincount(bins, minlength=n_bins).astype(np.int64, copy=False)
