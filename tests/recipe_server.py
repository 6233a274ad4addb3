"""The recipe of a server in a process of its own, also for the benchmark of its load."""

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import pandas as pd

from evenhand import BoostedDistributionRegressor, RandomizedRegressor, save
from evenhand.draws import KeyedDraws
from evenhand.service import verify

RECIPE = Path(__file__).parents[1] / "docs" / "recipes" / "serve.py"

KEY = "the key of recipe tests only, 4f1c"
TOKEN = "token-of-recipe-tests-0123456789abcdef"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
CONTEXT = "2026-11"

ROW = {"age": 41, "income": None, "region": "north", "is new": True, "since": "2020-01-03"}
"""A row that the model accepts; only incomes were missing in training."""

PATIENCE = 120.0
"""Seconds to wait for a server that starts, on a machine with much other work."""


def make_table(n, seed):
    """Generate people with a column of each kind, and their outcomes."""
    rng = np.random.default_rng(seed)
    days = pd.to_timedelta(rng.integers(0, 1500, n), unit="D")
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(10, 1, n).round(2)),
            "region": rng.choice(["north", "south", "west"], n),
            "is new": rng.random(n) < 0.4,
            "since": pd.Timestamp("2020-01-01") + days,
        }
    )
    return table, table["age"] / 10 + table["is new"] + rng.normal(size=n)


def make_setting(folder):
    """Save a model, a key and a token in a folder, and return it."""
    X, y = make_table(300, 0)
    base = BoostedDistributionRegressor(n_estimators=20, random_state=0)
    save(RandomizedRegressor(base, random_state=0).fit(X, y), folder / "model")
    return write_secrets(folder)


def write_secrets(folder):
    for name, secret in (("key", KEY), ("token", TOKEN)):
        (folder / name).write_text(f"{secret}\n", encoding="utf-8")
        (folder / name).chmod(0o600)
    return folder


def asked(person, /, **changes):
    return {"person": person, "row": ROW | changes}


def environment(setting, log):
    given = {
        "MODEL": setting / "model",
        "KEY_FILE": setting / "key",
        "TOKEN_FILE": setting / "token",
        "LOG": log,
        "CONTEXT": CONTEXT,
    }
    return {f"EVENHAND_{name}": str(to) for name, to in given.items()}


@dataclass
class Server:
    """A recipe that runs with a folder of "model", "key" and "token"; `options` are uvicorn's."""

    setting: Path
    log: str
    output: Path
    options: Sequence[str] = ()
    url: str = ""
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self):
        command = [sys.executable, "-m", "uvicorn", f"{RECIPE.stem}:app"]
        command += ["--app-dir", str(RECIPE.parent), "--port", "0", *self.options]
        start = self.output.stat().st_size if self.output.exists() else 0
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                env=os.environ | environment(self.setting, self.log),
                start_new_session=True,
            )
        with self.client() as client:
            self._wait(start, client)
        return self

    def _wait(self, start, client):
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            printed = self.output.read_bytes()[start:].decode(errors="replace")
            # the parent of several workers prints it before they have started
            if found := re.search(r"running on (http://[0-9.:]+)", printed):
                self.url = found[1]
                try:
                    if client.get(f"{self.url}/health").status_code == httpx.codes.OK:
                        return
                except httpx.HTTPError:
                    pass
            time.sleep(0.05)
        self.kill()
        raise AssertionError(f"the server does not start: {self.printed()}")

    def client(self, **options):
        return httpx.Client(base_url=self.url, headers=HEADERS, timeout=PATIENCE, **options)

    def printed(self):
        return self.output.read_text(encoding="utf-8", errors="replace")

    def processes(self):
        import psutil  # comes with distributed

        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def memory(self):
        return sum(one.memory_info().rss for one in self.processes())

    def cpu_seconds(self):
        return sum(sum(one.cpu_times()[:2]) for one in self.processes())

    def kill(self):
        """Kill the server and its workers at once, as `kill -9` does."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)


@contextmanager
def running(server):
    server.start()
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


class Load:
    """Clients that ask for new people; `answers`: person and body of each of status 200."""

    def __init__(self, server, name, n_clients=8):
        self.answers = []
        self._server = server
        self._is_stopped = threading.Event()
        names = [f"{name}-{i}" for i in range(n_clients)]
        self._threads = [threading.Thread(target=self._ask, args=(one,)) for one in names]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._is_stopped.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def wait_for(self, n):
        until = time.monotonic() + PATIENCE
        while len(self.answers) < n:
            assert time.monotonic() < until
            time.sleep(0.01)

    def _ask(self, name):
        with self._server.client() as client:
            for i in itertools.count():
                if self._is_stopped.is_set():
                    return
                person = f"{name}-{i}"
                try:
                    answer = client.post("/forecasts", json=asked(person, age=18 + i % 70))
                except httpx.TransportError:  # the server was killed
                    time.sleep(0.02)
                    continue
                assert answer.status_code == httpx.codes.OK, answer.text
                self.answers.append((person, answer.json()))


def check_logged(log, answers):
    """Check that the log has each answer exactly once, and its chain; return the entries."""
    logged = list(log.entries(kind="forecast"))
    by_id = {entry.id: entry for entry in logged}
    assert len(by_id) == len({entry.request for entry in logged}) == len(logged)
    names = KeyedDraws(KEY.encode()).pseudonyms
    for person, answer in answers:
        values = by_id[answer["id"]].values
        assert values["person"] == names([person])[0]
        assert {name: answer[name] for name in ("r", "quantiles")}.items() <= values.items()
    return verify(log).n_entries
