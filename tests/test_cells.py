"""Errors of PITs with cells, averaged over the positions in the cells, against exact fractions."""

from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from complaints import refused
from evenhand.calibration import (
    Cells,
    GroupRows,
    as_cells,
    binned_error,
    calibration_error,
    cell_error,
    count_pits,
    covered,
    covered_whole,
    histogram_table,
    pathwise_errors,
    pit_histogram,
)
from evenhand.calibration.group_sums import coverage_intervals, error_intervals
from evenhand.draws import jittered
from evenhand.links import make_link
from repeats import most_failures, repeats, statistical

Floats = NDArray[np.float64]


def exact_w1(low, high, weights):
    """Return the W1 distance of a sum of ramps to uniform, by a loop over exact fractions."""
    total = sum(Fraction(float(w)) for w in weights)
    cells = [
        (Fraction(float(a)), Fraction(float(b)), Fraction(float(w)) / total)
        for a, b, w in zip(low, high, weights, strict=True)
    ]

    def cdf(c, *, is_left):
        value = Fraction(0)
        for a, b, w in cells:
            if a < b:
                value += w * min(max((c - a) / (b - a), Fraction(0)), Fraction(1))
            elif a < c or (a == c and not is_left):
                value += w
        return value

    area = Fraction(0)
    ends = sorted({Fraction(0), Fraction(1)} | {end for a, b, _ in cells for end in (a, b)})
    for a, b in pairwise(ends):
        x = cdf(a, is_left=False) - a
        y = cdf(b, is_left=True) - b
        # one triangle or two, or a trapezium
        height = abs(x + y) if x * y >= 0 else (x * x + y * y) / (abs(x) + abs(y))
        area += (b - a) * height / 2
    return float(area)


def random_cells(rng, n, kind):
    """Return cells of a kind: of any width, of very different widths with points, or of a grid."""
    low = rng.random(n)
    if kind == "wide":
        return low, low + rng.random(n) * (1 - low)
    if kind == "narrow":
        width = 10.0 ** rng.uniform(-13, 0, size=n) * (rng.random(n) < 0.7)
        return low, np.minimum(low + width, 1.0)
    low = rng.integers(0, 8, size=n) / 8
    return low, low + rng.integers(0, 2, size=n) / 8


@pytest.mark.parametrize(
    ("kind", "n", "is_weighted"),
    [("wide", 1, True), ("narrow", 2, False), ("grid", 5, True), ("narrow", 40, True)],
)
def test_sums_of_ramps_are_exact(kind, n, is_weighted):
    rng = np.random.default_rng(n)
    for _ in range(5):
        low, high = random_cells(rng, n, kind)
        weights = rng.exponential(size=n) if is_weighted else np.ones(n)
        expected = exact_w1(low, high, weights)
        found = calibration_error((low, high), sample_weight=weights if is_weighted else None)
        assert found == pytest.approx(expected, abs=1e-14)


def test_pathwise_errors_are_those_of_each_row(monkeypatch):
    rng = np.random.default_rng(6)
    low, high = (end.reshape(30, 8) for end in random_cells(rng, 240, "narrow"))
    high = high.copy()
    high[::3] = low[::3]  # rows without atoms, as in a hurdle
    expected = [exact_w1(a, b, np.ones(8)) for a, b in zip(low, high, strict=True)]
    np.testing.assert_allclose(pathwise_errors((low, high)), expected, rtol=0, atol=1e-14)
    monkeypatch.setattr("evenhand.calibration.errors.BLOCK_CELLS", 20)
    np.testing.assert_allclose(pathwise_errors((low, high)), expected, rtol=0, atol=1e-14)


def test_the_error_of_an_event_is_half_the_distance_of_the_mean_probability():
    # outcomes: theorem 4.3
    rng = np.random.default_rng(7)
    p = rng.random((50, 16))
    y = rng.random(50) < 0.4
    low = np.where(y[:, None], 1 - p, 0.0)
    high = np.where(y[:, None], 1.0, 1 - p)
    expected = np.abs(y - p.mean(axis=-1)) / 2
    np.testing.assert_allclose(pathwise_errors((low, high)), expected, rtol=0, atol=1e-14)


CELLS = st.integers(1, 6).flatmap(
    lambda m: st.lists(
        st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted), min_size=m, max_size=m),
        min_size=1,
        max_size=6,
    )
)


