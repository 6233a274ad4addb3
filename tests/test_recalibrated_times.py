"""Recalibration of forecasts of times from outcomes of which some are cut off (outcomes: 5)."""

import numpy as np
import pandas as pd
import pytest
from lifelines import KaplanMeierFitter
from sklearn.linear_model import LinearRegression

from complaints import refused
from evenhand import Forecast, Outcomes, RecalibratedRegressor, audit, load, save
from evenhand.audits import Search
from evenhand.calibration import Cells, KaplanMeier, calibration_error
from evenhand.distributions import Normal, OutcomeKind, Support, Transformed
from evenhand.forecasters.groups import Members
from evenhand.forecasters.recalibrated import Maps, Observed
from evenhand.forecasters.samples import distribution_of, error_of, learn_map, pit_cells
from forecaster_examples import error_by_chance
from parts_examples import searching
from repeats import most_failures, repeats, statistical

GROUP = {"g": "g"}
HORIZONS = (None, 2.0)
pytestmark = pytest.mark.usefixtures("two_folds")


class People:
    """Log-normal times; a fifth of the people has shorter times than the model predicts.

    They enter within 6 years before the end of the study, and some leave, at random.
    """

    def __init__(self, n, seed, shift=0.8):
        random = np.random.default_rng(seed)
        self.X = pd.DataFrame({"x": random.normal(size=n), "g": random.uniform(size=n) < 0.2})
        noise = 0.8 * random.normal(size=n)
        self.times = np.exp(1 + 0.5 * self.X["x"] + noise - shift * self.X["g"]).to_numpy()
        last = np.minimum(random.uniform(0, 6, n), random.exponential(8, n))
        self.event = self.times <= last
        self.y = np.minimum(self.times, last)

    def outcomes(self, horizon=None):
        return Outcomes(self.y, self.event, horizon)

    @property
    def groups(self):
        inside = self.X["g"].to_numpy()
        return {"all": np.ones(inside.size, dtype=bool), "g": inside, "rest": ~inside}

    def fitted(self, horizon, by):
        model = RecalibratedRegressor(model_of(horizon), by=by, random_state=0)
        return model.fit(self.X, self.outcomes(horizon))

    def error(self, forecast, inside, horizon):
        """Error of forecasts by the times themselves, which nobody would know."""
        y = self.times if horizon is None else np.minimum(self.times, horizon)
        low, high = forecast.pit_interval(y)
        return calibration_error((low[inside], high[inside]))


def continuous(X):
    mean = 1 + 0.5 * X["x"].to_numpy()
    return Forecast(Transformed(Normal(mean, 0.8), Support(low=0.0)))


def model_of(horizon):
    """The model of the times, or of `min(T, horizon)`."""
    if horizon is None:
        return continuous

    def at_horizon(X):
        part = continuous(X)
        return Forecast.from_hurdle(1 - part.cdf(horizon), part, at=horizon, end="high")

    return at_horizon


def cut_off(n, seed, power=2.0):
    """PITs with the CDF `u^(1 / power)`, of which half are lost, and which are not."""
    random = np.random.default_rng(seed)
    pit = random.uniform(size=n) ** power
    last = random.uniform(size=n)
    return np.minimum(pit, last), pit <= last


def cells(pit, event):
    return pit_cells(pit, np.where(event, pit, 1.0), ~event)


@pytest.mark.parametrize("digits", [16, 1])
def test_distributions_of_pits_are_kaplan_meier_estimates(digits):
    pit, event = cut_off(300, 0)
    # with one digit there are ties of observed and of lost rows
    pit = np.round(0.95 * pit, digits)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, size=300)
    at, left, right = distribution_of(cells(pit, event), weight)
    peer = KaplanMeierFitter().fit(pit, event, weights=weight).survival_function_at_times(at)
    np.testing.assert_allclose(right[:-1], 1 - peer.to_numpy()[:-1], atol=1e-12)
    np.testing.assert_allclose(left[1:-1], right[:-2], atol=1e-12)
    assert right[-1] == 1.0
    expected = KaplanMeier.of(pit, event, weight).error()
    assert error_of(cells(pit, event), weight) == pytest.approx(expected, abs=1e-12)


