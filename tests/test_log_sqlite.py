"""Decision logs in SQLite: files, connections, and what is no log."""

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import stat
import sys
import time
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest

from complaints import refused
from evenhand import MissingExtraError
from evenhand.service import Entry, Head, LogError, export, open_log, verify
from full_disks import check_full_disk, small_disk
from log_writers import adding, filled, forecast, held, in_fork, n_waiting, tampered, wait_for
from repeats import repeats, statistical

sa = pytest.importorskip("sqlalchemy", reason="needs evenhand[service]")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.sqlite"


@pytest.fixture
def log(path):
    opened = open_log(path)
    yield opened
    opened.close()


def test_the_hash_is_that_of_the_stored_canonical_content(log, path):
    (added,) = log.run(lambda t: t.add(Entry("outcome", "one", values={"y": 2.5})))
    with sqlite3.connect(path) as connection:
        ((content,),) = connection.execute("SELECT content FROM entries").fetchall()
    expected = (
        f'{{"id":"one","kind":"outcome","number":1,"previous":"{"0" * 64}","request":null,'
        f'"subject":null,"time":"{added.time}","values":{{"y":2.5}}}}'
    )
    assert content == expected
    assert added.sha256 == hashlib.sha256(expected.encode()).hexdigest()


def test_only_the_owner_can_read_the_files(log, path):
    filled(log, 3)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("log.sqlite", "log.sqlite-wal", "log.sqlite-shm"), 0o600)


def test_entries_are_on_the_disk_before_they_are_confirmed(log):
    """SQLite's default for logs with a file beside them would lose the last ones without power."""
    full = 2
    found = log.run(lambda t: t.connection.exec_driver_sql("PRAGMA synchronous").scalar())
    assert found == full


def test_a_log_is_there_after_it_was_closed(log, path):
    filled(log, 3)
    head = log.head()
    log.close()
    refused(r"log\.sqlite: the log is closed; open it anew", log.head)
    for where in (str(path), f"sqlite:///{path}"):
        again = open_log(where, create=False)
        assert again.head() == head
        again.close()


def test_what_is_not_a_log_is_refused_in_one_line(tmp_path):
    text = tmp_path / "text.db"
    text.write_text("id,y\n" * 500)
    other = tampered(tmp_path / "other.db", "CREATE TABLE people (id)")
    version_2 = "CREATE TABLE log_format (version)", "INSERT INTO log_format VALUES (2)"
    newer = tampered(tmp_path / "newer.db", *version_2)
    empty = tampered(tmp_path / "empty.db")
    for where, message in [
        (text, "the file is not a decision log; name another file"),
        (other, r"a database with other tables \(people\); name a decision log"),
        (newer, "has version 2 of decision logs, and this evenhand reads version 1; update"),
        (empty, "is empty; name a decision log"),
        (tmp_path / "none.db", "does not exist"),
        (tmp_path / "log.csv", r"must be a path that ends in \.sqlite"),
        ("sqlite://", r"a decision log must be a path"),
        ("mysql://me:secret@host/base", r"got 'mysql://me:\*\*\*@host/base'"),
        ("://secret", "got another URL"),
        (tmp_path, r"a decision log must be a path that ends in \.sqlite"),
    ]:
        assert "secret" not in refused(message, open_log, where, create=False)
    refused("cannot be made: No such file or directory; name", open_log, tmp_path / "none" / "a.db")


