"""Recalibration of overlapping groups: repairs what was planted, and nothing where all is right."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import special, stats
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from complaints import refused
from evenhand import Forecast, RandomizedRegressor, RecalibratedRegressor, audit, load, save
from evenhand.audits import Search
from evenhand.calibration import Cells, calibration_error
from evenhand.forecasters.corrections import (
    Rescaling,
    Tilt,
    fitted_tilts,
    learn_corrections,
    log_p_values,
)
from evenhand.forecasters.groups import Members
from evenhand.forecasters.recalibrated import Observed, check_maps
from evenhand.outcomes import Outcomes
from evenhand.tables import OWN_VALUES, Condition, Group, GroupRule
from forecaster_examples import error_by_chance
from repeats import most_failures, repeats, statistical

RULES = {"right": "x > 0.5", "club": "club = 1", "young club": "age <= 40 and club = 1"}


def standard(X):
    return Forecast.from_normal(np.zeros(len(X)), np.ones(len(X)))


def people(n, seed, *, planted):
    """Outcomes with a shift in one group, a spread in a second and both in an overlap."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "x": random.uniform(size=n),
            "age": random.integers(18, 80, n),
            "club": random.integers(0, 3, n),
            "owner": random.uniform(size=n) < 0.4,
        }
    )
    y = random.normal(size=n)
    return table, planted_outcomes(table, y) if planted else y


def planted_outcomes(table, z):
    """Return the outcomes of people by standard normal numbers."""
    is_club = table["club"] == 1
    y = z * np.where(is_club, 1.6, 1.0) + np.where(table["x"] > 0.5, 0.4, 0.0)
    return y - np.where((table["age"] <= 40) & is_club, 0.5, 0.0)


def normal_quantiles(n):
    return stats.norm.ppf((np.arange(n) + 0.5) / n)


def masks_of(table):
    rules = [GroupRule.parse(text, table.columns) for text in RULES.values()]
    return np.column_stack([rule.mask(table) for rule in rules])


def corrections(pit, masks):
    members = Members.overlapping([str(i) for i in range(masks.shape[1])], masks)
    return learn_corrections(Cells(pit), np.ones(pit.size), members)


def noise(n_map, n_fresh):
    """0.999 quantile of the W1 of PITs mapped by earlier ones: a scaled Brownian bridge."""
    return error_by_chance() * float(np.sqrt(1 / n_map + 1 / n_fresh))


def test_overlapping_groups_are_repaired_on_fresh_rows():
    seed = 0
    model = RecalibratedRegressor(standard, by=RULES).fit(*people(4000, seed, planted=True))
    assert model.groups_["map"].tolist() == ["own", "own", "own"]
    pooled = model.without_groups()
    table, y = people(4000, 100 + seed, planted=True)
    before, middle, after = (
        one.pit(y) for one in (standard(table), pooled.forecast(table), model.forecast(table))
    )
    for mask in masks_of(table).T:
        assert calibration_error(middle[mask]) > 0.03
        # false alarms: 1 of 1000 per group and seed, 0.002 for maps that are linear in cells
        limit = noise(int(mask.mean() * 4000), int(mask.sum())) + 0.002
        assert calibration_error(after[mask]) < limit
    assert calibration_error(before) > 2 * noise(4000, 4000)
    assert calibration_error(after) < noise(4000, 4000) + 0.002
    # by theory the gain of separate normal distributions is about 0.1 nats over one map
    gain = (model.forecast(table).logpdf(y) - pooled.forecast(table).logpdf(y)).mean()
    assert gain > 0.05


def test_without_a_correction_forecasts_are_exactly_those_of_the_model():
    table, y = people(600, 1, planted=False)
    model = RecalibratedRegressor(standard, by=RULES, random_state=0).fit(table, y)
    assert model.groups_["map"].tolist() == ["pooled"] * 3
    # up to rounding
    np.testing.assert_allclose(model.forecast(table).pit(y), standard(table).pit(y), atol=1e-15)
    assert (model.check_["gain"] == 0).all()
    assert (model.check_["verdict"] == "no evidence").all()


