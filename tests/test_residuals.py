"""Distributions of residuals: their spread, their tails, and bounds of the outcome."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from evenhand import RandomizedRegressor, RecalibratedRegressor, load, save
from evenhand.calibration import Cells, calibration_error
from evenhand.distributions import Normal, Recalibrated
from evenhand.forecasters import SpreadTrees
from evenhand.forecasters.samples import learn_map, residual_distribution
from forecaster_examples import incomes
from repeats import repeats, statistical

# --- learned spread of plain regressors: regions of larger noise, and what is stored


def noisy_region(n, region, seed):
    """Return rows with three times the noise in a tenth of them, which one feature shows."""
    random = np.random.default_rng(seed)
    X = random.uniform(size=(n, 4))
    X[:, 3] = random.integers(10, size=n)
    inside = {
        "threshold": X[:, 0] > 0.9,
        "interval": np.abs(X[:, 1] - 0.5) < 0.05,
        "category": X[:, 3] == 4,
        "nowhere": np.zeros(n, dtype=np.bool_),
    }[region]
    return X, 2 * X[:, 0] + np.where(inside, 3.0, 1.0) * random.normal(size=n), inside


@pytest.mark.parametrize(
    ("recalibrate", "region"), [(False, "interval"), (False, "category"), (True, "threshold")]
)
def test_intervals_are_wider_in_a_region_of_larger_noise(recalibrate, region):
    X, y, _ = noisy_region(4000, region, 0)
    fresh, y_fresh, inside = noisy_region(20_000, region, 1)
    # split conformal intervals, of one width
    half = LinearRegression().fit(X[:2000], y[:2000])
    width = 2 * np.quantile(np.abs(y[2000:] - half.predict(X[2000:])), 0.8)
    coverage = {}
    for spread in ("learned", "constant"):
        model = RandomizedRegressor(LinearRegression(), spread=spread, random_state=0)
        if recalibrate:
            model = RecalibratedRegressor(LinearRegression(), spread=spread, random_state=0)
        model.fit(X, y)
        forecast = model.forecast(fresh) if recalibrate else model.base_forecast(fresh)
        low, high = forecast.interval(0.8)
        covers = (low <= y_fresh) & (y_fresh <= high)
        coverage[spread] = covers[inside].mean()
        assert abs(covers.mean() - 0.8) < 0.035
        # a perfect model of the spread needs 1.07 times the width
        assert (high - low).mean() < 1.12 * width
    # over training sets, coverage with a learned spread has mean 0.78 and standard deviation 0.012:
    # it is below 0.72 with probability 1e-6; with a constant spread, the ends are at 1.43, or
    # 1.43 / 3 standard deviations in the region, and cover 0.37 there
    assert coverage["learned"] > 0.72
    assert coverage["constant"] < 0.5


def test_small_tables_and_perfect_predictions_have_constant_spread():
    X, y, _ = noisy_region(99, "threshold", 2)
    assert RandomizedRegressor(LinearRegression()).fit(X, y).spread_ is None
    X, y, _ = noisy_region(300, "threshold", 3)
    exact = RandomizedRegressor(LinearRegression()).fit(X, X[:, 0])
    assert np.isfinite(exact.base_forecast(X[:5]).logpdf(X[:5, 0])).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_without_residuals_do_not_make_trees_diverge(weighted):
    # half of the rows have the least size, of which Newton steps on the log scale reach -100
    random = np.random.default_rng(0)
    X = random.uniform(size=(1000, 3))
    is_zero = X[:, 0] < 0.5
    weight = 10 ** random.uniform(-3, 3, size=1000) if weighted else None
    size = np.where(is_zero, 1e-3, 2 * random.exponential(size=1000)).clip(1e-3, 20.0)
    log_size = SpreadTrees(60, 1.0).fit(X, np.zeros(1000), size, weight).predict(X, np.zeros(1000))
    assert log_size[is_zero].mean() < np.log(0.01)
    # the mean size is 2
    np.testing.assert_allclose(log_size[~is_zero].mean(), np.log(2), atol=0.25)


def test_weights_say_which_rows_have_the_larger_noise():
    X, y, _ = noisy_region(3000, "threshold", 7)
    rng = np.random.default_rng(8)
    # rows of tiny weight have large noise elsewhere
    misleading = rng.random(3000) < 0.3
    y = np.where(misleading, y + 10 * X[:, 1] * rng.normal(size=3000), y)
    weight = np.where(misleading, 1e-6, 1.0)
    model = RandomizedRegressor(LinearRegression(), random_state=0).fit(X, y, weight)
    at = np.full((3, 4), 0.5)
    at[:, 0] = [0.2, 0.2, 0.95]
    at[:, 1] = [0.1, 0.9, 0.5]
    calm, also_calm, wild = model.base_forecast(at).std()
    assert 0.7 < also_calm / calm < 1.4
    assert 2 < wild / calm < 4


def table(n, seed):
    """Return a table with a category that has three times the noise, and missing values."""
    random = np.random.default_rng(seed)
    kind = random.choice(["calm", "calmer", "wild"], n, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame({"age": random.uniform(20, 80, n), "kind": kind})
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(900, size=n), "D")
    y = frame["age"] / 20 + np.where(kind == "wild", 3.0, 1.0) * random.normal(size=n)
    frame.loc[random.random(n) < 0.1, "kind"] = None
    return frame, y.to_numpy()


def test_a_spread_by_category_is_learned_and_stored(tmp_path):
    X, y = table(2000, 11)
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), ("passthrough", ["age"]))
    linear = make_pipeline(encoder, LinearRegression())
    model = RandomizedRegressor(linear, random_state=0).fit(X, y)
    names = [column["name"] for column in model.spread_.columns_["columns"]]
    assert "kind" in names
    with warnings.catch_warnings(action="error"):
        save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    found = again.forecast(X[:200], 0.3).ppf([0.1, 0.9])
    np.testing.assert_allclose(found, model.forecast(X[:200], 0.3).ppf([0.1, 0.9]))
    # stored once more after a forecast
    save(again, tmp_path / "again")
    rows = pd.DataFrame({"age": 50.0, "kind": ["calm", "wild", None], "since": X["since"][:3]})
    calm, wild, _ = load(tmp_path / "again").base_forecast(rows).std()
    assert 2 < wild / calm < 4


# --- tails of estimated distributions: extreme intervals miss as often as stated


STATED = np.array([0.02, 0.01])
"""Probabilities of a miss of 98% and 99% intervals."""


def miss_rates(distribution, truth):
    """Return how often 98% and 99% intervals miss, relative to the stated rates."""
    low, high = (np.ravel(distribution.ppf(p)[..., None]) for p in (STATED / 2, 1 - STATED / 2))
    return np.asarray((truth.cdf(low) + truth.sf(high)) / STATED)


def of_residuals(residuals):
    return residual_distribution(residuals, np.ones(residuals.size))


def over_normal(std):
    """Return a function that recalibrates a normal forecast of this spread."""
    base = Normal([0.0], std)
    return lambda y: Recalibrated(base, *learn_map(Cells(base.cdf(y)), np.ones(y.size)))


@statistical
@pytest.mark.parametrize(
    ("learn", "truth", "n", "most"),
    [
        # chords between ranks 4 and 16 of a tail reach farther than its quantiles
        (of_residuals, stats.norm(), 1000, 1.1),
        (of_residuals, stats.t(3), 200, 1.1),
        # and less far over a base of half the spread
        (over_normal(0.5), stats.norm(), 200, 1.25),
        (over_normal(2.0), stats.norm(), 1000, 1.25),
    ],
    ids=["normal", "t3", "narrow base", "wide base"],
)
def test_extreme_intervals_miss_as_often_as_stated(learn, truth, n, most):
    random = np.random.default_rng(n)
    samples = (truth.rvs(n, random_state=random) for _ in range(repeats(400)))
    rates = [miss_rates(learn(sample), truth) for sample in samples]
    # a 99% interval of 200 rows ends at the extreme values; a new value is outside of each with an
    # exponential(1) probability in units of 1/201: the rate's standard deviation is 0.71, and 5
    # standard errors have a false-alarm rate of 3e-7
    slack = 5 * 0.71 / np.sqrt(len(rates))
    assert (np.mean(rates, axis=0) > 0.85 - slack).all()
    assert (np.mean(rates, axis=0) < most + slack).all()


def test_extreme_quantiles_are_order_statistics_with_exponential_tails_beyond():
    residuals = np.sort(np.random.default_rng(1).normal(size=200))
    learned = residual_distribution(residuals, np.ones(residuals.size))
    ranks = np.array([1, 2])
    found = learned.ppf(ranks[:, None] / 201)[:, 0]
    np.testing.assert_allclose(found, residuals[ranks - 1], rtol=1e-9)
    ours = learned.ppf(1 - ranks[:, None] / 201)[:, 0]
    np.testing.assert_allclose(ours, residuals[-ranks], rtol=1e-9)
    # just outside of the extremes: an exponential tail with the mean excess of eight values
    excess = (residuals[8] - residuals[:8]).mean()
    far = residuals[0] - np.array([1.0, 2.0]) * excess
    np.testing.assert_allclose(np.diff(learned.logcdf(far)), -1.0, rtol=1e-9)
    np.testing.assert_allclose(np.exp(learned.logcdf(far)) * 201, np.exp([-1, -2]), rtol=0.01)


def test_tied_extremes_are_one_knot_without_a_spike():
    residuals = np.random.default_rng(2).uniform(-1, 1, size=300)
    residuals[:5] = 1.5
    residuals[5:9] = -1.5
    learned = residual_distribution(residuals, np.ones(residuals.size))
    assert np.diff(learned.values).min() > 1e-3
    # average rank of five tied values
    np.testing.assert_allclose(learned.sf(1.5), 3 / 301, rtol=1e-9)
    np.testing.assert_allclose(learned.cdf(-1.5), 2.5 / 301, rtol=1e-9)


def test_rows_of_tiny_weight_do_not_shape_the_tails():
    random = np.random.default_rng(3)
    heavy = random.normal(size=40)
    residuals = np.concatenate((heavy, 100 * random.normal(size=1000)))
    weight = np.concatenate((np.full(40, 1.0), np.full(1000, 1e-9)))
    learned = residual_distribution(residuals, weight)
    alone = residual_distribution(heavy, np.ones(heavy.size))
    np.testing.assert_allclose(learned.levels, alone.levels, rtol=1e-5)
    # between two heavy rows, interpolation passes through the rows of tiny weight
    at_rows = np.array([[1], [4], [20], [37], [40]]) / 41
    np.testing.assert_allclose(learned.ppf(at_rows), alone.ppf(at_rows), atol=0.05)


@pytest.mark.parametrize(
    "residuals", [np.zeros(5), np.array([1.0, 2.0]), np.array([1.0]), np.repeat([0.0, 1.0], 50)]
)
def test_degenerate_samples_have_a_finite_density(residuals):
    learned = residual_distribution(residuals, np.ones(residuals.size))
    assert np.isfinite(learned.logpdf([-50.0, 0.0, 0.5, 1.0, 50.0])).all()
    assert np.isfinite(learned.ppf([[1e-6], [0.5], [1 - 1e-6]])).all()


def test_tails_of_mirrored_residuals_are_mirrored():
    random = np.random.default_rng(0)
    residuals, weight = random.exponential(size=300) ** 2, random.uniform(0.5, 2, 300)
    levels = np.array([1e-6, 1e-3, 0.02, 0.5, 0.98, 1 - 1e-3, 1 - 1e-6])
    one = residual_distribution(residuals, weight).ppf(levels)
    other = residual_distribution(-residuals, weight).ppf(1 - levels)
    np.testing.assert_allclose(one, -other, rtol=1e-6)


# --- fitted plain regressors with bounds of the outcome: their predictions are mapped to the line


def shares(n, seed):
    """Features and beta outcomes, many of them next to 0 or 1."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    mean = 1 / (1 + np.exp(-1 - X[:, 0]))
    # the smallest outcomes of these distributions are rounded to the bounds
    return X, np.clip(random.beta(3 * mean, 3 * (1 - mean)), 1e-9, 1 - 1e-9)


@pytest.mark.parametrize(("outcomes", "high"), [(incomes, None), (shares, 1)])
def test_forecasts_around_a_fitted_plain_regressor_are_calibrated(outcomes, high):
    fitted = FrozenEstimator(LinearRegression().fit(*outcomes(800, seed=1)))
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


@pytest.mark.parametrize("far", [0.0, -1e9])
def test_predictions_at_and_beyond_a_bound_stay_finite(far):
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
