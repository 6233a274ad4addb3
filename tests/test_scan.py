"""The group scan against a plain loop, exact tails and SciPy."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from complaints import refused
from evenhand.calibration import calibration_error, covered
from evenhand.search import scan, scan_groups
from evenhand.tables import group_columns
from planted_groups import mixed_table
from repeats import most_failures, repeats, statistical

BINS = scan.BINS


def loop(pit, X, groups, min_size):
    """Take each mask and each pair of masks of different features in turn."""
    singles = [
        ((name,), group, rows)
        for name in X
        for group, rows in group_columns(X, [name], source="X").items()
    ]
    singles += [((name,), name, rows) for name, rows in groups.items()]
    pairs = [
        (f + g, f"{a} and {b}", rows & others)
        for (f, a, rows), (g, b, others) in combinations(singles, 2)
        if f != g and (rows & others).sum() < min(rows.sum(), others.sum())
    ]
    return {
        name: (features, rows) for features, name, rows in singles + pairs if rows.sum() >= min_size
    }


def student_p_value(d, n_effective):
    """Return the p-value of the studentized sum, or of Hall's value if that is nearer to 0."""
    t, k = d.sum() / np.sqrt((d**2).sum()), (d**3).sum() / (d**2).sum() ** 1.5
    # the cube that Hall's polynomial is, apart from constants
    hall = ((1 + k * t / 3) ** 3 - 1) / k + k / 6
    z = min(abs(t), abs(hall)) if t * hall > 0 else 0.0
    return 2 * stats.t.sf(z, n_effective - 1)


@pytest.mark.parametrize(
    ("m", "weighted", "cells"),
    [(1, False, None), (1, True, 2000), (8, False, 2000), (8, True, None), (1, False, 2000)],
)
def test_scan_finds_what_a_plain_loop_finds(m, weighted, cells, monkeypatch):
    if cells is not None:  # few columns at a time
        monkeypatch.setattr(scan, "BLOCK_NUMBERS", cells)
        monkeypatch.setattr(scan, "BLOCK_ROWS", 97)
    rng = np.random.default_rng(m)
    n = 600
    X, pit = mixed_table(rng, n), rng.beta(0.8, 1.1, size=(n, m))
    groups = {"tall": rng.random(n) < 0.3, "young": rng.random(n) < 0.6}
    # its pairs with both of these have its own rows
    groups["rich"] = (X["income"] > X["income"].median()) & groups["tall"]
    residual, weight = (
        rng.normal(size=n),
        rng.integers(1, 4, size=n) / 2.0 if weighted else np.ones(n),
    )
    frame = scan_groups(
        pit,
        X,
        40,
        groups=groups,
        residual=residual,
        sample_weight=weight if weighted else None,
        random_state=0,
    )
    expected = loop(pit, X, groups, 40)
    assert frame["group"].is_unique
    assert set(frame["group"]) == set(expected)
    assert len(expected) > 150
    n_tested = 0
    for row in frame.itertuples():
        features, rows = expected[row.group]
        assert row.features == features
        assert row.n == rows.sum()
        wanted = calibration_error(pit[rows], sample_weight=weight[rows])
        assert row.error == pytest.approx(wanted, abs=1 / (2 * BINS))
        found = row.bias
        assert found == pytest.approx(np.average(residual[rows], weights=weight[rows]), abs=1e-12)
        inside = covered(pit[rows], 0.8)
        assert row.coverage_80 == pytest.approx(np.average(inside, weights=weight[rows]), abs=1e-12)
        u, w = pit[rows, 0], weight[rows]
        if m == 1 and weighted:
            # verdict.md, section 4: Horvitz-Thompson sums, not tested below 150 effective rows
            n_effective = w.sum() ** 2 / (w**2).sum()
            p_values = [
                student_p_value(w * g, n_effective) for g in (u - 0.5, np.abs(u - 0.5) - 0.25)
            ]
            expected_p = min(1.0, 2 * min(p_values)) if n_effective >= 150 else np.nan
            assert row.p_value == pytest.approx(expected_p, rel=1e-9, nan_ok=True)
            n_tested += n_effective >= 150
        elif m == 1:
            level = (u.mean() - 0.5) * np.sqrt(12 * u.size)
            spread = (np.abs(u - 0.5).mean() - 0.25) * np.sqrt(48 * u.size)
            p = min(1.0, 4 * min(stats.norm.sf(abs(level)), stats.norm.sf(abs(spread))))
            assert row.p_value == pytest.approx(p, rel=1e-9)
    assert not (m == 1 and weighted) or 10 < n_tested < len(expected)


