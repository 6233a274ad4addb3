"""The price of proof against quadrature, differential equations and optimization.

`e` is a mean pathwise error, `p` a price in nats, `kappa` the slope of the limit. Nothing here is
compared with a figure that the package itself once produced.
"""

from itertools import product

import numpy as np
import pytest
from scipy import integrate, optimize, special

from complaints import complaint
from evenhand.links import LINKS, Entropic, Laplace, price_of_proof
from quadrature import panels, split_at

KAPPAS = (0.1, 0.5, 2.0, 7.0, 20.0, 60.0)


def grid_of(kappa):
    """Nodes and weights on the unit square in (t, c), fine at the ends, split at c = t."""
    half = np.concatenate(([0.0], np.geomspace(min(0.05, 0.3 / kappa), 0.5, 16)))
    edges = np.concatenate((half, 1 - half[-2::-1]))
    t, weight_t = panels(edges)
    c, weight_c = panels(split_at(t, edges))
    return t, weight_t, c, weight_c


def cheapest_of_all(kappa):
    """`1/3 - e` and `p` of the density `exp(-kappa |c - t|) / Z_t`, in full precision.

    With `log k` known to full relative precision, `E (1 - k) |c - t|` and `E (k log k - k + 1)` do
    not cancel.
    """
    t, weight_t, c, weight_c = grid_of(kappa)
    distance = np.abs(c - t[:, None])
    log_z = np.log1p((np.expm1(-kappa * distance) * weight_c).sum(axis=-1))
    log_k = -kappa * distance - log_z[:, None]
    weight = weight_c * weight_t[:, None]
    surplus = np.where(
        np.abs(log_k) < 1e-2, log_k**2 / 2 + log_k**3 / 3 + log_k**4 / 8 + log_k**5 / 30, 0
    )
    surplus = np.where(np.abs(log_k) < 1e-2, surplus, np.exp(log_k) * (log_k - 1) + 1)
    return float((-np.expm1(log_k) * distance * weight).sum()), float((surplus * weight).sum())


@pytest.mark.parametrize("kappa", [1e-3, 1e-2, *KAPPAS])
def test_limit_of_all_forecasters_is_the_integral(kappa):
    less, price = cheapest_of_all(kappa)
    # rounding 1/3 - less to a float moves the price by up to kappa * 6e-17
    found = price_of_proof(1 / 3 - less, exact=False)
    assert found == pytest.approx(price, rel=1e-9, abs=kappa * 1e-16)


def shoot(kappa, start):
    """Solve `f'' = kappa^2 f - 2 kappa / f`, `f(0) = start`, `f'(0) = kappa start` up to 1/2."""
    return integrate.solve_ivp(
        lambda _, f: (f[1], kappa**2 * f[0] - 2 * kappa / f[0]),
        (0.0, 0.5),
        (start, kappa * start),
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
        dense_output=True,
    )


def cheapest_exact(kappa):
    """Mean error and price of the uniform coupling `exp(-kappa |c - r|) / (f(c) f(r))`."""
    scale = np.sqrt(2 / kappa) * np.exp(-0.5)  # of f(0) at large kappa; more at small
    start = optimize.brentq(
        lambda x: shoot(kappa, scale * np.exp(x)).y[1, -1],
        -3.0 if kappa < 1 else -0.5,
        1.0,
        xtol=1e-15,
        rtol=1e-15,
    )
    solved = shoot(kappa, scale * np.exp(start)).sol
    t, weight_t, c, weight_c = grid_of(kappa)
    log_f_t, log_f_c = (
        np.log(solved(np.minimum(x, 1 - x).ravel())[0]).reshape(x.shape) for x in (t, c)
    )
    distance = np.abs(c - t[:, None])
    log_k = -kappa * distance - log_f_c - log_f_t[:, None]
    mass = np.exp(log_k) * weight_c
    np.testing.assert_allclose(mass.sum(axis=-1), 1, atol=1e-10)
    mass *= weight_t[:, None]
    return float((mass * distance).sum()), float((mass * log_k).sum())


@pytest.mark.parametrize("kappa", [0.5, 2.0, 7.0, 15.0])
def test_exact_limit_is_the_coupling_that_the_differential_equation_gives(kappa):
    error, price = cheapest_exact(kappa)
    assert price_of_proof(error) == pytest.approx(price, rel=1e-9)


@pytest.mark.parametrize(("make", "exact"), [(Laplace, False), (Entropic, True)])
@pytest.mark.parametrize("alpha", [0.003, 0.05, 0.2, 0.6, 0.9])
def test_the_link_that_attains_the_limit_does(make, exact, alpha):
    link = make(alpha)
    assert price_of_proof(link.mean_error, exact) == pytest.approx(link.price, rel=1e-9)


@pytest.mark.parametrize("alpha", [0.02, 0.12, 0.5, 0.9, 1.0])
def test_no_link_lies_below_the_limit(alpha):
    for kind in LINKS.values():
        link = kind(alpha)
        assert link.price >= price_of_proof(link.mean_error, kind is not Laplace) - 1e-9


