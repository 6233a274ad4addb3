"""What holds for every forecaster, and what is particular to one of its kinds."""

import copy
import json
import tempfile
import warnings
from functools import cache
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from scipy.stats import mstats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from complaints import refused
from evenhand import DiscreteOutcomeWarning, Forecast, InputError, audit, load, save
from evenhand._validate import outcomes_checked
from evenhand.distributions import Hurdle, OutcomeKind
from evenhand.draws import nodes
from evenhand.forecasters import (
    BoostedDistributionRegressor,
    ClassifierForecaster,
    CountRegressor,
    HurdleRegressor,
    RandomizedRegressor,
    RecalibratedRegressor,
    as_forecaster,
)
from evenhand.store import pack
from evenhand.tables import UnseenValuesWarning
from forecaster_examples import (
    DISCRETE,
    EXAMPLES,
    Example,
    as_amounts,
    as_counts,
    as_events,
    as_scores,
    linear_task,
    small_mixture,
    small_paic,
)
from parts_examples import QUICK_AUDIT

N = 120
X, Y = linear_task(N)
TABLE = pd.DataFrame(X, columns=["a", "b", "c"])
R = np.random.default_rng(1).uniform(size=(N, 3))
TIES = np.random.default_rng(2).uniform(size=N)

CONTINUOUS = (
    *("PAICRegressor", "MixtureMLPRegressor", "BoostedDistributionRegressor"),
    *("RandomizedRegressor(Ridge)", "RandomizedRegressor(QuantileRegressor)"),
    "RecalibratedRegressor(BayesianRidge)",
)
WITH_ATOMS = (
    *("CountRegressor(PoissonRegressor)", "ClassifierForecaster(None)"),
    "ClassifierForecaster(LogisticRegression), scores",
    "HurdleRegressor(LogisticRegression, BayesianRidge)",
    *("RandomizedRegressor(LogisticRegression), scores", "RandomizedRegressor(HurdleRegressor)"),
)
FORECASTERS = EXAMPLES | DISCRETE
every = pytest.mark.parametrize("name", [*CONTINUOUS, *WITH_ATOMS])
every_continuous = pytest.mark.parametrize("name", CONTINUOUS)


def fit(name, rows=X, weight=None, **params):
    example = FORECASTERS[name]
    return example.make(**params).fit(rows, example.outcomes(Y), weight)


@cache
def fitted(name):
    """Return an example fitted to the same rows, once; tests leave it as it is."""
    with warnings.catch_warnings(action="error", category=DiscreteOutcomeWarning):
        return fit(name)


def numbers(forecast, name):
    y, ties = FORECASTERS[name].outcomes(Y)[: len(forecast)], TIES[: len(forecast)]
    columns = [forecast.pit(y, ties=ties), forecast.log_density(y), forecast.mean()]
    return np.stack([*columns, *np.moveaxis(forecast.ppf([0.1, 0.9]), -1, 0)])


def close(first, second, name, atol=0.0):
    return np.allclose(numbers(first, name), numbers(second, name), rtol=0, atol=atol)


def same(first, second):
    y = Y[: len(first)]
    return np.array_equal(first.pit(y), second.pit(y)) and np.array_equal(
        first.logpdf(y), second.logpdf(y)
    )


def column(forecast, j):
    pit = forecast.pit(Y[: len(forecast)])
    return pit[:, j] if pit.ndim == 2 else pit


@every
def test_forecasts_are_of_their_kind(name):
    example = FORECASTERS[name]
    forecast, y = fitted(name).forecast(X, R), example.outcomes(Y)
    assert forecast.outcome_kind is example.kind
    assert fitted(name).outcome_kind_of(y) is example.kind
    assert forecast.is_randomized == example.is_randomized
    assert forecast.distribution.batch_shape == ((N, 3) if example.is_randomized else (N,))
    # the outcomes are possible, and each cell lies between 0 and 1
    low, high = forecast.pit_interval(y)
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()
    assert np.isfinite(forecast.log_density(y)).all()
    fresh, y = linear_task(400, seed=5)
    assert fitted(name).score(fresh, example.outcomes(y)) > 0.3


