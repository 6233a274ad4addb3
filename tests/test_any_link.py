"""Bounds for every link at once: against brute force, and in worlds whose truth is known."""

from functools import lru_cache

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from complaints import refused
from evenhand.calibration import Cells, SurvivalBand, cvar, local_levels_band
from evenhand.certificates import LinkBounds, certify_link
from evenhand.links import Entropic, Gaussian, Laplace
from repeats import most_failures, repeats, statistical


def scores(shift, scale):
    """PITs of a normal forecaster that is off by `shift` and `scale`, equally likely ones."""
    return ndtr(shift + scale * ndtri((np.arange(4001) + 0.5) / 4001))


def bounds_of(u, link):
    return LinkBounds.of(Cells(u, link=link), 0.95, may_be_unknown=False)


@pytest.mark.parametrize(
    ("family", "alpha"), [(Laplace, 0.02), (Entropic, 0.1), (Gaussian, 0.5), (Entropic, 1.0)]
)
def test_where_pits_may_be_unknown_both_bounds_share_the_risk(family, alpha):
    rng, link = np.random.default_rng(0), family(alpha)
    u, lost = rng.beta(0.8, 1.1, size=300), rng.random(300) < 0.1
    proof = certify_link(u, link, lost=lost, confidence=0.9)
    cells = Cells(np.where(lost, 0.0, u), np.where(lost, 1.0, u), reading=lost, link=link)
    ordered = LinkBounds.of(cells, 1 - 0.1 * 0.9, may_be_unknown=False)
    # equal local levels know ranks alone: errors have the band of distances from the middle
    errors = link.pathwise_error(np.where(lost, 1.0, u))
    norm = local_levels_band(errors, 0.5, 1 - 0.1 * 0.1)
    for mass in (0.05, 0.2, 0.6, 1.0):
        both = ordered.group_error(link, mass), norm.cvar(mass)
        # below the least error that a link allows nothing is left to chance
        least = float(link.pathwise_error(0.5))
        assert proof.group_error(mass) == pytest.approx(min(both), abs=2e-3 + least / 300)


# brute force: people at 501 distances from the middle, each under 4000 draws
FINELY = np.linspace(0, 0.5, 501)
DRAWS = (np.arange(4000) + 0.5) / 4000


@lru_cache(maxsize=1)
def finely_randomized(family, alpha):
    """Randomized PITs of people at the distances `FINELY` above the middle, under `DRAWS`."""
    return family(alpha).ppf(0.5 + FINELY[:, None], DRAWS)


def share_missed(pit, level):
    return ((pit < (1 - level) / 2) | (pit > (1 + level) / 2)).mean(axis=-1)


def worst_up_to_each_step(values, band):
    """Worst distribution that a band allows: people at any distance up to where each step ends."""
    worst = [values[start + 1e-12 >= FINELY].max() for start in band.starts]
    return SurvivalBand(np.append(0.0, worst), np.append(1.0, band.upper), 1.0)


@pytest.mark.parametrize(
    ("family", "alpha", "level"),
    [(Entropic, 0.02, 0.8), (Laplace, 0.05, 0.8), (Gaussian, 0.1, 0.5), (Laplace, 0.3, 0.95)],
)
def test_coverage_takes_the_largest_probability_of_a_miss_up_to_each_distance(family, alpha, level):
    # steps far apart, between which the probability of a miss rises and falls
    u = np.concatenate([np.full(300, 0.5), np.full(60, 0.8), np.full(40, 0.999)])
    link = family(alpha)
    bounds = bounds_of(u, link)
    missed = share_missed(link.ppf(u[:, None], DRAWS), level)
    steps = worst_up_to_each_step(
        share_missed(finely_randomized(family, alpha), level), bounds.bands.distance_band()
    )
    for mass in (0.1, 0.3, 1.0):
        low, high = bounds.coverage(link, level, mass)
        # one cell is added, one may be lost, and what changes between two of 257 points
        assert 0 <= 1 - steps.cvar(mass) - low < 2 / 512 + 0.008
        assert high >= cvar(1 - missed, mass)


