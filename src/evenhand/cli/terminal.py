"""Width of the terminal."""

from __future__ import annotations

import os
from typing import TextIO


def width_of(stream: TextIO) -> int | None:
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
