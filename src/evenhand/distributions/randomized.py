"""Randomized forecast `H(G(y); r)`: a link around any base distribution (method: links)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._logarithms import log1mexp
from evenhand._validate import Floats, Ints, Mask, check_draws
from evenhand.distributions import piecewise
from evenhand.distributions.base import (
    GRID_REACH,
    GRID_STEP,
    Distribution,
    joint_shape,
    score_grid,
)
from evenhand.distributions.lattice import LEAST_TAIL, LatticeSums
from evenhand.distributions.wrappers import LocationScale, TailMap
from evenhand.draws import RandomState, generator, jittered
from evenhand.links import Link

FINE_REACH = 37.0
"""Largest normal score at which a table has its fine step; up to 1000 wider steps go beyond."""

MANY_DRAWS = 8192
LEAST_ERROR = 0.02
"""A link is tabulated over the draw for more draws than this, if its mean error is at least this:
such a link is smooth in the draw."""

CACHED = 8192
"""Number of values in a temporary array when whole batches are evaluated."""

DRAWN_QUANTILES = 8
LEAST_QUANTILES = 4096
"""Number of quantiles of each base in a mean over draws (even), and smallest number for all bases
together."""

TAIL_NODES = np.geomspace(1e-15, 1 / 16, 1200)
"""Draws near 0, mirrored near 1, at which a link is tabulated."""


class Randomized(TailMap):
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
    >>> Randomized(Normal([0.0], 1.0), Gaussian.from_rho(0.6), 0.5).std().round(2)
    array([1.25])
    """

    event_dims: ClassVar[dict[str, int]] = {"r": 0}
    shared: ClassVar[tuple[str, ...]] = ("link",)

    def __init__(self, base: Distribution, link: Link, r: ArrayLike) -> None:
        self.base, self.link, self.r = base, link, check_draws(r)
        joint_shape(base=base.batch_shape, r=self.r.shape)

    def cdf(self, y: ArrayLike) -> Floats:
        return self._plain_tail(y, of_upper=False)

    def sf(self, y: ArrayLike) -> Floats:
        return self._plain_tail(y, of_upper=True)

    def _plain_tail(self, y: ArrayLike, *, of_upper: bool) -> Floats:
        def evaluate(tail: Floats, is_upper: Mask, r: Floats) -> Floats:
            return self.link.ppf_lower(tail, _drawn(r, is_upper), is_upper ^ of_upper)

        return piecewise.in_blocks(evaluate, CACHED, *self._tail(y), self.r)

    def _log_tail(self, tail: Floats, is_upper: Mask, *, of_upper: bool) -> Floats:
        def evaluate(tail: Floats, is_upper: Mask, r: Floats) -> Floats:
            turned = self.link.log_ppf_lower(tail, _drawn(r, is_upper))
            return np.where(is_upper == of_upper, turned, log1mexp(turned))

        return piecewise.in_blocks(evaluate, CACHED, tail, is_upper, self.r)

    def _log_slope(self, y: ArrayLike) -> Floats:
        def evaluate(tail: Floats, is_upper: Mask, r: Floats) -> Floats:
            draws = _drawn(r, is_upper)
            tail = np.where(np.isneginf(tail), np.log(0.5), tail)
            return -self.link.log_pdf_lower(self.link.log_ppf_lower(tail, draws), draws)

        return piecewise.in_blocks(evaluate, CACHED, *self._tail(y), self.r)

    def logpdf(self, y: ArrayLike) -> Floats:
        def evaluate(tail: Floats, is_upper: Mask, r: Floats, log_base: Floats) -> Floats:
            draws = _drawn(r, is_upper)
            is_outside = np.isneginf(log_base)
            if is_outside.any():  # outside the support of the base, where links have no density
                tail = np.where(is_outside, np.log(0.5), tail)
            return log_base - self.link.log_pdf_lower(self.link.log_ppf_lower(tail, draws), draws)

        return piecewise.in_blocks(evaluate, CACHED, *self._tail(y), self.r, self.base.logpdf(y))

    def quantile_from_tail(self, log_p: Floats, upper: Mask) -> Floats:
        draws = _drawn(self.r, np.asarray(upper))
        tail = np.broadcast_to(log_p, np.broadcast_shapes(np.shape(log_p), draws.shape))
        # both tails in one call, whose cost for one person does not depend on their number
        near, far = self.link.log_cdf_lower(
            np.array((tail, log1mexp(tail))), np.array((draws, 1 - draws))
        )
        turned = near > far
        return self.base.quantile_from_tail(np.where(turned, far, near), np.asarray(upper) ^ turned)

    @cached_property
    def _sums(self) -> LatticeSums | None:
        """Sums over the values of a lattice that has one distribution per row."""
        shape = self.batch_shape
        one_each = (*shape[:1], 1)[: len(shape)]
        flat = self.base.values_of_rows() if shape and self.base.batch_shape == one_each else None
        if flat is None:
            return None
        r = self.r.reshape(-1, self.r.shape[-1] if len(shape) == 2 else 1)
        lower, upper = (
            self.link.log_cdf_lower(np.full(draws.shape, LEAST_TAIL), draws).min(axis=-1)
            for draws in (r, 1 - r)
        )
        # one tail of the base, at which the forecasts of all draws of a person end
        lower, upper = (np.broadcast_to(tail, shape[:1]) for tail in (lower, upper))
        return LatticeSums(flat, lower, upper, _Turned(self.link, r), r.shape[-1])

    def expectation(self, function: Callable[[Floats], Floats]) -> Floats:
        if self.has_atoms:
            return super().expectation(function)
        # the function is evaluated once for all draws of a person
        values = function(self._cached_table[1])
        found = np.einsum("...q,...q->...", self._node_weights, values)
        return np.asarray(np.maximum(found, values.min(axis=-1)))

    def mean_over_draws(self, random_state: RandomState = None) -> Floats:
        """Mean of each base's forecasts over a uniform draw, shape of the base.

        It does not depend on the draws of this batch. The mixture of forecasts over draws is the
        base transformed by a fixed map (`Link.averaged_score`). Its mean is estimated from a few
        random quantiles, one in each of equal cells, in symmetric pairs. The estimate is unbiased,
        and exact for symmetric bases; for skewed bases its standard error is about 2% to 10% of the
        standard deviation. For bases with atoms it is an exact sum.

        Parameters
        ----------
        random_state : int, generator or None
            Seed for the quantiles.
        """
        if self.has_atoms:
            # exact sums, from the mean CDF over draws
            found = self._lattice_mean()
            if found is not None:
                return found
            levels, nodes = self.base.atom_table(self.nodes(GRID_REACH + 1, GRID_STEP))
            return piecewise.mean(self.link.mean_pit(np.clip(levels, 0, 1)), nodes)
        return _mean_over_draws(self.base, self.link, generator(random_state))

    def _lattice_mean(self) -> Floats | None:
        """Return `mean_over_draws` if the bases are narrow lattices, one for each row."""
        flat = self.base.values_of_rows()
        if flat is None:
            return None
        reach = max(GRID_REACH + 1, self.link.reach(1e-12))
        tail = np.full(flat.batch_shape, special.log_ndtr(-reach))
        sums = LatticeSums(flat, tail, tail, _Averaged(self.link), 1)
        if sums.is_wide.any():
            return None
        return sums.moments()[0].reshape(self.base.batch_shape)

    @cached_property
    def _node_weights(self) -> Floats:
        """Weights of the table's values in expectations."""
        return piecewise.node_weights(self._cached_table[0])

    def _levels(self) -> Floats:
        """Return the randomized CDF at the base's probabilities of a table, `r.shape + (q,)`."""
        # forecasts with one draw per person are the served ones: they must not depend on the
        # number of people in the batch
        is_one = self.r.ndim < 2 or self.r.shape[-1] == 1
        if is_one or self.r.size <= MANY_DRAWS or self.link.mean_error < LEAST_ERROR:
            return _levels_at(self.link, self.r)
        # for many draws interpolate in a table of the link, which changes means and CRPS by at
        # most 3e-4 sd
        nodes, table = _tabulated(type(self.link), self.link)
        left = np.clip(np.searchsorted(nodes, self.r) - 1, 0, nodes.size - 2)
        share = np.clip((self.r - nodes[left]) / (nodes[left + 1] - nodes[left]), 0, 1)[..., None]
        return np.asarray(table[left] * (1 - share) + table[left + 1] * share)

    def nodes(self, reach: float, step: float) -> Floats:
        if not self.has_atoms:
            return super().nodes(reach, step)
        # as for the tables of continuous bases, up to 4000 quantiles
        reach = max(reach, self.link.reach(1e-12))
        step = max(min(step, self.link.mean_error / 1.5), 1 / 128, reach / 2000)
        return self.base.nodes(reach, step)

    def _table(self) -> tuple[Floats, Floats]:
        if self.has_atoms:
            return super()._table()
        # quantiles of the base do not depend on the draw, and randomized levels not on the person
        return self._levels(), self.base.quantile_table(_scores_of(self.link))


