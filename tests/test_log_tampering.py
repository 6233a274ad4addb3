"""What tampering with a log in SQLite shows, by somebody who owns the file."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand import InputError
from evenhand.service import DecisionLog, Head, open_log, verify
from log_examples import filled, forecast


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


@pytest.fixture
def log(path: Path) -> Iterator[DecisionLog]:
    opened = open_log(path)
    yield opened
    opened.close()


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
    "hash": (["UPDATE entries SET sha256 = upper(sha256 || 'a') WHERE number = 4"], 4),
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
    # which would be compared with no entry
    with pytest.raises(InputError, match="the anchor must be an entry, from 1, got 0"):
        verify(log, Head(0, "0" * 64))


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
