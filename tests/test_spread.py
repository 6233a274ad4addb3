"""Learned spread of plain regressors: regions of larger noise, and what is stored."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from evenhand import (
    InputError,
    RandomizedRegressor,
    RecalibratedRegressor,
    load,
    randomize,
    save,
)
from evenhand.calibration import calibration_error
from evenhand.forecasters import SpreadTrees
from repeats import repeats, statistical

Floats = NDArray[np.float64]


def noisy_region(n: int, region: str, seed: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
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


def growing(n: int, seed: int) -> tuple[Floats, Floats]:
    """Return rows whose log spread is linear in six features."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 6))
    return X, X[:, 0] + np.exp(0.5 * X.sum(axis=1)) * random.normal(size=n)


def conformal_width(X: Floats, y: Floats) -> float:
    """Return the width of split conformal 80% intervals around a linear regression."""
    half = len(y) // 2
    model = LinearRegression().fit(X[:half], y[:half])
    scores = np.sort(np.abs(y[half:] - model.predict(X[half:])))
    return float(2 * scores[int(np.ceil(0.8 * (scores.size + 1))) - 1])


@pytest.mark.parametrize(
    ("recalibrate", "region"), [(False, "interval"), (False, "category"), (True, "threshold")]
)
def test_intervals_are_wider_in_a_region_of_larger_noise(recalibrate: bool, region: str) -> None:
    X, y, _ = noisy_region(4000, region, 0)
    fresh, y_fresh, inside = noisy_region(20_000, region, 1)
    coverage = {}
    for spread in ("learned", "constant"):
        model: Any = RandomizedRegressor(LinearRegression(), spread=spread, random_state=0)
        if recalibrate:
            model = RecalibratedRegressor(LinearRegression(), spread=spread, random_state=0)
        model.fit(X, y)
        forecast = model.forecast(fresh) if recalibrate else model.base_forecast(fresh)
        low, high = forecast.interval(0.8)
        covers = (low <= y_fresh) & (y_fresh <= high)
        coverage[spread] = covers[inside].mean()
        assert abs(covers.mean() - 0.8) < 0.035
        # a perfect model of the spread needs 1.07 times the width
        assert (high - low).mean() < 1.12 * conformal_width(X, y)
    # over training sets, coverage with a learned spread has mean 0.78 and standard deviation 0.012:
    # it is below 0.72 with probability 1e-6; with a constant spread, the ends are at 1.43, or
    # 1.43 / 3 standard deviations in the region, and cover 0.37 there
    assert coverage["learned"] > 0.72
    assert coverage["constant"] < 0.5


@statistical
@pytest.mark.parametrize("n", [200])
def test_nothing_is_lost_where_spread_is_constant(n: int) -> None:
    changes = []
    fresh, y_fresh, _ = noisy_region(4000, "nowhere", 1)
    n_sets = repeats(40)
    for seed in range(n_sets):
        X, y, _ = noisy_region(n, "nowhere", 100 + seed)
        learned, constant = (
            RandomizedRegressor(KNeighborsRegressor(20), spread=spread, random_state=0).fit(X, y)
            for spread in ("learned", "constant")
        )
        if learned.spread_ is None:
            changes.append(0.0)
            continue
        scores = [one.base_forecast(fresh).crps(y_fresh).mean() for one in (learned, constant)]
        changes.append(scores[0] / scores[1] - 1)
    # one data set in twenty has a learned spread, which costs 0.4% at most: a mean above 0.5% has a
    # probability below 1e-6
    assert np.mean(changes) < 0.005


def test_small_tables_and_perfect_predictions_have_constant_spread() -> None:
    X, y, _ = noisy_region(99, "threshold", 2)
    assert RandomizedRegressor(LinearRegression()).fit(X, y).spread_ is None
    X, y, _ = noisy_region(300, "threshold", 3)
    exact = RandomizedRegressor(LinearRegression()).fit(X, X[:, 0])
    assert np.isfinite(exact.base_forecast(X[:5]).logpdf(X[:5, 0])).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_without_residuals_do_not_make_trees_diverge(weighted: bool) -> None:
    # half of the rows have the smallest size that residuals are raised to, of which Newton steps on
    # the log scale reach -100
    random = np.random.default_rng(0)
    X = random.uniform(size=(1000, 3))
    is_zero = X[:, 0] < 0.5
    weight = 10 ** random.uniform(-3, 3, size=1000) if weighted else None
    size = np.where(is_zero, 1e-3, 2 * random.exponential(size=1000)).clip(1e-3, 20.0)
    log_size = SpreadTrees(60, 1.0).fit(X, np.zeros(1000), size, weight).predict(X, np.zeros(1000))
    assert log_size[is_zero].mean() < np.log(0.01)
    # the mean size is 2
    np.testing.assert_allclose(log_size[~is_zero].mean(), np.log(2), atol=0.25)


