"""Bounds at any sample size against closed forms, enumeration, quadrature and simulation."""

from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import optimize, stats

from evenhand.calibration import betting_cvar, cvar, error_interval, local_levels, local_levels_band
from evenhand.calibration.bands import pivots_and_stakes, probability_within
from repeats import most_failures, repeats, statistical

# About ten rounded operations lie between a confidence and the probability of a band of one value
# that is made for it. Three of them are exp and gammaln, which libraries round differently: up to 2
# units in the last place each.
ROUNDING = 16 * np.finfo(np.float64).eps

VALUES = hnp.arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 0.5))
PITS = hnp.arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 1))
MASSES = st.floats(0.01, 1)


def compositions(n, parts):
    if parts == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, parts - 1):
            yield (first, *rest)


def enumerated(ranks, bounds, n):
    """Sum multinomial probabilities over all counts that reach each rank in time."""
    widths = np.diff(bounds, prepend=0.0, append=1.0)
    total = 0.0
    for counts in compositions(n, widths.size):
        if (np.cumsum(counts)[:-1] >= ranks).all():
            ways = factorial(n) / prod(factorial(count) for count in counts)
            total += ways * float(np.prod(widths ** np.array(counts)))
    return total


@given(st.integers(1, 6), st.data())
def test_probability_equals_enumeration_of_all_counts(n, data):
    ranks = np.array(sorted(data.draw(st.sets(st.integers(1, n), min_size=1))))
    bounds = np.sort(data.draw(hnp.arrays(np.float64, ranks.size, elements=st.floats(0.01, 1))))
    expected = enumerated(ranks, bounds, n)
    assert probability_within(ranks, bounds, n) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(
    ("n", "scaled"), [(2, 0.4), (2, 1.3), (20, 0.8), (200, 0.4), (1500, 0.8), (1500, 1.3)]
)
def test_probability_for_a_shifted_line_is_that_of_kolmogorov_and_smirnov(n, scaled):
    margin = scaled / np.sqrt(n)
    ranks = np.arange(1, n + 1)
    bounds = np.minimum((ranks - 1) / n + margin, 1.0)
    expected = stats.ksone.cdf(margin, n)
    assert probability_within(ranks, bounds, n) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "confidence"),
    [(1, 0.5), (2, 0.999), (3, 0.05), (5, 0.95), (30, 0.999999), (400, 0.05), (5000, 0.95)],
)
def test_local_levels_share_one_level_and_spend_the_risk(n, confidence):
    ranks, bounds = local_levels(n, confidence)
    assert ranks[0] == 1
    assert ranks[-1] == n
    assert (np.diff(ranks) > 0).all()
    assert (np.diff(bounds) > 0).all()
    levels = np.asarray(stats.beta.sf(bounds, ranks, n - ranks + 1))
    # the last bound may lie within rounding of 1
    np.testing.assert_allclose(levels, levels[0], rtol=1e-4)
    # never below the nominal confidence; the root is exact to a thousandth of the level
    held = probability_within(ranks, bounds, n)
    risk = 1 - confidence
    assert confidence * (1 - ROUNDING) <= held <= confidence + 3e-3 * risk * (1 + np.log(1 / risk))


def at(band, t):
    """Return the value of a step function: the last step that begins at or before `t`."""
    return np.asarray(band.upper[np.searchsorted(band.starts, t, side="right") - 1])


@given(VALUES)
def test_local_levels_band_is_the_least_bound_of_the_values_passed(values):
    band = local_levels_band(values, 0.5, 0.9)
    ranks, bounds = local_levels(values.size, 0.9)
    falling = np.sort(values)[::-1]
    t = np.concatenate((np.linspace(0, 0.5, 101), values))
    passed = falling[ranks - 1] <= t[:, None]
    np.testing.assert_allclose(at(band, t), np.where(passed, bounds, 1.0).min(axis=-1))


@statistical
@pytest.mark.parametrize("n", [5, 40, 300])
def test_bands_hold_with_ties_and_err_on_the_safe_side(n):
    rng = np.random.default_rng(n)
    support, chances = np.array([0.0, 0.1, 0.25, 0.5]), np.array([0.3, 0.4, 0.2, 0.1])

    def survival(t):
        return np.asarray((chances * (support > t[..., None])).sum(axis=-1))

    n_sets, broken = repeats(1000), 0
    t = np.linspace(0, 0.5, 400, endpoint=False)
    for _ in range(n_sets):
        band = local_levels_band(rng.choice(support, n, p=chances), 0.5, 0.9)
        # the truth falls and a step is flat, so it can only pass the band where a step begins
        begins = (survival(band.starts) > band.upper + 1e-12).any()
        broken += bool(begins or (survival(t) > at(band, t) + 1e-12).any())
    assert broken <= most_failures(n_sets, 0.1)


