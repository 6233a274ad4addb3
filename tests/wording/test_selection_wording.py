"""Exact wording of the messages of `evenhand.selection`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from evenhand import InputError, PAICRegressor, RandomizedRegressor, randomize

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = RNG.normal(size=60)


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (
            Ridge(),
            {"max_group_error": 0.5},
            "max_group_error must be below 0.5, the largest possible error, got 0.5; use 0.25 to"
            " begin with",
        ),
        ([], {}, "estimator is an empty list; pass at least one fitted forecaster"),
        (Ridge, {}, "estimator is the class Ridge, not a model; pass Ridge()"),
        (
            [RandomizedRegressor(), Ridge()],
            {},
            "estimator mixes randomized forecasters and deterministic models; pass a list of one"
            " kind",
        ),
        (
            [PAICRegressor()],
            {},
            "estimator contains an unfitted PAICRegressor; fit it first, on other rows than these",
        ),
        (
            RandomizedRegressor(),
            {},
            "estimator must be deterministic, got an unfitted RandomizedRegressor, which is already"
            " randomized; pass its base estimator instead",
        ),
        (
            PAICRegressor(),
            {"link": "laplace"},
            "link='laplace' has no effect on forecasters that are already randomized; leave it out",
        ),
        (
            Ridge(),
            {"by": "sex", "alternative": False},
            "by='sex' has no effect with alternative=False, because it defines the groups of the"
            " alternative; leave one of the two out",
        ),
        (
            Ridge(),
            {"max_wider": 10},
            "max_wider must be above 0 and at most 2, got 10; use 0.1 for intervals 10% wider",
        ),
        (Ridge(), {"max_price": -1}, "max_price must be a number above 0, got -1; use 0.3 nats"),
        (
            Ridge(),
            {"max_group_error": 0.3, "max_wider": 0.1},
            "max_group_error=0.3 and max_wider=0.1 are given together; give one of max_group_error,"
            " max_wider and max_price",
        ),
        (
            PAICRegressor(),
            {"max_price": 0.5},
            "max_price=0.5 is not available for forecasters that are already randomized; give"
            " max_group_error",
        ),
        (
            lambda rows: (np.zeros(len(rows)), np.ones(len(rows))),
            {"sample_weight": np.ones(60)},
            "sample_weight has no effect on a model that is not fitted here, because certificates"
            " use no weights; leave it out",
        ),
        (
            Ridge(),
            {"certify_share": 0.8},
            "60 rows are split into 12 training rows and 48 people to certify on, but each part"
            " needs at least 20; provide more people (in Python: or another certify_share than"
            " 0.8)",
        ),
    ],
)
def test_messages_are_sentences(estimator: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        randomize(estimator, X, Y, **options)
    assert str(raised.value) == message