@given(CELLS)
def test_the_cell_error_bounds_the_error_from_both_sides(ends):
    # outcomes: 2. Links rise in the draw, so that both ends do
    low, high = np.sort(np.array(ends), axis=1).transpose(2, 0, 1)
    error = pathwise_errors((low, high))
    width = (high - low).mean(axis=-1)
    for i in range(low.shape[0]):
        cell = cell_error((low[[i]], high[[i]]))
        assert cell <= error[i] + 1e-14
        assert error[i] <= cell + width[i] / 2 + 1e-14
    overall = calibration_error((low, high))
    assert cell_error((low, high)) <= overall + 1e-14
    # convexity of W1
    assert overall <= error.mean() + 1e-14


def test_a_true_forecast_has_an_error_that_vanishes():
    # each outcome of Poisson(2) in its expected share: the cells partition [0, 1]
    y = np.arange(40)
    low, high = stats.poisson.cdf(y - 1, 2.0), stats.poisson.cdf(y, 2.0)
    pmf = stats.poisson.pmf(y, 2.0)
    assert calibration_error((low, high), sample_weight=pmf) == pytest.approx(0, abs=1e-14)
    assert cell_error((low, high), sample_weight=pmf) == pytest.approx(0, abs=1e-14)
    # mid-PITs of the same law are far from uniform (outcomes: 2)
    assert calibration_error((low + high) / 2, sample_weight=pmf) == pytest.approx(0.051, abs=1e-3)


def test_a_tuple_of_arrays_is_cells_and_a_tuple_of_numbers_is_pits():
    assert as_cells((0.2, 0.7)).are_points
    pits = as_cells(([0.2, 0.3], [0.7, 0.3]), random_state=0)
    assert not pits.are_points
    assert pits.drawn.shape == (2, 1)
    found = pits.drawn
    np.testing.assert_array_equal(found, as_cells(([0.2, 0.3], [0.7, 0.3]), random_state=0).drawn)
    refused("high must have the shape of low", as_cells, ([0.2, 0.3], [0.7]))
    refused("lie between low and high", as_cells, ([0.5, 0.3], [0.2, 0.7]))


def test_copies_of_a_pit_in_different_cells_are_not_dropped():
    pits = Cells(np.array([[0.5, 0.0]]), np.array([[0.5, 1.0]]), np.array([[0.5, 0.5]]))
    assert pits.without_copies().n_draws == 2


# --- coverage, histograms, curves and counts of PITs with cells, against brute force and theory

COARSE = 2.0**-20
"""Widths from which brute force by division is exact to 1e-9."""


def ramp(c, low, high, *, is_below):
    width = high - low
    point = (low < c) if is_below else (low <= c)
    inside = (c - low) / np.where(width > 0, width, 1.0)
    return np.where(width > 0, np.clip(inside, 0.0, 1.0), point.astype(float))


def cells_of(y, law):
    return law.cdf(y - 1), law.cdf(y)


@given(CELLS)
def test_histograms_are_means_of_ramps(ends):
    low, high = np.array(ends).transpose(2, 0, 1)
    high = np.where(high - low < COARSE, low, high)
    weights = np.arange(1.0, low.shape[0] + 1)
    share = weights / weights.sum()
    below = [share @ ramp(c, low, high, is_below=True).mean(axis=-1) for c in (0.25, 0.5, 0.75)]
    bars = np.diff(below, prepend=0.0, append=1.0)
    found = pit_histogram((low, high), weights, n_bins=4)["share"]
    np.testing.assert_allclose(found, bars, rtol=0, atol=1e-8)


def test_the_band_of_a_histogram_is_that_of_drawn_pits():
    cells = cells_of(np.random.default_rng(1).poisson(2.0, size=800), stats.poisson(2.0))
    found = pit_histogram(cells, n_bins=10)
    # one draw per person: 800 trials of probability 1/10
    band = histogram_table(np.stack((found["share"], np.full(10, 0.09 / 800))), 1)
    np.testing.assert_allclose(found, band)
    assert found["low"][0] == stats.binom.ppf(0.0025, 800, 0.1) / 800


@pytest.mark.parametrize(("level", "mean"), [(0.5, 0.5), (0.8, 2.0), (0.9, 20.0)])
def test_coverage_is_nominal_on_average_and_whole_intervals_cover_more(level, mean):
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


