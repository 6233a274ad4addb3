"""Group searches in PITs of outcomes with atoms (outcomes: 4.3)."""

from itertools import combinations

import numpy as np
import pytest

from discrete_laws import pits_of
from evenhand.calibration import Cells, calibration_error
from evenhand.search import GroupSearch, find_group, null_curve, scan_groups, worst_group_curve
from evenhand.search.learned_group import null_moments, pattern_basis, starting_patterns, waves
from repeats import most_failures, repeats, statistical

LEVEL = np.ones(32)
SPREAD = np.where(np.arange(32) < 16, 1.0, -1.0)
MIXED = np.where(np.arange(32) % 7 < 3, 1.0, -1.0)

LAWS = ("poisson 0.5", "event 0.1", "atom 0.8")


def _random_cells(shape, seed):
    random = np.random.default_rng(seed)
    low = random.random(shape)
    width = random.random(shape) * random.choice([1e-9, 0.01, 0.5], shape)
    return low, np.minimum(low + width, 1.0)


def test_values_of_cells_are_means_over_positions_in_the_cell():
    low, high = _random_cells((30, 3), 1)
    pits = Cells(low, high, ties=np.full(30, 0.5))
    place = (np.arange(2000)[:, None, None] + 0.5) / 2000
    many = Cells((low + place * (high - low)).reshape(-1, 3))

    def mean(values):
        return values.reshape(2000, 30, -1).mean(axis=0)

    for values in (waves, pattern_basis):
        # piecewise linear functions with kinks: the midpoint rule is exact up to 1/2000^2
        np.testing.assert_allclose(values(pits), mean(values(many)), atol=1e-6)
    patterns = starting_patterns().T
    of_patterns = mean(pattern_basis(many) @ patterns)
    np.testing.assert_allclose(pattern_basis(pits) @ patterns, of_patterns, atol=1e-6)


@pytest.mark.parametrize(
    ("law", "drawn", "averaged"),
    [
        # the fifth of the people with the lowest PITs. Drawn: they fill [0, 0.2], error 0.4.
        # Averaged: no event, uniform on [0, 0.9]: 0.05; the atom, uniform on [0, 0.5]: 0.25;
        # Poisson(2): all zeros, mean 0.0677, and ones up to a fifth of the people, mean 0.2707
        ("event 0.1", 0.4, 0.05),
        ("atom 0.5", 0.4, 0.25),
        ("poisson 2", 0.4, 0.5 - (0.1353 * 0.0677 + 0.0647 * 0.2707) / 0.2),
    ],
)
def test_a_group_of_lowest_pits_must_not_see_drawn_positions(law, drawn, averaged):
    """Means of 40 samples of 1,000 people; standard errors are below 0.003."""
    errors = []
    for seed in range(40):
        pits = pits_of(law, 1000, np.random.default_rng(seed))
        lowest = np.argsort(pits.drawn[:, 0])[:200]
        middle = np.argsort((pits.low + pits.high)[:, 0], kind="stable")[:200]
        errors.append((calibration_error(pits.drawn[lowest]), calibration_error(pits.take(middle))))
    means = np.mean(errors, axis=0)
    # samples of 1,000 exceed the limit for many people by about 0.01
    np.testing.assert_allclose(means, [drawn, averaged], atol=0.015)


def test_worst_groups_of_cells_are_worst_among_all_groups_of_a_small_sample():
    for law in ("poisson 2", "event 0.4", "atom 0.5"):
        pits = pits_of(law, 9, np.random.default_rng(5))
        curve = worst_group_curve(pits, [1 / 3], random_state=0)
        all_groups = (list(rows) for rows in combinations(range(9), 3))
        best = max(calibration_error(pits.take(rows)) for rows in all_groups)
        assert curve.errors[0] == pytest.approx(best, rel=1e-12)


def test_null_curve_simulates_outcomes_with_the_same_cells():
    """For events of 10% the mean worst fifth is far below that of continuous outcomes, 0.4."""
    pits = pits_of("event 0.1", 500, np.random.default_rng(0))
    masses = [0.2, 1.0]
    null = null_curve(
        pits,
        masses,
        simulate=lambda random: pits_of("event 0.1", 500, random),
        n_simulations=20,
        random_state=0,
    )
    # a fifth with all events: half of it uniform on [0.9, 1], half on [0, 0.9], mean 0.7
    assert null.mean[0] == pytest.approx(0.2, abs=0.03)
    # all rows: |rate - p| / 2, whose mean is that of a normal variable, sd / 2 * sqrt(2 / pi)
    expected = np.sqrt(0.1 * 0.9 / 500) / 2 * np.sqrt(2 / np.pi)
    assert null.mean[1] == pytest.approx(expected, rel=0.6)
    # without it, calibrated PITs without cells are simulated: larger errors, a cautious comparison
    assert null_curve(pits, 0.2, n_simulations=5, random_state=0).mean[0] > 0.35


@statistical
@pytest.mark.parametrize("law", LAWS)
def test_scans_and_learned_groups_keep_their_level(law):
    """Each rate of false alarms is at most 5%."""
    count = repeats(1000, shorter=64)
    alarms = np.zeros(5)
    for seed in range(count):
        random = np.random.default_rng([seed, LAWS.index(law)])
        pits = pits_of(law, 600, random)
        X = random.normal(size=(600, 3))
        search = GroupSearch(pits, X, random_state=seed)
        groups = [search.find(mass) for mass in (0.1, 0.2, 0.5)]
        scan = scan_groups(pits, X, 50, random_state=seed)
        alarms += [
            *(group.p_value < 0.05 for group in groups),
            groups[1].low > 0,
            scan["p_adjusted"].min() < 0.05 or (scan["error_low"] > 0).any(),
        ]
    assert (alarms <= most_failures(count)).all(), alarms / count


@pytest.mark.parametrize("pattern", [LEVEL, SPREAD, MIXED], ids=["level", "spread", "mixed"])
def test_null_moments_are_those_of_the_values_of_the_true_distribution(pattern):
    cdf = np.array([0.0, 0.3, 0.55, 0.9, 0.995, 1.0])
    probability = np.diff(cdf)
    pits = Cells(cdf[:-1], cdf[1:], ties=np.full(5, 0.5))
    values = pattern_basis(pits) @ pattern
    second, third = null_moments(pits, pattern)
    assert probability @ second == pytest.approx(probability @ values**2, rel=1e-9)
    assert probability @ third == pytest.approx(probability @ values**3, rel=1e-9)
    # without cells the values themselves are those of a uniform PIT
    grid = Cells((np.arange(64 * 50) + 0.5) / 3200)
    point = Cells(grid.drawn - 1e-9, grid.drawn + 1e-9, grid.drawn)
    second, _ = null_moments(point, pattern)
    assert second[0] == pytest.approx(((pattern_basis(grid) @ pattern) ** 2).mean(), rel=1e-5)


@statistical
@pytest.mark.parametrize(("p", "n"), [(0.005, 340), (0.1, 340), (0.005, 1000)])
def test_learned_groups_of_rare_events_are_significant_at_their_level(p, n):
    # sums of squares of values of groups without an event: 46% to 81% false alarms at 0.5%
    n_sets = repeats(300)
    found = 0
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        event = rng.random(n) < p
        low, high = np.where(event, 1 - p, 0.0), np.where(event, 1.0, 1 - p)
        pits = Cells(low, high, ties=rng.random(n))
        found += find_group(pits, rng.normal(size=(n, 3)), 0.2, random_state=seed).p_value < 0.05
    assert found <= most_failures(n_sets, 0.05)
