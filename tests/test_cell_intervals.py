"""How often tests and intervals of outcomes with atoms fail, under true and under wrong forecasts.

Each limit is the binomial quantile of `repeats.most_failures`, a false alarm of 1e-6 per check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from evenhand.calibration import (
    GroupRows,
    GroupSums,
    PITs,
    calibration_error,
    covered,
    draws_in_bins,
    pit_histogram,
    row_values,
)
from evenhand.calibration.simultaneous import coverage_intervals, error_intervals
from evenhand.draws import jittered
from evenhand.links import make_link
from repeats import most_failures, repeats, statistical

Floats = NDArray[np.float64]


class Law(NamedTuple):
    """Cells of the forecast for all outcomes, and the true probabilities of these.

    A cell that is divided among continuous outcomes has `is_atom` False.
    """

    low: Floats
    high: Floats
    chance: Floats
    is_atom: NDArray[np.bool_]

    def pits(self, rng: np.random.Generator, n: int, m: int) -> PITs:
        """Draw outcomes; with several draws the forecasts are randomized by a link."""
        k = rng.choice(self.chance.size, size=n, p=self.chance / self.chance.sum())
        place = rng.random(n)
        inside = self.low[k] + place * (self.high[k] - self.low[k])
        low = np.where(self.is_atom[k], self.low[k], inside)[:, None]
        high = np.where(self.is_atom[k], self.high[k], inside)[:, None]
        if m > 1:
            r = jittered(n, m, rng)
            low, high = (LINK.ppf(end, r) for end in (low, high))
        return PITs.of_cells(low, high, rng.random(n))

    def all_pits(self, m: int) -> PITs:
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
        return PITs.of_cells(low, high, np.full(k.size, 0.5), weights=weights)


LINK = make_link("entropic", 0.3)


def poisson(mean: float, forecast: float) -> Law:
    y = np.arange(60)
    law, served = stats.poisson(mean), stats.poisson(forecast)
    return Law(served.cdf(y - 1), served.cdf(y), law.pmf(y), np.ones(60, dtype=bool))


def event(rate: float, forecast: float) -> Law:
    ends = np.array([0.0, 1 - forecast, 1.0])
    return Law(ends[:-1], ends[1:], np.array([1 - rate, rate]), np.ones(2, dtype=bool))


def hurdle(atom: float, forecast: float) -> Law:
    ends = np.array([0.0, forecast, 1.0])
    return Law(ends[:-1], ends[1:], np.array([atom, 1 - atom]), np.array([True, False]))


TRUE: dict[str, Law] = {
    "Poisson(0.5)": poisson(0.5, 0.5),
    "Poisson(5)": poisson(5.0, 5.0),
    "event of 10%": event(0.1, 0.1),
    "atom of 30%": hurdle(0.3, 0.3),
    "atom of 80%": hurdle(0.8, 0.8),
}
WRONG: dict[str, Law] = {
    "Poisson(0.6) for 0.5": poisson(0.5, 0.6),
    "Poisson(7) for 5": poisson(5.0, 7.0),
    "event of 20% for 10%": event(0.1, 0.2),
    "atom of 40% for 30%": hurdle(0.3, 0.4),
    "atom of 70% for 80%": hurdle(0.8, 0.7),
}
BOTH = TRUE | WRONG


def tables(law: Law, n: int, m: int, count: int) -> Iterator[tuple[PITs, np.random.Generator]]:
    for seed in range(count):
        rng = np.random.default_rng(seed)
        yield law.pits(rng, n, m), rng


def sums_of(pits: PITs, rng: np.random.Generator) -> GroupSums:
    """Return the sums over all rows as one group; a draw chosen at random is tested."""
    one = pits.matrix[np.arange(pits.n_samples), rng.integers(pits.n_draws, size=pits.n_samples)]
    order, values = row_values(pits, None, one)
    error = np.array([calibration_error(pits)])
    everyone = np.ones(pits.n_samples, dtype=np.bool_)
    rows = GroupRows(one, None, pits.weights, None, lambda _: everyone)
    return GroupSums(order, values.sum(axis=-1, keepdims=True), error, np.zeros(1), rows)


@pytest.mark.parametrize("name", TRUE)
def test_true_values_of_true_forecasts_are_those_of_calibration(name: str) -> None:
    pits = TRUE[name].all_pits(1)
    assert calibration_error(pits) == pytest.approx(0, abs=1e-12)
    assert pits.shares @ covered(pits, 0.8) == pytest.approx(0.8, abs=1e-12)


@statistical
@pytest.mark.parametrize("name", TRUE)
def test_tests_of_true_forecasts_are_at_their_level(name: str) -> None:
    count = repeats(4000)
    wrong = np.zeros(2, dtype=int)
    for pits, rng in tables(TRUE[name], 300, 1, count):
        # weights that depend on the person, not on the position in the cell
        weighted = pits.weighted_by(rng.random(300))
        for i, one in enumerate((pits, weighted)):
            wrong[i] += sums_of(one, rng).tests.p_value[0] < 0.05
    assert wrong.max() <= most_failures(count)
    # the tests are twice Bonferroni over two statistics that are nearly independent
    assert wrong[0] >= most_failures(count, 0.02, 0.5), "the test has power under its level"


@statistical
@pytest.mark.parametrize(
    ("name", "m"), [(name, i % 2 * 3 + 1) for i, name in enumerate(WRONG)] + [("Poisson(5)", 4)]
)
def test_intervals_of_averages_fail_as_seldom_as_stated(name: str, m: int) -> None:
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
@pytest.mark.parametrize("name", ["Poisson(0.5)", "atom of 30%"])
def test_histograms_of_true_forecasts_stay_in_their_bands(name: str) -> None:
    count = repeats(2000)
    outside = np.zeros(2, dtype=int)
    for pits, _ in tables(TRUE[name], 200, 1, count):
        found = pit_histogram(pits)
        drawn = draws_in_bins(pits.matrix, found.share.size).mean(axis=0)
        for i, share in enumerate((found.share, drawn)):
            outside[i] += ((share < found.low - 1e-12) | (share > found.high + 1e-12)).any()
    assert outside.max() <= most_failures(count)
