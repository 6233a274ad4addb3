"""Benchmarks, without a peer: planted problems, measures, tables, scores, claims, who wins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from evenhand import Forecast

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

with pytest.MonkeyPatch.context() as patch:
    for folder in ("peers", "forecasts"):
        patch.syspath_prepend(str(BENCHMARKS / folder))
    import comparison
    import peer_detection as detection
    import planted
    import scores
    import tables


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


# --- forecasts: tables, scores and claims


def made_up(
    levels: dict[str, float],
    cpu: dict[str, float] | None = None,
    name: str = "made up",
    n: int = 50,
) -> comparison.TableScores:
    """Return a table on which a forecaster's scores are a level plus small noise of its own."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    found = {}
    for forecaster in comparison.FIELD:
        level = levels.get(forecaster, 1.0)
        noise = 0.01 * rng.normal(size=(2, n))
        found[forecaster] = {
            "log": level + noise[0],
            "crps": level + noise[1],
            "mean": np.zeros(n),
            "pit": stats.norm.cdf(y),
        }
    seconds = dict.fromkeys(comparison.FIELD, 1.0) | (cpu or {})
    return comparison.TableScores(name, 3, None, y, found, seconds, seconds)


def held(found: list[comparison.TableScores]) -> list[bool]:
    return [claim.is_held for claim in comparison.claims(found)]


def test_tables_are_sorted_and_alternate_between_choosing_and_report():
    names = [table.name.lower() for table in tables.TABLES]
    assert names == sorted(set(names))
    for place, table in enumerate(tables.TABLES):
        assert (table in tables.CHOOSING) == (place % 2 == 0)
        assert (table in tables.REPORTED) == (place % 2 == 1)
    # the roles that were committed before the first run
    assert {"crime", "diamonds", "engel"} <= {table.name for table in tables.CHOOSING}
    assert {"credit", "diabetes", "Wages"} <= {table.name for table in tables.REPORTED}


def test_scores_of_rounded_outcomes_are_those_of_cells_of_the_whole_table():
    whole = np.repeat([0.0, 0.5, 1.0, 1.5], 5)
    scale = scores.Scale.of(whole)
    assert (scale.step, scale.span) == (0.5, (0.0, 1.5))
    # the extremes of these rows are inner cells of the table, but for the last row
    y = np.array([0.5, 1.0, 1.5])
    mean = np.array([0.4, 0.2, 1.0])
    found = scores.row_scores(Forecast.from_normal(mean, np.ones(3)), y, scale)
    low = stats.norm.cdf(y - 0.25, mean)
    high = np.array([*stats.norm.cdf(y[:2] + 0.25, mean[:2]), 1.0])
    np.testing.assert_allclose(found["log"], -np.log((high - low) / 0.5), rtol=1e-9)
    assert ((found["pit"] > low) & (found["pit"] < high)).all()


def test_claims_hold_where_a_default_leads_and_none_is_last_or_slow():
    good = made_up({"network": 0.5, "conformal": 2.0})
    assert held([good] * 4) == [True] * 7


def test_claims_of_never_being_last_and_of_cpu_are_judged_for_each_default():
    last = made_up({"network": 0.5, "boosted": 2.0})
    assert held([last]) == [True, True, False, True, True, True, True]
    slow = made_up({"network": 0.5, "conformal": 2.0}, {"network": 3.5}, "slow")
    fast = made_up({"network": 0.5, "conformal": 2.0}, {"network": 0.1, "ngboost": 9.0})
    found = list(comparison.claims([slow, fast]))
    assert [claim.is_held for claim in found] == [True, True, True, True, False, True, True]
    # 3.6 seconds of 10 in total, 3.5 times on one table
    assert [claim.found for claim in found[3:5]] == ["0.36 times", "3.50 times on slow"]
