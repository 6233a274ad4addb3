"""Forecasts: constructors, PITs, scores, intervals, kinds of outcomes and bad input."""

import numpy as np
import pytest
from scipy import stats

from complaints import refused
from evenhand._validate import InputError
from evenhand.calibration import Cells
from evenhand.decisions import BayesDecision, StepLoss
from evenhand.distributions import (
    NO_BINARY_RANDOMIZATION,
    Hurdle,
    Normal,
    OutcomeKind,
    Poisson,
    Randomized,
    Recalibrated,
)
from evenhand.draws import KeyedDraws, fresh, nodes
from evenhand.forecast import Forecast
from evenhand.links import Entropic
from evenhand.outcomes import Rounding
from evenhand.tables import forecast_values

MEAN = np.array([0.0, 10.0, -3.0])
STD = np.array([1.0, 2.0, 0.5])
HALF = Rounding(0.5)


def three():
    return Forecast.from_normal(MEAN, STD)


def drawn(m=4):
    return three().randomized(alpha=0.2, r=nodes(m))


def test_unusable_parameters_are_refused_in_one_line():
    refused(r"^r must be the draws.*\(1, 2\)", Forecast.from_normal, [[1.0, 2.0]], 1.0)
    refused(r"^r .*\(5,\), got .*\(3,\)", Forecast, Normal(np.zeros(5), 1.0), np.full(3, 0.5))
    # (3,) broadcasts against (3, 3): draws to some methods and people to others
    refused(r"^r .*\(3, 3\)", Forecast, Normal(np.zeros((3, 3)), 1.0), np.full(3, 0.5))
    table = np.full((3, 2), 0.5)
    refused(r"predict_proba\(X\)\[:, 1\]", Forecast.from_probability, table)
    refused(r"dispersion\[0\] must lie betw", Forecast.from_negative_binomial, 5.0, 1e300)
    counts = Forecast.from_poisson(2.0)
    refused("positive must be a cont", Forecast.from_hurdle, 0.5, counts)
    served = three().randomized(0.1, r=0.5)
    refused("already randomized.*determinist", served.randomized, 0.1)
    refused(r"^r must be a number or have shape \(3,", three().randomized, r=[0.1, 0.2])
    refused("n >= 1", three().__getitem__, slice(0))


