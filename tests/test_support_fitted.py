"""Fitted plain regressors with bounds of the outcome: their predictions are mapped to the line.

Random numbers are seeded, and calibration is measured on rows that no model has seen.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from evenhand.calibration import calibration_error
from evenhand.distributions import Support, Transformed, Truncated
from evenhand.forecast import Forecast
from evenhand.forecasters import RandomizedRegressor, RecalibratedRegressor
from evenhand.store import load, save
from forecaster_examples import Floats, incomes


class Exponential(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The conditional median of `incomes`."""

    def fit(self, X: Floats, y: Floats) -> Exponential:
        self.is_fitted_ = True
        return self

    def predict(self, X: Floats) -> Floats:
        return np.asarray(np.exp(1 + 0.8 * X[:, 0]))


def durations(n: int, seed: int) -> tuple[Floats, Floats]:
    """Features and gamma outcomes of shape 1.5."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    return X, random.gamma(1.5, 3 * np.exp(0.5 * X[:, 0]))


def shares(n: int, seed: int) -> tuple[Floats, Floats]:
    """Features and beta outcomes, many of them next to 0 or 1."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    mean = 1 / (1 + np.exp(-1 - X[:, 0]))
    # the smallest outcomes of these distributions are rounded to the bounds
    return X, np.clip(random.beta(3 * mean, 3 * (1 - mean)), 1e-9, 1 - 1e-9)


SKEWED = {"incomes": (incomes, None), "durations": (durations, None), "shares": (shares, 1)}
FITTED = {
    "linear": LinearRegression(),
    "forest": RandomForestRegressor(20, min_samples_leaf=5, random_state=0),
}


@pytest.mark.parametrize(
    ("outcome", "name"), [("incomes", "linear"), ("durations", "forest"), ("shares", "linear")]
)
def test_forecasts_around_a_fitted_plain_regressor_are_calibrated(outcome: str, name: str) -> None:
    outcomes, high = SKEWED[outcome]
    fitted = FrozenEstimator(clone(FITTED[name]).fit(*outcomes(800, seed=1)))
    model = RandomizedRegressor(fitted, support=(0, high), random_state=0)
    model.fit(*outcomes(1500, seed=2))
    new, y = outcomes(3000, seed=3)
    base = model.base_forecast(new)
    # for residual distributions of 1,500 rows and 3,000 new rows, the expected error is 0.01, the
    # mean absolute Brownian bridge times sqrt(1 / 1500 + 1 / 3000) = 0.032, and 1.3 such units have
    # a probability below 1e-5; coverages have a standard deviation of 0.0095
    assert calibration_error(base.pit(y)) < 0.04
    low, top = base.interval(0.9)
    assert 0.86 < np.mean((low <= y) & (y <= top)) < 0.94
    for level in (0.9, 0.999):
        low, top = model.forecast(new, random_state=0).interval(level)
        assert (low >= 0).all()
        assert (top <= (np.inf if high is None else high)).all()


@pytest.mark.parametrize("name", FITTED)
def test_mapped_predictions_are_sharper_than_truncated_forecasts(name: str) -> None:
    fitted = clone(FITTED[name]).fit(*incomes(800, seed=1))
    X, y = incomes(1500, seed=2)
    new, outcomes = incomes(3000, seed=3)
    mapped = RandomizedRegressor(FrozenEstimator(fitted), support=(0, None), random_state=0)
    plain = RandomizedRegressor(FrozenEstimator(fitted), random_state=0)
    plain_base = plain.fit(X, y).base_forecast(new).distribution
    truncated = Forecast(Truncated(plain_base, Support(low=0.0, is_map=False)))
    gain = truncated.crps(outcomes) - mapped.fit(X, y).base_forecast(new).crps(outcomes)
    # on average not worse, by four paired standard errors
    assert gain.mean() > -4 * gain.std() / np.sqrt(gain.size)


def test_residuals_of_a_fitted_plain_regressor_are_modelled_on_the_line() -> None:
    X, y = incomes(400)
    # a model that is right up to a factor: its location on the line of a logarithm is exact
    exact = FrozenEstimator(Exponential().fit(X, y))
    model = RandomizedRegressor(exact, support=(0, None), random_state=0).fit(X, y)
    assert isinstance(model.base_forecast(X).distribution, Transformed)
    assert model.support_ is not None
    line = model.support_.to_line(np.exp(1 + 0.8 * X[:, 0]))
    np.testing.assert_allclose(model.base_forecast(X).distribution.base.loc, line)
    np.testing.assert_array_equal(model.estimator_.predict(X), np.exp(1 + 0.8 * X[:, 0]))


@pytest.mark.parametrize("far", [0.0, -1e9])
def test_predictions_at_and_beyond_a_bound_stay_finite(far: float) -> None:
    X, y = shares(300, seed=0)
    wrong = LinearRegression().fit(X, y)
    wrong.intercept_ = far
    for support, outcomes in (((0, 1), y), ((0, None), 50 * y), ((None, 0), -50 * y)):
        model = RandomizedRegressor(FrozenEstimator(wrong), support=support, random_state=0)
        forecast = model.fit(X, outcomes).forecast(X, r=0.3)
        for values in (forecast.ppf([0.01, 0.5, 0.99]), forecast.logpdf(outcomes)):
            assert np.isfinite(values).all()
        assert np.isfinite(model.predict(X)).all()
        # a prediction of nothing still gives the distribution of the outcomes
        assert calibration_error(model.base_forecast(X).pit(outcomes)) < 0.05


@pytest.mark.parametrize("recalibrate", [False, True])
def test_a_loaded_fitted_plain_regressor_stays_as_it_is(recalibrate: bool, tmp_path: Path) -> None:
    fitted = FrozenEstimator(LinearRegression().fit(*incomes(200, seed=1)))
    X, y = incomes(300)
    params = {"recalibrate": recalibrate, "support": (0, None), "random_state": 0}
    model = RandomizedRegressor(fitted, **params).fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    expected = model.base_forecast(X).ppf([0.05, 0.5, 0.95])
    np.testing.assert_allclose(again.base_forecast(X).ppf([0.05, 0.5, 0.95]), expected)
    again.fit(X, y)
    np.testing.assert_allclose(again.base_forecast(X).ppf([0.05, 0.5, 0.95]), expected)


def test_a_recalibrated_fitted_plain_regressor_is_shared_with_its_map() -> None:
    fitted = FrozenEstimator(LinearRegression().fit(*incomes(200, seed=1)))
    X, y = incomes(400)
    recalibrated = RecalibratedRegressor(fitted, support=(0, None), random_state=0).fit(X, y)
    new, outcomes = incomes(2000, seed=2)
    assert calibration_error(recalibrated.forecast(new).pit(outcomes)) < 0.05
    for recalibrate in (False, True):
        around = RandomizedRegressor.around(recalibrated, recalibrate=recalibrate)
        source = recalibrated.forecast(new) if recalibrate else recalibrated.base_forecast(new)
        np.testing.assert_allclose(around.base_forecast(new).ppf(0.1), source.ppf(0.1))