@dataclass(frozen=True)
class _Turned:
    """Tails of a lattice after a link: those of the base's smaller side, for all draws of a row."""

    link: Link
    r: Floats

    def __call__(self, log_tail: Floats, is_upper: Mask, rows: Ints) -> Floats:
        draws = (self.r[rows] if len(self.r) > 1 else self.r)[..., None]

        def evaluate(tail: Floats, is_upper: Mask, r: Floats) -> Floats:
            return self.link.ppf_lower(tail, _drawn(r, is_upper), np.array(False))

        return piecewise.in_blocks(evaluate, CACHED, log_tail[:, None], is_upper[:, None], draws)


@dataclass(frozen=True)
class _Averaged:
    """Mean tails of a lattice over a uniform draw."""

    link: Link

    def __call__(self, log_tail: Floats, is_upper: Mask, rows: Ints) -> Floats:
        # the mean PIT is symmetric: both tails have the same map
        return self.link.mean_pit(np.exp(log_tail))[:, None]


def _scores_of(link: Link) -> Floats:
    """Return the normal scores of the base's quantiles in a table."""
    # at extreme draws a link with a small mean error moves probability far into the tails of the
    # base: the table leaves out at most 1e-12 of it at any draw, not only at those in the batch,
    # as a person's moments must not depend on the draws of others
    reach = max(GRID_REACH, link.reach(1e-12))
    step = max(min(GRID_STEP, link.mean_error / 1.5), 1 / 128)
    scores = score_grid(min(FINE_REACH, reach), step)
    if reach > FINE_REACH:
        further = np.linspace(
            FINE_REACH, reach, 1 + min(1000, int(np.ceil((reach - FINE_REACH) / step)))
        )[1:]
        scores = np.concatenate((-further[::-1], scores, further))
    return scores


