"""Distributions on finitely many values: ordinal scores, empirical counts, and events."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand._kinds import OutcomeKind
from evenhand._validate import Floats, Ints, Mask, as_floats, bad_input, place_of
from evenhand.distributions.base import batch_array, joint_shape, probability_array
from evenhand.distributions.lattice import LEVEL_TOLERANCE, Lattice

SUM_TOLERANCE = 1e-6
"""Largest deviation from 1 of the sum of probabilities, which are divided by their sum: those of
classifiers in single precision add up to 1 within 1e-7 per class."""


class Categorical(Lattice):
    """Distributions on finitely many values.

    Parameters
    ----------
    support : array-like of shape (K,) or batch shape + (K,)
        Values, strictly increasing; units of `y`.
    probabilities : array-like of shape batch shape + (K,)
        Their probabilities, at least 0, with sum 1.

    Raises
    ------
    InputError
        If the values do not increase, or a row of probabilities is negative or does not add up
        to 1.

    Examples
    --------
    >>> batch = Categorical([1, 2, 3], [[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]])
    >>> batch.mean(), batch.cdf(2).round(3), batch.cdf_left(2)
    (array([2.1, 3. ]), array([0.7, 0. ]), array([0.2, 0. ]))
    """

    event_dims: ClassVar[dict[str, int]] = {"support": 1, "probabilities": 1}
    has_mean: ClassVar[bool] = True

    def __init__(self, support: ArrayLike, probabilities: ArrayLike) -> None:
        values = batch_array("support", support)
        if values.ndim < 1 or not (np.diff(values, axis=-1) > 0).all():
            rule = "be values that increase strictly along the last axis"
            raise bad_input("support", rule, f"{values.tolist()}"[:80])
        if values.size == 0:
            raise bad_input("support", "have at least one value", f"shape {values.shape}")
        mass = as_floats("probabilities", probabilities)
        if mass.ndim < 1 or mass.shape[-1] != values.shape[-1]:
            rule = f"have one column per value of the support ({values.shape[-1]})"
            raise bad_input("probabilities", rule, f"shape {mass.shape}")
        joint_shape(support=values.shape[:-1], probabilities=mass.shape[:-1])
        total = _check_sums(mass)
        self.support = values
        self.probabilities = mass / total[..., None]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.support.shape[:-1], self.probabilities.shape[:-1])

    def _rebuilt(self, change: Callable[[Floats, int], Floats]) -> Self:
        if self.support.ndim > 1:
            shape = self.batch_shape
            support = np.broadcast_to(self.support, (*shape, self.support.shape[-1]))
            mass = np.broadcast_to(self.probabilities, (*shape, self.support.shape[-1]))
            return self._unchecked(
                {"support": change(support, 1), "probabilities": change(mass, 1)}
            )
        changed = change(self.probabilities, 1)
        return self._unchecked({"support": self.support, "probabilities": changed})

    @cached_property
    def _tails(self) -> tuple[Floats, Floats]:
        """Probabilities below and from each value on, batch shape + (K + 1,)."""
        mass = self.probabilities
        ends = np.zeros((*mass.shape[:-1], 1)), np.ones((*mass.shape[:-1], 1))
        # each tail is summed from its own end, so that small ones keep their digits
        lower = np.minimum(np.cumsum(mass[..., :-1], axis=-1), 1.0)
        upper = np.minimum(np.cumsum(mass[..., :0:-1], axis=-1), 1.0)[..., ::-1]
        return (
            np.concatenate((ends[0], lower, ends[1]), axis=-1),
            np.concatenate((ends[1], upper, ends[0]), axis=-1),
        )

    @cached_property
    def _log_tails(self) -> tuple[Floats, Floats]:
        """Logarithms of both, from the smaller tail."""
        lower, upper = self._tails
        with np.errstate(divide="ignore"):
            return _nearer_logs(lower, upper), _nearer_logs(upper, lower)

    def _position(self, y: ArrayLike, *, left: bool = False) -> Ints:
        """Return the number of values at most `y` (below `y` if `left`), of the joint shape."""
        point = np.asarray(y, dtype=np.float64)
        shape = np.broadcast_shapes(point.shape, self.batch_shape)
        if self.support.ndim == 1:
            found = np.searchsorted(self.support, point, side="left" if left else "right")
            return np.broadcast_to(found, shape)
        return _count_true(
            lambda at: (
                (self._at(self.support, at) < point)
                if left
                else (self._at(self.support, at) <= point)
            ),
            self.support.shape[-1],
            shape,
        )

    def _at(self, array: Floats, index: Ints) -> Floats:
        """Return the entries of a batch of arrays at indices that broadcast against the batch."""
        full = array.reshape((1,) * (index.ndim + 1 - array.ndim) + array.shape)
        rows = (
            np.arange(size).reshape(-1, *(1,) * (index.ndim - 1 - axis)) if size > 1 else 0
            for axis, size in enumerate(full.shape[:-1])
        )
        return np.asarray(full[(*rows, index)])

    def _step(self, tail: Floats, y: ArrayLike, *, left: bool = False) -> Floats:
        """Return a tail at (just below, if `left`) outcomes, NaN at NaN."""
        found = self._at(tail, self._position(y, left=left))
        is_missing = np.isnan(y)
        return np.where(is_missing, np.nan, found) if is_missing.any() else found

    def cdf(self, y: ArrayLike) -> Floats:
        return self._step(self._tails[0], y)

    def cdf_left(self, y: ArrayLike) -> Floats:
        return self._step(self._tails[0], y, left=True)

    def sf(self, y: ArrayLike) -> Floats:
        return self._step(self._tails[1], y)

    def sf_left(self, y: ArrayLike) -> Floats:
        return self._step(self._tails[1], y, left=True)

    def logcdf(self, y: ArrayLike) -> Floats:
        return self._step(self._log_tails[0], y)

    def logsf(self, y: ArrayLike) -> Floats:
        return self._step(self._log_tails[1], y)

    def logcdf_left(self, y: ArrayLike) -> Floats:
        return self._step(self._log_tails[0], y, left=True)

    def logsf_left(self, y: ArrayLike) -> Floats:
        return self._step(self._log_tails[1], y, left=True)

    def _below(self, y: ArrayLike) -> Floats:
        at = self._position(y, left=True)
        return np.where(at == 0, -np.inf, self._at(self.support, np.maximum(at - 1, 0)))

    def log_mass(self, y: ArrayLike) -> Floats:
        # not from the tails, whose difference loses small probabilities between large ones
        before, after = self._position(y, left=True), self._position(y)
        mass = self._at(self.probabilities, np.minimum(before, self.support.shape[-1] - 1))
        with np.errstate(divide="ignore"):
            found = np.where(after > before, np.log(mass), -np.inf)
        return np.where(np.isnan(y), np.nan, found)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        tail = np.asarray(log_p, dtype=np.float64)
        is_upper = np.asarray(upper)
        shape = np.broadcast_shapes(tail.shape, is_upper.shape, self.batch_shape)
        lower, higher = self._log_tails

        def is_short(at: Ints) -> Mask:
            # the value number `at` is still below the quantile
            below = self._at(lower, at + 1) < tail - LEVEL_TOLERANCE
            above = self._at(higher, at + 1) > tail + LEVEL_TOLERANCE
            return np.asarray(np.where(is_upper, above, below))

        last = self.support.shape[-1] - 1
        at = np.minimum(_count_true(is_short, last, shape), last)
        return np.broadcast_to(self._at(self.support, at), shape).copy()

    def nodes(self, reach: float, step: float) -> Floats:
        return np.broadcast_to(self.support, (*self.batch_shape, self.support.shape[-1]))

    def ends(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        size = self.batch_shape[0]
        return np.zeros(size), np.full(size, self.support.shape[-1] - 1.0)

    def tails_between(self, first: Floats, last: Floats) -> tuple[Floats, Floats, Mask]:
        shape = (*self.batch_shape, self.support.shape[-1])
        lower, upper = (np.broadcast_to(log[..., 1:], shape) for log in self._log_tails)
        is_upper = lower > upper
        values = np.broadcast_to(self.support, shape)
        return values, np.where(is_upper, upper, lower), is_upper

    def mean(self) -> Floats:
        return np.asarray((self.probabilities * self.support).sum(axis=-1))

    def std(self) -> Floats:
        deviation = self.support - self.mean()[..., None]
        return np.asarray(np.sqrt((self.probabilities * deviation**2).sum(axis=-1)))

    def expectation(self, function: Callable[[Floats], Floats]) -> Floats:
        values = function(self.nodes(0.0, 0.0))
        return np.asarray((self.probabilities * values).sum(axis=-1))

    def smooth_expectation(self, function: Callable[[Floats], Floats]) -> Floats:
        return self.expectation(function)

    def crps(self, y: ArrayLike) -> Floats:
        # E|Y - y| - E|Y - Y'| / 2, and half the mean difference is the integral of F (1 - F)
        point = np.asarray(y, dtype=np.float64)[..., None]
        near = (self.probabilities * np.abs(self.support - point)).sum(axis=-1)
        lower = np.cumsum(self.probabilities, axis=-1)[..., :-1]
        return np.asarray(near - (lower * (1 - lower) * np.diff(self.support)).sum(axis=-1))


class Bernoulli(Categorical):
    """Distributions of an event that happens (1) or not (0).

    Parameters
    ----------
    probability : array-like
        Probabilities of the event, 0 to 1, of the batch shape.

    Examples
    --------
    >>> Bernoulli([0.1, 0.5]).log_mass(1).round(3)
    array([-2.303, -0.693])
    """

    event_dims: ClassVar[dict[str, int]] = {"probability": 0}

    def __init__(self, probability: ArrayLike) -> None:
        array = probability_array("probability", probability)
        self.support = np.array([0.0, 1.0])
        self.probabilities = np.stack((1 - array, array), axis=-1)

    @property
    def probability(self) -> Floats:
        """Probabilities of the event, shape of the batch."""
        return np.asarray(self.probabilities[..., 1])

    @property
    def outcome_kind(self) -> OutcomeKind:
        return OutcomeKind.BINARY


def empirical(values: ArrayLike) -> Categorical:
    """Return the empirical distributions of samples of shape (..., m), one batch entry per row."""
    samples = batch_array("values", values)
    if samples.ndim < 1 or samples.shape[-1] < 1:
        raise bad_input("values", "have at least one sample per row", f"shape {samples.shape}")
    support, index = np.unique(samples, return_inverse=True)
    shape = samples.shape[:-1]
    rows = int(np.prod(shape))
    flat = index.reshape(rows, -1) + np.arange(rows)[:, None] * support.size
    counts = np.bincount(flat.ravel(), minlength=rows * support.size)
    return Categorical(support, counts.reshape(*shape, support.size) / samples.shape[-1])


def _check_sums(mass: Floats) -> Floats:
    """Return the sums of probabilities, all near 1; the message names the row."""
    with np.errstate(invalid="ignore"):
        total = mass.sum(axis=-1)
        is_wrong = ~(mass >= 0).all(axis=-1) | ~(np.abs(total - 1) <= SUM_TOLERANCE)
    if is_wrong.any():
        row = tuple(np.argwhere(is_wrong)[0])
        got = f"a sum of {float(total[row]):.6g} and a least value of {float(mass[row].min()):.6g}"
        place = place_of("probabilities", row)
        raise bad_input(place, "be at least 0 and add up to 1", got, "divide each row by its sum")
    return np.asarray(total)


def _nearer_logs(own: Floats, other: Floats) -> Floats:
    """Return the logs of tails, from the other tail where that is smaller."""
    return np.where(own < 0.5, np.log(own), np.log1p(-np.minimum(other, 1.0)))


def _count_true(is_true: Callable[[Ints], Mask], size: int, shape: tuple[int, ...]) -> Ints:
    """Return for how many indices below `size` a predicate is true, first true and then false."""
    low = np.zeros(shape, dtype=np.intp)
    high = np.full(shape, size, dtype=np.intp)
    for _ in range(int(size).bit_length()):
        middle = (low + high) // 2
        is_open = low < high
        found = is_true(np.minimum(middle, max(size - 1, 0))) & is_open
        low = np.where(found, middle + 1, low)
        high = np.where(found | ~is_open, high, middle)
    return low
