"""The mean served PIT `mu(u) = integral H(u; r) dr` and its integral.

Expected values come from scipy's adaptive quadrature, from a fine rule over draws, from symmetry
and from derivatives; nothing here is compared with a figure that the package once produced.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from scipy import integrate, special

from evenhand.links import LINKS, Entropic, Gaussian, Laplace, Link, make_link
from quadrature import Floats, panels
from repeats import repeats, statistical

PAIRS = [
    *(("laplace", 0.002), ("entropic", 0.005), ("gaussian", 0.02), ("laplace", 0.05)),
    *(("entropic", 0.12), ("gaussian", 0.6), ("laplace", 0.95), ("entropic", 1.0)),
]
DEEP = np.array([1e-300, 1e-100, 1e-30, 1e-14, 1e-8, 1e-5])
UNIT = np.concatenate((DEEP, [1e-3, 0.01, 0.04, 0.1, 0.27, 0.4, 0.49, 0.4999, 0.5]))
UNIT = np.concatenate((UNIT, 1 - UNIT[4:-1], [1 - 1e-12]))


def over_draws(link: Link, u: Floats) -> Floats:
    """Mean PITs by a rule whose panels are far narrower than all that H bends over."""
    if isinstance(link, Gaussian):
        # draws as normal scores, where the gaussian link is smooth; beyond 9 lies 1e-19
        z = np.linspace(-9, 9, 3001)
        weights = np.exp(-(z**2) / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
        shifted = np.sqrt(1 - link.rho**2) * special.ndtri(u)[:, None] + link.rho * z
        return np.asarray(special.ndtr(shifted) @ weights)
    r, weights = panels(np.linspace(0, 1, 3001), order=6)
    return np.asarray([link.ppf(each, r) @ weights for each in u])


@pytest.mark.parametrize(("name", "alpha"), PAIRS)
def test_mean_pit_is_the_mean_over_draws(name: str, alpha: float) -> None:
    link = make_link(name, alpha)
    np.testing.assert_allclose(link.mean_pit(UNIT), over_draws(link, UNIT), rtol=0, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5])
def test_mean_pit_agrees_with_adaptive_quadrature_of_the_printed_formula(alpha: float) -> None:
    kappa = (1 - alpha) / alpha
    link = Laplace(alpha)

    def ppf(r: float, u: float) -> float:
        d = 2 - np.exp(-kappa * r) - np.exp(-kappa * (1 - r))
        if u <= (1 - np.exp(-kappa * r)) / d:
            return r + float(np.logaddexp(-kappa * r, np.log(d * u))) / kappa
        return r - float(np.logaddexp(-kappa * (1 - r), np.log(d * (1 - u)))) / kappa

    for u in (1e-14, 1e-3, 0.2, 0.5, 0.8, 1 - 1e-12):
        bends = np.clip(np.array([-3, 0, 3]) / kappa - np.log(u) / kappa, 0, 1)
        ends = np.clip(np.array([0.3, 1, 3, 10]) / kappa, 0, 0.5)
        edges = np.unique(np.concatenate(([0, 1], ends, 1 - ends, bends)))
        mean = sum(
            integrate.quad(ppf, a, b, args=(u,), epsabs=1e-11, limit=500)[0]
            for a, b in itertools.pairwise(edges)
        )
        assert float(link.mean_pit(u)) == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize(("name", "alpha"), PAIRS)
def test_mean_pit_is_symmetric_and_increases_from_zero_to_one(name: str, alpha: float) -> None:
    link = make_link(name, alpha)
    u = np.concatenate((np.geomspace(1e-300, 1e-3, 400)[:-1], np.linspace(1e-3, 0.5, 2001)))
    mean = link.mean_pit(u)
    assert (np.diff(mean) > 0).all()
    assert mean[-1] == pytest.approx(0.5, abs=1e-11)
    np.testing.assert_array_equal(link.mean_pit([0.0, 1.0]), [0.0, 1.0])
    dyadic = np.arange(33) / 64  # 1 - u is exact
    np.testing.assert_allclose(link.mean_pit(1 - dyadic), 1 - link.mean_pit(dyadic), atol=1e-15)


@pytest.mark.parametrize(("name", "alpha"), PAIRS)
def test_the_integral_is_that_of_mean_pit(name: str, alpha: float) -> None:
    link = make_link(name, alpha)
    np.testing.assert_allclose(link.mean_pit_integral([0.0, 1.0]), [0.0, 0.5], rtol=0, atol=1e-15)
    u = np.array([1e-200, 1e-12, 1e-4, 0.03, 0.2, 0.5, 0.8, 0.999, 1 - 1e-9])
    # in negative log odds t, du = -u (1 - u) dt
    fine = 2.0 ** -np.arange(15)
    steps = np.concatenate((np.arange(2, 600), fine, [0], -fine, -np.arange(2, 40)))
    for each in u:
        start = np.log1p(-each) - np.log(each)
        edges = np.append(start, np.sort(steps[(steps > start) & (steps < start + 45)]))
        t, weights = panels(edges)
        v = special.expit(-t)
        expected = (link.mean_pit(v) * v * special.expit(t)) @ weights
        bound = 1e-9 * (each if each < 0.5 or name != "gaussian" else 1)
        assert float(link.mean_pit_integral(each)) == pytest.approx(expected, rel=0, abs=bound)


def test_numbers_of_the_method() -> None:
    slope = [
        float(np.diff(Entropic(0.05).mean_pit([u - h, u + h]))[0] / (2 * h))
        for u, h in ((0.5, 1e-4), (0.001, 1e-6))
    ]
    assert f"{slope[0]:.2f}" == "0.10"
    assert f"{slope[1]:.0f}" == "35"
    assert f"{float(Entropic(0.02).mean_pit(1e-14)):.2f}" == "0.06"


# --- theorem 1 and the pointwise bound of the sharp certificate
#
# A problem is a base whose PIT has twelve equally probable values. All groups of a given number of
# these values are formed, and the group error `integral |P(C <= c | S) - c| dc` of each is computed
# from the distribution of its randomized PITs on a fine grid, exact to about 1e-7. The bounds are
# computed here, from the base's distribution itself, by code that the package does not use.

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
