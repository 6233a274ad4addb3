"""The search for the worst group against all subsets, and its null against theory."""

from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from complaints import complaint
from evenhand.calibration import Cells, as_cells, calibration_error, pathwise_errors
from evenhand.draws import jittered
from evenhand.links import Entropic, Gaussian
from evenhand.search import null_curve, worst_group_curve, worst_groups
from evenhand.search.worst_groups import LevelCells
from repeats import repeats, statistical


@lru_cache(maxsize=64)
def subsets(n, k):
    """Return all groups of `k` of `n` rows, one per row, as ones and zeros."""
    rows = np.array(list(combinations(range(n), k)))
    members = np.zeros((rows.shape[0], n))
    np.put_along_axis(members, rows, 1.0, axis=-1)
    return members


def worst_of_all(pit, k):
    """Integrate |F - c| between the PITs, on both sides of c = F, for every group."""
    edges = np.unique(np.concatenate(([0.0], pit.ravel(), [1.0])))
    low, high = edges[:-1], edges[1:]
    cdf = subsets(pit.shape[0], k) @ (pit[:, :, None] <= low).mean(axis=1) / k
    middle = np.minimum(np.maximum(cdf, low), high)
    parts = (cdf - low) ** 2 - (cdf - middle) ** 2 + (high - cdf) ** 2 - (middle - cdf) ** 2
    return float(parts.sum(axis=-1).max() / 2)


def spread(rng, n, m):
    return rng.uniform(size=(n, m))


def bunched(rng, n, m):
    centres = rng.uniform(size=int(rng.integers(2, 5)))
    return np.clip(rng.choice(centres, size=(n, 1)) + rng.normal(0, 0.03, size=(n, m)), 0, 1)


def rounded(rng, n, m):
    return rng.uniform(size=(n, m)).round(1)


def few_valued(rng, n, m):
    """Return few distinct PITs, as of forecasts with few quantiles: groups differ in few cells."""
    return rng.choice(rng.uniform(size=int(rng.integers(2, 5))).round(2), size=(n, max(m, 2)))


LINKS = [Entropic(0.05), Entropic(0.1), Entropic(0.3)]


def randomized(rng, n, m):
    return LINKS[int(rng.integers(3))].ppf(rng.uniform(size=(n, 1)), jittered(n, m, rng))


KINDS = [spread, bunched, rounded, few_valued, randomized]


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_finds_the_worst_of_all_subsets_of_small_problems(kind):
    # 1200 problems over the five kinds
    rng = np.random.default_rng(20)
    shares = []
    for i in range(60):
        n, m = int(rng.integers(6, 13)), 1 if i % 3 == 0 else int(rng.integers(2, 6))
        pit = kind(rng, n, m)
        curve = worst_group_curve(pit, [0.2, 0.35, 0.5, 0.7], random_state=0)
        best = [worst_of_all(pit, rows.size) for rows in curve.rows]
        assert (curve.errors <= np.add(best, 1e-12)).all()
        shares.append(curve.errors / best)
    assert np.min(shares) >= 0.98
    assert np.mean(np.array(shares) >= 1 - 1e-12) >= 0.99


@pytest.mark.parametrize("kind", [spread, bunched, rounded, randomized])
@pytest.mark.parametrize("n", [500, 700])  # in float64 and float32
def test_errors_in_cells_are_exact_up_to_their_slack(kind, n):
    rng = np.random.default_rng(n)
    pit = kind(rng, n, 8)
    cells = LevelCells.of(Cells(pit))
    groups = [rng.uniform(size=n) < 0.3, pit.mean(axis=-1) < 0.4, np.ones(n, dtype=np.bool_)]
    groups += [np.arange(n) < 2, pit.std(axis=-1) < np.median(pit.std(axis=-1))]
    means = cells.means(np.array(groups), np.array([group.sum() for group in groups]))
    errors, slack = cells.errors(means), cells.slack(means)
    exact = np.array([calibration_error(pit[group]) for group in groups])
    assert (np.abs(errors - exact) <= slack).all()


LARGE = 5000
"""More rows than patterns are learned from."""


