"""Outcomes with bounds: the map to the line, distributions and forecasters, against peers."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scoringrules
from scipy import stats
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LinearRegression

from complaints import refused
from evenhand._validate import InputError
from evenhand.distributions import LocationScale, Normal, Quantiles, Support, Transformed, Truncated
from evenhand.forecast import Forecast
from evenhand.forecasters import PAICRegressor, RandomizedRegressor, RecalibratedRegressor
from evenhand.scoring import log_score
from evenhand.selection import randomize
from evenhand.store import load, save
from forecaster_examples import incomes, small_boosted, small_mixture, small_paic

SUPPORTS = (
    *(Support(low=0.0), Support(low=-2.0, bend=0.3), Support(high=5.0)),
    *(Support(high=5.0, bend=40.0), Support(low=-1.0, high=3.0)),
    *(Support(low=-1.0, high=3.0, bend=0.05), Support(low=0.0, high=1e6, bend=2.0), Support()),
)
LEVELS = np.array([1e-12, 1e-6, 0.02, 0.3, 0.5, 0.9, 0.999, 1 - 1e-9])


@pytest.mark.parametrize("support", SUPPORTS, ids=str)
def test_the_map_is_inverted_increases_and_has_its_slope(support):
    line = np.concatenate((np.linspace(-30, 30, 401), [-300.0, 300.0]))
    y = support.from_line(line)
    assert ((y >= support.low) & (y <= support.high)).all()
    line = line[:-2]
    y = y[:-2]
    assert (np.diff(y) >= 0).all()
    # the distance from a bound has its digits where the bound is 0 or it is not small
    slope = np.exp(support.log_slope(np.clip(y, np.nextafter(support.low, 9), support.high - 1e-9)))
    lost = 4 * np.spacing(np.abs(y)) * slope
    keep = lost < 1e-9
    assert keep.sum() > 100
    np.testing.assert_allclose(support.to_line(y[keep]), line[keep], rtol=1e-12, atol=2e-9)
    inner = support.from_line(np.linspace(-3, 3, 31))
    step = 1e-6 * np.exp(-support.log_slope(inner))
    rise = support.to_line(inner + step) - support.to_line(inner - step)
    np.testing.assert_allclose(rise / 2e-6, 1, rtol=1e-5)


def test_the_map_is_a_logarithm_near_a_bound_and_a_line_far_from_it():
    support = Support(low=10.0, bend=2.0)
    np.testing.assert_allclose(support.to_line(10 + 1e-6), np.log(1e-6), atol=1e-6)
    # slope 1 / bend far from the bound
    np.testing.assert_allclose(support.to_line(510.0) - support.to_line(310.0), 100.0, rtol=1e-12)
    # bounds that are far away, compared to the bend, do not change the map in between
    near = Support(low=-1e4, high=1e4, bend=10.0)
    np.testing.assert_allclose(near.to_line([-50.0, 0.0, 70.0]), [-10.0, 0.0, 14.0], atol=1e-9)
    logit = Support(low=0.0, high=1.0)
    np.testing.assert_allclose(logit.to_line(0.2), np.log(0.25), rtol=1e-14)
    bent = Support(low=0.0, high=1.0, bend=1e6)
    np.testing.assert_allclose(bent.to_line([0.2, 0.9]), logit.to_line([0.2, 0.9]), rtol=1e-5)


def test_lognormal_distributions_are_those_of_scipy():
    mean = np.array([0.0, -1.0, 3.0])
    std = np.array([0.2, 1.5, 0.7])
    batch = Transformed(Normal(mean, std), Support(low=0.0))
    peer = stats.lognorm(std, scale=np.exp(mean))
    quantiles = batch.expand().ppf(LEVELS)
    np.testing.assert_allclose(quantiles.T, [peer.ppf(p) for p in LEVELS], rtol=1e-6)
    for p in (1e-6, 0.3, 0.9999):
        y = peer.ppf(p)
        np.testing.assert_allclose(batch.logpdf(y), peer.logpdf(y), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(batch.logcdf(y), peer.logcdf(y), rtol=1e-10)
        np.testing.assert_allclose(batch.logsf(y), peer.logsf(y), rtol=1e-8)
        expected = scoringrules.crps_lognormal(y, mean, std)
        np.testing.assert_allclose(batch.crps(y) / expected, 1, atol=2e-3)
    # moments of normal bases have no table of quantiles
    np.testing.assert_allclose(batch.mean(), peer.mean(), rtol=1e-11)
    np.testing.assert_allclose(batch.std(), peer.std(), rtol=1e-9)


@pytest.mark.parametrize(
    ("loc", "scale", "low", "high"),
    [
        (0.0, 1.0, 0.0, np.inf),
        (-30.0, 1.0, 0.0, np.inf),
        (3.0, 2.0, -1.0, 2.0),
        (40.0, 1.0, -np.inf, 1.0),
        (100.0, 1.0, 0.0, 1.0),
    ],
)
def test_truncated_normals_are_those_of_scipy(loc, scale, low, high):
    batch = Truncated(Normal([loc], scale), Support(low, high))
    peer = stats.truncnorm((low - loc) / scale, (high - loc) / scale, loc, scale)
    p = np.array([1e-4, 0.05, 0.5, 0.95, 0.9999])
    y = peer.ppf(p)
    # the quantile of the base 30 deviations out has 1e-14 of its digits left
    np.testing.assert_allclose(batch.expand().ppf(p)[0], y, atol=1e-9)
    np.testing.assert_allclose(batch.expand().logpdf(y)[0], peer.logpdf(y), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(batch.expand().cdf(y)[0], peer.cdf(y), rtol=1e-7)
    np.testing.assert_allclose(batch.expand().sf(y)[0], peer.sf(y), rtol=1e-7)
    np.testing.assert_allclose(batch.mean(), peer.mean(), atol=6e-4 * peer.std())


def test_a_base_with_nearly_nothing_inside_stays_finite():
    # a flat density between the bounds, and a tail that begins a thousand deviations out
    flat = Truncated(Normal([0.0], 1e9), Support(0.0, 1.0))
    np.testing.assert_allclose(flat.expand().cdf([0.1, 0.7])[0], [0.1, 0.7], rtol=1e-7)
    np.testing.assert_allclose(flat.expand().ppf([0.1, 0.7])[0], [0.1, 0.7], rtol=1e-7)
    np.testing.assert_allclose(flat.logpdf(0.3), 0.0, atol=1e-7)
    # a normal tail at z = 1000 is exponential with rate 1000, up to 1e-6
    tail = Truncated(Normal([-1000.0], 1.0), Support(low=0.0))
    np.testing.assert_allclose(tail.ppf(0.5), np.log(2) / 1000, rtol=1e-5)
    np.testing.assert_allclose(tail.logpdf(0.0), np.log(1000), rtol=1e-5)
    assert np.isfinite(tail.crps(3.0)).all()


@pytest.mark.parametrize(
    ("kind", "link"), [(Transformed, "entropic"), (Truncated, "laplace"), (Truncated, "gaussian")]
)
def test_outcomes_at_and_beyond_a_bound(kind, link):
    support = Support(low=0.0, edge=0.25, is_map=kind is Transformed)
    forecast = Forecast(kind(Normal([0.2], 1.0), support))
    for one in (forecast, forecast.randomized(0.2, link, r=[0.7])):
        for name in ("cdf", "logpdf"):
            at, near, edge = (float(getattr(one, name)(y)[0]) for y in (0.0, 0.1, 0.25))
            assert at == near == edge
            assert np.isfinite(at)
        assert one.cdf(-1e-9)[0] == 0
        assert one.logpdf(-1e-9)[0] == -np.inf
    refused(
        r"y\[0\] must lie within the support of the forecasts, got -1", log_score, forecast, [-1.0]
    )


def test_a_heavy_residual_tail_has_a_mean_of_the_size_of_the_outcomes():
    # exp(Z) with an exponential tail of length 2 has an infinite mean; a line beyond the bend has
    # exponential tails, whose mean excess is 2 bends: at most 1% of probability adds 2% of a bend
    tail = Quantiles([0.01, 0.5, 0.97, 0.99], [[-4.0, 0.0, 2.0, 6.0]])
    heavy = LocationScale(tail, [0.0, 1.0])
    assert (Transformed(heavy, Support(low=0.0)).mean() > 1e6).all()
    assert (Transformed(heavy, Support(low=0.0, bend=np.exp(6.0))).mean() < 30).all()


def learned(y, X=None, support=(0, None)):
    rows = np.zeros((y.size, 1)) if X is None else X
    return RandomizedRegressor(LinearRegression(), support=support).fit(rows, y).support_


def test_the_bend_is_large_for_proportional_noise_and_small_for_additive_noise():
    random = np.random.default_rng(0)
    X = random.uniform(size=(2000, 1))
    centre = 1 + 50 * X[:, 0] ** 3
    noise = random.normal(size=2000)
    proportional = learned(centre * np.exp(0.4 * noise), X)
    # additive noise, although the outcomes are as skewed as before
    additive = learned(np.maximum(centre + 1.5 * noise, 0.01 * np.exp(noise)), X)
    assert proportional.bend > 20
    assert additive.bend < 5


def test_outcomes_at_a_bound_are_moved_inside_by_half_the_smallest_distance():
    _, y = incomes(200)
    y = np.ceil(4 * y) / 4
    y[:4] = 0.0
    found = learned(y + 10, support=(10, None))
    assert found.edge == 0.125
    moved = found.inside([10.0, 10.1, 10.25, 9.0])
    np.testing.assert_array_equal(moved, [10.125, 10.125, 10.25, 9.0])


def test_more_outcomes_at_a_bound_are_refused():
    X, y = incomes(200)
    y[:5] = 0.0
    with pytest.raises(InputError, match=r"y is 0, a bound of support=\(0, None\), in 2\.5% .* 2%"):
        RandomizedRegressor(LinearRegression(), support=(0, None)).fit(X, y)


def test_an_outcome_outside_is_refused_with_its_row_among_all_rows():
    X, y = incomes(100)
    y[7] = -2.5
    weight = np.ones(100)
    weight[:5] = 0.0
    model = RandomizedRegressor(BayesianRidge(), support=(0, None))
    outside = r"y\[7\] must lie within support=\(0, None\), got -2\.5"
    refused(outside, model.fit, X, y, weight)
    weight[7] = 0.0
    model.fit(X, y, weight)
    refused(outside, randomize, LinearRegression(), X, y, support=(0, None))


@pytest.mark.parametrize("wrong", [(3, 1), (0,), "ab", (np.nan, 1), 5], ids=str)
def test_wrong_bounds_are_refused_in_one_line(wrong):
    X, y = incomes(50)
    for model in (
        RandomizedRegressor(LinearRegression(), support=wrong),
        RecalibratedRegressor(LinearRegression(), support=wrong),
        small_paic(support=wrong),
    ):
        refused(r"support must be a pair \(low, high\)", model.fit, X, y)


def test_a_bound_that_is_too_far_away_for_floating_point_numbers_is_refused():
    X, y = incomes(100)
    model = RandomizedRegressor(LinearRegression(), random_state=0)
    medians = [
        model.set_params(support=(0, high)).fit(X, y).forecast(X, r=0.5).ppf(0.5)
        for high in (1e5 * np.ptp(y), 1e10 * np.ptp(y))
    ]
    np.testing.assert_allclose(*medians, rtol=1e-3)
    model.set_params(support=(0, 1e18))
    refused(r"support must have bounds .* got 1e\+18; pass None", model.fit, X, y)


MAKERS = {
    "residuals": partial(RandomizedRegressor, LinearRegression(), random_state=0),
    "recalibrate": partial(RandomizedRegressor, BayesianRidge(), recalibrate=True, random_state=0),
    "frozen": lambda **given: RandomizedRegressor(
        FrozenEstimator(LinearRegression().fit(*incomes(300, seed=9))), random_state=0, **given
    ),
    "function": partial(RandomizedRegressor, lambda X: (2 + X[:, 0], np.full(len(X), 2.0))),
    "recalibrated": partial(RecalibratedRegressor, LinearRegression(), random_state=0),
    "paic": small_paic,
    "mixture": small_mixture,
    "boosted": small_boosted,
}


@pytest.mark.parametrize("name", MAKERS)
def test_no_interval_leaves_the_support_and_saved_models_are_the_same(name, tmp_path):
    X, y = incomes(300)
    model = MAKERS[name](support=(0, None)).fit(X, y)
    new = np.array([[-4.0, 0.0], [0.0, 0.0], [5.0, 1.0]])
    for level in (0.5, 0.98, 1 - 1e-9):
        low, high = model.forecast(new, r=0.3).interval(level)
        assert (low >= 0).all()
        assert (low < high).all()
    mean = model.predict(new)
    assert (mean > 0).all()
    # nothing explodes where a linear model extrapolates to exp(5) times the outcomes
    assert (mean < 100 * y.max()).all()
    np.testing.assert_allclose(clone(model).fit(X, y).predict(new), mean, rtol=1e-6)
    if name == "function":
        return
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.support == (0, None)
    assert again.support_ == model.support_
    found = again.forecast(new, r=0.3).ppf([0.01, 0.7])
    np.testing.assert_allclose(found, model.forecast(new, r=0.3).ppf([0.01, 0.7]))
    np.testing.assert_allclose(again.predict(new), mean)


def test_models_that_are_fitted_work_on_the_line_and_others_are_truncated():
    X, y = incomes(300)
    model = RandomizedRegressor(LinearRegression(), support=(0, None), random_state=0).fit(X, y)
    expected = LinearRegression().fit(X, model.support_.to_line(y))
    np.testing.assert_allclose(model.estimator_.predict(X), expected.predict(X))
    function = MAKERS["function"]
    plain = function().fit(X, y).base_forecast(X[:4])
    bounded = function(support=(0, None)).fit(X, y).base_forecast(X[:4])
    share = 1 - plain.cdf(0.0)
    np.testing.assert_allclose(bounded.cdf(3.0), (plain.cdf(3.0) - 1 + share) / share)
    np.testing.assert_allclose(bounded.logpdf(3.0), plain.logpdf(3.0) - np.log(share))


def test_truncated_forecasts_are_recalibrated_as_they_are_served():
    # a predicted median of 0 for each exponential outcome: half of each forecast is below the bound
    random = np.random.default_rng(0)
    X, y = np.zeros((4000, 1)), random.exponential(size=4000)
    signs = np.tile([-1.0, 1.0], 2000)
    constant = FrozenEstimator(BayesianRidge().fit(X, signs))
    model = RecalibratedRegressor(constant, support=(0, None), random_state=0).fit(X, y)
    assert isinstance(model.base_forecast(X[:1]).distribution, Truncated)
    # the standard error of a mean PIT of 4,000 is 0.005, and the maps were learned on such rows
    new = random.exponential(size=4000)
    assert abs(model.forecast(X).pit(new).mean() - 0.5) < 0.03


def test_support_of_both_a_wrapper_and_its_model_is_refused():
    X, y = incomes(100)
    inner = RecalibratedRegressor(BayesianRidge(), support=(0, None))
    for estimator in (inner, [inner]):
        with pytest.raises(InputError, match="support is given both for RandomizedRegressor and"):
            RandomizedRegressor(estimator, support=(0, None)).fit(X, y)
    # each of the two alone bounds the forecasts
    for model in (
        RandomizedRegressor(inner, random_state=0),
        RandomizedRegressor(clone(inner).set_params(support=None), support=(0, None)),
        RandomizedRegressor(FrozenEstimator(clone(inner).fit(X, y)), support=(0, 1000)),
    ):
        assert (model.fit(X, y).forecast(X, r=0.01).interval(0.98)[0] >= 0).all()


def test_validation_outcomes_of_a_network_are_mapped_and_checked():
    X, y = incomes(100)
    model = PAICRegressor(support=(0, None), max_steps=5, hidden=(8, 8), random_state=0)
    model.fit(X, y, X_val=X, y_val=y)
    assert (model.forecast(X, r=0.1).ppf(0.001) > 0).all()
    with pytest.raises(InputError, match=r"y_val\[0\] must lie within support=\(0, None\), got -1"):
        model.fit(X, y, X_val=X, y_val=np.full(100, -1.0))


def test_selections_take_a_support():
    X, y = incomes(600)
    chosen = randomize(BayesianRidge(), X, y, support=(0, None), random_state=0)
    assert (chosen.model.forecast(X, r=0.05).interval(0.98)[0] >= 0).all()
    assert (chosen.alternative.forecast(X).interval(0.98)[0] >= 0).all()
    refused("support=.* has no effect", randomize, [chosen.model], X, y, support=(0, None))


@pytest.mark.usefixtures("quick_training")
def test_the_command_fits_with_bounds_and_refuses_wrong_ones_in_one_line(tmp_path, evenhand):
    X, y = incomes(200)
    pd.DataFrame({"a": X[:, 0], "income": y}).to_csv(tmp_path / "people.csv", index=False)
    args = ("fit", tmp_path / "people.csv", "--target", "income", "--seed", 0)
    evenhand(*args, "--support", "0:", "--out", tmp_path / "model").done()
    model = load(tmp_path / "model")
    assert model.support == (0, None)
    low, _ = model.forecast(pd.DataFrame({"a": [-3.0, 0.0]}), r=0.01).interval(0.98)
    assert (low >= 0).all()

    for wrong, got in (("abc", "'abc'"), ("5:0", "(5.0, 0.0)"), ("nan:1", "(nan, 1.0)")):
        complaint = evenhand(*args, "--out", tmp_path / "m", "--support", wrong).complaint()
        assert "--support must be " in complaint
        assert f"got {got}; for amounts of money " in complaint
