"""Table of the mean PIT over draws, `mu(u) = integral H(u; r) dr` (method: the sharp certificate).

The lower half is tabulated in the negative log odds `t = log((1 - u) / u)`, which is 0 at the
median. In `t`, and in draws over the link's mean error, features have a width of about one. They
are near the median and where even the largest draws leave `u` near 0. Between the two, `mu` is a
quadratic in `t` up to terms that fall exponentially.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy import interpolate, special

from evenhand._validate import Floats
from evenhand.links.quadrature import gauss_legendre

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
    span : float
        Reciprocal of the link's mean error.
    ppf : callable
        `H(u; r)` from log u and r.
    kink : callable
        The draw with `H(u; r) = r`, at which `H` has a kink, from an array of `u`.
    """

    def __init__(
        self,
        span: float,
        ppf: Callable[[Floats, Floats], Floats],
        kink: Callable[[Floats], Floats],
    ) -> None:
        self._edges = log_odds_edges(span)
        self._half = np.diff(self._edges) / 2
        self._nodes, _ = gauss_legendre(self._edges, ORDER)
        # every panel has the same nodes between -1 and 1
        x = (self._nodes[0] - self._edges[0]) / self._half[0] - 1
        to_powers = np.linalg.inv(np.vander(x, increasing=True))
        values = self._over_draws(span, ppf, kink)
        self._mean = to_powers @ values.T
        self._ratio = to_powers @ self._ratios(values, x, to_powers).T

    def mean(self, t: Floats) -> Floats:
        """Return `mu(u)` at negative log odds `t >= 0`."""
        return np.asarray(self._at(self._mean, t) * self._beyond(t))

    def ratio(self, t: Floats) -> Floats:
        """Return `integral_0^u mu / u` at negative log odds `t >= 0`."""
        return np.asarray(self._at(self._ratio, t) * self._beyond(t))

    def score(self, level: Floats) -> Floats:
        """Return the normal score of `u` at which that of `mu(u)` is `level`, both positive."""
        return np.asarray(self._scores(np.minimum(level, self._scores.x[-1])))

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

    def _over_draws(
        self,
        span: float,
        ppf: Callable[[Floats, Floats], Floats],
        kink: Callable[[Floats], Floats],
    ) -> Floats:
        """Return `mu` at the nodes, by quadrature over draws."""
        log_u = special.log_expit(-self._nodes)
        kinks = kink(np.exp(log_u).ravel()).reshape(log_u.shape)
        found = np.empty(log_u.shape)
        for panel, t in enumerate(self._nodes):
            # in the wide panel, each node has its own panels of draws
            n_parts = ORDER if self._half[panel] > WIDTH else 1
            for part in np.split(np.arange(ORDER), n_parts):
                edges = np.tile(draw_edges(t[part], span), (part.size, 1))
                split = np.sort(np.append(edges, kinks[panel, part, None], axis=-1), axis=-1)
                r, weights = gauss_legendre(split, order=8)
                turned = ppf(log_u[panel, part, None, None], r)
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

    def _beyond(self, t: Floats) -> Floats:
        """Return the factor of a function proportional to `u` beyond the last edge."""
        return np.asarray(np.exp(np.minimum(self._edges[-1] - t, 0.0)))

    def _at(self, powers: Floats, t: Floats) -> Floats:
        """Evaluate the panels' polynomials at `t`; `powers` (order, k), increasing."""
        panel = np.clip(np.searchsorted(self._edges, t, side="right") - 1, 0, self._half.size - 1)
        inside = np.minimum(t, self._edges[-1])
        x = (inside - self._edges.take(panel)) / self._half.take(panel) - 1
        value = powers[-1].take(panel)
        # Horner's scheme, in place
        for power in powers[-2::-1]:
            value *= x
            value += power.take(panel)
        return np.asarray(value)
