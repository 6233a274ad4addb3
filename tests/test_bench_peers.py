"""Parts of the benchmark of peers that need no peer: planted problems, measures, who wins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from evenhand.search import scan_groups

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "peers"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCHMARK))
    import coverage_intervals as simultaneous
    import measures
    import peer_detection as detection
    import peer_repairs as repairs
    import planted


@pytest.mark.parametrize(
    ("problem", "share", "mean", "spread"),
    [
        ("half, mean +0.15", 1 / 2, 0.15, 1.0),
        ("pair, mean +0.35, spread 1.5", 1 / 6, 0.35, 1.5),
        ("triple, spread 1.6", 0.6 * 0.6 / 2, 0.0, 1.6),
        ("ball, mean +0.5", np.pi / 16, 0.5, 1.0),
        # E|z| = sqrt(2 / pi) is the variance of sign(z) sqrt|z|
        ("pair, shape", 1 / 6, 0.0, (2 / np.pi) ** 0.25),
    ],
)
def test_planted_groups_have_their_size_and_their_moments(problem, share, mean, spread):
    # 200,000 rows: five standard errors, so that a false alarm has a probability of about 1e-6
    n = 200_000
    table = planted.planted_table(problem, n, 0)
    assert table.rows.mean() == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / n))
    inside, outside = table.y[table.rows], table.y[~table.rows]
    assert inside.mean() == pytest.approx(mean, abs=5 * spread / np.sqrt(inside.size))
    assert inside.std() == pytest.approx(spread, abs=5 * spread / np.sqrt(inside.size))
    assert stats.kstest(outside, "norm").pvalue > 1e-6


def test_overlapping_groups_overlap_and_change_outcomes():
    X, y = planted.overlapping_table(100_000, np.random.default_rng(0))
    first, second, third = (group(X) for group in planted.OVERLAPPING.values())
    everywhere = y[first & second & third]
    # all that applies happens: five standard errors
    assert everywhere.mean() == pytest.approx(0.1, abs=5 * 1.6 / np.sqrt(everywhere.size))
    assert everywhere.std() == pytest.approx(1.6, abs=5 * 1.6 / np.sqrt(everywhere.size))
    assert stats.kstest(y[~(first | second | third)], "norm").pvalue > 1e-6


def test_groups_of_features_are_those_of_the_scan():
    table = planted.planted_table("calibrated", 2000, 3)
    X = table.X.assign(few=np.arange(2000) % 4)
    masks = planted.groups_of_features(X, 100)
    found = scan_groups(stats.norm.cdf(table.y), X, 100).set_index("group")
    assert set(masks) == set(found.index)
    for name, mask in masks.items():
        assert mask.sum() == found.loc[name, "n"]
        covered = np.abs(table.y[mask]) <= stats.norm.ppf(0.9)
        assert covered.mean() == pytest.approx(found.loc[name, "coverage_80"])


def test_crps_of_quantiles_is_near_the_integral():
    y = np.linspace(-2, 2, 9)
    quantiles = np.tile(stats.norm.ppf(measures.LEVELS), (9, 1))
    # closed form of a standard normal forecast
    exact = y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)
    assert measures.crps_of_quantiles(quantiles, y) == pytest.approx(exact, rel=0.02)
    assert measures.crps_of_quantiles(np.full((1, 99), 3.0), np.array([1.0])) == pytest.approx(2.0)


def counts(found: int, n: int, named: int = 0) -> detection.Counts:
    return detection.Counts(n, found, named, 1.0)


def test_only_methods_at_their_level_are_compared_by_power():
    assert detection.is_at_level(counts(2, 40))
    assert not detection.is_at_level(counts(12, 12))
    # P(X >= 3) = 0.0012 and P(X >= 2) = 0.023 for 5 tables of 5%
    assert not detection.is_at_level(counts(3, 5))
    assert detection.is_at_level(counts(2, 5))


def test_contests_leave_out_peers_with_false_alarms():
    results = {
        name: {
            problem: counts(alarms if problem == "calibrated" else 20, 20, 20)
            for problem in planted.PROBLEMS
        }
        for name, alarms in (
            ("evenhand scan", 0),
            ("evenhand learned group", 1),
            ("careful", 1),
            ("wild", 20),
        )
    }
    made = detection.contests(results)
    powers = [contest for contest in made if contest.more_is_better]
    assert len(powers) == 2 * (len(planted.PROBLEMS) - 1)
    assert all(set(contest.theirs) == {"careful"} for contest in powers)
    alarms = [contest for contest in made if contest.measure == "share of false alarms"]
    assert [contest.winner for contest in alarms] == ["tie", "evenhand"]


def test_intervals_of_the_scan_are_in_the_order_of_the_groups():
    rng = np.random.default_rng(0)
    X = planted.binary_features(3000, 3, rng)
    pit = rng.uniform(size=3000)
    names = list(planted.groups_of_features(X, 150))
    found = simultaneous.by_scan(pit, X, names).ends[0.9]
    for ends, mask in zip(found, planted.groups_of_features(X, 150).values(), strict=True):
        covered = np.abs(pit[mask] - 0.5) <= 0.45
        assert ends[0] < covered.mean() < ends[1]
        # Clopper and Pearson at 1 - 0.05 / (number of groups)
        exact = measures.binomial_range(int(covered.sum()), covered.size, 1 - 0.05 / len(names))
        assert ends == pytest.approx(exact, abs=1e-6)


def test_the_right_forecast_is_measured_as_right():
    rng = np.random.default_rng(0)
    rows = repairs.Rows.of(*repairs.calibrated_table(20_000, rng))
    found = repairs.measured(repairs.unrepaired(rows, rows), rows)
    # mean absolute differences of shares of at least 1,000 rows: standard errors below 0.013
    assert found["given"] < 0.02
    assert found["pooled"] < 0.01
    assert found["width"] == pytest.approx(2 * stats.norm.ppf(0.95))
    # CRPS of a standard normal forecast that is right is 1 / sqrt(pi)
    assert found["crps"] == pytest.approx(1 / np.sqrt(np.pi), rel=0.03)
