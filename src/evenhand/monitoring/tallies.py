"""Sums of a watch that are exact in any order: PITs, biases, draws, values of a promise."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import binned_error
from evenhand.certificates import Promise
from evenhand.monitoring.e_processes import Direction, Stored
from evenhand.monitoring.statements import (
    PIT_DIRECTIONS,
    RANGES,
    SIDES,
    cell_witnesses,
    targets_of,
)

BINS = 100
"""Number of equal bins of [0, 1] for PITs: estimates of errors are exact to half a bin, 0.005."""

UNIT = 1 << 20
"""Parts of a row that are counted: sums of whole numbers do not depend on the order of rows."""

GENERATION = 1 << 16
"""Draws are remembered to recognize repeated ones for at least so many later draws."""


class GroupSums(Stored):
    """Sums of the rows of G groups, in parts of a row that are whole numbers.

    Parameters
    ----------
    n_groups : int
        Number of groups.
    """

    width: ClassVar[int]
    counts: Ints

    def __init__(self, n_groups: int = 0) -> None:
        self.counts = np.zeros((n_groups, self.width), dtype=np.int64)

    def extend(self, n_groups: int) -> None:
        """Add groups without rows, up to a number of groups."""
        new = np.zeros((n_groups - len(self.counts), self.width), dtype=np.int64)
        self.counts = np.concatenate((self.counts, new))

    def _add(self, parts: Ints, members: Mask) -> None:
        # in floating point the product is fast, and exact up to 2^53: 2^33 rows
        total = members.T.astype(np.float64) @ parts.astype(np.float64)
        self.counts = self.counts + total.astype(np.int64)


class PITSums(GroupSums):
    """PITs of groups in bins, for the estimates of their errors.

    Each PIT cell is spread over its bins; a row counts as 2^20 parts, which makes sums exact.

    Examples
    --------
    >>> sums = PITSums(1)
    >>> sums.add(np.array([[0.0, 0.5], [1.0, 0.5]]), np.array([[True], [False]]))
    >>> sums.error(0), sums.direction(0)
    (0.0, None)
    """

    width = BINS

    def add(self, cells: Floats, members: Mask) -> None:
        """Add PIT cells, (2, n), of rows whose outcome is known; `members` has shape (n, G)."""
        low, high = cells
        edges = np.arange(BINS + 1) / BINS
        width = np.maximum(high - low, 1e-12)[:, None]
        below = np.clip((edges - low[:, None]) / width, 0.0, 1.0)
        below[:, -1] = 1.0
        upto = np.rint(below * UNIT).astype(np.int64)
        self._add(upto[:, 1:] - upto[:, :-1], members)

    def n_rows(self, group: int) -> int:
        """Return the number of rows of a group with a known outcome."""
        return round(int(self.counts[group].sum()) / UNIT)

    def error(self, group: int) -> float | None:
        """Return the W1 distance of a group's PITs to uniform; None if it has no rows."""
        # sums of parts of 2^20 would exceed whole numbers in floating point from 10^7 rows on
        return binned_error(self.counts[group] >> 10) if self.counts[group].any() else None

    def direction(self, group: int) -> Direction | None:
        """Return in which way a group's PITs deviate most; None if they do not."""
        middle = (np.arange(BINS) + 0.5) / BINS
        shares = self.counts[group] / max(int(self.counts[group].sum()), 1)
        means = shares @ cell_witnesses(middle, middle)
        return PIT_DIRECTIONS[int(means.argmax())] if means.max() > 1e-9 else None


class BiasSums(GroupSums):
    """Sums of outcome minus probability of groups, for 0/1 outcomes.

    Examples
    --------
    >>> sums = BiasSums(1)
    >>> sums.add(np.array([0.75, -0.25]), np.array([[True], [True]]))
    >>> sums.error(0), sums.direction(0)
    (0.25, 'higher')
    """

    width = 2

    def add(self, excess: Floats, members: Mask) -> None:
        """Add rows whose outcome is known; `members` has shape (n, G)."""
        parts = np.rint(excess * UNIT).astype(np.int64)
        self._add(np.stack((np.ones_like(parts), parts), axis=-1), members)

    def n_rows(self, group: int) -> int:
        """Return the number of rows of a group with a known outcome."""
        return int(self.counts[group, 0])

    def error(self, group: int) -> float | None:
        """Return the absolute mean of outcome minus probability; None if there are no rows."""
        n, total = (int(one) for one in self.counts[group])
        return abs(total) / UNIT / n if n else None

    def direction(self, group: int) -> Direction | None:
        """Return whether outcomes are higher or lower than predicted; None if neither."""
        total = int(self.counts[group, 1])
        return ("higher" if total > 0 else "lower") if total else None