def test_known_cells_beside_lost_rows_count_as_many_points_within_them():
    random = np.random.default_rng(2)
    pit, event = cut_off(60, 3)
    low = 0.6 * random.uniform(size=20)
    known = np.concatenate((event, np.ones(20, dtype=bool)))
    both = pit_cells(
        np.concatenate((pit, low)), np.concatenate((np.where(event, pit, 1.0), np.ones(20))), ~known
    )
    share = (np.arange(2000) + 0.5) / 2000
    points = np.concatenate((pit, (low[:, None] + (1 - low[:, None]) * share).ravel()))
    weight = np.concatenate((np.ones(60), np.full(points.size - 60, 1 / 2000)))
    is_event = np.concatenate((event, np.ones(points.size - 60, dtype=bool)))
    expected = KaplanMeier.of(points, is_event, weight)
    at, _, right = distribution_of(both, np.ones(80))
    # steps of 1 / 2000 of a cell, of which 20 of 80 rows have one
    np.testing.assert_allclose(right[:-1], expected.at(at[:-1]), atol=1e-3)
    assert error_of(both, np.ones(80)) == pytest.approx(expected.error(), abs=1e-3)


def test_maps_are_kaplan_meier_estimates_and_not_those_of_observed_rows():
    pit, event = cut_off(40_000, 4)
    levels, values = learn_map(cells(pit, event), np.ones(pit.size))
    estimate = KaplanMeier.of(pit, event)
    inner = (levels > 0.01) & (levels < 0.9)
    # smoothed: half a row per interval, of which there are about 100
    np.testing.assert_allclose(values[inner], estimate.at(levels[inner]), atol=0.005)
    # 4 standard errors of a distribution of which a tenth of the rows is left
    np.testing.assert_allclose(values[inner], np.sqrt(levels[inner]), atol=0.02)
    kept = learn_map(Cells(pit[event]), np.ones(int(event.sum())))
    assert np.abs(np.interp(levels[inner], *kept) - np.sqrt(levels[inner])).max() > 0.1


def test_a_share_of_people_without_the_event_is_learned_from_those_who_are_lost():
    random = np.random.default_rng(0)

    def people(n):
        x = random.normal(size=n)
        times = np.exp(1 + 0.5 * x + 0.8 * random.normal(size=n))
        # the model predicts an event for everybody, but a third never has one
        return pd.DataFrame({"x": x}), np.where(random.uniform(size=n) < 1 / 3, np.inf, times)

    X, times = people(3000)
    last = random.uniform(2, 12, 3000)
    model = RecalibratedRegressor(continuous, random_state=0)
    model.fit(X, Outcomes(np.minimum(times, last), times <= last))
    fresh, new = people(40_000)
    after = model.forecast(fresh)
    for time in (2.0, 5.0, 8.0, 11.0):
        # 4 standard errors of a Kaplan-Meier estimate with the rows at risk at this time
        noise = 4 * np.sqrt(0.25 / (last >= time).sum())
        assert abs(after.cdf(time).mean() - (new <= time).mean()) < noise
    assert continuous(fresh).cdf(11.0).mean() - (new <= 11.0).mean() > 0.25


# overlapping groups with a horizon are those of repairs by an audit, below
@pytest.mark.parametrize(("horizon", "by"), [(None, ["g"]), (2.0, ["g"]), (None, GROUP)])
def test_groups_are_repaired_although_more_than_half_of_the_times_are_cut_off(horizon, by):
    train, fresh = People(2000, 0), People(20_000, 1)
    assert 0.5 < 1 - train.event.mean() < 0.6
    model = train.fitted(horizon, by)
    before, after = model_of(horizon)(fresh.X), model.forecast(fresh.X)
    kind = OutcomeKind.CONTINUOUS if horizon is None else OutcomeKind.HURDLE
    assert after.outcome_kind is kind
    noise = {}
    for name, inside in fresh.groups.items():
        # at least as precise as events alone, were all times; false alarm below 1e-3 per group
        n_events = int(train.event[train.groups[name]].sum())
        noise[name] = error_by_chance() * np.sqrt(1 / n_events + 1 / inside.sum())
        assert fresh.error(after, inside, horizon) < noise[name]
    # the check estimates the errors of the times themselves
    truth = fresh.error(before, fresh.groups["g"], horizon)
    checked = model.check_.set_index("group").loc["g" if by is GROUP else "g = True"]
    assert truth > 0.2
    assert abs(checked["error_before"] - truth) < noise["g"]
    assert checked["error_after"] < noise["g"]
    assert checked["verdict"] == "helps"
    assert model.n_lost_ == int(train.outcomes(horizon).is_lost.sum())
    assert "Kaplan-Meier" in model.summary()


