"""Requests of concurrent threads that are answered in one call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar


class Ticket:
    """A request that waits for its batch, and later its result or error."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        self.wakes = threading.Event()

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.answer


AnyTicket = TypeVar("AnyTicket", bound=Ticket)


class Batches(Generic[AnyTicket]):
    """Queue of tickets. The first thread that finds nobody at work becomes the leader of all.

    While the leader is at work, other threads gather; the first of them leads next. So the price of
    one call is shared by all that wait for it.

    Parameters
    ----------
    answer : callable
        Receives a list of tickets, and gives each an `answer` or an `error`. If it raises an error,
        no ticket has a result.
    interrupted : callable
        Returns the error of the others in a batch whose leader was interrupted by the user.
    """

    def __init__(
        self,
        answer: Callable[[list[AnyTicket]], None],
        interrupted: Callable[[], Exception],
    ) -> None:
        self._answer = answer
        self._interrupted = interrupted
        self._lock = threading.Lock()
        self._waiting: list[AnyTicket] = []
        self._is_led = False
        self._leader: int | None = None

    @property
    def is_led_here(self) -> bool:
        """Whether the calling thread is answering a batch."""
        return self._leader == threading.get_ident()

    def run(self, ticket: AnyTicket) -> Any:
        """Return the answer to a ticket; its errors are raised."""
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
        return ticket.result()

    def _lead(self) -> None:
        with self._lock:
            tickets, self._waiting = self._waiting, []
        self._leader = threading.get_ident()
        try:
            self._answer(tickets)
        except Exception as error:
            _fail(tickets, error)
        except BaseException:
            _fail(tickets, self._interrupted())
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

    def _withdraw(self, ticket: AnyTicket, *, leads: bool) -> None:
        """Remove a ticket that no leader has taken; if it was to lead itself, another does."""
        with self._lock:
            if ticket not in self._waiting:
                return
            self._waiting.remove(ticket)
        if leads:
            self._hand_over()


def _fail(tickets: list[AnyTicket], error: Exception) -> None:
    for ticket in tickets:
        # an error of its own is the better explanation
        ticket.error = ticket.error or error
