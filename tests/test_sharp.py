"""The sharp certificate of links: bands, sign changes, the rule for few rows (method, 11)."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.random import Generator
from scipy.special import ndtr

from evenhand import InputError
from evenhand.calibration import PIT_BINS, CDFBand, CDFBands
from evenhand.certificates import certify_link, certify_link_counts, choose_bound
from evenhand.certificates.link_evidence import Contraction, pointwise_bound
from evenhand.links import Entropic, Gaussian, Laplace, Link

MASSES = (0.05, 0.1, 0.2, 0.5, 0.8, 1.0)


def evenly_spread(n: int) -> np.ndarray:
    return (np.arange(n) + 0.5) / n


# method.md, 11, check values: largest error of a one-tailed group, and the programme with 200 cells
@pytest.mark.parametrize(
    ("n", "mass", "one_tailed", "programme"),
    [
        (500, 0.1, 0.314, 0.316),
        (500, 0.5, 0.132, 0.133),
        (2000, 0.2, 0.204, 0.206),
        (10_000, 0.2, 0.189, 0.191),
    ],
)
def test_bounds_of_evenly_spread_pits(
    n: int, mass: float, one_tailed: float, programme: float
) -> None:
    proof = certify_link(evenly_spread(n), Entropic(0.1), bound="sharp")
    assert one_tailed - 1e-3 < proof.group_error(mass) < programme
    assert proof.group_error(mass) < certify_link(
        evenly_spread(n), Entropic(0.1), bound="pathwise"
    ).group_error(mass)


@pytest.mark.parametrize("link", [Entropic(0.1), Gaussian(0.3), Entropic(0.02)])
def test_bounds_of_many_rows_approach_the_population(link: Link) -> None:
    proof = certify_link(evenly_spread(100_000), link, bound="sharp")
    for mass in (0.1, 0.2, 0.5):
        assert 0 < proof.group_error(mass) - link.group_error(mass) < 0.005


class Law:
    """A discrete law of the base's PIT, its bands without width, and groups inside it."""

    def __init__(self, rng: Generator, size: int) -> None:
        self.at = np.sort(
            [
                lambda: rng.uniform(size=size),
                lambda: rng.beta(0.3, 0.3, size=size),
                lambda: rng.beta(3, 1, size=size),
                lambda: np.append(rng.uniform(size=size - 2), [0.0, 1.0]),
                lambda: ndtr(rng.normal(rng.choice([-1.5, 1.5], size), 0.3)),
            ][rng.integers(5)]()
        )
        self.weight = rng.dirichlet(np.full(size, rng.choice([0.5, 5.0])))

    @property
    def bands(self) -> CDFBands:
        def band(at: np.ndarray, weight: np.ndarray) -> CDFBand:
            shares = np.append(0.0, np.minimum(np.cumsum(weight), 1.0))
            return CDFBand.of_ranks(at, shares[:-1])

        return CDFBands(band(self.at, self.weight), band(1 - self.at[::-1], self.weight[::-1]))

    def group(self, rng: Generator, mass: float) -> np.ndarray:
        """Weights of a random group of this mass: people of some stretches of PITs first."""
        order = [
            self.at,
            -self.at,
            np.abs(self.at - rng.uniform()),
            -np.abs(self.at - rng.uniform()),
            np.sin(rng.uniform(3, 15) * self.at + rng.uniform(0, 6)),
        ][rng.integers(5)].argsort()
        taken = np.empty_like(self.weight)
        before = np.cumsum(self.weight[order]) - self.weight[order]
        taken[order] = np.clip(mass - before, 0, self.weight[order])
        return taken / taken.sum()


def contracted(link: Link, at: np.ndarray, weight: np.ndarray) -> float:
    """`integral |F - u| dmu(u)` of a discrete law, exactly between its steps."""
    ends = np.concatenate(([0.0], at, [1.0]))
    shares = np.append(0.0, np.cumsum(weight))
    places = np.stack((ends[:-1], np.clip(shares, ends[:-1], ends[1:]), ends[1:]))
    mu = link.mean_pit(places)
    moment = places * mu - link.mean_pit_integral(places)
    above, below = shares * np.diff(mu, axis=0) - np.diff(moment, axis=0)
    return float((above - below).sum())


