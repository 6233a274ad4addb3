"""Fitted survival models of lifelines and scikit-survival as forecasts of times (outcomes: 5)."""

import warnings

import lifelines
import numpy as np
import pandas as pd
import pytest
from lifelines.datasets import load_rossi
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxnetSurvivalAnalysis, CoxPHSurvivalAnalysis

import evenhand
from complaints import refused
from evenhand.distributions import OutcomeKind, SurvivalCurves
from evenhand.forecast import Forecast
from evenhand.forecasters import RandomizedRegressor, SurvivalModel
from parts_examples import QUICK_AUDIT

ROSSI = load_rossi()
TRAIN, TEST = ROSSI[:300], ROSSI[300:]
FEATURES = [name for name in ROSSI.columns if name not in ("week", "arrest")]


def as_structured(rows):
    pairs = list(zip(rows["arrest"].astype(bool), rows["week"], strict=True))
    return np.array(pairs, dtype=[("event", bool), ("time", float)])


@pytest.fixture(scope="module")
def cox():
    return lifelines.CoxPHFitter().fit(TRAIN, "week", "arrest")


@pytest.fixture(scope="module")
def forest():
    model = RandomSurvivalForest(n_estimators=20, min_samples_leaf=15, random_state=0)
    return model.fit(TRAIN[FEATURES], as_structured(TRAIN))


def lognormal_rows(n, seed):
    """Lognormal times of a known model, half of them cut off."""
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    time = np.exp(1 + 0.5 * x + 0.8 * random.normal(size=n))
    last = random.exponential(4.0, size=n)
    return pd.DataFrame({"x": x, "t": np.minimum(time, last), "e": time <= last})


def test_a_cox_model_of_lifelines_keeps_its_survival_probabilities(cox):
    forecast = SurvivalModel(cox).forecast(TEST)
    weeks = [5.0, 17.0, 33.0, 52.0]
    theirs = cox.predict_survival_function(TEST, times=weeks).to_numpy().T
    ours = np.stack([1 - forecast.cdf(week) for week in weeks], axis=1)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("fitter", ["WeibullAFTFitter", "LogLogisticAFTFitter"])
def test_parametric_models_agree_with_their_own_curves_also_between_and_beyond_the_times(fitter):
    rows = lognormal_rows(2000, 0)
    model = getattr(lifelines, fitter)().fit(rows, "t", "e")
    some = rows[:200]
    forecast = SurvivalModel(model).forecast(some)
    # lifelines evaluates each person's curve at the times of all: the diagonal are their own
    theirs = np.diag(model.predict_survival_function(some, times=some["t"]).to_numpy())
    # linear between about a hundred times: at most 0.011 and on average 0.0001 was measured
    gap = np.abs(1 - forecast.cdf(some["t"]) - theirs)
    assert gap.max() < 0.02
    assert gap.mean() < 5e-4
    late = rows["t"].max() * np.array([1.5, 3.0, 10.0])
    theirs = model.predict_survival_function(rows[:200], times=late).to_numpy().T
    ours = np.stack([1 - forecast.cdf(time) for time in late], axis=1)
    assert np.abs(ours - theirs).max() < 0.01


def test_rows_keep_their_order_and_may_share_labels():
    # lifelines returns people of a stratified model by stratum
    model = lifelines.CoxPHFitter(strata=["race"]).fit(TRAIN, "week", "arrest")
    many = TEST.set_axis([7] * len(TEST))
    together = SurvivalModel(model).survival(many)
    alone = [SurvivalModel(model).survival(TEST[i : i + 1])[0] for i in range(12)]
    np.testing.assert_allclose(together[:12], alone, rtol=1e-9)


def test_models_of_scikit_survival_keep_their_step_functions(forest):
    grid = [3.0, 20.5, 51.0]
    pipeline = make_pipeline(StandardScaler(), CoxPHSurvivalAnalysis())
    for model in (forest, pipeline.fit(TRAIN[FEATURES], as_structured(TRAIN))):
        ours = SurvivalModel(model, times=grid).survival(TEST[FEATURES])
        steps = model.predict_survival_function(TEST[FEATURES])
        np.testing.assert_allclose(ours, [[step(time) for time in grid] for step in steps])


