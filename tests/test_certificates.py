"""Certificates against worlds of known truth (by quadrature) and unsuitable input."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtr, ndtri

from complaints import refused
from evenhand.calibration import (
    Cells,
    calibration_error,
    count_pits,
    cvar,
    local_levels_band,
    pathwise_errors,
)
from evenhand.certificates import Choice, certify_counts, certify_link, certify_pit
from evenhand.draws import jittered, nodes
from evenhand.links import Entropic, Gaussian, Laplace, Link
from repeats import FALSE_ALARM, most_failures, repeats, statistical

Floats = NDArray[np.float64]
SLACK = 2e-4  # of truths that come from a grid
CALIBRATED = ((0.0, 1.0), (0.0, 1.0))


def unchanged(r):
    return r


def folded(r):
    """Uniform again, but not monotone: the two halves of the draws do the same."""
    return np.asarray(np.clip(2 * r % 1, 1e-12, 1 - 1e-12))


def shuffled(r):
    """Permute 64 cells of the draws, so that a draw no longer predicts where the PIT lies."""
    order = np.random.default_rng(64).permutation(64)
    cell, within = np.divmod(64 * r, 1)
    return np.asarray(np.clip((order[cell.astype(int)] + within) / 64, 1e-12, 1 - 1e-12))


@lru_cache
def error_table(link):
    z = np.linspace(-8, 8, 1601)
    u = ndtr(z)
    return z, (u**2 + (1 - u) ** 2) / 2 if link is None else link.pathwise_error(u)


@dataclass(frozen=True)
class World:
    """Base PITs Phi(shift + scale Z) in two halves of the people, behind a link or none."""

    link: Link | None
    halves: tuple[tuple[float, float], tuple[float, float]] = CALIBRATED
    reorder: Callable[[Floats], Floats] = unchanged

    def sample(self, n, m, rng, rows=1):
        """PITs, draws and the first half; a person's rows share a base PIT, not the draws."""
        first = rng.uniform(size=n) < 0.5
        shift, scale = np.where(first[:, None], *self.halves).T
        u = np.repeat(ndtr(shift + scale * rng.normal(size=n)), rows)
        first = np.repeat(first, rows)
        if self.link is None:
            return u[:, None], None, first
        r = jittered(n * rows, m, rng)
        return self.link.ppf(u[:, None], self.reorder(r)), r, first

    @cached_property
    def _scores(self):
        q = ndtri((np.arange(4000) + 0.5) / 4000)
        return np.concatenate([shift + scale * q for shift, scale in self.halves])

    @cached_property
    def errors(self):
        return np.interp(self._scores, *error_table(self.link))

    @cached_property
    def misses(self):
        """Probabilities over draws that the central 80% interval misses, person by person."""
        u = ndtr(self._scores)
        if self.link is None:
            return np.asarray(((u < 0.1) | (u > 0.9)).astype(float))
        r = (np.arange(20_000) + 0.5) / 20_000
        # H(u; r) <= c where u <= K(c; r)
        at_low, at_high = np.sort(self.link.cdf(0.1, r)), np.sort(self.link.cdf(0.9, r))
        below = 1 - np.searchsorted(at_low, u, side="left") / r.size
        return np.asarray(below + np.searchsorted(at_high, u, side="left") / r.size)

    def _cdf(self, u, half):
        shift, scale = self.halves[half]
        return np.asarray(ndtr((ndtri(u) - shift) / scale))

    @cached_property
    def half_errors(self):
        c = (np.arange(500) + 0.5) / 500
        r = (np.arange(500) + 0.5) / 500
        k = c[:, None] if self.link is None else self.link.cdf(c[:, None], r)
        cdfs = [self._cdf(k, half).mean(axis=-1) for half in (0, 1)]
        first, second, both = (np.abs(cdf - c).mean() for cdf in (*cdfs, (cdfs[0] + cdfs[1]) / 2))
        return float(first), float(second), float(both)

    @cached_property
    def group_errors(self):
        """Least group errors over `MASSES` that pathwise errors and the average allow."""
        worst = np.array([cvar(self.errors, mass) for mass in MASSES])
        rest = np.array(
            [(1 - mass) * cvar(self.errors, 1 - mass) if mass < 1 else 0.0 for mass in MASSES]
        )
        return np.asarray(np.minimum(worst, (self.half_errors[2] + rest) / MASSES))

    @cached_property
    def coverages(self):
        """Least and largest coverage of the 80% interval in groups, over `FEW_MASSES`."""
        least = np.array([1 - cvar(self.misses, mass) for mass in FEW_MASSES])
        return least, np.array([cvar(1 - self.misses, mass) for mass in FEW_MASSES])

    def mpaic(self, error):
        """P(|H(U; R) - R| >= error), given R by the distribution of U."""
        r = (np.arange(4000) + 0.5) / 4000
        above = self.link.cdf(np.minimum(r + error, 1), self.reorder(r))
        below = self.link.cdf(np.maximum(r - error, 0), self.reorder(r))
        return float(
            np.mean([1 - self._cdf(above, half) + self._cdf(below, half) for half in (0, 1)])
        )


