"""Conditioning on the forecast itself: exact laws, tests, sizes and weights, against theory."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from evenhand.calibration import NULL_VARIANCES, given_forecast, mid_ranks, own_parts, rate_error
from evenhand.calibration.group_sums import (
    count_distribution,
    event_p_value,
    largest_signed_mean,
    least_root,
    margin_of_mean,
    positions_in,
    sum_distribution,
    trend_weights,
    weighted_p_value,
)
from repeats import most_failures, repeats, statistical


def slope_world(n, slope, seed):
    """Log odds of the true probabilities are `slope` times those of the predicted ones."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.2, 1.2, n)
    return special.expit(z), (rng.random(n) < special.expit(slope * z)).astype(float)


@pytest.mark.parametrize("n", [1, 2, 7, 11])
def test_laws_of_events_are_those_of_all_outcomes(n):
    rng = np.random.default_rng(n)
    p, c = rng.random(n), rng.integers(-3, 4, size=n)
    p[0] = 0.0 if n > 2 else p[0]
    number, total = np.zeros(n + 1), {}
    for outcome in itertools.product((0, 1), repeat=n):
        y = np.array(outcome)
        mass = float(np.prod(np.where(y == 1, p, 1 - p)))
        number[y.sum()] += mass
        total[int(c @ y)] = total.get(int(c @ y), 0.0) + mass
    np.testing.assert_allclose(count_distribution(p), number, atol=1e-15)
    least, law = sum_distribution(p, c)
    found = {least + i: mass for i, mass in enumerate(law) if mass > 0}
    for value, mass in total.items():
        assert found.get(value, 0.0) == pytest.approx(mass, abs=1e-15)
    assert law.sum() == pytest.approx(1, abs=1e-14)


def test_p_values_are_twice_the_smaller_tail():
    y = (np.arange(500) < 21).astype(float)
    p = np.full(500, 0.02)
    assert event_p_value(y, p) == pytest.approx(2 * stats.binom.sf(20, 500, 0.02), rel=1e-9)
    # verdict.md, section 1: five probabilities of 40 rows each
    p = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 40)
    y = np.concatenate([np.arange(40) < k for k in (8, 16, 20, 24, 32)]).astype(float)
    weights = trend_weights(p)
    assert np.unique(weights).tolist() == [-9, -3, 0, 3, 9]
    assert event_p_value(y, p) == 1
    assert event_p_value(y, p, weights) == pytest.approx(0.001475, abs=5e-7)


def test_p_values_of_many_rows_are_nearly_the_exact_ones():
    # above 20,000 rows the normal law with the exact variance and skewness
    rng = np.random.default_rng(1)
    p = special.expit(rng.normal(-3, 1, 30_000))
    for shift in (1.0, 1.05, 1.1):
        y = (rng.random(p.size) < np.minimum(shift * p, 1)).astype(float)
        law = count_distribution(p)
        at = int(y.sum())
        exact = min(1.0, 2 * min(law[: at + 1].sum(), law[at:].sum()))
        assert event_p_value(y, p) == pytest.approx(exact, rel=0.06, abs=1e-9)


def test_an_impossible_outcome_has_no_probability():
    p, y = np.full(40, 0.5), np.tile([0.0, 1.0], 20)
    assert event_p_value(y, p) == 1
    for certain in (0.0, 1.0):
        p[3], y[3] = certain, 1 - certain
        assert event_p_value(y, p) == 0
        assert rate_error(p, y, 0.05).p_value == 0
        y[3] = certain
        assert event_p_value(y, p) > 0.5


def test_weights_of_the_trend_have_the_mean_zero_under_the_variance_of_the_events():
    p = special.expit(np.random.default_rng(4).normal(-2, 1.2, 2000))
    weights, variance = trend_weights(p), p * (1 - p)
    # whole numbers: at most half a step off
    assert abs((variance * weights).sum() / variance.sum()) <= 0.5
    assert abs(weights.mean()) > 0.5


def test_equal_forecasts_are_in_one_group():
    # verdict.md, section 1
    parts, n_parts = own_parts(np.repeat([0.1, 0.2, 0.6], [500, 300, 200]))
    assert n_parts == 6
    assert np.bincount(parts, minlength=6).tolist() == [0, 500, 0, 300, 0, 200]
    values = np.random.default_rng(2).integers(0, 40, 2000).astype(float)
    parts, n_parts = own_parts(values)
    assert n_parts == 10
    assert all(np.unique(parts[values == value]).size == 1 for value in range(40))


