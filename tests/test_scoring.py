"""Scorers: scores of whole distributions, for model selection by scikit-learn."""

import numpy as np
import pytest
from scipy import integrate, special, stats
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from complaints import refused
from evenhand import RandomizedRegressor, scoring
from evenhand.forecast import Forecast
from evenhand.scoring import cell_log_score
from forecaster_examples import linear_task
from grid_examples import CELL_LOSS, RAW_GAIN, honest, rounded_task, spiky
from quadrature import gaussian_link

X, Y = linear_task(150)
SCORERS = [scoring.neg_log_score, scoring.neg_crps]


def standard_normal(rows):
    return np.zeros(len(rows)), np.ones(len(rows))


def test_scores_of_randomized_forecasts_are_means_over_the_draw():
    # the Gaussian link around a normal is normal: scores are formulas, their means integrals
    rho = 0.6
    alpha = gaussian_link(rho).alpha
    model = RandomizedRegressor(standard_normal, alpha=alpha, link="gaussian").fit(X, Y)
    scale = 1 / np.sqrt(1 - rho**2)

    def over_draws(score):
        def at(t):
            z = (Y + rho * scale * t) / scale
            return float(score(z).mean() * np.exp(-t * t / 2) / np.sqrt(2 * np.pi))

        return integrate.quad(at, -8, 8)[0]

    log_density = over_draws(lambda z: -0.5 * z * z - np.log(scale * np.sqrt(2 * np.pi)))
    crps = over_draws(
        lambda z: (
            scale
            * (
                z * (2 * special.ndtr(z) - 1)
                + 2 * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
                - 1 / np.sqrt(np.pi)
            )
        )
    )
    # the midpoints of 16 cells leave out the far tails of the draw
    assert scoring.neg_log_score(model, X, Y) == pytest.approx(log_density, abs=0.02)
    assert scoring.neg_crps(model, X, Y) == pytest.approx(-crps, abs=0.02)


@pytest.mark.parametrize("scorer", SCORERS)
def test_a_grid_search_tells_values_of_alpha_apart(scorer):
    alphas = [0.05, 0.1, 0.3, 1.0]
    model = RandomizedRegressor(BayesianRidge(), random_state=0)
    search = GridSearchCV(model, {"alpha": alphas}, scoring=scorer, cv=3).fit(X, Y)
    found = search.cv_results_["mean_test_score"]
    # the model is right: each bit of randomization costs
    assert (np.diff(found) > 0.01).all()
    assert search.best_params_ == {"alpha": 1.0}


def test_estimators_without_a_forecast_are_refused_with_the_remedy():
    pipeline = make_pipeline(StandardScaler(), RandomizedRegressor(Ridge())).fit(X, Y)
    refused(r"RandomizedRegressor\(pipeline\)", scoring.neg_crps, pipeline, X, Y)


def log_density(model, X, y):
    return float(model.forecast(X, 0.5).logpdf(y).mean())


@pytest.mark.parametrize("scorer", [scoring.neg_log_score, scoring.neg_cell_log_score(1.0)])
def test_spikes_on_a_grid_win_by_density_and_lose_by_the_scorers(scorer):
    X, y = rounded_task()
    models = {
        name: RandomizedRegressor(f, alpha=1.0).fit(X, y)
        for name, f in {"honest": honest, "spiky": spiky}.items()
    }
    # a row's difference has a standard deviation of 0.53: five standard errors
    near = 5 * 0.53 / np.sqrt(len(y))
    gain = log_density(models["spiky"], X, y) - log_density(models["honest"], X, y)
    assert gain == pytest.approx(RAW_GAIN, abs=near)
    loss = scorer(models["honest"], X, y) - scorer(models["spiky"], X, y)
    assert loss == pytest.approx(CELL_LOSS, abs=near)
    search = {"estimator": [honest, spiky]}
    model = RandomizedRegressor(alpha=1.0)
    for scoring_by, best in ((log_density, spiky), (scorer, honest)):
        found = GridSearchCV(model, search, scoring=scoring_by, cv=3, refit=False).fit(X, y)
        assert found.best_params_ == {"estimator": best}


def test_folds_of_few_rows_are_scored_on_the_same_grid():
    X, y = rounded_task()
    model = RandomizedRegressor(honest, alpha=1.0).fit(X, y)
    each = -cell_log_score(model.base_forecast(X), y, 1.0, (-np.inf, np.inf))
    on_grid = scoring.neg_cell_log_score(1.0)
    folds = np.arange(len(y)).reshape(-1, 12)
    # hardly any outcome of a fold is repeated
    assert all(np.unique(y[rows]).size >= 10 for rows in folds)
    for rows in folds:
        expected = pytest.approx(each[rows].mean(), rel=1e-12)
        assert on_grid(model, X[rows], y[rows]) == expected
        found = scoring.neg_log_score(model, X[rows], y[rows])
        # some folds have even differences only: cells of 2, off by step^2 f'' / (24 f) < 0.01
        assert found == pytest.approx(each[rows].mean(), abs=0.01)


def test_a_cell_at_a_bound_has_all_probability_beyond_it():
    model = RandomizedRegressor(standard_normal, alpha=1.0).fit(X, Y)
    y = np.zeros(len(X))
    open_cell = scoring.neg_cell_log_score(0.5, span=(0.0, np.inf))(model, X, y)
    assert open_cell == pytest.approx(np.log(special.ndtr(0.25) / 0.5), rel=1e-12)
    refused("step must be positive, got 0", scoring.neg_cell_log_score, 0)


def test_scores_of_counts_are_log_probabilities():
    y = np.random.default_rng(0).poisson(2.0, size=len(X)).astype(float)
    model = RandomizedRegressor(lambda rows: Forecast.from_poisson(np.full(len(rows), 2.0)), 1.0)
    model.fit(X, y)
    expected = stats.poisson.logpmf(y, 2.0).mean()
    assert scoring.neg_log_score(model, X, y) == pytest.approx(expected, rel=1e-9)
    # the sum over all counts of (F(k) - 1{y <= k})^2
    k = np.arange(40)
    gaps = stats.poisson.cdf(k, 2.0) - (y[:, None] <= k)
    assert scoring.neg_crps(model, X, y) == pytest.approx(-(gaps**2).sum(axis=1).mean(), rel=1e-6)
