"""Key files: the secret that the draws of people are made of."""

from __future__ import annotations

import codecs
import os
import re
import shlex
import stat
from pathlib import Path

from evenhand._validate import InputError, about
from evenhand.cli.messages import say

MAKE_KEY_FILE = (
    "python -c \"import os, secrets; os.umask(0o77); open('KEYFILE',"
    " 'x').write(secrets.token_hex(32))\""
)
"""Writes the same bytes from any shell (some write `>` as UTF-16), for the owner alone, and
never over another key."""

# UTF-32 first: its mark begins with that of UTF-16
MARKS = {
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}

OTHERS = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH


def read_key(path: Path) -> bytes:
    """Return the key of a file that holds one line of printable ASCII, without its newline."""
    from evenhand.draws import MIN_KEY_BYTES, check_key

    try:
        content = path.read_bytes()
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(f"{path}: the key file cannot be read ({error.strerror})") from error
    # editors add a newline and some change its form; neither may change the draws
    key = re.sub(rb"\r?\n\Z", b"", content)
    remedy = f"make one with: {MAKE_KEY_FILE}"
    # anything else can turn into other bytes when it is saved again, and other bytes are another
    # draw for everybody
    if found := _unclear(key):
        rule = (
            "the key file must hold one line of printable ASCII characters without blanks around it"
        )
        raise InputError(f"{path}: {rule}, got {found}; write the key again so, or {remedy}")
    if len(key) < MIN_KEY_BYTES:
        raise InputError(
            f"{path}: the key has {len(key)} bytes and must have at least {MIN_KEY_BYTES}; {remedy}"
        )
    with about(str(path)):
        check_key(key)
    # whoever knows the key can compute the draws beforehand, so others should not read it;
    # pipes have no lasting content
    if os.name == "posix" and stat.S_ISREG(mode) and mode & OTHERS:
        remedy = f"run: chmod 600 {shlex.quote(str(path))}"
        say(f"warning: {path}: others than the owner can read or change the key; {remedy}")
    return key


def _unclear(key: bytes) -> str | None:
    """Name what a key file holds besides the key; the key itself is not shown."""
    for mark, encoding in MARKS.items():
        if key.startswith(mark):
            return f"a byte order mark ({encoding})"
    if b"\0" in key:
        return "NUL bytes, as UTF-16 and binary keys have"
    if b"\n" in key or b"\r" in key:
        return "several lines"
    if key != key.strip(b" \t"):
        return "blanks at an end"
    # the place of the byte, never the byte: messages end up in logs
    wrong = [place for place, byte in enumerate(key, start=1) if not 0x20 <= byte <= 0x7E]
    return f"another character (byte {wrong[0]} of {len(key)})" if wrong else None
