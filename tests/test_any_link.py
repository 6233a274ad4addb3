"""One band for every link: against the direct bound, and in worlds whose truth is known.

Random checks are seeded. Counts of broken certificates are compared with their exact binomial law at 1e-6, the
false-alarm rate of one check with a fresh seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from evenhand import InputError
from evenhand.calibration.any_link import LEAST_ALPHA, _errors_at, certify_link
from evenhand.calibration.bands import SurvivalBand, cvar, local_levels_band
from evenhand.draws import jittered
from evenhand.links import LINKS, Entropic, Gaussian, Laplace, Link

EVERY_LINK = pytest.mark.parametrize("family", LINKS.values())


def scores(shift: float, scale: float, n: int = 4001) -> Any:
    """PITs of a normal forecaster that is off by `shift` and `scale`, equally likely ones."""
    return ndtr(shift + scale * ndtri((np.arange(n) + 0.5) / n))


@EVERY_LINK
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5, 1.0])
def test_the_bound_is_that_of_the_errors_themselves(family: type[Link], alpha: float) -> None:
    # equal local levels know ranks alone, so an increasing function of the distance has the same band
    u = np.random.default_rng(0).beta(0.8, 1.1, size=300)
    proof, link = certify_link(u, family(alpha), confidence=0.9), family(alpha)
    direct = local_levels_band(link.pathwise_error(u), 0.5, 0.9)
    least = float(link.pathwise_error(0.5))
    for mass in (0.05, 0.2, 1.0):
        # below the least error that a link allows nothing is left to chance
        bound = direct.cvar(mass)
        assert proof.group_error(mass) >= cvar(link.pathwise_error(u), mass)
        assert proof.group_error(mass) == pytest.approx(bound, abs=2e-3 + least / 300)


@EVERY_LINK
def test_the_error_grows_with_the_distance_and_so_do_misses(family: type[Link]) -> None:
    distances = np.linspace(0, 0.5, 101)
    for alpha in (0.01, 0.05, 0.2, 0.6, 1.0):
        link = family(alpha)
        errors = link.pathwise_error(0.5 + distances)
        assert (np.diff(errors) >= -1e-9).all()
        misses = certify_link([0.5], link)._missed(distances, 0.8)
        # averaged over 512 draws: each side may step back by a cell or two
        assert (np.diff(misses) >= -4 / 512).all()


@EVERY_LINK
def test_coverage_is_at_most_that_of_the_worst_groups(family: type[Link]) -> None:
    link, rng = family(0.12), np.random.default_rng(1)
    u = rng.uniform(size=4000)
    pit = link.ppf(u[:, None], jittered(4000, 64, rng))
    missed = ((pit < 0.1) | (pit > 0.9)).mean(axis=-1)
    proof = certify_link(u, link)
    for mass in (0.1, 0.2, 0.5, 1.0):
        assert 0 < 1 - cvar(missed, mass) - proof.coverage(0.8, mass) < 0.06


WORLDS = [(0.0, 1.0), (0.4, 1.0), (0.0, 1.5), (0.2, 0.7)]


def test_the_least_alpha_of_the_same_rows_is_broken_in_at_most_one_data_set_of_twenty() -> None:
    # 2,080 data sets: of 30 alphas the largest is taken whose bound meets the target, and held against the truth
    rng, n_sets, target, mass = np.random.default_rng(2), 260, 0.33, 0.2
    at = 0.5 * np.sin(np.linspace(0, np.pi / 2, 200))
    broken = dict.fromkeys(((world, family) for world in WORLDS for family in (Laplace, Gaussian)), 0)
    for family in (Laplace, Gaussian):
        links = [family(alpha) for alpha in np.geomspace(0.02, 1.0, 30)]
        tables = [link.pathwise_error(0.5 + at) for link in links]
        for shift, scale in WORLDS:
            truth = np.abs(scores(shift, scale) - 0.5)
            true = np.array([cvar(np.interp(truth, at, table), mass) for table in tables])
            for k in range(n_sets):
                u = ndtr(shift + scale * rng.normal(size=(60, 100, 400, 1000)[k % 4]))
                band = certify_link(u, links[0]).band
                bounds = np.array(
                    [
                        SurvivalBand(np.append(0, np.interp(band.starts, at, t)), np.append(1, band.upper), 0.5).cvar(
                            mass
                        )
                        for t in tables
                    ]
                )
                chosen = np.flatnonzero(bounds <= target)
                broken[(shift, scale), family] += int(chosen.size > 0 and true[chosen[-1]] > target)
    assert max(broken.values()) <= stats.binom.isf(1e-6, n_sets, 0.05), broken
    assert sum(broken.values()) <= stats.binom.isf(1e-6, n_sets * len(broken), 0.05), broken


@pytest.mark.parametrize("family", [Laplace, Gaussian])
def test_what_is_chosen_meets_the_target_in_truth_too(family: type[Link]) -> None:
    # a false alarm needs the band to fail: once in 20, and the target to be missed by more than the band's slack
    rng, broken = np.random.default_rng(3), 0
    for shift, scale in WORLDS * 5:
        least = certify_link(ndtr(shift + scale * rng.normal(size=300)), family(0.1)).least_randomized(0.35, 0.2)
        assert least.group_error(0.2) <= 0.35
        broken += cvar(least.link.pathwise_error(scores(shift, scale)), 0.2) > 0.35
    assert broken <= stats.binom.isf(1e-4, 20, 0.05)


@EVERY_LINK
def test_no_less_randomization_meets_the_target(family: type[Link]) -> None:
    u = np.random.default_rng(3).uniform(size=1500)
    proof = certify_link(u, family(0.1))
    least = proof.least_randomized(0.3, 0.2)
    assert 0.295 < least.group_error(0.2) <= 0.3
    assert proof.with_link(family(1.02 * least.link.alpha)).group_error(0.2) > 0.3
    # the price of proof: a calibrated base of endless rows could do with the alpha of the links' own table
    assert family(least.link.alpha).group_error(0.2) < 0.3


@EVERY_LINK
@pytest.mark.parametrize(("target", "mass"), [(0.15, 0.2), (0.3, 0.2), (0.47, 0.2), (0.1, 1.0)])
def test_no_less_randomization_meets_the_target_around_a_base_that_is_far_off(
    family: type[Link], target: float, mass: float
) -> None:
    # intervals of half the width: PITs down to 1e-13
    proof = certify_link(ndtr(2 * np.random.default_rng(9).normal(size=1500)), family(0.1))
    least = proof.least_randomized(target, mass)
    assert least.group_error(mass) <= target
    assert proof.with_link(family(1.01 * least.link.alpha)).group_error(mass) > target


@EVERY_LINK
@pytest.mark.parametrize("mass", [0.1, 0.3, 1.0])
def test_a_bound_hangs_on_all_steps_that_can_matter(family: type[Link], mass: float) -> None:
    proof = certify_link(np.random.default_rng(11).beta(0.5, 0.7, size=300), family(0.07))
    band = proof.band
    whole = SurvivalBand(
        np.append(0.0, family(0.07).pathwise_error(0.5 + band.starts)), np.append(1.0, band.upper), 0.5
    )
    assert proof.group_error(mass) == pytest.approx(whole.cvar(mass), rel=1e-12)


@EVERY_LINK
@pytest.mark.parametrize("alpha", [0.006, 0.05, 0.3])
def test_errors_between_knots_are_those_of_the_link(family: type[Link], alpha: float) -> None:
    rng = np.random.default_rng(12)
    for u in (rng.uniform(size=2000), ndtr(2 * rng.normal(size=2000)), rng.choice([0.0, 0.3, 0.5, 1.0], 2000)):
        distances, link = np.abs(u - 0.5), family(alpha)
        gap = np.abs(_errors_at(link, distances) - link.pathwise_error(u))
        assert gap.max() < 1e-3
        assert gap.mean() < 1e-4


def test_a_target_that_needs_no_randomization_gets_none() -> None:
    u = np.full(500, 0.5)  # nobody is far from the middle: the error is 1/4
    assert certify_link(u, Entropic(0.1)).least_randomized(0.3, 0.5).link.alpha == 1.0


@EVERY_LINK
def test_the_mean_error_is_that_of_the_people(family: type[Link]) -> None:
    u = np.random.default_rng(0).beta(2, 1, size=500)
    assert certify_link(u, family(0.1)).mean_error() == pytest.approx(family(0.1).pathwise_error(u).mean(), abs=1e-4)


def test_too_few_rows_say_how_many_it_takes() -> None:
    u = np.random.default_rng(4).uniform(size=40)
    proof = certify_link(u, Laplace(0.1))
    with pytest.raises(InputError, match=r"cannot be certified for mass 0\.2 on 40 rows: it takes about") as caught:
        proof.least_randomized(0.15, 0.2)
    needed = int(str(caught.value).partition("about ")[2].partition(" certifying")[0].replace(",", ""))
    more = np.random.default_rng(5).uniform(size=2 * needed)
    assert certify_link(more, Laplace(0.1)).least_randomized(0.15, 0.2).link.alpha >= LEAST_ALPHA
    assert needed > 40


def test_a_model_that_is_far_off_is_to_be_mended_first() -> None:
    u = np.random.default_rng(6).choice([0.0, 1.0, 0.5], size=500)
    with pytest.raises(InputError, match=r"nor on 200,000 of the kind: .*recalibrate=True"):
        certify_link(u, Gaussian(0.1)).least_randomized(0.3, 0.2)


def test_a_group_smaller_than_any_share_that_is_bounded_may_be_as_wrong_as_can_be() -> None:
    # one value's bound is 0.95 for all masses below
    proof = certify_link([0.1], Entropic(0.1))
    assert proof.group_error(0.01) == 0.5
    with pytest.raises(InputError, match=r"cannot be certified for mass 0\.01 on 1 rows"):
        proof.least_randomized(0.3, 0.01)


def test_people_with_several_rows_count_once() -> None:
    u = np.random.default_rng(7).uniform(size=50)
    proof = certify_link(np.repeat(u, 3), Entropic(0.1), cluster=np.repeat(np.arange(50), 3), random_state=0)
    assert proof.n_samples == 50
    assert proof.group_error(0.3) == certify_link(u, Entropic(0.1)).group_error(0.3)


def test_the_summary_says_what_is_proven_and_what_not() -> None:
    proof = certify_link(np.random.default_rng(8).uniform(size=400), Entropic(0.1), confidence=0.975)
    text = proof.summary()
    assert "With 97.5% confidence, from 400 people" in text
    for part in (*proof.assumptions, *proof.not_covered):
        assert part in text
    assert list(proof.table()["mass"]) == [0.1, 0.2, 0.5, 1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: certify_link([[0.1, 0.2]], Entropic(0.1)), "one PIT per row"),
        (lambda: certify_link([0.1, 1.2], Entropic(0.1)), r"pit\[1, 0\] must lie between 0 and 1"),
        (lambda: certify_link([0.1, 0.2], Entropic(0.1), confidence=95), "fractions everywhere"),
        (lambda: certify_link([0.1], Entropic(0.1)).group_error(0), "0 < mass <= 1"),
        (lambda: certify_link([0.1], Entropic(0.1)).coverage(80, 0.2), "0 < level < 1"),
        (lambda: certify_link([0.1], Entropic(0.1)).least_randomized(30, 0.2), "fractions everywhere"),
    ],
)
def test_bad_input_is_one_line(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
