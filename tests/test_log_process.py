"""Decision logs in files, when processes are killed and disks are full."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np
import pytest

from evenhand.service import Entry, LogError, open_log, verify
from full_disks import check_full_disk, small_disk
from log_writers import Writers, adding, confirmed_after_kills, in_fork
from repeats import repeats, statistical

pytest.importorskip("sqlalchemy", reason="needs evenhand[service]")


@statistical
def test_killed_writers_lose_nothing_that_was_confirmed(writers: Writers, tmp_path: Path) -> None:
    """No entry may be lost in any round: there is no false alarm."""
    confirmed_after_kills(writers, tmp_path / "log.sqlite", tmp_path, rounds=repeats(50, least=7))


@statistical
def test_a_log_can_be_made_after_its_maker_was_killed(writers: Writers, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for i in range(repeats(50, least=7)):
        path = tmp_path / f"log-{i}.sqlite"
        process = writers.start(path, tmp_path / f"confirmed-{i}")
        time.sleep(rng.uniform(0.0, 0.04))
        writers.kill(process)
        log = open_log(path)
        log.run(adding("later"))
        assert verify(log).n_entries >= 1
        log.close()


# full disks


def test_a_full_database_keeps_what_was_confirmed(tmp_path: Path) -> None:
    import sqlalchemy as sa

    log = open_log(tmp_path / "log.sqlite")
    engine = log._connections._engine  # type: ignore[attr-defined]

    def limit(connection, record):  # type: ignore[no-untyped-def]
        connection.execute("PRAGMA max_page_count = 60")

    def make_space() -> None:
        sa.event.remove(engine, "connect", limit)
        engine.dispose()

    engine.dispose()
    sa.event.listen(engine, "connect", limit)
    check_full_disk(log, make_space=make_space, message="the disk is full; free space and repeat")
    log.close()


def test_files_that_may_not_grow_keep_what_was_confirmed(tmp_path: Path) -> None:
    """In a fork, whose limit is its own."""

    def check() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
        check_full_disk(
            open_log(tmp_path / "log.sqlite"),
            make_space=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)),
            message="the log cannot be read or written (disk I/O error); check the disk",
        )

    assert in_fork(check) == 0


def test_a_full_disk_keeps_what_was_confirmed() -> None:
    with small_disk(2) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(2**20))
        log = open_log(disk / "log.sqlite")
        check_full_disk(log, make_space=ballast.unlink, message="the disk is full; free space")
        log.close()


def test_a_log_on_a_full_disk_cannot_be_made_and_can_be_later() -> None:
    with small_disk(1) as disk:
        ballast = disk / "ballast"
        with pytest.raises(OSError, match="No space left"), ballast.open("wb") as file:
            file.write(bytes(2**21))
        with pytest.raises(LogError, match="the disk is full; free space and repeat"):
            open_log(disk / "log.sqlite")
        ballast.unlink()
        log = open_log(disk / "log.sqlite")
        log.run(lambda t: t.add(Entry("context", "c")))
        log.close()
