"""Links, which randomize any base forecast by a draw `r`, and their price (method: links).

A new link needs a class here and its place in `LINKS`.

The entropic link is entropic optimal transport of uniform onto uniform. In the scaled length
`s = kappa c` the potential `f` of the method becomes `g = f sqrt(kappa / 2)`, which solves
`g'' = g - 1/g` with `g'(0) = g(0)` and is symmetric about `kappa / 2`. The equation has a conserved
energy, so all quantities but the length have a closed form. With `g = g_m exp(-v^2)`, `g_m` the
value at the middle and `gap = 1 - g_m^2`,

    g'^2 = v^2 (2 gap + 2 g_m^2 v^2 F(v)),   F(v) = 1F1(1; 3; -2 v^2),   v from 0 (middle) to g_m /
    sqrt 2 (end),

and `v = sqrt(gap) sinh(tau) / g_m` makes `ds / dtau` smooth and bounded for every kappa.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import interpolate, optimize, special
from scipy.optimize import elementwise

from evenhand._logarithms import (
    log1mexp,
    log_expm1,
    log_expm1_scaled,
    log_softplus,
    safe_log,
    softplus,
)
from evenhand._validate import (
    Floats,
    Mask,
    Pair,
    as_floats,
    bad_input,
    check_choice,
    check_draws,
    check_fraction,
    check_probabilities,
    refuse_entry,
)

__all__ = ["LINKS", "Entropic", "Gaussian", "Laplace", "Link", "make_link", "price_of_proof"]

# --- quadrature over draws, and the mean error of the Laplace link, which defines `alpha`

_rule = lru_cache(np.polynomial.legendre.leggauss)


def gauss_legendre(edges: Floats, order: int = 16) -> Pair:
    """Return nodes and weights of Gauss-Legendre rules between `edges`, (..., panels, order)."""
    x, w = _rule(order)
    half = np.diff(edges, axis=-1)[..., None] / 2
    return edges[..., :-1, None] + half * (x + 1), half * w


def half_unit_rule(kappa: float) -> Pair:
    """Return nodes and weights on [0, 1/2], refined near 0 for a layer of width 1/kappa."""
    layer = min(0.5, 40 / max(kappa, 1e-300))
    edges = np.linspace(0.0, layer, 21)
    nodes, weights = gauss_legendre(edges if layer == 0.5 else np.append(edges, 0.5))
    return nodes.ravel(), weights.ravel()


@lru_cache(maxsize=256)
def laplace_mean_error(kappa: float) -> float:
    """Return the mean pathwise error `E|C - R|` of the Laplace link at `kappa` (method: links)."""
    if kappa == 0:
        return 1 / 3
    t, w = half_unit_rule(kappa)
    a = kappa * t
    b = kappa * (1 - t)
    # E|C - t| given t; gammainc(2, a) = 1 - (1 + a) exp(-a) without cancellation
    conditional = (special.gammainc(2, a) + special.gammainc(2, b)) / (
        special.gammainc(1, a) + special.gammainc(1, b)
    )
    return float(2 * (w * conditional).sum() / kappa)


# --- mean PIT over draws, `mu(u) = integral H(u; r) dr` (method: the sharp certificate)
# The lower half is tabulated in the negative log odds `t = log((1 - u) / u)`, which is 0 at the
# median. In `t`, and in draws over the link's mean error, features have a width of about one. They
# are near the median and where even the largest draws leave `u` near 0. Between the two, `mu` is a
# quadratic in `t` up to terms that fall exponentially.

LAYER = 40.0
"""Distance from which on terms that fall exponentially are below rounding errors."""

WIDTH = 2.5
"""Width of a panel in `t`."""

ORDER = 16
"""Number of nodes of a panel in `t`."""

LEAST_LEVEL = 1e-13
"""Least tail probability of the mixture over draws whose score `MeanPITTable.score` maps."""


def log_odds_edges(span: float) -> Floats:
    """Return the edges of panels in `t` for a link with a mean error of `1 / span`."""
    # mu behaves as t^2 log t at the median, where many draws have their kink
    first = WIDTH * np.append(0.0, 3.0 ** np.arange(-6, 0))
    steps = WIDTH * np.arange(1.0, 4 * LAYER / WIDTH)
    if span <= 2 * LAYER:
        return np.concatenate((first, steps[steps < span + LAYER + WIDTH]))
    # one wide panel where mu is a quadratic
    return np.concatenate((first, steps[steps <= LAYER], span - LAYER + steps[steps <= 2 * LAYER]))


def draw_edges(t: Floats, span: float) -> Floats:
    """Return the edges of panels of draws for neighbouring `t`.

    `H(u; r)` bends near both ends and near `r = t / span`; elsewhere it is linear or 0, up to terms
    that fall exponentially.
    """
    layer = np.arange(0.0, LAYER + 2, 2) / span
    bend = np.arange(t[0] - LAYER, t[-1] + LAYER + 2, 2) / span
    return np.unique(np.clip(np.concatenate((layer, 1 - layer, bend)), 0.0, 1.0))


class MeanPITTable:
    """Mean PIT and its integral for `u <= 1/2`, exact to about 1e-11.

    Parameters
    ----------
    link : Link
        Link whose `H(u; r)` is averaged over draws `r`.
    """

    def __init__(self, link: Link) -> None:
        self._edges = log_odds_edges(1 / link.mean_error)
        self._half = np.diff(self._edges) / 2
        self._nodes, _ = gauss_legendre(self._edges, ORDER)
        # every panel has the same nodes between -1 and 1
        x = (self._nodes[0] - self._edges[0]) / self._half[0] - 1
        to_powers = np.linalg.inv(np.vander(x, increasing=True))
        values = self._over_draws(link)
        self._mean = to_powers @ values.T
        self._ratio = to_powers @ self._ratios(values, x, to_powers).T

    def mean(self, t: Floats) -> Floats:
        """Return `mu(u)` at negative log odds `t >= 0`."""
        return self._at(self._mean, t)

    def ratio(self, t: Floats) -> Floats:
        """Return `integral_0^u mu / u` at negative log odds `t >= 0`."""
        return self._at(self._ratio, t)

    def score(self, level: Floats) -> Floats:
        """Return the normal score of `u` at which that of `mu(u)` is `level`, both positive."""
        return self._scores(np.minimum(level, self._scores.x[-1]))

    @cached_property
    def _scores(self) -> interpolate.CubicSpline:
        end = self._edges[-1]
        # finer towards both ends of the wide panel
        graded = np.geomspace(WIDTH, end, 300)
        t = np.unique(np.concatenate(([0.0], self._nodes.ravel(), graded, end - graded)))
        level = -special.ndtri(np.maximum(self.mean(t), LEAST_LEVEL))
        place = -special.ndtri_exp(special.log_expit(-t))
        # levels or places that are equal up to rounding errors, as at the end, are dropped
        apart = np.append(True, np.diff(np.maximum.accumulate(level)) > 1e-12)
        apart[1:] &= np.diff(place) > 1e-8 * place[1:]
        return interpolate.CubicSpline(level[apart], place[apart])

    def _over_draws(self, link: Link) -> Floats:
        """Return `mu` at the nodes, by quadrature over draws."""
        log_u = special.log_expit(-self._nodes)
        kinks = link._kink(np.exp(log_u).ravel()).reshape(log_u.shape)
        found = np.empty(log_u.shape)
        for panel, t in enumerate(self._nodes):
            # in the wide panel, each node has its own panels of draws
            n_parts = ORDER if self._half[panel] > WIDTH else 1
            for part in np.split(np.arange(ORDER), n_parts):
                edges = np.tile(draw_edges(t[part], 1 / link.mean_error), (part.size, 1))
                split = np.sort(np.append(edges, kinks[panel, part, None], axis=-1), axis=-1)
                r, weights = gauss_legendre(split, order=8)
                turned = link.ppf_lower(log_u[panel, part, None, None], r, np.array(False))
                found[panel, part] = (turned * weights).sum(axis=(-2, -1))
        return found

    def _ratios(self, values: Floats, x: Floats, to_powers: Floats) -> Floats:
        """Return `integral_0^u mu / u` at the nodes, panel by panel towards the median."""
        exponents = np.arange(1.0, ORDER + 1)
        places = np.append(x, -1.0)
        # integrals from a node, and from the left edge, to the right edge
        integrate = (1 - places[:, None] ** exponents) / exponents @ to_powers
        found = np.empty((self._half.size, ORDER + 1))
        # beyond the last edge mu is proportional to u
        last = self.mean(self._edges[-1:])[0] / 2
        for panel in reversed(range(self._half.size)):
            half = self._half[panel]
            if half > WIDTH:
                # d(ratio)/dt = ratio - mu up to exp(-t), and mu is a quadratic
                mean = np.polynomial.Polynomial(self._mean[:, panel])
                slope = mean.deriv()
                found[panel] = mean(places) + (slope(places) + slope.deriv()(places) / half) / half
            else:
                t = np.append(self._nodes[panel], self._edges[panel])
                # du = -u (1 - u) dt; factors of u are relative to u at the right edge
                u = np.exp(special.log_expit(-t) - special.log_expit(-self._edges[panel + 1]))
                density = values[panel] * u[:-1] * special.expit(t[:-1])
                found[panel] = (half * integrate @ density + last) / u
            last = found[panel, -1]
        return found[:, :-1]

    def _at(self, powers: Floats, t: Floats) -> Floats:
        """Evaluate the panels' polynomials at `t`; `powers` (order, k), increasing.

        Beyond the last edge functions are proportional to `u`.
        """
        panel = np.clip(np.searchsorted(self._edges, t, side="right") - 1, 0, self._half.size - 1)
        inside = np.minimum(t, self._edges[-1])
        x = (inside - self._edges.take(panel)) / self._half.take(panel) - 1
        value = powers[-1].take(panel)
        # Horner's scheme, in place
        for power in powers[-2::-1]:
            value *= x
            value += power.take(panel)
        return value * np.exp(inside - t)


# --- links

TINY = 1e-300
"""Lower limit of probabilities in logarithms; products with it do not underflow."""

NEGLIGIBLE = 1e-12
"""Below this kappa the link is the identity: its density differs from 1 by less than kappa."""

LEAST_DRAW = 1e-12
"""Smallest distance from 0 and 1 of the draws in integrals."""

_HALF = np.concatenate(([0.0], np.geomspace(1e-4, 0.5, 25)))
EDGES = np.concatenate((_HALF, 1 - _HALF[-2::-1]))
"""Edges of the panels of draws over which errors are integrated."""


class Link(ABC):
    """Conditional distributions `K(.; r)` on [0, 1] of a base's PIT, given the draw `r`.

    With base CDF `G` the randomized forecast is `H(G(y); r)`, where `H = K^-1`. Every link here is
    symmetric, `1 - H(u; r) = H(1 - u; 1 - r)`, and increasing in `r`. A subclass implements the
    lower half on the logarithmic scale, and the upper half follows by reflection. The lower half
    keeps its relative precision down to 1e-300 for c <= r, that is, for all draws but those below
    c; for c > r it is exact to about 1e-15.

    Parameters
    ----------
    alpha : float, default 0.1
        Weight of sharpness in the paper's objective, 0 < alpha <= 1. Smaller values give smaller
        calibration errors in every group and wider forecasts; at 1 the link is the identity. All
        links have the same `mean_error` at the same alpha.
    """

    name: ClassVar[str]

    def __init__(self, alpha: float = 0.1) -> None:
        self.alpha = check_fraction("alpha", alpha, high_open=False)
        # at a mean error of all links that is equal at equal alpha, the Laplace link has this kappa
        self.sharpness = (1 - self.alpha) / self.alpha
        self.is_identity = self.sharpness < NEGLIGIBLE
        if not self.is_identity:
            self._solve()

    @property
    def mean_error(self) -> float:
        """Mean pathwise error `E|C - R|` over a calibrated base, from 0 to 1/3 at alpha = 1."""
        return laplace_mean_error(self.sharpness)

    @property
    def price(self) -> float:
        """Excess log score in nats over a calibrated base, `E_r KL(K(.; r) || Uniform)`."""
        return 0.0 if self.is_identity else self._price()

    def log_cdf_lower(self, log_c: Floats, r: Floats) -> Floats:
        """Log K(c; r) from log c, for c <= 1/2."""
        return log_c + np.zeros(np.shape(r)) if self.is_identity else self._log_cdf(log_c, r)

    def log_ppf_lower(self, log_u: Floats, r: Floats) -> Floats:
        """Log H(u; r) from log u, for u <= 1/2."""
        return log_u + np.zeros(np.shape(r)) if self.is_identity else self._log_ppf(log_u, r)

    def ppf_lower(self, log_u: Floats, r: Floats, far: Mask) -> Floats:
        """`H(u; r)` from log u, for u <= 1/2, and `1 - H` where `far`.

        Faster than `log_ppf_lower`, which returns logarithms; probabilities below the smallest
        float are 0.
        """
        if not self.is_identity:
            return self._ppf(log_u, r, far)
        log_h = self.log_ppf_lower(log_u, r)
        return np.where(far, -np.expm1(log_h), np.exp(log_h))

    def log_pdf_lower(self, log_c: Floats, r: Floats) -> Floats:
        """Log k(c; r) from log c, for c <= 1/2."""
        return np.zeros(np.shape(log_c + r)) if self.is_identity else self._log_pdf(log_c, r)

    # what a family defines, for links that are not the identity

    @abstractmethod
    def _solve(self) -> None:
        """Compute the link's own parameter from `self.alpha`, and the tables for evaluation."""

    @abstractmethod
    def _price(self) -> float: ...

    @abstractmethod
    def _log_cdf(self, log_c: Floats, r: Floats) -> Floats: ...

    @abstractmethod
    def _log_ppf(self, log_u: Floats, r: Floats) -> Floats: ...

    @abstractmethod
    def _ppf(self, log_u: Floats, r: Floats, far: Mask) -> Floats: ...

    @abstractmethod
    def _log_pdf(self, log_c: Floats, r: Floats) -> Floats: ...

    def cdf(self, c: ArrayLike, r: ArrayLike) -> Floats:
        """`K(c; r)`: probability that the base's PIT is at most `c`, given the draw `r`."""
        return self._reflected(self.log_cdf_lower, check_probabilities("c", c), r)

    def ppf(self, u: ArrayLike, r: ArrayLike) -> Floats:
        """`H(u; r) = K^-1(u; r)`: the randomized PIT of a base PIT `u` under the draw `r`."""
        return self._reflected(self.log_ppf_lower, check_probabilities("u", u), r)

    def logpdf(self, c: ArrayLike, r: ArrayLike) -> Floats:
        """`log k(c; r)`, the logarithm of the density of `K(.; r)` at `c`."""
        values, draws = np.broadcast_arrays(check_probabilities("c", c), check_draws(r))
        upper = values > 0.5
        log_c = np.log(np.maximum(np.where(upper, 1 - values, values), TINY))
        return self.log_pdf_lower(log_c, np.where(upper, 1 - draws, draws))

    def pdf(self, c: ArrayLike, r: ArrayLike) -> Floats:
        """`k(c; r)`, the density of `K(.; r)` at `c`."""
        return np.exp(self.logpdf(c, r))

    def pathwise_error(self, u: ArrayLike) -> Floats:
        """Pathwise error `integral |H(u; r) - r| dr`, 0 to 1/2, of a person whose base PIT is `u`.

        The error increases with `|u - 1/2|`, so a link's certificate depends on the base's PITs
        only.
        """
        values = check_probabilities("u", u)
        # err(u) = err(1 - u): in the lower half all people share one quadrature rule
        low = np.minimum(values, 1 - values).ravel()
        if self.is_identity:
            return np.reshape((low**2 + (1 - low) ** 2) / 2, values.shape)
        # the integrand has layers of width about the mean error at both ends, and a kink where
        # H(u; r) = r
        kink = self._kink(low)
        panels = self._panel_errors(low, *gauss_legendre(EDGES, order=8))
        panel = np.searchsorted(EDGES, kink) - 1
        panels[np.arange(low.size), panel] = 0.0
        halves = np.stack((EDGES[panel], kink, EDGES[panel + 1]), axis=-1)
        errors = panels.sum(axis=-1) + self._panel_errors(
            low, *gauss_legendre(halves, order=8)
        ).sum(axis=-1)
        return errors.reshape(values.shape)

    def cell_error(self, u: ArrayLike) -> Floats:
        """Pathwise error `integral (H(u; r) - r)_+ dr` of a person whose base PIT is at least `u`.

        Only a served cell above the draw is an error (outcomes: 2): 0 to 1/2, increasing in `u`.

        Examples
        --------
        >>> from evenhand.links import Entropic
        >>> Entropic(1.0).cell_error([0.0, 0.5, 1.0])  # u^2 / 2 without randomization
        array([0.   , 0.125, 0.5  ])
        """
        # with A this integral, err(u) = A(u) + A(1 - u) and mu(u) - 1/2 = A(u) - A(1 - u)
        return np.clip((self.pathwise_error(u) + self.mean_pit(u) - 0.5) / 2, 0.0, 0.5)

    def mean_pit(self, u: ArrayLike) -> Floats:
        """Mean served PIT `mu(u) = integral H(u; r) dr` of people whose base PIT is `u`.

        It increases from 0 to 1 and is symmetric, `mu(1 - u) = 1 - mu(u)`. In a group whose base
        PITs are too frequent in one tail, the group error under an exactly calibrated link is
        `|mean of mu(U) - 1/2|` (method: the sharp certificate).

        Parameters
        ----------
        u : array-like
            Base PITs, 0 to 1; any shape.

        Returns
        -------
        ndarray
            Mean PITs, 0 to 1, same shape as `u`, exact to 1e-9.

        Raises
        ------
        InputError
            If a value does not lie between 0 and 1.

        Examples
        --------
        >>> from evenhand.links import Entropic
        >>> Entropic(0.05).mean_pit([0.001, 0.01, 0.5]).round(3)
        array([0.228, 0.317, 0.5  ])
        """
        values = check_probabilities("u", u)
        if self.is_identity:
            return np.array(values)
        low = self._mean_pit_lower(np.minimum(values, 1 - values))
        return np.where(values > 0.5, 1 - low, low)

    def mean_pit_integral(self, u: ArrayLike) -> Floats:
        """Integral of `mean_pit` from 0 to `u`, from 0 to 1/2; same shape as `u`.

        Examples
        --------
        >>> from evenhand.links import Gaussian
        >>> Gaussian(0.1).mean_pit_integral([0.0, 1.0])
        array([0. , 0.5])
        """
        values = check_probabilities("u", u)
        if self.is_identity:
            return values**2 / 2
        low = self._mean_pit_integral_lower(np.minimum(values, 1 - values))
        return np.where(values > 0.5, values - 0.5 + low, low)

    # the table is made for densities that fall exponentially, at a rate of one over the mean error;
    # other links replace the next two and `averaged_score`
    def _mean_pit_lower(self, u: Floats) -> Floats:
        return _mean_pit_table(self).mean(_log_odds(u))

    def _mean_pit_integral_lower(self, u: Floats) -> Floats:
        return u * _mean_pit_table(self).ratio(_log_odds(u))

    def averaged_score(self, score: Floats) -> Floats:
        """Map normal scores of the mixture of forecasts over draws to normal scores of the base.

        The mixture over draws has the CDF `mu(G(y))`, with `mu` the `mean_pit`. For every link it
        has wider tails than the base. (An exact link has uniform PITs because of another property,
        `integral K(c; r) dr = c`.) Exact to 1e-6 in normal scores of the mixture up to 7.
        """
        return np.sign(score) * _mean_pit_table(self).score(np.abs(score))

    def reach(self, level: float) -> float:
        """Return the normal score of the base that covers the forecasts at all draws.

        At any draw, the probability beyond it is at most `level`.
        """
        deepest = self.log_cdf_lower(np.log(level), np.array(1 - LEAST_DRAW))
        return -float(special.ndtri_exp(deepest))

    def _panel_errors(self, u: Floats, nodes: Floats, weights: Floats) -> Floats:
        """Return integrals of `|H(u; r) - r|` over panels of draws, (n, panels), for u <= 1/2."""
        turned = self.ppf_lower(safe_log(u)[:, None, None], nodes, np.array(False))
        return (np.abs(turned - nodes) * weights).sum(axis=-1)

    def _kink(self, u: Floats) -> Floats:
        """Return the draw `r` with `H(u; r) = r`, for u <= 1/2.

        An error of d in the draw changes the integral by d^2 only.
        """

        def diagonal(r: Floats) -> Floats:
            return np.exp(self.log_cdf_lower(np.log(r), r))

        def excess(r: Floats, *u: Any) -> Floats:
            return diagonal(r) - u[0]

        # K(r; r) increases from 0 to 1/2 at r = 1/2, up to rounding errors
        ends = LEAST_DRAW, 0.5
        inside = np.clip(u, *diagonal(np.array(ends)))
        return elementwise.find_root(excess, ends, args=(inside,), tolerances={"xatol": 1e-9}).x

    @property
    def calibration_error(self) -> float:
        """W1 distance from uniform of the randomized PITs of everybody over a calibrated base.

        0 for links that leave a calibrated base exactly calibrated.
        """
        return 0.0

    def group_error(self, mass: float) -> float:
        """Group error of the worst group of a share of at least `mass` over a calibrated base.

        The group error is the W1 distance from uniform of the group's randomized PITs. The group
        may be defined by the features and the outcome, but not by the draw, and no smaller bound
        can be proven for groups by features alone. The worst group consists of the people in one
        tail of the base's PITs, hence `1/2 - (1/mass) integral_0^mass mu`, with `mu` the
        `mean_pit` (method: the sharp certificate). For links that are not exactly calibrated, the
        greater of this and `calibration_error`; the worst group's error is not below it, and at
        most `calibration_error` above it.

        Parameters
        ----------
        mass : float
            Least share of people in the group, 0 < mass <= 1.

        Returns
        -------
        float
            Group error, 0 to 1/2.

        Examples
        --------
        >>> from evenhand.links import Entropic
        >>> round(Entropic(0.1).group_error(0.2), 3), round(Entropic(0.1).pathwise_cvar(0.2), 3)
        (0.178, 0.234)
        """
        check_fraction("mass", mass, high_open=False)
        tail = 0.5 - float(self.mean_pit_integral(mass)) / mass
        return max(tail, self.calibration_error)

    def pathwise_cvar(self, mass: float) -> float:
        """Mean pathwise error (CVaR) of the worst `mass` of people over a calibrated base.

        These people are in both tails of the base's PITs, so that in one group their deviations
        partly cancel: `group_error` is smaller.

        Parameters
        ----------
        mass : float
            Share of people, 0 < mass <= 1.
        """
        check_fraction("mass", mass, high_open=False)
        # both tails are equal by symmetry; panels refine towards the end, where the error has an
        # infinite slope
        nodes, weights = gauss_legendre(
            np.concatenate(([0.0], np.geomspace(1e-6, 1.0, 13))) * mass / 2, order=8
        )
        return float((2 * weights.ravel() * self.pathwise_error(nodes.ravel())).sum() / mass)

    def _reflected(
        self, lower: Callable[[Floats, Floats], Floats], values: Floats, r: ArrayLike
    ) -> Floats:
        value, draws = np.broadcast_arrays(values, check_draws(r))
        if self.is_identity:  # without the rounding error of exp(log(u))
            return np.array(value)
        upper = value > 0.5
        log_value = safe_log(np.where(upper, 1 - value, value))
        result = np.exp(lower(log_value, np.where(upper, 1 - draws, draws)))
        return np.clip(np.where(upper, 1 - result, result), 0.0, 1.0)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.alpha == self.alpha

    def __hash__(self) -> int:
        return hash((type(self), self.alpha))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(alpha={self.alpha:g})"


