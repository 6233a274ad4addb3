"""Witnesses of miscalibration: functions whose mean under a calibrated forecast is 0 (outcomes: 6).

For a function f with slopes between -1 and 1, `E f(W) - integral of f` is at most the W1 distance
of W to the uniform distribution. So its conditional mean exceeds a tolerance only if the error
does.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand._validate import Floats, Ints, Mask
from evenhand.links import Link
from evenhand.monitoring.e_processes import EProcesses
from evenhand.monitoring.settings import Direction

N_DRAWS = 64
"""Draws over which witnesses are averaged: their means are exact to 0.0001."""


@dataclass(frozen=True)
class Witnesses:
    """Directions of some witnesses, and their least values.

    Parameters
    ----------
    directions : tuple of str
        What a positive mean of each witness means.
    low : tuple of float
        Least value of each witness: the one least favourable to an alarm.
    """

    directions: tuple[Direction, ...]
    low: tuple[float, ...]

    def with_missing(self, values: Floats, known: Mask) -> Floats:
        """Return values (n, W) with the least value where the outcome is missing."""
        # valid whatever outcomes are missing, even if that depends on the outcome
        return np.where(known[:, None], values, np.array(self.low))


PIT_WITNESSES = Witnesses(("higher", "lower", "narrow", "wide"), (-0.5, -0.5, -0.25, -0.25))
EVENT_WITNESSES = Witnesses(("higher", "lower"), (-1.0, -1.0))
DRAW_WITNESSES = Witnesses(("higher", "lower", "extreme", "central"), (-0.5, -0.5, -0.25, -0.25))


def cell_witnesses(low: Floats, high: Floats) -> Floats:
    """Return `c - 1/2`, `1/2 - c`, `|c - 1/2| - 1/4` and `1/4 - |c - 1/2|`, averaged over cells.

    Parameters
    ----------
    low, high : ndarray of shape (n,)
        Ends of the cells; equal for continuous outcomes.

    Returns
    -------
    ndarray of shape (n, 4)

    Examples
    --------
    >>> cell_witnesses(np.array([0.9, 0.2]), np.array([0.9, 1.0])).round(3)
    array([[ 0.4  , -0.4  ,  0.15 , -0.15 ],
           [ 0.1  , -0.1  , -0.038,  0.038]])
    """
    shift = (low + high) / 2 - 0.5
    left, right = low - 0.5, high - 0.5
    is_across = (left < 0) & (right > 0)
    width = np.where(is_across, right - left, 1.0)
    # over a cell across 1/2 the mean of |c - 1/2| is that of two triangles
    distance = np.where(is_across, (left**2 + right**2) / (2 * width), np.abs(shift))
    spread = distance - 0.25
    return np.stack((shift, -shift, spread, -spread), axis=-1)


def averaged_witnesses(link: Link, low: Floats, high: Floats) -> Floats:
    """Return the means over draws of the witnesses of served PITs under a link.

    In a group they have the same mean as those at the draws that were served, since draws are
    independent of everything else, and a smaller variance. They do not depend on the draws, so
    that draws which are not fair, or return with the same person, do not matter here.

    Parameters
    ----------
    link : Link
        The link.
    low, high : ndarray of shape (n,)
        Ends of the PIT cells of the deterministic forecaster.

    Returns
    -------
    ndarray of shape (n, 4)

    Examples
    --------
    With much randomization an outcome is little evidence about a group:

    >>> from evenhand.links import Entropic
    >>> u = np.array([0.1, 0.9])
    >>> averaged_witnesses(Entropic(0.05), u, u)[:, 0].round(2).tolist()
    [-0.08, 0.08]
    """
    r = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
    first = link.ppf(low[:, None], r)
    last = first if np.array_equal(low, high) else link.ppf(high[:, None], r)
    at_draws = cell_witnesses(first.ravel(), last.ravel()).T.reshape(-1, low.size, N_DRAWS)
    return np.ascontiguousarray(at_draws.mean(axis=-1).T)


def event_witnesses(excess: Floats) -> Floats:
    """Return outcome minus probability and its negative, (n, 2), for 0/1 outcomes."""
    return np.stack((excess, -excess), axis=-1)


# --- tests of several sets of rows by witnesses, each a mean of e-processes (outcomes: 6)

BLOCK = 1 << 20
"""Most values of witnesses in an array."""

DIGITS = 4
"""Decimals of the evidence that is kept per period, for drawings."""


@dataclass(frozen=True)
class Crossing:
    """The first row at which a test reached its threshold.

    Parameters
    ----------
    row : int
        Number of the row, counted from 0 in the rows of the call.
    name : str or None
        Name of the set of rows; None for all rows.
    direction : str
        Direction of the witness with the largest evidence.
    since : int
        Number of the period, from 1, from which on its evidence is largest.
    log_evidence, threshold : float
        Logarithms of the evidence and of the threshold.
    n_rows : int
        Rows of the set until then.
    """

    row: int
    name: str | None
    direction: Direction
    since: int
    log_evidence: float
    threshold: float
    n_rows: int


class WitnessTests:
    """Tests whether the means of witnesses are at most a bound, in G sets of rows.

    The evidence of a set is the mean of the evidence of its witnesses, which is an e-process for
    the hypothesis that the means of all witnesses are at most the bound.

    Parameters
    ----------
    witnesses : Witnesses
        Directions and least values of the W witnesses.
    bound : float
        Largest mean.

    Attributes
    ----------
    names : list of str or None, length G
        Names of the sets.
    thresholds : ndarray of shape (G,)
        Logarithms of the thresholds.
    n_rows : ndarray of int, shape (G,)
        Rows of each set so far.
    largest : ndarray of shape (G,)
        Largest log evidence so far.
    has_alarm : ndarray of bool, shape (G,)
        Whether the threshold was reached.
    history : list of lists of float
        For each set the log evidence at the end of each period before the current one.

    Examples
    --------
    >>> tests = WitnessTests(Witnesses(("higher", "lower"), (-1.0, -1.0)), bound=0.02)
    >>> tests.add(["sex = 1"], [np.log(20)])
    >>> tests.begin_period()
    >>> found = tests.update(np.tile([0.6, -0.6], (30, 1)), np.full((30, 1), True))
    >>> [(one.direction, one.n_rows) for one in found]
    [('higher', 17)]
    """

    def __init__(self, witnesses: Witnesses, bound: float) -> None:
        self.witnesses = witnesses
        self.bound = bound
        self.names: list[str | None] = []
        self.thresholds: Floats = np.zeros(0)
        self.n_rows = np.zeros(0, dtype=np.int64)
        self.largest: Floats = np.zeros(0)
        self.has_alarm: Mask = np.zeros(0, dtype=np.bool_)
        self.history: list[list[float]] = []
        self._processes = EProcesses([], [])

    @property
    def log_evidence(self) -> Floats:
        """Logarithm of the evidence of each set after the last row, shape (G,)."""
        evidence = self._mean(self._processes.log_evidence[None, :])
        return np.asarray(evidence[0])

    @property
    def directions(self) -> list[Direction]:
        """Direction of the witness with the largest evidence in each set."""
        shape = (len(self.names), len(self.witnesses.low))
        evidence = self._processes.log_evidence.reshape(shape)
        return [self.witnesses.directions[best] for best in evidence.argmax(axis=-1)]

    def add(self, names: Sequence[str | None], thresholds: Sequence[float]) -> None:
        """Add sets of rows, none of whose rows has been seen; `thresholds` are logarithms."""
        n_new = len(names)
        if n_new == 0:
            return
        self.names += names
        self.thresholds = np.append(self.thresholds, thresholds)
        self.n_rows = np.append(self.n_rows, np.zeros(n_new, dtype=np.int64))
        self.largest = np.append(self.largest, np.zeros(n_new))
        self.has_alarm = np.append(self.has_alarm, np.zeros(n_new, dtype=np.bool_))
        n_past = max(self._processes.period - 1, 0)
        # without a row the evidence is 1: the set might as well have been there from the start
        self.history += [[0.0] * n_past for _ in names]
        low = list(self.witnesses.low) * n_new
        fresh = EProcesses(low, [self.bound] * len(low))
        for period in range(1, self._processes.period + 1):
            fresh.begin_period(period)
        self._processes = _joined(self._processes, fresh)

    def begin_period(self) -> None:
        """End the current period and begin the next one."""
        if self._processes.period > 0:
            for past, now in zip(self.history, self.log_evidence, strict=True):
                past.append(rounded(now))
        self._processes.begin_period(self._processes.period + 1)

    def update(self, x: Floats, members: Mask) -> list[Crossing]:
        """Add rows of the current period and return the tests that reach their thresholds.

        Parameters
        ----------
        x : ndarray of shape (n, W)
            Values of the witnesses.
        members : ndarray of bool, shape (n, G)
            Rows of each set.
        """
        rows, counts = _packed(members)
        step = max(1, BLOCK // max(1, members.shape[-1] * x.shape[-1]))
        found = []
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            found += self._update(x, some, np.clip(counts - first, 0, len(some)))
        return found

    def _update(self, x: Floats, rows: Ints, counts: Ints) -> list[Crossing]:
        """Add the first `counts` rows of each column of row numbers, (m, G)."""
        values = x[rows].reshape(len(rows), -1)
        is_padding = np.arange(len(rows))[:, None] >= counts
        skip = np.repeat(is_padding, x.shape[-1], axis=-1)
        # arrays are replaced by an update, never changed
        before = copy.copy(self._processes)
        path = self._mean(self._processes.update(values, skip))
        path[is_padding] = -np.inf
        is_reached = (path >= self.thresholds) & ~self.has_alarm
        found = []
        for j in np.flatnonzero(is_reached.any(axis=0)):
            end = int(np.argmax(is_reached[:, j])) + 1
            # rows after the crossing would change its direction and start, and the rows that an
            # update brings must not matter
            then = copy.copy(before)
            then.update(values[:end], skip[:end])
            own = slice(j * x.shape[-1], (j + 1) * x.shape[-1])
            best = int(np.argmax(then.log_evidence[own]))
            crossing = Crossing(
                int(rows[end - 1, j]),
                self.names[j],
                self.witnesses.directions[best],
                int(then.since[own][best]),
                float(path[end - 1, j]),
                float(self.thresholds[j]),
                int(self.n_rows[j]) + end,
            )
            found.append(crossing)
        self.has_alarm |= is_reached.any(axis=0)
        self.n_rows += counts
        self.largest = np.maximum(self.largest, path.max(axis=0, initial=0.0))
        return found

    def _mean(self, path: Floats) -> Floats:
        """Return the log mean over witnesses, (n, G * W) -> (n, G)."""
        shape = (len(path), len(self.names), len(self.witnesses.low))
        logs = np.ascontiguousarray(path).reshape(shape)
        top = logs.max(axis=-1, initial=-np.inf)
        return np.asarray(top + np.log(np.exp(logs - top[..., None]).mean(axis=-1)))

    def to_state(self) -> dict[str, Any]:
        """Return names, evidence and history as JSON values."""
        return {
            "names": list(self.names),
            "thresholds": self.thresholds.tolist(),
            "n_rows": self.n_rows.tolist(),
            "largest": self.largest.tolist(),
            "has_alarm": self.has_alarm.tolist(),
            "history": [list(past) for past in self.history],
            "processes": self._processes.to_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state`."""
        self.names = list(state["names"])
        self.thresholds = np.array(state["thresholds"], dtype=np.float64)
        self.n_rows = np.array(state["n_rows"], dtype=np.int64)
        self.largest = np.array(state["largest"], dtype=np.float64)
        self.has_alarm = np.array(state["has_alarm"], dtype=np.bool_)
        self.history = [list(map(float, past)) for past in state["history"]]
        self._processes = EProcesses.from_state(state["processes"])


