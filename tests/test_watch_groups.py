"""Named groups of a watch: their definitions, their risk, and groups that appear later."""

import json
import math

import jsonschema
import numpy as np
import pandas as pd
import pytest

from complaints import refused
from evenhand import Watch
from evenhand.calibration import calibration_error
from evenhand.certificates import Promise
from evenhand.links import Entropic, Laplace
from evenhand.monitoring import Rows, watch_schema
from evenhand.monitoring.statements import averaged_witnesses, cell_witnesses
from repeats import most_failures, repeats, statistical
from test_e_processes import evidence_by_definition

START = np.datetime64("2026-01-01T00:00", "us")
HOUR = np.timedelta64(3_600_000_000, "us")


def rows_of(n, first=0, seed=0, power=1.0, **columns):
    """One row an hour; the served PITs are a power of uniform values."""
    pit = np.random.default_rng(seed).uniform(size=n) ** power
    return Rows.of(START + np.arange(first, first + n) * HOUR, pit, groups=columns or None)


def names(watch):
    return [group["name"] for group in watch.to_dict()["groups"]]


def test_groups_are_values_halves_and_missing_values_of_the_first_update():
    age = np.random.default_rng(1).permutation(np.arange(101)) / 4 + 20
    columns = {"sex": ["f", "m", None] + ["f"] * 98, "age": age}
    watch = Watch(groups=["sex", "age"])
    watch.update(rows_of(101, **columns))
    cut = f"{np.median(age):.6g}"  # six digits separate the neighbours of this median
    assert names(watch) == ["sex = f", "sex = m", "sex missing", f"age <= {cut}", f"age > {cut}"]
    sizes = {group["name"]: group["n"] for group in watch.to_dict()["groups"]}
    assert sizes["sex = f"] == 99
    assert sizes["sex missing"] == 1
    assert sizes[f"age <= {cut}"] == 51
    # later rows do not move the cut, and ages that are missing for the first time are in no half
    watch.update(rows_of(60, first=101, sex=["m"] * 60, age=[99.0] * 50 + [None] * 10))
    sizes = [(group["name"], group["n"]) for group in watch.to_dict()["groups"][-2:]]
    assert sizes == [(f"age > {cut}", 100), ("age missing", 10)]


def test_the_text_lists_the_halves_of_a_level_with_their_limit():
    # near values, which many digits separate
    level = 0.7 + 1e-6 * np.random.default_rng(1).uniform(size=99)
    watch = Watch(groups=["predicted probability"])
    watch.update(rows_of(99, **{"predicted probability": level}))
    text = " ".join(watch.summary().split())
    assert all(name in text for name in names(watch))


def test_the_risk_of_all_groups_ever_is_at_most_that_of_the_watch():
    watch = Watch(groups=["everyone", "town"], false_alarm=0.1)
    watch.update(rows_of(20, town=[f"t{i}" for i in range(4)] * 5))
    # five groups, of which one is everyone, and one part for later ones
    assert {group["threshold"] for group in watch.to_dict()["groups"]} == {math.log(6 / 0.1)}
    watch.update(rows_of(60, first=20, town=[f"new{i}" for i in range(60)]))
    found = watch.to_dict()["groups"]
    assert len(found) == 65
    assert sum(math.exp(-group["threshold"]) for group in found) < 0.1
    assert [group["since_start"] for group in found] == [True] * 5 + [False] * 60
    # the first later group has half of the part
    assert found[5]["threshold"] == pytest.approx(math.log(2 * 6 / 0.1))
    expected = [("everyone", 80), ("town = t0", 5), ("town = new0", 1)]
    assert [(found[i]["name"], found[i]["n"]) for i in (0, 1, 5)] == expected
    assert all(len(test["log_evidence"]) == 4 for test in watch.to_dict()["tests"])
    assert Watch.from_state(watch.state()).to_dict() == watch.to_dict()


def test_a_group_that_appears_later_is_detected_from_its_first_row_on():
    watch = Watch(groups=["town"])
    watch.update(rows_of(600, town=["a", "b"] * 300))
    later = ["a", "new"] * 300
    power = np.where(np.array(later) == "new", 0.3, 1.0)
    found = watch.update(rows_of(600, first=600, power=power, town=later, seed=2))
    assert [(alarm.group, alarm.direction) for alarm in found] == [("town = new", "higher")]
    assert found[0].since == "2026-01-26"  # the day of row 600
    assert found[0].n_rows < 100