@every
def test_equal_weights_are_no_weights_and_rows_of_weight_zero_no_rows(name):
    # optimizers stop at slightly different points
    atol = 1e-4 if name in DISCRETE else 1e-6
    expected = fitted(name).forecast(X, R)
    assert close(fit(name, weight=np.ones(N)).forecast(X, R), expected, name, atol)
    uneven = fit(name, weight=np.exp(2 * X[:, 0]))
    assert not close(uneven.forecast(X, R), expected, name, 1e-2)
    example, used = FORECASTERS[name], np.arange(N) % 4 > 0
    some = example.make().fit(X[used], example.outcomes(Y)[used], np.ones(used.sum()))
    dropped = fit(name, weight=used.astype(float))
    assert close(dropped.forecast(X, R), some.forecast(X, R), name, atol)


@every
def test_copies_forecast_the_same(name):
    model = fitted(name)
    assert close(copy.deepcopy(model).forecast(X, R), model.forecast(X, R), name)
    # arrays that a worker maps from a file cannot be written to
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        joblib.dump(model, f"{folder}/model")
        mapped = joblib.load(f"{folder}/model", mmap_mode="r")
        assert close(mapped.forecast(X, R), model.forecast(X, R), name)


@every_continuous
def test_draws_of_every_shape_mean_the_same(name):
    model, is_randomized = fitted(name), EXAMPLES[name].is_randomized
    wide = model.forecast(X, R)
    assert wide.n_samples == N
    for j in range(3):
        person = model.forecast(X, R[:, j])
        assert person.distribution.batch_shape == (N,)
        # sums in matrix products may be ordered differently: 1e-16 times their terms
        np.testing.assert_allclose(person.pit(Y), column(wide, j), rtol=0, atol=1e-12)
    shared = model.forecast(X, [[0.2, 0.5, 0.9]])
    assert shared.distribution.batch_shape == ((N, 3) if is_randomized else (N,))
    for j, r in enumerate((0.2, 0.5, 0.9)):
        everybody = model.forecast(X, r)
        assert everybody.distribution.batch_shape == (N,)
        np.testing.assert_allclose(everybody.pit(Y), column(shared, j), rtol=0, atol=1e-12)
    if is_randomized:
        assert np.array_equal(wide.r, R)
        assert not np.allclose(column(shared, 0), column(shared, 2))
    else:
        assert same(wide, shared)


@every_continuous
def test_fresh_draws_follow_the_random_state(name):
    model = fitted(name)
    forecast = model.forecast(X, random_state=3)
    assert same(forecast, model.forecast(X, random_state=3))
    assert same(forecast, model.forecast(X, random_state=np.random.default_rng(3)))
    others = model.forecast(X, random_state=4), model.forecast(X), model.forecast(X)
    if not EXAMPLES[name].is_randomized:
        assert all(same(forecast, other) for other in others)
        return
    assert forecast.r.shape == (N,)
    assert same(forecast, model.forecast(X, forecast.r))
    draws = [one.r for one in (forecast, *others) if one.r is not None]
    assert not any(np.array_equal(draws[i], draws[j]) for i in range(4) for j in range(i))


