"""Bases: each predicts what its model predicts, and is recalibrated, mixed and stored."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.ensemble import RandomSurvivalForest

from complaints import refused
from evenhand import Forecast, RandomizedRegressor, load, save
from evenhand.distributions import Normal
from evenhand.forecasters import adapter_of
from evenhand.forecasters.conversions import FITTED_LEVELS
from forecaster_examples import linear_task, small_mixture

X, Y = linear_task(160)
NEW, NEW_Y = linear_task(50, seed=1)
TABLE_ERROR = 5e-4


def mean_of(rows):
    return np.asarray(rows, dtype=float) @ [1.0, -0.5, 0.0]


def plain(estimator, **params):
    """Return the model, fitted, whose base forecast is looked at."""
    return RandomizedRegressor(estimator, **({"random_state": 0} | params)).fit(X, Y)


def kind(estimator):
    return adapter_of(estimator).name


class Law:
    """An object with quantiles, as NGBoost and skpro return."""

    def __init__(self, law, shape):
        self.law, self.shape = law, shape

    def ppf(self, p):
        return np.reshape(self.law.ppf(p), self.shape)


class LikeNGBoost(RegressorMixin, BaseEstimator):
    """Says a distribution of scipy around the true mean, in one row of numbers."""

    def __init__(self, family="norm"):
        self.family = family

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def law(self, rows):
        shape = () if self.family == "norm" else (4.0,)
        return getattr(stats, self.family)(*shape, loc=mean_of(rows), scale=0.5)

    def pred_dist(self, X):
        return Law(self.law(X), (len(X),))

    def predict(self, X):
        return mean_of(X)


class LikeSkpro:
    """Says a table of one column, and is no estimator of scikit-learn's."""

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return Law(stats.norm(mean_of(X), 0.5), (len(X), 1))

    def predict_quantiles(self, X, alpha=None):
        raise NotImplementedError

    def predict(self, X):
        return mean_of(X)


class LikeQuantileForest(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X, quantiles=None):
        return mean_of(X)[:, None] + stats.norm.ppf(quantiles)


class ManyQuantiles(RegressorMixin, BaseEstimator):
    def __init__(self, quantiles=(0.9, 0.5, 0.1)):
        self.quantiles = quantiles

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return mean_of(X)[:, None] + stats.norm.ppf(self.quantiles)


def says_normal(rows):
    return mean_of(rows), np.full(len(rows), 0.5)


def says_twice(rows):
    return mean_of(rows), np.full(len(rows), 1.0)


KINDS = [
    (small_mixture(), "forecaster"),
    ([BayesianRidge(), says_normal], "members"),
    (says_normal, "callable"),
    (LikeNGBoost(), "ppf"),
    (LikeSkpro(), "ppf"),
    (make_pipeline(StandardScaler(), LikeNGBoost()), "ppf"),
    (QuantileRegressor(), "quantiles"),
    (GradientBoostingRegressor(loss="quantile"), "quantiles"),
    (make_pipeline(StandardScaler(), QuantileRegressor()), "quantiles"),
    (DummyRegressor(strategy="quantile", quantile=0.3), "quantiles"),
    (ManyQuantiles(), "quantiles"),
    (LikeQuantileForest(), "quantiles"),
    (BayesianRidge(), "return_std"),
    (GradientBoostingRegressor(), "residuals"),
    (BaggingRegressor(BayesianRidge()), "residuals"),
    (VotingRegressor([("a", BayesianRidge()), ("b", Ridge())]), "residuals"),
    (LogisticRegression(), "classifier"),
    # it has `predict`, of risks
    (RandomSurvivalForest(), "survival"),
    # its `predict` takes `return_std` and returns zeros
    (DummyRegressor(), "residuals"),
    (FrozenEstimator(QuantileRegressor()), "residuals"),
    (ManyQuantiles(quantiles=(1, 5, 9)), "residuals"),
]