APART = ((0.5, 1.0), (-0.5, 1.0))
WORLDS = {
    "deterministic, calibrated": World(None),
    "deterministic, misfitted": World(None, ((0.3, 1.2), (-0.3, 0.8))),
    "laplace 0.05": World(Laplace(0.05)),
    "laplace 0.12": World(Laplace(0.12)),
    "laplace 0.5": World(Laplace(0.5)),
    "entropic 0.12": World(Entropic(0.12)),
    "gaussian 0.2": World(Gaussian(0.2)),
    "laplace, folded draws": World(Laplace(0.12), reorder=folded),
    "gaussian, shuffled draws": World(Gaussian(0.2), reorder=shuffled),
    "laplace, halves apart": World(Laplace(0.12), APART),
    "entropic, too narrow": World(Entropic(0.12), ((0.0, 1.8), (0.0, 1.8))),
    "gaussian, shifted": World(Gaussian(0.05), ((0.4, 1.3), (0.4, 0.7))),
    "laplace, apart and shuffled": World(Laplace(0.3), APART, shuffled),
}
RANDOMIZED = [name for name in WORLDS if WORLDS[name].link is not None]
MASSES = np.append(0.02, np.linspace(0.04, 1, 25))
FEW_MASSES = (0.02, 0.1, 0.2, 0.5, 1.0)
THRESHOLDS = (0.05, 0.15, 0.3)


def certify(world, n, m, rng, **options):
    return certify_sample(world.sample(n, m, rng), rng, **options)


def certify_sample(sample, rng, **options):
    pit, r, first = sample
    return certify_pit(
        pit, r, groups={"first": first, "second": ~first}, random_state=rng, **options
    )


def group_errors(certificate, masses):
    return np.array([certificate.group_error(mass) for mass in masses])


def false_statements(world, certificate, threshold):
    named = certificate.named_table()
    halves = np.array(world.half_errors[:2])
    low, high = np.array([certificate.coverage(0.8, mass) for mass in FEW_MASSES]).T
    least, largest = world.coverages
    false = {
        "group_error": (group_errors(certificate, MASSES) < world.group_errors - SLACK).any(),
        "coverage": ((low > least + SLACK) | (high < largest - SLACK)).any(),
        "average_error": certificate.average_error() < world.half_errors[2] - SLACK,
        "named": ((named["low"] > halves + SLACK) | (named["high"] < halves - SLACK)).any(),
    }
    if world.link is not None:
        false["mpaic"] = certificate.mpaic(threshold) < world.mpaic(threshold) - SLACK
        curve = certificate.mpaic_curve(THRESHOLDS)
        false["mpaic_curve"] = any(
            curve[i] < world.mpaic(e) - SLACK for i, e in enumerate(THRESHOLDS)
        )
        # above the worst group error: the paper's results pass through the errors of each person
        false["chain"] = any(
            certificate.chain(mass) < cvar(world.errors, mass) - SLACK for mass in (0.2, 1.0)
        )
    return {statement: bool(wrong) for statement, wrong in false.items()}