def test_unusable_outcomes_and_probabilities_are_refused_in_one_line():
    y = [0.0, 1.0, 2.0]
    for call in (three().cdf, drawn().crps):
        refused(r"^y must be a number or .* got shape \(2,\)", call, [1.0, 2.0])
    for call in (lambda y: three().pit(y, rounding=HALF), lambda y: three().log_cell(y, 0.1)):
        refused(r"^y must be a number or have shape \(3,\)", call, [1.0, 2.0])
        refused(r"^y\[1\] must be finite, got nan", call, [1.0, np.nan, 0.0])
    for step in (0.0, np.nan):
        refused(r"^step must be positive, got", three().log_cell, y, step)
    pattern = r"^level must be above 0 and below 1, got 90; give a fraction: 0.9, not"
    refused(pattern, three().interval, 90)
    refused(r"^p\[1\] must lie between 0 and 1, got 1.5", three().ppf, [0.5, 1.5])
    refused(r"^p must be a number or a list of numbers, got shape", three().ppf, [[0.5]])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_log_cell_keeps_its_digits_in_both_far_tails(sign):
    # far tails: F(b) - F(a) = density(a) (1 - exp(-a w)) / a to first order, by log tails
    step, distance = 0.01, np.array([5.0, 8.2, 8.29, 8.3, 9.0, 15.0, 38.0, 45.0, 100.0])
    ends = [-150.0 * sign, 150.0 * sign]
    y = np.concatenate((sign * distance, ends))
    near, far = stats.norm.logsf(distance - step / 2), stats.norm.logsf(distance + step / 2)
    expected = near + np.log(-np.expm1(far - near)) - np.log(step)
    found = Forecast.from_normal(np.zeros(y.size), 1.0).log_cell(y, step)[:-2]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_stepped_pits_are_uniform_within_the_probability_of_the_cell():
    # Kolmogorov-Smirnov at 1e-6, three times
    n, step = 8000, 0.5
    y = np.concatenate(([-4.0, 4.0], np.full(n, 0.25)))
    forecast = Forecast.from_normal(np.zeros(y.size), 1.0)
    pit = forecast.pit(y, rounding=HALF, random_state=6)
    low, high = stats.norm.cdf([0.0, 0.5])
    assert (pit[2:] >= low).all()
    assert (pit[2:] <= high).all()
    assert stats.kstest((pit[2:] - low) / (high - low), "uniform").pvalue > 1e-6
    assert 0 < pit[0] < stats.norm.cdf(-3.75)
    assert stats.norm.cdf(3.75) < pit[1] < 1
    np.testing.assert_array_equal(forecast.pit(y, rounding=HALF, random_state=6), pit)
    found = forecast.pit(y, rounding=HALF, random_state=np.random.default_rng(6))
    np.testing.assert_array_equal(found, pit)
    assert (forecast.pit(y, rounding=HALF, random_state=7) != pit).all()
    # rounded outcomes of the forecast itself have uniform PITs again; unrounded PITs do not
    rounded = np.round(np.random.default_rng(8).normal(size=n) / step) * step
    truth = Forecast.from_normal(np.zeros(n), 1.0)
    assert stats.kstest(truth.pit(rounded, rounding=HALF, random_state=9), "uniform").pvalue > 1e-6
    assert stats.kstest(truth.pit(rounded), "uniform").pvalue < 1e-6


def test_cells_off_the_support_are_empty():
    forecast = Forecast.from_poisson(np.linspace(0.1, 9, 500)).randomized(0.12, random_state=1)
    low, high = forecast.pit_interval(np.full(500, 2.5))
    assert (low <= high).all()
    assert (high - low).max() < 1e-12
    Cells(low, high, ties=np.full(500, 0.3))


N_PEOPLE = 7


def _values(forecast, name):
    table = forecast_values(forecast, [name])
    assert list(table.columns) == [name]
    assert len(table) == len(forecast)
    return table[name].to_numpy()


def test_of_normal_forecasts_and_probabilities():
    mean, std = np.linspace(-1, 5, N_PEOPLE), np.linspace(0.5, 2, N_PEOPLE)
    forecast = Forecast.from_normal(mean, std)
    np.testing.assert_allclose(_values(forecast, "predicted mean"), mean)
    np.testing.assert_allclose(_values(forecast, "predicted median"), mean)
    width = stats.norm.ppf(0.9) - stats.norm.ppf(0.1)
    np.testing.assert_allclose(_values(forecast, "80% width"), std * width)
    p = np.linspace(0, 1, N_PEOPLE)
    np.testing.assert_allclose(_values(Forecast.from_probability(p), "predicted probability"), p)


def test_of_a_forecast_with_an_atom_the_width_is_that_of_the_other_part():
    chance = np.linspace(0.1, 0.9, N_PEOPLE)
    forecast = Forecast.from_hurdle(
        chance, Forecast.from_normal(np.full(N_PEOPLE, 100.0), np.full(N_PEOPLE, 5))
    )
    np.testing.assert_allclose(_values(forecast, "chance of zero"), chance)
    np.testing.assert_allclose(_values(forecast, "80% width"), 10 * stats.norm.ppf(0.9))
    np.testing.assert_allclose(_values(forecast, "predicted mean"), forecast.mean())