def test_before_the_first_training_time_everybody_survives():
    # StepFunction of scikit-survival continues the first step to time 0, lifelines does too
    late = TRAIN.assign(week=TRAIN["week"] + 100)
    for model, columns in (
        (lifelines.CoxPHFitter().fit(late, "week", "arrest"), late.columns),
        (CoxPHSurvivalAnalysis().fit(late[FEATURES], as_structured(late)), FEATURES),
    ):
        made = SurvivalModel(model, times=[50.0, 100.5, 130.0])
        assert (made.survival(late[columns])[:, :2] == 1).all()
        assert made.forecast(late[columns]).cdf(100.0).max() < 1e-6


def test_aalens_additive_model_predicts_curves_that_fall():
    model = lifelines.AalenAdditiveFitter(coef_penalizer=1.0).fit(TRAIN, "week", "arrest")
    curves = SurvivalModel(model, horizon=40).survival(TEST)
    assert (np.diff(curves, axis=1) <= 0).all()
    assert curves.min() >= 0
    assert curves.max() <= 1
    theirs = model.predict_survival_function(TEST).to_numpy().T
    known = model.predict_survival_function(TEST).index.to_numpy()
    lowest = np.clip(theirs[:, known <= 40], 0, 1).min(axis=1)
    assert (curves[:, -1] >= lowest - 1e-12).all()
    assert np.abs(curves[:, -1] - lowest).max() < 0.02


@pytest.mark.filterwarnings("ignore::evenhand.DiscreteOutcomeWarning")
def test_audits_and_certificates_take_fitted_models(cox, forest):
    times = evenhand.Outcomes(TEST["week"], TEST["arrest"])
    for model, rows in ((cox, TEST), (forest, TEST[FEATURES])):
        found = evenhand.audit(model, rows, times, **QUICK_AUDIT)
        forecast = SurvivalModel(model).forecast(rows)
        given = evenhand.audit(forecast, rows, times, **QUICK_AUDIT)
        np.testing.assert_allclose(found.scores["value"], given.scores["value"])
    made = SurvivalModel(cox, horizon=52)
    by_the_end = evenhand.Outcomes(TEST["week"], TEST["arrest"], horizon=52)
    evenhand.certify(made, TEST, by_the_end, random_state=0)


@pytest.mark.parametrize("horizon", [None, 30.0])
def test_links_randomize_them(cox, horizon):
    model = RandomizedRegressor(SurvivalModel(cox, horizon), alpha=0.1)
    times = np.minimum(TEST["week"], horizon or np.inf)
    # that many times end with the study is no reason for a warning about atoms
    with warnings.catch_warnings():
        warnings.simplefilter("error", evenhand.DiscreteOutcomeWarning)
        # clones keep the fitted model
        model = clone(model).fit(TEST, times)
    forecast = model.forecast(TEST, random_state=0)
    assert forecast.is_randomized
    if horizon is not None:
        base = SurvivalModel(cox, horizon).forecast(TEST)
        assert np.array_equal(forecast.event_probability(), base.event_probability())


def test_saved_forecasters_take_the_survival_model_back(cox, tmp_path):
    linear = CoxPHSurvivalAnalysis().fit(TRAIN[FEATURES], as_structured(TRAIN))
    week = TEST["week"].clip(upper=30)
    for inner, rows in ((cox, TEST), (linear, TEST[FEATURES])):
        model = RandomizedRegressor(SurvivalModel(inner, 30), alpha=0.1).fit(rows, week)
        alone = model.estimator_
        for stored, kept in ((model, inner), (model, alone), (alone, inner)):
            folder, name = tmp_path / type(inner).__name__, type(inner).__name__
            with pytest.warns(UserWarning, match=f"saved without an inner model: {name}"):
                evenhand.save(stored, folder)
            again = evenhand.load(folder, estimator=kept)
            expected = stored.forecast(rows, 0.3).ppf(0.2)
            assert np.array_equal(again.forecast(rows, 0.3).ppf(0.2), expected)
            # a new fit of the loaded model keeps the horizon
            if stored is model:
                assert np.array_equal(again.fit(rows, week).forecast(rows, 0.3).ppf(0.2), expected)


