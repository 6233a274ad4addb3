"""Conditional miscoverage: known truth by integration, calibrated data, and input."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from evenhand import audit_pit
from evenhand.audits import Search
from evenhand.report import NoteKind, notes_of
from evenhand.search import conditional_miscoverage
from repeats import FALSE_ALARM, most_failures, repeats, statistical

SLOPE = 1.2
"""Logarithm of the ratio of the largest to the smallest spread of the planted outcomes."""


def spread(x):
    """Return the standard deviation of outcomes, forecast as 1 for everybody."""
    return np.exp(SLOPE * (x - 0.5))


def coverage(x, level):
    """Return the true coverage of the central interval of N(0, 1), given the feature."""
    return 2 * stats.norm.cdf(stats.norm.isf((1 - level) / 2) / spread(x)) - 1


def truth(level):
    """Return the mean absolute difference of the coverage from the level, by integration."""
    found, _ = integrate.quad(lambda x: abs(coverage(x, level) - level), 0, 1, points=[0.5])
    return float(found)


def planted(n, random):
    """Return PITs and three features, the first of which the spread depends on."""
    X = random.random((n, 3))
    return stats.norm.cdf(spread(X[:, 0]) * random.normal(size=n)), X


def test_a_planted_dependence_is_estimated():
    # 4 standard errors: an alarm in 1 of 15,000 seeds; the sign is wrong for few people only, those
    # whose coverage is near the level, and they cost less than a tenth of the truth
    pit, X = planted(12_000, np.random.default_rng(0))
    for row in conditional_miscoverage(pit, X, random_state=0).itertuples():
        error = (row.high - row.low) / (2 * 1.96)
        assert 0.9 * truth(row.level) - 4 * error < row.excess < truth(row.level) + 4 * error
        assert row.low > 0
        assert row.n == 9600
        # the fifths of people with the smallest and largest first feature
        fifths = [
            integrate.quad(lambda x, level=row.level: 5 * coverage(x, level), *ends)[0]
            for ends in ((0.8, 1.0), (0.0, 0.2))
        ]
        assert row.lowest_fifth == pytest.approx(fifths[0], abs=0.08)
        assert row.highest_fifth == pytest.approx(fifths[1], abs=0.08)


@statistical
def test_the_lower_end_is_below_the_truth():
    random = np.random.default_rng(1)
    n_sets = repeats(160)
    above = 0
    for _ in range(n_sets):
        pit, X = planted(600, random)
        found = conditional_miscoverage(pit, X, (0.8,), random_state=random)
        above += bool(found["low"][0] > truth(0.8))
    assert above <= most_failures(n_sets, 0.025)


@statistical
def test_calibrated_forecasts_have_no_excess():
    # the intervals contain 0 at their level, and the estimates are 0 on average, not above
    random = np.random.default_rng(2)
    n_sets = repeats(240)
    found = np.empty((n_sets, 2))
    for i in range(n_sets):
        pit, X = random.random(400), random.normal(size=(400, 4))
        row = conditional_miscoverage(pit, X, (0.8,), random_state=random).iloc[0]
        found[i] = row["excess"], row["low"]
    assert (found[:, 1] > 0).sum() <= most_failures(n_sets, 0.025)
    z = found[:, 0].mean() / (found[:, 0].std() / np.sqrt(n_sets))
    assert abs(z) < stats.t.isf(FALSE_ALARM / 2, n_sets - 1)


def test_the_coverage_of_a_person_is_the_mean_over_draws():
    # each of these people is covered at half of the draws: the excess is 0.3 at level 0.8
    pit = np.tile([0.5, 0.01], (400, 1))
    found = conditional_miscoverage(pit, np.random.default_rng(0).random((400, 2)), random_state=0)
    np.testing.assert_allclose(found["excess"], [0.3, 0.4])
    np.testing.assert_allclose(found[["low", "high"]].to_numpy().T, [found["excess"]] * 2)
    np.testing.assert_allclose(found[["lowest_fifth", "highest_fifth"]], 0.5)


def test_an_audit_estimates_it_by_its_features():
    pit, X = planted(1000, np.random.default_rng(0))
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    options = {"search": Search(masses=[1.0], learned_masses=[], n_simulations=2)}
    found = audit_pit(pit, X=table, random_state=0, **options)
    ours = found.miscoverage
    pd.testing.assert_frame_equal(ours, conditional_miscoverage(pit, table, random_state=0))
    assert audit_pit(pit, random_state=0, **options).miscoverage.empty
    few = audit_pit(pit[:100], X=table[:100], random_state=0, **options)
    assert few.miscoverage.empty
    assert len(notes_of(few.notes, NoteKind.NO_MISCOVERAGE)) == 1
