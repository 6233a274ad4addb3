"""Quadrature over draws, and the mean error of the Laplace link, which defines `alpha`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import optimize, special

from evenhand._validate import Floats

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


def alpha_from_mean_error(error: float) -> float:
    """Return the alpha at which `Laplace(alpha).mean_error` is `error`, 0 < error <= 1/3."""
    if error >= 1 / 3:
        return 1.0
    # the mean error is at most 1/kappa and at most 1/3
    top = np.log(2 / error)
    found = optimize.brentq(
        lambda x: laplace_mean_error(float(np.exp(x))) - error, -40.0, top, xtol=1e-14, rtol=1e-14
    )
    return float(1 / (1 + np.exp(found)))
