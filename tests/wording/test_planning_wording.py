"""Exact wording of the messages and the summary of `evenhand.planning`."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand import InputError, rows_needed
from evenhand.planning import plan


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"max_group_error": 0.3, "group_mass": 0.2, "price": 0.2},
            "a group error of at most 30 points in groups of 20% of people cannot be certified with"
            " any number of rows at a price of at most 0.2 nats: for a calibrated model it"
            " costs at least 0.29 nats with unlimited rows; allow a higher price or a larger error",
        ),
        (
            {"max_group_error": 0.001, "group_mass": 0.2},
            "a group error of at most 0.1 points in groups of 20% of people cannot be certified"
            " with any number of rows: the smallest alpha of the search, 0.005, has a group error"
            " of 0.010 for a calibrated model; allow a larger error",
        ),
        (
            {"max_group_error": 0.3, "group_mass": 0.2, "price": 0.0},
            "price must be a number above 0, got 0.0; use 0.3 nats",
        ),
    ],
)
def test_messages_of_rows_needed(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        rows_needed(**asked)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"max_group_error": 0.3, "max_price": 0.5},
            "max_group_error=0.3 and max_price=0.5 are given together; give one of max_group_error,"
            " max_wider and max_price",
        ),
        (
            {"max_wider": 3},
            "max_wider must be above 0 and at most 2, got 3; use 0.1 for intervals 10% wider",
        ),
        ({"rows": [20_000_000]}, "rows must be at most 10,000,000, got 20,000,000"),
        ({"rows": []}, "rows is empty; give at least one number of rows"),
    ],
)
def test_messages_of_a_plan(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(**asked)
    assert str(caught.value) == message


def test_the_summary_of_a_plan() -> None:
    heading, _, remarks, *_ = plan(0.3, 0.5, rows=[60]).summary().split("\n\n")
    assert heading.replace("\n", " ") == (
        "Price of certifying that predicted probabilities are off by at most 30 points in every"
        " group of at least 50% of people, with 95% confidence (entropic link):"
    )
    assert remarks.replace("\n", " ") == (
        "Rows are people held out for the certificate. The numbers are for a model that is"
        " calibrated before the randomization: at least 90% of random samples certify this. For a"
        " miscalibrated model less can be certified, or at a higher price. At least 15 rows are"
        " needed, at any price (the smallest alpha is 0.005)."
    )
    heading, _, remarks, *_ = plan(max_wider=0.25, rows=[60]).summary().split("\n\n")
    assert heading.replace("\n", " ") == (
        "Error that can be certified for predicted probabilities in every group of at least 20% of"
        " people, with 95% confidence (entropic link), if 80% prediction intervals are at most 25%"
        " wider (alpha 0.174: 0.36 nats, 25% wider):"
    )
    assert remarks.replace("\n", " ") == (
        "Rows are people held out for the certificate. The numbers are for a model that is"
        " calibrated before the randomization: at least 90% of random samples certify this. For a"
        " miscalibrated model less can be certified, or at a higher price."
    )
