"""Streams, messages, results and exit codes of the command."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import sys
import textwrap
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO

from evenhand._escape import single_line, visible
from evenhand._table import line_width
from evenhand._validate import InputError, MissingExtraError

# --- standard streams of the command that tolerate closed pipes and full disks

LINE_ENDS = "\n\t"
"""Layout characters of summaries; in values they are already escaped."""


class Tolerant:
    """A stream that stores errors in `losses` instead of raising them, and then discards text."""

    def __init__(self, stream: TextIO, losses: list[OSError]) -> None:
        self.losses = losses
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        # some terminals cannot encode the line characters of tables
        encoding = self._stream.encoding or "utf-8"
        shown = text.encode(encoding, "replace").decode(encoding)
        try:
            self._stream.write(shown)
        except OSError as error:
            self._lose(error)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Store the error, and redirect the stream to nowhere.

        Python's own flush at exit would otherwise fail and change the exit code.
        """
        self.losses.append(error)
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class Safe(Tolerant):
    """A `Tolerant` stream that escapes control characters.

    Rich, which writes control sequences itself, uses the inner stream.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream, [])
        # the attribute that rich looks up
        self.rich_proxied_file = Tolerant(stream, self.losses)

    def write(self, text: str) -> int:
        super().write(visible(text, LINE_ENDS))
        # escapes lengthen the text, but callers check that all their characters were written
        return len(text)


@contextmanager
def safe_streams() -> Iterator[Safe]:
    """Make both output streams `Safe` while the block runs, and yield standard output.

    Closed streams are redirected to nowhere: otherwise the next opened file would get the
    descriptor of the stream, and text written to the stream would end up in that file.
    """
    _open_closed()
    out = sys.stdout or _nowhere()
    err = sys.stderr or _nowhere()
    safe: Any = Safe(out)
    sys.stdout, sys.stderr = safe, Safe(err)
    try:
        yield safe
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout = out
        sys.stderr = err


def _open_closed() -> None:
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # open returns the lowest free descriptor
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


# --- width of the terminal


def terminal_width() -> int | None:
    """Return the width of the terminal that shows standard output; None for files and pipes.

    The environment variable COLUMNS has precedence, also for files and pipes.
    """
    # a terminal without a size, as in some containers, reports 0
    return shutil.get_terminal_size(fallback=(0, 0)).columns or None


# --- messages and exit codes of the command

BAD_INPUT = 2
NOT_WORTH_IT = 3
FAULT = 70
UNWRITTEN = 74
# 1, Python's code of any error, is reserved for gates; termination by a signal has 128 + its
# number
INTERRUPTED = 130
"""Exit codes."""

STOPPING = (signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """Termination by a signal, with the same clean-up as an interrupt from the keyboard."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Decision(SystemExit):
    """Decision of a gate: exit code 0 or 1, even if the output could not be written."""


def end_with(error: BaseException) -> NoReturn:
    """Print the error that ended a command in one line, and exit with the code of its kind."""
    if isinstance(error, Terminated):
        fail("terminated", 128 + error.number)
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
    # the prefix of pydantic, which checks choices
    text = error.format_message().rstrip(".").replace("Value error, ", "")
    command = "evenhand" if error.ctx is None else error.ctx.command_path
    return f"{text[:1].lower()}{text[1:]}; see {command} --help"


def fail(message: str, code: int = BAD_INPUT) -> NoReturn:
    """Print an error and exit with a code."""
    inform(f"error: {message}")
    raise SystemExit(code)


def warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print a user warning without its place in the code; other warnings are for programmers."""
    if issubclass(category, UserWarning):
        inform(f"warning: {message}")


def inform(message: str) -> None:
    """Write a message to standard error on one line; control characters are escaped."""
    print(single_line(message), file=sys.stderr, flush=True)


def show(text: str) -> None:
    """Write results to standard output, such as JSON, as they are."""
    print(text, flush=True)


def show_text(text: str) -> None:
    """Write results for readers to standard output; on a terminal, lines are broken to fit it."""
    width = terminal_width()
    if width is not None:
        text = "\n".join(_folded(line, min(width, line_width())) for line in text.split("\n"))
    show(text)


def _folded(line: str, width: int) -> str:
    """Break a line between words; its indent is repeated."""
    indent = " " * (len(line) - len(line.lstrip()))
    folded = textwrap.fill(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return line if len(line) <= width else folded


def command_line() -> str:
    """Return the command line, ready to be run again."""
    # without the path of the interpreter, because reports are read on other machines
    return shlex.join(["evenhand", *sys.argv[1:]])


def show_result(values: Mapping[str, Any], text: str, as_json: bool) -> None:
    """Print the result of a command as text, or as one JSON document.

    Unknown values are null in JSON, which has no NaN.
    """
    if not as_json:
        show_text(text)
        return
    from evenhand.results import plain

    show(json.dumps(plain(values), indent=2, allow_nan=False))


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
    return UNWRITTEN if code == 0 and not isinstance(end, Decision) else code


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise `Terminated` while the block runs.

    A signal that is ignored, for example by nohup, stays ignored. Python only reports exceptions in
    destructors and callbacks of the garbage collector: a signal is lost there, and the next counts.
    """
    # without handlers a signal would end the process before temporary files are removed
    before = {number: signal.getsignal(number) for number in STOPPING}
    caught = [number for number, handler in before.items() if handler is signal.SIG_DFL]

    def stop(number: int, frame: Any) -> NoReturn:
        # a second signal must not interrupt the clean-up
        for one in caught:
            signal.signal(one, signal.SIG_IGN)
        raise Terminated(number)

    def catch(lost: Any = None) -> None:
        # pyarrow reports errors that it raises, too: only a lost signal matters
        if lost is None or isinstance(lost.exc_value, Terminated):
            for number in caught:
                signal.signal(number, stop)

    catch()
    sys.unraisablehook = catch
    try:
        yield
    finally:
        for number in caught:
            # otherwise the process is about to exit with the code of the first signal
            if signal.getsignal(number) is stop:
                signal.signal(number, signal.SIG_DFL)