def test_the_size_of_a_known_world_is_that_of_the_specification():
    # verdict.md, section 5: slope 0.62, seed 0, 20,000 rows
    p, y = slope_world(20_000, 0.62, 0)
    found = rate_error(p, y, 0.05)
    assert found.measured == pytest.approx(0.06537, abs=5e-6)
    assert found.chance == pytest.approx(0.00776, abs=5e-6)
    assert found.error == pytest.approx(0.0649, abs=5e-6)
    assert found.low == pytest.approx(0.05545, abs=5e-6)
    assert found.high == pytest.approx(0.07687, abs=5e-6)
    assert found.tests["level"] == pytest.approx(0.01625, abs=5e-6)
    assert found.tests["bend"] == pytest.approx(0.11955, abs=5e-6)
    assert found.tests["trend"] < 1e-12
    half = rate_error(p, y, 0.025)
    assert (half.low, half.high) == pytest.approx((0.05465, 0.0777), abs=5e-5)


def test_margins_of_means_are_those_of_the_specification():
    # verdict.md, section 2
    found = margin_of_mean((np.arange(20_000) < 9400).astype(float), 0.025)
    assert found == pytest.approx(0.01029, abs=5e-7)
    ours = margin_of_mean((np.arange(20_000) < 200).astype(float), 0.025)
    assert ours == pytest.approx(0.002296, abs=5e-7)
    assert float(least_root(0.0344, 0.2, 20_000, 2.5, 1.0)) == pytest.approx(0.025996, abs=5e-7)


def test_signs_that_change_twice_are_the_best_ones():
    # brute force over all signs of at most two changes, between distinct probabilities
    rng = np.random.default_rng(4)
    for _ in range(20):
        p = rng.choice([0.1, 0.3, 0.4, 0.6, 0.9], size=12)
        y = rng.integers(0, 2, 12).astype(float)
        values = np.unique(p)
        best = 0.0
        for signs in itertools.product((-1, 1), repeat=values.size):
            if np.count_nonzero(np.diff(signs)) <= 2:
                s = np.array(signs)[np.searchsorted(values, p)]
                best = max(best, float((s * (y - p)).mean()))
        assert largest_signed_mean(y, p) == pytest.approx(best, abs=1e-12)


def test_one_group_is_the_distance_of_rate_and_mean():
    p, y = np.full(200, 0.3), (np.arange(200) < 90).astype(float)
    found = rate_error(p, y, 0.05)
    assert found.n_bins == 1
    assert found.is_complete
    assert found.measured == pytest.approx(0.15)
    low, high = stats.beta.ppf(0.05 / 8, 90, 111) - 0.3, found.high
    assert found.low == pytest.approx(low, rel=1e-9)
    assert high > 0.15


@statistical
@pytest.mark.parametrize(
    ("world", "n"),
    [("calibrated", 2000), ("rare", 300), ("slope", 2000), ("bend", 300), ("three", 300)],
)
def test_the_interval_holds_the_mean_distance(world, n):
    # each end fails with probability at most 0.025, the tests of a calibrated world at most 0.05
    count = repeats(600)
    rng = np.random.default_rng(5)
    failed = np.zeros(3, dtype=int)
    for _ in range(count):
        z = rng.normal(-4.5 if world == "rare" else -0.2, 1.2, n)
        p = special.expit(z)
        if world == "three":
            p = rng.choice([0.1, 0.2, 0.6], n)
        true = p
        if world == "slope":
            true = special.expit(0.62 * z)
        if world == "bend":
            true = np.clip(p + np.where(np.abs(mid_ranks(p) - 0.5) < 0.25, 0.06, -0.06), 0, 1)
        found = rate_error(p, (rng.random(n) < true).astype(float), 0.05)
        size = float(np.abs(true - p).mean())
        failed += [found.low > size, found.high < size, found.p_value < 0.05 and not size]
    assert failed[:2].max() <= most_failures(count, 0.025)
    assert failed[2] <= most_failures(count, 0.05)


