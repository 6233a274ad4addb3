"""Sweeps of trainings through joblib.

Over processes of this machine, and over the workers of a Dask cluster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from numpy.typing import NDArray

from evenhand import PAICRegressor
from evenhand.forecasters.network.training import train_best

distributed = pytest.importorskip("distributed", reason="needs evenhand[scale]")

Floats = NDArray[np.float64]

SMALL: dict[str, Any] = {"hidden": (8, 8), "max_steps": 20, "batch_size": 32}


@pytest.fixture(scope="module")
def workers(forked_workers: None) -> Iterator[set[int]]:
    """Process ids of the workers of a cluster that is this module's default client.

    Two threads of one process, which has to import everything once.
    """
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield set(client.run(os.getpid).values())


def table(n: int = 200, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + 0.5 * rng.normal(size=n)


ALPHAS = [0.05, 0.1, 0.3, 0.3, 1.0]


def same_weights(first: PAICRegressor, second: PAICRegressor, rtol: float = 1e-4) -> bool:
    return all(
        np.allclose(second.weights_[name], array, rtol=rtol, atol=1e-6)
        for name, array in first.weights_.items()
    )


def test_a_path_is_split_into_trainings_that_depend_on_their_number_only(workers: set[int]) -> None:
    X, y = table()
    with parallel_config("threading"):
        apart = PAICRegressor.path(X, y, ALPHAS, n_jobs=2, **SMALL, random_state=0)
    assert [model.alpha for model in apart] == ALPHAS
    assert {model.random_state for model in apart} == {0}
    # the first training is the path of its alphas
    for model, alone in zip(
        apart[:3], PAICRegressor.path(X, y, ALPHAS[:3], **SMALL, random_state=0), strict=True
    ):
        assert same_weights(model, alone)
    # the second has a start of its own: at one alpha and one place in its training it is another
    # model
    assert not same_weights(apart[0], apart[3], rtol=0.1)
    for model in apart:
        assert model.forecast(X[:3], 0.5).mean().shape == (3,)
        assert model.n_steps_.shape == model.validation_loss_.shape == (1,)
    with parallel_config("dask"):  # two threads: the same two trainings
        there = PAICRegressor.path(X, y, ALPHAS, **SMALL, random_state=0)
    assert all(same_weights(a, b) for a, b in zip(apart, there, strict=True))


@pytest.mark.parametrize("random_state", [3, None, np.random.default_rng(3)], ids=str)
def test_trainings_of_a_path_set_the_same_rows_aside(
    random_state: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Floats] = []

    def train(*arguments: Any, **options: Any) -> Any:
        seen.append(arguments[0][0].validation.y)
        return whole(*arguments, **options)

    whole = train_best
    monkeypatch.setattr("evenhand.forecasters.network.training.train_best", train)
    X, y = table()
    with parallel_config("threading", n_jobs=2):
        models = PAICRegressor.path(X, y, [0.2] * 4, **SMALL, random_state=random_state)
    assert len(seen) == 2
    np.testing.assert_array_equal(seen[0], seen[1])
    assert not same_weights(models[0], models[2], rtol=0.1)
    assert all(model.random_state is random_state for model in models)
