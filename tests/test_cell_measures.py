"""Coverage, histograms, curves and counts of PITs with cells, against brute force and theory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from evenhand._validate import InputError
from evenhand.calibration import (
    Grid,
    GroupSums,
    PITs,
    binned_error,
    calibration_error,
    count_pits,
    covered,
    covered_whole,
    crps,
    histogram_band,
    log_score,
    log_score_on,
    pathwise_errors,
    pit_histogram,
    ramps_at,
    row_values,
)
from evenhand.calibration.simultaneous import coverage_intervals
from evenhand.forecast import Forecast

Floats = NDArray[np.float64]

CELLS = st.integers(1, 5).flatmap(
    lambda m: st.lists(
        st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted), min_size=m, max_size=m),
        min_size=1,
        max_size=6,
    )
)
COARSE = 2.0**-20
"""Widths from which brute force by division is exact to 1e-9."""


def ramp(c: float, low: Floats, high: Floats, *, is_below: bool) -> Floats:
    """Return the CDF at `c` of each cell, or its left limit."""
    width = high - low
    point = (low < c) if is_below else (low <= c)
    inside = (c - low) / np.where(width > 0, width, 1.0)
    return np.where(width > 0, np.clip(inside, 0.0, 1.0), point.astype(float))


def cells_of(y: Floats, law: stats.rv_discrete) -> tuple[Floats, Floats]:
    """Return the cells of outcomes of a law."""
    return law.cdf(y - 1), law.cdf(y)


@settings(max_examples=100, deadline=None)
@given(CELLS, st.booleans())
def test_ramps_at_levels_are_those_of_a_loop(ends: list[list[list[float]]], is_below: bool) -> None:
    low, high = np.array(ends).transpose(2, 0, 1)
    high = np.where(high - low < COARSE, low, high)
    levels = np.array([0.0, 0.25, 0.5, 0.7, 1.0])
    found = ramps_at(levels, low, high, is_below=is_below)
    expected = [ramp(c, low, high, is_below=is_below).sum(axis=-1) for c in levels]
    np.testing.assert_allclose(found, np.transpose(expected), rtol=0, atol=1e-8)


@settings(max_examples=50, deadline=None)
@given(CELLS)
def test_histograms_are_means_of_ramps(ends: list[list[list[float]]]) -> None:
    low, high = np.array(ends).transpose(2, 0, 1)
    high = np.where(high - low < COARSE, low, high)
    weights = np.arange(1.0, low.shape[0] + 1)
    share = weights / weights.sum()
    below = [share @ ramp(c, low, high, is_below=True).mean(axis=-1) for c in (0.25, 0.5, 0.75)]
    bars = np.diff(below, prepend=0.0, append=1.0)
    found = pit_histogram((low, high), weights, n_bins=4).share
    np.testing.assert_allclose(found, bars, rtol=0, atol=1e-8)


def test_the_band_of_a_histogram_is_that_of_drawn_pits() -> None:
    rng = np.random.default_rng(1)
    cells = cells_of(rng.poisson(2.0, size=800), stats.poisson(2.0))
    found = pit_histogram(cells, n_bins=10)
    # one draw per person: 800 trials of probability 1/10
    low, high = histogram_band(np.full(10, 0.09 / 800), 1)
    np.testing.assert_allclose(found.low, low)
    np.testing.assert_allclose(found.high, high)
    assert found.low[0] == stats.binom.ppf(0.0025, 800, 0.1) / 800


@pytest.mark.parametrize(("level", "mean"), [(0.5, 0.5), (0.8, 2.0), (0.9, 20.0)])
def test_coverage_is_nominal_on_average_and_whole_intervals_cover_more(
    level: float, mean: float
) -> None:
    # the mean over all outcomes of Poisson laws, by their probabilities
    law = stats.poisson(mean)
    y = np.arange(200)
    cells = cells_of(y, law)
    p = law.pmf(y)
    assert p @ covered(cells, level) == pytest.approx(level, abs=1e-12)
    # the interval between two quantiles, with its ends
    low, high = law.ppf((1 - level) / 2), law.ppf((1 + level) / 2)
    np.testing.assert_array_equal(covered_whole(cells, level), (low <= y) & (y <= high))
    assert p @ covered_whole(cells, level) >= level


# --- counts


def poisson_pits(n: int, m: int, seed: int) -> PITs:
    """PITs with cells of Poisson outcomes, of forecasts that are too high at high draws."""
    rng = np.random.default_rng(seed)
    y = rng.poisson(2.0, size=n)[:, None]
    law = stats.poisson(2.0 + np.linspace(-0.5, 0.5, m))
    return PITs.of_cells(law.cdf(y - 1), law.cdf(y), rng.random(n))


def test_counts_are_those_of_drawn_pits_and_of_averaged_errors() -> None:
    pits = poisson_pits(300, 4, 2)
    counts = count_pits(pits, levels=(0.5,), random_state=0)
    drawn = count_pits(pits.matrix, levels=(0.5,), random_state=0)
    np.testing.assert_array_equal(counts.pit, drawn.pit)
    np.testing.assert_array_equal(counts.one_draw, drawn.one_draw)
    np.testing.assert_array_equal(counts.inside[0.5], drawn.inside[0.5])
    # errors are averaged, and rounded up to a bin of width 1/16384
    upper = (np.flatnonzero(counts.error) + 1) / 16384
    exact = pathwise_errors(pits)
    total = np.repeat(upper, counts.error[counts.error > 0]).sum()
    assert 0 <= total - exact.sum() <= 300 / 16384
    # whole outcomes
    hits = np.rint(covered_whole(pits, 0.5) * 4).astype(int)
    np.testing.assert_array_equal(counts.whole(0.5), np.bincount(hits, minlength=5))
    assert drawn.inside_whole is None
    np.testing.assert_array_equal(drawn.whole(0.5), drawn.inside[0.5])
    # drawn PITs differ from their average by sampling: 300 people, sd at most 1 / sqrt(12 * 300)
    assert binned_error(counts) == pytest.approx(calibration_error(pits), abs=0.07)


def test_a_block_without_atoms_can_be_added() -> None:
    pits = poisson_pits(20, 2, 3)
    continuous = count_pits(np.random.default_rng(4).random((10, 2)), random_state=1)
    with_atoms = count_pits(pits, random_state=1)
    both = continuous + with_atoms
    assert both.n_samples == 30
    expected = continuous.inside[0.9] + with_atoms.whole(0.9)
    np.testing.assert_array_equal(both.whole(0.9), expected)


# --- sums over groups


def sums_of(pits: PITs) -> GroupSums:
    """Return the sums over all rows as one group."""
    order, values = row_values(pits, None, pits.matrix[:, 0])
    error = np.array([calibration_error(pits)])
    return GroupSums(order, values.sum(axis=-1, keepdims=True), error, np.zeros(1))


def test_sums_test_drawn_pits_and_average_coverage() -> None:
    pits = poisson_pits(100, 1, 5)
    sums = sums_of(pits)
    np.testing.assert_allclose(sums["level"], (pits.matrix - 0.5).sum())
    np.testing.assert_allclose(sums.coverage(0.8), covered(pits, 0.8).mean())
    drawn = sums_of(PITs(pits.matrix))
    np.testing.assert_allclose(sums.tests, drawn.tests)
    # averages are not hits: the interval is that of sums of values in [0, 1]
    assert not sums.order.counts_hits
    assert drawn.order.counts_hits
    low, high = coverage_intervals(sums, 0.8, 0.025)
    hits = covered(pits, 0.8).sum()
    tail = 0.025 / np.e
    assert low[0] == pytest.approx(stats.beta.ppf(tail, np.floor(hits), 101 - np.floor(hits)))
    assert high[0] == pytest.approx(stats.beta.isf(tail, np.ceil(hits) + 1, 100 - np.ceil(hits)))


# --- scores of forecasts with atoms


def test_scores_of_counts_are_those_of_their_probabilities() -> None:
    mean = np.array([0.5, 2.0, 7.0])
    forecast = Forecast.from_poisson(mean)
    y = np.array([0.0, 3.0, 5.0])
    np.testing.assert_allclose(log_score(forecast, y), -stats.poisson.logpmf(y, mean))
    # counts have cells of their own, whatever the grid
    np.testing.assert_allclose(log_score_on(forecast, y, Grid(5.0)), log_score(forecast, y))
    # integral of (F - 1{y <= t})^2 by sums over whole numbers
    t = np.arange(200)
    steps = stats.poisson.cdf(t[:, None], mean) - (t[:, None] >= y)
    np.testing.assert_allclose(crps(forecast, y), (steps**2).sum(axis=0), atol=1e-9)
    with pytest.raises(InputError, match=r"lie within the support of the forecasts, got 2\.5"):
        log_score(forecast, [0.0, 2.5, 1.0])


def test_log_scores_of_a_hurdle_are_those_of_its_two_parts() -> None:
    forecast = Forecast.from_hurdle(
        np.array([0.3, 0.3]), Forecast.from_quantiles([0.25, 0.75], [[1.0, 2.0], [1.0, 2.0]])
    )
    y = np.array([0.0, 1.5])
    positive = forecast.positive_part().logpdf(y)[1]
    np.testing.assert_allclose(log_score(forecast, y), [-np.log(0.3), -np.log(0.7) - positive])


@pytest.mark.parametrize("kind", ["poisson", "event", "hurdle"])
def test_pits_of_forecasts_with_atoms_are_calibrated(kind: str) -> None:
    rng = np.random.default_rng(9)
    n = 4000
    if kind == "poisson":
        mean = rng.gamma(2.0, size=n)
        forecast, y = Forecast.from_poisson(mean), rng.poisson(mean).astype(float)
    elif kind == "event":
        p = rng.beta(1.0, 9.0, size=n)
        forecast, y = Forecast.from_probability(p), (rng.random(n) < p).astype(float)
    else:
        z = rng.normal(size=n)
        is_zero = rng.random(n) < 0.4
        spread = Forecast.from_normal(np.full(n, 20.0), np.ones(n))
        forecast = Forecast.from_hurdle(np.full(n, 0.4), spread)
        y = np.where(is_zero, 0.0, 20 + z)
    low, high = forecast.pit_interval(y)
    pits = PITs.of_cells(low, high, rng.random(n))
    # an atom makes a step of the averaged distribution smaller; DKW at 1e-6 for drawn PITs
    limit = np.sqrt(np.log(2e6) / (2 * n))
    assert calibration_error(pits) < limit
    assert stats.kstest(pits.matrix.ravel(), "uniform").pvalue > 1e-6
