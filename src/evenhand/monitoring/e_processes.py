"""E-processes: evidence against bounds of means, valid however often it is read (outcomes: 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, Ints

STAKES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Share of the capital that a row can lose, one for each of the mixed stakes."""

CHUNK = 1 << 17
"""Number of factors that are computed at once: few enough for the processor's cache."""


class EProcesses:
    """E-processes for bounds of conditional means, with a prior over the period of a change.

    Process j tests the null hypothesis that every row has `E[x_j | earlier rows] <= bound_j`, for
    values `x_j >= low_j`. Under it, the evidence of process j ever reaches `1 / gamma`, over an
    unbounded time and after whichever row, with a probability of at most `gamma` (Ville's
    inequality). A mean of processes has the same property for the hypothesis that all their bounds
    hold, a minimum for the hypothesis that at least one of them holds.

    For every start period d and stake k there is a product of `1 + lambda_k (x - bound)` over the
    rows from d on, with `lambda_k = STAKES[k] / (bound - low)`. The evidence is their mean with
    weights `1 / (d (d + 1))` of start periods and equal weights of stakes; products that have not
    started count 1. Capital is kept as logarithms and summed row by row, so that the same rows give
    identical numbers, however they are split into calls.

    Parameters
    ----------
    low : array-like of shape (J,)
        Least values.
    bound : array-like of shape (J,)
        Bounds of the means, above `low`.

    Attributes
    ----------
    period : int
        Number of the current period, from 1; 0 before the first.

    Examples
    --------
    Coins that are promised to fall heads in at most half of all cases, and always do:

    >>> coins = EProcesses(low=[0.0], bound=[0.5])
    >>> coins.begin_period(1)
    >>> path = coins.update(np.ones((10, 1)))
    >>> path.shape, bool(np.exp(path[-1, 0]) > 20)
    ((10, 1), True)
    """

    def __init__(self, low: ArrayLike, bound: ArrayLike) -> None:
        self.low = np.array(low, dtype=np.float64)
        self.bound = np.array(bound, dtype=np.float64)
        self.period = 0
        shape = (self.low.size, len(STAKES))
        # per stake, when the period began: log S_k, and the largest log product over all starts
        # with its start period; then the log product of the period's rows, which changes both alike
        self._log_sums = np.full(shape, -np.inf)
        self._peaks = np.full(shape, -np.inf)
        self._starts = np.zeros(shape, dtype=np.intp)
        self._gains = np.zeros(shape)

    @property
    def log_evidence(self) -> Floats:
        """Logarithm of the evidence after the last row, shape (J,)."""
        return self._mixed((self._log_sums + self._gains)[..., None])[..., 0]

    @property
    def since(self) -> Ints:
        """Period from which on the evidence is largest, shape (J,); 0 before the first period.

        It maximizes the product over start periods and stakes, as a CUSUM does.
        """
        best = (self._peaks + self._gains).argmax(axis=-1)
        return np.take_along_axis(self._starts, best[:, None], axis=-1)[:, 0]

    def begin_period(self, period: int) -> None:
        """Begin the next period, also if it has no rows: its weight joins the sums.

        Parameters
        ----------
        period : int
            Number of the period: the number of the current one plus 1.
        """
        self.period = period
        weight = -np.log(period * (period + 1.0))
        self._log_sums = np.logaddexp(self._log_sums + self._gains, weight)
        self._peaks = self._peaks + self._gains
        self._gains = np.zeros(self._gains.shape)
        # a product that has not gained anything since its start is beaten by a new one
        is_new = self._peaks <= 0
        self._peaks[is_new] = 0.0
        self._starts[is_new] = period

    def update(self, x: ArrayLike, skip: ArrayLike | None = None) -> Floats:
        """Add rows of the current period and return the evidence after each.

        Parameters
        ----------
        x : array-like of shape (n, J)
            Values of n rows in their order, finite and at least `low` where they count.
        skip : array-like of bool, shape (n, J), or None
            Rows that are not counted in a process. The hypothesis is then about the counted rows:
            given the past, and that it is counted, a row's mean is at most the bound.

        Returns
        -------
        ndarray of shape (n, J)
            Logarithms of the evidence.
        """
        values = np.asarray(x, dtype=np.float64)
        counts = np.full(values.shape, True)
        if skip is not None:
            counts &= ~np.broadcast_to(np.asarray(skip, dtype=np.bool_), values.shape)
        excess = np.where(counts, values - self.bound, 0.0)
        path = np.empty(values.shape)
        step = max(1, CHUNK // max(1, self._log_sums.size))
        for first in range(0, len(values), step):
            rows = slice(first, first + step)
            path[rows] = self._add(excess[rows])
        return path

    def _add(self, excess: Floats) -> Floats:
        """Add rows to all sums; the evidence after each row, (n, J)."""
        stakes = np.array(STAKES) / (self.bound - self.low)[:, None]
        # (J, K, 1 + n): the sum over rows runs along the last axis, one row after another
        gains = np.empty((*stakes.shape, 1 + len(excess)))
        gains[..., 0] = self._gains
        np.multiply(stakes[..., None], excess.T[:, None, :], out=gains[..., 1:])
        np.log1p(gains[..., 1:], out=gains[..., 1:])
        np.cumsum(gains, axis=-1, out=gains)
        self._gains = gains[..., -1].copy()
        gains += self._log_sums[..., None]
        return self._mixed(gains[..., 1:]).T

    def _mixed(self, log_sums: Floats) -> Floats:
        """Log mean over stakes, (J, K, n) -> (J, n), with the weight 1/(d + 1) of later starts."""
        top = np.maximum(log_sums.max(axis=-2), 0.0)
        scaled = log_sums - top[:, None, :]
        np.exp(scaled, out=scaled)
        total = scaled.sum(axis=-2) / len(STAKES)
        return np.asarray(top + np.log(total + np.exp(-top) / (self.period + 1.0)))

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON values, exact to the last bit."""
        has_begun = self.period > 0
        return {
            "low": self.low.tolist(),
            "bound": self.bound.tolist(),
            "period": self.period,
            # there are no finite sums before the first period
            "log_sums": self._log_sums.tolist() if has_begun else [],
            "peaks": self._peaks.tolist() if has_begun else [],
            "starts": self._starts.tolist(),
            "gains": self._gains.tolist(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the processes from the output of `to_state`."""
        made = cls(state["low"], state["bound"])
        if state["period"] > 0:
            made.period = state["period"]
            made._log_sums = np.array(state["log_sums"], dtype=np.float64)
            made._peaks = np.array(state["peaks"], dtype=np.float64)
            made._starts = np.array(state["starts"], dtype=np.intp)
            made._gains = np.array(state["gains"], dtype=np.float64)
        return made
