"""Width and colours of the terminal, and text that fits it."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import Protocol

USUAL_WIDTH = 80
"""Characters of a line of help that no terminal shows."""

WIDEST = 100
"""Most characters of a line of help; longer lines are hard to read."""


class Stream(Protocol):
    """An output stream."""

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""

    def fileno(self) -> int:
        """Return its file descriptor."""


STYLES = {"heading": "1", "name": "36", "error": "1;31", "warning": "33"}
"""Codes of ANSI terminals: bold, cyan, bold red, yellow."""


def width_of(stream: Stream) -> int | None:
    """Return the width of the terminal that shows a stream; None for files and pipes.

    The environment variable COLUMNS has precedence, also for files and pipes.
    """
    asked = os.environ.get("COLUMNS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    try:
        # a terminal without a size, as in some containers, reports 0
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def text_width() -> int:
    """Return the width of text on standard output: that of its terminal, but at most `WIDEST`."""
    return min(width_of(sys.stdout) or USUAL_WIDTH, WIDEST)


def has_colour(stream: Stream) -> bool:
    """Whether a stream is a terminal that shows colours, and NO_COLOR is not set."""
    is_dumb = os.environ.get("TERM", "dumb") == "dumb"
    return stream.isatty() and not is_dumb and not os.environ.get("NO_COLOR")


def styled(text: str, style: str, *, has_colour: bool) -> str:
    """Return text in a style of `STYLES`, or unchanged without colours."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if has_colour else text


def folded(text: str, width: int, indent: int = 0, *, first: int | None = None) -> str:
    """Break a text between words into lines of at most `width` characters.

    Parameters
    ----------
    text : str
        A paragraph.
    width : int
        Most characters of a line.
    indent : int, default 0
        Blanks at the start of each line.
    first : int, optional
        Blanks at the start of the first line; `indent` by default.

    Examples
    --------
    >>> print(folded("a person of each group", 12, 2, first=0))
    a person of
      each group
    """
    return textwrap.fill(
        text,
        width,
        initial_indent=" " * (indent if first is None else first),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
