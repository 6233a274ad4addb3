"""Errors of PITs with cells, averaged over the positions in the cells, against exact fractions.

Hypothesis checks properties; random checks are seeded, with the false-alarm rate of a fresh seed.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from evenhand._validate import InputError
from evenhand.calibration import (
    PITs,
    as_pits,
    calibration_error,
    cell_error,
    pathwise_errors,
)

Floats = NDArray[np.float64]


def exact_w1(low: Floats, high: Floats, weights: Floats) -> float:
    """Return the W1 distance of a sum of ramps to uniform, by a loop over exact fractions."""
    total = sum(Fraction(float(w)) for w in weights)
    cells = [
        (Fraction(float(a)), Fraction(float(b)), Fraction(float(w)) / total)
        for a, b, w in zip(low, high, weights, strict=True)
    ]

    def cdf(c: Fraction, *, is_left: bool) -> Fraction:
        value = Fraction(0)
        for a, b, w in cells:
            if a < b:
                value += w * min(max((c - a) / (b - a), Fraction(0)), Fraction(1))
            elif a < c or (a == c and not is_left):
                value += w
        return value

    area = Fraction(0)
    ends = sorted({Fraction(0), Fraction(1)} | {end for a, b, _ in cells for end in (a, b)})
    for a, b in pairwise(ends):
        x = cdf(a, is_left=False) - a
        y = cdf(b, is_left=True) - b
        # one triangle or two, or a trapezium
        height = abs(x + y) if x * y >= 0 else (x * x + y * y) / (abs(x) + abs(y))
        area += (b - a) * height / 2
    return float(area)


def random_cells(rng: np.random.Generator, n: int, kind: str) -> tuple[Floats, Floats]:
    """Return cells of a kind: of any width, of very different widths with points, or of a grid."""
    low = rng.random(n)
    if kind == "wide":
        return low, low + rng.random(n) * (1 - low)
    if kind == "narrow":
        width = 10.0 ** rng.uniform(-13, 0, size=n) * (rng.random(n) < 0.7)
        return low, np.minimum(low + width, 1.0)
    low = rng.integers(0, 8, size=n) / 8
    return low, low + rng.integers(0, 2, size=n) / 8


@pytest.mark.parametrize(
    ("kind", "n", "is_weighted"),
    [("wide", 1, True), ("narrow", 2, False), ("grid", 5, True), ("narrow", 40, True)],
)
def test_sums_of_ramps_are_exact(kind: str, n: int, is_weighted: bool) -> None:
    rng = np.random.default_rng(n)
    for _ in range(5):
        low, high = random_cells(rng, n, kind)
        weights = rng.exponential(size=n) if is_weighted else np.ones(n)
        expected = exact_w1(low, high, weights)
        found = calibration_error((low, high), sample_weight=weights if is_weighted else None)
        assert found == pytest.approx(expected, abs=1e-14)


def test_blocks_and_cells_of_tiny_width_do_not_change_the_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    low, high = random_cells(rng, 60, "narrow")
    low[:20], high[:20] = 0.3, 0.3 + 1e-15 * np.arange(20)
    high = np.maximum(low, high)
    expected = exact_w1(low, high, np.ones(60))
    assert calibration_error((low, high)) == pytest.approx(expected, abs=1e-14)
    monkeypatch.setattr("evenhand.calibration.errors.BLOCK_ENDS", 7)
    assert calibration_error((low, high)) == pytest.approx(expected, abs=1e-14)


def test_pathwise_errors_are_those_of_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    low, high = (end.reshape(30, 8) for end in random_cells(rng, 240, "narrow"))
    high = high.copy()
    high[::3] = low[::3]  # rows without atoms, as in a hurdle
    expected = [exact_w1(a, b, np.ones(8)) for a, b in zip(low, high, strict=True)]
    np.testing.assert_allclose(pathwise_errors((low, high)), expected, rtol=0, atol=1e-14)
    monkeypatch.setattr("evenhand.calibration.errors.BLOCK_CELLS", 20)
    np.testing.assert_allclose(pathwise_errors((low, high)), expected, rtol=0, atol=1e-14)


def test_the_error_of_an_event_is_half_the_distance_of_the_mean_probability() -> None:
    # outcomes: theorem 4.3
    rng = np.random.default_rng(7)
    p = rng.random((50, 16))
    y = rng.random(50) < 0.4
    low = np.where(y[:, None], 1 - p, 0.0)
    high = np.where(y[:, None], 1.0, 1 - p)
    expected = np.abs(y - p.mean(axis=-1)) / 2
    np.testing.assert_allclose(pathwise_errors((low, high)), expected, rtol=0, atol=1e-14)


def test_the_error_of_one_probability_is_half_its_distance_from_the_rate() -> None:
    # outcomes: theorem 4.1
    y = np.arange(200) < 60
    for p in (0.1, 0.3, 0.9):
        cells = np.where(y, 1 - p, 0.0), np.where(y, 1.0, 1 - p)
        assert calibration_error(cells) == pytest.approx(abs(p - 0.3) / 2, abs=1e-14)


CELLS = st.integers(1, 6).flatmap(
    lambda m: st.lists(
        st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted), min_size=m, max_size=m),
        min_size=1,
        max_size=6,
    )
)


@settings(max_examples=80, deadline=None)
@given(CELLS)
def test_the_cell_error_bounds_the_error_from_both_sides(ends: list[list[list[float]]]) -> None:
    # outcomes: 2. Links rise in the draw, so that both ends do
    low, high = np.sort(np.array(ends), axis=1).transpose(2, 0, 1)
    error = pathwise_errors((low, high))
    width = (high - low).mean(axis=-1)
    for i in range(low.shape[0]):
        cell = cell_error((low[[i]], high[[i]]))
        assert cell <= error[i] + 1e-14
        assert error[i] <= cell + width[i] / 2 + 1e-14
    overall = calibration_error((low, high))
    assert cell_error((low, high)) <= overall + 1e-14
    # convexity of W1
    assert overall <= error.mean() + 1e-14


@settings(max_examples=50, deadline=None)
@given(CELLS)
def test_cells_that_are_points_give_the_errors_of_their_points(
    ends: list[list[list[float]]],
) -> None:
    low = np.array(ends)[..., 0]
    assert as_pits((low, low)).cells is None
    assert cell_error(low) == pytest.approx(calibration_error(low), abs=1e-14)
    # one narrow cell elsewhere lets all others pass through the sums of ramps
    joined = np.vstack((low, np.zeros((1, low.shape[1]))))
    high = joined.copy()
    high[-1] = 1e-13
    assert calibration_error((joined, high)) == pytest.approx(calibration_error(joined), abs=1e-13)
    np.testing.assert_allclose(
        pathwise_errors((joined, high)), pathwise_errors(joined), rtol=0, atol=1e-13
    )


@settings(max_examples=50, deadline=None)
@given(CELLS, st.data())
def test_weights_are_repetitions_of_people(
    ends: list[list[list[float]]], data: st.DataObject
) -> None:
    low, high = np.array(ends).transpose(2, 0, 1)
    n = low.shape[0]
    counts = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any))
    pits = PITs.of_cells(low, high, np.linspace(0, 1, n), weights=counts)
    chosen = pits.take(np.repeat(np.arange(n), counts))
    unweighted = PITs.of_cells(chosen.low, chosen.high, np.zeros(chosen.n_samples))
    for measure in (calibration_error, cell_error):
        assert measure(pits) == pytest.approx(measure(unweighted), abs=1e-13)
    if all(counts):
        np.testing.assert_allclose(
            pathwise_errors(pits), pathwise_errors((low, high)), rtol=0, atol=0
        )


def test_a_true_forecast_has_an_error_that_vanishes() -> None:
    # each outcome of Poisson(2) in its expected share: the cells partition [0, 1]
    y = np.arange(40)
    low, high = stats.poisson.cdf(y - 1, 2.0), stats.poisson.cdf(y, 2.0)
    pmf = stats.poisson.pmf(y, 2.0)
    assert calibration_error((low, high), sample_weight=pmf) == pytest.approx(0, abs=1e-14)
    assert cell_error((low, high), sample_weight=pmf) == pytest.approx(0, abs=1e-14)
    # mid-PITs of the same law are far from uniform (outcomes: 2)
    assert calibration_error((low + high) / 2, sample_weight=pmf) == pytest.approx(0.051, abs=1e-3)


def test_the_cell_error_of_a_biased_event_is_blind() -> None:
    # 0.5 announced, rate 0.6: W1 0.05; every whole-cell set holds what it states
    y = np.arange(10) < 6
    cells = np.where(y, 0.5, 0.0), np.where(y, 1.0, 0.5)
    assert calibration_error(cells) == pytest.approx(0.05, abs=1e-14)
    # B(c) = 0.4 below 0.5, where it is less than c from 0.4 on: a triangle of side 0.1
    assert cell_error(cells) == pytest.approx(0.005, abs=1e-14)


def test_a_tuple_of_arrays_is_cells_and_a_tuple_of_numbers_is_pits() -> None:
    assert as_pits((0.2, 0.7)).cells is None
    pits = as_pits(([0.2, 0.3], [0.7, 0.3]), random_state=0)
    assert pits.cells is not None
    assert pits.matrix.shape == (2, 1)
    np.testing.assert_array_equal(
        pits.matrix, as_pits(([0.2, 0.3], [0.7, 0.3]), random_state=0).matrix
    )
    with pytest.raises(InputError, match="high must have the shape of low"):
        as_pits(([0.2, 0.3], [0.7]))
    with pytest.raises(InputError, match="lie in its cell"):
        as_pits(([0.5, 0.3], [0.2, 0.7]))


def test_copies_of_a_pit_in_different_cells_are_not_dropped() -> None:
    pits = PITs(
        np.array([[0.5, 0.5]]),
        cells=(np.array([[0.5, 0.0]]), np.array([[0.5, 1.0]])),
    )
    assert pits.without_copies().n_draws == 2