def group_error(link: Link, at: np.ndarray, weight: np.ndarray) -> float:
    """The group's error from its served PITs, by brute force over 2,000 draws."""
    draws = evenly_spread(2000)
    served = link.ppf(at[:, None], draws).ravel()
    shares = np.repeat(weight / draws.size, draws.size)
    order = served.argsort()
    c = np.concatenate(([0.0], served[order], [1.0]))
    cdf = np.append(0.0, np.cumsum(shares[order]))
    cut = np.clip(cdf, c[:-1], c[1:])
    return float((((cut - c[:-1]) * (2 * cdf - c[:-1] - cut)) / 2).sum()) + float(
        (((c[1:] - cut) * (c[1:] + cut - 2 * cdf)) / 2).sum()
    )


@pytest.mark.parametrize("link", [Entropic(0.05), Gaussian(0.2), Laplace(0.1)])
def test_no_group_of_a_known_law_is_above_its_bounds(link: Link) -> None:
    rng = np.random.default_rng(0)
    for _ in range(8):
        law = Law(rng, int(rng.integers(3, 30)))
        programme = Contraction.of(link, law.bands)
        for mass in (0.1, 0.3, 0.7):
            bounds = programme.bound(mass), pointwise_bound(link, law.bands, mass)
            for _ in range(4):
                weight = law.group(rng, mass)
                # the programme bounds the integral over the group's own CDF, which bounds its error
                integral = contracted(link, law.at, weight) + link.calibration_error
                error = group_error(link, law.at, weight)
                assert error - 5e-4 < integral < bounds[0] + 1e-9
                assert error - 5e-4 < bounds[1]


def test_the_programme_is_little_above_the_worst_one_tailed_group() -> None:
    rng, link = np.random.default_rng(1), Entropic(0.1)
    for _ in range(10):
        law = Law(rng, 40)
        programme = Contraction.of(link, law.bands)
        for mass in (0.1, 0.3):
            tails = []
            for order in (slice(None), slice(None, None, -1)):
                weight = law.weight[order]
                taken = np.clip(mass - (np.cumsum(weight) - weight), 0, weight)[order]
                tails.append(contracted(link, law.at, taken / taken.sum()))
            assert max(tails) <= programme.bound(mass) + 1e-9
    spread = CDFBand(np.linspace(0, 1, 4001), np.linspace(0, 1, 4001))
    for mass in MASSES[:-1]:
        found = Contraction.of(link, CDFBands(spread, spread)).bound(mass)
        assert link.group_error(mass) - 1e-3 < found < link.group_error(mass) + 2e-3


def test_the_band_of_distances_is_the_sum_of_both_tails() -> None:
    rng = np.random.default_rng(3)
    bands = CDFBands.of(*[np.append(rng.uniform(size=200), [0.0, 0.5, 1.0])] * 2, 0.9)
    band = bands.distance_band()
    for t in rng.uniform(0, 0.5, size=200):
        just = 1e-12
        tails = (
            bands.upper.at(np.array([0.5 - t - just])),
            bands.mirrored.at(np.array([0.5 - t - just])),
        )
        read = band.upper[np.searchsorted(band.starts, t, side="right") - 1]
        assert read == pytest.approx(min(float(tails[0][0] + tails[1][0]), 1.0))


@pytest.mark.parametrize("alpha", [0.06, 0.15, 0.5])
def test_both_ends_of_the_coverage_hold_in_the_groups_that_attain_them(alpha: float) -> None:
    link, u = Entropic(alpha), evenly_spread(20_000)
    proof = certify_link(u, link, bound="sharp")
    share = (np.abs(link.ppf(u[::20, None], evenly_spread(400)) - 0.5) < 0.4).mean(axis=-1)
    rising = np.sort(share)
    for mass in (0.1, 0.2, 0.5, 1.0):
        low, high = proof.coverage(0.8, mass)
        k = round(mass * rising.size)
        # the people covered least often, and those covered most often; evenly spread PITs leave
        # the width of the bands of 20,000 people
        assert -1e-12 < rising[:k].mean() - low < 0.06
        assert -1e-12 < high - rising[-k:].mean() < 0.03


def test_the_band_of_nearness_is_what_both_bands_leave() -> None:
    rng = np.random.default_rng(8)
    u = np.append(rng.uniform(size=200), [0.0, 0.5, 0.5, 1.0])
    bands = CDFBands.of(u, u, 0.9)
    band = bands.nearness_band()
    for t in np.append(rng.uniform(0, 0.5, size=200), [0.0, 0.5]):
        at = np.array([0.5 + t])
        # P(1/2 - t <= U <= 1/2 + t)
        most = bands.upper.at(at) - (1 - bands.mirrored.at(at))
        assert band.at(np.array([t])) == pytest.approx(np.clip(most, 0, 1))
        assert band.at(np.array([t]))[0] >= (np.abs(u - 0.5) <= t).mean()


