"""Families of counts, scores and events beside SciPy, mpmath, scoringrules and brute force."""

import numpy as np
import pytest
import scoringrules
from scipy import special, stats

from complaints import refused
from distribution_examples import own_scores, scores
from evenhand.distributions import (
    Bernoulli,
    Categorical,
    Hurdle,
    NegativeBinomial,
    Normal,
    Poisson,
    Randomized,
    Recalibrated,
    Support,
    Tail,
    Transformed,
    Truncated,
    as_hurdle,
    empirical,
)
from evenhand.links import LINKS

LEVELS = (1e-12, 1e-5, 0.01, 0.3, 0.5, 0.77, 0.9, 0.999999)


def peers(n=300):
    rng = np.random.default_rng(1)
    mean, dispersion = np.exp(rng.normal(1, 2, n)), np.exp(rng.normal(-1, 1, n))
    return [
        (Poisson(mean), stats.poisson(mean)),
        (
            NegativeBinomial(mean, dispersion),
            stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean)),
        ),
    ]


@pytest.mark.parametrize("number", [0, 1])
def test_counts_agree_with_scipy(number):
    batch, peer = peers()[number]
    y = peer.rvs(random_state=2).astype(float)
    for name, other in (("logcdf", "logcdf"), ("logsf", "logsf"), ("log_mass", "logpmf")):
        found = getattr(batch, name)(y)
        np.testing.assert_allclose(found, getattr(peer, other)(y), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(batch.cdf(y, left=True), peer.cdf(y - 1), rtol=1e-11)
    # between the counts
    np.testing.assert_allclose(batch.cdf(y + 0.4), peer.cdf(y), rtol=1e-11)
    np.testing.assert_allclose(batch.cdf(y + 0.4, left=True), peer.cdf(y), rtol=1e-11)
    assert np.isneginf(batch.log_mass(y + 0.4)).all()
    for p in LEVELS:
        # SciPy solves for the quantile, which is a whole number up to rounding errors
        np.testing.assert_array_equal(batch.ppf(p), np.round(peer.ppf(p)))
    np.testing.assert_array_equal(batch.ppf(batch.cdf(y)), y)
    np.testing.assert_array_equal(batch.ppf(0.0), 0.0)
    np.testing.assert_array_equal(batch.ppf(1.0), np.inf)
    np.testing.assert_allclose(batch.mean(), peer.mean(), rtol=1e-12)
    np.testing.assert_allclose(batch.std(), peer.std(), rtol=1e-12)
    np.testing.assert_array_equal(batch.cdf([[-1.0], [-np.inf]]), 0.0)
    np.testing.assert_array_equal(batch.cdf(np.inf), 1.0)


@pytest.mark.parametrize(
    ("count", "mean"),
    [(100, 1e3), (50, 1e3), (5, 2e3), (3000, 300.0), (900_000, 1e6), (1_100_000, 1e6)],
)
def test_far_tails_of_poisson_counts(count, mean):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        ends = (0, mean) if count > mean else (mean, mpmath.inf)
        expected = float(mpmath.log(mpmath.gammainc(count + 1, *ends, regularized=True)))
    batch = Poisson([mean])
    found = batch.logsf(count) if count > mean else batch.logcdf(count)
    assert float(found[0]) == pytest.approx(expected, rel=1e-11)
    # mass from the tails: the density's logarithm has few digits there in floats
    mass = count * np.log(mean) - mean - special.gammaln(count + 1)
    assert float(batch.log_mass(count)[0]) == pytest.approx(mass, rel=1e-10)
    assert batch.point(Tail(np.array([found[0]]), np.array([count > mean])))[0] == count


def test_a_negative_binomial_without_dispersion_is_poisson():
    mean, y = np.array([0.3, 4.0, 90.0]), np.array([0.0, 3.0, 100.0])
    near, limit = NegativeBinomial(mean, 1e-10), Poisson(mean)
    for name in ("logcdf", "logsf", "log_mass", "crps"):
        np.testing.assert_allclose(getattr(near, name)(y), getattr(limit, name)(y), rtol=1e-6)


def test_crps_of_wide_counts_is_the_sum_of_the_definition():
    for mean, dispersion in ((1e4, 0.5), (300.0, 1e-3)):
        law, k = stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean)), np.arange(200_000)
        expected = (np.where(k < mean, law.cdf(k), law.sf(k)) ** 2).sum()
        np.testing.assert_allclose(NegativeBinomial([mean], dispersion).crps(mean), expected, 1e-10)
    np.testing.assert_allclose(NegativeBinomial([1e5], 2.0).crps(1e5), 33126.395, 2e-8)
    # Wei & Held (2014), at the outcome 0: SciPy's hypergeometric function has all digits for these
    means, n = np.array([[1e-3], [8.0], [1e4]]), 1 / np.array([0.05, 0.8, 6.0, 1e3])
    half = means * (1 + means / n) * special.hyp2f1(n + 1, 0.5, 2, -4 * means / n * (1 + means / n))
    np.testing.assert_allclose(NegativeBinomial(means, 1 / n).crps(0.0), means - half, 1e-9)


