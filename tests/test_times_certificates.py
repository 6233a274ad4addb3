"""Certificates of times that may be cut off, against theory, brute force and simulation."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand import Forecast, certify
from evenhand._validate import Floats, InputError
from evenhand.calibration import PITs, calibration_error, error_interval, row_excess
from evenhand.censoring import CensoredTimes
from evenhand.certificates import (
    HurdleCertificate,
    TimesCertificate,
    certify_events,
    certify_link,
    certify_times,
)
from evenhand.draws import jittered, nodes
from evenhand.links import Entropic, Gaussian, Laplace, Link

LINK = Entropic(0.12)


def curves(rate: Floats, horizon: float | None = None) -> Forecast:
    """Forecast exponential times, by their curves at 60 times."""
    grid = np.linspace(0.05, 3.0, 60)
    return Forecast.from_survival(grid, np.exp(-grid * rate[:, None]), horizon)


def exponential_times(n: int, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return rates, times of people, of whom some drop out, whether events, and times of entry."""
    rng = np.random.default_rng(seed)
    rate = rng.choice([0.4, 0.8], n)
    T, entry = rng.exponential(1 / rate), rng.uniform(0, 4, n)
    C = np.minimum(rng.exponential(6, n), 4 - entry)
    return rate, np.minimum(T, C), T <= C, entry


# --- errors of cells


@pytest.mark.parametrize("link", [Entropic(0.12), Laplace(0.3), Gaussian(0.05), Entropic(1.0)])
def test_the_error_of_an_open_cell_is_the_mean_excess_over_the_draw(link: Link) -> None:
    u = np.array([0.0, 0.02, 0.3, 0.5, 0.9, 1.0])
    r = nodes(20_000)
    brute = np.maximum(link.ppf(u[:, None], r) - r, 0.0).mean(axis=-1)
    np.testing.assert_allclose(link.cell_error(u), brute, atol=2e-4)
    # over draws, one in each cell
    served = link.ppf(u[:, None], r)
    np.testing.assert_allclose(row_excess(served), brute, atol=2e-4)


def test_an_error_of_a_lost_person_is_at_an_end() -> None:
    u = np.linspace(0, 1, 101)
    errors = LINK.pathwise_error(u)
    low, high = 20, 70
    assert max(errors[low], errors[high]) >= errors[low : high + 1].max() - 1e-12
    # who reaches the horizon has a smaller error than with an event just before
    assert (LINK.cell_error(u) <= errors + 1e-9).all()


# --- intervals of the overall error


def test_the_interval_contains_the_error_of_every_completion() -> None:
    rng = np.random.default_rng(0)
    low = rng.random(60)
    lost = rng.random(60) < 0.3
    high = np.where(lost, 1.0, low)
    least, most = error_interval(low, 0.95, high)
    for _ in range(200):
        completed = low + (high - low) * rng.random(60)
        assert least <= calibration_error(completed) <= most
    for end in (low, high):
        assert least <= calibration_error(end) <= most
    # without anybody lost it is the interval of the PITs
    np.testing.assert_allclose(error_interval(low, 0.95, low), error_interval(low, 0.95))


# --- every group


def test_certified_errors_are_those_of_the_worst_completion() -> None:
    rate, z, event, _ = exponential_times(400, 1)
    proof = certify(
        curves(rate).randomized(0.12, random_state=2), y=z, event=event, horizon=2.0, random_state=0
    )
    assert isinstance(proof, TimesCertificate)
    assert proof.link == LINK
    found = proof.evidence.errors.values
    times = CensoredTimes.of(z, event, 2.0)
    cdf = lambda t: -np.expm1(-rate * t)  # noqa: E731
    share = np.linspace(0, 1, 41)
    for i in range(60):
        if times.happened[i]:
            worst = LINK.pathwise_error(cdf(times.time)[i])
        elif times.has_reached[i]:
            worst = LINK.cell_error(cdf(2.0)[i])
        else:
            after = times.time[i] + (2.0 - times.time[i]) * share
            worst = max(
                *LINK.pathwise_error(-np.expm1(-rate[i] * after)), LINK.cell_error(cdf(2.0)[i])
            )
        # the curves are linear between their times
        assert found[i] == pytest.approx(float(worst), abs=2e-3)


