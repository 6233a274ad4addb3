"""Processes that write to a decision log until they are killed, and what forks them."""

import importlib
import json
import os
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from evenhand.service import Entry, LogError, open_log, verify
from forked_command import Forking

N_THREADS = 4
"""Threads of each process, so that its transactions have several works."""


class Writers(Forking):
    """Starts and kills processes that write to logs."""

    def start(self, where, confirmed):
        return self._ask({"where": str(where), "confirmed": str(confirmed)})

    def kill(self, process):
        self._ask({"kill": process})


def confirmed_after_kills(
    writers, where, folder, *, rounds, strike=lambda: None, recover=lambda: None
):
    """Kill two writers at random moments, after `strike` and before `recover`; check the log."""
    rng = np.random.default_rng(0)
    confirmed = []
    n_checked = 0
    log = open_log(where)
    for i in range(rounds):
        files = [folder / f"confirmed-{i}-{k}" for k in range(2)]
        processes = [writers.start(where, file) for file in files]
        wait_for(lambda files=files: all(file.exists() and file.stat().st_size for file in files))
        time.sleep(rng.uniform(0.0, 0.05))
        strike()
        for process in processes:
            time.sleep(rng.uniform(0.0, 0.05))
            writers.kill(process)
        recover()
        now = [name for file in files for name in file.read_text().split()]
        there = {entry.values["name"] for entry in log.entries(after=n_checked)}
        assert set(now) <= there
        n_checked += len(there)
        confirmed += now
    check_log(log, confirmed, n_unconfirmed=2 * N_THREADS * rounds)
    log.close()


def check_log(log, confirmed, n_unconfirmed):
    """Assert that a log has each confirmed entry once, and at most some others."""
    entries = Counter(entry.values["name"] for entry in log.entries())
    assert verify(log).n_entries >= entries.total() > 0
    assert set(entries.values()) == {1}
    assert set(confirmed) <= set(entries)
    assert len(entries) - len(confirmed) <= n_unconfirmed


def in_fork(work):
    """Return the exit code of a fork of this process: 0 if `work` returns, else 1."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def wait_for(is_true):
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.001)


def adding(name):
    def work(transaction):
        assert not transaction.find(name)
        assert not transaction.n_of(name)
        transaction.add(Entry("forecast", name, name, name, {"name": name, "text": "x" * 500}))

    return work


def forecast(name, subject="ada"):
    return Entry("forecast", f"id-{name}", f"request-{name}", subject, {"name": name, "r": 0.1})


def filled(log, n_entries):
    """Add entries of three subjects in one transaction."""
    log.run(lambda t: t.add(*[forecast(str(i), f"subject-{i % 3}") for i in range(n_entries)]))


def tampered(path, *statements):
    """Run statements in a file of SQLite that no trigger refuses, and return its path."""
    connection = sqlite3.connect(path)
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'"):
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def n_waiting(log):
    return len(log._works._waiting)


@contextmanager
def held(log, n_threads):
    """Hold a log in a work that waits for an event, so that other works of the pool gather."""
    has_started, may_end = threading.Event(), threading.Event()

    def slow(_):
        has_started.set()
        may_end.wait(60)

    with ThreadPoolExecutor(n_threads) as pool:
        first = pool.submit(log.run, slow)
        has_started.wait(60)
        yield pool, first, may_end


def write(where, confirmed):
    """Add entries in several threads, without an end."""
    log = open_log(where)
    handle = os.open(confirmed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(thread):
        for i in range(sys.maxsize):
            name = f"{os.getpid()}-{thread}-{i}-{time.time_ns()}"
            try:
                log.run(adding(name))
            except LogError:  # a server that is killed
                return
            # what is written is there for others, even if this process is killed now
            os.write(handle, f"{name}\n".encode())

    for thread in range(N_THREADS):
        threading.Thread(target=add, args=[thread]).start()


def main():
    # forks have what is imported here
    importlib.import_module("sqlalchemy.dialects.postgresql.psycopg")
    importlib.import_module("sqlalchemy.dialects.sqlite.pysqlite")
    importlib.import_module("evenhand.service.log")
    # some kills must be during the moves of entries from one file to the other
    importlib.import_module("evenhand.service.log").WAL_BYTES = 300_000

    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if "kill" in request:
            os.kill(request["kill"], signal.SIGKILL)
            os.waitpid(request["kill"], 0)
            print(0, flush=True)
            continue
        process = os.fork()
        if process == 0:
            write(request["where"], request["confirmed"])
            return
        print(process, flush=True)


if __name__ == "__main__":
    main()