def test_censoring_may_depend_on_the_groups():
    train, fresh = People(6000, 4, shift=0.0), People(20_000, 5, shift=0.0)
    last = np.where(train.X["g"], 1.5, 8.0) * np.random.default_rng(0).uniform(size=6000)
    train.event = train.times <= last
    train.y = np.minimum(train.times, last)
    for horizon in HORIZONS:
        after = train.fitted(horizon, ["g"]).forecast(fresh.X)
        # up to the last time of the group that is cut off early nothing is known beyond 1.5
        early = fresh.groups["g"]
        off = np.abs(after.cdf(1.4)[early].mean() - (fresh.times[early] < 1.4).mean())
        n_events = int(train.event[train.groups["g"]].sum())
        assert off < 4 * np.sqrt(0.25 / n_events)
        rest = fresh.groups["rest"]
        n_events = int(train.event[train.groups["rest"]].sum())
        noise = error_by_chance() * np.sqrt(1 / n_events + 1 / rest.sum())
        assert fresh.error(after, rest, horizon) < noise


@pytest.mark.parametrize(("horizon", "by"), [(None, ["g"]), (2.0, GROUP)])
def test_gains_are_those_in_the_likelihood_of_what_is_known(horizon, by):
    fresh = People(1500, 7)
    times = fresh.outcomes(horizon)
    held_out = Observed.of(model_of(horizon)(fresh.X), times)
    model = People(800, 21).fitted(horizon, by)
    _, gains = model._maps.applied(held_out, model._groups.members(fresh.X, None, None))

    def log_score(forecast):
        of_events = forecast.log_density(times.value)
        later = np.maximum(1 - forecast.cdf(times.value), 1e-300)
        return np.where(times.is_lost, np.log(later), of_events)

    expected = log_score(model.forecast(fresh.X)) - log_score(model_of(horizon)(fresh.X))
    np.testing.assert_allclose(gains, expected, atol=1e-6)


@statistical
@pytest.mark.parametrize("horizon", HORIZONS)
def test_calibrated_forecasts_are_left_unchanged_with_probability_95(horizon):
    n_sets, failures = repeats(400), 0
    for seed in range(n_sets):
        people = People(600, 100 + seed, shift=0.0)
        random = np.random.default_rng(seed)
        # one of the groups is cut off earlier
        last = np.where(people.X["g"], 0.4, 1.0) * random.uniform(0, 6, 600)
        times = Outcomes(np.minimum(people.times, last), people.times <= last, horizon)
        held_out = Observed.of(model_of(horizon)(people.X), times)
        masks = np.column_stack((people.X["g"], random.uniform(size=600) < 0.4))
        maps = Maps.learn(held_out, np.ones(600), Members.overlapping(["g", "h"], masks))
        is_changed = maps.events is not None and not maps.events.is_identity
        failures += is_changed or bool(maps.pits.steps)
    assert failures <= most_failures(n_sets)


@pytest.mark.parametrize(("horizon", "by"), [(None, None), (8.0, ["g"]), (8.0, GROUP)])
def test_a_repair_gains_nothing_at_rounded_times_that_many_share(horizon, by):
    # the forecasts are right for whole units of time; false alarms 2.5%
    random = np.random.default_rng(0)
    X = pd.DataFrame({"x": np.zeros(1000), "g": random.uniform(size=1000) < 0.5})
    times, last = np.exp(random.normal(1, 0.8, 1000)), random.integers(1, 12, 1000)
    y, event = np.floor(times) + 0.5, times <= last
    known = Outcomes(np.where(event, y, last), event, horizon)
    check = RecalibratedRegressor(model_of(horizon), by=by, random_state=0).fit(X, known).check_
    assert (check["low"] <= 0).all()
    # errors of other rounded outcomes are those of an audit
    check = RecalibratedRegressor(continuous, random_state=0).fit(X, y).check_
    error = audit(continuous, X, y, random_state=0).groups["error"][0]
    assert check["error_before"][0] == pytest.approx(error, abs=1e-6)


def test_times_that_are_all_known_are_repaired_as_other_outcomes():
    people, by = People(800, 10), ["g"]
    plain = RecalibratedRegressor(continuous, by=by, random_state=0).fit(people.X, people.times)
    known = RecalibratedRegressor(continuous, by=by, random_state=0)
    known.fit(people.X, Outcomes(people.times, np.ones(800)))
    assert known.n_lost_ == 0
    pd.testing.assert_frame_equal(plain.check_, known.check_)
    found = plain.forecast(people.X).cdf(1.0)
    np.testing.assert_array_equal(found, known.forecast(people.X).cdf(1.0))


def test_a_horizon_cuts_off_the_times_of_continuous_forecasts():
    people, fresh = People(4000, 11), People(20_000, 12)
    model = RecalibratedRegressor(continuous, by=["g"], random_state=0)
    model.fit(people.X, people.outcomes(2.0))
    after = model.forecast(fresh.X)
    assert after.outcome_kind is OutcomeKind.CONTINUOUS
    for name in ("g", "rest"):
        inside = fresh.groups[name]
        rate = (fresh.times[inside] <= 1.9).mean()
        noise = 4 * np.sqrt(0.25 / people.event[people.groups[name]].sum())
        assert abs(after.cdf(1.9)[inside].mean() - rate) < noise