def far_at(link, u, error):
    return (np.abs(link.ppf(u[:, None], DRAWS) - DRAWS) >= error).mean(axis=-1)


@pytest.mark.parametrize(
    ("family", "alpha", "error"),
    [(Gaussian, 0.02, 0.1), (Laplace, 0.1, 0.05), (Entropic, 0.3, 0.2), (Laplace, 1.0, 0.3)],
)
def test_mpaic_takes_the_largest_probability_up_to_each_distance(family, alpha, error):
    # steps far apart, as for the coverage
    u = np.concatenate([np.full(300, 0.5), np.full(60, 0.8), np.full(40, 0.999)])
    link = family(alpha)
    bounds = bounds_of(u, link)
    distance = np.abs(finely_randomized(family, alpha) - DRAWS)
    far = (distance >= error).mean(axis=-1)
    # PITs below the middle are as far from the draw as those above
    np.testing.assert_allclose(far_at(link, 0.5 - FINELY[::25], error), far[::25], atol=2 / 4000)
    steps = worst_up_to_each_step(far, bounds.bands.distance_band())
    # exact to 1 of 4000 draws at each end; of 512 cells, threshold and draw move by one each
    slack = (distance >= error - 3 / 512).mean(axis=-1) - far
    assert -4 / 4000 <= bounds.mpaic(link, error) - steps.cvar(1.0) < slack.max() + 4 / 512


@statistical
def test_the_bound_on_mpaic_fails_in_at_most_one_data_set_of_twenty():
    link, rng, n_sets = Laplace(0.12), np.random.default_rng(4), repeats(200)
    at = np.linspace(0, 0.5, 200)
    for shift, scale in ((0.0, 1.0), (0.4, 1.0)):
        distances = np.abs(scores(shift, scale) - 0.5)
        true = np.interp(distances, at, far_at(link, 0.5 + at, 0.15)).mean()
        broken = sum(
            certify_link(ndtr(shift + scale * rng.normal(size=100)), link).mpaic(0.15) < true - 1e-3
            for _ in range(n_sets)
        )
        assert broken <= most_failures(n_sets)


def test_the_mean_error_is_that_of_the_people():
    family = Entropic
    u = np.random.default_rng(0).beta(2, 1, size=500)
    expected = family(0.1).pathwise_error(u).mean()
    assert certify_link(u, family(0.1)).mean_error() == pytest.approx(expected, abs=1e-12)
    # of many people, as many ranks as are looked at; PITs of just 0 and 1 among them
    many = np.concatenate(
        [np.random.default_rng(1).beta(0.3, 0.3, size=6_000), np.repeat([0.0, 1.0], 100)]
    )
    exact = family(0.1).pathwise_error(many).mean()
    assert certify_link(many, family(0.1)).mean_error() == pytest.approx(exact, abs=5e-5)


def test_people_with_several_rows_count_once():
    u = np.random.default_rng(7).uniform(size=50)
    person = np.repeat(np.arange(50), 3)
    proof = certify_link(np.repeat(u, 3), Entropic(0.1), person=person, random_state=0)
    assert proof.n_samples == 50
    assert proof.group_error(0.3) == certify_link(u, Entropic(0.1)).group_error(0.3)


def test_bad_input_is_one_line():
    link = Entropic(0.1)
    refused("pit must be those of forecasts without a draw", certify_link, [[0.1, 0.2]], link)
    refused(r"pit\[1, 0\] must lie between 0 and 1", certify_link, [0.1, 1.2], link)
    both = [0.1, 0.2], [0.1, 0.4]
    refused("must be PITs of continuous outcomes", certify_link, both, link)
    weighted = Cells([0.1, 0.2], weights=[1, 2])
    refused("certificates do not accept weights", certify_link, weighted, link)
