"""Calibration measures against brute force, SciPy, theory and simulation.

Random checks are seeded; where one has a false-alarm rate, it is that of the check with a fresh
seed.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import integrate, special, stats

from evenhand.calibration import (
    Grid,
    calibration_error,
    cell_log_score,
    covered,
    crps,
    interval_width,
    log_score,
    pathwise_errors,
    rounding_step,
    spread,
)
from evenhand.distributions import Normal
from evenhand.draws import nodes
from evenhand.forecast import Forecast
from evenhand.search import worst_group_curve

Floats = NDArray[np.float64]

MATRICES = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.floats(0, 1)
)


def ece(values: Floats, weights: Floats | None = None) -> float:
    """Integrate |P(PIT <= c) - c| exactly; the CDF is constant between the PITs."""
    masses = np.ones(values.size) if weights is None else weights
    total = 0.0
    edges = np.unique(np.concatenate(([0.0], values, [1.0])))
    for low, high in pairwise(edges):
        share = masses[values <= low].sum() / masses.sum()
        # of |share - c|, over both sides of the point where c passes the share
        middle = min(max(share, low), high)
        total += (
            (share - low) ** 2 - (share - middle) ** 2 + (high - share) ** 2 - (middle - share) ** 2
        ) / 2
    return total


def biased_error(shift: float, scale: float) -> float:
    """W1 of the PITs of Normal(0, 1) for outcomes Normal(shift, scale), by quadrature."""

    def gap(c: float) -> float:
        return abs(float(special.ndtr((special.ndtri(c) - shift) / scale)) - c)

    return float(integrate.quad(gap, 0, 1, limit=200, epsabs=1e-9)[0])


# --- calibration error


@pytest.mark.parametrize("n", [1, 2, 7, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_w1_agrees_with_scipy(n: int, weighted: bool) -> None:
    rng = np.random.default_rng(n)
    pit, weights = rng.beta(2, 3, size=n), rng.exponential(size=n) if weighted else None
    grid = nodes(100_000)[0]
    expected = stats.wasserstein_distance(pit, grid, u_weights=weights)
    # the grid itself is 1 / (4 * 100 000) from uniform: the triangle inequality bounds the
    # difference
    assert calibration_error(pit, sample_weight=weights) == pytest.approx(expected, abs=2.5e-6)


@settings(max_examples=100, deadline=None)
@given(MATRICES)
def test_w1_is_the_expected_calibration_error(pit: Floats) -> None:
    error = calibration_error(pit)
    # both are exact up to rounding of at most 64 terms below 1
    assert error == pytest.approx(ece(pit.ravel()), abs=1e-13)
    assert 0 <= error <= 0.5 + 1e-15


@settings(max_examples=100, deadline=None)
@given(MATRICES, st.data())
def test_weights_are_repetitions_and_draws_of_a_person_share_them(
    pit: Floats, data: st.DataObject
) -> None:
    n, m = pit.shape
    counts = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(any)))
    weighted = calibration_error(pit, sample_weight=counts / 3)
    assert weighted == pytest.approx(calibration_error(np.repeat(pit, counts, axis=0)), abs=1e-13)
    assert weighted == pytest.approx(
        ece(pit.ravel(), np.repeat(counts, m).astype(float)), abs=1e-13
    )


@pytest.mark.parametrize("k", [1, 2, 10, 1000])
def test_evenly_spaced_midpoints_are_as_near_as_a_step_law_can_be(k: int) -> None:
    # a midpoint is up to 1 / (2k) from its cell: the mean of a uniform distance
    assert calibration_error(nodes(k)[0]) == pytest.approx(1 / (4 * k), rel=1e-9)


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_pits_at_one_end_are_as_wrong_as_can_be(end: float) -> None:
    assert calibration_error(np.full(9, end)) == pytest.approx(0.5, abs=1e-15)


# --- pathwise errors


@settings(max_examples=100, deadline=None)
@given(MATRICES)
def test_pathwise_errors_are_exact(pit: Floats) -> None:
    errors = pathwise_errors(pit)
    assert errors.shape == (pit.shape[0],)
    np.testing.assert_allclose(errors, [ece(row) for row in pit], atol=1e-13)
    np.testing.assert_allclose(errors, pathwise_errors(pit[:, ::-1]), atol=1e-15)
    assert (errors <= 0.5 + 1e-15).all()


@settings(max_examples=100, deadline=None)
@given(hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1)))
def test_a_deterministic_forecast_proves_nothing_below_a_quarter(pit: Floats) -> None:
    errors = pathwise_errors(pit)
    np.testing.assert_allclose(errors, pit**2 / 2 + (1 - pit) ** 2 / 2, atol=1e-15)
    assert (errors >= 0.25 - 1e-15).all()


def test_few_columns_are_not_compared_with_their_own_draws() -> None:
    # mean |sort(u) - r| is 0 in both cases; the step distribution of m midpoints is 1 / (4m) from
    # uniform
    for m in (1, 2, 5):
        assert pathwise_errors(nodes(m))[0] == pytest.approx(1 / (4 * m), rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(MATRICES)
def test_the_average_error_is_at_most_the_mean_pathwise_error(pit: Floats) -> None:
    assert calibration_error(pit) <= pathwise_errors(pit).mean() + 1e-14


# --- worst groups


@settings(max_examples=50, deadline=None)
@given(MATRICES, st.lists(st.floats(0.01, 1), min_size=1, max_size=4))
def test_groups_have_the_size_asked_for_and_reproduce_their_error(
    pit: Floats, masses: list[float]
) -> None:
    n = pit.shape[0]
    curve = worst_group_curve(pit, [*masses, 1.0], random_state=0)
    np.testing.assert_array_equal(curve.masses, [*masses, 1.0])
    for mass, error, rows in zip(curve.masses, curve.errors, curve.rows, strict=True):
        k = rows.size
        # ceil(mass * n), but for the rounding error of the product
        assert k - 1 < mass * n + 1e-8
        assert mass * n <= k + 1e-8
        assert np.unique(rows).size == k
        assert error == pytest.approx(calibration_error(pit[rows]), abs=1e-15)
    assert curve.errors[-1] == pytest.approx(calibration_error(pit), abs=1e-15)
    np.testing.assert_array_equal(curve.rows[-1], np.arange(n))


@pytest.mark.parametrize(
    ("mass", "n", "size"),
    [(0.3, 10, 3), (0.07, 100, 7), (0.55, 100, 55), (0.31, 10, 4), (1e-9, 5, 1)],
)
def test_a_rounding_error_adds_no_row(mass: float, n: int, size: int) -> None:
    curve = worst_group_curve(np.linspace(0, 1, n), mass, random_state=0)
    assert curve.rows[0].size == size


def worst_by_brute_force(pit: Floats, k: int) -> tuple[float, float]:
    """Largest error and largest |mean PIT - 1/2| over all groups of `k` rows."""
    groups = [pit[list(rows)] for rows in combinations(range(pit.shape[0]), k)]
    return max(ece(group.ravel()) for group in groups), max(
        abs(group.mean() - 0.5) for group in groups
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_search_lies_between_the_shift_of_the_mean_and_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pit = rng.beta(*rng.uniform(0.4, 2, size=2), size=(9, int(rng.integers(1, 4))))
    for k in (2, 4, 6):
        error = worst_group_curve(pit, k / 9, random_state=0).errors[0]
        best, shift = worst_by_brute_force(pit, k)
        # W1 is at least the shift of the mean, and the groups searched have the largest shift of
        # all
        assert shift - 1e-12 <= error <= best + 1e-12


@pytest.mark.parametrize(("seed", "m", "side"), [(0, 1, "low"), (1, 3, "high"), (2, 3, "low")])
def test_the_search_is_exact_where_all_pits_lie_at_one_side(seed: int, m: int, side: str) -> None:
    # within 1 / (2km) of an end W1 grows with each PIT; rows are ordered in all draws at once, so
    # the rows nearest to the end are a worst group
    rng = np.random.default_rng(seed)
    k, n = 3, 9
    room = 1 / (2 * k * m)
    pit = room * np.sort(rng.uniform(size=(n, m)), axis=0)[rng.permutation(n)]
    if side == "high":
        pit = 1 - pit
    curve = worst_group_curve(pit, k / n, random_state=0)
    assert curve.errors[0] == pytest.approx(worst_by_brute_force(pit, k)[0], abs=1e-13)


def test_planted_halves_are_found_where_random_subsets_see_nothing() -> None:
    n, shift = 2_000, 0.5
    rng = np.random.default_rng(3)
    half = rng.permutation(n) < n // 2
    y = rng.normal(size=n) + np.where(half, shift, -shift)
    pit = Forecast.from_normal(np.zeros(n), np.ones(n)).pit(y)
    true_error = biased_error(shift, 1.0)
    # E Phi(Y) - 1/2 in closed form, since the shifted PITs lie on one side of uniform
    assert true_error == pytest.approx(special.ndtr(shift / np.sqrt(2)) - 0.5, abs=1e-8)
    planted = max(calibration_error(pit[half]), calibration_error(pit[~half]))
    # PITs of a half have a standard deviation below 0.3: five standard errors, a false alarm in
    # 10^6
    assert planted == pytest.approx(true_error, abs=5 * 0.3 / np.sqrt(n / 2))
    found = worst_group_curve(pit, 0.5, random_state=0).errors[0]
    assert found >= abs(pit[half].mean() - 0.5) - 1e-12
    at_random = max(calibration_error(pit[rng.permutation(n) < n // 2]) for _ in range(200))
    assert found > true_error > 2 * at_random


# --- the band


# --- scores


def normals(n: int, m: int | None) -> tuple[Forecast, Floats, Floats]:
    """A forecast of `n` normals (for each of `m` draws), its means and deviations."""
    rng = np.random.default_rng(8)
    shape = (n,) if m is None else (n, m)
    loc, scale = rng.normal(size=shape), rng.uniform(0.5, 2, size=shape)
    return Forecast(Normal(loc, scale), None if m is None else nodes(m)), loc, scale


def over_draws(values: Floats) -> Floats:
    return values if values.ndim == 1 else values.mean(axis=1)


@pytest.mark.parametrize("m", [None, 1, 3])
def test_scores_are_means_over_draws_of_each_persons_score(m: int | None) -> None:
    forecast, loc, scale = normals(6, m)
    y = np.random.default_rng(9).normal(size=6)
    column = y if m is None else y[:, None]
    peer = stats.norm(loc, scale)

    def numeric_crps(mean: float, std: float, outcome: float) -> float:
        # integral of (F - 1{y <= t})^2, in two smooth parts
        below = integrate.quad(
            lambda t: special.ndtr((t - mean) / std) ** 2, -40, outcome, limit=200
        )[0]
        return (
            below
            + integrate.quad(lambda t: special.ndtr((mean - t) / std) ** 2, outcome, 40, limit=200)[
                0
            ]
        )

    np.testing.assert_allclose(log_score(forecast, y), over_draws(-peer.logpdf(column)), rtol=1e-12)
    np.testing.assert_allclose(
        crps(forecast, y), over_draws(np.vectorize(numeric_crps)(loc, scale, column)), rtol=1e-6
    )
    np.testing.assert_allclose(spread(forecast), over_draws(scale), rtol=1e-12)
    np.testing.assert_allclose(
        interval_width(forecast), over_draws(peer.ppf(0.95) - peer.ppf(0.05)), rtol=1e-12
    )
    np.testing.assert_allclose(
        interval_width(forecast, 0.5), over_draws(peer.ppf(0.75) - peer.ppf(0.25)), rtol=1e-12
    )


@pytest.mark.parametrize("m", [None, 3])
def test_the_cell_log_score_is_the_probability_of_the_rounding_cell(m: int | None) -> None:
    forecast, loc, scale = normals(7, m)
    y, step = np.array([-1.0, -0.5, 0.0, 0.5, 0.5, 1.5, 2.0]), 0.5
    low, high = y - step / 2, y + step / 2
    low[0], high[-1] = -np.inf, np.inf
    if m is not None:
        low, high = low[:, None], high[:, None]
    peer = stats.norm(loc, scale)
    expected = over_draws(-np.log((peer.cdf(high) - peer.cdf(low)) / step))
    np.testing.assert_allclose(cell_log_score(forecast, y, step), expected, rtol=1e-10)


def test_the_cells_of_a_grid_hold_all_probability_once() -> None:
    y, step = np.arange(-5, 12) * 0.25, 0.25
    forecast = Forecast.from_normal(np.full(y.size, 0.6), np.full(y.size, 1.3))
    assert (np.exp(-cell_log_score(forecast, y, step)) * step).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("sign", [-1, 1])
def test_far_tails_keep_their_digits(sign: int) -> None:
    # 30 standard deviations out: 1 - cdf is 0, the cell is not
    y = sign * np.array([30.0, 31.0, 29.0])
    inside = stats.norm.logsf(29.75) + np.log1p(
        -np.exp(stats.norm.logsf(30.25) - stats.norm.logsf(29.75))
    )
    score = cell_log_score(Forecast.from_normal(np.zeros(3), np.ones(3)), y, 0.5)[0]
    assert score == pytest.approx(-(inside - np.log(0.5)), rel=1e-10)


def test_a_pit_is_covered_where_the_interval_holds_the_outcome() -> None:
    forecast, _, _ = normals(200, 3)
    y = np.random.default_rng(1).normal(size=200)
    low, high = forecast.interval(0.8)
    expected = ((low <= y[:, None]) & (y[:, None] <= high)).mean(axis=-1)
    np.testing.assert_array_equal(covered(forecast.pit(y), 0.8), expected)


# --- rounding


def crime_like(n: int = 2000) -> Floats:
    """Return shares on a 0.01 grid, piled up at 1, as in Communities and Crime."""
    return np.round(np.clip(np.random.default_rng(0).exponential(0.3, size=n), 0, 1), 2)


@pytest.mark.parametrize(
    ("y", "step"),
    [
        (np.random.default_rng(0).integers(0, 300, size=1000).astype(float), 1.0),
        (np.random.default_rng(0).integers(0, 300, size=1000) * 2.0, 2.0),
        (np.random.default_rng(0).integers(-40, 40, size=1000) * 0.25 + 0.125, 0.25),
        (np.round(np.random.default_rng(0).normal(1e6, 0.3, size=1000), 2), 0.01),
        (np.random.default_rng(0).integers(0, 50, size=1000) * 1e-9, 1e-9),
        (crime_like(), 0.01),
        (-crime_like(), 0.01),
        ([1.0, 1.0, 4.0], 3.0),
        (np.arange(500.0), 1.0),
        (np.random.default_rng(0).choice(4000, size=60, replace=False) + 950.0, 1.0),
        (np.random.default_rng(0).permutation(4000)[:60] * 0.05 / 3.7 - 2.0, 0.05 / 3.7),
        (np.append(np.random.default_rng(0).integers(9, 90, size=300) * 100.0, [1234, 5677]), 1.0),
        (np.random.default_rng(0).normal(1e6, 0.3, size=40).astype(np.float32), 0.0625),
    ],
)
def test_the_step_of_rounded_outcomes_is_found(y: Any, step: float) -> None:
    # ten digits are given
    found = rounding_step(y)
    assert found == pytest.approx(step, rel=1e-9)
    assert type(found) is float


def test_rounding_errors_make_no_finer_grid() -> None:
    # k * 0.01 and k / 100 differ in the last bit for some k
    k = np.arange(100)
    assert np.unique(np.concatenate((k * 0.01, k / 100))).size > 100
    assert rounding_step(np.concatenate((k * 0.01, k / 100, k * 0.01))) == 0.01


@pytest.mark.parametrize(
    "y",
    [
        np.random.default_rng(0).normal(size=500),
        np.random.default_rng(0).choice(np.random.default_rng(1).normal(size=500), size=500),
        np.concatenate((np.zeros(250), np.random.default_rng(0).exponential(size=250))),
        np.concatenate(
            (
                np.random.default_rng(0).integers(0, 20, size=250),
                np.random.default_rng(1).normal(size=250),
            )
        ),
        np.arange(9.0),
        np.full(50, 3.0),
        [3.0],
        np.repeat([0.0, 2.0, 5.0], 10),
    ],
)
def test_outcomes_off_a_grid_have_no_step(y: Any) -> None:
    assert rounding_step(y) is None


@pytest.mark.parametrize(("n_repeats", "step"), [(9, None), (10, 1.0), (50, 1.0)])
def test_a_tenth_of_the_outcomes_must_repeat_on_a_very_fine_grid(
    n_repeats: int, step: float | None
) -> None:
    near = np.arange(99.0 - n_repeats)
    y = np.concatenate((near, near[:n_repeats], [1e6]))
    assert rounding_step(y) == step


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(5, 60))
def test_distinct_numbers_that_are_not_rounded_have_no_step(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    assert rounding_step(rng.lognormal(8, 1, size=size)) is None


def test_the_cells_at_bounds_alone_are_open() -> None:
    rng = np.random.default_rng(0)
    shares = np.clip(np.round(rng.normal(0.5, 0.2, size=2000), 2), 0, 0.8)
    assert Grid.of(shares) == Grid(0.01, (-np.inf, 0.8))
    assert Grid.of(np.arange(30.0)) == Grid(1.0)
    assert Grid.of(rng.normal(size=300)) is None