def test_counts_are_never_below_rows_and_little_above() -> None:
    rng = np.random.default_rng(5)
    for u in (rng.uniform(size=3000), rng.beta(0.4, 0.4, size=3000), rng.integers(0, 9, 3000) / 8):
        bins = np.clip(np.ceil(u * PIT_BINS).astype(int) - 1, 0, PIT_BINS - 1)
        counts = np.bincount(bins, minlength=PIT_BINS)
        edges = Entropic(0.1).mean_pit(np.linspace(0, 1, PIT_BINS + 1))
        moved = counts / 3000 @ np.diff(edges)
        for bound in ("sharp", "pathwise"):
            rows = certify_link(u, Entropic(0.1), bound=bound)
            counted = certify_link_counts(counts, Entropic(0.1), bound=bound)
            assert counted.n_samples == 3000
            for mass in (0.1, 0.2, 0.5, 1.0):
                gap = counted.group_error(mass) - rows.group_error(mass)
                # people move by at most a bin; the bands of the rows are above their shares
                assert -1e-12 <= gap < 1.5 * moved / mass + 1e-3
            assert counted.mean_error() == pytest.approx(rows.mean_error(), abs=2e-3)


def test_without_a_target_the_bound_depends_on_the_number_of_rows_alone() -> None:
    rng = np.random.default_rng(6)
    for pit in (rng.uniform(size=499), np.zeros(499)):
        assert certify_link(pit, Entropic(0.1)).bound == "pathwise"
        assert certify_link(np.append(pit, 0.5), Entropic(0.1)).bound == "sharp"


@pytest.mark.parametrize(
    ("n", "target", "mass", "expected"),
    [
        (100, 0.2, 0.2, "pathwise"),  # strong links: one band with all of the risk
        (500, 0.3, 0.2, "sharp"),
        (500, 0.2, 0.1, "pathwise"),
        (5000, 0.3, 0.1, "sharp"),
    ],
)
def test_the_rule_takes_the_bound_that_costs_less(
    n: int, target: float, mass: float, expected: str
) -> None:
    chosen = choose_bound(n, Entropic(0.1), mass=mass, confidence=0.95, max_group_error=target)
    assert chosen == expected
    alphas = {}
    for bound in ("sharp", "pathwise"):
        proof = certify_link(evenly_spread(n), Entropic(0.1), bound=bound)
        try:
            alphas[bound] = proof.least_randomized(target, mass).link.alpha
        except InputError:
            alphas[bound] = 0.0
    assert chosen == max(alphas, key=lambda bound: alphas[bound])


@pytest.mark.parametrize("family", [Entropic, Laplace, Gaussian])
def test_the_least_randomization_meets_the_target_and_no_less_does(family: type[Link]) -> None:
    u = np.random.default_rng(7).uniform(size=1500)
    proof = certify_link(u, family(0.1), bound="sharp")
    least = proof.least_randomized(0.3, 0.2)
    assert 0.295 < least.group_error(0.2) <= 0.3
    assert proof.with_link(family(1.02 * least.link.alpha)).group_error(0.2) > 0.3


@pytest.mark.parametrize("n", [100, 600])
def test_certificates_are_stored_and_copied_after_use(n: int) -> None:
    proof = certify_link(evenly_spread(n), Entropic(0.1))
    bound = proof.group_error(0.2), proof.coverage(0.8, 0.2)
    for twin in (pickle.loads(pickle.dumps(proof)), copy.deepcopy(proof)):
        assert (twin.group_error(0.2), twin.coverage(0.8, 0.2)) == bound


@pytest.mark.parametrize("link", [Entropic(0.2), Entropic(1.0)], ids=repr)
def test_the_order_in_which_masses_are_asked_for_does_not_change_a_bound(link: Link) -> None:
    # steps of the bands are evaluated when a mass needs them first
    u = np.random.default_rng(3).beta(0.8, 1.2, size=700)
    masses = [0.1, 0.2, 0.5, 1.0]
    rising, falling = CDFBands.of(u, u, 0.95), CDFBands.of(u, u, 0.95)
    bounds = [pointwise_bound(link, rising, mass) for mass in masses]
    assert bounds[::-1] == [pointwise_bound(link, falling, mass) for mass in masses[::-1]]
    assert np.all(np.diff(bounds) < 0)
