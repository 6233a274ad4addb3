"""Audits of times that may be cut off: sizes beside tests, and the probability at a horizon.

In the shifted people, "b", log times are larger by one standard deviation than forecast.
"""

import functools
import json
import warnings

import jsonschema
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from censored_laws import SCALE, Sample, forecast_cdf, forecast_of
from complaints import refused
from evenhand import Forecast, Outcomes, audit, certify, compare
from evenhand.audits.forecasts import Audited, read_subject
from evenhand.calibration import calibration_error
from evenhand.distributions import Hurdle, Randomized
from evenhand.links import make_link
from evenhand.report import NoteKind, notes_of
from evenhand.results import Censoring, audit_schema
from parts_examples import QUICK_AUDIT, searching

QUICK = searching(QUICK_AUDIT, learned_masses=(0.2,)) | {"random_state": 5}


@functools.cache
def people(n=2000, seed=0, shift=1.0):
    return Sample.of(n, np.random.default_rng([1, seed]), shift)


def table_of(who):
    age = np.random.default_rng(9).uniform(20, 80, who.x.size)
    return pd.DataFrame({"x": who.x, "age": age, "site": np.where(who.is_shifted, "b", "a")})


@functools.cache
def audited(horizon=None):
    who = people()
    return audit(who.forecast(horizon), table_of(who), who.times(horizon), groups=["site"], **QUICK)


def row(table, name):
    return table.set_index("group").loc[name]


def test_sizes_are_those_of_kaplan_meier_estimates_and_tests_those_of_randomized_pits():
    found, who = audited(), people()
    b = row(found.groups, "site = b")
    true_error = calibration_error(who.truth[who.is_shifted])
    assert true_error > 0.2
    # the estimate differs by its standard error, at most 0.02 for 400 people
    assert b["km_error"] == pytest.approx(true_error, abs=0.06)
    assert b["km_error_low"] < true_error < b["km_error_high"]
    assert b["least_error"] <= true_error <= b["most_error"]
    # randomized PITs dilute the size
    assert b["error"] < 0.8 * b["km_error"]
    assert b["off"]
    assert b["problem"]
    a = row(found.groups, "site = a")
    assert a["km_error"] < 0.04
    assert not a["off"]


def test_bias_is_unknown_and_coverage_that_of_the_kaplan_meier_estimate():
    found = audited()
    for table in (found.groups, found.scan, found.learned):
        assert "bias" not in table
    a = row(found.groups, "site = a")
    # 1,600 people, half of them cut off: a standard error of about 0.02
    assert a["coverage_80"] == pytest.approx(0.8, abs=0.07)
    assert a["coverage_80_low"] < 0.8 < a["coverage_80_high"]
    assert found.score("80% coverage") == row(found.groups, "everyone")["coverage_80"]
    km = row(found.groups, "everyone")["km_error"]
    assert found.score("average error, Kaplan-Meier") == km


def test_everybody_is_counted_by_what_is_known():
    who, found = people(), audited(2.0)
    event = who.event & (who.time <= 2)
    reached = ~event & (who.time >= 2)
    counts = int(event.sum()), int(reached.sum()), int((~event & ~reached).sum())
    followed = int((who.entered + 2 <= (who.entered + who.time).max()).sum())
    assert found.censoring == Censoring(
        n_events=counts[0], n_reached=counts[1], n_lost=counts[2], horizon=2.0, n_followed=followed
    )
    whole = audited().censoring
    expected = Censoring(n_events=int(who.event.sum()), n_reached=0, n_lost=int((~who.event).sum()))
    assert whole == expected


def test_the_probability_at_the_horizon_is_compared_with_kaplan_meier():
    who, found = people(), audited(2.0)
    for name, mask in (("site = a", ~who.is_shifted), ("site = b", who.is_shifted)):
        one = row(found.survival, name)
        predicted = forecast_cdf(2.0, who.x[mask])
        assert one["predicted"] == pytest.approx(predicted.mean(), abs=2e-3)
        true = stats.norm.cdf(stats.norm.ppf(predicted) - who.is_shifted[mask]).mean()
        assert one["least"] <= one["low"] < true < one["high"] <= one["most"]
        assert one["n"] == mask.sum()
    b = row(found.survival, "site = b")
    assert b["high"] < b["predicted"]
    assert audited().survival.empty
    assert audited().reliability.empty
    bins = found.reliability[found.reliability["group"] == "site = a"]
    assert ((bins["low"] < bins["probability"]) & (bins["probability"] < bins["high"])).all()


def test_ends_of_event_rates_hold_for_everyone_and_all_groups_jointly():
    found = audited(2.0)
    assert found.censoring is not None
    one = row(found.survival, "everyone")
    level = 1 - 0.05 / len(found.survival)
    for n_events, end in ((one["n_events"], "least"), (one["n_events"] + one["n_lost"], "most")):
        exact = stats.binomtest(int(n_events), int(one["n"])).proportion_ci(level, "exact")
        assert one[end] == pytest.approx(exact.low if end == "least" else exact.high, abs=1e-9)