@statistical
def test_p_values_of_calibrated_groups_are_uniform():
    found = []
    for seed in range(repeats(1500, 400)):
        random = np.random.default_rng(seed)
        pit = random.uniform(size=400)
        mask = random.uniform(size=(400, 1)) < 0.5
        weight = random.choice([1.0, 3.0], size=400)
        found.append(np.exp(log_p_values(pit, weight, mask, np.zeros(1, bool))[0]))
    # Kolmogorov-Smirnov at 1e-3
    assert stats.kstest(found, "uniform").pvalue > 1e-3


def test_terms_of_location_and_scale_are_those_of_the_outcomes():
    random = np.random.default_rng(4)
    masks = random.uniform(size=(20_000, 3)) < [0.4, 0.5, 0.3]
    mean = 0.3 - 0.5 * masks[:, 0]
    y = mean + np.where(masks[:, 1], 1.6, 1.0) * random.normal(size=20_000)
    first = corrections(special.ndtr(y), masks)[0]
    assert isinstance(first, Rescaling)
    # standard errors are about s sqrt(2 / (n share)) <= 0.02; 4 of them
    np.testing.assert_allclose(first.terms[:, 0], [0.3, -0.5, 0, 0], atol=0.08)
    np.testing.assert_allclose(first.terms[:, 1], [0, 0, np.log(1.6), 0], atol=0.08)
    # the map of a pattern is the normal distribution with these terms
    members = np.array([[True, True, False]])
    location, log_scale = first.terms[:3].sum(axis=0)
    expected = special.ndtr((special.ndtri(first.edges) - location) / np.exp(log_scale))
    # slopes are at least 1e-3
    np.testing.assert_allclose(first.values(members)[0], expected, atol=1e-3)


def test_deviations_of_shape_are_corrected_by_densities():
    random = np.random.default_rng(5)
    masks = random.uniform(size=(6000, 2)) < [0.4, 0.5]
    pit = random.uniform(size=6000)
    # twice the density in the middle half of the second group, none of it by location or scale
    middle = masks[:, 1] & (random.uniform(size=6000) < 0.5)
    pit[middle] = 0.25 + 0.5 * pit[middle]
    steps = corrections(pit, masks)
    assert any(isinstance(step, Tilt) for step in steps)
    members = np.array([[False, True]])
    at = np.array([0.25, 0.5, 0.75])
    for step in steps:
        at = np.interp(at, step.edges, step.values(members)[0])
    # 3,000 rows: standard error 0.008
    np.testing.assert_allclose(at, [0.125, 0.5, 0.875], atol=0.03)


def test_joint_terms_agree_with_multinomial_logistic_regression(monkeypatch):
    monkeypatch.setattr("evenhand.forecasters.corrections.PENALTIES", (1.0, 1.0))
    random = np.random.default_rng(3)
    masks = random.uniform(size=(3000, 2)) < [0.5, 0.3]
    cells = np.clip((random.uniform(size=3000) ** (1 + masks[:, 0]) * 5).astype(int), 0, 4)
    members = Members.overlapping(("a", "b"), masks)
    counts = np.zeros((len(members.patterns), 5))
    np.add.at(counts, (members.which, cells), 1.0)
    terms = np.column_stack((np.ones(len(counts)), members.patterns))
    found, _ = fitted_tilts(counts, terms, (np.eye(5),) * 3, np.zeros(5))
    features = np.column_stack((np.ones(3000), masks))
    peer = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=5000)
    peer.fit(features, cells)
    np.testing.assert_allclose(found.T, peer.coef_, atol=2e-4)


