"""Tests and intervals of named and scanned groups of 0/1 outcomes: theory, level, power."""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenhand.audits import Search
from evenhand.calibration import Cells, GroupRows
from evenhand.calibration.group_sums import (
    bias_intervals,
    error_intervals,
    rate_intervals,
    trend_weights,
)
from evenhand.forecast_columns import ForecastColumns
from evenhand.scale import audit_parts
from evenhand.search import scan_groups
from repeats import most_failures, repeats, statistical


def pits_of(p, y, rng, weights=None):
    low, high = np.where(y == 1, 1 - p, 0.0), np.where(y == 1, 1.0, 1 - p)
    return Cells(low, high, ties=rng.random(p.size), weights=weights)


def sums_of(pits, *, are_known=True):
    events = pits.events()
    assert events is not None
    sums = GroupRows.of(pits, None, None, events).sums([np.full(pits.n_samples, True)])
    return sums if are_known else replace(sums, rows=None)


def p_value_of(pits, *, are_known=True):
    return float(sums_of(pits, are_known=are_known).tests.p_value[0])


def law_of_sum(p):
    return functools.reduce(np.convolve, [np.array([1 - q, q]) for q in p])


def probabilities():
    """Random probabilities, and those of few distinct values, among them 0 and 1."""
    rng = np.random.default_rng(0)
    found = [rng.beta(*rng.exponential(size=2) + 0.05, size=n) for n in (1, 2, 5, 9) * 60]
    for n in (2, 4, 7):
        for zeros, ones in itertools.product(range(n), repeat=2):
            if zeros + ones < n:
                for q in (0.01, 0.1, 0.3, 0.5, 0.8):
                    rest = np.full(n - zeros - ones, q)
                    found.append(np.r_[np.zeros(zeros), np.ones(ones), rest])
    return found


def test_outcomes_are_known_to_be_events_by_their_cells():
    rng = np.random.default_rng(1)
    p = np.array([0.1, 0.9, 0.0, 0.25])
    y = np.array([0.0, 1.0, 1.0, 1.0])
    pits = pits_of(p, y, rng)
    events = pits.events()
    np.testing.assert_array_equal(events[0], y)
    np.testing.assert_allclose(events[1], p, atol=1e-15)
    # two draws, cells in the middle, or no cells
    two = np.column_stack([pits.low, pits.low]), np.column_stack([pits.high, pits.high])
    assert Cells(*two, ties=rng.random(4)).events() is None
    assert Cells([0.0, 0.2], [0.3, 0.6], ties=[0.5, 0.5]).events() is None
    assert Cells([0.0, 1.0]).events() is None


@pytest.mark.parametrize("tail", [0.2, 0.025, 1e-3])
def test_intervals_of_rates_fail_as_seldom_as_stated(tail):
    for p in probabilities():
        n, law = p.size, law_of_sum(p)
        low, high = rate_intervals(np.arange(n + 1.0), np.full(n + 1, float(n)), tail)
        assert law[low > p.mean() + 1e-12].sum() <= tail + 1e-12
        assert law[high < p.mean() - 1e-12].sum() <= tail + 1e-12


@pytest.mark.parametrize(("p", "n"), [(0.001, 400), (0.02, 40), (0.1, 400), (0.97, 40)])
def test_equal_probabilities_are_tested_at_their_level_exactly(p, n):
    # the p-value of every number of events, against its binomial probability
    rng = np.random.default_rng(2)
    counts = np.arange(n + 1)
    rows = [(counts < k).astype(float)[:n] for k in counts]
    p_value = np.array([p_value_of(pits_of(np.full(n, p), y, rng)) for y in rows])
    law = stats.binom.pmf(counts, n, p)
    for level in (0.05, 0.01, 1e-4):
        assert law[p_value < level].sum() <= level


@pytest.mark.parametrize("are_known", [True, False])
def test_a_test_of_equal_probabilities_is_the_binomial_one(are_known):
    y = np.arange(500) < 26
    found = p_value_of(
        pits_of(np.full(500, 0.02), y * 1.0, np.random.default_rng(3)), are_known=are_known
    )
    # twice for both tails, and twice for level and trend, which sums alone do not determine
    twice = 2 if are_known else 1
    assert found == pytest.approx(2 * twice * stats.binom.sf(25, 500, 0.02), rel=1e-6)