def count_false(names, sizes, **options):
    """Count data sets with a false statement, by world; `sizes`: rows, draws, data sets."""
    wrong = Counter()
    for name in names:
        world, rng = WORLDS[name], np.random.default_rng(sorted(WORLDS).index(name))
        for n, m, n_sets in sizes:
            for k in range(n_sets):
                certificate = certify(world, n, m, rng, **options)
                false = false_statements(world, certificate, THRESHOLDS[k % 3])
                wrong.update((name, statement) for statement in false if false[statement])
    return wrong


@statistical
def test_statements_are_false_in_at_most_one_data_set_of_twenty():
    whole = ((100, 8, 80), (300, 8, 50), (1000, 16, 22), (5000, 16, 2))
    sizes = tuple((n, m, repeats(n_sets)) for n, m, n_sets in whole)
    each = sum(n_sets for *_, n_sets in sizes)
    wrong = count_false(list(WORLDS), sizes)
    assert all(count <= most_failures(each) for count in wrong.values()), wrong
    for statement in {statement for _, statement in wrong}:
        of_draws = statement in ("mpaic", "mpaic_curve", "chain")
        limit = most_failures(each * len(RANDOMIZED if of_draws else WORLDS))
        assert sum(wrong[name, statement] for name in WORLDS) <= limit, (statement, wrong)


@statistical
def test_bets_are_false_in_at_most_one_data_set_of_twenty():
    names = [
        "deterministic, misfitted",
        "laplace 0.12",
        "gaussian, shuffled draws",
        "laplace, halves apart",
    ]
    options = {"method": "betting", "mass": 0.2}
    rng = np.random.default_rng(1)
    false = Counter()
    for name in names:
        world = WORLDS[name]
        sizes = (100,) * repeats(40) + (300,) * repeats(10)
        for n in sizes:
            certificate = certify(world, n, 8, rng, **options)
            low, high = certificate.coverage(0.8, 0.2)
            false["group_error"] += certificate.group_error(0.2) < cvar(world.errors, 0.2) - SLACK
            false["coverage"] += low > 1 - cvar(world.misses, 0.2) or high < cvar(
                1 - world.misses, 0.2
            )
    assert max(false.values()) <= most_failures(len(sizes) * len(names)), false


def test_the_overall_error_of_evenly_spread_pits_is_the_margin_of_dkw():
    # the farther side of a band of half width `margin` around the diagonal, but for steps of 1 / n
    margin = np.sqrt(np.log(2 / 0.05) / 2000)  # two-sided, 1,000 rows
    assert certify_pit(nodes(1000)[0]).average_error() == pytest.approx(margin, abs=1 / 1000)


def test_mpaic_at_all_thresholds_is_dkw():
    certificate = certify_pit(R, R, random_state=0)
    margin = np.sqrt(np.log(20) / 40)  # one-sided, 20 rows
    # no gaps at all: P(gap >= 0) = 1, and every other threshold has the margin alone
    found = certificate.mpaic_curve([0.0, 0.1, 1.0])
    np.testing.assert_allclose(found, [1.0, margin, margin], rtol=1e-12)


@pytest.mark.parametrize(("mass", "confidence"), [(0.2, 0.95), (0.5, 0.99), (1.0, 0.9)])
def test_the_chain_of_the_paper_is_what_its_results_give(mass, confidence):
    # h = r: no gaps, so P(gap >= e) <= margin for each e > 0. PAIC at target t leaves margin (1 -
    # e) / (t - e) outside; t plus that over the mass is least where t - e = sqrt(margin (1 - e) /
    # mass), and e is one grid step
    n, step = 100_000, 0.0025
    r = jittered(n, 1, random_state=0)
    margin = np.sqrt(np.log(1 / (1 - confidence)) / (2 * n))
    least = step + 2 * np.sqrt(margin * (1 - step) / mass)
    assert least <= certify_pit(r, r, confidence=confidence).chain(mass) + 1e-12 <= least + step