@pytest.mark.usefixtures("two_folds")
def test_all_forms_of_the_same_groups_give_the_same_forecasts():
    table, y = people(1500, 8, planted=True)
    table["is club"] = table["club"] == 1

    class Found:
        conditions = (Condition((Group("x", ">", "0.5"),)),)

    rules = {"right": "x > 0.5", "club": "club = 1"}
    expected = RecalibratedRegressor(standard, by=rules).fit(table, y).forecast(table).pit(y)
    mask = {"right": table["x"] > 0.5, "club": (table["club"] == 1).tolist()}
    forms = [
        {"right": GroupRule.parse("x > 0.5", table), "club": "is club"},
        {"right": Found(), "club": lambda rows: rows["club"] == 1},
        mask,
    ]
    for by in forms:
        model = RecalibratedRegressor(standard, by=by).fit(table, y)
        given = by if by is mask else None
        np.testing.assert_array_equal(model.forecast(table, groups=given).pit(y), expected)
        base = model.base_forecast(table)
        np.testing.assert_array_equal(model.recalibrate(base, table, groups=given).pit(y), expected)
    on_polars = RecalibratedRegressor(standard, by=rules).fit(pl.from_pandas(table), y)
    np.testing.assert_array_equal(on_polars.forecast(pl.from_pandas(table)).pit(y), expected)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ({"g": "agee > 40"}, "X has no column 'agee'.*did you mean 'age'"),
        ({"g": "age"}, r"by\['g'\] must be a boolean column or a rule, got column 'age' of kind"),
        ({"g": np.ones(3, dtype=bool)}, r"groups\['g'\] must be one boolean per row of X \(200\)"),
        ({"g": lambda rows: 3}, r"by\['g'\] must return one boolean per row"),
        ({"g": None}, r"by\['g'\] is missing, as masks are not stored"),
    ],
)
def test_wrong_definitions_are_refused_in_one_line(by, message):
    table, y = people(200, 9, planted=False)
    refused(message, RecalibratedRegressor(standard, by=by).fit, table, y)


def test_a_mask_must_be_given_for_other_rows():
    table, y = people(800, 10, planted=True)
    mask = (table["club"] == 1).to_numpy()
    model = RecalibratedRegressor(standard, by={"club": mask}).fit(table, y)
    refused(r"group 'club' was given as a mask .* pass groups=", model.forecast, table)
    around = RandomizedRegressor.around(model, recalibrate=True)
    refused("'club' was given as a mask", around.forecast, table)


def test_rows_of_weight_zero_do_not_count():
    table, y = people(1200, 11, planted=True)
    used = np.arange(1200) % 4 > 0
    mask = (table["club"] == 1).to_numpy()
    some = RecalibratedRegressor(standard, by={"club": mask}).fit(table, y, used * 1.0)
    fewer = RecalibratedRegressor(standard, by={"club": mask[used]}).fit(table[used], y[used])
    assert some.groups_.equals(fewer.groups_)
    found = some.forecast(table, groups={"club": mask}).pit(y)
    np.testing.assert_array_equal(found, fewer.forecast(table, groups={"club": mask}).pit(y))


def test_states_are_stored_and_loaded(tmp_path):
    table, y = people(1500, 14, planted=True)
    model = RecalibratedRegressor(BayesianRidge(), by=RULES, random_state=0).fit(table, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.forecast(table).pit(y), model.forecast(table).pit(y))
    pd.testing.assert_frame_equal(again.groups_, model.groups_)
    pd.testing.assert_frame_equal(again.check_, model.check_)
    assert again.summary() == model.summary()
    assert {name: rule.name for name, rule in again.by.items()} == RULES
    json.dumps(model.to_state().params)
    refitted = clone(again).fit(table, y)
    assert refitted.groups_["map"].tolist() == model.groups_["map"].tolist()
    # a mask is named, but not stored
    masked = RecalibratedRegressor(BayesianRidge(), by={"club": (table["club"] == 1).to_numpy()})
    save(masked.fit(table, y), tmp_path / "masked")
    loaded = load(tmp_path / "masked")
    mask = {"club": table["club"] == 1}
    found = loaded.forecast(table, groups=mask).pit(y)
    np.testing.assert_array_equal(found, masked.forecast(table, groups=mask).pit(y))
    refused("masks are not stored", clone(loaded).fit, table, y)
    function = RecalibratedRegressor(BayesianRidge(), by={"all": lambda rows: rows["x"] > 0.5})
    told = r"by\['all'\] is the function .* cannot be stored"
    refused(told, save, function.fit(table, y), tmp_path / "function")