def poisson_pits(n, m, seed):
    """PITs with cells of Poisson outcomes, of forecasts that are too high at high draws."""
    rng = np.random.default_rng(seed)
    y = rng.poisson(2.0, size=n)[:, None]
    law = stats.poisson(2.0 + np.linspace(-0.5, 0.5, m))
    return Cells(law.cdf(y - 1), law.cdf(y), ties=rng.random(n))


def test_counts_are_those_of_drawn_pits_and_of_averaged_errors():
    pits = poisson_pits(300, 4, 2)
    counts = count_pits(pits, levels=(0.5,), random_state=0)
    drawn = count_pits(pits.drawn, levels=(0.5,), random_state=0)
    np.testing.assert_array_equal(counts.pit, drawn.pit)
    np.testing.assert_array_equal(counts.one_draw, drawn.one_draw)
    # errors are averaged, and rounded up to a bin of width 1/16384
    upper = (np.flatnonzero(counts.error) + 1) / 16384
    exact = pathwise_errors(pits)
    total = np.repeat(upper, counts.error[counts.error > 0]).sum()
    assert 0 <= total - exact.sum() <= 300 / 16384
    # whole outcomes
    hits = np.rint(covered_whole(pits, 0.5) * 4).astype(int)
    np.testing.assert_array_equal(counts.inside[0.5], np.bincount(hits, minlength=5))
    assert (counts.has_cells, drawn.has_cells) == (True, False)
    hits = np.rint(covered(pits.drawn, 0.5) * 4).astype(int)
    np.testing.assert_array_equal(drawn.inside[0.5], np.bincount(hits, minlength=5))
    # drawn PITs differ from their average by sampling: 300 people, sd at most 1 / sqrt(12 * 300)
    assert binned_error(counts.pit) == pytest.approx(calibration_error(pits), abs=0.07)


def sums_of(pits, rng=None):
    """Return the sums over all rows as one group; a draw chosen at random is tested."""
    return GroupRows.of(pits, None, rng).sums([np.full(pits.n_samples, True)])


def test_sums_test_mean_positions_and_average_coverage():
    pits = poisson_pits(100, 1, 5)
    sums = sums_of(pits)
    np.testing.assert_allclose(sums["level"], ((pits.low + pits.high) / 2 - 0.5).sum())
    np.testing.assert_allclose(sums.coverage(0.8), covered(pits, 0.8).mean())
    drawn = sums_of(Cells(pits.drawn))
    # averages are not hits: the interval is that of sums of values in [0, 1]
    assert not sums.counts_hits
    assert drawn.counts_hits
    low, high = coverage_intervals(sums, 0.8, 0.025)
    hits = covered(pits, 0.8).sum()
    tail = 0.025 / np.e
    assert low[0] == pytest.approx(stats.beta.ppf(tail, np.floor(hits), 101 - np.floor(hits)))
    assert high[0] == pytest.approx(stats.beta.isf(tail, np.ceil(hits) + 1, 100 - np.ceil(hits)))


# --- how often tests and intervals fail, under true and under wrong forecasts


class Law(NamedTuple):
    """Cells of the forecast for all outcomes, and their true probabilities."""

    low: Floats
    high: Floats
    chance: Floats
    is_atom: NDArray[np.bool_]

    def pits(self, rng, n, m):
        """Draw outcomes; with several draws the forecasts are randomized by a link."""
        k = rng.choice(self.chance.size, size=n, p=self.chance / self.chance.sum())
        inside = self.low[k] + rng.random(n) * (self.high[k] - self.low[k])
        low = np.where(self.is_atom[k], self.low[k], inside)[:, None]
        high = np.where(self.is_atom[k], self.high[k], inside)[:, None]
        if m > 1:
            r = jittered(n, m, rng)
            low, high = (LINK.ppf(end, r) for end in (low, high))
        return Cells(low, high, ties=rng.random(n))

    def all_pits(self, m):
        """Return all outcomes with their probabilities as weights, for the true values."""
        split = np.where(self.is_atom, 1, 400)
        count = np.concatenate([np.arange(parts) for parts in split])
        k = np.repeat(np.arange(split.size), split)
        width = (self.high - self.low)[k] / split[k]
        low = (self.low[k] + count * width)[:, None]
        high = np.minimum(low + width[:, None], 1.0)
        if m > 1:
            r = (np.arange(400) + 0.5) / 400
            low, high = (LINK.ppf(end, r[None, :]) for end in (low, high))
        weights = self.chance[k] / split[k]
        return Cells(low, high, ties=np.full(k.size, 0.5), weights=weights)


