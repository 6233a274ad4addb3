"""Forecasts of times from survival probabilities (outcomes: 5)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from evenhand._validate import InputError
from evenhand.distributions import OutcomeKind, SurvivalCurves, describes_times
from evenhand.forecast import Forecast

TIMES = np.array([0.5, 1.0, 2.0, 4.0])
CURVES = np.array(
    [
        [0.9, 0.7, 0.4, 0.1],
        [0.9, 0.9, 0.4, 0.4],  # flat parts
        [1.0, 1.0, 1.0, 1.0],  # nobody has the event
        [0.5, 0.2, 0.0, 0.0],  # everybody has it before the last time
    ]
)


def survival_by_hand(curve: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Linear between (0, 1) and the given points, and exponential beyond them."""
    inside = np.interp(time, np.append(0, TIMES), np.append(1, curve))
    hazard = -np.log(curve[-1]) / TIMES[-1]
    return np.where(time <= TIMES[-1], inside, curve[-1] * np.exp(-hazard * (time - TIMES[-1])))


def test_curves_pass_through_the_given_probabilities() -> None:
    curves = SurvivalCurves(TIMES, CURVES)
    ours = np.stack([curves.sf(time) for time in TIMES], axis=1)
    # a billionth of the probability is spread over curves with flat parts
    np.testing.assert_allclose(ours, CURVES, atol=2e-9)
    np.testing.assert_allclose(curves.cdf(0.0), 0, atol=1e-200)


def test_exponential_times_are_reproduced_with_their_tail() -> None:
    rates = np.array([0.3, 1.0, 2.5])
    law = stats.expon(scale=1 / rates)
    grid = np.linspace(0, 4, 2001)[1:]
    curves = SurvivalCurves(grid, np.exp(-rates[:, None] * grid))
    for y in (0.01, 0.7, 3.9, 9.0, 30.0):
        np.testing.assert_allclose(curves.cdf(y), law.cdf(y), atol=2e-6)
        np.testing.assert_allclose(curves.logsf(y), law.logsf(y), rtol=1e-5, atol=2e-6)
        # a density between two times is that of their middle
        np.testing.assert_allclose(curves.logpdf(y), law.logpdf(y), atol=3e-3)
        # CRPS of an exponential distribution, Gneiting & Raftery 2007
        crps = y - 2 * law.cdf(y) / rates + 1 / (2 * rates)
        np.testing.assert_allclose(curves.crps(y), crps, atol=1e-5)
    np.testing.assert_allclose(curves.mean(), 1 / rates, rtol=1e-5)
    np.testing.assert_allclose(curves.std(), 1 / rates, rtol=1e-5)
    for p in (1e-6, 0.3, 0.97, 1 - 1e-9):
        np.testing.assert_allclose(curves.ppf(p), law.ppf(p), rtol=5e-4, atol=1e-8)


def test_rows_without_events_and_rows_that_end_are_proper_distributions() -> None:
    curves = SurvivalCurves(TIMES, CURVES)
    assert curves.cdf(4.0)[2] == pytest.approx(1e-9, rel=1e-3)
    assert curves.cdf(2.0)[3] == pytest.approx(1)
    assert curves.ppf(1 - 1e-12)[3] < 4.001
    for y in (0.0, 0.2, 3.0, 4.0, 1e6):
        assert np.isfinite(curves.logcdf(y)).all()
        assert np.isfinite(curves.crps(y)).all()
        assert (curves.logpdf(y) > -np.inf).all()
    assert np.isneginf(curves.logcdf(-1.0)).all()
    rising = np.stack([curves.logsf(y) for y in np.linspace(0, 12, 200)])
    assert (np.diff(rising, axis=0) <= 0).all()
    lone = SurvivalCurves([3.0], [0.25])
    assert lone.ppf(0.75) == pytest.approx(3.0)
    assert lone.sf(6.0) == pytest.approx(0.25**2)


# --- the hurdle form


@pytest.mark.parametrize("horizon", [0.2, 1.0, 1.3, 4.0, 9.0])
def test_horizon_cuts_the_same_distribution(horizon: float) -> None:
    plain = Forecast.from_survival(TIMES, CURVES[:2])
    ended = Forecast.from_survival(TIMES, CURVES[:2], horizon)
    assert (plain.outcome_kind, ended.outcome_kind) == (OutcomeKind.CONTINUOUS, OutcomeKind.HURDLE)
    expected = [1 - survival_by_hand(curve, np.array(horizon)) for curve in CURVES[:2]]
    np.testing.assert_allclose(ended.event_probability(), expected, atol=2e-9)
    for time in (0.3 * horizon, 0.99 * horizon):
        np.testing.assert_allclose(ended.cdf(time), plain.cdf(time), rtol=1e-8)
        within = plain.cdf(time) / plain.cdf(horizon)
        np.testing.assert_allclose(ended.positive_part().cdf(time), within, rtol=1e-8)
    low, high = ended.pit_interval([horizon, horizon])
    np.testing.assert_allclose(low, plain.cdf(horizon), rtol=1e-8)
    np.testing.assert_allclose(high, 1)
    # who is lost may have any later outcome
    low, high = ended.cdf(0.1, left=True), ended.cdf(np.inf)
    np.testing.assert_allclose(low, plain.cdf(0.1))
    np.testing.assert_allclose(high, 1)


def test_mean_up_to_the_horizon_is_the_area_under_the_curve() -> None:
    # E min(T, tau), the restricted mean survival time
    ended = Forecast.from_survival(TIMES, CURVES[:2], 3.0)
    grid = np.linspace(0, 3, 30_001)
    areas = [integrate.trapezoid(survival_by_hand(curve, grid), grid) for curve in CURVES[:2]]
    # the mean of a part that is cut off is a sum over a table of quantiles
    np.testing.assert_allclose(ended.mean(), areas, rtol=1e-4)


@pytest.mark.parametrize("horizon", [2.0, 9.0])
def test_hurdle_form_has_rows_in_which_everybody_or_nobody_has_the_event(horizon: float) -> None:
    ended = Forecast.from_survival(TIMES, CURVES[2:], horizon)
    np.testing.assert_allclose(ended.event_probability(), [0, 1], atol=1e-8)
    assert np.isfinite(ended.log_density(np.array([0.4, 0.4]))).all()
    low, high = ended.pit_interval([0.7, 0.7])
    assert ((low >= 0) & (high <= 1)).all()


def test_links_randomize_the_time_and_not_the_probability_of_the_event() -> None:
    random = np.random.default_rng(3)
    rates = np.exp(random.normal(size=50))
    grid = np.linspace(0, 2, 201)[1:]
    base = Forecast.from_survival(grid, np.exp(-rates[:, None] * grid), 2.0)
    served = base.randomized(0.12, random_state=4)
    assert np.array_equal(served.event_probability(), base.event_probability())
    assert describes_times(served.distribution)


# --- bad input


@pytest.mark.parametrize(
    ("times", "survival", "message"),
    [
        ([0.0, 1.0], [[1.0, 0.5]], r"times\[0\] must be above 0, got 0.0; leave out time 0"),
        ([1.0, 2.0], [[0.5, 0.6]], r"survival\[0\] must fall, got 0.6 after 0.5 in column 1"),
        ([1.0, 2.0], [[90, 80]], r"survival\[0, 0\] must lie between 0 and 1, got 90.0; give a fr"),
        ([1.0, 2.0], [[0.9, np.nan]], r"survival\[0, 1\] must lie between 0 and 1, got nan"),
    ],
)
def test_bad_curves_are_refused(
    times: list[float], survival: list[list[float]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Forecast.from_survival(times, survival)
