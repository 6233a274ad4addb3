"""Load of the recipe of a server: times of its answers, and whether all of them are in the log.

docs/recipes/serve.py runs with uvicorn on the loopback. Requests arrive at random times (a Poisson
process) whether or not earlier ones have been answered, and the time of an answer is counted from
the arrival, so that a slow server is not spared. One request in 20 repeats an earlier one. Each
person has 10 numbers as features; the model is `BoostedDistributionRegressor`, saved and loaded.

Beside it, in the same minutes, another process measures twice a second the model's own time for a
forecast of one person with five quantiles, and the time to write a page to the disk of the log.

In the end each answer is compared with the log, which must have it exactly once, and the chain of
hashes is verified. The exit code is 1 if an answer is lost or a request was not answered.

    OMP_NUM_THREADS=1 python benchmarks/service_load.py [--seconds 300] [--rate 200] [--workers 1]
        [--postgresql]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
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

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from evenhand import BoostedDistributionRegressor, RandomizedRegressor, load, save
from evenhand.service import open_log
from recipe_server import HEADERS, Server, check_logged, running, write_secrets

N_COLUMNS, N_TREES = 10, 100
"""Columns of the table, and trees per parameter of the distribution."""

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
PERCENTAGES = (50, 95, 99, 100)


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
def log_in(folder: Path, is_postgresql: bool) -> Iterator[str]:
    """Return the path or URL of an empty log."""
    if not is_postgresql:
        yield str(folder / "log.sqlite")
        return
    from postgresql_server import started

    with started() as server:
        yield server.new_database()


def shown(name: str, seconds: Any) -> str:
    """Return a line with percentiles in milliseconds."""
    times = np.percentile(1000 * np.asarray(seconds), PERCENTAGES)
    return f"{name:34}" + "".join(f"{ms:9.2f}" for ms in times)


def measure(options: argparse.Namespace, folder: Path) -> bool:
    """Run the load and print; returns whether all requests were answered and none was lost."""
    setting = make_setting(folder)
    n = round(options.rate * options.seconds)
    workers = ("--workers", str(options.workers)) if options.workers > 1 else ()
    with log_in(folder, options.postgresql) as log:
        with (
            running(Server(setting, log, folder / "output", workers)) as server,
            measuring(folder) as beside,
        ):
            memory, cpu = server.memory(), server.cpu_seconds()
            found = asyncio.run(ask_all(server.url, options.rate, n))
            memory, cpu = server.memory() - memory, server.cpu_seconds() - cpu
        answers = [(person, json.loads(body)) for person, _, status, body in found if status == 200]
        with closing(open_log(log, create=False)) as opened:
            n_entries = check_logged(opened, answers)
    where = "PostgreSQL" if options.postgresql else "SQLite"
    print(f"{n:,} requests, {options.rate:g} a second; log in {where}; workers: {options.workers}")
    print(f"answered {len(answers):,}, refused or failed {n - len(answers):,}")
    print(
        f"{'milliseconds':34}" + "".join(f"{f'p{p}' if p < 100 else 'max':>9}" for p in PERCENTAGES)
    )
    print(shown("answer, from arrival", [seconds for _, seconds, _, _ in found]))
    own, disk = zip(*beside, strict=True)
    print(shown("model alone, one forecast", own))
    print(shown("a page written to the disk", disk))
    print(
        f"the server used {1000 * cpu / n:.2f} ms of CPU time per request; its memory grew by"
        f" {memory / 1e6:.1f} MB"
    )
    print(f"lost: 0; the chain of {n_entries:,} entries is complete")
    return len(answers) == n


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--beside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.beside:
        measure_beside(options.beside)
    with tempfile.TemporaryDirectory() as folder:
        is_good = measure(options, Path(folder))
    raise SystemExit(0 if is_good else 1)


if __name__ == "__main__":
    main()