@every_continuous
def test_predict_is_the_mean_of_the_base_or_over_64_draws(name, monkeypatch):
    model = fitted(name)
    predicted = model.predict(X)
    assert predicted.shape == (N,)
    assert predicted.dtype == np.float64
    if hasattr(model, "base_forecast") and EXAMPLES[name].is_randomized:
        expected = model.base_forecast(X[:10]).mean()
    else:
        # ten rows, as 640 people with a draw each
        people = model.forecast(np.repeat(X[:10], 64, axis=0), np.tile(nodes(64)[0], 10)).mean()
        expected = people.reshape(10, 64).mean(axis=1)
    np.testing.assert_allclose(predicted[:10], expected, rtol=0, atol=1e-9)
    # a few rows at a time
    monkeypatch.setattr("evenhand.forecasters.base.POINT_ROWS", 7)
    np.testing.assert_allclose(model.predict(X), predicted, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.predict(X[:1]), predicted[:1], rtol=0, atol=1e-9)
    # both at once are those of the two methods
    r = R[:, 0]
    forecast, mean = model.forecast_and_predict(X, r)
    np.testing.assert_allclose(forecast.pit(Y), model.forecast(X, r).pit(Y), rtol=0, atol=1e-12)
    np.testing.assert_allclose(mean, model.predict(X), rtol=1e-12)
    first, second = (model.forecast_and_predict(X, R[:, i]) for i in (0, 1))
    np.testing.assert_allclose(first[1], second[1], rtol=1e-12)
    assert EXAMPLES[name].is_randomized == (not np.allclose(first[0].pit(Y), second[0].pit(Y)))


@pytest.mark.parametrize("kind", [RecalibratedRegressor, RandomizedRegressor])
def test_intervals_are_between_quantiles_and_cover_as_often_as_asked(kind):
    fresh, y = linear_task(20_000, seed=1)
    model = kind(BayesianRidge(), random_state=0).fit(*linear_task(4000))
    low, high = model.predict_interval(fresh, coverage=0.8).T
    if kind is RecalibratedRegressor:
        expected = model.forecast(fresh).ppf([0.1, 0.9]).T
        np.testing.assert_allclose([low, high], expected, rtol=1e-12)
    # deviations 0.009 of the fit and 0.003 of the share; intervals cover on average over draws
    assert abs(((low <= y) & (y <= high)).mean() - 0.8) < 0.03


@every_continuous
def test_all_numbers_of_a_row_are_the_same_alone_and_among_others(name):
    model, r = fitted(name), R[:, 0].copy()
    r[7:9] = 1e-13, 1 - 1e-14  # draws as extreme as these must not matter to others

    def numbers(rows):
        forecast, mean = model.forecast_and_predict(X[rows], r[rows])
        return np.column_stack(
            [mean, forecast.ppf([0.05, 0.5, 0.95]), forecast.mean(), forecast.std()]
        )

    alone = np.concatenate([numbers(slice(i, i + 1)) for i in range(9)])
    np.testing.assert_allclose(alone, numbers(slice(None))[:9], rtol=1e-9)


@every_continuous
def test_fits_with_one_seed_are_identical_and_others_are_not(name):
    def fit(seed):
        return EXAMPLES[name].make(random_state=seed).fit(X, Y).forecast(X, R)

    five = fit(5)
    assert same(five, fit(5))
    np.random.seed(77)  # noqa: NPY002
    torch.manual_seed(77)
    assert same(five, fit(np.random.default_rng(5)))
    for other in (fit(6), fit(None), fit(None)):
        assert same(five, other) == ("QuantileRegressor" in name)
        five = other


def test_parameters_of_numpy_types_can_be_stored():
    given = {"hidden": np.array([8, 8]), "max_steps": np.int64(2), "learning_rate": np.float32(0.1)}
    state = small_mixture(**given, random_state=np.random.default_rng(0)).fit(X, Y).to_state()
    assert json.loads(json.dumps(state.params))["params"]["random_state"] is None


def test_bad_training_rows_are_one_line_errors():
    fit = RandomizedRegressor(Ridge()).fit
    refused(r"y is constant \(2 in all 120 rows\)", fit, X, np.full(N, 2.0))
    refused("y is missing", fit, X, None)
    both = np.column_stack([Y, Y])
    refused(r"y must have one column, got shape \(120, 2\)", fit, X, both)
    refused("X must have at least one row", fit, TABLE[:0], Y[:0])
    refused("X must have at least 2 rows, got n_samples = 1", fit, X[:1], Y[:1])


