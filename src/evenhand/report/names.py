"""Names from data, shortened for tables and charts."""

from __future__ import annotations

from typing import Any

from evenhand.figures import printable

TIP_NAME = 60
"""Most characters of a name in the label of a mark."""


LONGEST = 300
"""Most characters of a name in a table: a page has to stay small whatever the columns hold."""


def short(text: Any, length: int = LONGEST) -> str:
    """Cut a text that is too long in its middle: names of groups often differ at their ends."""
    line = printable(text)
    end = length // 3
    return line if len(line) <= length else f"{line[: length - end - 1]}…{line[-end:]}"


def tip_name(name: object) -> str:
    """Shorten a name from data for the label of a mark, on one line."""
    return short(" ".join(str(name).split()), TIP_NAME)
