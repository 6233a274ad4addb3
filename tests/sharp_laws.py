"""Distributions of base PITs for tests of the sharp certificate, and their true group errors."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from scipy import special

MASSES = (0.05, 0.1, 0.2, 0.5, 0.8, 1.0)

_TAIL = np.append(0.0, np.geomspace(1e-13, 0.02, 160))
EDGES = np.unique(np.concatenate((_TAIL, np.linspace(0.02, 0.98, 241), 1 - _TAIL)))
"""Edges of cells of base PITs; within a cell a group takes everybody in the same proportion."""

ACCURACY = 1e-4
"""Largest numerical error of the group errors here."""

_END = np.append(0.0, np.geomspace(1e-6, 0.02, 40))
_LEVEL_EDGES = np.unique(np.concatenate((_END, np.linspace(0.02, 0.98, 181), 1 - _END)))
WIDTHS = np.diff(_LEVEL_EDGES)
LEVELS = _LEVEL_EDGES[:-1] + WIDTHS / 2
"""Probability levels at which served CDFs are compared with the diagonal, in cells of `WIDTHS`."""


@dataclass(frozen=True)
class Law:
    """Mixture of betas (weight, a, b) and atoms (weight, place); PITs are multiples of 2^-53."""

    betas: tuple[tuple[float, float, float], ...] = ()
    atoms: tuple[tuple[float, float], ...] = ()

    def cdf(self, u, *, below=False):
        """Return `P(U <= u)`, or `P(U < u)`."""
        total = np.zeros(np.shape(u))
        half = -(2.0**-54) if below else 2.0**-54
        for weight, a, b in self.betas:
            low = special.betainc(a, b, np.clip(u + half, 0.0, 1.0))
            high = 1 - special.betainc(b, a, np.clip((1 - u) - half, 0.0, 1.0))
            total += weight * np.where(u < 0.5, low, high)
        for weight, place in self.atoms:
            total += weight * (u > place if below else u >= place)
        return total

    def sample(self, rng, n):
        weights = [part[0] for part in self.betas + self.atoms]
        kinds = rng.choice(len(weights), size=n, p=np.array(weights) / sum(weights))
        values = np.empty(n)
        for kind, part in enumerate(self.betas + self.atoms):
            rows = kinds == kind
            values[rows] = part[1] if len(part) == 2 else rng.beta(*part[1:], size=rows.sum())
        return np.asarray(np.round(values * 2.0**53) / 2.0**53)

    def points(self):
        at = np.array([place for _, place in self.atoms])
        inner = Law(self.betas).cdf(EDGES[1:-1])
        ends = [0.0], inner, [sum(weight for weight, *_ in self.betas)]
        places = np.append((EDGES[1:] + EDGES[:-1]) / 2, at)
        weights = np.append(np.diff(np.concatenate(ends)), [weight for weight, _ in self.atoms])
        return places[weights > 0], weights[weights > 0]


LAWS = {
    "right": Law(((1, 1, 1),)),
    "biased": Law(((1, 1.5, 0.8),)),
    "too wide": Law(((1, 3, 3),)),
    "too narrow": Law(((1, 0.6, 0.6),)),
    "bimodal": Law(((0.5, 2, 9), (0.5, 9, 2))),
    "two tails": Law(((1, 0.25, 0.25),)),
    "atoms at both ends": Law(((0.85, 1, 1),), ((0.05, 0.0), (0.1, 1.0))),
    "atom inside": Law(((0.7, 1, 1),), ((0.3, 0.5),)),
    "atoms only": Law((), tuple((1 / 9, place / 8) for place in range(9))),
}


@lru_cache(maxsize=64)
def served_cdfs(link, places):
    """Return the CDF of the served PIT of each base PIT at the levels, shape (places, levels)."""
    ends = np.geomspace(1e-9, 1e-3, 40)
    r = np.concatenate((ends, np.linspace(1e-3, 1 - 1e-3, 500)[1:-1], 1 - ends[::-1]))
    served = link.ppf(np.array(places)[:, None], r)
    return np.stack([np.interp(LEVELS, row, r, left=0.0, right=1.0) for row in served])


def group_error(weights, cdfs):
    return np.asarray(np.abs(weights @ cdfs - LEVELS) @ WIDTHS)


def largest_weights(values, probabilities, mass):
    """Return the weights of the group of a mass that takes the largest values of each row first."""
    order = np.argsort(-values, axis=-1, kind="stable")
    before = np.cumsum(probabilities[order], axis=-1) - probabilities[order]
    taken = np.clip(mass - before, 0.0, probabilities[order])
    weights = np.empty_like(values)
    np.put_along_axis(weights, order, taken, axis=-1)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _sign_patterns():
    """Return patterns with at most two sign changes, one per row."""
    places = np.linspace(0.0, 1.0, 5)
    rows = [
        np.where((first > LEVELS) | (second <= LEVELS), 1.0, -1.0)
        for first, second in product(places, places)
        if first <= second
    ]
    rising = np.unique(np.stack(rows), axis=0)
    return np.concatenate((rising, -rising))


@lru_cache(maxsize=1024)
def found_error(law, link, mass):
    """Return the largest W1 error of a group of the law that an alternating ascent finds."""
    places, probabilities = law.points()
    return ascended_error(probabilities, served_cdfs(link, tuple(places)), mass) - ACCURACY


def ascended_error(probabilities, cdfs, mass):
    """Return the largest W1 error of a group of a mass that an alternating ascent finds.

    For given signs of `F_S(c) - c` the best group takes the people with the largest values of
    `E_R T(H(U; R))`; its signs follow (method: worst groups). It is the error of an actual group,
    hence at most the largest one. `cdfs` has a row for each kind of people.
    """
    signs = _sign_patterns()
    best = 0.0
    while True:
        weights = largest_weights((signs * WIDTHS) @ cdfs.T, probabilities, mass)
        served = weights @ cdfs - LEVELS
        errors = np.abs(served) @ WIDTHS
        if errors.max() <= best + ACCURACY:
            break
        best = float(errors.max())
        signs = np.unique(np.where(served > 0, 1.0, -1.0), axis=0)
    return best


def every_corner(probabilities, mass):
    """Return weights of the groups that take all but one atom whole or not: W1 is convex."""
    k = probabilities.size
    whole = np.array(list(product((0.0, 1.0), repeat=k)))
    rows = []
    for partial in range(k):
        inside = whole[whole[:, partial] == 0] * probabilities
        rest = mass - inside.sum(axis=-1)
        fits = (rest >= 0) & (rest <= probabilities[partial] + 1e-15)
        inside = inside[fits]
        inside[:, partial] = rest[fits]
        rows.append(inside)
    return np.concatenate(rows) / mass
