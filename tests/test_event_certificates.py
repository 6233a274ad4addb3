"""Certificates of 0/1 forecasts against event rates and biases that are known from theory."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from complaints import refused
from discrete_laws import mean_of_largest
from evenhand.calibration import Cells
from evenhand.certificates import (
    EventPart,
    certify_counts,
    certify_events,
    certify_pit,
    certify_rows,
    count_events,
)
from evenhand.distributions import OutcomeKind
from repeats import most_failures, repeats, statistical

Floats = NDArray[np.float64]

MASSES = np.array([0.05, 0.1, 0.2, 0.5, 0.8, 1.0])


@dataclass(frozen=True)
class World:
    """Forecasts at equally likely probabilities, and the true event rate at each of them."""

    probability: Floats
    rate: Floats

    def sample(self, n, rng):
        rows = rng.integers(self.probability.size, size=n)
        return self.probability[rows], rng.uniform(size=n) < self.rate[rows]

    @cached_property
    def levels(self):
        """All forecasts: event shares change at these thresholds only."""
        return np.unique(self.probability)

    @cached_property
    def told_below(self):
        """P(p <= t, Y = 1) at the levels."""
        return np.array([(self.rate * (self.probability <= t)).mean() for t in self.levels])

    @cached_property
    def told_above(self):
        """P(p >= t, Y = 0) at the levels."""
        return np.array([((1 - self.rate) * (self.probability >= t)).mean() for t in self.levels])

    @cached_property
    def bias(self):
        errors = np.concatenate((1 - self.probability, -self.probability))
        weights = np.concatenate((self.rate, 1 - self.rate)) / self.rate.size
        least = [-mean_of_largest(-errors, weights, mass) for mass in MASSES]
        return np.array(least), np.array(
            [mean_of_largest(errors, weights, mass) for mass in MASSES]
        )


def evenly(ppf, n=1000):
    return np.asarray(ppf((np.arange(n) + 0.5) / n))


RARE = evenly(stats.beta(1, 9).ppf)
LIKELY = evenly(stats.beta(2, 2).ppf)
WORLDS = {
    "right, rare": World(RARE, RARE),
    "right, percentages": World(np.round(RARE, 2), np.round(RARE, 2)),
    "right, three forecasts": World(
        np.repeat([0.02, 0.1, 0.4], 1000), np.repeat([0.02, 0.1, 0.4], 1000)
    ),
    "too low": World(RARE, np.minimum(2 * RARE, 1.0)),
    "right": World(LIKELY, LIKELY),
    "too extreme, tenths": World(np.round(LIKELY, 1), 0.3 + 0.4 * LIKELY),
}


def is_below_the_truth(proof, world):
    inside = (world.levels > 0) & (world.levels < 1)
    levels = world.levels[inside]
    below = np.array([proof.event_rate(below=t, mass=1.0) for t in levels])
    above = np.array([proof.event_rate(above=t, mass=1.0) for t in levels])
    bias = np.array([proof.bias(mass) for mass in MASSES]).T
    least, largest = world.bias
    return (
        bool((below < world.told_below[inside] - 1e-12).any()),
        bool((1 - above < world.told_above[inside] - 1e-12).any()),
        bool((bias[0] > least + 1e-12).any() or (bias[1] < largest - 1e-12).any()),
    )


@statistical
@pytest.mark.parametrize("name", WORLDS)
def test_each_set_of_bounds_has_its_confidence(name):
    world = WORLDS[name]
    rng = np.random.default_rng(len(name))
    n_sets = repeats(1000, shorter=25)
    failures = np.zeros(3, dtype=int)
    for size in rng.choice([100, 500, 2000], size=n_sets):
        failures += is_below_the_truth(certify_events(*world.sample(size, rng)), world)
    assert failures.max() <= most_failures(n_sets), failures


def test_counts_only_widen_the_bounds_and_add_up():
    rng = np.random.default_rng(10)
    p = np.concatenate((rng.beta(0.02, 2, size=1000), rng.beta(2, 2, size=1000), [0.0, 1.0]))
    y = rng.uniform(size=p.size) < p
    whole = count_events(p, y)
    parts = count_events(p[:700], y[:700]) + count_events(p[700:], y[700:])
    assert np.array_equal(parts.count, whole.count)
    assert (whole.n_people, whole.n_events) == (p.size, int(y.sum()))
    rows, counted = certify_events(p, y), certify_counts(events=parts)
    width = 1 / 6400
    for t, mass in product((0.001, 0.05, 0.5, 0.93), (0.1, 0.5, 1.0)):
        exact = rows.event_rate(below=t, mass=mass), rows.event_rate(above=t, mass=mass)
        binned = counted.event_rate(below=t, mass=mass), counted.event_rate(above=t, mass=mass)
        wider = (
            rows.event_rate(below=t + width, mass=mass),
            rows.event_rate(above=t - width, mass=mass) if t > width else 0.0,
        )
        assert exact[0] <= binned[0] <= wider[0]
        assert wider[1] <= binned[1] <= exact[1]
        low, high = rows.bias(mass)
        outer = counted.bias(mass)
        assert low - width <= outer[0] <= low + 1e-12
        assert high - 1e-12 <= outer[1] <= high + width


def test_a_bin_counts_whole_on_the_side_of_the_larger_bound():
    """Thresholds just beyond a forecast lie in its bin."""
    p, y = np.full(200, 0.05005), np.arange(200) < 20
    rows, counted = certify_events(p, y), certify_counts(events=count_events(p, y))
    assert counted.event_rate(below=0.05006, mass=0.5) >= rows.event_rate(below=0.05006, mass=0.5)
    assert counted.event_rate(above=0.05004, mass=0.5) <= rows.event_rate(above=0.05004, mass=0.5)
    assert rows.event_rate(below=0.05006, mass=0.5) > rows.event_rate(below=0.05004, mass=0.5)


def test_unsuitable_rows_are_refused():
    pattern = r"probability\[1\] must lie between 0 and 1, got 1.2"
    refused(pattern, certify_events, [0.1, 1.2], [0, 1])
    code = r"event\[1\] must be 0 or 1, got 2.0; code the event as 1"
    refused(code, certify_events, [0.1, 0.2], [0, 2])
    refused(r"event must have one value per row \(2\)", certify_events, [0.1, 0.2], [0])
    refused("probability must have 1 dimension", certify_events, [[0.1, 0.2]], [0])


def test_exactly_one_threshold_inside_the_unit_interval():
    proof = certify_events([0.1, 0.4], [0, 1])
    for wrong in ({}, {"below": 0.1, "above": 0.2}):
        refused("exactly one of below and above", proof.event_rate, mass=0.2, **wrong)
    for name, value in product(("below", "above"), (0.0, 5)):
        refused(f"{name} must be above 0 and below 1", proof.event_rate, mass=0.2, **{name: value})
    for call in (lambda: proof.event_rate(below=0.1, mass=0.0), lambda: proof.bias(1.1)):
        refused("mass must be above 0 and at most 1", call)


def test_a_certificate_of_a_0_1_forecast_has_its_events():
    rng = np.random.default_rng(12)
    p = rng.beta(1, 9, size=2000)
    y = rng.uniform(size=2000) < p
    low, high = np.where(y, 1 - p, 0.0), np.where(y, 1.0, 1 - p)
    pits = Cells(low, high, ties=rng.uniform(size=2000))
    groups = {"low": p < 0.05}
    proof = certify_rows(pits, kind=OutcomeKind.BINARY, event=EventPart.of(p, y), groups=groups)
    own = certify_events(p, y)
    assert proof.bias(0.2) == own.bias(0.2)
    assert proof.event_rate(below=0.05, mass=0.2) == own.event_rate(below=0.05, mass=0.2)
    # W1 of randomized PITs of one person is |y - p| / 2 (outcomes: Theorem 4.3)
    assert proof.own.all_errors.high == pytest.approx(np.abs(y - p) / 2, abs=1e-12)
    assert proof.named("low") < 0.1
    assert list(proof.table()["bias_high"]) == [own.bias(m)[1] for m in (0.1, 0.2, 0.5, 1.0)]
    refused("no certified group_error", proof.group_error, 0.2)
    # cells alone do not show probabilities, only the overall error and those of named groups
    alone = certify_pit(pits, kind="binary", groups=groups)
    assert alone.named("low") == proof.named("low")
    assert alone.table().empty
    assert alone.average_error() < 0.1
    refused("has no events", alone.bias, 0.2)
    refused("kind must be one of", certify_pit, pits, kind="hurdle")