def _log_odds(u: Floats) -> Floats:
    """Return `log((1 - u) / u)`, infinity at 0."""
    return np.log1p(-u) - safe_log(u)


_mean_pit_table = lru_cache(maxsize=64)(MeanPITTable)


# --- closed form


class Laplace(Link):
    """Link with density `exp(-kappa |c - r|) / Z_r`, `kappa = (1 - alpha) / alpha`.

    Over the true distribution it minimizes the paper's objective at `alpha`, which is the optimum
    of a network with unlimited capacity. No forecaster has a lower price at the same mean error.
    Over a calibrated base its PITs are within 0.014 (W1) of uniform, but not exactly uniform.

    Parameters
    ----------
    alpha : float, default 0.1
        Weight of sharpness, 0 < alpha <= 1.

    Examples
    --------
    >>> from evenhand.links import Laplace
    >>> link = Laplace(alpha=0.2)
    >>> round(link.price, 3), round(link.mean_error, 3)
    (0.28, 0.176)
    """

    name: ClassVar[str] = "laplace"

    kappa: float = 0.0

    def _solve(self) -> None:
        self.kappa = self.sharpness

    def _price(self) -> float:
        # L(kappa) - kappa * mean_error, with L = -integral log Z_t dt and the mean error L'(kappa)
        t, w = half_unit_rule(self.kappa)
        log_z = np.log(_normalizer(self.kappa, t) / self.kappa)
        return float(max(-2 * (w * log_z).sum() - self.kappa * self.mean_error, 0.0))

    @property
    def calibration_error(self) -> float:
        """W1 distance from uniform of the randomized PITs over a calibrated base, 0 to 0.014."""
        kappa = self.kappa
        if self.is_identity:
            return 0.0
        # P(C <= c) - c has one sign on each side of 1/2: by symmetry the distance is twice
        # 1/8 - E(1/2 - C)^+, the mean over draws r and 1 - r with r <= 1/2
        layer = np.linspace(0.0, min(0.25, 40 / kappa), 21)
        r, weights = gauss_legendre(np.union1d(layer, 0.5 - layer))
        below = -np.expm1(-kappa * r) / 2
        rest = _second(kappa * (0.5 - r)) - _second(kappa * r)
        # the upper half of the draws, by reflection
        beyond = np.exp(-kappa * (0.5 - r)) * special.gammainc(2, kappa / 2)
        mean = (weights * (below + (rest + beyond) / kappa) / _normalizer(kappa, r)).sum()
        return float(2 * abs(0.125 - mean))

    def _log_cdf(self, log_c: Floats, r: Floats) -> Floats:
        kappa = self.kappa
        c = np.exp(log_c)
        log_d = np.log(_normalizer(kappa, r))
        below = np.minimum(c, r)
        # c <= r: K = exp(-kappa r) (exp(kappa c) - 1) / D
        low = log_expm1_scaled(kappa * below, np.log(kappa) + log_c) - kappa * r - log_d
        above = np.maximum(c, r) - r
        high = np.log(-np.expm1(-kappa * r) - np.expm1(-kappa * above)) - log_d
        return np.where(c <= r, low, high)

    def _log_ppf(self, log_u: Floats, r: Floats) -> Floats:
        kappa = self.kappa
        log_d = np.log(_normalizer(kappa, r))
        # near r = 1 the two logarithms are nearly equal, and rounding could make log u* positive
        log_turn = np.minimum(np.log(-np.expm1(-kappa * r)) - log_d, 0.0)
        # u <= u*: exp(kappa H) - 1 = D u exp(kappa r)
        x = log_d + np.minimum(log_u, log_turn) + kappa * r
        low = log_softplus(x) - np.log(kappa)
        log_v = log1mexp(np.maximum(log_u, log_turn))
        high = r - np.logaddexp(-kappa * (1 - r), log_d + log_v) / kappa
        return np.where(log_u <= log_turn, np.minimum(low, np.log(r)), np.log(np.maximum(high, r)))

    def _ppf(self, log_u: Floats, r: Floats, far: Mask) -> Floats:
        kappa = self.kappa
        scaled = kappa * r
        below = -np.expm1(-scaled)
        above = -np.expm1(scaled - kappa)
        d = below + above
        # d (u* - u), which is above -1/2 for u <= 1/2
        rest = below - d * np.exp(log_u)
        low = softplus(np.log(d) + log_u + scaled) / kappa
        high = r - np.log1p(np.minimum(rest, 0.0)) / kappa
        h = np.where(rest >= 0, np.minimum(low, r), np.maximum(high, r))
        return np.subtract(1.0, h, out=h, where=far)

    def _log_pdf(self, log_c: Floats, r: Floats) -> Floats:
        log_z = np.log(_normalizer(self.kappa, r)) - np.log(self.kappa)
        return -self.kappa * np.abs(np.exp(log_c) - r) - log_z


