"""PITs, draws and weights: what is accepted, and that it is checked once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenhand._validate import InputError
from evenhand.calibration import (
    PITs,
    as_pits,
    calibration_error,
    check_own_draws,
    count_pits,
    covered,
    pathwise_errors,
)
from evenhand.certificates import Certificate, FixedSequenceCertificate, certify_pit
from evenhand.draws import jittered, nodes

R = jittered(20, 4, random_state=0)
W = np.arange(1.0, 21.0)


def test_shapes_are_those_of_people_by_draws() -> None:
    one = PITs([0.2, 0.7], [0.4, 0.5])
    assert one.matrix.shape == (2, 1)
    assert one.draws is not None
    assert one.draws.shape == (2, 1)
    assert (one.n_samples, one.n_draws, one.is_randomized) == (2, 1, True)
    assert PITs(R).is_randomized
    assert not PITs(R[:, 0]).is_randomized
    assert repr(PITs(R, R)) == ("PITs(n_samples=20, n_draws=4, has_draws=True, has_weights=False)")


def test_weights_have_mean_one_and_equal_ones_are_none() -> None:
    assert PITs(R, weights=np.full(20, 3.0)).weights is None
    weights = PITs(R, weights=W).weights
    assert weights is not None
    np.testing.assert_allclose(weights, W / W.mean(), rtol=1e-15)


@pytest.mark.parametrize("rows", [[3, 1, 4], np.arange(20) < 7, slice(2, 9)])
def test_rows_are_taken_with_their_draws_and_weights(rows: Any) -> None:
    some = PITs(R, R, W).take(rows)
    assert some.draws is not None
    assert some.weights is not None
    np.testing.assert_array_equal(some.matrix, R[rows])
    np.testing.assert_array_equal(some.draws, R[rows])
    np.testing.assert_allclose(some.weights, W[rows] / W[rows].mean(), rtol=1e-14)


def test_no_rows_and_rows_of_equal_weight_can_be_taken() -> None:
    pits = PITs(R, weights=W)
    assert pits.take([]).n_samples == 0
    assert pits.take([4]).weights is None


def test_copies_of_one_forecast_are_one_column() -> None:
    flat = np.repeat(R[:, :1], 3, axis=1)
    assert PITs(flat).without_copies().matrix.shape == (20, 1)
    assert PITs(flat, R[:, :3]).without_copies().n_draws == 3
    pits = PITs(R)
    assert pits.without_copies() is pits


CALLS: dict[str, Callable[[Any], Any]] = {
    "calibration_error": calibration_error,
    "pathwise_errors": lambda pit: pathwise_errors(pit).tolist(),
    "covered": lambda pit: covered(pit, 0.5).tolist(),
    "count_pits": lambda pit: count_pits(pit, random_state=0).one_draw.tolist(),
    "certify_pit": lambda pit: certify_pit(pit, random_state=0).summary(),
}


@pytest.mark.parametrize("name", CALLS)
def test_pits_are_checked_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    check = PITs.__post_init__
    monkeypatch.setattr(PITs, "__post_init__", lambda self: (made.append(1), check(self))[1])
    pits = PITs(R)
    CALLS[name](pits)
    assert len(made) == 1
    CALLS[name](R)
    assert len(made) == 2


def test_weights_of_pits_are_those_of_the_argument() -> None:
    assert calibration_error(PITs(R, weights=W)) == calibration_error(R, sample_weight=W)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "NaN": (lambda: PITs([0.2, np.nan]), r"pit\[1, 0\] must lie between 0 and 1, got nan"),
    "above": (lambda: PITs([[0.2, 1.2]]), r"pit\[0, 1\] must lie between 0 and 1"),
    "none": (lambda: PITs([]), r"pit must have shape \(n,\) or \(n, m\), n >= 1"),
    "text": (lambda: PITs(["a"]), "pit .*not numbers"),
    "draw of 1": (lambda: PITs([0.5], [1.0]), r"r\[0\] must lie strictly between 0 and 1"),
    "draws too few": (lambda: PITs(R, R[:10]), r"r must have the shape of pit \(20, 4\)"),
    "shared draws": (lambda: PITs(R, nodes(4)), r"draws\.jittered\(n, m\)"),
    "weight below 0": (lambda: PITs([0.1, 0.2], weights=[1, -1]), r"sample_weight\[1\]"),
    "no weight": (lambda: PITs([0.1, 0.2], weights=[0, 0]), "positive sum"),
    "weights too few": (lambda: PITs([0.1, 0.2], weights=[1]), "one value per row"),
    "draws twice": (lambda: as_pits(PITs(R), R), "^r .*PITs"),
    "weights twice": (lambda: as_pits(PITs(R), sample_weight=W), "^sample_weight .*PITs"),
    "weighted proof": (lambda: certify_pit(PITs(R, weights=W)), "sample_weight.*mass / W"),
    "cells": (lambda: check_own_draws(R[:, ::-1] ** 2), "one draw in each of 4 equal cells"),
    "same for all": (lambda: check_own_draws(np.tile(R[:1], (9, 1))), "draws for all people"),
    "twins": (lambda: check_own_draws(np.vstack([R, R[:1]])), "draws in rows 0 and 20"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_line(case: str) -> None:
    attempt, words = REFUSED[case]
    with pytest.raises(InputError, match=words) as refusal:
        attempt()
    assert "\n" not in str(refusal.value)


def test_draws_are_compared_in_the_rows_that_are_used() -> None:
    twice = np.vstack([R, R[:1]])
    check_own_draws(twice, np.arange(20))
    check_own_draws(R[:, [2, 0, 3, 1]])  # cells in any order


def test_tests_in_a_fixed_order_prove_the_target_and_nothing_else() -> None:
    proof = FixedSequenceCertificate(target=0.3, mass=0.2, confidence=0.9, n_people=50)
    assert isinstance(proof, Certificate)
    assert (proof.n_samples, proof.average_error()) == (50, 0.3)
    assert [proof.group_error(mass) for mass in (0.1, 0.2, 1.0)] == [0.5, 0.3, 0.3]
    assert proof.coverage(0.8, 0.5) == (0.0, 1.0)
    with pytest.raises(InputError, match="mPAIC was not tested"):
        proof.mpaic(0.1)
    assert "20% of people, by at most 30.0 points" in proof.summary()
    assert proof.table()["mass"].tolist() == [0.2]
