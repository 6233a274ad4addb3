"""Pure parts of the forecast benchmark: tables, folds, scores, comparison and claims."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from evenhand import Forecast

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "forecasts"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCHMARK))
    import comparison
    import scores
    import tables


def made_up(
    levels: dict[str, float],
    cpu: dict[str, float] | None = None,
    name: str = "made up",
    n: int = 50,
) -> comparison.TableScores:
    """Return a table on which a forecaster's scores are a level plus small noise of its own."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    found = {}
    for forecaster in comparison.FIELD:
        level = levels.get(forecaster, 1.0)
        noise = 0.01 * rng.normal(size=(2, n))
        found[forecaster] = {
            "log": level + noise[0],
            "crps": level + noise[1],
            "mean": np.zeros(n),
            "pit": stats.norm.cdf(y),
        }
    seconds = dict.fromkeys(comparison.FIELD, 1.0) | (cpu or {})
    return comparison.TableScores(name, 3, None, y, found, seconds)


def held(found: list[comparison.TableScores]) -> list[bool]:
    return [claim.is_held for claim in comparison.claims(found)]


def test_tables_are_sorted_and_alternate_between_choosing_and_report():
    names = [table.name.lower() for table in tables.TABLES]
    assert names == sorted(set(names))
    for place, table in enumerate(tables.TABLES):
        assert (table in tables.CHOOSING) == (place % 2 == 0)
        assert (table in tables.REPORTED) == (place % 2 == 1)
    # the roles that were committed before the first run
    assert {"crime", "diamonds", "engel"} <= {table.name for table in tables.CHOOSING}
    assert {"credit", "diabetes", "Wages"} <= {table.name for table in tables.REPORTED}


def test_scores_of_continuous_outcomes_are_those_of_the_normal_distribution():
    y = np.array([0.3, -1.7, 12.0])
    mean = np.array([0.0, -1.0, 2.0])
    std = np.array([1.0, 0.5, 3.0])
    found = scores.row_scores(Forecast.from_normal(mean, std), y, scores.Scale.of(y))
    z = (y - mean) / std
    # Gneiting & Raftery 2007, the CRPS of a normal distribution
    crps = std * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(found["log"], -stats.norm.logpdf(y, mean, std), rtol=1e-9)
    np.testing.assert_allclose(found["crps"], crps, rtol=1e-6)
    np.testing.assert_allclose(found["pit"], stats.norm.cdf(z), rtol=1e-9)
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-12)


def test_scores_of_rounded_outcomes_are_those_of_cells_of_the_whole_table():
    whole = np.repeat([0.0, 0.5, 1.0, 1.5], 5)
    scale = scores.Scale.of(whole)
    assert (scale.step, scale.span) == (0.5, (0.0, 1.5))
    # the extremes of these rows are inner cells of the table, but for the last row
    y = np.array([0.5, 1.0, 1.5])
    mean = np.array([0.4, 0.2, 1.0])
    found = scores.row_scores(Forecast.from_normal(mean, np.ones(3)), y, scale)
    low = stats.norm.cdf(y - 0.25, mean)
    high = np.array([*stats.norm.cdf(y[:2] + 0.25, mean[:2]), 1.0])
    np.testing.assert_allclose(found["log"], -np.log((high - low) / 0.5), rtol=1e-9)
    assert ((found["pit"] > low) & (found["pit"] < high)).all()


