"""Two worlds with the same data: how wrong the forecast is in one of them, against theory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, kstest

from evenhand import Forecast, InputError
from evenhand.calibration import calibration_error
from reproduction import impossibility
from reproduction.impossibility import (
    WORLDS,
    measure_floors,
    share_of_yes,
    theory_of_floors,
    two_worlds,
)


def random_forecast(kind, n, rng):
    if kind == "normal":
        return Forecast.from_normal(rng.normal(size=n) * 10, rng.gamma(1.0, size=n) + 0.01)
    levels = np.linspace(0.05, 0.95, 7)
    return Forecast.from_quantiles(levels, np.cumsum(rng.gamma(0.5, size=(n, 7)) + 0.01, axis=-1))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(["normal", "quantiles"]),
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    slices=st.integers(1, 301),
)
def test_no_deterministic_forecaster_and_no_data_go_below_the_floors(kind, seed, n, slices):
    rng = np.random.default_rng(seed)
    forecast = random_forecast(kind, n, rng)
    # the data need not come from the forecast: any outcomes will do
    y = (
        forecast.sample(rng)
        if rng.random() < 0.5
        else forecast.mean() + forecast.std() * rng.normal() * 2
    )
    floors = measure_floors(two_worlds(forecast, y, slices=slices))
    w1, variation, half = theory_of_floors(slices)
    assert floors.least_error >= w1 - 1e-6
    assert floors.least_variation == pytest.approx(variation, abs=1e-9)
    assert floors.half_mass >= 0.5
    assert floors.half_error >= half - 1e-6
    # the forecast is right in the other world, up to the resolution of m even levels: 1 / (4 m), m
    # at least 200
    assert floors.calibrated_error <= 1 / 800 + 1e-9
    assert floors.calibrated_variation <= 1e-9


def test_many_slices_reach_a_quarter_one_and_an_eighth():
    assert theory_of_floors(10**9) == pytest.approx((1 / 4, 1, 1 / 8))


def test_a_person_seen_at_the_median_attains_the_individual_floor():
    worlds = two_worlds(Forecast.from_normal([3.0], [2.0]), [3.0], slices=101)
    assert measure_floors(worlds).least_error == pytest.approx(theory_of_floors(101)[0], abs=1e-6)


@pytest.mark.parametrize(("y", "slices"), [(0.3, 1), (1.7, 4), (-2.5, 9), (0.0, 50)])
def test_error_in_the_sliced_world_is_the_closed_form(y, slices):
    forecast = Forecast.from_normal([0.0], [1.0])
    floors = measure_floors(two_worlds(forecast, [y], slices=slices))
    rest = 1 - 1 / slices
    start = np.floor(forecast.pit([y])[0] * slices) / slices
    # integral of |start + t / slices - t| over t: two triangles
    theory = (start**2 + (rest - start) ** 2) / (2 * rest) if rest else 0.0
    assert floors.mean_error == pytest.approx(theory, abs=1 / 800 + 1e-9)


def test_the_larger_half_can_be_no_worse_than_an_eighth():
    # PITs of the upper half: one half of them at 1/2, the others even above; the lower half
    # mirrored and smaller
    upper = np.concatenate([np.full(500, 0.5), 0.5 + (np.arange(500) + 0.5) / 1000])
    pit = np.concatenate([upper, 1e-9 + np.zeros(400)])
    forecast = Forecast.from_normal(np.zeros(pit.size), np.ones(pit.size))
    floors = measure_floors(two_worlds(forecast, forecast.distribution.ppf(pit), slices=2001))
    assert floors.half_mass == pytest.approx(1000 / 1400)
    assert floors.half_error == pytest.approx(1 / 8, abs=2e-3)


def test_everybody_together_shows_nothing():
    # W1 of n uniform PITs: 0.313 / sqrt(n) on average; DKW: beyond 2.7 / sqrt(n) once in a million
    n = 4000
    rng = np.random.default_rng(0)
    worlds = two_worlds(random_forecast("normal", n, rng), slices=1001, random_state=rng)
    assert measure_floors(worlds).average_error <= 2.7 / np.sqrt(n)


def test_both_worlds_contain_the_data():
    rng = np.random.default_rng(1)
    worlds = two_worlds(random_forecast("quantiles", 200, rng), slices=7, random_state=rng)
    seen = worlds.forecast.pit(worlds.outcomes)
    for world, width in zip(WORLDS, (1.0, 1 / 7), strict=True):
        again = worlds.forecast.pit(worlds.draw(world, rng))
        support = worlds.pit_quantiles(world, 500)
        slack = width / 500
        assert (support.min(axis=-1) - slack <= seen).all()
        assert (seen <= support.max(axis=-1) + slack).all()
        assert (support.min(axis=-1) - slack <= again).all()
        assert (again <= support.max(axis=-1) + slack).all()


def test_data_of_both_worlds_have_one_distribution_if_each_person_is_seen_once():
    """Over worlds, one person's PIT is uniform in either (false-alarm rate 1e-4 each)."""
    forecast = Forecast.from_normal([2.0], [0.5])
    rng = np.random.default_rng(2)
    for world in WORLDS:
        drawn = [
            two_worlds(forecast, slices=5, random_state=rng).draw(world, rng) for _ in range(1500)
        ]
        assert kstest(forecast.distribution.cdf(np.array(drawn)).ravel(), "uniform").pvalue > 1e-4


