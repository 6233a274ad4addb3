"""Group commit: works of concurrent threads that share one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from evenhand.service.batches import Batches, Ticket
from evenhand.service.decision_log import Transaction
from evenhand.service.log_errors import LogError
from evenhand.service.pending import Pending

T = TypeVar("T")


class Work(Ticket):
    """A work that waits for its transaction."""

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        super().__init__()
        self._work = work

    def call(self, pending: Pending) -> None:
        """Call the work; if it fails, drop what it added, and keep the error for its caller."""
        n_rows = len(pending.rows)
        try:
            self.answer = self._work(pending)
        except Exception as error:
            pending.drop_after(n_rows)
            self.error = error


class GroupCommit:
    """Transactions, each with the works of all threads that wait for the disk meanwhile.

    Parameters
    ----------
    commit : callable
        Receives a list of works, calls each in one transaction, and returns once it is durable.
        If it raises an error, no work has a result.
    source : str
        Name of the log in messages.
    """

    def __init__(self, commit: Callable[[list[Work]], None], source: str) -> None:
        self._batches = Batches(
            commit, lambda: LogError(f"{source}: the write was interrupted; repeat it")
        )

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Return the result of a work, once its transaction is durable; its errors are raised."""
        if self._batches.is_led_here:
            raise RuntimeError("run was called by a work of run; add to the transaction instead")
        result: T = self._batches.run(Work(work))
        return result