@pytest.mark.parametrize("p", [(0.97, 0.02, 0.01), (0.2, 0.3, 0.5), (0.04, 0.92, 0.04)])
def test_positions_are_means_over_the_cell_and_vary_as_stated(p):
    ends = np.cumsum([0.0, *p])
    u = ends[:-1, None] + np.array(p)[:, None] * (np.arange(100_000) + 0.5) / 100_000
    for name, z in (("spread", np.abs(u - 0.5) - 0.25), ("level", u - 0.5)):
        value, variance = positions_in(ends[:-1], ends[1:], u[:, 0])[name]
        some = (np.array(p) > 0.9) | (name == "level")  # others are drawn
        np.testing.assert_allclose((value - z.mean(axis=1))[some], 0, atol=1e-9)
        np.testing.assert_allclose((variance + z.var(axis=1))[some], NULL_VARIANCES[name])
    # calibrated outcomes are in the cells with their probabilities
    assert (value @ p, value**2 @ p) == pytest.approx((0, variance @ p))


def test_tests_of_pits_are_those_of_the_specification():
    # verdict.md, section 1
    m = np.arange(100)
    u = (m * 7 % 50 + 0.5) / 50 * 0.8 + np.where(m < 50, 0.0, 0.2)
    found = given_forecast(positions_in(u, u, u), {"mean": m.astype(float)}, 0.1, 0.05)
    assert list(found.tests) == ["level", "spread", "trend of mean", "trend of mean, spread"]
    ours = list(found.tests.values())
    np.testing.assert_allclose(ours, [1, 0.00934, 0.00121, 0.82883], atol=6e-6)
    assert found.p_value == pytest.approx(4 * 0.00121, abs=2e-5)
    assert found.high is None


@statistical
@pytest.mark.parametrize("n", [100, 2000])
def test_trends_of_calibrated_forecasts_are_found_as_seldom_as_stated(n):
    count = repeats(2000)
    rng = np.random.default_rng(6)
    wrong = lows = 0
    for _ in range(count):
        keys = {"mean": rng.normal(size=n), "width": rng.integers(1, 4, n).astype(float)}
        u = rng.random(n)
        found = given_forecast(positions_in(u, u, u), keys, 0.0, 0.05)
        wrong += found.p_value < 0.05
        lows += found.low > 0
    assert wrong <= most_failures(count, 0.055)
    assert lows <= wrong


def test_weighted_tests_are_those_of_the_specification():
    # verdict.md, section 4
    u = ((np.arange(200) + 0.5) / 200) ** 0.9
    w = np.where(np.arange(200) % 4 == 0, 4.0, 1.0)
    assert w.sum() ** 2 / (w**2).sum() == pytest.approx(128.95, abs=0.005)
    p_value, *_ = weighted_p_value(w * (u - 0.5), w.sum() ** 2 / (w**2).sum())
    assert p_value == pytest.approx(0.35796, abs=5e-6)


@statistical
@pytest.mark.parametrize(("least", "share", "n"), [(0.5, 1 / 3, 600), (0.9, 0.1, 2000)])
def test_weights_that_depend_on_outcomes_reject_as_seldom_as_stated(least, share, n):
    # of smaller PITs a share is in the sample: unweighted tests reject always
    count = repeats(1000)
    rng = np.random.default_rng(8)
    weighted = plain = 0
    for _ in range(count):
        u = rng.random(6 * n)
        chance = np.where(u > least, 1.0, share)
        kept = np.flatnonzero(rng.random(u.size) < chance)[:n]
        u, w = u[kept], 1 / chance[kept]
        keys = {"mean": rng.normal(size=u.size)}
        weighted += given_forecast(positions_in(u, u, u), keys, 0.0, 0.05, w).p_value < 0.05
        plain += given_forecast(positions_in(u, u, u), {}, 0.0, 0.05).p_value < 0.05
    assert plain == count
    assert weighted <= most_failures(count, 0.06)


@statistical
def test_rates_of_case_control_samples_are_covered():
    # controls are kept with probability 1/5; measured in verdict.md, section 4: at most 5%
    count = repeats(600)
    rng = np.random.default_rng(9)
    failed = np.zeros(2, dtype=int)
    for _ in range(count):
        p = special.expit(rng.normal(-2.2, 0.8, 8000))
        y = (rng.random(8000) < p).astype(float)
        kept = rng.random(8000) < np.where(y == 1, 1.0, 0.2)
        found = rate_error(p[kept], y[kept], 0.05, np.where(y[kept] == 1, 1.0, 5.0))
        failed += [found.p_value < 0.05, found.low > 0]
    assert failed.max() <= most_failures(count, 0.065)


def test_groups_without_an_event_are_not_off_for_small_residuals():
    # 150 rows of probability 1%: no event has probability 22%
    p, y = np.full(150, 0.01), np.zeros(150)
    w = 1 + np.arange(150) % 2
    assert rate_error(p, y, 0.05, w.astype(float)).tests["level"] > 0.1