def test_two_outcomes_of_a_person_distinguish_the_worlds():
    worlds = two_worlds(
        Forecast.from_normal(np.zeros(500), np.ones(500)), slices=1001, random_state=3
    )
    rng = np.random.default_rng(3)
    far = {
        world: np.abs(worlds.draw(world, rng) - worlds.draw(world, rng)).mean() for world in WORLDS
    }
    # two independent outcomes of a standard normal are 2 / sqrt(pi) = 1.13 apart on average
    assert far["sliced"] < 0.05
    assert far["calibrated"] > 0.5


def test_a_verifier_says_yes_as_often_in_either_world():
    """A 10% test of PITs accepts 90% in both: exact binomial, false alarm 2 in 10^6 each."""
    worlds = two_worlds(
        Forecast.from_normal(np.zeros(3000), np.ones(3000)), slices=1001, random_state=4
    )
    n_sets = 300

    def looks_right(forecast, y):
        return kstest(forecast.pit(y), "uniform").pvalue > 0.1

    yes = share_of_yes(worlds, looks_right, n_seen=60, n_datasets=n_sets, random_state=4)
    low, high = binom.ppf([1e-6, 1 - 1e-6], n_sets, 0.9) / n_sets
    assert low <= yes["calibrated"] <= high
    # the sliced world is one of many: over 3000 people its PITs are uniform up to a little
    assert low - 0.03 <= yes["sliced"] <= high


def test_one_slice_is_the_calibrated_world():
    worlds = two_worlds(Forecast.from_normal([0.0, 1.0], [1.0, 2.0]), slices=1, random_state=5)
    np.testing.assert_array_equal(
        worlds.pit_quantiles("sliced", 50), worlds.pit_quantiles("calibrated", 50)
    )
    assert measure_floors(worlds).average_error == pytest.approx(
        calibration_error((np.arange(200) + 0.5) / 200)
    )


def test_what_is_given_stays_as_it_was():
    y = np.array([0.5, 1.5])
    kept = y.copy()
    measure_floors(two_worlds(Forecast.from_normal([0.0, 1.0], [1.0, 2.0]), y, slices=3))
    np.testing.assert_array_equal(y, kept)


def test_worlds_of_randomized_forecasts_are_refused():
    forecast = Forecast.from_normal([0.0, 1.0], [1.0, 1.0])
    with pytest.raises(InputError, match="forecast is randomized"):
        two_worlds(forecast.randomized(r=0.5))


# the study


def run_small(out):
    pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"SLICES": (1, 101), "N_PEOPLE": 500, "N_DATASETS": 60}.items():
            patch.setattr(impossibility, name, value)
        patch.setattr(impossibility, "N_SEEN", 100)
        return impossibility.run(out)


def test_the_study_fools_the_verifier_and_reaches_the_floors(finished):
    out, values = finished("impossibility", run_small)
    assert {file.name for file in out.iterdir()} == {
        *("results.json", "index.html", "worlds.svg", "floors.csv")
    }
    one, many = values["floors"]
    assert one["least_error"] < 1e-2
    assert many["least_error"] == pytest.approx(0.25 * (1 - 1 / 101), abs=1e-3)
    # 60 data sets at 95%: a false alarm in 10^6 each
    for share in many["yes"].values():
        assert binomtest(round(60 * share), 60, 0.95).pvalue > 1e-6


def test_two_worlds_are_drawn_around_the_same_data():
    x = np.linspace(0, 1, 64)
    forecast = Forecast.from_normal(x, np.ones(64))
    worlds = two_worlds(forecast, slices=11, random_state=0)
    left, right = impossibility.plot_two_worlds(x, worlds).axes
    data = [axes.lines[0].get_xydata() for axes in (left, right)]
    np.testing.assert_array_equal(data[0], data[1])
    np.testing.assert_allclose(data[0][:, 1], worlds.outcomes[2::4])