@pytest.mark.parametrize("exact", [False, True])
def test_price_falls_and_is_convex(exact):
    for errors in (
        np.linspace(1e-3, 1 / 3, 2001),
        np.linspace(0.33, 1 / 3, 201),
        np.linspace(1e-8, 1e-6, 201),
    ):
        price = price_of_proof(errors, exact)
        assert (np.diff(price) < 0).all()
        assert (np.diff(price, 2) > 0).all()


def test_calibration_on_average_costs_at_most_what_the_documentation_says():
    errors = np.geomspace(1e-4, 1 / 3, 400)
    more = price_of_proof(errors) - price_of_proof(errors, exact=False)
    assert (more[:-1] > 0).all()
    assert 0.005 < more.max() < 0.0061


@pytest.mark.parametrize("exact", [False, True])
def test_price_of_small_errors_is_that_of_the_laplace_law(exact):
    """A law on the whole line with mean distance e has entropy `1 + log(2 e)`.

    The two ends add a term in e.

    For all forecasters both ends together cost `2 Li2(1/2) e`, as `-log Z_t` near an end is `log
    kappa - log(2 - exp(-kappa t))`. With both marginals uniform it is `-4 I e`, `I` the integral of
    `log g` along the potential `g'' = g - 1/g` from `g(0) = exp(-1/2)` to 1.
    """
    # with g = exp(-w), w from 0 to 1/2, ds = -dg / g' and g'^2 = g^2 - 1 - 2 log g
    slope = integrate.quad(
        lambda w: w * np.exp(-w) / np.sqrt(np.expm1(-2 * w) + 2 * w), 0, 0.5, epsabs=1e-12
    )[0]
    term = 4 * slope if exact else 2 * special.spence(0.5)
    error = np.array([1e-3, 1e-4, 1e-5, 1e-9, 1e-30, 1e-300])
    expected = -np.log(2 * error) - 1 + term * error
    found = price_of_proof(error, exact)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=10 * error[0] ** 2)
    ours = price_of_proof(error[1:], exact)
    np.testing.assert_allclose(ours, expected[1:], rtol=1e-14, atol=1e-7)


@pytest.mark.parametrize("exact", [False, True])
def test_errors_from_a_third_on_cost_nothing(exact):
    np.testing.assert_array_equal(price_of_proof([1 / 3, 0.34, 0.5], exact), 0)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (0, "error must satisfy 0 < error <= 1/2, got 0.0; an error of 0 has no finite price"),
        (12, "error must satisfy 0 < error <= 1/2, got 12.0; fractions: 0.1, not 10"),
        ([0.1, np.nan], "error[1] must satisfy 0 < error <= 1/2, got nan"),
        ([[0.1, 0.2], [0.3, np.inf]], "error[1, 1] must satisfy 0 < error <= 1/2, got inf"),
    ],
)
def test_errors_out_of_range_are_refused(error, message):
    assert complaint(price_of_proof, error).startswith(message)


def hostile(random):
    """Densities of PITs in 32 cells (columns) under draws in 32 cells (rows), without an order."""
    m = 32
    families = [random.dirichlet(np.full(m, size), m) for size in (0.3, 5.0, 50.0)]
    families.append(np.exp(random.normal(size=(m, m)).cumsum(axis=1)))
    for kind, alpha in product((Laplace, Entropic), (0.03, 0.1, 0.3)):
        k = np.diff(kind(alpha).cdf(np.linspace(0, 1, m + 1), (np.arange(m)[:, None] + 0.5) / m))
        rotated = np.array([np.roll(k[0], i) for i in random.integers(m, size=m)])
        families += [k, k[:, random.permutation(m)], np.concatenate((k[::2], k[1::2][::-1]))]
        families += [k + k[random.permutation(m)], np.repeat(k[::4], 4, axis=0), rotated]
    return [(one + 1e-9) / (one + 1e-9).mean(axis=1, keepdims=True) for one in families]


@pytest.mark.parametrize("exact", [False, True])
def test_no_family_of_forecasts_lies_below_the_limit(exact):
    nearest = np.inf
    cell = np.arange(32)
    # the mean distance of uniform positions in two cells
    distance = np.where(cell == cell[:, None], 1 / 3, np.abs(cell - cell[:, None])) / 32
    for density in hostile(np.random.default_rng(0)):
        for _ in range(500 if exact else 0):  # until PITs of all people together are uniform
            density /= density.mean(axis=0)
            density /= density.mean(axis=1, keepdims=True)
        if exact and np.ptp(density.mean(axis=0)) > 1e-9:
            continue
        error, price = (density * distance).mean(), special.xlogy(density, density).mean()
        above = price - price_of_proof(min(error, 0.5), exact)
        assert above > -1e-9
        nearest = min(nearest, above)
    assert nearest < 0.05  # some come near enough for the test to mean something
