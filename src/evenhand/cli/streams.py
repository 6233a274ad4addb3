"""Standard streams of the command that tolerate closed pipes and full disks."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from evenhand._escape import visible

LINE_ENDS = "\n\t"
"""Layout characters of summaries; in values they are already escaped."""


class Tolerant(io.TextIOBase):
    """A stream that stores errors in `losses` instead of raising them, and then discards text."""

    def __init__(self, stream: TextIO, losses: list[OSError]) -> None:
        self.losses = losses
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding or "utf-8"

    def write(self, text: str) -> int:
        # some terminals cannot encode the line characters of tables
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
            # open returns the lowest free descriptor
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")
