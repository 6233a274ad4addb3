"""Serving with logs of all kinds, from several threads and processes at once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge

from evenhand import InputError, RandomizedRegressor, Service, save
from evenhand.draws import KeyedDraws
from evenhand.service import open_log, verify
from forecaster_examples import linear_task, small_boosted
from log_writers import wait_for

KEY = b"a key of these tests, not secret"
DRAWS = KeyedDraws(KEY, "2026-11")
N_PEOPLE = 40

SERVING = """
import json, sys
from multiprocessing import get_context
from pathlib import Path
import numpy as np
import pandas as pd
from evenhand import Service
from evenhand.draws import KeyedDraws
from evenhand.service import open_log
folder, log, key = sys.argv[1:]
X = pd.read_csv(Path(folder).parent / "rows.csv")

def serve(seed, begin):
    begin.wait()
    # a context that all processes open at once
    service = Service(folder, KeyedDraws(key.encode(), "2026-11"), open_log(log))
    order = np.random.default_rng(seed).permutation(len(X))
    served = {int(i): service.forecast(int(i), X.iloc[i]).to_dict() for i in order}
    Path(folder).with_name(f"{seed}.json").write_text(json.dumps(served))

# forks, as the imports take seconds
forks = get_context("fork")
begin = forks.Barrier(3)
workers = [forks.Process(target=serve, args=(seed, begin)) for seed in range(3)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join(100)
sys.exit(max(abs(worker.exitcode) for worker in workers))
"""


@pytest.fixture(scope="module")
def model() -> Any:
    X, y = linear_task(200)
    table = pd.DataFrame(X, columns=["age", "income", "debt"])
    return RandomizedRegressor(BayesianRidge()).fit(table, y)


def rows(n: int) -> pd.DataFrame:
    return pd.DataFrame(linear_task(n, 3)[0], columns=["age", "income", "debt"])


def place(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if kind == "postgresql":
        return str(request.getfixturevalue("postgresql").new_database())
    return str(tmp_path / f"log.{kind}")


def without_flag(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "is_repeated": None} for one in answers]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_processes_on_one_log_give_one_answer_per_person(
    kind: str, model: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    where = place(kind, request, tmp_path)
    save(model, tmp_path / "model")
    rows(N_PEOPLE).to_csv(tmp_path / "rows.csv", index=False)
    arguments = [str(tmp_path / "model"), where, KEY.decode()]
    subprocess.run([sys.executable, "-c", SERVING, *arguments], check=True, timeout=200)
    found = [json.loads((tmp_path / f"{seed}.json").read_text()) for seed in range(3)]
    log = open_log(where)
    entries = list(log.entries(kind="forecast"))
    assert len(entries) == N_PEOPLE
    assert len(list(log.entries(kind="context"))) == 1
    assert all(entry.values["revision"] == 0 for entry in entries)
    for person in map(str, range(N_PEOPLE)):
        answers = [one[person] for one in found]
        assert without_flag(answers) == without_flag(answers[:1] * 3)
        # one process logged it, and the others found it
        assert sum(not one["is_repeated"] for one in answers) == 1
    assert verify(log).n_entries == 1 + N_PEOPLE
    log.close()


def test_threads_do_not_change_each_others_forecasts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.choice(["x", "y", "z"], 200)})
    model = RandomizedRegressor(small_boosted(), random_state=0).fit(
        X, X["a"] + rng.normal(size=200)
    )
    # a model that no thread has used before
    save(model, tmp_path / "model")
    parallel, alone = (
        Service(tmp_path / "model", DRAWS, open_log(tmp_path / name)) for name in ("p.db", "a.db")
    )
    with ThreadPoolExecutor(32) as pool:
        found = list(pool.map(lambda i: parallel.forecast(i, X.iloc[i]), range(64)))
    for i, served in enumerate(found):
        other = alone.forecast(i, X.iloc[i])
        # requests are forecast in batches, whose rounding differs
        assert served.r == other.r
        assert served.mean == pytest.approx(other.mean, rel=1e-9)
        assert served.quantiles == pytest.approx(other.quantiles, rel=1e-9)


class Refusing:
    """A forecaster that waits in its first call, and refuses some rows."""

    def __init__(self, model: RandomizedRegressor) -> None:
        self._model = model
        self.n_rows: list[int] = []
        self.has_started = threading.Event()
        self.may_end = threading.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    def forecast_and_predict(self, X: pd.DataFrame, r: object) -> object:
        self.n_rows.append(len(X))
        self.has_started.set()
        self.may_end.wait(60)
        if (X["a"] > 9).any():
            raise ValueError("a is too large")
        return self._model.forecast_and_predict(X, r)


def test_requests_that_wait_share_one_call_of_the_model_but_no_refusal(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=100)})
    fitted = RandomizedRegressor(BayesianRidge()).fit(X, X["a"] + rng.normal(size=100))
    with closing(Service(fitted, DRAWS, open_log(tmp_path / "a.db"))) as service:
        slow = Refusing(fitted)
        forecasting = service._forecasting
        service._forecasting = replace(forecasting, model=slow)
        with ThreadPoolExecutor(9) as pool:
            first = pool.submit(service.forecast, "first", {"a": 0.0})
            assert slow.has_started.wait(60)
            calls = [pool.submit(service.forecast, i, {"a": i / 10}) for i in range(7)]
            refused = pool.submit(service.forecast, "refused", {"a": 10.0})
            wait_for(lambda: len(service._computing._waiting) == 8)
            slow.may_end.set()
            found = [call.result(60) for call in calls]
            with pytest.raises(InputError, match="a is too large"):
                refused.result(60)
        # all that wait in one call, and, as one row was refused, each by itself
        assert slow.n_rows == [1, 8] + 8 * [1]
        service._forecasting = forecasting
        assert first.result().quantiles == service.forecast("first", {"a": 0.0}).quantiles
        assert [one.number for one in found] == [
            service.forecast(i, {"a": i / 10}).number for i in range(7)
        ]
        assert len(list(service.log.entries(kind="forecast"))) == 8
