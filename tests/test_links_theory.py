"""The links against theory: brute force, Sinkhorn, quadrature and the table of the method.

Nothing here is compared with a figure that the package itself once produced. `e` is a mean pathwise
error `E|C - R|`, a price is `E_r KL(K(.; r) || Uniform)` in nats.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from evenhand.links import Entropic, Gaussian, Laplace, Link
from quadrature import gaussian_link, panels, split_at

ALPHAS = (0.05, 0.12, 0.2, 1 / 3, 0.5)


# alpha: group error of the worst group and CVaR of the error, at masses 0.1, 0.2 and 0.5, entropic
WORST = {
    0.05: (("0.125", "0.156"), ("0.093", "0.125"), ("0.049", "0.082")),
    0.10: (("0.234", "0.286"), ("0.178", "0.234"), ("0.095", "0.159")),
    0.20: (("0.375", "0.428"), ("0.301", "0.375"), ("0.168", "0.273")),
    0.50: (("0.445", "0.473"), ("0.391", "0.446"), ("0.240", "0.373")),
}


# --- Laplace minimizes the paper's objective


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5, 0.9])
def test_training_through_laplace_is_training_by_likelihood(alpha: float) -> None:
    # the paper's objective of a link around any model, less alpha times the model's own NLL,
    # depends on the draw alone: at each draw it is the same for a model that is right, one that is
    # biased and one that is too narrow
    link, random = Laplace(alpha), np.random.default_rng(0)
    y, r = random.normal(size=2000), random.uniform(size=2000)
    left = []
    for model in (stats.norm(0, 1), stats.norm(0.7, 1), stats.norm(0, 0.4)):
        pit = model.cdf(y)
        c = link.ppf(pit, r)
        log_density = model.logpdf(y) - link.logpdf(c, r)
        # a PIT within 1e-6 of 1 has lost digits
        kept = pit < 1 - 1e-6
        left.append(
            np.where(
                kept, (1 - alpha) * np.abs(c - r) - alpha * (log_density - model.logpdf(y)), np.nan
            )
        )
    kappa = (1 - alpha) / alpha
    normalizer = np.array(
        [
            integrate.quad(lambda c, r=one: np.exp(-kappa * abs(c - r)), 0, 1, points=[one])[0]
            for one in r[:20]
        ]
    )
    for each in left:
        np.testing.assert_allclose(each[:20], -alpha * np.log(normalizer), atol=1e-9)
        assert np.nanmax(np.abs(each - left[0])) < 1e-9


# --- price and mean error by integration


@pytest.mark.parametrize("alpha", [0.03, *ALPHAS, 0.9])
@pytest.mark.parametrize("make", [Laplace, Entropic])
def test_price_and_mean_error_are_the_integrals_of_the_density(
    make: type[Link], alpha: float
) -> None:
    link = make(alpha)
    edges = np.linspace(0, 1, 25)
    r, weight_r = panels(edges)
    c, weight_c = panels(split_at(r, edges))
    density, weight = link.pdf(c, r[:, None]), weight_c * weight_r[:, None]
    assert (density * weight).sum() == pytest.approx(1, abs=1e-10)
    assert (density * np.abs(c - r[:, None]) * weight).sum() == pytest.approx(
        link.mean_error, abs=1e-10
    )
    assert (density * link.logpdf(c, r[:, None]) * weight).sum() == pytest.approx(
        link.price, abs=1e-10
    )


@pytest.mark.parametrize("rho", [0.05, 0.3, 0.7, 0.95, 0.999])
def test_gaussian_price_and_mean_error_in_closed_form_and_by_integration(rho: float) -> None:
    link = gaussian_link(rho)
    assert link.price == pytest.approx(-0.5 * np.log((1 - rho) * (1 + rho)), rel=1e-12, abs=1e-15)
    # E|Phi(Z) - Phi(T)| over a bivariate normal pair, panels in z split at the kink z = t; beyond
    # 8.5 lies 2e-17
    t, weight_t = panels(np.linspace(-8.5, 8.5, 41))
    rest = np.sqrt((1 - rho) * (1 + rho))
    w, weight_w = panels(
        split_at(np.clip((1 - rho) * t / rest, -8.5, 8.5), np.linspace(-8.5, 8.5, 41))
    )
    normal = np.exp(-(w**2 + t[:, None] ** 2) / 2) / (2 * np.pi) * weight_w * weight_t[:, None]
    z = rho * t[:, None] + rest * w
    error = (np.abs(special.ndtr(z) - special.ndtr(t)[:, None]) * normal).sum()
    assert link.mean_error == pytest.approx(error, abs=1e-10)
    # mutual information as the mean of the log density; scores beyond 7 are left out (weight 3e-12)
    inside = (np.abs(z) < 7) & (np.abs(t[:, None]) < 7)
    u, r = special.ndtr(np.where(inside, z, 0.0)), special.ndtr(np.where(inside, t[:, None], 0.0))
    assert (link.logpdf(u, r) * normal)[inside].sum() == pytest.approx(link.price, abs=1e-8)


# --- Entropic is optimal transport of uniform onto uniform


@pytest.mark.parametrize("alpha", [0.03, *ALPHAS, 0.9])
def test_entropic_density_has_the_only_form_that_is_optimal(alpha: float) -> None:
    # a(c) a(r) exp(-kappa |c - r|) with uniform marginals is unique: check the form and both
    # marginals
    link = Entropic(alpha)
    c = np.linspace(0.003, 0.997, 61)
    log_a = link.logpdf(c[:, None], c) + link.kappa * np.abs(c[:, None] - c)
    np.testing.assert_allclose(log_a, log_a.T, atol=1e-11)
    np.testing.assert_allclose(log_a - log_a[:1] - log_a[:, :1] + log_a[0, 0], 0, atol=1e-11)
    nodes, weights = panels(split_at(c, np.linspace(0, 1, 41)))
    np.testing.assert_allclose((link.pdf(nodes, c[:, None]) * weights).sum(axis=-1), 1, atol=1e-9)
    np.testing.assert_allclose((link.pdf(c[:, None], nodes) * weights).sum(axis=-1), 1, atol=1e-9)


# --- the figures of the method


@pytest.mark.parametrize("alpha", WORST)
def test_the_table_of_worst_groups_is_reproduced_to_its_printed_digits(alpha: float) -> None:
    link = Entropic(alpha)
    for mass, (error, cvar) in zip((0.1, 0.2, 0.5), WORST[alpha], strict=True):
        assert f"{link.group_error(mass):.3f}" == error
        assert f"{link.pathwise_cvar(mass):.3f}" == cvar


def test_entropic_costs_at_most_six_thousandths_of_a_nat_more_than_laplace() -> None:
    excess = [Entropic(alpha).price - Laplace(alpha).price for alpha in np.linspace(0.01, 0.99, 25)]
    assert min(excess) > 0
    assert f"{max(excess):.3f}" == "0.006"  # three digits are what the method prints


def price_at(family: type[Link], error: float, mass: float) -> float:
    """Price of the link whose worst group of this mass has this error."""
    alpha = optimize.brentq(lambda a: family(a).group_error(mass) - error, 0.02, 0.5, xtol=1e-5)
    return family(alpha).price


def test_gaussian_gains_on_entropic_at_large_errors_of_small_groups() -> None:
    gain = [
        price_at(Entropic, error, mass) - price_at(Gaussian, error, mass)
        for error, mass in ((0.05, 0.2), (0.2, 0.2), (0.2, 0.1), (0.35, 0.1))
    ]
    # nats by which gaussian is cheaper; negative: dearer
    assert [f"{each:.2f}" for each in gain] == ["-0.09", "-0.03", "0.02", "0.06"]


def test_gaussian_is_dearer_at_equal_mean_error() -> None:
    for alpha in np.linspace(0.01, 0.99, 12):
        assert Gaussian(alpha).price > Entropic(alpha).price
    gap = [Gaussian(alpha).price - Laplace(alpha).price for alpha in np.linspace(0.05, 0.2, 16)]
    assert (np.diff(gap) < 0).all()  # more at small error
    assert (f"{gap[-1]:.2f}", f"{gap[0]:.2f}") == ("0.06", "0.15")


def test_laplace_keeps_a_calibrated_base_almost_calibrated() -> None:
    distance = [Laplace(alpha).calibration_error for alpha in np.linspace(0.05, 0.95, 10)]
    # W1 of the distribution of C to uniform: 0.014 to the printed digits, and not zero
    assert f"{max(distance):.3f}" == "0.014"
    assert min(distance) > 1e-4