def test_models_without_curves_are_refused_and_fitted_ones_not_refitted(cox):
    coxnet = CoxnetSurvivalAnalysis().fit(TRAIN[FEATURES].astype(float), as_structured(TRAIN))
    for model, message in (
        (coxnet, "fit_baseline_model"),
        (LinearRegression(), "predict_survival_function, got LinearRegression"),
        (lifelines.CoxPHFitter(), "be a fitted model .* got CoxPHFitter; fit it first"),
        (RandomSurvivalForest(), "be a fitted model .* got RandomSurvivalForest; fit it first"),
    ):
        refused(message, SurvivalModel, model)
    week = TEST["week"] + 0.01 * np.arange(len(TEST))
    refused("fit it with its own fit, .* FrozenEstimator", RandomizedRegressor(cox).fit, TEST, week)


def test_horizons_and_times_beyond_what_a_model_predicts_are_refused(cox, forest):
    for model in (cox, forest):
        refused("horizon must be at most 52, the last training time", SurvivalModel, model, 60)
        refused("times must be at most 52", SurvivalModel, model, times=[10, 60])
    found = SurvivalModel(lifelines.WeibullAFTFitter().fit(TRAIN, "week", "arrest"), 60).horizon
    assert found == 60


def test_messages_name_the_column_or_the_row(cox):
    forecast = SurvivalModel(cox).forecast
    fewer = TEST.drop(columns="prio")
    refused("columns that CoxPHFitter was fitted on.*prio", forecast, fewer)
    missing = TEST.astype({"age": float}).reset_index(drop=True)
    missing.loc[3, "age"] = np.nan
    refused(r"X\[3\] must have a survival curve by CoxPHFitter", forecast, missing)
    refused("at least one row", forecast, TEST[:0])


# --- forecasts of times from survival probabilities (outcomes: 5)


TIMES = np.array([0.5, 1.0, 2.0, 4.0])
CURVES = np.array(
    [
        [0.9, 0.7, 0.4, 0.1],
        [0.9, 0.9, 0.4, 0.4],  # flat parts
        [1.0, 1.0, 1.0, 1.0],  # nobody has the event
        [0.5, 0.2, 0.0, 0.0],  # everybody has it before the last time
    ]
)


def survival_by_hand(curve, time):
    """Linear between (0, 1) and the given points, and exponential beyond them."""
    inside = np.interp(time, np.append(0, TIMES), np.append(1, curve))
    hazard = -np.log(curve[-1]) / TIMES[-1]
    return np.where(time <= TIMES[-1], inside, curve[-1] * np.exp(-hazard * (time - TIMES[-1])))


def test_curves_pass_through_the_given_probabilities():
    curves = SurvivalCurves(TIMES, CURVES)
    ours = np.stack([curves.sf(time) for time in TIMES], axis=1)
    # a billionth of the probability is spread over curves with flat parts
    np.testing.assert_allclose(ours, CURVES, atol=2e-9)
    np.testing.assert_allclose(curves.cdf(0.0), 0, atol=1e-200)


def test_exponential_times_are_reproduced_with_their_tail():
    rates = np.array([0.3, 1.0, 2.5])
    law = stats.expon(scale=1 / rates)
    grid = np.linspace(0, 4, 2001)[1:]
    curves = SurvivalCurves(grid, np.exp(-rates[:, None] * grid))
    for y in (0.01, 0.7, 3.9, 9.0, 30.0):
        np.testing.assert_allclose(curves.cdf(y), law.cdf(y), atol=2e-6)
        np.testing.assert_allclose(curves.logsf(y), law.logsf(y), rtol=1e-5, atol=2e-6)
        # a density between two times is that of their middle
        np.testing.assert_allclose(curves.logpdf(y), law.logpdf(y), atol=3e-3)
        # CRPS of an exponential distribution, Gneiting & Raftery 2007
        crps = y - 2 * law.cdf(y) / rates + 1 / (2 * rates)
        np.testing.assert_allclose(curves.crps(y), crps, atol=1e-5)
    np.testing.assert_allclose(curves.mean(), 1 / rates, rtol=1e-5)
    np.testing.assert_allclose(curves.std(), 1 / rates, rtol=1e-5)
    for p in (1e-6, 0.3, 0.97, 1 - 1e-9):
        np.testing.assert_allclose(curves.ppf(p), law.ppf(p), rtol=5e-4, atol=1e-8)