@every_continuous
def test_discrete_outcomes_are_warned_about_once(name):
    halves = np.round(2 * Y) / 2
    with pytest.warns(DiscreteOutcomeWarning, match="ClassifierForecaster") as caught:
        model = EXAMPLES[name].make().fit(X, halves)
    assert len([one for one in caught if one.category is DiscreteOutcomeWarning]) == 1
    assert np.isfinite(model.predict(X)).all()
    with warnings.catch_warnings(), outcomes_checked():
        warnings.simplefilter("error", DiscreteOutcomeWarning)
        EXAMPLES[name].make().fit(X, halves)
        # inside a caller that has checked all outcomes, a fold may be constant
        constant = EXAMPLES[name].make().fit(X, np.full(N, 0.3))
    assert np.isfinite(constant.predict(X)).all()


class Truth(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X, return_std=False):
        mean, std = np.sin(3 * X[:, 0]) + X[:, 1], 0.2 + np.abs(X[:, 1])
        return (mean, std) if return_std else mean


def wavy_task(n, seed):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, 2))
    mean, std = Truth().predict(rows, return_std=True)
    return rows, mean + std * random.normal(size=n)


GROUPS = {
    "everyone": lambda rows: np.ones(len(rows), dtype=np.bool_),
    "noisy": lambda rows: np.abs(rows[:, 1]) > 1,
    "quiet": lambda rows: np.abs(rows[:, 1]) < 0.3,
    "left": lambda rows: rows[:, 0] < 0,
    "corner": lambda rows: (rows[:, 0] > 0.5) & (rows[:, 1] > 0.5),
}


@pytest.mark.parametrize(
    ("link", "alpha"), [("entropic", 0.05), ("gaussian", 0.3), ("entropic", 1.0)]
)
def test_pits_are_uniform_in_every_group_if_the_model_is_the_truth(link, alpha):
    rows, y = wavy_task(4000, seed=2)
    model = RandomizedRegressor(Truth(), alpha, link).fit(*wavy_task(100, seed=3))
    pit = model.forecast(rows, random_state=4).pit(y)
    # Kolmogorov and Smirnov, 30 tests: a false alarm in 3e-5 of all seeds
    for group in GROUPS.values():
        assert stats.kstest(pit[group(rows)], "uniform").pvalue > 1e-6


class Refusing(Ridge):
    def fit(self, X, y, sample_weight=None):
        assert not hasattr(self, "coef_")
        super().fit(X, y, sample_weight)
        return self


@pytest.mark.parametrize(
    "inner", [Refusing(), make_pipeline(StandardScaler(), Refusing())], ids=["model", "pipeline"]
)
def test_a_frozen_model_is_used_as_it_is(inner):
    trained = clone(inner).fit(X[:60], Y[:60])
    model = RandomizedRegressor(FrozenEstimator(trained), random_state=0).fit(X[60:], Y[60:])
    assert model.estimator_.estimator is trained
    # the law is that of the residuals on the new rows, none of them left out
    residuals = Y[60:] - trained.predict(X[60:])
    levels = (np.arange(10) + 0.5) / 10  # 2 * 60^0.4 = 10.3
    expected = mstats.mquantiles(residuals, levels, alphap=0, betap=0)
    found = model.base_forecast(X[:1]).ppf(levels)[0] - trained.predict(X[:1])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    stored = RandomizedRegressor.from_state(model.to_state())
    assert same(stored.forecast(X, R), model.forecast(X, R))
    # few rows are enough where no folds are cut
    with outcomes_checked():
        RandomizedRegressor(FrozenEstimator(trained)).fit(X[:3], Y[:3])


def test_a_spread_of_zero_is_made_a_tiny_one_whatever_other_rows_say():
    model = RandomizedRegressor(GaussianProcessRegressor(alpha=1e-10)).fit(X[:40], Y[:40])
    model.estimator_.predict = lambda X, return_std: (np.zeros(len(X)), np.zeros(len(X)))
    spread = model.base_forecast(X[:7]).std()
    assert (spread == spread[0]).all()
    assert 0 < spread[0] < 1e-6
    assert np.array_equal(model.base_forecast(X[:1]).std(), spread[:1])


