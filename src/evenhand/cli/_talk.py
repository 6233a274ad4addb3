"""What the command says, and how it ends."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, NoReturn

from evenhand._checks import InputError, MissingExtraError

BAD_INPUT, FAULT, INTERRUPTED = 2, 70, 130
"""Exit codes: 1, which Python gives to any error, is left to gates."""


def tell(error: BaseException) -> NoReturn:
    """Say in one line what ended a command, and end with the exit code of its kind."""
    if isinstance(error, KeyboardInterrupt):
        fail("interrupted", INTERRUPTED)
    if isinstance(error, InputError | MissingExtraError):
        fail(str(error))
    if isinstance(error, MemoryError):
        fail("not enough memory; write the table as a folder of parquet parts, which is read a block at a time")
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        fail(f"{place}{error.strerror or error}")
    if isinstance(error, RuntimeError | AssertionError) and "CUDA" in str(error):
        reason = str(error).partition(". ")[0].splitlines()[0]
        fail(f"the CUDA device cannot be used ({reason}); train with --device cpu")
    if os.environ.get("EVENHAND_DEBUG"):
        traceback.print_exception(error)
    what = ": ".join(part for part in (type(error).__name__, str(error)) if part)
    blame = "this is a fault of evenhand, not of your data; run with EVENHAND_DEBUG=1 for the traceback"
    fail(f"{what}; {blame}", FAULT)


def fail(message: str, code: int = BAD_INPUT) -> NoReturn:
    # a damaged file must not steer the terminal
    say("error: " + "".join(letter if letter.isprintable() else "?" for letter in " ".join(message.split())))
    raise SystemExit(code)


def warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    # a reader of the command is helped by what, not by which line of which file
    if issubclass(category, UserWarning):
        say("warning: " + " ".join(str(message).split()))


def say(message: str) -> None:
    print(message, file=sys.stderr)


def show(text: str) -> None:
    # lines of tables are more than some terminals and pipes can show
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "replace").decode(encoding), flush=True)
    except BrokenPipeError:
        # the reader has seen enough, as `head` does; a gate is still judged, and Python flushes once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
