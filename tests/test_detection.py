"""Detection of learned groups: level of the test, power beside the scan, models and rules."""

import numpy as np
import pytest
from scipy import special, stats

from complaints import refused
from evenhand.calibration import calibration_error
from evenhand.draws import jittered
from evenhand.links import Entropic
from evenhand.search import find_group, learned_group, scan_groups
from evenhand.search.learned_group import (
    PATTERN_CELLS,
    mean_lower_bound,
    pattern_basis,
    starting_patterns,
    waves,
)
from evenhand.tables import GroupRule, TableEncoder
from planted_groups import PLANTED, mixed_table, planted_table
from repeats import FALSE_ALARM, most_failures, repeats, statistical

LEVEL = 0.025
"""Level of the scan and of the learned group: any false alarm of both has at most twice this."""


def fewest(n_sets, rate, false_alarm=FALSE_ALARM):
    """Return the least count of events of a rate: fewer have at most `false_alarm`."""
    return int(stats.binom.ppf(false_alarm, n_sets, rate))


@statistical
def test_p_values_of_calibrated_forecasts_are_uniform():
    n_sets = repeats(1000, shorter=32)
    p = np.empty(n_sets)
    for seed in range(n_sets):
        X, pit, _ = planted_table(None, seed)
        p[seed] = find_group(pit, X, random_state=seed).p_value
    # neither too small nor too large; false alarm 1e-6 per level
    for level in (0.01, 0.05, 0.25):
        assert (p < level).sum() <= most_failures(n_sets, level)
    for level in (0.25, 0.5):
        assert (p < level).sum() >= fewest(n_sets, level)
    if n_sets == 1000:
        assert (p < 0.25).mean() >= 0.2


def test_studentized_sum_as_in_the_docstring():
    random = np.random.default_rng(0)
    first, second = random.normal(0.1, 1.0, 40), random.normal(0.05, 0.5, 60)
    z = np.concatenate([first / 0.9, second / 0.4])
    t = z.sum() / np.sqrt((z**2).sum())
    plain = learned_group.studentized_p_value(z, 0.0)
    assert plain == pytest.approx(stats.norm.sf(t), rel=1e-12)
    # a common scale changes nothing
    assert learned_group.studentized_p_value(10 * z, 0.0) == pytest.approx(plain, rel=1e-12)
    assert learned_group.studentized_p_value(np.zeros(3), 0.0) == 1.0
    # Hall's transformation, where it is smaller
    k = -1.8 / 10
    hall = ((1 + k * t / 3) ** 3 - 1) / k + k / 6
    skewed = learned_group.studentized_p_value(z, -1.8)
    assert skewed == pytest.approx(stats.norm.sf(hall), rel=1e-12)
    assert skewed > plain
    assert learned_group.studentized_p_value(z, 1.8) == plain
    # the sum of known moments replaces a smaller sum of squares, and the skewness
    known = learned_group.studentized_p_value(z, 0.0, (4 * (z @ z), 0.0))
    assert known == pytest.approx(stats.norm.sf(t / 2), rel=1e-12)


@statistical
def test_means_over_draws_of_skewed_values_are_tested_at_level():
    """8 draws of the entropic link, 0.1: values under the pattern of too wide forecasts.

    Their skewness is -3.6. Of 60 such values, the studentized sum alone rejects in 12.5% of the
    tables at 5% and in 3.8% at 0.5%, which this test detects at both of its sizes: the
    transformation, which is of second order, is allowed 6% and 1%.
    """
    n_sets = repeats(8000)
    random = np.random.default_rng(6)
    pit = Entropic(0.1).ppf(random.random((80 * n_sets, 1)), jittered(80 * n_sets, 8, random))
    values = pattern_basis(pit) @ starting_patterns()[3]
    assert learned_group.skewness_of(values) == pytest.approx(stats.skew(values), rel=1e-9)
    assert learned_group.skewness_of(values) < -3
    sets = values.reshape(n_sets, 80)
    # the skewness is that of 20 times as many earlier rows; false alarm: 1e-6 for each level
    earlier = learned_group.skewness_of(values[:1200])
    p = np.array([learned_group.studentized_p_value(one[:60], earlier) for one in sets])
    for level, rate in ((0.005, 0.01), (0.05, 0.06)):
        assert (p < level).sum() <= most_failures(n_sets, rate)


def least_found(n_sets, n_all, power):
    """Return how many groups are found at least: fewer have a probability of at most 1e-3."""
    return power * n_sets if n_sets == n_all else fewest(n_sets, power, 1e-3)


def overlap(found, planted):
    return float((found & planted).sum() / (found | planted).sum())


