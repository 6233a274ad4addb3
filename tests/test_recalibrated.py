"""Recalibration: the wrapper maps the base's CDF, and the maps repair planted errors."""

import datetime as dt
import tracemalloc
import warnings

import msgspec
import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from complaints import refused
from evenhand import ForecastColumns, Outcomes, RecalibratedRegressor, load, save
from evenhand.calibration import Cells, calibration_error
from evenhand.distributions import Normal, Recalibrated, Tail
from evenhand.forecasters import samples
from evenhand.forecasters.samples import plotting_positions, shrunk
from evenhand.tables import Partition, Schema, UnseenValuesWarning
from forecaster_examples import error_by_chance, linear_task

LEVELS = np.array([0.0, 0.1, 0.35, 0.8, 1.0])
VALUES = np.array([0.0, 0.3, 0.4, 0.95, 1.0])


def learn_map(pit, weight):
    return samples.learn_map(Cells(pit), weight)


def test_around_a_normal_it_is_the_map_at_its_cdf():
    batch = Recalibrated(Normal([0.0], 1.0), LEVELS, VALUES)
    y = np.linspace(-3, 3, 41)
    found = batch.cdf(y)
    np.testing.assert_allclose(found, np.interp(stats.norm.cdf(y), LEVELS, VALUES), rtol=1e-12)
    ours = batch.sf(y)
    np.testing.assert_allclose(ours, 1 - np.interp(stats.norm.cdf(y), LEVELS, VALUES), rtol=1e-11)
    slopes = np.diff(VALUES) / np.diff(LEVELS)
    cell = np.searchsorted(LEVELS, stats.norm.cdf(y)) - 1
    expected = np.log(slopes[cell]) + stats.norm.logpdf(y)
    np.testing.assert_allclose(batch.logpdf(y), expected, rtol=1e-12)
    p = np.linspace(0.01, 0.99, 50)
    wanted = stats.norm.ppf(np.interp(p, VALUES, LEVELS))
    np.testing.assert_allclose(batch.ppf(p), wanted, rtol=1e-11, atol=1e-13)


def test_a_tail_that_the_map_makes_tiny_in_the_middle_keeps_its_digits():
    least = 2.0**-40
    batch = Recalibrated(Normal([0.0], 1.0), [0, 0.25, 1], [0, 1 - least, 1])
    # at the base's median two thirds of the upper line are left
    np.testing.assert_allclose(batch.sf(0.0), least * 2 / 3, rtol=1e-13)
    found = batch.point(Tail(np.log([least * 2 / 3]), np.array([True])))
    np.testing.assert_allclose(found, 0, atol=1e-12)
    # a tail of all but 1e-20 is the other tail of 1e-20
    for side in (False, True):
        nearly_all = batch.point(Tail(np.array([-1e-20]), np.array([side])))
        rest = batch.point(Tail(np.log([1e-20]), np.array([not side])))
        np.testing.assert_allclose(nearly_all, rest, rtol=1e-12)


