"""Calibration measures against brute force, SciPy, theory and simulation."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from complaints import refused
from evenhand.calibration import Cells, as_cells, calibration_error, covered, pathwise_errors
from evenhand.certificates import certify_pit
from evenhand.distributions import Normal
from evenhand.draws import check_own_draws, jittered, nodes
from evenhand.forecast import Forecast
from evenhand.outcomes import rounding_step
from evenhand.scoring import cell_log_score
from evenhand.search import worst_group_curve

MATRICES = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.floats(0, 1)
)


def ece(values, weights=None):
    """Integrate |P(PIT <= c) - c| exactly; the CDF is constant between the PITs."""
    masses = np.ones(values.size) if weights is None else weights
    total = 0.0
    for low, high in pairwise(np.unique(np.concatenate(([0.0], values, [1.0])))):
        share = masses[values <= low].sum() / masses.sum()
        # of |share - c|, over both sides of the point where c passes the share
        middle = min(max(share, low), high)
        total += (
            (share - low) ** 2 - (share - middle) ** 2 + (high - share) ** 2 - (middle - share) ** 2
        ) / 2
    return total


@settings(max_examples=100)
@given(MATRICES)
def test_w1_is_the_expected_calibration_error(pit):
    error = calibration_error(pit)
    # both are exact up to rounding of at most 64 terms below 1
    assert error == pytest.approx(ece(pit.ravel()), abs=1e-13)
    assert 0 <= error <= 0.5 + 1e-15


@settings(max_examples=100)
@given(MATRICES, st.data())
def test_weights_are_repetitions_and_draws_of_a_person_share_them(pit, data):
    n, m = pit.shape
    counts = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(any)))
    weighted = calibration_error(pit, sample_weight=counts / 3)
    assert weighted == pytest.approx(calibration_error(np.repeat(pit, counts, axis=0)), abs=1e-13)
    expected = ece(pit.ravel(), np.repeat(counts, m).astype(float))
    assert weighted == pytest.approx(expected, abs=1e-13)


@settings(max_examples=100)
@given(MATRICES)
def test_pathwise_errors_are_exact(pit):
    errors = pathwise_errors(pit)
    assert errors.shape == (pit.shape[0],)
    np.testing.assert_allclose(errors, [ece(row) for row in pit], atol=1e-13)
    np.testing.assert_allclose(errors, pathwise_errors(pit[:, ::-1]), atol=1e-15)
    assert (errors <= 0.5 + 1e-15).all()


@pytest.mark.parametrize(
    ("mass", "n", "size"),
    [(0.3, 10, 3), (0.07, 100, 7), (0.55, 100, 55), (0.31, 10, 4), (1e-9, 5, 1)],
)
def test_a_rounding_error_adds_no_row(mass, n, size):
    curve = worst_group_curve(np.linspace(0, 1, n), mass, random_state=0)
    assert curve.rows[0].size == size


def normals(n, m):
    rng = np.random.default_rng(8)
    shape = (n,) if m is None else (n, m)
    loc, scale = rng.normal(size=shape), rng.uniform(0.5, 2, size=shape)
    return Forecast(Normal(loc, scale), None if m is None else nodes(m)), loc, scale


@pytest.mark.parametrize("m", [None, 3])
def test_the_cell_log_score_is_the_probability_of_the_rounding_cell(m):
    forecast, loc, scale = normals(7, m)
    y, step = np.array([-1.0, -0.5, 0.0, 0.5, 0.5, 1.5, 2.0]), 0.5
    low, high = y - step / 2, y + step / 2
    low[0], high[-1] = -np.inf, np.inf
    if m is not None:
        low, high = low[:, None], high[:, None]
    peer = stats.norm(loc, scale)
    # averaged over the draws of each person
    expected = -np.log((peer.cdf(high) - peer.cdf(low)) / step).reshape(7, -1).mean(axis=1)
    np.testing.assert_allclose(cell_log_score(forecast, y, step), expected, rtol=1e-10)


def test_a_pit_is_covered_where_the_interval_holds_the_outcome():
    forecast, _, _ = normals(200, 3)
    y = np.random.default_rng(1).normal(size=200)
    low, high = forecast.interval(0.8)
    expected = ((low <= y[:, None]) & (y[:, None] <= high)).mean(axis=-1)
    np.testing.assert_array_equal(covered(forecast.pit(y), 0.8), expected)


def seeded(seed):
    return np.random.default_rng(seed)


def crime_like(n=2000):
    """Return shares on a 0.01 grid, piled up at 1, as in Communities and Crime."""
    return np.round(np.clip(seeded(0).exponential(0.3, size=n), 0, 1), 2)


@pytest.mark.parametrize(
    ("y", "step"),
    [
        (seeded(0).integers(0, 300, size=1000).astype(float), 1.0),
        (seeded(0).integers(0, 300, size=1000) * 2.0, 2.0),
        (seeded(0).integers(-40, 40, size=1000) * 0.25 + 0.125, 0.25),
        (np.round(seeded(0).normal(1e6, 0.3, size=1000), 2), 0.01),
        (seeded(0).integers(0, 50, size=1000) * 1e-9, 1e-9),
        (crime_like(), 0.01),
        (-crime_like(), 0.01),
        ([1.0, 1.0, 4.0], 3.0),
        (np.arange(500.0), 1.0),
        (seeded(0).choice(4000, size=60, replace=False) + 950.0, 1.0),
        (seeded(0).permutation(4000)[:60] * 0.05 / 3.7 - 2.0, 0.05 / 3.7),
        (np.append(seeded(0).integers(9, 90, size=300) * 100.0, [1234, 5677]), 1.0),
        (seeded(0).normal(1e6, 0.3, size=40).astype(np.float32), 0.0625),
    ],
)
def test_the_step_of_rounded_outcomes_is_found(y, step):
    # ten digits are given
    found = rounding_step(y)
    assert found == pytest.approx(step, rel=1e-9)
    assert type(found) is float


@pytest.mark.parametrize(
    "y",
    [
        seeded(0).normal(size=500),
        seeded(0).choice(seeded(1).normal(size=500), size=500),
        np.concatenate((np.zeros(250), seeded(0).exponential(size=250))),
        np.concatenate((seeded(0).integers(0, 20, size=250), seeded(1).normal(size=250))),
        np.arange(9.0),
        np.full(50, 3.0),
        [3.0],
        np.repeat([0.0, 2.0, 5.0], 10),
    ],
)
def test_outcomes_off_a_grid_have_no_step(y):
    assert rounding_step(y) is None


# --- PITs, draws and weights: what is accepted, and that it is checked once


R = jittered(20, 4, random_state=0)
W = np.arange(1.0, 21.0)


def test_weights_have_mean_one_and_equal_ones_are_none():
    assert Cells(R, weights=np.full(20, 3.0)).weights is None
    np.testing.assert_allclose(Cells(R, weights=W).weights, W / W.mean(), rtol=1e-15)


@pytest.mark.parametrize("rows", [[3, 1, 4], np.arange(20) < 7, slice(2, 9)])
def test_rows_are_taken_with_their_draws_and_weights(rows):
    some = Cells(R, draws=R, weights=W).take(rows)
    np.testing.assert_array_equal(some.drawn, R[rows])
    np.testing.assert_array_equal(some.draws, R[rows])
    np.testing.assert_allclose(some.weights, W[rows] / W[rows].mean(), rtol=1e-14)


def test_copies_of_one_forecast_are_one_column():
    flat = np.repeat(R[:, :1], 3, axis=1)
    assert Cells(flat).without_copies().drawn.shape == (20, 1)
    assert Cells(flat, draws=R[:, :3]).without_copies().n_draws == 3
    pits = Cells(R)
    assert pits.without_copies() is pits


def test_bad_input_is_one_line():
    refused(r"pit\[1, 0\] must lie between 0 and 1, got nan", Cells, [0.2, np.nan])
    refused(r"pit\[0, 1\] must lie between 0 and 1", Cells, [[0.2, 1.2]])
    refused(r"pit must have shape \(n,\) or \(n, m\), n >= 1", Cells, [])
    refused("pit .*not numbers", Cells, ["a"])
    refused(r"r\[0\] must lie strictly between 0 and 1", Cells, [0.5], draws=[1.0])
    refused(r"r must have the shape of pit \(20, 4\)", Cells, R, draws=R[:10])
    refused(r"draws\.jittered\(n, m\)", Cells, R, draws=nodes(4))
    refused(r"sample_weight\[1\]", Cells, [0.1, 0.2], weights=[1, -1])
    refused("positive sum", Cells, [0.1, 0.2], weights=[0, 0])
    refused("one value per row", Cells, [0.1, 0.2], weights=[1])
    refused("^r .*Cells", as_cells, Cells(R), R)
    refused("^sample_weight .*Cells", as_cells, Cells(R), sample_weight=W)
    refused("weights.*mass / W", certify_pit, Cells(R, weights=W))
    refused("one draw in each of 4 equal cells", check_own_draws, R[:, ::-1] ** 2)
    refused("draws for all people", check_own_draws, np.tile(R[:1], (9, 1)))
    refused("draws in rows 0 and 20", check_own_draws, np.vstack([R, R[:1]]))


def test_draws_are_compared_in_the_rows_that_are_used():
    check_own_draws(np.vstack([R, R[:1]]), np.arange(20))
    check_own_draws(R[:, [2, 0, 3, 1]])  # cells in any order
