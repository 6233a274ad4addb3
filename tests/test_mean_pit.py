"""The mean served PIT `mu(u) = integral H(u; r) dr` and its integral, by quadrature."""

import numpy as np
import pytest
from scipy import special

from evenhand.links import Gaussian, make_link
from quadrature import panels

PAIRS = [
    *(("laplace", 0.002), ("entropic", 0.005), ("gaussian", 0.02), ("laplace", 0.05)),
    *(("entropic", 0.12), ("gaussian", 0.6), ("laplace", 0.95), ("entropic", 1.0)),
]
DEEP = np.array([1e-300, 1e-100, 1e-30, 1e-14, 1e-8, 1e-5])
UNIT = np.concatenate((DEEP, [1e-3, 0.01, 0.04, 0.1, 0.27, 0.4, 0.49, 0.4999, 0.5]))
UNIT = np.concatenate((UNIT, 1 - UNIT[4:-1], [1 - 1e-12]))


def over_draws(link, u):
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
def test_mean_pit_is_the_mean_over_draws(name, alpha):
    link = make_link(name, alpha)
    np.testing.assert_allclose(link.mean_pit(UNIT), over_draws(link, UNIT), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("name", "alpha"), PAIRS)
def test_mean_pit_is_symmetric_and_increases_from_zero_to_one(name, alpha):
    link = make_link(name, alpha)
    u = np.concatenate((np.geomspace(1e-300, 1e-3, 400)[:-1], np.linspace(1e-3, 0.5, 2001)))
    mean = link.mean_pit(u)
    assert (np.diff(mean) > 0).all()
    assert mean[-1] == pytest.approx(0.5, abs=1e-11)
    np.testing.assert_array_equal(link.mean_pit([0.0, 1.0]), [0.0, 1.0])
    dyadic = np.arange(33) / 64  # 1 - u is exact
    np.testing.assert_allclose(link.mean_pit(1 - dyadic), 1 - link.mean_pit(dyadic), atol=1e-15)


@pytest.mark.parametrize(("name", "alpha"), PAIRS)
def test_the_integral_is_that_of_mean_pit(name, alpha):
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
