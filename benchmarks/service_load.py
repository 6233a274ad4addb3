"""Load of the recipe of a server: times of its answers, and whether all of them are in the log.

docs/recipes/serve.py runs with uvicorn on the loopback. Requests arrive at random times (a Poisson
process) whether or not earlier ones have been answered, and the time of an answer is counted from
the arrival, so that a slow server is not spared. One request in 20 repeats an earlier one. Each
person has 10 numbers as features; the model is `BoostedDistributionRegressor`, saved and loaded.

Beside it, in the same minutes, another process measures twice a second the model's own time for a
forecast of one person with five quantiles, and the time to write a page to the disk of the log.

In the end each answer is compared with the log, which must have it exactly once, and the chain of
hashes is verified. Shorter runs follow with two workers, and with a log in PostgreSQL where its
package is installed. The exit code is 1 if an answer is lost, a request is not answered, or half of
the answers take more than a second.

    OMP_NUM_THREADS=1 python benchmarks/service_load.py [--seconds 300] [--others 30] [--rate 200]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from evenhand import BoostedDistributionRegressor, RandomizedRegressor, load, save
from evenhand.service import open_log
from postgresql_server import started
from recipe_server import HEADERS, Server, check_logged, running, write_secrets
from record import print_lost

N_COLUMNS, N_TREES = 10, 100
"""Columns of the table, and trees per parameter of the distribution."""

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def make_table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Generate numbers and outcomes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_COLUMNS)).round(6)
    y = X[:, 0] + X[:, 1] * X[:, 2] + (1 + (X[:, 3] > 0)) * rng.normal(size=n)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(N_COLUMNS)]), y


def make_setting(folder: Path) -> Path:
    """Save a model, a key and a token in a folder, and return it."""
    base = BoostedDistributionRegressor(n_estimators=N_TREES, random_state=0)
    save(RandomizedRegressor(base, random_state=0).fit(*make_table(1000, 0)), folder / "model")
    return write_secrets(folder)


def requests_of(n: int) -> Iterator[tuple[str, bytes]]:
    """Yield the id of a person and the body of a request; one in 20 is an earlier one again."""
    rng = np.random.default_rng(1)
    rows = make_table(1000, 2)[0].to_dict("records")
    for i in range(n):
        j = int(rng.integers(i)) if i and rng.random() < 0.05 else i
        person = f"person {j}"
        row = rows[j % 1000] | {"x9": round(j / 1000, 6)}
        yield person, json.dumps({"person": person, "row": row}).encode()


class Client:
    """Connections that are kept alive, as many as there are requests at a time."""

    def __init__(self, url: str) -> None:
        self._host, self._port = url.removeprefix("http://").split(":")
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        lines = ["POST /forecasts HTTP/1.1", f"Host: {self._host}"]
        lines += [f"{name}: {value}" for name, value in HEADERS.items()]
        self._head = "\r\n".join([*lines, "Content-Type: application/json", "Content-Length: "])

    async def post(self, body: bytes) -> tuple[int, bytes]:
        """Send a body; return status and body of the answer."""
        reader, writer = await self._connection()
        writer.write(f"{self._head}{len(body)}\r\n\r\n".encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        content = await reader.readexactly(length)
        self._idle.append((reader, writer))
        return int(head.split(" ", 2)[1]), content

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            # the server closes connections that were idle for five seconds
            if not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self._host, int(self._port))


async def ask_all(url: str, rate: float, n: int) -> list[tuple[str, float, int, Any]]:
    """Send requests at random times; return person, seconds, status and answer of each."""
    rng = np.random.default_rng(3)
    at = np.cumsum(rng.exponential(1 / rate, n))
    client = Client(url)
    found = []

    async def ask(person: str, body: bytes, due: float) -> None:
        try:
            status, content = await client.post(body)
        except (OSError, EOFError) as error:
            status, content = 0, repr(error).encode()
        found.append((person, time.perf_counter() - due, status, content))

    start = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for (person, body), due in zip(requests_of(n), at, strict=True):
            await asyncio.sleep(start + due - time.perf_counter())
            tasks.create_task(ask(person, body, start + due))
    return found


def measure_beside(folder: Path) -> None:
    """Measure the model and the disk twice a second until the process is stopped."""
    model = load(folder / "model")
    X, _ = make_table(1000, 4)
    page = bytes(4096)
    with (folder / "pages").open("wb", buffering=0) as file:
        for i in range(10**9):
            row = X.iloc[[i % 1000]]
            start = time.perf_counter()
            model.forecast(row, r=0.3).ppf(LEVELS)
            middle = time.perf_counter()
            file.write(page)
            os.fdatasync(file.fileno())
            print(middle - start, time.perf_counter() - middle, flush=True)
            time.sleep(0.5)


@contextmanager
def measuring(folder: Path) -> Iterator[list[list[float]]]:
    """Measure the model and the disk in another process; the list is filled in the end."""
    command = [sys.executable, __file__, "--beside", str(folder)]
    found: list[list[float]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the first takes longest
        try:
            yield found
        finally:
            process.terminate()
            lines = [line.split() for line in process.stdout]
            found += [[float(number) for number in line] for line in lines if len(line) == 2]


@contextmanager
def log_in(folder: Path, in_sqlite: bool) -> Iterator[str]:
    """Give the path or URL of an empty log; raise what skips a test without PostgreSQL."""
    if in_sqlite:
        yield str(folder / "log.sqlite")
        return
    with started() as server:
        yield server.new_database()


def shown(name: str, seconds: Any) -> str:
    """Return a line with percentiles in milliseconds."""
    times = np.percentile(1000 * np.asarray(seconds), (50, 95, 99, 100))
    return f"{name:34}" + "".join(f"{ms:9.2f}" for ms in times)


def measure(
    setting: Path, rate: float, seconds: float, workers: int, *, in_sqlite: bool
) -> str | None:
    """Run one load and print it; returns what went wrong, if anything did."""
    n = round(rate * seconds)
    options = ("--workers", str(workers)) if workers > 1 else ()
    with tempfile.TemporaryDirectory() as name, log_in(Path(name), in_sqlite) as log:
        server = Server(setting, log, Path(name) / "output", options)
        with running(server), measuring(setting) as beside:
            memory, cpu = server.memory(), server.cpu_seconds()
            found = asyncio.run(ask_all(server.url, rate, n))
            memory, cpu = server.memory() - memory, server.cpu_seconds() - cpu
        answers = [(person, json.loads(body)) for person, _, status, body in found if status == 200]
        with closing(open_log(log, create=False)) as opened:
            n_entries = check_logged(opened, answers)
    where = "SQLite" if in_sqlite else "PostgreSQL"
    setup = f"{where}, {'two workers' if workers == 2 else 'one worker'}"
    print(f"{setup}:", end=" ")
    print(f"{n:,} requests in {seconds:g} seconds, {len(answers):,} answered, 0 of them lost;")
    print(f"{n_entries:,} entries in the log, whose chain of hashes is complete")
    print(f"{'milliseconds':34}" + "".join(f"{name:>9}" for name in ("p50", "p95", "p99", "max")))
    print(shown("answer, from arrival", [time for _, time, _, _ in found]))
    own, disk = zip(*beside, strict=True)
    print(shown("model alone, one forecast", own))
    print(shown("a page written to the disk", disk))
    print(f"CPU time of the server per request: {1000 * cpu / n:.2f} ms;", end=" ")
    print(f"growth of its memory: {memory / 1e6:.1f} MB\n", flush=True)
    half = float(np.median([time for _, time, _, _ in found]))
    if len(answers) < n:
        return f"{setup}: {n - len(answers):,} requests without an answer"
    return f"{setup}: half of the answers take {half:.1f} seconds or more" if half > 1 else None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--others", type=float, default=30)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--beside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.beside:
        measure_beside(options.beside)
    # so that servers are stopped if this program is
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    runs = [(options.seconds, 1, True)]
    if options.others:
        runs += [(options.others, 2, True), (options.others, 1, False), (options.others, 2, False)]
    problems = []
    with tempfile.TemporaryDirectory() as name:
        setting = make_setting(Path(name))
        print(
            f"{options.rate:g} requests a second at random times; {os.cpu_count()} cores, of which"
        )
        print("the server has what this program leaves\n", flush=True)
        for seconds, workers, in_sqlite in runs:
            try:
                problem = measure(setting, options.rate, seconds, workers, in_sqlite=in_sqlite)
                problems += [problem] if problem else []
            except pytest.skip.Exception as reason:
                print(reason)
    raise SystemExit(print_lost(problems))


if __name__ == "__main__":
    main()
