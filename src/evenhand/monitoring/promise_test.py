"""Test of a promise for every group of a size, valid however often it is read (outcomes: 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np

from evenhand._validate import Floats, InputError, Ints, Mask, bad_input
from evenhand.certificates import Envelope, Promise
from evenhand.links import Link
from evenhand.monitoring.e_processes import EProcesses
from evenhand.monitoring.rows import Cells, Rows

# --- values per person whose mean over every group a promise bounds (outcomes: 6)

Side = Literal["higher", "lower", "gap"]
"""Way in which a promise is broken: outcomes higher or lower than forecast, or PITs far from their
draws."""

SIDES: dict[str, tuple[Side, ...]] = {
    "mean_pit": ("higher", "lower"),
    "gap": ("gap",),
    "bias": ("higher", "lower"),
}
"""Sides of each statistic."""

RANGES = {"mean_pit": (-0.5, 0.5), "gap": (0.0, 1.0), "bias": (-1.0, 1.0)}
"""Least and largest value of each statistic."""


Found = TypeVar("Found")


def promise_values(promise: Promise, rows: Rows) -> tuple[Floats, Mask]:
    """Return the values of n rows whose mean over every group of the size is at most the target.

    In every group S, whatever the link, the group error is at least `|E_S mu(U) - 1/2|`, `mu(u)`
    the mean served PIT at the base PIT u: served PITs have that mean, and W1 is at least the
    distance of means. The mean of the absolute gap is at least the group error.

    Returns
    -------
    values : ndarray of shape (n, n_sides)
        Values of each side; NaN where the outcome is missing.
    covered : ndarray of bool, shape (n,)
        Rows that the promise covers, or may cover if their outcome is missing.

    Raises
    ------
    InputError
        If the rows lack what the statistic is computed from.
    """
    if promise.statistic == "mean_pit":
        assert promise.link is not None
        if rows.link not in (None, promise.link):
            raise InputError(
                f"rows have the link {rows.link}, but the promise is about {promise.link}; give the"
                " certificate of the forecasts that were served"
            )
        if promise.atom is not None and rows.promised is None:
            raise InputError(
                f"the promise is about outcomes other than {promise.atom:g}, but rows do not have"
                " which outcomes these are; read them from a log, or make Rows with promised, and"
                " with base of the part beside this atom"
            )
        base = _needed(rows.base, "base PITs", "log the link of the forecasts")
        value = mean_served_pit(promise.link, base, rows.known) - 0.5
    elif promise.statistic == "gap":
        draws = _needed(rows.r, "draws", "log the draws of the forecasts")
        lacks = np.flatnonzero(rows.known & np.isnan(draws))
        if lacks.size:
            raise InputError(
                f"row {lacks[0]} (counted from 0) has an outcome but no draw, which the promise is"
                " about; remove the forecasts without a draw"
            )
        value = mean_gap(rows.pit, draws)
    else:
        value = _needed(
            rows.excess, "outcomes minus probabilities", "watch forecasts of 0/1 outcomes"
        )
    value = np.where(rows.known, value, np.nan)
    covered = np.full(value.shape, True) if rows.promised is None else rows.promised | ~rows.known
    signs = {"higher": 1.0, "lower": -1.0, "gap": 1.0}
    sides = [signs[side] * value for side in SIDES[promise.statistic]]
    return np.stack(sides, axis=-1), covered


def mean_served_pit(link: Link, base: Cells, known: Mask) -> Floats:
    """Return the mean of the randomized served PIT over draws and positions in the cell, (n,)."""
    low, high = (np.where(known, end, 0.5) for end in base)
    return (link.mean_pit(low) + link.mean_pit(high)) / 2


def mean_gap(pit: Cells, r: Floats) -> Floats:
    """Return the mean of `|PIT - r|` over positions in the cell, (n,)."""
    low, high = pit
    inside = np.clip(r, low, high)
    width = high - low
    parts = (inside - low) ** 2 + (high - inside) ** 2
    spread = np.divide(parts, 2 * width, out=np.zeros_like(parts), where=width > 0)
    return np.asarray(np.abs(r - inside) + spread)


def _needed(found: Found | None, what: str, remedy: str) -> Found:
    if found is None:
        raise InputError(f"rows have no {what}, which the promise is about; {remedy}")
    return found


# --- grid of quantiles for the hypothesis that the mean of the worst share is at most a target

N_CELLS = 32
"""Number of cells; 64 detect a change hardly earlier."""

LAST_CELL = 0.02
"""Width of the cell next to the target, as a share of the distance from the least value to it."""


class QuantileCells(NamedTuple):
    """Cells of quantiles q from the least value to the target, and the values that test them.

    The largest mean of a group of a share `mass` of people is `CVaR(x) = min over q of
    q + E(x - q)_+ / mass` (Rockafellar & Uryasev 2000). It is at most `target` if and only if there
    is a q with `E z_q <= 1`, `z_q = (x - q)_+ / (mass (target - q))`. In q, `z_q` falls where `x <
    target` and rises where `x > target`. Its minimum over a cell therefore lies at one of the two
    ends, and has a mean of at most 1 if any q of the cell serves.

    Parameters
    ----------
    target : float
        Promised largest mean.
    mass : float
        Share of people.
    left, right : ndarray of shape (n_cells,)
        Ends of the cells.

    Examples
    --------
    The minimum of `z_q` over all cells is 0 for values below, and large for values above:

    >>> cells = QuantileCells.of(target=0.3, mass=0.2, low=-0.5)
    >>> ratios = cells.ratios(np.array([-0.5, 0.3, 0.5]))
    >>> ratios.shape, ratios.min(axis=-1).round(2)
    ((3, 32), array([0.  , 0.  , 6.25]))
    """

    target: float
    mass: float
    left: Floats
    right: Floats

    @classmethod
    def of(cls, target: float, mass: float, low: float) -> Self:
        """Make the cells for values of at least `low`, which is below the target."""
        if mass == 1:
            # the mean of everybody: q = low is the weakest condition
            return cls(target, mass, np.array([low]), np.array([low]))
        # the loss of power by a cell depends on its width over the distance to the target, so the
        # widths fall in geometric steps. A q below `low` serves only if `low` does
        edges = target - (target - low) * np.geomspace(1.0, LAST_CELL, N_CELLS)
        edges[0] = low
        return cls(target, mass, edges, np.append(edges[1:], target))

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.left.size

    def ratios(self, x: Floats) -> Floats:
        """Return the least `z_q` over each cell, shape (..., n_cells)."""
        value = x[..., None]
        at_left = np.maximum(value - self.left, 0.0) / (self.target - self.left)
        # q = target serves if no value exceeds it, and then needs no bet
        distance = self.target - self.right
        above = np.maximum(value - self.right, 0.0)
        at_right = np.divide(above, distance, out=np.zeros_like(above), where=distance > 0)
        least = np.where(value > self.target, at_left, at_right)
        return np.ascontiguousarray(least / self.mass)


# --- counts of values in bins, for estimates of recent periods and of all

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


# --- test of a promise for every group of a size, valid however often it is read (outcomes: 6)

BLOCK = 4096
"""Number of rows that are added at once."""


@dataclass(frozen=True)
class PromiseEstimates:
    """Estimated mean of the worst share of people, and its limits given the missing outcomes.

    Parameters
    ----------
    estimate : float or None
        Largest mean, over both sides, of a group of the promised size, of the rows with an outcome;
        exact to 0.0005, or 0.001 for biases. None without such rows. If the sides have bounds of
        their own, all estimates are of the side that is nearest to, or furthest above, its bound.
    best_case, worst_case : float or None
        The same with all missing outcomes at the least and at the largest values. None without
        rows.
    direction : {"higher", "lower", "gap"} or None
        Side of the estimate.
    n : int
        Number of covered rows with an outcome.
    n_missing : int
        Number of rows without.
    since : int
        Number of the period, from 1, from which on rows were used.
    """

    estimate: float | None
    best_case: float | None
    worst_case: float | None
    direction: Side | None
    n: int
    n_missing: int
    since: int


class PromiseTest:
    """E-processes for the promise that in every group of a size a mean is at most a target.

    Group errors are not observed, but the mean of a value x per person (`promise_values`) is at
    most the group error in every group. The largest mean over groups of a share of at least `mass`
    is at most `target` if and only if there is a quantile q with `E z_q <= 1` (`QuantileCells`). So
    the null hypothesis is a union over q, and the minimum over cells of q of e-processes tests it.

    *What is a broken promise.* The null hypothesis is that one q serves all rows: each has, given
    the rows before it, `E z_q <= 1`. Then, in every stretch of time, all groups of a share of at
    least `mass` of the people in it have a mean of at most the target. The distributions of rows
    may change from period to period, as long as one q serves them all. What the null hypothesis
    does not include, and an alarm may therefore report:

    - a period in which the promise does not hold for the people of that period, even if it holds
      for the people of the year, such as days with shocks that are common to all outcomes
      (`benchmarks/watch_delays.py` has examples);
    - periods of which each keeps the promise for its own people, but with different q. A group may
      then consist of more people of some periods than of others, and the largest mean over such
      groups exceeds those within the periods: the certificate promised it for them, too.

    A missing outcome counts as the value that is least favourable to an alarm. The alarm is then
    valid whatever decides which outcomes are missing; without these rows it would not be.

    Each side of the promise has its own evidence. With an alarm at `log_evidence >= log(2 / gamma)`
    on either of two sides, the probability of an alarm over an unbounded time is at most `gamma` if
    the promise holds.

    Parameters
    ----------
    promise : Promise
        What was promised.

    Attributes
    ----------
    sides : tuple of str
        Sides that are tested: "higher" and "lower" (outcomes than forecast), or "gap".

    Raises
    ------
    InputError
        If the target does not exceed the least value, or `mass` is not a share.

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> from evenhand.certificates import Promise
    >>> promise = Promise("mean_pit", mass=0.2, target=0.25, confidence=0.95, link=Entropic(0.12))
    >>> test = PromiseTest(promise)
    >>> test.sides, test.log_evidence
    (('higher', 'lower'), array([0., 0.]))
    """

    def __init__(self, promise: Promise) -> None:
        self.promise = promise
        self.sides = SIDES[promise.statistic]
        self._low, self._high = RANGES[promise.statistic]
        self._targets = promise.targets or (promise.target,) * len(self.sides)
        if not (
            len(self._targets) == len(self.sides)
            and min(self._targets) > self._low
            and 0 < promise.mass <= 1
        ):
            rule = f"have a target above {self._low:g} and a mass above 0 and at most 1"
            raise bad_input("promise", rule, promise)
        self._cells = [QuantileCells.of(one, promise.mass, self._low) for one in self._targets]
        n_processes = sum(cells.n_cells for cells in self._cells)
        self._processes = EProcesses(np.zeros(n_processes), np.ones(n_processes))
        self._counts = ValueCounts(self._low, self._high)

    @property
    def period(self) -> int:
        """Number of the current period, from 1; 0 before the first."""
        return self._processes.period

    @property
    def log_evidence(self) -> Floats:
        """Logarithm of the evidence of each side after the last row, shape (n_sides,)."""
        return np.asarray(self._by_cell(self._processes.log_evidence).min(axis=-1))

    @property
    def since(self) -> Ints:
        """Period from which on the evidence of each side is largest, shape (n_sides,)."""
        least = self._by_cell(self._processes.log_evidence).argmin(axis=-1)
        starts = self._by_cell(self._processes.since)
        return np.take_along_axis(starts, least[:, None], axis=-1)[:, 0]

    def begin_period(self, period: int) -> None:
        """Begin the next period, also if it has no rows; see `EProcesses.begin_period`."""
        self._processes.begin_period(period)
        self._counts.begin_period(period)

    def update(self, rows: Rows) -> Floats:
        """Add rows of the current period and return the evidence after each.

        Parameters
        ----------
        rows : Rows
            n rows in their order.

        Returns
        -------
        ndarray of shape (n, n_sides)
            Logarithms of the evidence of each side.

        Raises
        ------
        InputError
            If the rows lack what the statistic is computed from.
        """
        values, covered = promise_values(self.promise, rows)
        # without an outcome, the value that is least favourable to an alarm
        filled = np.where(rows.known[:, None], values, self._low)
        path = np.empty(filled.shape)
        for first in range(0, len(filled), BLOCK):
            some = slice(first, first + BLOCK)
            path[some] = self._add(filled[some], covered[some])
        # of the first side; values of the other one are their negatives
        self._counts.add(values[rows.known & covered, 0], int((covered & ~rows.known).sum()))
        return path

    def estimates(self, since: int = 1) -> PromiseEstimates:
        """Return the estimated mean of the worst share, with limits for missing outcomes.

        An estimate is no test: it is that of the worst group, which is selected after seeing the
        outcomes, and after an alarm also that of a selected stretch of time.

        Parameters
        ----------
        since : int, default 1
            Number of the period from which on rows are used; the first ones may be left out, as
            only recent periods are kept one by one.
        """
        found = self._counts.since(since)
        sides = self.sides
        n_sides = len(sides)
        by_side = np.stack((found.counts, found.counts[::-1]))[:n_sides]
        missing = np.zeros_like(found.counts)
        missing[0] = found.n_missing
        means, best, worst = (
            self._worst_means(counts)
            for counts in (by_side, by_side + missing, by_side + missing[::-1])
        )
        # all of one side if each has its own bound, as estimates are compared with that bound
        if self.promise.targets is not None:
            side = int((means - np.array(self._targets)).argmax())
            means, best, worst = (values[[side]] for values in (means, best, worst))
            sides = self.sides[side : side + 1]
        n = int(found.counts.sum())
        has_any = n + found.n_missing > 0
        return PromiseEstimates(
            float(means.max()) if n else None,
            float(best.max()) if has_any else None,
            float(worst.max()) if has_any else None,
            sides[int(means.argmax())] if n else None,
            n,
            found.n_missing,
            found.start,
        )

    def _add(self, x: Floats, covered: Mask) -> Floats:
        by_side = zip(self._cells, x.T, strict=True)
        ratios = np.concatenate([cells.ratios(values) for cells, values in by_side], axis=-1)
        path = self._processes.update(ratios, ~np.broadcast_to(covered[:, None], ratios.shape))
        return np.asarray(self._by_cell(path).min(axis=-1))

    def _by_cell(self, values: Any) -> Any:
        """(..., n_sides * n_cells) -> (..., n_sides, n_cells)."""
        return values.reshape(*values.shape[:-1], len(self.sides), self._cells[0].n_cells)

    def _worst_means(self, counts: Ints) -> Floats:
        """Return the mean of the largest share `mass` of counted values, of each side."""
        room = self.promise.mass * np.maximum(counts.sum(axis=-1, keepdims=True), 1)
        # the largest values first
        taken = np.diff(np.minimum(np.cumsum(counts[..., ::-1], axis=-1), room), prepend=0.0)
        return np.asarray(taken @ self._counts.middles[::-1] / room[..., 0])

    def to_state(self) -> dict[str, Any]:
        """Return the promise and the evidence as JSON values, exact to the last bit."""
        return {
            "promise": self.promise.to_dict(),
            "processes": self._processes.to_state(),
            "counts": self._counts.to_state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the test from the output of `to_state`."""
        made = cls(Promise.from_dict(state["promise"]))
        made._processes = EProcesses.from_state(state["processes"])
        made._counts = made._counts.restored(state["counts"])
        return made