def _normalizer(kappa: float, r: Floats) -> Floats:
    """`D = kappa Z_r = 2 - exp(-kappa r) - exp(-kappa (1 - r))`."""
    return -np.expm1(-kappa * r) - np.expm1(-kappa * (1 - r))


def _second(x: Floats) -> Floats:
    """Return `x - 1 + exp(-x)`, without cancellation at small x >= 0."""
    return x * special.gammainc(1, x) - special.gammainc(2, x)


class Gaussian(Link):
    """Link with the density of a Gaussian copula with correlation `rho`.

    `H = Phi(sqrt(1 - rho^2) Phi^-1(u) + rho Phi^-1(r))`.

    With a normal base the randomized forecasts are normal. The price is `-log(1 - rho^2) / 2`. The
    limit `rho -> 1` is the paper's trivial forecaster (with the sign corrected: `+ Phi^-1(r)`).

    Parameters
    ----------
    alpha : float, default 0.1
        Weight of sharpness, 0 < alpha <= 1; `rho` is such that the mean error equals that of
        `Laplace(alpha)`.

    Examples
    --------
    >>> from evenhand.links import Gaussian
    >>> link = Gaussian(alpha=0.2)
    >>> bool(np.isclose(link.price, -np.log(1 - link.rho**2) / 2))
    True
    """

    name: ClassVar[str] = "gaussian"

    rho: float = 0.0
    _rest: float = 1.0

    def _solve(self) -> None:
        error = self.mean_error
        # rho = 2 cos(pi e) - 1, in a form in which 1 - rho^2 keeps its digits as rho -> 1
        cosine = float(np.cos(np.pi * error))
        self._rest = float(np.sin(np.pi * error / 2) * np.sqrt(8 * cosine))
        self.rho = max(2 * cosine - 1, 0.0)

    def _price(self) -> float:
        return -float(np.log(self._rest))

    def _log_cdf(self, log_c: Floats, r: Floats) -> Floats:
        return special.log_ndtr((special.ndtri_exp(log_c) - self.rho * _draw_score(r)) / self._rest)

    def _log_ppf(self, log_u: Floats, r: Floats) -> Floats:
        return special.log_ndtr(self._rest * special.ndtri_exp(log_u) + self.rho * _draw_score(r))

    def _ppf(self, log_u: Floats, r: Floats, far: Mask) -> Floats:
        score = np.asarray(self._rest * special.ndtri_exp(log_u) + self.rho * _draw_score(r))
        return special.ndtr(np.negative(score, out=score, where=far))

    def _log_pdf(self, log_c: Floats, r: Floats) -> Floats:
        z = special.ndtri_exp(log_c)
        t = _draw_score(r)
        # -log(rest) + z^2/2 - ((z - rho t) / rest)^2 / 2, expanded so that large scores do not
        # cancel
        return self.price + (2 * self.rho * z * t - self.rho**2 * (z**2 + t**2)) / (
            2 * self._rest**2
        )

    @property
    def _mean_slope(self) -> float:
        # rest z + rho T is normal for normal T, hence mu(Phi(z)) = Phi(rest z / sqrt(1 + rho^2))
        return self._rest / float(np.sqrt(1 + self.rho**2))

    def _mean_pit_lower(self, u: Floats) -> Floats:
        return special.ndtr(self._mean_slope * special.ndtri(u))

    def _mean_pit_integral_lower(self, u: Floats) -> Floats:
        # the derivative of Owen's function T(z, s) is -phi(z) (Phi(s z) - 1/2)
        return u / 2 - special.owens_t(special.ndtri(u), self._mean_slope)

    def averaged_score(self, score: Floats) -> Floats:
        return score / self._mean_slope