def kfold_of(seed, cv):
    return KFold(cv, shuffle=True, random_state=int(np.random.default_rng(seed).integers(2**31)))


@pytest.mark.parametrize(("estimator", "cv"), [(Ridge(), 5), (KNeighborsRegressor(3), 4)])
def test_law_of_a_plain_model_is_that_of_its_cross_fitted_residuals(estimator, cv):
    model = RandomizedRegressor(estimator, cv=cv, spread="constant", random_state=7).fit(X, Y)
    residuals = Y - cross_val_predict(estimator, X, Y, cv=kfold_of(7, cv))
    levels = (np.arange(14) + 0.5) / 14  # 2 * 120^0.4 = 13.6
    # a new residual is below the i-th of n with probability i / (n + 1)
    expected = mstats.mquantiles(residuals, levels, alphap=0, betap=0)
    centre = clone(estimator).fit(X, Y).predict(X)
    found = model.base_forecast(X).ppf(levels)
    np.testing.assert_allclose(found, centre[:, None] + expected, rtol=0, atol=1e-12)
    ours = model.base_forecast(X).cdf(centre + expected[4])
    np.testing.assert_allclose(ours, levels[4], rtol=0, atol=1e-12)


def test_weights_enter_the_models_and_the_law():
    weight = np.random.default_rng(4).integers(1, 4, size=N).astype(float)
    model = RandomizedRegressor(Ridge(alpha=30.0), spread="constant", random_state=7)
    model.fit(X, Y, weight)
    # weights reach the model as given: a ridge with others shrinks otherwise
    found = model.estimator_.coef_
    np.testing.assert_allclose(found, Ridge(alpha=30.0).fit(X, Y, weight).coef_, rtol=1e-12)
    residuals = np.empty(N)
    for learn, hold in kfold_of(7, 5).split(X):
        part = Ridge(alpha=30.0).fit(X[learn], Y[learn], weight[learn])
        residuals[hold] = Y[hold] - part.predict(X[hold])
    # the weight below and half of the row's own, in units of the effective number of rows
    effective = weight.sum() ** 2 / (weight**2).sum()
    below = np.array(
        [
            weight[residuals < value].sum() + weight[residuals == value].sum() / 2
            for value in residuals
        ]
    )
    order = np.argsort(residuals)
    place = (below * effective / weight.sum() + 0.5) / (effective + 1)
    levels = (np.arange(13) + 0.5) / 13  # 2 * 104^0.4 = 12.8
    expected = np.interp(levels, place[order], residuals[order])
    law = model.base_forecast(X[:1]).ppf(levels)[0] - model.estimator_.predict(X[:1])
    np.testing.assert_allclose(law, expected, rtol=0, atol=1e-12)
    nested = clone(model).set_params(estimator=make_pipeline(make_pipeline(Ridge(alpha=30.0))))
    assert same(nested.fit(X, Y, weight).forecast(X, R), model.forecast(X, R))


@pytest.mark.parametrize("inner", [RandomizedRegressor(Ridge()), small_paic()])
def test_what_is_randomized_is_not_randomized_again(inner):
    refused(f"{type(inner).__name__} is already randomized", RandomizedRegressor(inner).fit, X, Y)
    with pytest.raises(InputError, match="is already randomized"):
        RandomizedRegressor(FrozenEstimator(clone(inner).fit(X, Y))).fit(X, Y)


def test_parameters_that_cannot_be_are_named():
    around = RandomizedRegressor(Ridge(), alpha=0.0)
    refused("^alpha must be above 0 and at most 1, got 0.0", around.fit, X, Y)
    around = RandomizedRegressor(Ridge(), cv=61)
    refused("^X must have at least 122 rows for cv=61, got n_samples = 120", around.fit, X, Y)
    around = RandomizedRegressor(StandardScaler())
    plain = "^estimator must be a regressor with fit and predict, got StandardScaler"
    refused(plain, around.fit, X, Y)