def test_groups_by_the_forecast_are_those_of_its_median():
    who, found = people(), audited()
    # the width of these forecasts is in the order of their medians
    assert found.by_forecast["key"].unique().tolist() == ["predicted median"]
    rank = (stats.rankdata(who.x) - 0.5) / 2000
    assert found.by_forecast["n"].tolist() == np.bincount((10 * rank).astype(int)).tolist()
    assert found.by_forecast["km_error"].notna().all()
    first = (10 * rank).astype(int) == 0
    true_error = calibration_error(who.truth[first])
    assert found.by_forecast["km_error"][0] == pytest.approx(true_error, abs=0.06)


def test_two_audits_are_compared_by_their_sizes(tmp_path):
    who, found = people(), audited()
    better, table = forecast_of(who.x + 0.25), table_of(who)
    times = who.times()
    other = audit(better, table, times, groups=["site"], **QUICK, name="better")
    other.to_json(tmp_path / "better.json")
    changes = compare(found, tmp_path / "better.json")
    b = row(changes.groups, "site = b")
    assert b["error_before"] == row(found.groups, "site = b")["km_error"]
    assert b["error_after"] == row(other.groups, "site = b")["km_error"]
    assert b["error_before_low"] == row(found.groups, "site = b")["km_error_low"]
    assert b["error_after_high"] == row(other.groups, "site = b")["km_error_high"]
    assert "average error, Kaplan-Meier" in list(changes.scores["measure"])
    assert "average error" not in list(changes.scores["measure"])
    # changes of Kaplan-Meier estimates are not those of means over rows
    paired = compare(better, better, table, times, groups=["site"], **QUICK)
    assert not paired.is_paired
    assert "Kaplan-Meier" in paired.notes[0]
    assert row(paired.groups, "site = b")["error_before_low"] == b["error_after_low"]
    refused("times up to the horizon 2", compare, found, audited(2.0))
    plain = audit(Forecast.from_normal(np.zeros(2000), np.ones(2000)), y=who.time, **QUICK)
    refused(r"of times, .* of a continuous outcome", compare, found, plain)