def _draw_score(r: Floats) -> Floats:
    # 1 - r can round to 1 for a draw below 1e-16
    return special.ndtri(np.clip(r, TINY, 1 - 2.0**-53))


# --- entropic

Function = Callable[[Floats], Floats]


class Entropic(Link):
    """Link with density `a(c) a(r) exp(-kappa |c - r|)` and both marginals uniform.

    It has the smallest price among links under which a calibrated base stays exactly calibrated, at
    most 0.006 nats above that of `Laplace` at equal mean error. This is the default link.

    Parameters
    ----------
    alpha : float, default 0.1
        Weight of sharpness, 0 < alpha <= 1; `kappa` is such that the mean error equals that of
        `Laplace(alpha)`.

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> link = Entropic(alpha=0.1)
    >>> float(link.ppf(link.cdf(0.3, r=0.8), r=0.8).round(12))
    0.3
    """

    name: ClassVar[str] = "entropic"

    kappa: float = 0.0

    def _solve(self) -> None:
        self._potential = _potential(laplace_mean_error(self.sharpness))
        self.kappa = self._potential.kappa

    @property
    def mean_error(self) -> float:
        """Mean pathwise error over a calibrated base."""
        return 1 / 3 if self.is_identity else self._potential.mean_error

    def _price(self) -> float:
        # the mutual information of the draw and the PIT
        return self._potential.price

    def _log_cdf(self, log_c: Floats, r: Floats) -> Floats:
        potential = self._potential
        s = np.exp(log_c) * self.kappa
        t = r * self.kappa
        # for c > r by reflection, 1 - K(c; r) = K(1 - c; 1 - r), with lengths measured from the
        # other end
        is_low = s <= t
        s_back = self.kappa - s
        log_length = np.where(is_low, log_c + np.log(self.kappa), safe_log(s_back))
        log_mass = potential.log_mass(np.where(is_low, s, s_back), log_length)
        log_tail = log_mass - np.where(is_low, t, self.kappa - t) - potential.log_2g(t)
        return np.where(is_low, log_tail, _log1m(np.exp(log_tail)))

    def _log_ppf(self, log_u: Floats, r: Floats) -> Floats:
        t, is_low, log_mass = self._log_mass_of(log_u, r)
        log_s = self._potential.log_length(log_mass)
        low = np.minimum(log_s, np.log(t))
        high = np.log(np.maximum(self.kappa - np.exp(log_s), t))
        return np.minimum(np.where(is_low, low, high) - np.log(self.kappa), 0.0)

    def _ppf(self, log_u: Floats, r: Floats, far: Mask) -> Floats:
        t, is_low, log_mass = self._log_mass_of(log_u, r)
        s = self._potential.length(log_mass)
        # s is measured from the upper end where H is above the draw
        near = np.where(is_low, np.minimum(s, t), np.minimum(s, self.kappa - t))
        # convert scaled lengths in place: this is called for millions of values
        near /= self.kappa
        return np.subtract(1.0, near, out=near, where=is_low == far)

    def _log_mass_of(self, log_u: Floats, r: Floats) -> tuple[Floats, Mask, Floats]:
        """Return the scaled draw, whether H is at most the draw, and log mass of H or of 1 - H."""
        potential = self._potential
        t = r * self.kappa
        u = np.exp(log_u)
        near = potential.near(t)
        # K(r; r) is at least 1/2 for the upper half of draws
        is_low = (t >= self.kappa / 2) | (u <= potential.half_turn(near))
        log_mass = np.where(is_low, log_u + t, _log1m(u) + (self.kappa - t))
        log_mass += potential.log_2g_at(near)
        return t, is_low, log_mass

    def _log_pdf(self, log_c: Floats, r: Floats) -> Floats:
        potential = self._potential
        s = np.exp(log_c) * self.kappa
        t = r * self.kappa
        # a(c) a(r) = kappa / (2 g(s) g(t))
        return np.log(2 * self.kappa) - potential.log_2g(s) - potential.log_2g(t) - np.abs(s - t)


