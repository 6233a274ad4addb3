"""A link around any base: the randomized forecast `H(G(y); r)` (method: links)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._checks import Floats, check_draws
from evenhand.distributions._base import GRID_REACH, GRID_STEP, Bools, Distribution, has_rows, joint_shape, score_grid
from evenhand.distributions._piecewise import node_weights
from evenhand.links import Link
from evenhand.links._base import log1mexp

FINE_REACH = 37.0
"""Normal score up to which a table keeps its fine step; beyond, a thousand points reach as far as they must."""

MANY_DRAWS = 8192
LEAST_ERROR = 0.02
"""Mean error of a link from which it is smooth enough in the draw to be tabulated for more than so many draws."""

TAIL_NODES = np.geomspace(1e-15, 1 / 16, 1200)


class Randomized(Distribution):
    """Distributions `h[x, r](y) = H(G_x(y); r)` over a base `G` with a link and a draw for each.

    Its quantiles are `G^-1(K(p; r))` and its log density is `log g(y) - log k(C; r)` at `C = H(G(y); r)`.

    Parameters
    ----------
    base : Distribution
        The deterministic forecast.
    link : Link
        The family of laws that the draw chooses from.
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

    def __init__(self, base: Distribution, link: Link, r: ArrayLike) -> None:
        self.base, self.link, self.r = base, link, check_draws(r)
        joint_shape(base=base.batch_shape, r=self.r.shape)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.base.batch_shape, self.r.shape)

    def take(self, rows: Any) -> Randomized:
        base = self.base.take(rows) if has_rows(self.base.batch_shape, self.batch_shape) else self.base
        return Randomized(base, self.link, self.r[rows] if has_rows(self.r.shape, self.batch_shape) else self.r)

    def expand(self) -> Randomized:
        return Randomized(self.base.expand(), self.link, self.r[..., None])

    def _tail(self, y: ArrayLike) -> tuple[Floats, Bools]:
        """Log of the smaller base tail turned by the link, and whether that tail is the upper one."""
        lower, upper = self.base.logcdf(y), self.base.logsf(y)
        is_upper = lower > upper
        draws = np.where(is_upper, 1 - self.r, self.r)
        return self.link.log_ppf_lower(np.where(is_upper, upper, lower), draws), is_upper

    def logcdf(self, y: ArrayLike) -> Floats:
        tail, is_upper = self._tail(y)
        return np.where(is_upper, log1mexp(tail), tail)

    def logsf(self, y: ArrayLike) -> Floats:
        tail, is_upper = self._tail(y)
        return np.where(is_upper, tail, log1mexp(tail))

    def logpdf(self, y: ArrayLike) -> Floats:
        tail, is_upper = self._tail(y)
        draws = np.where(is_upper, 1 - self.r, self.r)
        return np.asarray(self.base.logpdf(y) - self.link.log_pdf_lower(tail, draws))

    def quantile_from_tail(self, log_p: Floats, upper: Bools) -> Floats:
        draws = np.where(upper, 1 - self.r, self.r)
        near = self.link.log_cdf_lower(np.asarray(log_p), draws)
        far = self.link.log_cdf_lower(log1mexp(np.asarray(log_p)), 1 - draws)
        turned = near > far
        return self.base.quantile_from_tail(np.where(turned, far, near), np.asarray(upper) ^ turned)

    def expectation(self, function: Callable[[Floats], Floats]) -> Floats:
        # the function is asked once for all draws of a person
        values = function(self._cached_table[1])
        found = np.einsum("...q,...q->...", self._node_weights, values)
        return np.asarray(np.maximum(found, values.min(axis=-1)))

    @cached_property
    def _node_weights(self) -> Floats:
        """Weights of the table's values in an expectation."""
        return node_weights(self._cached_table[0])

    def _levels(self, log_c: Floats, upper: Bools) -> Floats:
        """Randomized CDF at base probabilities, shape `r.shape + log_c.shape`."""

        def exact(draws: Floats) -> Floats:
            log_level = self.link.log_ppf_lower(log_c, np.where(upper, 1 - draws, draws))
            return np.asarray(np.where(upper, -np.expm1(log_level), np.exp(log_level)))

        if self.r.size <= MANY_DRAWS or self.link.mean_error < LEAST_ERROR:
            return exact(self.r[..., None])
        # of very many draws the link is tabulated, finely enough that means and CRPS move by at most 3e-4 sd
        nodes = np.unique(np.concatenate((TAIL_NODES, np.arange(65, 960) / 1024, 1 - TAIL_NODES)))
        table = exact(nodes[:, None])
        left = np.clip(np.searchsorted(nodes, self.r) - 1, 0, nodes.size - 2)
        share = np.clip((self.r - nodes[left]) / (nodes[left + 1] - nodes[left]), 0, 1)[..., None]
        return np.asarray(table[left] * (1 - share) + table[left + 1] * share)

    def _table(self) -> tuple[Floats, Floats]:
        """Base quantiles, which need no draw, and the randomized CDF there, which needs no person."""
        # a sharp link puts its probability far out in the base's tails: reach for 1e-12 of it, in small steps
        log_far = np.log(1e-12)
        deepest = max(self.r.max(), 1 - self.r.min())
        reach = max(GRID_REACH, -float(special.ndtri_exp(self.link.log_cdf_lower(np.array(log_far), deepest))))
        step = max(min(GRID_STEP, self.link.mean_error / 1.5), 1 / 128)
        scores = score_grid(min(FINE_REACH, reach), step)
        if reach > FINE_REACH:
            further = np.linspace(FINE_REACH, reach, 1 + min(1000, int(np.ceil((reach - FINE_REACH) / step))))[1:]
            scores = np.concatenate((-further[::-1], scores, further))
        log_c, upper = special.log_ndtr(-np.abs(scores)), scores > 0
        levels = self._levels(log_c, upper)
        return levels, self.base.expand().quantile_from_tail(log_c, upper)
