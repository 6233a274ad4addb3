"""Gauss-Legendre rules for tests, apart from the package's own, and the link of a correlation."""

import numpy as np
from scipy import optimize

from evenhand.links import Gaussian


def panels(edges, order=12):
    """Nodes and weights between consecutive `edges` (last axis), flattened over the panels."""
    x, w = np.polynomial.legendre.leggauss(order)
    half = np.diff(edges, axis=-1)[..., None] / 2
    nodes = edges[..., :-1, None] + half * (x + 1)
    return nodes.reshape(*edges.shape[:-1], -1), (half * w).reshape(*edges.shape[:-1], -1)


def split_at(points, edges):
    """Return `edges` with one more edge in each row, where the integrand has its kink."""
    rows = np.broadcast_to(edges, (points.size, edges.size))
    return np.sort(np.concatenate((rows, points[:, None]), axis=-1), axis=-1)


def gaussian_link(rho):
    return Gaussian(
        float(optimize.brentq(lambda alpha: Gaussian(alpha).rho - rho, 1e-9, 1.0, xtol=1e-17))
    )