LINK = make_link("entropic", 0.3)


def poisson_law(mean, forecast):
    y = np.arange(60)
    law, served = stats.poisson(mean), stats.poisson(forecast)
    return Law(served.cdf(y - 1), served.cdf(y), law.pmf(y), np.ones(60, dtype=bool))


def event_law(rate, forecast):
    ends = np.array([0.0, 1 - forecast, 1.0])
    return Law(ends[:-1], ends[1:], np.array([1 - rate, rate]), np.ones(2, dtype=bool))


def hurdle_law(atom, forecast):
    ends = np.array([0.0, forecast, 1.0])
    return Law(ends[:-1], ends[1:], np.array([atom, 1 - atom]), np.array([True, False]))


TRUE = {
    "Poisson(0.01)": poisson_law(0.01, 0.01),
    "Poisson(0.4)": poisson_law(0.4, 0.4),
    "Poisson(5)": poisson_law(5.0, 5.0),
    "event of 10%": event_law(0.1, 0.1),
    "atom of 30%": hurdle_law(0.3, 0.3),
    "atom of 80%": hurdle_law(0.8, 0.8),
}
WRONG = {
    "Poisson(0.6) for 0.5": poisson_law(0.5, 0.6),
    "Poisson(7) for 5": poisson_law(5.0, 7.0),
    "event of 20% for 10%": event_law(0.1, 0.2),
    "atom of 40% for 30%": hurdle_law(0.3, 0.4),
    "atom of 70% for 80%": hurdle_law(0.8, 0.7),
}
BOTH = TRUE | WRONG


def tables(law, n, m, count):
    for seed in range(count):
        rng = np.random.default_rng(seed)
        yield law.pits(rng, n, m), rng


@statistical
@pytest.mark.parametrize("name", TRUE)
def test_tests_of_true_forecasts_are_at_their_level(name):
    count = repeats(4000)
    wrong, far = np.zeros((2, 3), dtype=int)
    for pits, rng in tables(TRUE[name], 1500, 1, count):
        some = pits.take(slice(300))  # weights depend on the person, not on the position
        for i, one in enumerate((pits, some.of_members(rng.random(300)), pits.take(slice(30)))):
            p_value = sums_of(one, rng).tests.p_value[0]
            wrong[i] += p_value < 0.05
            far[i] += p_value < 1e-3
    assert wrong.max() <= most_failures(count)
    assert far.max() <= most_failures(count, 1e-3)
    # the tests are twice Bonferroni over two statistics that are nearly independent
    assert wrong[0] >= most_failures(count, 0.02, 0.5), "the test has power under its level"


@statistical
@pytest.mark.parametrize(
    ("name", "m"), [(name, i % 2 * 3 + 1) for i, name in enumerate(WRONG)] + [("Poisson(5)", 4)]
)
def test_intervals_of_averages_fail_as_seldom_as_stated(name, m):
    law = BOTH[name]
    every = law.all_pits(m)
    error = calibration_error(every)
    share = float(every.shares @ covered(every, 0.8))
    count = repeats(2000)
    lost = np.zeros(4, dtype=int)
    for pits, rng in tables(law, 150, m, count):
        sums = sums_of(pits, rng)
        ends = (error_intervals(sums, 0.025), coverage_intervals(sums, 0.8, 0.025))
        for i, ((low, high), value) in enumerate(zip(ends, (error, share), strict=True)):
            lost[2 * i] += low[0] > value + 1e-12
            lost[2 * i + 1] += high[0] < value - 1e-12
    assert lost.max() <= most_failures(count, 0.025)


@statistical
@pytest.mark.parametrize(
    ("name", "m"), [("Poisson(0.4)", 1), ("atom of 30%", 1), ("Poisson(5)", 8)]
)
def test_histograms_of_true_forecasts_stay_in_their_bands(name, m):
    """The band is approximate for several draws: at most 6% leave it."""
    count = repeats(2000)
    outside = np.zeros(2, dtype=int)
    for pits, _ in tables(TRUE[name], 200, m, count):
        found = pit_histogram(pits)
        drawn = np.histogram(pits.drawn, len(found), (0, 1))[0] / pits.drawn.size
        for i, share in enumerate((found["share"], drawn)):
            outside[i] += ((share < found["low"] - 1e-12) | (share > found["high"] + 1e-12)).any()
    assert outside.max() <= most_failures(count, 0.05 if m == 1 else 0.06)
