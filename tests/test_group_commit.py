"""Works that share transactions of a log: interrupts, errors of the commit, and who leads."""

from __future__ import annotations

import importlib
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evenhand.service import DecisionLog, LogError, Transaction, open_log, verify
from log_examples import forecast
from log_writers import wait_for


@pytest.fixture
def log(tmp_path: Path) -> Iterator[DecisionLog]:
    opened = open_log(tmp_path / "log.sqlite")
    yield opened
    opened.close()


class Slow:
    """A work that waits, so that others gather."""

    def __init__(self) -> None:
        self.has_started = threading.Event()
        self.may_end = threading.Event()

    def __call__(self, transaction: Transaction) -> None:
        self.has_started.set()
        self.may_end.wait(60)


def n_waiting(log: DecisionLog) -> int:
    return len(log._works._waiting)  # type: ignore[attr-defined]


def interrupted(transaction: Transaction) -> None:
    transaction.add(forecast("interrupted"))
    raise KeyboardInterrupt


def test_works_that_gather_share_one_transaction(log: DecisionLog) -> None:
    n_transactions = 0
    lock = log._database.lock  # type: ignore[attr-defined]

    def counting(connection: Any) -> None:
        nonlocal n_transactions
        n_transactions += 1
        lock(connection)

    log._database.lock = counting  # type: ignore[attr-defined]
    slow = Slow()
    with ThreadPoolExecutor(33) as pool:
        pool.submit(log.run, slow)
        slow.has_started.wait(60)
        calls = [pool.submit(log.run, lambda t, i=i: t.add(forecast(str(i)))) for i in range(32)]
        wait_for(lambda: n_waiting(log) == 32)
        slow.may_end.set()
        assert {call.result().number for call in calls} == set(range(1, 33))
    assert n_transactions == 2


def test_an_interrupted_leader_keeps_nothing_and_leaves_others_an_error(log: DecisionLog) -> None:
    slow = Slow()
    with ThreadPoolExecutor(3) as pool:
        pool.submit(log.run, slow)
        slow.has_started.wait(60)
        calls = [pool.submit(log.run, interrupted)]
        wait_for(lambda: n_waiting(log) == 1)
        calls.append(pool.submit(log.run, lambda t: t.add(forecast("other"))))
        wait_for(lambda: n_waiting(log) == 2)
        slow.may_end.set()
        assert isinstance(calls[0].exception(), KeyboardInterrupt)
        assert isinstance(calls[1].exception(), LogError)
        assert str(calls[1].exception()).endswith("the write was interrupted; repeat it")
    assert log.head() is None
    assert log.run(lambda t: t.add(forecast("later"))).number == 1


def test_an_interrupted_waiter_takes_its_work_back(log: DecisionLog) -> None:
    slow = Slow()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(log.run, slow)
        slow.has_started.wait(60)

        def interrupt() -> None:
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
        slow.may_end.set()
        assert first.result() is None
    assert log.run(lambda t: t.add(forecast("later"))).number == 1
    assert verify(log).n_entries == 1


def test_a_leader_that_takes_its_work_back_leaves_the_lead_to_another(log: DecisionLog) -> None:
    """An interrupt between the wake-up and the work, made by hand: threads cannot be timed."""
    group = log._works  # type: ignore[attr-defined]
    slow = Slow()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(log.run, slow)
        slow.has_started.wait(60)
        ticket = importlib.import_module("evenhand.service.sql_log").Work(lambda t: None)
        group._waiting.append(ticket)
        second = pool.submit(log.run, lambda t: t.add(forecast("second")))
        wait_for(lambda: n_waiting(log) == 2)
        slow.may_end.set()
        first.result()
        assert ticket.wakes.wait(60)
        assert not second.done()
        group._withdraw(ticket, leads=True)
        assert second.result(60).number == 1


def test_an_error_of_the_commit_is_raised_to_all_that_share_it(
    log: DecisionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()
    with ThreadPoolExecutor(4) as pool:
        pool.submit(log.run, slow)
        slow.has_started.wait(60)
        calls = [pool.submit(log.run, lambda t, i=i: t.add(forecast(str(i)))) for i in range(3)]
        wait_for(lambda: n_waiting(log) == 3)
        with monkeypatch.context() as patch:
            patch.setattr(
                "sqlalchemy.Connection.commit",
                lambda _: (_ for _ in ()).throw(LogError("log: the disk is full")),
            )
            slow.may_end.set()
            for call in calls:
                assert str(call.exception()) == "log: the disk is full"
    assert log.head() is None
