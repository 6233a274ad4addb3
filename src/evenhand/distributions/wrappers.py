"""Distributions made from others, batches of several families, and records of distributions."""

from __future__ import annotations

import inspect
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import interpolate, ndimage, special

from evenhand._kinds import OutcomeKind
from evenhand._logarithms import log1mexp, log_expm1, safe_log, softplus
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    Mask,
    Pair,
    as_floats,
    bad_input,
    check_choice,
    check_draws,
    check_probabilities,
    typed_fields,
)
from evenhand.distributions.base import (
    CACHED,
    GRID_REACH,
    GRID_STEP,
    LEAST_SHARE,
    LEVEL_TOLERANCE,
    LOG_HALF,
    MOST_VALUES,
    TEMPORARIES,
    Distribution,
    Function,
    Knots,
    Tail,
    TwoSided,
    batch_array,
    broadcast,
    found_inside,
    in_blocks,
    increasing_array,
    joint_shape,
    log_between,
    parameters,
    score_grid,
)
from evenhand.distributions.families import count_below, entries
from evenhand.draws import RandomState, generator, jittered
from evenhand.links import Link, make_link


@dataclass(frozen=True)
class Support:
    """Interval of possible outcomes, with a smooth increasing map from it onto the real line.

    The map is `g(y - low) - g(high - y)` with `g(x) = log(bend (exp(x / bend) - 1))`, without the
    part of a side that has no bound. `g` is the logarithm for distances from a bound below `bend`,
    and a line for larger distances: with `bend=inf` the map is `log(y - low)`, `-log(high - y)` or
    `log((y - low) / (high - y))`. Without bounds it is the identity.

    Parameters
    ----------
    low, high : float
        Bounds of the outcome; -inf and inf on a side without bound.
    bend : float, default inf
        Distance from a bound at which `g` turns from a logarithm to a line, > 0; units of `y`.
    edge : float, default 0
        Distance from a bound to which outcomes that are nearer are moved; units of `y`.
    is_map : bool, default True
        Whether outcomes are mapped to the line before a model is fitted. Otherwise forecasts for
        outcomes in their own units are truncated to the interval.

    Examples
    --------
    >>> Support(low=0.0).to_line([0.1, 1.0, 10.0]).round(2)
    array([-2.3,  0. ,  2.3])
    >>> Support(low=0.0, bend=1.0).from_line([-2.3, 0.0, 100.0]).round(2)
    array([  0.1 ,   0.69, 100.  ])
    """

    low: float = -np.inf
    high: float = np.inf
    bend: float = np.inf
    edge: float = 0.0
    is_map: bool = True

    def to_line(self, y: ArrayLike) -> Floats:
        """Map outcomes to the line; outcomes at and beyond a bound give -inf or inf."""
        point = as_floats("y", y)
        if np.isinf(self.low) and np.isinf(self.high):
            return point
        # beyond a bound the distance is 0, whose logarithm is -inf
        up = 0.0 if np.isinf(self.low) else self._bent(np.maximum(point - self.low, 0.0))
        down = 0.0 if np.isinf(self.high) else self._bent(np.maximum(self.high - point, 0.0))
        return np.asarray(up - down)

    def from_line(self, points: ArrayLike) -> Floats:
        """Map points of the line to outcomes."""
        point = np.asarray(points, dtype=float)
        if np.isinf(self.high):
            return point if np.isinf(self.low) else self.low + self._distance(point)
        if np.isinf(self.low):
            return self.high - self._distance(-point)
        # from the nearer bound, so that small distances to either keep their digits
        nearer = self._nearer_distance(-np.abs(point))
        return np.where(point < 0, self.low + nearer, self.high - nearer)

    def log_slope(self, y: ArrayLike) -> Floats:
        """Logarithm of the derivative of `to_line` at outcomes inside the interval."""
        point = as_floats("y", y)
        ends = ((1, self.low), (-1, self.high))
        slopes = [self._log_slope(side * (point - end)) for side, end in ends if np.isfinite(end)]
        return np.logaddexp.reduce(slopes) if slopes else np.zeros_like(point)

    def inside(self, y: ArrayLike) -> Floats:
        """Return the outcomes; those in the interval keep a distance of `edge` from its bounds."""
        point = as_floats("y", y)
        is_inside = (point >= self.low) & (point <= self.high)
        kept = np.clip(point, self.low + self.edge, self.high - self.edge)
        return np.where(is_inside, kept, point)

    def to_state(self) -> dict[str, Any]:
        """Return the fields as JSON values; None stands for infinity."""
        return {name: None if np.isinf(value) else value for name, value in asdict(self).items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from the output of `to_state`."""
        given = {name: value for name, value in state.items() if value is not None}
        support = cls(**typed_fields(cls, given))
        if not support.low < support.high or support.bend <= 0:
            raise InputError(f"{support} is not an interval with a bend above 0")
        return support

    def _bent(self, distance: Floats) -> Floats:
        if np.isinf(self.bend):
            return safe_log(distance)
        return log_expm1(distance / self.bend) + np.log(self.bend)

    def _log_slope(self, distance: Floats) -> Floats:
        if np.isinf(self.bend):
            return -np.log(distance)
        return -np.log(self.bend) - np.log(-np.expm1(-distance / self.bend))

    def _distance(self, point: Floats) -> Floats:
        """Return the distance from a single bound, the inverse of `_bent`."""
        if np.isinf(self.bend):
            with np.errstate(over="ignore"):
                return np.exp(point)
        return self.bend * softplus(point - np.log(self.bend))

    def _nearer_distance(self, point: Floats) -> Floats:
        """Return the distance from the nearer of two bounds, at points of at most 0."""
        width = self.high - self.low
        if np.isinf(self.bend):
            return width * special.expit(point)
        # x = exp(distance / bend) - 1 solves x^2 + b x = c with b = 1 + exp(t) and
        # c = exp(t) (exp(width / bend) - 1); in logarithms, as c may overflow
        log_b = softplus(point)
        log_c = point + log_expm1(np.asarray(width / self.bend))
        root = 0.5 * np.logaddexp(2 * log_b, np.log(4.0) + log_c)
        return self.bend * softplus(np.log(2.0) + log_c - np.logaddexp(log_b, root))


# --- maps of the outcome


def check_no_atoms(name: str, part: Distribution) -> None:
    """Refuse a part whose single outcomes have positive probability."""
    if part.has_atoms:
        got = f"outcomes of kind {str(part.outcome_kind)!r}"
        raise bad_input(name, "be a continuous distribution", got)


class LocationScale(Distribution, base=0, loc=0, scale=0):
    """Distributions of `loc + scale * Z`, where `Z` has the distribution `base`.

    Parameters
    ----------
    base : Distribution
        Distribution of the residual `Z`: a batch that broadcasts against `loc`, usually of shape
        (1,).
    loc, scale : array-like
        Location and scale (> 0), broadcast to the batch shape; units of `y`.

    Examples
    --------
    >>> from evenhand.distributions import Normal
    >>> LocationScale(Normal([0.0], 1.0), [5.0, 7.0], 2.0).mean()
    array([5., 7.])
    """

    inner = "base"

    def __init__(self, base: Distribution, loc: ArrayLike, scale: ArrayLike = 1.0) -> None:
        self.base = base
        self.loc, self.scale = parameters("scale", loc=loc, scale=scale)
        joint_shape(base=base.batch_shape, loc=self.loc.shape)
        check_no_atoms("base", base)

    def _standard(self, y: ArrayLike) -> Floats:
        return (as_floats("y", y) - self.loc) / self.scale

    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        return self.base.tail(self._standard(y))

    def point(self, tail: Tail) -> Floats:
        return self.loc + self.scale * self.base.point(tail)

    def logpdf(self, y: ArrayLike) -> Floats:
        # change of variables: the density is per unit of y
        return self.base.logpdf(self._standard(y)) - np.log(self.scale)

    def mean(self) -> Floats:
        return self.loc + self.scale * self.base.mean()

    def std(self) -> Floats:
        return self.scale * self.base.std()

    def crps(self, y: ArrayLike) -> Floats:
        # the CRPS has the unit of y and scales with the distribution
        return self.scale * self.base.crps(self._standard(y))


class Transformed(Distribution, base=0, support=None):
    """Distributions of `support.from_line(Z)`, where `Z` has the distribution `base`.

    Outside the support the density is 0. Outcomes nearer to a bound than `support.edge` are
    evaluated at that distance, so that an outcome at the bound has a finite log density.

    Parameters
    ----------
    base : Distribution
        Distribution on the real line.
    support : Support
        Map between outcomes and the real line.

    Examples
    --------
    >>> from evenhand.distributions import Normal, Support
    >>> lognormal = Transformed(Normal([0.0], 1.0), Support(low=0.0))
    >>> lognormal.ppf(0.5), lognormal.mean().round(3)
    (array([1.]), array([1.649]))
    """

    inner = "base"

    def __init__(self, base: Distribution, support: Support) -> None:
        check_no_atoms("base", base)
        self.base, self.support = base, support

    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        return self.base.tail(self.support.to_line(self.support.inside(y)))

    def point(self, tail: Tail) -> Floats:
        return self.support.from_line(self.base.point(tail))

    def logpdf(self, y: ArrayLike) -> Floats:
        point = self.support.inside(y)
        line = self.support.to_line(point)
        is_inside = np.isfinite(line)
        line = np.where(is_inside, line, 0.0)
        point = np.where(is_inside, point, self.support.from_line(0.0))
        # change of variables: the density is per unit of y
        return np.where(is_inside, self.base.logpdf(line) + self.support.log_slope(point), -np.inf)

    def mean(self) -> Floats:
        return self.base.expectation(self.support.from_line, is_smooth=True)

    def std(self) -> Floats:
        mean = self.mean()[..., None]
        return np.sqrt(
            self.base.expectation(lambda z: (self.support.from_line(z) - mean) ** 2, is_smooth=True)
        )


# --- truncation


ROUNDING = 1e-14
"""Error of tails, relative to them; a density changes where it matters if it changes by more."""


class Truncated(Distribution, base=0, support=None):
    """Distributions of a base's outcome, given that it lies inside an interval.

    The CDF is `(F(y) - F(low)) / (F(high) - F(low))`, computed from the smaller tail, so that bases
    with nearly all of their probability outside the interval have finite log densities. Outcomes
    nearer to a bound than `support.edge` are evaluated at that distance.

    Parameters
    ----------
    base : Distribution
        Distribution to truncate.
    support : Support
        Interval of possible outcomes, in the units of the base.

    Examples
    --------
    >>> from evenhand.distributions import Normal, Support
    >>> half = Truncated(Normal([0.0], 1.0), Support(low=0.0))
    >>> half.cdf(0.0), half.mean().round(2)
    (array([0.]), array([0.8]))
    """

    inner = "base"
    kind = OutcomeKind.CONTINUOUS

    def __init__(self, base: Distribution, support: Support) -> None:
        hurdle = found_inside(base, Hurdle)
        if hurdle is None or support.low < hurdle.at < support.high:
            check_no_atoms("base", base)
        self.base, self.support = base, support

    def _clipped(self, y: ArrayLike) -> Floats:
        return np.clip(self.support.inside(y), self.support.low, self.support.high)

    def _log_between(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """Log probability of the base between two points, without atoms at them."""
        found, share = log_between(self.base.tail(low), self.base.tail(high, left=True))
        is_near = share < LEAST_SHARE
        if not is_near.any():
            return found
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            distance = np.asarray(high) - np.asarray(low)
            middle = np.where(np.isfinite(distance), low + distance / 2, 0.0)
            near = self.base.logpdf(middle) + np.log(distance)
            # differ by more than rounding if the density changes within the distance
            is_near &= ~(np.abs(near - found) > ROUNDING * np.exp(-share))
        return np.where(is_near, near, found)

    def _log_within(self) -> Floats:
        """Log probability of the base in the interval."""
        return self._log_between(self.support.low, self.support.high)

    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        point, within = self._clipped(y), self._log_within()
        lower = self._log_between(self.support.low, point) - within
        upper = self._log_between(point, self.support.high) - within
        return Tail.smaller(np.minimum(lower, 0.0), np.minimum(upper, 0.0))

    def logpdf(self, y: ArrayLike) -> Floats:
        point = as_floats("y", y)
        inside = np.where(np.isfinite(point), self._clipped(point), 0.0)
        density = self.base.logpdf(inside) - self._log_within()
        return np.where((point < self.support.low) | (point > self.support.high), -np.inf, density)

    def point(self, tail: Tail) -> Floats:
        low, high, within = self.support.low, self.support.high, self._log_within()
        # probabilities between the quantile and each bound, and the tails of the base beyond it
        below, above = (within + log for log in tail.both())
        lower = np.logaddexp(below, self.base.logcdf(low))
        higher = np.logaddexp(above, self.base.logsf(high, left=True))
        found = self.base.point(Tail.smaller(np.minimum(lower, 0.0), np.minimum(higher, 0.0)))
        # next to a bound the digits of the difference to its tail are lost, but the density is even
        for bound, sign, own, other in ((low, 1, below, above), (high, -1, above, below)):
            if np.isfinite(bound):
                share, density = own - self.base.tail(bound).near().log, self.base.logpdf(bound)
                # at an atom, and where a density begins with 0: next to nothing
                length = np.exp(own - np.maximum(density, -700.0)) * ~np.isneginf(density)
                near = bound + sign * length
                with np.errstate(invalid="ignore", over="ignore"):
                    change = np.abs(self.base.logpdf(near) - density)
                    is_even = ~(change > np.minimum(ROUNDING * np.exp(-share), 1.0))
                found = np.where((share < LEAST_SHARE) & (own <= other) & is_even, near, found)
        return np.clip(found, low, high)


# --- an atom at one end of the range (outcomes: 4.2)

End = Literal["low", "high"]
"""End of the range at which an atom is."""


class Hurdle(TwoSided, chance=0, positive=0, at=None, end=None):
    """Distributions of an outcome that is at an end of its range, or beyond it.

    With probability `chance` the outcome is `at`, otherwise it has the distribution `positive`.

    Parameters
    ----------
    chance : array-like
        Probabilities of the atom, 0 to 1; broadcasts against `positive` to the batch shape.
    positive : Distribution
        Continuous distribution of the other outcomes, given that they are not at the atom.
    at : float, default 0
        Value of the atom, units of `y`.
    end : {"low", "high"}, default "low"
        End of the range at which the atom is: `at` is below or above all other outcomes.

    Raises
    ------
    InputError
        If `positive` has atoms, a chance is not a probability, or the shapes do not match.

    Examples
    --------
    Claims are zero with a probability of 0.7:

    >>> from evenhand.distributions import Normal, Support, Transformed
    >>> size = Transformed(Normal([5.0], 1.0), Support(low=0.0))
    >>> claims = Hurdle([0.7], size)
    >>> claims.cdf(0, left=True), claims.cdf(0).round(3), claims.ppf(0.85).round(1)
    (array([0.]), array([0.7]), array([148.4]))
    """

    inner = "positive"
    kind = OutcomeKind.HURDLE

    def __init__(
        self, chance: ArrayLike, positive: Distribution, at: float = 0.0, end: End = "low"
    ) -> None:
        self.chance = check_probabilities("chance", chance)
        check_no_atoms("positive", positive)
        check_choice("end", end, ("low", "high"))
        self.positive, self.at, self.end = positive, float(batch_array("at", at)), end
        joint_shape(chance=self.chance.shape, positive=positive.batch_shape)

    @property
    def has_mean(self) -> bool:  # type: ignore[override]
        """Whether the mean of the continuous part needs no quantiles."""
        return self.positive.has_mean

    @property
    def _logs(self) -> Pair:
        """Logarithms of the probabilities of the atom and of the continuous part."""
        with np.errstate(divide="ignore"):
            return np.log(self.chance), np.log1p(-self.chance)

    def _side(self, y: ArrayLike, *, upper: bool, left: bool = False, log: bool = False) -> Floats:
        point, (atom, rest) = np.asarray(y), self._logs
        part = rest + self.positive._side(y, upper=upper, log=True)
        is_up_to = point > self.at if left else point >= self.at
        has_atom = is_up_to ^ upper
        # nothing is beyond the atom: links would turn a part of 1e-13 there into one of 1e-2
        alone = part - np.inf if upper == (self.end == "high") else part
        found = np.where(has_atom, np.minimum(np.logaddexp(atom, part), 0.0), alone)
        return found if log else np.exp(found)

    def logpdf(self, y: ArrayLike) -> Floats:
        """Log density of the continuous part, `-inf` at the atom and beyond it."""
        density = self._logs[1] + self.positive.logpdf(y)
        is_outside = np.less_equal if self.end == "low" else np.greater_equal
        return np.where(is_outside(y, self.at), -np.inf, density)

    def point(self, tail: Tail) -> Floats:
        atom, rest = self._logs
        is_high = self.end == "high"
        # the tail that contains the atom, and the other one
        near, far = tail.both()[:: -1 if is_high else 1]
        # within the tolerance, as for lattices: `ppf(cdf(at))` is `at`
        is_atom = np.where(
            tail.upper == is_high, near <= atom + LEVEL_TOLERANCE, far >= rest - LEVEL_TOLERANCE
        ) & (self.chance > 0)
        with np.errstate(invalid="ignore"):
            gap = np.where(self.chance > 0, log1mexp(np.minimum(atom - near, 0.0)), 0.0)
            part = Tail.smaller(*(np.minimum(log - rest, 0.0) for log in (near + gap, far)))
        part = Tail(np.where(is_atom, np.log(0.5), part.log), part.upper ^ is_high)
        return np.where(is_atom, self.at, self.positive.point(part))

    def nodes(self, first: Floats, last: Floats, scores: Floats) -> Pair:
        shape = (*self.batch_shape, scores.size)
        inner = np.broadcast_to(self.positive.quantile_table(scores), shape)
        atom = np.full((*self.batch_shape, 1), self.at)
        # sorted, as the part of a model may reach beyond the atom
        return (np.sort(np.concatenate((atom, inner), axis=-1), axis=-1),) * 2

    def mean(self) -> Floats:
        return self.at + (1 - self.chance) * (self.positive.mean() - self.at)

    def std(self) -> Floats:
        distance = self.positive.mean() - self.at
        within = (1 - self.chance) * self.positive.std() ** 2
        return np.sqrt(within + self.chance * (1 - self.chance) * distance**2)

    def expectation(self, function: Function, *, is_smooth: bool = False) -> Floats:
        atom = function(np.full((*self.batch_shape, 1), self.at))[..., 0]
        part = self.positive.expectation(function, is_smooth=is_smooth)
        return self.chance * atom + (1 - self.chance) * part

    def crps(self, y: ArrayLike) -> Floats:
        # E|Y - y| - E|Y - Y'| / 2 of a mixture with an atom; the mean difference of the part is
        # twice its mean distance from the atom less its CRPS there
        point = as_floats("y", y)
        share = 1 - self.chance
        part = self.positive.crps(point) - self.chance * self.positive.crps(self.at)
        return self.chance * np.abs(point - self.at) + share * part


def as_hurdle(batch: Distribution) -> Hurdle:
    """Return hurdle distributions as a `Hurdle`, also where they are wrapped.

    A monotone map of the CDF of a hurdle is a hurdle with another chance and another part.
    """
    if isinstance(batch, Hurdle):
        return batch
    inner = found_inside(batch, Hurdle)
    assert inner is not None
    bounds = Support(low=inner.at) if inner.end == "low" else Support(high=inner.at)
    return Hurdle(np.exp(batch.log_mass(inner.at)), Truncated(batch, bounds), inner.at, inner.end)


# --- maps of tails


class Mapped(Distribution):
    """Distributions whose CDF is an increasing map of the CDF of `base`."""

    inner = "base"
    base: Distribution

    @abstractmethod
    def forward(self, tail: Tail) -> Tail:
        """Return the tails to which smaller tails of the base are mapped."""

    @abstractmethod
    def backward(self, tail: Tail) -> Tail:
        """Return the tails of the base that are mapped to smaller tails."""

    @abstractmethod
    def log_slope(self, tail: Tail) -> Floats:
        """Return the log derivative of the map at smaller tails of the base."""

    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        return self.forward(self.base.tail(y, left=left).near())

    def point(self, tail: Tail) -> Floats:
        return self.base.point(self.backward(tail.near()))

    def _sloped(self, y: ArrayLike, log: Floats) -> Floats:
        """Return log densities or log masses of the base at outcomes times the slope of the map."""
        tail = self.base.tail(y).near()
        # where there are none, links may have no slope
        at = Tail(np.where(np.isneginf(log), LOG_HALF, tail.log), tail.upper)
        return log + self.log_slope(at)

    def logpdf(self, y: ArrayLike) -> Floats:
        return self._sloped(y, self.base.logpdf(y))

    def log_mass(self, y: ArrayLike) -> Floats:
        found, share = log_between(self.tail(y, left=True), self.tail(y))
        is_small = share < LEAST_SHARE
        if not is_small.any():
            return found
        # small atoms between large tails, whose difference has few digits
        mass = np.where(is_small, self.base.log_mass(y), -np.inf)
        return np.where(is_small, self._sloped(y, mass), found)

    def _measured(self, measure: Callable[..., Floats], *arguments: Floats) -> Floats:
        if not self.is_lattice:
            return super()._measured(measure, *arguments)
        shape, k = self.batch_shape, len(self.batch_shape)
        found, *full = map(np.array, np.broadcast_arrays(np.empty(shape), *arguments))
        first, last = self._span
        # rows with about as many values together, and not too many of them
        sizes = np.minimum(last - first, MOST_VALUES).reshape(len(first), -1).max(axis=-1)
        sizes = 2 ** (np.ceil(3 * np.log2(sizes + 1)) / 3)
        order = np.argsort(sizes, kind="stable")
        group = np.cumsum(sizes[order] * np.prod(shape[1:])) // CACHED
        breaks = np.flatnonzero(np.diff(group) + np.diff(sizes[order])) + 1
        for rows in np.split(order, breaks):
            at: Any = (..., rows, *(slice(None),) * (k - 1))
            knots = self.take(rows)._lattice_knots(first[rows], last[rows])
            found[at] = measure(knots, *(array[at] for array in full))
        return found

    def span(self, lower: Floats, upper: Floats) -> Pair:
        # the tails of the base at which the distributions of all draws of a row end
        low = self.backward(Tail(lower, np.array(False))).on(upper=False)
        high = self.backward(Tail(upper, np.array(True))).on(upper=True)
        draws = tuple(range(1, len(self.batch_shape)))
        return self.base.span(*(log.min(axis=draws, keepdims=True) for log in (low, high)))

    def nodes(self, first: Floats, last: Floats, scores: Floats) -> Pair:
        return self.base.nodes(first, last, scores)


# --- links

FINE_REACH = 37.0
"""Largest normal score at which a table has its fine step; up to 1000 wider steps go beyond."""

MANY_DRAWS = 8192
LEAST_ERROR = 0.02
"""Numbers of draws and mean errors from which a link, smooth in the draw, is tabulated."""

DRAWN_QUANTILES = 8
LEAST_QUANTILES = 4096
"""Quantiles of each base in a mean over draws (even), and of all bases together, at least."""

TAIL_NODES = np.geomspace(1e-15, 1 / 16, 1200)
"""Draws near 0, mirrored near 1, at which a link is tabulated."""


class Randomized(Mapped, base=0, link=None, r=0):
    """Distributions `h[x, r](y) = H(G_x(y); r)` of a base `G`, a link and a draw per distribution.

    The quantiles are `G^-1(K(p; r))` and the log density is `log g(y) - log k(C; r)` at
    `C = H(G(y); r)`.

    Parameters
    ----------
    base : Distribution
        Deterministic forecast.
    link : Link
        Link that randomizes the forecast.
    r : array-like
        Draws strictly between 0 and 1; base and draws broadcast to the batch shape.

    Examples
    --------
    >>> from evenhand.distributions import Normal
    >>> from evenhand.links import Gaussian
    >>> Randomized(Normal([0.0], 1.0), Gaussian(0.2), 0.5).std().round(2)
    array([1.4])
    """

    def __init__(self, base: Distribution, link: Link, r: ArrayLike) -> None:
        self.base, self.link, self.r = base, link, check_draws(r)
        joint_shape(base=base.batch_shape, r=self.r.shape)

    def _by_draw(self, evaluate: Callable[[Floats, Floats, Mask], Floats], tail: Tail) -> Floats:
        """Evaluate a function of tails, and of the draws as seen from their side, in blocks."""

        def of_block(log: Floats, upper: Mask, r: Floats) -> Floats:
            return evaluate(log, np.where(upper, 1 - r, r), upper)

        return in_blocks(of_block, *tail, self.r, width=TEMPORARIES)

    def forward(self, tail: Tail) -> Tail:
        log = self._by_draw(lambda log, r, _: self.link.log_ppf_lower(log, r), tail)
        return Tail(log, np.broadcast_to(tail.upper, log.shape))

    def backward(self, tail: Tail) -> Tail:
        log, draws = np.broadcast_arrays(tail.log, np.where(tail.upper, 1 - self.r, self.r))
        # both tails in one call, whose cost for one person does not depend on their number
        both = np.array((log, log1mexp(log))), np.array((draws, 1 - draws))
        near, far = self.link.log_cdf_lower(*both)
        turned = near > far
        return Tail(np.where(turned, far, near), tail.upper ^ turned)

    def log_slope(self, tail: Tail) -> Floats:
        link = self.link
        return self._by_draw(
            lambda log, r, _: -link.log_pdf_lower(link.log_ppf_lower(log, r), r), tail
        )

    def _side(self, y: ArrayLike, *, upper: bool, left: bool = False, log: bool = False) -> Floats:
        if log:
            return super()._side(y, upper=upper, left=left, log=True)
        tail = self.base.tail(y, left=left).near()
        return self._by_draw(lambda log, r, side: self.link.ppf_lower(log, r, side ^ upper), tail)

    def expectation(self, function: Function, *, is_smooth: bool = False) -> Floats:
        if self.has_atoms:
            return super().expectation(function)
        # the function is evaluated once for all draws of a person
        values = function(self._knots.values)
        return np.maximum(np.einsum("...q,...q->...", self._weights, values), values.min(axis=-1))

    @cached_property
    def _weights(self) -> Floats:
        """Weights of the knots in expectations: slopes of the CDF by differences of order h^4."""
        levels = self._knots.left
        # two more nodes on each side, at which the CDF is 0 and 1
        ends = np.zeros((*levels.shape[:-1], 2))
        padded = np.concatenate((ends, levels, ends + 1), axis=-1)
        weights = ndimage.correlate1d(padded, np.array([1, -8, 0, 8, -1]) / 12)[..., 2:-2]
        return weights / weights.sum(axis=-1, keepdims=True)

    def mean_over_draws(self, random_state: RandomState = None) -> Floats:
        """Mean of each base's forecasts over a uniform draw, shape of the base.

        It does not depend on the draws of this batch. The mixture of forecasts over draws is the
        base transformed by a fixed map (`Link.averaged_score`). Its mean is estimated from a few
        random quantiles, one in each of equal cells, in symmetric pairs. The estimate is unbiased,
        and exact for symmetric bases; for skewed bases its standard error is about 2% to 10% of the
        standard deviation.

        Parameters
        ----------
        random_state : int, generator or None
            Seed for the quantiles.
        """
        base, link, random = self.base, self.link, generator(random_state)
        if link.alpha == 1:
            return base.mean()
        if isinstance(base, LocationScale):  # usually all people share one residual distribution
            return base.loc + base.scale * Randomized(base.base, link, 0.5).mean_over_draws(random)
        n = math.prod(base.batch_shape)
        n_pairs = max(DRAWN_QUANTILES, LEAST_QUANTILES // max(n, 1)) // 2
        low = special.ndtri(jittered(n, n_pairs, random) / 2)
        scores = link.averaged_score(np.concatenate((low, -low), axis=-1))
        scores = scores.reshape(*base.batch_shape, -1)
        return base.expand().point(Tail.at_score(scores)).mean(axis=-1)

    def nodes(self, first: Floats, last: Floats, scores: Floats) -> Pair:
        return super().nodes(first, last, _scores_of(self.link))

    def _smooth_knots(self) -> Knots:
        # forecasts with one draw per person are the served ones: they must not depend on the
        # number of people in the batch
        is_one = self.r.ndim < 2 or self.r.shape[-1] == 1
        if is_one or self.r.size <= MANY_DRAWS or self.link.mean_error < LEAST_ERROR:
            levels = _levels_at(self.link, self.r)
        else:
            # for many draws interpolate in a table of the link, which changes means and CRPS by at
            # most 3e-4 sd
            levels = _tabulated(self.link)(np.clip(self.r, TAIL_NODES[0], 1 - TAIL_NODES[0]))
        # quantiles of the base do not depend on the draw, and randomized levels not on the person
        return Knots(self.base.quantile_table(_scores_of(self.link)), levels, levels)


def _scores_of(link: Link) -> Floats:
    """Return the normal scores of the base's quantiles in a table."""
    # at extreme draws a link with a small mean error moves probability far into the tails of the
    # base: the table leaves out at most 1e-12 of it at any draw, not only at those in the batch,
    # as a person's moments must not depend on the draws of others
    reach = max(GRID_REACH, link.reach(1e-12))
    step = max(min(GRID_STEP, link.mean_error / 1.5), 1 / 128)
    scores = score_grid(min(FINE_REACH, reach), step)
    if reach > FINE_REACH:
        n_steps = min(1000, math.ceil((reach - FINE_REACH) / step))
        further = np.linspace(FINE_REACH, reach, n_steps + 1)[1:]
        scores = np.concatenate((-further[::-1], scores, further))
    return scores


def _levels_at(link: Link, r: Floats) -> Floats:
    """Return the randomized CDF at the base's probabilities of a table for each draw."""
    tail, draws = Tail.at_score(_scores_of(link)), r[..., None]
    log = link.log_ppf_lower(tail.log, np.where(tail.upper, 1 - draws, draws))
    return Tail(log, tail.upper).plain(upper=False)


# forecasts are scored in blocks of rows, all of which need the same 7 MB
@lru_cache(maxsize=2)
def _tabulated(link: Link) -> interpolate.BSpline:
    """Return the randomized CDF as a function of the draw, linear between nodes."""
    nodes = np.unique(np.concatenate((TAIL_NODES, np.arange(65, 960) / 1024, 1 - TAIL_NODES)))
    return interpolate.make_interp_spline(nodes, _levels_at(link, nodes), k=1)


# --- recalibration maps


class Recalibrated(Mapped, base=0, maps=None, which=0):
    """Distributions with the CDF `g(F(y))` for a base `F` and an increasing, piecewise linear `g`.

    The density is that of the base times the slope of `g`. Below the first inner knot and above the
    last inner knot each tail is the base's tail times a constant, because `g` is linear there and
    passes through (0, 0) and (1, 1).

    Parameters
    ----------
    base : Distribution
        Forecast to recalibrate.
    levels : array-like of shape (k,) or (n_maps, k)
        Probabilities of the base at the knots, strictly increasing from 0 to 1.
    values : array-like of shape (k,) or (n_maps, k)
        Recalibrated probabilities at the knots, strictly increasing from 0 to 1.
    which : array-like of int, optional
        Number of the map of each distribution, 0 to n_maps - 1; broadcasts against the batch. If
        None, all distributions share one map of shape (k,).

    Raises
    ------
    InputError
        If levels or values do not increase strictly from 0 to 1, `which` is not the number of a
        map, or the shapes do not match.

    Examples
    --------
    Half of the outcomes were in the lowest fifth of the base:

    >>> from evenhand.distributions import Normal
    >>> batch = Recalibrated(Normal([0.0], 1.0), levels=[0, 0.2, 1], values=[0, 0.5, 1])
    >>> batch.cdf(0.0), batch.ppf(0.5).round(3)
    (array([0.6875]), array([-0.842]))
    """

    recorded: ClassVar[dict[str, int | None]] = {"base": 0, "levels": 1, "values": 1}

    def __init__(
        self,
        base: Distribution,
        levels: ArrayLike,
        values: ArrayLike,
        which: ArrayLike | None = None,
    ) -> None:
        knots = broadcast(
            levels=_check_knots("levels", levels), values=_check_knots("values", values)
        )
        # the maps for lower tails, and then those for upper tails, mirrored at (1/2, 1/2), in which
        # levels above 1/2 keep their digits as 1 - level
        self.maps = tuple(np.concatenate((rows, 1 - rows[:, ::-1])) for rows in knots)
        number = np.asarray(0 if which is None else which)
        n_maps = len(knots[0])
        is_wrong = number.dtype.kind not in "iu" or (number < 0).any() or (number >= n_maps).any()
        if is_wrong or (which is None and n_maps > 1):
            rule = f"be numbers of maps, integers from 0 to {n_maps - 1}"
            raise bad_input("which", rule, repr(which)[:80])
        self.base, self.which = base, number.astype(int, copy=False)
        joint_shape(base=base.batch_shape, which=self.which.shape)

    @property
    def levels(self) -> Floats:
        """Probabilities of the base at the knots of the map of each distribution."""
        return self.maps[0][self.which]

    @property
    def values(self) -> Floats:
        """Recalibrated probabilities at the knots of the map of each distribution."""
        return self.maps[1][self.which]

    def _map(self, tail: Tail, levels: Floats, values: Floats) -> tuple[Tail, Floats]:
        """Return mapped tails, the smaller ones, and the log slope of the map."""
        row = self.which + tail.upper * (len(levels) // 2)
        u = np.exp(tail.log)
        cell = np.clip(count_below(levels, u, row=row), 1, levels.shape[-1] - 1)
        left, right, low, high = (
            entries(array, cell - at, row) for array in (levels, values) for at in (1, 0)
        )
        slope = (high - low) / (right - left)
        # both are computed from the ends of the cell, so that neither is a difference of large
        # numbers
        near = low + slope * (u - left)
        far = np.maximum((1 - high) + slope * (right - u), 0.0)
        turned = far < near
        log, log_slope = safe_log(np.where(turned, far, near)), np.log(slope)
        # in the first cell the map is a line through 0, and u may be below the smallest float
        log = np.where((cell == 1) & ~turned, log_slope + tail.log, log)
        return Tail(np.minimum(log, 0.0), tail.upper ^ turned), log_slope

    def forward(self, tail: Tail) -> Tail:
        return self._map(tail, *self.maps)[0]

    def backward(self, tail: Tail) -> Tail:
        return self._map(tail, *self.maps[::-1])[0]

    def log_slope(self, tail: Tail) -> Floats:
        return self._map(tail, *self.maps)[1]


def _check_knots(name: str, knots: ArrayLike) -> Floats:
    """Return the knots of maps, (n_maps, k)."""
    rule = "have two or more knots that increase strictly along the last axis"
    array = np.atleast_2d(increasing_array(name, knots, rule, 2))
    if (array[..., 0] != 0).any() or (array[..., -1] != 1).any():
        got = f"{array[..., 0].max():g} to {array[..., -1].min():g}"
        raise bad_input(name, "begin at 0 and end at 1", got, "give a fraction: 0.9, not 90")
    return array


# --- continuous parts of hurdles

NEGLIGIBLE = float(np.log(1e-12))
"""Log probability up to which a part may reach beyond the atom without being truncated."""


def beyond(part: Distribution, at: float, end: End) -> Distribution:
    """Return a continuous part, truncated if it reaches beyond the atom.

    The base of a randomized part is truncated, so that its PITs remain those of the link.
    """
    if isinstance(part, Randomized):
        base = beyond(part.base, at, end)
        return part if base is part.base else Randomized(base, part.link, part.r)
    check_no_atoms("positive", part)
    outside = part.logcdf(at) if end == "low" else part.logsf(at)
    if (outside <= NEGLIGIBLE).all():
        return part
    return Truncated(part, Support(low=at) if end == "low" else Support(high=at))


# --- rows of several families

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

    def __init__(self, parts: Sequence[tuple[ArrayLike, Distribution]]) -> None:
        self.parts: list[Part] = [(np.asarray(rows, dtype=int), batch) for rows, batch in parts]
        kinds = sorted({str(batch.outcome_kind) for _, batch in self.parts})
        if len(kinds) > 1:
            got = f"several kinds ({', '.join(kinds)})"
            raise bad_input("parts", "describe outcomes of one kind", got)

    @property
    def outcome_kind(self) -> OutcomeKind:
        return self.parts[0][1].outcome_kind

    @cached_property
    def batch_shape(self) -> tuple[int, ...]:
        return (sum(rows.size for rows, _ in self.parts), *self.parts[0][1].batch_shape[1:])

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

    def _by_part(self, evaluate: Callable[..., Any], *arguments: ArrayLike) -> Floats:
        """Evaluate each batch at its rows of arguments that broadcast against the whole batch."""
        every, *full = np.broadcast_arrays(np.empty(self.batch_shape), *arguments)
        axis = every.ndim - len(self.batch_shape)
        parts = ((batch, [array.take(rows, axis) for array in full]) for rows, batch in self.parts)
        return self._in_order([evaluate(batch, *some) for batch, some in parts], axis)

    def _in_order(self, found: Sequence[Any], axis: int) -> Any:
        """Join arrays, or tuples of arrays, of the batches along the axis of rows."""
        if isinstance(found[0], tuple):
            return tuple(self._in_order(arrays, axis) for arrays in zip(*found, strict=True))
        order = np.argsort(np.concatenate([rows for rows, _ in self.parts]))
        return np.concatenate(found, axis).take(order, axis)

    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        return Tail(*self._by_part(lambda batch, some: batch.tail(some, left=left), y))

    def point(self, tail: Tail) -> Floats:
        return self._by_part(lambda batch, *some: batch.point(Tail(*some)), *tail)

    def nodes(self, first: Floats, last: Floats, scores: Floats) -> Pair:
        inner = [batch.nodes(first[rows], last[rows], scores) for rows, batch in self.parts]
        size = max(ends.shape[-1] for _, ends in inner)
        padded = []
        for (_, batch), both in zip(self.parts, inner, strict=True):
            place = np.minimum(np.arange(size), both[0].shape[-1] - 1)
            shape = (*batch.batch_shape, size)
            padded.append(tuple(np.broadcast_to(array[..., place], shape) for array in both))
        return self._in_order(padded, 0)

    def logpdf(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, some: batch.logpdf(some), y)

    def log_mass(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, some: batch.log_mass(some), y)

    def mean(self) -> Floats:
        return self._by_part(lambda batch: batch.mean())

    def std(self) -> Floats:
        return self._by_part(lambda batch: batch.std())

    def crps(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, some: batch.crps(some), y)


# --- records

Record = dict[str, Any]


def _concrete(kind: Any) -> list[type[Distribution]]:
    """Return the classes below one that are not abstract."""
    below = [found for child in kind.__subclasses__() for found in _concrete(child)]
    return below if inspect.isabstract(kind) else [kind, *below]


KINDS = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind for kind in _concrete(Distribution)
}
"""Distributions of the package by their names in records."""


def to_records(distribution: Distribution) -> list[Record]:
    """Return the parameters of each distribution of a batch, as JSON values.

    Parameters
    ----------
    distribution : Distribution
        Batch of shape (n,).

    Returns
    -------
    list of dict
        A record for each distribution, which does not depend on the others of the batch: `family`
        and its parameters, finite numbers. The families of the package and their wrappers are
        stored exactly.

    Raises
    ------
    InputError
        If the batch has another shape, or its family is not one of the package.

    Examples
    --------
    >>> from evenhand.distributions import Normal
    >>> records = to_records(Normal([0.0, 10.0], 2.0))
    >>> records[1]
    {'family': 'normal', 'loc': 10.0, 'scale': 2.0}
    >>> from_records(records).cdf(10.0).round(3)
    array([1. , 0.5])
    """
    shape = distribution.batch_shape
    if len(shape) != 1:
        remedy = "give one draw per person"
        raise bad_input("distribution", "have one axis, shape (n,)", f"shape {shape}", remedy)
    return _records(distribution, shape[0])


def _records(batch: Distribution, n: int) -> list[Record]:
    """Return the records of a batch that broadcasts to shape (n,)."""
    if isinstance(batch, Joined):
        found: dict[int, Record] = {}
        for rows, part in batch.parts:
            found |= zip(rows.tolist(), _records(part, rows.size), strict=True)
        # a batch of one row is shared by all
        return [found[row if len(found) > 1 else 0] for row in range(n)]
    # the exact type: a subclass may compute another distribution from the same arrays
    family = next((name for name, kind in KINDS.items() if type(batch) is kind), None)
    if family is None:
        raise bad_input("distribution", "be a family of the package", type(batch).__name__)
    columns: dict[str, Sequence[Any]] = {"family": [family] * n}
    for name, dims in batch.recorded.items():
        part = getattr(batch, name)
        if isinstance(part, Distribution):
            columns[name] = _records(part, n)
        elif dims is not None:
            columns[name] = np.broadcast_to(part, (n, *part.shape[part.ndim - dims :])).tolist()
        elif isinstance(part, Link):
            columns |= {"link": [part.name] * n, "alpha": [part.alpha] * n}
        else:
            columns[name] = [part.to_state() if isinstance(part, Support) else part] * n
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if not isinstance(batch, Truncated):
        return records
    # the part of a hurdle is truncated in all rows of a batch if one row needs it: the others
    # have the record of the base
    cut = zip(records, _is_cut(batch, n), strict=True)
    return [record if is_cut else record["base"] for record, is_cut in cut]


def _is_cut(batch: Truncated, n: int) -> Mask:
    """Return whether truncation changes each distribution."""
    support = batch.support
    outside = np.maximum(batch.base.logcdf(support.low), batch.base.logsf(support.high, left=True))
    return np.broadcast_to((outside > NEGLIGIBLE) | (support.edge > 0), n)


def from_records(records: Sequence[Mapping[str, Any]]) -> Distribution:
    """Rebuild a batch of distributions, shape (n,), from the output of `to_records`.

    Parameters
    ----------
    records : sequence of dict
        One record per distribution; their families may differ, but not their kind of outcome.

    Raises
    ------
    InputError
        If there are no records, or one of them is not the output of `to_records`.

    Examples
    --------
    >>> mixed = [{"family": "normal", "loc": 1.0, "scale": 1.0},
    ...          {"family": "samples", "values": [1.0, 2.0, 3.0]}]
    >>> from_records(mixed).mean()
    array([1., 2.])
    """
    if len(records) == 0:
        raise InputError("records is empty; give at least one")
    rows: dict[Any, list[int]] = {}
    parts: list[tuple[Ints, Distribution]] = []
    row = 0
    try:
        for row, record in enumerate(records):
            rows.setdefault(_form(record), []).append(row)
        for row, *others in rows.values():
            chosen = [row, *others]
            parts.append((np.array(chosen), _built([records[i] for i in chosen])))
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        place = f"records[{row}]"
        raise InputError(f"{place} is not the record of a distribution ({reason})") from error
    return parts[0][1] if len(parts) == 1 else Joined(parts)


def _form(record: Mapping[str, Any]) -> Any:
    """Return what records must have in common to be one batch."""
    kind = KINDS[check_choice("family", record["family"], tuple(KINDS))]
    form: list[Any] = [kind]
    for name, dims in kind.recorded.items():
        part = record[name]
        if name == kind.inner:
            form.append(_form(part))
        elif dims is None:
            form.append(tuple(sorted(part.items())) if isinstance(part, Mapping) else part)
        elif dims:
            form.append(len(part))
    return (*form, record.get("alpha"))


def _built(records: Sequence[Mapping[str, Any]]) -> Distribution:
    first = records[0]
    kind: Any = KINDS[first["family"]]
    arguments: list[Any] = []
    for name, dims in kind.recorded.items():
        column = [record[name] for record in records]
        if name == kind.inner:
            arguments.append(_built(column))
        elif dims is not None:
            arguments.append(np.array(column, dtype=float))
        elif name == "link":
            arguments.append(make_link(first["link"], first["alpha"]))
        else:
            arguments.append(Support.from_state(column[0]) if name == "support" else column[0])
    # each row has its own map
    return kind(*arguments, *[np.arange(len(records))] * (kind is Recalibrated))
