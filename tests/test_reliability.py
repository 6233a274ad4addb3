"""Reliability of probabilities: bins, intervals and false alarms."""

from __future__ import annotations

import numpy as np
from scipy import stats
from sklearn.calibration import calibration_curve

from evenhand.calibration import reliability
from repeats import most_failures, repeats, statistical


def events(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return calibrated probabilities, mean 1/4, and events."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1.0, 3.0, size=n)
    return p, rng.random(n) < p


def test_bins_of_quantiles_agree_with_scikit_learn() -> None:
    p, y = events(1000, 0)
    rate, mean = calibration_curve(y, p, n_bins=10, strategy="quantile")
    found = reliability(p, y)
    # quantiles are interpolated there: one person at an edge may change bins
    np.testing.assert_allclose(found.probability, mean, rtol=0, atol=0.01)
    np.testing.assert_allclose(found.rate, rate, rtol=0, atol=0.011)
    np.testing.assert_array_equal(found.n, 100)


def test_intervals_are_those_of_clopper_and_pearson_by_bonferroni() -> None:
    p, y = events(500, 1)
    found = reliability(p, y, n_bins=5, confidence=0.9)
    hits = np.rint(found.rate * found.n)
    np.testing.assert_allclose(found.low, stats.beta.ppf(0.01, hits, found.n - hits + 1))
    np.testing.assert_allclose(found.high, stats.beta.isf(0.01, hits + 1, found.n - hits))
    assert found.table().columns.tolist() == ["bin", "n", "probability", "rate", "low", "high"]


def test_people_with_one_probability_share_a_bin() -> None:
    p = np.repeat([0.0, 0.2, 1.0], [70, 20, 10])
    found = reliability(p, p > 0.5)
    np.testing.assert_array_equal(found.n, [70, 20, 10])
    np.testing.assert_allclose(found.rate, [0, 0, 1])
    assert (found.low[0], found.high[2]) == (0, 1)
    assert not found.is_off[[0, 2]].any()


def test_weights_are_repetitions_in_rates_and_draws_are_averaged() -> None:
    p, y = events(60, 2)
    counts = np.random.default_rng(3).integers(0, 3, size=60)
    one = reliability(p, y, counts, n_bins=1)
    repeated = reliability(np.repeat(p, counts), np.repeat(y, counts), n_bins=1)
    np.testing.assert_allclose(one.rate, repeated.rate)
    np.testing.assert_allclose(one.probability, repeated.probability)
    # fewer effective people than rows of their own
    assert one.high[0] - one.low[0] >= repeated.high[0] - repeated.low[0]
    draws = np.column_stack((p / 2, p))
    for mine, others in zip(reliability(draws, y), reliability(0.75 * p, y), strict=True):
        np.testing.assert_allclose(mine, others)


@statistical
def test_intervals_of_calibrated_probabilities_hold_at_once() -> None:
    # the limit is that of `repeats`: a false alarm of 1e-6
    n_sets = repeats(2000)
    wrong = sum(bool(reliability(*events(300, seed)).is_off.any()) for seed in range(n_sets))
    assert wrong <= most_failures(n_sets)
