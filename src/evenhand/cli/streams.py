"""Standard streams of the command: any of them may be closed, full, or read only in part."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from evenhand._escape import visible

LINE_ENDS = "\n\t"
"""Characters of our own summaries that are no part of a value; those of values are escaped
before."""


class Tolerant(io.TextIOBase):
    """A stream whose errors are kept in `losses` and not raised; after one, text goes nowhere."""

    def __init__(self, stream: TextIO, losses: list[OSError]) -> None:
        self.losses = losses
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding or "utf-8"

    def write(self, text: str) -> int:
        # the lines of tables are more than some terminals can show
        shown = text.encode(self.encoding, "replace").decode(self.encoding)
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

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    def _lose(self, error: OSError) -> None:
        """Note the error, and let Python's own flush at exit write to nowhere.

        It would change the exit code.
        """
        self.losses.append(error)
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class Safe(Tolerant):
    """A `Tolerant` stream that shows control characters as escapes.

    Rich, which makes some itself, goes around that.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream, [])
        # the name by which rich looks for it
        self.rich_proxied_file = Tolerant(stream, self.losses)

    def write(self, text: str) -> int:
        super().write(visible(text, LINE_ENDS))
        # escapes make text longer; callers check that all they gave was taken
        return len(text)


@contextmanager
def safe_streams() -> Iterator[Safe]:
    """Make both output streams `Safe` while the block runs, and yield standard output.

    A stream that is closed is one that goes nowhere: else the next file that is opened would get
    its number, and what is written to the stream would land in that file.
    """
    _open_closed()
    out = sys.stdout or _nowhere()
    err = sys.stderr or _nowhere()
    sys.stdout, sys.stderr = safe, _ = Safe(out), Safe(err)
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
            # the lowest number that is free is given
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")