def test_maps_of_many_rows_cost_no_array_of_knots_for_each_row():
    n, inner = 20_000, np.sort(np.random.default_rng(32).uniform(size=(4, 199)), axis=-1)
    levels = np.concatenate((np.zeros((4, 1)), inner, np.ones((4, 1))), axis=-1)
    base, which, y = Normal(np.zeros(n), 1.0), np.arange(n) % 4, np.linspace(-3, 3, n)
    tracemalloc.start()
    batch = Recalibrated(base, levels, 1 - levels[:, ::-1], which)
    batch.take(slice(0, None, 2)).expand()
    batch.cdf(y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 40 arrays of one number a row; one array of knots for each row is five times that
    assert peak < 40 * 8 * n


def test_maps_that_cannot_be_are_refused_in_one_line():
    base, two = Normal(np.zeros(3), 1.0), np.array([[0, 0.5, 1], [0, 0.4, 1]])
    refused("values .*increase strictly", Recalibrated, base, [0, 0.5, 1], [0, 0.7, 0.6])
    refused(
        "levels must begin at 0 and end at 1, got 0.1 to 1", Recalibrated, base, [0.1, 1], [0, 1]
    )
    numbers = "which must be numbers of maps, integers from 0 to 1, got None"
    refused(numbers, Recalibrated, base, two, two)


@pytest.mark.parametrize("n", [60, 500])
def test_steps_before_smoothing_are_the_isotonic_regression_of_the_ranks(n):
    pit = np.random.default_rng(1).beta(0.5, 0.7, n)
    pit[: n // 5] = np.round(pit[: n // 5], 2)  # ties
    rank = stats.rankdata(pit) / (n + 1)
    # at ties isotonic regression takes the mean, as average ranks do
    peer = IsotonicRegression().fit(pit, stats.rankdata(pit, method="ordinal") / (n + 1))
    place, share = plotting_positions(pit, np.ones(n))
    np.testing.assert_allclose(share, peer.predict(place), rtol=1e-12)
    np.testing.assert_allclose(np.interp(pit, place, share), rank, rtol=1e-12)
    levels, values = learn_map(pit, np.ones(n))
    # a PIT of 0 counts as 1e-12
    inside = (levels > max(pit.min(), 1e-12)) & (levels < pit.max())
    np.testing.assert_allclose(peer.predict(levels[inside]), values[inside], rtol=1e-9)


def test_unequal_weights_count_as_fewer_rows():
    pit = np.random.default_rng(20).uniform(size=1010)
    weight = np.concatenate((np.full(10, 1e6), np.full(1000, 1e-3)))
    # ten rows hold all but 1e-7 of the weight: 2 * 10^0.4 = 5.02 lines, and rank 1 in each tail
    assert learn_map(pit, weight)[0].size == 6 + 2


@pytest.mark.parametrize(
    "pit",
    [
        np.full(100, 0.5),
        np.repeat([0.5, 0.5 + 1e-16, 0.5 + 3e-16], 40),
        np.repeat([0.0, 1.0], 40),
        np.array([0.3]),
        np.concatenate((np.full(500, 1.0), np.random.default_rng(4).uniform(size=500))),
    ],
    ids=str,
)
def test_atoms_still_give_a_strictly_rising_map_with_a_finite_density(pit):
    levels, values = learn_map(pit, np.ones(pit.size))
    batch = Recalibrated(Normal([0.0], 1.0), levels, values)  # refuses a map that does not rise
    for y in (-50.0, 0.0, 3.0, 50.0):
        assert np.isfinite([batch.logpdf(y), batch.logcdf(y), batch.logsf(y)]).all()
    assert np.isfinite(batch.ppf([1e-9])).all()


class Says(RegressorMixin, BaseEstimator):
    """A model that always predicts Normal(shift, std), whatever it is fitted to."""

    def __init__(self, shift=0.0, std=1.0):
        self.shift, self.std = shift, std

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X, return_std=False):
        mean = np.full(len(X), self.shift)
        return (mean, np.full(len(X), self.std)) if return_std else mean


def standard(n, seed):
    """Outcomes from the standard normal law, whatever the two features say."""
    random = np.random.default_rng(seed)
    return random.normal(size=(n, 2)), random.normal(size=n)


@pytest.mark.parametrize(("shift", "std"), [(0.0, 0.5), (-0.5, 3.0), (2.0, 0.8)], ids=str)
def test_a_wrong_spread_or_shift_is_repaired_on_fresh_rows(shift, std):
    model = RecalibratedRegressor(Says(shift, std), random_state=0).fit(*standard(1500, 1))
    rows, y = standard(1000, 2)
    before, after = (
        calibration_error(one.pit(y)) for one in (model.base_forecast(rows), model.forecast(rows))
    )
    # each: a false alarm in 1 of 1000 seeds; 0.002 for the lines between the 37 knots
    assert after < error_by_chance() * np.sqrt(1 / 1500 + 1 / 1000) + 0.002
    assert before > 2 * after


def halves(n, seed):
    """Two halves whose outcomes lie half a standard deviation above and below what `Says` says."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"x": random.normal(size=n), "side": np.where(np.arange(n) % 2 == 0, "left", "right")}
    )
    return table, np.where(table["side"] == "left", -0.5, 0.5) + random.normal(size=n)


def test_groups_by_function_columns_or_both_halves_of_a_number_are_the_same_groups(tmp_path):
    table, y = halves(1000, 3)
    table = table.assign(score=np.where(table["side"] == "left", -1.0, 1.0) + 0.1 * table["x"])
    array = table[["x", "score"]].to_numpy()
    by_name, by_function, by_number = (
        RecalibratedRegressor(Says(), by, random_state=0).fit(table, y)
        for by in (["side"], lambda rows: rows["side"], "score")
    )
    on_array = RecalibratedRegressor(Says(), by=lambda rows: rows[:, 1] > 0, random_state=0)
    expected = by_name.forecast(table).pit(y)
    for model in (by_function, by_number):
        np.testing.assert_array_equal(model.forecast(table).pit(y), expected)
    np.testing.assert_array_equal(on_array.fit(array, y).forecast(array).pit(y), expected)
    assert by_function.groups_["group"].tolist() == ["left", "right"]
    assert on_array.groups_["group"].tolist() == ["False", "True"]
    refused(r"`by` is the function .*cannot be stored; put its lab", save, by_function, tmp_path)


@pytest.mark.parametrize("n", [150, 300])
def test_a_fit_warns_of_groups_so_small_that_calibrated_forecasts_get_worse(n):
    table = pd.DataFrame({"x": 0.0, "g": np.arange(4 * n) % 4})
    quantiles = stats.norm.ppf((np.arange(400) // 4 + 0.5) / 100)
    few = "by: 4 groups have fewer than 300 rows, 'g = 0' only 150; if their"
    costs = []
    for seed in range(20):
        y = np.random.default_rng(seed).normal(size=4 * n)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = RecalibratedRegressor(Says(), by="g", random_state=0).fit(table, y)
        assert [str(one.message)[: len(few)] for one in caught] == [few] * (n == 150)
        after = model.forecast(table[:400]).logpdf(quantiles)
        costs.append((stats.norm.logpdf(quantiles) - after).mean())
    assert (np.array(costs) > 0.02).sum() >= 18
    # 0.06 nats with 150 rows; a standard error is 0.003
    assert np.mean(costs) > (0.05 if n == 150 else 0.03)


def test_unseen_missing_and_small_groups_take_the_pooled_map():
    table, y = halves(600, 7)
    sides = table["side"].to_numpy(dtype=object)
    sides[:30] = "few"
    sides[30:200] = None
    table = table.assign(side=sides)
    model = RecalibratedRegressor(Says(), by="side", random_state=0).fit(table, y)
    expected = ["side = few", "side = left", "side = right", "side missing"]
    assert model.groups_["group"].tolist() == expected
    assert model.groups_["map"].tolist() == ["pooled", "own", "own", "own"]
    assert model.groups_["n_samples"].tolist() == [30, 200, 200, 170]
    pooled = RecalibratedRegressor(Says(), random_state=0).fit(table, y)
    fresh = table.assign(side="elsewhere")
    message = "column 'side': 600 of 600 values never occurred in training"
    with pytest.warns(UserWarning, match=message):
        np.testing.assert_allclose(
            model.forecast(fresh).pit(y), pooled.forecast(fresh).pit(y), rtol=1e-12
        )
    found = model.forecast(table[:30]).pit(y[:30])
    np.testing.assert_allclose(found, pooled.forecast(table[:30]).pit(y[:30]))
    # for a function a missing label is no group
    by_function = RecalibratedRegressor(Says(), by=lambda rows: rows["side"], random_state=0)
    assert by_function.fit(table, y).groups_["group"].tolist() == ["few", "left", "right"]
    ours = by_function.forecast(table[30:200]).pit(y[30:200])
    np.testing.assert_allclose(ours, pooled.forecast(table[30:200]).pit(y[30:200]), rtol=1e-12)


@pytest.mark.parametrize("n", [10, 40])
def test_maps_of_small_groups_cost_little_and_gain_most_of_what_there_is(n):
    random, at = np.random.default_rng(n), (np.arange(4000) + 0.5) / 4000
    means = []
    for shift in np.repeat([0.0, 1.0], 100):
        whole, part = random.uniform(size=1000), special.ndtr(random.normal(shift, size=n))
        pooled, own = (learn_map(pit, np.ones(pit.size)) for pit in (whole, part))
        # PITs of outcomes that are `shift` standard deviations higher
        density = np.exp(shift * stats.norm.ppf(at) - shift**2 / 2) / at.size
        for levels, values in (pooled, own, shrunk(own, pooled, n)):
            slopes = np.diff(values) / np.diff(levels)
            means.append(density @ np.log(slopes[np.searchsorted(levels, at) - 1]))
    (whole, part, ours), (_, _, repaired) = np.reshape(means, (2, 100, 3)).mean(axis=1)
    # without a shift a map of n rows alone costs 0.1 nats or more; standard errors are 0.002
    assert part < -0.1
    assert whole - ours < 0.01
    # with a shift there are 0.5 nats to gain
    assert repaired > (0.2 if n == 10 else 0.3)


DAYS = pd.date_range("2020-01-01", periods=13)


@pytest.mark.parametrize(
    ("trained", "given", "is_same"),
    [
        ([True, False, True], ["1", "0", "1"], True),
        ([1, 2, 3], ["1.0", "2.0", "03"], True),
        (pd.Categorical([2, 1, 3]), [2.0, 1.0, 3.0], True),
        (np.arange(13.0) / 10, np.float32(np.arange(13.0) / 10), True),
        (DAYS, [dt.date(2020, 1, day) for day in range(1, 14)], True),
        ([0.1, 0.7], [0.1 + 1e-9, 0.7 - 1e-9], False),  # not within rounding, as both hold 64 bits
        (["01", "02"], [1, 2], False),
        ([2**60, 2**60 + 2**40], np.float32([2**61, 2**62]), False),
    ],
    ids=str,
)
def test_a_column_in_another_type_keeps_its_groups_and_another_value_is_unknown(
    trained, given, is_same
):
    schema = Schema.learn(pd.DataFrame({"v": trained}))

    def read(values):
        return schema.apply(pd.DataFrame({"v": values}), "")["v"]

    partition = Partition.learn(read(trained), "v", source="X")
    again = msgspec.json.decode(msgspec.json.encode(partition), type=Partition)
    assert again == partition
    known, found = (again.labels(read(values)).tolist() for values in (trained, given))
    assert found == (known if is_same else [None] * len(known))


def test_new_labels_in_most_rows_are_said_in_one_line():
    table, y = halves(400, 34)
    table = table.assign(own=np.where(np.arange(400) % 4 < 2, "yes", "no"))
    model = RecalibratedRegressor(Says(), by=["side", "own"], random_state=0).fit(table, y)
    message = r"^column 'own': 40 of 40 values never occurred in training.*had 'no', 'yes'"
    with pytest.warns(UnseenValuesWarning, match=message) as caught:
        model.forecast(table[:40].assign(own=True))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    by_function = RecalibratedRegressor(Says(), by=lambda rows: rows["own"], random_state=0)
    by_function.fit(table, y)
    with pytest.warns(UserWarning, match=r"by: 21 of 40 rows .*labels.*training.*\(no, yes\)"):
        by_function.forecast(table[:40].assign(own=["maybe"] * 21 + ["yes"] * 19))
    with warnings.catch_warnings(action="error", category=UserWarning):
        warnings.simplefilter("ignore", UnseenValuesWarning)
        by_function.forecast(table[:19].assign(own="maybe"))  # few rows
        by_function.forecast(table[:40].assign(own=["maybe"] * 20 + ["yes"] * 20))  # half of them
        by_function.forecast(table[:40].assign(own=None))  # a function's way to name no group


def test_several_columns_make_a_group_of_each_combination():
    table, y = halves(800, 8)
    model = RecalibratedRegressor(Says(), by=["side", "x"], random_state=0).fit(table, y)
    cut = np.median(table["x"])
    names = [
        f"side = {side}, x {sign} {cut:g}" for side in ("left", "right") for sign in ("<=", ">")
    ]
    assert model.groups_["group"].tolist() == names
    assert model.groups_["n_samples"].sum() == 800
    # each row's map is that of its group's PITs, here of a model that learns nothing
    pit = model.base_forecast(table).pit(y)
    inside = ((table["side"] == "right") & (table["x"] > cut)).to_numpy()
    levels, values = learn_map(pit[inside], np.ones(inside.sum()))
    found = model.forecast(table).pit(y)[inside]
    np.testing.assert_allclose(found, np.interp(pit[inside], levels, values), rtol=1e-9, atol=1e-12)


def test_pits_come_from_models_that_did_not_see_the_row():
    class Memory(Says):
        """Predicts a tiny spread around outcomes of rows it saw, and a wide one otherwise."""

        def fit(self, X, y):
            self.seen_ = set(X[:, 0].tolist())
            return self

        def predict(self, X, return_std=False):
            std = np.where([value in self.seen_ for value in X[:, 0]], 1e-6, 1.0)
            return (np.zeros(len(X)), std) if return_std else np.zeros(len(X))

    rows, y = standard(1000, 10)
    model = RecalibratedRegressor(Memory(), random_state=0).fit(rows, y)
    # held-out PITs are uniform, so the map is near the identity; in-sample ones would all lie at 0
    # or 1. Kolmogorov-Smirnov distance of 1000 PITs is above 0.07 in 1 of 10,000 seeds
    assert np.abs(model.levels_[0] - model.values_[0]).max() < 0.07


def test_weights_move_the_map():
    table, y = halves(3000, 11)
    weight = np.where(table["side"] == "left", 3.0, 1.0)
    levels, values = learn_map(special.ndtr(y), weight)
    frozen = FrozenEstimator(Says().fit(table, y))
    model = RecalibratedRegressor(frozen, random_state=0).fit(table, y, weight)
    np.testing.assert_allclose((model.levels_[0], model.values_[0]), (levels, values), rtol=1e-9)
    # three quarters of the weight at -1/2: the median solves 3 Phi(m + .5) + Phi(m - .5) = 2
    median = optimize.brentq(lambda m: 3 * special.ndtr(m + 0.5) + special.ndtr(m - 0.5) - 2, -2, 2)
    # s.e. of a weighted median, 2400 effective rows: 0.5 / (0.37 sqrt(2400)) = 0.028; 4 of them
    assert float(model.forecast(table[:1]).ppf(0.5)[0]) == pytest.approx(median, abs=0.11)
    refused(r"sample_weight .*Says\.fit", RecalibratedRegressor(Says()).fit, table, y, weight)


def test_too_few_rows_of_positive_weight_are_said_so():
    X, y = linear_task(600)
    weight = np.where(np.isin(np.arange(600), [5, 300, 599]), 1.0, 0.0)
    message = r"X must have at least 10 rows of positive weight for cv=5, got n_samples = 3"
    for estimator in (Ridge(), BayesianRidge(), FrozenEstimator(Ridge().fit(X, y))):
        refused(message, RecalibratedRegressor(estimator).fit, X, y, weight)
    people = Outcomes(y, person=np.arange(600) // 2)
    refused("one value per row", RecalibratedRegressor(Ridge()).fit, X, people, np.ones(601))


def test_what_cannot_be_used_is_refused_in_one_line():
    X, y = linear_task(120)
    table = pd.DataFrame(X, columns=["age", "b", "c"])
    labels = r"by must return one label per row \(120\), got shape \(2,\)"
    for by, rows, message in (
        ("age", X, "X must be a table.*`by`.* ndarray"),
        ("agee", table, "X has no column 'agee'.*did you mean 'age'"),
        (lambda rows: [1, 2], X, labels),
    ):
        refused(message, RecalibratedRegressor(BayesianRidge(), by=by).fit, rows, y)


@pytest.mark.parametrize("spread", ["constant", "learned"])
def test_a_plain_regressor_is_fitted_once_for_each_fold_and_once_for_all(spread):
    fitted_to = []

    class Noting(Ridge):
        def fit(self, X, y, sample_weight=None):
            fitted_to.append(y)
            return super().fit(X, y, sample_weight)

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=1000), "half": rng.choice(["x", "y"], 1000)})
    y = X["a"] + np.where(X["half"] == "x", 0.8, -0.8) + rng.normal(size=1000)
    features = FunctionTransformer(lambda table: table[["a"]])
    pipeline = make_pipeline(features, Noting())
    model = RecalibratedRegressor(pipeline, by="half", spread=spread, random_state=0).fit(X, y)
    assert len(fitted_to) == 6
    # never to the sizes of residuals: a regressor may raise, or silently learn something else
    assert all(np.isin(each, y).all() for each in fitted_to)
    # without the map each half is off by Phi(0.8 / sqrt(1.64 + 1)) - 1/2 = 0.19
    pit = model.forecast(X).cdf(y)
    for half in ("x", "y"):
        assert calibration_error(pit[X["half"] == half]) < 0.04


class TheColumn(RegressorMixin, BaseEstimator):
    """A model of another library that predicts the column `mu`."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return X["mu"].to_numpy()


def test_means_in_a_column_are_repaired_like_a_model_that_predicts_them(tmp_path):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"mu": random.normal(size=400), "sex": random.choice(["f", "m"], 400)})
    y = (table["mu"] + np.where(table["sex"] == "f", 2, 1) * random.normal(size=400)).to_numpy()
    other = FrozenEstimator(TheColumn().fit(table, y))
    fitted = [
        RecalibratedRegressor(model, by="sex", random_state=0).fit(table, y)
        for model in (ForecastColumns(mean="mu"), other)
    ]
    save(fitted[0], tmp_path)
    levels = [0.05, 0.5, 0.95]
    given, expected, again = (
        model.forecast(table).ppf(levels) for model in (*fitted, load(tmp_path))
    )
    np.testing.assert_array_equal(given, expected)
    np.testing.assert_array_equal(again, expected)
    refused("mean= alone shows no uncertainty", ForecastColumns(mean="mu").forecast, table)
