"""Counts of PITs against brute force, and certificates from counts against those from rows.

Both certificates choose the same draw per row with the same seed, so each bound from counts must
lie at or above that from rows: whatever holds for rows (tests/test_certificates.py) then holds for
counts. How far above is proven where it is tested. `W` is the width of a bin of pathwise errors,
`S` that of a bin of PITs.
"""

import pickle
import tracemalloc
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from scipy.special import ndtr

from complaints import refused
from evenhand.calibration import (
    ERROR_BINS,
    GAP_BINS,
    PITCounts,
    binned_error,
    calibration_error,
    count_pits,
    covered,
    local_levels,
    pathwise_errors,
)
from evenhand.calibration import PIT_BINS as BINS
from evenhand.certificates import certify_counts, certify_link, certify_pit
from evenhand.draws import fresh, jittered
from evenhand.links import Entropic, Gaussian, Laplace

S, W, G = 1 / BINS, 0.5 / ERROR_BINS, 1 / GAP_BINS
ROUNDING = 1e-12
MASSES = (0.02, 0.1, 0.2, 0.5, 0.8, 1.0)
LEVELS = (0.5, 0.8, 0.9)

EDGES = [
    *(0.0, 1.0, 0.1, 0.9, 0.05, 0.95, *(k / 64 for k in range(64))),
    *(k / BINS for k in range(1, BINS, 97)),
]
BESIDE = [float(np.clip(np.nextafter(edge, side), 0, 1)) for edge in EDGES for side in (-1, 2)]
PIT = st.floats(0, 1) | st.sampled_from(EDGES + BESIDE)


@st.composite
def pits(draw, most_rows=12):
    """PITs of few people, on edges of bins, beside them or anywhere; one draw each, some, or 64."""
    shape = draw(st.integers(1, most_rows)), draw(st.sampled_from([1, 2, 5, 64]))
    return np.asarray(draw(hnp.arrays(np.float64, shape, elements=PIT)))


def at_or_below(values, n_bins, top):
    edges = top * np.arange(1, n_bins + 1) / n_bins
    return np.asarray((values.ravel()[:, None] <= edges).sum(axis=0))


def same(one, other):
    return pickle.dumps(one) == pickle.dumps(other)


@given(pits(), st.integers(0, 1000))
def test_counts_are_those_of_brute_force(pit, seed):
    n, m = pit.shape
    counts = count_pits(pit, levels=LEVELS, groups={"first": np.arange(n) < 1}, random_state=seed)
    np.testing.assert_array_equal(np.cumsum(counts.pit), at_or_below(pit, BINS, 1.0))
    found = np.cumsum(counts.error)
    np.testing.assert_array_equal(found, at_or_below(pathwise_errors(pit), ERROR_BINS, 0.5))
    for level in LEVELS:
        inside = np.rint(covered(pit, level) * m).astype(int)
        np.testing.assert_array_equal(counts.inside[level], np.bincount(inside, minlength=m + 1))
    assert (counts.n_samples, counts.n_draws, counts.gap) == (n, m, None)
    # the draw of each row is the one that the same seed chooses for rows
    column = np.random.default_rng(seed).integers(m, size=n)
    ours = np.cumsum(counts.one_draw)
    np.testing.assert_array_equal(ours, at_or_below(pit[np.arange(n), column], BINS, 1.0))
    assert counts.groups["first"].n_samples == 1
    expected = at_or_below(pit[:1], BINS, 1.0)
    np.testing.assert_array_equal(np.cumsum(counts.groups["first"].pit), expected)


@given(st.data())
def test_any_split_of_the_rows_gives_the_counts_of_the_whole(data):
    pit = data.draw(pits(most_rows=30))
    n, m = pit.shape
    r = jittered(n, m, data.draw(st.integers(0, 100))) if data.draw(st.booleans()) else None
    groups = {name: data.draw(hnp.arrays(np.bool_, n)) for name in "ab"}
    cuts = [*sorted(data.draw(st.sets(st.integers(1, n)))), n]
    whole = count_pits(pit, r, groups=groups, random_state=7)
    random, parts, start = np.random.default_rng(7), [], 0
    for stop in cuts:
        if stop > start:
            rows = slice(start, stop)
            masks = {name: mask[rows] for name, mask in groups.items()}
            parts.append(
                count_pits(
                    pit[rows], None if r is None else r[rows], groups=masks, random_state=random
                )
            )
            start = stop
    parts = data.draw(st.permutations(parts))
    assert same(reduce(add, parts), whole)
    for name, mask in groups.items():
        assert same(reduce(add, (part.groups[name] for part in parts)), whole.groups[name])
        assert whole.groups[name].n_samples == mask.sum()


@given(pits(40))
@settings(max_examples=100)
def test_binned_error_is_within_half_a_bin_of_the_exact_one(pit):
    error = binned_error(count_pits(pit).pit)
    assert abs(error - calibration_error(pit)) <= S / 2 + ROUNDING
    assert 0 <= error <= 0.5