def test_what_a_model_has_decides_how_it_is_served():
    for estimator, name in KINDS:
        assert kind(estimator) == name
        assert kind(clone(estimator, safe=False)) == name


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: Forecast.from_normal(mean_of(rows), np.full(len(rows), 0.5)),
        lambda rows: (pd.Series(mean_of(rows)), np.full((len(rows), 1), 0.5)),
    ],
    ids=["forecast", "column"],
)
def test_a_function_says_its_own_distributions(function):
    model = plain(function, alpha=1.0)
    law = stats.norm(mean_of(NEW), 0.5)
    found = model.forecast(NEW, 0.3).pit(NEW_Y)
    np.testing.assert_allclose(found, law.cdf(NEW_Y), rtol=0, atol=1e-12)
    assert model.estimator_ is function
    assert clone(model).estimator is function
    # nothing is learned, so weights do not matter and a mended one uses all rows once
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(Y))
    np.testing.assert_array_equal(clone(model).fit(X, Y, weight).predict(NEW), model.predict(NEW))


def test_a_function_that_says_something_else_is_refused():
    served = Forecast.from_normal(*says_normal(X)).randomized(0.1, r=0.5)
    returned = {
        "ndarray": mean_of,
        r"Normal of shape \(7,\)": lambda rows: Normal(np.zeros(7), 1.0),
        "Forecast": lambda rows: served[: len(rows)],
    }
    for got, function in returned.items():
        refused(f"estimator must return a deterministic Forecast, .* got {got}$", plain, function)


@pytest.mark.parametrize(
    ("estimator", "parameter"),
    [
        (QuantileRegressor(alpha=0.0), "quantile"),
        (GradientBoostingRegressor(loss="quantile", n_estimators=5, random_state=0), "alpha"),
    ],
    ids=["linear", "gradient"],
)
@pytest.mark.filterwarnings("ignore:.*sparse")
def test_a_model_for_one_quantile_is_fitted_at_every_level(estimator, parameter):
    base, levels = plain(estimator).base_forecast(NEW), np.array(FITTED_LEVELS)
    own = [
        clone(estimator).set_params(**{parameter: level}).fit(X, Y).predict(NEW) for level in levels
    ]
    rearranged = np.sort(np.column_stack(own), axis=-1)
    values = base.ppf(levels)
    assert (np.diff(values, axis=-1) > 0).all()
    gaps, reach = np.diff(rearranged, axis=-1), np.ptp(rearranged, axis=-1)
    apart = (gaps > 0.002 * reach[:, None]).all(
        axis=-1
    )  # the widest gap of levels, 0.1, over 0.96 and over 50
    assert apart.sum() >= 5
    np.testing.assert_allclose(values[apart], rearranged[apart], rtol=0, atol=1e-6)
    cdf = np.column_stack([base.cdf(rearranged[:, j]) for j in range(levels.size)])
    found = cdf[apart]
    np.testing.assert_allclose(found, np.broadcast_to(levels, cdf.shape)[apart], rtol=0, atol=1e-6)


def test_quantiles_that_cross_are_sorted_and_those_that_do_not_fit_the_levels_refused():
    class Crossing(ManyQuantiles):
        def predict(self, X):
            return np.tile([[4.0, 0.0, 1.0, 1.0, 3.0]], (len(X), 1))

    base = plain(Crossing(quantiles=(0.1, 0.3, 0.5, 0.7, 0.9))).base_forecast(NEW)
    # sorted 0, 1, 1, 3, 4: mean gap 1 over 50 is 0.02, and the middle one stays
    found = base.ppf([0.1, 0.3, 0.5, 0.7, 0.9])[0]
    np.testing.assert_allclose(found, [-0.02, 0.98, 1.0, 3.0, 4.0], rtol=0, atol=1e-12)

    class Narrow(ManyQuantiles):
        def predict(self, X):
            return mean_of(X)

    pattern = r"Narrow predicts shape \(1,\) for 1 row and 3 levels; pass a function"
    refused(pattern, plain, Narrow())


