"""The base class of batches of distributions, exact in both tails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evenhand._format import one_line
from evenhand._kinds import OutcomeKind
from evenhand._logarithms import log1mexp
from evenhand._validate import Floats, Ints, Mask, as_floats, bad_input, refuse_entry
from evenhand.distributions import piecewise

NO_BINARY_RANDOMIZATION = (
    "forecasts of 0/1 outcomes are not randomized: the calibration error of each person depends on"
    " the mean probability over draws only, so that draws have a cost and no benefit; audit and"
    " recalibrate them by group instead, or, if the event is a cut of an amount or a time, forecast"
    " the amount or the time"
)
"""Reason for which forecasts of 0/1 outcomes are not randomized (outcomes: 3), and the advice."""


# --- batches of distributions

GRID_REACH = 8.0
"""Largest normal score in tables of quantiles; less than 1e-15 of probability is beyond it."""

GRID_STEP = 1 / 16
"""Step of the normal scores in tables of quantiles."""

WIDE_REACH = 10.0
FINE_STEP = 1 / 32
"""Largest normal score and step in expectations, exact for functions that grow up to exp(4 sd)."""

SMOOTH_STEP = 1 / 8
"""Step of normal scores in expectations of smooth functions; for residual distributions of some
dozens of quantiles, errors of up to 2e-4 standard deviations were measured."""


class Distribution(ABC):
    """Batch of distributions on the real line.

    They are continuous unless `outcome_kind` names another kind; a family with atoms implements
    `logcdf_left` and `logsf_left` as well, and its `logpdf` is the log density of the continuous
    part with respect to Lebesgue measure, `-inf` at an atom.

    All parameters of a batch have the `batch_shape`, `(n,)` or `(n, m)`; arguments broadcast
    against it as in NumPy. A family implements the logarithms of both tails and the quantile from
    either tail; the other methods follow from them.
    """

    event_dims: ClassVar[dict[str, int]]
    """Names of the batch arrays, as attributes and arguments, with the number of their axes after
    those of the batch."""

    has_mean: ClassVar[bool] = False
    """Whether `mean` has a closed form in the parameters and needs no quantiles."""

    @property
    def outcome_kind(self) -> OutcomeKind:
        """Kind of outcome that the distributions describe."""
        return OutcomeKind.CONTINUOUS

    @property
    def has_atoms(self) -> bool:
        """Whether single outcomes have positive probability."""
        return self.outcome_kind is not OutcomeKind.CONTINUOUS

    @property
    @abstractmethod
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch."""

    @abstractmethod
    def logcdf(self, y: ArrayLike) -> Floats:
        """`log P(Y <= y)`."""

    @abstractmethod
    def logsf(self, y: ArrayLike) -> Floats:
        """`log P(Y > y)`."""

    @abstractmethod
    def logpdf(self, y: ArrayLike) -> Floats:
        """Logarithm of the density, in nats per unit of `y`."""

    @abstractmethod
    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        """Quantile whose lower tail (upper tail where `upper`) has log probability `log_p`."""

    def logcdf_left(self, y: ArrayLike) -> Floats:
        """`log P(Y < y)`."""
        return self.logcdf(y)

    def logsf_left(self, y: ArrayLike) -> Floats:
        """`log P(Y >= y)`."""
        return self.logsf(y)

    def __repr__(self) -> str:
        return one_line(self, shape=self.batch_shape)

    def take(self, rows: Any) -> Self:
        """Return the batch of the given rows; `rows` indexes the first axis."""
        # wrappers whose base has another shape override take and expand
        return self._rebuilt(lambda array, dims: array[rows])

    def take_draws(self, columns: Ints) -> Self:
        """Return some draws of each row of a batch of shape (n, m): `columns` has shape (n, k)."""
        return self._rebuilt(lambda array, dims: draws_of(array, columns, dims))

    def expand(self) -> Self:
        """Return the batch with one more axis of length 1, shape `batch_shape + (1,)`."""
        return self._rebuilt(lambda array, dims: np.expand_dims(array, array.ndim - dims))

    def _rebuilt(self, change: Callable[[Floats, int], Floats]) -> Self:
        return type(self)(
            **{name: change(getattr(self, name), dims) for name, dims in self.event_dims.items()}
        )

    def _unchecked(self, fields: dict[str, Any]) -> Self:
        """Return distributions of this family with the given attributes, without validation."""
        made = object.__new__(type(self))
        made.__dict__.update(fields)
        return made

    def cdf(self, y: ArrayLike) -> Floats:
        """`P(Y <= y)`."""
        return np.exp(self.logcdf(y))

    def cdf_left(self, y: ArrayLike) -> Floats:
        """`P(Y < y)`, the left limit of `cdf`."""
        return np.exp(self.logcdf_left(y)) if self.has_atoms else self.cdf(y)

    def log_mass(self, y: ArrayLike) -> Floats:
        """`log P(Y = y)`, `-inf` where there is no atom; exact in both tails."""
        lower, upper = self.logcdf(y), self.logsf_left(y)
        if not self.has_atoms:
            return np.full(np.broadcast_shapes(lower.shape, upper.shape), -np.inf)
        # a difference within the smaller tail, which keeps its digits
        is_lower = lower < upper
        whole = np.where(is_lower, lower, upper)
        rest = np.where(is_lower, self.logcdf_left(y), self.logsf(y))
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(whole), -np.inf, whole + log1mexp(rest - whole))

    def sf_left(self, y: ArrayLike) -> Floats:
        """`P(Y >= y)`, the left limit of `sf`."""
        return np.exp(self.logsf_left(y)) if self.has_atoms else self.sf(y)

    def sf(self, y: ArrayLike) -> Floats:
        """`P(Y > y)`, exact also where `1 - cdf` is rounded to 0."""
        return np.exp(self.logsf(y))

    def ppf(self, p: ArrayLike) -> Floats:
        """Quantile at probability `p`, the inverse of `cdf`; at 0 and 1 the ends of the support."""
        values = np.asarray(p, dtype=np.float64)
        if not ((values >= 0) & (values <= 1)).all():
            wrong = values[~((values >= 0) & (values <= 1))].flat[0]
            raise bad_input(
                "p", "lie between 0 and 1", float(wrong), "give a fraction: 0.9, not 90"
            )
        # from the nearer tail: log(1 - p) keeps its digits where log(p) is rounded to 0
        upper = values > 0.5
        with np.errstate(divide="ignore"):
            return self.quantile_from_tail(np.log(np.where(upper, 1 - values, values)), upper)

    def mean(self) -> Floats:
        """Mean, shape `batch_shape`."""
        return piecewise.mean(*self._cached_table)

    def std(self) -> Floats:
        """Standard deviation, shape `batch_shape`."""
        return piecewise.std(*self._cached_table)

    def expectation(self, function: Callable[[Floats], Floats]) -> Floats:
        """Mean of a vectorized function of the outcome, shape `batch_shape`.

        `function` receives outcomes of shape `batch_shape + (q,)` and returns values of the same
        shape. For smooth functions the trapezoidal rule in normal scores is exact up to rounding
        errors.
        """
        return self._expectation(function, FINE_STEP)

    def smooth_expectation(self, function: Callable[[Floats], Floats]) -> Floats:
        """Return the same for a function without kinks, with fewer outcomes.

        Normal distributions and their mixtures need no quantiles for it.
        """
        return self._expectation(function, SMOOTH_STEP)

    def _expectation(self, function: Callable[[Floats], Floats], step: float) -> Floats:
        if self.has_atoms:
            levels, nodes = self._cached_table
            found = np.einsum("...q,...q->...", piecewise.level_weights(levels), function(nodes))
            return np.asarray(found)
        # with Y = ppf(Phi(z)) the mean is an integral over z against the normal density
        scores = score_grid(WIDE_REACH, step)
        weights = np.exp(-scores * scores / 2)
        y = self.expand().quantile_from_tail(special.log_ndtr(-np.abs(scores)), scores > 0)
        values = function(np.broadcast_to(y, (*self.batch_shape, scores.size)))
        return np.asarray(values @ (weights / weights.sum()))

    def crps(self, y: ArrayLike) -> Floats:
        """Continuous ranked probability score at `y`, in units of `y` (Gneiting & Raftery 2007).

        Lower is better.
        """
        levels, values = self._cached_table
        return piecewise.crps(levels, values, np.asarray(y, dtype=np.float64))

    @cached_property
    def _cached_table(self) -> tuple[Floats, Floats]:
        return self._table()

    def _table(self) -> tuple[Floats, Floats]:
        """Return CDF levels and quantiles for integrals; both broadcast to `batch_shape + (q,)`."""
        if self.has_atoms:
            return self.atom_table(self.nodes(GRID_REACH + 1, GRID_STEP))
        # equally spaced in normal scores: dense in probability towards both tails
        scores = score_grid(GRID_REACH, GRID_STEP)
        return special.ndtr(scores), self.quantile_table(scores)

    def nodes(self, reach: float, step: float) -> Floats:
        """Return increasing outcomes, all atoms among them, for exact tables; `batch_shape + (q,)`.

        Where the distribution is continuous they are quantiles at normal scores from `-reach` to
        `reach`, about `step` apart.
        """
        return self.quantile_table(score_grid(reach, step))

    def atom_table(self, nodes: Floats) -> tuple[Floats, Floats]:
        """Return levels and quantiles of the quantile function, flat over the level of each atom.

        Each of the increasing `nodes` appears twice, with the CDF before and at it: exact where all
        probability is on the nodes, and linear between them elsewhere.
        """
        wide = self.expand()
        both = np.stack((wide.cdf_left(nodes), wide.cdf(nodes)), axis=-1)
        levels = both.reshape(*both.shape[:-2], -1)
        # nodes that appear several times, and rounding
        return np.maximum.accumulate(levels, axis=-1), np.repeat(nodes, 2, axis=-1)

    def values_of_rows(self) -> Any:
        """Return the batch with one axis, for sums over its values; None if it has no such list.

        Batches of lattices of shape (n,) or (n, 1) have one, with the methods `ends` and
        `tails_between` of `Lattice`.
        """
        return None

    def quantile_table(self, scores: Floats) -> Floats:
        """Return quantiles at increasing normal scores, for integrals; `batch_shape + (q,)`.

        Families whose quantiles take long may interpolate between some of them, with errors that
        integrals do not show.
        """
        return self.expand().quantile_from_tail(special.log_ndtr(-np.abs(scores)), scores > 0)