def test_without_a_model_the_default_is_an_ensemble_of_mixtures(monkeypatch):
    seen = []

    def recorded(**params):
        seen.append(params)
        return small_mixture(1, 1, **params)

    monkeypatch.setattr("evenhand.forecasters.around.MixtureMLPRegressor", recorded)
    halves = np.round(2 * Y) / 2
    for seed in (0, 0, 1, None):
        with pytest.warns(DiscreteOutcomeWarning) as caught:
            RandomizedRegressor(random_state=seed).fit(X, halves)
        # the network inside does not warn again
        assert len([one for one in caught if one.category is DiscreteOutcomeWarning]) == 1
    seeds = [params["random_state"] for params in seen]
    assert seeds[0] == seeds[1] != seeds[2]
    assert seeds[3] is None


# --- outcomes with atoms


@pytest.mark.parametrize("name", WITH_ATOMS)
def test_a_folder_holds_the_whole_forecaster(name, tmp_path):
    rows = TABLE
    model = fit(name, rows)
    with warnings.catch_warnings(action="error"):
        save(model, tmp_path)
    again = load(tmp_path)
    assert close(again.forecast(rows, R), model.forecast(rows, R), name)
    assert np.array_equal(again.predict(rows), model.predict(rows))
    assert again.n_features_in_ == 3
    assert pack(again).sha256 == pack(model).sha256
    # a loaded model is kept by a new fit, apart from what wraps it
    again.fit(rows, DISCRETE[name].outcomes(Y))
    assert np.allclose(again.predict(rows), model.predict(rows))


def mixed(n, seed=0):
    random = np.random.default_rng(seed)
    job = random.choice(["nurse", "cook", "clerk"], size=n)
    age = random.uniform(20, 60, size=n)
    unknown = random.uniform(size=n) < 0.2
    y = 0.05 * (age - 40) + 1.5 * (job == "cook") + 2.0 * unknown - 1
    table = pd.DataFrame(
        {
            "age": np.where(unknown, np.nan, age),
            "job": pd.Series(job).where(random.uniform(size=n) > 0.05, None),
            "since": pd.Timestamp("2023-01-01") + pd.to_timedelta(random.integers(0, 9, n), "D"),
            "city": pd.Categorical(random.choice(["x", "y"], size=n)),
        }
    )
    return table, y + 0.3 * random.normal(size=n)


BOOSTED = Example(
    lambda: HurdleRegressor(
        regressor=BoostedDistributionRegressor(n_estimators=50, random_state=0), random_state=0
    ),
    as_amounts,
)
NETWORK = Example(lambda: small_mixture(max_steps=250, hidden=(32, 32)))
DEFAULTS = [*(one for one in DISCRETE.values() if one.takes_mixed), BOOSTED, NETWORK]


@pytest.mark.parametrize("example", DEFAULTS, ids=["count", "event", "hurdle", "network"])
def test_defaults_learn_from_mixed_tables(example, tmp_path):
    table, y = mixed(600)
    model = example.make().fit(table, example.outcomes(y))
    fresh, outcomes = mixed(300, seed=1)
    # the noise leaves 0.9 of the variance; without one of the columns, less than 0.6 is explained
    assert model.score(fresh, example.outcomes(outcomes)) > 0.65
    with pytest.warns(UnseenValuesWarning) as caught:
        strange = model.predict(fresh.assign(job="astronaut"))
    assert len(caught) == 1
    assert np.isfinite(strange).all()
    save(model, tmp_path)
    assert np.array_equal(load(tmp_path).predict(fresh), model.predict(fresh))


