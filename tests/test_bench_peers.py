"""Parts of the benchmark of peers that need no peer: planted problems, measures, who wins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "peers"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCHMARK))
    import peer_detection as detection
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
