"""Groups and features that the outcome defines: named as possible leaks, and no findings."""

import numpy as np
import pandas as pd
import pytest

from evenhand import Forecast, ForecastColumns, audit
from evenhand.results import Verdict
from evenhand.scale import audit_parts
from evenhand.search import find_leaks, leaks
from evenhand.tables import check_groups
from parts_examples import QUICK_AUDIT, searching

N = 2000
QUICK = searching(QUICK_AUDIT, learned_masses=(0.2,), masses=(0.2,))


def world(seed, n=N):
    """Two features that are known beforehand, and outcomes that the first shifts by its value."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(size=n), "kind": rng.choice(["a", "b"], n)})
    return X, X["x"].to_numpy() + rng.normal(size=n)


def leaking(X, y):
    rng = np.random.default_rng(99)
    return X.assign(
        after=y + 1e-3 * rng.normal(size=y.size), third=pd.qcut(y, 3, labels=["low", "mid", "high"])
    )


def leaks_of(y, groups=None, features=None, median=None):
    outcomes = np.asarray(y, dtype=float)
    forecast = np.zeros(outcomes.size) if median is None else median
    found = find_leaks(outcomes, forecast, check_groups(groups, outcomes.size), features)
    return {one.name for one in found}


def test_a_perfect_model_is_not_off_in_groups_that_the_outcome_defines():
    # of all tables chance raises an alarm on 5%: not with this seed
    X, y = world(0)
    given = {"high": y > np.median(y), "tails": np.abs(y) > 1.5}
    forecast = Forecast.from_normal(X["x"], np.ones(N))
    found = audit(forecast, X=leaking(X, y), y=y, groups=given, **QUICK)
    assert found.status.verdict is Verdict.NO_PROBLEM
    named = found.groups.set_index("group")
    assert named["possible_leak"].tolist() == [False, True, True]
    assert named.loc["high", "error"] > 0.1  # the numbers stay
    tested = found.scan[found.scan["p_adjusted"].notna()]
    assert {name for features in tested["features"] for name in features} == {"x", "kind"}
    listed = found.scan[found.scan["direction"] == "possible leak"]
    assert {"third = low", "third = mid", "third = high"} < set(listed["group"])
    assert set(found.leaks["name"]) == {"high", "tails", "after", "third"}
    learned = {name for features in found.learned["features"] for name in features}
    assert not {"after", "third"} & learned


def test_a_leak_takes_no_part_in_the_correction_for_many_tests():
    X, y = world(1)
    forecast = Forecast.from_normal(X["x"], np.ones(N))
    plain = audit(forecast, X=X, y=y, **QUICK).scan
    found = audit(forecast, X=leaking(X, y), y=y, groups={"high": y > 0}, **QUICK).scan
    beside = found[found["p_adjusted"].notna()]
    # leaks are listed with intervals, so all intervals are wider
    ends = [name for name in plain if name.endswith(("_low", "_high"))]
    # and have columns of their own
    beside = beside.dropna(axis=1, how="all")
    pd.testing.assert_frame_equal(plain.drop(columns=ends), beside.drop(columns=ends))


def test_leaks_are_named_in_audits_of_parts(tmp_path):
    X, y = world(2, 6000)
    table = leaking(X, y).assign(
        y=y, mean=X["x"], std=1.0, third=pd.qcut(y, 3, labels=["low", "mid", "high"]).astype(str)
    )
    for i in range(3):
        table[2000 * i : 2000 * (i + 1)].to_parquet(tmp_path / f"{i}.parquet")
    subject = ForecastColumns(mean="mean", std="std")
    found = audit_parts(subject, tmp_path, "y", groups=["third", "kind"], sample_size=1500, **QUICK)
    assert set(found.leaks["column"]) == {"after", "third"}
    assert found.n_samples == 6000
    tested = found.scan[found.scan["p_adjusted"].notna()]
    assert {name for features in tested["features"] for name in features} == {"x", "kind"}
    assert found.groups.set_index("group")["possible_leak"].sum() == 3
    assert found.status.verdict is Verdict.NO_PROBLEM


def brute_force(mask, y):
    ends = [-np.inf, *np.unique(y)]
    ranges = [(y > low) & (y <= high) for low in ends for high in ends]
    return min(min((mask != inside).sum(), (mask == inside).sum()) for inside in ranges)


def test_the_nearest_range_is_found():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 12, 30).astype(float)
        mask = rng.random(30) < rng.random()
        assert leaks.Ranges.of(y).apart(mask) == brute_force(mask, y)


@pytest.mark.parametrize(("wrong", "is_leak"), [(0, True), (10, True), (11, False)])
def test_a_group_may_differ_from_a_range_on_one_percent_of_the_rows(wrong, is_leak):
    y = np.arange(1000.0)
    mask = y > 499.5
    mask[np.linspace(5, 450, wrong).astype(int)] = True
    assert ("high" in leaks_of(y, {"high": mask})) == is_leak
    assert ("low" in leaks_of(y, {"low": ~mask})) == is_leak


def test_rare_groups_are_not_excused_by_the_rows_that_they_lack():
    # 8 of 1,000 rows are within 1% of any range: that alone would name every rare group
    y = np.arange(1000.0)
    rng = np.random.default_rng(0)
    for size in (1, 5, 9, 10, 30, 80):
        some = np.isin(np.arange(1000), rng.choice(1000, size, replace=False))
        assert leaks_of(y, {"rare": some, "all but": ~some}) == set()
    assert leaks_of(y, {"top": y > 989.5}) == {"top"}
    assert leaks_of(y, {"top": y > 990.5}) == set()  # 9 rows


def test_a_feature_that_a_sharp_model_ranks_by_is_no_leak():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    y = x + 0.01 * rng.normal(size=2000)
    X = pd.DataFrame({"x": x})
    assert leaks_of(y, features=X, median=x) == set()  # as well ranked by the forecast
    assert leaks_of(y, features=X.assign(after=(-y).astype(object)), median=x) == {"after"}
    assert leaks_of(
        y, features=X.assign(day=pd.Timestamp("2020-01-01") + pd.to_timedelta(y, "D")), median=x
    ) == {"day"}


def test_one_group_of_a_column_takes_the_others_along():
    y = np.arange(300.0)
    labels = np.where(y > 200, "top", np.where(np.arange(300) % 2, "odd", "even"))
    assert leaks_of(y, {"label": labels}) == {"label = even", "label = odd", "label = top"}
