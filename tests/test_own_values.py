"""Values of a person's own forecast."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand import Forecast, InputError
from evenhand.distributions import Quantiles
from evenhand.forecast import OWN_VALUES, forecast_values

N = 7


def _values(forecast: Forecast, name: str) -> np.ndarray:
    table = forecast_values(forecast, [name])
    assert list(table.columns) == [name]
    assert len(table) == len(forecast)
    return table[name].to_numpy()


def test_of_a_normal_forecast() -> None:
    mean, std = np.linspace(-1, 5, N), np.linspace(0.5, 2, N)
    forecast = Forecast.from_normal(mean, std)
    np.testing.assert_allclose(_values(forecast, "predicted mean"), mean)
    np.testing.assert_allclose(_values(forecast, "predicted median"), mean)
    width = stats.norm.ppf(0.9) - stats.norm.ppf(0.1)
    np.testing.assert_allclose(_values(forecast, "80% width"), std * width)


def test_of_a_probability() -> None:
    p = np.linspace(0, 1, N)
    np.testing.assert_allclose(_values(Forecast.from_probability(p), "predicted probability"), p)


def test_of_a_forecast_with_an_atom_the_width_is_that_of_the_other_part() -> None:
    chance = np.linspace(0.1, 0.9, N)
    forecast = Forecast.from_hurdle(chance, Forecast.from_normal(np.full(N, 100.0), np.full(N, 5)))
    np.testing.assert_allclose(_values(forecast, "chance of zero"), chance)
    np.testing.assert_allclose(_values(forecast, "80% width"), 10 * stats.norm.ppf(0.9))
    np.testing.assert_allclose(_values(forecast, "predicted mean"), forecast.mean())


def test_of_times_with_a_horizon() -> None:
    forecast = Forecast.from_survival([1, 2, 5], [[0.9, 0.7, 0.4]] * N, horizon=2)
    np.testing.assert_allclose(_values(forecast, "event by horizon"), 0.3)
    np.testing.assert_allclose(_values(forecast, "event by horizon"), forecast.cdf_left(2.0))


def test_over_several_draws_they_are_means() -> None:
    base = Forecast.from_normal(np.arange(N), np.ones(N))
    draws = np.random.default_rng(0).uniform(size=(N, 5))
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


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'predicted mean'"):
        forecast_values(Forecast.from_normal([0.0], [1.0]), ["predicted meen"])


def test_every_name_is_a_value_of_some_forecast() -> None:
    forecasts = [
        Forecast.from_normal([0.0], [1.0]),
        Forecast.from_probability([0.3]),
        Forecast.from_hurdle([0.3], Forecast.from_quantiles([0.1, 0.9], [[50, 900]])),
        Forecast.from_survival([1, 2, 5], [[0.9, 0.7, 0.4]], horizon=2),
    ]
    for name in OWN_VALUES:
        found = []
        for forecast in forecasts:
            try:
                found.append(_values(forecast, name))
            except InputError:
                continue
        assert found, name
        assert np.isfinite(found).all()