@statistical
@pytest.mark.parametrize("kind", PLANTED)
def test_planted_groups_are_found_by_scan_or_learned_group(kind):
    """Nine in ten tables by either search, at 2.5% each; in eight, a Jaccard index of 1/2."""
    n_sets = repeats(200)
    found = right = 0
    for seed in range(n_sets):
        X, pit, planted = planted_table(kind, seed)
        scan = scan_groups(pit, X).iloc[0]
        group = find_group(pit, X, confidence=1 - LEVEL, random_state=seed)
        shown = []
        if scan["p_adjusted"] < LEVEL:
            shown.append(GroupRule.parse(scan["group"], X.columns).mask(X))
        if group.conditions:
            shown.append(GroupRule(group.conditions).mask(X))
        found += scan["p_adjusted"] < LEVEL or group.is_significant
        right += any(overlap(rows, planted) >= 0.5 for rows in shown)
    assert found >= least_found(n_sets, 200, 0.9)
    assert right >= least_found(n_sets, 200, 0.8)


def test_held_out_predictions_do_not_depend_on_the_held_out_row():
    random = np.random.default_rng(4)
    matrix, pit = random.normal(size=(90, 3)), random.random((90, 1))
    changed = pit.copy()
    changed[7] = 1 - changed[7]
    encoder = TableEncoder()
    codes = learned_group.CutTable.of(encoder.fit_transform(matrix), encoder).codes
    one, two = (learned_group.learn_fits(codes, waves(some)) for some in (pit, changed))
    for before, after in zip(one[:-1], two[:-1], strict=True):  # all but the ridge: its penalty
        np.testing.assert_allclose(before.unseen[7], after.unseen[7], atol=1e-12)
        assert np.abs(before.unseen - after.unseen).max() > 1e-3


def test_the_rule_as_printed_selects_the_described_rows():
    X, pit, planted = planted_table("pair", 3)
    group = find_group(pit, X, random_state=0)
    assert group.is_significant
    assert 1 <= len(group.conditions) <= 4
    assert group.description == " and ".join(map(str, group.conditions))
    rows = GroupRule.parse(group.description, X.columns).mask(X)
    np.testing.assert_array_equal(rows, GroupRule(group.conditions).mask(X))
    # the share is that of the evaluated 60% of the rows: standard error 0.007
    assert rows.mean() == pytest.approx(group.description_share, abs=0.04)
    assert overlap(rows, planted) > 0.5


# The learned worst group: its values and bound, false alarms, planted groups, bad input.


ALPHA = 0.05


@pytest.mark.parametrize("distribution", [stats.beta(0.6, 0.6), stats.beta(2, 3)])
def test_expected_pattern_value_is_the_signed_error(distribution):
    """E[Z] = integral s (F - c): midpoints in probability on one side, in level on the other."""
    random, middles = np.random.default_rng(1), (np.arange(320_000) + 0.5) / 320_000
    pit, deviation = distribution.ppf(middles)[:, None], distribution.cdf(middles) - middles
    basis = pattern_basis(pit)
    for pattern in [*starting_patterns(), random.choice([-1.0, 1.0], PATTERN_CELLS)]:
        signs = pattern[np.minimum((middles * PATTERN_CELLS).astype(int), PATTERN_CELLS - 1)]
        signed = (signs * deviation).mean()
        assert (basis @ pattern).mean() == pytest.approx(signed, abs=2e-5)


def test_mean_value_never_exceeds_the_error_and_reaches_it():
    random = np.random.default_rng(3)
    for shape in (1.5, 0.5):
        pit = random.random((2000, 1)) ** shape
        values = [(pattern_basis(pit) @ s).mean() for s in starting_patterns()]
        error = calibration_error(pit)
        assert max(values) == pytest.approx(error, abs=2e-3)
        assert all(v <= error + 1e-12 for v in values)
    assert (np.abs(pattern_basis(np.linspace(0, 1, 101)) @ -np.ones(PATTERN_CELLS)) <= 0.5).all()


@statistical
@pytest.mark.parametrize(("n", "power"), [(20, 1.0), (200, 1.6), (20, 3.0), (200, 1.0)])
def test_bound_stays_below_the_mean(n, power):
    """PITs U^power: mean value 1/2 - 1/(1 + power) (false-alarm rate 1e-3 each)."""
    random, n_sets = np.random.default_rng(int(10 * power) + n), repeats(1000)
    truth = 0.5 - 1 / (1 + power)
    pits = random.random((n_sets, n)) ** power
    lows = np.array([mean_lower_bound(pattern_basis(p) @ np.ones(PATTERN_CELLS)) for p in pits])
    assert (lows > truth + 1e-12).sum() <= most_failures(n_sets, ALPHA, 1e-3)