def test_rows_without_events_and_rows_that_end_are_proper_distributions():
    curves = SurvivalCurves(TIMES, CURVES)
    assert curves.cdf(4.0)[2] == pytest.approx(1e-9, rel=1e-3)
    assert curves.cdf(2.0)[3] == pytest.approx(1)
    assert curves.ppf(1 - 1e-12)[3] < 4.001
    for y in (0.0, 0.2, 3.0, 4.0, 1e6):
        assert np.isfinite(curves.logcdf(y)).all()
        assert np.isfinite(curves.crps(y)).all()
        assert (curves.logpdf(y) > -np.inf).all()
    assert np.isneginf(curves.logcdf(-1.0)).all()
    rising = np.stack([curves.logsf(y) for y in np.linspace(0, 12, 200)])
    assert (np.diff(rising, axis=0) <= 0).all()
    lone = SurvivalCurves([3.0], [0.25])
    assert lone.ppf(0.75) == pytest.approx(3.0)
    assert lone.sf(6.0) == pytest.approx(0.25**2)


@pytest.mark.parametrize("horizon", [0.2, 1.0, 1.3, 4.0, 9.0])
def test_horizon_cuts_the_same_distribution(horizon):
    plain = Forecast.from_survival(TIMES, CURVES[:2])
    ended = Forecast.from_survival(TIMES, CURVES[:2], horizon)
    assert (plain.outcome_kind, ended.outcome_kind) == (OutcomeKind.CONTINUOUS, OutcomeKind.HURDLE)
    expected = [1 - survival_by_hand(curve, np.array(horizon)) for curve in CURVES[:2]]
    np.testing.assert_allclose(ended.event_probability(), expected, atol=2e-9)
    for time in (0.3 * horizon, 0.99 * horizon):
        np.testing.assert_allclose(ended.cdf(time), plain.cdf(time), rtol=1e-8)
        within = plain.cdf(time) / plain.cdf(horizon)
        np.testing.assert_allclose(ended.positive_part().cdf(time), within, rtol=1e-8)
    low, high = ended.pit_interval([horizon, horizon])
    np.testing.assert_allclose(low, plain.cdf(horizon), rtol=1e-8)
    np.testing.assert_allclose(high, 1)
    # who is lost may have any later outcome
    low, high = ended.cdf(0.1, left=True), ended.cdf(np.inf)
    np.testing.assert_allclose(low, plain.cdf(0.1))
    np.testing.assert_allclose(high, 1)


@pytest.mark.parametrize("horizon", [2.0, 9.0])
def test_hurdle_form_has_rows_in_which_everybody_or_nobody_has_the_event(horizon):
    ended = Forecast.from_survival(TIMES, CURVES[2:], horizon)
    np.testing.assert_allclose(ended.event_probability(), [0, 1], atol=1e-8)
    assert np.isfinite(ended.log_density(np.array([0.4, 0.4]))).all()
    low, high = ended.pit_interval([0.7, 0.7])
    assert ((low >= 0) & (high <= 1)).all()


def test_bad_curves_are_refused():
    def wrong(message, curve, times=(1.0, 2.0)):
        refused(message, Forecast.from_survival, times, [curve])

    wrong(r"times\[0\] must be above 0, got 0.0; leave out time 0", [1.0, 0.5], [0.0, 1.0])
    wrong(r"survival\[0, 1\] must fall, got 0.6 after 0.5", [0.5, 0.6])
    wrong(r"survival\[0, 0\] must lie between 0 and 1, got 90.0; give a fr", [90, 80])
    wrong(r"survival\[0, 1\] must lie between 0 and 1, got nan", [0.9, np.nan])
