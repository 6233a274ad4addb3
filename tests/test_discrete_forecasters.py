"""Forecasters of counts, scores, events and outcomes with an atom: what holds for all of them."""

import json
import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from complaints import refused
from evenhand import (
    BoostedDistributionRegressor,
    DiscreteOutcomeWarning,
    RandomizedRegressor,
    RecalibratedRegressor,
    audit,
    load,
    save,
)
from evenhand.distributions import Hurdle, OutcomeKind
from evenhand.forecast import Forecast
from evenhand.forecasters import (
    ClassifierForecaster,
    CountRegressor,
    HurdleRegressor,
    as_forecaster,
)
from evenhand.store import pack
from evenhand.tables import UnseenValuesWarning
from forecaster_examples import (
    DISCRETE,
    DiscreteExample,
    as_amounts,
    as_counts,
    as_events,
    as_scores,
    linear_task,
    small_mixture,
)

N = 150
X, Y = linear_task(N)
TABLE = pd.DataFrame(X, columns=["a", "b", "c"])
R = np.random.default_rng(1).uniform(size=(N, 3))
TIES = np.random.default_rng(2).uniform(size=N)

FOLDERS = ("model", "again")

EVERY = pytest.mark.parametrize(
    "name",
    [
        "CountRegressor(PoissonRegressor)",
        "ClassifierForecaster(None)",
        "ClassifierForecaster(LogisticRegression), scores",
        "HurdleRegressor(LogisticRegression, BayesianRidge)",
        "RandomizedRegressor(LogisticRegression), scores",
        "RandomizedRegressor(HurdleRegressor)",
    ],
)
BOOSTED = DiscreteExample(
    lambda: HurdleRegressor(
        regressor=BoostedDistributionRegressor(n_estimators=50, random_state=0), random_state=0
    ),
    as_amounts,
    OutcomeKind.HURDLE,
)
NETWORK = DiscreteExample(
    lambda: small_mixture(max_steps=250, hidden=(32, 32)), np.asarray, OutcomeKind.CONTINUOUS
)
DEFAULTS = [*(one for one in DISCRETE.values() if one.takes_mixed), BOOSTED, NETWORK]


def fit(name, rows=X, weight=None, **params):
    example = DISCRETE[name]
    return example.make(**params).fit(rows, example.outcomes(Y), weight)


@cache
def fitted(name):
    """Return an example fitted to the same rows, once; tests leave it as it is."""
    with warnings.catch_warnings(action="error", category=DiscreteOutcomeWarning):
        return fit(name)


def numbers(forecast, name):
    y = DISCRETE[name].outcomes(Y)[: len(forecast)]
    ties = TIES[: len(forecast)]
    columns = [forecast.pit(y, ties=ties), forecast.log_density(y), forecast.mean()]
    return np.stack([*columns, *np.moveaxis(forecast.ppf([0.1, 0.9]), -1, 0)])


def same(first, second, name, atol=0.0):
    return np.allclose(numbers(first, name), numbers(second, name), rtol=0, atol=atol)


@EVERY
def test_forecasts_are_of_their_kind(name):
    example = DISCRETE[name]
    forecast = fitted(name).forecast(X, R)
    assert forecast.outcome_kind is example.kind
    assert fitted(name).outcome_kind_of(example.outcomes(Y)) is example.kind
    assert forecast.is_randomized == example.is_randomized
    assert forecast.distribution.batch_shape == ((N, 3) if example.is_randomized else (N,))
    # the outcomes are possible, and each cell lies between 0 and 1
    low, high = forecast.pit_interval(example.outcomes(Y))
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()
    assert np.isfinite(forecast.log_density(example.outcomes(Y))).all()
    fresh, y = linear_task(400, seed=5)
    assert fitted(name).score(fresh, example.outcomes(y)) > 0.3


@EVERY
def test_equal_weights_are_no_weights_and_weight_zero_is_no_row(name):
    weighted = fit(name, weight=np.full(N, 1.0))
    # optimizers stop at slightly different points
    assert same(weighted.forecast(X, R), fitted(name).forecast(X, R), name, atol=1e-4)
    uneven = fit(name, weight=np.exp(2 * X[:, 0]))
    assert not same(uneven.forecast(X, R), fitted(name).forecast(X, R), name, atol=1e-2)
    example, used = DISCRETE[name], np.arange(N) % 4 > 0
    y = example.outcomes(Y)
    some = example.make().fit(X[used], y[used], np.ones(used.sum()))
    dropped = example.make().fit(X, y, used.astype(float))
    assert same(dropped.forecast(X, R), some.forecast(X, R), name, atol=1e-4)


@EVERY
def test_a_folder_holds_the_whole_forecaster(name, tmp_path):
    rows = TABLE
    model = fit(name, rows)
    with warnings.catch_warnings(action="error"):
        save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert same(again.forecast(rows, R), model.forecast(rows, R), name)
    assert np.array_equal(again.predict(rows), model.predict(rows))
    assert again.n_features_in_ == 3
    # a loaded model is kept by a new fit, apart from what wraps it
    save(again, tmp_path / "again")
    manifests = [json.loads((tmp_path / one / "model.json").read_text()) for one in FOLDERS]
    assert manifests[0]["model"] == manifests[1]["model"]
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


def test_what_cannot_be_fitted_is_one_clear_line():
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
    np.testing.assert_allclose(
        model.forecast(X).event_probability(), plain.predict_proba(X)[:, 1], rtol=1e-9
    )
    frozen = ClassifierForecaster(FrozenEstimator(plain)).fit(X[:30], as_events(Y)[:30])
    assert frozen.estimator_.estimator is plain
    np.testing.assert_allclose(frozen.predict(X), plain.predict_proba(X)[:, 1], rtol=1e-12)


def test_scores_in_halves_are_ordered_values():
    y = as_scores(Y)
    model = ClassifierForecaster(RandomForestClassifier(50, random_state=0)).fit(X, y)
    assert model.values_.tolist() == [1.0, 1.5, 2.0, 2.5, 3.0]
    forest = RandomForestClassifier(50, random_state=0).fit(X, (2 * y).astype(int))
    np.testing.assert_allclose(
        model.forecast(X).cdf(2.0), forest.predict_proba(X)[:, :3].sum(axis=1), atol=1e-12
    )
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
    audited, expected = (audit(one, X_new, new, random_state=0) for one in (alone, plain))
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
        (
            p / 2,
            "LogisticRegression predicts probabilities that are not at least 0 with sum 1; pass",
        ),
        (p[:, 1:], r"predicts shape \(150, 1\) for 150 rows and 2 classes; pass"),
    ):
        model.estimator_.predict_proba = lambda rows, wrong=wrong: wrong
        refused(message, model.forecast, X)
