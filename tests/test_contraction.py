"""Theorem 1 and the pointwise bound of the sharp certificate against brute force.

A problem is a base whose PIT has twelve equally probable values. All groups of a given number of
these values are formed, and the group error `integral |P(C <= c | S) - c| dc` of each is computed
from the distribution of its randomized PITs on a fine grid, exact to about 1e-7. The bounds are
computed here, from the base's distribution itself, by code that the package does not use.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from scipy import special

from evenhand.links import LINKS, Gaussian, Laplace, Link, make_link
from quadrature import Floats
from repeats import repeats, statistical

FAMILIES = ("entropic", "gaussian", "entropic", "gaussian", "laplace")
N_VALUES = 12
EXACT = 1e-6

SHAPES: dict[str, Callable[[Generator], Floats]] = {
    "uniform": lambda rng: rng.uniform(size=N_VALUES),
    "low tail": lambda rng: rng.beta(0.4, 2, N_VALUES),
    "high tail": lambda rng: rng.beta(2, 0.4, N_VALUES),
    "two-tailed": lambda rng: rng.beta(0.25, 0.25, N_VALUES),
    "central": lambda rng: rng.beta(6, 6, N_VALUES),
    "bimodal": lambda rng: np.append(rng.beta(20, 60, 6), rng.beta(60, 20, 6)),
    "atoms": lambda rng: rng.permutation(np.append([0, 0, 1, 1, 0.3, 0.3], rng.uniform(size=6))),
}

DRAWS = np.concatenate(([1e-12], np.arange(1, 8000) / 8000, [1 - 1e-12]))
_EDGE = np.geomspace(1e-9, 1e-3, 500)
_EVEN = np.concatenate(([0.0], _EDGE[:-1], np.linspace(1e-3, 1 - 1e-3, 1001), 1 - _EDGE, [1.0]))


class Served:
    """Distributions of the randomized PITs of people with given PITs, under one link.

    `cdf` is `P(H(u; R) <= c)` for each PIT u, (members), and each c of `grid`.
    """

    def __init__(self, link: Link, values: Floats) -> None:
        turned = [link.ppf(u, DRAWS) for u in values]
        # fine where a person's distribution lies
        self.grid = np.unique(np.concatenate((_EVEN, *(each[::40] for each in turned))))
        if isinstance(link, Gaussian):
            rest = np.sqrt(1 - link.rho**2)
            with np.errstate(invalid="ignore"):
                scores = special.ndtri(self.grid) - rest * special.ndtri(values)[:, None]
                self.cdf = special.ndtr(scores / link.rho)
        else:
            # H(u; .) increases: P(H(u; R) <= c) is the draw at which it is c
            self.cdf = np.stack([np.interp(self.grid, each, DRAWS, left=0) for each in turned])
        self.cdf[values == 0] = 1.0
        self.cdf[values == 1] = 0.0
        self.cdf[:, -1] = 1.0

    def over_levels(self, function: Floats) -> Floats:
        return np.asarray(np.trapezoid(function, self.grid, axis=-1))

    def group_errors(self, groups: Floats) -> Floats:
        """Group errors of groups of people, (groups, members)."""
        chosen = np.zeros((len(groups), len(self.cdf)))
        np.put_along_axis(chosen, groups, 1 / groups.shape[-1], axis=-1)
        parts = np.array_split(chosen, 8)
        return np.concatenate(
            [self.over_levels(np.abs(part @ self.cdf - self.grid)) for part in parts]
        )

    def pointwise(self, size: int) -> float:
        """`integral max(a, b) dc` for groups of `size` people.

        `F(K(c; r))` is the share of PITs u with `r <= P(H(u; R) <= c)`, a step function of r.
        """
        ends = np.ones((1, self.grid.size))
        falls = np.concatenate((ends, -np.sort(-self.cdf, axis=0), 0 * ends))
        # lengths of the draws at which so many PITs are at most K(c; r)
        lengths = falls[:-1] - falls[1:]
        share = np.arange(len(self.cdf) + 1)[:, None] / len(self.cdf)
        mass = size / len(self.cdf)
        high = (np.minimum(1, share / mass) * lengths).sum(axis=0)
        low = (np.maximum(0, 1 - (1 - share) / mass) * lengths).sum(axis=0)
        return float(self.over_levels(np.maximum(high - self.grid, self.grid - low)))


def contraction(link: Link, values: Floats) -> Floats:
    """`integral |F_S(u) - u| dmu(u)` of groups with these PITs, (groups, members).

    Between neighbouring PITs F_S is constant; `u mu - integral mu` is the antiderivative of u dmu.
    """
    n_groups, size = values.shape
    at = np.sort(values, axis=-1)
    edges = np.concatenate((np.zeros((n_groups, 1)), at, np.ones((n_groups, 1))), axis=-1)
    share = np.arange(size + 1) / size
    low, high = edges[:, :-1], edges[:, 1:]
    turn = np.clip(share, low, high)

    def above(a: Floats, b: Floats) -> Floats:
        """Return `integral (share - u) dmu` from a to b."""
        mu_a, mu_b = link.mean_pit(a), link.mean_pit(b)
        moment = b * mu_b - link.mean_pit_integral(b) - a * mu_a + link.mean_pit_integral(a)
        return np.asarray(share * (mu_b - mu_a) - moment)

    return np.asarray((above(low, turn) - above(turn, high)).sum(axis=-1))


@statistical
def test_no_group_is_worse_than_the_bounds() -> None:
    # 252 problems, 36 of each shape, a fifth of them laplace; an eighth of all in a short run
    n_equal = 0
    for problem in range(repeats(252)):
        rng = np.random.default_rng(problem)
        shape = list(SHAPES)[problem % 7]
        link = make_link(FAMILIES[problem // 7 % 5], (0.05, 0.12, 0.3, 0.6)[problem // 3 % 4])
        size = (3, 6)[problem % 2]
        values = SHAPES[shape](rng)
        groups = np.array(list(itertools.combinations(range(N_VALUES), size)))
        served = Served(link, values)
        errors = served.group_errors(groups)
        bounds = contraction(link, values[groups])
        note = f"problem {problem}, {shape}, {link}, groups of {size}"
        # people's PITs are served exactly by all links but laplace
        assert (errors <= bounds + link.calibration_error + EXACT).all(), note
        # valid for laplace as it is
        assert errors.max() <= served.pointwise(size) + EXACT, note
        # groups with one sign of F_S - u: equality with the difference of means
        members = np.sort(values[groups], axis=-1)
        steps = np.arange(size + 1) / size
        one_sided = (members <= steps[:-1]).all(axis=-1) | (members >= steps[1:]).all(axis=-1)
        if not isinstance(link, Laplace):
            means = np.abs(link.mean_pit(members[one_sided]).mean(axis=-1) - 0.5)
            np.testing.assert_allclose(errors[one_sided], means, rtol=0, atol=EXACT, err_msg=note)
            np.testing.assert_allclose(bounds[one_sided], means, rtol=0, atol=1e-9, err_msg=note)
            n_equal += int(one_sided.sum())
    assert n_equal > 20


@pytest.mark.parametrize("name", sorted(LINKS))
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3, 0.7])
def test_over_a_right_base_the_worst_group_is_one_tail(name: str, alpha: float) -> None:
    # sufficient for that: 1 / mu' is symmetric and subadditive
    link = make_link(name, alpha)
    u = np.arange(1, 200) / 400
    step = 1e-5
    slow = 2 * step / (link.mean_pit(u + step) - link.mean_pit(u - step))
    both = np.concatenate((slow, slow[-2::-1]))  # 1/400 to 397/400
    first, second = np.meshgrid(np.arange(both.size), np.arange(both.size))
    inside = first + second + 1 < both.size
    first, second = first[inside], second[inside]
    assert (both[first + second + 1] <= (both[first] + both[second]) * (1 + 1e-6)).all()