def test_an_alarm_does_not_depend_on_the_rows_that_come_after_it():
    rows = rows_of(700, power=np.repeat([0.3, 5.0], [150, 550]))
    before = Watch(period="month")
    alarms = [one for row in range(150) for one in before.update(rows.take(slice(row, row + 1)))]
    assert [alarm.direction for alarm in alarms] == ["higher"]
    assert Watch(period="month").update(rows) == alarms


def test_ids_among_later_values_do_not_make_groups_for_ever():
    watch = Watch(groups=["town"])
    watch.update(rows_of(20, town=["a"] * 20))
    watch.update(rows_of(1000, first=20, town=[f"id{i}" for i in range(1000)]))
    assert len(names(watch)) == 101
    many = rows_of(150, town=[f"t{i}" for i in range(150)])
    refused("at most 100 distinct values, got 150", Watch(groups=["town"]).update, many)


def test_numbers_of_a_log_are_the_same_group_whatever_their_type():
    watch = Watch(groups=["class"])
    watch.update(rows_of(20, **{"class": [1, 2] * 10}))
    watch.update(rows_of(20, first=20, **{"class": np.array([1.0, 2.0] * 10, dtype=object)}))
    watch.update(rows_of(20, first=40, **{"class": ["1", "2"] * 10}))
    watch.update(rows_of(20, first=60, **{"class": pd.Categorical([1, 2] * 10)}))
    expected = [("class = 1", 40), ("class = 2", 40)]
    assert [(group["name"], group["n"]) for group in watch.to_dict()["groups"]] == expected


def test_rows_without_a_column_of_the_groups_are_refused_and_change_nothing():
    refused(r"^groups must be a list of column names, got str; write \['a'\]$", Watch, groups="a")
    update = Watch(groups=["sex"]).update
    refused("rows have no columns, but the watch has groups", update, rows_of(20))
    similar = "has no column 'sex', only sax; did you mean 'sax'"
    refused(similar, update, rows_of(20, sax=["f"] * 20))
    watch = Watch(groups=["age"])
    watch.update(rows_of(50, age=np.arange(50.0)))
    before = watch.state()
    refused("has no column 'age'", watch.update, rows_of(20, first=50, sex=["f"] * 20))
    message = r"column 'age', row 1 must be a number, got 'old'"
    refused(message, watch.update, rows_of(2, first=50, age=["old", "young"]))
    assert watch.state() == before


def test_draws_that_are_chosen_in_one_group_alone_are_named():
    random = np.random.default_rng(4)
    n = 6000
    group = random.integers(0, 5, size=n)
    r = random.uniform(size=n)
    r = np.where(group == 3, np.maximum(r, random.uniform(size=n)), r)
    rows = Rows.of(
        START + np.arange(n) * HOUR, random.uniform(size=n), r=r, groups={"branch": group}
    )
    watch = Watch(groups=["branch"])
    found = watch.update(rows)
    assert ("draws", "branch = 3", "higher") in {(a.part, a.group, a.direction) for a in found}
    assert all(alarm.part == "draws" for alarm in found)
    jsonschema.validate(json.loads(watch.to_json()), watch_schema())
    parts = {(test["part"], test["group"]) for test in watch.to_dict()["tests"]}
    assert len(parts) == 5 + 6
    # 40% of the risk to groups and 10% to draws, in proportion
    assert watch.to_dict()["draws"]["threshold"] == pytest.approx(math.log(2 / 0.01))


def evidence_of_group(days, tolerance):
    """Return the evidence by the formulas of outcomes: 6; a missing outcome has the least value."""
    total = 0.0
    for low, witness in ((-0.5, lambda c: c - 0.5), (-0.25, lambda c: abs(c - 0.5) - 0.25)):
        for sign in (1, -1):
            values = [[low if math.isnan(c) else sign * witness(c) for c in pits] for pits in days]
            total += math.exp(evidence_by_definition(values, low, tolerance))
    return math.log(total / 4)