def _log1m(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log1p(-np.minimum(p, 1.0))


class Profile(NamedTuple):
    """Potential from the middle to one end, by quadrature in `tau`."""

    gap: float
    peak_squared: float
    length: float
    """Scaled length from the middle to one end."""
    depth: float
    """Integral of log(g / g(0)) over that length."""

    def v(self, tau: Floats) -> Floats:
        return np.sqrt(self.gap / self.peak_squared) * np.sinh(tau)

    def ds(self, tau: Floats) -> Floats:
        v = self.v(tau)
        curve = special.hyp1f1(1.0, 3.0, -2 * v**2)
        # sqrt(1 + F sinh^2), with cosh factored out so that nothing overflows
        return np.sqrt(2.0) * np.exp(-(v**2)) / np.sqrt(1 + (curve - 1) * np.tanh(tau) ** 2)

    @property
    def end(self) -> float:
        return float(np.arcsinh(self.peak_squared / np.sqrt(2 * self.gap)))

    @classmethod
    def from_logit(cls, x: float) -> Profile:
        """Make the profile whose squared middle value is the logistic function of `x`."""
        draft = cls(float(special.expit(-x)), float(special.expit(x)), 0.0, 0.0)
        tau, weight = gauss_legendre(np.linspace(0.0, draft.end, 2 + int(2 * draft.end)))
        ds = weight * draft.ds(tau)
        fall = draft.peak_squared / 2 - draft.v(tau) ** 2
        return draft._replace(length=float(ds.sum()), depth=float((ds * fall).sum()))


def statistics_of(profile: Profile, kappa: float) -> tuple[float, float]:
    """Return the mean error and price at `kappa`.

    Beyond the length of the profile the potential is flat at depth 1/2.

    With J the stationary action, dJ/dkappa = -log g(0) / 2 (Hamilton-Jacobi). It follows for the
    dual value V = -2 integral log f that the mean error is V' and the price is V - kappa V'.
    """
    depth = profile.depth + max(kappa / 2 - profile.length, 0.0) * profile.peak_squared / 2
    error = 4 * (depth / kappa) / kappa
    log_end = 0.5 * np.log(profile.peak_squared) - profile.peak_squared / 2
    return error, float(max(np.log(kappa / 2) - 2 * log_end - 2 * kappa * error, 0.0))


FLAT = 80.0
"""From this kappa on the two ends do not interact, and one profile with a flat middle part is
exact: the potential differs from flat by exp(-40 sqrt(2)), far below rounding errors."""


@cache
def longest_profile() -> Profile:
    """Solve for the profile at `FLAT`."""
    # the potential is symmetric: the profile extends from the middle to one end
    length = FLAT / 2
    found = optimize.brentq(
        lambda x: np.log(Profile.from_logit(x).length / length), -50.0, 150.0, xtol=1e-13
    )
    return Profile.from_logit(found)


def _from_mean_error(error: float) -> tuple[float, Profile]:
    """Solve for kappa and the profile at a mean error."""
    longest = longest_profile()
    if error < statistics_of(longest, FLAT)[0]:
        # flat in the middle: error kappa^2 = 4 (depth + (kappa/2 - length) / 2), a quadratic
        spare = longest.depth - longest.length * longest.peak_squared / 2
        root = np.sqrt(longest.peak_squared**2 / 4 + 4 * error * spare)
        return float((longest.peak_squared + 2 * root) / (2 * error)), longest

    def excess(x: float) -> float:
        profile = Profile.from_logit(x)
        return statistics_of(profile, 2 * profile.length)[0] - error

    # the mean error decreases in the length, and the length increases in the logit
    profile = Profile.from_logit(optimize.brentq(excess, -40.0, 150.0, xtol=1e-13))
    return 2 * profile.length, profile


class _Table:
    """Smooth function tabulated on a fine equally spaced grid, for fast evaluation.

    Cubic Hermite interpolation between values and slopes of a spline of degree 7; with steps of
    0.004 and functions of order one the error is about 1e-12.
    """

    def __init__(self, start: float, step: float, at: Floats, slope: Floats) -> None:
        self._start = start
        self._step = step
        self._last = at.size - 1
        rise = np.diff(at)
        # slopes per step of the grid, for polynomials in t from 0 to 1
        low = slope[:-1] * step
        high = slope[1:] * step
        self._powers = (low + high - 2 * rise, 3 * rise - 2 * low - high, low, at[:-1])

    @classmethod
    def of(cls, x: Floats, *columns: Floats) -> list[_Table]:
        """Tabulate several functions, given at the same points."""
        spline = interpolate.make_interp_spline(x, np.stack(columns, axis=-1), k=7)
        grid = np.linspace(x[0], x[-1], 1 + max(math.ceil((x[-1] - x[0]) / 0.004), 2000))
        tables = zip(spline(grid).T, spline.derivative()(grid).T, strict=True)
        return [
            cls(float(x[0]), float(grid[1] - grid[0]), *map(np.ascontiguousarray, each))
            for each in tables
        ]

    def __call__(self, x: Floats) -> Floats:
        place = (np.asarray(x) - self._start) / self._step
        # np.clip takes as long as all of the rest for a few numbers
        piece = np.minimum(np.maximum(place.astype(int), 0), self._last - 1)
        t = place - piece
        first, *others = self._powers
        value = first.take(piece)
        # Horner's scheme, in place
        for power in others:
            value *= t
            value += power.take(piece)
        return value


class _Potential:
    """Tables of the potential near an end and of the mass integral, exact to about 1e-12.

    The mass integral is `mass(s) = integral_0^s exp(t) / g(t) dt = exp(s) (g - g')`. It gives the
    CDF: for c <= r, `K = exp(-s_r) mass(s_c) / (2 g(s_r))`.
    """

    def __init__(self, error: float) -> None:
        kappa, profile = _from_mean_error(error)
        self.kappa = kappa
        self.mean_error, self.price = statistics_of(profile, kappa)
        edges = np.linspace(profile.end, 0.0, 60 + int(90 * profile.end))
        tau, weight = gauss_legendre(edges, order=8)
        # edges run from the end to the middle, so steps are negative and s is measured from the end
        s = np.concatenate(([0.0], -np.cumsum((weight * profile.ds(tau)).sum(axis=-1))))
        v = profile.v(edges)
        g = np.sqrt(profile.peak_squared) * np.exp(-(v**2))
        curve = special.hyp1f1(1.0, 3.0, -2 * v**2)
        slope = v * np.sqrt(2 * profile.gap + 2 * profile.peak_squared * v**2 * curve)
        slope[0] = g[0]
        self._end = float(s[-1])
        # left half: log(mass / (exp(s) - 1)), which is smooth at 0; right half: log(g - g') with g'
        # < 0
        rate = np.concatenate(
            (-np.log(g[:1]), s[1:] + np.log(g[1:] - slope[1:]) - log_expm1(s[1:]))
        )
        log_mass = log_expm1(s[1:]) + rate[1:]
        back = s - np.log(g + slope)
        turn = np.concatenate((2 * rate[:1], log_mass - s[1:] - np.log(g[1:] * s[1:])))
        self._log_g, self._rate, self._turn, self._log_sum = _Table.of(
            s, np.log(g), rate, turn, np.log(g + slope)
        )
        (self._rate_by_mass,) = _Table.of(np.concatenate(([0.0], softplus(log_mass))), rate)
        (self._back,) = _Table.of(back, s)
        self._mass_top, self._back_start, self._back_end = (
            float(log_mass[-1]),
            float(back[0]),
            float(back[-1]),
        )

    def near(self, s: Floats) -> Floats:
        """Return the distance of s from the nearer end, up to where the potential is flat."""
        return np.minimum(np.minimum(s, self.kappa - s), self._end)

    def log_2g(self, s: Floats) -> Floats:
        """Return the logarithm of 2 g(s), s between 0 and kappa."""
        return self.log_2g_at(self.near(s))

    def log_2g_at(self, near: Floats) -> Floats:
        """Return `log_2g` from the distance to the nearer end."""
        return self._log_g(near) + np.log(2.0)

    def half_turn(self, near: Floats) -> Floats:
        """Return K(s; s) in the lower half from the distance to the end; 0 to 1/2, increasing."""
        return near * np.exp(self._turn(near)) / 2

    def log_mass(self, s: Floats, log_s: Floats) -> Floats:
        """Return the logarithm of mass(s); `log_s` keeps the digits of a tiny s."""
        near = np.minimum(s, self._end)
        left = log_expm1_scaled(near, log_s) + self._rate(near)
        right = s + self._log_sum(np.minimum(np.maximum(self.kappa - s, 0.0), self._end))
        return np.where(s <= self._end, left, right)

    def log_length(self, log_mass: Floats) -> Floats:
        """Return the logarithm of s, the inverse of `log_mass`."""
        return self._by_layer(log_mass, log_softplus, np.log)

    def length(self, log_mass: Floats) -> Floats:
        """Return s, the inverse of `log_mass`."""
        return self._by_layer(log_mass, softplus, np.asarray)

    def _by_layer(self, log_mass: Floats, left: Function, right: Function) -> Floats:
        """Apply `left` to log(exp(s) - 1) in the left half and `right` to s in the right half.

        The logarithm keeps the digits of a tiny s.
        """
        is_left = log_mass <= self._mass_top
        length = np.empty(log_mass.shape)
        near = log_mass[is_left]
        far = log_mass[~is_left]
        length[is_left] = left(near - self._rate_by_mass(softplus(near)))
        w = self.kappa - far
        inside = self._back(np.clip(w, self._back_start, self._back_end))
        # between the two layers g = 1 and mass = exp(s)
        far = np.where(w > self._back_end, far, self.kappa - inside)
        length[~is_left] = right(np.maximum(far, self._end))
        return length


_potential = lru_cache(maxsize=64)(_Potential)


# --- price of proof: the smallest loss of log score for provable calibration (method: links)

FREE = 1 / 3
"""Mean pathwise error of the true distribution without any draw; the price is 0 from here on."""

WORST = 1 / 2
"""Largest pathwise error."""


def price_of_proof(error: ArrayLike, exact: bool = True) -> Floats:
    """Return the smallest loss of log score for a mean pathwise error of at most `error`.

    No randomized forecaster with a density has a smaller loss, on any data and however it uses its
    draw. The limit is a statement about populations: the loss is the excess NLL over the
    conditional entropy given the forecaster's inputs (not over a fitted base), and the error is the
    exact W1 error. Estimates from a finite test set can be lower.

    Parameters
    ----------
    error : array-like
        Mean pathwise error `E err(X, Y)`, `err(x, y) = W1(h[x, R](y) over R, uniform)`, 0 <
        error <= 1/2, a fraction; any shape.
    exact : bool, default True
        True: the limit for forecasters that are exactly calibrated on average, that is, with
        uniform `h[X, R](Y)`, as every individually calibrated forecaster is. `Entropic` over the
        true distribution attains it. False: the limit for all forecasters, calibrated or not, lower
        by at most 0.0061 nats. `Laplace` over the true distribution attains it.

    Returns
    -------
    ndarray
        Price in nats, same shape as `error`. It is convex, decreases from about
        `-log(2 error) - 1` at small errors to 0 at 1/3, the error of the true distribution without
        a draw, and is 0 above. The relative precision is about 1e-10; near 1/3 it is limited by the
        rounding of `1/3 - error`.

    Raises
    ------
    InputError
        If an error is not a number above 0 and at most 1/2.

    Examples
    --------
    >>> float(price_of_proof(1 / 3))
    0.0
    >>> small = price_of_proof(0.001, exact=False)
    >>> bool(abs(small + np.log(2 * 0.001) + 1) < 0.002)
    True
    """
    # above 1/3 the true distribution meets the target without a draw
    errors, rule = as_floats("error", error), "satisfy 0 < error <= 1/2"
    refuse_entry("error", errors, errors == 0, rule, "an error of 0 has no finite price")
    refuse_entry("error", errors, errors >= 1, rule, "fractions: 0.1, not 10")
    refuse_entry("error", errors, ~((errors > 0) & (errors <= WORST)), rule)
    part = np.minimum(errors, FREE) / FREE
    return _main_term(part) + (1 - part) ** 2 * _remainder(exact)(part)


def _main_term(part: Floats) -> Floats:
    """Return the leading term of the price in `part = 3 error`.

    Like the price, it is logarithmic at small errors and has a double zero at 1/3.
    """
    return -np.log(part) - (1 - part)


@lru_cache(maxsize=2)
def _remainder(exact: bool) -> interpolate.BSpline:
    """Return the spline of `(price - main term) / (1 - 3 error)^2` over `3 error`.

    Its values lie between 0.4 and 0.8, and both ends are known. At small errors `C - r` has a
    Laplace distribution with entropy `1 + log(2 error)`, which gives `log(3/2)`. Near 1/3 the price
    is `(1/3 - error)^2 / (2 v)`, where `v` is the variance of `|c - r|` that is available to the
    family: `E Var(|C - R| | R) = 1/20` for all forecasters, and `2/45` if both marginals must be
    uniform.
    """
    guess = np.linspace(1 / 100, 1 - 1 / 100, 100)
    kappa = 5 * guess / (1 - guess)  # gives almost equally spaced values of `3 error`
    if exact:
        found = [_entropic(float(k)) for k in kappa]
    else:
        links = [Laplace(1 / (1 + float(k))) for k in kappa]
        found = [(link.mean_error, link.price) for link in links]
    error, price = np.array(sorted(found)).T
    part = error / FREE
    inner = (price - _main_term(part)) / (1 - part) ** 2
    variance = 2 / 45 if exact else 1 / 20
    values = np.concatenate(([np.log(3 / 2)], inner, [FREE**2 / (2 * variance) - 1 / 2]))
    return interpolate.make_interp_spline(np.concatenate(([0.0], part, [1.0])), values, k=5)


def _entropic(kappa: float) -> tuple[float, float]:
    """Return mean error and price of an entropic link; below `FLAT` its kappa is near `kappa`."""
    if kappa >= FLAT:
        return statistics_of(longest_profile(), kappa)
    # approximate inverse, exact in both limits: points of a grid need no exact kappa, which would
    # have to be solved for
    profile = Profile.from_logit(float(np.log(kappa / 2) + kappa / np.sqrt(2)))
    return statistics_of(profile, 2 * profile.length)


# --- links by name

LINKS: dict[str, type[Link]] = {link.name: link for link in (Laplace, Entropic, Gaussian)}


def make_link(link: str | Link, alpha: float) -> Link:
    """Return the named link at `alpha`; a `Link` is returned unchanged.

    Examples
    --------
    >>> make_link("gaussian", alpha=0.2)
    Gaussian(alpha=0.2)
    """
    if isinstance(link, Link):
        return link
    return LINKS[check_choice("link", link, tuple(LINKS))](alpha)


def check_link(link: Link) -> Link:
    """Return the link; refuse names and classes of links, which have no `alpha`."""
    if not isinstance(link, Link):
        raise bad_input("link", "be a Link such as Entropic(0.1)", repr(link))
    return link
