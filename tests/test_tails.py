"""Tails of estimated distributions: extreme intervals miss as often as stated."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from evenhand.distributions import Normal, Quantiles, Recalibrated
from evenhand.forecasters.maps import learn_maps
from evenhand.forecasters.samples import residual_distribution
from repeats import repeats, statistical

Floats = NDArray[np.float64]

STATED = np.array([0.02, 0.01])
"""Probabilities of a miss of 98% and 99% intervals."""


def miss_rates(distribution: Quantiles | Recalibrated, truth: stats.rv_frozen) -> Floats:
    """Return how often 98% and 99% intervals miss, relative to the stated rates."""
    low, high = (np.ravel(distribution.ppf(p)[..., None]) for p in (STATED / 2, 1 - STATED / 2))
    return np.asarray((truth.cdf(low) + truth.sf(high)) / STATED)


def earlier_knots(residuals: Floats) -> Quantiles:
    """Return the distribution with equally spaced knots alone, without those of the tails."""
    n_levels = round(2 * residuals.size**0.4)
    levels = (np.arange(n_levels) + 0.5) / n_levels
    return Quantiles(levels, np.quantile(residuals, levels, method="hazen")[None, :])


def scores(distribution: Quantiles, truth: stats.rv_frozen) -> tuple[float, float, float]:
    """Return log score, CRPS and pooled calibration error under the true distribution."""
    y = truth.ppf((np.arange(500) + 0.5) / 500)
    error = np.abs(distribution.cdf(y) - truth.cdf(y)).mean()
    return -distribution.logpdf(y).mean(), distribution.crps(y).mean(), float(error)


def standard_error(n_sets: int) -> float:
    """Return the standard error of a mean relative miss rate.

    A 99% interval of 200 rows ends at the two extreme values, each outside of which is a new value
    with an exponential(1) probability in units of 1/201: the rate's standard deviation is 0.71.
    """
    return 0.71 / np.sqrt(n_sets)


@statistical
@pytest.mark.parametrize(
    ("truth", "n"), [(stats.norm(), 1000), (stats.t(3), 200)], ids=["normal", "t3"]
)
def test_extreme_intervals_of_residuals_miss_as_often_as_stated(
    truth: stats.rv_frozen, n: int
) -> None:
    random = np.random.default_rng(n)
    rates = []
    worse = []
    for _ in range(repeats(400)):
        residuals = truth.rvs(n, random_state=random)
        learned = residual_distribution(residuals, None)
        rates.append(miss_rates(learned, truth))
        differences = np.subtract(scores(learned, truth), scores(earlier_knots(residuals), truth))
        worse.append(differences)
    # expected rates lie between 0.85 and 1.1, as chords between ranks 4 and 16 of a tail reach
    # farther than its quantiles; 5 standard errors have a false-alarm rate of 3e-7
    slack = 5 * standard_error(len(rates))
    assert (np.mean(rates, axis=0) > 0.85 - slack).all()
    assert (np.mean(rates, axis=0) < 1.1 + slack).all()
    # log score, CRPS and pooled error are not worse than with equally spaced knots alone; 5 paired
    # standard errors again
    error = np.std(worse, axis=0) / np.sqrt(len(worse))
    assert (np.mean(worse, axis=0) < 5 * error).all()


@statistical
@pytest.mark.parametrize(("std", "n"), [(0.5, 200), (2.0, 1000)])
def test_extreme_intervals_of_recalibrated_forecasts_miss_as_often_as_stated(
    std: float, n: int
) -> None:
    random = np.random.default_rng(n)
    truth = stats.norm()
    base = Normal([0.0], std)
    rates = []
    for _ in range(repeats(400)):
        pit = base.cdf(truth.rvs(n, random_state=random))
        levels, values, _ = learn_maps(pit, np.ones(n), ())
        rates.append(miss_rates(Recalibrated(base, levels[0], values[0]), truth))
    # a chord of the map of a base of half the spread reaches less far than its quantiles: expected
    # rates up to 1.25
    slack = 5 * standard_error(len(rates))
    assert (np.mean(rates, axis=0) > 0.85 - slack).all()
    assert (np.mean(rates, axis=0) < 1.25 + slack).all()


def test_extreme_quantiles_are_order_statistics_with_exponential_tails_beyond() -> None:
    residuals = np.sort(np.random.default_rng(1).normal(size=200))
    learned = residual_distribution(residuals, None)
    ranks = np.array([1, 2])
    np.testing.assert_allclose(
        learned.ppf(ranks[:, None] / 201)[:, 0], residuals[ranks - 1], rtol=1e-9
    )
    np.testing.assert_allclose(
        learned.ppf(1 - ranks[:, None] / 201)[:, 0], residuals[-ranks], rtol=1e-9
    )
    # the density just outside of the extremes is that of an exponential tail with the mean excess
    # of the eight extreme values, to the length of the stub
    excess = (residuals[8] - residuals[:8]).mean()
    far = residuals[0] - np.array([1.0, 2.0]) * excess
    np.testing.assert_allclose(np.diff(learned.logcdf(far)), -1.0, rtol=1e-9)
    np.testing.assert_allclose(np.exp(learned.logcdf(far)) * 201, np.exp([-1, -2]), rtol=0.01)


def test_tied_extremes_are_one_knot_without_a_spike() -> None:
    residuals = np.random.default_rng(2).uniform(-1, 1, size=300)
    residuals[:5] = 1.5
    residuals[5:9] = -1.5
    learned = residual_distribution(residuals, None)
    assert np.diff(learned.values).min() > 1e-3
    # average rank of five tied values
    np.testing.assert_allclose(learned.sf(1.5), 3 / 301, rtol=1e-9)
    np.testing.assert_allclose(learned.cdf(-1.5), 2.5 / 301, rtol=1e-9)


def test_rows_of_tiny_weight_do_not_shape_the_tails() -> None:
    random = np.random.default_rng(3)
    heavy = random.normal(size=40)
    residuals = np.concatenate((heavy, 100 * random.normal(size=1000)))
    weight = np.concatenate((np.full(40, 1.0), np.full(1000, 1e-9)))
    learned = residual_distribution(residuals, weight)
    alone = residual_distribution(heavy, None)
    np.testing.assert_allclose(learned.levels, alone.levels, rtol=1e-5)
    # between two heavy rows, interpolation passes through the rows of tiny weight
    at_rows = np.array([[1], [4], [20], [37], [40]]) / 41
    np.testing.assert_allclose(learned.ppf(at_rows), alone.ppf(at_rows), atol=0.05)


@pytest.mark.parametrize(
    "residuals",
    [np.zeros(5), np.array([1.0, 2.0]), np.array([1.0]), np.repeat([0.0, 1.0], [90, 10])],
    ids=["one value", "two rows", "one row", "two values"],
)
def test_degenerate_samples_have_a_finite_density(residuals: Floats) -> None:
    learned = residual_distribution(residuals, None)
    assert np.isfinite(learned.logpdf([-50.0, 0.0, 0.5, 1.0, 50.0])).all()
    assert np.isfinite(learned.ppf([[1e-6], [0.5], [1 - 1e-6]])).all()


def test_tails_of_mirrored_residuals_are_mirrored() -> None:
    random = np.random.default_rng(0)
    residuals, weight = random.exponential(size=300) ** 2, random.uniform(0.5, 2, 300)
    levels = np.array([1e-6, 1e-3, 0.02, 0.5, 0.98, 1 - 1e-3, 1 - 1e-6])
    one = residual_distribution(residuals, weight).ppf(levels)
    other = residual_distribution(-residuals, weight).ppf(1 - levels)
    np.testing.assert_allclose(one, -other, rtol=1e-6)
