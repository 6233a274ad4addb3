"""Messages and exit codes of the command."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from evenhand._escape import single_line
from evenhand._table import line_width
from evenhand._validate import InputError, MissingExtraError, did_you_mean, short
from evenhand.cli.streams import Safe
from evenhand.cli.terminal import STYLES, USUAL_WIDTH, folded, has_colour, styled, width_of

BAD_INPUT = 2
NOT_WORTH_IT = 3
FAULT = 70
UNWRITTEN = 74
INTERRUPTED = 130
"""Exit codes. 1, Python's code of any error, is reserved for gates; termination by a signal has
128 + its number."""

STOPPING = (signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """Termination by a signal, with the same clean-up as an interrupt from the keyboard."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def code(self) -> int:
        """Exit code of the command."""
        return 128 + self.number


class Verdict(SystemExit):
    """Decision of a gate: exit code 0 or 1, even if the output could not be written."""


def end_with(error: BaseException) -> NoReturn:
    """Print the error that ended a command in one line, and exit with the code of its kind."""
    if isinstance(error, Terminated):
        fail("terminated", error.code)
    if isinstance(error, KeyboardInterrupt):
        fail("interrupted", INTERRUPTED)
    if isinstance(error, InputError | MissingExtraError):
        fail(str(error))
    # the table is usually the largest object in memory; a table in parts is read in blocks
    if isinstance(error, MemoryError):
        fail(
            "not enough memory for the table; write it as a folder of parquet parts, which is read"
            " in blocks"
        )
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        fail(f"{place}{error.strerror or error}")
    # all other errors are bugs: users get one line, developers the traceback
    if os.environ.get("EVENHAND_DEBUG"):
        traceback.print_exception(error)
    what = ": ".join(part for part in (type(error).__name__, str(error)) if part)
    remedy = (
        "this is a bug of evenhand, not a problem of your data; run with EVENHAND_DEBUG=1 for the"
        " traceback"
    )
    fail(f"{what}; {remedy}", FAULT)


def usage_message(error: Any) -> str:
    """Return the message of a usage error of typer as one line that names the help to read."""
    # typer's own suggestions of options are replaced by those of `did_you_mean`
    wrong = getattr(error, "option_name", None)
    is_unknown = wrong is not None and hasattr(error, "possibilities")
    text = (error.message if is_unknown else error.format_message()).rstrip(".")
    text = f"{text[:1].lower()}{text[1:]}"
    if error.ctx is None:
        return text
    options = [name for one in error.ctx.command.get_params(error.ctx) for name in one.opts]
    question = did_you_mean(wrong, options) if is_unknown else ""
    return _with_help(text, question, f"{error.ctx.command_path} --help")


def unknown_command(name: str, known: Iterable[str]) -> InputError:
    """Return the error for a command that does not exist."""
    question = did_you_mean(name, known)
    return InputError(_with_help(f"no such command {short(name)}", question, "evenhand --help"))


def _with_help(text: str, question: str, command: str) -> str:
    """Append a suggestion, if there is one, and the command that prints the help."""
    return f"{text}; {question} See {command}" if question else f"{text}; see {command}"


def fail(message: str, code: int = BAD_INPUT) -> NoReturn:
    """Print an error and exit with a code."""
    inform(f"error: {message}")
    raise SystemExit(code)


def warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print a user warning without its place in the code; other warnings are for programmers."""
    if issubclass(category, UserWarning):
        inform(f"warning: {message}")


def inform(message: str) -> None:
    """Write a message to standard error on one line; control characters are escaped.

    On a terminal it is broken between words, and the kind of message is coloured.
    """
    line, stream = single_line(message), sys.stderr
    if not stream.isatty():
        print(line, file=stream, flush=True)
        return
    text = folded(line, width_of(stream) or USUAL_WIDTH, 2, first=0)
    kind, colon, rest = text.partition(": ")
    # while a bar is shown, rich writes the text above it
    if colon and kind in STYLES and isinstance(stream, Safe):
        kind = styled(kind, kind, has_colour=has_colour(stream))
        stream.write_styled(f"{kind}{colon}{rest}\n")
        stream.flush()
    else:
        print(text, file=stream, flush=True)


def show(text: str) -> None:
    """Write results to standard output, such as JSON, as they are."""
    print(text, flush=True)


def show_text(text: str) -> None:
    """Write results for readers to standard output; on a terminal, lines are broken to fit it."""
    width = width_of(sys.stdout)
    if width is not None:
        text = "\n".join(_fitting(line, min(width, line_width())) for line in text.split("\n"))
    show(text)


def _fitting(line: str, width: int) -> str:
    return line if len(line) <= width else folded(line, width, len(line) - len(line.lstrip()))


def code_of(end: SystemExit, out: Safe) -> int:
    """Return the exit code; print an error if results could not be written to standard output.

    A reader that closes the pipe early, such as `head`, is not an error.
    """
    # a full disk may be noticed only here
    out.flush()
    code = int(end.code or 0)
    lost = next((error for error in out.losses if error.errno != errno.EPIPE), None)
    if lost is None:
        return code
    inform(f"error: results could not be written to standard output ({lost.strerror})")
    return UNWRITTEN if code == 0 and not isinstance(end, Verdict) else code


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise `Terminated` while the block runs.

    A signal that is ignored, for example by nohup, stays ignored.
    """
    # without handlers a signal would end the process before temporary files are removed
    before = {number: signal.getsignal(number) for number in STOPPING}
    caught = [number for number, handler in before.items() if handler is signal.SIG_DFL]

    def stop(number: int, frame: Any) -> NoReturn:
        # a second signal must not interrupt the clean-up
        for one in caught:
            signal.signal(one, signal.SIG_IGN)
        raise Terminated(number)

    def arm() -> None:
        for number in caught:
            signal.signal(number, stop)

    def send_again(lost: Any) -> None:
        # Python drops exceptions of callbacks of its garbage collector, of which Dask has one: a
        # signal that arrives in such a callback is sent again once the callback is over
        if isinstance(lost.exc_value, KeyboardInterrupt):
            arm()
            number = getattr(lost.exc_value, "number", signal.SIGINT)
            threading.Timer(0.01, signal.pthread_kill, (main, number)).start()
        else:
            hook(lost)

    main = threading.get_ident()
    hook, sys.unraisablehook = sys.unraisablehook, send_again
    arm()
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number in caught:
            # otherwise the process is about to exit with the code of the first signal
            if signal.getsignal(number) is stop:
                signal.signal(number, signal.SIG_DFL)