def test_the_check_reports_help_where_something_was_planted():
    table, y = people(3000, 16, planted=True)
    by = RULES | {"few": "age = 30 and club = 2", "owners": "owner"}
    model = RecalibratedRegressor(standard, by=by).fit(table, y)
    check = model.check_.set_index("group")
    assert check.index.tolist() == ["everyone", *by]
    assert check.loc["everyone":"young club", "verdict"].tolist() == ["helps"] * 4
    assert (check["low"] <= check["gain"]).all()
    assert (check["gain"] <= check["high"]).all()
    for name, mask in zip(RULES, masks_of(table).T, strict=True):
        pit = special.ndtr(y[mask])
        assert check.loc[name, "n"] == mask.sum()
        assert check.loc[name, "error_before"] == pytest.approx(calibration_error(pit), abs=1e-9)
        assert check.loc[name, "error_after"] < 0.5 * check.loc[name, "error_before"]
    assert check.loc["few", "map"] == "pooled"
    text = " ".join(model.summary().split())
    everyone = model.check_.loc[0]
    better = "HELPS. 4 of 5 groups got better, none got worse. The mean log score is better by"
    # the ends are rounded outwards
    number = r"-?\d\.\d+"
    found = re.search(rf"^{better} ({number}) \(({number}) to ({number})\)\.", text)
    low, gain, high = float(found[2]), float(found[1]), float(found[3])
    assert everyone["low"] - 0.001 < low <= everyone["low"]
    assert everyone["high"] <= high < everyone["high"] + 0.001
    assert gain == pytest.approx(everyone["gain"], abs=5e-4)
    assert "hold for all groups at once" in text


def test_the_check_takes_rows_from_which_its_maps_have_not_learned():
    # maps of calibrated rows gain on these rows and lose on others
    gains = []
    for seed in range(5):
        table, y = people(400, seed, planted=False)
        gains.append(RecalibratedRegressor(standard, by="club").fit(table, y).check_["gain"][0])
    assert np.mean(gains) < 0


def test_intervals_of_the_check_hold_for_all_groups_jointly():
    y = people(400, 0, planted=False)[1]

    def checked(n_towns):
        towns = Members([str(i) for i in range(n_towns)], np.zeros(400, dtype=int))
        known = Observed.of(standard(y), y), np.ones(400), towns, ["pooled"] * n_towns
        return check_maps(*known, np.random.default_rng(0), Outcomes(y)).iloc[0]

    # towns without people change nothing but the number of intervals
    one, other = checked(0), checked(10)
    assert one["gain"] == other["gain"]
    ratio = stats.t.isf(0.025 / 11, 399) / stats.t.isf(0.025, 399)
    width = (found["high"] - found["low"] for found in (other, one))
    assert next(width) / next(width) == pytest.approx(ratio)


def test_the_check_reports_harm():
    # PITs that are more even than uniform ones: where a fold has many, the other rows have few
    y = np.random.default_rng(0).permutation(stats.norm.ppf((np.arange(400) + 0.5) / 400))
    model = RecalibratedRegressor(standard).fit(pd.DataFrame({"x": y * 0}), y)
    assert model.check_["high"][0] < 0
    assert model.check_["verdict"][0] == "harms"
    assert model.summary().startswith("HARMS. The mean log score is worse by 0.")


def test_the_level_of_corrections_is_that_of_all_groups_jointly():
    n_near = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        pit, masks = random.uniform(size=500), random.random((500, 20)) < 0.3
        everyone = np.column_stack((np.ones(500, dtype=bool), masks))
        least = np.exp(log_p_values(pit, np.ones(500), everyone, np.zeros(21, bool)).min())
        if 0.05 / 21 < least < 0.05:
            n_near += 1
            assert corrections(pit, masks) == ()
    assert n_near > 10


@statistical
def test_intervals_of_the_check_contain_the_gain_on_fresh_rows():
    # people of each pattern of groups, and quantiles of their outcomes
    n = 500
    kinds = pd.MultiIndex.from_product(
        [(0.25, 0.75), (30, 60), (0, 1)], names=["x", "age", "club"]
    ).to_frame(index=False)
    table = kinds.loc[np.repeat(np.arange(8), n)].reset_index(drop=True).assign(owner=False)
    outcomes = planted_outcomes(table, np.tile(normal_quantiles(n), 8))
    # 23 of 62 ages are at most 40, one of 3 clubs is the first
    share = np.where(table["age"] == 30, 23, 39) * np.where(table["club"] == 1, 1, 2)
    masks = np.column_stack([np.ones(len(table)), masks_of(table)])
    base = standard(table).logpdf(outcomes)
    misses = 0
    n_tables = repeats(60)
    for seed in range(n_tables):
        model = RecalibratedRegressor(standard, by=RULES).fit(*people(800, seed, planted=True))
        gain = model.forecast(table).logpdf(outcomes) - base
        true = (share * gain) @ masks / (share @ masks)
        check = model.check_
        # maps of four fifths of the rows gain a fifth of their cost less: 60 parameters, 1,600 rows
        misses += bool(((true < check["low"]) | (true - 0.02 > check["high"])).any())
    # the probability is at most 0.05; false alarm in 1 of 1000 runs
    assert misses <= most_failures(n_tables, 0.05, 1e-3)