class SeenDraws(Stored):
    """Draws that were seen before: a person's draw in one context is evidence only once.

    At least the last 65,536 draws are remembered, and fewer than twice as many. Fresh draws of 52
    bits practically never coincide.

    Examples
    --------
    >>> seen = SeenDraws()
    >>> seen.is_new(np.array([0.1, 0.2, 0.1, np.nan])), seen.n_repeated
    (array([ True,  True, False, False]), 1)
    """

    def __init__(self) -> None:
        self.n_repeated = 0
        self._draws: dict[float, None] = {}

    def is_new(self, r: Floats) -> Mask:
        """Return which draws were not seen before, and remember them; NaN is no draw."""
        new = ~np.isnan(r)
        for row in np.flatnonzero(new).tolist():
            draw = float(r[row])
            if draw in self._draws:
                new[row] = False
                self.n_repeated += 1
                continue
            # one row after another, so that splits into calls do not matter
            self._draws[draw] = None
            if len(self._draws) == 2 * GENERATION:
                self._draws = dict.fromkeys(islice(self._draws, GENERATION, None))
        return np.asarray(new)

    def to_state(self) -> dict[str, Any]:
        """Return the draws as JSON values."""
        return {"n_repeated": self.n_repeated, "draws": [*self._draws]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state`."""
        self.n_repeated = int(state["n_repeated"])
        self._draws = dict.fromkeys(map(float, state["draws"]))


# --- values of a promise in bins, for estimates of recent periods and of all

N_BINS = 1000
"""Number of bins: values between -1/2 and 1/2 are known to 0.0005."""


class ValueCounts(Stored):
    """Counts of the values of a promise, in blocks of periods that are longer if they are older.

    There are at most two blocks of the same number of periods, a power of two. The state therefore
    grows as the logarithm of the number of periods. The counts from a period on are known for a
    start that is at most about half of the time later. Counts, unlike sums of floats, do not depend
    on how rows are split into calls.

    Parameters
    ----------
    promise : Promise
        The promise, whose statistic has limits.

    Attributes
    ----------
    starts : list of int
        Number of the first period of each block, from 1.
    counts : list of ndarray of shape (N_BINS + 1,)
        Numbers of values in equal bins, increasing, and last of missing values.

    Examples
    --------
    >>> found = ValueCounts(Promise("gap", mass=0.2, target=0.3, confidence=0.95))
    >>> for _ in range(8):
    ...     found.begin_period()
    ...     found.add(np.array([0.5, np.nan]))
    >>> found.starts
    [1, 5, 7, 8]
    >>> recent = found.estimates(since=4)
    >>> recent["since"], recent["n"], recent["n_missing"]
    (5, 4, 4)
    """

    period: int
    starts: list[int]
    counts: list[Ints]

    def __init__(self, promise: Promise) -> None:
        self._promise = promise
        self.period = 0
        self.starts = []
        self.counts = []

    def begin_period(self) -> None:
        """Begin the next period."""
        self.period += 1
        self.starts.append(self.period)
        self.counts.append(np.zeros(N_BINS + 1, dtype=np.intp))
        size = 1
        # of three blocks of one size the two older ones become one of twice the size
        while len(alike := np.flatnonzero(np.diff([*self.starts, self.period + 1]) == size)) > 2:
            first = int(alike[0])
            self.starts.pop(first + 1)
            self.counts[first] = self.counts[first] + self.counts.pop(first + 1)
            size *= 2

    def add(self, values: Floats) -> None:
        """Add values, shape (n,), of the current period; NaN where the outcome is missing."""
        low, high = RANGES[self._promise.statistic]
        known = values[~np.isnan(values)]
        bins = np.clip(((known - low) / (high - low) * N_BINS).astype(np.intp), 0, N_BINS - 1)
        found = np.bincount(bins, minlength=N_BINS)
        self.counts[-1] = self.counts[-1] + np.append(found, values.size - known.size)

    def estimates(self, since: int = 1) -> dict[str, Any]:
        """Return the estimated mean of the worst share, with limits for missing outcomes.

        An estimate is no test: it is that of the worst group, which is selected after seeing the
        outcomes, and after an alarm also that of a selected stretch of time.

        Parameters
        ----------
        since : int, default 1
            Number of the period from which on rows are used; the first ones may be left out, as
            only recent periods are kept one by one.

        Returns
        -------
        dict
            "estimate": largest mean, over both sides, of a group of the promised size, of the rows
            with an outcome; exact to 0.0005, or 0.001 for biases; None without such rows. If the
            sides have bounds of their own, all estimates are of the side that is nearest to, or
            furthest above, its bound. "best_case" and "worst_case": the same with all missing
            outcomes at the least and at the largest values; None without rows. "direction": side
            of the estimate. "n" and "n_missing": numbers of covered rows with and without an
            outcome. "since": number of the period, from 1, from which on rows were used.
        """
        blocks = [i for i, start in enumerate(self.starts) if start >= since]
        total = sum((self.counts[i] for i in blocks), np.zeros(N_BINS + 1, dtype=np.intp))
        counts, n_missing = total[:-1], int(total[-1])
        sides = SIDES[self._promise.statistic]
        by_side = np.stack((counts, counts[::-1]))[: len(sides)]
        missing = np.zeros_like(counts)
        missing[0] = n_missing
        means, best, worst = (
            self._worst_means(some)
            for some in (by_side, by_side + missing, by_side + missing[::-1])
        )
        # all of one side if each has its own bound, as estimates are compared with that bound
        if self._promise.targets is not None:
            side = int((means - np.array(targets_of(self._promise))).argmax())
            means, best, worst = (values[[side]] for values in (means, best, worst))
            sides = sides[side : side + 1]
        n = int(counts.sum())
        has_any = n + n_missing > 0
        return {
            "estimate": float(means.max()) if n else None,
            "best_case": float(best.max()) if has_any else None,
            "worst_case": float(worst.max()) if has_any else None,
            "direction": sides[int(means.argmax())] if n else None,
            "n": n,
            "n_missing": n_missing,
            "since": self.starts[blocks[0]] if blocks else since,
        }

    def _worst_means(self, counts: Ints) -> Floats:
        """Return the mean of the largest share `mass` of counted values, of each side."""
        low, high = RANGES[self._promise.statistic]
        middles = low + (np.arange(N_BINS) + 0.5) / N_BINS * (high - low)
        room = self._promise.mass * np.maximum(counts.sum(axis=-1, keepdims=True), 1)
        # the largest values first
        taken = np.diff(np.minimum(np.cumsum(counts[..., ::-1], axis=-1), room), prepend=0.0)
        return np.asarray(taken @ middles[::-1] / room[..., 0])