FORECASTS = {
    "laplace": lambda u, r: Laplace(0.12).ppf(u, r),
    "laplace, near the draw": lambda u, r: Laplace(0.02).ppf(u, r),
    "entropic, too narrow": lambda u, r: Entropic(0.12).ppf(ndtr(1.8 * stats.norm.ppf(u)), r),
    "gaussian, shifted": lambda u, r: Gaussian(0.05).ppf(ndtr(0.4 + stats.norm.ppf(u)), r),
    "not monotone": lambda u, r: Gaussian(0.2).ppf(u, 1 - np.abs(1 - 2 * r)),
    "the draw itself": lambda u, r: r,
    "always the middle": lambda u, r: np.full(r.shape, 0.5),
    "at the ends": lambda u, r: np.where(r < u, 0.0, 1.0),
}
SIZES = ((1, 16), (3, 2), (40, 1), (300, 8), (2000, 64))
CASES = [(name, *SIZES[i % len(SIZES)]) for i, name in enumerate(FORECASTS)]


def both(name, n, m):
    """Certify from rows and from counts, the same draw chosen per row."""
    rng = np.random.default_rng(n + m)
    r = jittered(n, m, rng)
    pit = FORECASTS[name](rng.uniform(size=(n, 1)), r)
    half = np.arange(n) % 2 == 0
    groups = {"even": half, "odd": ~half} if n > 1 else {"all": half}
    counts = count_pits(pit, r, groups=groups, levels=LEVELS, random_state=3)
    rows = certify_pit(pit, r, groups=groups, random_state=3)
    return rows, certify_counts(counts, is_randomized=True)


@pytest.mark.parametrize(("name", "n", "m"), CASES)
def test_bounds_from_counts_are_those_from_rows_or_a_little_wider(name, n, m):
    rows, counts = both(name, n, m)
    assert (counts.n_samples, counts.n_draws, counts.is_randomized) == (n, m, True)
    # the interval from bins moves outwards by at most a bin
    assert -ROUNDING <= counts.average_error() - rows.average_error() <= S + ROUNDING
    named, exact = counts.named_table(), rows.named_table()
    assert list(named["group"]) == list(exact["group"])
    assert list(named["n"]) == list(exact["n"])
    assert (named["high"] - exact["high"]).between(-ROUNDING, S + ROUNDING).all()
    assert (exact["low"] - named["low"]).between(-ROUNDING, S + ROUNDING).all()
    assert (named["error"] - exact["error"]).abs().max() <= S / 2 + ROUNDING
    for mass in MASSES:
        # errors move up by at most W, so the band does, and so does the mean of the worst under it;
        # the way over the complement adds what the overall error and the complement's worst mean
        # gain, by share
        slack = max(W, (S + (1 - mass) * W) / mass)
        assert -ROUNDING <= counts.group_error(mass) - rows.group_error(mass) <= slack + ROUNDING
        # shares of draws are counted as they are
        for level in LEVELS:
            found = counts.coverage(level, mass)
            np.testing.assert_allclose(found, rows.coverage(level, mass), rtol=0, atol=ROUNDING)
        # the chain with thresholds a grid step (0.0025 > G) higher is no larger than that plus it
        assert -ROUNDING <= counts.chain(mass) - rows.chain(mass) <= 1 / 400 + ROUNDING
    # mPAIC lies between those from rows a bin apart
    thresholds = np.concatenate(
        (np.linspace(0, 1, 41), np.arange(1, 9) * G, np.arange(1, 9) * 0.7 * G)
    )
    curve, below = rows.mpaic_curve(thresholds), rows.mpaic_curve(np.maximum(thresholds - G, 0))
    binned = counts.mpaic_curve(thresholds)
    # a gap moves up by less than a bin: none that reached the threshold is lost
    assert (binned >= curve - ROUNDING).all()
    assert (binned <= below + ROUNDING).all()
    for error in thresholds.tolist():
        assert rows.mpaic(error) <= counts.mpaic(error) <= rows.mpaic(max(error - G, 0.0))