def test_bounds_from_sums_alone_are_never_below_the_exact_p_value():
    # brute force over laws of sums of independent events (Hoeffding 1956)
    rng = np.random.default_rng(4)
    for p in probabilities():
        law = law_of_sum(p)
        for count in range(p.size + 1):
            # an outcome of this number of events that is possible, if there is one
            y = np.zeros(p.size)
            y[np.argsort(-p, kind="stable")[:count]] = 1
            exact = min(2 * min(law[: count + 1].sum(), law[count:].sum()), 1)
            found = p_value_of(pits_of(p, y, rng), are_known=False)
            assert found >= exact - 1e-12 or (np.abs(y - p) == 1).any()


def test_too_extreme_probabilities_of_a_right_mean_are_found_by_their_trend():
    # events half as far from the mean rate as predicted, the number of events as expected
    p = np.repeat([0.01, 0.09], 1000)
    y = np.zeros(2000)
    y[:30] = 1
    y[1000:1070] = 1
    found = sums_of(pits_of(p, y, np.random.default_rng(5))).tests
    assert abs(found.z_level[0]) < 0.1
    assert found.z_spread[0] > 3
    # the law of the trend by brute force: a difference of two binomial numbers, weighted
    low, high = (np.unique(trend_weights(p))).tolist()
    one, other = (stats.binom.pmf(np.arange(1001), 1000, q) for q in (0.01, 0.09))
    total = low * np.arange(1001)[:, None] + high * np.arange(1001)
    mass = one[:, None] * other
    at = low * 30 + high * 70
    tail = min(mass[total <= at].sum(), mass[total >= at].sum())
    assert found.p_value[0] == pytest.approx(4 * tail, rel=1e-6)


def test_impossible_events_refute_their_probabilities():
    p, y = np.zeros(50), np.zeros(50)
    y[7] = 1
    pits = pits_of(p, y, np.random.default_rng(4))
    assert p_value_of(pits) == p_value_of(pits, are_known=False) == 0
    happened = (np.arange(50) < 9) * 1.0
    right = pits_of(np.round(0.9 * happened), happened, np.random.default_rng(5))
    assert p_value_of(right) == 1


def chances(rate, n, *, are_equal, rng):
    return np.full(n, rate) if are_equal else rng.beta(3 * rate, 3 * (1 - rate), size=n)


@statistical
@pytest.mark.parametrize(
    ("n", "rate", "are_equal"),
    [(100, 0.005, True), (100, 0.5, False), (600, 0.005, False), (600, 0.1, True)],
)
def test_right_probabilities_are_rejected_as_seldom_as_stated(rate, n, are_equal):
    count = repeats(2000)
    rng = np.random.default_rng(6)
    wrong = np.zeros(2, dtype=int)
    lost = np.zeros(2, dtype=int)
    for _ in range(count):
        p = chances(rate, n, are_equal=are_equal, rng=rng)
        sums = sums_of(pits_of(p, (rng.random(n) < p).astype(float), rng))
        wrong += [one.tests.p_value[0] < 0.05 for one in (sums, replace(sums, rows=None))]
        low, high = bias_intervals(sums, 0.025)
        lost += [low[0] > 0, high[0] < 0]
    assert wrong.max() <= most_failures(count, 0.05)
    assert lost.max() <= most_failures(count, 0.025)


@statistical
@pytest.mark.parametrize(("told", "rate"), [(0.015, 0.03), (0.1, 0.13), (0.6, 0.5)])
def test_intervals_of_wrong_probabilities_hold(told, rate):
    # chances and probabilities vary between rows that are drawn anew
    count, n = repeats(2000), 300
    rng = np.random.default_rng(7)

    def shared(p):
        return np.clip(p * rate / told, 0, 1)

    many = chances(told, 100_000, are_equal=False, rng=rng).clip(1e-12, 1 - 1e-12)
    true = float((shared(many) - many).mean())
    lost = np.zeros(4, dtype=int)
    for _ in range(count):
        p = chances(told, n, are_equal=False, rng=rng)
        sums = sums_of(pits_of(p, (rng.random(n) < shared(p)).astype(float), rng))
        low, high = bias_intervals(sums, 0.025)
        least, most = error_intervals(sums, 0.025)
        lost += [low[0] > true, high[0] < true, least[0] > abs(true), most[0] < abs(true)]
    assert lost.max() <= most_failures(count, 0.025)


