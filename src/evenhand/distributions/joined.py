"""Batches whose rows are distributions of several families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, InputError, Ints, Mask
from evenhand.distributions.base import Distribution
from evenhand.distributions.kinds import OutcomeKind

Part = tuple[Ints, Distribution]
"""Numbers of rows, and their distributions in this order."""


class Joined(Distribution):
    """Distributions of several batches as one batch of shape (n,).

    Parameters
    ----------
    parts : sequence of (ndarray of int, Distribution)
        Numbers of the rows of each batch, which together are 0, ..., n - 1, and the batch. All
        batches have the same number of axes, and describe the same kind of outcome.

    Examples
    --------
    >>> from evenhand.distributions import Normal, Quantiles
    >>> flat = Quantiles([0.1, 0.9], [[1.0, 9.0]])
    >>> Joined([([1], flat), ([0, 2], Normal([0.0, 5.0], 1.0))]).ppf(0.5)
    array([0., 5., 5.])
    """

    event_dims: ClassVar[dict[str, int]] = {}

    def __init__(self, parts: Sequence[tuple[ArrayLike, Distribution]]) -> None:
        self.parts: list[Part] = [(np.asarray(rows, dtype=np.intp), batch) for rows, batch in parts]
        kinds = sorted({str(batch.outcome_kind) for _, batch in self.parts})
        if len(kinds) > 1:
            raise InputError(
                f"distributions describe outcomes of several kinds ({', '.join(kinds)}); use one"
                " batch for each"
            )

    @property
    def outcome_kind(self) -> OutcomeKind:
        return self.parts[0][1].outcome_kind

    @property
    def batch_shape(self) -> tuple[int, ...]:
        n = sum(rows.size for rows, _ in self.parts)
        return (n, *self.parts[0][1].batch_shape[1:])

    def take(self, rows: Any) -> Self:
        chosen = np.arange(self.batch_shape[0])[rows]
        parts: list[tuple[ArrayLike, Distribution]] = []
        for numbers, batch in self.parts:
            place = np.full(self.batch_shape[0], -1)
            place[numbers] = np.arange(numbers.size)
            inside = place[chosen]
            if (inside >= 0).any():
                parts.append((np.flatnonzero(inside >= 0), batch.take(inside[inside >= 0])))
        return type(self)(parts)

    def take_draws(self, columns: Ints) -> Self:
        return type(self)([(rows, batch.take_draws(columns[rows])) for rows, batch in self.parts])

    def expand(self) -> Self:
        return type(self)([(rows, batch.expand()) for rows, batch in self.parts])

    def _by_part(self, evaluate: Callable[..., Floats], *arguments: Any) -> Floats:
        """Evaluate each batch at its rows of arguments that broadcast against the whole batch."""
        shape = np.broadcast_shapes(self.batch_shape, *(np.shape(array) for array in arguments))
        axis = len(shape) - len(self.batch_shape)
        full = [np.broadcast_to(array, shape) for array in arguments]
        found = np.empty(shape)
        for rows, batch in self.parts:
            at = (slice(None),) * axis + (rows,)
            found[at] = evaluate(batch, *(array[at] for array in full))
        return found

    def logcdf(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, at: batch.logcdf(at), y)

    def logsf(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, at: batch.logsf(at), y)

    def logpdf(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, at: batch.logpdf(at), y)

    def logcdf_left(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, at: batch.logcdf_left(at), y)

    def logsf_left(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, at: batch.logsf_left(at), y)

    def log_mass(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, at: batch.log_mass(at), y)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        return self._by_part(
            lambda batch, tail, side: batch.quantile_from_tail(tail, side), log_p, upper
        )

    def nodes(self, reach: float, step: float) -> Floats:
        inner = [(rows, batch.nodes(reach, step)) for rows, batch in self.parts]
        size = max(nodes.shape[-1] for _, nodes in inner)
        found = np.empty((*self.batch_shape, size))
        for rows, nodes in inner:
            # padded with the last node, which adds nothing to a sum
            padding = np.repeat(nodes[..., -1:], size - nodes.shape[-1], axis=-1)
            found[rows] = np.concatenate((nodes, padding), axis=-1)
        return found

    def mean(self) -> Floats:
        return self._by_part(lambda batch: batch.mean())

    def std(self) -> Floats:
        return self._by_part(lambda batch: batch.std())

    def crps(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, at: batch.crps(at), y)