def test_laws_that_cannot_be_used_are_refused():
    class Odd(LikeNGBoost):
        def pred_dist(self, X):
            return self.family

    refused("Odd predicts an object without ppf by pred_dist, object; pass", plain, Odd(object()))
    seven, unknown = Law(stats.norm(np.zeros(7)), (7,)), Law(stats.norm([np.nan]), (1,))
    refused("Odd predicts 7 values .* 1 row", plain, Odd(seven))
    refused("Odd predicts .*not finite .* 1 row", plain, Odd(unknown))


@pytest.mark.parametrize("family", ["Normal", "LogNormal", "Laplace"])
def test_ngboost_and_skpro_are_taken_at_their_word(family):
    y, new_y = (np.exp(one) if family == "LogNormal" else one for one in (Y, NEW_Y))
    if family == "Laplace":
        from skpro.regression.residual import ResidualDouble

        estimator, weight = ResidualDouble(Ridge(), dist=family), None
    else:
        distributions = pytest.importorskip("ngboost.distns")
        from ngboost import NGBRegressor

        law = getattr(distributions, family)
        estimator = NGBRegressor(law, n_estimators=10, verbose=False, random_state=0)
        weight = np.ones(len(y))
    model = RandomizedRegressor(estimator, random_state=0).fit(X, y, weight)
    base, atol = model.base_forecast(NEW), 1e-6 if family == "Normal" else TABLE_ERROR
    if family == "Laplace":
        cdf = np.ravel(np.asarray(model.estimator_.predict_proba(NEW).cdf(new_y[:, None])))
    else:
        law = model.estimator_.pred_dist(NEW).dist
        cdf = law.cdf(new_y)
        np.testing.assert_allclose(law.cdf(base.ppf(0.9)), 0.9, rtol=0, atol=atol)
    np.testing.assert_allclose(base.pit(new_y), cdf, rtol=0, atol=atol)
    frozen = RandomizedRegressor(FrozenEstimator(model.estimator_)).fit(NEW, new_y)
    np.testing.assert_array_equal(frozen.base_forecast(NEW).pit(new_y), base.pit(new_y))


def test_a_list_of_models_becomes_the_mixture_of_its_members_with_equal_weights():
    members = [BayesianRidge(), ARDRegression()]
    cdf = [
        stats.norm(*clone(one).fit(X, Y).predict(NEW, return_std=True)).cdf(NEW_Y)
        for one in members
    ]
    found = plain(members).base_forecast(NEW).pit(NEW_Y)
    np.testing.assert_allclose(found, np.mean(cdf, axis=0), rtol=0, atol=1e-9)


def test_members_that_cannot_be_mixed_are_refused():
    refused("estimator .*empty list; .*at least one", plain, [])
    refused("contains a Ridge.*normal.*VotingRegressor", plain, [BayesianRidge(), Ridge()])
    refused("contains a LikeNGBoost.*normal", plain, [says_normal, LikeNGBoost("t")])


@pytest.mark.parametrize(
    ("estimator", "recalibrate", "kept"),
    [
        (says_twice, True, says_twice),
        (LikeSkpro(), False, FrozenEstimator(LikeSkpro())),
        ([says_normal, BayesianRidge(), says_twice], False, [says_normal, says_twice]),
    ],
)
def test_a_model_that_cannot_be_stored_is_attached_at_load(estimator, recalibrate, kept, tmp_path):
    model = RandomizedRegressor(estimator, recalibrate=recalibrate).fit(X, Y)
    with pytest.warns(UserWarning, match=r"saved without an inner model: .* cannot be stored "):
        save(model, tmp_path)
    again = load(tmp_path, estimator=kept)
    for r in (0.2, [[1e-6, 0.5, 1 - 1e-6]]):
        ours, theirs = model.forecast(NEW, r), again.forecast(NEW, r)
        np.testing.assert_allclose(theirs.pit(NEW_Y), ours.pit(NEW_Y), rtol=1e-9, atol=1e-9)
    assert np.isfinite(clone(again).fit(NEW, NEW_Y).predict(NEW)).all()