@pytest.mark.parametrize(("n", "where"), [(600, "middle"), (LARGE, "ends")])
def test_a_group_wrong_in_spread_only_is_found(n, where):
    # three tenths of the PITs are within 0.05 of the middle (or ends): W1 0.2, no shift
    rng = np.random.default_rng(7)
    planted = rng.permutation(n) < 0.3 * n
    near = rng.uniform(-0.05, 0.05, size=n)
    wrong = 0.5 + near if where == "middle" else near % 1.0
    pit = np.where(planted, wrong, rng.permutation(n) / n)
    assert (
        worst_group_curve(pit, 0.3, random_state=0).errors[0]
        >= calibration_error(pit[planted])
        >= 0.2
    )


@pytest.mark.parametrize("n", [800, 20_000])
def test_the_group_of_all_rows_has_the_area_under_a_brownian_bridge(n):
    null = null_curve(np.full(n, 0.5), 1.0, n_simulations=400, random_state=0)
    # mean sqrt(pi / 32), second moment 7 / 60 (Shepp 1982; Rice 1982): five s.e., 1e-6
    area, sd = np.sqrt(np.pi / 32), np.sqrt(7 / 60 - np.pi / 32)
    np.testing.assert_allclose(null.mean * np.sqrt(n), area, atol=5 * sd / np.sqrt(400) + 0.002)
    assert (null.low < null.mean).all()
    assert (null.mean < null.high).all()


def test_the_worst_of_a_perfect_deterministic_forecaster_is_half_of_the_rest():
    masses = np.array([0.1, 0.3, 0.5, 0.8])
    null = null_curve(np.full(4000, 0.5), masses, n_simulations=10, random_state=1)
    # the mean of the lowest share has a standard error of at most 0.25 / sqrt(n), and the better of
    # two ends is taken; for the mean of ten that leaves room for a false alarm in 10^6 at least
    np.testing.assert_allclose(null.mean, (1 - masses) / 2, atol=5 * 0.25 / np.sqrt(4000))


def times_within(mass, n_sets):
    """Count data sets of a link whose own error lies within their null of 19 simulations."""
    rng, link = np.random.default_rng(6), Gaussian(0.15)
    within = 0
    for _ in range(n_sets):
        pit = link.ppf(rng.uniform(size=(32, 1)), jittered(32, 4, rng))
        error = worst_group_curve(pit, mass, random_state=0).errors[0]
        null = null_curve(pit, mass, link=link, n_simulations=19, random_state=rng)
        within += int(null.low[0] <= error <= null.high[0])
    return within


@statistical
@pytest.mark.parametrize(("mass", "n_sets"), [(0.25, 50), (1.0, 300)])
def test_calibrated_forecasts_lie_within_their_null_nine_times_in_ten(mass, n_sets):
    # of 20 exchangeable sets 18 are neither the least nor the largest: a false alarm in 5,000
    n_sets = repeats(n_sets)
    low, high = stats.binom.ppf([1e-4, 1 - 1e-4], n_sets, 0.9)
    assert low <= times_within(mass, n_sets) <= high


@pytest.mark.parametrize(("m", "alpha"), [(2, 0.2), (32, 0.05)])
def test_the_link_is_matched_by_the_mean_pathwise_error(m, alpha):
    rng = np.random.default_rng(2)
    pit = Entropic(alpha).ppf(rng.uniform(size=(3000, 1)), jittered(3000, m, rng))
    link = worst_groups._matching_link(as_cells(pit))
    alike = link.ppf(rng.uniform(size=(12_000, 1)), jittered(12_000, m, rng))
    errors = pathwise_errors(pit)
    # means of four sets of 3000 against one: five s.e., and what 400 rows tell of a link
    ours = pathwise_errors(alike).mean()
    assert ours == pytest.approx(errors.mean(), abs=5 * errors.std() * np.sqrt(1.25 / 3000) + 0.002)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"link": "entropic"}, "link must be a Link such as Entropic"),
        ({"masses": 1.5}, "mass must be above 0 and at most 1, got 1.5"),
    ],
)
def test_what_a_null_cannot_use_is_refused(options, message):
    assert complaint(null_curve, [0.1, 0.9], **{"masses": 0.5} | options).startswith(message)
