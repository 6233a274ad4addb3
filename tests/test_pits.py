"""PITs, draws and weights: what is accepted, and that it is checked once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from complaints import refused
from evenhand.calibration import (
    Cells,
    as_cells,
    calibration_error,
    check_own_draws,
    count_pits,
    covered,
    pathwise_errors,
)
from evenhand.certificates import certify_pit
from evenhand.draws import jittered, nodes

R = jittered(20, 4, random_state=0)
W = np.arange(1.0, 21.0)


def test_shapes_are_those_of_people_by_draws() -> None:
    one = Cells([0.2, 0.7], draws=[0.4, 0.5])
    assert one.drawn.shape == (2, 1)
    assert one.draws is not None
    assert one.draws.shape == (2, 1)
    assert (one.n_samples, one.n_draws, one.is_randomized) == (2, 1, True)
    assert Cells(R).is_randomized
    assert not Cells(R[:, 0]).is_randomized
    assert repr(Cells(R, draws=R)) == (
        "Cells(n_samples=20, n_draws=4, has_draws=True, has_weights=False)"
    )


def test_weights_have_mean_one_and_equal_ones_are_none() -> None:
    assert Cells(R, weights=np.full(20, 3.0)).weights is None
    weights = Cells(R, weights=W).weights
    assert weights is not None
    np.testing.assert_allclose(weights, W / W.mean(), rtol=1e-15)


@pytest.mark.parametrize("rows", [[3, 1, 4], np.arange(20) < 7, slice(2, 9)])
def test_rows_are_taken_with_their_draws_and_weights(rows: Any) -> None:
    some = Cells(R, draws=R, weights=W).take(rows)
    assert some.draws is not None
    assert some.weights is not None
    np.testing.assert_array_equal(some.drawn, R[rows])
    np.testing.assert_array_equal(some.draws, R[rows])
    np.testing.assert_allclose(some.weights, W[rows] / W[rows].mean(), rtol=1e-14)


def test_no_rows_and_rows_of_equal_weight_can_be_taken() -> None:
    pits = Cells(R, weights=W)
    assert pits.take([]).n_samples == 0
    assert pits.take([4]).weights is None


def test_copies_of_one_forecast_are_one_column() -> None:
    flat = np.repeat(R[:, :1], 3, axis=1)
    assert Cells(flat).without_copies().drawn.shape == (20, 1)
    assert Cells(flat, draws=R[:, :3]).without_copies().n_draws == 3
    pits = Cells(R)
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
    check = Cells.__init__

    def counted(self: Cells, *given: Any, **named: Any) -> None:
        made.append(1)
        check(self, *given, **named)

    monkeypatch.setattr(Cells, "__init__", counted)
    pits = Cells(R)
    CALLS[name](pits)
    assert len(made) == 1
    CALLS[name](R)
    assert len(made) == 2


def test_weights_of_pits_are_those_of_the_argument() -> None:
    assert calibration_error(Cells(R, weights=W)) == calibration_error(R, sample_weight=W)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "NaN": (lambda: Cells([0.2, np.nan]), r"pit\[1, 0\] must lie between 0 and 1, got nan"),
    "above": (lambda: Cells([[0.2, 1.2]]), r"pit\[0, 1\] must lie between 0 and 1"),
    "none": (lambda: Cells([]), r"pit must have shape \(n,\) or \(n, m\), n >= 1"),
    "text": (lambda: Cells(["a"]), "pit .*not numbers"),
    "draw of 1": (lambda: Cells([0.5], draws=[1.0]), r"r\[0\] must lie strictly between 0 and 1"),
    "draws too few": (lambda: Cells(R, draws=R[:10]), r"r must have the shape of pit \(20, 4\)"),
    "shared draws": (lambda: Cells(R, draws=nodes(4)), r"draws\.jittered\(n, m\)"),
    "weight below 0": (lambda: Cells([0.1, 0.2], weights=[1, -1]), r"sample_weight\[1\]"),
    "no weight": (lambda: Cells([0.1, 0.2], weights=[0, 0]), "positive sum"),
    "weights too few": (lambda: Cells([0.1, 0.2], weights=[1]), "one value per row"),
    "draws twice": (lambda: as_cells(Cells(R), R), "^r .*Cells"),
    "weights twice": (lambda: as_cells(Cells(R), sample_weight=W), "^sample_weight .*Cells"),
    "weighted proof": (lambda: certify_pit(Cells(R, weights=W)), "weights.*mass / W"),
    "cells": (lambda: check_own_draws(R[:, ::-1] ** 2), "one draw in each of 4 equal cells"),
    "same for all": (lambda: check_own_draws(np.tile(R[:1], (9, 1))), "draws for all people"),
    "twins": (lambda: check_own_draws(np.vstack([R, R[:1]])), "draws in rows 0 and 20"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_line(case: str) -> None:
    attempt, words = REFUSED[case]
    refused(words, attempt)


def test_draws_are_compared_in_the_rows_that_are_used() -> None:
    twice = np.vstack([R, R[:1]])
    check_own_draws(twice, np.arange(20))
    check_own_draws(R[:, [2, 0, 3, 1]])  # cells in any order
