"""Piecewise constant losses, with expectations in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import count
from evenhand._validate import Floats, InputError, bad_input
from evenhand.forecast import Forecast


class StepLoss:
    """Piecewise constant loss that jumps at cuts.

    Parameters
    ----------
    cuts : array-like of shape (k,) or (n, k)
        Outcomes where the loss jumps, strictly increasing, units of `y`; one row per person with n
        rows. A single number is one cut; an empty list `[]` makes a constant loss.
    values : array-like of shape (k + 1,) or (n, k + 1)
        Losses below the first cut, between cuts and from the last cut on; at a cut the loss is that
        of the interval above it.

    Raises
    ------
    InputError
        If a number is not finite, the cuts do not increase or the shapes do not match.

    Examples
    --------
    The loss of a bank that grants a loan, which is repaid if the creditworthiness is at least 0.5:

    >>> loan = StepLoss(cuts=[0.5], values=[4.0, 0.0])
    >>> loan([0.2, 0.5, 0.9])
    array([4., 0., 0.])
    >>> loan.expected(Forecast.from_normal(mean=[0.5], std=[0.1]))
    array([2.])
    """

    def __init__(self, cuts: ArrayLike, values: ArrayLike) -> None:
        self.cuts = _array("cuts", cuts)
        self.values = _array("values", values)
        if self.values.shape[-1] != self.cuts.shape[-1] + 1:
            sizes = (self.values.shape[-1], "value"), (self.cuts.shape[-1], "cut")
            got = " for ".join(count(n, noun) for n, noun in sizes)
            raise bad_input("values", "have one more entry than cuts", got)
        if not (np.diff(self.cuts, axis=-1) > 0).all():
            raise bad_input(
                "cuts",
                "be strictly increasing",
                "cuts out of order or duplicates",
                "sort them and remove duplicates",
            )
        rows = {array.shape[0] for array in (self.cuts, self.values) if array.ndim == 2}
        if len(rows) > 1:
            raise bad_input(
                "cuts and values",
                "have the same number of rows",
                f"{self.cuts.shape[0]} and {self.values.shape[0]}",
            )
        self.n_rows: int | None = rows.pop() if rows else None

    def __call__(self, y: ArrayLike) -> Floats:
        """Return the losses at outcomes of shape (...), or (n, ...) if the loss is per person."""
        outcomes = np.asarray(y, dtype=np.float64)
        self._check_rows(outcomes.shape)
        # cut by cut, because cuts may differ between people and a binary search takes one row
        loss = np.broadcast_to(self._along(self.values[..., 0], outcomes.ndim), outcomes.shape)
        for j in range(self.cuts.shape[-1]):
            above = outcomes >= self._along(self.cuts[..., j], outcomes.ndim)
            loss = np.where(above, self._along(self.values[..., j + 1], outcomes.ndim), loss)
        return np.array(loss)

    def expected(self, forecast: Forecast) -> Floats:
        """Return the expected loss under each forecast in closed form, shape of the batch."""
        shape = forecast.distribution.batch_shape
        self._check_rows(shape)
        jumps = np.diff(self.values, axis=-1)
        # upward jumps use sf and downward jumps cdf, so that monotone losses suffer no cancellation
        mixed = self.values[..., 0] + np.minimum(jumps, 0.0).sum(axis=-1)
        least = np.where((jumps <= 0).all(axis=-1), self.values[..., -1], mixed)
        total = np.zeros(shape) + self._along(least, len(shape))
        for j in range(self.cuts.shape[-1]):
            cut = self._along(self.cuts[..., j], len(shape))
            jump = self._along(jumps[..., j], len(shape))
            if (jump > 0).any():
                total += np.maximum(jump, 0.0) * forecast.distribution.sf_left(cut)
            if (jump < 0).any():
                total += np.maximum(-jump, 0.0) * forecast.distribution.cdf_left(cut)
        # rounding errors must not make an expectation smaller than the least loss, or negative
        return np.maximum(total, self._along(self.values.min(axis=-1), len(shape)))

    def direction(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
        """Return 1 if the loss rises with the outcome, -1 if it falls, 0 if constant, per person.

        Raises
        ------
        InputError
            If it rises and falls.
        """
        jumps = np.diff(self.values, axis=-1)
        rises = (jumps > 0).any(axis=-1)
        falls = (jumps < 0).any(axis=-1)
        if (rises & falls).any():
            values = (
                self.values if self.values.ndim == 1 else self.values[int(np.argmax(rises & falls))]
            )
            raise InputError(f"values of the StepLoss rise and fall: {values.tolist()}")
        return np.asarray(rises.astype(np.int8) - falls.astype(np.int8))

    def _along(self, array: Floats, ndim: int) -> Floats:
        """Reshape one number per person to broadcast against arrays of `ndim` axes."""
        return array if array.ndim == 0 else array.reshape(-1, *(1,) * (ndim - 1))

    def _check_rows(self, shape: tuple[int, ...]) -> None:
        if self.n_rows is not None and (not shape or shape[0] != self.n_rows):
            n = shape[0] if shape else "one"
            raise InputError(
                f"this StepLoss has one row for each of {self.n_rows} people, but is evaluated for"
                f" {n}; pass as many"
            )

    def __repr__(self) -> str:
        if self.n_rows is not None:
            return f"StepLoss({count(self.cuts.shape[-1], 'cut')}, {self.n_rows} people)"
        return f"StepLoss(cuts={self.cuts.tolist()}, values={self.values.tolist()})"


def _array(name: str, values: ArrayLike) -> Floats:
    try:
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, in rows of equal length: {error}") from error
    if array.ndim not in (1, 2):
        raise bad_input(name, "have shape (k,) or (n, k)", f"shape {array.shape}")
    if not np.isfinite(array).all():
        raise bad_input(name, "be finite", float(array[~np.isfinite(array)].flat[0]))
    return array
