"""Test of a promise for every group of a size, valid however often it is read (outcomes: 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from evenhand._validate import Floats, Ints, Mask, bad_input
from evenhand.certificates import Promise
from evenhand.monitoring.e_processes import EProcesses
from evenhand.monitoring.promise_values import RANGES, SIDES, Side, promise_values
from evenhand.monitoring.quantile_cells import QuantileCells
from evenhand.monitoring.rows import Rows
from evenhand.monitoring.value_counts import ValueCounts

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
            If no period has begun, or the rows lack what the statistic is computed from.
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
