"""Shortening of names from data."""

from __future__ import annotations

from typing import Any

from evenhand.figures import printable

TIP_NAME = 60
"""Most characters of a name in the label of a mark."""


LONGEST = 300
"""Most characters of a name in a table, which bounds the size of a page."""


def short(text: Any, length: int = LONGEST) -> str:
    """Shorten a long text in the middle, since names of groups often differ at their ends."""
    line = printable(text)
    end = length // 3
    return line if len(line) <= length else f"{line[: length - end - 1]}…{line[-end:]}"


def tip_name(name: object) -> str:
    """Shorten a name for the label of a mark."""
    return short(" ".join(str(name).split()), TIP_NAME)
