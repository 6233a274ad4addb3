"""Repairs from an audit in one step: the groups that it calls off, checked on other rows."""

import warnings

import msgspec
import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge

from complaints import refused
from evenhand import Forecast, ForecastColumns, InputError, RecalibratedRegressor, audit
from evenhand.audits.result import repair_name
from evenhand.calibration import calibration_error
from evenhand.scale import audit_parts
from evenhand.tables import GroupRule
from parts_examples import write_parts
from test_verdict_agreement import redecided


def rule_of(group):
    return GroupRule.from_state(group.rule)


def standard(X):
    return Forecast.from_normal(np.zeros(len(X)), np.ones(len(X)))


def people(n, seed, shift):
    random = np.random.default_rng(seed)
    table = pd.DataFrame({"sex": random.integers(1, 3, n), "x": random.uniform(size=n)})
    is_off = (table["sex"] == 2) & (table["x"] > 0.5)
    return table, random.normal(size=n) + np.where(is_off, shift, 0.0)


def test_the_groups_that_an_audit_calls_off_are_repaired_on_fresh_rows():
    found = audit(standard(people(2000, 0, 1.0)[0]), *people(2000, 0, 1.0), random_state=0)
    names = [group.group for group in found.off]
    assert set(found.scan.loc[found.scan["p_adjusted"] < 0.05, "group"]) <= set(names)
    for group in found.off:
        row = found.scan[found.scan["group"] == group.group]
        if len(row):  # the rule selects the rows of the audit's group
            assert rule_of(group).mask(people(2000, 0, 1.0)[0]).sum() == row["n"].item()
    fresh, z = people(2000, 1, 1.0)
    model = found.repair(standard, fresh, z, random_state=0)
    # groups of the same rows are repaired once, under the first name
    first = {}
    for group in found.off:
        first.setdefault(tuple(rule_of(group).mask(fresh)), group.group)
    assert list(model.by) == list(first.values())
    assert model.check_.set_index("group")["verdict"]["everyone"] == "helps"
    table, y = people(4000, 2, 1.0)
    worst = ((table["sex"] == 2) & (table["x"] > 0.5)).to_numpy()
    before = calibration_error(standard(table).pit(y)[worst])
    after = calibration_error(model.forecast(table).pit(y)[worst])
    # Phi(1 / sqrt 2) - 1/2 = 0.26 before; a standard error of 0.016 after, 3.3 of them in 0.1%
    assert before > 0.2
    assert after < 0.053


def test_repairs_follow_the_decisions_of_the_audit():
    table, y = people(2000, 0, 1.0)
    found = audit(standard(table), table, y, random_state=0)
    assert {group.mass for group in found.off} > {None}
    # learned groups are off by their p-values, adjusted for their number
    learned = [msgspec.structs.replace(one, p_adjusted=0.1) for one in found.made.learned]
    unlearned = redecided(found, learned=tuple(learned))
    assert len(found.learned) >= 2
    assert not unlearned.learned["off"].any()
    assert {group.mass for group in unlearned.off} == {None}
    # groups within the tolerance are off, but not repaired
    tolerant = redecided(found, tolerance=0.5)
    assert [one.group for one in tolerant.off] == [one.group for one in found.off]
    assert tolerant.repair(standard, *people(2000, 1, 1.0)).by is None


def half_zeros(X):
    return Forecast.from_hurdle(np.full(len(X), 0.5), Forecast.from_normal(X["mean"], 1.0))


def insured(seed):
    """Return amounts that are larger in Bonn and more often not zero in Ulm than forecast."""
    random = np.random.default_rng(seed)
    cities, mean = random.choice(["Bonn", "Ulm", "Zug"], 3000), random.choice([8.0, 9.0], 3000)
    is_above = random.random(3000) < np.where(cities == "Ulm", 0.7, 0.5)
    y = np.where(is_above, random.normal(mean + 0.7 * (cities == "Bonn")), 0)
    return pd.DataFrame({"city": cities, "mean": mean}), y


def test_amounts_and_zeros_have_their_own_worst_groups_and_both_are_repaired():
    X, y = insured(0)
    found = audit(half_zeros(X), X, y, groups=["city"], random_state=9)
    part = found.made.positive_part
    listed = {(one in part, one.columns) for one in found.made.apart(found.made.problems)}
    assert {(True, ("city",)), (False, ("city",))} <= listed
    # on other rows, the mean is that of the whole forecast
    assert {one.key for one in part if one.off and one.rule is None} == {None, "predicted mean"}
    only = redecided(found, tolerance=0.14).repair(half_zeros, *insured(1))
    assert list(only.by) == ["city = Bonn"]


