"""The learned worst group: its values and bound, false alarms, planted groups, bad input.

Random checks are seeded; where one has a false-alarm rate, it is that of the check with a fresh
seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from evenhand._validate import InputError
from evenhand.calibration import calibration_error
from evenhand.draws import jittered
from evenhand.links import Entropic
from evenhand.search import find_group
from evenhand.search.learned_group import mean_lower_bound
from evenhand.search.patterns import (
    PATTERN_CELLS,
    WAVES,
    pattern_of,
    pattern_values,
    starting_patterns,
    wave_weights,
    waves,
)
from repeats import most_failures, repeats, statistical

Floats = NDArray[np.float64]

ALPHA = 0.05
CORNER = float(stats.norm.isf(0.1**0.5))


def sign_at(pattern: Floats, c: Floats) -> Floats:
    return pattern[np.minimum((c * PATTERN_CELLS).astype(int), PATTERN_CELLS - 1)]


def most_allowed(n: int, rate: float) -> int:
    """Largest count that a binomial of this rate exceeds with probability at most 1e-3."""
    return most_failures(n, rate, false_alarm=1e-3)


# values of patterns


@pytest.mark.parametrize("distribution", [stats.beta(0.6, 0.6), stats.beta(2, 3)])
def test_expected_pattern_value_is_the_signed_error(distribution: Any) -> None:
    """E[Z] = integral s (F - c): midpoints in probability on one side, in level on the other."""
    random, middles = np.random.default_rng(1), (np.arange(320_000) + 0.5) / 320_000
    pit, deviation = distribution.ppf(middles)[:, None], distribution.cdf(middles) - middles
    for pattern in [*starting_patterns(), random.choice([-1.0, 1.0], PATTERN_CELLS)]:
        signed = (sign_at(pattern, middles) * deviation).mean()
        assert pattern_values(pit, pattern).mean() == pytest.approx(signed, abs=2e-5)


def test_mean_value_never_exceeds_the_error_and_reaches_it() -> None:
    random = np.random.default_rng(3)
    for shape in (1.5, 0.5):
        pit = random.random((2000, 1)) ** shape
        values = [pattern_values(pit, s).mean() for s in starting_patterns()]
        error = calibration_error(pit)
        assert max(values) == pytest.approx(error, abs=2e-3)
        assert all(v <= error + 1e-12 for v in values)
    assert (
        np.abs(pattern_values(np.linspace(0, 1, 101)[:, None], -np.ones(PATTERN_CELLS))) <= 0.5
    ).all()


def test_waves_carry_the_error_of_laws_made_of_them() -> None:
    """Density 1 + b sqrt(2) cos(k pi u): F(c) - c = b sqrt(2) sin(k pi c) / (k pi)."""
    c = (np.arange(320_000) + 0.5) / 320_000
    for k in range(1, WAVES + 1):
        deviation = 0.3 * np.sqrt(2) * np.sin(k * np.pi * c) / (k * np.pi)
        for pattern in starting_patterns():
            expected = (sign_at(pattern, c) * deviation).mean()
            assert 0.3 * wave_weights(pattern)[k - 1] == pytest.approx(expected, abs=1e-8)
        mean_waves = np.where(np.arange(1, WAVES + 1) == k, 0.3, 0.0)
        middles = (np.arange(PATTERN_CELLS) + 0.5) / PATTERN_CELLS
        clear = np.abs(np.sin(k * np.pi * middles)) > 0.1
        assert (pattern_of(mean_waves) == np.sign(np.sin(k * np.pi * middles)))[clear].all()
    quantiles = (np.arange(10_000) + 0.5) / 10_000
    gram = waves(quantiles[:, None]).T @ waves(quantiles[:, None]) / 10_000
    np.testing.assert_allclose(gram, np.eye(WAVES), atol=1e-6)


# the bound


@statistical
@pytest.mark.parametrize(("n", "power"), [(20, 1.0), (200, 1.6), (20, 3.0), (200, 1.0)])
def test_bound_stays_below_the_mean(n: int, power: float) -> None:
    """PITs U^power: mean value 1/2 - 1/(1 + power) (false-alarm rate 1e-3 each)."""
    random, n_sets = np.random.default_rng(int(10 * power) + n), repeats(1000)
    truth = 0.5 - 1 / (1 + power)
    pits = random.random((n_sets, n)) ** power
    lows = np.array(
        [mean_lower_bound(pattern_values(p[:, None], np.ones(PATTERN_CELLS))) for p in pits]
    )
    assert (lows > truth + 1e-12).sum() <= most_allowed(n_sets, ALPHA)


@statistical
def test_bound_holds_for_the_mean_of_expectations_that_follow_the_past() -> None:
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
    assert exceed <= most_allowed(n_sets, ALPHA)


@statistical
@pytest.mark.parametrize("n", [30, 1000])
def test_the_bound_is_valid_for_the_worst_law_of_mean_zero(n: int) -> None:
    """Values of +-1/2 have the largest variance. False alarm: 0.001 per level."""
    random, n_sets = np.random.default_rng(n), repeats(2000)
    values = [random.choice([-0.5, 0.5], n) for _ in range(n_sets)]
    for level in (0.2, 0.05, 0.01):
        lows = np.array([mean_lower_bound(one, 1 - level, deviation=0.5) for one in values])
        assert (lows > 0).sum() <= most_allowed(n_sets, level)


def test_the_bound_is_below_the_mean_and_closes_in() -> None:
    random = np.random.default_rng(6)
    for n in (10, 50, 400):
        values = 0.8 * random.random(n) - 0.3
        for confidence in (0.5, 0.9, 0.99):
            assert 0 <= mean_lower_bound(values, confidence) <= max(values.mean(), 0)
    # a normal bound for a million values lies 1.645 * 0.231 / 1000 below
    assert mean_lower_bound(0.8 * random.random(1_000_000) - 0.3) == pytest.approx(0.1, abs=3e-3)


def test_capital_as_written_in_the_docstring() -> None:
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


# false alarms


@statistical
@pytest.mark.parametrize(("n_draws", "n_sets"), [(1, 500), (16, 60)])
def test_calibrated_forecasts_are_rarely_accused(n_draws: int, n_sets: int) -> None:
    """Deterministic and randomized forecasts. False alarm: 0.001."""
    n_sets, alarms, link = repeats(n_sets), 0, Entropic(0.1)
    for seed in range(n_sets):
        random = np.random.default_rng(seed)
        pit = random.random((300, 1))
        if n_draws > 1:
            pit = link.ppf(pit, jittered(300, n_draws, random))
        group = find_group(pit, random.normal(size=(300, 4)), n_folds=3, random_state=random)
        alarms += group.low > 0
    assert alarms <= most_allowed(n_sets, ALPHA)


# planted groups


def planted(kind: str, seed: int, n: int = 2000) -> tuple[Floats, Floats, Floats]:
    """Features, PITs and, by row, +1 in a planted region, -1 in the opposite one, or 0."""
    random = np.random.default_rng([seed, 77])
    X, noise = random.normal(size=(n, 10)), random.normal(size=n)
    right = X[:, 0] > 0
    if kind == "halves":
        region = np.where(right, 1.0, -1.0)
        return X, special.ndtr(noise + 0.5 * region), region
    if kind == "corner":
        region = ((X[:, 0] > CORNER) & (X[:, 1] > CORNER)).astype(float)
        return X, special.ndtr(noise + region), region
    factor = 1.6 if kind == "too narrow" else 0.6
    return X, special.ndtr(noise * np.where(right, factor, 1.0)), right.astype(float)


@statistical
def test_bound_is_below_the_error_of_the_rows_found() -> None:
    """Right half shifted by half a deviation: a group's error is its share times a known one.

    False-alarm rate: 0.001.
    """
    # E[PIT] - 1/2 for a normal outcome shifted by 0.5 standard deviations
    error = special.ndtr(0.5 / np.sqrt(2)) - 0.5
    n_sets, misses, lows = repeats(150), 0, []
    for seed in range(n_sets):
        random = np.random.default_rng([seed, 78])
        X = random.normal(size=(300, 4))
        right = X[:, 0] > 0
        group = find_group(
            special.ndtr(random.normal(size=300) + 0.5 * right), X, n_folds=3, random_state=random
        )
        misses += group.low > error * right[group.rows].mean() + 1e-9
        lows.append(group.low)
    assert misses <= most_allowed(n_sets, ALPHA)
    assert np.mean(np.array(lows) > 0) > 0.2  # not for want of bounds


def test_bias_and_coverage_are_those_of_the_rows() -> None:
    X, pit, _ = planted("halves", 0, n=600)
    y = np.random.default_rng(8).normal(size=600)
    group = find_group(pit, X, 0.5, residual=y, random_state=0)
    assert group.bias == pytest.approx(y[group.rows].mean())
    assert group.coverage_80 == pytest.approx((np.abs(pit[group.rows] - 0.5) <= 0.4).mean())
    assert np.isnan(find_group(pit, X, 0.5, random_state=0).bias)


# tables


def mixed_table(n: int, random: np.random.Generator) -> pd.DataFrame:
    age = random.uniform(20, 80, n)
    age[random.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "job": random.choice(["cook", "nurse", "pilot"], n),
            "kind": pd.Categorical(random.choice(["a", "b"], n)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 1000, n), "D"),
            "member": random.random(n) < 0.5,
            "constant": 1.0,
        }
    )


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (lambda t: t["job"] == "cook", "job is cook"),
        (lambda t: ~t["member"], "member is false"),
        (lambda t: t["since"] >= "2021-07-01", "since > 2021-0"),
        (lambda t: t["age"] > 55, "age > 5"),
        (lambda t: t["age"].isna(), "age is missing"),
    ],
)
def test_groups_of_mixed_tables_are_described_in_words(where: Any, words: str) -> None:
    random = np.random.default_rng(9)
    table = mixed_table(1500, random)
    inside = where(table).to_numpy()
    pit = random.random(1500) ** np.where(inside, 4.0, 1.0)
    group = find_group(pit, table, float(inside.mean()), random_state=0)
    assert group.description is not None
    assert group.description.startswith(words)
    assert group.features[0] == words.split(maxsplit=1)[0]
    assert inside[group.rows].mean() > 0.8
    assert group.direction == "outcomes lower than forecast"
    assert 2 / 3 <= group.description_share / group.mass <= 3 / 2


def test_a_rule_that_selects_many_more_people_is_not_printed() -> None:
    # one half is off, all of it alike: no short rule describes which tenth of all people is worst
    random = np.random.default_rng(0)
    x = random.random((4000, 1))
    pit = random.random(4000) ** np.where(x[:, 0] > 0.5, 3.0, 1.0)
    half, tenth = find_group(pit, x, 0.5, random_state=0), find_group(pit, x, 0.1, random_state=0)
    assert half.description is not None
    assert half.description_share == pytest.approx(0.5, abs=0.1)
    assert tenth.description is None or tenth.description_share <= 0.15
    assert tenth.low > 0


def test_of_many_rows_a_subset_is_used() -> None:
    X, pit, region = planted("halves", 1, n=5000)
    group = find_group(pit, X, 0.5, max_rows=500, random_state=0)
    assert (group.n_rows, group.n_judged) == (500, 300)
    assert group.rows.max() > 500
    assert (np.diff(group.rows) > 0).all()
    assert abs(region[group.rows].mean()) > 0.5


# bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": 0.0}, "mass must satisfy 0 < mass <= 1"),
        ({"mass": 20}, "0.2, not 20"),
        ({"confidence": 1.0}, "confidence must satisfy"),
        ({"max_rows": 50}, "max_rows must be at least 167"),
        ({"mass": 0.01}, "200 rows .* mass 0.01 and 4 folds.* 3334 rows"),
        ({"n_folds": 50}, "at least 817 rows"),
        ({"X": np.ones((200, 2))}, "X must have a feature that varies"),
        ({"X": np.ones((199, 2))}, r"one row per row of pit \(200\)"),
        ({"residual": np.zeros(3)}, "residual must have one value per row"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    random = np.random.default_rng(13)
    given = {"pit": random.random(200), "X": random.normal(size=(200, 2)), **change}
    with pytest.raises(InputError, match=message):
        find_group(given.pop("pit"), given.pop("X"), **given)


def test_a_cell_that_cannot_be_read_is_named_by_its_row_in_the_table() -> None:
    random = np.random.default_rng(14)
    X = random.normal(size=(200, 2))
    X[41, 1] = np.inf
    with pytest.raises(InputError, match="column 'x1', row 42"):
        find_group(random.random(200), X, random_state=0)