@pytest.mark.parametrize(
    ("law", "family"),
    [("uniform", Entropic), ("narrow", Gaussian), ("wide", Laplace), ("atoms", Entropic)],
)
def test_bounds_of_a_link_from_counts_are_those_from_rows_or_a_little_wider(law, family):
    rng = np.random.default_rng(7)
    n = 800
    u = {
        "uniform": rng.uniform(size=n),
        "narrow": rng.beta(0.8, 0.8, size=n),
        "wide": rng.beta(2.0, 3.0, size=n),
        "atoms": rng.choice([0.0, 0.05, 0.3, 0.5, 1.0], size=n),
    }[law]
    link = family(0.12)
    counts = count_pits(link.ppf(u, fresh(n, 1)), base=u, random_state=0)
    proof = certify_counts(counts, is_randomized=True, link=link)
    rows = certify_link(u, link)
    assert (proof.link, proof.bound, proof.n_samples) == (link, rows.bound, n)
    # PITs move outwards by at most a bin: the share of people in a bin times the change of the mean
    # served PIT over it, summed over bins and divided by the mass
    for mass in (0.1, 0.5):
        assert -1e-9 <= proof.group_error(mass) - rows.group_error(mass) <= 0.002
        low, high = proof.coverage(0.8, mass)
        exact = rows.coverage(0.8, mass)
        assert exact[0] - 0.005 <= low <= exact[0] + 1e-9
        assert exact[1] - 1e-9 <= high <= exact[1] + 0.005
    assert proof.average_error() == proof.group_error(1.0)
    assert not proof.table()["coverage_80_low"].isna().any()


def test_levels_that_were_not_counted_are_named_and_left_out_of_tables():
    r = jittered(50, 4, 0)
    counts = certify_counts(count_pits(r, r, levels=(0.5, 0.9), random_state=0), is_randomized=True)
    refused(r"level must be .* \(0.5, 0.9\), got 0.8; .*levels", counts.coverage, 0.8, 0.2)
    assert counts.table()[["coverage_80_low", "coverage_80_high"]].isna().all(axis=None)
    assert counts.table()["group_error"].notna().all()
    assert "interval" not in counts.summary().partition("Points are")[0]


MANY = 320 * BINS  # 2,048,000


def many():
    """Exactly uniform PITs, errors on [0, 1/2], and for each person one of two draws inside."""
    return PITCounts(
        n_draws=2,
        pit=np.full(BINS, 2 * MANY // BINS),
        one_draw=np.full(BINS, MANY // BINS),
        error=np.full(ERROR_BINS, MANY // ERROR_BINS),
        gap=np.full(GAP_BINS, MANY // GAP_BINS),
        inside={0.8: np.array([MANY // 4, MANY // 2, MANY // 4])},
    )


def test_two_million_people_are_certified_from_their_counts_in_little_memory():
    counts = many()
    # local levels are searched once and kept
    certify_counts(counts, is_randomized=True).coverage(0.8, 0.2)
    local_levels(MANY, 1 - (1 - 0.95) * (1 - 0.1))
    tracemalloc.start()
    proof = certify_counts(counts, is_randomized=True)
    average, error = proof.average_error(), proof.group_error(0.2)
    low, high = proof.coverage(0.8, 0.2)
    mpaic, chain = proof.mpaic(0.5), proof.chain(0.2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # one number for each person alone would take eight times this
    assert peak < MANY
    # W1 within a band around uniform is at most its half width and, here, a bin
    assert 0 < average <= np.sqrt(np.log(40) / (2 * MANY)) + S
    # the worst fifth of the uniform distribution on [0, 1/2] has mean 0.45. Where a band is higher
    # than its survival by d at most, on the top 0.1 of the range, the mean is higher by 0.1 d /
    # 0.2; bins add W
    risk, share = 0.05 * 0.9, 0.2
    # local levels: at most a normal quantile at Bonferroni's level, and 1/400 of a rank
    ranks = local_levels(MANY, 1 - (1 - 0.95) * (1 - 0.1))[0].size
    noise = stats.norm.isf(risk / ranks) * np.sqrt(share * (1 - share) / MANY)
    assert 0.45 < error <= 0.45 + W + (noise + share / 400) / 2
    # a quarter of the people are always missed and a quarter never
    assert (low, high) == (0.0, 1.0)
    # half of the gaps are 1/2 or more: Clopper-Pearson's bound is normal here
    assert mpaic == pytest.approx(0.5 + stats.norm.ppf(0.95) * 0.5 / np.sqrt(MANY), abs=2 * G)
    assert chain == 0.5


R = jittered(20, 4, random_state=0)


def test_input_without_a_guarantee_is_refused_in_one_line():
    counts, one = count_pits(R, R, random_state=0), count_pits(R[:, 0])
    nobody = count_pits(R, groups={"a": R[:, 0] > 1}).groups["a"]
    add_levels = count_pits(R[:, 0], levels=(0.5,))
    refused("n_draws.* 4 and 2", add, counts, count_pits(R[:, :2]))
    refused(r"levels.* \(0.8, 0.9\) and \(0.5,\)", add, one, add_levels)
    refused("has_draws.* True and False", add, counts, count_pits(R))
    refused("has_base.* True and False", add, count_pits(R[:, 0], base=R[:, 0]), one)
    refused("person", certify_counts, nobody, is_randomized=True)
    refused("base must have one PIT per row", count_pits, R, base=R[:19, 0])
    refused("counts must have a base", certify_counts, one, is_randomized=True, link=Entropic(0.1))