def test_masks_have_no_rule_and_are_named():
    table, y = people(2000, 3, 0.0)
    club = (table["x"] > 0.3).to_numpy()
    y = y + club
    found = audit(standard(table), table, y, groups={"club": club}, features=table[["sex"]])
    fresh, outcomes = people(2000, 4, 0.0)
    mask = (fresh["x"] > 0.3).to_numpy()
    with pytest.warns(UserWarning, match=r"not repaired, as no rule .*'club'.*groups=\{'club'"):
        found.repair(standard, fresh, outcomes + mask)
    with warnings.catch_warnings(action="error"):
        names = [repair_name(group) for group in found.off if group.rule is None]
        masks = dict.fromkeys(names, mask)
        masks |= {"club": mask}
        model = found.repair(standard, fresh, outcomes + mask, groups=masks)
    assert model.check_.set_index("group").loc["club", "verdict"] == "helps"
    with pytest.raises(InputError, match="groups must name groups that are a problem"):
        found.repair(standard, fresh, outcomes, groups={"clubb": mask})


def test_a_repair_on_the_rows_of_the_audit_warns():
    table, y = people(800, 5, 0.0)
    found = audit(standard(table), table, y, groups=["sex"], random_state=0)
    assert found.off == ()
    with pytest.warns(UserWarning, match=r"rows of this audit.* pass other rows"):
        found.repair(standard, table, y)
    # other rows, a part of the rows, and an audit that does not know its outcomes
    with warnings.catch_warnings(action="error"):
        model = found.repair(standard, *people(800, 6, 0.0))
        found.repair(standard, table[:400], y[:400])
        found.with_rows(provenance={}).repair(standard, table, y)
    # without an off group there is one map
    assert model.by is None
    assert model.check_["group"].tolist() == ["everyone"]
    assert model.check_["verdict"].tolist() != ["helps"]


@pytest.mark.parametrize("is_fitted", [True, False])
def test_columns_that_the_model_needs_are_named_by_it(is_fitted):
    table, y = people(1500, 7, 1.0)
    fitted = BayesianRidge().fit(table, y)
    model = RecalibratedRegressor(fitted).fit(table, y) if is_fitted else fitted
    found = audit(model, table, y, random_state=0)
    fresh, z = people(500, 8, 1.0)
    for asked in (audit, redecided(found, tolerance=1.0).repair):
        with pytest.raises(ValueError, match=r"now missing:\s- x\b"):
            asked(model, fresh[["sex"]], z)


def test_fitted_models_are_not_fitted_again():
    table, y = people(1500, 7, 1.0)
    fitted = BayesianRidge().fit(table, y)
    coefficients = fitted.coef_.copy()
    fresh = people(1500, 8, 1.0)
    forecast = Forecast.from_normal(*fitted.predict(fresh[0], return_std=True))
    found = audit(forecast, *fresh, groups=["sex"], random_state=0)
    model = found.repair(fitted, *people(1500, 9, 1.0))
    assert isinstance(model.estimator, FrozenEstimator)
    np.testing.assert_array_equal(fitted.coef_, coefficients)
    refused("model must be a fitted model or a function", found.repair, forecast, *fresh)


def test_the_groups_of_an_audit_in_parts_are_repaired_on_fresh_rows(tmp_path):
    table, y = people(3000, 13, 1.0)
    rows = table.assign(y=y, mean=0.0, std=1.0)
    folder = write_parts(rows, tmp_path / "in", [1000, 2000])
    options = {"groups": ["sex", "x"], "sample_size": 800, "random_state": 0}
    found = audit_parts(ForecastColumns("mean", "std"), folder, "y", **options)
    assert found.n_samples == 3000
    named = {one.group: one for one in found.made.named if one.problem}
    assert "sex = 2" in named
    assert len(named) > 1
    # the rules select the rows that were counted in all parts
    assert {rule_of(one).mask(rows).sum() == one.n for one in named.values()} == {True}
    model = found.repair(standard, *people(3000, 14, 1.0), random_state=0)
    assert model.check_.set_index("group").loc["everyone", "verdict"] == "helps"
    assert set(named) & set(model.by)
    fresh, z = people(4000, 15, 1.0)
    worst = (fresh["sex"] == 2).to_numpy()
    before, after = (
        calibration_error(forecast.pit(z)[worst])
        for forecast in (standard(fresh), model.forecast(fresh))
    )
    # mean PIT 0.63 before; standard errors of 2,000 PITs and of a map of 1,500 rows: 0.007 each
    assert before > 0.1
    assert after < 0.035
