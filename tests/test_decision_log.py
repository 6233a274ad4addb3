"""Decision logs: entries, transactions, the hash chain, and what tampering with it shows."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evenhand import InputError
from evenhand.service import DecisionLog, Entry, Head, LogError, open_log, verify
from log_writers import in_fork


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
def log(path: Path) -> Iterator[DecisionLog]:
    opened = open_log(path)
    yield opened
    opened.close()


def forecast(name: str, subject: str = "ada") -> Entry:
    return Entry("forecast", f"id-{name}", f"request-{name}", subject, {"name": name, "r": 0.1})


def filled(log: DecisionLog, n_entries: int) -> None:
    log.run(lambda t: [t.add(forecast(str(i), f"subject-{i % 3}")) for i in range(n_entries)])


# entries and lookups


def test_an_entry_is_found_as_it_was_added(log: DecisionLog) -> None:
    values = {
        "mean": 0.1 + 0.2,
        "text": "Zoë\0\u2028",
        "none": None,
        "nested": [{"b": 1, "a": -0.0}],
    }
    added = log.run(lambda t: t.add(Entry("forecast", "one", "q", "s", values)))
    assert added.values == values
    assert (added.number, added.previous, len(added.sha256)) == (1, "0" * 64, 64)
    for found in (log.find("q"), log.get("one"), *log.entries()):
        assert found == added
    assert log.head() == Head(1, added.sha256)


def test_the_hash_is_that_of_the_stored_canonical_content(log: DecisionLog, path: Path) -> None:
    added = log.run(lambda t: t.add(Entry("outcome", "one", values={"y": 2.5})))
    with sqlite3.connect(path) as connection:
        ((content,),) = connection.execute("SELECT content FROM entries").fetchall()
    expected = (
        f'{{"id":"one","kind":"outcome","number":1,"previous":"{"0" * 64}","request":null,'
        f'"subject":null,"time":"{added.time}","values":{{"y":2.5}}}}'
    )
    assert content == expected
    assert added.sha256 == hashlib.sha256(expected.encode()).hexdigest()


def test_what_is_not_in_the_log_is_not_found(log: DecisionLog) -> None:
    assert (log.find("q"), log.get("one"), log.head(), list(log.entries())) == (
        None,
        None,
        None,
        [],
    )
    log.run(lambda t: t.add(Entry("context", "one", "q")))
    assert log.get("one") is None  # a context is no forecast
    assert (log.find("\ud800"), log.get("\0")) == (None, None)


def test_a_transaction_sees_what_is_in_the_log_and_what_it_added(log: DecisionLog) -> None:
    log.run(lambda t: t.add(forecast("a")))

    def work(transaction):  # type: ignore[no-untyped-def]
        assert transaction.n_of("ada") == 1
        added = transaction.add(forecast("b"))
        assert transaction.find("request-a").number == 1
        assert transaction.find("request-b") == added
        return transaction.n_of("ada"), transaction.n_of("bob")

    assert log.run(work) == (2, 0)


def test_entries_come_in_order_after_a_number_and_of_a_kind(log: DecisionLog) -> None:
    log.run(lambda t: t.add(Entry("context", "c", "c")))
    filled(log, 2500)  # several pages
    log.run(lambda t: t.add(Entry("outcome", "id-7", values={"y": 1})))
    assert [entry.number for entry in log.entries()] == list(range(1, 2503))
    assert [entry.number for entry in log.entries(after=2500)] == [2501, 2502]
    assert [entry.kind for entry in log.entries(kind="outcome")] == ["outcome"]
    assert sum(1 for _ in log.entries(after=1, kind="forecast")) == 2500
    assert list(log.entries(after=9999)) == []


def test_entries_are_those_of_the_moment_when_reading_began(log: DecisionLog) -> None:
    filled(log, 1500)
    reading = log.entries()
    first = next(reading)
    log.run(lambda t: t.add(forecast("later")))
    assert [first.number, *(entry.number for entry in reading)] == list(range(1, 1501))


def test_times_never_go_back(log: DecisionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    first = log.run(lambda t: t.add(forecast("a")))

    class Earlier:
        @staticmethod
        def now(zone: object) -> object:
            from datetime import UTC, datetime

            return datetime(2001, 1, 1, tzinfo=UTC)

    monkeypatch.setattr("evenhand.service.chain.datetime", Earlier)
    assert log.run(lambda t: t.add(forecast("b"))).time == first.time
    assert verify(log).n_entries == 2


# works that fail


def test_a_work_that_fails_leaves_nothing(log: DecisionLog) -> None:
    def fails(transaction):  # type: ignore[no-untyped-def]
        transaction.add(forecast("a"))
        raise KeyError("own error")

    with pytest.raises(KeyError, match="own error"):
        log.run(fails)
    assert log.head() is None
    assert log.run(lambda t: (t.n_of("ada"), t.add(forecast("a")).number)) == (0, 1)


def test_a_failing_work_takes_no_other_work_of_its_group_with_it(log: DecisionLog) -> None:
    """All threads wait for one that is in its work, so that the next group has all of them."""
    started, go_on = threading.Event(), threading.Event()

    def slow(transaction):  # type: ignore[no-untyped-def]
        started.set()
        go_on.wait(30)

    def numbered(i: int):  # type: ignore[no-untyped-def]
        def work(transaction):  # type: ignore[no-untyped-def]
            added = transaction.add(forecast(str(i)))
            if i % 3 == 0:
                raise KeyError(i)
            return added.values["name"]

        return work

    with ThreadPoolExecutor(17) as pool:
        first = pool.submit(log.run, slow)
        started.wait(30)
        calls = [pool.submit(log.run, numbered(i)) for i in range(16)]
        while len(log._group._waiting) < 16:  # type: ignore[attr-defined]
            pass
        go_on.set()
        assert first.result() is None
        for i, call in enumerate(calls):
            if i % 3 == 0:
                assert isinstance(call.exception(), KeyError)
                assert call.exception().args == (i,)  # type: ignore[union-attr]
            else:
                assert call.result() == str(i)
    names = sorted(int(entry.values["name"]) for entry in log.entries())
    assert names == [i for i in range(16) if i % 3]
    assert verify(log).n_entries == 10


def test_requests_and_ids_of_forecasts_are_unique(log: DecisionLog) -> None:
    log.run(lambda t: t.add(forecast("a")))
    same_request = Entry("forecast", "other", "request-a")
    same_id = Entry("forecast", "id-a", "other")
    for entry in (same_request, same_id):
        with pytest.raises(InputError, match="is in the log already"):
            log.run(lambda t, entry=entry: t.add(entry))
    with pytest.raises(InputError, match="is in the log already"):
        log.run(lambda t: [t.add(forecast("b")), t.add(forecast("b"))])
    log.run(lambda t: [t.add(Entry("outcome", "id-a")) for _ in range(2)])
    assert log.head().number == 3  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Entry("forecast", "a", values={"y": float("nan")}), "must be finite JSON values"),
        (Entry("forecast", "a", values={"y": {1, 2}}), "must be finite JSON values"),
        (Entry("forecast", "\ud800"), r"id of an entry must be valid text, got '\\ud800'"),
        (Entry("forecast", "a", "q\0"), "request of an entry must be valid text"),
        (Entry("forecast", 7), "id of an entry must be valid text"),  # type: ignore[arg-type]
        (Entry("forecasts", "a"), "kind must be one of .* did you mean"),  # type: ignore[arg-type]
    ],
)
def test_an_entry_that_cannot_be_stored_is_refused(
    log: DecisionLog, entry: Entry, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        log.run(lambda t: t.add(entry))
    assert log.head() is None


def test_a_work_must_not_call_run(log: DecisionLog) -> None:
    with pytest.raises(RuntimeError, match="add to the transaction"):
        log.run(lambda t: log.run(lambda t: None))
    assert log.run(lambda t: 3) == 3


# threads


def test_32_threads_lose_and_repeat_nothing(log: DecisionLog) -> None:
    def serve(thread: int) -> list[int]:
        return [log.run(lambda t, i=i: t.add(forecast(f"{thread}-{i}"))).number for i in range(20)]

    with ThreadPoolExecutor(32) as pool:
        numbers = [number for served in pool.map(serve, range(32)) for number in served]
    assert sorted(numbers) == list(range(1, 641))
    assert {entry.values["name"] for entry in log.entries()} == {
        f"{thread}-{i}" for thread in range(32) for i in range(20)
    }
    assert verify(log).n_entries == 640


def test_one_request_in_32_threads_is_logged_once(log: DecisionLog) -> None:
    def once(transaction):  # type: ignore[no-untyped-def]
        return transaction.find("request-a") or transaction.add(forecast("a"))

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: log.run(once), range(32)))
    assert answers == [log.find("request-a")] * 32


def test_readers_do_not_wait_for_a_writer(log: DecisionLog) -> None:
    log.run(lambda t: t.add(forecast("a")))

    def read(transaction):  # type: ignore[no-untyped-def]
        transaction.add(forecast("b"))
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: [log.find("request-b"), verify(log).n_entries]).result(30)

    assert log.run(read) == [None, 1]


# files


def test_only_the_owner_can_read_the_files(log: DecisionLog, path: Path) -> None:
    filled(log, 3)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("log.sqlite", "log.sqlite-wal", "log.sqlite-shm"), 0o600)


def test_a_log_is_there_after_it_was_closed(log: DecisionLog, path: Path) -> None:
    filled(log, 3)
    head = log.head()
    log.close()
    with pytest.raises(LogError, match=r"log\.sqlite: the log is closed; open it anew"):
        log.head()
    for where in (str(path), f"sqlite:///{path}"):
        again = open_log(where, create=False)
        assert again.head() == head
        again.close()


def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = open_log("a ?%41#.db")
    monkeypatch.chdir("/")
    log.run(lambda t: t.add(forecast("a")))
    assert (tmp_path / "a ?%41#.db").is_file()
    assert log.source == "a ?%41#.db"
    log.close()


def with_tables(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_what_is_not_a_log_is_refused_in_one_line(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("id,y\n" * 500)
    other = with_tables(tmp_path / "other.db", "CREATE TABLE people (id)")
    newer = with_tables(
        tmp_path / "newer.db",
        "CREATE TABLE log_format (version)",
        "INSERT INTO log_format VALUES (2)",
    )
    empty = with_tables(tmp_path / "empty.db")
    for where, message in [
        (text, "the file is not a decision log; name another file"),
        (other, r"a database with other tables \(people\) and not a decision log"),
        (newer, "has version 2 of decision logs, and this evenhand reads versions up to 1; update"),
        (empty, "is empty; name a decision log"),
        (tmp_path / "none.db", "does not exist"),
        (tmp_path / "log.csv", r"must be a path that ends in \.sqlite"),
        ("sqlite://", r"a decision log must be a path"),
        ("mysql://me:secret@host/base", r"got 'mysql://me:\*\*\*@host/base'"),
        ("://secret", "got another URL"),
        (tmp_path, "must be a path"),
    ]:
        with pytest.raises(InputError, match=message) as caught:
            open_log(where, create=False)
        assert "\n" not in str(caught.value)
        assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="cannot be made: No such file or directory; name a file"):
        open_log(tmp_path / "none" / "log.db")


def test_eight_threads_open_a_new_log_at_once(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        logs = list(pool.map(open_log, [path] * 8))
    for i, log in enumerate(logs):
        log.run(lambda t, i=i: t.add(forecast(str(i))))
    assert verify(logs[0]).n_entries == 8
    for log in logs:
        log.close()


# tampering


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET content = '{}' WHERE number = 3",
        "DELETE FROM entries WHERE number = 5",
        "INSERT INTO entries VALUES (7, 'outcome', 'a', NULL, NULL, '{}', '')",
        "REPLACE INTO entries VALUES (3, 'outcome', 'a', NULL, NULL, '{}', '')",
        "REPLACE INTO entries VALUES (6, 'outcome', 'a', 'request-1', NULL, '{}', '')",
    ],
)
def test_the_database_refuses_changes(log: DecisionLog, path: Path, statement: str) -> None:
    filled(log, 5)
    with (
        sqlite3.connect(path) as connection,
        pytest.raises(sqlite3.IntegrityError, match="of a decision log"),
    ):
        connection.execute(statement)
    assert verify(log).n_entries == 5


def tampered(path: Path, *statements: str) -> None:
    """Change a log as somebody who owns the file and knows the triggers."""
    connection = sqlite3.connect(path)
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'"):
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


CHANGES = {
    "content": (
        ["UPDATE entries SET content = replace(content, '0.1', '0.2') WHERE number = 3"],
        3,
    ),
    "content of bytes": (["UPDATE entries SET content = x'00' WHERE number = 3"], 3),
    "hash": (["UPDATE entries SET sha256 = replace(sha256, 'a', 'b') WHERE number = 4"], 4),
    "copy of the id": (["UPDATE entries SET id = 'other' WHERE number = 2"], 2),
    "copy of the request": (["UPDATE entries SET request = NULL WHERE number = 2"], 2),
    "copy of the subject": (["UPDATE entries SET subject = 'other' WHERE number = 9"], 9),
    "copy of the kind": (["UPDATE entries SET kind = 'outcome' WHERE number = 9"], 9),
    "row deleted": (["DELETE FROM entries WHERE number = 6"], 6),
    "first row deleted": (["DELETE FROM entries WHERE number = 1"], 1),
    "row deleted, others moved up": (
        [
            "DELETE FROM entries WHERE number = 6",
            "UPDATE entries SET number = number - 1 WHERE number > 6",
        ],
        6,
    ),
    "rows swapped": (
        [
            "UPDATE entries SET number = -1 WHERE number = 5",
            "UPDATE entries SET number = 5 WHERE number = 8",
            "UPDATE entries SET number = 8 WHERE number = -1",
        ],
        5,
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_where_it_was_made(log: DecisionLog, path: Path, change: str) -> None:
    filled(log, 10)
    statements, number = CHANGES[change]
    tampered(path, *statements)
    with pytest.raises(InputError, match=rf"log\.sqlite: entry {number} .*; compare the log with"):
        verify(log)


def rewritten(path: Path, first: int) -> None:
    """Change an entry, and compute its hash and those of all later ones anew."""
    tampered(path)
    connection = sqlite3.connect(path)
    previous = None
    rows = connection.execute("SELECT number, content FROM entries WHERE number >= ?", [first])
    for number, content in rows.fetchall():
        changed = json.loads(content)
        changed["values"]["r"] = 0.7 if number == first else 0.1
        changed["previous"] = previous or changed["previous"]
        content = json.dumps(changed, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(content.encode()).hexdigest()
        connection.execute(
            "UPDATE entries SET content = ?, sha256 = ? WHERE number = ?",
            [content, previous, number],
        )
    connection.commit()
    connection.close()


def test_one_rewritten_hash_breaks_the_chain(log: DecisionLog, path: Path) -> None:
    filled(log, 10)
    with sqlite3.connect(path) as connection:
        ((tenth,),) = connection.execute("SELECT content FROM entries WHERE number = 10").fetchall()
    rewritten(path, 9)
    connection = sqlite3.connect(path)
    connection.execute(
        "UPDATE entries SET content = ?, sha256 = ? WHERE number = 10",
        [tenth, hashlib.sha256(tenth.encode()).hexdigest()],
    )
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match="entry 10 breaks the chain: entry 9 or 10 was rewritten"):
        verify(log)


def test_only_an_anchor_shows_that_the_chain_was_rewritten(log: DecisionLog, path: Path) -> None:
    filled(log, 8)
    anchor = log.head()
    log.run(lambda t: t.add(forecast("more")))
    rewritten(path, 4)
    assert verify(log).n_entries == 9
    with pytest.raises(InputError, match="entry 8 is not the one of the anchor"):
        verify(log, anchor)


def test_only_an_anchor_shows_that_the_end_was_cut_off(log: DecisionLog, path: Path) -> None:
    filled(log, 10)
    anchor = verify(log).head
    assert verify(log, anchor).n_entries == 10
    tampered(path, "DELETE FROM entries WHERE number > 7")
    assert verify(log).n_entries == 7
    with pytest.raises(InputError, match="ends with entry 7, and the anchor is entry 10"):
        verify(log, anchor)
    tampered(path, "DELETE FROM entries")
    assert verify(log).head is None
    with pytest.raises(InputError, match="ends with entry 0, and the anchor is entry 10"):
        verify(log, anchor)


def test_a_changed_entry_is_never_returned(log: DecisionLog, path: Path) -> None:
    filled(log, 5)
    tampered(path, "UPDATE entries SET content = replace(content, '0.1', '0.2') WHERE number = 3")
    for read in (
        lambda: log.find("request-2"),
        lambda: log.get("id-2"),
        lambda: list(log.entries()),
    ):
        with pytest.raises(InputError, match="entry 3 has been changed"):
            read()


# forks


def test_a_fork_and_its_parent_go_on_with_one_log(log: DecisionLog) -> None:
    filled(log, 2)
    assert in_fork(lambda: log.run(lambda t: t.add(forecast("fork")))) == 0
    log.run(lambda t: t.add(forecast("parent")))
    assert in_fork(log.close) == 0
    assert [entry.values["name"] for entry in log.entries()] == ["0", "1", "fork", "parent"]
    assert verify(log).n_entries == 4


def test_a_fork_during_a_request_must_open_the_log_anew(log: DecisionLog, path: Path) -> None:
    def refused() -> None:
        with pytest.raises(LogError, match="the process was forked while it used the log"):
            log.head()
        with pytest.raises(LogError, match="the process was forked while it used the log"):
            log.run(lambda t: t.add(forecast("b")))

    def work(transaction):  # type: ignore[no-untyped-def]
        transaction.add(forecast("a"))
        return in_fork(refused)

    assert log.run(work) == 0
    assert verify(log).n_entries == 1
