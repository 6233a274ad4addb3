"""Recalibration by group of counts, events and outcomes with an atom."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats
from sklearn.calibration import CalibrationDisplay
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from complaints import refused
from evenhand import Forecast, RecalibratedClassifier, RecalibratedRegressor, load, save
from evenhand.calibration import Events, calibration_error
from evenhand.distributions import Normal, OutcomeKind, Support, Transformed
from evenhand.forecasters import samples
from evenhand.forecasters.corrections import NO_CURVE, learn_events, losses_of_cells
from evenhand.forecasters.groups import Members
from evenhand.forecasters.recalibrated import Maps, Observed
from evenhand.forecasters.samples import CellsInGrid, learn_map, mapped, pit_cells
from forecaster_examples import error_by_chance
from repeats import most_failures, repeats, statistical

RULES = {"a": "a", "b": "b"}
KINDS = ("binary", "count", "hurdle")
pytestmark = pytest.mark.usefixtures("two_folds")


def people(n, seed):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": random.normal(size=n),
            "a": random.uniform(size=n) < 0.4,
            "b": random.uniform(size=n) < 0.3,
        }
    )


def features(table):
    x, a, b = (table[name].to_numpy(dtype=np.float64) for name in ("x", "a", "b"))
    return x, a, b


def regions(table):
    a, b = table["a"].to_numpy(), table["b"].to_numpy()
    return {"all": np.ones(len(table), dtype=bool), "a": a, "b": b, "both": a & b}


def forecast_of(kind, table, planted):
    """The truth with planted differences of two overlapping groups; a model for 0 of them."""
    x, a, b = features(table)
    if kind == "binary":
        return Forecast.from_probability(special.expit(x - 1.5 + planted * (0.8 * a - 0.7 * b)))
    if kind == "count":
        return Forecast.from_poisson(np.exp(0.7 + 0.5 * x + planted * 0.4 * (a - b)))
    amount = Normal(3 + x + planted * 0.5 * a, 1 + planted * 0.4 * b)
    part = Forecast(Transformed(amount, Support(low=0.0)))
    if kind == "continuous":
        return part
    chance = special.expit(0.2 * x + planted * (0.7 * a - 0.6 * b))
    return Forecast.from_hurdle(chance, part)


def models(kind):
    """A model that does not know the groups."""
    return lambda table: forecast_of(kind, table, 0.0)


def error_in(forecast, y, inside):
    low, high = forecast.pit_interval(y)
    return calibration_error((low[inside], high[inside]))


@pytest.mark.parametrize("kind", KINDS)
def test_overlapping_groups_are_repaired_in_the_groups_and_where_they_overlap(kind):
    table, fresh = people(4000, 0), people(6000, 1)
    y, new = (forecast_of(kind, one, 1.0).sample(i) for i, one in enumerate((table, fresh)))
    model = RecalibratedRegressor(models(kind), by=RULES, random_state=0).fit(table, y)
    assert model.groups_["map"].tolist() == ["own", "own"]
    assert model.check_["verdict"].tolist() == ["helps"] * 3
    before, after = models(kind)(fresh), model.forecast(fresh)
    assert after.outcome_kind is OutcomeKind(kind)
    inside = regions(fresh)
    for name, mask in inside.items():
        # noise of the map: at most that of training PITs; false alarm below 1e-3 per group
        n_map = int(regions(table)[name].sum())
        noise = error_by_chance() * np.sqrt(1 / n_map + 1 / mask.sum())
        assert error_in(after, new, mask) < noise
    for name in ("a", "b"):
        assert error_in(after, new, inside[name]) < error_in(before, new, inside[name]) / 2.5
    gain = after.log_density(new) - before.log_density(new)
    truth = forecast_of(kind, fresh, 1.0).log_density(new) - before.log_density(new)
    # the truth is recovered but for a tenth of what there is to gain
    assert gain.mean() > 0.9 * truth.mean()


@statistical
@pytest.mark.parametrize("kind", [*KINDS, "continuous"])
def test_calibrated_forecasts_are_left_unchanged_with_probability_95(kind):
    n_sets, failures = repeats(400), 0
    for seed in range(n_sets):
        table = people(500, 100 + seed)
        held_out = Observed.of(models(kind)(table), models(kind)(table).sample(seed))
        members = Members.overlapping(["a", "b"], table[["a", "b"]].to_numpy())
        maps = Maps.learn(held_out, np.ones(500), members)
        is_changed = maps.events is not None and not maps.events.is_identity
        failures += is_changed or bool(maps.pits.steps)
    assert failures <= most_failures(n_sets)


@statistical
def test_rare_events_are_left_unchanged_with_probability_95():
    n_sets, failures = repeats(400), 0
    for seed in range(n_sets):
        random = np.random.default_rng(seed)
        p = special.expit(random.normal(-4, 1, 1000))
        masks = random.uniform(size=(1000, 2)) < [0.4, 0.3]
        events = Events(random.uniform(size=1000) < p, p)
        maps = learn_events(events, np.ones(1000), Members.overlapping(("a", "b"), masks))
        failures += not maps.is_identity
    assert failures <= most_failures(n_sets)


def test_maps_of_counts_recover_a_map_of_the_cdf():
    # outcomes with the CDF u^2 of the model's, at many means
    random = np.random.default_rng(0)
    n = 40_000
    base = Forecast.from_poisson(np.exp(random.normal(0.5, 0.7, n)))
    pit = Observed.of(base, base.distribution.ppf(np.sqrt(random.uniform(size=n)))).pit
    levels, values = learn_map(pit, np.ones(n))
    inner = (levels > 0.05) & (levels < 0.95)
    off = np.abs(values - levels**2)[inner].max()
    # standard errors are at most 0.0025, of cells of width 0.3 three times that: 4 are 0.03
    assert off < 0.03


def test_terms_of_events_agree_with_logistic_regression(monkeypatch):
    monkeypatch.setattr("evenhand.forecasters.corrections.SPREAD_OF_ALL", 1e4)
    monkeypatch.setattr("evenhand.forecasters.corrections.SPREADS_OF_GROUPS", (0.0, 1e4))
    monkeypatch.setattr("evenhand.forecasters.corrections.learn_curve", lambda *_: NO_CURVE)
    table = people(20_000, 3)
    x, a, b = features(table)
    p = special.expit(x - 1)
    y = np.random.default_rng(0).uniform(size=x.size) < special.expit(
        (0.7 + 0.4 * b) * (x - 1) + 0.5 - 1.0 * a
    )
    members = Members.overlapping(("a", "b"), table[["a", "b"]].to_numpy())
    found = learn_events(Events(y, p), np.ones(x.size), members)
    assert found.is_own.all()
    ones = [np.ones(x.size)] if found.terms[0].any() else []
    terms = np.column_stack([*ones, a, b])
    peer = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=10_000)
    # slopes of the forecast are added to 1, so that a column for it is free in the peer
    if ones:
        peer.fit(np.column_stack((terms, terms * (x - 1)[:, None])), y)
        expected = peer.predict_proba(np.column_stack((terms, terms * (x - 1)[:, None])))[:, 1]
        np.testing.assert_allclose(found.apply(p, members), expected, atol=1e-5)


def test_terms_of_disjoint_groups_shrink_towards_the_map_of_all():
    random = np.random.default_rng(2)
    n, n_groups = 3000, 50
    labels = random.integers(0, n_groups, n)
    odds = random.normal(-1, 1, n)
    y = random.uniform(size=n) < special.expit(odds + 0.5)
    members = Members([str(i) for i in range(n_groups)], 1 + labels)
    events = Events(y, special.expit(odds))
    found = learn_events(events, np.ones(n), members)
    moved = special.logit(found.apply(events.probability, members))
    # without shrinkage, locations of groups of 60 rows have standard errors of about 0.3
    assert np.std(moved - odds) < 0.15
    assert np.mean(moved - odds) == pytest.approx(0.5, abs=0.2)
    # and with differences of 1 between groups there is little shrinkage
    shift = random.choice([-1.0, 1.0], n_groups)
    y = random.uniform(size=n) < special.expit(odds + shift[labels])
    found = learn_events(Events(y, events.probability), np.ones(n), members)
    moved = special.logit(found.apply(events.probability, members))
    assert 0.8 < np.polyfit(shift[labels], moved - odds, 1)[0] < 1.2


def test_probabilities_are_never_exactly_0_or_1():
    table = people(400, 10)
    x, a, _ = features(table)

    def sure(X):
        return np.where(X["x"] > 1, 1.0, np.where(X["x"] < 0, 0.0, 0.3))

    y = (np.random.default_rng(0).uniform(size=400) < 0.05 + 0.9 * sure(table)).astype(np.float64)
    y[a > 0] = 0.0  # a group without events
    model = RecalibratedRegressor(
        lambda X: Forecast.from_probability(sure(X)), by="a", random_state=0
    ).fit(table, y)
    p = model.forecast(table).event_probability()
    assert ((p > 0) & (p < 1)).all()
    assert np.isfinite(model.check_[["gain", "error_after"]].to_numpy()).all()
    # 5% of the rows with the forecast 0 had the event, outside of the group without events
    outside = (x < 0) & (a == 0)
    assert 0.01 < p[outside].mean() < 0.12
    # 9 events, or 9 others, are too few for an interval
    for rare, n in product((0.0, 1.0), (9, 10)):
        y[a > 0] = np.where(np.arange((a > 0).sum()) < n, rare, 1 - rare)
        low = model.fit(table, y).check_.set_index("group")["low"]
        assert np.isnan(low[["a = False", "a = True"]]).tolist() == [False, n < 10]


def test_events_that_contradict_the_forecasts_get_an_increasing_map():
    random = np.random.default_rng(4)
    p = random.uniform(0.1, 0.9, 4000)
    nobody = Members((), np.zeros(4000, dtype=int))
    maps = learn_events(Events(random.uniform(size=4000) > p, p), np.ones(4000), nobody)
    moved = maps.apply(np.linspace(0.01, 0.99, 99), nobody.take(np.arange(99)))
    assert (np.diff(moved) > 0).all()
    # the best of them is constant: the rate of the event is 1/2
    np.testing.assert_allclose(moved, 0.5, atol=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_check_states_gains_of_log_scores_and_errors_of_the_recalibrated_forecasts(kind):
    table = people(800, 13)
    base = forecast_of(kind, table, 0.0)
    y = forecast_of(kind, table, 1.0).sample(0)
    held_out = Observed.of(base, y)
    members = Members.overlapping(["a", "b"], table[["a", "b"]].to_numpy())
    maps = Maps.learn(held_out, np.ones(800), members)
    after, gain = maps.applied(held_out, members)
    served = maps.forecast(base, members)
    np.testing.assert_allclose(gain, served.log_density(y) - base.log_density(y), atol=1e-6)
    low, high = served.pit_interval(y)
    np.testing.assert_allclose(after.cells().low[:, 0], low, atol=1e-9)
    np.testing.assert_allclose(after.cells().high[:, 0], high, atol=1e-9)


@pytest.mark.parametrize("kind", ["binary", "hurdle"])
def test_weights_count_by_their_ratios_and_rows_of_weight_0_do_not(kind):
    table = people(600, 15)
    y = forecast_of(kind, table, 1.0).sample(0)
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], 600)
    used = weight > 0

    def fitted(table, y, weight):
        model = RecalibratedRegressor(models(kind), by=RULES, random_state=0)
        model.fit(table, y, sample_weight=weight)
        return model.forecast(people(200, 16)).cdf(1.0)

    expected = fitted(table[used], y[used], weight[used])
    np.testing.assert_allclose(fitted(table, y, weight), expected, rtol=1e-9)
    np.testing.assert_allclose(fitted(table, y, 1e-9 * weight), expected, rtol=1e-6)


def test_likelihoods_of_cells_and_their_derivatives():
    random = np.random.default_rng(0)
    low = random.normal(size=40)
    high = low + random.uniform(0.01, 3, 40)
    low[:3], high[3:6] = -np.inf, np.inf
    is_cell = np.ones(40, dtype=bool)
    scores = np.stack([low, high])

    def values(location, spread):
        errors = (scores - location) * np.exp(-spread)
        return losses_of_cells(errors, np.full(40, spread), is_cell)

    loss, by_error, by_spread = values(0.3, 0.2)
    expected = stats.norm.cdf(high, 0.3, np.exp(0.2)) - stats.norm.cdf(low, 0.3, np.exp(0.2))
    np.testing.assert_allclose(loss, -np.log(expected), rtol=1e-9)
    for i in range(40):
        at = np.array([0.3, 0.2])
        slope = optimize.approx_fprime(at, lambda p, i=i: values(p[0], p[1])[0][i], 1e-7)
        np.testing.assert_allclose(slope, [-by_error[i] * np.exp(-0.2), by_spread[i]], atol=1e-5)


def test_outcomes_that_were_thought_impossible_keep_the_check_finite():
    random = np.random.default_rng(0)
    table = people(500, 24)
    y = random.choice([0.0, 1.0, 2.0, 3.0], 500, p=[0.4, 0.4, 0.15, 0.05])
    model = RecalibratedRegressor(
        lambda X: Forecast.from_pmf([0, 1, 2, 3], np.tile([0.5, 0.3, 0.2, 0.0], (len(X), 1))),
        random_state=0,
    ).fit(table, y)
    assert np.isfinite(model.check_[["gain", "low", "high", "error_after"]].to_numpy()).all()
    # the probabilities of the other outcomes are those of their rates, of standard error 0.022
    assert model.forecast(table[:1]).cdf(0.0)[0] == pytest.approx(np.mean(y == 0), abs=0.02)


def overconfident(n):
    """People, labels of an event, and naive Bayes, which counts their only feature twice."""
    table = people(n, 30)
    labels = np.where(forecast_of("binary", table, 1.0).sample(0), "y", "n")
    twice = FunctionTransformer(lambda X: np.repeat(X[["x"]].to_numpy(), 2, axis=1))
    return table, labels, make_pipeline(twice, GaussianNB())


def test_a_recalibrated_classifier_is_a_classifier(tmp_path):
    table, labels, bayes = overconfident(2000)
    model = RecalibratedClassifier(bayes, by="a", random_state=0).fit(table, labels)
    peer = RecalibratedRegressor(bayes, by="a", random_state=0).fit(table, labels == "y")
    p = model.predict_proba(table)
    np.testing.assert_allclose(p[:, 1], peer.forecast(table).event_probability(), rtol=1e-12)
    assert model.score(table, labels) == np.mean(model.classes_[p.argmax(axis=1)] == labels)
    scores = [cross_val_score(one, table, labels, scoring="neg_log_loss") for one in (bayes, model)]
    assert scores[1].mean() > scores[0].mean() + 0.02
    display = CalibrationDisplay.from_estimator(model, table, labels, n_bins=5)
    assert np.abs(display.prob_true - display.prob_pred).max() < 0.08
    X = table[["x"]]
    around = RecalibratedClassifier(FrozenEstimator(GaussianNB().fit(X, labels)), random_state=0)
    save(around.fit(X, labels), tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), around.predict_proba(X))
    assert set(again.fit(X, labels).predict(X)) <= {"y", "n"}
    for wrong in (np.full(2000, "y"), np.arange(2000) % 3):
        refused("y must have two classes", model.fit, table, wrong)


@pytest.mark.parametrize("by", [None, ["a"]])
def test_logistic_updating_is_logistic_regression_on_predicted_log_odds(by):
    table, labels, bayes = overconfident(20_000)
    frozen = FrozenEstimator(bayes.fit(table, labels))
    model = RecalibratedClassifier(frozen, by, method="logistic", random_state=0).fit(table, labels)
    odds = np.diff(bayes.predict_log_proba(table), axis=1)
    groups = {f"a = {one}": (table["a"] == one).to_numpy() for one in (False, True) if by}
    updates = model.updates_.set_index("group")
    assert updates.index.tolist() == ["everyone", *groups]
    for name, inside in (groups or {"everyone": np.full(20_000, True)}).items():
        found = LogisticRegression(C=np.inf).fit(odds[inside], labels[inside])
        # the priors of 8,000 rows count as about one row
        expected = [found.intercept_[0], found.coef_[0, 0]]
        np.testing.assert_allclose(updates.loc[name], expected, atol=0.02)


def test_expected_counts_and_gains_are_those_of_the_maps_themselves():
    random = np.random.default_rng(0)
    edges, *maps = np.sort(random.uniform(size=(3, 9)), axis=-1)
    edges, values = samples.closed(edges), np.stack([samples.closed(one) for one in maps])
    low = np.append(random.uniform(size=200), [0.0, 0.5, edges[2], edges[3]])
    high = np.minimum(low + random.choice([0.0, 0.01, 0.4], low.size), 1.0)
    weight, which = random.uniform(size=low.size), random.integers(2, size=low.size)
    pit = pit_cells(low, high, np.zeros(low.size, dtype=bool))
    cells = CellsInGrid(pit, which, edges)
    expected, gains = np.zeros((2, 10)), []
    for a, b, w, i in zip(low, high, weight, which, strict=True):
        bounds = np.clip(edges, a, b)
        mass = np.diff(np.interp(bounds, edges, values[i]))
        inside = np.searchsorted(edges[1:-1], a, side="right")
        expected[i] += w * (mass / mass.sum() if b > a else np.eye(10)[inside])
        slopes = np.diff(values[i]) / np.diff(edges)
        gains.append(np.log(mass.sum() / (b - a) if b > a else slopes[inside]))
    np.testing.assert_allclose(cells.expected_counts(values, weight), expected, atol=1e-12)
    for knots in (edges, np.stack((edges, edges))):  # of all maps, or of each
        found = mapped(pit, knots, values, which)[1]
        np.testing.assert_allclose(found, gains, rtol=1e-9, atol=1e-12)
