"""Forecasts: constructors, PITs, scores, intervals and bad input, against scipy and theory.

Where a test is statistical, its comment gives how often it would fail by chance if the seed were
redrawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evenhand import Forecast, InputError
from evenhand.calibration import PITs
from evenhand.distributions import Normal, Quantiles, Samples
from evenhand.draws import fresh, jittered, nodes
from evenhand.forecast import cell_ends, forecast_values

MEAN = np.array([0.0, 10.0, -3.0])
STD = np.array([1.0, 2.0, 0.5])


def three() -> Forecast:
    return Forecast.from_normal(MEAN, STD)


def drawn(m: int = 4) -> Forecast:
    return three().randomized(alpha=0.2, r=nodes(m))


def refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


# --- constructors


def test_constructors_make_deterministic_forecasts_of_the_right_family() -> None:
    values = np.sort(np.random.default_rng(0).normal(size=(5, 7)), axis=-1)
    for forecast, family, n in (
        (three(), Normal, 3),
        (Forecast.from_normal([1, 2], 3), Normal, 2),
        (Forecast.from_normal(1.0, 3.0), Normal, 1),
        (Forecast.from_quantiles(np.arange(1, 8) / 8, values), Quantiles, 5),
        (Forecast.from_quantiles([0.1, 0.9], [2.0, 5.0]), Quantiles, 1),
        (Forecast.from_samples(values), Samples, 5),
        (Forecast.from_samples(values[0]), Samples, 1),
    ):
        assert type(forecast.distribution) is family
        assert len(forecast) == forecast.n_samples == n
        assert not forecast.is_randomized
        assert forecast.r is None
        for result in (
            forecast.mean(),
            forecast.std(),
            forecast.cdf(0.3),
            forecast.logpdf(np.zeros(n)),
        ):
            assert result.shape == (n,)
            assert result.dtype == np.float64


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Forecast.from_normal([], 1.0),
            r"^distribution must be a batch .*, n >= 1",
        ),
        (lambda: Forecast.from_normal([[1.0, 2.0]], 1.0), r"^r is None.*\(1, 2\)"),
        (lambda: Forecast(Normal(np.zeros(5), 1.0), np.full(3, 0.5)), r"^r .*\(5,\), got .*\(3,\)"),
        # (3,) broadcasts against (3, 3), but its entries would be draws to some methods and people
        # to others
        (lambda: Forecast(Normal(np.zeros((3, 3)), 1.0), np.full(3, 0.5)), r"^r .*\(3, 3\)"),
        (lambda: Forecast.from_probability(np.full((3, 2), 0.5)), r"predict_proba\(X\)\[:, 1\]"),
        (lambda: Forecast.from_poisson("a"), "mean contains values that are not numbers"),
        (lambda: Forecast.from_pmf([], [[]]), "support must have at least one value"),
        (lambda: Forecast.from_negative_binomial(5.0, 1e300), "dispersion must lie between 1e-100"),
        (lambda: Forecast.from_hurdle(0.5, Forecast.from_poisson(2.0)), "use from_pmf for counts"),
        (lambda: three().randomized(0.1, r=0.5).randomized(0.1), "already randomized.*determinist"),
        (lambda: three().randomized(10), r"^alpha must satisfy 0 < alpha <= 1, got 10"),
        (lambda: three().randomized(link="logistic"), "^link must be one of 'laplace', 'entropic'"),
        (
            lambda: three().randomized(r=[0.1, 0.2]),
            r"^r must be a number or have shape \(3,",
        ),
        (lambda: three().randomized(random_state=-1), r"^random_state must be"),
        (lambda: three()[1.5], "rows must be a row number"),
        (lambda: three()[slice(0)], "n >= 1"),
    ],
)
def test_unusable_parameters_are_refused_in_one_line(
    make: Callable[[], object], message: str
) -> None:
    refused(make, message)


@pytest.mark.parametrize("rows", [-4, [True, False]])
def test_rows_out_of_range_are_index_errors(rows: Any) -> None:
    with pytest.raises(IndexError):
        three()[rows]


def test_unusable_outcomes_and_probabilities_are_refused_in_one_line() -> None:
    y = [0.0, 1.0, 2.0]
    for call in (three().cdf, drawn().crps):
        refused(lambda call=call: call([1.0, 2.0]), r"^y must be a number or .* got shape \(2,\)")
    for call in (lambda y: three().pit(y, step=0.1), lambda y: three().log_cell(y, 0.1)):
        refused(lambda call=call: call([1.0, 2.0]), r"^y must be a number or have shape \(3,\)")
        refused(lambda call=call: call([1.0, np.nan, 0.0]), r"^y\[1\] must be finite, got nan")
    for step in (0.0, np.nan):
        refused(lambda step=step: three().pit(y, step=step), r"^step must be positive, got")
        refused(lambda step=step: three().log_cell(y, step), r"^step must be positive, got")
    refused(lambda: three().interval(90), r"^level must satisfy.*got 90; give a fraction: 0.9, not")
    refused(lambda: three().ppf([0.5, 1.5]), r"^p must lie between 0 and 1, got 1.5")
    refused(lambda: three().ppf([[0.5]]), r"^p must be a number or a list of numbers, got shape")


# --- shapes


def test_columns_of_a_forecast_are_its_draws_and_rows_its_people() -> None:
    y, r = np.array([0.1, 9.0, -3.0]), jittered(3, 4, 2)
    forecast = three().randomized(0.1, r=r)
    for j in range(4):
        column = three().randomized(0.1, r=r[:, j])
        np.testing.assert_allclose(forecast.pit(y)[:, j], column.pit(y), rtol=1e-13)
        np.testing.assert_allclose(
            forecast.ppf([0.1, 0.6])[:, j], column.ppf([0.1, 0.6]), rtol=1e-12
        )
    for k, p in enumerate((0.1, 0.6)):
        np.testing.assert_allclose(forecast.ppf([0.1, 0.6])[..., k], forecast.ppf(p), rtol=1e-12)
    assert forecast.sample(1).shape == forecast.std().shape == (3, 4)
    assert forecast.log_cell(y, 0.5).shape == forecast.pit(y, step=0.5).shape == (3, 4)


@pytest.mark.parametrize(
    ("rows", "r"),
    [
        ([2, 0], None),
        (slice(0, 2), [0.1, 0.5, 0.9]),
        (np.array([False, True, True]), nodes(3)),
        ([1, 1, 1], jittered(3, 2, 0)),
    ],
)
def test_taken_rows_keep_their_forecast_and_their_draws(rows: Any, r: Any) -> None:
    y = np.array([0.1, 9.0, -3.0])
    whole = three() if r is None else three().randomized(0.1, r=r)
    part = whole[rows]
    assert part.n_samples == len(y[rows])
    np.testing.assert_allclose(part.pit(y[rows]), whole.pit(y)[rows], rtol=1e-13)
    if whole.r is None:
        assert part.r is None
    else:
        every = np.broadcast_to(whole.r, whole.distribution.batch_shape)
        np.testing.assert_array_equal(
            np.broadcast_to(part.r, part.distribution.batch_shape), every[rows]
        )


@pytest.mark.parametrize("r", [None, nodes(3)])
def test_a_number_takes_the_forecast_of_one_person(r: Any) -> None:
    y = np.array([0.1, 9.0, -3.0])
    whole = three() if r is None else three().randomized(0.1, r=r)
    for row in (0, 2, -1, np.int64(1)):
        part = whole[row]
        assert part.n_samples == len(part) == 1
        np.testing.assert_allclose(part.pit(y[[row]]), whole.pit(y)[[row]], rtol=1e-13)
    assert [len(person) for person in whole] == [1, 1, 1]


# --- PITs, samples and intervals of calibrated forecasts


@pytest.mark.parametrize(
    "forecast",
    [
        three(),
        drawn(),
        drawn(6).take_draws(np.array([[0, 5], [1, 2], [3, 3]])),
        three().randomized(0.2, r=0.3),
    ],
)
def test_an_interval_ends_at_the_quantiles_of_its_level(forecast: Forecast) -> None:
    level = 0.9
    for end, p in zip(forecast.interval(level), ((1 - level) / 2, (1 + level) / 2), strict=True):
        assert end.shape == forecast.distribution.batch_shape
        np.testing.assert_allclose(end, forecast.ppf(p), rtol=1e-12)


# --- rounding cells


def test_cells_of_the_least_and_the_greatest_outcome_are_open() -> None:
    low, high = cell_ends(np.array([1.0, 2.0, 3.0, 1.0, 3.0]), 0.5)
    np.testing.assert_array_equal(low, [-np.inf, 1.75, 2.75, -np.inf, 2.75])
    np.testing.assert_array_equal(high, [1.25, 2.25, np.inf, 1.25, np.inf])
    np.testing.assert_array_equal(cell_ends(np.array([7.0]), 0.1), [[-np.inf], [np.inf]])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_log_cell_keeps_its_digits_in_both_far_tails(sign: float) -> None:
    # in a far tail F(b) - F(a) = density(a) (1 - exp(-a w)) / a to first order: here by scipy's log
    # tails
    step, distance = 0.01, np.array([5.0, 8.2, 8.29, 8.3, 9.0, 15.0, 38.0, 45.0, 100.0])
    ends = [-150.0 * sign, 150.0 * sign]
    y = np.concatenate((sign * distance, ends))
    near, far = stats.norm.logsf(distance - step / 2), stats.norm.logsf(distance + step / 2)
    expected = near + np.log(-np.expm1(far - near)) - np.log(step)
    found = Forecast.from_normal(np.zeros(y.size), 1.0).log_cell(y, step)[:-2]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_stepped_pits_are_uniform_within_the_probability_of_the_cell() -> None:
    # Kolmogorov-Smirnov at 1e-6, three times
    n, step = 8000, 0.5
    y = np.concatenate(([-4.0, 4.0], np.full(n, 0.25)))
    forecast = Forecast.from_normal(np.zeros(y.size), 1.0)
    pit = forecast.pit(y, step=step, random_state=6)
    low, high = stats.norm.cdf([0.0, 0.5])
    assert (pit[2:] >= low).all()
    assert (pit[2:] <= high).all()
    assert stats.kstest((pit[2:] - low) / (high - low), "uniform").pvalue > 1e-6
    assert 0 < pit[0] < stats.norm.cdf(-3.75)
    assert stats.norm.cdf(3.75) < pit[1] < 1
    np.testing.assert_array_equal(forecast.pit(y, step=step, random_state=6), pit)
    np.testing.assert_array_equal(
        forecast.pit(y, step=step, random_state=np.random.default_rng(6)), pit
    )
    assert (forecast.pit(y, step=step, random_state=7) != pit).all()
    # outcomes of the forecast itself, rounded to the grid, have uniform PITs again; unrounded PITs
    # do not
    rng = np.random.default_rng(8)
    rounded = np.round(rng.normal(size=n) / step) * step
    truth = Forecast.from_normal(np.zeros(n), 1.0)
    assert stats.kstest(truth.pit(rounded, step=step, random_state=9), "uniform").pvalue > 1e-6
    assert stats.kstest(truth.pit(rounded), "uniform").pvalue < 1e-6


def test_stepped_pits_share_one_draw_among_the_columns_of_a_person() -> None:
    y, forecast = np.array([-0.3, 9.0, -2.5]), drawn(4)
    span = (-2.5, 9.0)
    pit = forecast.pit(y, step=0.5, span=span, random_state=1)
    low, high = (forecast.distribution.cdf(end[:, None]) for end in cell_ends(y, 0.5, span))
    share = (pit - low) / (high - low)
    np.testing.assert_allclose(share, np.broadcast_to(share[:, :1], share.shape), rtol=1e-9)
    np.testing.assert_allclose(share[:, 0], fresh(3, 1), rtol=1e-9)


def test_crps_of_large_poisson_means_is_that_of_a_normal() -> None:
    mean = np.array([4.9e6, 5.1e6, 1e9, 1e12])  # around the change to the series
    normal = Forecast.from_normal(mean, np.sqrt(mean))
    found = Forecast.from_poisson(mean).crps(mean)
    np.testing.assert_allclose(found, normal.crps(mean), rtol=2e-3)
    np.testing.assert_allclose(found[0] / mean[0] ** 0.5, found[1] / mean[1] ** 0.5, rtol=1e-6)


def test_cells_off_the_support_are_empty() -> None:
    forecast = Forecast.from_poisson(np.linspace(0.1, 9, 500)).randomized(0.12, random_state=1)
    low, high = forecast.pit_interval(np.full(500, 2.5))
    assert (low <= high).all()
    assert (high - low).max() < 1e-12
    PITs.of_cells(low, high, np.full(500, 0.3))


# --- values of a person's own forecast


N_PEOPLE = 7


def _values(forecast: Forecast, name: str) -> np.ndarray:
    table = forecast_values(forecast, [name])
    assert list(table.columns) == [name]
    assert len(table) == len(forecast)
    return table[name].to_numpy()


def test_of_a_normal_forecast() -> None:
    mean, std = np.linspace(-1, 5, N_PEOPLE), np.linspace(0.5, 2, N_PEOPLE)
    forecast = Forecast.from_normal(mean, std)
    np.testing.assert_allclose(_values(forecast, "predicted mean"), mean)
    np.testing.assert_allclose(_values(forecast, "predicted median"), mean)
    width = stats.norm.ppf(0.9) - stats.norm.ppf(0.1)
    np.testing.assert_allclose(_values(forecast, "80% width"), std * width)


def test_of_a_probability() -> None:
    p = np.linspace(0, 1, N_PEOPLE)
    np.testing.assert_allclose(_values(Forecast.from_probability(p), "predicted probability"), p)


def test_of_a_forecast_with_an_atom_the_width_is_that_of_the_other_part() -> None:
    chance = np.linspace(0.1, 0.9, N_PEOPLE)
    forecast = Forecast.from_hurdle(
        chance, Forecast.from_normal(np.full(N_PEOPLE, 100.0), np.full(N_PEOPLE, 5))
    )
    np.testing.assert_allclose(_values(forecast, "chance of zero"), chance)
    np.testing.assert_allclose(_values(forecast, "80% width"), 10 * stats.norm.ppf(0.9))
    np.testing.assert_allclose(_values(forecast, "predicted mean"), forecast.mean())


def test_of_times_with_a_horizon() -> None:
    forecast = Forecast.from_survival([1, 2, 5], [[0.9, 0.7, 0.4]] * N_PEOPLE, horizon=2)
    np.testing.assert_allclose(_values(forecast, "event by horizon"), 0.3)
    np.testing.assert_allclose(_values(forecast, "event by horizon"), forecast.cdf_left(2.0))


def test_over_several_draws_they_are_means() -> None:
    base = Forecast.from_normal(np.arange(N_PEOPLE), np.ones(N_PEOPLE))
    draws = np.random.default_rng(0).uniform(size=(N_PEOPLE, 5))
    forecast = base.randomized(0.3, r=draws)
    np.testing.assert_allclose(_values(forecast, "predicted mean"), forecast.mean().mean(axis=1))
    low, high = forecast.interval(0.8)
    np.testing.assert_allclose(_values(forecast, "80% width"), (high - low).mean(axis=1))
    shared = base.randomized(0.3, r=draws[:1])
    np.testing.assert_allclose(_values(shared, "predicted mean"), shared.mean().mean(axis=1))


def test_an_infinite_mean_is_the_median() -> None:
    class Heavy(Quantiles):
        def mean(self) -> np.ndarray:
            return np.array([1.5, np.inf])

    heavy = Forecast(Heavy([0.1, 0.5, 0.9], [[0.0, 1.0, 3.0], [0.0, 2.0, 9.0]]))
    np.testing.assert_allclose(_values(heavy, "predicted mean"), [1.5, 2.0])


def test_of_many_rows_they_depend_on_the_row_alone() -> None:
    rng = np.random.default_rng(1)
    forecast = Forecast.from_normal(rng.normal(size=2500), rng.uniform(1, 2, size=2500))
    for name in ("predicted mean", "80% width"):
        all_rows = _values(forecast, name)
        for row in (0, 1024, 2499):
            np.testing.assert_allclose(_values(forecast[row], name), all_rows[[row]], rtol=1e-12)


@pytest.mark.parametrize("name", ["predicted probability", "chance of zero", "event by horizon"])
def test_a_value_of_another_kind_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=rf"'{name}', which forecasts of kind 'continuous'"):
        forecast_values(Forecast.from_normal([0.0], [1.0]), [name])
