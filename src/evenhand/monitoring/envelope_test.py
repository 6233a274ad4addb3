"""Notice that base PITs have left the bounds of a certificate, which breaks no promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from evenhand._validate import Floats, InputError, Ints, Mask
from evenhand.certificates import Envelope
from evenhand.monitoring.e_processes import EProcesses
from evenhand.monitoring.promise_values import Side
from evenhand.monitoring.rows import Cells, Rows


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
        """Add rows of the current period; logarithms of the evidence after each, shape (n, 2).

        Raises
        ------
        InputError
            If no period has begun, or the rows have no base PITs.
        """
        if rows.base is None:
            raise InputError(
                "rows have no base PITs, which the envelope is about; log the link of the forecasts"
            )
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
        return self._processes.to_state() | {"tails": self._tails.tolist()}

    @classmethod
    def from_state(cls, envelope: Envelope, state: Mapping[str, Any]) -> Self:
        """Rebuild the test of an envelope from the output of `to_state`.

        Raises
        ------
        InputError
            If it is anything else.
        """
        made = cls(envelope)
        processes = EProcesses.from_state(state)
        same = np.array_equal(processes.bound, made._processes.bound)
        if not same or state.get("tails") != made._tails.tolist():
            raise InputError("state is not the output of to_state for this envelope")
        made._processes = processes
        return made


def _share_below(cells: Cells, tails: Floats, known: Mask) -> Floats:
    """Share of each cell at or below each tail, (n, J); 0 where the outcome is missing."""
    low, high = (np.where(known, end, 1.0)[:, None] for end in cells)
    width = high - low
    share = np.divide(tails - low, width, out=(tails >= low) * 1.0, where=width > 0)
    return np.asarray(np.where(known[:, None], np.clip(share, 0.0, 1.0), 0.0))