def test_bounds_exceed_the_truth_by_no_more_than_in_the_method():
    # method: proof, excess at n = 500: local levels 0.046, betting 0.026; s.e. below 0.002
    world, rng = WORLDS["laplace 0.12"], np.random.default_rng(500)
    samples = [world.sample(500, 64, rng) for _ in range(100)]
    bounds = [
        np.mean([certify_sample(one, rng, **options).group_error(0.2) for one in samples])
        for options in ({}, {"method": "betting", "mass": 0.2})
    ]
    local, betting = np.array(bounds) - cvar(world.errors, 0.2)
    assert 0 < betting < 0.03
    assert betting < local < 0.05


@pytest.mark.parametrize("counted", [False, True])
def test_a_deterministic_interval_has_a_floor_in_every_group(counted):
    n = 1000
    u = (np.arange(n) + 0.5) / n
    levels = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99)
    proof = certify_pit(u, random_state=0)
    if counted:
        proof = certify_counts(count_pits(u, levels=levels), is_randomized=False)
    for level in levels:
        missed = int((np.abs(u - 0.5) > level / 2).sum())
        # lower bounds of wider levels have a quarter of the risk each, others nine tenths of it
        is_wider = level >= 0.9
        risk = 0.05 / 4 if is_wider else 0.05 * 0.9
        worst = stats.beta.ppf(1 - risk, missed + 1, n - missed)
        best = stats.beta.ppf(1 - 0.05 / 10, n - missed + 1, missed)
        for mass in (0.02, 0.2, 0.5, 1.0):
            low, high = proof.coverage(level, mass)
            assert low == pytest.approx(max(1 - worst / mass, 0.0), abs=1e-9)
            assert high == pytest.approx(1.0 if is_wider else min(best / mass, 1.0), abs=1e-9)
    assert 0.8 < proof.coverage(0.98, 0.2)[0] < 0.9
    assert proof.coverage(0.8, 0.1) == (0.0, 1.0)
    low, high = proof.coverage(0.8, 1.0)
    assert 0.75 < low < 0.8 < high < 0.85


def test_bounds_of_a_link_are_those_of_its_certificate():
    rng = np.random.default_rng(10)
    r = jittered(300, 8, rng)
    u = rng.beta(0.8, 1.0, size=300)
    link = Entropic(0.1)
    options = {"groups": {"even": np.arange(300) % 2 == 0}, "random_state": 0}
    proof = certify_pit(link.ppf(u[:, None], r), r, base=Cells(u, link=link), **options)
    expected = certify_link(u, link)
    assert (proof.link, proof.bound) == (link, "sharp")
    wanted = [expected.group_error(mass) for mass in MASSES]
    assert [proof.group_error(mass) for mass in MASSES] == wanted
    assert proof.coverage(0.7, 0.3) == expected.coverage(0.7, 0.3)
    assert proof.average_error() == expected.average_error()
    # the other bounds do not depend on it
    plain = certify_pit(link.ppf(u[:, None], r), r, **options)
    assert plain.bound is None
    pd.testing.assert_frame_equal(proof.named_table(), plain.named_table())
    assert proof.mpaic(0.2) == plain.mpaic(0.2)
    pd.testing.assert_series_equal(proof.table()["chain"], plain.table()["chain"])
    assert repr(link) in repr(proof)
    assert repr(link) in proof.summary()
    # nothing was chosen here: the link is fixed for named groups, and need not be for the others
    assert any("link was fixed" in text for text in proof.assumptions)
    chosen = proof.accounting_for(expected)
    assert not any("link was fixed" in text for text in chosen.assumptions)
    assert chosen.table()["chain"].isna().all()
    assert chosen.mpaic(0.2) == expected.mpaic(0.2) != proof.mpaic(0.2)
    # named groups and mPAIC are those of the served forecasts
    for own in (proof, chosen):
        refused("for its own forecasts alone", own.with_link, Entropic(0.2))
    assert chosen.choice.rule == "simultaneous"
    assert chosen.group_error(0.2) == proof.group_error(0.2)


