"""Monotone rearrangement of a randomized forecaster over its draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, Ints, Mask, bad_input
from evenhand.distributions.base import Distribution
from evenhand.distributions.kinds import OutcomeKind


class Rearranged(Distribution):
    """CDFs over the draws of a forecaster, sorted at each outcome to increase with the draw.

    Column `j` has the `j`-th smallest CDF value at each `y`. The mean log density over draws does
    not change, and the pathwise error of a row does not increase.

    Parameters
    ----------
    base : Distribution
        Batch of shape (n, m), with columns in order of increasing draws.
    axis : int, default -1
        Axis of the draws in the batch, counted from the end.
    columns : ndarray of int of shape (n, k), optional
        Sorted draws of each row that are kept; all by default.

    Examples
    --------
    >>> from evenhand.distributions import Normal
    >>> Rearranged(Normal([[0.0, 1.0]], 1.0)).cdf(0.0).round(3)
    array([[0.159, 0.5  ]])
    """

    event_dims: ClassVar[dict[str, int]] = {}

    def __init__(self, base: Distribution, axis: int = -1, columns: Ints | None = None) -> None:
        if len(base.batch_shape) < 2:
            rule = "have several draws per person, shape (n, m)"
            raise bad_input("base", rule, f"shape {base.batch_shape}")
        self.base = base
        self.axis = axis
        self.columns = columns

    @property
    def batch_shape(self) -> tuple[int, ...]:
        shape = list(self.base.batch_shape)
        if self.columns is not None:
            shape[self.axis] = self.columns.shape[1]
        return tuple(shape)

    def take(self, rows: Any) -> Rearranged:
        columns = None if self.columns is None else self.columns[rows]
        return Rearranged(self.base.take(rows), self.axis, columns)

    def take_draws(self, columns: Ints) -> Rearranged:
        # keep all draws of the base: sorted among fewer draws, a draw would have another CDF
        known = self.columns
        chosen = columns if known is None else np.take_along_axis(known, columns, axis=1)
        return Rearranged(self.base, self.axis, chosen)

    def expand(self) -> Rearranged:
        return Rearranged(self.base.expand(), self.axis - 1, self.columns)

    def logcdf(self, y: ArrayLike) -> Floats:
        return self._by_draw(
            lambda at: np.sort(self.base.logcdf(at), axis=self.axis), np.asarray(y)
        )

    def logsf(self, y: ArrayLike) -> Floats:
        return self._by_draw(lambda at: self._descending(self.base.logsf(at)), np.asarray(y))

    @property
    def outcome_kind(self) -> OutcomeKind:
        return self.base.outcome_kind

    def logcdf_left(self, y: ArrayLike) -> Floats:
        return self._by_draw(
            lambda at: np.sort(self.base.logcdf_left(at), axis=self.axis), np.asarray(y)
        )

    def logsf_left(self, y: ArrayLike) -> Floats:
        return self._by_draw(lambda at: self._descending(self.base.logsf_left(at)), np.asarray(y))

    def nodes(self, reach: float, step: float) -> Floats:
        inner = self.base.nodes(reach, step)
        # the nodes of all draws of a person, as sorted draws share their outcomes
        axis = inner.ndim + self.axis - 1
        joined = np.moveaxis(inner, axis, -2)
        return np.expand_dims(np.sort(joined.reshape(*joined.shape[:-2], -1), axis=-1), axis)

    def logpdf(self, y: ArrayLike) -> Floats:
        return self._by_draw(self._sorted_logpdf, np.asarray(y))

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        # the j-th smallest CDF value belongs to the j-th largest quantile
        return self._by_draw(
            lambda tail, is_upper: self._descending(self.base.quantile_from_tail(tail, is_upper)),
            np.asarray(log_p),
            np.asarray(upper),
        )

    def _sorted_logpdf(self, y: Floats) -> Floats:
        # sort by log odds, which keep their digits in both tails
        order = np.argsort(self.base.logcdf(y) - self.base.logsf(y), axis=self.axis)
        return np.take_along_axis(self.base.logpdf(y), order, axis=self.axis)

    def _descending(self, values: Floats) -> Floats:
        return np.flip(np.sort(values, axis=self.axis), axis=self.axis)

    def _by_draw(self, evaluate: Callable[..., Floats], *arguments: Any) -> Floats:
        """Evaluate all draws at shared arguments, or draw by draw at an argument per draw.

        Sorting compares all draws at the same outcome (or probability), so the argument of one draw
        is evaluated for all draws.
        """
        # arguments that all draws share need a single evaluation
        own = [array.ndim >= -self.axis and array.shape[self.axis] > 1 for array in arguments]
        if not any(own):
            return self._kept(evaluate(*arguments))
        n_draws = self.batch_shape[self.axis]
        columns = []
        for j in range(
            max(
                array.shape[self.axis]
                for array, varies in zip(arguments, own, strict=True)
                if varies
            )
        ):
            at = [
                np.take(array, [j], axis=self.axis) if varies else array
                for array, varies in zip(arguments, own, strict=True)
            ]
            columns.append(
                np.take(self._kept(evaluate(*at)), [j if n_draws > 1 else 0], axis=self.axis)
            )
        return np.concatenate(columns, axis=self.axis)

    def _kept(self, values: Floats) -> Floats:
        """Return the values of the draws that are kept."""
        if self.columns is None:
            return values
        index = self.columns.reshape(self.columns.shape + (1,) * (-1 - self.axis))
        # arguments may have more axes before those of the batch
        index = index.reshape((1,) * (values.ndim - index.ndim) + index.shape)
        return np.take_along_axis(values, index, axis=self.axis)
