"""Additive counts of PITs in bins, for tables that do not fit into memory (method: proof).

Bins are open on the left and closed on the right, and the first also contains 0: the count at or
below an edge is exact.

PITs of outcomes with atoms are counted at one drawn position in each cell, so that all counts are
whole numbers, and bounds with exact null distributions use them as those of continuous outcomes.
The average over positions differs by less than `1 / sqrt(n)`, which is small where counts are
needed. Pathwise errors are averaged over positions before they are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from evenhand._format import one_line
from evenhand._validate import InputError, bad_input, check_count
from evenhand.calibration.distances import binned_distance

Ints = NDArray[np.int64]

PIT_BINS = 6400
"""Number of bins of [0, 1] for PITs: a multiple of 20 and 64, so that levels like 0.05 are edges.
"""

ERROR_BINS = 8192
"""Number of bins of [0, 1/2] for pathwise errors."""

GAP_BINS = 8192
"""Number of bins of [0, 1] for `|h[x, r](y) - r|`."""


@dataclass(frozen=True, eq=False, repr=False)
class PITCounts:
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
        For each level, people by the number of draws whose central interval covers the outcome.
    groups : mapping of str to PITCounts, optional
        Counts of named groups of the same people. A group may be empty.
    base : ndarray of int64, shape (6400,), or None
        For a link around a deterministic forecaster: PITs of that forecaster, one per person, in
        the same bins as `pit`; None if they are not known.
    inside_whole : mapping of float to ndarray of int64, shape (n_draws + 1,), or None
        As `inside`, for intervals between quantiles, which contain whole outcomes
        (`covered_whole`); None if no outcome has an atom, so that both are equal.

    Raises
    ------
    InputError
        If the arrays are not counts of the same people, or a group contains other people.

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
    groups: Mapping[str, PITCounts] = field(default_factory=dict)
    base: Ints | None = None
    inside_whole: Mapping[float, Ints] | None = None

    def __post_init__(self) -> None:
        check_count("n_draws", self.n_draws)
        n = self.n_samples
        if self.inside_whole is not None and self.inside_whole.keys() != self.inside.keys():
            got = f"{sorted(self.inside_whole)}"
            raise bad_input("inside_whole", f"have the levels of inside {self.levels}", got)
        for name, counts, bins, total in self._arrays():
            if counts.shape != (bins,) or counts.dtype != np.int64:
                got = f"{counts.dtype} of shape {counts.shape}"
                raise bad_input(name, f"be an array of {bins} counts of type int64", got)
            if counts.min() < 0 or counts.sum() != total * n:
                rule = f"be counts of at least 0 that add up to {total * n} for {n} people"
                got = f"a sum of {counts.sum()} and a minimum of {counts.min()}"
                raise bad_input(name, rule, got)

    def __repr__(self) -> str:
        return one_line(
            self,
            n_samples=self.n_samples,
            n_draws=self.n_draws,
            levels=self.levels,
            has_draws=self.gap is not None,
            has_base=self.base is not None,
            groups=len(self.groups) or None,
        )

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
        for what, mine, others in (
            ("n_draws", self.n_draws, other.n_draws),
            ("levels", self.levels, other.levels),
            ("has_draws", self.gap is not None, other.gap is not None),
            ("has_base", self.base is not None, other.base is not None),
            ("groups", sorted(self.groups), sorted(other.groups)),
        ):
            if mine != others:
                raise InputError(
                    f"counts with different {what} cannot be added, got {mine} and {others}; count"
                    " all blocks with the same arguments of count_pits"
                )
        return PITCounts(
            self.n_draws,
            self.pit + other.pit,
            self.one_draw + other.one_draw,
            self.error + other.error,
            _sum(self.gap, other.gap),
            {level: counts + other.inside[level] for level, counts in self.inside.items()},
            {name: counts + other.groups[name] for name, counts in self.groups.items()},
            _sum(self.base, other.base),
            self._sum_of_whole(other),
        )

    def whole(self, level: float) -> Ints:
        """People by the number of draws whose interval between quantiles covers the outcome."""
        return (self.inside if self.inside_whole is None else self.inside_whole)[level]

    def _sum_of_whole(self, other: PITCounts) -> dict[float, Ints] | None:
        # one of two blocks of a hurdle may have no outcome at the atom
        if self.inside_whole is None and other.inside_whole is None:
            return None
        return {level: self.whole(level) + other.whole(level) for level in self.levels}

    @classmethod
    def merged(cls, parts: Iterable[PITCounts]) -> PITCounts:
        """Add up the counts of at least one block of people, in any order."""
        several = list(parts)
        if not several:
            raise InputError("there are no counts to merge; give the counts of at least one block")
        return reduce(add, several)

    def _arrays(self) -> Iterator[tuple[str, Ints, int, int]]:
        """Yield each array with its name, its length and the number of times it counts a person."""
        # levels in a fixed order, so that the arrays of two counts can be paired
        yield "pit", self.pit, PIT_BINS, self.n_draws
        yield "one_draw", self.one_draw, PIT_BINS, 1
        yield "error", self.error, ERROR_BINS, 1
        if self.gap is not None:
            yield "gap", self.gap, GAP_BINS, 1
        if self.base is not None:
            yield "base", self.base, PIT_BINS, 1
        for level in self.levels:
            yield f"inside[{level}]", self.inside[level], self.n_draws + 1, 1
            yield f"inside_whole[{level}]", self.whole(level), self.n_draws + 1, 1


def _sum(mine: Ints | None, others: Ints | None) -> Ints | None:
    return None if mine is None or others is None else mine + others


def binned_error(counts: PITCounts) -> float:
    """Return the W1 calibration error from counts, within 1/12800 of the exact error.

    The result is the error of the distribution that is exact at the edges of the bins and uniform
    within each bin. By the triangle inequality the positions of PITs within their bins change the
    error by at most the distance between the two distributions. This distance is at most the sum,
    over bins, of the share in the bin times the distance of a distribution on the bin to the
    uniform distribution on it. The latter distance is convex in the distribution, so it is largest
    for an atom at an end of the bin, where it is half of the bin's width.

    Parameters
    ----------
    counts : PITCounts
        Counts of at least one person.

    Returns
    -------
    float
        Between 0 and 1/2.

    Examples
    --------
    >>> from evenhand.calibration import count_pits
    >>> abs(binned_error(count_pits([0.5])) - 0.25) <= 1 / 12800
    True
    """
    if counts.n_samples == 0:
        raise bad_input("counts", "contain at least one person", "none")
    return binned_distance(counts.pit)