def test_tests_in_a_fixed_order_prove_the_target_and_nothing_else():
    own = certify_pit(R, R, method="betting", mass=0.2, confidence=0.9)
    proof = replace(own, choice=Choice("tested", error=0.3, mass=0.2))
    assert proof.average_error() == 0.3
    assert [proof.group_error(mass) for mass in (0.1, 0.2, 1.0)] == [0.5, 0.3, 0.3]
    assert proof.coverage(0.8, 0.5) == (0.0, 1.0)
    for bound in (proof.mpaic, proof.chain):
        refused("chosen on these people", bound, 0.2)
    assert re.search(r"^20% of people +30\.0", proof.summary(), re.MULTILINE)
    assert proof.table()["mass"].tolist() == [0.2]
    assert proof.table()["chain"].isna().all()


R = jittered(20, 4, random_state=0)
HALF = np.arange(20) < 10


def test_input_without_a_guarantee_is_refused_in_one_line():
    drawn, alone = certify_pit(R, R), certify_pit(R[:, 0])
    bets = certify_pit(R, R, method="betting", mass=0.2)
    halves = certify_pit(R, R, groups={"half": HALF})
    few, base = (Cells(R[:n, 0], link=Laplace(0.1)) for n in (19, 20))
    refused("mass / W", certify_pit, Cells(R, draws=R, weights=1 + HALF))
    refused("equal cells", certify_pit, R, np.random.default_rng(0).uniform(size=(20, 4)))
    refused("each of the 20 rows", certify_pit, R[:, 0], R[:, 1], base=few)
    refused("without a draw", certify_pit, R[:, 0], base=base)
    refused("method must be one of", certify_pit, R, R, method="hoeffding")
    refused("mass must be given for method=.betting.", certify_pit, R, R, method="betting")
    refused(r"mass=0\.2", certify_pit, R, R, mass=0.2)
    refused("local-levels", bets.group_error, 0.3)
    refused("mass must be above 0 and at most 1", drawn.group_error, 0.0)
    refused("level", drawn.coverage, 80, 0.2)
    refused("error", drawn.mpaic, 1.5)
    refused("give r", alone.mpaic, 0.1)
    refused("give r", alone.chain, 0.2)
    refused("person", certify_pit, R, R, person=np.arange(19))
    refused(r"person\[1\]", certify_pit, R, R, person=np.array(["a", None] * 10))
    refused("'none'.*empty", certify_pit, R, R, groups={"none": np.zeros(20, bool)})
    refused("half", halves.named, "other")


@pytest.mark.parametrize(
    ("n", "method"), [(1, "local-levels"), (5, "local-levels"), (5, "betting")]
)
def test_few_rows_prove_next_to_nothing(n, method):
    r = jittered(n, 16, random_state=0)
    options = {"method": method, "mass": 0.2 if method == "betting" else None}
    certificate = certify_pit(r, r, random_state=0, **options)
    # a fifth of the people with errors of 1/2 stays unseen in 5 rows with probability 0.8^5 = 0.33
    assert certificate.group_error(0.2) > 0.45
    assert certificate.coverage(0.8, 0.2)[0] < 0.1
    assert certificate.average_error() > 0.3
    assert certificate.mpaic(0.5) >= 0.45
    assert certificate.chain(0.2) == 0.5
    assert certificate.table()["group_error"].between(0, 0.5).all()
    assert certificate.summary()


def test_a_named_group_that_loses_its_rows_to_other_rows_of_its_people_has_no_bound():
    # one person with two rows, one in each group: either group may keep it
    groups, kept = {"first": [True, False], "second": [False, True]}, set()
    for seed in range(8):
        proof = certify_pit(R[:2], R[:2], person=["a", "a"], groups=groups, random_state=seed)
        (row,) = proof.named_table().to_dict("records")
        assert (proof.n_samples, row["n"], row["low"]) == (1, 1, 0)
        (other,) = groups.keys() - {row["group"]}
        refused("group must be one of", proof.named, other)
        kept.add(row["group"])
    assert kept == groups.keys()


