"""What holds for every forecaster, and what is particular to a link around a model."""

import copy
import json
import tempfile
import warnings
from functools import cache

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from scipy.stats import mstats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from complaints import refused
from evenhand import DiscreteOutcomeWarning, InputError
from evenhand._validate import outcomes_checked
from evenhand.draws import nodes
from evenhand.forecasters import RandomizedRegressor, RecalibratedRegressor
from forecaster_examples import EXAMPLES, linear_task, small_mixture, small_paic

N = 120
X, Y = linear_task(N)


TABLE = pd.DataFrame(X, columns=["a", "b", "c"])


R = np.random.default_rng(1).uniform(size=(N, 3))

EVERY = pytest.mark.parametrize(
    "name",
    [
        "PAICRegressor",
        "MixtureMLPRegressor",
        "BoostedDistributionRegressor",
        "RandomizedRegressor(Ridge)",
        "RandomizedRegressor(QuantileRegressor)",
        "RecalibratedRegressor(BayesianRidge)",
    ],
)


@cache
def fitted(name):
    """Return an example fitted to the same rows, once; tests leave it as it is."""
    return EXAMPLES[name].make().fit(X, Y)


def same(first, second):
    y = Y[: len(first)]
    return np.array_equal(first.pit(y), second.pit(y)) and np.array_equal(
        first.logpdf(y), second.logpdf(y)
    )


def column(forecast, j):
    pit = forecast.pit(Y[: len(forecast)])
    return pit[:, j] if pit.ndim == 2 else pit


@EVERY
def test_draws_of_every_shape_mean_the_same(name):
    model, is_randomized = fitted(name), EXAMPLES[name].is_randomized
    wide = model.forecast(X, R)
    assert wide.n_samples == N
    assert wide.is_randomized == is_randomized
    assert wide.distribution.batch_shape == ((N, 3) if is_randomized else (N,))
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


@EVERY
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


@EVERY
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
    first, second = (model.forecast_and_predict(X, random_state=seed) for seed in (1, 2))
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


@EVERY
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


@EVERY
def test_fits_with_one_seed_are_identical_and_others_are_not(name):
    def fit(seed):
        return EXAMPLES[name].make(random_state=seed).fit(X, Y).forecast(X, R)

    five = fit(5)
    assert same(five, fit(5))
    np.random.seed(77)  # noqa: NPY002
    torch.manual_seed(77)
    assert same(five, fit(np.random.default_rng(5)))
    for other in (fit(6), fit(None), fit(None)):
        assert same(five, other) != EXAMPLES[name].fit_is_random
        five = other


@EVERY
def test_equal_weights_are_no_weights_and_rows_of_weight_zero_no_rows(name):
    weighted = EXAMPLES[name].make().fit(X, Y, np.ones(N))
    np.testing.assert_allclose(
        weighted.forecast(X, R).pit(Y), fitted(name).forecast(X, R).pit(Y), rtol=0, atol=1e-6
    )
    uneven = EXAMPLES[name].make().fit(X, Y, np.exp(2 * X[:, 0]))
    assert not np.allclose(
        uneven.forecast(X, R).pit(Y), fitted(name).forecast(X, R).pit(Y), atol=1e-3
    )
    used = np.arange(N) % 4 > 0
    some = EXAMPLES[name].make().fit(X[used], Y[used], np.ones(used.sum()))
    weighted = EXAMPLES[name].make().fit(X, Y, used.astype(float))
    np.testing.assert_allclose(
        weighted.forecast(X, R).pit(Y), some.forecast(X, R).pit(Y), rtol=0, atol=1e-6
    )


@EVERY
def test_copies_forecast_the_same(name):
    model = fitted(name)
    assert same(copy.deepcopy(model).forecast(X, R), model.forecast(X, R))
    # arrays that a worker maps from a file cannot be written to
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        joblib.dump(model, f"{folder}/model")
        mapped = joblib.load(f"{folder}/model", mmap_mode="r")
        assert same(mapped.forecast(X, R), model.forecast(X, R))


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


@EVERY
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
    np.testing.assert_allclose(
        model.base_forecast(X[:1]).ppf(levels)[0] - trained.predict(X[:1]), expected, atol=1e-12
    )
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
    np.testing.assert_allclose(
        model.base_forecast(X).ppf(levels), centre[:, None] + expected, rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        model.base_forecast(X).cdf(centre + expected[4]), levels[4], rtol=0, atol=1e-12
    )


def test_weights_enter_the_models_and_the_law():
    weight = np.random.default_rng(4).integers(1, 4, size=N).astype(float)
    model = RandomizedRegressor(Ridge(alpha=30.0), spread="constant", random_state=7)
    model.fit(X, Y, weight)
    # weights reach the model as given: a ridge with others shrinks otherwise
    np.testing.assert_allclose(
        model.estimator_.coef_, Ridge(alpha=30.0).fit(X, Y, weight).coef_, rtol=1e-12
    )
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


@pytest.mark.parametrize("inner", [RandomizedRegressor(Ridge()), small_paic()])
def test_what_is_randomized_is_not_randomized_again(inner):
    with pytest.raises(InputError, match=f"{type(inner).__name__} is already randomized"):
        RandomizedRegressor(inner).fit(X, Y)
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
