"""Escaping of control and format characters in text from data, and of values in rules."""

from __future__ import annotations

import re
import unicodedata
from typing import Any


def visible(text: str, keep: str = "") -> str:
    r"""Escape characters that move the cursor, reorder or hide text, except those in `keep`.

    These are control characters, line separators, format characters (direction marks, zero-width
    characters), surrogates and undefined code points. The escapes are those of JSON, so escaped
    JSON keeps its meaning.

    Examples
    --------
    >>> print(visible("clear \x1b[2J, reorder \u202e, two\nlines, café"))
    clear \u001b[2J, reorder \u202e, two\nlines, café
    """
    # true of most text, and the loop below takes twenty times as long
    if text.isprintable():
        return text
    return "".join(
        letter
        # wide blanks are not printable, and are shown
        if letter in keep or letter.isprintable() or unicodedata.category(letter) == "Zs"
        else _escaped(letter)
        for letter in text
    )


def single_line(text: str) -> str:
    r"""Join the lines of a message by blanks, and escape the rest as `visible` does.

    Examples
    --------
    >>> print(single_line("no such file:\n  a\tb.csv\n"))
    no such file: a\tb.csv
    """
    return visible(" ".join(line.strip(" \t\r") for line in text.strip().split("\n")))


def _escaped(letter: str) -> str:
    named = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
    number = ord(letter)
    return named.get(letter) or (f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}")


_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that neither XML nor HTML allows."""


def printable(text: Any) -> str:
    """Return a text from data with format characters escaped and without those XML forbids."""
    line = str(text)
    return line if line.isprintable() else visible(_UNPRINTABLE.sub("\ufffd", line), "\t\n\r")


LONGEST = 300
"""Most characters of a name in a table, which bounds the size of a page."""


def shortened(text: Any, length: int = LONGEST) -> str:
    """Shorten a long text in the middle, since names of groups often differ at their ends."""
    line = printable(text)
    if len(line) <= length:
        return line
    end = length // 3
    return f"{line[: length - end - 1]}…{line[-end:]}"


# --- values in the text of rules, which the command reads and reports print

OR_MISSING = "(or missing)"
"""What follows a comparison that rows with a missing value meet as well."""

JOINS = re.compile(r"\s(?:and|or)\s", re.IGNORECASE)
"""Words between comparisons. Of these only "and" is one of the language: "or" is refused."""


def as_value(value: str) -> str:
    """Return a value as `GroupRule.parse` reads it: in quotes where it needs them.

    Examples
    --------
    >>> print(as_value("cook"), as_value("a and b = c"))
    cook "a and b = c"
    """
    is_trimmed = value == value.strip() != "" and not value.endswith(OR_MISSING)
    if is_trimmed and '"' not in value and not JOINS.search(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
