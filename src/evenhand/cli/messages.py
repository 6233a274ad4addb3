"""Messages of the command, and how it ends."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from evenhand._escape import single_line
from evenhand._validate import InputError, MissingExtraError
from evenhand.cli.streams import Safe

BAD_INPUT = 2
FAULT = 70
UNWRITTEN = 74
INTERRUPTED = 130
"""Exit codes: 1, which Python gives to any error, is left to gates; a signal that asks to stop
has 128 + its number."""

STOPPING = (signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """A signal that asks to stop.

    Everything that cleans up after an interrupt from the keyboard does so here too.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


class Verdict(SystemExit):
    """Decision of a gate; the exit code is 0 or 1 whatever becomes of the output."""


def end_with(error: BaseException) -> NoReturn:
    """Print in one line what ended a command, and end with the exit code of its kind."""
    if isinstance(error, Terminated):
        fail("terminated", error.code)
    if isinstance(error, KeyboardInterrupt):
        fail("interrupted", INTERRUPTED)
    if isinstance(error, InputError | MissingExtraError):
        fail(str(error))
    # the table is the largest thing in memory, and parts of one are read a block at a time
    if isinstance(error, MemoryError):
        fail(
            "not enough memory; write the table as a folder of parquet parts, which is read a block"
            " at a time"
        )
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        fail(f"{place}{error.strerror or error}")
    # torch raises plain errors for a missing device; to import its classes here would load it
    if isinstance(error, RuntimeError | AssertionError) and "CUDA" in str(error):
        reason = str(error).partition(". ")[0].splitlines()[0]
        fail(f"the CUDA device cannot be used ({reason}); train with --device cpu")
    # whatever comes here is our fault: a user needs one line, a developer the traceback
    if os.environ.get("EVENHAND_DEBUG"):
        traceback.print_exception(error)
    what = ": ".join(part for part in (type(error).__name__, str(error)) if part)
    blame = (
        "this is a fault of evenhand, not of your data; run with EVENHAND_DEBUG=1 for the traceback"
    )
    fail(f"{what}; {blame}", FAULT)


def fail(message: str, code: int = BAD_INPUT) -> NoReturn:
    """Print an error and end with an exit code."""
    say(f"error: {message}")
    raise SystemExit(code)


def warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print a warning of ours; those of libraries are for programmers."""
    # a reader of the command is helped by what, not by which line of which file
    if issubclass(category, UserWarning):
        say(f"warning: {message}")


def say(message: str) -> None:
    """Write a message on one line, whatever the values in it hold."""
    print(single_line(message), file=sys.stderr, flush=True)


def show(text: str) -> None:
    """Write results to standard output."""
    print(text, flush=True)


def code_of(end: SystemExit, out: Safe) -> int:
    """Return the exit code; print an error if results could not be written to standard output.

    A reader that has seen enough, as `head` does, is no error.
    """
    # a full disk may show up only now
    out.flush()
    code = int(end.code or 0)
    lost = next((error for error in out.losses if error.errno != errno.EPIPE), None)
    if lost is None:
        return code
    say(f"error: results could not be written to standard output ({lost.strerror})")
    return UNWRITTEN if code == 0 and not isinstance(end, Verdict) else code


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise `Terminated` while the block runs.

    One that is ignored, as by nohup, stays so.
    """
    # without handlers a signal would end the process before temporary files are removed
    before = {number: signal.getsignal(number) for number in STOPPING}
    caught = [number for number, handler in before.items() if handler is signal.SIG_DFL]

    def stop(number: int, frame: Any) -> NoReturn:
        # a second one must not stop the cleaning up
        for one in caught:
            signal.signal(one, signal.SIG_IGN)
        raise Terminated(number)

    for number in caught:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in caught:
            # else the process is about to end, with the code of the first one
            if signal.getsignal(number) is stop:
                signal.signal(number, signal.SIG_DFL)