@pytest.mark.parametrize("build", [scores, own_scores])
def test_categorical_agrees_with_sums(build):
    batch = build((6,))
    support = np.broadcast_to(batch.support, batch.probabilities.shape)
    for i in range(6):
        one, values, mass = batch.take([i]), support[i], batch.probabilities[i]
        for y in (*values, *(values + 0.01), values[0] - 3):
            assert one.cdf(y)[0] == pytest.approx(mass[values <= y].sum(), abs=1e-15)
            assert one.cdf(y, left=True)[0] == pytest.approx(mass[values < y].sum(), abs=1e-15)
            assert one.sf(y)[0] == pytest.approx(mass[values > y].sum(), abs=1e-15)
            assert np.exp(one.log_mass(y))[0] == pytest.approx(mass[values == y].sum(), abs=1e-15)
            pairs = (mass[:, None] * mass * np.abs(values[:, None] - values)).sum() / 2
            assert one.crps(y)[0] == pytest.approx(mass @ np.abs(values - y) - pairs, abs=1e-13)
        mean = mass @ values
        assert one.mean()[0] == pytest.approx(mean)
        assert one.std()[0] == pytest.approx(np.sqrt(mass @ (values - mean) ** 2))
        for p in LEVELS[2:]:
            assert one.ppf(p)[0] == values[np.argmax(np.cumsum(mass) >= p)]


def test_small_probabilities_in_the_middle_keep_their_digits():
    batch = Categorical([0, 1, 2, 3], np.array([[0.5, 1e-300, 0.5 - 1e-20, 1e-20]]))
    np.testing.assert_allclose(batch.log_mass(1.0), np.log(1e-300), rtol=1e-14)
    np.testing.assert_allclose(batch.log_mass(3.0), np.log(1e-20), rtol=1e-14)
    np.testing.assert_allclose(batch.logsf(2.0), np.log(1e-20), rtol=1e-12)
    for link in LINKS.values():
        # the slope of the link at 1/2, by a difference of its CDF
        made = link(0.12)
        slope = (made.ppf(0.5 + 1e-6, 0.3) - made.ppf(0.5 - 1e-6, 0.3)) / 2e-6
        served = Randomized(batch, made, 0.3).log_mass(1.0)
        np.testing.assert_allclose(served, np.log(1e-300) + np.log(slope), rtol=1e-6)
    mapped = Recalibrated(batch, [0, 0.2, 1], [0, 0.6, 1]).log_mass(1.0)
    np.testing.assert_allclose(mapped, np.log(1e-300) + np.log(0.5), rtol=1e-9)


def test_empirical_distributions_count_the_samples():
    batch = empirical([[0, 0, 3, 1], [2, 2, 2, 2]])
    np.testing.assert_array_equal(batch.support, [0, 1, 2, 3])
    np.testing.assert_allclose(batch.probabilities, [[0.5, 0.25, 0, 0.25], [0, 0, 1, 0]])
    y = np.array([1.0, 2.0])
    ensemble = scoringrules.crps_ensemble(y, np.array([[0, 0, 3, 1.0], [2, 2, 2, 2]]))
    np.testing.assert_allclose(batch.crps(y), ensemble)


@pytest.mark.parametrize("end", ["low", "high"])
def test_wrapped_hurdles_are_hurdles(end):
    bounds = Support(low=0.0) if end == "low" else Support(high=0.0)
    part = Transformed(Normal([0.0, 1.0], 0.7), bounds)
    batch = Recalibrated(Hurdle([0.3, 0.6], part, 0.0, end), [0, 0.4, 1], [0, 0.5, 1])
    found = as_hurdle(batch)
    assert found.end == end
    np.testing.assert_allclose(found.chance, np.exp(batch.log_mass(0.0)), rtol=1e-12)
    y = np.array([0.0, 0.1, 0.9, 2.5, 11.0])[:, None] * (1 if end == "low" else -1)
    for name in ("logcdf", "logsf", "logpdf", "log_mass"):
        ours = getattr(found, name)(y)
        np.testing.assert_allclose(ours, getattr(batch, name)(y), rtol=1e-8, atol=1e-8)
    for name in ("logcdf", "logsf"):
        left = getattr(found, name)(y, left=True), getattr(batch, name)(y, left=True)
        np.testing.assert_allclose(*left, rtol=1e-8, atol=1e-8)
    p = np.array([0.05, 0.35, 0.55, 0.8, 0.99])[:, None]
    np.testing.assert_allclose(found.ppf(p), batch.ppf(p), rtol=1e-7)
    np.testing.assert_allclose(found.mean(), batch.mean(), rtol=2e-3)


def test_unusable_parameters_are_refused_in_one_line():
    refused(r"mean\[1\] must be finite and positive, got 0.0", Poisson, [1.0, 0.0])
    refused(r"probability\[1\] must lie between 0 and 1.*not 90", Bernoulli, [0.2, 90.0])
    refused("support must be values that increase", Categorical, [0, 0], [[0.5, 0.5]])
    refused(r"probabilities\[0\] must add up .* got 0.9", Categorical, [0, 1], [[0.5, 0.4]])
    refused("positive must be a continuous distribution", Hurdle, [0.2], Poisson([1.0]))
    refused("base must be a continuous", Transformed, Poisson([1.0]), Support(low=0.0))
    refused("base must be a continuous .*count", Truncated, Poisson([1.0]), Support(low=2.0))
    hurdle = Hurdle([0.2], Normal([9.0], 1.0))
    refused("base.*'hurdle'", Truncated, hurdle, Support(low=-1.0))


def test_truncation_leaves_out_an_atom_at_a_bound():
    part = Transformed(Normal([0.0], 1.0), Support(low=0.0))
    conditional = Truncated(Hurdle([0.4], part), Support(low=0.0))
    y = np.array([0.2, 1.0, 4.0])
    np.testing.assert_allclose(conditional.cdf(y), part.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(conditional.ppf(0.3), part.ppf(0.3), rtol=1e-9)
