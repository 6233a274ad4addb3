"""Forecasts of other models from the columns of a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenhand._validate import InputError
from evenhand.scale import forecast_from_columns


def test_means_and_standard_deviations_make_normal_forecasts() -> None:
    table = pd.DataFrame({"mu": [0.0, 10.0], "sigma": [1.0, 2.0], "y": [1.0, 8.0]})
    forecast, columns = forecast_from_columns(table, mean="mu", std="sigma", source="t.csv")
    np.testing.assert_allclose(forecast.cdf(table["y"]), stats.norm.cdf([1.0, -1.0]), rtol=1e-12)
    assert columns == ["mu", "sigma"]


@pytest.mark.parametrize("listed", ["q", "q0.9,q0.1,q0.5", " q0.1, q0.5 ,q0.9"])
def test_quantiles_are_put_in_the_order_of_their_levels(listed: str) -> None:
    table = pd.DataFrame(
        {"q0.9": [9.0], "q0.1": [1.0], "y": [3.0], "q0.5": [5.0], "quality": [1.0]}
    )
    forecast, columns = forecast_from_columns(table, quantiles=listed, source="t.csv")
    assert columns == ["q0.1", "q0.5", "q0.9"]
    np.testing.assert_allclose(forecast.ppf([0.1, 0.5, 0.9]), [[1.0, 5.0, 9.0]])


def test_crossing_quantiles_are_sorted_where_asked() -> None:
    table = pd.DataFrame({"q0.1": [1.0, 6.0], "q0.5": [5.0, 5.0], "q0.9": [9.0, 2.0]})
    forecast, _ = forecast_from_columns(table, quantiles="q", sort_quantiles=True, source="t.csv")
    np.testing.assert_allclose(forecast.ppf([0.1, 0.5, 0.9]), [[1.0, 5.0, 9.0], [2.0, 5.0, 6.0]])


def test_equal_quantiles_are_taken_and_all_but_a_jump() -> None:
    table = pd.DataFrame({"q0.1": [1.0], "q0.5": [3.0], "q0.9": [3.0]})
    forecast, _ = forecast_from_columns(table, quantiles="q", source="t.csv")
    np.testing.assert_allclose(forecast.cdf(2.999), 0.4998, rtol=1e-6)  # 0.1 + 0.4 * 1.999 / 2
    assert forecast.cdf(3.001) > 0.9
    np.testing.assert_allclose(forecast.ppf([0.5, 0.7, 0.9]), [[3.0, 3.0, 3.0]], rtol=1e-8)


def test_samples_are_found_by_what_their_names_begin_with() -> None:
    draws = np.random.default_rng(0).normal(size=(3, 40))
    table = pd.DataFrame(draws, columns=[f"sample_{i}" for i in range(40)]).assign(sampled_by="x")
    forecast, columns = forecast_from_columns(table, samples="sample_", source="t.csv")
    assert columns == [f"sample_{i}" for i in range(40)]
    np.testing.assert_allclose(forecast.mean(), draws.mean(axis=1))


TABLE = pd.DataFrame(
    {
        "mu": [0.0, 1.0],
        "sigma": [1.0, 0.0],
        "q0.1": [0.0, 2.0],
        "q0.9": [1.0, 1.0],
        "s1": [1.0, 2.0],
    }
)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({}, "t.csv: name one kind of columns: --mean and --std, --quantiles, or --samples"),
        (
            {"mean": "mu"},
            "t.csv: --mean needs --std; name both columns",
        ),
        (
            {"mean": "mu", "std": "sigma", "samples": "s"},
            "t.csv: name one kind of columns: --mean and --std, --quantiles, or --samples",
        ),
        ({"mean": "mu", "std": "sigma"}, r"'sigma', row 2.*positive.* 0; correct"),
        ({"quantiles": "q"}, r"'q0\.9', row 2.*not decrease.* 1 after 2; .*--sort-quantiles"),
        ({"quantiles": "mu,sigma"}, r"^--quantiles .*level.*'mu'"),
        ({"samples": "s1"}, r"^--samples .*two columns.*'s1'; separate"),
        ({"samples": "s1,s2"}, r"^t\.csv .*'s2'.* mu, sigma, q0\.1, q0\.9, s1"),
        ({"mean": "mu", "std": "Sigmas"}, r"^t\.csv .*'Sigmas'.*; did you mean 'sigma'"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(options: dict[str, str], facts: str) -> None:
    with pytest.raises(InputError, match=facts) as raised:
        forecast_from_columns(TABLE, **options, source="t.csv")
    assert "\n" not in str(raised.value)