def test_outcomes_that_cannot_be_fitted_are_one_clear_line():
    def wrong(message, model, y):
        refused(message, model.fit, X[: len(y)], y)

    wrong(r"y\[\d+\] must be a count, 0, 1, 2, .*", CountRegressor(), as_counts(Y) - 2)
    wrong(r"got \d\.5; use ClassifierForecaster", CountRegressor(), as_counts(Y) / 2)
    classes = "y must be 0 or 1 if there are two classes, got 1 and 2; code the event as 1"
    wrong(classes, ClassifierForecaster(), 1 + as_events(Y))
    scores = r"estimator must predict probabilities \(predict_proba\), got LinearSVC; wrap"
    wrong(scores, ClassifierForecaster(LinearSVC()), as_events(Y))
    below = r"y\[\d+\] must be at least at=0 with end='low', got -"
    wrong(below, HurdleRegressor(), as_amounts(Y) - 1)
    few = np.where(np.arange(N) < 5, 1.0 + np.arange(N), 0.0)
    wrong("y where it is not 0 has 5 rows; at least 20 are needed", HurdleRegressor(), few)
    wrong("y is never at=0, so there is no atom; use a", HurdleRegressor(), 1 + np.abs(Y))
    kind = r"support=\(0.0, None\) has no meaning for forecasts of the kind 'count', only for cont"
    counts = HurdleRegressor(LogisticRegression(), lambda X: Forecast.from_poisson(np.ones(len(X))))
    wrong(kind, counts, as_amounts(Y))
    wrong("0/1 outcomes", RandomizedRegressor(LogisticRegression()), as_events(Y))
    one = np.r_[1.0, np.zeros(119)]
    events = RecalibratedRegressor(ClassifierForecaster(LogisticRegression()))
    wrong("y is 0 in all rows outside one of the folds", events, one)
    amounts = RandomizedRegressor(HurdleRegressor(LogisticRegression(), Ridge()))
    wrong("y has 1 of 120 rows away from at=0; at least 20 are needed", amounts, one)


def test_probabilities_are_those_of_the_classifier():
    plain = LogisticRegression().fit(X, np.where(as_events(Y) == 1, "yes", "no"))
    model = ClassifierForecaster(LogisticRegression()).fit(X, as_events(Y))
    found = model.forecast(X).event_probability()
    np.testing.assert_allclose(found, plain.predict_proba(X)[:, 1], rtol=1e-9)
    frozen = ClassifierForecaster(FrozenEstimator(plain)).fit(X[:30], as_events(Y)[:30])
    assert frozen.estimator_.estimator is plain
    np.testing.assert_allclose(frozen.predict(X), plain.predict_proba(X)[:, 1], rtol=1e-12)


def test_scores_in_halves_are_ordered_values():
    y = as_scores(Y)
    model = ClassifierForecaster(RandomForestClassifier(50, random_state=0)).fit(X, y)
    assert model.values_.tolist() == [1.0, 1.5, 2.0, 2.5, 3.0]
    forest = RandomForestClassifier(50, random_state=0).fit(X, (2 * y).astype(int))
    found = model.forecast(X).cdf(2.0)
    np.testing.assert_allclose(found, forest.predict_proba(X)[:, :3].sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(model.predict(X), forest.predict_proba(X) @ model.values_)


@pytest.mark.parametrize("weight", [np.ones(N), TIES + 0.05], ids=["equal", "uneven"])
def test_a_hurdle_is_its_two_parts_by_hand(weight):
    y = as_amounts(Y)
    away = y > 0
    event = LogisticRegression().fit(X, away.astype(int), weight).predict_proba(X)[:, 1]
    model = HurdleRegressor(LogisticRegression(), BayesianRidge()).fit(X, y, weight)
    forecast = model.forecast(X)
    np.testing.assert_allclose(forecast.event_probability(), event, rtol=1e-9)
    part = RandomizedRegressor(BayesianRidge(), support=(0, None))
    part.fit(X[away], y[away], weight[away])
    for level in (0.3, 2.0):
        expected = 1 - event + event * part.base_forecast(X).cdf(level)
        np.testing.assert_allclose(forecast.cdf(level), expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), event * part.predict(X), rtol=1e-9)
    expected = np.log(event) + part.base_forecast(X).logpdf(np.full(N, 0.7))
    np.testing.assert_allclose(forecast.log_density(0.7), expected, rtol=1e-9)
    np.testing.assert_allclose(forecast.log_density(0.0), np.log1p(-event), rtol=1e-9)


