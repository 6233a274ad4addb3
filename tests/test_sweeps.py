"""Sweeps of trainings through joblib.

Over processes of this machine, and over the workers of a Dask cluster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from numpy.typing import NDArray

from evenhand import InputError, PAICRegressor, RandomizedRegressor, certify
from evenhand.distributions import Normal
from evenhand.forecast import Forecast
from evenhand.forecasters import network
from reproduction import compute_parts, study

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


def squares(number: int) -> dict[str, Any]:
    """Compute a part that is known by hand, and where it was computed."""
    return {"square": number**2, "process": os.getpid()}


def one_split(seed: int, alphas: list[float]) -> dict[str, Any]:
    """Train the paper's network and a link, and certify them, as the studies do."""
    X, y = table(300, seed)
    models: list[Any] = PAICRegressor.path(X[:150], y[:150], alphas, **SMALL, random_state=seed)
    models.append(
        RandomizedRegressor(lambda rows: Forecast(Normal(rows[:, 0], 0.5)), 0.2).fit(
            X[:150], y[:150]
        )
    )
    found = [certify(model, X[150:], y[150:], random_state=seed) for model in models]
    return {"bounds": [each.group_error(0.2) for each in found], "process": os.getpid()}


# --- the parts of a study


def test_parts_are_computed_in_the_workers_of_a_surrounding_dask_back_end(
    tmp_path: Path, workers: set[int]
) -> None:
    tasks = [{"number": i} for i in range(12)]
    with parallel_config("dask"):
        found = list(compute_parts(squares, tasks, tmp_path, jobs=1))
    assert [part["square"] for part in found] == [i**2 for i in range(12)]
    assert {part["process"] for part in found} <= workers
    assert os.getpid() not in workers


def test_a_split_has_the_same_numbers_wherever_it_is_computed(
    tmp_path: Path, workers: set[int]
) -> None:
    tasks = [{"seed": seed, "alphas": [0.1, 0.5, 1.0]} for seed in range(3)]
    here = list(compute_parts(one_split, tasks, tmp_path / "here", jobs=1))
    with parallel_config("dask"):
        there = list(compute_parts(one_split, tasks, tmp_path / "there", jobs=1))
    assert {part["process"] for part in here} == {os.getpid()}
    assert {part["process"] for part in there} <= workers
    # matrix products of another process may be rounded otherwise
    np.testing.assert_allclose([p["bounds"] for p in there], [p["bounds"] for p in here], rtol=1e-6)


def test_parts_of_a_stopped_sweep_are_not_computed_again(
    tmp_path: Path, workers: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [{"number": i} for i in range(4)]
    with parallel_config("dask"):
        first = list(compute_parts(squares, tasks[:2], tmp_path))
        again = list(compute_parts(squares, tasks, tmp_path))
    assert again[:2] == first
    assert {part["process"] for part in again} <= workers
    monkeypatch.setattr(study, "_compute", None)  # nothing is left to do
    assert list(compute_parts(squares, tasks, tmp_path)) == again


@pytest.mark.parametrize("backend", ["loky", "threading", "sequential"])
def test_parts_are_the_same_on_every_back_end(tmp_path: Path, backend: str) -> None:
    with parallel_config(backend, n_jobs=2):
        found = list(compute_parts(squares, [{"number": i} for i in range(4)], tmp_path))
    assert [part["square"] for part in found] == [0, 1, 4, 9]
    # the number of jobs is the back end's, not the default of one, which would be this process
    assert ({part["process"] for part in found} == {os.getpid()}) == (
        backend in {"threading", "sequential"}
    )


def test_jobs_are_processes_where_no_back_end_is_set(tmp_path: Path) -> None:
    tasks = [{"number": i} for i in range(4)]
    alone = list(compute_parts(squares, tasks, tmp_path / "alone"))
    assert {part["process"] for part in alone} == {os.getpid()}
    apart = list(compute_parts(squares, tasks, tmp_path / "apart", jobs=2))
    assert os.getpid() not in {part["process"] for part in apart}


def test_a_back_end_that_reports_all_parts_at_once_is_used_too(tmp_path: Path) -> None:
    with parallel_config("multiprocessing", n_jobs=2):  # it has no generator of results
        found = list(compute_parts(squares, [{"number": i} for i in range(3)], tmp_path))
    assert [part["square"] for part in found] == [0, 1, 4]
    assert os.getpid() not in {part["process"] for part in found}


# --- a path of alphas

ALPHAS = [0.05, 0.1, 0.3, 0.3, 1.0]


def same_weights(first: PAICRegressor, second: PAICRegressor, rtol: float = 1e-4) -> bool:
    return all(
        np.allclose(second.weights_[name], array, rtol=rtol, atol=1e-6)
        for name, array in first.weights_.items()
    )


def test_a_path_without_a_back_end_is_one_training() -> None:
    X, y = table()
    whole = PAICRegressor.path(X, y, ALPHAS, **SMALL, random_state=0)
    one = PAICRegressor.path(X, y, ALPHAS, n_jobs=1, **SMALL, random_state=0)
    assert all(same_weights(a, b, rtol=0) for a, b in zip(whole, one, strict=True))


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
        seen.append(arguments[4].y)
        return whole(*arguments, **options)

    whole = network.train
    monkeypatch.setattr("evenhand.forecasters.network.training.train", train)
    X, y = table()
    with parallel_config("threading", n_jobs=2):
        models = PAICRegressor.path(X, y, [0.2] * 4, **SMALL, random_state=random_state)
    assert len(seen) == 2
    np.testing.assert_array_equal(seen[0], seen[1])
    assert not same_weights(models[0], models[2], rtol=0.1)
    assert all(model.random_state is random_state for model in models)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two", -2])
def test_a_number_of_jobs_that_is_none_is_refused(n_jobs: Any) -> None:
    X, y = table()
    with pytest.raises(InputError, match="n_jobs must be an integer of at least 1"):
        PAICRegressor.path(X, y, ALPHAS, n_jobs=n_jobs, **SMALL)


def test_a_path_needs_an_alpha() -> None:
    with pytest.raises(InputError, match=r"^alphas .*at least one"):
        PAICRegressor.path(*table(), [])
