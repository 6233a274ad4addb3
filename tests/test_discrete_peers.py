"""Forecasts of counts, events and money with zeros against other libraries."""

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, PoissonRegressor, Ridge

from complaints import refused
from evenhand import ClassifierForecaster, CountRegressor, RandomizedRegressor
from evenhand.distributions import Categorical, NegativeBinomial, OutcomeKind, Poisson
from evenhand.forecasters import as_forecaster
from repeats import repeats


def counts(n, dispersion, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    mean = np.exp(0.3 + 0.6 * X[:, 0] - 0.4 * X[:, 1])
    noise = random.gamma(1 / dispersion, dispersion, size=n) if dispersion else 1.0
    return X, random.poisson(mean * noise).astype(np.float64), mean


def log_probability(y, mean, dispersion):
    mean = np.asarray(mean)
    if dispersion == 0:
        return np.asarray(stats.poisson.logpmf(y, mean))
    return np.asarray(stats.nbinom.logpmf(y, 1 / dispersion, 1 / (1 + dispersion * mean)))


def test_the_log_score_of_simulated_counts_is_that_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    X, y, _ = counts(4000, 0.5)
    learn, held = slice(0, 3000), slice(3000, None)
    peer = sm.NegativeBinomial(y[learn], sm.add_constant(X[learn])).fit(disp=0)
    expected = log_probability(y[held], peer.predict(sm.add_constant(X[held])), peer.params[-1])
    model = CountRegressor(PoissonRegressor(alpha=0), random_state=0).fit(X[learn], y[learn])
    # the standard error of an estimated dispersion of 0.5 is 0.03 with 3,000 rows
    assert model.dispersion_ == pytest.approx(peer.params[-1], abs=0.03)
    found = model.forecast(X[held]).log_density(y[held])
    # the means are those of the Poisson likelihood, which is less efficient
    assert found.mean() == pytest.approx(expected.mean(), abs=0.003)
    # the default has to learn that the mean is log-linear
    default = CountRegressor(random_state=0).fit(X[learn], y[learn])
    assert default.forecast(X[held]).log_density(y[held]).mean() > expected.mean() - 0.01


@pytest.mark.parametrize("dispersion", [0.05, 0.5, 3.0])
def test_the_dispersion_is_the_maximum_of_the_likelihood(dispersion):
    X, y, mean = counts(2000, dispersion)
    frozen = FrozenEstimator(MeanOf().fit(X, y))
    model = CountRegressor(frozen, family="negative-binomial").fit(X, y)
    near = np.array([0.97, 1.0, 1.03]) * model.dispersion_
    total = [log_probability(y, mean, one).sum() for one in near]
    assert total[1] > max(total[0], total[2])
    # rows that are counted twice are rows of weight 2
    weight = 1.0 + (np.arange(2000) % 2)
    twice = np.repeat(np.arange(2000), weight.astype(int))
    weighted = CountRegressor(frozen, family="negative-binomial").fit(X, y, weight)
    doubled = CountRegressor(frozen, family="negative-binomial").fit(X[twice], y[twice])
    assert weighted.dispersion_ == pytest.approx(doubled.dispersion_, rel=1e-3)


class MeanOf(LinearRegression):
    """The mean of `counts`."""

    def predict(self, X):
        return np.exp(0.3 + 0.6 * X[:, 0] - 0.4 * X[:, 1])


@pytest.mark.statistics
def test_poisson_counts_are_rarely_found_to_be_overdispersed():
    n = repeats(400, shorter=4)
    frozen = FrozenEstimator(MeanOf().fit(np.zeros((20, 3)), np.zeros(20)))
    found = 0
    for seed in range(n):
        X, y, _ = counts(500, 0.0, seed)
        found += CountRegressor(frozen).fit(X, y).dispersion_ > 0
    # level 5%; more than this has a probability of 0.001
    assert found <= stats.binom.isf(0.001, n, 0.05)


def test_means_of_zero_or_less_are_moved_to_a_bound():
    X, y, _ = counts(2000, 0.0)
    for estimator in (LinearRegression(), RandomForestRegressor(20, random_state=0)):
        model = CountRegressor(estimator, random_state=0).fit(X[:1500], y[:1500])
        assert model.estimator_.predict(X).min() <= 0.01
        forecast = model.forecast(X[1500:])
        assert forecast.mean().min() > 0
        # a constant forecast has a log score of -1.63
        assert forecast.log_density(y[1500:]).mean() > -1.6


@pytest.mark.parametrize(
    "estimator",
    [
        PoissonRegressor(),
        RandomForestRegressor(5, criterion="poisson", random_state=0),
        FrozenEstimator(PoissonRegressor().fit(*counts(200, 0.0)[:2])),
    ],
)
def test_a_poisson_loss_forecasts_counts(estimator):
    X, y, _ = counts(400, 0.5)
    model = RandomizedRegressor(estimator, random_state=0).fit(X, y)
    assert model.base_forecast(X).outcome_kind is OutcomeKind.COUNT
    alone = CountRegressor(estimator, random_state=0).fit(X, y)
    assert model.forecast(X, 0.3).outcome_kind is OutcomeKind.COUNT
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-9)
    # amounts of money are continuous
    amounts = RandomizedRegressor(estimator, random_state=0).fit(X, y + 0.25 + 0.5 * (X[:, 2] ** 2))
    assert amounts.base_forecast(X).outcome_kind is OutcomeKind.CONTINUOUS