def test_an_atom_far_from_the_others_needs_no_bound():
    # 0 is 1e13 ranges away from salaries that differ by rounding only
    y = np.where(as_events(Y) > 0, 1e6 + 1e-8 * Y, 0.0)
    model = HurdleRegressor(LogisticRegression(), Ridge(), random_state=0).fit(X, y)
    assert model.regressor_.support is None
    assert np.isfinite(model.predict(X)).all()


def test_randomization_leaves_the_probability_of_the_atom_and_serves_the_other_part():
    y = as_amounts(Y)
    base = HurdleRegressor(LogisticRegression(), BayesianRidge(), random_state=0).fit(X, y)
    law = base.forecast(X).distribution
    assert isinstance(law, Hurdle)
    served = RandomizedRegressor(FrozenEstimator(base), alpha=0.1).fit(X, y).forecast(X, R[:, 0])
    part = Forecast(law.positive).randomized(0.1, "entropic", R[:, 0])
    expected = law.chance + (1 - law.chance) * part.cdf(0.5)
    np.testing.assert_allclose(served.cdf(0.5), expected, rtol=1e-9)
    np.testing.assert_allclose(served.cdf(0), base.forecast(X).cdf(0), rtol=1e-12)
    assert served.outcome_kind is OutcomeKind.HURDLE


def test_a_fitted_classifier_is_a_forecaster():
    plain = LogisticRegression().fit(TABLE, as_events(Y).astype(bool))
    found = as_forecaster(plain)
    assert found.forecast(TABLE).outcome_kind is OutcomeKind.BINARY
    np.testing.assert_allclose(found.predict(TABLE), plain.predict_proba(TABLE)[:, 1])
    assert as_forecaster(found) is found
    frozen = as_forecaster(FrozenEstimator(plain))
    np.testing.assert_allclose(frozen.predict(TABLE), found.predict(TABLE))
    refused("a classifier in ClassifierForecaster", pack, found)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_object_with_predict_proba_alone_is_a_fitted_classifier(n_classes):
    y = np.digitize(Y, np.quantile(Y, [0.5, 0.8][: n_classes - 1])).astype(float)
    plain = LogisticRegression().fit(X[:75], y[:75])
    alone = SimpleNamespace(predict_proba=plain.predict_proba)
    X_new, new = X[75:], y[75:]
    audited, expected = (audit(one, X_new, new, **QUICK_AUDIT) for one in (alone, plain))
    assert audited.outcome_kind is expected.outcome_kind
    assert audited.scores.equals(expected.scores)
    wrapper = RecalibratedRegressor if n_classes == 2 else RandomizedRegressor
    ours, theirs = (
        wrapper(one, random_state=0).fit(X_new, new).forecast(X_new, 0.3)
        for one in (alone, FrozenEstimator(plain))
    )
    np.testing.assert_array_equal(ours.cdf(0.0), theirs.cdf(0.0))


def test_models_without_distributions_are_refused():
    plain = Ridge().fit(X, Y)
    numbers = "model must predict distributions, got Ridge, which predicts only num"
    refused(numbers, as_forecaster, plain)
    words = LogisticRegression().fit(X, np.where(as_events(Y) > 0, "yes", "no"))
    classes = r"must have classes that are numbers in one column, got classes_ \['no', 'yes'\]"
    refused(classes, as_forecaster, words)
    refused("estimator must be a regressor with fit and predict, got int", as_forecaster, 3)


def test_wrong_probabilities_are_one_clear_line():
    model = ClassifierForecaster(LogisticRegression()).fit(X, as_events(Y))
    p = model.estimator_.predict_proba(X)
    for wrong, message in (
        (p / 2, "LogisticRegression predicts probabilities that are not at least 0 with sum 1"),
        (p[:, 1:], r"predicts shape \(120, 1\) for 120 rows and 2 classes; pass"),
    ):
        model.estimator_.predict_proba = lambda rows, wrong=wrong: wrong
        refused(message, model.forecast, X)
