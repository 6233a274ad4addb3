"""One band for every link: against the direct bound, and in worlds whose truth is known.

Random checks are seeded. Counts of broken certificates are compared with their exact binomial
distribution at 1e-6, the false-alarm rate of one check with a fresh seed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from evenhand import InputError
from evenhand.calibration import SurvivalBand, cvar, local_levels_band
from evenhand.certificates import LEAST_ALPHA, certify_link
from evenhand.certificates.link_evidence import approximate_errors
from evenhand.draws import jittered
from evenhand.links import LINKS, Entropic, Gaussian, Laplace, Link
from repeats import most_failures, repeats, statistical

EVERY_LINK = pytest.mark.parametrize("family", LINKS.values())


def scores(shift: float, scale: float, n: int = 4001) -> Any:
    """PITs of a normal forecaster that is off by `shift` and `scale`, equally likely ones."""
    return ndtr(shift + scale * ndtri((np.arange(n) + 0.5) / n))


@pytest.mark.parametrize(
    ("family", "alpha"), [(Laplace, 0.02), (Entropic, 0.1), (Gaussian, 0.5), (Entropic, 1.0)]
)
def test_the_bound_is_that_of_the_errors_themselves(family: type[Link], alpha: float) -> None:
    # equal local levels know ranks alone, so an increasing function of the distance has the same
    # band
    u = np.random.default_rng(0).beta(0.8, 1.1, size=300)
    proof, link = certify_link(u, family(alpha), confidence=0.9), family(alpha)
    direct = local_levels_band(link.pathwise_error(u), 0.5, 0.9)
    least = float(link.pathwise_error(0.5))
    for mass in (0.05, 0.2, 1.0):
        # below the least error that a link allows nothing is left to chance
        bound = direct.cvar(mass)
        assert proof.group_error(mass) >= cvar(link.pathwise_error(u), mass)
        assert proof.group_error(mass) == pytest.approx(bound, abs=2e-3 + least / 300)


# brute force: people at 501 distances from the middle, each under 4000 draws
FINELY = np.linspace(0, 0.5, 501)
DRAWS = (np.arange(4000) + 0.5) / 4000


@lru_cache(maxsize=1)
def finely_randomized(family: type[Link], alpha: float) -> np.ndarray:
    """Randomized PITs of people at the distances `FINELY` above the middle, under `DRAWS`."""
    return family(alpha).ppf(0.5 + FINELY[:, None], DRAWS)


def share_missed(pit: np.ndarray, level: float) -> np.ndarray:
    """Share of draws under which the central interval misses, for each person."""
    return ((pit < (1 - level) / 2) | (pit > (1 + level) / 2)).mean(axis=-1)


def missed_at(link: Link, u: np.ndarray, level: float, n_draws: int) -> np.ndarray:
    """Probability over draws that the central interval misses, from the randomized PITs."""
    return share_missed(link.ppf(u[:, None], (np.arange(n_draws) + 0.5) / n_draws), level)


@pytest.mark.parametrize(
    ("family", "alpha", "level"),
    [(Entropic, 0.02, 0.8), (Laplace, 0.05, 0.8), (Gaussian, 0.1, 0.5), (Laplace, 0.3, 0.95)],
)
def test_coverage_takes_the_largest_probability_of_a_miss_up_to_each_distance(
    family: type[Link], alpha: float, level: float
) -> None:
    # steps far apart, between which the probability of a miss rises and falls
    u = np.concatenate([np.full(300, 0.5), np.full(60, 0.8), np.full(40, 0.999)])
    proof = certify_link(u, family(alpha))
    missed = share_missed(finely_randomized(family, alpha), level)
    for mass in (0.1, 0.3, 1.0):
        low, high = proof.coverage(level, mass)
        # the worst distribution that the band allows: people at any distance up to where each step
        # ends
        worst = np.array(
            [missed[start + 1e-12 >= FINELY].max() for start in proof.evidence.distances.starts]
        )
        steps = SurvivalBand(
            np.append(0.0, worst), np.append(1.0, proof.evidence.distances.upper), 1.0
        )
        # one cell is added, one more may be lost, and what changes between two of the grid's 257
        # points
        assert 0 <= 1 - steps.cvar(mass) - low < 2 / 512 + 0.008
        assert 0 <= high - (1 - missed.min()) < 2 / 512 + 0.06


def test_the_probability_of_a_miss_is_not_monotone_in_the_distance() -> None:
    # the reason for the running maximum: read where the band steps alone, people between would be
    # bounded too low
    missed = missed_at(Entropic(0.1), 0.5 + np.linspace(0, 0.5, 101), 0.5, 4000)
    assert (np.maximum.accumulate(missed) - missed).max() > 0.05


@EVERY_LINK
def test_coverage_bounds_enclose_and_are_near_that_of_groups(family: type[Link]) -> None:
    link, rng = family(0.12), np.random.default_rng(1)
    u = rng.uniform(size=4000)
    pit = link.ppf(u[:, None], jittered(4000, 64, rng))
    missed = ((pit < 0.1) | (pit > 0.9)).mean(axis=-1)
    sides = missed_at(link, u, 0.8, 400)
    # the sharp certificate adds up two bands, one for each tail
    for bound, slack in (("pathwise", 0.06), ("sharp", 0.08)):
        proof = certify_link(u, link, bound=bound)
        for mass in (0.1, 0.2, 0.5, 1.0):
            low, high = proof.coverage(0.8, mass)
            assert 0 < 1 - cvar(missed, mass) - low < slack
            assert low < 1 - cvar(sides, mass)
            assert high > 1 + cvar(-sides, mass)


def far_at(link: Link, u: np.ndarray, error: float, n_draws: int = 4000) -> np.ndarray:
    """Probability over draws that the randomized PIT is at least `error` from the draw."""
    r = (np.arange(n_draws) + 0.5) / n_draws
    return (np.abs(link.ppf(u[:, None], r) - r) >= error).mean(axis=-1)


@pytest.mark.parametrize(
    ("family", "alpha", "error"),
    [(Gaussian, 0.02, 0.1), (Laplace, 0.1, 0.05), (Entropic, 0.3, 0.2), (Laplace, 1.0, 0.3)],
)
def test_mpaic_takes_the_largest_probability_up_to_each_distance(
    family: type[Link], alpha: float, error: float
) -> None:
    # steps far apart, as for the coverage
    u = np.concatenate([np.full(300, 0.5), np.full(60, 0.8), np.full(40, 0.999)])
    proof, link = certify_link(u, family(alpha)), family(alpha)
    distance = np.abs(finely_randomized(family, alpha) - DRAWS)
    far = (distance >= error).mean(axis=-1)
    # PITs below the middle are as far from the draw as those above
    np.testing.assert_allclose(far_at(link, 0.5 - FINELY[::25], error), far[::25], atol=2 / 4000)
    worst = np.array(
        [far[start + 1e-12 >= FINELY].max() for start in proof.evidence.distances.starts]
    )
    steps = SurvivalBand(np.append(0.0, worst), np.append(1.0, proof.evidence.distances.upper), 1.0)
    # the brute force is exact to 1 of 4000 draws at each end of both kinds; on a cell of 512 the
    # threshold and the draw move by a cell each
    slack = (distance >= error - 3 / 512).mean(axis=-1) - far
    assert -4 / 4000 <= proof.mpaic(error) - steps.cvar(1.0) < slack.max() + 4 / 512


@EVERY_LINK
def test_mpaic_of_a_link_bounds_the_true_one_and_comes_near(family: type[Link]) -> None:
    link = family(0.12)
    u = np.random.default_rng(1).uniform(size=4000)
    proof = certify_link(u, link)
    for error in (0.05, 0.15, 0.3):
        true = far_at(link, scores(0, 1, 2000), error, 400).mean()
        assert true < proof.mpaic(error) < true + 0.07
    assert proof.mpaic(0.0) == 1.0
    assert proof.mpaic(1.0) < 2 / 512  # a cell of draws at either end
    with pytest.raises(InputError, match="0 <= error <= 1"):
        proof.mpaic(1.5)


@statistical
def test_the_bound_on_mpaic_fails_in_at_most_one_data_set_of_twenty() -> None:
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


WORLDS = [(0.0, 1.0), (0.4, 1.0), (0.0, 1.5), (0.2, 0.7)]


@statistical
def test_the_least_alpha_of_the_same_rows_is_broken_in_at_most_one_data_set_of_twenty() -> None:
    # 2,080 data sets in all: of 30 alphas the largest is taken whose bound meets the target, and
    # held against the truth
    rng, n_sets, target, mass = np.random.default_rng(2), repeats(260), 0.33, 0.2
    at = 0.5 * np.sin(np.linspace(0, np.pi / 2, 200))
    broken = dict.fromkeys(
        ((world, family) for world in WORLDS for family in (Laplace, Gaussian)), 0
    )
    for family in (Laplace, Gaussian):
        links = [family(alpha) for alpha in np.geomspace(0.02, 1.0, 30)]
        tables = [link.pathwise_error(0.5 + at) for link in links]
        for shift, scale in WORLDS:
            truth = np.abs(scores(shift, scale) - 0.5)
            true = np.array([cvar(np.interp(truth, at, table), mass) for table in tables])
            for k in range(n_sets):
                u = ndtr(shift + scale * rng.normal(size=(60, 100, 400, 1000)[k % 4]))
                band = certify_link(u, links[0], bound="pathwise").evidence.distances
                bounds = np.array(
                    [
                        SurvivalBand(
                            np.append(0, np.interp(band.starts, at, t)),
                            np.append(1, band.upper),
                            0.5,
                        ).cvar(mass)
                        for t in tables
                    ]
                )
                chosen = np.flatnonzero(bounds <= target)
                broken[(shift, scale), family] += int(chosen.size > 0 and true[chosen[-1]] > target)
    assert max(broken.values()) <= most_failures(n_sets), broken
    assert sum(broken.values()) <= most_failures(n_sets * len(broken)), broken


@statistical
@pytest.mark.parametrize("family", [Laplace, Gaussian])
def test_what_is_chosen_meets_the_target_in_truth_too(family: type[Link]) -> None:
    # a false alarm needs the band to fail: once in 20, and the target to be missed by more than the
    # band's slack
    rng, broken, times = np.random.default_rng(3), 0, repeats(5)
    for shift, scale in WORLDS * times:
        least = certify_link(
            ndtr(shift + scale * rng.normal(size=300)), family(0.1), bound="pathwise"
        ).least_randomized(0.35, 0.2)
        assert least.group_error(0.2) <= 0.35
        broken += cvar(least.link.pathwise_error(scores(shift, scale)), 0.2) > 0.35
    assert broken <= most_failures(len(WORLDS) * times, false_alarm=1e-4)


def test_the_bound_itself_decides_on_the_least_randomization(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the search reads errors from a table; were the table too low, the target would be missed
    monkeypatch.setattr(
        "evenhand.certificates.link_evidence.approximate_errors",
        lambda link, at: 0.97 * approximate_errors(link, at),
    )
    u = np.random.default_rng(3).uniform(size=1500)
    least = certify_link(u, Laplace(0.1), bound="pathwise").least_randomized(0.3, 0.2)
    assert 0.29 < least.group_error(0.2) <= 0.3


@pytest.mark.parametrize(
    ("family", "target", "mass", "scale"),
    [
        (Laplace, 0.15, 0.2, 2),
        (Entropic, 0.3, 0.2, 2),
        (Gaussian, 0.47, 0.2, 2),
        (Entropic, 0.1, 1.0, 2),
        (Laplace, 0.3, 0.2, 1),
        (Entropic, 0.3, 0.2, 1),
        (Gaussian, 0.3, 0.2, 1),
    ],
)
def test_no_less_randomization_meets_the_target(
    family: type[Link], target: float, mass: float, scale: float
) -> None:
    # scale 2: intervals of half the width, PITs down to 1e-13
    u = ndtr(scale * np.random.default_rng(9).normal(size=1500))
    proof = certify_link(u, family(0.1), bound="pathwise")
    least = proof.least_randomized(target, mass)
    assert least.group_error(mass) <= target
    assert proof.with_link(family(1.01 * least.link.alpha)).group_error(mass) > target
    # the price of proof: a calibrated base of endless rows could do with the alpha of the links'
    # own table
    assert scale > 1 or family(least.link.alpha).pathwise_cvar(mass) < target


@pytest.mark.parametrize(("family", "mass"), [(Laplace, 0.1), (Entropic, 0.3), (Gaussian, 1.0)])
def test_a_bound_hangs_on_all_steps_that_can_matter(family: type[Link], mass: float) -> None:
    proof = certify_link(np.random.default_rng(11).beta(0.5, 0.7, size=300), family(0.07))
    band = proof.evidence.distances
    whole = SurvivalBand(
        np.append(0.0, family(0.07).pathwise_error(0.5 + band.starts)),
        np.append(1.0, band.upper),
        0.5,
    )
    assert proof.group_error(mass) == pytest.approx(whole.cvar(mass), rel=1e-12)


@pytest.mark.parametrize(("family", "alpha"), [(Laplace, 0.006), (Entropic, 0.05), (Gaussian, 0.3)])
def test_errors_between_knots_are_those_of_the_link(family: type[Link], alpha: float) -> None:
    rng = np.random.default_rng(12)
    uniform, narrow = rng.uniform(size=2000), ndtr(2 * rng.normal(size=2000))
    ends = np.repeat([0.0, 1.0, 1e-17, 1e-12], 5)
    for u in (
        uniform,
        narrow,
        rng.choice([0.0, 0.3, 0.5, 1.0], 2000),
        np.append(uniform, ends),
        rng.beta(0.1, 0.1, 999),
    ):
        distances, link = np.abs(u - 0.5), family(alpha)
        gap = np.abs(approximate_errors(link, distances) - link.pathwise_error(0.5 + distances))
        assert gap.max() < 2.5e-3
        assert gap.mean() < 1e-4


def test_a_target_that_needs_no_randomization_gets_none() -> None:
    u = np.full(500, 0.5)  # nobody is far from the middle: the error is 1/4
    assert certify_link(u, Entropic(0.1)).least_randomized(0.3, 0.5).link.alpha == 1.0


def test_the_mean_error_is_that_of_the_people() -> None:
    family = Entropic
    u = np.random.default_rng(0).beta(2, 1, size=500)
    assert certify_link(u, family(0.1)).mean_error() == pytest.approx(
        family(0.1).pathwise_error(u).mean(), abs=1e-12
    )
    # of many people, as many ranks as are looked at; PITs of just 0 and 1 among them
    many = np.concatenate(
        [np.random.default_rng(1).beta(0.3, 0.3, size=6_000), np.repeat([0.0, 1.0], 100)]
    )
    exact = family(0.1).pathwise_error(many).mean()
    assert certify_link(many, family(0.1)).mean_error() == pytest.approx(exact, abs=5e-5)


def test_too_few_rows_give_the_number_needed() -> None:
    u = np.random.default_rng(4).uniform(size=40)
    proof = certify_link(u, Laplace(0.1))
    with pytest.raises(
        InputError, match=r"cannot be certified for groups of 20% of people on 40 rows: about"
    ) as caught:
        proof.least_randomized(0.15, 0.2, certify_share=0.3)
    needed, in_all, share, price = (
        float(number.replace(",", ""))
        for number in re.findall(
            r"about (\S+) certification rows .*\((\S+) in all if (\S+)% of them certify\), at a"
            r" price of (\S+) nats",
            str(caught.value),
        )[0]
    )
    assert needed > 40
    assert share == 30
    assert needed / 0.3 <= in_all <= 1.1 * needed / 0.3
    # nine times in ten: 60 data sets of that size, refused fewer times than one in a million would
    # be
    rng, found = np.random.default_rng(5), []
    for _ in range(60):
        more = certify_link(rng.uniform(size=int(needed)), Laplace(LEAST_ALPHA))
        if more.group_error(0.2) <= 0.15:
            found.append(more.least_randomized(0.15, 0.2).link)
    assert len(found) >= stats.binom.ppf(1e-6, 60, 0.9)
    # what a calibrated forecaster pays for those links: at the edge of what can be done, it is dear
    assert price == pytest.approx(np.median([link.price for link in found]), abs=0.5)
    assert price > 2


@pytest.mark.parametrize("n", [39, 400])
def test_no_fewer_rows_are_asked_for_than_there_are(n: int) -> None:
    u = np.random.default_rng(n).uniform(size=n)
    proof = certify_link(u, Entropic(LEAST_ALPHA))
    # just below what these rows can prove
    with pytest.raises(InputError) as caught:
        proof.least_randomized(0.99 * proof.group_error(0.2), 0.2)
    assert int(str(caught.value).partition(": about ")[2].partition(" certification")[0]) > n


def test_a_model_that_is_far_off_needs_recalibration() -> None:
    u = np.random.default_rng(6).choice([0.0, 1.0, 0.5], size=500)
    with pytest.raises(InputError, match=r"nor on 200,000 .*recalibrate=True"):
        certify_link(u, Gaussian(0.1)).least_randomized(0.3, 0.2)


def test_a_group_smaller_than_any_share_that_is_bounded_may_be_as_wrong_as_can_be() -> None:
    # one value's bound is 0.95 for all masses below
    proof = certify_link([0.1], Entropic(0.1))
    assert proof.group_error(0.01) == 0.5
    with pytest.raises(
        InputError, match=r"cannot be certified for groups of 1% of people on 1 rows"
    ):
        proof.least_randomized(0.3, 0.01)


def test_people_with_several_rows_count_once() -> None:
    u = np.random.default_rng(7).uniform(size=50)
    proof = certify_link(
        np.repeat(u, 3), Entropic(0.1), cluster=np.repeat(np.arange(50), 3), random_state=0
    )
    assert proof.n_samples == 50
    assert proof.group_error(0.3) == certify_link(u, Entropic(0.1)).group_error(0.3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: certify_link([[0.1, 0.2]], Entropic(0.1)), "one PIT per row"),
        (lambda: certify_link([0.1, 1.2], Entropic(0.1)), r"pit\[1, 0\] must lie between 0 and 1"),
        (
            lambda: certify_link([0.1], Entropic(0.1)).least_randomized(30, 0.2),
            "give a fraction",
        ),
    ],
)
def test_bad_input_is_one_line(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