def test_a_fitted_poisson_regression_is_a_forecaster():
    X, y, _ = counts(400, 0.0)
    plain = PoissonRegressor().fit(X, y)
    found = as_forecaster(plain).forecast(X)
    np.testing.assert_allclose(found.log_density(y), stats.poisson.logpmf(y, plain.predict(X)))
    lightgbm = pytest.importorskip("lightgbm")
    boosted = lightgbm.LGBMRegressor(objective="poisson", n_estimators=5, verbose=-1).fit(X, y)
    assert as_forecaster(boosted).forecast(X).outcome_kind is OutcomeKind.COUNT


class Predicting(Ridge):
    """Model that predicts a fixed distribution, as models of skpro do."""

    def __init__(self, law):
        super().__init__()
        self.law = law

    def predict_proba(self, X):
        return self.law

    def predict_quantiles(self, X, alpha):
        raise NotImplementedError


def test_discrete_distributions_of_skpro_are_kept_and_wide_ones_are_refused():
    laws = pytest.importorskip("skpro.distributions")
    mean, p = np.exp(np.random.default_rng(0).normal(size=(4, 1))), np.full((4, 1), 0.3)
    for law, expected in (
        (laws.Poisson(mu=mean), Poisson),
        (laws.NegativeBinomial(mu=mean, alpha=2.0), NegativeBinomial),
        (laws.Geometric(p=p), Categorical),
        (laws.Binomial(n=5, p=p), Categorical),
        (laws.ZeroInflated(p=0.2, distribution=laws.Poisson(mu=mean)), Categorical),
    ):
        found = as_forecaster(Predicting(law)).forecast(np.zeros((4, 1)))
        assert found.outcome_kind is OutcomeKind.COUNT
        for y in (0.0, 1.0, 4.0):
            np.testing.assert_allclose(found.cdf(y), np.ravel(law.cdf(y)), atol=1e-9)
            np.testing.assert_allclose(np.exp(found.log_mass(y)), np.ravel(law.pmf(y)), atol=1e-9)
        assert isinstance(found.distribution, expected)
    wide = as_forecaster(Predicting(laws.Geometric(p=p / 30_000)))
    refused("Predicting predicts .*values from .* more than 5000", wide.forecast, np.zeros((4, 1)))


def test_models_of_ngboost_forecast_events_and_counts():
    ngboost = pytest.importorskip("ngboost")
    from ngboost.distns import Poisson as Rate

    X, y, _ = counts(300, 0.0)
    event = (y > 1).astype(int)
    plain = ngboost.NGBClassifier(n_estimators=5, verbose=False).fit(X, event)
    found = as_forecaster(plain).forecast(X)
    assert found.outcome_kind is OutcomeKind.BINARY
    np.testing.assert_allclose(found.event_probability(), plain.predict_proba(X)[:, 1])
    model = ClassifierForecaster(ngboost.NGBClassifier(n_estimators=5, verbose=False))
    assert model.fit(X, event).forecast(X).outcome_kind is OutcomeKind.BINARY
    rate = ngboost.NGBRegressor(Dist=Rate, n_estimators=5, verbose=False)
    served = RandomizedRegressor(rate, random_state=0).fit(X, y)
    assert isinstance(served.base_forecast(X).distribution, Poisson)