def test_one_row_of_each_person_is_used():
    person = np.repeat(np.arange(5), 4)
    certificate = certify_pit(R, R, person=person, groups={"half": HALF}, random_state=0)
    assert certificate.n_samples == 5
    errors = pathwise_errors(R)  # all of them differ
    rows = np.searchsorted(np.sort(errors), certificate.own.all_errors.high)
    rows = np.argsort(errors)[rows]
    assert person[rows].tolist() == [0, 1, 2, 3, 4]
    assert certificate.named_table()["n"].tolist() == [HALF[rows].sum()]


def test_statements_that_hold_together_share_the_risk():
    pit, r, first = WORLDS["laplace 0.12"].sample(300, 8, np.random.default_rng(10))
    groups = {"first": first, "second": ~first, "some": np.arange(300) < 50}
    # Bonferroni: a third of the risk for each of three groups
    one_draw = certify_pit(pit[:, 0], r[:, 0], confidence=0.9, groups=groups)
    for name, mask in groups.items():
        alone = certify_pit(pit[mask, 0], confidence=1 - 0.1 / 3)
        assert one_draw.named(name) == pytest.approx(alone.average_error())
    certificate = certify_pit(pit, r, confidence=0.9, random_state=0)
    # both sides of the coverage, a tenth of the risk above; errors leave some to the average
    low, high = certificate.coverage(0.8, 0.2)
    inside = ((pit >= 0.1) & (pit <= 0.9)).mean(axis=-1)
    assert 1 - low == pytest.approx(local_levels_band(1 - inside, 1, 0.91).cvar(0.2))
    assert high == pytest.approx(local_levels_band(inside, 1, 0.99).cvar(0.2))
    expected = local_levels_band(pathwise_errors(pit), 0.5, 0.9).cvar(0.2)
    assert certificate.group_error(0.2) > expected
    assert certificate.group_error(1.0) > certificate.average_error()


@statistical
def test_groups_that_see_the_draw_break_the_bound_and_others_do_not():
    link = Laplace(0.12)
    rng = np.random.default_rng(3)
    n_sets, fresh = repeats(40), 4000
    broken = Counter()
    for _ in range(n_sets):
        bound = certify(World(link), 500, 16, rng).group_error(0.2)
        # new people, one draw each, under the true forecast N(x, 1) with a link
        x, noise, r = rng.normal(size=fresh), rng.normal(size=fresh), rng.uniform(size=fresh)
        pit = link.ppf(ndtr(noise), r)
        for group, score in {
            "approved": pit,
            "x": x,
            "y": x + noise,
            "surprise": -np.abs(noise),
        }.items():
            broken[group] += calibration_error(pit[np.argsort(score)[: fresh // 5]]) > bound
    # PITs of the approved are uniform on [0, 1/5]: an error of 0.4; the bound is about 0.31
    assert broken["approved"] >= 0.95 * n_sets
    for group in ("x", "y", "surprise"):
        assert broken[group] <= most_failures(n_sets)


def test_rows_of_one_person_break_the_bound_unless_they_are_named_so():
    world, people, rows, n_sets = World(Laplace(0.3), APART), 60, 10, 150
    rng = np.random.default_rng(7)
    broken = Counter()
    for _ in range(n_sets):
        pit, r, _ = world.sample(people, 8, rng, rows)
        person = np.repeat(np.arange(people), rows)
        for name, labels in (("as people", None), ("as rows", person)):
            certificate = certify_pit(pit, r, person=labels, random_state=rng)
            broken[name] += bool(
                (group_errors(certificate, MASSES) < world.group_errors - SLACK).any()
            )
    assert broken["as rows"] <= most_failures(n_sets)
    assert stats.binom.sf(broken["as people"] - 1, n_sets, 0.05) < FALSE_ALARM
