"""Repairs by groups of the model's own forecast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import special
from sklearn.tree import DecisionTreeRegressor

from command_outcome import Command
from evenhand import Forecast, InputError, RecalibratedRegressor, audit, load, save
from evenhand.columns import GroupRule
from evenhand.forecast import OWN_VALUES

Floats = NDArray[np.float64]
TOO_HIGH = "predicted probability > 0.6 and predicted probability <= 0.9"


def extreme(X: Any) -> Forecast:
    """Predict probabilities whose log odds should be multiplied by 0.62."""
    return Forecast.from_probability(special.expit(np.asarray(X["z"])))


def applicants(n: int, seed: int) -> tuple[pd.DataFrame, Floats]:
    random = np.random.default_rng(seed)
    z = random.normal(-0.2, 1.2, n)
    happened = random.uniform(size=n) < special.expit(0.62 * z)
    table = pd.DataFrame({"z": z, "sex": random.integers(1, 3, n)})
    return table, happened.astype(np.float64)


def stepped(n: int, seed: int) -> tuple[pd.DataFrame, Floats]:
    """Return people for whom `extreme` is right but for probabilities from 0.6 to 0.9."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame({"z": random.normal(-0.2, 1.2, n), "sex": random.integers(1, 3, n)})
    p = special.expit(table["z"].to_numpy())
    true = np.where((p > 0.6) & (p <= 0.9), p - 0.2, p)
    return table, (random.uniform(size=n) < true).astype(np.float64)


def counts(X: Any) -> Forecast:
    return Forecast.from_poisson(np.exp(np.asarray(X["z"])))


def test_groups_by_the_forecast_that_an_audit_finds_are_repaired() -> None:
    table, y = applicants(5000, 0)
    quick: dict[str, Any] = {"n_simulations": 2, "learned_masses": (), "masses": (1.0,)}
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


def test_a_persons_forecast_depends_on_that_person_only(tmp_path: Path) -> None:
    model = RecalibratedRegressor(extreme, by={"high": TOO_HIGH}, random_state=0)
    model.fit(*stepped(4000, 3))
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


def test_a_model_that_learns_outcomes_by_heart_does_not_sort_the_rows_by_them() -> None:
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


def test_two_values_of_a_forecast_define_one_group() -> None:
    random = np.random.default_rng(0)
    table = pd.DataFrame({"z": random.normal(size=2000), "old": random.uniform(size=2000) > 0.5})
    y = random.poisson(np.exp(table["z"])).astype(np.float64)
    rule = "predicted mean <= 2 and 80% width > 1 and old = true"
    model = RecalibratedRegressor(counts, by={"some": rule}, random_state=0).fit(table, y)
    low, high = counts(table).interval(0.8)
    mask = (np.exp(table["z"]) <= 2) & (high - low > 1) & table["old"]
    assert model.groups_.loc[0, "n_samples"] == mask.sum()


def test_columns_named_like_values_of_the_forecast_and_values_it_does_not_have_are_refused() -> (
    None
):
    table, y = applicants(400, 5)
    table["predicted probability"] = 0.5
    with pytest.raises(InputError, match="X has a column 'predicted probability', which in a rule"):
        RecalibratedRegressor(extreme, by={"high": TOO_HIGH}).fit(table, y)
    # a rule on other columns is not ambiguous
    RecalibratedRegressor(extreme, by={"women": "sex = 2"}).fit(table, y)
    with pytest.raises(InputError, match="'chance of zero', which forecasts of kind 'binary'"):
        RecalibratedRegressor(extreme, by={"a": "chance of zero > 0.5"}).fit(*applicants(400, 6))
    rule = GroupRule.parse("age > 5", ["age"])
    with pytest.raises(InputError, match="X has no column 'age'"):
        RecalibratedRegressor(extreme, by={"a": rule}).fit(*applicants(400, 6))


def _mean_distance(p: Floats, y: Floats) -> tuple[float, float]:
    """Return the mean |rate - p| by tenth of the score, and what right scores show by chance."""
    tenths = np.array_split(np.argsort(p), 10)
    measured = sum(abs((y - p)[rows].sum()) for rows in tenths) / p.size
    spread = sum(np.sqrt((p * (1 - p))[rows].sum()) for rows in tenths) / p.size
    return measured, float(np.sqrt(2 / np.pi) * spread)


def test_the_check_of_0_1_outcomes_is_in_rate() -> None:
    table, y = applicants(3000, 7)
    by = {"high": TOO_HIGH, "women": "sex = 2"}
    check = RecalibratedRegressor(extreme, by=by, random_state=0).fit(table, y).check_
    p = extreme(table).event_probability()
    groups = {"high": (p > 0.6) & (p <= 0.9), "women": table["sex"].to_numpy() == 2}
    for name, mask in groups.items():
        row = check.set_index("group").loc[name]
        assert row["n"] == mask.sum()
        assert row["error_before"] == pytest.approx(abs(np.mean((y - p)[mask])), abs=1e-12)
    measured, chance = _mean_distance(p, y)
    assert check.loc[0, "error_before"] == pytest.approx(np.sqrt(measured**2 - chance**2), rel=1e-9)
    # the error of all together hides that of low and high scores: 6.4 points (verdict: 0)
    assert abs(np.mean(y - p)) < 0.5 * check.loc[0, "error_before"]
    assert 0.04 < check.loc[0, "error_before"] < 0.09
    assert check.loc[0, "error_after"] < 0.5 * check.loc[0, "error_before"]


def test_the_command_takes_a_group_by_the_forecast(evenhand: Command, tmp_path: Path) -> None:
    table, y = applicants(4000, 9)
    table["p"] = extreme(table).event_probability()
    old, new, maps = tmp_path / "old.csv", tmp_path / "new.csv", tmp_path / "maps"
    table.assign(y=y).to_csv(old, index=False)
    fresh = applicants(100, 10)[0]
    fresh.assign(p=extreme(fresh).event_probability(), id=range(100)).to_csv(new, index=False)
    options = ("--probability", "p", "--target", "y", "--group", TOO_HIGH, "--out", str(maps))
    done = evenhand("recalibrate", str(old), *options)
    assert done.code == 0, done.err
    assert "predicted probability > 0.6" in done.out
    out = tmp_path / "out.csv"
    done = evenhand(
        "recalibrate", str(new), "--probability", "p", "--id", "id", "--maps", str(maps),
        "--out", str(out),
    )  # fmt: skip
    assert done.code == 0, done.err
    model = RecalibratedRegressor(
        lambda X: Forecast.from_probability(X["p"]), by={TOO_HIGH: TOO_HIGH}, random_state=0
    ).fit(table[["p"]], y)
    expected = model.forecast(pd.read_csv(new)[["p"]]).event_probability()
    found = pd.read_csv(out)
    np.testing.assert_allclose(found[found.columns[1]], expected, rtol=1e-9)