def score_grid(reach: float, step: float) -> Floats:
    """Return normal scores from `-reach` to `reach`, symmetric, about `step` apart."""
    # exactly symmetric, so that tables of symmetric distributions are symmetric
    half = int(np.ceil(reach / step))
    return np.asarray(np.arange(-half, half + 1) * (reach / half), dtype=np.float64)


def broadcast(**arrays: Floats) -> tuple[Floats, ...]:
    """Return the arrays broadcast together; InputError names those whose shapes do not match."""
    joint_shape(**{name: array.shape for name, array in arrays.items()})
    return tuple(np.broadcast_arrays(*arrays.values()))


def joint_shape(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that the shapes broadcast to; InputError names those that do not match."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError as error:
        got = ", ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
        raise bad_input(" and ".join(shapes), "have shapes that broadcast together", got) from error


def draws_of(array: NDArray[Any], columns: Ints, dims: int = 0) -> NDArray[Any]:
    """Return some draws of each row of an array with `dims` axes after the batch (n, m)."""
    axis = array.ndim - dims - 1
    if axis < 1 or array.shape[axis] == 1:  # the same values for all draws
        return array
    index = columns.reshape(columns.shape + (1,) * dims)
    return np.take_along_axis(array, index, axis=axis)


def batch_array(name: str, values: ArrayLike, *, positive: bool = False) -> Floats:
    """Return finite parameters (positive ones, if `positive`) as a float array, without a copy."""
    array = as_floats(name, values)
    wrong = ~np.isfinite(array) | (array <= 0) if positive else ~np.isfinite(array)
    refuse_entry(name, array, wrong, "be finite and positive" if positive else "be finite")
    return array


def probability_array(name: str, values: ArrayLike) -> Floats:
    """Return probabilities as a float array, without a copy."""
    array = batch_array(name, values)
    wrong = (array < 0) | (array > 1)
    refuse_entry(name, array, wrong, "lie between 0 and 1", "give a fraction: 0.9, not 90")
    return array
