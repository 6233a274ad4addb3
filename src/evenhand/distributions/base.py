"""The base class of batches of distributions: tails, quantiles, and what follows from them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evenhand._format import one_line
from evenhand._kinds import OutcomeKind
from evenhand._logarithms import log1mexp, safe_log
from evenhand._validate import (
    Floats,
    Ints,
    Mask,
    Pair,
    as_floats,
    bad_input,
    check_probabilities,
    place_of,
    refuse_entry,
)
from evenhand.tables import row_blocks

NO_BINARY_RANDOMIZATION = (
    "forecasts of 0/1 outcomes are not randomized: draws have a cost and lower no one's calibration"
    " error; audit and recalibrate them by group instead, or forecast the amount or the time of"
    " which the event is a cut"
)
"""Reason for which forecasts of 0/1 outcomes are not randomized (outcomes: 3), and the advice."""

# --- tails

LOG_HALF = float(np.log(0.5))


class Tail(NamedTuple):
    """Probability on one side of an outcome.

    Parameters
    ----------
    log : ndarray
        Logarithm of `P(Y > y)` where `upper`, of `P(Y <= y)` elsewhere.
    upper : ndarray of bool
        Side of the outcome.

    Examples
    --------
    >>> tail = Tail(np.log([0.1, 0.2]), np.array([False, True]))
    >>> np.exp(tail.on(upper=False)).round(3)
    array([0.1, 0.8])
    """

    log: Floats
    upper: Mask

    @classmethod
    def smaller(cls, lower: Floats, upper: Floats) -> Tail:
        """Return the smaller one of two tails, which has all digits of both."""
        is_upper = upper < lower
        return cls(np.where(is_upper, upper, lower), is_upper)

    @classmethod
    def at_score(cls, score: Floats) -> Tail:
        """Return the tail of the standard normal distribution beyond a score."""
        return cls(special.log_ndtr(-np.abs(score)), score > 0)

    def near(self) -> Tail:
        """Return the same outcome by its smaller tail."""
        is_large = self.log > LOG_HALF
        if not is_large.any():
            return self
        side = self.upper ^ is_large
        return Tail(self.on(upper=side), side)

    def plain(self, *, upper: Any) -> Floats:
        """Return the probability on one side."""
        near = np.exp(self.log)
        return np.where(self.upper == upper, near, 1 - near)

    def on(self, *, upper: Any) -> Floats:
        """Return the logarithm of the probability on one side."""
        return np.where(self.upper == upper, self.log, log1mexp(np.minimum(self.log, 0.0)))

    def both(self) -> Pair:
        """Return the logarithms of the probabilities on the lower and on the upper side."""
        return self.on(upper=False), self.on(upper=True)


LEAST_SHARE = float(np.log(1e-8))
"""Logarithm of the smallest difference of tails, relative to the smaller of them, that is computed
as a difference; it then has 8 digits. Smaller ones are a slope times another difference."""


def log_between(below: Tail, at: Tail) -> Pair:
    """Return the log probability between two outcomes, and that of its share of their tails."""
    # a difference within the smaller tail, which keeps its digits
    whole = Tail.smaller(at.on(upper=False), below.on(upper=True))
    rest = np.where(whole.upper, at.on(upper=True), below.on(upper=False))
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isneginf(whole.log), -np.inf, np.minimum(rest - whole.log, 0.0))
    share = log1mexp(gap)
    return whole.log + share, share


# --- piecewise linear CDFs

CACHED = 1 << 16
TEMPORARIES = 4
"""Number of values in a temporary array, few enough for the cache, and of such arrays at once."""


class Knots(NamedTuple):
    """CDFs that are linear between increasing outcomes and may jump at them.

    The three arrays broadcast to the batch shape and an axis of knots. Probability below the first
    knot and above the last one is placed at these.

    Parameters
    ----------
    values : ndarray
        Outcomes.
    left, right : ndarray
        CDF just before and at each of them; one array twice if there is no jump.
    """

    values: Floats
    left: Floats
    right: Floats

    def _mean_of(self, at: Floats, between: Floats) -> Floats:
        """Mean of a function from its values at the knots and its means between them."""
        cells = self.left[..., 1:] - self.right[..., :-1]
        total = (cells * between).sum(axis=-1)
        total = total + self.left[..., 0] * at[..., 0] + (1 - self.right[..., -1]) * at[..., -1]
        if self.left is self.right:
            return total
        return total + ((self.right - self.left) * at).sum(axis=-1)

    def expectation(self, at: Floats) -> Floats:
        """Mean of a function that is about linear between the knots, from its values there."""
        return self._mean_of(at, (at[..., 1:] + at[..., :-1]) / 2)

    def mean(self) -> Floats:
        """Mean."""
        return self.expectation(self.values)

    def std(self) -> Floats:
        """Standard deviation."""
        # moments about a point of the support, so that large offsets do not cancel
        at = self.values - self.values[..., self.values.shape[-1] // 2][..., None]
        low, high = at[..., :-1], at[..., 1:]
        second = self._mean_of(at**2, (low * low + low * high + high * high) / 3)
        return np.sqrt(np.maximum(second - self.expectation(at) ** 2, 0.0))

    def crps(self, y: ArrayLike) -> Floats:
        """CRPS at `y`, `integral (F(z) - 1{z >= y})^2 dz`."""
        return in_blocks(_crps, *self, as_floats("y", y)[..., None], width=TEMPORARIES)


def _crps(values: Floats, left: Floats, right: Floats, point: Floats) -> Floats:
    low, high = values[..., :-1], values[..., 1:]
    at_low, at_high = right[..., :-1], left[..., 1:]
    turn = np.minimum(np.maximum(point, low), high)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(high > low, (turn - low) / (high - low), 1.0)
    at_turn = at_low + share * (at_high - at_low)
    # F is linear in a cell: the integral of F^2 is its length times (a^2 + ab + b^2) / 3
    before = (turn - low) * (at_low**2 + at_low * at_turn + at_turn**2)
    c = 1 - at_turn
    d = 1 - at_high
    after = (high - turn) * (c**2 + c * d + d**2)
    inner = (before + after).sum(axis=-1) / 3
    # beyond the knots F is 0 or 1, and the integrand up to the outcome is 1
    y = point[..., 0]
    outside = np.maximum(low[..., 0] - y, 0.0) + np.maximum(y - high[..., -1], 0.0)
    return inner + outside


def in_blocks(evaluate: Callable[..., Floats], *arrays: Any, width: int = 1) -> Floats:
    """Evaluate arrays that broadcast together in blocks of rows, with `width` values per entry."""
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    step = max(1, CACHED // max(math.prod(shape[1:]) * width, 1))
    if not shape or step >= shape[0]:
        return evaluate(*arrays)
    blocks = (
        [array[cut] if has_rows(array.shape, shape) else array for array in arrays]
        for cut in row_blocks(shape[0], step)
    )
    return np.concatenate([evaluate(*block) for block in blocks])


def has_rows(shape: tuple[int, ...], batch_shape: tuple[int, ...]) -> bool:
    """Whether a part has one row for each row of the batch; otherwise all rows share it."""
    return len(shape) == len(batch_shape) and shape[:1] == batch_shape[:1]


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

LEAST_TAIL = np.array(np.log(1e-20))
"""Logarithm of the probability that sums over a lattice may leave out at either end."""

MOST_VALUES = 1024
"""Largest number of values of a distribution of counts that sums go through one by one."""

# `ppf(cdf(y))` is `y` despite the rounding of `cdf` and of the tables of links
LEVEL_TOLERANCE = 1e-8
"""Relative tolerance of probabilities in quantiles."""


Change = Callable[[NDArray[Any], int], NDArray[Any]]
Function = Callable[[Floats], Floats]


class Distribution(ABC):
    """Batch of distributions on the real line.

    They are continuous unless `outcome_kind` names another kind; then single outcomes may have
    positive probability, and `logpdf` is the log density of the continuous part with respect to
    Lebesgue measure, `-inf` at an atom.

    All parameters of a batch have the `batch_shape`, `(n,)` or `(n, m)`; arguments broadcast
    against it as in NumPy. A family implements `tail`, its inverse `point`, and, if it has a
    density, `logpdf`; the other methods follow, and are replaced where there is a closed form. The
    keywords of its class are its `fields`.
    """

    fields: ClassVar[dict[str, int | None]] = {}
    """Names of the attributes that a batch consists of. Arrays have a number of axes after those of
    the batch, another batch 0; None stands for what all rows share."""

    recorded: ClassVar[dict[str, int | None]] = {}
    """The same of the attributes in records, in the order of the arguments; `fields` by default."""

    inner: ClassVar[str | None] = None
    """Name of the other batch that these distributions are made from."""

    kind: ClassVar[OutcomeKind | None] = None
    """Kind of outcome; None for that of the other batch, continuous if there is none."""

    has_mean: ClassVar[bool] = False
    """Whether `mean` has a closed form in the parameters and needs no quantiles."""

    def __init_subclass__(cls, **fields: int | None) -> None:
        super().__init_subclass__()
        cls.fields = fields or cls.fields
        cls.recorded = vars(cls).get("recorded", cls.fields)

    @abstractmethod
    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        """Return the probability on one side of outcomes, with all digits of the smaller one.

        Parameters
        ----------
        y : array-like
            Outcomes.
        left : bool, default False
            Whether an outcome belongs to the upper side, as in `P(Y < y)` and `P(Y >= y)`.
        """

    @abstractmethod
    def point(self, tail: Tail) -> Floats:
        """Return the quantile that has a tail: the inverse of `tail`.

        With atoms it is the least outcome at which the CDF is large enough.
        """

    def logpdf(self, y: ArrayLike) -> Floats:
        """Logarithm of the density, in nats per unit of `y`; `-inf` where there is none."""
        return np.full(self._joint(y).shape, -np.inf)

    @property
    def outcome_kind(self) -> OutcomeKind:
        """Kind of outcome that the distributions describe."""
        if self.kind is None:
            return OutcomeKind.CONTINUOUS if self.inner is None else self._inside.outcome_kind
        return self.kind

    @property
    def has_atoms(self) -> bool:
        """Whether single outcomes have positive probability."""
        return self.outcome_kind is not OutcomeKind.CONTINUOUS

    @property
    def is_lattice(self) -> bool:
        """Whether all of the probability is on single outcomes."""
        return self.outcome_kind in (OutcomeKind.COUNT, OutcomeKind.BINARY)

    @property
    def _inside(self) -> Distribution:
        return getattr(self, str(self.inner))

    @cached_property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch."""
        shapes = set()
        for part, dims in ((getattr(self, name), dims) for name, dims in self.fields.items()):
            if dims is not None:
                is_array = isinstance(part, np.ndarray)
                shapes.add(part.shape[: part.ndim - dims] if is_array else part.batch_shape)
        return np.broadcast_shapes(*shapes)

    def _joint(self, y: ArrayLike) -> Floats:
        """Return outcomes in the shape to which they and the batch broadcast."""
        point = as_floats("y", y)
        return np.broadcast_to(point, np.broadcast_shapes(point.shape, self.batch_shape))

    def __repr__(self) -> str:
        return one_line(self, shape=self.batch_shape)

    # --- rows and draws of the batch

    def take(self, rows: Any) -> Self:
        """Return the batch of the given rows; `rows` indexes the first axis."""
        shape = self.batch_shape
        # parts that all rows share, such as one residual distribution, are kept whole
        return self._changed(
            lambda array, n_axes: array[rows] if has_rows(array.shape[:n_axes], shape) else array,
            lambda part: part.take(rows) if has_rows(part.batch_shape, shape) else part,
        )

    def take_draws(self, columns: Ints) -> Self:
        """Return some draws of each row of a batch of shape (n, m): `columns` has shape (n, k)."""

        def drawn(array: NDArray[Any], n_axes: int) -> NDArray[Any]:
            if n_axes < 2 or array.shape[n_axes - 1] == 1:  # the same values for all draws
                return array
            index = columns.reshape(columns.shape + (1,) * (array.ndim - n_axes))
            return np.take_along_axis(array, index, axis=n_axes - 1)

        return self._changed(drawn, lambda part: part.take_draws(columns))

    def expand(self) -> Self:
        """Return the batch with one more axis of length 1, shape `batch_shape + (1,)`."""
        return self._changed(
            lambda array, n_axes: np.expand_dims(array, n_axes) if n_axes else array,
            Distribution.expand,
        )

    def _changed(self, change: Change, change_batch: Callable[[Any], Any] | None = None) -> Self:
        """Return the same family with changed arrays, and a changed batch, without validation.

        Arrays are passed with the number of their axes that belong to the batch.
        """
        made = object.__new__(type(self))
        for name, dims in self.fields.items():
            part = getattr(self, name)
            if isinstance(part, Distribution) and change_batch is not None:
                part = change_batch(part)
            elif dims is not None:
                part = change(part, part.ndim - dims)
            made.__dict__[name] = part
        return made

    # --- both tails

    def _side(self, y: ArrayLike, *, upper: bool, left: bool = False, log: bool = False) -> Floats:
        """Return the probability on one side of outcomes, or its logarithm."""
        tail = self.tail(y, left=left)
        return tail.on(upper=upper) if log else tail.plain(upper=upper)

    def cdf(self, y: ArrayLike, *, left: bool = False) -> Floats:
        """`P(Y <= y)`, or `P(Y < y)` if `left`."""
        return self._side(y, upper=False, left=left)

    def sf(self, y: ArrayLike, *, left: bool = False) -> Floats:
        """`P(Y > y)`, or `P(Y >= y)` if `left`; exact also where `1 - cdf` is rounded to 0."""
        return self._side(y, upper=True, left=left)

    def logcdf(self, y: ArrayLike, *, left: bool = False) -> Floats:
        """`log P(Y <= y)`, or `log P(Y < y)` if `left`."""
        return self._side(y, upper=False, left=left, log=True)

    def logsf(self, y: ArrayLike, *, left: bool = False) -> Floats:
        """`log P(Y > y)`, or `log P(Y >= y)` if `left`."""
        return self._side(y, upper=True, left=left, log=True)

    def log_mass(self, y: ArrayLike) -> Floats:
        """`log P(Y = y)`, `-inf` where there is no atom; exact in both tails."""
        return log_between(self.tail(y, left=True), self.tail(y))[0]

    def log_between(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """`log P(low < Y <= high)`, exact in both tails."""
        return log_between(self.tail(low), self.tail(high))[0]

    def ppf(self, p: ArrayLike) -> Floats:
        """Quantile at probability `p`, the inverse of `cdf`; at 0 and 1 the ends of the support."""
        values = check_probabilities("p", p)
        # from the nearer tail: log(1 - p) keeps its digits where log(p) is rounded to 0
        upper = values > 0.5
        return self.point(Tail(safe_log(np.where(upper, 1 - values, values)), upper))

    # --- integrals

    def mean(self) -> Floats:
        """Mean, shape `batch_shape`."""
        return self._measured(Knots.mean)

    def std(self) -> Floats:
        """Standard deviation, shape `batch_shape`."""
        return self._measured(Knots.std)

    def crps(self, y: ArrayLike) -> Floats:
        """Continuous ranked probability score at `y`, in units of `y` (Gneiting & Raftery 2007).

        Lower is better.
        """
        return self._measured(Knots.crps, as_floats("y", y))

    def expectation(self, function: Function, *, is_smooth: bool = False) -> Floats:
        """Mean of a vectorized function of the outcome, shape `batch_shape`.

        Parameters
        ----------
        function : callable
            Receives outcomes of shape `batch_shape + (q,)` and returns values of the same shape.
            For smooth functions the trapezoidal rule in normal scores is exact up to rounding
            errors.
        is_smooth : bool, default False
            Whether the function has no kinks, so that fewer outcomes suffice. Mixtures of normal
            distributions need no quantiles for it.
        """
        if self.has_atoms:
            return self._knots.expectation(function(self._knots.values))
        # with Y = ppf(Phi(z)) the mean is an integral over z against the normal density
        scores = score_grid(WIDE_REACH, SMOOTH_STEP if is_smooth else FINE_STEP)
        y = self.expand().point(Tail.at_score(scores))
        return over_scores(scores, function(np.broadcast_to(y, (*self.batch_shape, scores.size))))

    def _measured(self, measure: Callable[..., Floats], *arguments: Floats) -> Floats:
        """Evaluate a measure of the knots at arguments that broadcast against the batch."""
        return measure(self._knots, *arguments)

    @cached_property
    def _knots(self) -> Knots:
        """Knots for integrals: exact for lattices, quantiles of the continuous part elsewhere."""
        if not self.has_atoms:
            return self._smooth_knots()
        if self.is_lattice:
            return self._lattice_knots(*self._span)
        none, wide = np.zeros(self.batch_shape), self.expand()
        values, ends = self.nodes(none, none, score_grid(GRID_REACH + 1, GRID_STEP))
        return Knots(values, wide.cdf(ends, left=True), wide.cdf(ends))

    @cached_property
    def _span(self) -> Pair:
        """Outcomes of each row with almost all of the probability between them, (n, 1, ...)."""
        return self.span(LEAST_TAIL, LEAST_TAIL)

    def _lattice_knots(self, first: Floats, last: Floats) -> Knots:
        values, ends = self.nodes(first, last, np.zeros(0))
        right = self.expand().cdf(ends)
        left = np.concatenate((np.zeros_like(right[..., :1]), right[..., :-1]), axis=-1)
        return Knots(values, left, right)

    def _smooth_knots(self) -> Knots:
        """Knots at quantiles equally spaced in normal scores: dense towards both tails."""
        scores = score_grid(GRID_REACH, GRID_STEP)
        levels = special.ndtr(scores)
        return Knots(self.quantile_table(scores), levels, levels)

    def quantile_table(self, scores: Floats) -> Floats:
        """Return quantiles at increasing normal scores, for integrals; `batch_shape + (q,)`.

        Families whose quantiles take long may interpolate between some of them, with errors that
        integrals do not show.
        """
        return self.expand().point(Tail.at_score(scores))

    def span(self, lower: Floats, upper: Floats) -> Pair:
        """Return the quantiles at logarithms of tails, (n, 1, ...)."""
        return self.point(Tail(lower, np.array(False))), self.point(Tail(upper, np.array(True)))

    def nodes(self, first: Floats, last: Floats, scores: Floats) -> Pair:
        """Return increasing outcomes with all atoms among them, for distributions with atoms.

        Parameters
        ----------
        first, last : ndarray of shape (n, 1, ...)
            Outcomes between which they have all values of a lattice.
        scores : ndarray of shape (q,)
            Normal scores of quantiles of a continuous part.

        Returns
        -------
        values, ends : ndarray of shape batch_shape + (q,)
            Outcomes, and the greatest ones that they stand for if there are too many. Rows with
            fewer outcomes repeat the last one.
        """
        raise NotImplementedError


class TwoSided(Distribution):
    """Distributions that implement `_side` instead of `tail`, which is the smaller side."""

    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        return Tail.smaller(self.logcdf(y, left=left), self.logsf(y, left=left))


def score_grid(reach: float, step: float) -> Floats:
    """Return normal scores from `-reach` to `reach`, symmetric, about `step` apart."""
    # exactly symmetric, so that tables of symmetric distributions are symmetric
    half = math.ceil(reach / step)
    return np.asarray(np.arange(-half, half + 1) * (reach / half), dtype=float)


def over_scores(scores: Floats, values: Floats) -> Floats:
    """Return means over the normal density by the trapezoidal rule; scores on the last axis."""
    weights = np.exp(-scores * scores / 2)
    return values @ (weights / weights.sum())


D = TypeVar("D", bound=Distribution)


def found_inside(distribution: Distribution, kind: type[D]) -> D | None:
    """Return the distributions of a class inside wrappers; None if there are none."""
    while not isinstance(distribution, kind):
        if distribution.inner is None:
            return None
        distribution = distribution._inside
    return distribution


# --- parameters


def parameters(*positive: str, **values: ArrayLike) -> tuple[Floats, ...]:
    """Return finite parameters, broadcast together; those named first are positive."""
    arrays = {
        name: batch_array(name, value, positive=name in positive) for name, value in values.items()
    }
    return broadcast(**arrays)


def broadcast(**arrays: Floats) -> tuple[Floats, ...]:
    """Return the arrays broadcast together; InputError names those whose shapes do not match."""
    joint_shape(**{name: array.shape for name, array in arrays.items()})
    return np.broadcast_arrays(*arrays.values())


def joint_shape(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that the shapes broadcast to; InputError names those that do not match."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError as error:
        got = ", ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
        raise bad_input(" and ".join(shapes), "have shapes that broadcast together", got) from error


def increasing_array(name: str, values: ArrayLike, rule: str, least: int = 1) -> Floats:
    """Return finite numbers, at least some of them, that increase along the last axis."""
    array = batch_array(name, values)
    if array.ndim < 1 or array.shape[-1] < least or not (np.diff(array, axis=-1) > 0).all():
        raise bad_input(name, rule, f"{array.tolist()}"[:80])
    return array


def check_columns(name: str, array: Floats, grid: Floats, of: str) -> None:
    """Refuse an array whose last axis does not match that of a grid."""
    if array.ndim < 1 or array.shape[-1] != grid.shape[-1]:
        rule = f"have one column per {of} ({grid.shape[-1]})"
        raise bad_input(name, rule, f"shape {array.shape}")


def check_monotone(name: str, array: Floats, sign: int, rule: str, remedy: str) -> None:
    """Refuse rows that do not rise (fall, if `sign` is -1) along the last axis."""
    wrong = sign * np.diff(array, axis=-1) < 0
    if wrong.any():
        *row, column = np.argwhere(wrong)[0]
        before, after = array[*row, column], array[*row, column + 1]
        place = place_of(name, (*row, column + 1))
        raise bad_input(place, rule, f"{after:g} after {before:g}", remedy)


def batch_array(name: str, values: ArrayLike, *, positive: bool = False) -> Floats:
    """Return finite parameters (positive ones, if `positive`) as a float array, without a copy."""
    array = as_floats(name, values)
    least, rule = (0.0, "be finite and positive") if positive else (-np.inf, "be finite")
    refuse_entry(name, array, ~((array > least) & (array < np.inf)), rule)
    return array
