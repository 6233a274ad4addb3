"""Exact sentences of distributions, forecasts, draws and links; other tests check their facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenhand import Forecast, scoring
from evenhand._validate import InputError
from evenhand.distributions import (
    LocationScale,
    Normal,
    NormalMixture,
    Quantiles,
    Recalibrated,
    Samples,
)
from evenhand.draws import KeyedDraws, as_draws, nodes
from evenhand.links import Laplace, price_of_proof

BASE = Normal(np.zeros(3), 1.0)
TWO = [[0, 0.5, 1], [0, 0.6, 1]]

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: BASE.ppf(90), "p must lie between 0 and 1, got 90.0; give a fraction: 0.9, not 90"),
    (lambda: Normal([1.0, 2.0], [1.0, 0.0]), "scale[1] must be finite and positive, got 0.0"),
    (
        lambda: LocationScale(BASE, np.zeros(2)),
        "base and loc must have shapes that broadcast together, got base of shape (3,), loc of"
        " shape (2,)",
    ),
    (
        lambda: NormalMixture(1.0, 0.0, 1.0),
        "weights must have one value per component on the last axis, got a number",
    ),
    (
        lambda: Samples([[1.0], [2.0]]),
        "values must have at least two samples per row, got shape (2, 1)",
    ),
    (
        lambda: Samples([[1.0, 2.0], [0.1, 0.1]]),
        "values[1] contains equal samples only, which have no density; drop the row or give samples"
        " that differ",
    ),
    (
        lambda: Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]),
        "values[1] has crossing quantiles, got 2 after 3 in column 2; correct the quantiles, or"
        " pass sort=True to sort each row",
    ),
    (
        lambda: Quantiles([0.1, 0.5, 0.9], [[0.0, 1.0]]),
        "values must have one column per level (3), got shape (1, 2)",
    ),
    (
        lambda: Recalibrated(BASE, [0, 0.5, 0.5, 1], [0, 0.2, 0.4, 1]),
        "levels must have two or more knots that increase strictly along the last axis, got [0.0,"
        " 0.5, 0.5, 1.0]",
    ),
    (
        lambda: Recalibrated(BASE, TWO, TWO),
        "levels and values must have shape (k,) without which, got shape (2, 3); give the map of"
        " each row as which",
    ),
    (
        lambda: Recalibrated(BASE, TWO, TWO, [0, 2, 1]),
        "which must lie between 0 and 1, the number of the last map, got 2",
    ),
    (
        lambda: Forecast.from_normal([[1.0, 2.0]], 1.0),
        "r is None, but a batch of shape (1, 2) has several draws per person; give the draws",
    ),
    (
        lambda: Forecast(BASE, nodes(3)),
        "r must have the shape of the batch, (3,), got shape (1, 3)",
    ),
    (
        lambda: Forecast(BASE).randomized(0.1).randomized(0.1),
        "this forecast is already randomized; randomize the deterministic forecast instead",
    ),
    (
        lambda: Forecast(BASE).take_draws(np.zeros((3, 1), dtype=np.intp)),
        "forecast must have several draws per person, r of shape (n, m), got a deterministic"
        " forecast",
    ),
    (
        lambda: as_draws(np.full(3, 0.5), 4),
        "r must be a number or have shape (4,), (1, m) or (4, m), got shape (3,); one row per"
        " person, one column per draw",
    ),
    (
        lambda: KeyedDraws(b"fifteen bytes.."),
        "key must have at least 16 bytes, got 15; make one with: python -c 'import secrets;"
        " print(secrets.token_hex(32))'",
    ),
    (
        lambda: KeyedDraws(b"sixteen bytes or more")("ada"),
        "ids must be a sequence of ids, got the single value 'ada'; wrap it in a list",
    ),
    (
        lambda: KeyedDraws(b"sixteen bytes or more")([1.0]),
        "ids[0] must be an integer or text, got float 1.0; convert ids to integers or text: a float"
        " id depends on its formatting",
    ),
    (
        lambda: Laplace(1.2),
        "alpha must satisfy 0 < alpha <= 1, got 1.2; give a fraction: 0.9, not 90",
    ),
    (
        lambda: price_of_proof(0.0),
        "error must satisfy 0 < error <= 1/2, got 0.0; an error of 0 has no finite price",
    ),
    (
        lambda: scoring.neg_crps(BASE, [[0.0]], [0.0]),
        "estimator must be a forecaster with a method forecast(X, r), got Normal; wrap other"
        " estimators and pipelines: RandomizedRegressor(pipeline)",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_messages(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert str(refusal.value) == sentence