def test_density_from_quantiles_is_a_density_and_exists_at_ties_and_far_away():
    rng = np.random.default_rng(1)
    y = rng.normal(3.0, 2.0, size=400)
    quantiles = np.array([np.sort(rng.normal(size=200)), np.full(200, 1.0)])
    forecast = scores.forecast_of({"quantiles": quantiles}, y)
    share = scores.WIDE_SHARE
    means = (1 - share) * quantiles.mean(axis=-1) + share * y.mean()
    np.testing.assert_allclose(forecast.mean(), means, rtol=1e-9)
    total, _ = integrate.quad(
        lambda x: np.exp(forecast[0].logpdf(x))[0], -30, 30, points=[-3, 0, 3], limit=200
    )
    assert total == pytest.approx(1, abs=1e-6)
    # a thousandth of the spread of the outcomes is the narrowest kernel before the rule's factor
    width = 0.9 * 1e-3 * y.std() * scores.N_KERNELS**-0.2
    peak = (1 - share) / (width * np.sqrt(2 * np.pi))
    assert np.exp(forecast[1].logpdf(1.0))[0] == pytest.approx(peak, rel=0.01)
    assert forecast.logpdf(20.0).min() > -25


def test_split_conformal_residuals_are_one_distribution_around_each_prediction():
    residuals = np.random.default_rng(2).normal(0.5, 1.0, size=2000)
    centre = np.array([0.0, 10.0])
    forecast = scores.forecast_of({"centre": centre, "residuals": residuals}, residuals)
    np.testing.assert_allclose(forecast.mean() - centre, residuals.mean(), atol=0.02)
    low, high = forecast.interval(0.8)
    np.testing.assert_allclose(low - centre, np.quantile(residuals, 0.1), atol=0.05)
    np.testing.assert_allclose(high - centre, np.quantile(residuals, 0.9), atol=0.05)


def test_standard_error_of_paired_differences_is_that_of_resampled_rows():
    rng = np.random.default_rng(3)
    shared = rng.normal(size=300)
    own = shared + 0.1 * rng.normal(size=300)
    other = shared + 0.2 * rng.normal(size=300) + 0.05
    mean, error = comparison.paired(own, other)
    assert mean == pytest.approx(own.mean() - other.mean(), abs=1e-12)
    picks = rng.integers(300, size=(4000, 300))
    resampled = own[picks].mean(axis=-1) - other[picks].mean(axis=-1)
    # 4,000 resamples give the error to 1.1%: a false alarm in fewer than one of 10,000 seeds
    assert error == pytest.approx(resampled.std(), rel=0.05)


def test_claims_hold_where_a_default_leads_and_none_is_last_or_slow():
    good = made_up({"network": 0.5, "conformal": 2.0})
    assert held([good] * 4) == [True] * 7


def test_claim_of_being_first_needs_three_quarters_of_the_tables():
    good = made_up({"boosted": 0.5, "conformal": 2.0})
    bad = made_up({"forest": 0.1, "conformal": 2.0})
    assert held([good, good, good, bad])[0]
    assert not held([good, good, bad, bad])[0]
    assert not held([good, good, bad])[0]


def test_claim_of_being_first_needs_both_scores_but_not_of_one_default():
    table = made_up({"network": 0.5, "boosted": 0.6, "conformal": 2.0})
    swapped = {name: dict(values) for name, values in table.scores.items()}
    # each default leads in one score and is behind in the other
    swapped["network"]["crps"] = swapped["conformal"]["crps"] - 0.5
    swapped["boosted"]["log"] = swapped["conformal"]["log"] - 0.5
    rows = comparison.TableScores("swapped", 3, None, table.y, swapped, table.cpu)
    assert held([rows])[0]
    swapped["boosted"]["crps"] = swapped["conformal"]["crps"]
    assert not held([rows])[0]


def test_claims_of_never_being_last_and_of_cpu_are_judged_for_each_default():
    last = made_up({"network": 0.5, "boosted": 2.0})
    assert held([last]) == [True, True, False, True, True, True, True]
    slow = made_up({"network": 0.5, "conformal": 2.0}, {"network": 3.5}, "slow")
    fast = made_up({"network": 0.5, "conformal": 2.0}, {"network": 0.1, "ngboost": 9.0})
    found = list(comparison.claims([slow, fast]))
    assert [claim.is_held for claim in found] == [True, True, True, True, False, True, True]
    # 3.6 seconds of 10 in total, 3.5 times on one table
    assert [claim.found for claim in found[3:5]] == ["0.36 times", "3.50 times on slow"]