@given(VALUES, MASSES)
def test_worst_mean_equals_a_linear_programme_and_two_integrals(values, mass):
    found = cvar(values, mass)
    n = values.size
    # weights that add up to 1, none above 1 / (mass n)
    best = optimize.linprog(-values, A_eq=np.ones((1, n)), b_eq=[1], bounds=(0, 1 / (mass * n)))
    assert found == pytest.approx(values @ best.x, abs=1e-7)
    # Rockafellar & Uryasev 2000; the minimum lies at one of the values
    pivots = np.append(values, 0.0)
    expected = (pivots + np.maximum(values - pivots[:, None], 0).mean(axis=-1) / mass).min()
    assert found == pytest.approx(expected)
    # the integral of min(mass, survival): the survival is flat between the values
    edges = np.unique(np.concatenate(([0.0], values)))
    survival = (values > edges[:-1, None]).mean(axis=-1)
    wanted = (np.diff(edges) * np.minimum(mass, survival)).sum() / mass
    assert found == pytest.approx(wanted, abs=1e-12)


def two_points(chance):
    """Values 1/2 with this chance, else 0: the worst mean is that of the ones among the worst."""
    return (
        lambda rng, n: 0.5 * (rng.uniform(size=n) < chance),
        lambda mass: 0.5 * min(1.0, chance / mass),
    )


def beta_distribution(a, b):
    """Half of a Beta(a, b) value: `E[X; X > q]` is a times a Beta(a + 1, b) tail over a + b."""

    def worst(mass):
        edge = stats.beta.isf(mass, a, b)
        return float(0.5 * a / (a + b) * stats.beta.sf(edge, a + 1, b) / mass)

    return lambda rng, n: 0.5 * rng.beta(a, b, n), worst


DISTRIBUTIONS = {
    "seldom": two_points(0.01),
    "as often as the mass": two_points(0.2),
    "mostly": two_points(0.6),
    "uniform": beta_distribution(1, 1),
    "skewed": beta_distribution(0.4, 3),
    "narrow": beta_distribution(40, 20),
}


@statistical
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_bets_bound_the_worst_mean_at_the_nominal_rate(distribution):
    # 340 data sets for each distribution in all, 2040 together
    rng = np.random.default_rng(sorted(DISTRIBUTIONS).index(distribution))
    draw, worst = DISTRIBUTIONS[distribution]
    n_sets, broken = 0, 0
    for n, mass, whole in (
        *((100, 0.2, 150), (100, 0.05, 60), (300, 0.5, 60), (300, 1.0, 40), (2000, 0.2, 30)),
    ):
        bounds = [betting_cvar(draw(rng, n), mass, 0.5, 0.95, rng) for _ in range(repeats(whole))]
        n_sets += len(bounds)
        broken += int((np.array(bounds) < worst(mass)).sum())
    assert broken <= most_failures(n_sets, 0.05)


def test_bets_are_laid_before_the_row_is_seen():
    # the capital is a martingale: pivot and stake of a row depend on earlier rows alone
    rng = np.random.default_rng(4)
    rows = rng.uniform(0, 0.5, 300)
    bets = np.array(pivots_and_stakes(rows, 0.2, 0.5, 0.95))
    for k in range(0, 300, 7):
        others = np.concatenate((rows[:k], rng.choice([0.0, 0.5], 300 - k)))
        found = np.array(pivots_and_stakes(others, 0.2, 0.5, 0.95))[:, : k + 1]
        np.testing.assert_array_equal(found, bets[:, : k + 1])


@given(PITS, st.floats(0.01, 0.99))
def test_error_interval_is_the_least_and_largest_distance_to_the_band(pit, confidence):
    low, high = error_interval(pit, confidence)
    c = (np.arange(40_000) + 0.5) / 40_000
    share = (pit <= c[:, None]).mean(axis=-1)
    margin = np.sqrt(np.log(2 / (1 - confidence)) / (2 * pit.size))
    lower, upper = np.maximum(share - margin, 0), np.minimum(share + margin, 1)
    # at most twelve jumps, each placed within half a cell
    expected = np.maximum(0, np.maximum(lower - c, c - upper)).mean()
    assert low == pytest.approx(expected, abs=13 / 40_000)
    largest = np.maximum(np.abs(upper - c), np.abs(lower - c)).mean()
    assert high == pytest.approx(min(largest, 0.5), abs=13 / 40_000)
    assert 0 <= low <= high <= 0.5
