"""`evenhand audit` of times that are cut off: columns, options, messages."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from complaints import complaint
from evenhand import Forecast, ForecastColumns, Outcomes, audit
from evenhand.distributions import OutcomeKind
from evenhand.scale import searched_columns

GRID = (2.0, 5.0, 10.0, 20.0)


def make_table(seed, n=600):
    """Return exponential times that depend on x, cut off; b lives half as long as forecast."""
    random = np.random.default_rng(seed)
    x = random.uniform(size=n)
    group = np.where(random.uniform(size=n) < 0.3, "b", "a")
    scale = 5 + 10 * x
    true = scale * np.where(group == "b", 0.5, 1.0) * random.exponential(size=n)
    entered = random.uniform(0, 15, size=n)
    cut = 30 - entered
    table = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "group": group,
            "x": x,
            "entered": pd.Timestamp("2020-01-01") + pd.to_timedelta(entered.round(), "D"),
            "days": np.minimum(true, cut),
            "died": (true <= cut).astype(int),
        }
    )
    return table.assign(**{f"s{t:g}": np.exp(-t / scale) for t in GRID})


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "test.csv"
    make_table(0).to_csv(path, index=False)
    return path


CURVES = "survival=s,event=died"
TIMES = ("--target", "days", "--forecast", CURVES)


@pytest.mark.parametrize("listed", ["s", "s20,s5,s2,s10", "10=s10,20=s20,2=s2,5=s5"])
def test_columns_of_survival_probabilities_make_curves(listed):
    data = make_table(1, 30)
    subject = ForecastColumns(survival=listed)
    forecast = subject.forecast(data)
    assert subject.columns(data.columns, "t.csv") == [f"s{t:g}" for t in GRID]
    np.testing.assert_allclose(1 - forecast.cdf(5.0), data["s5"], rtol=1e-9)
    np.testing.assert_allclose(
        1 - forecast.cdf(7.5), (data["s5"] + data["s10"]) / 2, rtol=1e-9
    )  # linear between


@pytest.mark.parametrize("form", [{"survival": "s"}, {"mean": "x", "std": "sd"}])
def test_with_a_horizon_forecasts_have_an_atom_there(form):
    data = make_table(1, 30).assign(sd=1.0)
    plain = ForecastColumns(**form).forecast(data)
    cut = ForecastColumns(**form, horizon=1.5).forecast(data)
    assert cut.outcome_kind is OutcomeKind.HURDLE
    np.testing.assert_allclose(cut.event_probability(), plain.cdf(1.5), rtol=1e-9)
    for y in (0.5, 1.0, 1.4):
        np.testing.assert_allclose(cut.cdf(y), plain.cdf(y), rtol=1e-7)


BAD_COLUMNS = [
    ({"survival": "s20"}, {"s20": 1.2}, "column 's20', row 1 must lie between"),
    ({"survival": "s"}, {"s10": 0.99}, "column 's10', row 1 must fall, got 0.99 after"),
    ({"survival": "2=s2,2=s5"}, {}, "one column for each time, got 's2' and 's5' for 2"),
    ({"survival": "0=s2"}, {}, "name a column for a time above 0"),
    ({"survival": "z"}, {}, "no columns with this prefix, such as z30"),
    ({"survival": "s", "outcome": "count"}, {}, "survival= is for times, which outcome=count"),
]


@pytest.mark.parametrize(("options", "values", "fact"), BAD_COLUMNS)
def test_columns_that_are_no_survival_probabilities_are_refused(options, values, fact):
    data = make_table(1, 30).assign(**values)
    assert fact in complaint(ForecastColumns(**options).of, data, "t.csv")


def test_the_command_audits_what_the_function_audits(evenhand, table, tmp_path):
    out = tmp_path / "audit.json"
    options = ("--horizon", "20", "--entered", "entered", "--groups", "group", "--id", "id")
    options = (*options, "--out", str(out))
    evenhand("audit", str(table), *TIMES, *options).done()
    data = pd.read_csv(table, float_precision="round_trip")
    curves = data[[f"s{t:g}" for t in GRID]]
    expected = audit(
        Forecast.from_survival(GRID, curves, horizon=20),
        y=Outcomes(data["days"], data["died"], horizon=20),
        groups=data[["group"]],
        features=data[["group", "x"]],
        random_state=0,
    )
    found = json.loads(out.read_text())
    groups = {row["group"]: row for row in found["groups"]}
    np.testing.assert_allclose(groups["group = b"]["error"], expected.groups["error"].iloc[2])
    assert expected.groups["group"].iloc[2] == "group = b"
    # neither the event nor the date of entry is searched
    assert [row["group"] for row in found["scan"]] == expected.scan["group"].tolist()
    assert "--horizon 20" in found["provenance"]["command"]
    joined = (*TIMES[:3], f"{CURVES},horizon=20", *options[2:])
    again = json.loads(evenhand("audit", table, *joined, "--json").out)
    assert (again["groups"], again["scan"]) == (found["groups"], found["scan"])


def test_forecasts_that_depend_on_the_draw_are_not_searched():
    data = make_table(0).rename(columns={f"s{t:g}": f"survival_{t:g}" for t in GRID})
    served = data.assign(**{"r": 0.5, "context": "", "key": "k", "mean": 1.0, "q0.5": 2.0})
    subject = ForecastColumns(survival="survival_2,survival_5")
    apart = {"days", "died", "entered", "id"}
    searched = searched_columns(subject, list(served), "days", apart, "t.csv")
    assert searched == ["group", "x", "mean"]


def test_wrong_options_are_refused_in_one_line(evenhand, table):
    columns = ("--target", "days", "--forecast")
    for options, fact in (
        ((*columns, "survival=s"), "survival= of --forecast is for times"),
        ((*TIMES, "--entered", "entered"), "column 'entered' is given without --horizon"),
        ((*columns, "mean=x,std=s2", "--horizon", "2"), "--horizon is given without --event"),
        ((*TIMES, "--horizon", "-2"), "--horizon must be a time above 0, got -2"),
        ((*columns, f"{CURVES},horizon=-2"), "horizon= must be a time above 0, got -2"),
        ((*columns, f"{CURVES},horizon=9", "--horizon", "10"), "horizon= in --forecast or --h"),
        ((*columns, CURVES, "--event", "x"), "event= in --forecast or --event, not both"),
        ((*TIMES, "--horizon", "1e-9"), "no event was observed by the horizon"),
        ((*columns, "survival=s,event=days"), "column 'days', row 1 must be 0 or 1"),
        ((*columns, "survival=s", "--event", "x"), "column 'x', row 1 must be 0 or 1"),
        ((*TIMES, "--groups", "died"), "--groups contains 'died', the --event column"),
        (
            (*columns, "probability=s2,event=died"),
            "--event is given, but forecasts of the kind 'binary' are not of times",
        ),
        ((*TIMES, "--workers", "1"), "--workers has no effect on one file"),
    ):
        assert fact in evenhand("audit", table, *options).complaint()


def test_wrong_cells_are_named(evenhand, tmp_path):
    path = tmp_path / "wrong.csv"
    for column, value, fact in (
        ("days", "", "row 3 must be a time, got nan; where no event was observed"),
        ("days", -2.0, "column 'days', row 3 must be at least 0, as it is a time, got -2"),
        ("died", 2, "column 'died', row 3 must be 0 or 1, got 2"),
        ("entered", "", "column 'entered', row 3 must be a date"),
        ("entered", "unknown", "'entered', row 3 must be a date, got 'unknown'; write dates as"),
    ):
        data = make_table(0)
        data[column] = data[column].astype(object)
        data.loc[2, column] = value
        data.to_csv(path, index=False)
        options = ("--horizon", "10", "--entered", "entered")
        assert fact in evenhand("audit", path, *TIMES, *options).complaint()


def test_maps_are_not_by_outcome(evenhand, table, tmp_path):
    args = ("recalibrate", table, *TIMES, "--out", tmp_path / "maps")
    by = evenhand(*args, "--by", "died").complaint()
    assert "--by contains 'died', the --event column: groups defined by" in by
    rule = evenhand(*args, "--by", "died = 1").complaint()
    assert "uses the event 'died': groups defined by the outcome" in rule


def test_times_are_certified_on_those_who_entered_in_time(evenhand, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_table(2, 700).to_csv("past.csv", index=False)
    options = ("--horizon", "12", "--entered", "entered", "--id", "id", "--seed", "0")
    evenhand("randomize", "past.csv", *TIMES, *options, "--out", "certificate").done()
    found = json.loads(Path("certificate/certificate.json").read_text())
    assert found["group_error"] <= 0.3
    data = pd.read_csv("past.csv", parse_dates=["entered"])
    end = (data["entered"] + pd.to_timedelta(data["days"], "D")).max()
    # nobody leaves before the end of the study: of those who entered in time nobody is lost
    in_time = (data["entered"] + pd.Timedelta(12, "D")) <= end
    had_event = in_time & (data["days"] <= 12) & (data["died"] == 1)
    counts = found["follow_up"]
    assert counts["n_events"] == had_event.sum()
    assert counts["n_events"] + counts["n_reached"] == in_time.sum()
    assert counts["n_lost"] == 0
    assert counts["n_left_out"] == (~in_time).sum()
    refused = evenhand("randomize", "past.csv", *TIMES, "--id", "id", "--out", "out").complaint()
    assert "--horizon is missing: without a time up to which" in refused


def test_repaired_times_are_for_their_horizon_and_their_columns(evenhand, table, tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "out.csv"
    data = pd.read_csv(table, float_precision="round_trip").assign(one=1.0)
    data.to_csv(table, index=False)
    listed = "survival=0=one,5=s5,2=s2,10=s10,event=died,horizon=9"
    evenhand("recalibrate", table, "--target", "days", "--forecast", listed, "--out", maps).done()
    audit_of = ("audit", table, "--target", "days", "--forecast", maps)
    wrong = "was made with horizon=9.0, not 10.0"
    assert wrong in evenhand(*audit_of, "--horizon", "10").complaint()
    assert json.loads(evenhand(*audit_of, "--json").out)["censoring"]["horizon"] == 9
    place = ("--forecast", maps, "--out", out)
    evenhand("predict", table, *place).done()
    written = [name for name in pd.read_csv(out) if "surv" in name]
    assert written == [f"survival_{t}" for t in (2, 5, 9)]
    data.drop(columns="s5").to_csv(table, index=False)
    assert "'s5'" in evenhand("predict", table, *place).complaint()
