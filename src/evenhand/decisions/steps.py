"""Losses that are constant between cuts, whose expectation needs no quadrature."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, bad_input
from evenhand.forecast import Forecast


class StepLoss:
    """A loss that jumps at cuts and is constant between them.

    Parameters
    ----------
    cuts : array-like of shape (k,) or (n, k)
        Outcomes where the loss jumps, strictly increasing, units of `y`; per person with n rows.
        One number is one cut, none of them (`[]`) makes a constant loss.
    values : array-like of shape (k + 1,) or (n, k + 1)
        Losses below the first cut, between cuts and from the last one on; a cut itself belongs to
        what is above it.

    Raises
    ------
    InputError
        If a number is not finite, the cuts do not increase or the shapes do not fit.

    Examples
    --------
    What a bank loses by a loan of 1 that is repaid from a worthiness of 0.5 on, had it expected to
    gain 1:

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
            got = f"{self.values.shape[-1]} values for {self.cuts.shape[-1]} cuts"
            raise bad_input("values", "hold one value more than there are cuts", got)
        if not (np.diff(self.cuts, axis=-1) > 0).all():
            raise bad_input("cuts", "increase", "cuts out of order or twice", "sort them")
        rows = {array.shape[0] for array in (self.cuts, self.values) if array.ndim == 2}
        if len(rows) > 1:
            raise bad_input("cuts and values", "have the same number of rows", f"{sorted(rows)}")
        self.n_rows: int | None = rows.pop() if rows else None

    def __call__(self, y: ArrayLike) -> Floats:
        """Loss at outcomes of shape (...), or (n, ...) if the loss is per person, of that shape."""
        outcomes = np.asarray(y, dtype=np.float64)
        self._check_rows(outcomes.shape)
        # cut by cut: a binary search takes one row of cuts, and these may differ between people
        loss = np.broadcast_to(self._along(self.values[..., 0], outcomes.ndim), outcomes.shape)
        for j in range(self.cuts.shape[-1]):
            above = outcomes >= self._along(self.cuts[..., j], outcomes.ndim)
            loss = np.where(above, self._along(self.values[..., j + 1], outcomes.ndim), loss)
        return np.array(loss)

    def expected(self, forecast: Forecast) -> Floats:
        """Expected loss under each forecast, shape of the batch, in closed form."""
        shape = forecast.distribution.batch_shape
        self._check_rows(shape)
        jumps = np.diff(self.values, axis=-1)
        # up-jumps count from below and down-jumps from above: a loss that only rises or only falls
        # keeps its digits
        mixed = self.values[..., 0] + np.minimum(jumps, 0.0).sum(axis=-1)
        least = np.where((jumps <= 0).all(axis=-1), self.values[..., -1], mixed)
        total = np.zeros(shape) + self._along(least, len(shape))
        for j in range(self.cuts.shape[-1]):
            cut = self._along(self.cuts[..., j], len(shape))
            jump = self._along(jumps[..., j], len(shape))
            if (jump > 0).any():
                total += np.maximum(jump, 0.0) * forecast.distribution.sf(cut)
            if (jump < 0).any():
                total += np.maximum(-jump, 0.0) * forecast.distribution.cdf(cut)
        # rounding errors must not take an expectation below the least loss, and so below 0
        return np.maximum(total, self._along(self.values.min(axis=-1), len(shape)))

    def direction(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
        """Whether the loss rises with the outcome (1), falls (-1) or is constant (0), per person.

        Raises
        ------
        InputError
            If it does neither.
        """
        jumps = np.diff(self.values, axis=-1)
        rises = (jumps > 0).any(axis=-1)
        falls = (jumps < 0).any(axis=-1)
        if (rises & falls).any():
            values = (
                self.values if self.values.ndim == 1 else self.values[int(np.argmax(rises & falls))]
            )
            raise bad_input(
                "the values of a StepLoss", "rise or fall from cut to cut", values.tolist()
            )
        return np.asarray(rises.astype(np.int8) - falls.astype(np.int8))

    def _along(self, array: Floats, ndim: int) -> Floats:
        """One number for all, or one per person against arrays of `ndim` axes."""
        return array if array.ndim == 0 else array.reshape(-1, *(1,) * (ndim - 1))

    def _check_rows(self, shape: tuple[int, ...]) -> None:
        if self.n_rows is not None and (not shape or shape[0] != self.n_rows):
            n = shape[0] if shape else "one"
            raise bad_input(
                "a StepLoss per person", f"have one row per person ({n})", f"{self.n_rows} rows"
            )

    def __repr__(self) -> str:
        if self.n_rows is not None:
            return f"StepLoss({self.cuts.shape[-1]} cut(s), {self.n_rows} people)"
        return f"StepLoss(cuts={self.cuts.tolist()}, values={self.values.tolist()})"


def _array(name: str, values: ArrayLike) -> Floats:
    try:
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise bad_input(
            name, "hold numbers only, rows of one length", f"others ({error})"
        ) from error
    if array.ndim not in (1, 2):
        raise bad_input(name, "have shape (k,) or (n, k)", f"shape {array.shape}")
    if not np.isfinite(array).all():
        raise bad_input(name, "be finite", float(array[~np.isfinite(array)].flat[0]))
    return array