@statistical
def test_bound_holds_for_the_mean_of_expectations_that_follow_the_past():
    """Rows depend on the last ones' values: the bound is for the mean of expectations."""
    random, n_sets, n = np.random.default_rng(5), repeats(1000), 100
    values, expected = np.empty((n_sets, n)), np.empty((n_sets, n))
    lean = np.zeros(n_sets)
    for i in range(n):
        # 1/2 with probability 1/2 + lean, else -1/2: expectation lean
        values[:, i] = np.where(random.random(n_sets) < 0.5 + lean, 0.5, -0.5)
        expected[:, i] = lean
        lean = np.clip(lean + 0.1 * values[:, i], -0.3, 0.45)
    exceed = sum(
        mean_lower_bound(v, deviation=0.5) > max(e, 0.0)
        for v, e in zip(values, expected.mean(axis=-1), strict=True)
    )
    assert exceed <= most_failures(n_sets, ALPHA, 1e-3)


def test_capital_as_written_in_the_docstring():
    """The bound solves its own equation: brute force over theta."""
    values = np.random.default_rng(7).random(60) * 0.8 - 0.3
    low = mean_lower_bound(values, 0.9, deviation=0.3)
    first = np.sqrt(2 * np.log(10) / 60) / 0.3
    stakes = np.minimum(first * np.array([1, 2, 4]), 1.98)
    thetas = np.linspace(0, 0.5, 20_001)
    capital = np.array(
        [
            weight * np.prod((1 + stake * values)[:, None] / (1 + stake * thetas), axis=0)
            for weight, stake in zip((0.8, 0.1, 0.1), stakes, strict=True)
        ]
    ).sum(axis=0)
    assert low == pytest.approx(thetas[capital >= 10].max(), abs=3e-5)


@statistical
def test_bound_is_below_the_error_of_the_rows_found():
    """Right half shifted by half a deviation: its error is known. False-alarm rate: 0.001."""
    # E[PIT] - 1/2 for a normal outcome shifted by 0.5 standard deviations
    error = special.ndtr(0.5 / np.sqrt(2)) - 0.5
    n_sets, misses, lows = repeats(150, shorter=8), 0, []
    for seed in range(n_sets):
        random = np.random.default_rng([seed, 78])
        X = random.normal(size=(300, 4))
        right = X[:, 0] > 0
        group = find_group(
            special.ndtr(random.normal(size=300) + 0.5 * right), X, n_folds=3, random_state=random
        )
        misses += group.low > error * right[group.rows].mean() + 1e-9
        lows.append(group.low)
    assert misses <= most_failures(n_sets, ALPHA, 1e-3)
    assert np.mean(np.array(lows) > 0) > 0.2  # not for want of bounds


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (lambda t: t["city"] == "Bern", "city is Bern"),
        (lambda t: ~t["member"], "member is false"),
        (lambda t: t["since"] >= "2021-07-01", "since > 2021-0"),
        (lambda t: t["bmi"] > 0.4, "bmi > 0."),
        (lambda t: t["income"].isna(), "income is missing"),
    ],
)
def test_groups_of_mixed_tables_are_described_in_words(where, words):
    random = np.random.default_rng(9)
    table = mixed_table(random, 1500)
    inside = where(table).to_numpy()
    pit = random.random(1500) ** np.where(inside, 4.0, 1.0)
    group = find_group(pit, table, float(inside.mean()), random_state=0)
    assert group.description.startswith(words)
    assert group.features[0] == words.split(maxsplit=1)[0]
    assert inside[group.rows].mean() > 0.8
    assert group.direction == "outcomes lower than forecast"
    assert 2 / 3 <= group.description_share / group.mass <= 3 / 2


def test_a_rule_that_selects_many_more_people_is_not_printed():
    # one half is off, all of it alike: no short rule describes which tenth of all people is worst
    random = np.random.default_rng(0)
    x = random.random((4000, 1))
    pit = random.random(4000) ** np.where(x[:, 0] > 0.5, 3.0, 1.0)
    half, tenth = find_group(pit, x, 0.5, random_state=0), find_group(pit, x, 0.1, random_state=0)
    assert half.description is not None
    assert half.description_share == pytest.approx(0.5, abs=0.1)
    assert tenth.description is None or tenth.description_share <= 0.15
    assert tenth.low > 0


def test_bad_input_is_named():
    random = np.random.default_rng(13)
    pit, X = random.random(200), random.normal(size=(200, 2))
    refused("0.2, not 20", find_group, pit, X, mass=20)
    refused("confidence must be above 0 and below 1", find_group, pit, X, confidence=1.0)
    refused("max_rows must be at least 167", find_group, pit, X, max_rows=50)
    few = "200 rows .* mass 0.01 and 4 folds.* 3334 rows"
    refused(few, find_group, pit, X, mass=0.01)
    refused("at least 817 rows", find_group, pit, X, n_folds=50)
    refused("X must have a feature that varies", find_group, pit, np.ones((200, 2)))
