"""Exact sentences of group searches; other tests check their facts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand._validate import InputError
from evenhand.search import find_group, null_curve, scan_groups, worst_group_curve

U = np.random.default_rng(0).uniform(size=200)
X = np.random.default_rng(1).normal(size=(200, 2))

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: find_group(U, X, max_rows=50),
        "max_rows must be at least 167 for mass 0.2 and 4 folds, got 50; use a larger mass,"
        " fewer folds or more rows",
    ),
    (
        lambda: find_group(U, X, mass=0.01),
        "200 rows are too few for mass 0.01 and 4 folds, which need at least 3334 rows; use a"
        " larger mass, fewer folds or more rows",
    ),
    (
        lambda: find_group(U, np.ones((200, 2))),
        "X must have a feature that varies, got constant features only, which define no groups; add"
        " a feature",
    ),
    (
        lambda: scan_groups(U, X, 300),
        "min_size must be at most the number of rows, 200, got 300; reduce it or scan more rows"
        " together",
    ),
    (
        lambda: worst_group_curve([0.1, 0.9], [[0.5]]),
        "masses must be a number or a list of numbers, got shape (1, 1)",
    ),
    (
        lambda: null_curve(U, 0.5, selection="learned"),
        "selection must be 'oracle', 'fixed' or a function, got 'learned'",
    ),
    (
        lambda: null_curve(U, 0.5, selection=lambda pit, masses: [0.1, 0.2]),
        "selection must return one error per mass, shape (1,), got shape (2,)",
    ),
    (
        lambda: null_curve(U, 0.5, link="entropic"),  # type: ignore[arg-type]
        "link must be a link or None, got 'entropic'; use evenhand.links.Entropic(alpha=0.1), for"
        " example",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_messages(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert str(refusal.value) == sentence


def test_a_group_that_was_found() -> None:
    x = np.linspace(0, 1, 500)
    pit = np.random.default_rng(0).uniform(size=500) ** np.where(x > 0.5, 3, 1)
    group = find_group(pit, pd.DataFrame({"x": x}), 0.5, random_state=0)
    # the group is half of the evaluated rows, its true error 1/4
    assert re.fullmatch(
        r"outcomes lower than forecast: calibration error 0\.[12]\d\d, at least 0\.[12]\d\d with"
        r" 95% confidence, in 150 of 300 rows \(approximately: x > 0\.[45]\d*\)",
        str(group),
    )


def test_no_group_was_found() -> None:
    group = find_group(U, X, random_state=0)
    assert str(group).startswith("no significantly miscalibrated group: calibration error ")
