"""Counts of values in bins, for estimates of recent periods and of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from evenhand._validate import Floats, Ints

N_BINS = 1000
"""Number of bins: values between -1/2 and 1/2 are known to 0.0005."""


@dataclass
class Block:
    """Counts of the values of successive periods.

    Parameters
    ----------
    start, n_periods : int
        Number of the first period, and number of periods.
    counts : ndarray of int, shape (N_BINS,)
        Numbers of values in equal bins, increasing.
    n_missing : int
        Number of missing values.
    """

    start: int
    n_periods: int
    counts: Ints
    n_missing: int

    def with_next(self, other: Block) -> Block:
        """Return both blocks as one."""
        n_periods = self.n_periods + other.n_periods
        counts = self.counts + other.counts
        return Block(self.start, n_periods, counts, self.n_missing + other.n_missing)


class ValueCounts:
    """Counts of values between two limits, in blocks of periods that are longer if they are older.

    There are at most two blocks of the same number of periods, a power of two. The state therefore
    grows as the logarithm of the number of periods. The counts from a period on are known for a
    start that is at most about half of the time later. Counts, unlike sums of floats, do not depend
    on how rows are split into calls.

    Parameters
    ----------
    low, high : float
        Limits of the values.

    Examples
    --------
    >>> found = ValueCounts(0.0, 1.0)
    >>> for period in range(1, 9):
    ...     found.begin_period(period)
    ...     found.add(np.array([0.5]), n_missing=1)
    >>> [(block.start, block.n_periods) for block in found.blocks]
    [(1, 4), (5, 2), (7, 1), (8, 1)]
    >>> recent = found.since(4)
    >>> recent.start, int(recent.counts.sum()), recent.n_missing
    (5, 4, 4)
    """

    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.high = high
        self.blocks: list[Block] = []

    @property
    def middles(self) -> Floats:
        """Middles of the bins, shape (N_BINS,)."""
        return self.low + (np.arange(N_BINS) + 0.5) / N_BINS * (self.high - self.low)

    def begin_period(self, period: int) -> None:
        """Begin a period, whose number is that of the one before plus 1."""
        self.blocks.append(Block(period, 1, np.zeros(N_BINS, dtype=np.intp), 0))
        size = 1
        # of three blocks of one size the two older ones become one of twice the size
        while len(alike := [i for i, one in enumerate(self.blocks) if one.n_periods == size]) > 2:
            first = alike[0]
            self.blocks[first : first + 2] = [self.blocks[first].with_next(self.blocks[first + 1])]
            size *= 2

    def add(self, values: Floats, n_missing: int) -> None:
        """Add values, shape (n,), of the current period, and a number of missing ones."""
        places = (values - self.low) / (self.high - self.low) * N_BINS
        bins = np.clip(places.astype(np.intp), 0, N_BINS - 1)
        now = self.blocks[-1]
        now.counts = now.counts + np.bincount(bins, minlength=N_BINS)
        now.n_missing += n_missing

    def since(self, period: int) -> Block:
        """Return the counts of all blocks that begin in this period or later; 1 for all."""
        blocks = [block for block in self.blocks if block.start >= period]
        total = Block(blocks[0].start if blocks else period, 0, np.zeros(N_BINS, np.intp), 0)
        for block in blocks:
            total = total.with_next(block)
        return total

    def to_state(self) -> list[dict[str, Any]]:
        """Return the blocks as JSON values."""
        return [vars(block) | {"counts": block.counts.tolist()} for block in self.blocks]

    def restored(self, state: list[Mapping[str, Any]]) -> Self:
        """Return counts with the blocks of the output of `to_state`."""
        made = type(self)(self.low, self.high)
        for block in state:
            counts = np.array(block["counts"], dtype=np.intp)
            made.blocks.append(Block(**{**block, "counts": counts}))
        return made
