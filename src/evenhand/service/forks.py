"""Preparation of decision logs for forks of their process."""

from __future__ import annotations

import os
from functools import cache
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """A log that must prepare for forks of its process."""

    def before_fork(self) -> None:
        """Release what must not be shared."""

    def after_fork(self) -> None:
        """Replace, in the fork, what threads of its parent may have locked."""


def prepare_for_forks(log: Forkable) -> None:
    """Call `before_fork` and `after_fork` of a log whenever its process is forked."""
    _prepared_logs().add(log)


@cache
def _prepared_logs() -> WeakSet[Forkable]:
    """Return the logs to prepare; the first call registers what prepares them."""
    logs: WeakSet[Forkable] = WeakSet()

    def before_fork() -> None:
        for log in list(logs):
            log.before_fork()

    def after_fork() -> None:
        for log in list(logs):
            log.after_fork()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before_fork, after_in_child=after_fork)
    return logs