def test_survival_curves_are_repaired_stored_and_served_with_their_horizon(tmp_path):
    people, grid = People(300, 13), np.linspace(0.2, 6, 20)

    def curves(horizon):
        def model(X):
            survival = 1 - continuous(X).distribution.expand().cdf(grid)
            return Forecast.from_survival(grid, survival, horizon)

        return model

    model = RecalibratedRegressor(curves(3.0), random_state=0)
    model.fit(people.X, people.outcomes(3))
    assert model.horizon_ == 3
    with pytest.warns(UserWarning, match="was saved without an inner model"):
        save(model, tmp_path / "model")
    again = load(tmp_path / "model", curves(3.0))
    assert (again.horizon_, again.n_lost_) == (3.0, model.n_lost_)
    found = again.forecast(people.X).cdf(1.0)
    np.testing.assert_allclose(found, model.forecast(people.X).cdf(1.0), rtol=1e-12)
    assert again.summary() == model.summary()
    other = load(tmp_path / "model", curves(2.0))
    message = "have an atom at 2, .* but the horizon 3 is given; pass the horizon"
    refused(message, other.forecast, people.X)


@pytest.mark.parametrize(("horizon", "n_events"), [(None, 0), (2.0, 9), (2.0, 10), (None, 49)])
def test_groups_without_events_take_the_map_of_all_and_have_no_verdict_below_10(horizon, n_events):
    people = People(2000, 15)
    is_small = people.X["g"].to_numpy()
    is_seen = is_small & people.event & (people.y <= (horizon or np.inf))
    event = people.event & (~is_small | (is_seen & (np.cumsum(is_seen) <= n_events)))
    model = RecalibratedRegressor(model_of(horizon), by=["g"], random_state=0)
    model.fit(people.X, Outcomes(people.y, event, horizon))
    found = model.check_.set_index("group").loc["g = True"]
    if horizon is None:
        assert model.groups_["map"].tolist() == ["own", "own" if n_events else "pooled"]
    assert (found["verdict"] == "helps") == (n_events == 10)
    assert np.isnan(found["low"]) == np.isnan(found["high"]) == (n_events < 10)
    # without a horizon, nothing is known of people without an event
    assert np.isnan(found["error_before"]) == (horizon is None and n_events == 0)
    assert "fewer than 10 observed events have no interval" in model.summary().replace("\n", " ")


@pytest.mark.parametrize("horizon", HORIZONS)
def test_an_audit_repairs_the_groups_that_it_calls_off(horizon):
    first, second, fresh = People(800, 16), People(1000, 17), People(20_000, 18)
    model = model_of(horizon)
    searched = {"search": Search(learned_masses=[]), "features": first.X[["g"]]}
    searched = searching(searched, masses=[0.2], n_simulations=2)
    found = audit(model(first.X), first.X, first.outcomes(horizon), random_state=0, **searched)
    repaired = found.repair(model, second.X, second.outcomes(horizon), random_state=0)
    assert repaired.n_lost_ is not None
    inside = fresh.groups["g"]
    before = fresh.error(model(fresh.X), inside, horizon)
    assert fresh.error(repaired.forecast(fresh.X), inside, horizon) < before / 3
    if horizon is None:  # the same check, whatever the horizon
        with pytest.warns(UserWarning, match="are the rows of this audit"):
            found.repair(model, first.X, first.outcomes())


def test_what_would_mislead_is_refused():
    people = People(200, 19)

    def wrong(message, model, event=people.event, horizon=None, weight=None):
        y = Outcomes(people.y, event, horizon)
        refused(message, RecalibratedRegressor(model).fit, people.X, y, sample_weight=weight)

    def ending(X):
        return Forecast.from_survival([1.0, 2.0], np.tile([0.8, 0.3], (len(X), 1)))

    def half_at_zero(X):
        return Forecast.from_hurdle(np.full(len(X), 0.5), continuous(X))

    wrong("LinearRegression would be fitted to times that are cut off", LinearRegression())
    none = "weight is 0 for each person whose time"
    wrong(none, continuous, weight=people.event.astype(float))
    wrong("have an atom at 2, their greatest outcome, but no horizon is given", model_of(2.0))
    wrong("have an atom at 0, their least outcome", half_at_zero, horizon=3.0)
    counts = "event is given, but forecasts of the kind 'count' are not of times"
    wrong(counts, lambda X: Forecast.from_poisson(np.ones(len(X))))
    wrong("event is missing, and these are forecasts of times", ending, event=None)