def test_all_times_known_and_a_horizon_beyond_them_give_the_usual_errors() -> None:
    rate, *_ = exponential_times(300, 2)
    rng = np.random.default_rng(3)
    T = rng.exponential(1 / rate)
    served = curves(rate).randomized(0.12, random_state=4)
    proof = certify(served, y=T, event=np.ones(300), horizon=1e3, random_state=0)
    u = curves(rate).cdf(T)
    np.testing.assert_allclose(proof.evidence.errors.values, LINK.pathwise_error(u), atol=1e-12)
    assert proof.follow_up is not None
    assert proof.follow_up.n_lost == 0


def test_a_certificate_with_many_draws_is_close_to_that_of_its_link() -> None:
    rate, z, event, _ = exponential_times(1500, 5)
    base = curves(rate)
    draws = jittered(1500, 64, random_state=6)
    known = certify(
        Forecast(base.randomized(0.12, r=draws).distribution, draws),
        y=z,
        event=event,
        horizon=1.0,
        random_state=0,
    )
    pits = known.evidence.pits
    unknown = certify_times(pits, CensoredTimes.of(z, event, 1.0), random_state=0)
    # without the link, who was lost may have the error 1/2
    assert unknown.group_error(0.5) >= known.group_error(0.5)
    known_rows = ~known.evidence.spans.lost
    np.testing.assert_allclose(
        unknown.evidence.errors.values[known_rows],
        known.evidence.errors.values[known_rows],
        atol=0.01,
    )


def test_people_who_entered_late_are_left_out_whatever_happened_to_them() -> None:
    rate, z, event, entry = exponential_times(2000, 7)
    served = curves(rate).randomized(0.12, random_state=8)
    options = {"event": event, "horizon": 2.0, "random_state": 0}
    proof = certify(served, y=z, entered=entry, **options)
    early = entry <= 2.0 + 1e-9
    found = proof.follow_up
    assert found is not None
    assert found.has_entry
    assert proof.n_samples == early.sum() == found.n_events + found.n_reached + found.n_lost
    assert found.n_left_out == (~early).sum()
    assert found.n_events == (event & (z <= 2.0) & early).sum()
    everybody = certify(served, y=z, **options)
    assert proof.group_error(0.2) < everybody.group_error(0.2)


def test_nothing_is_proven_for_every_group_without_a_horizon() -> None:
    rate, z, event, _ = exponential_times(1000, 9)
    proof = certify(curves(rate).randomized(0.12, random_state=1), y=z, event=event, random_state=0)
    lost = float((~event).mean())
    assert not proof.bounds_every_group
    assert proof.group_error(lost / 2) == pytest.approx(0.5)
    row = proof.questions.iloc[2]
    assert not row["answered"]
    assert "give a horizon" in row["why"]
    # the overall error is bounded all the same
    assert proof.average_error() < 0.5


def test_coverage_counts_lost_people_both_ways() -> None:
    rate, z, event, _ = exponential_times(2000, 10)
    times = CensoredTimes.of(z, event, 2.0)
    proof = certify(curves(rate), y=z, event=event, horizon=2.0, random_state=0)
    inside = proof.evidence.inside(0.9).values
    missed = proof.evidence.missed(0.9).values
    cdf = curves(rate).cdf(times.time)
    at_horizon = curves(rate).cdf(np.full(2000, 2.0))
    is_in = (cdf >= 0.05) & (cdf <= 0.95)
    np.testing.assert_array_equal(missed[times.happened], ~is_in[times.happened])
    assert (inside[times.is_lost] == 1).all()
    # who left after the lower end of the interval is covered whenever the event happens
    sure = times.is_lost & (cdf >= 0.05) & (at_horizon <= 0.95)
    assert (missed[sure] == 0).all()
    assert (missed[times.is_lost & ~sure] == 1).all()
    low, high = proof.coverage(0.9, 0.5)
    assert 0 < low < 1
    assert high == 1


