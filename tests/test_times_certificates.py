"""Certificates of times that may be cut off, against theory, brute force and simulation."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from censored_laws import STUDY, Sample, forecast_cdf, forecast_of
from complaints import refused
from evenhand import InputError, Outcomes, certify, randomize
from evenhand.calibration import Cells, Reading, cell_excess, cvar
from evenhand.certificates import certify_events, certify_rows
from evenhand.distributions import OutcomeKind
from evenhand.draws import jittered, nodes
from evenhand.links import Entropic, Gaussian, Laplace
from repeats import most_failures, repeats, statistical

LINK = Entropic(0.12)


def people(n, seed, leaving=6.0):
    return Sample.of(n, np.random.default_rng(seed), leaving=leaving)


@pytest.mark.parametrize("link", [Entropic(0.12), Laplace(0.3), Gaussian(0.05), Entropic(1.0)])
def test_the_error_of_an_open_cell_is_the_mean_excess_over_the_draw(link):
    u = np.array([0.0, 0.02, 0.3, 0.5, 0.9, 1.0])
    r = nodes(20_000)
    brute = np.maximum(link.ppf(u[:, None], r) - r, 0.0).mean(axis=-1)
    np.testing.assert_allclose(link.cell_error(u), brute, atol=2e-4)
    # over draws, one in each cell
    np.testing.assert_allclose(cell_excess(1 - link.ppf(u[:, None], r)), brute, atol=2e-4)


def test_certified_errors_are_those_of_the_worst_completion():
    who = people(400, 1)
    times = Outcomes(who.time, who.event, horizon=2.0)
    proof = certify(who.forecast().randomized(0.12, random_state=2), y=times, random_state=0)
    assert (proof.link, proof.bound) == (LINK, None)
    found = proof.own.all_errors.high
    at, at_horizon = (forecast_cdf(time, who.x) for time in (times.value, 2.0))
    share = np.linspace(0, 1, 41)
    for i in range(60):
        if times.happened[i]:
            worst = LINK.pathwise_error(at[i])
        elif times.has_reached[i]:
            worst = LINK.cell_error(at_horizon[i])
        else:
            after = times.value[i] + (2.0 - times.value[i]) * share
            errors = LINK.pathwise_error(forecast_cdf(after, who.x[i]))
            worst = max(*errors, LINK.cell_error(at_horizon[i]))
        # the curves are linear between their times
        assert found[i] == pytest.approx(float(worst), abs=5e-3)


def test_people_who_entered_late_are_left_out_whatever_happened_to_them():
    who = people(2000, 7)
    served = who.forecast().randomized(0.12, random_state=8)
    proof = certify(served, y=who.times(2.0), random_state=0)
    early = who.entered <= STUDY - 2.0 + 1e-9
    found = proof.follow_up
    assert found.has_entry
    assert proof.n_samples == early.sum() == found.n_events + found.n_reached + found.n_lost
    assert found.n_left_out == (~early).sum()
    assert found.n_events == (who.event & (who.time <= 2.0) & early).sum()
    everybody = certify(served, y=Outcomes(who.time, who.event, horizon=2.0), random_state=0)
    assert proof.group_error(0.2) < everybody.group_error(0.2)


def test_nothing_is_proven_for_every_group_without_a_horizon():
    who = people(1000, 9)
    served = who.forecast().randomized(0.12, random_state=1)
    proof = certify(served, y=who.times(), random_state=0)
    lost = float((~who.event).mean())
    assert not proof.bounds_every_group
    assert proof.group_error(lost / 2) == pytest.approx(0.5)
    row = proof.questions.iloc[2]
    assert not row["answered"]
    assert "give a horizon" in row["why"]
    # the overall error is bounded all the same
    assert proof.average_error() < 0.5


def test_coverage_counts_lost_people_both_ways():
    who = people(2000, 10)
    times = Outcomes(who.time, who.event, horizon=2.0)
    forecast = who.forecast()
    proof = certify(forecast, y=times, random_state=0)
    least, missed, _ = proof.own.missed(0.9)
    cdf, at_horizon = forecast.cdf(times.value), forecast.cdf(np.full(2000, 2.0))
    is_in = (cdf >= 0.05) & (cdf <= 0.95)
    np.testing.assert_array_equal(missed[times.happened], ~is_in[times.happened])
    assert (least[times.is_lost] == 0).all()
    # who left after the lower end of the interval is covered whenever the event happens
    sure = times.is_lost & (cdf >= 0.05) & (at_horizon <= 0.95)
    assert (missed[sure] == 0).all()
    assert (missed[times.is_lost & ~sure] == 1).all()
    low, high = proof.coverage(0.9, 0.5)
    assert 0 < low < 1
    assert high == 1


def test_events_of_lost_people_are_completed_both_ways():
    rng = np.random.default_rng(11)
    p = rng.beta(2, 5, 3000)
    event = rng.random(3000) < p
    lost = rng.random(3000) < 0.2
    proof = certify_events(p, event, lost=lost)
    as_events = certify_events(p, event | lost)
    as_none = certify_events(p, event & ~lost)
    assert proof.events.n_lost == lost.sum()
    assert proof.events.n_events == (event & ~lost).sum()
    for mass in (0.1, 0.5):
        assert proof.bias(mass) == (as_none.bias(mass)[0], as_events.bias(mass)[1])
        assert proof.event_rate(below=0.3, mass=mass) == as_events.event_rate(below=0.3, mass=mass)
        assert proof.event_rate(above=0.3, mass=mass) == as_none.event_rate(above=0.3, mass=mass)


def test_a_hurdle_of_times_separates_the_event_from_its_time():
    who = people(3000, 13)
    served = who.forecast(2.0).randomized(0.12, random_state=1)
    proof = certify(served, y=who.times(2.0), groups={"a": who.x > 0}, random_state=0)
    found, base = proof.follow_up, proof.own.base
    assert proof.n_positive == found.n_events
    assert base.n_samples == found.n_events + found.n_lost
    assert proof.events.n_lost == base.unknown.sum() == found.n_lost
    # it is not even known that they have the event by the horizon
    assert (base.low[base.unknown] == 0).all()
    assert (base.high[base.unknown] == 1).all()
    assert proof.named("a") < 0.5
    assert "the event by 2" in proof.summary()
    refused("watch named groups", proof.promise, 0.2)


def test_several_rows_of_a_person_count_once():
    who = people(900, 15)
    person = np.repeat(np.arange(300), 3)
    for horizon in (None, 2.0):
        times = Outcomes(who.time, who.event, 2.0, who.entered, person=person)
        proof = certify(who.forecast(horizon), y=times, random_state=0)
        found = proof.follow_up
        assert proof.one_row_each
        assert proof.n_samples + found.n_left_out == 300


def model(X):
    return forecast_of(np.asarray(X)[:, 0], 2.0)


def test_randomize_certifies_the_time_of_events_by_the_horizon():
    who = people(1500, 16, leaving=60.0)
    X, times = who.x[:, None], who.times(2.0)
    chosen = randomize(model, X, times, goal=0.3, random_state=0)
    assert chosen.group_error <= 0.3
    assert chosen.atom == 2.0
    found = chosen.certificate.follow_up
    # everybody certifies who entered early, whatever happened
    held = chosen.certifying
    np.testing.assert_array_equal(held, np.flatnonzero(who.entered <= STUDY - 2.0))
    assert found.n_events == (who.event & (who.time <= 2))[held].sum()
    assert "the people with the event by 2" in chosen.statement
    # the probability of the event is not randomized
    served = chosen.model.forecast(X[:50], r=np.linspace(0.1, 0.9, 50))
    np.testing.assert_allclose(served.event_probability(), model(X[:50]).event_probability())
    # a certificate of the same people takes the bounds that account for the choice
    proof = certify(chosen.model, X[held], times.take(held), random_state=0)
    assert proof.accounting_for(chosen.certificate).group_error(0.2) == chosen.group_error


def test_the_price_of_times_is_that_of_the_right_censored_log_score():
    who = people(1500, 17, leaving=10.0)
    X, times = who.x[:, None], Outcomes(who.time, who.event, horizon=2.0)
    chosen = randomize(model, X, times, max_price=0.3, group_mass=0.5, random_state=0)
    base = model(X)
    served = base.randomized(chosen.alpha, chosen.model.link, jittered(1500, 64, random_state=1))

    def loss(forecast):
        wide = times.value if forecast.r is None else times.value[:, None]
        lost = times.is_lost if forecast.r is None else times.is_lost[:, None]
        # the horizon is an atom, which is known to be the outcome
        known = forecast.log_density(times.value)
        return -float(np.where(lost, forecast.distribution.logsf(wide), known).mean())

    # noise of the draws: about 0.01
    assert loss(served) - loss(base) == pytest.approx(chosen.price, abs=0.03)
    assert chosen.price <= 0.3 + 1e-9


def test_randomize_refuses_what_cannot_be_certified():
    who = people(1000, 18, leaving=2.0)
    options = {"event": who.event, "horizon": 2.0}
    for message, estimator, known in (
        ("lost .* use people who entered early .*, an earlier", model, options),
        ("lost .* use an earlier horizon", model, options | {"entered": who.entered}),
        ("horizon is missing", model, {"event": who.event}),
        ("event is missing", model, {}),
        ("horizon is given without event", model, {"horizon": 2.0}),
        ("atom at it", model, options | {"horizon": 1.5, "entered": who.entered}),
        ("fitted beforehand", BayesianRidge(), options),
    ):
        with pytest.raises(InputError, match=message):
            randomize(estimator, who.x[:, None], Outcomes(who.time, **known), random_state=0)


# --- simulations: bounds below the population's value in at most 5% of data sets


MASSES = (0.1, 0.2, 0.5)


def cut(sample, is_informative, random):
    """Return times; with informative censoring people leave shortly before an early event."""
    if not is_informative:
        return Outcomes(sample.time, sample.event, horizon=2.0)
    leaves = (sample.truth < 0.5) & (random.random(sample.x.size) < 0.15)
    factor = np.where(leaves, random.uniform(0.9, 1.0, sample.x.size), 1.0)
    return Outcomes(sample.time * factor, sample.event & ~leaves, horizon=2.0)


@statistical
@pytest.mark.parametrize("is_informative", [False, True])
def test_certificates_are_broken_in_at_most_five_percent(is_informative):
    # false-alarm rate: `FALSE_ALARM`, if each set is broken with a probability of 5%. The bound is
    # compared with the mean of the largest possible errors, which is at least the error of any
    # group, so that it may also be broken where no group's error is above it
    n_sets = repeats(1000, shorter=25)
    seeds = np.random.default_rng(21).spawn(n_sets + 1)
    big = Sample.of(200_000, seeds[-1])
    times = cut(big, is_informative, seeds[-1])
    # the largest pathwise error of each person, from its definition
    at, top = (forecast_cdf(y, big.x) for y in (times.value, np.full(times.n_samples, 2.0)))
    grid = np.linspace(0, 1, 4001)
    errors = [np.interp(u, grid, LINK.pathwise_error(grid)) for u in (at, top)]
    known = np.where(times.happened, errors[0], np.interp(top, grid, LINK.cell_error(grid)))
    values = np.where(times.is_lost, np.maximum(*errors), known)
    aim = [(mass, cvar(values, mass)) for mass in MASSES]
    broken = 0
    for random in seeds[:-1]:
        sample = Sample.of(400, random)
        found = cut(sample, is_informative, random)
        at, top = (forecast_cdf(y, sample.x) for y in (found.value, np.full(400, 2.0)))
        reading = found.is_lost * Reading.UNKNOWN + found.has_reached * Reading.BEYOND
        base = Cells(at, np.where(found.happened, at, 1.0), reading=reading, link=LINK)
        proof = certify_rows(
            base.served(LINK, random.random((400, 1))),
            kind=OutcomeKind.CONTINUOUS,
            base=base,
            times=found,
            at_horizon=top,
            random_state=random,
        )
        broken += any(proof.group_error(mass) < least - 1e-9 for mass, least in aim)
    assert broken <= most_failures(n_sets)