@pytest.mark.parametrize(
    ("module", "where", "extra"),
    [
        ("sqlalchemy", "log.sqlite", "service"),
        ("psycopg", "postgresql://me:secret@host/base", "postgresql"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(module, where, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"run: pip install 'evenhand\[{extra}\]'"):
        open_log(where)


def test_nothing_is_written_to_a_file_that_was_moved_away(log, path):
    filled(log, 3)
    path.rename(path.with_name("archive.sqlite"))
    message = "was moved or replaced while the log was open; open"
    refused(message, log.run, lambda t: t.add(forecast("a")))
    new = open_log(path)
    refused(message, log.run, lambda t: t.add(forecast("a")))
    # an answer that is repeated would be in no log either
    refused(message, log.get, "id-1")
    new.run(lambda t: t.add(forecast("b")))
    assert verify(new).n_entries == 1
    new.close()


def test_a_removed_file_beside_the_log_is_noticed_and_loses_nothing(log, path):
    filled(log, 3)
    head = log.head()
    path.with_name("log.sqlite-wal").unlink()
    message = r"log\.sqlite-wal was removed or replaced while the"
    refused(message, log.run, lambda t: t.add(forecast("a")))
    log.close()
    again = open_log(path, create=False)
    assert verify(again).head == head
    again.close()


def test_pages_of_entries_and_of_forecasts_read_no_other_ones(log, path, monkeypatch):
    """Else the time for n entries grows as n^2."""
    monkeypatch.setattr("evenhand.service.log.PAGE", 2)
    filled(log, 5)
    statements = []

    def note(connection, cursor, statement, *_):
        statements.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        for found in (log.entries(kind="forecast"), log.forecasts("number", range(1, 6))):
            assert [one.number for one in found] == [1, 2, 3, 4, 5]
        assert list(log.forecasts("subject", ["nobody", "ada"])) == []
        assert list(log.entries(kind="context")) == []
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    pages = [one for one in statements if "ORDER BY number" in one and "DESC" not in one]
    with sqlite3.connect(path) as connection:
        asked = [(f"EXPLAIN QUERY PLAN {page}", [None] * page.count("?")) for page in pages]
        plans = [[step[-1] for step in connection.execute(*one)] for one in asked]
    assert len(plans) >= 6
    assert not any("forecasts_by_id" in step or "SCAN" in step for plan in plans for step in plan)
    # a log has few contexts, which are found without reading the other entries
    assert "INDEX contexts" in plans[-1][0]
    assert not any("B-TREE" in step for plan in plans[:-2] for step in plan)


def test_the_file_beside_a_log_stays_small(path, monkeypatch):
    limit = 200_000
    monkeypatch.setattr("evenhand.service.log.WAL_BYTES", limit)
    log = open_log(path)

    def size_after(first, last):
        sizes = []
        for i in range(first, last):
            log.run(lambda t, i=i: [t.add(forecast(f"{i}-{k}")) for k in range(20)])
            sizes.append(path.with_name("log.sqlite-wal").stat().st_size)
        return max(sizes)

    assert size_after(0, 40) < 3 * limit
    # a reader that is slow, of another program, delays this and stops no writer
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM entries LIMIT 1").fetchall()
    assert size_after(40, 80) > 5 * limit
    reader.close()
    size_after(80, 120)
    assert size_after(120, 130) < 3 * limit
    assert verify(log).n_entries == 2600
    log.close()


def as_another_user(work, folder):
    """Call `work` in a fork that may read everything in a folder and change nothing."""
    for place in (folder, *folder.iterdir()):
        place.chmod(0o555 if place.is_dir() else 0o444)

    def check():
        if os.geteuid() == 0:
            os.setuid(65534)
        work()

    try:
        assert in_fork(check) == 0
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_log_that_can_only_be_read_is_read(log, path, is_open):
    """Of an open log, a reader needs what is not in the main file yet."""
    filled(log, 3)
    head = log.head()
    if not is_open:
        log.close()
    # not in a folder of pytest, which other users may not enter
    with TemporaryDirectory() as name:
        copy = Path(name, "log.sqlite")
        for file in path.parent.iterdir():
            shutil.copy(file, name)

        def read():
            reader = open_log(copy)
            assert verify(reader).head == head
            assert reader.get("id-1") is not None
            unwritable = "can only be read; make it writable"
            refused(unwritable, reader.run, lambda t: t.add(forecast("x")))

        as_another_user(read, copy.parent)


def test_a_fork_during_a_request_must_open_the_log_anew(log, path):
    def use():
        for call in (log.head, lambda: log.run(lambda t: t.add(forecast("b")))):
            refused("the process was forked while it used the log", call)

    def work(transaction):
        transaction.add(forecast("a"))
        return in_fork(use)

    assert log.run(work) == 0
    assert verify(log).n_entries == 1


def test_the_database_refuses_changes(log, path):
    filled(log, 5)
    for statement in (
        "UPDATE entries SET content = '{}' WHERE number = 3",
        "DELETE FROM entries WHERE number = 5",
        "INSERT INTO entries VALUES (7, 'outcome', 'a', NULL, NULL, '{}', '')",
        "REPLACE INTO entries VALUES (3, 'outcome', 'a', NULL, NULL, '{}', '')",
        "REPLACE INTO entries VALUES (6, 'outcome', 'a', 'request-1', NULL, '{}', '')",
        "REPLACE INTO entries VALUES (6, 'forecast', 'id-1', 'a', NULL, '{}', '')",
    ):
        with (
            sqlite3.connect(path) as connection,
            pytest.raises(sqlite3.IntegrityError, match="of a decision log"),
        ):
            connection.execute(statement)
    assert verify(log).n_entries == 5


CHANGES = {
    "content": (3, "UPDATE entries SET content = replace(content, '0.1', '0.2') WHERE number = 3"),
    "content of bytes": (3, "UPDATE entries SET content = x'00' WHERE number = 3"),
    "hash": (4, "UPDATE entries SET sha256 = upper(sha256 || 'a') WHERE number = 4"),
    "copy of the id": (2, "UPDATE entries SET id = 'other' WHERE number = 2"),
    "copy of the request": (2, "UPDATE entries SET request = NULL WHERE number = 2"),
    "copy of the subject": (9, "UPDATE entries SET subject = 'other' WHERE number = 9"),
    "copy of the kind": (9, "UPDATE entries SET kind = 'outcome' WHERE number = 9"),
    "row deleted": (6, "DELETE FROM entries WHERE number = 6"),
    "first row deleted": (1, "DELETE FROM entries WHERE number = 1"),
    "row deleted, others moved up": (
        6,
        "DELETE FROM entries WHERE number = 6",
        "UPDATE entries SET number = number - 1 WHERE number > 6",
    ),
    "rows swapped": (
        5,
        "UPDATE entries SET number = -1 WHERE number = 5",
        "UPDATE entries SET number = 5 WHERE number = 8",
        "UPDATE entries SET number = 8 WHERE number = -1",
    ),
}
"""The first entry at which a change is seen, and its statements."""


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_where_it_was_made(log, path, change):
    filled(log, 10)
    number, *statements = CHANGES[change]
    tampered(path, *statements)
    refused(rf"log\.sqlite: entry {number} .*; compare the log with", verify, log)


def rewritten(path, first):
    """Change an entry, and compute its hash and those of all later ones anew."""
    connection = sqlite3.connect(tampered(path))
    previous = None
    rows = connection.execute("SELECT number, content FROM entries WHERE number >= ?", [first])
    change = "UPDATE entries SET content = ?, sha256 = ? WHERE number = ?"
    for number, content in rows.fetchall():
        changed = json.loads(content)
        changed["values"]["r"] = 0.7 if number == first else 0.1
        changed["previous"] = previous or changed["previous"]
        content = json.dumps(changed, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(content.encode()).hexdigest()
        connection.execute(change, [content, previous, number])
    connection.commit()
    connection.close()


def test_one_rewritten_hash_breaks_the_chain(log, path):
    filled(log, 10)
    with sqlite3.connect(path) as connection:
        ((tenth,),) = connection.execute("SELECT content FROM entries WHERE number = 10").fetchall()
    rewritten(path, 9)
    sha256 = hashlib.sha256(tenth.encode()).hexdigest()
    change = "UPDATE entries SET content = ?, sha256 = ? WHERE number = 10"
    with sqlite3.connect(path) as connection:
        connection.execute(change, [tenth, sha256])
    refused("entry 10 breaks the chain: entry 9 or 10 was rewritten", verify, log)


def test_only_an_anchor_shows_that_the_chain_was_rewritten(log, path):
    filled(log, 8)
    anchor = log.head()
    log.run(lambda t: t.add(forecast("more")))
    rewritten(path, 4)
    assert verify(log).n_entries == 9
    refused("entry 8 is not the one of the anchor", verify, log, anchor)


def test_only_an_anchor_shows_that_the_end_was_cut_off(log, path):
    filled(log, 10)
    anchor = verify(log).head
    assert verify(log, anchor).n_entries == 10
    tampered(path, "DELETE FROM entries WHERE number > 7")
    assert verify(log).n_entries == 7
    refused("ends with entry 7, and the anchor is entry 10", verify, log, anchor)
    tampered(path, "DELETE FROM entries")
    assert verify(log).head is None
    refused("ends with entry 0, and the anchor is entry 10", verify, log, anchor)
    # which would be compared with no entry
    refused("the anchor must be an entry, from 1, got 0", verify, log, Head(0, "0" * 64))


def test_a_changed_entry_is_never_returned(log, path):
    filled(log, 5)
    tampered(path, "UPDATE entries SET content = replace(content, '0.1', '0.2') WHERE number = 3")
    for read in (
        lambda: list(log.forecasts("request", ["request-2"])),
        lambda: log.get("id-2"),
        lambda: list(log.entries()),
    ):
        refused("entry 3 has been changed", read)


def test_an_exported_log_is_the_log(path):
    log = open_log(path)
    filled(log, 2500)
    assert export(log, path.parent / "exported.parquet") == verify(log)
    table = pd.read_parquet(path.parent / "exported.parquet")
    assert table["sha256"].iloc[-1] == log.head().sha256
    for row, entry in zip(table.itertuples(index=False), log.entries(), strict=True):
        assert hashlib.sha256(row.content.encode()).hexdigest() == row.sha256 == entry.sha256
        assert json.loads(row.content) | {"sha256": row.sha256} == asdict(entry)
    assert stat.S_IMODE((path.parent / "exported.parquet").stat().st_mode) == 0o600
    log.close()


def test_a_broken_or_empty_log_is_not_exported(path):
    log, target = open_log(path), path.parent / "exported.parquet"
    refused("has no entries; there is nothing to export", export, log, target)
    filled(log, 3)
    for wrong in (path, path.parent / "log.csv"):
        refused(r"path must be a file that ends in \.parquet", export, log, wrong)
    nowhere = path.parent / "none" / "exported.parquet"
    refused("cannot be written: No such file or directory; name a file", export, log, nowhere)
    log.close()
    tampered(path, "UPDATE entries SET content = '{}' WHERE number = 2")
    refused("entry 2 has been changed", export, open_log(path), target)
    assert not target.exists()


# works that share transactions: interrupts, errors of the commit, and who leads


def interrupted(transaction):
    transaction.add(forecast("interrupted"))
    raise KeyboardInterrupt


def test_works_that_gather_share_one_transaction(log):
    n_transactions = 0
    lock = log._database.lock

    def counting(connection):
        nonlocal n_transactions
        n_transactions += 1
        lock(connection)

    log._database.lock = counting
    with held(log, 33) as (pool, _, may_end):
        calls = [pool.submit(log.run, lambda t, i=i: t.add(forecast(str(i)))) for i in range(32)]
        wait_for(lambda: n_waiting(log) == 32)
        may_end.set()
        assert {call.result()[0].number for call in calls} == set(range(1, 33))
    assert n_transactions == 2


def test_an_interrupted_leader_keeps_nothing_and_leaves_others_an_error(log):
    with held(log, 3) as (pool, _, may_end):
        calls = [pool.submit(log.run, interrupted)]
        wait_for(lambda: n_waiting(log) == 1)
        calls.append(pool.submit(log.run, lambda t: t.add(forecast("other"))))
        wait_for(lambda: n_waiting(log) == 2)
        may_end.set()
        assert isinstance(calls[0].exception(), KeyboardInterrupt)
        assert isinstance(calls[1].exception(), LogError)
        assert str(calls[1].exception()).endswith("the write was interrupted; repeat it")
    assert log.head() is None
    assert log.run(lambda t: t.add(forecast("later")))[0].number == 1


def test_an_interrupted_waiter_takes_its_work_back(log):
    with held(log, 2) as (pool, first, may_end):

        def interrupt():
            wait_for(lambda: n_waiting(log) == 1)
            os.kill(os.getpid(), signal.SIGINT)

        # a process that was started in the background ignores SIGINT
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            pool.submit(interrupt)
            with pytest.raises(KeyboardInterrupt):
                log.run(lambda t: t.add(forecast("interrupted")))
        finally:
            signal.signal(signal.SIGINT, before)
        assert n_waiting(log) == 0
        may_end.set()
        assert first.result() is None
    assert log.run(lambda t: t.add(forecast("later")))[0].number == 1
    assert verify(log).n_entries == 1


@statistical
def test_a_log_can_be_made_after_its_maker_was_killed(writers, tmp_path):
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


def test_a_full_database_keeps_what_was_confirmed(log):
    engine = log._engine

    def limit(connection, record):
        connection.execute("PRAGMA max_page_count = 60")

    def make_space():
        sa.event.remove(engine, "connect", limit)
        engine.dispose()

    engine.dispose()
    sa.event.listen(engine, "connect", limit)
    check_full_disk(log, make_space=make_space, message="the disk is full; free space and repeat")


def test_a_full_disk_keeps_what_was_confirmed():
    with small_disk(2) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(2**20))
        log = open_log(disk / "log.sqlite")
        check_full_disk(log, make_space=ballast.unlink, message="the disk is full; free space")
        log.close()