def test_a_model_is_never_fitted_to_the_sizes_of_its_residuals() -> None:
    # a regressor of other outcomes than it is made for may raise, or silently learn something else
    fitted_to: list[Floats] = []

    class Noting(LinearRegression):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            fitted_to.append(y)
            return super().fit(X, y)

    X, y = growing(1000, 4)
    model = RandomizedRegressor(Noting(), cv=5, random_state=0).fit(X, y)
    assert type(model.spread_) is SpreadTrees
    assert len(fitted_to) == 6
    assert all(np.isin(each, y).all() for each in fitted_to)


def test_a_frozen_model_is_not_refitted_and_its_spread_is_learned() -> None:
    X, y, _ = noisy_region(4000, "interval", 6)
    inner = LinearRegression().fit(X[:1000], y[:1000])
    model = RandomizedRegressor(FrozenEstimator(inner), random_state=0).fit(X[1000:], y[1000:])
    assert type(model.spread_) is SpreadTrees
    calm, wild = model.base_forecast([[0.5, 0.1, 0.5, 5], [0.5, 0.5, 0.5, 5]]).std()
    assert 2 < wild / calm < 4


def test_weights_say_which_rows_have_the_larger_noise() -> None:
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


def test_held_out_pits_of_a_learned_spread_are_calibrated() -> None:
    X, y, inside = noisy_region(4000, "threshold", 9)
    model = RandomizedRegressor(LinearRegression(), random_state=0).fit(X, y)
    fresh, y_fresh, inside = noisy_region(20_000, "threshold", 10)
    pit = model.base_forecast(fresh).cdf(y_fresh)
    # the average error of a calibrated forecast on 2,000 rows is 0.4 / sqrt(2000) = 0.009; with a
    # constant spread it is 0.09 there
    assert calibration_error(pit) < 0.02
    assert calibration_error(pit[inside]) < 0.04


# --- tables and what is stored


def table(n: int, seed: int) -> tuple[pd.DataFrame, Floats]:
    """Return a table with a category that has three times the noise, and missing values."""
    random = np.random.default_rng(seed)
    kind = random.choice(["calm", "calmer", "wild"], n, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame({"age": random.uniform(20, 80, n), "kind": kind})
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(900, size=n), "D")
    y = frame["age"] / 20 + np.where(kind == "wild", 3.0, 1.0) * random.normal(size=n)
    frame.loc[random.random(n) < 0.1, "kind"] = None
    return frame, y.to_numpy()


def linear() -> Any:
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), ("passthrough", ["age"]))
    return make_pipeline(encoder, LinearRegression())


def test_a_spread_by_category_is_learned_and_stored(tmp_path: Path) -> None:
    X, y = table(2000, 11)
    model = RandomizedRegressor(linear(), random_state=0).fit(X, y)
    names = [column["name"] for column in model.spread_.columns_["columns"]]
    assert "kind" in names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_allclose(
        again.forecast(X[:200], 0.3).ppf([0.1, 0.9]), model.forecast(X[:200], 0.3).ppf([0.1, 0.9])
    )
    # stored once more after a forecast
    save(again, tmp_path / "again")
    rows = pd.DataFrame({"age": 50.0, "kind": ["calm", "wild", None], "since": X["since"][:3]})
    calm, wild, _ = load(tmp_path / "again").base_forecast(rows).std()
    assert 2 < wild / calm < 4


def test_forged_trees_are_refused(tmp_path: Path) -> None:
    X, y, _ = noisy_region(2000, "threshold", 14)
    for name, value in (("left_", 10**6), ("roots_", -1), ("depth_", 10**9)):
        model = RandomizedRegressor(LinearRegression(), random_state=0).fit(X, y)
        if name == "depth_":
            model.spread_.depth_ = value
        else:
            getattr(model.spread_, name)[0] = value
        save(model, tmp_path / name)
        with pytest.raises(InputError, match="an inner model is refused"):
            load(tmp_path / name)


@pytest.mark.parametrize("options", [{}, {"recalibrate": True}], ids=str)
def test_selections_take_a_spread(options: dict[str, Any]) -> None:
    X, y, inside = noisy_region(1500, "threshold", 6)
    ratios = {}
    for spread in ("learned", "constant"):
        chosen = randomize(
            LinearRegression(), X, y, spread=spread, max_group_error=0.4, random_state=0, **options
        )
        low, high = chosen.model.base_forecast(X).interval(0.8)
        ratios[spread] = (high - low)[inside].mean() / (high - low)[~inside].mean()
        assert chosen.model.spread == spread
    # a perfect model of the spread has a ratio of 3
    assert ratios["learned"] > 2
    assert ratios["constant"] == pytest.approx(1.0)
    with pytest.raises(InputError, match="spread='constant' has no effect"):
        randomize([chosen.model], X, y, spread="constant")
