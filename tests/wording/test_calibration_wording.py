"""Exact sentences about PITs, draws and counts; other tests check their facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evenhand._validate import InputError
from evenhand.calibration import (
    PITCounts,
    PITs,
    as_pits,
    binned_error,
    calibration_error,
    check_own_draws,
    count_pits,
)
from evenhand.draws import jittered, nodes

R = jittered(20, 4, random_state=0)
COUNTS = count_pits(R, R, groups={"some": np.arange(20) < 5}, random_state=0)
ONE = count_pits(R[:, 0])

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: PITs([0.5, 1.5]), "pit[1, 0] must lie between 0 and 1, got 1.5"),
    (lambda: PITs([[0.5, 0.5], [0.5, -0.1]]), "pit[1, 1] must lie between 0 and 1, got -0.1"),
    (lambda: PITs([]), "pit must have shape (n,) or (n, m), n >= 1, got shape (0,)"),
    (
        lambda: PITs(["a"]),
        "pit contains values that are not numbers (could not convert string to float: 'a')",
    ),
    (
        lambda: PITs(R, nodes(4)),
        "r must have the shape of pit (20, 4), got shape (1, 4); each person needs separate draws:"
        " make the draws with draws.jittered(n, m)",
    ),
    (
        lambda: as_pits(PITs(R), R),
        "r was given together with a PITs object, which already contains it; pass it to PITs(...)"
        " instead",
    ),
    (
        lambda: check_own_draws(R[:, ::-1] ** 2),
        "r[0] does not have one draw in each of 4 equal cells of [0, 1]; make the draws with"
        " draws.jittered(n, m)",
    ),
    (
        lambda: check_own_draws(np.tile(R[:1], (9, 1))),
        "r must contain fresh draws for each person, got the same draws for all people; make the"
        " draws with draws.jittered(n, m)",
    ),
    (
        lambda: check_own_draws(np.vstack([R, R[:1]])),
        "r must contain fresh draws for each person, got the same draws in rows 0 and 20; if these"
        " are rows of the same person, pass person labels as cluster",
    ),
    (
        lambda: calibration_error([0.5], 0.5),
        "p must be finite and at least 1, got 0.5",
    ),
    (
        lambda: COUNTS + count_pits(R[:, :2]),
        "counts with different n_draws cannot be added, got 4 and 2; count all blocks with the same"
        " arguments of count_pits",
    ),
    (
        lambda: PITCounts.merged([]),
        "there are no counts to merge; give the counts of at least one block",
    ),
    (
        lambda: replace(ONE, pit=np.ones(10, np.int64)),
        "pit must be an array of 6400 counts of type int64, got int64 of shape (10,)",
    ),
    (
        lambda: replace(ONE, error=np.append(-1, ONE.error[1:])),
        "error must be counts of at least 0 that add up to 20 for 20 people, got a sum of 19 and a"
        " minimum of -1",
    ),
    (
        lambda: replace(COUNTS.groups["some"], groups={"all": COUNTS}),
        "groups['all'] contains people, draws or levels that the counts of all people do not"
        " contain; take both from the same calls of count_pits",
    ),
    (
        lambda: binned_error(count_pits(R, groups={"a": R[:, 0] > 1}).groups["a"]),
        "counts must contain at least one person, got none",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_messages(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert str(refusal.value) == sentence