def planted(n=3000):
    """Probabilities of 2%, outcomes and two features; 6% among those with `a` = 1."""
    rng = np.random.default_rng(10)
    X = pd.DataFrame({"a": rng.integers(0, 2, size=n), "b": rng.integers(0, 2, size=n)})
    p = rng.beta(2, 98, size=n)
    return p, (rng.random(n) < np.where(X["a"] == 1, 3 * p, p)).astype(float), X


def test_scans_find_groups_of_rare_events():
    p, y, X = planted()
    pits = pits_of(p, y, np.random.default_rng(11))
    found = scan_groups(pits, X, residual=y - p).set_index("group")
    assert found.loc["a = 1", "direction"] == "outcomes higher than forecast"
    assert found.loc["a = 1", "p_adjusted"] < 1e-6
    assert found.loc["a = 0", "direction"] == "as forecast"
    some = (X["a"] == 1).to_numpy()
    tail = 0.05 / (2 * len(found))
    events, n = y[some].sum(), some.sum()
    low = stats.beta.ppf(tail, events, n - events + 1) - p[some].mean()
    assert found.loc["a = 1", "bias_low"] == pytest.approx(low, rel=1e-9)
    assert found.loc["a = 1", "error_low"] == pytest.approx(low, rel=1e-9)
    # sums over intersections, by inclusion and exclusion, are those of the rows
    both = some & (X["b"] == 0).to_numpy()
    for name, mask in (("a = 1", some), ("a = 1 and b = 0", both)):
        direct = min(p_value_of(pits.take(mask)), 1.0)
        assert found.loc[name, "p_value"] == pytest.approx(direct, rel=1e-6)


@statistical
def test_biases_that_vary_between_rows_stay_in_their_intervals():
    # probabilities of 0 and 1 at random: `Y - P` varies more than a binomial outcome does. The
    # interval is asymptotic for the people that rows are drawn from
    count = repeats(2000)
    rng = np.random.default_rng(13)
    lost = np.zeros(2, dtype=int)
    for _ in range(count):
        p, y = rng.integers(0, 2, size=(2, 400)).astype(float)
        low, high = bias_intervals(sums_of(pits_of(p, y, rng)), 0.025)
        lost += [low[0] > 0, high[0] < 0]
    assert lost.max() <= most_failures(count, 0.025)


def test_counted_groups_have_the_tests_of_rows_in_memory(tmp_path):
    p, y, X = planted()
    X.assign(p=p, y=y).to_parquet(tmp_path / "rows.parquet")
    options = {"search": Search(learned_masses=(), masses=(1.0,)), "random_state": 0}
    subject = ForecastColumns(probability="p")
    found = audit_parts(
        subject, tmp_path / "rows.parquet", "y", groups=["a"], sample_size=1500, **options
    )
    groups = found.groups.set_index("group")
    assert int(groups.loc["everyone", "n"]) == 3000
    pits = pits_of(p, y, np.random.default_rng(14))
    for name, mask in (("a = 0", X["a"] == 0), ("a = 1", X["a"] == 1)):
        direct = p_value_of(pits.take(mask.to_numpy()), are_known=False)
        assert groups.loc[name, "p_value"] == pytest.approx(direct, rel=1e-6)
        assert groups.loc[name, "bias"] == pytest.approx((y - p)[mask].mean(), rel=1e-9)
    assert groups.loc["a = 1", "error_low"] > 0
    assert found.family.asymptotic == ()


def test_a_single_event_has_at_most_the_expected_number_as_its_chance():
    y = (np.arange(40) == 3).astype(float)
    pits = pits_of(np.full(40, 1e-4), y, np.random.default_rng(6))
    assert p_value_of(pits, are_known=False) == pytest.approx(2 * 40 * 1e-4, rel=1e-9)
    # exactly: two tails, and two tests of which the trend is that of equal probabilities
    exact = 2 * stats.binom.sf(0, 40, 1e-4)
    assert p_value_of(pits) == pytest.approx(2 * exact, rel=1e-6)
