"""Decision logs in parquet: files of batches, several processes, and exported logs."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from evenhand import InputError
from evenhand.service import DecisionLog, LogError, export, open_log, verify
from full_disks import check_full_disk, small_disk
from log_examples import filled, forecast
from log_writers import Writers, adding, confirmed_after_kills
from repeats import repeats, statistical


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.parquet"


@pytest.fixture
def log(path: Path) -> DecisionLog:
    return open_log(path)


def parts(path: Path) -> list[str]:
    return sorted(file.name for file in path.iterdir())


def rewritten(file: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    table = change(parquet.read_table(file))
    file.unlink()
    parquet.write_table(table, file)


def test_each_run_that_adds_entries_adds_a_file(log: DecisionLog, path: Path) -> None:
    filled(log, 3)
    first = path / "part-000000000001-000000000003.parquet"
    before = first.read_bytes()
    log.run(lambda t: t.find("request-1"))
    log.run(lambda t: [t.add(forecast("a")), t.add(forecast("b"))])
    assert parts(path) == [first.name, "part-000000000004-000000000005.parquet"]
    assert first.read_bytes() == before
    table = parquet.read_table(path)
    assert table.column("number").to_pylist() == [1, 2, 3, 4, 5]
    assert table.column("content").to_pylist()[4].startswith('{"id":"id-b","kind":"forecast"')


def test_only_the_owner_can_read_the_files(log: DecisionLog, path: Path) -> None:
    filled(log, 3)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()} == {0o600}


def test_entries_of_large_files_are_found(log: DecisionLog) -> None:
    """A file of several row groups, and one after it."""
    filled(log, 3500)
    log.run(lambda t: t.add(forecast("last")))
    for name in ("0", "999", "1000", "3499", "last", "2000"):
        for found in (log.find(f"request-{name}"), log.get(f"id-{name}")):
            assert found is not None
            assert found.values["name"] == name


def test_files_of_another_process_are_found(log: DecisionLog, path: Path) -> None:
    other = open_log(path)
    filled(other, 2)
    assert log.find("request-1") == other.find("request-1")
    assert log.run(lambda t: (t.n_of("subject-0"), t.add(forecast("a")).number)) == (1, 3)
    assert verify(other).n_entries == 3


def test_a_listing_without_a_file_that_is_there_is_repeated(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder is not listed at once: a file that is added meanwhile may be seen, not the last."""
    reader, writer = open_log(path), open_log(path)
    for i in range(3):
        writer.run(lambda t, i=i: t.add(forecast(f"{i}")))  # type: ignore[misc]
    listings = iter([[parts(path)[0], parts(path)[2]], parts(path)])
    monkeypatch.setattr("os.listdir", lambda folder: next(listings))
    assert [entry.number for entry in reader.entries()] == [1, 2, 3]


def test_two_logs_of_one_folder_take_turns(path: Path) -> None:
    logs = [open_log(path) for _ in range(4)]

    def add(i: int) -> None:
        for k in range(10):
            logs[i].run(adding(f"{i}-{k}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert verify(logs[0]).n_entries == 40
    assert len(parts(path)) == 40


@statistical
def test_killed_writers_lose_nothing_that_was_confirmed(writers: Writers, path: Path) -> None:
    """No entry may be lost in any round: there is no false alarm."""
    rounds = repeats(16, least=3)
    confirmed_after_kills(writers, path, path.parent, rounds=rounds)


def test_a_full_disk_keeps_what_was_confirmed() -> None:
    with small_disk(2) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(2**20))
        log = open_log(disk / "log.parquet")
        check_full_disk(log, make_space=ballast.unlink, message="the disk is full; free space")


def test_an_interrupted_file_leaves_nothing(
    log: DecisionLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(log, 2)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(5, "I/O error")))
        with pytest.raises(LogError, match=r"cannot be written \(I/O error\); check the disk"):
            log.run(lambda t: t.add(forecast("a")))
    assert parts(path) == ["part-000000000001-000000000002.parquet"]
    assert log.run(lambda t: t.add(forecast("b"))).number == 3


# what is no log, and tampering