def test_one_random_draw_of_each_person_is_tested():
    # all draws of a person alike: whichever is taken, the tests are those of the column
    rng = np.random.default_rng(0)
    u, X = rng.random(300), rng.normal(size=(300, 3))
    one, many = scan_groups(u, X, 50), scan_groups(np.repeat(u[:, None], 5, axis=1), X, 50)
    # intervals do not know that the draws of a person are alike
    ends = [name for name in one if name.endswith(("_low", "_high"))]
    pd.testing.assert_frame_equal(one.drop(columns=ends), many.drop(columns=ends))
    # columns that differ: a seed makes it the same again, and draws come from all columns
    pit = np.column_stack([np.full(300, 0.01), np.full(300, 0.99)])
    first, again = (scan_groups(pit, X, 50, random_state=1) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    # the mean has variance 0.49^2 / n: false alarm below 1e-9 a group of 50 rows or more
    assert not first["direction"].str.startswith("outcomes").any()
    assert (first["direction"] == "intervals too narrow").all()


def test_columns_with_too_many_pairs_of_groups_are_refused_with_their_number():
    X = np.random.default_rng(0).normal(size=(40, 751))
    told = (
        "the 751 columns in which groups are searched must define at most 1,500 groups, .* 1,502;"
    )
    refused(told, scan_groups, np.linspace(0.01, 0.99, 40), X, min_size=10)
    assert len(scan_groups(np.linspace(0.01, 0.99, 40), X[:, :20], min_size=20)) >= 40


def test_small_named_groups_are_listed_without_numbers():
    rng = np.random.default_rng(6)
    groups = {
        "one person": np.arange(400) == 7,
        "two": np.arange(400) < 2,
        "half": np.arange(400) < 200,
    }
    X, u = pd.DataFrame({"a": rng.normal(size=400)}), rng.random(400)
    frame = scan_groups(u, X, 50, groups=groups, residual=u)
    small = frame[frame["direction"] == "too few rows"]
    assert dict(zip(small["group"], small["n"], strict=True)) == {"one person": 1, "two": 2}
    assert small[["error", "bias", "coverage_80", "p_value", "p_adjusted"]].isna().all(axis=None)
    # the others are as if they had not been asked for
    others = scan_groups(u, X, 50, groups={"half": groups["half"]}, residual=u)
    pd.testing.assert_frame_equal(frame.iloc[: len(others)], others)


def test_rows_of_weight_zero_are_no_rows():
    rng = np.random.default_rng(7)
    X, u, weight = mixed_table(rng, 500), rng.random(500), rng.integers(0, 3, size=500)
    some = weight > 0
    expected = scan_groups(u[some], X[some].reset_index(drop=True), 40, sample_weight=weight[some])
    pd.testing.assert_frame_equal(scan_groups(u, X, 40, sample_weight=weight), expected)


def test_adjusted_p_values_are_those_of_the_definition():
    rng = np.random.default_rng(8)
    X, u = rng.normal(size=(400, 8)), rng.beta(1, 1.2, size=400)
    holm = scan_groups(u, X, 50)
    p = holm["p_value"].to_numpy()
    assert len(p) == 16 + 4 * 28
    for value, adjusted in zip(p, holm["p_adjusted"], strict=True):
        # the least level at which the step-down procedure rejects
        rising = np.sort(p)
        steps = [(p.size - i) * rising[i] for i in range(p.size) if rising[i] <= value]
        assert adjusted == pytest.approx(min(1.0, max(steps)), rel=1e-12)
    order = np.lexsort((-holm["error"], holm["p_adjusted"]))
    np.testing.assert_array_equal(order, np.arange(len(holm)))


def test_bad_input_is_refused_with_its_place():
    pit, X = np.full(40, 0.5), pd.DataFrame({"a": np.arange(40.0)})
    refused(r"X must be a table or an array of shape \(n, p\)", scan_groups, pit, np.ones(40), 10)
    twice = pd.DataFrame(np.ones((40, 2)), columns=["a", "a"])
    refused("X: column name 'a' appears 2 times", scan_groups, pit, twice, 10)
    weight = np.r_[np.ones(9), np.zeros(31)]
    few = "min_size must be at most the number of rows, 9, got 10"
    refused(few, scan_groups, pit, X, 10, sample_weight=weight)


def test_features_that_split_the_rows_alike_are_scanned_once():
    rng = np.random.default_rng(0)
    age, other = rng.normal(size=300), rng.normal(size=300)
    alike = pd.DataFrame({"age": age, "old": age > np.median(age), "minus": -age, "other": other})
    alike["sqrt"] = np.exp(alike["age"])
    other_name = {"a": "x", "b": "y", "c": "z"}
    alike["code"] = rng.choice(list(other_name), 300)
    alike["name"] = alike["code"].map(other_name)
    u, everyone = rng.random(300), np.ones(300, dtype=bool)
    frame = scan_groups(u, alike, 20, groups={"all": everyone})
    pd.testing.assert_frame_equal(frame, scan_groups(u, alike[["age", "other", "code"]], 20))
    expected = dict.fromkeys(("old", "minus", "sqrt"), "it splits the rows as 'age' does")
    assert frame.attrs["left_out"] == expected | {"name": "it splits the rows as 'code' does"}
    # a value with the rows of another is no group of its own, but what is left of its column is
    alike["is_a"] = alike["code"] == "a"
    names = set(scan_groups(u, alike[["code", "is_a"]], 20)["group"])
    assert "is_a = False" in names
    assert "is_a = True" not in names


@statistical
def test_false_alarms_on_calibrated_forecasts_keep_the_level():
    rng, n_sets, alarms = np.random.default_rng(9), repeats(500), 0
    for _ in range(n_sets):
        frame = scan_groups(rng.random(400), rng.normal(size=(400, 6)), 50)
        alarms += bool((frame["p_adjusted"] < 0.05).any())
    assert alarms <= most_failures(n_sets)