def test_a_repair_without_evidence_names_the_number_of_people():
    # 34 of 38 outcomes are near, 4 are far: a narrower forecast gains for many, loses for few
    few = np.arange(400) < 38
    y = np.empty(400)
    y[few] = np.r_[0.35 * normal_quantiles(34), -2.0, -2.0, 2.0, 2.0]
    y[~few] = normal_quantiles(362)
    table = pd.DataFrame({"x": np.zeros(400)})
    model = RecalibratedRegressor(standard, by={"few": few}, random_state=0).fit(table, y)
    row = model.check_.set_index("group").loc["few"]
    assert (row["n"], row["map"], row["verdict"]) == (38, "own", "may not help")
    assert row["low"] < 0 < row["high"]
    assert re.search(r"\b38 .* may not help$", model.summary(), re.MULTILINE)


TOO_HIGH = "predicted probability > 0.6 and predicted probability <= 0.9"


def extreme(X):
    """Predict probabilities whose log odds should be multiplied by 0.62."""
    return Forecast.from_probability(special.expit(np.asarray(X["z"])))


def applicants(n, seed):
    random = np.random.default_rng(seed)
    z = random.normal(-0.2, 1.2, n)
    happened = random.uniform(size=n) < special.expit(0.62 * z)
    table = pd.DataFrame({"z": z, "sex": random.integers(1, 3, n)})
    return table, happened.astype(np.float64)


def counts(X):
    return Forecast.from_poisson(np.exp(np.asarray(X["z"])))


def test_groups_by_the_forecast_that_an_audit_finds_are_repaired():
    table, y = applicants(5000, 0)
    quick = {"search": Search(n_simulations=2, learned_masses=(), masses=(1.0,))}
    found = audit(extreme(table), table, y, features=table[["sex"]], random_state=0, **quick)
    problems = found.by_forecast.loc[found.by_forecast["problem"], "group"].tolist()
    assert len(problems) >= 4
    model = found.repair(extreme, *applicants(6000, 1), random_state=0)
    assert set(problems) <= set(model.by)
    assert model.check_.loc[0, "verdict"] == "helps"
    fresh, outcomes = applicants(60_000, 2)
    p = extreme(fresh).event_probability()
    repaired = model.forecast(fresh).event_probability()
    for name in problems:
        mask = GroupRule.parse(model.by[name].name, ["predicted probability"]).mask(
            pd.DataFrame({"predicted probability": p})
        )
        assert abs(np.mean(outcomes[mask] - p[mask])) > 0.04
        # the rate of a group's 600 rows of the repair has a standard error of 0.02
        assert abs(np.mean(outcomes[mask] - repaired[mask])) < 0.04


def test_a_model_that_learns_outcomes_by_heart_does_not_sort_the_rows_by_them():
    # outcomes are independent of the features, so those of any group by the features have mean 0.
    # The tree predicts the outcomes of its own rows, and groups by these would have outcomes above
    # 1; on other rows it predicts those of neighbors
    random = np.random.default_rng(0)
    X, y = random.uniform(size=(600, 1)), random.normal(size=600)
    model = RecalibratedRegressor(
        DecisionTreeRegressor(random_state=0),
        by={"high": GroupRule.parse("predicted mean > 1", OWN_VALUES)},
        spread="constant",
        random_state=0,
    ).fit(X, y)
    fresh = random.uniform(size=(2000, 1))
    high = model.base_forecast(fresh).mean() > 1
    assert 100 < high.sum() < 600
    assert model.base_forecast(fresh).mean()[high].mean() > 1.3
    # about 95 rows define the map: 5 standard errors are 0.5
    assert abs(model.forecast(fresh).mean()[high].mean()) < 0.5


