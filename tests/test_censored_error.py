"""Sizes and bounds of the error of times that are cut off: closed forms, and their confidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from censored_laws import Readings, Sample
from evenhand.calibration import KnownPITs, PITs, calibration_error, censored_error, least_error
from evenhand.censoring import KaplanMeier
from repeats import most_failures, repeats, statistical

Floats = NDArray[np.float64]


def cut(known: Floats, lost: NDArray[np.bool_], seed: int = 0) -> PITs:
    ties = np.random.default_rng(seed).random(known.size)
    return PITs.of_cells(known, np.where(lost, 1.0, known), ties, censored=lost)


def range_of(pits: PITs) -> tuple[float, float]:
    """Least and largest error of these people, wherever in the cells they are."""
    data = KnownPITs(pits)
    return least_error(data.low, data.lost, data.weights, 0.0), data.largest


def test_the_error_is_that_of_the_kaplan_meier_estimate() -> None:
    random = np.random.default_rng(0)
    known = random.random(300)
    lost = random.random(300) < 0.4
    found = censored_error(cut(known, lost))
    estimate = KaplanMeier.of(known, ~lost)
    assert found.error == pytest.approx(estimate.error())
    levels = np.concatenate(([0.0], estimate.cdf))
    widths = np.diff(np.concatenate(([0.0], estimate.values, [estimate.last])))
    beyond = (1 - estimate.last) * (1 + estimate.cdf[-1]) / 2
    assert found.mean == pytest.approx(1 - levels @ widths - beyond)
    assert found.coverage[0.8].value == pytest.approx(estimate.at(0.9) - estimate.at(0.1))


def test_cells_of_known_pits_are_averaged() -> None:
    low = np.repeat([0.0, 0.3, 0.8], 20)
    high = np.repeat([0.3, 0.8, 1.0], [20, 20, 20])
    pits = PITs.of_cells(low, high, np.random.default_rng(0).random(60))
    # cells are entered at 32 positions
    assert censored_error(pits).error == pytest.approx(calibration_error(pits), abs=1 / 32)
    assert range_of(pits)[1] == pytest.approx(calibration_error(pits))


@pytest.mark.parametrize("seed", range(2))
def test_the_range_contains_each_completion_and_its_ends_are_reached(seed: int) -> None:
    random = np.random.default_rng(seed)
    known = random.random(7) * random.choice([0.4, 1.0])
    lost = random.random(7) < 0.5
    lost[0] = True
    least, most = range_of(cut(known, lost))
    errors = []
    for _ in range(2000):
        filled = np.where(lost, known + (1 - known) * random.beta(0.3, 0.3, 7), known)
        errors.append(calibration_error(filled))
    assert least <= min(errors) + 1e-12
    assert max(errors) <= most + 1e-12
    # by brute force on a grid: the largest distance at each level
    levels = (np.arange(200_000) + 0.5) / 200_000
    a = (known[~lost, None] <= levels).sum(axis=0) / 7
    b = (known[:, None] <= levels).sum(axis=0) / 7
    inside = np.maximum(np.maximum(a - levels, levels - b), 0).mean()
    outside = np.maximum(np.abs(a - levels), np.abs(b - levels)).mean()
    assert (least, most) == pytest.approx((inside, outside), abs=1e-5)


def test_weights_are_copies_of_people() -> None:
    random = np.random.default_rng(1)
    # so many people are left at the end that both estimates reach it
    known = random.random(200)
    lost = (random.random(200) < 0.4) & (known < 0.5)
    counts = random.integers(1, 4, 200)
    ends = known, np.where(lost, 1.0, known)
    weighted = PITs.of_cells(*ends, random.random(200), weights=counts, censored=lost)
    whole = cut(np.repeat(known, counts), np.repeat(lost, counts))
    assert range_of(weighted) == pytest.approx(range_of(whole))
    one, other = censored_error(weighted), censored_error(whole)
    assert (one.error, one.mean) == pytest.approx((other.error, other.mean))


def test_the_variance_without_cuts_is_that_of_means() -> None:
    u = np.random.default_rng(3).beta(1.2, 1, 2000)
    found = censored_error(PITs(u))
    t = stats.t(1999)
    # the level alone, as all of the error is in one direction; both are tested in two directions
    low = u.mean() - 0.5 - t.isf(0.025 / 4) * u.std(ddof=1) / np.sqrt(2000)
    assert found.low == pytest.approx(low, abs=2e-3)
    # the level is also the function of the largest variance, as all covariances are positive
    high = found.error + t.isf(0.025) * u.std(ddof=1) / np.sqrt(2000)
    assert found.high == pytest.approx(high, abs=2e-3)


def test_the_least_error_is_proven_where_the_known_are_too_many() -> None:
    # a third of the people have an event by a PIT of 0.1: at least 1/3 of outcomes are below it
    random = np.random.default_rng(5)
    known = np.where(np.arange(3000) % 3 == 0, 0.1 * random.random(3000), 0.3)
    lost = np.arange(3000) % 3 > 0
    found = censored_error(cut(known, lost))
    least, most = found.least, found.most
    # (1/3 - c)_+ for c from 0.1 on, and (c / 0.3 - c) before, at least
    truth = (1 / 3 - 0.1) ** 2 / 2
    assert 0.01 < least < truth + (1 / 0.3 - 1) * 0.1**2
    assert most < 0.5


# --- confidence -----------------------------------------------------------------------------------


def samples(n_sets: int, n: int, shift: float) -> Any:
    for seed in range(n_sets):
        random = np.random.default_rng([7, seed])
        sample = Sample.of(n, random, shift)
        # the shifted people are a fifth of five times as many
        yield sample, sample.pits(random)


@statistical
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_intervals_of_sizes_contain_the_error(shift: float) -> None:
    """Each data set has a group of about 400 people, half of them cut off.

    Intervals are at 95%; the number of failures that 1 of 10^6 runs exceeds is the limit.
    """
    truth = Readings(shift).truth
    n_sets = repeats(1000)
    outside = bounds = uncovered = 0
    coverage = stats.norm.cdf(stats.norm.ppf([0.9, 0.1]) - shift)
    for sample, pits in samples(n_sets, 2000, shift):
        found = censored_error(pits.take(sample.is_shifted), random_state=0)
        outside += not found.low <= truth <= found.high
        bounds += not found.least <= truth <= found.most
        _, low, high = found.coverage[0.8]
        uncovered += not low <= coverage[0] - coverage[1] <= high
    limit = most_failures(n_sets)
    assert outside <= limit
    assert bounds <= limit
    # asymptotic intervals of shares from Kaplan-Meier estimates
    assert uncovered <= most_failures(n_sets, 0.07)


@statistical
def test_bounds_hold_if_being_cut_off_depends_on_the_time() -> None:
    """Of the people with short times most leave just before the event."""
    n_sets = repeats(1000)
    outside = km_outside = 0
    for seed in range(n_sets):
        random = np.random.default_rng([8, seed])
        truth = random.random(400)
        lost = (truth < 0.6) & (random.random(400) < 0.7)
        known = np.where(lost, 0.9 * truth, truth)
        found = censored_error(cut(known, lost, seed))
        # forecasts are right
        outside += found.least > 0
        km_outside += found.low > 0
    assert outside <= most_failures(n_sets)
    # the assumption of the estimate is broken, and it is wrong
    assert km_outside > n_sets / 2


def test_few_people_who_are_left_are_no_evidence() -> None:
    """Right forecasts of which only few people were followed to the upper half of PITs.

    Without an end to the estimate, a lower end above 0 was found in 16 to 25% of such data sets.
    At 5% for either interval more than 20 of 150 fail in 0.1% of runs; about none is expected.
    """
    n_wrong = 0
    for seed in range(150):
        random = np.random.default_rng(1000 + seed)
        rate = np.exp(random.normal(0, 0.5, 300)) / 4
        known = -np.expm1(-rate * random.exponential(1 / rate))
        left_early = random.random(300) < 0.1
        seen = -np.expm1(-rate * np.where(left_early, random.random(300), 1 + random.random(300)))
        found = censored_error(cut(np.minimum(known, seen), seen < known, seed))
        coverage = found.coverage[0.8]
        n_wrong += found.low > 0 or not coverage.low <= 0.8 <= coverage.high
    assert n_wrong <= 20


def test_beyond_the_end_of_the_estimate_an_interval_assumes_nothing() -> None:
    random = np.random.default_rng(3)
    known = random.random(2000)
    found = censored_error(cut(np.minimum(known, 0.6), known > 0.6))
    assert found.error < 0.02
    # those beyond 0.6 may all be at 0.6 or at 1
    assert found.high > 0.4**2 / 2
    assert found.coverage[0.8].low < 0.6
    assert found.coverage[0.8].high > 0.85
