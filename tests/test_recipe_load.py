"""The recipe of a server under load, when it is killed, and while the disk is full.

Every forecast that was answered is in the log exactly once, as it was answered.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from evenhand.service import open_log
from recipe_server import RECIPE, Load, Server, asked, check_logged, make_setting, running
from repeats import repeats, statistical

pytestmark = pytest.mark.skipif(not RECIPE.exists(), reason="the documentation is not here")

OK, UNAVAILABLE = 200, 503
TWO = ("--workers", "2")

LOGS = [
    pytest.param("sqlite", (), id="SQLite"),
    pytest.param("sqlite", TWO, id="SQLite, two workers"),
    pytest.param("postgresql", TWO, id="PostgreSQL, two workers"),
]


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_setting(tmp_path_factory.mktemp("load"))


@pytest.fixture
def log_of(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], str]:
    def make(kind: str) -> str:
        if kind == "sqlite":
            return str(tmp_path / "log.sqlite")
        return str(request.getfixturevalue("postgresql").new_database())

    return make


def check(log: str, answers: list[tuple[str, dict[str, Any]]]) -> int:
    with closing(open_log(log, create=False)) as opened:
        return check_logged(opened, answers)


@statistical
@pytest.mark.timeout(3000)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="workers are found in /proc")
@pytest.mark.parametrize(("kind", "options"), LOGS)
def test_no_answer_is_lost_when_the_server_is_killed(
    setting: Path,
    tmp_path: Path,
    log_of: Callable[[str], str],
    kind: str,
    options: tuple[str, ...],
) -> None:
    rng = np.random.default_rng(len(kind) + len(options))
    server = Server(setting, log_of(kind), tmp_path / "output", options)
    answers: list[tuple[str, dict[str, Any]]] = []
    n_kills = repeats(50, shorter=25)
    with running(server):
        for i in range(n_kills):
            with Load(server, f"kill {i}") as load:
                load.wait_for(int(rng.integers(1, 100)))
                time.sleep(rng.uniform(0, 0.05))
                if options and rng.random() < 0.8:
                    server.kill_worker(rng)
                else:
                    server.kill()
            answers += load.answers
            assert not load.refusals
            if server.process.poll() is not None:
                server.start()
            # what was answered before is still the answer
            for person, answer in load.answers[-1:]:
                index = int(person.rpartition("-")[2])
                again = server.forecast(person, age=18 + index % 70)
                assert again == answer | {"is_repeated": True}
    assert len(answers) > n_kills
    assert check(server.log, answers) >= len(answers)
    assert "Traceback" not in server.printed()


@contextmanager
def limited_files(server: Server, folder: Path) -> Iterator[Callable[[], None]]:
    """Let no file of the server grow much, until the returned function is called."""
    limit = resource.RLIMIT_FSIZE
    old = resource.prlimit(server.process.pid, limit)
    largest = max(path.stat().st_size for path in folder.iterdir())
    resource.prlimit(server.process.pid, limit, (largest + 200_000, old[1]))
    yield lambda: resource.prlimit(server.process.pid, limit, old)


@contextmanager
def filled_disk(server: Server, folder: Path) -> Iterator[Callable[[], None]]:
    """Fill the disk of a folder, until the returned function is called."""
    filler = folder / "filler"
    free = shutil.disk_usage(folder).free
    filler.write_bytes(b"x" * (free - 200_000))
    yield filler.unlink


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a disk of a few megabytes; skip the test where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "evenhand", str(folder)]
    if not shutil.which("mount") or subprocess.run(command, check=False).returncode:
        pytest.skip("a disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of processes need Linux")
def test_answers_are_refused_while_files_cannot_grow(setting: Path, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    check_full(setting, folder, tmp_path / "output", limited_files)


def test_answers_are_refused_while_the_disk_is_full(setting: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as folder:
        check_full(setting, folder, tmp_path / "output", filled_disk)


def check_full(setting: Path, folder: Path, output: Path, fill: Any) -> None:
    server = Server(setting, str(folder / "log.sqlite"), output)
    with running(server), Load(server, "early") as early:
        early.wait_for(50)
        with fill(server, folder) as free, Load(server, "full") as full:
            full.wait_for(50, full.refusals)
            # what is in the log is answered
            person, answer = early.answers[0]
            index = int(person.rpartition("-")[2])
            assert server.forecast(person, age=18 + index % 70)["id"] == answer["id"]
            free()
            full.wait_for(len(full.answers) + 50)
    for refusal in (*early.refusals, *full.refusals):
        assert refusal.status_code == UNAVAILABLE
        detail = refusal.json()["detail"]
        assert "log" in detail
        assert len(detail.splitlines()) == 1
    answers = early.answers + full.answers
    assert check(server.log, answers) >= len(answers)
    assert "Traceback" not in server.printed()


@pytest.mark.parametrize(("kind", "options"), LOGS)
def test_many_clients_are_answered_and_each_person_once(
    setting: Path,
    tmp_path: Path,
    log_of: Callable[[str], str],
    kind: str,
    options: tuple[str, ...],
) -> None:
    server = Server(setting, log_of(kind), tmp_path / "output", options)
    together = Barrier(32)

    def ask(_: int) -> dict[str, Any]:
        # a connection each, so that both workers are asked
        with server.client() as client:
            together.wait()
            found: dict[str, Any] = client.post("/forecasts", json=asked("Cleo")).json()
            return found

    with running(server), Load(server, "many", n_clients=32) as load:
        load.wait_for(100)
        with ThreadPoolExecutor(32) as pool:
            same = list(pool.map(ask, range(32)))
    assert len({answer["id"] for answer in same}) == 1
    assert [answer["is_repeated"] for answer in same].count(False) == 1
    assert not load.refusals
    answers = [*load.answers, *(("Cleo", answer) for answer in same)]
    # all forecasts were answered; the context has an entry besides
    assert check(server.log, answers) == len(load.answers) + 2
    assert "secret" not in server.printed()


def test_answers_are_refused_while_the_database_is_down(
    setting: Path, tmp_path: Path, postgresql: Any
) -> None:
    server = Server(setting, postgresql.new_database(), tmp_path / "output")
    with running(server), server.client() as client:
        before = client.post("/forecasts", json=asked("Ada")).json()
        postgresql.stop("immediate")
        try:
            refusal = client.post("/forecasts", json=asked("Bo"))
        finally:
            postgresql.start()
        after = client.post("/forecasts", json=asked("Bo"))
    assert refusal.status_code == UNAVAILABLE
    assert "log" in refusal.json()["detail"]
    assert after.status_code == OK
    assert check(server.log, [("Ada", before), ("Bo", after.json())]) == 3
    for text in (server.printed(), refusal.text):
        assert "secret" not in text
        assert "Traceback" not in text
