"""Times that are cut off: what is known, Kaplan-Meier estimates, errors and their bounds."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from scipy import integrate, stats

from censored_laws import Sample
from complaints import refused
from evenhand import Outcomes, audit
from evenhand.audits import Search
from evenhand.calibration import (
    Cells,
    KaplanMeier,
    Reading,
    calibration_error,
    cell_error,
    censored_error,
)
from evenhand.calibration.kaplan_meier import largest_error
from repeats import most_failures, repeats, statistical


def test_with_a_horizon_who_is_seen_at_it_is_known():
    #      event before, event at, event after, cut before, cut at, cut after
    y, event = [1.0, 6.0, 6.5, 5.9, 6.0, 8.0], [1, 1, 1, 0, 0, 0]
    times = Outcomes(y, event, horizon=6)
    np.testing.assert_array_equal(times.happened, [True, True, False, False, False, False])
    np.testing.assert_array_equal(times.has_reached, [False, False, True, False, True, True])
    np.testing.assert_array_equal(times.is_lost, [False, False, False, True, False, False])
    np.testing.assert_allclose(times.value, [1.0, 6.0, 6.0, 5.9, 6.0, 6.0])
    # an event at the horizon is no outcome `horizon`, which is that of people without an event
    assert times.value[1] < 6.0
    np.testing.assert_array_equal(times.y, y)


@given(
    st.lists(
        st.tuples(st.floats(0, 20), st.booleans(), st.floats(0, 50, allow_subnormal=False)),
        min_size=1,
        max_size=30,
    ),
    st.floats(0.01, 20),
)
def test_each_person_has_an_event_or_reached_or_is_lost(people, horizon):
    y, event, entered = (np.array(column) for column in zip(*people, strict=True))
    if not (event & (y <= horizon)).any():
        refused("no event was observed", Outcomes, y, event, horizon, entered)
        return
    if y.max() < horizon and not event.all():
        refused("horizon must be at most", Outcomes, y, event, horizon, entered)
        return
    times = Outcomes(y, event, horizon, entered)
    known = times.happened.astype(int) + times.has_reached + times.is_lost
    np.testing.assert_array_equal(known, 1)
    assert (times.value <= horizon).all()
    assert (times.value[times.happened] < horizon).all()
    # nobody who entered early enough is cut off by the end of follow-up
    ended = entered + y >= (entered + y).max()
    assert not (times.is_lost & times.is_followed & ended & (y < horizon * (1 - 1e-6))).any()
    some = times.take(np.arange(0, y.size, 2))
    np.testing.assert_array_equal(some.is_lost, times.is_lost[::2])


def test_entry_may_be_given_as_dates():
    days = np.array(["2020-01-01", "2020-01-11", "2020-02-01"], dtype="datetime64[D]")
    y, event = [40.0, 3.0, 5.0], [0, 1, 1]
    zoned = pd.DatetimeIndex(days).tz_localize("UTC")
    for entered in (days, days.astype(str), days.astype(str).astype(object), zoned):
        times = Outcomes(y, event, 30, entered)
        np.testing.assert_allclose(times.entered, [0, 10, 31])
        np.testing.assert_array_equal(times.is_followed, [True, True, False])


def test_bad_times_are_refused_with_the_place():
    def wrong(message, **given):
        refused(message, Outcomes, **({"y": [1.0, 2.0], "event": [1, 0]} | given))

    wrong(r"y\[1\] must be a time", y=[1.0, np.nan])
    wrong(r"y\[1\] must be at least 0", y=[1.0, -1.0])
    wrong("y is missing", y=None)
    wrong(r"y must contain numbers, got datetime64", y=pd.to_datetime(["2024", "2025"]))
    wrong("event must have one value per row", event=[1])
    wrong(r"event\[1\] must be 0 or 1, got 2", event=[1, 2])
    wrong("no event was observed", event=[0, 0])
    wrong(r"no event was observed by the horizon 0\.5", horizon=0.5)
    wrong("horizon must be a time above 0", horizon=0)
    wrong("horizon must be a time above 0", horizon="soon")
    # beyond all times somebody is lost, unless everybody had the event
    wrong("horizon must be at most 12, the longest time, got 3,652", y=[3, 12], horizon=3652)
    assert not Outcomes([3.0, 12.0], [1, 1], horizon=20).is_lost.any()
    wrong("entered is given without horizon", entered=[0, 1])
    wrong("entered must have shape", entered=[0], horizon=2)
    wrong(r"entered\[1\]", entered=["2020-01-01", None], horizon=2)
    wrong(r"entered\[0\] must be a date, got nan; fill it", entered=[None, None], horizon=2)
    date = "entered, row 2 must be a date, got '31/12/2020'; write dates as YYYY-MM-DD"
    wrong(date, entered=["2020-01-01", "31/12/2020"], horizon=2)
    three = {"y": [1.0, 2, 3], "event": [1, 0, 1], "entered": ["0.5", "x", "2"]}
    wrong("entered, row 2 must be a number, got 'x'", **three, horizon=2)


def test_kaplan_meier_and_greenwood_agree_with_lifelines():
    random = np.random.default_rng(0)
    # times with ties among events, among censored people and between both
    y, event = np.ceil(random.exponential(20, 400)), random.random(400) < 0.6
    estimate = KaplanMeier.of(y, event)
    peer = KaplanMeierFitter().fit(y, event)
    points = np.unique(np.concatenate((y, y + 0.5)))
    expected = 1 - peer.survival_function_at_times(points).to_numpy()
    np.testing.assert_allclose(estimate.at(points), expected, atol=1e-12)
    # lifelines has the same interval, of log(-log S) with Greenwood's variance
    ends = peer.confidence_interval_
    for point in (5.0, 20.0, 47.0):
        row = ends.loc[:point].iloc[-1]
        found = estimate.interval(point)
        np.testing.assert_allclose(found, (1 - row.iloc[1], 1 - row.iloc[0]), atol=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_the_error_is_the_integral_of_the_distance_from_uniform(seed):
    random = np.random.default_rng(seed)
    pit, event = random.beta(1, 2, 30), random.random(30) < 0.5
    estimate = KaplanMeier.of(pit, event)

    def distance(c):
        if c <= estimate.last:
            return abs(float(estimate.at(c)) - c)
        end = float(estimate.at(estimate.last))
        share = (c - estimate.last) / (1 - estimate.last)
        return abs(end + share * (1 - end) - c)

    breaks = np.concatenate(([0.0], estimate.values, [estimate.last, 1.0]))
    pieces = [
        integrate.quad(distance, low, high, limit=200)[0]
        for low, high in itertools.pairwise(breaks)
    ]
    np.testing.assert_allclose(estimate.error(), sum(pieces), atol=1e-7)


@statistical
@pytest.mark.parametrize("horizon", [None, 2.0])
def test_the_test_of_censored_times_has_its_level(horizon):
    # at most 5% of p-values of a group and of data sets, up to a binomial quantile at 1e-6
    n_sets = repeats(1000, shorter=80)
    below = np.zeros(3)
    for seed in range(n_sets):
        sample = Sample.of(300, np.random.default_rng((seed, 7)))
        found = audit(
            sample.forecast(horizon),
            y=Outcomes(sample.time, sample.event, horizon),
            groups={"fifth": sample.is_shifted, "low x": sample.x < 0},
            search=Search(masses=(0.5,), learned_masses=(), n_simulations=2),
            random_state=seed,
        ).groups.set_index("group")
        below[:2] += found.loc[["fifth", "low x"], "p_value"].to_numpy() < 0.05
        below[2] += found["off"].any()
    assert (below <= most_failures(n_sets)).all(), below


# --- sizes and bounds of the error of times that are cut off: closed forms, and their confidence


def cut(known, lost, seed=0):
    ties = np.random.default_rng(seed).random(known.size)
    return Cells(known, np.where(lost, 1.0, known), ties=ties, reading=lost * Reading.UNKNOWN)


def test_the_error_is_that_of_the_kaplan_meier_estimate():
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


@pytest.mark.parametrize("seed", range(2))
def test_the_range_contains_each_completion_and_its_ends_are_reached(seed):
    random = np.random.default_rng(seed)
    known = random.random(7) * random.choice([0.4, 1.0])
    lost = random.random(7) < 0.5
    lost[0] = True
    # least and largest error of these people, wherever in the cells they are
    least, most = (error(cut(known, lost)) for error in (cell_error, largest_error))
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


def test_the_variance_without_cuts_is_that_of_means():
    u = np.random.default_rng(3).beta(1.2, 1, 2000)
    found = censored_error(Cells(u))
    t = stats.t(1999)
    # the level alone, as all of the error is in one direction; both are tested in two directions
    low = u.mean() - 0.5 - t.isf(0.025 / 4) * u.std(ddof=1) / np.sqrt(2000)
    assert found.low == pytest.approx(low, abs=2e-3)
    # the level is also the function of the largest variance, as all covariances are positive
    high = found.error + t.isf(0.025) * u.std(ddof=1) / np.sqrt(2000)
    assert found.high == pytest.approx(high, abs=2e-3)


def samples(n_sets, n, shift):
    for seed in range(n_sets):
        random = np.random.default_rng([7, seed])
        sample = Sample.of(n, random, shift)
        # the shifted people are a fifth of five times as many
        yield sample, sample.pits(random)


@statistical
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_intervals_of_sizes_contain_the_error(shift):
    """A group of 400 people, half cut off; intervals at 95%, a false alarm in 10^6 runs."""
    truth = stats.norm.cdf(shift / np.sqrt(2)) - 0.5  # of PITs Phi(z + shift)
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
def test_bounds_hold_if_being_cut_off_depends_on_the_time():
    """Of the people with short times most leave just before the event."""
    n_sets = repeats(1000)
    outside = km_outside = 0
    for seed in range(n_sets):
        random = np.random.default_rng([8, seed])
        truth = random.random(400)
        lost = (truth < 0.6) & (random.random(400) < 0.7)
        found = censored_error(cut(np.where(lost, 0.9 * truth, truth), lost, seed))
        # forecasts are right
        outside += found.least > 0
        km_outside += found.low > 0
    assert outside <= most_failures(n_sets)
    # the assumption of the estimate is broken, and it is wrong
    assert km_outside > n_sets / 2


def test_few_people_who_are_left_are_no_evidence():
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


def test_beyond_the_end_of_the_estimate_an_interval_assumes_nothing():
    known = np.random.default_rng(3).random(2000)
    found = censored_error(cut(np.minimum(known, 0.6), known > 0.6))
    assert found.error < 0.02
    # those beyond 0.6 may all be at 0.6 or at 1
    assert found.high > 0.4**2 / 2
    assert found.coverage[0.8].low < 0.6
    assert found.coverage[0.8].high > 0.85
