"""Distributions with an atom at one end of the range and a continuous part (outcomes: 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand._kinds import OutcomeKind
from evenhand._logarithms import log1mexp
from evenhand._validate import Floats, Mask, bad_input, check_choice
from evenhand.distributions.base import Distribution, joint_shape, probability_array
from evenhand.distributions.lattice import LEVEL_TOLERANCE
from evenhand.distributions.randomized import Randomized
from evenhand.distributions.support import Support, Truncated
from evenhand.distributions.wrappers import Wrapper, check_no_atoms
from evenhand.draws import RandomState

End = Literal["low", "high"]
"""End of the range at which an atom is."""

NEGLIGIBLE = np.log(1e-12)
"""Log probability up to which a part may reach beyond the atom without being truncated."""


class Hurdle(Wrapper):
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
    >>> claims.cdf_left(0), claims.cdf(0).round(3), claims.ppf(0.85).round(1)
    (array([0.]), array([0.7]), array([148.4]))
    """

    event_dims: ClassVar[dict[str, int]] = {"chance": 0}
    inner: ClassVar[str] = "positive"
    shared: ClassVar[tuple[str, ...]] = ("at", "end")

    def __init__(
        self, chance: ArrayLike, positive: Distribution, at: float = 0.0, end: End = "low"
    ) -> None:
        self.chance = probability_array("chance", chance)
        check_no_atoms("positive", positive)
        if not np.isfinite(at):
            raise bad_input("at", "be finite", at)
        self.positive = positive
        self.at = float(at)
        check_choice("end", end, ("low", "high"))
        self.end: End = end
        joint_shape(chance=self.chance.shape, positive=positive.batch_shape)

    @property
    def outcome_kind(self) -> OutcomeKind:
        return OutcomeKind.HURDLE

    @property
    def has_mean(self) -> bool:  # type: ignore[override]
        """Whether the mean of the continuous part needs no quantiles."""
        return self.positive.has_mean

    @property
    def _logs(self) -> tuple[Floats, Floats]:
        """Logarithms of the probabilities of the atom and of the continuous part."""
        with np.errstate(divide="ignore"):
            return np.log(self.chance), np.log1p(-self.chance)

    def _mixed(self, log_tail: Floats, with_atom: Mask) -> Floats:
        """Return the log of a tail from that of the continuous part."""
        atom, rest = self._logs
        return np.minimum(np.logaddexp(np.where(with_atom, atom, -np.inf), rest + log_tail), 0.0)

    def logcdf(self, y: ArrayLike) -> Floats:
        return self._mixed(self.positive.logcdf(y), np.asarray(y) >= self.at)

    def logsf(self, y: ArrayLike) -> Floats:
        return self._mixed(self.positive.logsf(y), np.asarray(y) < self.at)

    def logcdf_left(self, y: ArrayLike) -> Floats:
        return self._mixed(self.positive.logcdf(y), np.asarray(y) > self.at)

    def logsf_left(self, y: ArrayLike) -> Floats:
        return self._mixed(self.positive.logsf(y), np.asarray(y) <= self.at)

    def log_mass(self, y: ArrayLike) -> Floats:
        shape = np.broadcast_shapes(np.shape(y), self.batch_shape)
        return np.broadcast_to(
            np.where(np.asarray(y) == self.at, self._logs[0], -np.inf), shape
        ).copy()

    def logpdf(self, y: ArrayLike) -> Floats:
        """Log density of the continuous part, `-inf` at the atom."""
        density = self._logs[1] + self.positive.logpdf(y)
        return np.where(np.asarray(y) == self.at, -np.inf, density)

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        tail, is_upper = np.asarray(log_p, dtype=np.float64), np.asarray(upper)
        atom, rest = self._logs
        # `near` is the tail on the side of the atom, `far` the tail on the other side
        is_near = is_upper if self.end == "high" else ~is_upper
        other = log1mexp(np.minimum(tail, 0.0))
        near, far = np.where(is_near, tail, other), np.where(is_near, other, tail)
        # within the tolerance, as for lattices: `ppf(cdf(at))` is `at`
        is_atom = np.where(
            is_near, near <= atom + LEVEL_TOLERANCE, far >= rest - LEVEL_TOLERANCE
        ) & (self.chance > 0)
        with np.errstate(invalid="ignore"):
            part = np.minimum(far - rest, 0.0)
            # the part's tail on the side of the atom keeps its digits where it is the smaller one
            gap = np.where(self.chance > 0, log1mexp(np.minimum(atom - near, 0.0)), 0.0)
            near_part = np.minimum(near + gap - rest, 0.0)
        is_known = is_near & (near_part < part)
        log_part = np.where(is_atom, np.log(0.5), np.where(is_known, near_part, part))
        side = (self.end == "high") ^ ~is_known
        found = self.positive.quantile_from_tail(log_part, side)
        return np.where(is_atom, self.at, found)

    def nodes(self, reach: float, step: float) -> Floats:
        inner = self.positive.nodes(reach, step)
        inner = np.broadcast_to(inner, (*self.batch_shape, inner.shape[-1]))
        atom = np.full((*self.batch_shape, 1), self.at)
        # sorted, as the part of a model may reach beyond the atom
        return np.sort(np.concatenate((atom, inner), axis=-1), axis=-1)

    def mean(self) -> Floats:
        return np.asarray(self.at + (1 - self.chance) * (self.positive.mean() - self.at))

    def mean_over_draws(self, random_state: RandomState = None) -> Floats:
        """Mean of the forecasts over a uniform draw of the continuous part, as for `Randomized`.

        It does not depend on the draws of this batch; a batch without draws keeps its mean.
        """
        if not isinstance(self.positive, Randomized):
            return self.mean()
        part = self.positive.mean_over_draws(random_state)
        return np.asarray(self.at + (1 - self.chance) * (part - self.at))

    def std(self) -> Floats:
        distance = self.positive.mean() - self.at
        within = (1 - self.chance) * self.positive.std() ** 2
        return np.sqrt(within + self.chance * (1 - self.chance) * distance**2)

    def expectation(self, function: Callable[[Floats], Floats]) -> Floats:
        return self._mixed_expectation(function, self.positive.expectation(function))

    def smooth_expectation(self, function: Callable[[Floats], Floats]) -> Floats:
        return self._mixed_expectation(function, self.positive.smooth_expectation(function))

    def _mixed_expectation(self, function: Callable[[Floats], Floats], part: Floats) -> Floats:
        atom = function(np.full((*self.batch_shape, 1), self.at))[..., 0]
        return np.asarray(self.chance * atom + (1 - self.chance) * part)

    def crps(self, y: ArrayLike) -> Floats:
        # E|Y - y| - E|Y - Y'| / 2 of a mixture with an atom; the mean difference of the part is
        # twice its mean distance from the atom less its CRPS there
        point = np.asarray(y, dtype=np.float64)
        share = 1 - self.chance
        part = self.positive.crps(point) - self.chance * self.positive.crps(self.at)
        return np.asarray(self.chance * np.abs(point - self.at) + share * part)


def as_hurdle(batch: Distribution) -> Hurdle:
    """Return hurdle distributions as a `Hurdle`, also where they are wrapped.

    A monotone map of the CDF of a hurdle is a hurdle with another chance and another part.
    """
    if isinstance(batch, Hurdle):
        return batch
    inner: Any = batch
    while not isinstance(inner, Hurdle):
        inner = inner.base
    is_low = inner.end == "low"
    bounds = Support(low=inner.at) if is_low else Support(high=inner.at)
    return Hurdle(np.exp(batch.log_mass(inner.at)), Truncated(batch, bounds), inner.at, inner.end)


def beyond(part: Distribution, at: float, end: End) -> Distribution:
    """Return a continuous part, truncated if it reaches beyond the atom.

    The base of a randomized part is truncated, so that its PITs remain those of the link.
    """
    if isinstance(part, Randomized):
        base = beyond(part.base, at, end)
        return part if base is part.base else Randomized(base, part.link, part.r)
    outside = part.logcdf(at) if end == "low" else part.logsf(at)
    if (outside <= NEGLIGIBLE).all():
        return part
    return Truncated(part, Support(low=at) if end == "low" else Support(high=at))
