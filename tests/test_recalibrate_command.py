"""`evenhand recalibrate` of forecasts in columns: maps, their check, and what predict writes."""

import shlex

import numpy as np
import pandas as pd
import pytest

from evenhand import ForecastColumns, RecalibratedRegressor, load

FORECAST = ("--forecast", "mean=mu,std=sigma")


def make_table(seed, n=1500):
    """Return forecasts that are too narrow for one sex and too low in an overlapping group."""
    random = np.random.default_rng(seed)
    mu = random.normal(size=n)
    sex = random.integers(1, 3, n)
    bmi = random.uniform(size=n)
    loss = mu + random.normal(size=n) * np.where(sex == 2, 1.6, 1.0) + 0.5 * (bmi > 0.5)
    ids = [f"p{i}" for i in range(n)]
    columns = {"id": ids, "mu": mu, "sigma": 1.0, "sex": sex, "body mass and more": bmi}
    return pd.DataFrame(columns | {"loss": loss})


@pytest.fixture
def tables(tmp_path):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    make_table(0).to_csv(old, index=False)
    make_table(1).drop(columns="loss").to_csv(new, index=False)
    return old, new


def test_maps_are_estimated_checked_and_applied(evenhand, tables, tmp_path):
    old, new = map(str, tables)
    maps = str(tmp_path / "maps")
    groups = ("--by", "women=sex = 2", "--by", "body mass and more > 0.5", "--out", maps)
    done = evenhand("recalibrate", old, *FORECAST, "--target", "loss", *groups).done()
    assert done.out.startswith("HELPS. 2 of 2 groups got better, none got worse.")
    assert "women" in done.out
    out = tmp_path / "out.csv"
    served = evenhand("predict", new, "--forecast", maps, "--id", "id", "--out", str(out)).done()
    assert "1,500 forecasts written" in served.err
    written = pd.read_csv(out)
    assert written.columns[:3].tolist() == ["id", "mean", "q0.05"]
    by = {"women": "sex = 2", "high": "body mass and more > 0.5"}
    data = pd.read_csv(old).drop(columns=["id", "loss"])
    model = RecalibratedRegressor(ForecastColumns("mu", "sigma"), by=by, random_state=0)
    expected = model.fit(data, pd.read_csv(old)["loss"]).forecast(pd.read_csv(new)[data.columns])
    np.testing.assert_allclose(written["q0.9"], expected.ppf(0.9), rtol=1e-9)
    np.testing.assert_allclose(written["mean"], expected.mean(), rtol=1e-9)
    assert load(maps).estimator_ == ForecastColumns("mu", "sigma")


def test_the_next_command_of_an_audit_repairs_a_group_of_missing_values(evenhand, tables, tmp_path):
    old = tables[0]
    make_table(0).replace({"sex": {2: np.nan}}).to_csv(old, index=False)
    done = evenhand("audit", old, *FORECAST, "--target", "loss", "--features", "sex").done()
    command = done.out[done.out.index("recalibrate OTHER.csv") :].replace("\\\n", " ")
    name, _, *options = shlex.split(command)
    assert "sex missing" in options
    options[-1] = str(tmp_path / "maps")
    assert "sex missing" in evenhand(name, old, *options).done().out
    options[options.index("sex missing")] = "women=sex is missing"
    assert "women" in evenhand(name, old, *options).done().out


def test_one_row_of_each_person_is_used(evenhand, tmp_path):
    # right forecasts, which copies of a person in other folds would seem to correct
    table, path = make_table(0, 200), tmp_path / "visits.csv"
    table["loss"] = table["mu"] + np.random.default_rng(1).normal(size=200)
    pd.concat([table] * 10).to_csv(path, index=False)
    options = ("--target", "loss", "--person", "id", "--out", tmp_path / "maps")
    done = evenhand("recalibrate", path, *FORECAST, *options).done()
    assert ("HELPS" in done.out, "repaired with 200 rows" in done.err) == (False, True)


def test_wrong_options_are_refused_in_one_line(evenhand, tables, tmp_path):
    target = ("--target", "loss")
    for options, message in (
        (target, "--forecast"),
        (FORECAST, "--target"),
        ((*FORECAST, *target, "--by", "sex", "--by", "sex = 2"), "--by"),
        ((*FORECAST, *target, "--entered", "mu"), "--entered has no effect"),
        ((*FORECAST, *target, "--by", "women=sexx = 2"), "'women': old.csv has no column 'sexx'"),
        ((*FORECAST, *target, "--by", "sexx = 2"), "no column 'sexx', only"),
        ((*FORECAST, *target, "--by", "sex = 9"), "--by 'sex = 9': no row of old.csv is in this"),
        ((*FORECAST, *target, "--by", "loss > 1"), "uses the target 'loss'"),
        ((*FORECAST, *target, "--by", "loss"), "--by contains 'loss'"),
    ):
        refused = evenhand("recalibrate", tables[0], *options, "--out", tmp_path / "maps")
        assert message in refused.complaint()
    assert not (tmp_path / "maps").exists()


def test_kept_columns_are_written_so_that_an_audit_can_follow(evenhand, tables, tmp_path):
    maps, out = str(tmp_path / "maps"), tmp_path / "out.csv"
    by = ("--target", "loss", "--by", "sex", "--out", maps)
    assert evenhand("recalibrate", str(tables[0]), *FORECAST, *by).code == 0
    test = tmp_path / "test.csv"
    options = ("predict", str(test), "--forecast", maps, "--id", "id", "--out", str(out))
    # columns are those of the folder
    make_table(2, 300).rename(columns={"mu": "my"}).to_csv(test, index=False)
    assert "test.csv has no column " in (lacks := evenhand(*options).complaint())
    assert "no column 'mu'" in lacks
    make_table(2, 300).to_csv(test, index=False)
    evenhand(*options, "--keep", "loss,sex,id").done()
    written, read = pd.read_csv(out), pd.read_csv(test)
    assert written.columns[:4].tolist() == ["id", "loss", "sex", "mean"]
    # outcomes below 0 are numbers, not formulas
    assert (read["loss"] < 0).any()
    np.testing.assert_array_equal(written["loss"], read["loss"])
    np.testing.assert_array_equal(written["sex"], read["sex"])
    wrong = evenhand(*options, "--keep", "los")
    assert "has no column 'los'" in wrong.complaint()
    assert "did you mean 'loss'?" in wrong.err
    test.write_text(test.read_text().replace("body mass and more", "mean", 1))
    clash = evenhand(*options, "--keep", "mean")
    assert "kept column 'mean' clashes with an output column" in clash.complaint()