def rounded(log_evidence: float) -> float:
    """Return log evidence with the decimals that are kept per period; never -0.0.

    Examples
    --------
    >>> rounded(2.34567), rounded(-1e-17)
    (2.3457, 0.0)
    """
    return round(float(log_evidence), DIGITS) + 0.0


def _packed(members: Mask) -> tuple[Ints, Ints]:
    """Return the row numbers of each set, one set per column, (m, G), and their counts.

    The evidence of a set does not depend on other rows, so each set needs its own rows alone; m is
    the size of the largest set. Columns are padded with 0.

    Examples
    --------
    >>> rows, counts = _packed(np.array([[True, False], [False, True], [True, False]]))
    >>> rows.tolist(), counts.tolist()
    ([[0, 1], [2, 0]], [2, 1])
    """
    counts = members.sum(axis=0)
    packed = np.zeros((int(counts.max(initial=0)), members.shape[-1]), dtype=np.intp)
    sets, rows = np.nonzero(members.T)
    places = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
    packed[places, sets] = rows
    return packed, counts


def _joined(first: EProcesses, second: EProcesses) -> EProcesses:
    """Return the processes of both, which are in the same period."""
    states = (first.to_state(), second.to_state())
    period = states[0].pop("period")
    return EProcesses.from_state(
        {"period": period} | {name: states[0][name] + states[1][name] for name in states[0]}
    )
