"""Base class of links, which are families of distributions on [0, 1] (method: links)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import interpolate, special

from evenhand._validate import Floats, Mask, check_draws, check_fraction, check_probabilities

# --- quadrature over draws, and the mean error of the Laplace link, which defines `alpha`

_rule = lru_cache(np.polynomial.legendre.leggauss)


def gauss_legendre(edges: Floats, order: int = 16) -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss-Legendre rules between `edges`, (..., panels, order)."""
    x, w = _rule(order)
    half = np.diff(edges, axis=-1)[..., None] / 2
    return edges[..., :-1, None] + half * (x + 1), half * w


def half_unit_rule(kappa: float) -> tuple[Floats, Floats]:
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
        return np.asarray(value * np.exp(inside - t))


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
        return np.asarray(errors.reshape(values.shape))

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
        with np.errstate(divide="ignore"):
            log_u = np.log(u)[:, None, None]
        turned = self.ppf_lower(log_u, nodes, np.array(False))
        return np.asarray((np.abs(turned - nodes) * weights).sum(axis=-1))

    def _kink(self, u: Floats) -> Floats:
        """Return the draw `r` with `H(u; r) = r`, for u <= 1/2.

        An error of d in the draw changes the integral by d^2 only.
        """

        def diagonal(r: Floats) -> Floats:
            return np.exp(self.log_cdf_lower(np.log(r), r))

        # K(r; r) increases from 0 to 1/2 at r = 1/2: a table gives the cell, regula falsi the
        # position in it
        grid = np.union1d(EDGES[1 : EDGES.size // 2 + 1], np.linspace(0.0, 0.5, 65)[1:])
        table = np.append(0.0, np.maximum.accumulate(diagonal(grid)))
        grid = np.append(0.0, grid)
        cell = np.clip(np.searchsorted(table, u, side="right") - 1, 0, grid.size - 2)
        low = grid[cell]
        high = grid[cell + 1]
        at_low = table[cell]
        at_high = table[cell + 1]
        for _ in range(3):
            step = at_high - at_low
            share = np.divide(u - at_low, step, out=np.full(u.shape, 0.5), where=step > 0)
            found = np.clip(low + np.clip(share, 0.0, 1.0) * (high - low), LEAST_DRAW, 0.5)
            at = diagonal(found)
            is_below = at < u
            low = np.where(is_below, found, low)
            at_low = np.where(is_below, at, at_low)
            high = np.where(is_below, high, found)
            at_high = np.where(is_below, at_high, at)
        return np.asarray(found)

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
        with np.errstate(divide="ignore"):
            log_value = np.log(np.where(upper, 1 - value, value))
        result = np.exp(lower(log_value, np.where(upper, 1 - draws, draws)))
        return np.clip(np.where(upper, 1 - result, result), 0.0, 1.0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Link) and (self.name, self.alpha) == (other.name, other.alpha)

    def __hash__(self) -> int:
        return hash((self.name, self.alpha))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(alpha={self.alpha:g})"


def _log_odds(u: Floats) -> Floats:
    """Return `log((1 - u) / u)`, infinity at 0."""
    with np.errstate(divide="ignore"):
        return np.log1p(-u) - np.log(u)


_mean_pit_table = lru_cache(maxsize=64)(MeanPITTable)
