"""Group commit: works of concurrent threads that share one transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from evenhand.service.decision_log import Transaction
from evenhand.service.log_errors import LogError
from evenhand.service.pending import Pending

T = TypeVar("T")


class Ticket:
    """A work that waits for its transaction, and later its result or error."""

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self._work = work
        self._result: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        self.wakes = threading.Event()

    def call(self, pending: Pending) -> None:
        """Call the work; if it fails, drop what it added, and keep the error for its caller."""
        n_rows = len(pending.rows)
        try:
            self._result = self._work(pending)
        except Exception as error:
            pending.drop_after(n_rows)
            self.error = error

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self._result


class GroupCommit:
    """Queue of works. The first thread that finds nobody at work becomes the leader of all waiting.

    While the leader waits for the disk, other threads gather; the first of them leads next. So the
    price of one write to the disk is shared by all that wait for it.

    Parameters
    ----------
    commit : callable
        Receives a list of tickets, calls each in one transaction, and returns once it is durable.
        If it raises an error, no ticket has a result.
    source : str
        Name of the log in messages.
    """

    def __init__(self, commit: Callable[[list[Ticket]], None], source: str) -> None:
        self._commit = commit
        self._source = source
        self._lock = threading.Lock()
        self._waiting: list[Ticket] = []
        self._is_led = False
        self._leader: int | None = None

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Return the result of a work, once its transaction is durable; its errors are raised."""
        if self._leader == threading.get_ident():
            raise RuntimeError("run was called by a work of run; add to the transaction instead")
        ticket = Ticket(work)
        with self._lock:
            self._waiting.append(ticket)
            leads = not self._is_led
            self._is_led = True
        try:
            if not leads:
                ticket.wakes.wait()
            if not ticket.is_done:
                self._lead()
        except BaseException:  # an interrupt by the user
            self._withdraw(ticket, leads=leads or ticket.wakes.is_set())
            raise
        result: T = ticket.result()
        return result

    def _lead(self) -> None:
        with self._lock:
            tickets, self._waiting = self._waiting, []
        self._leader = threading.get_ident()
        try:
            self._commit(tickets)
        except Exception as error:
            _fail(tickets, error)
        except BaseException:
            _fail(tickets, LogError(f"{self._source}: the write was interrupted; repeat it"))
            raise
        finally:
            self._leader = None
            for ticket in tickets:
                ticket.is_done = True
                ticket.wakes.set()
            self._hand_over()

    def _hand_over(self) -> None:
        with self._lock:
            self._is_led = bool(self._waiting)
            if self._is_led:
                self._waiting[0].wakes.set()

    def _withdraw(self, ticket: Ticket, *, leads: bool) -> None:
        """Remove a ticket that no leader has taken; if it was to lead itself, another does."""
        with self._lock:
            if ticket not in self._waiting:
                return
            self._waiting.remove(ticket)
        if leads:
            self._hand_over()


def _fail(tickets: list[Ticket], error: Exception) -> None:
    for ticket in tickets:
        # an error of its own is the better explanation
        ticket.error = ticket.error or error
