"""Forecasts of each kind of outcome: constructors, PIT cells, randomization and decisions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from evenhand._validate import InputError
from evenhand.decisions import BayesDecision, StepLoss
from evenhand.distributions import (
    NO_BINARY_RANDOMIZATION,
    Hurdle,
    OutcomeKind,
    Poisson,
    Randomized,
    Recalibrated,
)
from evenhand.draws import KeyedDraws, fresh, nodes
from evenhand.forecast import Forecast
from evenhand.links import Entropic

MEAN = np.array([0.4, 3.0, 25.0])
CHANCE = np.array([0.3, 0.6, 0.9])


def claims() -> Forecast:
    return Forecast.from_hurdle(CHANCE, Forecast.from_normal(MEAN, 1.0))


KINDS: dict[str, tuple[Callable[[], Forecast], list[float]]] = {
    "continuous": (lambda: Forecast.from_normal(MEAN, 1.0), [0.2, 2.0, 25.5]),
    "count": (lambda: Forecast.from_poisson(MEAN), [0.0, 2.0, 30.0]),
    "hurdle": (claims, [0.0, 2.0, 0.0]),
    "binary": (lambda: Forecast.from_probability(CHANCE), [0.0, 1.0, 1.0]),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_the_kind_is_read_off_the_forecast(kind: str) -> None:
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
def test_cells_are_the_cdf_before_and_at_the_outcome(kind: str) -> None:
    build, y = KINDS[kind]
    forecast = build()
    low, high = forecast.pit_interval(y)
    np.testing.assert_array_equal(high, forecast.cdf(y))
    np.testing.assert_array_equal(low, forecast.cdf_left(y))
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


def test_atoms_need_ties_and_continuous_outcomes_do_not() -> None:
    for kind, (build, y) in KINDS.items():
        if kind == "continuous":
            np.testing.assert_array_equal(build().pit(y), build().cdf(y))
            continue
        with pytest.raises(InputError, match=r"ties is None.*KeyedDraws\.ties") as caught:
            build().pit(y)
        assert "\n" not in str(caught.value)
        with pytest.raises(InputError, match=r"step must be None for forecasts with atoms"):
            build().pit_interval(y, step=1.0)
        for wrong, message in (
            ([0.1, 0.2], r"ties must have shape \(3,\)"),
            ([0.0, 0.2, 0.3], r"ties must lie strictly between 0 and 1, got 0.0"),
            ([0.1, np.nan, 0.3], r"ties must lie strictly between 0 and 1, got nan"),
        ):
            with pytest.raises(InputError, match=message):
                build().pit(y, ties=wrong)


def test_rounding_cells_do_not_depend_on_the_batch() -> None:
    forecast, y = Forecast.from_normal(np.zeros(3), 1.0), np.array([-1.0, 0.5, 2.0])
    low, high = forecast.pit_interval(y, step=0.5)
    np.testing.assert_allclose(low, stats.norm.cdf(y - 0.25), rtol=1e-12)
    np.testing.assert_allclose(high, stats.norm.cdf(y + 0.25), rtol=1e-12)
    one = forecast[1].pit_interval(y[1:2], step=0.5)
    np.testing.assert_array_equal((one[0][0], one[1][0]), (low[1], high[1]))
    # the span of possible outcomes comes from the caller
    low, high = forecast.pit_interval(y, step=0.5, span=(-1.0, 2.0))
    assert (low[0], high[2]) == (0.0, 1.0)
    ties = np.array([0.2, 0.5, 0.6])
    pit = forecast.pit(y, step=0.5, span=(-1.0, 2.0), ties=ties)
    np.testing.assert_allclose(pit, low + ties * (high - low), rtol=1e-15)


def test_constructors_make_the_laws_that_they_name() -> None:
    y = np.array([1.0, 0.0, 3.0])
    poisson = Forecast.from_poisson(MEAN)
    np.testing.assert_allclose(poisson.cdf(y), stats.poisson(MEAN).cdf(y), rtol=1e-12)
    wide = Forecast.from_negative_binomial(MEAN, 0.5)
    np.testing.assert_allclose(wide.std() ** 2, MEAN + 0.5 * MEAN**2, rtol=1e-12)
    scores = Forecast.from_pmf([1, 2, 3], [[0.2, 0.3, 0.5]])
    np.testing.assert_allclose(scores.mean(), 2.3)
    # two values, 0 and 1, are an event
    event = Forecast.from_pmf([0, 1], [[0.2, 0.8]])
    assert event.outcome_kind is OutcomeKind.BINARY
    np.testing.assert_allclose(event.event_probability(), 0.8)
    assert Forecast.from_pmf([1, 2], [[0.2, 0.8]]).outcome_kind is OutcomeKind.COUNT
    drawn = Forecast.from_samples([[0, 0, 1, 5]], kind="count")
    np.testing.assert_allclose(np.exp(drawn.log_mass(0.0)), 0.5)
    assert drawn.outcome_kind is OutcomeKind.COUNT
    with pytest.raises(InputError, match="kind must be one of"):
        Forecast.from_samples([[0, 0, 1, 5]], kind="hurdle")


def test_hurdles_give_their_parts_and_log_scores() -> None:
    forecast = claims()
    np.testing.assert_allclose(forecast.event_probability(), 1 - CHANCE, rtol=1e-12)
    # a normal part that reaches below 0 is truncated there
    part = stats.truncnorm(-MEAN, np.inf, loc=MEAN)
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
        with pytest.raises(InputError, match="forecast must be a hurdle forecast for positive_pa"):
            KINDS[other][0]().positive_part()
    with pytest.raises(InputError, match="a hurdle or 0/1 forecast for event_probability"):
        KINDS["count"][0]().event_probability()
    for wrong, message in (
        (
            lambda: Forecast.from_hurdle([0.1, 0.2], above.positive_part()),
            r"chance_of_zero must ha",
        ),
        (lambda: Forecast.from_hurdle([0.1], Poisson([1.0])), r"positive must be a Forecast"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=message):
            wrong()


def test_randomization_of_hurdles_leaves_the_atom_as_it_is() -> None:
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
    with pytest.raises(InputError, match="already randomized"):
        served.randomized()
    # a recalibrated hurdle is one, too
    mapped = Forecast(Recalibrated(forecast.distribution, [0, 0.5, 1], [0, 0.4, 1]))
    mapped = mapped.randomized(0.12, r=r)
    at_zero = np.interp(CHANCE, [0, 0.5, 1], [0, 0.4, 1])
    np.testing.assert_allclose(np.exp(mapped.log_mass(0.0)), at_zero, rtol=1e-9)


def test_mean_over_draws_is_the_mean_of_the_means() -> None:
    # midpoints of 2,000 draws; the hurdle's part by random quantiles, 5 standard errors of 1%
    r = nodes(2000)
    for base in (
        Forecast.from_poisson(MEAN),
        Forecast.from_negative_binomial(MEAN, 0.4),
        Forecast.from_pmf([0, 1, 5], np.tile([0.2, 0.5, 0.3], (3, 1))),
    ):
        served = base.randomized(0.12, r=r).distribution
        expected = served.mean().mean(axis=-1, keepdims=True)
        np.testing.assert_allclose(served.mean_over_draws(), expected, rtol=1e-3)
    served = claims().randomized(0.12, r=nodes(500)).distribution
    expected = served.mean().mean(axis=-1, keepdims=True)
    assert served.mean_over_draws(1).shape == (3, 1)
    np.testing.assert_allclose(served.mean_over_draws(1), expected, rtol=0.05)


def test_events_are_not_randomized() -> None:
    with pytest.raises(InputError) as caught:
        Forecast.from_probability(CHANCE).randomized()
    assert str(caught.value) == NO_BINARY_RANDOMIZATION
    assert "\n" not in NO_BINARY_RANDOMIZATION


@every_kind
def test_samples_are_from_the_distribution(kind: str) -> None:
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


def test_decisions_at_atoms() -> None:
    # the loss of the interval from a cut on includes the cut
    loss = StepLoss([3.0], [5.0, 1.0])
    bank = BayesDecision(("a", "b"), {"a": loss, "b": lambda y: 5.0 - 4.0 * (y >= 3)})
    for build in (
        lambda: Forecast.from_poisson(MEAN),
        lambda: Forecast.from_negative_binomial(MEAN, 0.3),
        lambda: Forecast.from_poisson(MEAN).randomized(0.1, r=[0.3, 0.6, 0.8]),
        lambda: Forecast.from_hurdle(
            CHANCE, Forecast.from_normal([1.0, 1, 1], 1.0), at=3.0, end="high"
        ),
    ):
        forecast = build()
        at_least = forecast.distribution.sf_left(3.0)
        found = bank.expected_loss(forecast)
        np.testing.assert_allclose(found[:, 0], 5 - 4 * at_least, rtol=1e-9)
        np.testing.assert_allclose(found[:, 1], 5 - 4 * at_least, rtol=1e-9, atol=2e-2)
        np.testing.assert_allclose(at_least, 1 - forecast.cdf_left(3.0), rtol=1e-9)
    exact = 5 - 4 * stats.poisson(MEAN).sf(2)
    np.testing.assert_allclose(bank.expected_loss(Forecast.from_poisson(MEAN))[:, 1], exact)
