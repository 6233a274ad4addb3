"""Key files, which contain the secret key of people's draws."""

from __future__ import annotations

import codecs
import os
import re
import shlex
import stat
from pathlib import Path

from evenhand._validate import InputError, about
from evenhand.cli.messages import inform

MAKE_KEY_FILE = (
    "python -c \"import os, secrets; os.umask(0o77); open('KEYFILE',"
    " 'x').write(secrets.token_hex(32))\""
)
"""Command that creates a key file: the same bytes from any shell (some write `>` as UTF-16),
readable for the owner only, and never over another key."""

# UTF-32 first: its mark begins with the mark of UTF-16
MARKS = {
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}

OTHERS = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH


def read_key(path: Path) -> bytes:
    """Return the key in a file of one line of printable ASCII, without the newline."""
    from evenhand.draws import MIN_KEY_BYTES, check_key

    try:
        content = path.read_bytes()
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(f"{path}: the key file cannot be read ({error.strerror})") from error
    # editors add a newline, in different forms, which must not change the draws
    key = re.sub(rb"\r?\n\Z", b"", content)
    remedy = f"create one with: {MAKE_KEY_FILE}"
    # other characters may be saved as other bytes later, which would change all draws
    if found := _ambiguity(key):
        raise InputError(
            f"{path}: the key file contains {found}, but must be one line of printable ASCII"
            f" characters without blanks at its ends; write the key in this form, or {remedy}"
        )
    if len(key) < MIN_KEY_BYTES:
        raise InputError(
            f"{path}: the key has {len(key)} bytes, but needs at least {MIN_KEY_BYTES}; {remedy}"
        )
    with about(str(path)):
        check_key(key)
    # anyone who knows the key can compute the draws in advance, so only the owner should read it;
    # pipes have no permanent content
    if os.name == "posix" and stat.S_ISREG(mode) and mode & OTHERS:
        remedy = f"run: chmod 600 {shlex.quote(str(path))}"
        inform(f"warning: {path}: other users can read or change the key; {remedy}")
    return key


def _ambiguity(key: bytes) -> str | None:
    """Return what makes a key ambiguous, if anything; the key itself is not shown."""
    for mark, encoding in MARKS.items():
        if key.startswith(mark):
            return f"a byte order mark ({encoding})"
    if b"\0" in key:
        return "NUL bytes, as in UTF-16 or binary files"
    if b"\n" in key or b"\r" in key:
        return "several lines"
    if key != key.strip(b" \t"):
        return "blanks at its start or end"
    # the position, not the value of the byte: messages may be logged
    wrong = [place for place, byte in enumerate(key, start=1) if not 0x20 <= byte <= 0x7E]
    return f"another character (byte {wrong[0]} of {len(key)})" if wrong else None