@pytest.mark.parametrize("horizon", [None, 1.0])
def test_columns_made_of_any_event_are_no_features(horizon):
    who = people()
    died = who.event.astype(bool)
    rng = np.random.default_rng(0)
    code = pd.Series([f"code {k}" for k in rng.permutation(2000) // 2])
    made = {
        "event": died.astype(int),
        "died": died,
        "alive": 1 - died,
        "time": who.time,
        "days": 365 * who.time,
        "cause": np.where(died, rng.choice(["a", "b"], 2000), None),
        "certificate": code.where(died),
        "size at death": np.where(died, rng.normal(size=2000), np.nan),
        "last visit": np.where(died, np.nan, rng.normal(size=2000)),
    }
    known = {"code": code.where(rng.uniform(size=2000) < 0.5), "age": table_of(who)["age"]}
    found = audit(
        who.forecast(horizon),
        pd.DataFrame(made | known),
        Outcomes(who.time, who.event, horizon),
        groups={"dead": died},
        **QUICK,
    )
    assert set(found.leaks.loc[found.leaks["kind"] == "feature", "name"]) == set(made)
    assert not row(found.groups, "dead")["off"]


def test_assumptions_are_noted():
    assert len(notes_of(audited().notes, NoteKind.CUT_OFF_TIMES)) == 1
    who = people()
    found = audit(who.forecast(), y=Outcomes(who.event_at, np.ones(2000)), **QUICK)
    assert notes_of(found.notes, NoteKind.NO_TIME_CUT_OFF)


def test_log_score_of_cut_off_times_is_that_of_a_later_time():
    who = people()
    for horizon in (None, 2.0):
        z = stats.norm.ppf(forecast_cdf(np.minimum(who.time, horizon or np.inf), who.x))
        event = who.event & (who.time <= (horizon or np.inf))
        density = stats.norm.logpdf(z) - np.log(SCALE * who.time)
        expected = -np.where(event, density, stats.norm.logsf(z)).mean()
        # the grid of the curves is coarse in time
        assert audited(horizon).score("log score") == pytest.approx(expected, abs=0.01)
        assert "CRPS" not in list(audited(horizon).scores["measure"])


def randomized(forecast, alpha, draws):
    """Randomize the time, or the time of an event before a horizon."""
    link = make_link("entropic", alpha)
    inside = forecast.distribution
    if isinstance(inside, Hurdle):
        served = Randomized(inside.positive, link, draws)
        return Forecast(Hurdle(inside.chance, served, inside.at, inside.end), draws)
    return Forecast(Randomized(inside, link, draws), draws)


def test_sizes_of_randomized_forecasts_are_those_of_the_served_pits():
    """PITs of the outcome and of the cut depend on one draw, which Kaplan-Meier does not allow."""
    who = people()
    served = randomized(who.forecast(), 0.12, np.random.default_rng(4).random(2000))
    found = audit(served, table_of(who), who.times(), groups=["site"], **QUICK)
    true = np.asarray(served.cdf(who.event_at))
    for name, mask in (("site = a", ~who.is_shifted), ("site = b", who.is_shifted)):
        one = row(found.groups, name)
        error = calibration_error(true[mask])
        # standard errors are about 0.01 and 0.02
        assert one["km_error"] == pytest.approx(error, abs=0.06)
        assert one["km_error_low"] <= error <= one["km_error_high"]
        assert one["least_error"] <= error <= one["most_error"]
    assert not row(found.groups, "site = a")["off"]
    assert row(found.groups, "site = b")["off"]
    # without the base the error of calibrated forecasts would seem to be about 0.08
    assert row(found.groups, "site = a")["km_error"] < 0.04


@pytest.mark.parametrize("horizon", [None, 2.0])
@pytest.mark.parametrize("is_randomized", [False, True])
def test_tested_pits_are_uniform_under_calibrated_forecasts(horizon, is_randomized):
    """Uniform positions would fail for randomized ones; each test fails for 1 of 1,000 seeds."""
    who = people(4000, 3, 0.0)
    forecast = who.forecast(horizon)
    if is_randomized:
        forecast = randomized(forecast, 0.3, np.random.default_rng(4).random(4000))
    times = Outcomes(who.time, who.event, horizon)
    found = read_subject(Audited(forecast, None), times, np.random.default_rng(5))
    assert stats.kstest(found.cells.drawn[:, 0], "uniform").pvalue > 0.001


def test_events_in_whole_units_have_cells_and_cuts_have_none():
    who = people(4000, 3, 0.0)
    # events are recorded in quarters; many people are cut off at 3
    time = np.where(who.event, np.round(4 * who.time) / 4, np.minimum(who.time, 3.0))
    event = who.event & ~((who.time > 3) | (time > 3))
    time = np.where(event, time, np.minimum(time, 3.0))
    times = Outcomes(time, event)
    with warnings.catch_warnings(action="error"):
        found = read_subject(Audited(who.forecast(), None), times, np.random.default_rng(5))
    low, high = found.cells.low[:, 0], found.cells.high[:, 0]
    assert (high[event] > low[event]).all()
    assert (high[~event] == 1).all()
    for known, unit in ((low, -1 / 8), (high, 1 / 8)):
        expected = who.forecast().cdf(np.maximum(time + unit, 0.0))
        np.testing.assert_allclose(known[event], expected[event], atol=1e-9)


def test_intervals_without_a_draw_are_those_of_the_forecaster_inside_a_link():
    """Whoever was lost is at the worst position, also where events are recorded in whole units."""
    who = people(1000, 3, 0.0)
    times = Outcomes(np.ceil(who.time), who.event, horizon=4.0)
    forecast = who.forecast()
    served = randomized(forecast, 0.2, np.random.default_rng(4).random(1000))
    plain, inside = (certify(one, y=times, random_state=0) for one in (forecast, served))
    assert plain.plain_intervals(0.5) == inside.plain_intervals(0.5)


@pytest.mark.parametrize(
    ("horizon", "option"), [(None, "weight"), (1.0, "person"), (1.0, "probable")]
)
def test_audits_of_times_take_each_kind_of_row_and_group(horizon, option, tmp_path):
    who, random = people(600, 21), np.random.default_rng(3)
    given = {
        "weight": {"weight": random.uniform(0.5, 2, 600)},
        "person": {"person": np.arange(600) // 2},
        "probable": {},
    }[option]
    times = Outcomes(who.time, who.event, horizon, **given)
    probable = {"p": random.uniform(0.01, 0.99, 600), "b": who.is_shifted}
    groups = probable if option == "probable" else ["site"]
    found = audit(who.forecast(horizon), table_of(who), times, groups=groups, **QUICK)
    jsonschema.Draft202012Validator(audit_schema()).validate(json.loads(found.to_json()))
    assert "survival.csv" in [path.name for path in found.to_csv(tmp_path)]
    sizes = found.groups[["km_error", "km_error_low", "km_error_high"]]
    assert sizes.notna().all(axis=None)
    if option == "probable":
        # the members are not known, so nothing is proven for them
        assert np.isnan(row(found.groups, "p")["most_error"])
        assert found.membership.empty


def test_a_group_that_was_not_followed_to_the_horizon_has_no_upper_end():
    """Half of the people were seen for at most 1.2: the last value of Kaplan-Meier is no rate."""
    random = np.random.default_rng(11)
    n = 600
    late = np.arange(n) < n // 2
    T = random.exponential(1.0, n)
    C = np.where(late, random.uniform(0, 1.2, n), 5.0)
    grid = np.linspace(0.1, 4, 40)
    curves = Forecast.from_survival(grid, np.tile(np.exp(-grid), (n, 1)), horizon=2.0)
    times = Outcomes(np.minimum(T, C), T <= C, horizon=2.0)
    of_late = row(audit(curves, y=times, groups={"late": late}, **QUICK).survival, "late")
    assert of_late["observed"] < 0.8 < of_late["predicted"] < of_late["high"]
    assert of_late["high"] == of_late["most"]