def test_over_several_draws_they_are_means():
    base = Forecast.from_normal(np.arange(N_PEOPLE), np.ones(N_PEOPLE))
    draws = np.random.default_rng(0).uniform(size=(N_PEOPLE, 5))
    forecast = base.randomized(0.3, r=draws)
    np.testing.assert_allclose(_values(forecast, "predicted mean"), forecast.mean().mean(axis=1))
    low, high = forecast.interval(0.8)
    np.testing.assert_allclose(_values(forecast, "80% width"), (high - low).mean(axis=1))
    shared = base.randomized(0.3, r=draws[:1])
    np.testing.assert_allclose(_values(shared, "predicted mean"), shared.mean().mean(axis=1))


@pytest.mark.parametrize("name", ["predicted probability", "chance of zero", "event by horizon"])
def test_a_value_of_another_kind_is_refused(name):
    with pytest.raises(InputError, match=rf"'{name}', which forecasts of kind 'continuous'"):
        forecast_values(Forecast.from_normal([0.0], [1.0]), [name])


RATES = np.array([0.4, 3.0, 25.0])
CHANCE = np.array([0.3, 0.6, 0.9])


def claims():
    return Forecast.from_hurdle(CHANCE, Forecast.from_normal(RATES, 1.0))


KINDS = {
    "continuous": (lambda: Forecast.from_normal(RATES, 1.0), [0.2, 2.0, 25.5]),
    "count": (lambda: Forecast.from_poisson(RATES), [0.0, 2.0, 30.0]),
    "hurdle": (claims, [0.0, 2.0, 0.0]),
    "binary": (lambda: Forecast.from_probability(CHANCE), [0.0, 1.0, 1.0]),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_the_kind_is_read_off_the_forecast(kind):
    forecast = KINDS[kind][0]()
    assert forecast.outcome_kind == kind
    assert forecast.has_atoms == (kind != "continuous")
    assert forecast[1:].outcome_kind == forecast[0].outcome_kind == kind
    mapped = Forecast(Recalibrated(forecast.distribution, [0, 0.5, 1], [0, 0.4, 1]))
    assert mapped.outcome_kind == kind
    if kind != "binary":
        served = forecast.randomized(0.1, r=[[0.2, 0.7]])
        assert served.outcome_kind == kind
        assert served.take_draws(np.zeros((3, 1), dtype=int)).outcome_kind == kind


@every_kind
def test_cells_are_the_cdf_before_and_at_the_outcome(kind):
    build, y = KINDS[kind]
    forecast = build()
    low, high = forecast.pit_interval(y)
    np.testing.assert_array_equal(high, forecast.cdf(y))
    np.testing.assert_array_equal(low, forecast.cdf(y, left=True))
    assert (high > low).any() == forecast.has_atoms
    np.testing.assert_allclose(high - low, np.exp(forecast.log_mass(y)), atol=1e-13)
    ties = np.array([0.1, 0.5, 0.9])
    pit = forecast.pit(y, ties=ties)
    np.testing.assert_allclose(pit, low + ties * (high - low), rtol=1e-15)
    # the position is that of the person, at every draw and in every batch
    if kind != "binary":
        served = forecast.randomized(0.1, r=[[0.2, 0.5, 0.7]])
        ends = served.pit_interval(y)
        assert ends[0].shape == ends[1].shape == (3, 3)
        own = ends[0] + ties[:, None] * (ends[1] - ends[0])
        np.testing.assert_allclose(served.pit(y, ties=ties), own, rtol=1e-15)
    for i in range(3):
        alone = forecast[i].pit(y[i : i + 1], ties=ties[i : i + 1])
        np.testing.assert_allclose(alone, pit[i : i + 1], rtol=1e-12)


def test_atoms_need_ties_and_continuous_outcomes_do_not():
    for kind, (build, y) in KINDS.items():
        if kind == "continuous":
            np.testing.assert_array_equal(build().pit(y), build().cdf(y))
            continue
        refused(r"ties must be one.*KeyedDraws\.ties", build().pit, y)
        for wrong, message in (
            ([0.1, 0.2], r"ties must have one value per row \(3\)"),
            ([-0.1, 0.2, 0.3], r"ties\[0\] must lie between 0 and 1, got -0.1"),
            ([0.1, np.nan, 0.3], r"ties\[1\] must be finite, got nan"),
        ):
            refused(message, build().pit, y, ties=wrong)


def test_constructors_make_the_laws_that_they_name():
    y = np.array([1.0, 0.0, 3.0])
    poisson = Forecast.from_poisson(RATES)
    np.testing.assert_allclose(poisson.cdf(y), stats.poisson(RATES).cdf(y), rtol=1e-12)
    wide = Forecast.from_negative_binomial(RATES, 0.5)
    np.testing.assert_allclose(wide.std() ** 2, RATES + 0.5 * RATES**2, rtol=1e-12)
    np.testing.assert_allclose(Forecast.from_pmf([1, 2, 3], [[0.2, 0.3, 0.5]]).mean(), 2.3)
    # two values, 0 and 1, are an event
    event = Forecast.from_pmf([0, 1], [[0.2, 0.8]])
    assert event.outcome_kind is OutcomeKind.BINARY
    np.testing.assert_allclose(event.event_probability(), 0.8)
    assert Forecast.from_pmf([1, 2], [[0.2, 0.8]]).outcome_kind is OutcomeKind.COUNT
    drawn = Forecast.from_samples([[0, 0, 1, 5]], kind="count")
    np.testing.assert_allclose(np.exp(drawn.log_mass(0.0)), 0.5)
    assert drawn.outcome_kind is OutcomeKind.COUNT
    refused("kind must be one of", Forecast.from_samples, [[0, 0, 1, 5]], kind="hurdle")


def test_hurdles_give_their_parts_and_log_scores():
    forecast = claims()
    np.testing.assert_allclose(forecast.event_probability(), 1 - CHANCE, rtol=1e-12)
    # a normal part that reaches below 0 is truncated there
    part = stats.truncnorm(-RATES, np.inf, loc=RATES)
    y = np.array([0.7, 2.0, 24.0])
    np.testing.assert_allclose(forecast.positive_part().cdf(y), part.cdf(y), rtol=1e-9)
    expected = np.log(1 - CHANCE) + part.logpdf(y)
    np.testing.assert_allclose(forecast.log_density(y), expected, rtol=1e-9)
    np.testing.assert_allclose(forecast.log_density(0.0), np.log(CHANCE), rtol=1e-12)
    np.testing.assert_array_equal(forecast.pit_interval(y)[0], forecast.pit_interval(y)[1])
    above = Forecast.from_hurdle([0.2], Forecast.from_normal([3.0], 1.0), at=5.0, end="high")
    low, high = above.pit_interval([5.0])
    assert (low[0], high[0]) == pytest.approx((0.8, 1.0))
    assert above.ppf(0.9)[0] == 5.0
    for other in ("continuous", "count", "binary"):
        refused("forecast must be a hurdle forecast, got kind", KINDS[other][0]().positive_part)
    refused("forecast must be a hurdle forecast, got kind", KINDS["count"][0]().event_probability)
    for wrong, message in (
        (lambda: Forecast.from_hurdle([0.1, 0.2], above.positive_part()), "chance_of_zero must"),
        (lambda: Forecast.from_hurdle([0.1], Poisson([1.0])), r"positive must be a Forecast"),
    ):
        refused(message, wrong)


def test_randomization_of_hurdles_leaves_the_atom_as_it_is():
    forecast, r = claims(), np.array([0.1, 0.5, 0.9])
    served = forecast.randomized(0.12, "entropic", r)
    assert isinstance(served.distribution, Hurdle)
    assert isinstance(served.distribution.positive, Randomized)
    np.testing.assert_allclose(np.exp(served.log_mass(0.0)), CHANCE, rtol=1e-12)
    y = np.array([0.7, 2.0, 24.0])
    part = forecast.positive_part()
    # h(y) = p0 + (1 - p0) H(G+(y); r)
    expected = CHANCE + (1 - CHANCE) * Entropic(0.12).ppf(part.cdf(y), r)
    np.testing.assert_allclose(served.cdf(y), expected, rtol=1e-9)
    np.testing.assert_allclose(served.positive_part().r, r)
    np.testing.assert_allclose(served.event_probability(), 1 - CHANCE)
    # a hurdle around a randomized part is the same forecast
    again = Forecast.from_hurdle(CHANCE, part.randomized(0.12, "entropic", r))
    np.testing.assert_allclose(again.cdf(y), expected, rtol=1e-9)
    many = forecast.randomized(0.12, r=[[0.2, 0.4, 0.6, 0.8]])
    assert many.mean().shape == many.crps(y).shape == many.event_probability().shape == (3, 4)
    refused("already randomized", served.randomized)
    # a recalibrated hurdle is one, too
    mapped = Forecast(Recalibrated(forecast.distribution, [0, 0.5, 1], [0, 0.4, 1]))
    mapped = mapped.randomized(0.12, r=r)
    at_zero = np.interp(CHANCE, [0, 0.5, 1], [0, 0.4, 1])
    np.testing.assert_allclose(np.exp(mapped.log_mass(0.0)), at_zero, rtol=1e-9)


def test_events_are_not_randomized():
    with pytest.raises(InputError) as caught:
        Forecast.from_probability(CHANCE).randomized()
    assert str(caught.value) == NO_BINARY_RANDOMIZATION
    assert "\n" not in NO_BINARY_RANDOMIZATION


@every_kind
def test_samples_are_from_the_distribution(kind):
    # Kolmogorov-Smirnov of randomized PITs at 1e-6
    n = 20_000
    forecast = KINDS[kind][0]()[np.arange(n) % 3]
    y = forecast.sample(random_state=1)
    assert stats.kstest(forecast.pit(y, ties=fresh(n, 2)), "uniform").pvalue > 1e-6
    if kind != "binary":
        served = forecast.randomized(0.2, random_state=3)
        y = served.sample(random_state=4)
        ties = KeyedDraws(b"sixteen bytes or more").ties(np.arange(n))
        assert stats.kstest(served.pit(y, ties=ties), "uniform").pvalue > 1e-6
        low, high = served.interval(0.8)
        # whole outcomes: at least the level, up to 5 standard errors
        covered = ((y >= low) & (y <= high)).mean()
        assert covered > 0.8 - 5 * np.sqrt(0.16 / n)
        assert kind != "continuous" or covered < 0.8 + 5 * np.sqrt(0.16 / n)


def test_decisions_at_atoms():
    # the loss of the interval from a cut on includes the cut
    loss = StepLoss([3.0], [5.0, 1.0])
    bank = BayesDecision(("a", "b"), {"a": loss, "b": lambda y: 5.0 - 4.0 * (y >= 3)})
    for build in (
        lambda: Forecast.from_poisson(RATES),
        lambda: Forecast.from_negative_binomial(RATES, 0.3),
        lambda: Forecast.from_poisson(RATES).randomized(0.1, r=[0.3, 0.6, 0.8]),
        lambda: Forecast.from_hurdle(
            CHANCE, Forecast.from_normal([1.0, 1, 1], 1.0), at=3.0, end="high"
        ),
    ):
        forecast = build()
        at_least = forecast.distribution.sf(3.0, left=True)
        found = bank.expected_loss(forecast)
        np.testing.assert_allclose(found[:, 0], 5 - 4 * at_least, rtol=1e-9)
        np.testing.assert_allclose(found[:, 1], 5 - 4 * at_least, rtol=1e-9, atol=2e-2)
        np.testing.assert_allclose(at_least, 1 - forecast.cdf(3.0, left=True), rtol=1e-9)
    exact = 5 - 4 * stats.poisson(RATES).sf(2)
    np.testing.assert_allclose(bank.expected_loss(Forecast.from_poisson(RATES))[:, 1], exact)