def test_what_is_not_a_log_is_refused_in_one_line(tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.mkdir()
    parquet.write_table(pa.table({"id": [1]}), table / "part-0.parquet")
    foreign = tmp_path / "foreign.parquet"
    parquet.write_table(pa.table({"id": [1]}), foreign)
    text = tmp_path / "text.parquet"
    text.write_text("id,y")
    newer = tmp_path / "newer.parquet"
    log = open_log(newer)
    filled(log, 1)
    (part,) = newer.iterdir()
    rewritten(part, lambda t: t.replace_schema_metadata({"evenhand.decision_log": "2"}))
    empty = tmp_path / "empty"
    empty.mkdir()
    for where, message in [
        (table, r"folder with other files \(part-0.parquet\) and not a decision log; name another"),
        (foreign, r"foreign\.parquet is not a decision log; name another file"),
        (text, r"text\.parquet is not a readable \.parquet file"),
        (newer, "has version 2 of decision logs, and this evenhand reads versions up to 1; update"),
        (empty, "is empty; name a decision log"),
        (tmp_path / "none.parquet", "does not exist"),
    ]:
        with pytest.raises(InputError, match=message) as caught:
            open_log(where, create=False)
        assert "\n" not in str(caught.value)
    with pytest.raises(LogError, match="No such file or directory"):
        open_log(tmp_path / "none" / "log.parquet")


def with_value(column: str, row: int, value: object) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        values = table.column(column).to_pylist()
        values[row] = value
        place = table.schema.get_field_index(column)
        return table.set_column(place, table.schema.field(column), pa.array(values, type=None))

    return change


CHANGES = {
    "content": (with_value("content", 1, "{}"), "entry 5 has been changed"),
    "copy of the id": (with_value("id", 1, "x"), "entry 5 is not what its row shows"),
    "copy of the number": (with_value("number", 1, 9), "entry 9 is not what its row shows"),
    "row deleted": (lambda t: pa.concat_tables([t[:1], t[2:]]), "entry 5 is missing"),
    "rows swapped": (lambda t: t.take([1, 0, 2]), "entry 4 is missing"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_where_it_was_made(log: DecisionLog, path: Path, change: str) -> None:
    for i in range(3):
        log.run(lambda t, i=i: [t.add(forecast(f"{i}-{k}")) for k in range(3)])
    how, message = CHANGES[change]
    rewritten(path / parts(path)[1], how)
    with pytest.raises(InputError, match=message):
        verify(open_log(path))


def test_a_removed_file_is_seen(log: DecisionLog, path: Path) -> None:
    for name in "abc":
        log.run(lambda t, name=name: t.add(forecast(name)))
    anchor = log.head()
    first, second, third = sorted(path.iterdir())
    second.rename(path / "second")
    with pytest.raises(InputError, match=r"000002\.parquet has been removed"):
        log.head()
    with pytest.raises(InputError, match="entry 2 is missing"):
        verify(open_log(path))
    (path / "second").rename(second)
    third.unlink()
    assert verify(open_log(path)).n_entries == 2
    with pytest.raises(InputError, match="ends with entry 2, and the anchor is entry 3"):
        verify(open_log(path), anchor)
    assert first.exists()


# exported logs


@pytest.mark.parametrize("ending", ["sqlite", "parquet"])
def test_an_exported_log_is_the_log(tmp_path: Path, ending: str) -> None:
    log = open_log(tmp_path / f"log.{ending}")
    filled(log, 2500)
    exported = export(log, tmp_path / "exported.parquet")
    assert (exported.n_entries, exported.head) == (2500, log.head())
    copy = open_log(tmp_path / "exported.parquet", create=False)
    assert verify(copy, anchor=log.head()) == exported
    assert list(copy.entries()) == list(log.entries())
    assert list(copy.entries(after=2498, kind="forecast")) == list(log.entries(after=2498))
    assert copy.find("request-1700") == log.find("request-1700")
    with pytest.raises(LogError, match="an exported log can only be read; open the log itself"):
        copy.run(lambda t: None)
    assert stat.S_IMODE((tmp_path / "exported.parquet").stat().st_mode) == 0o600
    log.close()
    copy.close()
    with pytest.raises(LogError, match="the log is closed"):
        copy.head()


def test_a_broken_or_empty_log_is_not_exported(log: DecisionLog, path: Path) -> None:
    target = path.parent / "exported.parquet"
    with pytest.raises(InputError, match="has no entries; there is nothing to export"):
        export(log, target)
    filled(log, 3)
    for wrong in (path, path.parent / "log.csv"):
        with pytest.raises(InputError, match=r"path must be a file that ends in \.parquet"):
            export(log, wrong)
    with pytest.raises(LogError, match="cannot be written: No such file or directory; name a file"):
        export(log, path.parent / "none" / "exported.parquet")
    (part,) = path.iterdir()
    rewritten(part, with_value("content", 1, "{}"))
    with pytest.raises(InputError, match="entry 2 has been changed"):
        export(open_log(path), target)
    assert sorted(file.name for file in path.parent.iterdir()) == ["log.parquet"]


def test_readers_see_whole_files_while_another_process_writes(path: Path) -> None:
    """A listing may miss a file that is added during it, and see the next one."""
    writer, reader = open_log(path), open_log(path)
    is_done = threading.Event()

    def write() -> None:
        for i in range(60):
            writer.run(adding(str(i)))
        is_done.set()

    thread = threading.Thread(target=write)
    thread.start()
    rng = np.random.default_rng(0)
    while not is_done.is_set():
        numbers = [entry.number for entry in reader.entries()]
        assert numbers == list(range(1, len(numbers) + 1))
        time.sleep(rng.uniform(0, 0.002))
    thread.join()
    assert verify(reader).n_entries == 60