def test_two_values_of_a_forecast_define_one_group():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"z": random.normal(size=2000), "old": random.uniform(size=2000) > 0.5})
    y = random.poisson(np.exp(table["z"])).astype(np.float64)
    rule = "predicted mean <= 2 and 80% width > 1 and old = true"
    model = RecalibratedRegressor(counts, by={"some": rule}, random_state=0).fit(table, y)
    low, high = counts(table).interval(0.8)
    mask = (np.exp(table["z"]) <= 2) & (high - low > 1) & table["old"]
    assert model.groups_.loc[0, "n_samples"] == mask.sum()


def test_columns_named_like_values_of_the_forecast_and_values_it_does_not_have_are_refused():
    table, y = applicants(400, 5)
    table["predicted probability"] = 0.5
    told = "X has a column 'predicted probability', which in a rule"
    refused(told, RecalibratedRegressor(extreme, by={"high": TOO_HIGH}).fit, table, y)
    # a rule on other columns is not ambiguous
    RecalibratedRegressor(extreme, by={"women": "sex = 2"}).fit(table, y)
    model = RecalibratedRegressor(extreme, by={"a": "chance of zero > 0.5"})
    refused("'chance of zero', which forecasts of kind 'binary'", model.fit, *applicants(400, 6))
    model = RecalibratedRegressor(extreme, by={"a": GroupRule.parse("age > 5", ["age"])})
    refused("X has no column 'age'", model.fit, *applicants(400, 6))


def test_the_check_of_0_1_outcomes_is_in_rate():
    table, y = applicants(3000, 7)
    by = {"high": TOO_HIGH, "women": "sex = 2"}
    check = RecalibratedRegressor(extreme, by=by, random_state=0).fit(table, y).check_
    p = extreme(table).event_probability()
    groups = {"high": (p > 0.6) & (p <= 0.9), "women": table["sex"].to_numpy() == 2}
    for name, mask in groups.items():
        row = check.set_index("group").loc[name]
        assert row["n"] == mask.sum()
        assert row["error_before"] == pytest.approx(abs(np.mean((y - p)[mask])), abs=1e-12)
    # the mean |rate - p| by tenth of the score, without what right scores show by chance
    tenths = np.array_split(np.argsort(p), 10)
    measured = sum(abs((y - p)[rows].sum()) for rows in tenths) / p.size
    chance = sum(np.sqrt((p * (1 - p))[rows].sum()) for rows in tenths) / p.size
    expected = np.sqrt(measured**2 - 2 / np.pi * chance**2)
    assert check.loc[0, "error_before"] == pytest.approx(expected, rel=1e-9)
    # the error of all together hides that of low and high scores: 6.4 points (verdict: 0)
    assert abs(np.mean(y - p)) < 0.5 * check.loc[0, "error_before"]
    assert 0.04 < check.loc[0, "error_before"] < 0.09
    assert check.loc[0, "error_after"] < 0.5 * check.loc[0, "error_before"]


def test_a_persons_forecast_depends_on_that_person_only(tmp_path):
    # probabilities are right but for those from 0.6 to 0.9
    X, _ = applicants(4000, 3)
    p = extreme(X).event_probability()
    true = np.where((p > 0.6) & (p <= 0.9), p - 0.2, p)
    y = (np.random.default_rng(4).uniform(size=4000) < true).astype(np.float64)
    model = RecalibratedRegressor(extreme, by={"high": TOO_HIGH}, random_state=0).fit(X, y)
    assert model.groups_["map"].tolist() == ["own"]
    table = applicants(50, 4)[0]
    together = model.forecast(table).event_probability()
    alone = [model.forecast(table[i : i + 1]).event_probability()[0] for i in range(len(table))]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    base = model.base_forecast(table)
    np.testing.assert_array_equal(model.recalibrate(base, table).event_probability(), together)
    is_high = (base.event_probability() > 0.6) & (base.event_probability() <= 0.9)
    pooled = model.without_groups().forecast(table).event_probability()
    assert 0 < is_high.sum() < len(table)
    # the correction of the group is that of its rows: within it probabilities fall
    assert (together[is_high] < base.event_probability()[is_high]).all()
    assert not np.allclose(together, pooled)
    with pytest.warns(UserWarning, match="without an inner model"):
        save(model, tmp_path / "maps")
    loaded = load(tmp_path / "maps", extreme)
    np.testing.assert_array_equal(loaded.forecast(table).event_probability(), together)