def _levels_at(link: Link, r: Floats) -> Floats:
    """Return the randomized CDF at the base's probabilities of a table for each draw."""
    scores = _scores_of(link)
    upper = scores > 0
    draws = r[..., None]
    log_level = link.log_ppf_lower(
        special.log_ndtr(-np.abs(scores)), np.where(upper, 1 - draws, draws)
    )
    return np.asarray(np.where(upper, -np.expm1(log_level), np.exp(log_level)))


# forecasts are scored in blocks of rows, all of which need the same 7 MB. Links of other families
# with the same name and alpha are equal, so the family is a part of the key
@lru_cache(maxsize=2)
def _tabulated(family: type[Link], link: Link) -> tuple[Floats, Floats]:
    """Return draws and the randomized CDF at each of them."""
    nodes = np.unique(np.concatenate((TAIL_NODES, np.arange(65, 960) / 1024, 1 - TAIL_NODES)))
    return nodes, _levels_at(link, nodes)


def _drawn(r: Floats, is_upper: Mask) -> Floats:
    """Return the draws, mirrored where the upper tail is used."""
    return np.where(is_upper, 1 - r, r)


def _mean_over_draws(base: Distribution, link: Link, random: np.random.Generator) -> Floats:
    if link.alpha == 1:
        return base.mean()
    if isinstance(base, LocationScale):  # usually all people share one residual distribution
        return np.asarray(base.loc + base.scale * _mean_over_draws(base.base, link, random))
    shape = base.batch_shape
    n_pairs = max(DRAWN_QUANTILES, LEAST_QUANTILES // max(int(np.prod(shape)), 1)) // 2
    low = special.ndtri(jittered(int(np.prod(shape)), n_pairs, random) / 2)
    scores = link.averaged_score(np.concatenate((low, -low), axis=-1)).reshape(*shape, -1)
    return np.asarray(
        base.expand()
        .quantile_from_tail(special.log_ndtr(-np.abs(scores)), scores > 0)
        .mean(axis=-1)
    )