# --- notice that base PITs have left the bounds of a certificate, which breaks no promise


class EnvelopeTest:
    """E-processes for the certified bounds of the distribution of base PITs.

    A certificate bounds `P(U <= t)` and `P(U >= 1 - t)` at several t. People outside these bounds
    are no broken promise, because the bound of group errors may still hold, but the forecaster is
    not what was certified. The evidence of each side is the mean of the e-processes of its bounds.
    Missing outcomes count as outside of the tails.

    Parameters
    ----------
    envelope : Envelope
        The bounds; a side without bounds always has a log evidence of 0.

    Attributes
    ----------
    sides : tuple of str
        "higher" and "lower" (outcomes than forecast), as for a `PromiseTest`.

    Examples
    --------
    >>> from evenhand.certificates import Envelope
    >>> test = EnvelopeTest(Envelope(low=((0.05, 0.06),), high=((0.05, 0.06),)))
    >>> test.sides, test.log_evidence
    (('higher', 'lower'), array([0., 0.]))
    """

    sides: tuple[Side, ...] = ("higher", "lower")

    def __init__(self, envelope: Envelope) -> None:
        self.envelope = envelope
        bounds = np.array([bound for _, bound in (*envelope.high, *envelope.low)])
        self._tails = np.array([tail for tail, _ in (*envelope.high, *envelope.low)])
        self._processes = EProcesses(np.zeros(bounds.size), bounds)

    @property
    def period(self) -> int:
        """Number of the current period, from 1; 0 before the first."""
        return self._processes.period

    @property
    def log_evidence(self) -> Floats:
        """Logarithm of the evidence of each side after the last row, shape (2,)."""
        return np.asarray(self._mean(self._processes.log_evidence[None, :])[0])

    @property
    def since(self) -> Ints:
        """Period from which on the evidence of each side is largest, shape (2,)."""
        evidence = self._processes.log_evidence
        since = self._processes.since
        best = [
            since[part][evidence[part].argmax()] if evidence[part].size else 0
            for part in self._parts
        ]
        return np.array(best, dtype=np.intp)

    def begin_period(self, period: int) -> None:
        """Begin the next period, also if it has no rows; see `EProcesses.begin_period`."""
        self._processes.begin_period(period)

    def update(self, rows: Rows) -> Floats:
        """Add rows of the current period; logarithms of the evidence after each, shape (n, 2)."""
        assert rows.base is not None  # the promise beside the envelope needs them
        low, high = rows.base
        n_high = len(self.envelope.high)
        shares = np.concatenate(
            (
                _share_below((1 - high, 1 - low), self._tails[:n_high], rows.known),
                _share_below((low, high), self._tails[n_high:], rows.known),
            ),
            axis=-1,
        )
        covered = np.full(rows.known.shape, True)
        if rows.promised is not None:
            covered = rows.promised | ~rows.known
        skip = ~np.broadcast_to(covered[:, None], shares.shape)
        return self._mean(self._processes.update(shares, skip))

    @property
    def _parts(self) -> tuple[slice, slice]:
        n_high = len(self.envelope.high)
        return slice(0, n_high), slice(n_high, None)

    def _mean(self, path: Floats) -> Floats:
        """Log mean over the bounds of each side, (n, J) -> (n, 2); 0 without bounds."""
        means = np.zeros((len(path), len(self.sides)))
        for side, part in enumerate(self._parts):
            logs = np.ascontiguousarray(path[:, part])
            if logs.shape[-1]:
                top = logs.max(axis=-1)
                means[:, side] = top + np.log(np.exp(logs - top[:, None]).mean(axis=-1))
        return means

    def to_state(self) -> dict[str, Any]:
        """Return the evidence as JSON values, exact to the last bit."""
        return self._processes.to_state()

    @classmethod
    def from_state(cls, envelope: Envelope, state: Mapping[str, Any]) -> Self:
        """Rebuild the test of an envelope from the output of `to_state`."""
        made = cls(envelope)
        made._processes = EProcesses.from_state(state)
        return made


def _share_below(cells: Cells, tails: Floats, known: Mask) -> Floats:
    """Share of each cell at or below each tail, (n, J); 0 where the outcome is missing."""
    low, high = (np.where(known, end, 1.0)[:, None] for end in cells)
    width = high - low
    share = np.divide(tails - low, width, out=(tails >= low) * 1.0, where=width > 0)
    return np.asarray(np.where(known[:, None], np.clip(share, 0.0, 1.0), 0.0))