def test_the_evidence_of_a_group_is_that_of_the_formulas():
    random = np.random.default_rng(5)
    n = 30
    day = np.sort(random.integers(0, 6, size=n))
    day[0], day[-1] = 0, 5
    group = random.integers(0, 2, size=n)
    pit = np.where(random.uniform(size=n) < 0.1, np.nan, random.uniform(size=n) ** 0.3)
    times = START + day * 24 * HOUR + np.arange(n) * HOUR / 60
    watch = Watch(groups=["g"], tolerance=0.05)
    watch.update(Rows.of(times, pit, groups={"g": group}))
    for j, found in enumerate(watch.to_dict()["groups"]):
        days = [pit[(day == d) & (group == j)].tolist() for d in range(6)]
        expected = evidence_of_group(days, tolerance=0.05)
        assert found["log_evidence"] == pytest.approx(expected, abs=1e-9)
        known = pit[(group == j) & ~np.isnan(pit)]
        assert found["error"] == pytest.approx(calibration_error(known), abs=0.005)


LINK = Entropic(0.12)


def test_witnesses_of_cells_are_means_over_the_cells():
    low, high = np.array([0.1, 0.3, 0.6, 0.45]), np.array([0.4, 0.9, 0.61, 0.5])
    c = low + (high - low) * (np.arange(100_000)[:, None] + 0.5) / 100_000
    level, spread = (c - 0.5).mean(axis=0), (np.abs(c - 0.5) - 0.25).mean(axis=0)
    expected = np.column_stack([level, -level, spread, -spread])
    np.testing.assert_allclose(cell_witnesses(low, high), expected, atol=1e-8)


@pytest.mark.parametrize("link", [Entropic(0.12), Laplace(0.3)], ids=repr)
def test_averaged_witnesses_are_means_over_draws(link):
    low = np.array([0.0, 0.001, 0.3, 0.45, 0.7, 0.9])
    high = np.array([0.2, 0.001, 0.3, 0.6, 0.95, 1.0])
    r = np.random.default_rng(0).uniform(size=100_000)
    expected = [
        cell_witnesses(link.ppf(one, r), link.ppf(other, r)).mean(axis=0)
        for one, other in zip(low, high, strict=True)
    ]
    # five standard errors of the witnesses, which lie within 1/2
    assert averaged_witnesses(link, low, high) == pytest.approx(np.array(expected), abs=0.005)


def test_evidence_about_groups_under_a_link_does_not_depend_on_draws():
    random = np.random.default_rng(3)
    u = random.uniform(size=3000) ** 0.8
    time = np.datetime64("2026-01-01") + np.repeat(np.arange(60), 50)

    def evidence(r):
        watch = Watch()
        watch.update(Rows.of(time, LINK.ppf(u, r), r=r, link=LINK))
        return watch.to_dict()["groups"][0]["log_evidence"]

    fair = evidence(random.uniform(size=3000))
    # the same 50 people every day, with the same draws, all of them high
    assert evidence(np.tile(random.uniform(0.8, 1.0, 50), 60)) == pytest.approx(fair, abs=1e-6)


def test_rows_with_another_link_than_the_promise_are_refused():
    watch = Watch(Promise("mean_pit", 0.2, 0.3, 0.95, LINK))
    rows = Rows.of(["2026-01-01"], [0.5], r=[0.5], link=Entropic(0.1))
    refused(r"rows have the link Entropic\(alpha=0.1", watch.update, rows)


def test_people_who_return_with_the_same_draw_do_not_raise_false_alarms_under_a_link():
    # 100 people in each of 24 months: their draws have a mean that is not 1/2
    time = np.datetime64("2026-01-15") + 30 * np.repeat(np.arange(24), 100)
    alarms = 0
    for seed in range(24):
        random = np.random.default_rng(seed)
        r = np.tile(random.uniform(size=100), 24)
        pit = LINK.ppf(random.uniform(size=2400), r)
        alarms += bool(Watch(period="month").update(Rows.of(time, pit, r=r, link=LINK)))
    assert alarms <= most_failures(24)


@statistical
def test_later_groups_at_the_boundary_raise_few_false_alarms():
    # a new town every day, of W1 error 0.02: 8% of PITs are uniform on the upper half
    n_sets, failures = repeats(200), 0
    for seed in range(n_sets):
        random = np.random.default_rng(seed)
        town = np.concatenate([random.integers(0, day // 2 + 1, size=24) for day in range(150)])
        u = random.uniform(size=town.size)
        pit = np.where(random.uniform(size=u.size) < 0.08, (1 + u) / 2, u)
        rows = Rows.of(START + np.arange(u.size) * HOUR, pit, groups={"town": town.astype(str)})
        watch = Watch(groups=["town"], period="week")
        watch.update(rows.take(slice(0, 48)))
        watch.update(rows.take(slice(48, u.size)))
        failures += bool(watch.alarms)
    assert failures <= most_failures(n_sets)
