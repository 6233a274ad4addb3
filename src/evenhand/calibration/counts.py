"""Counts of PITs in bins, which add up, for tables that do not fit into memory (method: proof).

Bins are open to the left and closed to the right, and the first also holds 0: the count at or below
an edge is exact.
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
"""Bins of [0, 1] for PITs: a multiple of 20 and of 64, so that levels such as 0.05 are edges."""

ERROR_BINS = 8192
"""Bins of [0, 1/2] for pathwise errors."""

GAP_BINS = 8192
"""Bins of [0, 1] for `|h[x, r](y) - r|`."""


@dataclass(frozen=True, eq=False, repr=False)
class PITCounts:
    """Counts of the PITs of some people and of groups of them.

    Counts of two blocks of people add up to those of both, group by group.

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
    inside : mapping of float to ndarray of int64, shape (n_draws + 1,)
        For each level, people by how many of their draws' central intervals hold the outcome.
    groups : mapping of str to PITCounts, optional
        Of named groups of the same people; there may be nobody in a group.

    Raises
    ------
    InputError
        If the arrays are not counts of one and the same people, or a group has other people.

    Examples
    --------
    >>> from evenhand.calibration import count_pits
    >>> first = count_pits([[0.2, 0.6]], levels=(0.5,))
    >>> both = first + count_pits([[0.3, 0.7]], levels=(0.5,))
    >>> both.n_samples, both.inside[0.5]  # one of two draws, and both
    (2, array([0, 1, 1]))
    """

    n_draws: int
    pit: Ints
    one_draw: Ints
    error: Ints
    gap: Ints | None
    inside: Mapping[float, Ints]
    groups: Mapping[str, PITCounts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_count("n_draws", self.n_draws)
        n = self.n_samples
        for name, counts, bins, total in self._arrays():
            if counts.shape != (bins,) or counts.dtype != np.int64:
                got = f"{counts.dtype} of shape {counts.shape}"
                raise bad_input(name, f"be {bins} counts of type int64", got)
            if counts.min() < 0 or counts.sum() != total * n:
                rule = f"hold counts that add up to {total * n}, of {n} people"
                got = f"a sum of {counts.sum()} and a least one of {counts.min()}"
                raise bad_input(name, rule, got)
        # counts of other people would make a group's bounds false: such a group shows where one of
        # its bins holds more people than that of everybody
        for name, group in self.groups.items():
            if not self._holds(group):
                remedy = "take both from the same calls of count_pits"
                rule = "count some of the same people"
                raise bad_input(f"groups[{name!r}]", rule, "others", remedy)

    def _holds(self, group: PITCounts) -> bool:
        """Whether other counts may be those of some of the same people."""
        return self._kind == group._kind and all(
            (part <= whole).all()
            for (_, part, *_), (_, whole, *_) in zip(group._arrays(), self._arrays(), strict=True)
        )

    @property
    def _kind(self) -> tuple[int, tuple[float, ...], bool]:
        """What is counted of each person."""
        return self.n_draws, self.levels, self.gap is not None

    def __repr__(self) -> str:
        return one_line(
            self,
            n_samples=self.n_samples,
            n_draws=self.n_draws,
            levels=self.levels,
            has_draws=self.gap is not None,
            groups=len(self.groups) or None,
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
        # a level or a group that one block did not count cannot be known of both
        for what, mine, others in (
            ("n_draws", self.n_draws, other.n_draws),
            ("levels", self.levels, other.levels),
            ("known draws", self.gap is not None, other.gap is not None),
            ("groups", sorted(self.groups), sorted(other.groups)),
        ):
            if mine != others:
                rule = "be the same in all counts that are added"
                raise bad_input(what, rule, f"{mine} and {others}")
        return PITCounts(
            self.n_draws,
            self.pit + other.pit,
            self.one_draw + other.one_draw,
            self.error + other.error,
            None if self.gap is None or other.gap is None else self.gap + other.gap,
            {level: counts + other.inside[level] for level, counts in self.inside.items()},
            {name: counts + other.groups[name] for name, counts in self.groups.items()},
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PITCounts):
            return NotImplemented
        if self._kind != other._kind or self.groups != other.groups:
            return False
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        return all(np.array_equal(mine, others) for (_, mine, *_), (_, others, *_) in pairs)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def merged(cls, parts: Iterable[PITCounts]) -> PITCounts:
        """Add up the counts of at least one block of people, in any order."""
        several = list(parts)
        if not several:
            raise InputError("there are no counts to merge; give those of at least one block")
        return reduce(add, several)

    def _arrays(self) -> Iterator[tuple[str, Ints, int, int]]:
        """Yield each array with its name, its length and how often it counts each person."""
        # levels in one order, so that arrays of two counts can be paired
        yield "pit", self.pit, PIT_BINS, self.n_draws
        yield "one_draw", self.one_draw, PIT_BINS, 1
        yield "error", self.error, ERROR_BINS, 1
        if self.gap is not None:
            yield "gap", self.gap, GAP_BINS, 1
        for level in self.levels:
            yield f"inside[{level}]", self.inside[level], self.n_draws + 1, 1


def binned_error(counts: PITCounts) -> float:
    """W1 calibration error from counts, within 1/12800 of the exact `calibration_error`.

    It is that of the distribution that is exact at the edges of bins and uniform within each. Where
    PITs lie within their bin changes the error by no more than the distance between the two
    distributions (triangle inequality). That is at most the sum, over bins, of the share in the bin
    times the distance of a distribution on the bin to the uniform one on it; the latter is convex,
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
    >>> from evenhand.calibration import count_pits
    >>> abs(binned_error(count_pits([0.5])) - 0.25) <= 1 / 12800
    True
    """
    if counts.n_samples == 0:
        raise bad_input("counts", "hold at least one person", "none")
    return binned_distance(counts.pit)