# --- hurdle form


def test_events_of_lost_people_are_completed_both_ways() -> None:
    rng = np.random.default_rng(11)
    p = rng.beta(2, 5, 3000)
    event = rng.random(3000) < p
    lost = rng.random(3000) < 0.2
    proof = certify_events(p, event, lost=lost)
    as_events = certify_events(p, event | lost)
    as_none = certify_events(p, event & ~lost)
    assert proof.n_lost == lost.sum()
    assert proof.n_events == (event & ~lost).sum()
    for mass in (0.1, 0.5):
        assert proof.bias(mass) == (as_none.bias(mass)[0], as_events.bias(mass)[1])
        assert proof.event_rate(below=0.3, mass=mass) == as_events.event_rate(below=0.3, mass=mass)
        assert proof.event_rate(above=0.3, mass=mass) == as_none.event_rate(above=0.3, mass=mass)


@pytest.mark.parametrize("bound", ["sharp", "pathwise"])
def test_lost_people_count_at_the_largest_error_of_a_link(bound: str) -> None:
    rng = np.random.default_rng(12)
    u = rng.random(1000)
    lost = rng.random(1000) < 0.05
    proof = certify_link(u, LINK, lost=lost, bound=bound)
    assert proof.n_lost == lost.sum()
    assert proof.n_samples == 1000
    # any values of the PITs of some or all of these people give a smaller bound
    for value in (0.0, 0.4, 1.0):
        filled = certify_link(np.where(lost, value, u), LINK, bound=bound)
        assert filled.group_error(0.2) <= proof.group_error(0.2) + 1e-12
        low, _high = filled.coverage(0.8, 0.2)
        assert proof.coverage(0.8, 0.2)[0] <= low + 1e-12
    assert certify_link(u, LINK, lost=np.zeros(1000), bound=bound).group_error(0.2) == certify_link(
        u, LINK, bound=bound
    ).group_error(0.2)


def test_a_hurdle_of_times_separates_the_event_from_its_time() -> None:
    rate, z, event, entry = exponential_times(3000, 13)
    served = curves(rate, 2.0).randomized(0.12, random_state=1)
    proof = certify(
        served,
        y=z,
        event=event,
        horizon=2.0,
        entered=entry,
        groups={"a": rate > 0.5},
        random_state=0,
    )
    assert isinstance(proof, HurdleCertificate)
    assert proof.follow_up is not None
    found = proof.follow_up
    assert proof.n_positive == found.n_events
    assert proof.positive.n_samples == found.n_events + found.n_lost
    assert proof.events is not None
    assert proof.events.n_lost == found.n_lost
    errors = proof.positive.evidence.errors.values
    assert (errors == 0.5).sum() >= found.n_lost
    assert proof.named("a") < 0.5
    assert "the event by 2" in proof.summary()
    with pytest.raises(InputError, match="watch named groups"):
        proof.promise(0.2)


def test_forecasts_with_another_horizon_are_refused() -> None:
    rate, z, event, _ = exponential_times(500, 14)
    with pytest.raises(InputError, match="the horizon of the forecasts"):
        certify(curves(rate, 2.0), y=z, event=event, horizon=1.0, random_state=0)


def test_several_rows_of_a_person_count_once() -> None:
    rate, z, event, entry = exponential_times(900, 15)
    person = np.repeat(np.arange(300), 3)
    for horizon in (None, 2.0):
        forecast = curves(rate, horizon)
        proof = certify(
            forecast, y=z, event=event, horizon=2.0, entered=entry, cluster=person, random_state=0
        )
        found = proof.follow_up
        assert found is not None
        assert proof.one_row_each
        assert proof.n_samples + found.n_left_out == 300


def test_pits_must_be_those_of_the_times() -> None:
    times = CensoredTimes.of([1.0, 2.0], [1, 0])
    with pytest.raises(InputError, match="one time per person"):
        certify_times(PITs([0.5]), times)
