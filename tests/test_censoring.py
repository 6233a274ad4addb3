"""Times that are cut off: what is known of them, Kaplan-Meier, and the readings of outcomes: 5."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from scipy import integrate, stats

from censored_laws import STUDY, Readings, Sample, forecast_cdf
from evenhand import Forecast, InputError, audit
from evenhand.calibration import calibration_error
from evenhand.censoring import CensoredTimes, KaplanMeier
from repeats import most_failures, repeats, statistical

# --- what is known of times ---------------------------------------------------------------------


def test_with_a_horizon_who_is_seen_at_it_is_known() -> None:
    #      event before, event at, event after, cut before, cut at, cut after
    y, event = [1.0, 6.0, 6.5, 5.9, 6.0, 8.0], [1, 1, 1, 0, 0, 0]
    times = CensoredTimes.of(y, event, horizon=6)
    np.testing.assert_array_equal(times.happened, [True, True, False, False, False, False])
    np.testing.assert_array_equal(times.has_reached, [False, False, True, False, True, True])
    np.testing.assert_array_equal(times.is_lost, [False, False, False, True, False, False])
    np.testing.assert_allclose(times.time, [1.0, 6.0, 6.0, 5.9, 6.0, 6.0])
    # an event at the horizon is no outcome `horizon`, which is that of people without an event
    assert times.time[1] < 6.0
    np.testing.assert_array_equal(times.followed, y)


@given(
    st.lists(
        st.tuples(st.floats(0, 20), st.booleans(), st.floats(0, 50, allow_subnormal=False)),
        min_size=1,
        max_size=30,
    ),
    st.floats(0.01, 20),
)
def test_each_person_has_an_event_or_reached_or_is_lost(
    people: list[tuple[float, bool, float]], horizon: float
) -> None:
    y, event, entered = (np.array(column) for column in zip(*people, strict=True))
    if not (event & (y <= horizon)).any():
        with pytest.raises(InputError, match="no event was observed"):
            CensoredTimes.of(y, event, horizon, entered)
        return
    if y.max() < horizon and not event.all():
        with pytest.raises(InputError, match="horizon must be at most"):
            CensoredTimes.of(y, event, horizon, entered)
        return
    times = CensoredTimes.of(y, event, horizon, entered)
    known = times.happened.astype(int) + times.has_reached + times.is_lost
    np.testing.assert_array_equal(known, 1)
    assert (times.time <= horizon).all()
    assert (times.time[times.happened] < horizon).all()
    # nobody who entered early enough is cut off by the end of follow-up
    end = (entered + y).max()
    ended = entered + y >= end
    assert not (times.is_lost & times.is_followed & ended & (y < horizon * (1 - 1e-6))).any()
    some = times.take(np.arange(0, y.size, 2))
    np.testing.assert_array_equal(some.is_lost, times.is_lost[::2])


def test_people_followed_to_a_horizon_are_chosen_by_entry_alone() -> None:
    entered, y, event = [0.0, 1.0, 4.0, 5.0], [10.0, 0.5, 5.0, 1.0], [0, 0, 1, 1]
    times = CensoredTimes.of(y, event, horizon=5, entered=entered)
    # follow-up ends at 10: whoever entered by 5 could be followed for 5, whatever happened
    np.testing.assert_array_equal(times.is_followed, [True, True, True, True])
    later = CensoredTimes.of(y, event, horizon=6, entered=entered)
    np.testing.assert_array_equal(later.is_followed, [True, True, True, False])


def test_entry_may_be_given_as_dates() -> None:
    days = np.array(["2020-01-01", "2020-01-11", "2020-02-01"], dtype="datetime64[D]")
    y, event = [40.0, 3.0, 5.0], [0, 1, 1]
    zoned = pd.DatetimeIndex(days).tz_localize("UTC")
    for entered in (days, days.astype(str), days.astype(str).astype(object), zoned):
        times = CensoredTimes.of(y, event, 30, entered)
        assert times.entered is not None
        np.testing.assert_allclose(times.entered, [0, 10, 31])
        np.testing.assert_array_equal(times.is_followed, [True, True, False])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": [1.0, np.nan]}, r"y\[1\] must be a time"),
        ({"y": [1.0, -1.0]}, r"y\[1\] must be at least 0"),
        ({"y": None}, "y is missing"),
        ({"event": [1]}, "event must have shape"),
        ({"event": [1, 2]}, r"event\[1\] must be 0 or 1, got 2"),
        ({"event": ["yes", "no"]}, "event must be 0 or 1"),
        ({"event": [0, 0]}, "no event was observed"),
        ({"horizon": 0.5}, r"no event was observed by the horizon 0\.5"),
        ({"horizon": 0}, "horizon must be a time above 0"),
        ({"horizon": "soon"}, "horizon must be a time above 0"),
        ({"entered": [0, 1]}, "entered is given without horizon"),
        ({"entered": [0], "horizon": 2}, "entered must have shape"),
        ({"entered": ["2020-01-01", None], "horizon": 2}, r"entered\[1\]"),
        ({"entered": ["a", "b"], "horizon": 2}, r"entered\[0\] must be a date, got 'a'; write"),
        (
            {"entered": ["2020-01-01", "31/12/2020"], "horizon": 2},
            r"entered\[1\] must be a date, got '31/12/2020'; write dates as YYYY-MM-DD",
        ),
        (
            {"y": [1.0, 2, 3], "event": [1, 0, 1], "entered": ["0.5", "x", "2"], "horizon": 2},
            r"entered\[1\] must be a number, in units of y, got 'x'",
        ),
        ({"entered": [None, None], "horizon": 2}, r"entered\[0\] must be a date, got a missing"),
    ],
)
def test_bad_times_are_refused_with_the_place(given: dict[str, Any], message: str) -> None:
    options = {"y": [1.0, 2.0], "event": [1, 0], "horizon": None, "entered": None} | given
    with pytest.raises(InputError, match=message):
        CensoredTimes.of(**options)


# --- Kaplan-Meier -------------------------------------------------------------------------------


def survival_by_hand(values: list[int], event: list[bool]) -> list[Fraction]:
    """Survival just after each distinct event, by the product of definition."""
    found, left = [], Fraction(1)
    for value in sorted({v for v, e in zip(values, event, strict=True) if e}):
        at_risk = sum(v >= value for v in values)
        ended = sum(v == value and e for v, e in zip(values, event, strict=True))
        left *= 1 - Fraction(ended, at_risk)
        found.append(left)
    return found


@given(
    st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=25).filter(
        lambda people: any(happened for _, happened in people)
    )
)
def test_kaplan_meier_is_the_product_of_its_definition(people: list[tuple[int, bool]]) -> None:
    values, event = ([p[k] for p in people] for k in (0, 1))
    estimate = KaplanMeier.of(values, event)
    expected = [float(1 - left) for left in survival_by_hand(values, event)]
    np.testing.assert_allclose(estimate.cdf, expected, atol=1e-12)
    assert estimate.last == max(values)


def ties_and_censoring(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    # times with ties among events, among censored people and between both
    return np.ceil(random.exponential(20, n)), random.random(n) < 0.6


def test_kaplan_meier_and_greenwood_agree_with_lifelines() -> None:
    y, event = ties_and_censoring()
    estimate = KaplanMeier.of(y, event)
    peer = KaplanMeierFitter().fit(y, event)
    points = np.unique(np.concatenate((y, y + 0.5)))
    expected = 1 - peer.survival_function_at_times(points).to_numpy()
    np.testing.assert_allclose(estimate.at(points), expected, atol=1e-12)
    # lifelines has the same interval, of log(-log S) with Greenwood's variance
    ends = peer.confidence_interval_
    for point in (5.0, 20.0, 47.0):
        row = ends.loc[:point].iloc[-1]
        np.testing.assert_allclose(
            estimate.interval(point), (1 - row.iloc[1], 1 - row.iloc[0]), atol=1e-9
        )


def test_whole_weights_are_copies_of_people() -> None:
    y, event = ties_and_censoring(n=60)
    times = np.random.default_rng(2).integers(1, 4, y.size)
    weighted = KaplanMeier.of(y, event, times)
    copied = KaplanMeier.of(np.repeat(y, times), np.repeat(event, times))
    np.testing.assert_allclose(weighted.cdf, copied.cdf, atol=1e-12)
    # but they are not more people: variances are those of the effective number
    assert (weighted.hazard_variance > copied.hazard_variance).all()


@pytest.mark.parametrize("seed", range(2))
def test_the_error_is_the_integral_of_the_distance_from_uniform(seed: int) -> None:
    random = np.random.default_rng(seed)
    pit, event = random.beta(1, 2, 30), random.random(30) < 0.5
    estimate = KaplanMeier.of(pit, event)

    def distance(c: float) -> float:
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


# --- the readings of outcomes: 5 ----------------------------------------------------------------

# of the population, by quadrature; in brackets, as in the table of 20,000 people (4,000 shifted)
TRUE = Readings()
SHIFTED = Readings(shift=1.0)


def test_the_table_of_readings_is_that_of_the_population() -> None:
    # the table is a simulation: standard errors of 0.003 for all and up to 0.009 in the group
    assert 1 - TRUE.event_rate == pytest.approx(0.51, abs=0.01)
    overall = 0.8 * (1 - TRUE.event_rate) + 0.2 * (1 - SHIFTED.event_rate)
    assert overall == pytest.approx(0.54, abs=0.005)
    assert TRUE.dropped == pytest.approx(0.111, abs=0.003)
    assert TRUE.as_events == pytest.approx(0.197, abs=0.003)
    assert TRUE.randomized < 1e-4
    assert TRUE.truth < 1e-12
    assert TRUE.bounds == pytest.approx((0.0, 0.286), abs=0.003)
    assert SHIFTED.dropped == pytest.approx(0.119, abs=0.003)
    assert SHIFTED.as_events == pytest.approx(0.082, abs=0.005)
    assert SHIFTED.randomized == pytest.approx(0.151, abs=0.003)
    assert SHIFTED.truth == pytest.approx(0.260, abs=0.0005)
    assert SHIFTED.truth == pytest.approx(stats.norm.cdf(np.sqrt(0.5)) - 0.5, abs=1e-4)
    assert SHIFTED.bounds == pytest.approx((0.0, 0.401), abs=0.005)


def readings_of(sample: Sample, random: np.random.Generator) -> dict[str, float]:
    pits = sample.pits(random)
    return {
        "dropped": calibration_error(sample.known[sample.event]),
        "as_events": calibration_error(sample.known),
        "randomized": calibration_error(pits.matrix[:, 0]),
        "kaplan_meier": KaplanMeier.of(pits.low[:, 0], sample.event).error(),
    }


@pytest.mark.parametrize(("shift", "theory"), [(0.0, TRUE), (1.0, SHIFTED)])
def test_readings_of_pits_are_those_of_the_theory(shift: float, theory: Readings) -> None:
    # 400,000 people, all of them shifted or none: standard errors below 0.0008, and an error of
    # zero is estimated as about 0.3 / sqrt(n) = 0.0005; five standard errors, false alarms 1e-5
    random = np.random.default_rng(11)
    sample = Sample.of(500_000, random, 0.0)
    if shift:
        shifted = Sample.of(2_000_000, random, shift)
        sample = select(shifted, shifted.is_shifted)
    found = readings_of(sample, random)
    assert found["dropped"] == pytest.approx(theory.dropped, abs=0.004)
    assert found["as_events"] == pytest.approx(theory.as_events, abs=0.004)
    assert found["randomized"] == pytest.approx(theory.randomized, abs=0.004)
    assert found["kaplan_meier"] == pytest.approx(theory.truth, abs=0.004)


def select(sample: Sample, rows: Any) -> Sample:
    return Sample(**{name: values[rows] for name, values in vars(sample).items()})


def survival_forecast(x: np.ndarray, horizon: float | None = None) -> Forecast:
    """Forecasts of the population, by survival probabilities at 100 times."""
    grid = np.concatenate((np.linspace(0.02, STUDY, 90), np.geomspace(6.5, 100, 10)))
    survival = 1 - forecast_cdf(grid[None], x[:, None])
    return Forecast.from_survival(grid, survival, horizon)


# --- statistics ---------------------------------------------------------------------------------


@statistical
@pytest.mark.parametrize("horizon", [None, 2.0])
def test_the_test_of_censored_times_has_its_level(horizon: float | None) -> None:
    # right forecasts under independent censoring: at most 5% of the p-values of a group, and of the
    # data sets with a group that is off, up to the binomial quantile with a false alarm of 1e-6
    n_sets = repeats(1000, shorter=80)
    below = np.zeros(3)
    for seed in range(n_sets):
        sample = Sample.of(300, np.random.default_rng((seed, 7)))
        found = audit(
            survival_forecast(sample.x, horizon),
            y=sample.time,
            event=sample.event,
            horizon=horizon,
            groups={"fifth": sample.is_shifted, "low x": sample.x < 0},
            masses=(0.5,),
            learned_masses=(),
            n_simulations=2,
            random_state=seed,
        ).groups.set_index("group")
        below[:2] += found.loc[["fifth", "low x"], "p_value"].to_numpy() < 0.05
        below[2] += found["off"].any()
    assert (below <= most_failures(n_sets)).all(), below


def test_a_horizon_beyond_all_times_is_refused_where_somebody_was_lost() -> None:
    with pytest.raises(
        InputError, match=r"horizon must be at most 12, the longest time, got 3,652"
    ):
        CensoredTimes.of([3.0, 12.0], [1, 0], horizon=3652)
    # if everybody had the event, all outcomes are known
    assert not CensoredTimes.of([3.0, 12.0], [1, 1], horizon=20).is_lost.any()
