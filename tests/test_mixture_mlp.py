"""The default network: length of training, choice of regularization, inputs, spread."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from evenhand.forecasters import MixtureMLPRegressor
from evenhand.forecasters.network.inputs import (
    Inputs,
    MixtureOutputs,
    Skew,
    robust_scale,
    skew_scores,
)
from evenhand.forecasters.network.mixture_mlp import spread_factor
from forecaster_examples import linear_task

Floats = NDArray[np.float64]

SMALL: dict[str, Any] = {"n_members": 2, "n_components": 2, "hidden": (8,), "random_state": 0}
GIVEN: dict[str, Any] = SMALL | {"dropout": 0.0}


# --- length of training


@pytest.mark.parametrize(
    ("n", "batch_size", "n_steps"),
    [
        # 200 passes of 4 steps, 1,250 steps in whole passes of 19, and 30 passes of 156
        (300, 64, 800),
        (2500, 128, 1235),
        (40_000, 256, 4680),
    ],
)
def test_training_is_counted_in_passes(n: int, batch_size: int, n_steps: int) -> None:
    settings = MixtureMLPRegressor()._settings(n, 0.1)
    assert settings.batch_size == batch_size
    assert settings.max_steps == n_steps
    assert MixtureMLPRegressor(max_passes=3)._settings(n, 0.1).max_steps == 3 * (n // batch_size)
    assert MixtureMLPRegressor(max_steps=7)._settings(n, 0.1).max_steps == 7


def test_time_budget_ends_training(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def later() -> float:
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr("evenhand.forecasters.network.settings.time.monotonic", later)
    X, y = linear_task(200)
    model = MixtureMLPRegressor(**GIVEN, time_budget=50.0).fit(X, y)
    # the clock is read twice a step: once for the step size, once for the end
    assert 20 <= model.n_steps_.max() <= 26


def test_networks_that_still_improve_are_warned_about() -> None:
    X, y = linear_task(200)
    with pytest.warns(ConvergenceWarning, match="2 of 2 networks .* max_passes") as caught:
        MixtureMLPRegressor(**GIVEN | {"hidden": (16, 16)}, max_steps=150).fit(X, X[:, 0] + X[:, 1])
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        MixtureMLPRegressor(**GIVEN).fit(X, y)


# --- choice of regularization


def test_weak_regularization_is_chosen_for_outcomes_without_noise() -> None:
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = X[:, 0] + X[:, 1]
    model = MixtureMLPRegressor(2, 2, hidden=(16, 16), max_steps=200, random_state=0).fit(X, y)
    assert model.strength_ == (0.0, 0.01)


# --- inputs and outcomes


def test_scale_of_a_lognormal_variable_is_that_of_its_normal_scores() -> None:
    score = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    offset, unit, g = robust_scale(10 + 2 * np.expm1(0.8 * score) / 0.8, np.ones(20_000))
    # estimates are shrunk by the factor n / (n + 50)
    assert (offset, unit, g) == pytest.approx((10.0, 2.0, 0.8), rel=5e-3)
    recovered = skew_scores((10 + 2 * np.expm1(0.8 * score) / 0.8 - 10) / 2, 0.8)
    np.testing.assert_allclose(recovered, score, atol=1e-9)


def test_skewed_map_is_increasing_and_linear_beyond_its_range() -> None:
    skew = Skew(0.7, -1.0, 2.0)
    score = np.linspace(-6, 8, 1401)
    place, slope = skew.place(score)
    assert (np.diff(place) > 0).all()
    np.testing.assert_allclose(np.gradient(place, score)[1:-1], slope[1:-1], rtol=1e-2)
    assert len(set(np.round(slope[score > 2.0], 12))) == 1
    inside = (score > -0.99) & (score < 1.99)
    np.testing.assert_allclose(skew_scores(place[inside], 0.7), score[inside], atol=1e-9)


def test_inputs_have_short_tails_and_indicators_of_rare_levels_are_not_large() -> None:
    rng = np.random.default_rng(0)
    rare = (np.arange(2000) % 500 == 0).astype(np.float64)
    raw = np.column_stack([rng.standard_cauchy(2000), np.exp(3 * rng.normal(size=2000)), rare])
    encoded = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    inputs = Inputs.fit(encoded).without_bins().transform(encoded)
    assert np.abs(inputs).max() < 30
    assert np.ptp(inputs[:, 2]) == pytest.approx(2.0)
    # order is kept
    for j in range(3):
        assert (np.diff(inputs[np.argsort(raw[:, j]), j]) >= 0).all()


def test_bins_need_rows_and_grow_within_their_own_range_only() -> None:
    encoded = np.random.default_rng(0).normal(size=(1600, 1))
    assert not Inputs.fit(encoded[:700]).has_bins
    learned = Inputs.fit(encoded)
    transformed = learned.transform(encoded)
    assert transformed.shape == (1600, 1 + 16)
    # every row is inside at most one bin: the others are at one of their two ends
    ends = np.isclose(np.abs(transformed[:, 1:]), 1.5)
    assert ((~ends).sum(axis=1) <= 1).all()
    restored = Inputs.from_state(learned.to_state(), learned.factor.size)
    np.testing.assert_array_equal(restored.transform(encoded), transformed)


def test_components_are_at_least_as_wide_as_a_rounding_cell() -> None:
    units = np.round(np.random.default_rng(0).normal(size=500), 1)
    assert MixtureOutputs.of(units, 0.0).min_std == pytest.approx(0.1 / np.sqrt(12))
    smooth = np.random.default_rng(0).normal(size=500)
    assert MixtureOutputs.of(smooth, 0.0).min_std == 0.002


# --- spread


@pytest.mark.parametrize("factor", [0.8, 1.3])
def test_spread_factor_of_one_member_is_the_ratio_of_spreads(factor: float) -> None:
    n = 20_000
    y = factor * np.random.default_rng(0).normal(size=n)
    one = np.ones((1, n, 1))
    found = spread_factor(one, 0 * one, one, y, np.ones(n), np.ones((1, n), dtype=bool))
    # standard error of a log standard deviation: 1 / sqrt(2 n) = 0.005; 5 of them, and shrinkage
    assert found == pytest.approx(factor, abs=0.03)


def test_spread_factor_allows_for_the_disagreement_of_members() -> None:
    rng = np.random.default_rng(0)
    n, m, between = 40_000, 4, 0.3
    # the truth is a standard normal; members' means err independently, with variance 0.3
    y = rng.normal(size=n)
    loc = np.sqrt(between) * rng.normal(size=(m, n, 1))
    one = np.ones((m, n, 1))
    held = np.arange(n) % m == np.arange(m)[:, None]
    found = spread_factor(one, loc, one, y, np.ones(n), held)
    # the ensemble's variance, t^2 + 0.3 * 3 / 4, should be that of its error, 1 + 0.3 / 4; a member
    # errs with variance 1.3, so that t^2 = (1.3 - c) / (1 + c) with c = 0.225
    assert found == pytest.approx(np.sqrt((1.3 - 0.225) / 1.225), abs=0.02)


def test_spread_is_calibrated_where_there_is_little_noise() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1400, 3))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.01 * rng.normal(size=1400)
    model = MixtureMLPRegressor(4, 2, hidden=(32, 32), max_steps=400, dropout=0.0, random_state=0)
    model.fit(X[:600], y[:600])
    forecast = model.forecast(X[600:])
    inside = (forecast.ppf(0.05) < y[600:]) & (y[600:] < forecast.ppf(0.95))
    # with a spread of at least 0.02 standard deviations of the outcome all rows were inside
    assert 0.82 < inside.mean() < 0.97


def test_networks_chosen_by_few_members_are_trained_from_the_beginning() -> None:
    # each of four members holds out 900 rows, so that two suffice for 1,500; columns of two values
    # have no bins, so that only the strength is chosen
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(6000, 3)).astype(float)
    y = X[:, 0] + rng.normal(size=6000)
    params: dict[str, Any] = SMALL | {"n_members": 4, "max_steps": 20}
    tried = MixtureMLPRegressor(**params).fit(X, y)
    dropout, weight_decay = tried.strength_
    given = MixtureMLPRegressor(**params, dropout=dropout, weight_decay=weight_decay).fit(X, y)
    for name, array in given.weights_.items():
        np.testing.assert_allclose(tried.weights_[name], array, rtol=1e-5, atol=1e-6)
