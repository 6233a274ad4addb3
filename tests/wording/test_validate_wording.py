"""Exact sentences of input validation, ids and data sets; other tests check their facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand._ids import check_cluster, check_id
from evenhand._validate import (
    InputError,
    MissingExtraError,
    bad_input,
    check_choice,
    check_column,
    check_count,
    check_draws,
    check_finite,
    check_fraction,
    check_outcomes,
    check_weights,
    coded,
    discrete_outcome,
    require_extra,
)

MOSTLY_SEVEN = np.concatenate((np.full(101, 7.0), 100.0 + np.arange(899)))
NOT_CONTINUOUS = "so no continuous forecast is calibrated"

DISCRETE: list[tuple[Any, str]] = [
    (
        np.arange(1000.0) % 2,
        f"y has 2 distinct values in 1000 rows, {NOT_CONTINUOUS}; use ClassifierForecaster for an"
        " event, coded as 0 and 1",
    ),
    (
        np.arange(1000.0) % 19,
        f"y has 19 distinct values in 1000 rows, {NOT_CONTINUOUS}; use CountRegressor for counts or"
        " ClassifierForecaster for ordered scores",
    ),
    (
        MOSTLY_SEVEN,
        f"y is 7 in 10.1% of the rows, {NOT_CONTINUOUS}; use CountRegressor for counts, or"
        " HurdleRegressor(at=7) for amounts",
    ),
    (
        MOSTLY_SEVEN + 0.5,
        f"y is 7.5 in 10.1% of the rows, {NOT_CONTINUOUS}; use HurdleRegressor(at=7.5)",
    ),
]

SENTENCES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: check_fraction("mass", 90),
        "mass must satisfy 0 < mass < 1, got 90; give a fraction: 0.9, not 90",
    ),
    (
        lambda: check_fraction("mass", 12.5),
        "mass must satisfy 0 < mass < 1, got 12.5; give a fraction: 0.125, not 12.5",
    ),
    (
        lambda: check_fraction("mass", 1.2),
        "mass must satisfy 0 < mass < 1, got 1.2; give a fraction: 0.9, not 90",
    ),
    (lambda: check_fraction("mass", None), "mass must satisfy 0 < mass < 1, got None"),  # type: ignore[arg-type]
    (lambda: check_count("cv", 1, least=2), "cv must be an integer of at least 2, got 1"),
    (
        lambda: check_choice("link", 3, ("entropic", "laplace")),
        "link must be one of 'entropic', 'laplace', got 3",
    ),
    (lambda: check_draws([0.5, 1.0]), "r[1] must lie strictly between 0 and 1, got 1.0"),
    (
        lambda: check_draws("a"),
        "r contains values that are not numbers (could not convert string to float: 'a')",
    ),
    (lambda: check_finite("y", [np.nan]), "y[0] must be finite, got nan; drop that row"),
    (
        lambda: check_finite("y", [1.0, np.nan, np.inf]),
        "y[1] must be finite, got nan; drop the 2 rows with such values",
    ),
    (lambda: check_finite("y", [[1.0]]), "y must have 1 dimension, got shape (1, 1)"),
    (lambda: check_finite("y", []), "y is empty; give at least one value"),
    (
        lambda: check_weights([1.0, 2.0], 3),
        "sample_weight must have one value per row (3), got shape (2,)",
    ),
    (lambda: check_weights([1.0, -2.0], 2), "sample_weight[1] must be at least 0, got -2.0"),
    (lambda: check_weights([0.0], 1), "sample_weight must have a positive sum, got zeros only"),
    (
        lambda: check_column("incme", ["Income", "loss"], "t.csv"),
        "t.csv has no column 'incme', only Income, loss; did you mean 'Income'?",
    ),
    (
        lambda: check_column("mu", ["Income", "loss"], "t.csv"),
        "t.csv has no column 'mu', only Income, loss; name one of these",
    ),
    (
        lambda: coded(pd.Series([["a"], ["b"]]), "X: column 'tags'"),
        "X: column 'tags' must contain single values, got lists; drop the column, or write its"
        " parts as separate columns",
    ),
    (lambda: check_outcomes(np.ones(1)), "y has 1 row; at least 20 are needed"),
    (
        lambda: check_outcomes(np.full(30, 2.5)),
        "y is constant (2.5 in all 30 rows): there is nothing to forecast",
    ),
    (
        lambda: check_outcomes(np.arange(1000.0) % 19, kind="binary"),
        "y[2] must be 0 or 1, got 2; code the event as 1",
    ),
    (
        lambda: check_id("17.0", "ids[0]"),
        "ids[0] must not be a whole number written as a float, got '17.0'; write ids as whole"
        " numbers or as text: a column of floats changes and loses digits",
    ),
    (
        lambda: check_id("ad\u200ba", "ids[0]"),
        "ids[0] must have no hidden characters, got 'ad\\u200ba' (U+200B ZERO WIDTH SPACE,"
        " character 3); remove it",
    ),
    (
        lambda: check_id("  ", "ids[0]"),
        "ids[0] must not be empty, got '  '; fill it or drop the row",
    ),
    (
        lambda: check_cluster(np.array(["a", None], dtype=object), 2),
        "cluster[1] is missing; give each row the label of a person",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=[one[1][:40] for one in SENTENCES])
def test_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == sentence


def test_sentence_of_bad_input() -> None:
    error = bad_input("alpha", "satisfy 0 < alpha <= 1", 1.2, "use 0.1 to begin with")
    assert str(error) == "alpha must satisfy 0 < alpha <= 1, got 1.2; use 0.1 to begin with"


def test_sentence_of_a_missing_extra() -> None:
    with pytest.raises(MissingExtraError) as caught:
        require_extra("no_such_module", "neural")
    assert (
        str(caught.value) == "no_such_module is not installed; run: pip install 'evenhand[neural]'"
    )


@pytest.mark.parametrize(("y", "sentence"), DISCRETE)
def test_discrete_outcomes(y: Any, sentence: str) -> None:
    assert discrete_outcome(y) == sentence
