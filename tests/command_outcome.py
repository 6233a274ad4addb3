"""What a call of the command did, for tests of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """What a call of the command did."""

    code: int
    out: str
    err: str

    def complaint(self) -> str:
        """Return the one line on standard error of a call that was refused."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.count("\n") == 1
        assert self.err.startswith("error: ")
        assert self.err.rstrip("\n").isprintable()
        return self.err


Command = Callable[..., Outcome]
